//! What stands in JSON: members, elements, and paths to them.

use crate::functions::entry::{Computed, Function, code};
use std::sync::Arc;
use types::{JsonNode, JsonPart, JsonText, JsonView, Jsonb, SqlError, Value, split_json};

/// `value[subscript]…` of a `jsonb`: the subscripts are texts.
pub static JSON_SUBSCRIPT: Function = Function::form(
    &["[]"],
    code!(
        [Value::Jsonb(json), path @ ..] => {
            let path: Vec<&str> = path.iter().filter_map(super::text_of).collect();
            found(find(json.node(), &path))
        }
    ),
);

/// The node that a `jsonb` is.
pub(super) fn node_of(value: &Value) -> Option<JsonNode<'_>> {
    match value {
        Value::Jsonb(json) => Some(json.node()),
        _ => None,
    }
}

/// A step on a path: a key where there is an object, a number where there is an array.
fn step<'a>(node: JsonNode<'a>, name: &str) -> Option<JsonNode<'a>> {
    match node.view() {
        JsonView::Object(_) => node.member(name),
        JsonView::Array(_) => node.element(index(name)?),
        _ => None,
    }
}

/// A step of a path as a number, as C reads one: white space may stand in front of it.
pub(super) fn index(name: &str) -> Option<i64> {
    let digits = name.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    digits.parse::<i32>().ok().map(i64::from)
}

pub(super) fn find<'a>(node: JsonNode<'a>, path: &[&str]) -> Option<JsonNode<'a>> {
    path.iter().try_fold(node, |node, name| step(node, name))
}

/// What was found as a `jsonb`.
pub(super) fn found(node: Option<JsonNode<'_>>) -> Computed {
    node.map_or(Ok(Value::Null), |node| Jsonb::new(&JsonPart::from(node)).map(Value::Jsonb))
}

/// What was found as a text: a string without its quotes, NULL for `null`.
pub(super) fn found_text(node: Option<JsonNode<'_>>) -> Computed {
    let Some(node) = node else { return Ok(Value::Null) };
    Ok(match node.view() {
        JsonView::Null => Value::Null,
        JsonView::String(text) => Value::text(text),
        _ => Value::text(Jsonb::new(&JsonPart::from(node))?.to_text()),
    })
}

/// The member of a text; of several with one key the last one.
pub(super) fn member_written<'a>(text: &'a str, key: &str) -> Result<Option<&'a str>, SqlError> {
    Ok(match split_json(text)? {
        JsonText::Object(members) => last_member(&members, key),
        _ => None,
    })
}

fn last_member<'a>(members: &[(String, &'a str)], key: &str) -> Option<&'a str> {
    members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
}

/// The element of a text.
pub(super) fn element_written(text: &str, index: i64) -> Result<Option<&str>, SqlError> {
    Ok(match split_json(text)? {
        JsonText::Array(elements) => element_at(&elements, index),
        _ => None,
    })
}

fn element_at<'a>(elements: &[&'a str], index: i64) -> Option<&'a str> {
    let from_start = if index < 0 { index + elements.len() as i64 } else { index };
    usize::try_from(from_start).ok().and_then(|place| elements.get(place)).copied()
}

/// What a path leads to in a text.
pub(super) fn find_written<'a>(text: &'a str, path: &[&str]) -> Result<Option<&'a str>, SqlError> {
    let mut here = text;
    for name in path {
        crate::work::spend(here.len() as u64)?;
        let next = match split_json(here)? {
            JsonText::Object(members) => last_member(&members, name),
            JsonText::Array(elements) => index(name).and_then(|place| element_at(&elements, place)),
            _ => None,
        };
        let Some(next) = next else { return Ok(None) };
        here = next;
    }
    Ok(Some(here))
}

/// What was found in a text.
pub(super) fn written(text: Option<&str>) -> Computed {
    Ok(text.map_or(Value::Null, |text| Value::Json(Arc::from(text))))
}

/// The same as a text: a string without its quotes, NULL for `null`.
pub(super) fn written_text(text: Option<&str>) -> Computed {
    let Some(text) = text else { return Ok(Value::Null) };
    Ok(match split_json(text)? {
        JsonText::Null => Value::Null,
        JsonText::String(string) => Value::text(string),
        _ => Value::text(text),
    })
}
