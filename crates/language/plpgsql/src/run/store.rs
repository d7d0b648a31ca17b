//! Values on their way into variables.

use crate::target::{Coercion, RowTarget, Store};
use types::{CompositeTypes, DataType, SqlError, SqlState, Value, assign};

/// Puts a value into a frame as the variable's type.
#[inline]
pub(crate) fn store(
    frame: &mut [Value],
    store: &Store,
    value: Value,
    types: &CompositeTypes,
) -> Result<(), SqlError> {
    let value = convert(value, store.coercion, types)?;
    if let Some(domain) = store.domain {
        types.check_domain(&value, domain)?;
    }
    if let Some(variable) = &store.not_null {
        refuse_null(&value, variable)?;
    }
    frame[usize::from(store.slot)] = value;
    Ok(())
}

/// Stores a row column by column; NULL where it has none, or where there is no row.
pub(crate) fn store_row(
    frame: &mut [Value],
    stores: &[Store],
    row: Option<Vec<Value>>,
    types: &CompositeTypes,
) -> Result<(), SqlError> {
    let mut values = row.into_iter().flatten();
    for target in stores {
        store(frame, target, values.next().unwrap_or(Value::Null), types)?;
    }
    Ok(())
}

/// Stores the only row of a result, or that there is none.
pub(crate) fn store_first(
    frame: &mut [Value],
    target: &RowTarget,
    row: Option<Vec<Value>>,
    types: &CompositeTypes,
) -> Result<(), SqlError> {
    if let Some(flag) = target.flag {
        frame[usize::from(flag)] = Value::Boolean(true);
    }
    store_row(frame, &target.stores, row, types)
}

#[inline]
pub(crate) fn convert(value: Value, coercion: Coercion, types: &CompositeTypes) -> Result<Value, SqlError> {
    match coercion {
        Coercion::None => Ok(value),
        Coercion::Assign(data_type) => types.assign(value, data_type),
        Coercion::ThroughText(data_type) => types.assign(assign(value, DataType::Text(None))?, data_type),
    }
}

#[inline]
pub(crate) fn refuse_null(value: &Value, variable: &str) -> Result<(), SqlError> {
    if !value.is_null() {
        return Ok(());
    }
    let message = format!("null value cannot be assigned to variable \"{variable}\" declared NOT NULL");
    Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
}

/// The errors of STRICT.
pub(crate) fn check_single(rows: usize) -> Result<(), SqlError> {
    match rows {
        0 => Err(SqlError::new(SqlState::NO_DATA_FOUND, "query returned no rows")),
        1 => Ok(()),
        _ => Err(SqlError::new(SqlState::TOO_MANY_ROWS, "query returned more than one row")
            .hint("Make sure the query returns a single row, or use LIMIT 1.")),
    }
}
