use super::ledger::ScaleLedger;
use crate::{LaboratoryError, process_seconds};
use bytes::Bytes;
use crypto::Digest;
use ordering::simulation::Costs;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::fmt;
use types::{Attested, Block, BlockHeader, transactions_root};

/// Transactions that are executed for a measurement.
const TRANSACTIONS: usize = 30_000;
/// How many blocks they are.
const BLOCKS: usize = 10;

/// What things cost a node, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeCosts {
    /// Messages.
    pub messages: Costs,
    /// A transaction's signature and credential, among thousands.
    pub verify: f64,
    /// A transaction's execution with everything that follows from it: receipts, digests.
    pub execute: f64,
}

impl NodeCosts {
    /// Measures on this machine.
    pub(super) fn measure() -> Result<NodeCosts, LaboratoryError> {
        let ledger = ScaleLedger::new(4, "bft", 1)?;
        let mut chain = Chain { ledger: &ledger, height: 0, previous: ledger.charter().ledger() };
        for payloads in ledger.set_up() {
            chain.append(ledger.sign(payloads).into_iter().map(|made| made.bytes).collect())?;
        }
        let calls: Vec<Bytes> = ledger.calls(TRANSACTIONS).into_iter().map(|made| made.bytes).collect();
        let before = cpu();
        ledger.verify(&calls);
        let verified = cpu();
        for block in calls.chunks(TRANSACTIONS / BLOCKS) {
            chain.append(block.to_vec())?;
        }
        let executed = cpu();
        let each = |seconds: f64| seconds * 1e9 / TRANSACTIONS as f64;
        let verify = each(verified - before);
        let block = calls[..TRANSACTIONS / BLOCKS].to_vec();
        let measured = Costs::measure(&mut StdRng::seed_from_u64(1), block);
        let messages = measured.map_err(|error| LaboratoryError::Network(error.to_string()))?;
        Ok(NodeCosts { messages, verify, execute: each(executed - verified) })
    }
}

impl fmt::Display for NodeCosts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeCosts { messages, verify, execute } = self;
        write!(
            formatter,
            "a message {:.1} µs and {:.2} ns per byte, {:.2} ns more in a block; a vote {:.1} µs; a transaction {:.1} µs to verify and \
             {:.1} µs to execute",
            messages.message / 1e3,
            messages.byte,
            messages.block_byte,
            messages.signature / 1e3,
            verify / 1e3,
            execute / 1e3
        )
    }
}

/// CPU seconds of this process.
fn cpu() -> f64 {
    process_seconds("self").unwrap_or(0.0)
}

/// Blocks that nobody has ordered.
struct Chain<'a> {
    ledger: &'a ScaleLedger,
    height: u64,
    previous: Digest,
}

impl Chain<'_> {
    fn append(&mut self, transactions: Vec<Bytes>) -> Result<(), LaboratoryError> {
        self.height += 1;
        let attested = Attested::default();
        let header = BlockHeader {
            ledger: self.ledger.charter().ledger(),
            height: self.height,
            timestamp_ms: self.height,
            previous: self.previous,
            transactions_root: transactions_root(&transactions),
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: attested.digest(),
            charters: self.ledger.charters().digest(),
        };
        self.previous = header.digest();
        self.ledger.deliver(&Block { header, attested, transactions });
        self.ledger.violation().map_or(Ok(()), |violation| Err(LaboratoryError::Network(violation)))
    }
}
