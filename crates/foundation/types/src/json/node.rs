//! Nodes: what a `jsonb` is made of, read where it stands.

use super::number::{canonical_number, compare_numbers};
use crate::limits;
use std::cmp::Ordering;

pub(super) const NULL: u8 = 0;
pub(super) const FALSE: u8 = 1;
pub(super) const TRUE: u8 = 2;
pub(super) const NUMBER: u8 = 3;
pub(super) const STRING: u8 = 4;
pub(super) const ARRAY: u8 = 5;
pub(super) const OBJECT: u8 = 6;

/// A node of a `jsonb`: its bytes and no others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonNode<'a>(&'a [u8]);

/// What a node is.
#[derive(Clone, Debug)]
pub enum JsonView<'a> {
    /// `null`
    Null,
    /// `true` and `false`
    Boolean(bool),
    /// The digits of a number, as `numeric` writes them.
    Number(&'a str),
    /// A string.
    String(&'a str),
    /// The elements of an array.
    Array(JsonElements<'a>),
    /// The members of an object, by their keys.
    Object(JsonMembers<'a>),
}

impl<'a> JsonNode<'a> {
    /// `null`
    pub const NULL: JsonNode<'static> = JsonNode(&[NULL]);

    /// Bytes that are one node.
    pub(super) fn whole(bytes: &'a [u8]) -> JsonNode<'a> {
        JsonNode(bytes)
    }

    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// What it is.
    pub fn view(self) -> JsonView<'a> {
        let Some((tag, rest)) = self.0.split_first() else { return JsonView::Null };
        let content = || split_length(rest).map_or(&[][..], |(_, content)| content);
        match *tag {
            FALSE => JsonView::Boolean(false),
            TRUE => JsonView::Boolean(true),
            NUMBER => JsonView::Number(characters(content())),
            STRING => JsonView::String(characters(content())),
            ARRAY => {
                let (count, rest) = split_length(content()).unwrap_or_default();
                JsonView::Array(JsonElements { count, rest })
            }
            OBJECT => {
                let (count, rest) = split_length(content()).unwrap_or_default();
                JsonView::Object(JsonMembers { count, rest })
            }
            _ => JsonView::Null,
        }
    }

    /// Whether it is an array or an object.
    pub fn is_container(self) -> bool {
        matches!(self.0.first(), Some(&(ARRAY | OBJECT)))
    }

    /// The elements, where it is an array.
    pub fn elements(self) -> Option<JsonElements<'a>> {
        match self.view() {
            JsonView::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The members, where it is an object.
    pub fn members(self) -> Option<JsonMembers<'a>> {
        match self.view() {
            JsonView::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The value of this key, where it is an object that has it.
    pub fn member(self, key: &str) -> Option<JsonNode<'a>> {
        self.members()?.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The element at this place, counted from 0, or from the end and -1, where it is an array that has it.
    pub fn element(self, index: i64) -> Option<JsonNode<'a>> {
        let mut elements = self.elements()?;
        let from_start = if index < 0 { index.checked_add(elements.len() as i64)? } else { index };
        elements.nth(usize::try_from(from_start).ok()?)
    }

    /// Whether both are numbers of the same value, however they are written.
    pub fn is_equal_number(self, other: JsonNode<'_>) -> bool {
        match (self.view(), other.view()) {
            (JsonView::Number(left), JsonView::Number(right)) => compare_numbers(left, right).is_eq(),
            _ => false,
        }
    }
}

/// The elements of an array that are still to come.
#[derive(Clone, Debug)]
pub struct JsonElements<'a> {
    count: usize,
    rest: &'a [u8],
}

impl<'a> JsonElements<'a> {
    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "an iterator")]
    pub fn len(&self) -> usize {
        self.count
    }
}

impl<'a> Iterator for JsonElements<'a> {
    type Item = JsonNode<'a>;

    fn next(&mut self) -> Option<JsonNode<'a>> {
        self.count = self.count.checked_sub(1)?;
        let (node, rest) = split_node(self.rest)?;
        self.rest = rest;
        Some(node)
    }
}

/// The members of an object that are still to come.
#[derive(Clone, Debug)]
pub struct JsonMembers<'a> {
    count: usize,
    rest: &'a [u8],
}

impl<'a> JsonMembers<'a> {
    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "an iterator")]
    pub fn len(&self) -> usize {
        self.count
    }
}

impl<'a> Iterator for JsonMembers<'a> {
    type Item = (&'a str, JsonNode<'a>);

    fn next(&mut self) -> Option<(&'a str, JsonNode<'a>)> {
        self.count = self.count.checked_sub(1)?;
        let (key, rest) = split_content(self.rest)?;
        let (node, rest) = split_node(rest)?;
        self.rest = rest;
        Some((characters(key), node))
    }
}

/// The order of keys in an object of type `jsonb`.
pub fn compare_json_keys(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

fn characters(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// A length, and what stands behind it.
fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0usize;
    for (position, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            // One length has one form.
            return (position == 0 || *byte != 0).then_some((length, &bytes[position + 1..]));
        }
    }
    None
}

/// As many bytes as the length in front of them says, and what stands behind them.
fn split_content(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_length(bytes)?;
    rest.split_at_checked(length)
}

/// The first node, and what stands behind it.
fn split_node(bytes: &[u8]) -> Option<(JsonNode<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let after = match *tag {
        NULL | FALSE | TRUE => rest,
        _ => split_content(rest)?.1,
    };
    let (node, after) = bytes.split_at_checked(bytes.len() - after.len())?;
    Some((JsonNode(node), after))
}

/// Whether the bytes are a node as this program writes it.
pub(super) fn is_canonical(bytes: &[u8]) -> bool {
    split_node(bytes).is_some_and(|(node, rest)| rest.is_empty() && is_canonical_node(node.0, 0))
}

fn is_canonical_node(node: &[u8], depth: usize) -> bool {
    let Some((tag, rest)) = node.split_first() else { return false };
    if matches!(*tag, NULL | FALSE | TRUE) {
        return rest.is_empty();
    }
    let Some((content, &[])) = split_content(rest) else { return false };
    match *tag {
        NUMBER => std::str::from_utf8(content).is_ok_and(is_canonical_number),
        STRING => std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0')),
        ARRAY | OBJECT if depth >= limits::JSON_NESTING_MAX => false,
        ARRAY => split_length(content).is_some_and(|(count, mut rest)| {
            for _ in 0..count {
                let Some((element, after)) = split_node(rest) else { return false };
                if !is_canonical_node(element.0, depth + 1) {
                    return false;
                }
                rest = after;
            }
            rest.is_empty()
        }),
        OBJECT => {
            split_length(content).is_some_and(|(count, rest)| has_canonical_members(count, rest, depth))
        }
        _ => false,
    }
}

fn has_canonical_members(count: usize, mut rest: &[u8], depth: usize) -> bool {
    let mut last: Option<&str> = None;
    for _ in 0..count {
        let Some((key, after)) = split_content(rest) else { return false };
        let Ok(key) = std::str::from_utf8(key) else { return false };
        let ascends = last.is_none_or(|last| compare_json_keys(last, key).is_lt());
        let Some((value, after)) = split_node(after) else { return false };
        if !ascends || key.contains('\0') || !is_canonical_node(value.0, depth + 1) {
            return false;
        }
        (last, rest) = (Some(key), after);
    }
    rest.is_empty()
}

fn is_canonical_number(digits: &str) -> bool {
    !digits.contains(['e', 'E']) && canonical_number(digits).is_some_and(|written| written == digits)
}
