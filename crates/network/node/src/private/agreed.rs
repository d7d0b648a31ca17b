//! What a schema executes of a transaction's part: in whose name, who has signed it, and what it shares with the other parts.

use super::block::OrderedParts;
use crypto::{Digest, PublicKey};
use engine::{Between, SchemaPart, VerifiedTransaction};
use sql::Moves;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{
    AgreedPart, Charter, ExecutionVersion, Part, Payload, Signers, StakeholderSignature, agreement, limits,
    part_core,
};

/// Where a part is executed. `charter`: the ledger's, of the block that it stands in; `ledger`: its digest.
pub(super) struct AgreedIn<'a> {
    pub(super) known: &'a mut KnownSigners,
    pub(super) ledger: Digest,
    pub(super) schema: &'a str,
    pub(super) charter: &'a Charter,
}

/// Clients that nobody has signed beside: most transactions are theirs, and their names are made once.
#[derive(Default)]
pub(super) struct KnownSigners {
    /// The charter's version and the schema's members that names are of.
    of: (u64, Vec<u16>),
    clients: BTreeMap<(PublicKey, u16), Arc<Signers>>,
}

/// Clients whose names are kept.
const CLIENTS_MAX: usize = 4_096;

impl KnownSigners {
    fn follow(&mut self, charter: &Charter, members: &[u16]) {
        let is_same = self.of.0 == charter.version && self.of.1 == members;
        if !is_same || self.clients.len() >= CLIENTS_MAX {
            self.clients.clear();
            self.of = (charter.version, members.to_vec());
        }
    }
}

impl AgreedIn<'_> {
    /// A transaction as it is in the schema: its part, in the name of its client.
    pub(super) fn part(&mut self, ordered: &OrderedParts, part: Part, timestamp_ms: u64) -> SchemaPart {
        let (position, crossing) = (ordered.position, ordered.is_crossing());
        let mut transaction = VerifiedTransaction::clone(&ordered.transaction);
        transaction.endorsed = None;
        let mut between = None;
        if self.charter.execution_version >= ExecutionVersion::V6.number() {
            let agreed = match &part.payload {
                Payload::Agreed(agreed) => Some(agreed.as_ref()),
                _ => None,
            };
            let agreement = agreed.and_then(|agreed| self.agreement(ordered, &part.salt, agreed));
            let signatures = match (agreed, &agreement) {
                (Some(agreed), Some(agreement)) => good(&agreed.signatures, agreement),
                _ => Vec::new(),
            };
            // Where nobody's signature is good nothing was agreed to.
            let agreement = agreement.filter(|_| !signatures.is_empty());
            let members = ordered.members.iter().find(|members| members.schema == self.schema);
            let members = members.map_or(&[][..], |members| &members.organisations);
            transaction.principal.signers = Some(self.signers(&transaction, members, &signatures));
            between = agreed.filter(|_| crossing).map(|agreed| self.between(ordered, agreed, agreement));
        }
        transaction.payload = Arc::new(part.payload);
        SchemaPart { position, transaction: Arc::new(transaction), timestamp_ms, crossing, between }
    }

    /// What stakeholders have signed; `None` where nobody has, or it is not about this transaction's schemas.
    fn agreement(&self, ordered: &OrderedParts, salt: &[u8; 32], agreed: &AgreedPart) -> Option<Digest> {
        let (ledger, client) = (self.ledger, &ordered.transaction.client);
        let Payload::Parts { parts } = ordered.transaction.payload.as_ref() else { return None };
        let mut cores = agreed.others.clone();
        let own = part_core((&ledger, self.schema, client), salt, (&agreed.call, &agreed.between));
        let is_new = cores.insert(self.schema.to_string(), own).is_none();
        let is_whole = is_new && parts.iter().map(|part| &part.schema).eq(cores.keys());
        // Where a part shares nothing with another one, its members cannot say to that one's what was signed.
        let is_compared = agreed.others.keys().eq(agreed.between.keys());
        let signed = (client, ordered.transaction.expires_at);
        (is_whole && is_compared && !agreed.signatures.is_empty()).then(|| agreement(&ledger, signed, &cores))
    }

    /// The client, with its organisation, and those whose signatures these are.
    fn signers(
        &mut self,
        transaction: &VerifiedTransaction,
        members: &[u16],
        signatures: &[&StakeholderSignature],
    ) -> Arc<Signers> {
        if !signatures.is_empty() {
            return self.names(transaction, members, signatures);
        }
        self.known.follow(self.charter, members);
        let client = (transaction.client.key, transaction.principal.organisation);
        if let Some(known) = self.known.clients.get(&client) {
            return known.clone();
        }
        let names = self.names(transaction, members, &[]);
        self.known.clients.insert(client, names.clone());
        names
    }

    fn names(
        &self,
        transaction: &VerifiedTransaction,
        members: &[u16],
        signatures: &[&StakeholderSignature],
    ) -> Arc<Signers> {
        let name = |position: u16| Some(self.charter.organisations.get(usize::from(position))?.name.clone());
        let mut who: Vec<String> = name(transaction.principal.organisation).into_iter().collect();
        who.push(transaction.client.key.to_string());
        for signed in signatures {
            who.extend(signed.organisation(self.charter, &self.ledger).map(|one| one.name.clone()));
            who.push(signed.key.to_string());
        }
        let mut seen = BTreeSet::new();
        who.retain(|one| seen.insert(one.clone()));
        let members = members.iter().filter_map(|position| name(*position)).collect();
        Arc::new(Signers { who, members })
    }

    fn between(&self, ordered: &OrderedParts, agreed: &AgreedPart, agreement: Option<Digest>) -> Between {
        let number = |schema: &String| {
            ordered.members.iter().find(|members| members.schema == *schema).map(|members| members.number)
        };
        let shared = agreed.between.iter().filter(|(schema, _)| *schema != self.schema);
        let others: BTreeMap<String, (u32, [u8; 32])> = shared
            .filter_map(|(schema, secret)| Some((schema.clone(), (number(schema)?, *secret))))
            .collect();
        let moves = Arc::new(Moves::new(self.schema, others.keys().cloned()));
        let (ledger, client) = (self.ledger, ordered.transaction.client);
        Between { ledger, client, others, agreement, moves }
    }
}

/// One signature of each key that has signed; none where there are too many to look at.
fn good<'a>(signatures: &'a [StakeholderSignature], agreement: &Digest) -> Vec<&'a StakeholderSignature> {
    if signatures.len() > limits::SIGNATURES_MAX {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let is_new = |one: &&StakeholderSignature| seen.insert(one.key);
    signatures.iter().filter(is_new).filter(|one| one.is_under(agreement)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::four_members::{charter, key};
    use super::*;
    use concurrency::parts::LedgerPosition;
    use crypto::SecretKey;
    use types::{Credential, DraftPart, Identity, PartMembers, PartsDraft};

    fn identity(organisation: u16) -> Identity {
        let ledger = charter().ledger();
        let own = SecretKey::from_bytes([70 + organisation as u8; 32]);
        let credential = Credential::issue(&key(organisation), organisation, &ledger, &own.public_key());
        Identity::new(ledger, own, credential)
    }

    fn offer() -> PartsDraft {
        let script = |sql: &str| Payload::Script { sql: sql.into(), parameters: vec![] };
        let calls = [("a", "CALL a.give()"), ("b", "CALL b.take()")];
        let calls = calls.map(|(schema, sql)| (schema.to_string(), script(sql)));
        identity(0).draft_parts(calls, 90)
    }

    /// What schema `a` makes of a draft that its client has signed, after this was done to its part there.
    fn executed(draft: &PartsDraft, change: impl FnOnce(&mut AgreedPart)) -> SchemaPart {
        let (signed, mut parts) = identity(0).sign_draft(draft).expect("all of it");
        let mut part = parts.remove("a").expect("a part");
        if let Payload::Agreed(agreed) = &mut part.payload {
            change(agreed);
        }
        let members = |schema: &str, number| PartMembers {
            schema: schema.to_string(),
            number,
            organisations: vec![0, 1],
        };
        let ordered = OrderedParts {
            position: LedgerPosition { height: 5, index: 0 },
            transaction: Arc::new(signed.into()),
            members: [members("a", 1), members("b", 2)].into(),
        };
        let (charter, mut known) = (charter(), KnownSigners::default());
        let (known, ledger) = (&mut known, charter.ledger());
        let mut agreed = AgreedIn { known, ledger, schema: "a", charter: &charter };
        agreed.part(&ordered, part, 0)
    }

    fn who(part: &SchemaPart) -> Vec<String> {
        part.transaction.principal.signers.as_ref().expect("somebody asks").who.clone()
    }

    #[test]
    fn whoever_has_signed_all_of_a_transaction_counts() {
        let (alone, mut both) = (offer(), offer());
        let (client, bob) = (identity(0).public_key(), identity(1).public_key());
        let name = |position: usize| charter().organisations[position].name.clone();
        assert_eq!(who(&executed(&alone, |_| ())), [name(0), client.to_string()]);
        identity(1).agree(&mut both).expect("of this ledger");
        both.sign(&SecretKey::from_bytes([99; 32]), None);
        let part = executed(&both, |_| ());
        let anybody = SecretKey::from_bytes([99; 32]).public_key();
        let expected = [name(0), client.to_string(), name(1), bob.to_string(), anybody.to_string()];
        assert_eq!(who(&part), expected);
        let between = part.between.expect("it has another part");
        assert_eq!(between.agreement, Some(both.agreement()));
        assert_eq!(between.others.keys().collect::<Vec<_>>(), ["b"]);
    }

    /// Somebody's signature is under something else than what is executed here, or than what the other schema can compare.
    #[test]
    fn signatures_under_anything_else_do_not_count() {
        let mut signed = offer();
        identity(1).agree(&mut signed).expect("of this ledger");
        let bob = identity(1).public_key().to_string();
        let counts =
            |draft: &PartsDraft, change: fn(&mut AgreedPart)| who(&executed(draft, change)).contains(&bob);
        assert!(counts(&signed, |_| ()));
        assert!(!counts(&signed, |part| part.between.clear()), "nothing is compared with the other part");
        assert!(!counts(&signed, |part| part.others.clear()), "not all of it");
        assert!(!counts(&signed, |part| part.others.values_mut().for_each(|core| core.0[0] ^= 1)));
        assert!(!counts(&signed, |part| part.signatures[0].signature.0[0] ^= 1));
        assert!(
            !counts(&signed, |part| part.signatures = vec![part.signatures[0]; limits::SIGNATURES_MAX + 1])
        );
        let forged = executed(&signed, |part| part.signatures[0].signature.0[0] ^= 1);
        assert_eq!(forged.between.expect("crossing").agreement, None, "nobody has agreed to anything");
        assert!(!counts(&signed, |part| {
            part.call = Payload::Script { sql: "CALL a.give_all()".into(), parameters: vec![] };
        }));
        let mut later = signed.clone();
        later.expires_at += 1;
        assert!(!counts(&later, |_| ()), "it may not come again when its request is forgotten");
        let mut again = signed.clone();
        again.client.request.0[0] ^= 1;
        assert!(!counts(&again, |_| ()), "nor under another request");
        // Who shares nothing has signed nothing, whatever else is right.
        let mut torn = offer();
        for part in torn.parts.values_mut() {
            if let DraftPart::Whole { between, .. } = part {
                between.clear();
            }
        }
        identity(1).agree(&mut torn).expect("whoever signs blindly");
        assert!(!counts(&torn, |_| ()));
        // A key that says that it is an organisation's.
        let mut stranger = offer();
        let own = SecretKey::from_bytes([99; 32]);
        let made_up = Credential::issue(&own, 1, &charter().ledger(), &own.public_key());
        stranger.sign(&own, Some(made_up));
        let found = who(&executed(&stranger, |_| ()));
        assert_eq!(found.last(), Some(&own.public_key().to_string()));
        assert!(!found.contains(&charter().organisations[1].name), "{found:?}");
    }
}
