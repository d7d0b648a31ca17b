//! Executes the scripts of blocks in the organisation's own database: ChainifyDB's whatever phase (paper 002, sections 4.5 and 4.6).
//!
//! ```text
//!  block ─▶ fit: tables, triggers ─▶ run: as sets, or on several connections in the order of the graph ─▶ effects: net changes ─▶ the state
//!              ▲                         each with how it ended, in its transaction                      │
//!              └── reset: all rows are made those of the state before the block ◀── rows are not what the state says
//! ```
//!
//! The database says which block it has executed last, and for each script of the one behind it how it ended: a script runs once,
//! whoever is killed in between. What the last blocks did is kept, so that a node which goes on from an older state finds it
//! there; where the database cannot say it, its rows are made those of the state, and the block is executed.

#[cfg(test)]
mod attacks;
mod connected;
mod defence;
mod effects;
mod graph;
mod sets;

use crate::address::Address;
use crate::error::ErrorKind;
use crate::locks;
use crate::status::Status;
use connected::Connected;
use crypto::PublicKey;
use defence::Undefended;
use engine::{BlockScripts, ExecuteScripts, RanScripts};
use gateway::OwnDatabaseStatus;
use parking_lot::Mutex;
use state::StoreError;
use std::sync::Arc;
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
    /// Scripts of a block run as sets where they can, and not only one by one.
    pub as_sets: bool,
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
    undefended: Arc<Undefended>,
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
            undefended: Arc::default(),
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
                None => Connected::new(&self.options, block, &self.status, self.undefended.clone()),
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
    use memory::Memory;
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    use state::{AfterImage, RowId, Store, Stores, Version};
    use types::{Catalog, Payload};

    const ACCOUNTS: i64 = 60;

    fn accounts() -> Arc<dyn Store> {
        let (table, store) = (samples::table(), Memory.create(Arc::default()).expect("memory"));
        let catalog = Catalog { tables: [(table.name.clone(), table.clone())].into(), ..Catalog::default() };
        let image = |id: i64| AfterImage {
            row: RowId { table: table.id, key: samples::key(id) },
            value: Some(samples::row(id, 1_000)),
        };
        let images: Vec<AfterImage> = (0..ACCOUNTS).map(image).collect();
        store.apply(Version::after_batch(1, 0), &images, Some(Arc::new(catalog))).expect("memory");
        store
    }

    /// Statements whose order shows. In later blocks some meet no row, and in the last ones some fail.
    fn statement(random: &mut StdRng, height: u64) -> String {
        let ids = if height < 10 { ACCOUNTS } else { ACCOUNTS + 5 };
        let (id, amount) = (random.random_range(0..ids), random.random_range(1..500));
        match random.random_range(0..if height > 16 { 6 } else { 4 }) {
            0 | 1 => format!("UPDATE checking SET balance = balance - {amount} WHERE customer_id = {id}"),
            2 => format!("UPDATE checking SET balance = {amount} - balance WHERE customer_id = {id}"),
            3 => format!(
                "UPDATE checking SET balance = CASE WHEN balance > {amount} THEN balance - {amount} ELSE 7 END \
                 WHERE customer_id = {id} AND balance <> {}",
                if height < 10 { 1_000_000 } else { amount + 1 }
            ),
            4 => format!("INSERT INTO checking VALUES ({}, {amount})", id + 40),
            _ => format!("UPDATE checking SET balance = balance * 9000000000000000 WHERE customer_id = {id}"),
        }
    }

    /// What random blocks come to, one after the other.
    fn blocks(database: &ScriptDatabase) -> Vec<RanScripts> {
        let (store, mut random) = (accounts(), StdRng::seed_from_u64(5));
        let run = |height: u64| {
            let before = store.snapshot();
            let script = |place| {
                let statements = random.random_range(1..4);
                let sql: Vec<String> = (0..statements).map(|_| statement(&mut random, height)).collect();
                let payload = Payload::Script { sql: sql.join("; "), parameters: Vec::new() };
                (place, portable::check_script(before.catalog(), &payload, 0).expect("portable"))
            };
            let scripts = (0..80).map(script).collect();
            let block =
                BlockScripts { ledger: crypto::sha256(&[b"test"]), height, before: before.clone(), scripts };
            let ran = database.execute(&block).expect("it executes");
            store.apply(Version::after_batch(height, 0), &ran.changes, None).expect("memory");
            if database.options.as_sets && height < 10 {
                // Nothing has kept them from being sets.
                let connected = database.connected.lock();
                assert!(connected.as_ref().expect("connected").runs_as_sets(&block), "block {height}");
            }
            ran
        };
        (2..26).map(run).collect()
    }

    #[test]
    fn scripts_come_to_the_same_as_sets_and_one_by_one_in_every_database() {
        let servers = Servers::start();
        let mut expected: Option<Vec<RanScripts>> = None;
        for address in servers.addresses() {
            for (connections, as_sets) in [(1, false), (8, false), (8, true)] {
                let database = ScriptDatabase::new(ScriptDatabaseOptions {
                    address: address.clone(),
                    node: crypto::SecretKey::from_bytes([1; 32]).public_key(),
                    connections,
                    as_sets,
                    takes_ledger_rows: true,
                });
                // Whatever the one before has left.
                database.distrust();
                let found = blocks(&database);
                let expected = expected.get_or_insert_with(|| found.clone());
                for (number, (one, other)) in expected.iter().zip(&found).enumerate() {
                    assert_eq!(one, other, "{address}, as sets: {as_sets}, block {number}");
                }
            }
        }
        let ends: Vec<&Option<Vec<u64>>> = expected.iter().flatten().flat_map(|block| &block.ends).collect();
        let failed = ends.iter().filter(|end| end.is_none()).count();
        let unmet = ends.iter().filter(|end| end.as_ref().is_some_and(|met| met.contains(&0))).count();
        assert!(
            failed > 50 && unmet > 50 && failed + unmet < ends.len() / 2,
            "{failed} {unmet} {}",
            ends.len()
        );
    }
}
