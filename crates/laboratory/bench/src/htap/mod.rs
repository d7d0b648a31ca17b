//! Transactions and analytical questions side by side: TPC-C with queries of the CH-benCHmark, here and in PostgreSQL.
//!
//! ```text
//!  one thread: blocks of TPC-C ──▶ engine ──▶ store ◀── snapshot ◀── questions, one thread
//! ```
//!
//! In a round the loads take turns: transactions on a store that keeps no columns, on one that keeps columns that nobody asks,
//! and beside questions; then questions alone.

mod asking;
mod questions;
mod record;

pub use record::{HtapRecord, htap_table};

use crate::LaboratoryError;
use crate::chain::{Chain, EngineBenchError};
use crate::laboratory::{Arrival, Pace, Source, Timed, run_on};
use crate::postgres::{Postgres, connect};
use asking::{Answers, Asked, ask_alone, ask_until};
use columns::WithColumns;
use memory::Memory;
use record::Seen;
use sql::{Library, MakeGroups, Reader};
use state::{Store, Stores};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use types::ProtocolOptions;
use workloads::Tpcc;

/// What copies of tables in columns may have.
const COLUMN_BYTES: u64 = 4 << 30;
/// How often each question is asked where nothing else runs, in a round.
const ALONE: usize = 3;
const ENTENTE: &str = "entente";
const POSTGRES: &str = "postgres";

/// What to measure.
#[derive(Clone, Debug)]
pub struct HtapOptions {
    /// Warehouses of TPC-C.
    pub warehouses: u64,
    /// Customers of a district.
    pub customers: u64,
    /// Items.
    pub items: u64,
    /// Some of [`HtapOptions::SYSTEMS`].
    pub systems: Vec<String>,
    /// Rounds in which all loads take turns.
    pub rounds: usize,
    /// Seconds of a load.
    pub seconds: f64,
    /// From the beginning of a question to that of the next one.
    pub every: Duration,
    /// Threads of the engine.
    pub threads: usize,
    /// Transactions of an execution batch.
    pub block_size: u32,
    /// Seed of the calls.
    pub seed: u64,
    /// Who makes the groups of Entente's questions.
    pub groups: Arc<dyn MakeGroups>,
}

impl HtapOptions {
    /// All systems that can be measured.
    pub const SYSTEMS: [&str; 2] = [ENTENTE, POSTGRES];

    fn check(&self) -> Result<(), LaboratoryError> {
        if !(1..=10_000).contains(&self.warehouses) {
            return Err(LaboratoryError::option("--warehouses", "1 to 10000", self.warehouses));
        }
        if !(1..=1_000).contains(&self.rounds) {
            return Err(LaboratoryError::option("--rounds", "1 to 1000", self.rounds));
        }
        if !(0.01..=86_400.0).contains(&self.seconds) {
            return Err(LaboratoryError::option("--seconds", "0.01 to 86400", self.seconds));
        }
        let expected = "some of entente and postgres";
        if self.systems.is_empty() {
            return Err(LaboratoryError::option("--systems", expected, "none"));
        }
        match self.systems.iter().find(|name| !HtapOptions::SYSTEMS.contains(&name.as_str())) {
            Some(found) => Err(LaboratoryError::option("--systems", expected, format_args!("`{found}`"))),
            None => Ok(()),
        }
    }

    fn has(&self, system: &str) -> bool {
        self.systems.iter().any(|name| name == system)
    }
}

/// Measures. `progress` is told what is being done.
///
/// # Errors
/// Bad options; an engine or PostgreSQL that cannot be measured; a consistency condition of TPC-C that does not hold.
pub fn htap(
    options: &HtapOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<HtapRecord>, LaboratoryError> {
    options.check()?;
    let workload = Tpcc::reduced(options.warehouses, options.customers, options.items)
        .map_err(|error| failed(error.into()))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|_| failed(EngineBenchError::Threads(options.threads)))?;
    let mut entente = match options.has(ENTENTE) {
        true => {
            progress("warehouses are loaded into Entente");
            Some(pool.install(|| Entente::load(&workload, options)).map_err(failed)?)
        }
        false => None,
    };
    let mut postgres = match options.has(POSTGRES) {
        true => {
            progress("warehouses are loaded into PostgreSQL");
            let server = Postgres::start()?;
            server.load(&workload)?;
            Some(OfPostgres { server, loads: Default::default() })
        }
        false => None,
    };
    for round in 0..options.rounds {
        progress(&format!("round {}/{}", round + 1, options.rounds));
        let seed = options.seed + round as u64;
        if let Some(entente) = &mut entente {
            entente.round(&workload, options, (&pool, seed))?;
        }
        if let Some(postgres) = &mut postgres {
            postgres.round(&workload, options, seed)?;
        }
    }
    let mut records = Vec::new();
    if let Some(Entente { without_columns, nobody_asks, questions, idle, .. }) = &entente {
        let loads = [
            ("without_columns", without_columns),
            ("nobody_asks", nobody_asks),
            ("questions", questions),
            ("idle", idle),
        ];
        records.extend(
            loads.map(|(load, seen)| seen.record((ENTENTE, load), options.warehouses, without_columns, idle)),
        );
    }
    if let Some(OfPostgres { loads: [nobody_asks, questions, idle], .. }) = &postgres {
        let loads = [("nobody_asks", nobody_asks), ("questions", questions), ("idle", idle)];
        records.extend(
            loads.map(|(load, seen)| seen.record((POSTGRES, load), options.warehouses, nobody_asks, idle)),
        );
    }
    Ok(records)
}

/// Three ledgers: one whose store keeps no columns, one that nobody asks, one that is asked; and what their loads came to.
struct Entente {
    plain: Chain,
    unasked: Chain,
    columned: Chain,
    without_columns: Seen,
    nobody_asks: Seen,
    questions: Seen,
    idle: Seen,
}

impl Entente {
    fn load(workload: &Tpcc, options: &HtapOptions) -> Result<Entente, EngineBenchError> {
        let chain = |stores: &dyn Stores| {
            let protocol = ProtocolOptions::default();
            let mut chain = Chain::on(stores, "harmony", protocol, options.block_size, options.seed)?;
            chain.set_up(workload)?;
            Ok::<Chain, EngineBenchError>(chain)
        };
        Ok(Entente {
            plain: chain(&Memory)?,
            unasked: chain(&WithColumns::new(Arc::new(Memory), COLUMN_BYTES))?,
            columned: chain(&WithColumns::new(Arc::new(Memory), COLUMN_BYTES))?,
            without_columns: Seen::default(),
            nobody_asks: Seen::default(),
            questions: Seen::default(),
            idle: Seen::default(),
        })
    }

    fn round(
        &mut self,
        workload: &Tpcc,
        options: &HtapOptions,
        (pool, seed): (&rayon::ThreadPool, u64),
    ) -> Result<(), LaboratoryError> {
        let pace = Pace { arrival: Arrival::Closed { clients: None }, delay: Duration::ZERO, resubmit: true };
        let run = |chain: &mut Chain| {
            let mut source = Source::new(workload, seed);
            let run = || run_on(chain, options.block_size, &mut source, pace, options.seconds);
            pool.install(run).map_err(failed)
        };
        self.without_columns.add(run(&mut self.plain)?)?;
        self.nobody_asks.add(run(&mut self.unasked)?)?;
        let store = self.columned.engine.state().clone();
        let library = self.columned.engine.library().clone();
        let answers =
            || Ok(OfStore { store: store.clone(), library: library.clone(), groups: options.groups.clone() });
        let columned = &mut self.columned;
        let (timed, asked) = beside(options.every, answers, || run(columned))?;
        self.questions.add(timed)?;
        self.questions.asked.add(asked);
        self.idle.asked.add(ask_alone(&mut answers()?, ALONE)?);
        Ok(())
    }
}

/// A server with TPC-C, and what its loads came to: nobody asks, questions, idle.
struct OfPostgres {
    server: Postgres,
    loads: [Seen; 3],
}

impl OfPostgres {
    fn round(&mut self, workload: &Tpcc, options: &HtapOptions, seed: u64) -> Result<(), LaboratoryError> {
        let OfPostgres { server, loads: [nobody_asks, questions, idle] } = self;
        let run = || Ok(server.run(workload, options.seconds, seed)?);
        nobody_asks.add(run()?)?;
        let folder = server.socket_folder();
        let (timed, asked) = beside(options.every, || OfServer::connect(&folder), run)?;
        questions.add(timed)?;
        questions.asked.add(asked);
        idle.asked.add(ask_alone(&mut OfServer::connect(&folder)?, ALONE)?);
        Ok(())
    }
}

impl Seen {
    fn add(&mut self, timed: Timed) -> Result<(), LaboratoryError> {
        if !timed.invariant_holds {
            let broken = EngineBenchError::Invariant("a consistency condition of TPC-C".to_string());
            return Err(failed(broken));
        }
        self.committed_tps.push(timed.committed_tps());
        Ok(())
    }
}

/// Runs transactions, and asks questions on another thread as long as they run.
fn beside<A: Answers>(
    every: Duration,
    answers: impl Fn() -> Result<A, LaboratoryError> + Send + Sync,
    run: impl FnOnce() -> Result<Timed, LaboratoryError>,
) -> Result<(Timed, Asked), LaboratoryError> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&stop, every, &mut answers()?));
        let timed = run();
        stop.store(true, Ordering::Relaxed);
        let asked = asking.join().expect("a question does not panic");
        Ok((timed?, asked?))
    })
}

/// A store of an engine that runs.
struct OfStore {
    store: Arc<dyn Store>,
    library: Arc<Library>,
    groups: Arc<dyn MakeGroups>,
}

impl Answers for OfStore {
    fn answer(&mut self, sql: &str) -> Result<(), LaboratoryError> {
        let refused = |error: types::SqlError| refused(ENTENTE, sql, error.to_string());
        let prepared = sql::prepare(&self.library, sql, &[]).map_err(refused)?;
        let reader = Reader { step_limit: u64::MAX, groups: Some(self.groups.clone()), ..Reader::default() };
        prepared.query_as(&reader, self.store.snapshot().as_ref(), &[]).map_err(refused)?;
        Ok(())
    }
}

/// A session of its own at a server.
struct OfServer {
    runtime: Runtime,
    client: Client,
}

impl OfServer {
    fn connect(folder: &Path) -> Result<OfServer, LaboratoryError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LaboratoryError::file("start tokio for", folder))?;
        let client = runtime.block_on(connect(folder))?;
        let mut answers = OfServer { runtime, client };
        answers.answer("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        Ok(answers)
    }
}

impl Answers for OfServer {
    fn answer(&mut self, sql: &str) -> Result<(), LaboratoryError> {
        let answer = self.runtime.block_on(self.client.simple_query(sql));
        answer.map(|_| ()).map_err(|error| refused(POSTGRES, sql, error.to_string()))
    }
}

fn refused(system: &'static str, request: &str, error: String) -> LaboratoryError {
    LaboratoryError::Answer { system, request: request.to_string(), error }
}

fn failed(error: EngineBenchError) -> LaboratoryError {
    LaboratoryError::Engine { point: "htap".to_string(), error }
}
