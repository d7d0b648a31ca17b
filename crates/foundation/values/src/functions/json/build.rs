//! JSON made of values: the forms that take values of any types, behind the names of rows' fields, and what aggregates
//! make.

use crate::functions::entry::{Computed, Function, code};
use crate::functions::json::of_value::{Form, check_room, scalar_text};
use crate::functions::json::{json, jsonb, refused};
use crate::work;
use std::borrow::Cow;
use types::{JsonPart, Jsonb, SqlError, SqlState, Value, write_json_string};

/// `to_json(value)`
pub static TO_JSON: Function = Function::form(
    &["to_json"],
    code!(
        [shape, value] => {
            let mut text = String::new();
            Form::new(shape).write(&mut text, value)?;
            json(text)
        }
    ),
)
.stable()
.costs(deep);

/// `row_to_json(row, true)`, `array_to_json(array, true)`: with line feeds
pub static TO_LINES: Function = Function::form(
    &["row_to_json", "array_to_json"],
    code!(
        [shape, value, Value::Boolean(lines)] => {
            let mut text = String::new();
            let form = Form::new(shape);
            if *lines { form.of_lines() } else { form }.write(&mut text, value)?;
            json(text)
        }
    ),
)
.stable()
.costs(deep);

/// `to_jsonb(value)`
pub static TO_JSONB: Function =
    Function::form(&["to_jsonb"], code!([shape, value] => jsonb(&Form::new(shape).part(value)?)))
        .stable()
        .costs(deep);

/// `json_build_object(key, value, …)`; in front of each value its shape.
pub static JSON_OBJECT: Function =
    Function::form(&["json_build_object"], json_object).stable().sees_null().costs(deep);

fn json_object(values: &[Value]) -> Computed {
    let mut text = String::from("{");
    for (position, [_, key, shape, value]) in members(values).enumerate() {
        text.push_str(if position > 0 { ", " } else { "" });
        let missing = || argument_is_null(position).hint("Object keys should be text.");
        write_json_string(&mut text, &key_text(key)?.ok_or_else(missing)?);
        text.push_str(" : ");
        Form::new(shape).write(&mut text, value)?;
    }
    text.push('}');
    json(text)
}

/// `jsonb_build_object(key, value, …)`
pub static JSONB_OBJECT: Function =
    Function::form(&["jsonb_build_object"], jsonb_object).stable().sees_null().costs(deep);

fn jsonb_object(values: &[Value]) -> Computed {
    jsonb(&JsonPart::object_of(members(values).enumerate().map(jsonb_member))?)
}

fn jsonb_member<'v>(
    (position, [_, key, shape, value]): (usize, &'v [Value; 4]),
) -> Result<(Cow<'v, str>, JsonPart<'v>), SqlError> {
    let missing = || refused(format!("argument {}: key must not be null", 2 * position + 1));
    let key = key_text(key)?.ok_or_else(missing)?;
    Ok((Cow::Owned(key), Form::new(shape).part(value)?))
}

/// `json_build_array(value, …)`
pub static JSON_ARRAY: Function =
    Function::form(&["json_build_array"], json_array).stable().sees_null().costs(deep);

fn json_array(values: &[Value]) -> Computed {
    let mut text = String::from("[");
    for (position, [shape, value]) in values.as_chunks().0.iter().enumerate() {
        text.push_str(if position > 0 { ", " } else { "" });
        Form::new(shape).write(&mut text, value)?;
    }
    text.push(']');
    json(text)
}

/// `jsonb_build_array(value, …)`
pub static JSONB_ARRAY: Function =
    Function::form(&["jsonb_build_array"], jsonb_array).stable().sees_null().costs(deep);

fn jsonb_array(values: &[Value]) -> Computed {
    let pairs: &[[Value; 2]] = values.as_chunks().0;
    let parts = pairs.iter().map(|[shape, value]| Form::new(shape).part(value));
    jsonb(&JsonPart::array_of(pairs.len(), parts)?)
}

/// The key of a member that `json_object_agg` makes.
pub static JSON_KEY: Function = Function::form(
    &["json_object_agg", "jsonb_object_agg"],
    code!(
        [key] => match key_text(key)? {
            Some(text) => Ok(Value::text(text)),
            None => Err(refused("field name must not be null")),
        }
    ),
)
.sees_null();

/// The values of an aggregate as one: pairs of a key and a value where there are keys, which are texts. The values are JSON
/// already.
///
/// # Errors
/// `54000` and `54001` where the result is too long or too deep.
pub fn aggregated_json(
    values: &[[Value; 2]],
    has_keys: bool,
    is_binary: bool,
    between: &str,
) -> Result<Value, SqlError> {
    work::spend(values.iter().map(|[key, value]| work::of_value(key) + work::of_value(value)).sum())?;
    let no_shape = Value::Null;
    let form = Form::new(&no_shape);
    if is_binary {
        let part = if has_keys {
            let members = values.iter().map(|[key, value]| Ok((Cow::Owned(plain(key)), form.part(value)?)));
            JsonPart::object(members.collect::<Result<Vec<_>, SqlError>>()?)?
        } else {
            let elements = values.iter().map(|[_, value]| form.part(value));
            JsonPart::array(&elements.collect::<Result<Vec<_>, _>>()?)?
        };
        return Jsonb::new(&part).map(Value::Jsonb);
    }
    let mut text = String::from(if has_keys { "{ " } else { "[" });
    for (position, [key, value]) in values.iter().enumerate() {
        text.push_str(if position > 0 { between } else { "" });
        if has_keys {
            write_json_string(&mut text, &plain(key));
            text.push_str(" : ");
        }
        form.write(&mut text, value)?;
    }
    check_room(&text)?;
    text.push_str(if has_keys { " }" } else { "]" });
    json(text)
}

fn plain(key: &Value) -> String {
    types::format_value(key).unwrap_or_default()
}

/// Pairs of a key and a value, each behind its shape.
fn members(values: &[Value]) -> impl Iterator<Item = &[Value; 4]> {
    values.as_chunks().0.iter()
}

/// A key as a text; `None` for NULL.
fn key_text(key: &Value) -> Result<Option<String>, SqlError> {
    Ok(match key {
        Value::Null => None,
        Value::Array(_) | Value::Composite(_) | Value::Json(_) | Value::Jsonb(_) => {
            return Err(refused("key value must be scalar, not array, composite, or json"));
        }
        Value::Boolean(truth) => Some(truth.to_string()),
        scalar => Some(scalar_text(scalar)),
    })
}

fn argument_is_null(position: usize) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("argument {} cannot be null", 2 * position + 1))
}

/// Goes over all values, and what stands in them.
fn deep(values: &[Value]) -> u64 {
    values.iter().map(deep_value).fold(0, u64::saturating_add)
}

fn deep_value(value: &Value) -> u64 {
    let inside = match value {
        Value::Array(array) => array.values(),
        Value::Composite(row) => row.values(),
        other => return work::of_argument(other),
    };
    inside.iter().map(deep_value).fold(work::of_value(value), u64::saturating_add)
}
