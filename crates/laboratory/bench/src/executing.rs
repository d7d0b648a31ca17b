//! Databases that execute scripts, without a network: how fast one database executes ChainifyDB's four transactions, with triggers
//! that record what they do and everything that keeps each script from running twice (paper 002, sections 4.8.4 and 4.8.5).

use crate::EngineBenchError;
use crate::chain::Chain;
use chainify::{Address, Kind, ScriptDatabase, ScriptDatabaseOptions};
use crypto::{Digest, SecretKey, sha256};
use engine::{BlockScripts, ExecuteScripts};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use servers::{MariaDbServer, PostgresServer, ServerError};
use state::{Store, StoreError, Version};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{ProtocolOptions, SqlError};
use workloads::ParameterError;
use workloads::smallbank::Smallbank;

/// What the paper uses where it varies something else.
const BLOCK: usize = 4_096;
const CONNECTIONS: usize = 16;

/// What to measure.
#[derive(Clone, Debug)]
pub struct ExecutingOptions {
    /// Kinds of databases, one after the other.
    pub kinds: Vec<Kind>,
    /// Customers, with a savings and a checking account each.
    pub customers: u64,
    /// How long each point is measured.
    pub time: Duration,
    /// Seed of the workload.
    pub seed: u64,
}

/// What a database does at one point.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutingPoint {
    /// `postgres` or `mariadb`.
    pub database: &'static str,
    /// Zipf's exponent of the choice of customers.
    pub skew: f64,
    /// Scripts of a block.
    pub block: usize,
    /// Scripts that run beside one another, at most.
    pub connections: usize,
    /// Whether statements of one shape run as one, where they can.
    pub as_sets: bool,
    /// Scripts executed per second, whether they committed or failed.
    pub tps: f64,
    /// Of all scripts, those that failed.
    pub failed_share: f64,
}

/// All points.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutingRecord {
    /// Customers.
    pub customers: u64,
    /// Cores of the machine.
    pub cores: usize,
    /// The points, in the order in which they were measured.
    pub points: Vec<ExecutingPoint>,
}

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum ExecutingError {
    /// A server that cannot be had.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Options that make no sense.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The engine that makes the tables.
    #[error(transparent)]
    Engine(#[from] EngineBenchError),
    /// The state in memory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A script that is none.
    #[error("{0}")]
    Script(SqlError),
    /// An address that is none.
    #[error("{0}")]
    Address(String),
}

impl From<SqlError> for ExecutingError {
    fn from(error: SqlError) -> ExecutingError {
        ExecutingError::Script(error)
    }
}

/// A server, which ends with this value, and where it is.
struct Server {
    _running: Box<dyn std::any::Any>,
    address: Address,
}

impl Server {
    fn start(kind: Kind) -> Result<Server, ExecutingError> {
        let (running, url): (Box<dyn std::any::Any>, String) = match kind {
            Kind::Postgres => {
                let server = PostgresServer::start(&["shared_buffers=256MB"], false)?;
                let socket = server.socket_folder().display().to_string();
                (Box::new(server), format!("postgres://postgres@localhost/postgres?socket={socket}"))
            }
            Kind::MariaDb => {
                let server = MariaDbServer::start(&["innodb-buffer-pool-size=512M"], false)?;
                server.create_database("bank")?;
                let socket = server.socket().display().to_string();
                (Box::new(server), format!("mariadb://root@localhost/bank?socket={socket}"))
            }
        };
        let address = url.parse().map_err(|error| ExecutingError::Address(format!("{error}")))?;
        Ok(Server { _running: running, address })
    }
}

/// Measures parallel and serial execution at both distributions (figure 4.13), and blocks of several sizes (figure 4.14).
///
/// # Errors
/// A server cannot be installed or started.
pub fn executing(
    options: &ExecutingOptions,
    mut progress: impl FnMut(&ExecutingPoint),
) -> Result<ExecutingRecord, ExecutingError> {
    let mut points = Vec::new();
    for kind in &options.kinds {
        let server = Server::start(*kind)?;
        let ways = [(CONNECTIONS, true), (CONNECTIONS, false), (1, false)];
        let distributions = [0.0, 1.1].into_iter().flat_map(|skew| ways.map(|way| (skew, BLOCK, way)));
        let sizes = [256, 512, 1_024, 2_048].map(|block| (1.1, block, ways[0]));
        for (skew, block, way) in distributions.chain(sizes) {
            let point = Bench::new(options, &server.address, way)?.measure(options, skew, block)?;
            progress(&point);
            points.push(point);
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(ExecutingRecord { customers: options.customers, cores, points })
}

/// A database that stands at the begin of the workload.
struct Bench {
    database: ScriptDatabase,
    kind: &'static str,
    connections: usize,
    as_sets: bool,
    store: Arc<dyn Store>,
    height: u64,
}

impl Bench {
    fn new(
        options: &ExecutingOptions,
        address: &Address,
        (connections, as_sets): (usize, bool),
    ) -> Result<Bench, ExecutingError> {
        let database = ScriptDatabase::new(ScriptDatabaseOptions {
            address: address.clone(),
            node: SecretKey::from_bytes([1; 32]).public_key(),
            connections,
            as_sets,
            takes_ledger_rows: true,
        });
        let kind = address.kind.name();
        let (store, height) = bank(options)?;
        let mut bench = Bench { database, kind, connections, as_sets, store, height };
        // Whatever an earlier point has left.
        bench.database.distrust();
        bench.execute(Vec::new())?;
        Ok(bench)
    }

    /// The time that the block takes, and how many of its scripts fail.
    fn execute(&mut self, scripts: Vec<portable::Script>) -> Result<(Duration, usize), ExecutingError> {
        self.height += 1;
        let block = BlockScripts {
            ledger: ledger(),
            height: self.height,
            before: self.store.snapshot(),
            scripts: (0..).zip(scripts).collect(),
        };
        let start = Instant::now();
        let ran = self.database.execute(&block)?;
        let time = start.elapsed();
        self.store.apply(Version::after_batch(self.height, 0), &ran.changes, None)?;
        Ok((time, ran.ends.iter().filter(|end| end.is_none()).count()))
    }

    fn measure(
        mut self,
        options: &ExecutingOptions,
        skew: f64,
        block: usize,
    ) -> Result<ExecutingPoint, ExecutingError> {
        let smallbank = Smallbank::new(options.customers, skew)?;
        let mut random = StdRng::seed_from_u64(options.seed);
        let (mut time, mut executed, mut failed) = (Duration::ZERO, 0, 0);
        while time < options.time {
            let catalog = self.store.snapshot().catalog().clone();
            let script = |_| portable::check_script(&catalog, &smallbank.next_script(&mut random), 0);
            let scripts = (0..block).map(script).collect::<Result<Vec<_>, _>>()?;
            let (taken, of_block) = self.execute(scripts)?;
            (time, executed, failed) = (time + taken, executed + block, failed + of_block);
        }
        Ok(ExecutingPoint {
            database: self.kind,
            skew,
            block,
            connections: self.connections,
            as_sets: self.as_sets,
            tps: executed as f64 / time.as_secs_f64(),
            failed_share: failed as f64 / executed as f64,
        })
    }
}

/// The state of a bank before any transaction, and its height.
fn bank(options: &ExecutingOptions) -> Result<(Arc<dyn Store>, u64), ExecutingError> {
    let mut chain = Chain::new("serial", ProtocolOptions::default(), 1_000, options.seed)
        .map_err(EngineBenchError::from)?;
    for table in Smallbank::tables() {
        chain.execute_script(table)?;
    }
    chain.load(&Smallbank::new(options.customers, 0.0)?)?;
    Ok((chain.engine.state().clone(), chain.engine.height()))
}

fn ledger() -> Digest {
    sha256(&[b"entente bench chainify"])
}
