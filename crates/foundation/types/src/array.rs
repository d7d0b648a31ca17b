use crate::composite::{ARRAY_TAG, read_inside, written_bytes};
use crate::json::check_length;
use crate::{DataType, ElementType, SqlError, SqlState, Value, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::cmp::Ordering;
use std::io;

/// A one-dimensional array, whose first element has the subscript 1. Of at most [`limits::ARRAY_ELEMENTS_MAX`] elements
/// and [`limits::TEXT_BYTES_MAX`] bytes of content.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Array {
    element: ElementType,
    values: Vec<Value>,
}

impl Array {
    /// The array of these values, each NULL or of the element type.
    ///
    /// # Errors
    /// `54000` where it is too large.
    pub fn new(element: ElementType, values: Vec<Value>) -> Result<Array, SqlError> {
        debug_assert!(values.iter().all(|value| fits(element, value)), "{element:?} {values:?}");
        let limit = limits::ARRAY_ELEMENTS_MAX;
        if values.len() > limit {
            let message =
                format!("the array has {} elements, the limit is {limit} (ARRAY_ELEMENTS_MAX)", values.len());
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let bytes: usize = values.iter().map(content_bytes).sum();
        if bytes > crate::text_bytes_max() {
            let message = format!(
                "the elements of the array have {bytes} bytes, the limit is {} (TEXT_BYTES_MAX)",
                crate::text_bytes_max()
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(Array { element: element.family(), values })
    }

    /// The type of the elements, without length, precision and scale.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The elements.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The element with this subscript, from 1; NULL where there is none.
    pub fn get(&self, subscript: i64) -> Value {
        let index = subscript.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.values.get(index)).cloned().unwrap_or_default()
    }

    /// Element by element, NULLs last and equal to one another; a shorter array comes before one that it begins.
    pub fn compare(&self, other: &Array) -> Ordering {
        let pairs = self.values.iter().zip(&other.values);
        pairs
            .map(|(left, right)| left.sort_compare(right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
    }
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

/// Values that are made one after the other, as long as what is `jsonb` in them has room.
///
/// # Errors
/// `54000` where it has none; those of the values.
pub(crate) fn values_with_room(
    values: impl Iterator<Item = Result<Value, SqlError>>,
) -> Result<Vec<Value>, SqlError> {
    let mut room = JsonRoom::default();
    values.map(|value| room.take(value?)).collect()
}

/// Counts what is `jsonb` in values that are made one after the other: a few characters may become a number of a hundred
/// thousand digits.
#[derive(Default)]
struct JsonRoom {
    taken: usize,
}

impl JsonRoom {
    /// One more value.
    ///
    /// # Errors
    /// `54000` where all together are longer than any value.
    fn take(&mut self, value: Value) -> Result<Value, SqlError> {
        self.taken += json_bytes(&value);
        check_length(self.taken)?;
        Ok(value)
    }
}

/// Bytes of all that is `jsonb` in a value.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Jsonb(json) => json.bytes().len(),
        Value::Array(array) => array.values().iter().map(json_bytes).sum(),
        Value::Composite(row) => row.values().iter().map(json_bytes).sum(),
        _ => 0,
    }
}

impl BorshDeserialize for Array {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Array> {
        Array::read(reader, 0)
    }
}

impl Array {
    /// Reads one that so many rows enclose.
    pub(crate) fn read<R: io::Read>(reader: &mut R, enclosing: usize) -> io::Result<Array> {
        let refused = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let element = ElementType::deserialize_reader(reader)?;
        if element != element.family() {
            return Err(refused(
                "expected the type of an array's elements without length, precision and scale",
            ));
        }
        let count = u32::deserialize_reader(reader)? as usize;
        if count > limits::ARRAY_ELEMENTS_MAX {
            return Err(refused("expected at most ARRAY_ELEMENTS_MAX elements"));
        }
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
        Array::new(element, values).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Reads PostgreSQL's text form: `{1,NULL,"a b"}`.
///
/// # Errors
/// `22P02` where it is malformed, `0A000` for more than one dimension and bounds, and what the elements raise.
pub(crate) fn parse_array(text: &str, element: ElementType) -> Result<Array, SqlError> {
    parse_array_of(text, element, &|text| crate::parse_value(text, element.data_type()))
}

/// The same, whose elements something else reads.
///
/// # Errors
/// As [`parse_array`].
pub(crate) fn parse_array_of(
    text: &str,
    element: ElementType,
    parse: &dyn Fn(&str) -> Result<Value, SqlError>,
) -> Result<Array, SqlError> {
    let mut reader = Reader { whole: text, rest: text.trim_matches(is_space) };
    let values = reader.elements(element, parse)?;
    if !reader.rest.is_empty() {
        return Err(reader.malformed("Junk after closing right brace."));
    }
    Array::new(element, values)
}

/// Writes an array as PostgreSQL does.
pub(crate) fn format_array(array: &Array) -> String {
    let mut text = String::from("{");
    for (index, value) in array.values.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match crate::format_value(value) {
            None => text.push_str("NULL"),
            Some(element) if needs_quotes(&element) => {
                text.push('"');
                for character in element.chars() {
                    if matches!(character, '"' | '\\') {
                        text.push('\\');
                    }
                    text.push(character);
                }
                text.push('"');
            }
            Some(element) => text.push_str(&element),
        }
    }
    text.push('}');
    text
}

fn needs_quotes(element: &str) -> bool {
    element.is_empty()
        || element.eq_ignore_ascii_case("null")
        || element
            .contains(|character| matches!(character, '{' | '}' | ',' | '"' | '\\') || is_space(character))
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t'..='\r')
}

/// What is left of an array's text.
struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    #[cold]
    fn malformed(&self, detail: &str) -> SqlError {
        let message = format!("malformed array literal: \"{}\"", self.whole);
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).detail(detail)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn skip(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn elements(
        &mut self,
        element: ElementType,
        parse: &dyn Fn(&str) -> Result<Value, SqlError>,
    ) -> Result<Vec<Value>, SqlError> {
        if self.rest.starts_with('[') {
            return Err(SqlError::unsupported("an array with bounds").hint("Write it as {1,2,3}."));
        }
        if !self.skip('{') {
            return Err(self.malformed("Array value must start with \"{\" or dimension information."));
        }
        let mut values = Vec::new();
        self.skip_spaces();
        if self.skip('}') {
            return Ok(values);
        }
        let mut room = JsonRoom::default();
        loop {
            self.skip_spaces();
            values.push(match self.element()? {
                Some(text) => room.take(parse(&text)?)?,
                None => Value::Null,
            });
            if values.len() > limits::ARRAY_ELEMENTS_MAX {
                // Says the limit.
                return Array::new(element, values).map(|array| array.values);
            }
            self.skip_spaces();
            if self.skip('}') {
                return Ok(values);
            }
            if !self.skip(',') {
                let detail = match self.rest.chars().next() {
                    Some(_) => "Incorrectly quoted array element.",
                    None => "Unexpected end of input.",
                };
                return Err(self.malformed(detail));
            }
        }
    }

    /// The text of one element; `None` is NULL.
    fn element(&mut self) -> Result<Option<String>, SqlError> {
        if self.rest.starts_with('{') {
            return Err(SqlError::unsupported("an array of more than one dimension"));
        }
        let mut text = String::new();
        if self.skip('"') {
            let mut characters = self.rest.chars();
            loop {
                match characters.next() {
                    Some('"') => break,
                    Some('\\') => text.extend(characters.next()),
                    Some(character) => text.push(character),
                    None => return Err(self.malformed("Unexpected end of input.")),
                }
            }
            self.rest = characters.as_str();
            return Ok(Some(text));
        }
        // Spaces at the end do not count, unless they are escaped.
        let mut kept = 0;
        let mut escaped = false;
        let mut characters = self.rest.chars();
        loop {
            let before = characters.as_str();
            match characters.next() {
                Some(',' | '}') => {
                    self.rest = before;
                    break;
                }
                Some('"' | '{') => return Err(self.malformed("Incorrectly quoted array element.")),
                Some('\\') => {
                    text.extend(characters.next());
                    escaped = true;
                    kept = text.len();
                }
                Some(character) => {
                    text.push(character);
                    if !is_space(character) {
                        kept = text.len();
                    }
                }
                None => return Err(self.malformed("Unexpected end of input.")),
            }
        }
        text.truncate(kept);
        if text.is_empty() && !escaped {
            let next = self.rest.chars().next().unwrap_or('}');
            return Err(self.malformed(&format!("Unexpected \"{next}\" character.")));
        }
        Ok((escaped || !text.eq_ignore_ascii_case("null")).then_some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_read_back() {
        let element = ElementType::new(DataType::Text(None)).expect("an element type");
        let array =
            parse_array(" { a , NULL,\"NULL\", \"q\\\"\\\\\" ,\"\",b c } ", element).expect("an array");
        assert_eq!(format_array(&array), "{a,NULL,\"NULL\",\"q\\\"\\\\\",\"\",\"b c\"}");
        let read: Array = crate::decode_exactly(&crate::encode(&array)).expect("what encode wrote");
        assert_eq!(read, array);
        for wrong in ["", "{", "{a", "{a,}", "{,a}", "a}", "{a}b", "{\"a}", "{a\"b\"}"] {
            assert!(parse_array(wrong, element).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_array_in_an_array_is_refused_when_read() {
        let element = ElementType::new(DataType::Integer).expect("an element type");
        let array = Array::new(element, vec![Value::Integer(1)]).expect("small");
        let mut bytes = crate::encode(&Value::Array(std::sync::Arc::new(array)));
        let tag = bytes[0];
        bytes[6] = tag;
        assert!(crate::decode_exactly::<Value>(&bytes).is_err());
    }
}
