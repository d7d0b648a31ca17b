//! The functions and operators that calls name.

use crate::functions::entry::Argument::{From, To};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Argument, Computed, Function, Types, code};
use crate::functions::json::change::{
    Change, Operation, concatenated, pretty, without_element, without_keys, without_nulls,
};
use crate::functions::json::contains::{contains, exists, pairs};
use crate::functions::json::get::{
    element_written, find, find_written, found, found_text, member_written, written, written_text,
};
use crate::functions::json::written::{Json, Parts, kind, write_without_nulls};
use crate::functions::json::{json, jsonb, refused, text_of, texts};
use DataType::{Boolean, Integer, Jsonb, SmallInt, Unknown};
use std::borrow::Cow;
use types::{
    Array, DataType, ElementType, ExecutionVersion, JsonNode, JsonPart, SqlError, SqlState, Value,
    quoted_json,
};

const TEXT: DataType = DataType::Text(None);
const TEXTS: DataType = DataType::Array(ElementType::TEXT);
const JSON: DataType = DataType::Json;

/// A literal is one, too.
const TO_JSON: Argument = From(&[JSON, Unknown], JSON);
const TO_JSONB: Argument = From(&[Jsonb, Unknown], Jsonb);
const KEY: Argument = From(&[TEXT, DataType::Char(None), Unknown], TEXT);
const INDEX: Argument = From(&[SmallInt, Integer], Integer);
const PATH: Argument = From(&[TEXTS, Unknown], TEXTS);

const V7: ExecutionVersion = ExecutionVersion::V7;

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::new(&["json_object_field", "->"], &[TO_JSON, KEY], Is(JSON), code!(
        [Value::Json(text), Value::Text(key)] => written(member_written(text, key)?),
    ))
    .since(V7),
    Function::new(&["jsonb_object_field", "->"], &[TO_JSONB, KEY], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Text(key)] => found(json.node().member(key)),
    ))
    .since(V7),
    Function::new(&["json_array_element", "->"], &[TO_JSON, INDEX], Is(JSON), code!(
        [Value::Json(text), Value::Integer(index)] => written(element_written(text, i64::from(*index))?),
    ))
    .since(V7),
    Function::new(&["jsonb_array_element", "->"], &[TO_JSONB, INDEX], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Integer(index)] => found(element(json, *index)),
    ))
    .since(V7),
    Function::new(&["json_object_field_text", "->>"], &[TO_JSON, KEY], Is(TEXT), code!(
        [Value::Json(text), Value::Text(key)] => written_text(member_written(text, key)?),
    ))
    .since(V7),
    Function::new(&["jsonb_object_field_text", "->>"], &[TO_JSONB, KEY], Is(TEXT), code!(
        [Value::Jsonb(json), Value::Text(key)] => found_text(json.node().member(key)),
    ))
    .since(V7),
    Function::new(&["json_array_element_text", "->>"], &[TO_JSON, INDEX], Is(TEXT), code!(
        [Value::Json(text), Value::Integer(index)] => written_text(element_written(text, i64::from(*index))?),
    ))
    .since(V7),
    Function::new(&["jsonb_array_element_text", "->>"], &[TO_JSONB, INDEX], Is(TEXT), code!(
        [Value::Jsonb(json), Value::Integer(index)] => found_text(element(json, *index)),
    ))
    .since(V7),
    // Paths.
    Function::new(&["#>"], &[TO_JSON, PATH], Is(JSON), code!(
        [Value::Json(text), Value::Array(path)] => match path_of(path) {
            Some(path) => written(find_written(text, &path)?),
            None => Ok(Value::Null),
        }
    ))
    .since(V7),
    Function::new(&["#>"], &[TO_JSONB, PATH], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Array(path)] => found(path_of(path).and_then(|path| find(json.node(), &path))),
    ))
    .since(V7),
    Function::new(&["#>>"], &[TO_JSON, PATH], Is(TEXT), code!(
        [Value::Json(text), Value::Array(path)] => match path_of(path) {
            Some(path) => written_text(find_written(text, &path)?),
            None => Ok(Value::Null),
        }
    ))
    .since(V7),
    Function::new(&["#>>"], &[TO_JSONB, PATH], Is(TEXT), code!(
        [Value::Jsonb(json), Value::Array(path)] => {
            found_text(path_of(path).and_then(|path| find(json.node(), &path)))
        }
    ))
    .since(V7),
    Function::worked(&["json_extract_path"], |given| path_types(given, JSON, JSON), code!(
        [Value::Json(text), path @ ..] => written(find_written(text, &keys(path))?),
    ))
    .since(V7),
    Function::worked(&["jsonb_extract_path"], |given| path_types(given, Jsonb, Jsonb), code!(
        [Value::Jsonb(json), path @ ..] => found(find(json.node(), &keys(path))),
    ))
    .since(V7),
    Function::worked(&["json_extract_path_text"], |given| path_types(given, JSON, TEXT), code!(
        [Value::Json(text), path @ ..] => written_text(find_written(text, &keys(path))?),
    ))
    .since(V7),
    Function::worked(&["jsonb_extract_path_text"], |given| path_types(given, Jsonb, TEXT), code!(
        [Value::Jsonb(json), path @ ..] => found_text(find(json.node(), &keys(path))),
    ))
    .since(V7),
    // What is in it.
    Function::new(&["jsonb_contains"], &[TO_JSONB, TO_JSONB], Is(Boolean), code!(
        [Value::Jsonb(left), Value::Jsonb(right)] => Ok(Value::Boolean(contains(left, right))),
    ))
    .costs(pairs)
    .since(V7),
    Function::new(&["jsonb_contained"], &[TO_JSONB, TO_JSONB], Is(Boolean), code!(
        [Value::Jsonb(left), Value::Jsonb(right)] => Ok(Value::Boolean(contains(right, left))),
    ))
    .costs(pairs)
    .since(V7),
    Function::new(&["jsonb_exists", "?"], &[TO_JSONB, KEY], Is(Boolean), code!(
        [Value::Jsonb(json), Value::Text(key)] => Ok(Value::Boolean(exists(json, key))),
    ))
    .since(V7),
    Function::new(&["jsonb_exists_any", "?|"], &[TO_JSONB, PATH], Is(Boolean), code!(
        [Value::Jsonb(json), Value::Array(keys)] => {
            Ok(Value::Boolean(texts(keys).into_iter().flatten().any(|key| exists(json, key))))
        }
    ))
    .costs(pairs)
    .since(V7),
    Function::new(&["jsonb_exists_all", "?&"], &[TO_JSONB, PATH], Is(Boolean), code!(
        [Value::Jsonb(json), Value::Array(keys)] => {
            Ok(Value::Boolean(texts(keys).into_iter().flatten().all(|key| exists(json, key))))
        }
    ))
    .costs(pairs)
    .since(V7),
    Function::new(&["json_typeof"], &[TO_JSON], Is(TEXT), code!([value] => type_of(value))).since(V7),
    Function::new(&["jsonb_typeof"], &[TO_JSONB], Is(TEXT), code!([value] => type_of(value))).since(V7),
    Function::new(&["json_array_length"], &[TO_JSON], Is(Integer), code!([value] => length(value)))
        .since(V7),
    Function::new(&["jsonb_array_length"], &[TO_JSONB], Is(Integer), code!([value] => length(value))).since(V7),
    // What becomes of it.
    Function::new(&["jsonb_concat"], &[TO_JSONB, TO_JSONB], Is(Jsonb), code!(
        [Value::Jsonb(left), Value::Jsonb(right)] => concatenated(left, right),
    ))
    .since(V7),
    Function::new(&["jsonb_delete"], &[TO_JSONB, KEY], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Text(key)] => without_keys(json, &[Some(key)]),
    ))
    .since(V7),
    Function::new(&["jsonb_delete"], &[TO_JSONB, INDEX], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Integer(index)] => without_element(json, *index),
    ))
    .since(V7),
    Function::new(&["jsonb_delete"], &[TO_JSONB, From(&[TEXTS], TEXTS)], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Array(keys)] => without_keys(json, &texts(keys)),
    ))
    .costs(pairs)
    .since(V7),
    Function::new(&["jsonb_delete_path", "#-"], &[TO_JSONB, PATH], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Array(path)] => {
            Change { path: texts(path), value: None, operation: Operation::Delete }.of(json)
        }
    ))
    .since(V7),
    Function::new(&["jsonb_set"], &[TO_JSONB, PATH, TO_JSONB, To(Boolean)], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Array(path), Value::Jsonb(value), rest @ ..] => {
            set(json, path, value, rest != [Value::Boolean(false)])
        }
    ))
    .optional(1)
    .since(V7),
    Function::new(&["jsonb_set_lax"], &[TO_JSONB, PATH, TO_JSONB, To(Boolean), To(TEXT)], Is(Jsonb), code!(
        [json, path, value, rest @ ..] => set_lax(json, path, value, rest),
    ))
    .optional(2)
    .sees_null()
    .since(V7),
    Function::new(&["jsonb_insert"], &[TO_JSONB, PATH, TO_JSONB, To(Boolean)], Is(Jsonb), code!(
        [Value::Jsonb(json), Value::Array(path), Value::Jsonb(value), rest @ ..] => {
            let is_behind = rest == [Value::Boolean(true)];
            let operation = if is_behind { Operation::InsertAfter } else { Operation::InsertBefore };
            Change { path: texts(path), value: Some(value.node()), operation }.of(json)
        }
    ))
    .optional(1)
    .since(V7),
    Function::new(&["jsonb_pretty"], &[TO_JSONB], Is(TEXT), code!([Value::Jsonb(json)] => pretty(json))).since(V7),
    Function::new(&["jsonb_strip_nulls"], &[TO_JSONB], Is(Jsonb), code!(
        [Value::Jsonb(json)] => jsonb(&without_nulls(json.node())?),
    ))
    .since(V7),
    Function::new(&["json_strip_nulls"], &[TO_JSON], Is(JSON), code!(
        [Value::Json(written)] => {
            let mut text = String::new();
            write_without_nulls(&mut text, Json::Written(written), 0)?;
            json(text)
        }
    ))
    .since(V7),
    // Of keys and values that are texts.
    Function::new(&["json_object"], &[PATH, PATH], Is(JSON), object)
    .optional(1)
    .since(V7),
    Function::new(&["jsonb_object"], &[PATH, PATH], Is(Jsonb), jsonb_object)
    .optional(1)
    .since(V7),
];

fn type_of(value: &Value) -> Computed {
    match Json::of(value) {
        Some(json) => Ok(Value::text(kind(&json.parts()?))),
        None => Ok(Value::Null),
    }
}

/// The document, and behind it texts.
fn path_types(given: &[DataType], document: DataType, result: DataType) -> Option<Types> {
    let (first, path) = given.split_first()?;
    let are_texts = path.iter().all(|name| matches!(name.family(), TEXT | DataType::Char(_) | Unknown));
    let fits = (*first == document || *first == Unknown) && !path.is_empty() && are_texts;
    fits.then(|| (std::iter::once(document).chain(path.iter().map(|_| TEXT)).collect(), result))
}

fn keys(path: &[Value]) -> Vec<&str> {
    path.iter().filter_map(text_of).collect()
}

/// A path; `None` where a part of it is NULL.
fn path_of(path: &Array) -> Option<Vec<&str>> {
    texts(path).into_iter().collect()
}

/// An element of an array. A scalar that nothing encloses is stored as an array of one element in PostgreSQL, and it shows.
fn element(json: &types::Jsonb, index: i32) -> Option<JsonNode<'_>> {
    let root = json.node();
    match root.is_container() {
        true => root.element(i64::from(index)),
        false => matches!(index, 0 | -1).then_some(root),
    }
}

fn length(value: &Value) -> Computed {
    match Json::of(value).map(Json::parts).transpose()? {
        Some(Parts::Array(elements)) => Ok(Value::Integer(elements.len() as i32)),
        Some(Parts::Object(_)) => Err(refused("cannot get array length of a non-array")),
        _ => Err(refused("cannot get array length of a scalar")),
    }
}

fn set(json: &types::Jsonb, path: &Array, value: &types::Jsonb, create: bool) -> Computed {
    let operation = if create { Operation::Create } else { Operation::Replace };
    Change { path: texts(path), value: Some(value.node()), operation }.of(json)
}

/// `jsonb_set_lax(json, path, value, create_if_missing, null_value_treatment)`
fn set_lax(json: &Value, path: &Value, value: &Value, rest: &[Value]) -> Computed {
    let (Value::Jsonb(json), Value::Array(path)) = (json, path) else { return Ok(Value::Null) };
    let create = match rest.first() {
        Some(Value::Null) => return Ok(Value::Null),
        create => create != Some(&Value::Boolean(false)),
    };
    let treatment = match rest.get(1) {
        Some(Value::Text(treatment)) => treatment.as_ref(),
        Some(_) => "",
        None => "use_json_null",
    };
    let known = ["raise_exception", "use_json_null", "delete_key", "return_target"];
    let is_known = !value.is_null() || known.contains(&treatment);
    if rest.get(1).is_some_and(Value::is_null) || !is_known {
        return Err(refused(
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        ));
    }
    match (value, treatment) {
        (Value::Jsonb(value), _) => set(json, path, value, create),
        (_, "raise_exception") => {
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "JSON value must not be null")
                .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
                .hint(
                    "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
                ))
        }
        (_, "use_json_null") => set(json, path, &types::Jsonb::new(&JsonPart::NULL)?, create),
        (_, "delete_key") => {
            Change { path: texts(path), value: None, operation: Operation::Delete }.of(json)
        }
        _ => Ok(Value::Jsonb(json.clone())),
    }
}

/// Pairs of keys and values: of one array that has them in turn, or of two.
fn members(values: &[Value]) -> Result<Vec<(&str, Option<&str>)>, SqlError> {
    let mismatch = |message: &str| SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
    let is_table = |value: &Value| matches!(value, Value::Array(array) if array.dimensions().len() > 1);
    match values {
        [Value::Array(both)] => both.check_pairs()?,
        _ if values.iter().any(is_table) => return Err(mismatch("wrong number of array subscripts")),
        _ => {}
    }
    let pairs: Vec<(Option<&str>, Option<&str>)> = match values {
        [Value::Array(keys), Value::Array(values)] => {
            let (keys, values) = (texts(keys), texts(values));
            if keys.len() != values.len() {
                return Err(mismatch("mismatched array dimensions"));
            }
            keys.into_iter().zip(values).collect()
        }
        [Value::Array(both)] => {
            let both = texts(both);
            both.as_chunks().0.iter().map(|[key, value]| (*key, *value)).collect()
        }
        _ => Vec::new(),
    };
    let missing = || SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key");
    pairs.into_iter().map(|(key, value)| Ok((key.ok_or_else(missing)?, value))).collect()
}

fn object(values: &[Value]) -> Computed {
    let members = members(values)?;
    let member = |(key, value): &(&str, Option<&str>)| {
        let value = value.map_or("null".to_string(), quoted_json);
        format!("{} : {value}", quoted_json(key))
    };
    json(format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", ")))
}

fn jsonb_object(values: &[Value]) -> Computed {
    let part = |value: Option<&str>| value.map_or(JsonPart::NULL, JsonPart::string);
    let members = members(values)?.into_iter().map(|(key, value)| (Cow::Borrowed(key), part(value)));
    jsonb(&JsonPart::object(members.collect())?)
}
