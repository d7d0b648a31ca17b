//! Types of time that keep fewer than six digits of a second: `timestamp(3)` and its kind.

use super::MICROSECONDS_PER_SECOND;
use super::is_finite_timestamp;
use crate::{DataType, Interval, TimeTz, Value};
use borsh::{BorshDeserialize, BorshSerialize};
use std::io;

/// A type of time whose values can be rounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, BorshSerialize, BorshDeserialize)]
pub enum TimeType {
    /// `timestamp`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// `time`
    Time,
    /// `time with time zone`
    TimeTz,
    /// `interval`
    Interval,
}

impl TimeType {
    /// The type with all six digits.
    pub fn data_type(self) -> DataType {
        match self {
            TimeType::Timestamp => DataType::Timestamp,
            TimeType::TimestampTz => DataType::TimestampTz,
            TimeType::Time => DataType::Time,
            TimeType::TimeTz => DataType::TimeTz,
            TimeType::Interval => DataType::Interval,
        }
    }

    /// The type with so many digits: six are all.
    pub fn rounded(self, digits: u8) -> DataType {
        if digits >= DIGITS_MAX { self.data_type() } else { DataType::Rounded(self, digits) }
    }
}

/// Digits of a second that there are.
const DIGITS_MAX: u8 = 6;

/// Fewer than [`DIGITS_MAX`], because those with all of them are types of their own.
pub(crate) fn read_digits<R: io::Read>(reader: &mut R) -> io::Result<u8> {
    let digits = u8::deserialize_reader(reader)?;
    match digits < DIGITS_MAX {
        true => Ok(digits),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "expected at most 5 digits of a second")),
    }
}

/// The value with so many digits of a second, halves away from zero, as PostgreSQL's `AdjustTimestampForTypmod` rounds.
pub fn round_time(value: Value, digits: u8) -> Value {
    let unit = 10i64.pow(u32::from(DIGITS_MAX.saturating_sub(digits)));
    let rounded = |microseconds: i64| {
        let half = unit / 2;
        match microseconds {
            0.. => microseconds.saturating_add(half) / unit * unit,
            _ => microseconds.saturating_sub(half) / unit * unit,
        }
    };
    debug_assert!(unit <= MICROSECONDS_PER_SECOND);
    match value {
        Value::Timestamp(at) if is_finite_timestamp(at) => Value::Timestamp(rounded(at)),
        Value::TimestampTz(at) if is_finite_timestamp(at) => Value::TimestampTz(rounded(at)),
        Value::Time(at) => Value::Time(rounded(at)),
        Value::TimeTz(at) => Value::TimeTz(TimeTz { microseconds: rounded(at.microseconds), ..at }),
        Value::Interval(span) => {
            Value::Interval(Interval { microseconds: rounded(span.microseconds), ..span })
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{assign, format_value, parse_value};

    /// Answers of PostgreSQL 15.
    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (of, digits, text, expected) in [
            (TimeType::Timestamp, 3, "2026-01-01 00:00:00.0005", "2026-01-01 00:00:00.001"),
            (TimeType::Timestamp, 0, "1999-12-31 23:59:59.5", "1999-12-31 23:59:59"),
            (TimeType::Timestamp, 0, "2026-12-31 23:59:59.5", "2027-01-01 00:00:00"),
            (TimeType::Timestamp, 2, "infinity", "infinity"),
            (TimeType::TimestampTz, 5, "2026-01-01 00:00:00.000005+00", "2026-01-01 00:00:00.00001+00"),
            (TimeType::Time, 0, "23:59:59.9", "24:00:00"),
            (TimeType::Interval, 1, "-00:00:00.05", "-00:00:00.1"),
        ] {
            let value = parse_value(text, of.rounded(digits)).expect(text);
            assert_eq!(format_value(&value).as_deref(), Some(expected), "{text}");
            let assigned = assign(parse_value(text, of.data_type()).expect(text), of.rounded(digits));
            assert_eq!(assigned, Ok(value));
        }
    }

    #[test]
    fn all_digits_are_the_type_itself() {
        assert_eq!(TimeType::Time.rounded(6), DataType::Time);
        let three = TimeType::TimestampTz.rounded(3);
        assert_eq!(three.to_string(), "timestamp(3) with time zone");
        assert_eq!(three.family(), DataType::TimestampTz);
        let mut bytes = crate::encode(&three);
        assert_eq!(crate::decode_exactly::<DataType>(&bytes).ok(), Some(three));
        *bytes.last_mut().expect("digits") = 6;
        assert!(crate::decode_exactly::<DataType>(&bytes).is_err());
    }
}
