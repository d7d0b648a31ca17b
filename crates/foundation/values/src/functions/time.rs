//! Functions of dates, times and intervals.

use crate::functions::entry::Argument::{From, OneOf, Pairs, To};
use crate::functions::entry::Gives::{As, Is};
use crate::functions::entry::{Function, code, misplaced};
use crate::functions::of_text;
use crate::functions::to_char::to_char;
use DataType::{Boolean, Date, Double, Integer, Interval, Time, Timestamp, TimestampTz, Unknown};
use types::datetime::{
    MICROSECONDS_PER_SECOND, age, extract, format_interval, is_finite_date, is_finite_timestamp,
    justify_days, justify_hours, justify_interval, make_date, make_interval, make_time, make_timestamp,
    timestamp_of_date, timestamp_of_epoch, truncate, truncate_instant,
};
use types::session_format::{session_instant_of, session_local_of};
use types::time_zone::TimeZone;
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value, round_time};

const TEXT: DataType = DataType::Text(None);

/// What a part is taken of.
const DATE_PARTS: &[(DataType, DataType)] = &[
    (Timestamp, Timestamp),
    (TimestampTz, TimestampTz),
    (Time, Time),
    (Interval, Interval),
    (Date, Timestamp),
];

/// As PostgreSQL prefers it, a date is an instant and a time is an interval.
const ZONED: &[(DataType, DataType)] = &[
    (Timestamp, Timestamp),
    (TimestampTz, TimestampTz),
    (Interval, Interval),
    (Date, TimestampTz),
    (Time, Interval),
];

pub(super) static FUNCTIONS: &[Function] = &[
    // As a double, where extract is exact.
    Function::new(
        &["date_part"],
        &[To(TEXT), Pairs(DATE_PARTS)],
        Is(Double),
        code!(
            [Value::Text(field), value] => match extract(field, value)? {
                Some(number) => number.to_f64().map(Value::Double),
                None => Ok(Value::Null),
            },
        ),
    )
    .stable_of_instants(),
    Function::new(
        &["extract"],
        &[To(TEXT), OneOf(&[Date, Timestamp, TimestampTz, Time, Interval])],
        Is(DataType::Numeric(None)),
        code!([Value::Text(field), value] => {
            extract(field, value).map(|number| number.map_or(Value::Null, Value::Numeric))
        }),
    )
    .stable_of_instants(),
    Function::new(
        &["date_trunc"],
        &[To(TEXT), Pairs(ZONED)],
        As(1),
        code!(
            [Value::Text(field), value] => truncate(field, value),
        ),
    )
    .stable_of_instants(),
    Function::new(
        &["age"],
        &[From(&[Timestamp, Unknown], Timestamp), From(&[Timestamp, Unknown], Timestamp)],
        Is(Interval),
        code!([Value::Timestamp(at), Value::Timestamp(since)] => age(*at, *since).map(Value::Interval)),
    )
    .when(|types| types.contains(&Timestamp)),
    Function::new(
        &["age"],
        &[To(TimestampTz), To(TimestampTz)],
        Is(Interval),
        code!(
            [Value::TimestampTz(at), Value::TimestampTz(since)] => {
                age(session_local_of(*at)?, session_local_of(*since)?).map(Value::Interval)
            },
        ),
    ),
    Function::new(
        &["justify_hours"],
        &[To(Interval)],
        Is(Interval),
        code!(
            [Value::Interval(interval)] => justify_hours(*interval).map(Value::Interval),
        ),
    ),
    Function::new(
        &["justify_days"],
        &[To(Interval)],
        Is(Interval),
        code!(
            [Value::Interval(interval)] => justify_days(*interval).map(Value::Interval),
        ),
    ),
    Function::new(
        &["justify_interval"],
        &[To(Interval)],
        Is(Interval),
        code!(
            [Value::Interval(interval)] => justify_interval(*interval).map(Value::Interval),
        ),
    ),
    Function::new(
        &["make_date"],
        &[To(Integer), To(Integer), To(Integer)],
        Is(Date),
        code!(
            [Value::Integer(year), Value::Integer(month), Value::Integer(day)] => {
                make_date(*year, *month, *day).map(Value::Date)
            }
        ),
    ),
    Function::new(
        &["make_time"],
        &[To(Integer), To(Integer), To(Double)],
        Is(Time),
        code!(
            [Value::Integer(hour), Value::Integer(minute), Value::Double(second)] => {
                make_time(*hour, *minute, *second).map(Value::Time)
            }
        ),
    ),
    Function::new(
        &["make_timestamp"],
        &[To(Integer), To(Integer), To(Integer), To(Integer), To(Integer), To(Double)],
        Is(Timestamp),
        |values| local(values).map(Value::Timestamp),
    ),
    // As clocks of the session's zone show it.
    Function::new(
        &["make_timestamptz"],
        &[To(Integer), To(Integer), To(Integer), To(Integer), To(Integer), To(Double)],
        Is(TimestampTz),
        |values| session_instant_of(local(values)?).map(Value::TimestampTz),
    )
    .stable(),
    // Years, months, weeks, days, hours, minutes and seconds.
    Function::new(
        &["make_interval"],
        &[To(Integer), To(Integer), To(Integer), To(Integer), To(Integer), To(Integer), To(Double)],
        Is(Interval),
        |values| {
            let (whole, seconds) = parts::<6>(values)?;
            make_interval(whole, seconds).map(Value::Interval)
        },
    ),
    // Of the seconds since 1970.
    Function::new(
        &["to_timestamp"],
        &[To(Double)],
        Is(TimestampTz),
        code!(
            [Value::Double(seconds)] => timestamp_of_epoch(*seconds).map(Value::TimestampTz),
        ),
    )
    .shown_as("ofepoch"),
    Function::new(
        &["to_timestamp"],
        &[To(TEXT), To(TEXT)],
        Is(TimestampTz),
        code!(
            [Value::Text(text), Value::Text(template)] => {
                let (date, time) = of_text::read(text, template)?;
                let local = timestamp_of_date(date)? + time;
                session_instant_of(local).map(Value::TimestampTz)
            }
        ),
    )
    .stable(),
    Function::new(
        &["to_date"],
        &[To(TEXT), To(TEXT)],
        Is(Date),
        code!(
            [Value::Text(text), Value::Text(template)] => {
                of_text::read(text, template).map(|(date, _)| Value::Date(date))
            }
        ),
    )
    .stable(),
    Function::new(
        &["to_char"],
        &[Pairs(ZONED), To(TEXT)],
        Is(TEXT),
        code!(
            [value, Value::Text(template)] => to_char(value, template),
        ),
    )
    .stable(),
    Function::new(
        &["isfinite"],
        &[OneOf(&[Date, Timestamp, TimestampTz, Interval])],
        Is(Boolean),
        code!(
            [Value::Date(date)] => Ok(Value::Boolean(is_finite_date(*date))),
            [Value::Timestamp(at) | Value::TimestampTz(at)] => Ok(Value::Boolean(is_finite_timestamp(*at))),
            [_] => Ok(Value::Boolean(true)),
        ),
    ),
];

/// Functions that the grammar has forms for.
pub(super) static FORMS: &[&[Function]] = &[std::slice::from_ref(&ROUND_TIME)];

/// A time of any kind, and the digits of a second that it keeps.
pub static ROUND_TIME: Function = Function::form(
    &["timestamp(n)"],
    code!(
        [value, Value::Integer(digits)] => {
            Ok(round_time(value.clone(), u8::try_from(*digits).unwrap_or(u8::MAX)))
        }
    ),
)
.never_fails()
.shown_as("round");

/// `AT TIME ZONE` and its kind.
pub(super) static ZONES: &[Function] = &[
    Function::new(
        &["timezone"],
        &[OneOf(&[Interval]), OneOf(&[Timestamp])],
        Is(TimestampTz),
        code!([Value::Interval(interval), Value::Timestamp(local)] => {
            zone_of_interval(*interval)?.instant_of(*local).map(Value::TimestampTz)
        }),
    )
    .since(ExecutionVersion::V8),
    Function::new(
        &["timezone"],
        &[OneOf(&[Interval]), To(TimestampTz)],
        Is(Timestamp),
        code!([Value::Interval(interval), Value::TimestampTz(instant)] => {
            zone_of_interval(*interval)?.local_of(*instant).map(Value::Timestamp)
        }),
    )
    .since(ExecutionVersion::V8),
    Function::new(
        &["timezone"],
        &[To(TEXT), OneOf(&[Timestamp])],
        Is(TimestampTz),
        code!([Value::Text(zone), Value::Timestamp(local)] => {
            TimeZone::named(zone)?.instant_of(*local).map(Value::TimestampTz)
        }),
    )
    .costs(zone_units)
    .since(ExecutionVersion::V8),
    Function::new(
        &["timezone"],
        &[To(TEXT), To(TimestampTz)],
        Is(Timestamp),
        code!([Value::Text(zone), Value::TimestampTz(instant)] => {
            TimeZone::named(zone)?.local_of(*instant).map(Value::Timestamp)
        }),
    )
    .costs(zone_units)
    .since(ExecutionVersion::V8),
    // The begin of a day, a month … as clocks show it there.
    Function::new(
        &["date_trunc"],
        &[To(TEXT), To(TimestampTz), To(TEXT)],
        Is(TimestampTz),
        code!([Value::Text(field), Value::TimestampTz(instant), Value::Text(zone)] => {
            truncate_instant(field, *instant, TimeZone::named(zone)?).map(Value::TimestampTz)
        }),
    )
    .stable()
    .costs(zone_units)
    .since(ExecutionVersion::V8),
    Function::new(
        &["make_timestamptz"],
        &[To(Integer), To(Integer), To(Integer), To(Integer), To(Integer), To(Double), To(TEXT)],
        Is(TimestampTz),
        |values| match values {
            [parts @ .., Value::Text(zone)] => {
                TimeZone::of_parts(zone)?.instant_of(local(parts)?).map(Value::TimestampTz)
            }
            _ => Err(misplaced(values)),
        },
    )
    .stable()
    .costs(zone_units)
    .since(ExecutionVersion::V8),
];

/// The displacement that an interval is.
///
/// # Errors
/// `22023` where it has months or days.
pub(super) fn zone_of_interval(interval: types::Interval) -> Result<TimeZone, SqlError> {
    if interval.months != 0 || interval.days != 0 {
        let shown = format_interval(interval);
        let message = format!("interval time zone \"{shown}\" must not include months or days");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(TimeZone::Fixed(interval.microseconds / MICROSECONDS_PER_SECOND))
}

/// What it takes to find a zone by its name, and a displacement among its own.
pub(super) fn zone_units(_: &[Value]) -> u64 {
    16
}

fn local(values: &[Value]) -> Result<i64, SqlError> {
    let ([year, month, day, hour, minute], second) = parts::<5>(values)?;
    make_timestamp(year, month, day, hour, minute, second)
}

/// Whole numbers, and seconds behind them.
fn parts<const COUNT: usize>(values: &[Value]) -> Result<([i32; COUNT], f64), SqlError> {
    let Some((Value::Double(seconds), whole)) = values.split_last() else { return Err(misplaced(values)) };
    if whole.len() != COUNT {
        return Err(misplaced(values));
    }
    let mut numbers = [0; COUNT];
    for (number, value) in numbers.iter_mut().zip(whole) {
        let Value::Integer(value) = value else { return Err(misplaced(values)) };
        *number = *value;
    }
    Ok((numbers, *seconds))
}
