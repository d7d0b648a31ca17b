//! Parts from which values of type `jsonb` are put together.

use super::node::{ARRAY, FALSE, JsonNode, NULL, NUMBER, OBJECT, STRING, TRUE, compare_json_keys};
use super::too_long;
use crate::{Jsonb, Numeric, SqlError};
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

    /// A node as it is stored.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> JsonPart<'static> {
        JsonPart(Cow::Owned(bytes))
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
        JsonPart::array_of(elements.len(), elements.iter().cloned().map(Ok))
    }

    /// An array of so many elements that are made one after the other, as long as there is room for them.
    ///
    /// # Errors
    /// `54000` where it is longer than any value; those of the elements.
    pub fn array_of<'p>(
        count: usize,
        elements: impl Iterator<Item = Result<JsonPart<'p>, SqlError>>,
    ) -> Result<JsonPart<'static>, SqlError> {
        let mut content = Vec::new();
        push_length(&mut content, count);
        for element in elements {
            content.extend_from_slice(&element?.0);
            check_length(content.len())?;
        }
        Ok(JsonPart(Cow::Owned(with_content(ARRAY, &content))))
    }

    /// An object of members that are made one after the other, as long as there is room for them.
    ///
    /// # Errors
    /// As [`JsonPart::object`]; those of the members.
    pub fn object_of<'p>(
        members: impl Iterator<Item = Result<(Cow<'p, str>, JsonPart<'p>), SqlError>>,
    ) -> Result<JsonPart<'static>, SqlError> {
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for member in members {
            let (key, value) = member?;
            bytes += key.len() + value.0.len();
            kept.push((key, value));
            if bytes > 2 * content_bytes_max() {
                sort_members(&mut kept);
                bytes = kept.iter().map(|(key, value)| key.len() + value.0.len()).sum();
                if bytes > content_bytes_max() {
                    break;
                }
            }
        }
        JsonPart::object(kept)
    }

    /// An object of these keys and values, in any order; of several with one key the last one.
    ///
    /// # Errors
    /// `54000` where it is longer than any value.
    pub fn object(mut members: Vec<(Cow<'_, str>, JsonPart<'_>)>) -> Result<JsonPart<'static>, SqlError> {
        sort_members(&mut members);
        let mut content = Vec::new();
        push_length(&mut content, members.len());
        for (key, value) in &members {
            push_length(&mut content, key.len());
            content.extend_from_slice(key.as_bytes());
            content.extend_from_slice(&value.0);
            check_length(content.len())?;
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

/// A node takes at most a few bytes more than its text.
fn content_bytes_max() -> usize {
    4 * crate::text_bytes_max()
}

/// What is made out of large values must not take more memory than a few of them.
pub(crate) fn check_length(content: usize) -> Result<(), SqlError> {
    if content > content_bytes_max() { Err(too_long(content)) } else { Ok(()) }
}

/// By their keys; among equal ones the last one comes first, and the others go.
pub(super) fn sort_members<K: AsRef<str>, V>(members: &mut Vec<(K, V)>) {
    members.reverse();
    members.sort_by(|(left, _), (right, _)| compare_json_keys(left.as_ref(), right.as_ref()));
    members.dedup_by(|(left, _), (right, _)| left.as_ref() == right.as_ref());
}

fn with_content(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 4);
    bytes.push(tag);
    push_length(&mut bytes, content.len());
    bytes.extend_from_slice(content);
    bytes
}

/// Bytes that a length takes.
pub(super) fn length_bytes(length: usize) -> usize {
    (length.max(1).ilog2() / 7 + 1) as usize
}

pub(super) fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
}
