//! What a record says of those before it: headers and outcome headers that build on one another, certificates that are
//! about what is recorded, the state digest.

use crate::error::{Fault, Part, differs, equal};
use crypto::Digest;
use ledger::{Anchor, BlockRecord};
use types::Charters;

/// The ledger up to a height: 32 bytes per block, because a certificate may be about any of them.
pub(crate) struct Chain {
    charters: Charters,
    /// Height of the block that the ledger begins behind; 0 for the charter.
    base: u64,
    /// What comes first in front of the blocks, then the digest of the outcome header of each height.
    outcomes: Vec<Digest>,
    header: Digest,
    timestamp_ms: u64,
    state: Digest,
    certified: u64,
}

impl Chain {
    /// Begins at height 1, or behind an anchor whose certificates have been checked. `charters`: those that hold there.
    pub(crate) fn new(charters: Charters, anchor: Option<&Anchor>) -> Chain {
        let ledger = charters.ledger();
        match anchor {
            None => Chain {
                charters,
                base: 0,
                outcomes: vec![ledger],
                header: ledger,
                timestamp_ms: 0,
                state: ledger,
                certified: 0,
            },
            Some(Anchor { header, outcome, .. }) => Chain {
                charters,
                base: header.height,
                outcomes: vec![outcome.digest()],
                header: header.digest(),
                timestamp_ms: header.timestamp_ms,
                state: outcome.state_digest,
                certified: header.certified_height,
            },
        }
    }

    /// Digest of the outcome header of a height up to the last; nothing of those in front of the first block.
    fn outcome(&self, height: u64) -> Option<Digest> {
        self.outcomes.get(height.checked_sub(self.base)? as usize).copied()
    }

    /// The charters that blocks so far name.
    pub(crate) fn charters(&self) -> &Charters {
        &self.charters
    }

    /// Height of the last block.
    pub(crate) fn height(&self) -> u64 {
        self.base + self.outcomes.len() as u64 - 1
    }

    /// The highest height whose outcome is certified.
    pub(crate) fn certified(&self) -> u64 {
        self.certified.max(self.base)
    }

    /// Checks that the record is the next one, and adds it.
    pub(crate) fn add(&mut self, record: &BlockRecord) -> Result<(), Fault> {
        let (header, outcome) = (&record.block.header, &record.outcome.header);
        equal(Part::Header, "the height", self.height() + 1, header.height)?;
        equal(Part::Header, "the previous header", self.header, header.previous)?;
        if header.timestamp_ms <= self.timestamp_ms {
            let expected = format!("above {}", self.timestamp_ms);
            return Err(differs(Part::Header, "a time", expected, header.timestamp_ms));
        }
        self.check_certificates(record)?;
        self.check_charters(record)?;
        let previous = self.outcomes[self.outcomes.len() - 1];
        equal(Part::OutcomeHeader, "the previous outcome header", previous, outcome.previous)?;
        let state = record.outcome.digest.chain(self.state, header.height);
        equal(Part::StateDigest, "by what the block did to the tables", state, outcome.state_digest)?;
        (self.header, self.timestamp_ms, self.state) = (outcome.block, header.timestamp_ms, state);
        self.outcomes.push(outcome.digest());
        Ok(())
    }

    fn check_certificates(&mut self, record: &BlockRecord) -> Result<(), Fault> {
        let (header, attested) = (&record.block.header, &record.block.attested);
        if let Some(certificate) = &attested.outcome {
            let (height, part) = (certificate.statement.height, Part::OutcomeCertificate);
            if height <= self.certified || height > self.height() {
                let expected = format!("above {} and up to {}", self.certified, self.height());
                return Err(differs(part, "one of a height", expected, height));
            }
            if let Some(expected) = self.outcome(height) {
                let found = certificate.statement.digest();
                equal(
                    part,
                    &format!("at height {height} the outcome that is recorded there,"),
                    expected,
                    found,
                )?;
            }
            self.certified = height;
        }
        equal(Part::Header, "as certified height", self.certified, header.certified_height)?;
        if let Some(certificate) = &attested.checkpoint {
            let (height, part) = (certificate.statement.height, Part::CheckpointCertificate);
            if height == 0 || height > self.height() {
                return Err(differs(part, "one of a height", format!("up to {}", self.height()), height));
            }
            if let Some(expected) = self.outcome(height) {
                let found = certificate.statement.outcome;
                equal(
                    part,
                    &format!("at height {height} the outcome that is recorded there,"),
                    expected,
                    found,
                )?;
            }
        }
        let lag = header.height - self.certified;
        let charter = &self.charters.at(header.height).charter;
        let most = charter.uncertified_blocks_max();
        if lag > most {
            return Err(differs(Part::Header, "at most so far above certified outcomes:", most, lag));
        }
        if header.transactions > 0 && lag > u64::from(charter.outcome_lag_blocks) {
            let expected = format!("{} (outcome_lag_blocks)", charter.outcome_lag_blocks);
            return Err(differs(
                Part::Header,
                "transactions at most so far above certified outcomes:",
                expected,
                lag,
            ));
        }
        Ok(())
    }

    /// A block carries the amended charters that its outcome certificate is the first to name; from their heights on they
    /// hold.
    fn check_charters(&mut self, record: &BlockRecord) -> Result<(), Fault> {
        let (header, attested) = (&record.block.header, &record.block.attested);
        let expected = match attested.charters_after(&self.charters.digest()) {
            Some(charters) => charters.to_string(),
            None => "that its outcome certificate has".to_string(),
        };
        equal(Part::Charters, "the name", expected, header.charters.to_string())?;
        let followed = self.charters.follow(attested);
        followed.map(drop).map_err(|error| (Part::Charters, error.to_string()))
    }
}
