//! Functions of `json` and `jsonb`.

mod build;
mod change;
mod contains;
mod get;
mod of_value;
mod rows;
mod table;
mod written;

pub use build::{
    JSON_ARRAY, JSON_KEY, JSON_OBJECT, JSONB_ARRAY, JSONB_OBJECT, TO_JSON, TO_JSONB, TO_LINES,
    aggregated_json,
};
pub use change::JSON_ASSIGN;
pub use get::JSON_SUBSCRIPT;
pub use of_value::{RecordShape, json_shape};
pub use rows::{Counting, JsonRows, json_record};
pub(super) use table::FUNCTIONS;

use crate::functions::entry::{Computed, Function};
use std::slice::from_ref;
use types::{JsonPart, Jsonb, SqlError, SqlState, Value};

pub(super) static FORMS: &[&[Function]] = &[
    from_ref(&TO_JSON),
    from_ref(&TO_JSONB),
    from_ref(&TO_LINES),
    from_ref(&JSON_OBJECT),
    from_ref(&JSONB_OBJECT),
    from_ref(&JSON_ARRAY),
    from_ref(&JSONB_ARRAY),
    from_ref(&JSON_KEY),
    from_ref(&JSON_SUBSCRIPT),
    from_ref(&JSON_ASSIGN),
];

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn jsonb(part: &JsonPart<'_>) -> Computed {
    Jsonb::new(part).map(Value::Jsonb)
}

/// The value of a text that was put together, which may be too long or too deep.
fn json(text: String) -> Computed {
    types::check_json(&text)?;
    Ok(Value::Json(text.into()))
}

/// The elements of an array of texts.
fn texts(array: &types::Array) -> Vec<Option<&str>> {
    array.values().iter().map(text_of).collect()
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Char(text) => Some(text),
        _ => None,
    }
}
