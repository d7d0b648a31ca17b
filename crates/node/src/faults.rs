use parking_lot::Mutex;
use state::{AfterImage, KeyRange, RowId, Snapshot, State, Version};
use std::ops::ControlFlow;
use types::Value;

/// What a test makes go wrong in a node's memory, behind its back. No configuration leads here.
#[derive(Default)]
pub struct Faults {
    table: Mutex<Option<String>>,
}

impl Faults {
    /// Before the next block is executed, a bit of the first row of `table` flips: of its last column, a number.
    pub fn flip_in(&self, table: &str) {
        *self.table.lock() = Some(table.to_string());
    }

    /// Whether what was asked for has happened.
    pub fn has_struck(&self) -> bool {
        self.table.lock().is_none()
    }

    /// Between two blocks.
    pub(crate) fn strike(&self, state: &State) {
        let mut asked = self.table.lock();
        let Some(name) = asked.as_ref() else { return };
        let snapshot = state.snapshot();
        let Some(table) = snapshot.catalog().tables.get(name) else { return };
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
        let version = Version::after_block(snapshot.version().height());
        drop(snapshot);
        state.apply(version, &[flipped], None);
        *asked = None;
    }
}
