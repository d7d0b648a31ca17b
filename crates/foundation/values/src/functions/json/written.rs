//! JSON of both types, taken apart in one way.

use crate::work;
use std::borrow::Cow;
use std::sync::Arc;
use types::{
    JsonNode, JsonPart, JsonText, JsonView, Jsonb, SqlError, Value, limits, split_json, write_json_string,
};

/// A value of `json` or `jsonb`, or something that stands in one.
#[derive(Clone, Copy)]
pub(super) enum Json<'a> {
    Written(&'a str),
    Node(JsonNode<'a>),
}

/// What it is.
pub(super) enum Parts<'a> {
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    Array(Vec<Json<'a>>),
    String(Cow<'a, str>),
    Number,
    Boolean,
    Null,
}

impl<'a> Json<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Json<'a>> {
        match value {
            Value::Json(text) => Some(Json::Written(text)),
            Value::Jsonb(json) => Some(Json::Node(json.node())),
            _ => None,
        }
    }

    /// Its parts.
    ///
    /// # Errors
    /// A text with escapes that stand for no character.
    pub(super) fn parts(self) -> Result<Parts<'a>, SqlError> {
        let text = match self {
            Json::Written(text) => text,
            Json::Node(node) => {
                return Ok(match node.view() {
                    JsonView::Object(members) => Parts::Object(
                        members.map(|(key, value)| (Cow::Borrowed(key), Json::Node(value))).collect(),
                    ),
                    JsonView::Array(elements) => Parts::Array(elements.map(Json::Node).collect()),
                    JsonView::String(text) => Parts::String(Cow::Borrowed(text)),
                    JsonView::Number(_) => Parts::Number,
                    JsonView::Boolean(_) => Parts::Boolean,
                    JsonView::Null => Parts::Null,
                });
            }
        };
        // Each level of a text is read again.
        work::spend(text.len() as u64)?;
        Ok(match split_json(text)? {
            JsonText::Object(members) => Parts::Object(
                members.into_iter().map(|(key, value)| (Cow::Owned(key), Json::Written(value))).collect(),
            ),
            JsonText::Array(elements) => Parts::Array(elements.into_iter().map(Json::Written).collect()),
            JsonText::String(text) => Parts::String(Cow::Owned(text)),
            JsonText::Number(_) => Parts::Number,
            JsonText::Boolean(_) => Parts::Boolean,
            JsonText::Null => Parts::Null,
        })
    }

    /// The value of the same type that it is alone.
    ///
    /// # Errors
    /// None for what stands in a value.
    pub(super) fn value(self) -> Result<Value, SqlError> {
        match self {
            Json::Written(text) => Ok(Value::Json(Arc::from(text))),
            Json::Node(node) => Jsonb::new(&JsonPart::from(node)).map(Value::Jsonb),
        }
    }

    /// As a text that is JSON.
    ///
    /// # Errors
    /// None for what stands in a value.
    pub(super) fn written(self) -> Result<String, SqlError> {
        match self {
            Json::Written(text) => Ok(text.to_string()),
            Json::Node(node) => Ok(Jsonb::new(&JsonPart::from(node))?.to_text()),
        }
    }

    /// As a text: a string without its quotes, NULL for `null`.
    ///
    /// # Errors
    /// As [`Json::parts`].
    pub(super) fn text(self) -> Result<Value, SqlError> {
        Ok(match self.parts()? {
            Parts::Null => Value::Null,
            Parts::String(text) => Value::text(text.as_ref()),
            _ => Value::text(self.written()?),
        })
    }
}

/// The name of what a value is.
pub(super) fn kind(parts: &Parts<'_>) -> &'static str {
    match parts {
        Parts::Object(_) => "object",
        Parts::Array(_) => "array",
        Parts::String(_) => "string",
        Parts::Number => "number",
        Parts::Boolean => "boolean",
        Parts::Null => "null",
    }
}

/// Appends a text of JSON without the members that are null, at any depth, and without white space.
pub(super) fn write_without_nulls(text: &mut String, json: Json<'_>, depth: usize) -> Result<(), SqlError> {
    debug_assert!(depth <= limits::JSON_NESTING_MAX, "nothing is nested deeper");
    match json.parts()? {
        Parts::Object(members) => {
            text.push('{');
            let mut is_first = true;
            for (key, value) in members {
                if matches!(value.parts()?, Parts::Null) {
                    continue;
                }
                text.push_str(if is_first { "" } else { "," });
                is_first = false;
                write_json_string(text, &key);
                text.push(':');
                write_without_nulls(text, value, depth + 1)?;
            }
            text.push('}');
        }
        Parts::Array(elements) => {
            text.push('[');
            for (position, element) in elements.into_iter().enumerate() {
                text.push_str(if position > 0 { "," } else { "" });
                write_without_nulls(text, element, depth + 1)?;
            }
            text.push(']');
        }
        Parts::String(string) => write_json_string(text, &string),
        _ => text.push_str(&json.written()?),
    }
    Ok(())
}
