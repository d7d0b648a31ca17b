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
