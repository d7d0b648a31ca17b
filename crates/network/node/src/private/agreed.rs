//! What a schema executes of a transaction's part: in whose name, who has signed it, and what it shares with the other parts.

use super::block::OrderedParts;
use crypto::{Digest, PublicKey};
use engine::{Between, SchemaPart, VerifiedTransaction};
use sql::Moves;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{
    AgreedPart, Charter, ExecutionVersion, Part, Payload, SchemaMembers, Signers, StakeholderSignature,
    agreement, part_core,
};

/// Where a part is executed. `charter`: the ledger's, of the block that it stands in; `ledger`: its digest.
pub(super) struct AgreedIn<'a> {
    pub(super) known: &'a mut KnownSigners,
    pub(super) ledger: Digest,
    pub(super) schema: &'a str,
    pub(super) members: &'a SchemaMembers,
    pub(super) charter: &'a Charter,
}

/// Clients that nobody has signed beside: most transactions are theirs, and their names are made once.
#[derive(Default)]
pub(super) struct KnownSigners {
    /// The charter's version and the members that names are of.
    of: (u64, Vec<u16>),
    clients: BTreeMap<(PublicKey, u16), Arc<Signers>>,
}

/// Clients whose names are kept.
const CLIENTS_MAX: usize = 4_096;

impl KnownSigners {
    fn follow(&mut self, charter: &Charter, members: &SchemaMembers) {
        let is_same = self.of.0 == charter.version && self.of.1 == members.organisations;
        if !is_same || self.clients.len() >= CLIENTS_MAX {
            self.clients.clear();
            self.of = (charter.version, members.organisations.clone());
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
            let signatures = agreed.filter(|_| agreement.is_some()).map_or(&[][..], |one| &one.signatures);
            let signatures = signatures
                .iter()
                .filter(|one| agreement.as_ref().is_some_and(|agreement| one.is_under(agreement)));
            let signatures: Vec<&StakeholderSignature> = signatures.collect();
            let signers = self.signers(&transaction, &signatures);
            transaction.principal.signers = Some(signers);
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
        (is_whole && !agreed.signatures.is_empty()).then(|| agreement(&ledger, client, &cores))
    }

    /// The client, with its organisation, and those whose signatures these are.
    fn signers(
        &mut self,
        transaction: &VerifiedTransaction,
        signatures: &[&StakeholderSignature],
    ) -> Arc<Signers> {
        if !signatures.is_empty() {
            return self.names(transaction, signatures);
        }
        self.known.follow(self.charter, self.members);
        let client = (transaction.client.key, transaction.principal.organisation);
        if let Some(known) = self.known.clients.get(&client) {
            return known.clone();
        }
        let names = self.names(transaction, &[]);
        self.known.clients.insert(client, names.clone());
        names
    }

    fn names(&self, transaction: &VerifiedTransaction, signatures: &[&StakeholderSignature]) -> Arc<Signers> {
        let name = |position: u16| Some(self.charter.organisations.get(usize::from(position))?.name.clone());
        let mut who: Vec<String> = name(transaction.principal.organisation).into_iter().collect();
        who.push(transaction.client.key.to_string());
        for signed in signatures {
            let vouching = signed.credential.filter(|credential| {
                let organisation = self.charter.organisations.get(usize::from(credential.organisation));
                organisation.is_some_and(|organisation| {
                    !organisation.removed
                        && credential.verify(&organisation.root_key, &self.ledger, &signed.key)
                })
            });
            who.extend(vouching.and_then(|credential| name(credential.organisation)));
            who.push(signed.key.to_string());
        }
        let mut seen = BTreeSet::new();
        who.retain(|one| seen.insert(one.clone()));
        let members = self.members.organisations.iter().filter_map(|position| name(*position)).collect();
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
