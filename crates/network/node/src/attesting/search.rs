//! Finding out where this node's outcomes begin to differ from those of a quorum: at which height, and what of it.
//! Nobody has to be believed: outcome headers are a chain that ends in a certificate, and what a block did to the state
//! is bound by its header.

use super::message::{HEADERS_MAX, Message};
use crypto::Digest;
use types::{BlockDigest, OutcomeHeader, TableId};

/// Where a node's outcomes begin to differ, and in what.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Difference {
    /// The first height.
    pub(crate) height: u64,
    /// Tables in which the block did something else.
    pub(crate) tables: Vec<TableId>,
    /// Anything else that differs: `the catalog`, `the receipts`, …
    pub(crate) others: Vec<&'static str>,
}

/// The search, from the certificate downwards.
pub(crate) struct Search {
    ledger: Digest,
    /// This node's outcomes are certified up to here.
    certified: u64,
    /// The lowest header of the quorum's chain that is known to be another than this node's.
    lowest: OutcomeHeader,
    /// Whether it is the first one.
    is_first: bool,
}

impl Search {
    /// `differing`: a certified header that is not this node's.
    pub(crate) fn new(ledger: Digest, certified: u64, differing: OutcomeHeader) -> Search {
        let is_first = differing.height <= certified + 1;
        Search { ledger, certified, lowest: differing, is_first }
    }

    /// The lowest height known to differ.
    pub(crate) fn height(&self) -> u64 {
        self.lowest.height
    }

    /// What to ask the others for.
    pub(crate) fn question(&self) -> Message {
        let height = self.lowest.height;
        match self.is_first {
            true => Message::AskDigest { height },
            false => {
                let from = height.saturating_sub(HEADERS_MAX as u64).max(self.certified + 1);
                Message::AskHeaders { from, to: height - 1 }
            }
        }
    }

    /// Takes headers from anybody; says whether they tell anything new. `own` gives this node's.
    pub(crate) fn headers<'o>(
        &mut self,
        headers: &[OutcomeHeader],
        own: impl Fn(u64) -> Option<&'o OutcomeHeader>,
    ) -> bool {
        let before = (self.lowest.height, self.is_first);
        for header in headers.iter().rev() {
            let follows = header.height + 1 == self.lowest.height && header.digest() == self.lowest.previous;
            if self.is_first || !follows {
                continue;
            }
            match own(header.height) == Some(header) {
                true => self.is_first = true,
                false => self.lowest = header.clone(),
            }
            self.is_first |= self.lowest.height <= self.certified + 1;
        }
        before != (self.lowest.height, self.is_first)
    }

    /// Takes what the others' block did to the state; `None` for anything else. `own` is what this node's did.
    pub(crate) fn digest<'o>(
        &self,
        height: u64,
        digest: &BlockDigest,
        own_digest: &BlockDigest,
        own: impl Fn(u64) -> Option<&'o OutcomeHeader>,
    ) -> Option<Difference> {
        if !self.is_first || height != self.lowest.height {
            return None;
        }
        let previous = match height {
            1 => self.ledger,
            _ => own(height - 1)?.state_digest,
        };
        if digest.chain(previous, height) != self.lowest.state_digest {
            return None;
        }
        let found = own(height)?;
        let others = [
            ("the block", found.block != self.lowest.block),
            ("the receipts", found.receipts_root != self.lowest.receipts_root),
            ("the catalog", digest.catalog != own_digest.catalog),
            ("the ids of transactions", digest.requests != own_digest.requests),
        ];
        let others = others.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
        let mut tables: Vec<TableId> = Vec::new();
        for (one, other) in [(digest, own_digest), (own_digest, digest)] {
            let missing = one.tables.iter().filter(|table| !other.tables.contains(table));
            tables.extend(missing.map(|table| table.table));
        }
        tables.sort_unstable();
        tables.dedup();
        Some(Difference { height, tables, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;
    use types::TableDigest;

    fn ledger() -> Digest {
        sha256(&[b"ledger"])
    }

    /// A chain of ten blocks; `wrong_from` writes something else into table 2 at one height.
    fn chain(wrong_at: Option<u64>) -> (Vec<OutcomeHeader>, Vec<BlockDigest>) {
        let (mut headers, mut digests): (Vec<OutcomeHeader>, Vec<BlockDigest>) = Default::default();
        for height in 1..=10u64 {
            let root = |table: u8, wrong: bool| sha256(&[&[table, u8::from(wrong)], &height.to_le_bytes()]);
            let tables = [1, 2, 3].map(|table: u8| TableDigest {
                table: TableId(table.into()),
                root: root(table, table == 2 && wrong_at == Some(height)),
            });
            let digest = BlockDigest { tables: tables.to_vec(), ..BlockDigest::default() };
            let state = headers.last().map_or(ledger(), |before| before.state_digest);
            headers.push(OutcomeHeader {
                ledger: ledger(),
                height,
                block: sha256(&[&height.to_le_bytes()]),
                previous: headers.last().map_or(ledger(), OutcomeHeader::digest),
                receipts_root: Digest::ZERO,
                state_digest: digest.chain(state, height),
                charters: ledger(),
            });
            digests.push(digest);
        }
        (headers, digests)
    }

    #[test]
    fn the_first_height_and_the_table_are_found_whoever_answers() {
        let (right, digests) = chain(None);
        for (wrong_at, certified) in (1..=10).flat_map(|wrong| (0..wrong).map(move |known| (wrong, known))) {
            let (wrong, wrong_digests) = chain(Some(wrong_at));
            let own = |height: u64| wrong.get(height as usize - 1);
            let mut search = Search::new(ledger(), certified, right[9].clone());
            let mut questions = 0;
            let found = loop {
                questions += 1;
                assert!(questions < 10, "wrong at {wrong_at}, certified {certified}");
                match search.question() {
                    Message::AskHeaders { from, to } => {
                        let lie = &wrong[from as usize - 1..to as usize];
                        assert!(!search.headers(lie, own) || wrong_at > to, "headers that nobody certified");
                        search.headers(&right[from as usize - 1..to as usize], own);
                    }
                    Message::AskDigest { height } => {
                        let (at, own_digest) = (height as usize - 1, &wrong_digests[height as usize - 1]);
                        assert_eq!(search.digest(height, own_digest, own_digest, own), None, "a lie");
                        break search.digest(height, &digests[at], own_digest, own);
                    }
                    other => panic!("{other:?}"),
                }
            };
            let expected = Difference { height: wrong_at, tables: vec![TableId(2)], others: vec![] };
            assert_eq!(found, Some(expected), "certified {certified}");
        }
    }
}
