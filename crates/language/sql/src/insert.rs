//! Rows that a client sends: those of a COPY, and of a driver's batch.

use execute::Execution;
use plan::expression::Expression;
use plan::statement::{default_row, find_rows, no_column};
use types::{Row, SqlError, SqlState, StatementResult, Value};

/// Inserts rows that a client sends.
///
/// # Errors
/// A column that is not there or named twice; what inserting a row ends with.
pub(crate) fn insert_rows(
    execution: &mut Execution<'_>,
    table: &str,
    columns: &[String],
    rows: impl Iterator<Item = Vec<Value>>,
) -> Result<Vec<StatementResult>, SqlError> {
    execution.authorise_insert(table, columns)?;
    let (table, check) = find_rows(execution.programs().tables(), table)?;
    let table = &table;
    let mut targets = Vec::with_capacity(columns.len());
    for name in columns {
        let ordinal = table.ordinal(name).ok_or_else(|| no_column(table, name))?;
        if targets.contains(&ordinal) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        if table.columns[ordinal].computed.is_some() {
            let message = format!("column \"{name}\" is a generated column");
            return Err(SqlError::new(SqlState(*b"42P10"), message)
                .detail("Generated columns cannot be used in COPY."));
        }
        targets.push(ordinal);
    }
    // A default that calls a function gives another value for every row.
    let each: Vec<Expression> = default_row(table);
    let mut defaults = Vec::with_capacity(table.columns.len());
    for default in &each {
        defaults.push(match default.runs_anything() {
            true => Value::Null,
            false => execution.evaluate(default, &[])?,
        });
    }
    execution.begin_insert(table)?;
    let mut inserted = 0_u64;
    let types = execution.programs().tables().routines().types().clone();
    for values in rows {
        if values.len() != targets.len() {
            let message =
                format!("a row has {} values, expected {} as columns are named", values.len(), targets.len());
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
        }
        let mut row = defaults.clone();
        for (ordinal, default) in each.iter().enumerate() {
            if default.runs_anything() && !targets.contains(&ordinal) {
                row[ordinal] = execution.evaluate(default, &[])?;
            }
        }
        for (ordinal, value) in targets.iter().zip(values) {
            types.check_given(&value)?;
            row[*ordinal] = types.assign(value, table.columns[*ordinal].data_type)?;
        }
        inserted += u64::from(execution.insert_row(table, Row::from(row), check.as_deref())?.is_some());
    }
    execution.end_insert(table)?;
    let notices = execution.take_notices();
    let tag = format!("COPY {inserted}");
    Ok(vec![StatementResult { tag, notices, ..StatementResult::default() }])
}
