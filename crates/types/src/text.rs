use crate::{DataType, SqlError, SqlState, Value};

/// Reads `text` as a value of `data_type`, as PostgreSQL's input functions do.
///
/// # Errors
/// `22P02` where the text is no such value, `22003` where it is out of range, `22001` where it is too long.
pub fn parse_value(text: &str, data_type: DataType) -> Result<Value, SqlError> {
    let _ = text;
    Err(SqlError::new(SqlState::INTERNAL_ERROR, format!("reading {data_type} is not written yet")))
}

/// Writes a value as PostgreSQL's output functions do; `None` for NULL.
pub fn format_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        other => Some(format!("{other:?}")),
    }
}
