//! What a record says of those before it: headers and outcome headers that build on one another, certificates that are
//! about what is recorded, the state digest.

use crate::error::{Fault, Part, differs, equal};
use crypto::Digest;
use ledger::BlockRecord;
use types::Charter;

/// The ledger up to a height: 32 bytes per block, because a certificate may be about any of them.
pub(crate) struct Chain {
    outcome_lag: u64,
    /// Digest of the charter, then of the outcome header of each height.
    outcomes: Vec<Digest>,
    header: Digest,
    timestamp_ms: u64,
    state: Digest,
    certified: u64,
}

impl Chain {
    pub(crate) fn new(charter: &Charter) -> Chain {
        let ledger = charter.ledger();
        Chain {
            outcome_lag: charter.outcome_lag_blocks.into(),
            outcomes: vec![ledger],
            header: ledger,
            timestamp_ms: 0,
            state: ledger,
            certified: 0,
        }
    }

    /// Height of the last block.
    pub(crate) fn height(&self) -> u64 {
        self.outcomes.len() as u64 - 1
    }

    /// The highest height whose outcome is certified.
    pub(crate) fn certified(&self) -> u64 {
        self.certified
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
            let (expected, found) = (self.outcomes[height as usize], certificate.statement.digest());
            equal(part, &format!("at height {height} the outcome that is recorded there,"), expected, found)?;
            self.certified = height;
        }
        equal(Part::Header, "as certified height", self.certified, header.certified_height)?;
        if let Some(certificate) = &attested.checkpoint {
            let (height, part) = (certificate.statement.height, Part::CheckpointCertificate);
            if height == 0 || height > self.height() {
                return Err(differs(part, "one of a height", format!("up to {}", self.height()), height));
            }
            let (expected, found) = (self.outcomes[height as usize], certificate.statement.outcome);
            equal(part, &format!("at height {height} the outcome that is recorded there,"), expected, found)?;
        }
        let lag = header.height - self.certified;
        if header.transactions > 0 && lag > self.outcome_lag {
            let expected = format!("{} (outcome_lag_blocks)", self.outcome_lag);
            return Err(differs(
                Part::Header,
                "transactions at most so far above certified outcomes:",
                expected,
                lag,
            ));
        }
        Ok(())
    }
}
