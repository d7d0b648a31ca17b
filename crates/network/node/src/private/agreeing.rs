//! What members of a schema found its blocks to come to: a block's outcome counts once a quorum of them says the same.

use crypto::Digest;
use std::collections::BTreeMap;
use types::SchemaMembers;

/// Outcomes of blocks with parts that are remembered, of all schemas. Whoever asks for an older one hears nothing.
const REMEMBERED: usize = 20_000;

/// A block of a schema: the schema's number and the height.
pub(super) type SchemaBlock = (u32, u64);

/// What is known of a block.
#[derive(Default)]
struct Said {
    own: Option<Digest>,
    others: BTreeMap<u16, Digest>,
}

/// What members say.
#[derive(Default)]
pub(super) struct Agreeing {
    blocks: BTreeMap<SchemaBlock, Said>,
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
    /// This member has executed the block.
    pub(super) fn executed(&mut self, block: SchemaBlock, digest: Digest) {
        self.said(block).own = Some(digest);
    }

    /// Another member says what it has come to there.
    pub(super) fn heard(&mut self, block: SchemaBlock, member: u16, digest: Digest) {
        self.said(block).others.insert(member, digest);
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
    pub(super) fn own(&self, block: SchemaBlock) -> Option<Digest> {
        self.blocks.get(&block)?.own
    }

    /// Whether enough of the schema's members, `own` one of them, say the same.
    pub(super) fn verdict(&self, members: &SchemaMembers, own: Option<u16>, block: SchemaBlock) -> Verdict {
        let Some(Said { own: Some(digest), others }) = self.blocks.get(&block) else { return Verdict::Open };
        let counted = others.iter().filter(|(member, _)| members.has(**member) && Some(**member) != own);
        let (same, different): (Vec<_>, Vec<_>) = counted.partition(|(_, said)| *said == digest);
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
        for ((_, block), said) in &mut self.blocks {
            if *block > height {
                said.own = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_of_members_agrees_and_strangers_do_not_count() {
        let members = SchemaMembers { number: 7, since: 1, organisations: vec![0, 1, 2] };
        let (right, wrong) = (crypto::sha256(&[b"right"]), crypto::sha256(&[b"wrong"]));
        let mut agreeing = Agreeing::default();
        let block = (7, 5);
        agreeing.heard(block, 1, right);
        assert_eq!(agreeing.verdict(&members, Some(0), block), Verdict::Open, "nothing of this member's own");
        agreeing.executed(block, right);
        assert_eq!(agreeing.verdict(&members, Some(0), block), Verdict::Agreed);
        let other = (7, 6);
        agreeing.executed(other, right);
        agreeing.heard(other, 3, right);
        agreeing.heard(other, 0, right);
        assert_eq!(agreeing.verdict(&members, Some(0), other), Verdict::Open, "one says it, and a stranger");
        agreeing.heard(other, 1, wrong);
        assert_eq!(agreeing.verdict(&members, Some(0), other), Verdict::Open);
        agreeing.heard(other, 2, wrong);
        assert_eq!(agreeing.verdict(&members, Some(0), other), Verdict::Differs);
        agreeing.take_back(5);
        assert_eq!((agreeing.own(other), agreeing.own(block)), (None, Some(right)));
        for height in 10..10 + REMEMBERED as u64 {
            agreeing.executed((8, height), right);
        }
        assert_eq!(agreeing.own(block), None, "memory is bounded, and the oldest go first");
        assert!(agreeing.blocks.len() <= REMEMBERED + 1);
    }
}
