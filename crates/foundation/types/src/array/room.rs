//! How much room what is `jsonb` has among values that are made one after the other.

use crate::json::check_length;
use crate::{SqlError, Value};

/// Values that are made one after the other, as long as what is `jsonb` in them has room.
///
/// # Errors
/// `54000` where it has none; those of the values.
pub(crate) fn values_with_room(
    values: impl Iterator<Item = Result<Value, SqlError>>,
) -> Result<Vec<Value>, SqlError> {
    let mut room = JsonRoom::default();
    values.map(|value| room.take(value?)).collect()
}

/// Counts what is `jsonb` in values that are made one after the other: a few characters may become a number of a hundred
/// thousand digits.
#[derive(Default)]
pub(super) struct JsonRoom {
    taken: usize,
}

impl JsonRoom {
    /// One more value.
    ///
    /// # Errors
    /// `54000` where all together are longer than any value.
    pub(super) fn take(&mut self, value: Value) -> Result<Value, SqlError> {
        self.taken += json_bytes(&value);
        check_length(self.taken)?;
        Ok(value)
    }
}

/// Bytes of all that is `jsonb` in a value.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Jsonb(json) => json.bytes().len(),
        Value::Array(array) => array.values().iter().map(json_bytes).sum(),
        Value::Composite(row) => row.values().iter().map(json_bytes).sum(),
        _ => 0,
    }
}
