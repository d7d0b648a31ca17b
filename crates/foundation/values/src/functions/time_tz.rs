//! Functions and operators of `time with time zone`.

use crate::functions::entry::Argument::{OneOf, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Function, code};
use crate::functions::time::{zone_of_interval, zone_units};
use DataType::{Date, Double, Interval, TimeTz, TimestampTz};
use types::datetime::extract;
use types::time_zone::TimeZone;
use types::{DataType, ExecutionVersion, Value};

const TEXT: DataType = DataType::Text(None);
const V10: ExecutionVersion = ExecutionVersion::V10;

pub(super) static FUNCTIONS: &[Function] = &[
    // As a double, where extract is exact.
    Function::new(
        &["date_part"],
        &[To(TEXT), OneOf(&[TimeTz])],
        Is(Double),
        code!(
            // PostgreSQL adds them up as doubles.
            [Value::Text(field), Value::TimeTz(time)] if field.eq_ignore_ascii_case("epoch") => {
                Ok(Value::Double(time.microseconds as f64 / 1e6 + f64::from(time.west)))
            },
            [Value::Text(field), value] => match extract(field, value)? {
                Some(number) => number.to_f64().map(Value::Double),
                None => Ok(Value::Null),
            },
        ),
    )
    .since(V10),
    Function::new(
        &["extract"],
        &[To(TEXT), OneOf(&[TimeTz])],
        Is(DataType::Numeric(None)),
        code!([Value::Text(field), value] => {
            extract(field, value).map(|number| number.map_or(Value::Null, Value::Numeric))
        }),
    )
    .since(V10),
    Function::new(
        &["timezone"],
        &[OneOf(&[Interval]), OneOf(&[TimeTz])],
        Is(TimeTz),
        code!([Value::Interval(interval), Value::TimeTz(time)] => {
            time.at_zone(zone_of_interval(*interval)?).map(Value::TimeTz)
        }),
    )
    .since(V10),
    Function::new(
        &["timezone"],
        &[To(TEXT), OneOf(&[TimeTz])],
        Is(TimeTz),
        code!([Value::Text(zone), Value::TimeTz(time)] => {
            time.at_zone(TimeZone::named(zone)?).map(Value::TimeTz)
        }),
    )
    .stable()
    .costs(zone_units)
    .since(V10),
    Function::new(
        &["+"],
        &[OneOf(&[TimeTz]), OneOf(&[Interval])],
        Is(TimeTz),
        code!([Value::TimeTz(time), Value::Interval(interval)] => {
            Ok(Value::TimeTz(time.later(interval.microseconds)))
        }),
    )
    .since(V10),
    Function::new(
        &["+"],
        &[OneOf(&[Interval]), OneOf(&[TimeTz])],
        Is(TimeTz),
        code!([Value::Interval(interval), Value::TimeTz(time)] => {
            Ok(Value::TimeTz(time.later(interval.microseconds)))
        }),
    )
    .since(V10),
    Function::new(
        &["-"],
        &[OneOf(&[TimeTz]), OneOf(&[Interval])],
        Is(TimeTz),
        code!([Value::TimeTz(time), Value::Interval(interval)] => Ok(Value::TimeTz(time.earlier(*interval)))),
    )
    .since(V10),
    Function::new(
        &["+"],
        &[OneOf(&[Date]), OneOf(&[TimeTz])],
        Is(TimestampTz),
        code!([Value::Date(date), Value::TimeTz(time)] => time.on(*date).map(Value::TimestampTz)),
    )
    .since(V10),
    Function::new(
        &["+"],
        &[OneOf(&[TimeTz]), OneOf(&[Date])],
        Is(TimestampTz),
        code!([Value::TimeTz(time), Value::Date(date)] => time.on(*date).map(Value::TimestampTz)),
    )
    .since(V10),
];
