//! The ledger that all nodes of a network share: its clients' transactions, and what its blocks come to.

use crate::LaboratoryError;
use bytes::Bytes;
use crypto::{Digest, SecretKey};
use engine::{Engine, Verifier};
use memory::Memory;
use ordering::simulation::{charter, root_key};
use parking_lot::Mutex;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use types::{
    Block, Charter, Charters, Credential, Outcome, OutcomeHeader, Payload, Place, RequestId, Transaction,
    TransactionId,
};
use workloads::Workload;
use workloads::smallbank::Smallbank;

/// Customers of the bank.
const CUSTOMERS: u64 = 10_000;
/// Keys of clients.
const KEYS: usize = 16;
/// Transactions of a block at most. Far-away members agree less often, so that their blocks are larger than those of a new
/// charter.
const BLOCK_TRANSACTIONS: u32 = 10_000;
const BLOCK_BYTES: u32 = 4 * 1024 * 1024;

/// A transaction that a client has signed.
#[derive(Clone)]
pub(super) struct Made {
    /// Counted from 0.
    pub number: u32,
    pub bytes: Bytes,
}

/// What a block came to, the same at every node.
pub(super) struct Executed {
    block: Digest,
    pub outcome: OutcomeHeader,
    /// Numbers of its transactions.
    pub transactions: Vec<u32>,
}

/// Transactions and blocks of one network.
pub(super) struct ScaleLedger {
    charter: Arc<Charter>,
    charters: Charters,
    clients: Vec<(SecretKey, Credential)>,
    workload: Smallbank,
    hasher: RandomState,
    known: Mutex<HashMap<u64, (TransactionId, u32)>>,
    state: Mutex<State>,
}

struct State {
    engine: Engine,
    verifier: Verifier,
    random: StdRng,
    made: u32,
    blocks: Vec<Arc<Executed>>,
    /// The first thing that went wrong.
    violation: Option<String>,
}

impl ScaleLedger {
    pub(super) fn new(members: usize, ordering: &str, seed: u64) -> Result<ScaleLedger, LaboratoryError> {
        let mut charter = charter(seed, members);
        charter.ordering = ordering.to_string();
        charter.block.transactions_max = BLOCK_TRANSACTIONS;
        charter.block.bytes_max = BLOCK_BYTES;
        charter.signatures.clear();
        (0..members).for_each(|member| charter.sign(member, &root_key(member)));
        let charter = Arc::new(charter);
        let ledger = charter.ledger();
        let client = |number: usize| {
            let key = SecretKey::from_bytes([200 + number as u8; 32]);
            let member = number % members;
            let credential = Credential::issue(&root_key(member), member as u16, &ledger, &key.public_key());
            (key, credential)
        };
        fn failed(error: impl ToString) -> LaboratoryError {
            LaboratoryError::Network(error.to_string())
        }
        Ok(ScaleLedger {
            charters: Charters::new(charter.clone()),
            clients: (0..KEYS).map(client).collect(),
            workload: Smallbank::new(CUSTOMERS, 0.0).map_err(failed)?,
            hasher: RandomState::new(),
            known: Mutex::default(),
            state: Mutex::new(State {
                engine: Engine::new(charter.clone(), &Memory).map_err(failed)?,
                verifier: Verifier::new(&charter),
                random: StdRng::seed_from_u64(seed),
                made: 0,
                blocks: Vec::new(),
                violation: None,
            }),
            charter,
        })
    }

    pub(super) fn charter(&self) -> &Arc<Charter> {
        &self.charter
    }

    pub(super) fn charters(&self) -> &Charters {
        &self.charters
    }

    /// What must be done before clients call procedures, one after the other: the schema, then all rows.
    pub(super) fn set_up(&self) -> [Vec<Payload>; 2] {
        let schema = Payload::Script { sql: self.workload.set_up().join(";\n"), parameters: vec![] };
        let rows = self.workload.portions().map(|rows| Payload::Insert {
            table: rows.table.to_string(),
            columns: rows.columns.iter().map(|column| column.to_string()).collect(),
            rows: rows.rows,
        });
        [vec![schema], rows.collect()]
    }

    /// So many calls of clients.
    pub(super) fn calls(&self, count: usize) -> Vec<Made> {
        let payloads = {
            let mut state = self.state.lock();
            let first = u64::from(state.made);
            let call = |number| self.workload.call(first + number, &mut state.random).into_payload();
            (0..count as u64).map(call).collect()
        };
        self.sign(payloads)
    }

    /// Signed by clients in turn.
    pub(super) fn sign(&self, payloads: Vec<Payload>) -> Vec<Made> {
        let first = {
            let mut state = self.state.lock();
            let first = state.made;
            state.made += payloads.len() as u32;
            first
        };
        let sign = |(position, payload): (usize, Payload)| {
            let number = first + position as u32;
            let (key, credential) = &self.clients[number as usize % self.clients.len()];
            let mut request = [0; 16];
            request[..4].copy_from_slice(&number.to_be_bytes());
            let transaction = Transaction {
                ledger: self.charter.ledger(),
                client: key.public_key(),
                request: RequestId(request),
                expires_at: u64::from(self.charter.expiry_blocks_max),
                role: String::new(),
                payload,
            };
            let id = transaction.id();
            (id, Made { number, bytes: Bytes::from(transaction.sign(key, *credential).to_bytes()) })
        };
        let made: Vec<(TransactionId, Made)> = payloads.into_par_iter().enumerate().map(sign).collect();
        let mut known = self.known.lock();
        let made = made.into_iter().map(|(id, made)| {
            known.insert(self.hasher.hash_one(&made.bytes), (id, made.number));
            made
        });
        made.collect()
    }

    /// Which transaction these bytes are.
    pub(super) fn known(&self, bytes: &Bytes) -> Option<(TransactionId, u32)> {
        self.known.lock().get(&self.hasher.hash_one(bytes)).copied()
    }

    /// Verifies signatures; those that were verified are not verified again when their block is executed.
    pub(super) fn verify(&self, transactions: &[Bytes]) {
        let judged =
            self.state.lock().verifier.check(Place { charters: &self.charters, height: 1 }, transactions);
        assert!(judged.iter().all(Result::is_ok), "clients sign with their keys");
    }

    /// What a block comes to. Whoever is first executes it; whether it is another block for somebody else is noted.
    pub(super) fn deliver(&self, block: &Block) -> Option<Arc<Executed>> {
        let mut state = self.state.lock();
        let (height, digest) = (block.header.height, block.header.digest());
        if let Some(executed) = state.blocks.get(height as usize - 1) {
            let executed = executed.clone();
            if executed.block != digest {
                state.violation.get_or_insert(format!("two blocks have height {height}"));
            }
            return Some(executed);
        }
        match self.execute(&mut state, block) {
            Ok(executed) => {
                state.blocks.push(executed.clone());
                Some(executed)
            }
            Err(error) => {
                state.violation.get_or_insert(error);
                None
            }
        }
    }

    fn execute(&self, state: &mut State, block: &Block) -> Result<Arc<Executed>, String> {
        let height = block.header.height;
        let verified = state.verifier.verify_block(&self.charters, block);
        let executed = state.engine.execute(&verified).map_err(|error| error.to_string())?;
        state.verifier.forget(&verified);
        let rejected = |receipt: &&types::Receipt| matches!(receipt.outcome, Outcome::Rejected(_));
        if let Some(rejected) = executed.receipts.iter().find(rejected) {
            return Err(format!("block {height} rejects a transaction: {:?}", rejected.outcome));
        }
        let transactions = block.transactions.iter().filter_map(|bytes| Some(self.known(bytes)?.1)).collect();
        Ok(Arc::new(Executed { block: block.header.digest(), outcome: executed.outcome, transactions }))
    }

    /// The first thing that went wrong.
    pub(super) fn violation(&self) -> Option<String> {
        self.state.lock().violation.clone()
    }
}
