//! PostgreSQL's text form of arrays: `{1,NULL,"a b"}`, `{{1,2},{3,4}}`, `[0:1]={1,2}`.

use super::dimensions::{Dimension, Dimensions, check_dimensions, elements_in};
use super::room::JsonRoom;
use super::value::{Array, check_array_elements};
use crate::value_limits::arrays_are_plain;
use crate::{ElementType, SqlError, SqlState, Value};
use std::fmt::Write;

/// Reads PostgreSQL's text form.
///
/// # Errors
/// `22P02` where it is malformed, before execution version 16 `0A000` for more than one dimension and bounds, and what the elements raise.
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
    let (mut values, mut room) = (Vec::new(), JsonRoom::default());
    let mut value_of = |text: Option<String>| match text {
        Some(text) => room.take(parse(&text)?),
        None => Ok(Value::Null),
    };
    let mut reader = Reader::new(text);
    if reader.is_plain {
        reader.read(&mut |text| {
            values.push(value_of(text)?);
            Ok(values.len())
        })?;
        return Array::new(element, values);
    }
    // As in PostgreSQL, where the braces are looked at before what they hold.
    let mut texts = Vec::new();
    let dimensions = reader.read(&mut |text| {
        texts.push(text);
        Ok(texts.len())
    })?;
    for text in texts {
        values.push(value_of(text)?);
    }
    Array::shaped(element, &dimensions, values)
}

/// Writes an array as PostgreSQL does.
pub(crate) fn format_array(array: &Array) -> String {
    let mut text = String::new();
    let dimensions = array.dimensions();
    if dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in &dimensions {
            let _ = write!(text, "[{}:{}]", dimension.lower, dimension.upper());
        }
        text.push('=');
    }
    match dimensions.as_slice() {
        [] => text.push_str("{}"),
        dimensions => write_level(&mut text, dimensions, array.values()),
    }
    text
}

fn write_level(text: &mut String, dimensions: &[Dimension], values: &[Value]) {
    text.push('{');
    match dimensions {
        [_, inner @ ..] if !inner.is_empty() => {
            for (index, part) in values.chunks(elements_in(inner).max(1)).enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_level(text, inner, part);
            }
        }
        _ => write_elements(text, values),
    }
    text.push('}');
}

fn write_elements(text: &mut String, values: &[Value]) {
    for (index, value) in values.iter().enumerate() {
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

/// Takes the text of the next element, `None` for NULL, and says how many it has got.
type Take<'a> = dyn FnMut(Option<String>) -> Result<usize, SqlError> + 'a;

/// What is left of an array's text.
struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    /// Before execution version 16: one dimension from 1, and with the details that errors had.
    is_plain: bool,
    /// How many there are in each level of braces, once one of it is closed.
    lengths: Vec<Option<u32>>,
    /// In how many braces the elements are, once there is one.
    element_depth: Option<usize>,
}

impl<'a> Reader<'a> {
    fn new(whole: &'a str) -> Reader<'a> {
        let (rest, is_plain) = (whole.trim_matches(is_space), arrays_are_plain());
        Reader { whole, rest, is_plain, lengths: Vec::new(), element_depth: None }
    }

    #[cold]
    fn malformed(&self, detail: &str) -> SqlError {
        let message = format!("malformed array literal: \"{}\"", self.whole);
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message).detail(detail)
    }

    /// What comes next has no place there.
    #[cold]
    fn unexpected(&self) -> SqlError {
        match self.rest.chars().next() {
            None => self.malformed("Unexpected end of input."),
            Some(found @ ('{' | '}' | ',' | '\\')) => {
                self.malformed(&format!("Unexpected \"{found}\" character."))
            }
            Some(_) => self.malformed("Unexpected array element."),
        }
    }

    #[cold]
    fn mismatched(&self) -> SqlError {
        self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
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

    /// Hands over all elements, and gives the dimensions.
    fn read(&mut self, take: &mut Take<'_>) -> Result<Dimensions, SqlError> {
        if self.is_plain && self.rest.starts_with('[') {
            return Err(SqlError::unsupported("an array with bounds").hint("Write it as {1,2,3}."));
        }
        let said = self.said_dimensions()?;
        if !self.rest.starts_with('{') {
            return Err(self.malformed(match said.is_empty() {
                true => "Array value must start with \"{\" or dimension information.",
                false => "Array contents must start with \"{\".",
            }));
        }
        self.level(1, take)?;
        if !self.rest.is_empty() {
            return Err(self.malformed("Junk after closing right brace."));
        }
        let lengths = if self.element_depth.is_some() { self.lengths.as_slice() } else { &[] };
        let found = lengths.iter().map(|length| Dimension::of(length.unwrap_or(0) as usize));
        let found: Dimensions = found.collect();
        if said.is_empty() {
            return Ok(found);
        }
        let is_same = |(said, found): (&Dimension, &Dimension)| said.length == found.length;
        if said.len() != found.len() || !said.iter().zip(&found).all(is_same) {
            return Err(self.malformed("Specified array dimensions do not match array contents."));
        }
        said.iter().try_for_each(|dimension| Dimension::spanning(&dimension.span()).map(drop))?;
        Ok(said)
    }

    /// `[1:2][0:1]=`, which may stand in front.
    fn said_dimensions(&mut self) -> Result<Dimensions, SqlError> {
        let mut said = Dimensions::new();
        loop {
            self.skip_spaces();
            if !self.skip('[') {
                break;
            }
            check_dimensions(said.len() + 1)?;
            let missing = "\"[\" must introduce explicitly-specified array dimensions.";
            let mut upper = self.bound().ok_or_else(|| self.malformed(missing))?;
            let mut lower = 1;
            if self.skip(':') {
                lower = upper;
                upper = self.bound().ok_or_else(|| self.malformed("Missing array dimension value."))?;
            }
            if !self.skip(']') {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            if upper < lower {
                let message = "upper bound cannot be less than lower bound";
                return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
            }
            // All numbers together are one more than the largest length, which no text has the elements for.
            let length = i64::from(upper) - i64::from(lower) + 1;
            said.push(Dimension { lower, length: u32::try_from(length).unwrap_or(u32::MAX) });
        }
        if !said.is_empty() {
            if !self.skip('=') {
                return Err(self.malformed("Missing \"=\" after array dimensions."));
            }
            self.skip_spaces();
        }
        Ok(said)
    }

    /// A whole number; the nearest one that an `integer` has.
    fn bound(&mut self) -> Option<i32> {
        let end = self.rest.find(|character: char| !matches!(character, '0'..='9' | '-' | '+'));
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if digits.is_empty() {
            return None;
        }
        let number = digits.parse::<i128>().unwrap_or(0);
        Some(number.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32)
    }

    /// What stands between braces, of which so many are open with these.
    fn level(&mut self, depth: usize, take: &mut Take<'_>) -> Result<(), SqlError> {
        self.rest = &self.rest[1..];
        check_dimensions(depth)?;
        if self.lengths.len() < depth {
            self.lengths.push(None);
        }
        self.skip_spaces();
        if depth == 1 && self.skip('}') {
            return Ok(());
        }
        let holds_levels = self.rest.starts_with('{');
        let mut length = 0;
        loop {
            self.skip_spaces();
            match (holds_levels, self.rest.starts_with('{')) {
                (true, true) if self.is_plain => {
                    return Err(SqlError::unsupported("an array of more than one dimension"));
                }
                (true, true) => self.level(depth + 1, take)?,
                (true, false) => return Err(self.unexpected()),
                (false, true) if self.is_plain => {
                    return Err(SqlError::unsupported("an array of more than one dimension"));
                }
                (false, true) => return Err(self.unexpected()),
                (false, false) => {
                    let text = self.element()?;
                    if *self.element_depth.get_or_insert(depth) != depth {
                        return Err(self.mismatched());
                    }
                    check_array_elements(take(text)?)?;
                }
            }
            length += 1;
            self.skip_spaces();
            if self.skip('}') {
                return match *self.lengths[depth - 1].get_or_insert(length) == length {
                    true => Ok(()),
                    false => Err(self.mismatched()),
                };
            }
            if !self.skip(',') {
                return Err(match self.rest.is_empty() || !self.is_plain {
                    true => self.unexpected(),
                    false => self.malformed("Incorrectly quoted array element."),
                });
            }
        }
    }

    /// The text of one element; `None` is NULL.
    fn element(&mut self) -> Result<Option<String>, SqlError> {
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
                Some('"' | '{') if self.is_plain => {
                    return Err(self.malformed("Incorrectly quoted array element."));
                }
                Some('"' | '{') => {
                    self.rest = before;
                    return Err(self.unexpected());
                }
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
