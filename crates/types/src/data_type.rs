use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

/// The type of a column, variable or expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, BorshSerialize, BorshDeserialize)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `integer`, 32 bits
    Integer,
    /// `bigint`, 64 bits
    BigInt,
    /// `numeric` (`None`) or `numeric(precision, scale)`
    Numeric(Option<(u8, u8)>),
    /// `double precision`
    Double,
    /// `text` (`None`) or `varchar(n)`, `n` in characters
    Text(Option<u32>),
    /// `timestamp with time zone`, microseconds since 2000-01-01 00:00 UTC as in PostgreSQL
    TimestampTz,
    /// The type of a bare `NULL` and of a string literal whose type the context decides.
    Unknown,
}

impl DataType {
    /// The same type without length, precision and scale.
    pub fn family(self) -> DataType {
        match self {
            DataType::Numeric(_) => DataType::Numeric(None),
            DataType::Text(_) => DataType::Text(None),
            other => other,
        }
    }

    /// Object identifier of the type in PostgreSQL's `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            DataType::Boolean => 16,
            DataType::Integer => 23,
            DataType::BigInt => 20,
            DataType::Numeric(_) => 1700,
            DataType::Double => 701,
            DataType::Text(None) => 25,
            DataType::Text(Some(_)) => 1043,
            DataType::TimestampTz => 1184,
            DataType::Unknown => 705,
        }
    }
}

impl fmt::Display for DataType {
    /// The name that PostgreSQL shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("boolean"),
            DataType::Integer => f.write_str("integer"),
            DataType::BigInt => f.write_str("bigint"),
            DataType::Numeric(None) => f.write_str("numeric"),
            DataType::Numeric(Some((precision, scale))) => write!(f, "numeric({precision},{scale})"),
            DataType::Double => f.write_str("double precision"),
            DataType::Text(None) => f.write_str("text"),
            DataType::Text(Some(length)) => write!(f, "character varying({length})"),
            DataType::TimestampTz => f.write_str("timestamp with time zone"),
            DataType::Unknown => f.write_str("unknown"),
        }
    }
}
