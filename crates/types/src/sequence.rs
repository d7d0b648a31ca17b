use crate::TableId;
use borsh::{BorshDeserialize, BorshSerialize};

/// A sequence. Its values are (height, index of the transaction in its block, draw) in one bigint, so that drawing one
/// needs no state and is no conflict: they are unique and ascending, and have gaps.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Sequence {
    /// Its name, which no table, view or index has.
    pub name: String,
    /// The column that it belongs to, and goes with.
    pub owner: Option<SequenceOwner>,
}

/// The column that a sequence belongs to.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SequenceOwner {
    /// The table.
    pub table: TableId,
    /// Ordinal of the column.
    pub column: u16,
    /// It is an identity column; `None`: `bigserial`, or OWNED BY.
    pub identity: Option<Generated>,
}

/// What an identity column takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Generated {
    /// Values of the sequence only.
    Always,
    /// Given values too.
    ByDefault,
}

impl Sequence {
    const INDEX_BITS: u32 = 16;
    const DRAW_BITS: u32 = 14;
    /// Values that one transaction may draw.
    pub const DRAWS_MAX: u32 = 1 << Sequence::DRAW_BITS;

    /// The value of a draw; `None` beyond the largest one.
    pub fn value(height: u64, index: u32, draw: u32) -> Option<i64> {
        let fits = height >> (63 - Sequence::INDEX_BITS - Sequence::DRAW_BITS) == 0
            && index >> Sequence::INDEX_BITS == 0
            && draw < Sequence::DRAWS_MAX;
        let place = height << Sequence::INDEX_BITS | u64::from(index);
        fits.then(|| (place << Sequence::DRAW_BITS | u64::from(draw)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_ascend_with_height_index_and_draw() {
        let largest = (u64::from(u32::MAX) << 1) | 1;
        let places = [
            (0, 0, 0),
            (0, 0, 1),
            (0, 1, 0),
            (1, 0, 0),
            (1, 64_999, 16_383),
            (2, 0, 0),
            (largest, 65_535, 16_383),
        ];
        let values =
            places.map(|(height, index, draw)| Sequence::value(height, index, draw).expect("it fits"));
        assert!(values.is_sorted_by(|a, b| a < b));
        assert_eq!(values[6], i64::MAX);
        assert_eq!(Sequence::value(largest + 1, 0, 0), None);
        assert_eq!(Sequence::value(0, 1 << 16, 0), None);
        assert_eq!(Sequence::value(0, 0, Sequence::DRAWS_MAX), None);
    }
}
