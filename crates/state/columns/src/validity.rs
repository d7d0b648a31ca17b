//! Which values of an array are NULL, while it is written.

use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

/// One bit for each value, from the first NULL on.
pub(crate) struct Validity {
    valid: Option<BooleanBufferBuilder>,
    length: usize,
}

impl Validity {
    /// That of an array. Bits are few, and always copied.
    pub(crate) fn of(nulls: Option<NullBuffer>, length: usize) -> Validity {
        let valid = nulls.map(|nulls| {
            let mut valid = BooleanBufferBuilder::new(length);
            valid.append_buffer(nulls.inner());
            valid
        });
        Validity { valid, length }
    }

    /// Says of one value, or of one behind the last, whether it is there.
    pub(crate) fn set(&mut self, at: usize, is_valid: bool) {
        let length = self.length.max(at + 1);
        if let Some(valid) = &mut self.valid {
            valid.append_n(length - self.length, true);
            valid.set_bit(at, is_valid);
        } else if !is_valid {
            let mut valid = BooleanBufferBuilder::new(length);
            valid.append_n(length, true);
            valid.set_bit(at, false);
            self.valid = Some(valid);
        }
        self.length = length;
    }

    /// For the array; nothing where no value is NULL.
    pub(crate) fn finish(self) -> Option<NullBuffer> {
        let nulls = NullBuffer::new(self.valid?.build());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_bits_where_nothing_is_null() {
        let mut validity = Validity::of(None, 0);
        (0..3).for_each(|at| validity.set(at, true));
        validity.set(1, false);
        let nulls = validity.finish().expect("one is NULL");
        assert_eq!(nulls.iter().collect::<Vec<_>>(), [true, false, true]);
        let mut validity = Validity::of(Some(nulls), 3);
        validity.set(1, true);
        validity.set(4, true);
        assert!(validity.finish().is_none());
    }
}
