//! Values of type `jsonb` as texts.

use super::json_too_deep;
use super::node::{JsonNode, JsonView};
use crate::{SqlError, limits};
use std::fmt::Write;

/// Appends a node as PostgreSQL writes it.
pub(super) fn write_node(text: &mut String, node: JsonNode<'_>) {
    match node.view() {
        JsonView::Null => text.push_str("null"),
        JsonView::Boolean(truth) => text.push_str(if truth { "true" } else { "false" }),
        JsonView::Number(digits) => text.push_str(digits),
        JsonView::String(string) => write_json_string(text, string),
        JsonView::Array(elements) => {
            text.push('[');
            for (position, element) in elements.enumerate() {
                text.push_str(if position > 0 { ", " } else { "" });
                write_node(text, element);
            }
            text.push(']');
        }
        JsonView::Object(members) => {
            text.push('{');
            for (position, (key, value)) in members.enumerate() {
                text.push_str(if position > 0 { ", " } else { "" });
                write_json_string(text, key);
                text.push_str(": ");
                write_node(text, value);
            }
            text.push('}');
        }
    }
}

/// Bytes of a node as a text.
///
/// # Errors
/// `54001` where it is nested too deeply.
pub(super) fn text_bytes(node: JsonNode<'_>, depth: usize) -> Result<usize, SqlError> {
    if depth >= limits::JSON_NESTING_MAX && node.is_container() {
        return Err(json_too_deep());
    }
    let between = |count: usize| 2 + 2 * count.saturating_sub(1);
    Ok(match node.view() {
        JsonView::Null | JsonView::Boolean(true) => 4,
        JsonView::Boolean(false) => 5,
        JsonView::Number(digits) => digits.len(),
        JsonView::String(string) => string_bytes(string),
        JsonView::Array(elements) => {
            let mut bytes = between(elements.len());
            for element in elements {
                bytes += text_bytes(element, depth + 1)?;
            }
            bytes
        }
        JsonView::Object(members) => {
            let mut bytes = between(members.len());
            for (key, value) in members {
                bytes += string_bytes(key) + 2 + text_bytes(value, depth + 1)?;
            }
            bytes
        }
    })
}

fn string_bytes(string: &str) -> usize {
    let of_byte = |byte: u8| match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 2,
        0..=31 => 6,
        _ => 1,
    };
    2 + string.bytes().map(of_byte).sum::<usize>()
}

/// A string as JSON writes it.
pub fn quoted_json(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    write_json_string(&mut text, string);
    text
}

/// Appends a string in quotes, with a backslash in front of what cannot stand in them.
pub fn write_json_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' => {
                write!(text, "\\u{:04x}", u32::from(character)).expect("writing to memory cannot fail");
            }
            other => text.push(other),
        }
    }
    text.push('"');
}
