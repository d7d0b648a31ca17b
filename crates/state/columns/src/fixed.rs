//! Values of one width: numbers, dates and times.

use crate::validity::Validity;
use crate::values::{DoesNotFit, Placed, Values, value_of};
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType as ArrowType;
use std::sync::Arc;
use types::Value;

/// Values of one width in one chunk of rows.
pub(crate) struct FixedValues<T: ArrowPrimitiveType, F> {
    array: Arc<PrimitiveArray<T>>,
    /// What stands in the array for a value that is not NULL.
    native: F,
}

impl<T: ArrowPrimitiveType, F: Fn(&Value) -> Option<T::Native>> FixedValues<T, F> {
    /// None of this type.
    pub(crate) fn new(arrow_type: ArrowType, native: F) -> FixedValues<T, F> {
        let none = PrimitiveArray::<T>::new(ScalarBuffer::from(Vec::new()), None).with_data_type(arrow_type);
        FixedValues { array: Arc::new(none), native }
    }

    fn native_of(&self, value: &Value) -> Result<Option<T::Native>, DoesNotFit> {
        match value {
            Value::Null => Ok(None),
            value => (self.native)(value).map(Some).ok_or(DoesNotFit),
        }
    }

    fn is_there(&self, at: usize, value: Option<T::Native>) -> bool {
        at < self.array.len()
            && match value {
                Some(value) => self.array.is_valid(at) && self.array.values()[at].is_eq(value),
                None => self.array.is_null(at),
            }
    }
}

impl<T: ArrowPrimitiveType, F: Fn(&Value) -> Option<T::Native> + Send> Values for FixedValues<T, F> {
    fn write(&mut self, ordinal: usize, rows: &Placed) -> Result<(), DoesNotFit> {
        let mut changes = Vec::with_capacity(rows.len());
        for (at, row) in rows {
            let value = self.native_of(value_of(row, ordinal)?)?;
            if !self.is_there(*at, value) {
                changes.push((*at, value));
            }
        }
        let Some((last, _)) = changes.last() else { return Ok(()) };
        let length = self.array.len().max(last + 1);
        let none = PrimitiveArray::<T>::new(ScalarBuffer::from(Vec::new()), None);
        let array = std::mem::replace(&mut self.array, Arc::new(none));
        let array = Arc::try_unwrap(array).unwrap_or_else(|lent| PrimitiveArray::clone(&lent));
        let (arrow_type, values, nulls) = array.into_parts();
        let mut validity = Validity::of(nulls, values.len());
        // Somebody may have the values without the array.
        let values = values.into_inner().into_vec();
        let mut values = values.unwrap_or_else(|lent| {
            let mut copy = Vec::with_capacity(length);
            copy.extend_from_slice(lent.typed_data::<T::Native>());
            copy
        });
        values.reserve_exact(length - values.len());
        values.resize(length, T::Native::ZERO);
        for (at, value) in changes {
            values[at] = value.unwrap_or(T::Native::ZERO);
            validity.set(at, value.is_some());
        }
        let array = PrimitiveArray::new(ScalarBuffer::from(values), validity.finish());
        self.array = Arc::new(array.with_data_type(arrow_type));
        Ok(())
    }

    fn array(&self) -> ArrayRef {
        self.array.clone()
    }
}
