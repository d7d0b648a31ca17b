//! What a simulated node has made durable, and the properties that every run must have.

use crate::{CertificateVerifier, Delivery};
use crypto::{Digest, sha256};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use types::{AmendedCharter, Block, BlockHeader, Charter, Charters, OutcomeHeader};

/// The final blocks of one node: survives its crashes.
pub(super) struct Ledger {
    verifier: CertificateVerifier,
    /// What members agree on, with the height at whose block they do.
    amendments: Vec<(u64, AmendedCharter)>,
    /// What is decided so far.
    pub decided: Charters,
    /// What blocks came to, from height 1: nothing, but as headers that nodes can attest.
    pub outcomes: Vec<OutcomeHeader>,
    /// The highest certified height of the blocks' headers.
    pub certified: u64,
    /// The highest checkpoint that a block carries a certificate of.
    pub checkpoint: u64,
    /// Digest of the last block's header, of the charter before the first.
    tip: Digest,
    /// The last block's header.
    pub last: Option<BlockHeader>,
    /// Digests of the headers, from height 1.
    pub digests: Vec<Digest>,
    /// Digests of the transactions' bytes.
    pub transactions: FxHashSet<Digest>,
    /// The first thing that must not happen and did.
    pub violation: Option<String>,
}

impl Ledger {
    pub fn new(charter: &Arc<Charter>, amendments: Vec<(u64, AmendedCharter)>) -> Ledger {
        let charters = Charters::new(charter.clone());
        Ledger {
            verifier: CertificateVerifier::new(charters.clone())
                .expect("the keys of a simulated charter are good"),
            amendments,
            decided: charters,
            outcomes: Vec::new(),
            certified: 0,
            checkpoint: 0,
            tip: charter.ledger(),
            last: None,
            digests: Vec::new(),
            transactions: FxHashSet::default(),
            violation: None,
        }
    }

    pub fn height(&self) -> u64 {
        self.digests.len() as u64
    }

    /// The charters that its blocks name.
    pub fn charters(&self) -> &Charters {
        self.verifier.charters()
    }

    /// Takes a delivery; says whether its block is new.
    pub fn take(&mut self, delivery: &Delivery) -> bool {
        let Delivery { block, certificate } = delivery;
        let (height, digest) = (block.header.height, block.header.digest());
        if let Err(error) = self.verifier.verify(&block.header, certificate) {
            self.violate(format!("height {height}: {error}"));
        }
        if height <= self.height() {
            if self.digests.get(height as usize - 1) != Some(&digest) {
                self.violate(format!("height {height} was delivered twice, with different blocks"));
            }
            return false;
        }
        if height != self.height() + 1 || block.header.previous != self.tip {
            self.violate(format!("height {height} does not follow height {}", self.height()));
        }
        if block.check_content().is_err() {
            self.violate(format!("height {height} holds other transactions than its header says"));
        }
        for bytes in &block.transactions {
            if !self.transactions.insert(sha256(&[bytes])) {
                self.violate(format!("height {height} repeats a transaction"));
            }
        }
        self.take_certificates(block);
        let before = self.verifier.charters().digest();
        if block.attested.charters_after(&before) != Some(block.header.charters) {
            self.violate(format!("height {height} carries other charters than it names"));
        }
        if let Err(error) = self.verifier.follow(&block.attested) {
            self.violate(format!("height {height}: {error}"));
        }
        let decided = self.amendments.iter().filter(|(at, _)| *at == height);
        for (_, amended) in decided {
            self.decided.add(amended.clone()).expect("simulated amendments follow one another");
        }
        let previous = self.outcomes.last().map_or(block.header.ledger, OutcomeHeader::digest);
        let (ledger, nothing) = (block.header.ledger, Digest::ZERO);
        self.outcomes.push(OutcomeHeader {
            ledger,
            height,
            block: digest,
            previous,
            receipts_root: nothing,
            state_digest: nothing,
            charters: self.decided.digest(),
        });
        self.tip = digest;
        self.digests.push(digest);
        self.last = Some(block.header.clone());
        true
    }

    /// What a block carries is right and new, and it keeps its distance.
    fn take_certificates(&mut self, block: &Block) {
        let height = block.header.height;
        let mut certified = self.certified;
        if let Some(certificate) = &block.attested.outcome {
            certified = certificate.statement.height;
            let rules = self.verifier.charters().at(certified).rules.clone();
            if let Err(error) = rules.check_certificate(certificate) {
                self.violate(format!("height {height} carries a wrong certificate: {error}"));
            }
            let own = self.outcomes.get((certified as usize).wrapping_sub(1));
            if certified <= self.certified || own != Some(&certificate.statement) {
                self.violate(format!("height {height} carries a certificate of something else"));
            }
        }
        if let Some(certificate) = &block.attested.checkpoint {
            let rules = self.verifier.charters().at(certificate.statement.height).rules.clone();
            if let Err(error) = rules.check_certificate(certificate) {
                self.violate(format!("height {height} carries a wrong certificate of a checkpoint: {error}"));
            }
            self.checkpoint = self.checkpoint.max(certificate.statement.height);
        }
        if block.header.certified_height != certified {
            self.violate(format!("height {height} does not say what is certified"));
        }
        let charter = self.verifier.charters().at(height).charter.clone();
        let lag = match block.transactions.is_empty() {
            true => charter.uncertified_blocks_max(),
            false => charter.outcome_lag_blocks.into(),
        };
        if height - certified > lag {
            self.violate(format!("height {height} is too far ahead, {certified} is certified"));
        }
        self.certified = certified;
    }

    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// The longest of the ledgers must begin with each of the others.
    pub fn check_agreement<'a>(ledgers: impl IntoIterator<Item = &'a Ledger>) -> Result<(), String> {
        let mut longest: &[Digest] = &[];
        for ledger in ledgers {
            if let Some(what) = &ledger.violation {
                return Err(what.clone());
            }
            let common = longest.len().min(ledger.digests.len());
            if let Some(fork) = (0..common).find(|height| longest[*height] != ledger.digests[*height]) {
                return Err(format!("two nodes hold different blocks at height {}", fork + 1));
            }
            if ledger.digests.len() > longest.len() {
                longest = &ledger.digests;
            }
        }
        Ok(())
    }
}
