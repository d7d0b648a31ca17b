//! Values of composite types.

use crate::hstore::format_hstore;
use crate::range::{Bounds, quotes, text_bytes};
use crate::text_search::{format_query, format_vector};
use crate::{DataType, SqlError, SqlState, Value, limits};
use borsh::de::EnumExt;
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;

/// Number of a type that the ledger has made, never used twice in a ledger: what a stored value means does not change when a type is
/// dropped and another one gets its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub struct TypeId(pub u32);

impl TypeId {
    const TEMPORARY: u32 = 1 << 29;

    /// The first number of the row type of a temporary table.
    pub const FIRST_TEMPORARY: TypeId = TypeId(TypeId::TEMPORARY);
    /// Numbers that types of a ledger may get in its life.
    pub const NUMBERS_MAX: u32 = TypeId::TEMPORARY;

    /// Whether it is the row type of a session's table: no ledger has such numbers.
    pub fn is_temporary(self) -> bool {
        self.0 & TypeId::TEMPORARY != 0
    }
}

/// What the encoding of an array begins with as a value.
pub(crate) const ARRAY_TAG: u8 = 17;
/// What the encoding of a composite value begins with as a value.
pub(crate) const COMPOSITE_TAG: u8 = 18;

/// The values of the fields of a composite type, or of an anonymous row.
///
/// It is of at most [`limits::FIELDS_MAX`] fields, nested at most [`limits::COMPOSITE_NESTING_MAX`] deep, and has at most
/// [`limits::TEXT_BYTES_MAX`] bytes as a text, where quotes double with every level.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Composite {
    type_id: Option<TypeId>,
    values: Vec<Value>,
}

impl Composite {
    /// A value of the type with this number, or of an anonymous row.
    ///
    /// # Errors
    /// `54000` where it is too large, `54001` where it is nested too deeply.
    pub fn new(type_id: Option<TypeId>, values: Vec<Value>) -> Result<Composite, SqlError> {
        let exceeded = |message| Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        let (count, limit) = (values.len(), limits::FIELDS_MAX);
        if count > limit {
            return exceeded(format!("ROW expressions can have at most {limit} entries (FIELDS_MAX)"));
        }
        let deep = 1 + values.iter().map(depth).max().unwrap_or(0);
        if deep > limits::COMPOSITE_NESTING_MAX {
            let message = format!(
                "a row is nested more than {} rows deep (COMPOSITE_NESTING_MAX)",
                limits::COMPOSITE_NESTING_MAX
            );
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
        }
        let bytes = fields_bytes(&values, 1);
        if bytes > crate::text_bytes_max() {
            return exceeded(format!(
                "the row has {bytes} bytes as a text, the limit is {} (TEXT_BYTES_MAX)",
                crate::text_bytes_max()
            ));
        }
        Ok(Composite { type_id, values })
    }

    /// The number of its type; `None`: an anonymous row.
    pub fn type_id(&self) -> Option<TypeId> {
        self.type_id
    }

    /// Its type.
    pub fn data_type(&self) -> DataType {
        self.type_id.map_or(DataType::Record, DataType::Composite)
    }

    /// The values of the fields.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The same fields as a value of another type, which the caller knows them to fit.
    #[must_use]
    pub fn with_type(&self, type_id: Option<TypeId>) -> Composite {
        Composite { type_id, values: self.values.clone() }
    }

    /// The order of rows in sorting: field by field, NULLs last and equal to one another; a row with fewer fields comes
    /// before one that it begins.
    pub fn compare(&self, other: &Composite) -> Ordering {
        let pairs = self.values.iter().zip(&other.values);
        pairs
            .map(|(left, right)| left.sort_compare(right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
    }

    /// The order of rows that an expression compares.
    ///
    /// # Errors
    /// `42804` where their fields are not of the same types.
    pub fn compare_similar(&self, other: &Composite) -> Result<Ordering, SqlError> {
        let mismatch = |message| Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        for (position, (left, right)) in self.values.iter().zip(&other.values).enumerate() {
            let (from, to) = (left.data_type(), right.data_type());
            if from != to && !left.is_null() && !right.is_null() {
                return mismatch(format!(
                    "cannot compare dissimilar column types {from} and {to} at record column {}",
                    position + 1
                ));
            }
            let order = left.sort_compare(right);
            if order.is_ne() {
                return Ok(order);
            }
        }
        if self.values.len() != other.values.len() {
            return mismatch("cannot compare record types with different numbers of columns".to_string());
        }
        Ok(Ordering::Equal)
    }

    /// Reads one that so many rows enclose.
    fn read<R: io::Read>(reader: &mut R, enclosing: usize) -> io::Result<Composite> {
        let refused = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if enclosing >= limits::COMPOSITE_NESTING_MAX {
            return Err(refused("expected at most COMPOSITE_NESTING_MAX rows in one another"));
        }
        let type_id = Option::<TypeId>::deserialize_reader(reader)?;
        let count = u32::deserialize_reader(reader)? as usize;
        if count > limits::FIELDS_MAX {
            return Err(refused("expected at most FIELDS_MAX fields"));
        }
        let mut values = Vec::new();
        for _ in 0..count {
            let tag = u8::deserialize_reader(reader)?;
            values.push(read_inside(reader, tag, enclosing + 1)?);
        }
        Composite::new(type_id, values).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Reads a value that so many rows enclose, its tag having been read.
pub(crate) fn read_inside<R: io::Read>(reader: &mut R, tag: u8, enclosing: usize) -> io::Result<Value> {
    match tag {
        ARRAY_TAG => Ok(Value::Array(crate::Array::read(reader, enclosing)?.into())),
        COMPOSITE_TAG => Ok(Value::Composite(Composite::read(reader, enclosing)?.into())),
        tag => Value::deserialize_variant(reader, tag),
    }
}

impl BorshDeserialize for Composite {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Composite> {
        Composite::read(reader, 0)
    }
}

/// Rows that stand in one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Composite(row) => 1 + row.values.iter().map(depth).max().unwrap_or(0),
        Value::Array(array) => array.values().iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Bytes of a value as a text inside of others, or a few more. `factor`: what becomes of one quote there.
pub(crate) fn written_bytes(value: &Value, factor: usize) -> usize {
    let quoted = |text: &str| {
        let special = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count();
        text.len().saturating_add(special.saturating_mul(factor.saturating_mul(2)))
    };
    let ends = |bounds: &Bounds| {
        let special = quotes(bounds).saturating_mul(factor.saturating_mul(2));
        text_bytes(bounds).saturating_add(special)
    };
    let content = match value {
        Value::Null => return 4,
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => quoted(text),
        Value::Json(text) => quoted(text),
        Value::Jsonb(value) => quoted(&value.to_text()),
        Value::TsVector(vector) => quoted(&format_vector(vector)),
        Value::TsQuery(query) => quoted(&format_query(query)),
        Value::Hstore(hstore) => quoted(&format_hstore(hstore)),
        Value::Enum(value) => quoted(&value.label),
        // A backslash in front of them.
        Value::Bytea(bytes) => bytes.len().saturating_mul(2).saturating_add(2 * factor),
        Value::Composite(row) => fields_bytes(&row.values, factor.saturating_mul(2)),
        Value::Array(array) => {
            // Braces around each element at most, and the bounds of each dimension.
            let (beside, in_front) = if array.is_plain() { (1, 2) } else { (3, 200) };
            array.values().iter().fold(in_front, |sum: usize, element| {
                sum.saturating_add(written_bytes(element, factor.saturating_mul(2))).saturating_add(beside)
            })
        }
        // A byte holds less than three digits.
        Value::Numeric(number) => {
            number.stored_bytes().saturating_mul(3).saturating_add(usize::from(number.scale()) + 4)
        }
        Value::Interval(_) => 128,
        Value::Bit(bits) | Value::VarBit(bits) => bits.length() as usize,
        Value::Range(range) => range.bounds().map_or(5, ends),
        Value::Multirange(ranges) => ranges.ranges().iter().map(ends).fold(2, usize::saturating_add),
        _ => 40,
    };
    content.saturating_add(factor.saturating_mul(2))
}

fn fields_bytes(values: &[Value], factor: usize) -> usize {
    values
        .iter()
        .fold(2, |sum: usize, value| sum.saturating_add(written_bytes(value, factor)).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, ElementType, decode_exactly, encode};
    use std::sync::Arc;

    fn row(values: Vec<Value>) -> Value {
        Value::Composite(Arc::new(Composite::new(None, values).expect("a small row")))
    }

    #[test]
    fn the_tags_are_those_of_the_encoding() {
        let element = ElementType::new(DataType::Integer).expect("an element type");
        let array = Array::new(element, Vec::new()).expect("an empty array");
        assert_eq!(encode(&Value::Array(Arc::new(array)))[0], ARRAY_TAG);
        assert_eq!(encode(&row(Vec::new()))[0], COMPOSITE_TAG);
    }

    #[test]
    fn rows_read_back_whatever_they_hold() {
        let inner = row(vec![Value::Null, Value::text("a\"b"), Value::BigInt(7)]);
        let element = ElementType::new(DataType::Record).expect("an element type");
        let array = Array::new(element, vec![inner.clone(), Value::Null]).expect("a small array");
        let typed = Composite::new(Some(TypeId(9)), vec![inner, Value::Array(Arc::new(array))]);
        let typed = Value::Composite(Arc::new(typed.expect("a small row")));
        let bytes = encode(&typed);
        assert_eq!(decode_exactly::<Value>(&bytes).ok(), Some(typed));
        for cut in 0..bytes.len() {
            assert!(decode_exactly::<Value>(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn rows_in_rows_are_read_as_deep_as_they_may_be() {
        let mut value = Value::Integer(1);
        for _ in 0..limits::COMPOSITE_NESTING_MAX.min(12) {
            value = row(vec![value]);
        }
        assert_eq!(decode_exactly::<Value>(&encode(&value)).ok(), Some(value));
        // What no constructor makes: rows of one field in one another, however many.
        let mut bytes = Vec::new();
        for _ in 0..100_000 {
            bytes.extend_from_slice(&[COMPOSITE_TAG, 0, 1, 0, 0, 0]);
        }
        bytes.push(0);
        assert!(decode_exactly::<Value>(&bytes).is_err());
        // A thousand million fields are not believed.
        assert!(decode_exactly::<Value>(&[COMPOSITE_TAG, 0, 255, 255, 255, 255]).is_err());
    }

    #[test]
    fn what_would_be_too_long_as_a_text_cannot_be_made() {
        let mut value = Ok(Value::text("\"".repeat(1_000)));
        let mut deep = 0;
        while let Ok(inner) = value {
            value = Composite::new(None, vec![inner]).map(|row| Value::Composite(Arc::new(row)));
            if let Ok(row) = &value {
                assert!(crate::format_value(row).is_some_and(|text| text.len() <= limits::TEXT_BYTES_MAX));
                deep += 1;
            }
        }
        assert!((5..limits::COMPOSITE_NESTING_MAX).contains(&deep), "{deep}");
    }

    #[test]
    fn a_long_number_counts_with_all_of_its_digits() {
        let long = crate::Numeric::parse(&format!("{}.{}", "9".repeat(70_000), "1".repeat(10_000)));
        let long = Value::Numeric(long.expect("a number"));
        let text = crate::format_value(&long).map_or(0, |text| text.len());
        assert!(written_bytes(&long, 2) >= text);
        assert!(Composite::new(None, vec![long.clone(); 9]).is_ok());
        assert!(Composite::new(None, vec![long; 14]).is_err());
    }

    #[test]
    fn rows_of_different_fields_do_not_compare() {
        let of = |values: Vec<Value>| Composite::new(None, values).expect("a small row");
        let (one, two) = (of(vec![Value::Integer(1)]), of(vec![Value::Integer(1), Value::Null]));
        assert!(one.compare_similar(&two).is_err());
        assert!(one.compare_similar(&of(vec![Value::text("1")])).is_err());
        assert_eq!(two.compare_similar(&two).ok(), Some(Ordering::Equal));
        assert_eq!(of(vec![Value::Null]).compare_similar(&one).ok(), Some(Ordering::Greater));
    }
}
