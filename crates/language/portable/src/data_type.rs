//! The types that every database has alike.

use crate::refusal::refused;
use sqlparser::ast::{self, CharacterLength, ExactNumberInfo, TimezoneInfo};
use types::{DataType, Numeric, SqlError, SqlState};

/// Digits of MariaDB's `decimal`.
pub(crate) const PRECISION_MAX: u16 = 65;
/// Those of them that can stand after the point.
pub(crate) const SCALE_MAX: u16 = 38;
/// Characters of MariaDB's `varchar`, where each can take four bytes.
const VARCHAR_MAX: u32 = 16_383;

const TYPES: &str = "Use boolean, smallint, integer, bigint, numeric(p, s), text, varchar(n), date, timestamp, timestamptz, bytea \
                     or uuid.";

/// Types whose values can be compared with one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Boolean,
    Number,
    Text,
    Date,
    Timestamp,
    TimestampTz,
    Bytea,
    Uuid,
}

/// The kind of a type; `None` where the databases do not have it alike.
pub(crate) fn kind_of(data_type: DataType) -> Option<Kind> {
    Some(match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::SmallInt | DataType::Integer | DataType::BigInt | DataType::Numeric(_) => Kind::Number,
        DataType::Text(_) => Kind::Text,
        DataType::Date => Kind::Date,
        DataType::Timestamp => Kind::Timestamp,
        DataType::TimestampTz => Kind::TimestampTz,
        DataType::Bytea => Kind::Bytea,
        DataType::Uuid => Kind::Uuid,
        _ => return None,
    })
}

/// Refuses the type of a column that is not the same everywhere.
///
/// # Errors
/// `0A000`
pub(crate) fn check_column_type(data_type: DataType) -> Result<(), SqlError> {
    let error = |hint: &str| Err(refused(format_args!("the type {data_type}")).hint(hint));
    match data_type {
        DataType::Numeric(None) => error("Say how many digits it has: numeric(p, s)."),
        DataType::Numeric(Some((precision, scale))) => {
            let fits = u16::try_from(scale).is_ok_and(|scale| scale <= SCALE_MAX && scale <= precision);
            match fits && precision <= PRECISION_MAX {
                true => Ok(()),
                false => error(
                    "Use numeric(p, s) with a precision p of at most 65 and a scale s of at most 38 and p.",
                ),
            }
        }
        DataType::VARCHAR => error("Use text, or say how many characters it has: varchar(n)."),
        DataType::Text(Some(length)) if length > VARCHAR_MAX => {
            error("Use text, or varchar(n) with n up to 16383.")
        }
        DataType::Real | DataType::Double => {
            error("The databases compute and write floating-point numbers differently. Use numeric(p, s).")
        }
        other => match kind_of(other) {
            Some(_) => Ok(()),
            None => error(TYPES),
        },
    }
}

/// The place of a type of integers among those: a wider one is greater.
pub(crate) fn integer_rank(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::SmallInt => Some(0),
        DataType::Integer => Some(1),
        DataType::BigInt => Some(2),
        _ => None,
    }
}

/// Digits of the values of a type of numbers, and those after the point among them.
pub(crate) fn digits_of(data_type: DataType) -> Option<(u16, u16)> {
    match data_type {
        DataType::SmallInt => Some((5, 0)),
        DataType::Integer => Some((10, 0)),
        DataType::BigInt => Some((19, 0)),
        DataType::Numeric(Some((precision, scale))) => Some((precision, u16::try_from(scale).ok()?)),
        _ => None,
    }
}

/// `numeric(precision, scale)`
pub(crate) fn numeric(precision: u16, scale: u16) -> DataType {
    DataType::Numeric(Some((precision, scale as i16)))
}

/// The type that has a number's own digits.
///
/// # Errors
/// `0A000` where it has more than every database can hold, or is none.
pub(crate) fn own_digits(number: &Numeric) -> Result<DataType, SqlError> {
    if number.is_special() {
        return Err(refused(format_args!("the number {number}")).hint("Use NULL, or a column of its own."));
    }
    let scale = number.scale();
    let precision = u16::try_from(number.digits().len()).unwrap_or(u16::MAX).max(scale).max(1);
    if precision > PRECISION_MAX || scale > SCALE_MAX {
        let what = format!("a number of {precision} digits, {scale} of them after the point,");
        return Err(refused(what).hint("Use at most 65 digits, and at most 38 of them after the point."));
    }
    Ok(numeric(precision, scale))
}

/// The type that a cast or a typed literal names. `numeric` has no digits here: the constant gives them.
///
/// # Errors
/// `0A000` for one that is not the same everywhere.
pub(crate) fn bind_type(data_type: &ast::DataType) -> Result<DataType, SqlError> {
    use ast::DataType as Sql;
    let bound = match data_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::SmallInt(None) | Sql::Int2(None) => DataType::SmallInt,
        Sql::Int(None) | Sql::Integer(None) | Sql::Int4(None) => DataType::Integer,
        Sql::BigInt(None) | Sql::Int8(None) => DataType::BigInt,
        Sql::Numeric(info) | Sql::Decimal(info) | Sql::Dec(info) => match numeric_type(info)? {
            None => return Ok(DataType::Numeric(None)),
            Some(known) => known,
        },
        Sql::Text => DataType::Text(None),
        Sql::Varchar(length) | Sql::CharacterVarying(length) | Sql::CharVarying(length) => match length {
            None => DataType::Text(None),
            Some(length) => DataType::Text(Some(character_length(length)?)),
        },
        Sql::Date => DataType::Date,
        Sql::Timestamp(None | Some(6), TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
            DataType::TimestampTz
        }
        Sql::Timestamp(None | Some(6), _) => DataType::Timestamp,
        Sql::Bytea => DataType::Bytea,
        Sql::Uuid => DataType::Uuid,
        other => {
            let name = other.to_string().to_ascii_lowercase();
            return Err(refused(format_args!("the type {}", crate::refusal::shortened(&name))).hint(TYPES));
        }
    };
    check_column_type(bound)?;
    Ok(bound)
}

fn numeric_type(info: &ExactNumberInfo) -> Result<Option<DataType>, SqlError> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(None),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    match (u16::try_from(precision), i16::try_from(scale)) {
        (Ok(precision @ 1..), Ok(scale)) => Ok(Some(DataType::Numeric(Some((precision, scale))))),
        _ => {
            let message = format!("NUMERIC precision {precision} must be between 1 and {PRECISION_MAX}");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn character_length(length: &CharacterLength) -> Result<u32, SqlError> {
    match length {
        CharacterLength::IntegerLength { length, unit: None } if *length > 0 => {
            Ok(u32::try_from(*length).unwrap_or(u32::MAX - 2))
        }
        other => Err(refused(format_args!("the type varchar({other})")).hint(TYPES)),
    }
}
