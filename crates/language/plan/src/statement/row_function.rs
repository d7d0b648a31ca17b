//! Functions that are built in and give rows.

use crate::table::TablePlan;
use std::sync::Arc;
use types::{CompositeTypes, DataType, Interval, SqlError, SqlState, Value};
use values::functions::JsonRows;

/// The columns of a row's history in front of those of its table.
pub(super) const HISTORY_COLUMNS: [(&str, DataType); 6] = [
    ("height", DataType::BigInt),
    ("index", DataType::Integer),
    ("transaction", DataType::Text(None)),
    ("organisation", DataType::Text(None)),
    ("role", DataType::Text(None)),
    ("operation", DataType::Text(None)),
];

/// A function that gives rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RowFunction {
    /// What it gives.
    pub rows: RowKind,
    /// A last column has their numbers, from 1.
    pub with_ordinality: bool,
}

/// What rows a function gives.
#[derive(Clone, Debug)]
pub enum RowKind {
    /// `generate_series(start, stop, step)` over values of this type: integers, numerics or timestamps.
    Series(DataType),
    /// `unnest(array, …)`: the elements of arrays, side by side; of rows their fields, so many.
    Elements(Vec<Option<usize>>),
    /// The parts of an array that have so many dimensions.
    Slices(usize),
    /// `entente.history('table', key, …)`: the changes of a row.
    History(Arc<TablePlan>),
    /// `json_each(json)` and its kin.
    Json(Box<JsonCall>),
}

/// A function that makes rows of JSON. Its arguments are a row whose fields stand where the JSON has none, and the JSON.
#[derive(Clone, Debug)]
pub struct JsonCall {
    /// Its name.
    pub name: String,
    /// What it makes.
    pub rows: JsonRows,
    /// The types that fields may have.
    pub types: Arc<CompositeTypes>,
}

/// Two histories are the same where they are of the same table.
impl PartialEq for RowKind {
    fn eq(&self, other: &RowKind) -> bool {
        match (self, other) {
            (RowKind::Series(one), RowKind::Series(other)) => one == other,
            (RowKind::Elements(one), RowKind::Elements(other)) => one == other,
            (RowKind::Slices(one), RowKind::Slices(other)) => one == other,
            (RowKind::History(one), RowKind::History(other)) => Arc::ptr_eq(one, other),
            // One statement has one catalog.
            (RowKind::Json(one), RowKind::Json(other)) => one.name == other.name && one.rows == other.rows,
            _ => false,
        }
    }
}

impl RowFunction {
    /// What EXPLAIN says.
    pub fn explanation(&self) -> &'static str {
        match &self.rows {
            RowKind::Series(DataType::Timestamp | DataType::TimestampTz) => "Timestamps of generate_series",
            RowKind::Series(_) => "Numbers of generate_series",
            RowKind::Elements(_) => "Elements of unnest",
            RowKind::Slices(_) => "Slices of an array",
            RowKind::History(_) => "Changes of a row; registers nothing",
            RowKind::Json(_) => "Rows of JSON",
        }
    }
}

/// Whether a step goes up; `None` where it does not go anywhere.
///
/// # Errors
/// `22023` for a step of zero.
pub fn goes_up(step: &Value) -> Result<bool, SqlError> {
    let zero = match step {
        Value::Interval(_) => Value::Interval(Interval::default()),
        Value::Numeric(_) => Value::Numeric(types::Numeric::ZERO),
        _ => Value::Integer(0),
    };
    match step.compare(&zero) {
        Some(std::cmp::Ordering::Greater) => Ok(true),
        Some(std::cmp::Ordering::Less) => Ok(false),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "step size cannot equal zero")),
    }
}
