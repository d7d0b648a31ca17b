use borsh::{BorshDeserialize, BorshSerialize};
use std::ops::{BitAnd, BitOr, BitOrAssign};

/// A set of columns of one table, with `exists` as a column of every row.
///
/// Bit 0 is `exists`, bit `1 + c` column `c`. Columns from 62 upwards share the last bit: conflicts between two of
/// them are then assumed, which costs needless order and never correctness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, BorshSerialize, BorshDeserialize)]
pub struct ColumnSet(u64);

impl ColumnSet {
    /// No column.
    pub const EMPTY: ColumnSet = ColumnSet(0);
    /// Whether the row exists.
    pub const EXISTS: ColumnSet = ColumnSet(1);
    /// Every column and `exists`: what an insert or a delete writes.
    pub const ALL: ColumnSet = ColumnSet(u64::MAX);
    /// How many different bits a set can hold.
    pub const WIDTH: usize = 64;

    /// The set of one column, counted from 0.
    pub fn column(ordinal: usize) -> ColumnSet {
        ColumnSet(1 << (ordinal + 1).min(63))
    }

    /// True where nothing is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True where the sets share a column.
    pub fn intersects(self, other: ColumnSet) -> bool {
        self.0 & other.0 != 0
    }

    /// True where every column of `other` is in this set.
    pub fn contains(self, other: ColumnSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The columns of this set that are not in `other`.
    #[must_use]
    pub fn without(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 & !other.0)
    }

    /// Positions of the bits in the set, ascending: 0 is `exists`, `1 + c` column `c`.
    pub fn bits(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (bit < 64).then_some(bit)
        })
    }
}

impl BitOr for ColumnSet {
    type Output = ColumnSet;
    fn bitor(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 | other.0)
    }
}

impl BitOrAssign for ColumnSet {
    fn bitor_assign(&mut self, other: ColumnSet) {
        self.0 |= other.0;
    }
}

impl BitAnd for ColumnSet {
    type Output = ColumnSet;
    fn bitand(self, other: ColumnSet) -> ColumnSet {
        ColumnSet(self.0 & other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_columns_share_a_bit_and_near_ones_do_not() {
        assert!(!ColumnSet::column(0).intersects(ColumnSet::EXISTS));
        assert!(!ColumnSet::column(60).intersects(ColumnSet::column(61)));
        assert!(ColumnSet::column(62).intersects(ColumnSet::column(200)));
        assert!(ColumnSet::ALL.contains(ColumnSet::column(200) | ColumnSet::EXISTS));
        assert!(ColumnSet::ALL.without(ColumnSet::EXISTS).contains(ColumnSet::column(0)));
        assert!(!ColumnSet::ALL.without(ColumnSet::EXISTS).intersects(ColumnSet::EXISTS));
        assert_eq!((ColumnSet::EXISTS | ColumnSet::column(2)).bits().collect::<Vec<_>>(), vec![0, 3]);
    }
}
