//! Values of `boolean`: bits, which are few and always copied.

use crate::validity::Validity;
use crate::values::{DoesNotFit, Placed, Values, value_of};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use std::sync::Arc;
use types::Value;

/// Bits of one chunk of rows.
pub(crate) struct Booleans {
    array: Arc<BooleanArray>,
}

impl Booleans {
    /// None.
    pub(crate) fn new() -> Booleans {
        Booleans { array: Arc::new(BooleanArray::new(BooleanBuffer::new_unset(0), None)) }
    }

    fn is_there(&self, at: usize, value: Option<bool>) -> bool {
        at < self.array.len()
            && match value {
                Some(value) => self.array.is_valid(at) && self.array.value(at) == value,
                None => self.array.is_null(at),
            }
    }
}

impl Values for Booleans {
    fn write(&mut self, ordinal: usize, rows: &Placed) -> Result<(), DoesNotFit> {
        let mut changes = Vec::with_capacity(rows.len());
        for (at, row) in rows {
            let value = match value_of(row, ordinal)? {
                Value::Null => None,
                Value::Boolean(value) => Some(*value),
                _ => return Err(DoesNotFit),
            };
            if !self.is_there(*at, value) {
                changes.push((*at, value));
            }
        }
        let Some((last, _)) = changes.last() else { return Ok(()) };
        let length = self.array.len().max(last + 1);
        let mut bits = BooleanBufferBuilder::new(length);
        bits.append_buffer(self.array.values());
        bits.append_n(length - bits.len(), false);
        let mut validity = Validity::of(self.array.nulls().cloned(), self.array.len());
        for (at, value) in changes {
            bits.set_bit(at, value.unwrap_or(false));
            validity.set(at, value.is_some());
        }
        self.array = Arc::new(BooleanArray::new(bits.build(), validity.finish()));
        Ok(())
    }

    fn array(&self) -> ArrayRef {
        self.array.clone()
    }
}
