//! Times of day with an offset from UTC: values of `time with time zone`.

use super::format::format_time;
use super::{
    Interval, MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, check_timestamp, is_finite_date,
    is_finite_timestamp, time_of_timestamp, timestamp_of_date,
};
use crate::session_format::session_zone;
use crate::time_zone::{Displacement, TimeZone, shown_displacement};
use crate::unknown_types::check_known;
use crate::{ExecutionVersion, SqlError, SqlState};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;

/// What the encoding of a value begins with.
const TIMETZ_TAG: u8 = 27;

/// The offset is less than 16 hours.
const WEST_END: i32 = 16 * 3_600;

/// A time of day and the offset of its zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, BorshSerialize)]
pub struct TimeTz {
    /// Microseconds since midnight; 24:00:00 is a time.
    pub microseconds: i64,
    /// Seconds west of Greenwich, as PostgreSQL counts: `+02` is -7200.
    pub west: i32,
}

impl TimeTz {
    /// A time of day where clocks are so many seconds ahead of UTC.
    ///
    /// # Errors
    /// `22009` where these are 16 hours or more.
    pub fn new(microseconds: i64, east: Displacement) -> Result<TimeTz, SqlError> {
        let time = TimeTz { microseconds, west: i32::try_from(-east).unwrap_or(WEST_END) };
        match time.is_in_range() {
            true => Ok(time),
            false => Err(SqlError::new(SqlState(*b"22009"), "time zone displacement out of range")),
        }
    }

    /// A time of day in the zone of the session.
    ///
    /// # Errors
    /// `0A000` where clocks are put forward and back there, `22009` as [`TimeTz::new`].
    pub fn of_session(microseconds: i64) -> Result<TimeTz, SqlError> {
        TimeTz::new(microseconds, session_zone().lasting_displacement()?)
    }

    /// What clocks of the session's zone show at an instant; `None` of the infinities.
    ///
    /// # Errors
    /// `22009` as [`TimeTz::new`].
    pub fn of_instant(instant: i64) -> Result<Option<TimeTz>, SqlError> {
        if !is_finite_timestamp(instant) {
            return Ok(None);
        }
        let east = session_zone().displacement_at(instant);
        let local = instant.saturating_add(east * MICROSECONDS_PER_SECOND);
        TimeTz::new(time_of_timestamp(local), east).map(Some)
    }

    /// The same time as clocks of another zone show it.
    ///
    /// # Errors
    /// `0A000` where clocks are put forward and back there, `22009` as [`TimeTz::new`].
    pub fn at_zone(self, zone: TimeZone) -> Result<TimeTz, SqlError> {
        let east = zone.lasting_displacement()?;
        TimeTz::new(time_of_timestamp(self.utc() + east * MICROSECONDS_PER_SECOND), east)
    }

    /// So much later, around midnight. Only what is less than a day counts.
    #[must_use]
    pub fn later(self, microseconds: i64) -> TimeTz {
        let moved = self.microseconds + microseconds % MICROSECONDS_PER_DAY;
        TimeTz { microseconds: time_of_timestamp(moved), ..self }
    }

    /// So much earlier.
    #[must_use]
    pub fn earlier(self, interval: Interval) -> TimeTz {
        self.later(-(interval.microseconds % MICROSECONDS_PER_DAY))
    }

    /// When it is on a date.
    ///
    /// # Errors
    /// `22008` where that is out of range.
    pub fn on(self, date: i32) -> Result<i64, SqlError> {
        let midnight = timestamp_of_date(date)?;
        if !is_finite_date(date) {
            return Ok(midnight);
        }
        check_timestamp(midnight.checked_add(self.utc()))
            .map_err(|error| SqlError { message: "date out of range for timestamp".to_string(), ..error })
    }

    /// The time of day in UTC, which may be before midnight or behind it.
    pub fn utc(self) -> i64 {
        self.microseconds + i64::from(self.west) * MICROSECONDS_PER_SECOND
    }

    /// Compares as PostgreSQL does: by the time in UTC, then by the offset.
    pub fn compare(&self, other: &TimeTz) -> Ordering {
        self.utc().cmp(&other.utc()).then(self.west.cmp(&other.west))
    }

    fn is_in_range(self) -> bool {
        (0..=MICROSECONDS_PER_DAY).contains(&self.microseconds)
            && (1 - WEST_END..WEST_END).contains(&self.west)
    }
}

impl BorshDeserialize for TimeTz {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<TimeTz> {
        check_known(TIMETZ_TAG, ExecutionVersion::V10)?;
        let time =
            TimeTz { microseconds: i64::deserialize_reader(reader)?, west: i32::deserialize_reader(reader)? };
        match time.is_in_range() {
            true => Ok(time),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "expected a time with its zone")),
        }
    }
}

/// Writes a `time with time zone`, in all styles alike: `23:01:02.5+01`.
pub(crate) fn format_time_tz(time: TimeTz) -> String {
    format_time(time.microseconds) + &shown_displacement(-i64::from(time.west))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Value, parse_value, with_types_of};

    fn read(text: &str) -> TimeTz {
        match parse_value(text, DataType::TimeTz) {
            Ok(Value::TimeTz(time)) => time,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn times_sort_by_the_instant_then_by_the_zone() {
        // As PostgreSQL sorts them.
        let sorted = ["00:00+15", "12:00+02", "11:00+01", "10:00+00", "11:00+00", "24:00-15:59:59"].map(read);
        for pair in sorted.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn times_go_around_midnight() {
        let hours = |hours: i64| Interval { microseconds: hours * 3_600_000_000, ..Interval::default() };
        assert_eq!(read("23:00+02").later(hours(2).microseconds), read("01:00+02"));
        assert_eq!(read("01:00+02").earlier(hours(26)), read("23:00+02"));
        assert_eq!(read("24:00+02").later(0), read("00:00+02"));
        assert_eq!(
            read("01:00+02").earlier(Interval { microseconds: i64::MIN, ..Interval::default() }),
            read("05:00:54.775808+02")
        );
        let moved = |text, east| read(text).at_zone(TimeZone::Fixed(east));
        assert_eq!(moved("23:00-05", 0), Ok(read("04:00+00")));
        assert_eq!(moved("01:00+05", -3_600), Ok(read("19:00-01")));
        assert_eq!(moved("01:00+05", 57_600).map_err(|error| error.state), Err(SqlState(*b"22009")));
    }

    #[test]
    fn only_times_within_a_day_and_a_zone_are_decoded() {
        for (microseconds, west, is_time) in [
            (0, 0, true),
            (MICROSECONDS_PER_DAY, 57_599, true),
            (1, -57_599, true),
            (MICROSECONDS_PER_DAY + 1, 0, false),
            (-1, 0, false),
            (0, 57_600, false),
            (0, -57_600, false),
            (0, i32::MIN, false),
        ] {
            let value = Value::TimeTz(TimeTz { microseconds, west });
            let bytes = borsh::to_vec(&value).expect("a value");
            assert_eq!(Value::try_from_slice(&bytes).ok() == Some(value), is_time, "{microseconds} {west}");
            let before = with_types_of(ExecutionVersion::V9, || Value::try_from_slice(&bytes));
            let expected = format!("Unexpected variant tag: {TIMETZ_TAG}");
            assert_eq!(before.map_err(|error| error.to_string()), Err(expected));
        }
    }
}
