use crate::{DataType, Row, TableId, Value};
use borsh::{BorshDeserialize, BorshSerialize};

/// A sequence. Unless it counts, drawing a value needs no state and is no conflict: it is made of the place where it is
/// drawn ([`Sequence::value`]), or, in a transaction block, of what is known before there is a place
/// ([`Sequence::session_value`]). Values are unique and have gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its name, which no table, view or index has.
    pub name: String,
    /// The column that it belongs to, and goes with.
    pub owner: Option<SequenceOwner>,
    /// It counts: 1, 2, 3. Whoever draws reads and writes the last value, and is in conflict with all others who do.
    pub counter: Option<Counter>,
    /// CACHE, at least 1. Nobody keeps values for a session, whatever it says; before execution version 13 it was forgotten.
    pub cache: i64,
}

impl BorshSerialize for Sequence {
    /// Where CACHE says nothing as it was written before it was kept.
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        (&self.name, &self.owner).serialize(writer)?;
        match self.cache {
            1 => self.counter.serialize(writer),
            cache => (2_u8, cache, &self.counter).serialize(writer),
        }
    }
}

impl BorshDeserialize for Sequence {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Sequence> {
        let invalid = |message: String| borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message);
        let (name, owner) = <(String, Option<SequenceOwner>)>::deserialize_reader(reader)?;
        let (counter, cache) = match u8::deserialize_reader(reader)? {
            0 => (None, 1),
            1 => (Some(Counter::deserialize_reader(reader)?), 1),
            2 => match <(i64, Option<Counter>)>::deserialize_reader(reader)? {
                (cache @ 2.., counter) => (counter, cache),
                // One of 1 is not written.
                (cache, _) => return Err(invalid(format!("expected a CACHE of 2 and more, found {cache}"))),
            },
            kind => {
                return Err(invalid(format!("expected how a sequence counts, 0 to 2, found {kind}")));
            }
        };
        Ok(Sequence { name, owner, counter, cache })
    }
}

/// How a sequence counts. Its last value stands in a row, like data.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Counter {
    /// The number under which the row stands.
    pub table: TableId,
    /// `smallint`, `integer` or `bigint`.
    pub data_type: DataType,
    /// The first value.
    pub start: i64,
    /// What is added from one value to the next; not 0.
    pub increment: i64,
    /// The least value.
    pub smallest: i64,
    /// The greatest value.
    pub largest: i64,
    /// Behind the last value comes the first one of the other end.
    pub cycles: bool,
}

impl Counter {
    /// Columns of the row: the last value, and whether it has been drawn.
    pub const COLUMNS: usize = 2;

    /// The row of a counter whose next value is this one, or, where it has been drawn, the one behind it.
    pub fn row(value: i64, is_drawn: bool) -> Row {
        Row::from([Value::BigInt(value), Value::Boolean(is_drawn)])
    }

    /// The value that is drawn next; `None` where it has come to its end. `row`: as it stands; `None` before the first draw.
    pub fn next(&self, row: Option<&Row>) -> Option<i64> {
        let last = match row.map(|row| &row[..]) {
            Some([Value::BigInt(last), Value::Boolean(true)]) => *last,
            Some([Value::BigInt(next), ..]) => return Some(*next),
            _ => return Some(self.start),
        };
        let next = last.checked_add(self.increment);
        let next = next.filter(|next| (self.smallest..=self.largest).contains(next));
        let other_end = if self.increment > 0 { self.smallest } else { self.largest };
        next.or_else(|| self.cycles.then_some(other_end))
    }
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

    /// What is set in values that transaction blocks draw: they are larger than all others.
    const SESSION: i64 = 1 << 62;
    /// Organisations that can be told apart in them.
    const ORGANISATION_BITS: u32 = 8;
    /// 2025-01-01 00:00 UTC, from which their milliseconds are counted: up to the year 2059.
    const SESSION_EPOCH_MS: u64 = 1_735_689_600_000;

    /// The value of a draw at a place: (height, index of the transaction in its block, draw), ascending; `None` beyond the
    /// largest one.
    pub fn value(height: u64, index: u32, draw: u32) -> Option<i64> {
        let fits = height >> (62 - Sequence::INDEX_BITS - Sequence::DRAW_BITS) == 0
            && index >> Sequence::INDEX_BITS == 0
            && draw < Sequence::DRAWS_MAX;
        let place = height << Sequence::INDEX_BITS | u64::from(index);
        fits.then(|| (place << Sequence::DRAW_BITS | u64::from(draw)) as i64)
    }

    /// The value of a draw in a transaction block whose time is `now_ms`, in milliseconds since 1970-01-01 00:00 UTC, and
    /// which a client of this organisation signs: (time, organisation, draw); `None` beyond the largest one. A gateway gives
    /// no two blocks the same time.
    pub fn session_value(now_ms: u64, organisation: u16, draw: u32) -> Option<i64> {
        const MS_BITS: u32 = 62 - Sequence::ORGANISATION_BITS - Sequence::DRAW_BITS;
        let time = now_ms.checked_sub(Sequence::SESSION_EPOCH_MS)?;
        let fits = time >> MS_BITS == 0
            && organisation >> Sequence::ORGANISATION_BITS == 0
            && draw < Sequence::DRAWS_MAX;
        let session = time << Sequence::ORGANISATION_BITS | u64::from(organisation);
        fits.then(|| Sequence::SESSION | (session << Sequence::DRAW_BITS | u64::from(draw)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    #[test]
    fn values_ascend_with_height_index_and_draw() {
        let largest = u64::from(u32::MAX);
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
        assert_eq!(values[6], (1 << 62) - 1);
        assert_eq!(Sequence::value(largest + 1, 0, 0), None);
        assert_eq!(Sequence::value(0, 1 << 16, 0), None);
        assert_eq!(Sequence::value(0, 0, Sequence::DRAWS_MAX), None);
    }

    #[test]
    fn sequences_without_a_cache_are_encoded_as_before_there_were_any() {
        let counter = Counter {
            table: TableId(1),
            data_type: DataType::BigInt,
            start: 1,
            increment: 1,
            smallest: 1,
            largest: 9,
            cycles: false,
        };
        for counter in [None, Some(counter)] {
            let sequence =
                |cache| Sequence { name: "s".to_string(), owner: None, counter: counter.clone(), cache };
            let before = encode(&("s".to_string(), None::<SequenceOwner>, &counter));
            assert_eq!(encode(&sequence(1)), before);
            for cache in [1, 2, i64::MAX] {
                let bytes = encode(&sequence(cache));
                assert_eq!(decode_exactly::<Sequence>(&bytes).expect("it round-trips"), sequence(cache));
                assert!((0..bytes.len()).all(|length| decode_exactly::<Sequence>(&bytes[..length]).is_err()));
            }
            let unwritten = encode(&("s".to_string(), None::<SequenceOwner>, 2_u8, 1_i64, &counter));
            assert!(decode_exactly::<Sequence>(&unwritten).is_err());
        }
    }

    #[test]
    fn counters_count_within_their_bounds() {
        let counter = |increment, cycles| Counter {
            table: TableId(1),
            data_type: DataType::SmallInt,
            start: 3,
            increment,
            smallest: 1,
            largest: 5,
            cycles,
        };
        let draw = |counter: &Counter, count: usize| {
            let mut row = None;
            let mut values = Vec::new();
            for _ in 0..count {
                let value = counter.next(row.as_ref());
                values.push(value);
                row = value.map(|value| Counter::row(value, true)).or(row);
            }
            values
        };
        assert_eq!(draw(&counter(2, false), 3), [Some(3), Some(5), None]);
        assert_eq!(draw(&counter(2, true), 4), [Some(3), Some(5), Some(1), Some(3)]);
        assert_eq!(draw(&counter(-2, true), 4), [Some(3), Some(1), Some(5), Some(3)]);
        assert_eq!(counter(1, false).next(Some(&Counter::row(4, false))), Some(4));
        let far = Counter { largest: i64::MAX, increment: i64::MAX, ..counter(1, false) };
        assert_eq!(far.next(Some(&Counter::row(4, true))), None);
    }

    #[test]
    fn values_of_blocks_are_larger_and_ascend_with_time_organisation_and_draw() {
        let first = 1_735_689_600_000;
        let last = first + (1 << 40) - 1;
        let blocks = [
            (first, 0, 0),
            (first, 0, 1),
            (first, 1, 0),
            (first, 255, 16_383),
            (first + 1, 0, 0),
            (last, 255, 16_383),
        ];
        let values = blocks.map(|(now_ms, organisation, draw)| {
            Sequence::session_value(now_ms, organisation, draw).expect("it fits")
        });
        assert!(values.is_sorted_by(|a, b| a < b));
        assert!(Sequence::value(u64::from(u32::MAX), 65_535, 16_383) < Some(values[0]));
        assert_eq!(values[5], i64::MAX);
        assert_eq!(Sequence::session_value(first - 1, 0, 0), None);
        assert_eq!(Sequence::session_value(last + 1, 0, 0), None);
        assert_eq!(Sequence::session_value(first, 256, 0), None);
        assert_eq!(Sequence::session_value(first, 0, Sequence::DRAWS_MAX), None);
    }
}
