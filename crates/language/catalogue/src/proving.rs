//! The rows that `entente.proof` reads: found by their keys alone, each made when it is asked for.

use crate::SessionFacts;
use crate::history::History;
use types::{DataType, ElementType, Key, Row, SqlError, SqlState, Value, limits, parse_value};

/// The row of the proof of the receipt whose id is the key, or of the reason why there is none.
pub(crate) fn receipt(history: &dyn History, key: &Key) -> Option<Row> {
    let id = text_of(key)?;
    let proof = fitting(history.receipt_proof(&id), "receipts/{id}");
    Some(row_of(&id, proof))
}

/// The same of a row. The key is an array as text: the table's name, and the values of its primary key.
pub(crate) fn row(history: &dyn History, facts: &SessionFacts, key: &Key) -> Option<Row> {
    let asked = text_of(key)?;
    let proof = asked_for(&asked).and_then(|(table, key)| history.row_proof(facts, &table, &key));
    Some(row_of(&asked, fitting(proof, "rows/{schema.table}/{key}")))
}

/// The table, and the values of the key.
fn asked_for(asked: &str) -> Result<(String, Vec<String>), SqlError> {
    let no_array = || SqlError::new(SqlState::INTERNAL_ERROR, "an array as text is no array");
    let texts = ElementType::new(DataType::Text(None)).ok_or_else(no_array)?;
    let Value::Array(array) = parse_value(asked, DataType::Array(texts))? else { return Err(no_array()) };
    let text = |value: &Value| match value {
        Value::Text(text) => Ok(text.to_string()),
        _ => {
            let message = "a table's name and the values of its primary key must not be null";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
    };
    let mut texts = array.values().iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let key = texts.split_off(texts.len().min(1));
    Ok((texts.pop().unwrap_or_default(), key))
}

/// The text that a key of one text stands for.
fn text_of(key: &Key) -> Option<String> {
    let (mut bytes, mut text) = (key.as_bytes().strip_suffix(&[0])?.iter(), Vec::new());
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            1 => bytes.next()?.checked_sub(1)?,
            byte => *byte,
        });
    }
    let text = String::from_utf8(text).ok()?;
    (Key::encode([&Value::text(text.as_str())]).ok()? == *key).then_some(text)
}

/// Refuses what is longer than a text may be.
fn fitting(found: Result<String, SqlError>, path: &str) -> Result<String, SqlError> {
    found.and_then(|proof| match proof.len() {
        0..=limits::TEXT_BYTES_MAX => Ok(proof),
        length => {
            let message = format!("the proof has {length} bytes, a text {} at most", limits::TEXT_BYTES_MAX);
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint(format!("Ask for it by HTTP: GET /v1/proofs/{path}.")))
        }
    })
}

fn row_of(asked: &str, found: Result<String, SqlError>) -> Row {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let asked = Value::text(asked);
    match found {
        Ok(proof) => Row::from([asked, Value::text(proof), Value::Null, Value::Null, Value::Null]),
        Err(SqlError { state, message, hint, .. }) => Row::from([
            asked,
            Value::Null,
            Value::text(state.to_string()),
            Value::text(message),
            text(hint.as_deref()),
        ]),
    }
}
