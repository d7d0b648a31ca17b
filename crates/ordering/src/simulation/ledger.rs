//! What a simulated node has made durable, and the properties that every run must have.

use crate::{CertificateVerifier, Delivery};
use crypto::{Digest, sha256};
use rustc_hash::FxHashSet;
use types::Charter;

/// The final blocks of one node: survives its crashes.
pub(super) struct Ledger {
    verifier: CertificateVerifier,
    /// Digest of the last block's header, of the charter before the first.
    tip: Digest,
    /// Digests of the headers, from height 1.
    pub digests: Vec<Digest>,
    /// Digests of the transactions' bytes.
    pub transactions: FxHashSet<Digest>,
    /// The first thing that must not happen and did.
    pub violation: Option<String>,
}

impl Ledger {
    pub fn new(charter: &Charter) -> Ledger {
        Ledger {
            verifier: CertificateVerifier::new(charter).expect("the keys of a simulated charter are good"),
            tip: charter.ledger(),
            digests: Vec::new(),
            transactions: FxHashSet::default(),
            violation: None,
        }
    }

    pub fn height(&self) -> u64 {
        self.digests.len() as u64
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
        self.tip = digest;
        self.digests.push(digest);
        true
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
