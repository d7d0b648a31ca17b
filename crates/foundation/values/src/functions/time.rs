//! Functions of dates, times and intervals.

use crate::functions::signature::Signature;
use crate::functions::to_char::to_char;
use crate::functions::{Function, of_text};
use types::datetime::{
    age, extract, is_finite_date, is_finite_timestamp, justify_days, justify_hours, justify_interval,
    make_date, make_interval, make_time, make_timestamp, timestamp_of_date, timestamp_of_epoch, truncate,
};
use types::{DataType, SqlError, Value};

/// A function of dates, times and intervals that is NULL where an argument is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFunction {
    /// `date_part(field, value)`, as a double
    DatePart,
    /// `extract(field from value)`, exact
    Extract,
    /// `date_trunc(field, value)`
    DateTrunc,
    /// `age(timestamp, timestamp)`
    Age,
    /// `justify_hours(interval)`
    JustifyHours,
    /// `justify_days(interval)`
    JustifyDays,
    /// `justify_interval(interval)`
    JustifyInterval,
    /// `make_date(year, month, day)`
    MakeDate,
    /// `make_time(hour, minute, second)`
    MakeTime,
    /// `make_timestamp(year, month, day, hour, minute, second)`
    MakeTimestamp,
    /// `make_timestamptz(year, month, day, hour, minute, second)`, in UTC
    MakeTimestampTz,
    /// `make_interval(years, months, weeks, days, hours, minutes, seconds)`
    MakeInterval,
    /// `to_timestamp(seconds since 1970)`
    OfEpoch,
    /// `to_char(value, template)`
    ToChar,
    /// `to_date(text, template)`
    ToDate,
    /// `to_timestamp(text, template)`
    ToTimestamp,
    /// `isfinite(value)`
    IsFinite,
}

impl TimeFunction {
    /// The function's value; `None` where it was bound for other types.
    pub fn of(self, values: &[Value]) -> Option<Result<Value, SqlError>> {
        Some(match (self, values) {
            (TimeFunction::DatePart, [Value::Text(field), value]) => {
                let number = extract(field, value);
                number.and_then(|number| match number {
                    Some(number) => number.to_f64().map(Value::Double),
                    None => Ok(Value::Null),
                })
            }
            (TimeFunction::Extract, [Value::Text(field), value]) => {
                extract(field, value).map(|number| number.map_or(Value::Null, Value::Numeric))
            }
            (TimeFunction::DateTrunc, [Value::Text(field), value]) => truncate(field, value),
            (TimeFunction::Age, [Value::Timestamp(at), Value::Timestamp(since)])
            | (TimeFunction::Age, [Value::TimestampTz(at), Value::TimestampTz(since)]) => {
                age(*at, *since).map(Value::Interval)
            }
            (TimeFunction::JustifyHours, [Value::Interval(interval)]) => {
                justify_hours(*interval).map(Value::Interval)
            }
            (TimeFunction::JustifyDays, [Value::Interval(interval)]) => {
                justify_days(*interval).map(Value::Interval)
            }
            (TimeFunction::JustifyInterval, [Value::Interval(interval)]) => {
                justify_interval(*interval).map(Value::Interval)
            }
            (TimeFunction::MakeDate, [Value::Integer(year), Value::Integer(month), Value::Integer(day)]) => {
                make_date(*year, *month, *day).map(Value::Date)
            }
            (
                TimeFunction::MakeTime,
                [Value::Integer(hour), Value::Integer(minute), Value::Double(second)],
            ) => make_time(*hour, *minute, *second).map(Value::Time),
            (TimeFunction::MakeTimestamp, values) => {
                let (whole, second) = parts::<5>(values)?;
                let [year, month, day, hour, minute] = whole;
                make_timestamp(year, month, day, hour, minute, second).map(Value::Timestamp)
            }
            (TimeFunction::MakeTimestampTz, values) => {
                let (whole, second) = parts::<5>(values)?;
                let [year, month, day, hour, minute] = whole;
                make_timestamp(year, month, day, hour, minute, second).map(Value::TimestampTz)
            }
            (TimeFunction::MakeInterval, values) => {
                let (whole, seconds) = parts::<6>(values)?;
                make_interval(whole, seconds).map(Value::Interval)
            }
            (TimeFunction::OfEpoch, [Value::Double(seconds)]) => {
                timestamp_of_epoch(*seconds).map(Value::TimestampTz)
            }
            (TimeFunction::ToChar, [value, Value::Text(template)]) => return to_char(value, template),
            (TimeFunction::ToDate, [Value::Text(text), Value::Text(template)]) => {
                of_text::read(text, template).map(|(date, _)| Value::Date(date))
            }
            (TimeFunction::ToTimestamp, [Value::Text(text), Value::Text(template)]) => {
                of_text::read(text, template)
                    .and_then(|(date, time)| Ok(Value::TimestampTz(timestamp_of_date(date)? + time)))
            }
            (TimeFunction::IsFinite, [value]) => Ok(Value::Boolean(match value {
                Value::Date(date) => is_finite_date(*date),
                Value::Timestamp(at) | Value::TimestampTz(at) => is_finite_timestamp(*at),
                _ => true,
            })),
            _ => return None,
        })
    }
}

/// Whole numbers, and seconds behind them.
fn parts<const COUNT: usize>(values: &[Value]) -> Option<([i32; COUNT], f64)> {
    let (Value::Double(seconds), whole) = values.split_last()? else { return None };
    if whole.len() != COUNT {
        return None;
    }
    let mut numbers = [0; COUNT];
    for (number, value) in numbers.iter_mut().zip(whole) {
        let Value::Integer(value) = value else { return None };
        *number = *value;
    }
    Some((numbers, *seconds))
}

/// The function that PostgreSQL calls; `None` where there is none.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use DataType::{Date, Double, Integer, Interval, Time, Timestamp, TimestampTz};
    const TEXT: DataType = DataType::Text(None);
    let signature = |function, arguments: &[DataType], result| {
        Some(Signature { function: Function::Time(function), arguments: arguments.to_vec(), result })
    };
    match (name, arguments) {
        ("date_part", [_, value @ (Timestamp | TimestampTz | Time | Interval)]) => {
            signature(TimeFunction::DatePart, &[TEXT, *value], Double)
        }
        ("date_part", [_, Date]) => signature(TimeFunction::DatePart, &[TEXT, Timestamp], Double),
        ("extract", [_, value @ (Date | Timestamp | TimestampTz | Time | Interval)]) => {
            signature(TimeFunction::Extract, &[TEXT, *value], DataType::Numeric(None))
        }
        ("date_trunc", [_, value @ (Timestamp | TimestampTz | Interval)]) => {
            signature(TimeFunction::DateTrunc, &[TEXT, *value], *value)
        }
        ("date_trunc", [_, Date]) => signature(TimeFunction::DateTrunc, &[TEXT, TimestampTz], TimestampTz),
        ("date_trunc", [_, Time]) => signature(TimeFunction::DateTrunc, &[TEXT, Interval], Interval),
        ("age", [Timestamp, Timestamp | DataType::Unknown] | [DataType::Unknown, Timestamp]) => {
            signature(TimeFunction::Age, &[Timestamp, Timestamp], Interval)
        }
        ("age", [_, _]) => signature(TimeFunction::Age, &[TimestampTz, TimestampTz], Interval),
        ("justify_hours", [_]) => signature(TimeFunction::JustifyHours, &[Interval], Interval),
        ("justify_days", [_]) => signature(TimeFunction::JustifyDays, &[Interval], Interval),
        ("justify_interval", [_]) => signature(TimeFunction::JustifyInterval, &[Interval], Interval),
        ("make_date", [_, _, _]) => signature(TimeFunction::MakeDate, &[Integer; 3], Date),
        ("make_time", [_, _, _]) => signature(TimeFunction::MakeTime, &[Integer, Integer, Double], Time),
        ("make_timestamp", [_, _, _, _, _, _]) => signature(
            TimeFunction::MakeTimestamp,
            &[Integer, Integer, Integer, Integer, Integer, Double],
            Timestamp,
        ),
        ("make_timestamptz", [_, _, _, _, _, _]) => signature(
            TimeFunction::MakeTimestampTz,
            &[Integer, Integer, Integer, Integer, Integer, Double],
            TimestampTz,
        ),
        ("make_interval", [_, _, _, _, _, _, _]) => signature(
            TimeFunction::MakeInterval,
            &[Integer, Integer, Integer, Integer, Integer, Integer, Double],
            Interval,
        ),
        ("to_timestamp", [_]) => signature(TimeFunction::OfEpoch, &[Double], TimestampTz),
        ("to_char", [value @ (Timestamp | TimestampTz | Interval), _]) => {
            signature(TimeFunction::ToChar, &[*value, TEXT], TEXT)
        }
        ("to_char", [Date, _]) => signature(TimeFunction::ToChar, &[TimestampTz, TEXT], TEXT),
        ("to_char", [Time, _]) => signature(TimeFunction::ToChar, &[Interval, TEXT], TEXT),
        ("to_date", [_, _]) => signature(TimeFunction::ToDate, &[TEXT, TEXT], Date),
        ("to_timestamp", [_, _]) => signature(TimeFunction::ToTimestamp, &[TEXT, TEXT], TimestampTz),
        ("isfinite", [value @ (Date | Timestamp | TimestampTz | Interval)]) => {
            signature(TimeFunction::IsFinite, &[*value], DataType::Boolean)
        }
        _ => None,
    }
}
