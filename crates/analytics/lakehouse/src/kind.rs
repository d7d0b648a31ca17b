//! How values of a SQL type stand in a column: its type in Arrow, in Parquet with it, and in Delta.

use arrow_schema::{DataType as ArrowType, Field, TimeUnit};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use types::DataType;

/// Digits of a decimal, at most, in every system that reads them.
const DECIMAL_DIGITS_MAX: u16 = 38;

/// How values of one column stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    /// `numeric(precision, scale)` of up to 38 digits.
    Decimal {
        precision: u8,
        scale: i8,
    },
    /// Texts as they are.
    Text,
    Bytes,
    Date,
    TimestampTz,
    Timestamp,
    /// Everything else as text, as PostgreSQL writes it.
    Written(DataType),
    /// Arrays of one of the others.
    List(Box<Kind>, DataType),
}

impl Kind {
    pub(crate) fn of(data_type: DataType) -> Kind {
        match data_type.unrounded() {
            DataType::Boolean => Kind::Boolean,
            DataType::SmallInt => Kind::SmallInt,
            DataType::Integer => Kind::Integer,
            DataType::BigInt => Kind::BigInt,
            DataType::Real => Kind::Real,
            DataType::Double => Kind::Double,
            DataType::Numeric(Some((precision, scale))) => decimal(precision, scale),
            DataType::Text(_) | DataType::Unknown | DataType::RefCursor | DataType::Char(_) => Kind::Text,
            DataType::Bytea => Kind::Bytes,
            DataType::Date => Kind::Date,
            DataType::TimestampTz => Kind::TimestampTz,
            DataType::Timestamp => Kind::Timestamp,
            DataType::Array(element) => {
                // An array does not know precision and scale of its elements.
                let element = element.data_type().family();
                Kind::List(Box::new(Kind::of(element)), element)
            }
            DataType::Numeric(None)
            | DataType::Time
            | DataType::Interval
            | DataType::Uuid
            | DataType::Composite(_)
            | DataType::Enum(_)
            | DataType::Domain(_)
            | DataType::Record
            | DataType::Json
            | DataType::Jsonb
            | DataType::Inet
            | DataType::Cidr
            | DataType::MacAddr
            | DataType::Bit(_)
            | DataType::VarBit(_)
            | DataType::TimeTz
            | DataType::Range(_)
            | DataType::Multirange(_)
            | DataType::TsVector
            | DataType::TsQuery
            | DataType::Hstore
            | DataType::Citext
            | DataType::Oid
            | DataType::Rounded(..)
            | DataType::Polymorphic(_) => Kind::Written(data_type),
        }
    }

    /// Whether there may be a value that the column does not say exactly.
    pub(crate) fn may_lose(&self) -> bool {
        match self {
            Kind::Decimal { .. } | Kind::TimestampTz | Kind::Timestamp | Kind::Written(_) => true,
            // A list does not say how many dimensions its array has.
            Kind::List(..) => true,
            _ => false,
        }
    }

    /// The same, where all arrays have one dimension.
    pub(crate) fn may_lose_elements(&self) -> bool {
        match self {
            Kind::List(element, _) => element.may_lose_elements(),
            other => other.may_lose(),
        }
    }

    /// Whether it is, or has, a timestamp without time zone, which is a feature that a Delta table must announce.
    pub(crate) fn has_local_time(&self) -> bool {
        match self {
            Kind::Timestamp => true,
            Kind::List(element, _) => element.has_local_time(),
            _ => false,
        }
    }

    pub(crate) fn arrow_type(&self) -> ArrowType {
        match self {
            Kind::Boolean => ArrowType::Boolean,
            Kind::SmallInt => ArrowType::Int16,
            Kind::Integer => ArrowType::Int32,
            Kind::BigInt => ArrowType::Int64,
            Kind::Real => ArrowType::Float32,
            Kind::Double => ArrowType::Float64,
            Kind::Decimal { precision, scale } => ArrowType::Decimal128(*precision, *scale),
            Kind::Text | Kind::Written(_) => ArrowType::Utf8,
            Kind::Bytes => ArrowType::Binary,
            Kind::Date => ArrowType::Date32,
            Kind::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
            Kind::List(element, _) => ArrowType::List(Arc::new(Kind::list_field(element))),
        }
    }

    /// The field of a list's elements.
    pub(crate) fn list_field(element: &Kind) -> Field {
        Field::new("element", element.arrow_type(), true)
    }

    /// The type in the schema of a Delta table.
    pub(crate) fn delta_type(&self) -> Json {
        match self {
            Kind::Boolean => json!("boolean"),
            Kind::SmallInt => json!("short"),
            Kind::Integer => json!("integer"),
            Kind::BigInt => json!("long"),
            Kind::Real => json!("float"),
            Kind::Double => json!("double"),
            Kind::Decimal { precision, scale } => json!(format!("decimal({precision},{scale})")),
            Kind::Text | Kind::Written(_) => json!("string"),
            Kind::Bytes => json!("binary"),
            Kind::Date => json!("date"),
            Kind::TimestampTz => json!("timestamp"),
            Kind::Timestamp => json!("timestamp_ntz"),
            Kind::List(element, _) => {
                json!({"type": "array", "elementType": element.delta_type(), "containsNull": true})
            }
        }
    }
}

fn decimal(precision: u16, scale: i16) -> Kind {
    let digits = 1..=DECIMAL_DIGITS_MAX;
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(small), Ok(scale)) if digits.contains(&precision) && (0..=small as i8).contains(&scale) => {
            Kind::Decimal { precision: small, scale }
        }
        _ => Kind::Written(DataType::Numeric(Some((precision, scale)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_has_38_digits_at_most_and_its_point_inside() {
        let is_decimal = |precision, scale| matches!(decimal(precision, scale), Kind::Decimal { .. });
        for (precision, scale) in [(1, 0), (1, 1), (38, 0), (38, 38), (12, 2)] {
            assert!(is_decimal(precision, scale), "{precision}, {scale}");
        }
        for (precision, scale) in [(39, 0), (5, -2), (3, 5), (1000, 1000), (300, 2)] {
            assert!(!is_decimal(precision, scale), "{precision}, {scale}");
        }
    }
}
