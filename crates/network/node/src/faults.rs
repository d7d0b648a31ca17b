use crate::NodeError;
use engine::Engine;
use parking_lot::Mutex;
use state::{AfterImage, KeyRange, LiveRequests, RowId, Snapshot, State, Version};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use types::{Charter, Value};

/// What a node does so that its promises hold, and what a test switches off to see that it finds out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Defence {
    /// Receipts are sent once their block is flushed.
    FlushBeforeAnswer = 1,
    /// Answers wait for a quorum's certificate.
    QuorumBeforeAnswer = 2,
    /// A transaction that was executed is not executed again.
    ExactlyOnce = 4,
}

/// What a test makes go wrong in a node's memory, behind its back. No configuration leads here.
#[derive(Default)]
pub struct Faults {
    table: Mutex<Option<String>>,
    undefended: AtomicU8,
    checkpoints_lost: AtomicBool,
}

impl Faults {
    /// The node does without `defence` from now on.
    pub fn switch_off(&self, defence: Defence) {
        self.undefended.fetch_or(defence as u8, Ordering::Relaxed);
    }

    pub(crate) fn lacks(&self, defence: Defence) -> bool {
        self.undefended.load(Ordering::Relaxed) & defence as u8 != 0
    }

    /// Before the next block is executed, a bit of the first row of `table` flips: of its last column, a number.
    pub fn flip_in(&self, table: &str) {
        *self.table.lock() = Some(table.to_string());
    }

    /// Whether what was asked for has happened.
    pub fn has_struck(&self) -> bool {
        self.table.lock().is_none()
    }

    /// From now on no checkpoint of this node can be read when it heals.
    pub fn lose_checkpoints(&self) {
        self.checkpoints_lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn checkpoints_lost(&self) -> bool {
        self.checkpoints_lost.load(Ordering::SeqCst)
    }

    /// Between two blocks.
    pub(crate) fn strike(&self, charter: &Arc<Charter>, engine: &mut Engine) -> Result<(), NodeError> {
        self.flip(engine.state());
        if self.lacks(Defence::ExactlyOnce) {
            let (header, state) = (engine.checkpoint_header(), engine.state().clone());
            *engine = Engine::at(charter.clone(), &header, state, LiveRequests::new())?;
        }
        Ok(())
    }

    fn flip(&self, state: &State) {
        let mut asked = self.table.lock();
        let Some(name) = asked.as_ref() else { return };
        let snapshot = state.snapshot();
        let Some(table) = snapshot.catalog().tables.get(name) else { return };
        let version = Version::after_block(snapshot.version().height());
        if snapshot.version() >= version {
            // Straight from a checkpoint: nothing can follow its version before the next block.
            return;
        }
        let mut flipped = None;
        snapshot.scan(table.id, &KeyRange::ALL, false, &mut |key, row| {
            let mut values = row.to_vec();
            if let Some(Value::BigInt(number)) = values.last_mut() {
                *number ^= 1;
            }
            flipped = Some(AfterImage {
                row: RowId { table: table.id, key: key.clone() },
                value: Some(values.into()),
            });
            ControlFlow::Break(())
        });
        let Some(flipped) = flipped else { return };
        drop(snapshot);
        state.apply(version, &[flipped], None);
        *asked = None;
    }
}
