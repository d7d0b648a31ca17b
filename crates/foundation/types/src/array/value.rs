//! An array: its elements, its dimensions and its encoding.

use super::dimensions::{Dimension, Dimensions, check_dimensions, elements_in, plain};
use crate::composite::{ARRAY_TAG, read_inside, written_bytes};
use crate::unknown_types::{array_elements_known, knows};
use crate::value_limits::array_elements_max;
use crate::{DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;

/// An array of at most [`limits::ARRAY_ELEMENTS_MAX`] elements and [`limits::TEXT_BYTES_MAX`] bytes of content.
///
/// Since execution version 16 it may have several dimensions, and begin at other subscripts than 1. Encoded it is the type of the elements,
/// how many there are in four bytes, and the elements, row by row. Where it has other dimensions than one from 1, the highest bit of the
/// count is set, and the dimensions stand between the count and the elements: programs that do not know them take the count for too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    element: ElementType,
    /// `None`: one from 1, or no element at all.
    dimensions: Option<Box<[Dimension]>>,
    values: Vec<Value>,
}

/// Set in the count of an encoded array whose dimensions follow.
const WITH_DIMENSIONS: u32 = 1 << 31;

impl Array {
    /// The array of these values, each NULL or of the element type, in one dimension from 1.
    ///
    /// # Errors
    /// `54000` where it is too large.
    pub fn new(element: ElementType, values: Vec<Value>) -> Result<Array, SqlError> {
        debug_assert!(values.iter().all(|value| fits(element, value)), "{element:?} {values:?}");
        check_array_elements(values.len())?;
        let bytes: usize = values.iter().map(content_bytes).sum();
        if bytes > crate::text_bytes_max() {
            let message = format!(
                "the elements of the array have {bytes} bytes, the limit is {} (TEXT_BYTES_MAX)",
                crate::text_bytes_max()
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(Array { element: element.family(), dimensions: None, values })
    }

    /// The array of these values in these dimensions, of which there are as many as elements in them.
    ///
    /// # Errors
    /// `54000` where it is too large, or has too many dimensions.
    pub fn shaped(
        element: ElementType,
        dimensions: &[Dimension],
        values: Vec<Value>,
    ) -> Result<Array, SqlError> {
        debug_assert_eq!(elements_in(dimensions), values.len(), "{dimensions:?}");
        check_dimensions(dimensions.len())?;
        let array = Array::new(element, values)?;
        let is_plain = array.values.is_empty() || matches!(dimensions, [Dimension { lower: 1, .. }]);
        Ok(Array { dimensions: (!is_plain).then(|| dimensions.into()), ..array })
    }

    /// An array of the same dimensions with as many other values.
    ///
    /// # Errors
    /// `54000` where it is too large.
    pub fn with_values(&self, element: ElementType, values: Vec<Value>) -> Result<Array, SqlError> {
        Array::shaped(element, &self.dimensions(), values)
    }

    /// The type of the elements, without length, precision and scale.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The elements, row by row.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Its dimensions, the outermost first; none of an empty array.
    pub fn dimensions(&self) -> Dimensions {
        match &self.dimensions {
            Some(dimensions) => Dimensions::from_slice(dimensions),
            None => plain(self.values.len()),
        }
    }

    /// Refuses an array that does not say what belongs together in pairs: those that stand behind one another, or in two columns.
    ///
    /// # Errors
    /// `2202E`
    pub fn check_pairs(&self) -> Result<(), SqlError> {
        let wrong = |message: &str| Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
        match self.dimensions().as_slice() {
            [] | [_] if self.values.len() % 2 == 1 => wrong("array must have even number of elements"),
            [] | [_] | [_, Dimension { length: 2, .. }] => Ok(()),
            [_, _] => wrong("array must have two columns"),
            _ => wrong("wrong number of array subscripts"),
        }
    }

    /// Whether it has one dimension from 1, or no element.
    pub fn is_plain(&self) -> bool {
        self.dimensions.is_none()
    }

    /// The element with this subscript in an array of one dimension; NULL where there is none.
    pub fn get(&self, subscript: i64) -> Value {
        if self.dimensions.is_some() {
            return self.get_at(&[subscript]);
        }
        let index = subscript.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.values.get(index)).cloned().unwrap_or_default()
    }

    /// As PostgreSQL's `array_cmp`: element by element, NULLs last and equal to one another; a shorter array comes before one that it
    /// begins, then one of fewer dimensions, of shorter ones, of ones that begin earlier.
    pub fn compare(&self, other: &Array) -> Ordering {
        let pairs = self.values.iter().zip(&other.values);
        pairs
            .map(|(left, right)| left.sort_compare(right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
            .then_with(|| self.compare_dimensions(other))
    }

    fn compare_dimensions(&self, other: &Array) -> Ordering {
        if self.dimensions == other.dimensions {
            return Ordering::Equal;
        }
        let (left, right) = (self.dimensions(), other.dimensions());
        let lengths = |of: &Dimensions| of.iter().map(|dimension| dimension.length).collect::<Vec<_>>();
        let lowers = |of: &Dimensions| of.iter().map(|dimension| dimension.lower).collect::<Vec<_>>();
        left.len()
            .cmp(&right.len())
            .then_with(|| lengths(&left).cmp(&lengths(&right)))
            .then_with(|| lowers(&left).cmp(&lowers(&right)))
    }
}

/// Refuses more elements than an array may have.
///
/// # Errors
/// `54000`
pub fn check_array_elements(count: usize) -> Result<(), SqlError> {
    let limit = array_elements_max();
    if count <= limit {
        return Ok(());
    }
    let message = format!("the array has {count} elements, the limit is {limit} (ARRAY_ELEMENTS_MAX)");
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

fn fits(element: ElementType, value: &Value) -> bool {
    let (found, expected) = (value.data_type(), element.data_type().family());
    value.is_null() || found == expected || (expected == DataType::Record && found.is_composite())
}

fn content_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Json(text) => text.len(),
        Value::Jsonb(value) => value.text_bytes(),
        Value::Enum(value) => value.label.len(),
        Value::Bit(bits) | Value::VarBit(bits) => bits.length() as usize,
        // What it has as a text doubles with the quotes inside of it.
        Value::Composite(_)
        | Value::Range(_)
        | Value::Multirange(_)
        | Value::TsVector(_)
        | Value::TsQuery(_)
        | Value::Hstore(_) => written_bytes(value, 2),
        _ => 0,
    }
}

impl BorshSerialize for Array {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.element.serialize(writer)?;
        let count = self.values.len() as u32;
        match &self.dimensions {
            None => count.serialize(writer)?,
            Some(dimensions) => {
                (count | WITH_DIMENSIONS).serialize(writer)?;
                (dimensions.len() as u8).serialize(writer)?;
                dimensions.iter().try_for_each(|dimension| dimension.serialize(writer))?;
            }
        }
        self.values.iter().try_for_each(|value| value.serialize(writer))
    }
}

impl BorshDeserialize for Array {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Array> {
        Array::read(reader, 0)
    }
}

fn refused(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Array {
    /// Reads one that so many rows enclose.
    pub(crate) fn read<R: io::Read>(reader: &mut R, enclosing: usize) -> io::Result<Array> {
        let element = ElementType::deserialize_reader(reader)?;
        if element != element.family() {
            return Err(refused(
                "expected the type of an array's elements without length, precision and scale",
            ));
        }
        let count = u32::deserialize_reader(reader)?;
        let has_dimensions = knows(ExecutionVersion::V16) && count & WITH_DIMENSIONS != 0;
        let count = if has_dimensions { count & !WITH_DIMENSIONS } else { count } as usize;
        if count > array_elements_known() {
            return Err(refused("expected at most ARRAY_ELEMENTS_MAX elements"));
        }
        let dimensions = if has_dimensions { Some(read_dimensions(reader, count)?) } else { None };
        let mut values = Vec::new();
        for _ in 0..count {
            // An array in an array would be read recursively, as deep as somebody's bytes say.
            let tag = u8::deserialize_reader(reader)?;
            if tag == ARRAY_TAG {
                return Err(refused("expected an array of one dimension"));
            }
            let value = read_inside(reader, tag, enclosing)?;
            if !fits(element, &value) {
                return Err(refused("expected elements of the array's type"));
            }
            values.push(value);
        }
        let array = match dimensions {
            None => Array::new(element, values),
            Some(dimensions) => Array::shaped(element, &dimensions, values),
        };
        array.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Those that are not one from 1, of an array of so many elements: an array has one encoding.
fn read_dimensions<R: io::Read>(reader: &mut R, count: usize) -> io::Result<Dimensions> {
    let number = usize::from(u8::deserialize_reader(reader)?);
    if number > limits::ARRAY_DIMENSIONS_MAX {
        return Err(refused("expected at most ARRAY_DIMENSIONS_MAX dimensions"));
    }
    let mut dimensions = Dimensions::new();
    for _ in 0..number {
        let dimension = Dimension::deserialize_reader(reader)?;
        if Dimension::spanning(&dimension.span()).is_err() {
            return Err(refused("expected dimensions that end in front of the largest subscript"));
        }
        dimensions.push(dimension);
    }
    if count == 0 || elements_in(&dimensions) != count || dimensions[..] == plain(count)[..] {
        return Err(refused("expected dimensions that hold the array's elements, and not one from 1"));
    }
    Ok(dimensions)
}
