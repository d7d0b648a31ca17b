//! What the catalogue and the wire protocol say of a type besides its number.

use types::{DataType, TimeType};

/// `pg_type.typlen` of a type: the bytes of its values, or -1 where they differ.
pub fn type_length(data_type: DataType) -> i16 {
    match data_type.unrounded() {
        DataType::Boolean => 1,
        DataType::Integer => 4,
        DataType::BigInt | DataType::Double | DataType::TimestampTz => 8,
        DataType::SmallInt => 2,
        DataType::Oid => 4,
        DataType::Real | DataType::Date => 4,
        DataType::Timestamp | DataType::Time => 8,
        DataType::Interval | DataType::Uuid => 16,
        DataType::TimeTz => 12,
        DataType::MacAddr => 6,
        DataType::NAME => 64,
        DataType::LETTER => 1,
        DataType::Numeric(_)
        | DataType::Text(_)
        | DataType::Unknown
        | DataType::Char(_)
        | DataType::Bytea
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Domain(_)
        | DataType::Record
        | DataType::RefCursor
        | DataType::Json
        | DataType::Jsonb
        | DataType::Inet
        | DataType::Cidr
        | DataType::Bit(_)
        | DataType::VarBit(_)
        | DataType::Range(_)
        | DataType::Multirange(_)
        | DataType::TsVector
        | DataType::TsQuery
        | DataType::Hstore
        | DataType::Citext
        | DataType::Rounded(..) => -1,
        DataType::Polymorphic(_) | DataType::Enum(_) => 4,
    }
}

/// `pg_attribute.atttypmod` of a type.
pub fn type_modifier(data_type: DataType) -> i32 {
    match data_type {
        DataType::Numeric(Some((precision, scale))) => {
            // A negative scale has eleven bits.
            ((i32::from(precision) << 16) | (i32::from(scale) & 0x7ff)) + 4
        }
        DataType::VARCHAR | DataType::NAME | DataType::LETTER => -1,
        // The upper half says which fields there are: all.
        DataType::Rounded(TimeType::Interval, digits) => (0x7fff << 16) | i32::from(digits),
        DataType::Rounded(_, digits) => i32::from(digits),
        DataType::Bit(Some(length)) | DataType::VarBit(Some(length)) => {
            i32::try_from(length).unwrap_or(i32::MAX)
        }
        DataType::Text(Some(length)) | DataType::Char(Some(length)) => {
            i32::try_from(length).unwrap_or(i32::MAX - 4).min(i32::MAX - 4) + 4
        }
        DataType::Array(element) => type_modifier(element.data_type()),
        _ => -1,
    }
}
