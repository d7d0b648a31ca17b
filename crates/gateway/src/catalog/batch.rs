//! Rows of system tables as Arrow.

use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    ListBuilder, RecordBatch, StringBuilder, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use std::sync::Arc;

/// A field of a row of a system table.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Boolean(bool),
    Integer(i64),
    Text(String),
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

/// A row as name and cell; columns that are not named get the default of their type.
pub(super) type NamedRow = Vec<(&'static str, Cell)>;

/// The columns of `base`, nullable, with those of `more` that it does not have.
pub(super) fn extended(base: &Schema, more: &[(&str, DataType)]) -> SchemaRef {
    let mut fields: Vec<Field> =
        base.fields().iter().map(|field| Field::new(field.name(), field.data_type().clone(), true)).collect();
    for (name, data_type) in more {
        if base.column_with_name(name).is_none() {
            fields.push(Field::new(*name, data_type.clone(), true));
        }
    }
    Arc::new(Schema::new(fields))
}

/// Rows of a system table. Numbers that a row does not name are 0, flags are false; the rest is NULL.
pub(super) fn batch(schema: &SchemaRef, rows: &[NamedRow]) -> Result<RecordBatch> {
    let mut arrays = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let cells: Vec<Option<&Cell>> = rows
            .iter()
            .map(|row| row.iter().find(|(name, _)| name == field.name()).map(|(_, cell)| cell))
            .collect();
        arrays.push(array(field.data_type(), &cells)?);
    }
    RecordBatch::try_new(Arc::clone(schema), arrays)
        .map_err(|error| datafusion::error::DataFusionError::ArrowError(Box::new(error), None))
}

fn integer(cell: Option<&Cell>) -> Option<i64> {
    match cell {
        Some(Cell::Integer(value)) => Some(*value),
        Some(Cell::Null) => None,
        _ => Some(0),
    }
}

fn array(data_type: &DataType, cells: &[Option<&Cell>]) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => {
            let mut builder = BooleanBuilder::new();
            for cell in cells {
                builder.append_option(match cell {
                    Some(Cell::Boolean(value)) => Some(*value),
                    Some(Cell::Null) => None,
                    _ => Some(false),
                });
            }
            Arc::new(builder.finish())
        }
        DataType::Int16 => {
            let mut builder = Int16Builder::new();
            cells.iter().for_each(|cell| builder.append_option(integer(*cell).map(|value| value as i16)));
            Arc::new(builder.finish())
        }
        DataType::Int32 => {
            let mut builder = Int32Builder::new();
            cells.iter().for_each(|cell| builder.append_option(integer(*cell).map(|value| value as i32)));
            Arc::new(builder.finish())
        }
        DataType::Int64 => {
            let mut builder = Int64Builder::new();
            cells.iter().for_each(|cell| builder.append_option(integer(*cell)));
            Arc::new(builder.finish())
        }
        DataType::Float32 => {
            let mut builder = Float32Builder::new();
            cells.iter().for_each(|cell| builder.append_option(integer(*cell).map(|value| value as f32)));
            Arc::new(builder.finish())
        }
        DataType::Float64 => {
            let mut builder = Float64Builder::new();
            cells.iter().for_each(|cell| builder.append_option(integer(*cell).map(|value| value as f64)));
            Arc::new(builder.finish())
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                builder.append_option(text(*cell));
            }
            let array: ArrayRef = Arc::new(builder.finish());
            cast(&array, data_type)?
        }
        DataType::List(field) => list(data_type, field.data_type(), cells)?,
        other => new_null_array(other, cells.len()),
    })
}

/// Text; vectors of numbers as PostgreSQL shows them, `1 2`.
fn text(cell: Option<&Cell>) -> Option<String> {
    match cell {
        Some(Cell::Text(value)) => Some(value.clone()),
        Some(Cell::Integer(value)) => Some(value.to_string()),
        Some(Cell::Integers(values)) => Some(values.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
}

fn list(data_type: &DataType, item: &DataType, cells: &[Option<&Cell>]) -> Result<ArrayRef> {
    let array: ArrayRef = if matches!(item, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        let mut builder = ListBuilder::new(StringBuilder::new());
        for cell in cells {
            match cell {
                Some(Cell::Texts(values)) => {
                    values.iter().for_each(|value| builder.values().append_value(value));
                    builder.append(true);
                }
                _ => builder.append(false),
            }
        }
        Arc::new(builder.finish())
    } else {
        let mut builder = ListBuilder::new(Int64Builder::new());
        for cell in cells {
            match cell {
                Some(Cell::Integers(values)) => {
                    values.iter().for_each(|value| builder.values().append_value(*value));
                    builder.append(true);
                }
                _ => builder.append(false),
            }
        }
        Arc::new(builder.finish())
    };
    Ok(cast(&array, data_type)?)
}
