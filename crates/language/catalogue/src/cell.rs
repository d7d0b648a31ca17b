//! Rows of the catalogue's relations while they are made.

use crate::relations::SystemRelation;
use std::sync::Arc;
use types::{Array, DataType, Row, SqlError, Value};

/// A field of a row of a relation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Boolean(bool),
    Integer(i64),
    Text(String),
    /// Microseconds since 2000-01-01 00:00 UTC.
    Instant(i64),
    /// For `int2vector`, `oidvector` and arrays of integers.
    Integers(Vec<i64>),
    /// For arrays of text.
    Texts(Vec<String>),
    Null,
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Boolean(value)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Cell {
        Cell::Integer(i64::from(value))
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(value.to_string())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A row as names and cells. Columns that are not named are NULL, or where that cannot be, 0, false or empty.
pub(crate) type NamedRow = Vec<(&'static str, Cell)>;

/// The row as the relation's columns want it.
///
/// # Errors
/// `54000` an array is too long.
pub(crate) fn row(relation: &SystemRelation, named: &NamedRow) -> Result<Row, SqlError> {
    debug_assert!(
        named.iter().all(|(name, _)| relation.columns.iter().any(|column| column.name == *name)),
        "{}: {named:?}",
        relation.name
    );
    let value = |column: &crate::relations::Column| {
        let cell = named.iter().find(|(name, _)| *name == column.name).map(|(_, cell)| cell);
        match cell {
            Some(Cell::Null) => Ok(Value::Null),
            Some(cell) => value(cell, column.data_type),
            None if column.not_null => neutral(column.data_type),
            None => Ok(Value::Null),
        }
    };
    relation.columns.iter().map(value).collect::<Result<Vec<Value>, SqlError>>().map(Arc::from)
}

/// What stands for nothing where NULL cannot.
fn neutral(data_type: DataType) -> Result<Value, SqlError> {
    match data_type {
        DataType::Boolean => Ok(Value::Boolean(false)),
        DataType::Array(element) => Ok(Value::Array(Arc::new(Array::new(element, Vec::new())?))),
        DataType::Text(_) => Ok(Value::text("")),
        other => value(&Cell::Integer(0), other),
    }
}

fn value(cell: &Cell, data_type: DataType) -> Result<Value, SqlError> {
    let cast = |value: Value| types::cast(value, data_type);
    match (cell, data_type) {
        (Cell::Integers(numbers), DataType::Array(element)) => {
            let items = numbers.iter().map(|number| types::cast(Value::BigInt(*number), element.data_type()));
            let items = items.collect::<Result<Vec<Value>, SqlError>>()?;
            Ok(Value::Array(Arc::new(Array::new(element, items)?)))
        }
        (Cell::Texts(texts), DataType::Array(element)) => {
            let items = texts.iter().map(|text| Value::text(text.as_str())).collect();
            Ok(Value::Array(Arc::new(Array::new(element, items)?)))
        }
        (Cell::Boolean(value), _) => cast(Value::Boolean(*value)),
        // A number with a sign is what its bits say.
        (Cell::Integer(value), DataType::Oid) => {
            cast(i32::try_from(*value).map_or(Value::BigInt(*value), Value::Integer))
        }
        (Cell::Integer(value), _) => cast(Value::BigInt(*value)),
        (Cell::Text(text), _) => cast(Value::text(text.as_str())),
        (Cell::Instant(instant), _) => cast(Value::TimestampTz(*instant)),
        (Cell::Integers(_) | Cell::Texts(_) | Cell::Null, _) => Ok(Value::Null),
    }
}
