//! What members of a schema found its blocks to come to: a block's outcome counts once a quorum of them says the same.

use crypto::{Digest, Signature};
use std::collections::BTreeMap;
use types::{
    CertificateRules, SchemaAttestation, SchemaCertificate, SchemaMembers, SchemaOutcome, Statement,
};

/// Outcomes of blocks with parts that are remembered, of all schemas. Whoever asks for an older one hears nothing.
const REMEMBERED: usize = 20_000;

/// A block of a schema: the schema's number and the height.
pub(super) type SchemaBlock = (u32, u64);

/// What is known of a block.
#[derive(Default)]
struct Said {
    own: Option<(SchemaAttestation, Digest)>,
    /// Digests of what others say, and their signatures.
    others: BTreeMap<u16, (Digest, Signature)>,
}

/// What members say.
#[derive(Default)]
pub(super) struct Agreeing {
    blocks: BTreeMap<SchemaBlock, Said>,
    /// Those whose outcome is to stand in the ledger, until it need not any more; and whether somebody here has asked for that.
    needed: BTreeMap<SchemaBlock, bool>,
}

/// Whether members agree on a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// A quorum says what this member says.
    Agreed,
    /// A quorum, or so many that there can be none for this member's outcome, say something else.
    Differs,
    /// Too few have said anything.
    Open,
}

impl Agreeing {
    /// This member has executed the block. `is_needed`: its outcome is to stand in the ledger.
    pub(super) fn executed(&mut self, own: SchemaAttestation, is_needed: bool) {
        let block = (own.statement.schema, own.statement.height);
        if is_needed {
            self.needed.entry(block).or_default();
        }
        let digest = own.statement.digest();
        self.said(block).own = Some((own, digest));
    }

    /// Another member says what it has come to in a block.
    pub(super) fn heard(&mut self, member: u16, attestation: &SchemaAttestation) {
        let SchemaAttestation { statement, organisation, signature } = attestation;
        // Everybody speaks for himself alone.
        if *organisation == member {
            let (digest, (schema, height)) = (statement.digest(), (statement.schema, statement.height));
            let before = self.said((schema, height)).others.insert(member, (digest, *signature));
            if before.is_some_and(|(before, _)| before != digest) {
                tracing::warn!(
                    organisation,
                    schema,
                    height,
                    "a member says two different things of a block: its last word counts"
                );
            }
        }
    }

    fn said(&mut self, block: SchemaBlock) -> &mut Said {
        while self.blocks.len() > REMEMBERED {
            // Of the oldest height: the first key may be a schema's that still works.
            let oldest = self.blocks.keys().min_by_key(|(_, height)| *height).copied();
            oldest.map(|oldest| self.blocks.remove(&oldest));
        }
        self.blocks.entry(block).or_default()
    }

    /// What this member has come to.
    pub(super) fn own(&self, block: SchemaBlock) -> Option<&SchemaAttestation> {
        Some(&self.blocks.get(&block)?.own.as_ref()?.0)
    }

    /// Somebody waits for a certificate of this block in the ledger.
    pub(super) fn ask_for(&mut self, block: SchemaBlock) {
        if self.own(block).is_some() {
            self.needed.insert(block, true);
        }
    }

    /// Own outcomes that are to stand in the ledger, and whether somebody here has asked for them.
    pub(super) fn needed(&self) -> Vec<(SchemaOutcome, bool)> {
        let needed = self.needed.iter();
        let outcome =
            |(block, asked): (&SchemaBlock, &bool)| Some((self.own(*block)?.statement.clone(), *asked));
        needed.filter_map(outcome).collect()
    }

    /// The outcome of this block need not stand in the ledger any more.
    pub(super) fn settled(&mut self, block: SchemaBlock) {
        self.needed.remove(&block);
    }

    /// The word of all members that say the same as this one, with good signatures; nothing where they are fewer than `quorum`.
    pub(super) fn certificate(
        &mut self,
        block: SchemaBlock,
        quorum: usize,
        rules: &CertificateRules,
    ) -> Option<SchemaCertificate> {
        let Said { own, others } = self.blocks.get_mut(&block)?;
        let (own, digest) = own.as_ref()?;
        if others.values().filter(|(said, _)| said == digest).count() + 1 < quorum {
            return None;
        }
        let of = |organisation, signature| SchemaAttestation {
            statement: own.statement.clone(),
            organisation,
            signature,
        };
        // Who has signed something else than it says has said nothing.
        others.retain(|member, (said, signature)| {
            said != digest || rules.check(&of(*member, *signature)).is_ok()
        });
        let same = others.iter().filter(|(_, (said, _))| said == digest);
        let mut signatures: BTreeMap<u16, Signature> =
            same.map(|(member, (_, word))| (*member, *word)).collect();
        signatures.insert(own.organisation, own.signature);
        let statement = own.statement.clone();
        Some(SchemaCertificate { statement, signatures: signatures.into_iter().collect() })
    }

    /// Whether enough of the schema's members, `own` one of them, say the same.
    pub(super) fn verdict(&self, members: &SchemaMembers, own: Option<u16>, block: SchemaBlock) -> Verdict {
        let Some(Said { own: Some((_, digest)), others }) = self.blocks.get(&block) else {
            return Verdict::Open;
        };
        let counted = others.iter().filter(|(member, _)| members.has(**member) && Some(**member) != own);
        let (same, different): (Vec<_>, Vec<_>) = counted.partition(|(_, (said, _))| said == digest);
        if same.len() + 1 >= members.quorum() {
            Verdict::Agreed
        } else if members.organisations.len() - different.len() < members.quorum() {
            Verdict::Differs
        } else {
            Verdict::Open
        }
    }

    /// Blocks above a height are taken back.
    pub(super) fn take_back(&mut self, height: u64) {
        self.needed.retain(|(_, block), _| *block <= height);
        for ((_, block), said) in &mut self.blocks {
            if *block > height {
                said.own = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::four_members::{charter, key};
    use super::*;
    use types::PartVotes;

    fn says(member: u16, (schema, height): SchemaBlock, what: &str) -> SchemaAttestation {
        let (ledger, outcome) = (charter().ledger(), crypto::sha256(&[what.as_bytes()]));
        let votes = vec![PartVotes { height, yes: vec![1], no: vec![] }];
        SchemaAttestation::sign(
            SchemaOutcome { ledger, schema, height, outcome, votes, moves: vec![] },
            member,
            &key(member),
        )
    }

    #[test]
    fn a_quorum_of_members_agrees_and_strangers_do_not_count() {
        let members = SchemaMembers { number: 7, since: 1, changed: 1, organisations: vec![0, 1, 2] };
        let mut agreeing = Agreeing::default();
        let block = (7, 5);
        agreeing.heard(1, &says(1, block, "right"));
        assert_eq!(agreeing.verdict(&members, Some(0), block), Verdict::Open, "nothing of this member's own");
        agreeing.executed(says(0, block, "right"), true);
        assert_eq!(agreeing.verdict(&members, Some(0), block), Verdict::Agreed);
        let other = (7, 6);
        agreeing.executed(says(0, other, "right"), true);
        agreeing.heard(3, &says(3, other, "right"));
        agreeing.heard(0, &says(0, other, "right"));
        agreeing.heard(1, &says(2, other, "right"));
        assert_eq!(
            agreeing.verdict(&members, Some(0), other),
            Verdict::Open,
            "a stranger, and others' words"
        );
        agreeing.heard(1, &says(1, other, "wrong"));
        assert_eq!(agreeing.verdict(&members, Some(0), other), Verdict::Open);
        agreeing.heard(2, &says(2, other, "wrong"));
        assert_eq!(agreeing.verdict(&members, Some(0), other), Verdict::Differs);
        agreeing.take_back(5);
        assert!(agreeing.own(other).is_none() && agreeing.own(block).is_some());
        for height in 10..10 + REMEMBERED as u64 {
            agreeing.heard(1, &says(1, (8, height), "right"));
        }
        assert!(agreeing.own(block).is_none(), "memory is bounded, and the oldest go first");
        assert!(agreeing.blocks.len() <= REMEMBERED + 1);
    }

    #[test]
    fn a_certificate_has_the_signatures_of_those_who_say_the_same_and_have_signed_it() {
        let rules = CertificateRules::new(&charter());
        let (mut agreeing, block) = (Agreeing::default(), (7, 5));
        agreeing.executed(says(0, block, "right"), true);
        assert_eq!(agreeing.needed().len(), 1);
        agreeing.heard(1, &says(1, block, "right"));
        agreeing.heard(2, &says(2, block, "wrong"));
        let forged = SchemaAttestation { organisation: 3, ..says(1, block, "right") };
        agreeing.heard(3, &forged);
        let certificate = agreeing.certificate(block, 2, &rules).expect("its own word at least");
        let signed: Vec<u16> = certificate.signatures.iter().map(|(member, _)| *member).collect();
        assert_eq!(signed, [0, 1]);
        assert_eq!(certificate.check_signed(&rules), Ok(()));
        assert_eq!(agreeing.certificate((7, 6), 1, &rules), None);
        agreeing.settled(block);
        assert!(agreeing.needed().is_empty());
        agreeing.ask_for((7, 6));
        assert!(agreeing.needed().is_empty(), "nothing is known of that block");
        agreeing.ask_for(block);
        assert_eq!(agreeing.needed(), [(says(0, block, "right").statement, true)]);
    }
}
