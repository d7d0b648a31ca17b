//! Parts from which values of type `jsonb` are put together.

use super::node::{ARRAY, FALSE, JsonNode, NULL, NUMBER, OBJECT, STRING, TRUE, compare_keys};
use super::too_long;
use crate::{Jsonb, Numeric, SqlError, limits};
use std::borrow::Cow;

/// Something that a `jsonb` is made of: a node that stands somewhere, or a new one.
#[derive(Clone, Debug)]
pub struct JsonPart<'a>(Cow<'a, [u8]>);

impl<'a> From<JsonNode<'a>> for JsonPart<'a> {
    fn from(node: JsonNode<'a>) -> JsonPart<'a> {
        JsonPart(Cow::Borrowed(node.bytes()))
    }
}

impl<'a> JsonPart<'a> {
    /// `null`
    pub const NULL: JsonPart<'static> = JsonPart(Cow::Borrowed(&[NULL]));

    /// A copy of a whole value.
    pub fn owned(value: &Jsonb) -> JsonPart<'static> {
        JsonPart(Cow::Owned(value.bytes().to_vec()))
    }

    /// `true` or `false`
    pub fn boolean(truth: bool) -> JsonPart<'static> {
        JsonPart(Cow::Borrowed(if truth { &[TRUE] } else { &[FALSE] }))
    }

    /// A number; what is none, such as infinity, becomes a string as in PostgreSQL.
    pub fn number(number: &Numeric) -> JsonPart<'static> {
        let tag = if number.is_special() { STRING } else { NUMBER };
        JsonPart(Cow::Owned(with_content(tag, number.to_string().as_bytes())))
    }

    /// A number, by its digits as `numeric` writes them.
    pub(super) fn digits(digits: &str) -> JsonPart<'static> {
        JsonPart(Cow::Owned(with_content(NUMBER, digits.as_bytes())))
    }

    /// A string.
    pub fn string(text: &str) -> JsonPart<'static> {
        JsonPart(Cow::Owned(with_content(STRING, text.as_bytes())))
    }

    /// An array of these.
    ///
    /// # Errors
    /// `54000` where it is longer than any value.
    pub fn array(elements: &[JsonPart<'_>]) -> Result<JsonPart<'static>, SqlError> {
        let mut content = Vec::new();
        push_length(&mut content, elements.len());
        for element in elements {
            content.extend_from_slice(&element.0);
            check_length(&content)?;
        }
        Ok(JsonPart(Cow::Owned(with_content(ARRAY, &content))))
    }

    /// An object of these keys and values, in any order; of several with one key the last one.
    ///
    /// # Errors
    /// `54000` where it is longer than any value.
    pub fn object(mut members: Vec<(Cow<'_, str>, JsonPart<'_>)>) -> Result<JsonPart<'static>, SqlError> {
        // Among equal keys the last one comes first, and the others go.
        members.reverse();
        members.sort_by(|(left, _), (right, _)| compare_keys(left, right));
        members.dedup_by(|(left, _), (right, _)| left == right);
        let mut content = Vec::new();
        push_length(&mut content, members.len());
        for (key, value) in &members {
            push_length(&mut content, key.len());
            content.extend_from_slice(key.as_bytes());
            content.extend_from_slice(&value.0);
            check_length(&content)?;
        }
        Ok(JsonPart(Cow::Owned(with_content(OBJECT, &content))))
    }

    /// The node that it is.
    pub fn node(&self) -> JsonNode<'_> {
        JsonNode::whole(&self.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What is made out of large values must not take more memory than a few of them.
fn check_length(content: &[u8]) -> Result<(), SqlError> {
    // A node takes at most a few bytes more than its text.
    if content.len() > 4 * limits::TEXT_BYTES_MAX { Err(too_long(content.len())) } else { Ok(()) }
}

fn with_content(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 4);
    bytes.push(tag);
    push_length(&mut bytes, content.len());
    bytes.extend_from_slice(content);
    bytes
}

fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}
