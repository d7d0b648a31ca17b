//! Executes the scripts of blocks in the organisation's own database: ChainifyDB's whatever phase (paper 002, sections 4.5 and 4.6).
//!
//! ```text
//!  block ─▶ fit: tables, triggers ─▶ run: scripts on several connections, in the order of the graph ─▶ effects: net changes ─▶ the state
//!              ▲                         each with how it ended, in its transaction                      │
//!              └── reset: all rows are made those of the state before the block ◀── rows are not what the state says
//! ```
//!
//! The database says which block it has executed last, and for each script of the one behind it how it ended: a script runs once,
//! whoever is killed in between. What the last blocks did is kept, so that a node which goes on from an older state finds it
//! there; where the database cannot say it, its rows are made those of the state, and the block is executed.

mod connected;
mod effects;
mod graph;

use crate::address::Address;
use crate::error::ErrorKind;
use crate::locks;
use crate::status::Status;
use connected::Connected;
use crypto::PublicKey;
use engine::{BlockScripts, ExecuteScripts, RanScripts};
use gateway::OwnDatabaseStatus;
use parking_lot::Mutex;
use state::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections that run scripts, where nothing else is said (the paper, section 4.6.3, has k).
pub const CONNECTIONS: usize = 16;
/// How long it waits before it connects again.
const AGAIN_MIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(5);
/// How often it looks whether the node stops.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where scripts are executed, and how.
#[derive(Clone, Debug)]
pub struct ScriptDatabaseOptions {
    /// Where the database is, and as whom.
    pub address: Address,
    /// Whose node this is: two nodes must not execute in one database.
    pub node: PublicKey,
    /// Scripts that run beside one another, at most.
    pub connections: usize,
    /// Tables that the database has and that are not the ledger's give way to the ledger's.
    pub takes_ledger_rows: bool,
}

/// A database that executes scripts.
pub struct ScriptDatabase {
    options: ScriptDatabaseOptions,
    status: Status,
    connected: Mutex<Option<Connected>>,
    /// Nothing that was executed counts.
    distrusted: AtomicBool,
    /// The node stops.
    over: AtomicBool,
}

impl ScriptDatabase {
    /// Nothing is connected before the first block.
    pub fn new(options: ScriptDatabaseOptions) -> ScriptDatabase {
        let status = OwnDatabaseStatus {
            kind: options.address.kind.name().to_string(),
            address: options.address.to_string(),
            state: "connecting".to_string(),
            ..OwnDatabaseStatus::default()
        };
        ScriptDatabase {
            options,
            status: Status::new(status),
            connected: Mutex::new(None),
            distrusted: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.over.load(Ordering::Acquire) {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl ExecuteScripts for ScriptDatabase {
    fn execute(&self, block: &BlockScripts) -> Result<RanScripts, StoreError> {
        let mut connected = self.connected.lock();
        let mut pause = AGAIN_MIN;
        loop {
            if self.over.load(Ordering::Acquire) {
                return Err(StoreError::read("the organisation's own database", "the node stops"));
            }
            let attempt = match connected.take() {
                Some(connected) => Ok(connected),
                None => Connected::new(&self.options, block, &self.status),
            };
            let attempt = attempt.and_then(|mut at| {
                let ran = at.execute(&self.options, block, (&self.status, &self.distrusted))?;
                Ok((at, ran))
            });
            let error = match attempt {
                Ok((at, ran)) => {
                    *connected = Some(at);
                    return Ok(ran);
                }
                Err(error) => error,
            };
            let error = match error.kind {
                ErrorKind::Locked => locks::explained(&self.options.address, error),
                _ => error,
            };
            self.status.fail(&error);
            self.wait(pause);
            pause = (pause * 2).min(AGAIN_MAX);
        }
    }

    fn distrust(&self) {
        self.distrusted.store(true, Ordering::Release);
    }
}

impl node::OwnExecution for ScriptDatabase {
    fn status(&self) -> OwnDatabaseStatus {
        self.status.shown()
    }

    fn stop(&self) {
        self.over.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, Servers};
    use crate::session;
    use memory::Memory;
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    use state::{AfterImage, RowId, Store, Stores, Version};
    use std::sync::Arc;
    use types::{Catalog, Payload};

    const ACCOUNTS: i64 = 100_000;
    /// The paper's (section 4.8.5).
    const BLOCK: usize = 4_096;

    fn accounts() -> Arc<dyn Store> {
        let (table, store) = (samples::table(), Memory.create(Arc::default()).expect("memory"));
        let catalog = Catalog { tables: [(table.name.clone(), table.clone())].into(), ..Catalog::default() };
        let image = |id: i64| AfterImage {
            row: RowId { table: table.id, key: samples::key(id) },
            value: Some(samples::row(id, 1_000_000)),
        };
        let images: Vec<AfterImage> = (0..ACCOUNTS).map(image).collect();
        store.apply(Version::after_batch(1, 0), &images, Some(Arc::new(catalog))).expect("memory");
        store
    }

    /// Payments between accounts, whose choice is Zipf-distributed.
    fn payments(random: &mut StdRng, skew: f64) -> Vec<String> {
        let mut account = || match skew > 0.0 {
            // Close enough to Zipf for a measurement: the distribution function of its continuous form, inverted.
            true => {
                let (uniform, power): (f64, f64) = (random.random(), 1.0 - skew);
                let most = (ACCOUNTS as f64 + 1.0).powf(power) - 1.0;
                ((uniform * most + 1.0).powf(1.0 / power) as i64 - 1).clamp(0, ACCOUNTS - 1)
            }
            false => random.random_range(0..ACCOUNTS),
        };
        (0..BLOCK)
            .map(|_| {
                let (from, to) = (account(), account());
                format!(
                    "UPDATE checking SET balance = balance - 7 WHERE customer_id = {from}; \
                     UPDATE checking SET balance = balance + 7 WHERE customer_id = {to}"
                )
            })
            .collect()
    }

    fn block(height: u64, before: Arc<dyn state::Snapshot>, scripts: &[String]) -> BlockScripts {
        let catalog = before.catalog().clone();
        let checked = scripts.iter().enumerate().map(|(place, sql)| {
            let payload = Payload::Script { sql: sql.clone(), parameters: Vec::new() };
            (place as u32, portable::check_script(&catalog, &payload, 0).expect("portable"))
        });
        BlockScripts { ledger: crypto::sha256(&[b"test"]), height, scripts: checked.collect(), before }
    }

    /// How fast scripts run in a database alone, with triggers that record what they do, against one connection that runs the same
    /// without any of that, each in a transaction of its own.
    #[test]
    #[ignore = "measures: cargo test -p chainify scripts_alone -- --ignored --nocapture"]
    fn scripts_alone() {
        let servers = Servers::start();
        for address in servers.addresses() {
            for (connections, skew) in [(16, 0.0), (1, 0.0), (16, 1.1), (1, 1.1)] {
                let mut random = StdRng::seed_from_u64(1);
                let database = ScriptDatabase::new(ScriptDatabaseOptions {
                    address: address.clone(),
                    node: crypto::SecretKey::from_bytes([1; 32]).public_key(),
                    connections,
                    takes_ledger_rows: true,
                });
                // Every measurement begins with the same rows.
                let store = accounts();
                database.distrust();
                database.execute(&block(2, store.snapshot(), &[])).expect("it executes");
                let (mut height, mut time, mut scripts) = (2, Duration::ZERO, 0);
                while time < Duration::from_secs(5) {
                    height += 1;
                    let block = block(height, store.snapshot(), &payments(&mut random, skew));
                    let start = Instant::now();
                    let ran = database.execute(&block).expect("it executes");
                    time += start.elapsed();
                    scripts += ran.ends.iter().filter(|end| **end == Some(vec![1, 1])).count();
                    store.apply(Version::after_batch(height, 0), &ran.changes, None).expect("memory");
                }
                let (kind, per_second) = (address.kind.name(), scripts as f64 / time.as_secs_f64());
                println!(
                    "{kind}: {per_second:.0} scripts per second, {connections} connections, Zipf {skew}"
                );
            }
            let mut session = session::connect(&address).expect("it answers");
            let table =
                crate::shared_table::SharedTable::new(samples::table(), address.kind.into()).expect("fits");
            session.execute(&format!("DROP TABLE {}", table.name)).expect("dropped");
            session.execute(&table.create(&[])).expect("made");
            let mut rows = (0..ACCOUNTS).map(|id| table.texts(&samples::row(id, 1_000_000)));
            session.load(&table.name, &table.columns.clone(), &mut rows).expect("loaded");
            let mut random = StdRng::seed_from_u64(1);
            let (mut time, mut scripts) = (Duration::ZERO, 0);
            while time < Duration::from_secs(5) {
                let statements = payments(&mut random, 0.0);
                let start = Instant::now();
                for sql in &statements {
                    session.execute("BEGIN").expect("begun");
                    for statement in sql.replace("checking", &table.name).split("; ") {
                        session.execute(statement).expect("executed");
                    }
                    session.execute("COMMIT").expect("committed");
                }
                time += start.elapsed();
                scripts += statements.len();
            }
            println!(
                "{}: {:.0} per second on one plain connection",
                address.kind.name(),
                scripts as f64 / time.as_secs_f64()
            );
        }
    }
}
