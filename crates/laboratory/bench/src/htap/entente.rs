//! Entente's engine in this process, without a network, on stores with and without columns.

use super::asking::{Answers, ask_alone, beside};
use super::record::{HtapRecord, Seen};
use super::{HtapOptions, Measured, failed};
use crate::LaboratoryError;
use crate::chain::{Chain, EngineBenchError};
use crate::laboratory::{Arrival, Pace, Source, run_on};
use columns::WithColumns;
use memory::Memory;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sql::{Library, Reader, RunFragments};
use state::{Store, Stores};
use std::sync::Arc;
use std::time::Duration;
use types::{ProtocolOptions, SqlError};
use workloads::Tpcc;

pub(super) const NAME: &str = "entente";

/// What copies of tables in columns may have.
const COLUMN_BYTES: u64 = 4 << 30;

/// Three ledgers: one whose store keeps no columns, one that nobody asks, one that is asked; and what their loads came to.
pub(super) struct Entente {
    pool: ThreadPool,
    /// They keep columns up for as long as they are there.
    _stores: [WithColumns; 2],
    plain: Chain,
    unasked: Chain,
    asked: Chain,
    without_columns: Seen,
    nobody_asks: Seen,
    questions: Seen,
    idle: Seen,
}

impl Entente {
    pub(super) fn load(workload: &Tpcc, options: &HtapOptions) -> Result<Entente, EngineBenchError> {
        let threads = options.threads;
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|_| EngineBenchError::Threads(threads))?;
        let chain = |stores: &dyn Stores| {
            let protocol = ProtocolOptions::default();
            let mut chain = Chain::on(stores, "harmony", protocol, options.block_size, options.seed)?;
            pool.install(|| chain.set_up(workload))?;
            Ok::<Chain, EngineBenchError>(chain)
        };
        let with_columns = || {
            let columns = WithColumns::new(Arc::new(Memory), COLUMN_BYTES).kept_up();
            columns.map_err(|_| EngineBenchError::Threads(threads + 1))
        };
        let (unasked_stores, asked_stores) = (with_columns()?, with_columns()?);
        let (plain, unasked, asked) = (chain(&Memory)?, chain(&unasked_stores)?, chain(&asked_stores)?);
        Ok(Entente {
            pool,
            _stores: [unasked_stores, asked_stores],
            plain,
            unasked,
            asked,
            without_columns: Seen::default(),
            nobody_asks: Seen::default(),
            questions: Seen::default(),
            idle: Seen::default(),
        })
    }
}

impl Measured for Entente {
    fn round(&mut self, workload: &Tpcc, options: &HtapOptions, seed: u64) -> Result<(), LaboratoryError> {
        let pace = Pace { arrival: Arrival::Closed { clients: None }, delay: Duration::ZERO, resubmit: true };
        let Entente { pool, plain, unasked, asked, .. } = self;
        let run = |chain: &mut Chain| {
            let mut source = Source::new(workload, seed);
            let run = || run_on(chain, options.block_size, &mut source, pace, options.seconds);
            pool.install(run).map_err(failed)
        };
        self.without_columns.add(&run(plain)?)?;
        self.nobody_asks.add(&run(unasked)?)?;
        let store = asked.engine.state().clone();
        let library = asked.engine.library().clone();
        let fragments = options.fragments.clone();
        let answers =
            || Ok(OfStore { store: store.clone(), library: library.clone(), fragments: fragments.clone() });
        let (timed, answered) = beside(options.every, answers, || run(asked))?;
        self.questions.add(&timed)?;
        self.questions.asked.add(answered);
        self.idle.asked.add(ask_alone(&mut answers()?)?);
        Ok(())
    }

    fn records(&self, options: &HtapOptions) -> Vec<HtapRecord> {
        let Entente { without_columns, nobody_asks, questions, idle, .. } = self;
        [
            ("without_columns", without_columns),
            ("nobody_asks", nobody_asks),
            ("questions", questions),
            ("idle", idle),
        ]
        .map(|(load, seen)| seen.record((NAME, load), options.warehouses, without_columns, idle))
        .into()
    }
}

/// A store of an engine that runs.
struct OfStore {
    store: Arc<dyn Store>,
    library: Arc<Library>,
    fragments: Arc<dyn RunFragments>,
}

impl Answers for OfStore {
    fn answer(&mut self, sql: &str) -> Result<(), LaboratoryError> {
        let refused = |error: SqlError| LaboratoryError::Answer {
            system: NAME,
            request: sql.to_string(),
            error: error.to_string(),
        };
        let prepared = sql::prepare(&self.library, sql, &[]).map_err(refused)?;
        let reader =
            Reader { step_limit: u64::MAX, fragments: Some(self.fragments.clone()), ..Reader::default() };
        prepared.query_as(&reader, self.store.snapshot().as_ref(), &[]).map_err(refused)?;
        Ok(())
    }
}
