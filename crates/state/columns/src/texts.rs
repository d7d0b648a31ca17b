//! Texts: a view of 16 bytes for each, which has a short text itself and names a place in a block for a long one.

use crate::validity::Validity;
use crate::values::{DoesNotFit, Placed, Values, value_of};
use arrow_array::builder::make_view;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use std::sync::Arc;
use types::Value;

/// Bytes of a text that stands in its view.
const INLINE_BYTES_MAX: usize = 12;
/// Blocks of one chunk: each write makes one.
const BLOCKS_MAX: usize = 16;
/// Bytes of all long texts of a chunk, so that one block has room for them: a view says in 32 bits where its text is.
const CHUNK_BYTES_MAX: usize = 1 << 30;

/// Texts of one chunk of rows.
pub(crate) struct Texts {
    array: Arc<StringViewArray>,
    /// Bytes in blocks that no view names any more.
    dead: usize,
    /// Texts are of `char(n)`.
    is_char: bool,
}

/// What is written: views, and the block with their long texts.
struct Block {
    number: u32,
    bytes: Vec<u8>,
}

impl Block {
    fn view(&mut self, text: &str) -> u128 {
        let offset = self.bytes.len() as u32;
        if text.len() > INLINE_BYTES_MAX {
            self.bytes.extend_from_slice(text.as_bytes());
        }
        make_view(text.as_bytes(), self.number, offset)
    }
}

/// Bytes that a view has in a block.
fn block_bytes(view: u128) -> usize {
    // The length stands in the lowest four bytes.
    let length = view as u32 as usize;
    if length > INLINE_BYTES_MAX { length } else { 0 }
}

impl Texts {
    /// None.
    pub(crate) fn new(is_char: bool) -> Texts {
        Texts { array: Arc::new(StringViewArray::new_null(0)), dead: 0, is_char }
    }

    fn text_of<'a>(&self, value: &'a Value) -> Result<Option<&'a str>, DoesNotFit> {
        match value {
            Value::Null => Ok(None),
            Value::Text(text) if !self.is_char => Ok(Some(text)),
            Value::Char(text) if self.is_char => Ok(Some(text)),
            _ => Err(DoesNotFit),
        }
    }

    fn is_there(&self, at: usize, text: Option<&str>) -> bool {
        at < self.array.len()
            && match text {
                Some(text) => self.array.is_valid(at) && self.array.value(at) == text,
                None => self.array.is_null(at),
            }
    }

    /// Whether there is room for more bytes, those that they replace still counted.
    fn check_room(&self, more: usize) -> Result<(), DoesNotFit> {
        let blocks: usize = self.array.data_buffers().iter().map(Buffer::len).sum();
        if blocks - self.dead + more > CHUNK_BYTES_MAX { Err(DoesNotFit) } else { Ok(()) }
    }

    /// Copies what views name into one block, where most of the blocks is dead or there are many.
    fn compact(&mut self) {
        let blocks = self.array.data_buffers();
        let bytes: usize = blocks.iter().map(Buffer::len).sum();
        if blocks.len() > BLOCKS_MAX || 2 * self.dead > bytes {
            self.array = Arc::new(self.array.gc());
            self.dead = 0;
        }
    }
}

impl Values for Texts {
    fn write(&mut self, ordinal: usize, rows: &Placed) -> Result<(), DoesNotFit> {
        let mut changes = Vec::with_capacity(rows.len());
        for (at, row) in rows {
            let text = self.text_of(value_of(row, ordinal)?)?;
            if !self.is_there(*at, text) {
                changes.push((*at, text));
            }
        }
        let Some((last, _)) = changes.last() else { return Ok(()) };
        let length = self.array.len().max(last + 1);
        let long = changes.iter().filter_map(|(_, text)| *text).map(str::len);
        let room = long.filter(|bytes| *bytes > INLINE_BYTES_MAX).sum();
        self.check_room(room)?;
        let array = std::mem::replace(&mut self.array, Arc::new(StringViewArray::new_null(0)));
        let array = Arc::try_unwrap(array).unwrap_or_else(|lent| StringViewArray::clone(&lent));
        let (views, blocks, nulls) = array.into_parts();
        let mut validity = Validity::of(nulls, views.len());
        let views = views.into_inner().into_vec();
        let mut views = views.unwrap_or_else(|lent| lent.typed_data::<u128>().to_vec());
        views.reserve_exact(length - views.len());
        views.resize(length, 0);
        let mut block = Block { number: blocks.len() as u32, bytes: Vec::with_capacity(room) };
        for (at, text) in changes {
            self.dead += block_bytes(views[at]);
            views[at] = text.map_or(0, |text| block.view(text));
            validity.set(at, text.is_some());
        }
        let added = (!block.bytes.is_empty()).then(|| Buffer::from_vec(block.bytes));
        let blocks: Arc<[Buffer]> = match added {
            Some(added) => blocks.iter().cloned().chain([added]).collect(),
            None => blocks,
        };
        let array = StringViewArray::new(ScalarBuffer::from(views), blocks, validity.finish());
        self.array = Arc::new(array);
        self.compact();
        Ok(())
    }

    fn array(&self) -> ArrayRef {
        self.array.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Row;

    fn row(text: &str) -> Row {
        Arc::from([Value::text(text)])
    }

    #[test]
    fn blocks_are_compacted_where_most_of_them_is_dead() {
        let long = |number: usize| format!("{number} is a number with a long name");
        let mut texts = Texts::new(false);
        let rows: Vec<(usize, Row)> = (0..100).map(|at| (at, row(&long(at)))).collect();
        texts.write(0, &rows).expect("texts fit");
        let lent = texts.array();
        for round in 0..100 {
            let changed: Vec<(usize, Row)> = (0..40)
                .map(|at| (at, row(if round % 2 == 0 { "short" } else { "no longer a short one" })))
                .collect();
            texts.write(0, &changed).expect("texts fit");
            let bytes: usize = texts.array.data_buffers().iter().map(Buffer::len).sum();
            let live: usize = texts.array.views().iter().map(|view| block_bytes(*view)).sum();
            assert!(bytes <= 2 * live, "round {round}: {bytes} bytes for {live}");
            assert_eq!(bytes - live, texts.dead);
            assert!(texts.array.data_buffers().len() <= BLOCKS_MAX);
        }
        let lent = lent.as_any().downcast_ref::<StringViewArray>().expect("texts");
        assert!((0..100).all(|at| lent.value(at) == long(at)), "what is lent does not change");
        assert_eq!(texts.array.value(0), "no longer a short one");
        assert_eq!(texts.array.value(99), long(99));
    }

    #[test]
    fn texts_of_more_bytes_than_a_view_can_count_do_not_fit() {
        let mut texts = Texts::new(false);
        texts.write(0, &[(0, row("a text of some length"))]).expect("it fits");
        assert_eq!(texts.check_room(CHUNK_BYTES_MAX - 21), Ok(()));
        assert_eq!(texts.check_room(CHUNK_BYTES_MAX - 20), Err(DoesNotFit));
    }

    #[test]
    fn a_value_of_another_type_does_not_fit() {
        let mut texts = Texts::new(true);
        assert_eq!(texts.write(0, &[(0, row("text"))]), Err(DoesNotFit));
        assert_eq!(texts.write(1, &[(0, row("text"))]), Err(DoesNotFit), "no such column");
    }
}
