use std::fmt;

/// Names the state after one execution batch: height of its block and position in it. Versions are ordered as batches
/// are, and mean the same after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(u64);

impl Version {
    /// Before the first block.
    pub const GENESIS: Version = Version(0);
    /// Batches that one block may have.
    pub const BATCHES_MAX: u32 = 0xfffe;

    /// After batch number `batch` (from 0) of the block at `height`.
    ///
    /// # Panics
    /// Where `batch` is not below [`Version::BATCHES_MAX`] or `height` needs more than 48 bits; neither can come from
    /// outside, because a charter bounds the transactions of a block.
    pub fn after_batch(height: u64, batch: u32) -> Version {
        assert!(batch < Version::BATCHES_MAX, "batch {batch} of a block is beyond BATCHES_MAX");
        assert!(height < 1 << 48, "height {height} needs more than 48 bits");
        Version(height << 16 | u64::from(batch + 1))
    }

    /// After every batch of the block at `height`, before the next block: where a checkpoint stands.
    ///
    /// # Panics
    /// As [`Version::after_batch`].
    pub fn after_block(height: u64) -> Version {
        Version(Version::after_batch(height, 0).0 | 0xffff)
    }

    /// As a number, for files: versions are ordered as their numbers are.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The version of a number ([`Version::number`]).
    pub fn of_number(number: u64) -> Version {
        Version(number)
    }

    /// Height of the block.
    pub fn height(self) -> u64 {
        self.0 >> 16
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_batches_are() {
        let order = [
            Version::GENESIS,
            Version::after_batch(1, 0),
            Version::after_batch(1, 1),
            Version::after_block(1),
            Version::after_batch(2, 0),
        ];
        assert!(order.is_sorted());
        assert_eq!(order[3].height(), 1);
    }
}
