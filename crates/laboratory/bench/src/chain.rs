//! An engine with its chain of blocks, fed without signatures: what every measurement of the core runs on.

use crypto::{SecretKey, Signature};
use engine::{Engine, EngineError, ExecutedBlock, VerifiedBlock, VerifiedTransaction};
use memory::Memory;
use state::{LiveRequests, ResumePoint, Store, Stores};
use std::sync::Arc;
use types::{
    BlockHeader, Charter, Credential, Organisation, Outcome, Payload, ProtocolOptions, RequestId,
    SignedTransaction, Transaction, Value,
};
use workloads::{Condition, Invariant, Workload};

/// How many blocks a transaction stays valid where nothing else is said.
const EXPIRY_BLOCKS: u64 = 50_000;

/// Why the engine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum EngineBenchError {
    /// Options that make no sense.
    #[error(transparent)]
    Parameter(#[from] workloads::ParameterError),
    /// The engine refuses to run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A statement of the set-up failed.
    #[error("the set-up failed at: {statement}\n{outcome:?}")]
    SetUp {
        /// The statement.
        statement: String,
        /// How it ended.
        outcome: Box<Outcome>,
    },
    /// A temporary folder for a ledger.
    #[error("cannot make a temporary folder: {0}")]
    Folder(std::io::Error),
    /// A ledger cannot be written.
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    /// What a workload says must hold does not.
    #[error(
        "the invariant of the workload is broken, so the protocol has lost or made up an update: {0}; report it with \
         the point and the seed"
    )]
    Invariant(String),
    /// Two endorsers executed the same on the same state.
    #[error("the endorsers of organisations {first} and {second} found different effects of one transaction")]
    Diverging {
        /// Position of one organisation.
        first: u16,
        /// Of the other.
        second: u16,
    },
    /// No threads.
    #[error("cannot start {0} threads")]
    Threads(usize),
}

/// An engine with its chain of blocks.
pub(crate) struct Chain {
    pub(crate) engine: Engine,
    pub(crate) charter: Arc<Charter>,
    key: SecretKey,
    credential: Credential,
    requests: u64,
    height: u64,
    /// How many blocks a transaction stays valid, counted from when it was made.
    expiry_blocks: u64,
}

impl Chain {
    /// In memory. `batch`: transactions of an execution batch; `seed` names the ledger.
    pub(crate) fn new(
        protocol: &str,
        options: ProtocolOptions,
        batch: u32,
        seed: u64,
    ) -> Result<Chain, EngineError> {
        Chain::on(&Memory, protocol, options, batch, seed)
    }

    /// The same on a store that `stores` makes.
    pub(crate) fn on(
        stores: &dyn Stores,
        protocol: &str,
        options: ProtocolOptions,
        batch: u32,
        seed: u64,
    ) -> Result<Chain, EngineError> {
        Chain::of(stores, Chain::charter(protocol, options, batch, seed))
    }

    /// The charter of such a chain. Nobody makes checkpoints, so there are none.
    pub(crate) fn charter(protocol: &str, options: ProtocolOptions, batch: u32, seed: u64) -> Charter {
        let mut charter = Charter::with_defaults("bench", seed);
        charter.governance = "any".to_string();
        charter.protocol = protocol.to_string();
        charter.concurrency = options;
        charter.ordering = "solo".to_string();
        charter.block.batch_transactions = batch;
        charter.checkpoint_blocks = 1_000_000;
        charter.checkpoint_rows = 1_000_000_000;
        charter.organisations.push(Organisation {
            name: "bench".to_string(),
            root_key: SecretKey::from_bytes([7; 32]).public_key(),
            node_key: SecretKey::from_bytes([8; 32]).public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        charter
    }

    /// A chain from its founding on.
    pub(crate) fn of(stores: &dyn Stores, charter: Charter) -> Result<Chain, EngineError> {
        let key = SecretKey::from_bytes([7; 32]);
        let charter = Arc::new(charter);
        let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
        let engine = Engine::new(charter.clone(), stores)?;
        Ok(Chain { engine, key, credential, charter, requests: 0, height: 0, expiry_blocks: EXPIRY_BLOCKS })
    }

    /// The next block of the chain; blocks may be made ahead of their execution.
    pub(crate) fn block(&mut self, transactions: Vec<Arc<VerifiedTransaction>>) -> VerifiedBlock {
        self.height += 1;
        let header = BlockHeader {
            ledger: self.charter.ledger(),
            height: self.height,
            timestamp_ms: 1_800_000_000_000 + self.height,
            previous: crypto::Digest::ZERO,
            transactions_root: crypto::Digest::ZERO,
            transactions: transactions.len() as u32,
            proposer: 0,
            certified_height: 0,
            attested: crypto::Digest::ZERO,
            charters: self.charter.ledger(),
        };
        let transactions = transactions.into_iter().map(Ok).collect();
        VerifiedBlock { digest: header.digest(), header, transactions }
    }

    /// A transaction under a request that nobody has used.
    pub(crate) fn transaction(&mut self, payload: Payload) -> Arc<VerifiedTransaction> {
        self.requests += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.requests.to_be_bytes());
        let transaction = Transaction {
            ledger: self.charter.ledger(),
            client: self.key.public_key(),
            request: RequestId(request),
            expires_at: self.height + self.expiry_blocks,
            role: String::new(),
            payload,
        };
        let signature = Signature([0; 64]);
        Arc::new(
            SignedTransaction { transaction, endorsed: None, credential: self.credential, signature }.into(),
        )
    }

    /// Creates the tables and procedures and loads the rows.
    pub(crate) fn set_up(&mut self, workload: &dyn Workload) -> Result<(), EngineBenchError> {
        for statement in workload.set_up() {
            self.execute_script(statement)?;
        }
        self.load(workload)
    }

    /// The rows at the beginning of a workload whose tables are there.
    pub(crate) fn load(&mut self, workload: &dyn Workload) -> Result<(), EngineBenchError> {
        for rows in workload.portions() {
            self.set_up_with(Payload::Insert {
                table: rows.table.to_string(),
                columns: rows.columns.iter().map(|column| column.to_string()).collect(),
                rows: rows.rows,
            })?;
        }
        Ok(())
    }

    /// A block with one script.
    pub(crate) fn execute_script(&mut self, sql: &str) -> Result<(), EngineBenchError> {
        self.set_up_with(Payload::Script { sql: sql.to_string(), parameters: vec![] })
    }

    fn set_up_with(&mut self, payload: Payload) -> Result<(), EngineBenchError> {
        let transaction = self.transaction(payload);
        let block = self.block(vec![transaction.clone()]);
        let mut executed: ExecutedBlock = self.engine.execute(&block)?;
        match executed.receipts.remove(0).outcome {
            Outcome::Committed(_) => Ok(()),
            outcome => {
                let statement = format!("{:?}", transaction.payload).chars().take(500).collect();
                Err(EngineBenchError::SetUp { statement, outcome: Box::new(outcome) })
            }
        }
    }

    /// The same ledger from here on under another protocol.
    pub(crate) fn under(self, protocol: &str, options: ProtocolOptions) -> Result<Chain, EngineError> {
        let mut charter = Charter::clone(&self.charter);
        charter.protocol = protocol.to_string();
        charter.concurrency = options;
        let charter = Arc::new(charter);
        let (state, header) = (self.engine.state().clone(), self.engine.checkpoint_header());
        let live = LiveRequests::at(header.height);
        let engine = Engine::at(charter.clone(), (&header, self.engine.checkpoint_progress()), state, live)?;
        Ok(Chain { engine, charter, ..self })
    }

    /// From here on transactions are valid for so many blocks: the ids of those that still are take memory.
    pub(crate) fn with_expiry(self, blocks: u64) -> Chain {
        Chain { expiry_blocks: blocks, ..self }
    }

    /// The same ledger from this point on, whose rows are in `state`.
    pub(crate) fn on_state(
        self,
        point: ResumePoint,
        state: Arc<dyn Store>,
        live: LiveRequests,
    ) -> Result<Chain, EngineError> {
        let engine = Engine::at(self.charter.clone(), (&point.header, point.progress), state, live)?;
        Ok(Chain { engine, height: point.header.height, ..self })
    }

    /// The same ledger at its founding: nobody holds its state any more.
    pub(crate) fn without_state(self) -> Result<Chain, EngineError> {
        let engine = Engine::new(self.charter.clone(), &Memory)?;
        Ok(Chain { engine, ..self })
    }

    /// The names of those conditions that do not hold.
    pub(crate) fn breaks(&self, conditions: &[Condition]) -> Vec<String> {
        breaks(&self.engine, conditions)
    }

    /// The sum that the invariant is about, asked in SQL; `None` where a query has no number as its answer.
    pub(crate) fn sum(&self, invariant: &Invariant) -> Option<i128> {
        sum(&self.engine, invariant)
    }
}

/// The rows of a query on an engine's state; `None` where it is none.
pub(crate) fn rows(engine: &Engine, query: &str) -> Option<Vec<Vec<Value>>> {
    let prepared = sql::prepare(engine.library(), query, &[]).ok()?;
    let results = prepared.query(engine.state().snapshot().as_ref(), &[], u64::MAX, 0).ok()?;
    Some(results.into_iter().flat_map(|result| result.rows).collect())
}

/// The names of those conditions that do not hold on an engine's state.
pub(crate) fn breaks(engine: &Engine, conditions: &[Condition]) -> Vec<String> {
    let holds = |condition: &&Condition| rows(engine, &condition.query).is_some_and(|rows| rows.is_empty());
    conditions.iter().filter(|one| !holds(one)).map(|broken| broken.name.clone()).collect()
}

/// The sum that the invariant is about on an engine's state; `None` where a query has no number as its answer.
pub(crate) fn sum(engine: &Engine, invariant: &Invariant) -> Option<i128> {
    let number = |query: &&str| -> Option<i128> {
        let found = rows(engine, query)?;
        types::format_value(found.first()?.first()?)?.parse().ok()
    };
    invariant.queries.iter().map(number).sum()
}
