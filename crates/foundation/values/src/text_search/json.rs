//! The texts in a JSON value, one after the other.

use crate::work;
use std::borrow::Cow;
use std::sync::Arc;
use types::{
    JsonNode, JsonPart, JsonText, JsonView, Jsonb, SqlError, SqlState, Value, check_json, split_json,
    write_json_string,
};

/// Which parts of a JSON value count.
#[derive(Clone, Copy)]
struct Kinds {
    strings: bool,
    numbers: bool,
    booleans: bool,
    keys: bool,
}

/// The texts in a value of type `json` or `jsonb`: its strings, or what a second one names.
///
/// # Errors
/// `22023` where that names something else.
pub(crate) fn json_texts<'v>(json: &'v Value, kinds: Option<&Value>) -> Result<Vec<Cow<'v, str>>, SqlError> {
    let kinds = match kinds {
        Some(Value::Jsonb(kinds)) => Kinds::named(kinds.node())?,
        _ => Kinds { strings: true, numbers: false, booleans: false, keys: false },
    };
    let mut texts = Vec::new();
    match json {
        Value::Jsonb(json) => of_node(json.node(), kinds, &mut texts),
        Value::Json(json) => of_text(json, kinds, &mut texts)?,
        _ => {}
    }
    Ok(texts)
}

impl Kinds {
    /// Those that an array of strings names, or one string.
    fn named(node: JsonNode<'_>) -> Result<Kinds, SqlError> {
        const HINT: &str = "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
        let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).hint(HINT);
        let mut kinds = Kinds { strings: false, numbers: false, booleans: false, keys: false };
        let elements: Vec<JsonNode<'_>> = match node.view() {
            JsonView::Object(_) => {
                return Err(wrong("wrong flag type, only arrays and scalars are allowed".to_string()));
            }
            JsonView::Array(elements) => elements.collect(),
            _ => vec![node],
        };
        for element in elements {
            let JsonView::String(name) = element.view() else {
                return Err(wrong("flag array element is not a string".to_string()));
            };
            match name.to_ascii_lowercase().as_str() {
                "all" => kinds = Kinds { strings: true, numbers: true, booleans: true, keys: true },
                "string" => kinds.strings = true,
                "numeric" => kinds.numbers = true,
                "boolean" => kinds.booleans = true,
                "key" => kinds.keys = true,
                _ => {
                    let shown: String = name.chars().take(64).collect();
                    return Err(wrong(format!("wrong flag in flag array: \"{shown}\"")));
                }
            }
        }
        Ok(kinds)
    }
}

/// A value is nested at most [`types::limits::JSON_NESTING_MAX`] deep.
fn of_node<'v>(node: JsonNode<'v>, kinds: Kinds, texts: &mut Vec<Cow<'v, str>>) {
    match node.view() {
        JsonView::String(text) if kinds.strings => texts.push(Cow::Borrowed(text)),
        JsonView::Number(digits) if kinds.numbers => texts.push(Cow::Borrowed(digits)),
        JsonView::Boolean(truth) if kinds.booleans => {
            texts.push(Cow::Borrowed(if truth { "true" } else { "false" }))
        }
        JsonView::Array(elements) => elements.for_each(|element| of_node(element, kinds, texts)),
        JsonView::Object(members) => {
            for (key, value) in members {
                if kinds.keys {
                    texts.push(Cow::Borrowed(key));
                }
                of_node(value, kinds, texts);
            }
        }
        _ => {}
    }
}

fn of_text<'v>(json: &'v str, kinds: Kinds, texts: &mut Vec<Cow<'v, str>>) -> Result<(), SqlError> {
    // What stands in it is read again.
    work::spend(json.len() as u64)?;
    match split_json(json)? {
        JsonText::String(text) if kinds.strings => texts.push(Cow::Owned(text)),
        JsonText::Number(digits) if kinds.numbers => texts.push(Cow::Borrowed(digits)),
        JsonText::Boolean(truth) if kinds.booleans => {
            texts.push(Cow::Borrowed(if truth { "true" } else { "false" }))
        }
        JsonText::Array(elements) => {
            elements.into_iter().try_for_each(|element| of_text(element, kinds, texts))?
        }
        JsonText::Object(members) => {
            for (key, value) in members {
                if kinds.keys {
                    texts.push(Cow::Owned(key));
                }
                of_text(value, kinds, texts)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// What a string becomes.
type Change<'c> = dyn FnMut(&str) -> Result<String, SqlError> + 'c;

/// The value with another text for each of its strings.
///
/// # Errors
/// `54000` where it is too long then; those of `change`.
pub(crate) fn with_json_texts(json: &Value, change: &mut Change<'_>) -> Result<Value, SqlError> {
    match json {
        Value::Jsonb(json) => Ok(Value::Jsonb(Jsonb::new(&changed_node(json.node(), change)?)?)),
        Value::Json(json) => {
            let mut written = String::new();
            write_changed(json, change, &mut written)?;
            check_json(&written)?;
            Ok(Value::Json(Arc::from(written)))
        }
        other => Ok(other.clone()),
    }
}

fn changed_node<'v>(node: JsonNode<'v>, change: &mut Change<'_>) -> Result<JsonPart<'v>, SqlError> {
    match node.view() {
        JsonView::String(text) => Ok(JsonPart::string(&change(text)?)),
        JsonView::Array(elements) => {
            let count = elements.len();
            JsonPart::array_of(count, elements.map(|element| changed_node(element, change)))
        }
        JsonView::Object(members) => JsonPart::object_of(
            members.map(|(key, value)| Ok((Cow::Borrowed(key), changed_node(value, change)?))),
        ),
        _ => Ok(JsonPart::from(node)),
    }
}

/// As PostgreSQL writes it then: without blanks.
fn write_changed(json: &str, change: &mut Change<'_>, written: &mut String) -> Result<(), SqlError> {
    // What stands in it is read again.
    work::spend(json.len() as u64)?;
    match split_json(json)? {
        JsonText::String(text) => write_json_string(written, &change(&text)?),
        JsonText::Number(digits) => written.push_str(digits),
        JsonText::Boolean(truth) => written.push_str(if truth { "true" } else { "false" }),
        JsonText::Null => written.push_str("null"),
        JsonText::Array(elements) => {
            written.push('[');
            for (place, element) in elements.into_iter().enumerate() {
                if place > 0 {
                    written.push(',');
                }
                write_changed(element, change, written)?;
            }
            written.push(']');
        }
        JsonText::Object(members) => {
            written.push('{');
            for (place, (key, value)) in members.into_iter().enumerate() {
                if place > 0 {
                    written.push(',');
                }
                write_json_string(written, &key);
                written.push(':');
                write_changed(value, change, written)?;
            }
            written.push('}');
        }
    }
    Ok(())
}
