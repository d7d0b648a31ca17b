//! At which position the row with a primary key stands.
//!
//! Rows that a scan has given stand in key order: their keys lie side by side in blocks, and are found by halving. Only rows that
//! came later, at positions that others have left, need a map.

use crate::marks::Marks;
use std::collections::HashMap;
use types::Key;

/// Keys of one block.
const BLOCK_KEYS: usize = 8_192;
/// What an entry of the map takes beside its key's bytes.
const ENTRY_BYTES: u64 = 64;

/// The keys of a table's rows with their positions.
#[derive(Default)]
pub(crate) struct Keys {
    /// Keys in order: the first one is that of position 0.
    blocks: Vec<Block>,
    /// How many these are.
    ascending: usize,
    /// Positions among these whose row has gone. Another one may stand there.
    gone: Marks,
    /// All other rows.
    others: HashMap<Key, usize>,
    /// Bytes of the keys of these.
    other_bytes: u64,
}

/// Keys in order, one behind the other.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Block {
    fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.bytes[start..self.ends[at] as usize]
    }

    fn find(&self, key: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) < key { low = middle + 1 } else { high = middle }
        }
        (low < self.ends.len() && self.key(low) == key).then_some(low)
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
        if self.ends.len() == BLOCK_KEYS {
            self.bytes.shrink_to_fit();
        }
    }
}

impl Keys {
    /// Where the row with this key stands.
    pub(crate) fn position(&self, key: &Key) -> Option<usize> {
        self.others.get(key).copied().or_else(|| self.ascending_position(key.as_bytes()))
    }

    fn ascending_position(&self, key: &[u8]) -> Option<usize> {
        let behind = self.blocks.partition_point(|block| block.key(0) <= key);
        let number = behind.checked_sub(1)?;
        let position = number * BLOCK_KEYS + self.blocks[number].find(key)?;
        (!self.gone.has(position)).then_some(position)
    }

    /// The row with this key, which was not there, stands at `position` now.
    pub(crate) fn insert(&mut self, key: Key, position: usize) {
        if position == self.ascending && self.last().is_none_or(|last| last < key.as_bytes()) {
            if self.blocks.last().is_none_or(|block| block.ends.len() == BLOCK_KEYS) {
                self.blocks.push(Block::default());
            }
            let block = self.blocks.last_mut().expect("one was added where there was no room");
            block.push(key.as_bytes());
            self.ascending += 1;
            return;
        }
        self.other_bytes += key.as_bytes().len() as u64;
        self.others.insert(key, position);
    }

    fn last(&self) -> Option<&[u8]> {
        let block = self.blocks.last()?;
        Some(block.key(block.ends.len().checked_sub(1)?))
    }

    /// The row with this key goes. Gives where it stood.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<usize> {
        if let Some(position) = self.others.remove(key) {
            self.other_bytes -= key.as_bytes().len() as u64;
            return Some(position);
        }
        let position = self.ascending_position(key.as_bytes())?;
        self.gone.add(position);
        Some(position)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let blocks = self.blocks.iter();
        let blocks: usize =
            blocks.map(|block| block.bytes.capacity() + block.ends.capacity() * size_of::<u32>()).sum();
        let others = self.others.len() as u64 * ENTRY_BYTES + self.other_bytes;
        blocks as u64 + self.gone.bytes() + others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::from_bytes(&(number as u32).to_be_bytes())
    }

    #[test]
    fn rows_are_found_where_they_stand() {
        let mut keys = Keys::default();
        let count = BLOCK_KEYS + 10;
        (0..count).for_each(|number| keys.insert(key(2 * number), number));
        assert!(keys.others.is_empty());
        for number in 0..count {
            assert_eq!(keys.position(&key(2 * number)), Some(number));
            assert_eq!(keys.position(&key(2 * number + 1)), None);
        }
        assert_eq!(keys.remove(&key(20)), Some(10));
        assert_eq!((keys.remove(&key(20)), keys.position(&key(20))), (None, None));
        keys.insert(key(7), 10);
        assert_eq!(keys.position(&key(7)), Some(10));
        assert_eq!(keys.remove(&key(7)), Some(10));
        keys.insert(key(20), 10);
        assert_eq!(keys.position(&key(20)), Some(10));
        // Behind the last one in order, and then not.
        keys.insert(key(2 * count), count);
        assert_eq!(keys.others.len(), 1);
        keys.insert(key(9), count + 1);
        keys.insert(key(2 * count + 2), count + 2);
        assert_eq!(keys.others.len(), 3);
        assert_eq!(keys.position(&key(2 * count + 2)), Some(count + 2));
        assert!(keys.bytes() > 8 * count as u64);
    }
}
