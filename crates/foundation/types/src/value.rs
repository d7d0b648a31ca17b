use crate::citext::folded;
use crate::{
    Array, BitString, Composite, DataType, ElementType, EnumValue, Hstore, Interval, Jsonb, Multirange,
    NetworkAddress, Numeric, Range, TimeTz, TsQuery, TsVector,
};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::sync::Arc;

/// The values of one row, in the order of the table's columns. Sharing a row costs a reference count.
pub type Row = Arc<[Value]>;

/// A value of SQL.
///
/// `==` is identity of the encoded value (`1.0` and `1.00` differ, NULL equals NULL): it compares states, not SQL
/// values. SQL compares with [`Value::compare`].
#[derive(Clone, Debug, Default, BorshSerialize, BorshDeserialize)]
pub enum Value {
    /// NULL of any type.
    #[default]
    Null,
    /// `boolean`
    Boolean(bool),
    /// `integer`
    Integer(i32),
    /// `bigint`
    BigInt(i64),
    /// `numeric`
    Numeric(Numeric),
    /// `double precision`
    Double(#[borsh(serialize_with = "write_double", deserialize_with = "read_double")] f64),
    /// `text` and `varchar`
    Text(Arc<str>),
    /// Microseconds since 2000-01-01 00:00 UTC.
    TimestampTz(i64),
    /// `smallint`
    SmallInt(i16),
    /// `real`
    Real(#[borsh(serialize_with = "write_real", deserialize_with = "read_real")] f32),
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since 2000-01-01 00:00.
    Timestamp(i64),
    /// Microseconds since midnight; 24:00:00 is a time.
    Time(i64),
    /// `interval`
    Interval(Interval),
    /// `char(n)`, filled up with spaces, which do not count in comparisons.
    Char(Arc<str>),
    /// `bytea`
    Bytea(Arc<[u8]>),
    /// `uuid`
    Uuid([u8; 16]),
    /// A one-dimensional array.
    Array(Arc<Array>),
    /// A row: of a composite type, or an anonymous one.
    Composite(Arc<Composite>),
    /// `json`, as it was written.
    Json(#[borsh(deserialize_with = "crate::json::read_json")] Arc<str>),
    /// `jsonb`
    Jsonb(Jsonb),
    /// A value of an enum.
    Enum(Arc<EnumValue>),
    /// `inet`
    Inet(#[borsh(deserialize_with = "crate::network_address::read_inet")] NetworkAddress),
    /// `cidr`
    Cidr(#[borsh(deserialize_with = "crate::network_address::read_cidr")] NetworkAddress),
    /// `macaddr`
    MacAddr(#[borsh(deserialize_with = "crate::network_address::read_macaddr")] [u8; 6]),
    /// `bit(n)`
    Bit(#[borsh(deserialize_with = "crate::bit_string::read_bit")] Arc<BitString>),
    /// `bit varying(n)`
    VarBit(#[borsh(deserialize_with = "crate::bit_string::read_varbit")] Arc<BitString>),
    /// `time with time zone`
    TimeTz(TimeTz),
    /// A range
    Range(Arc<Range>),
    /// A multirange
    Multirange(Arc<Multirange>),
    /// `tsvector`
    TsVector(TsVector),
    /// `tsquery`
    TsQuery(TsQuery),
    /// `hstore`
    Hstore(Hstore),
    /// `citext`, as it was written; large and small letters are the same in comparisons.
    Citext(#[borsh(deserialize_with = "crate::citext::read_citext")] Arc<str>),
    /// `oid`
    Oid(u32),
}

/// What a value takes where it stands, without what it refers to. Limits on memory count with it, so it is the same on
/// every machine.
pub const VALUE_BYTES: u64 = 24;

// Rows are many, and most of what a transaction costs is memory: two values and the counts of an `Arc` fill a cache line.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Value>() as u64 == VALUE_BYTES);

// borsh refuses NaN; a double travels as its bits, with one NaN.
fn write_double<W: std::io::Write>(value: &f64, writer: &mut W) -> std::io::Result<()> {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    writer.write_all(&bits.to_le_bytes())
}

fn read_double<R: std::io::Read>(reader: &mut R) -> std::io::Result<f64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    let value = f64::from_bits(u64::from_le_bytes(bytes));
    if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "expected the canonical NaN"));
    }
    Ok(value)
}

fn write_real<W: std::io::Write>(value: &f32, writer: &mut W) -> std::io::Result<()> {
    let bits = if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() };
    writer.write_all(&bits.to_le_bytes())
}

fn read_real<R: std::io::Read>(reader: &mut R) -> std::io::Result<f32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes)?;
    let value = f32::from_bits(u32::from_le_bytes(bytes));
    if value.is_nan() && value.to_bits() != f32::NAN.to_bits() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "expected the canonical NaN"));
    }
    Ok(value)
}

impl Value {
    /// A text value.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(text.into())
    }

    /// True for NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The type, without length, precision and scale; [`DataType::Unknown`] for NULL.
    pub fn data_type(&self) -> DataType {
        match self {
            Value::Null => DataType::Unknown,
            Value::Boolean(_) => DataType::Boolean,
            Value::Integer(_) => DataType::Integer,
            Value::BigInt(_) => DataType::BigInt,
            Value::Numeric(_) => DataType::Numeric(None),
            Value::Double(_) => DataType::Double,
            Value::Text(_) => DataType::Text(None),
            Value::TimestampTz(_) => DataType::TimestampTz,
            Value::SmallInt(_) => DataType::SmallInt,
            Value::Real(_) => DataType::Real,
            Value::Date(_) => DataType::Date,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::Time(_) => DataType::Time,
            Value::Interval(_) => DataType::Interval,
            Value::Char(_) => DataType::Char(None),
            Value::Bytea(_) => DataType::Bytea,
            Value::Uuid(_) => DataType::Uuid,
            Value::Array(array) => DataType::Array(ElementType::family(array.element())),
            Value::Composite(row) => row.data_type(),
            Value::Json(_) => DataType::Json,
            Value::Jsonb(_) => DataType::Jsonb,
            Value::Enum(value) => DataType::Enum(value.type_id),
            Value::Inet(_) => DataType::Inet,
            Value::Cidr(_) => DataType::Cidr,
            Value::MacAddr(_) => DataType::MacAddr,
            Value::Bit(_) => DataType::Bit(None),
            Value::VarBit(_) => DataType::VarBit(None),
            Value::TimeTz(_) => DataType::TimeTz,
            Value::Range(range) => DataType::Range(range.range_type()),
            Value::Multirange(ranges) => DataType::Multirange(ranges.range_type()),
            Value::TsVector(_) => DataType::TsVector,
            Value::TsQuery(_) => DataType::TsQuery,
            Value::Hstore(_) => DataType::Hstore,
            Value::Citext(_) => DataType::Citext,
            Value::Oid(_) => DataType::Oid,
        }
    }

    /// Compares two values of one type as PostgreSQL does; `None` where either is NULL.
    ///
    /// Text compares by bytes (the C collation), NaN equals NaN and is greater than every other number, `-0` equals
    /// `0`, spaces at the end of a `char(n)` do not count, a month of an interval has 30 days and a day 24 hours.
    /// Integers of all widths compare with one another; other values of different types do not meet here: the planner
    /// has cast them; if they do, the order is that of the types, so that sorting stays total.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        use Value::*;
        Some(match (self, other) {
            (Null, _) | (_, Null) => return None,
            (Boolean(a), Boolean(b)) => a.cmp(b),
            (Integer(a), Integer(b)) => a.cmp(b),
            (BigInt(a), BigInt(b)) => a.cmp(b),
            (Integer(a), BigInt(b)) => i64::from(*a).cmp(b),
            (BigInt(a), Integer(b)) => a.cmp(&i64::from(*b)),
            (Numeric(a), Numeric(b)) => a.cmp(b),
            (Double(a), Double(b)) => compare_doubles(*a, *b),
            (Text(a), Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (TimestampTz(a), TimestampTz(b)) => a.cmp(b),
            _ => return Some(self.compare_others(other)),
        })
    }

    /// The types that came later, out of the way of the common ones.
    fn compare_others(&self, other: &Value) -> Ordering {
        use Value::*;
        match (self, other) {
            (SmallInt(a), SmallInt(b)) => a.cmp(b),
            (Real(a), Real(b)) => compare_doubles(f64::from(*a), f64::from(*b)),
            (Date(a), Date(b)) => a.cmp(b),
            (Timestamp(a), Timestamp(b)) | (Time(a), Time(b)) => a.cmp(b),
            (Interval(a), Interval(b)) => a.normalised().cmp(&b.normalised()),
            (Char(a), Char(b)) => {
                crate::text::unpadded(a).as_bytes().cmp(crate::text::unpadded(b).as_bytes())
            }
            (Bytea(a), Bytea(b)) => a.cmp(b),
            (Uuid(a), Uuid(b)) => a.cmp(b),
            (Array(a), Array(b)) => a.compare(b),
            (Composite(a), Composite(b)) => a.compare(b),
            (Jsonb(a), Jsonb(b)) => a.compare(b),
            // SQL has no order of them; this one keeps sorting total.
            (Json(a), Json(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Enum(a), Enum(b)) => a.compare(b),
            (Inet(a), Inet(b)) | (Cidr(a), Cidr(b)) => a.compare(b),
            (MacAddr(a), MacAddr(b)) => a.cmp(b),
            (Bit(a), Bit(b)) | (VarBit(a), VarBit(b)) => a.compare(b),
            (TimeTz(a), TimeTz(b)) => a.compare(b),
            (Range(a), Range(b)) => a.compare(b),
            (Multirange(a), Multirange(b)) => a.compare(b),
            (TsVector(a), TsVector(b)) => a.compare(b),
            (TsQuery(a), TsQuery(b)) => a.compare(b),
            (Hstore(a), Hstore(b)) => a.compare(b),
            (Citext(a), Citext(b)) => folded(a).cmp(folded(b)),
            (Oid(a), Oid(b)) => a.cmp(b),
            _ => match (self.as_integer(), other.as_integer()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    /// The number, where it is a `smallint`, `integer` or `bigint`.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Value::SmallInt(value) => Some(i64::from(*value)),
            Value::Integer(value) => Some(i64::from(*value)),
            Value::BigInt(value) => Some(*value),
            _ => None,
        }
    }

    /// The order of `ORDER BY … ASC`: as [`Value::compare`], NULLs last.
    pub fn sort_compare(&self, other: &Value) -> Ordering {
        self.compare(other).unwrap_or_else(|| self.is_null().cmp(&other.is_null()))
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Boolean(_) => 1,
            Value::Integer(_) => 2,
            Value::BigInt(_) => 3,
            Value::Numeric(_) => 4,
            Value::Double(_) => 5,
            Value::Text(_) => 6,
            Value::TimestampTz(_) => 7,
            Value::SmallInt(_) => 8,
            Value::Real(_) => 9,
            Value::Date(_) => 10,
            Value::Timestamp(_) => 11,
            Value::Time(_) => 12,
            Value::Interval(_) => 13,
            Value::Char(_) => 14,
            Value::Bytea(_) => 15,
            Value::Uuid(_) => 16,
            Value::Array(_) => 17,
            Value::Composite(_) => 18,
            Value::Json(_) => 19,
            Value::Jsonb(_) => 20,
            Value::Enum(_) => 21,
            Value::Inet(_) => 22,
            Value::Cidr(_) => 23,
            Value::MacAddr(_) => 24,
            Value::Bit(_) => 25,
            Value::VarBit(_) => 26,
            Value::TimeTz(_) => 27,
            Value::Range(_) => 28,
            Value::Multirange(_) => 29,
            Value::TsVector(_) => 30,
            Value::TsQuery(_) => 31,
            Value::Hstore(_) => 32,
            Value::Citext(_) => 33,
            Value::Oid(_) => 34,
        }
    }
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        use Value::*;
        match (self, other) {
            (Null, Null) => true,
            (Boolean(a), Boolean(b)) => a == b,
            (Integer(a), Integer(b)) => a == b,
            (BigInt(a), BigInt(b)) => a == b,
            (Numeric(a), Numeric(b)) => a.is_identical(b),
            (Double(a), Double(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Text(a), Text(b)) => a == b,
            (TimestampTz(a), TimestampTz(b)) | (Timestamp(a), Timestamp(b)) | (Time(a), Time(b)) => a == b,
            (SmallInt(a), SmallInt(b)) => a == b,
            (Real(a), Real(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Date(a), Date(b)) => a == b,
            (Interval(a), Interval(b)) => a == b,
            (Char(a), Char(b)) => a == b,
            (Bytea(a), Bytea(b)) => a == b,
            (Uuid(a), Uuid(b)) => a == b,
            (Array(a), Array(b)) => a == b,
            (Composite(a), Composite(b)) => a == b,
            (Json(a), Json(b)) => a == b,
            (Jsonb(a), Jsonb(b)) => a == b,
            (Enum(a), Enum(b)) => a == b,
            (Inet(a), Inet(b)) | (Cidr(a), Cidr(b)) => a == b,
            (MacAddr(a), MacAddr(b)) => a == b,
            (Bit(a), Bit(b)) | (VarBit(a), VarBit(b)) => a == b,
            (TimeTz(a), TimeTz(b)) => a == b,
            (Range(a), Range(b)) => a == b,
            (Multirange(a), Multirange(b)) => a == b,
            (TsVector(a), TsVector(b)) => a == b,
            (TsQuery(a), TsQuery(b)) => a == b,
            (Hstore(a), Hstore(b)) => a == b,
            (Citext(a), Citext(b)) => a == b,
            (Oid(a), Oid(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_sort_with_nan_high_and_null_last() {
        let mut values =
            vec![Value::Null, Value::Double(f64::NAN), Value::Double(1.0), Value::Double(f64::INFINITY)];
        values.sort_by(Value::sort_compare);
        assert_eq!(
            values,
            vec![Value::Double(1.0), Value::Double(f64::INFINITY), Value::Double(f64::NAN), Value::Null]
        );
        assert_eq!(Value::Double(-0.0).compare(&Value::Double(0.0)), Some(Ordering::Equal));
        assert_ne!(Value::Double(-0.0), Value::Double(0.0), "two encodings are two states");
    }

    #[test]
    fn a_second_encoding_of_nan_is_refused() {
        let mut bytes = crate::encode(&Value::Double(f64::NAN));
        assert_eq!(crate::decode_exactly::<Value>(&bytes).ok(), Some(Value::Double(f64::NAN)));
        bytes[1] ^= 1;
        assert!(crate::decode_exactly::<Value>(&bytes).is_err());
    }
}
