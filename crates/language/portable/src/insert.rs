//! INSERT, and the rows that COPY brings.

use crate::constant::Constants;
use crate::fit::stored;
use crate::refusal::refused;
use crate::statement::{Access, Action, Statement};
use crate::table::{default_value, find_table, named_table, ordinal_of, target_column};
use sqlparser::ast::{self, Expr, OnInsert, Query, SetExpr, TableObject, Values};
use std::sync::Arc;
use types::{Catalog, Key, Row, SqlError, SqlState, Table, Value};

/// Bytes of a key: every database can have so long ones in an index.
const KEY_BYTES_MAX: usize = 2_000;

/// Binds INSERT.
///
/// # Errors
/// As [`check_script`](crate::check_script).
pub(crate) fn bind_insert(
    catalog: &Catalog,
    insert: &ast::Insert,
    constants: &Constants<'_>,
) -> Result<Statement, SqlError> {
    refuse_forms(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(refused("INSERT into this target").hint("Name a table."));
    };
    let table = named_table(catalog, name, constants)?;
    let mut targets = Vec::with_capacity(insert.columns.len());
    for column in &insert.columns {
        let ordinal = target_column(table, column, constants)?;
        add_target(table, &mut targets, ordinal).map_err(|error| constants.at(error, column))?;
    }
    let mut defaults = Defaults::new(table, constants.now_ms);
    let rows = match &insert.source {
        None => vec![defaults.row(&[], Vec::new())?],
        Some(query) => {
            let values = values_of(query)?;
            bind_rows(values, &targets, constants, &mut defaults)?
        }
    };
    finish(table, rows)
}

/// The rows that COPY brings.
///
/// # Errors
/// As [`check_script`](crate::check_script); `22P04` for a row of another width than the list of columns.
pub(crate) fn bind_copy(
    catalog: &Catalog,
    table: &str,
    columns: &[String],
    rows: &[Vec<Value>],
    now_ms: Option<u64>,
) -> Result<Statement, SqlError> {
    let table = find_table(catalog, table)?;
    let mut targets = Vec::with_capacity(columns.len());
    for name in columns {
        add_target(table, &mut targets, ordinal_of(table, name)?)?;
    }
    let mut defaults = Defaults::new(table, now_ms);
    let mut bound = Vec::with_capacity(rows.len());
    for row in rows {
        if row.len() != targets.len() {
            let message =
                format!("a row has {} values, expected {} as columns are named", row.len(), targets.len());
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message));
        }
        let mut values = Vec::with_capacity(row.len());
        for (ordinal, value) in targets.iter().zip(row) {
            let column = &table.columns[*ordinal];
            values.push(Some(stored(Constants::given(value)?, &column.name, column.data_type)?));
        }
        bound.push(defaults.row(&targets, values)?);
    }
    finish(table, bound)
}

fn refuse_forms(insert: &ast::Insert) -> Result<(), SqlError> {
    if insert.returning.is_some() {
        return Err(refused("RETURNING").hint("Read the rows with SELECT afterwards."));
    }
    match &insert.on {
        None => {}
        Some(OnInsert::OnConflict(_)) => {
            return Err(
                refused("ON CONFLICT").hint("Use UPDATE where the row is there, and INSERT where it is not.")
            );
        }
        Some(_) => return Err(refused("ON DUPLICATE KEY").hint("Use UPDATE or INSERT.")),
    }
    if insert.table_alias.is_some() {
        return Err(refused("an alias of the table of INSERT").hint("Leave it out."));
    }
    let is_plain = insert.or.is_none()
        && !insert.ignore
        && !insert.overwrite
        && insert.assignments.is_empty()
        && insert.partitioned.is_none()
        && insert.after_columns.is_empty()
        && !insert.has_table_keyword
        && insert.output.is_none()
        && !insert.replace_into
        && insert.priority.is_none()
        && insert.insert_alias.is_none()
        && insert.settings.is_none()
        && insert.format_clause.is_none()
        && insert.multi_table_insert_type.is_none();
    match is_plain {
        true => Ok(()),
        false => Err(refused("this form of INSERT").hint("Write INSERT INTO t (a, b) VALUES (1, 2).")),
    }
}

/// VALUES and nothing around it.
fn values_of(query: &Query) -> Result<&Values, SqlError> {
    if query.with.is_some() {
        return Err(refused("WITH").hint("Write the statements one after the other."));
    }
    let is_plain = query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    match query.body.as_ref() {
        SetExpr::Values(values) if is_plain && !values.explicit_row && !values.value_keyword => Ok(values),
        _ => Err(refused("INSERT of anything but VALUES")
            .hint("Read the rows before, and write them: INSERT INTO t VALUES (1, 2), (3, 4).")),
    }
}

fn add_target(table: &Table, targets: &mut Vec<usize>, ordinal: usize) -> Result<(), SqlError> {
    if targets.contains(&ordinal) {
        let message = format!("column \"{}\" specified more than once", table.columns[ordinal].name);
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    targets.push(ordinal);
    Ok(())
}

fn bind_rows(
    values: &Values,
    targets: &[usize],
    constants: &Constants<'_>,
    defaults: &mut Defaults<'_>,
) -> Result<Vec<Row>, SqlError> {
    let syntax_error = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
    let width = values.rows.first().map_or(0, |row| row.content.len());
    let all: Vec<usize> = (0..defaults.table.columns.len()).collect();
    let targets = match targets {
        [] => &all[..width.min(all.len())],
        named if named.len() > width => {
            return Err(syntax_error("INSERT has more target columns than expressions"));
        }
        named => named,
    };
    let mut rows = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        let row = &row.content;
        if row.len() != width {
            return Err(syntax_error("VALUES lists must all be the same length"));
        }
        if let Some(more) = row.get(targets.len()) {
            return Err(constants.at(syntax_error("INSERT has more expressions than target columns"), more));
        }
        let value =
            |(ordinal, value): (&usize, &Expr)| bind_value(defaults.table, *ordinal, value, constants);
        let row = targets.iter().zip(row).map(value).collect::<Result<Vec<_>, _>>()?;
        rows.push(defaults.row(targets, row)?);
    }
    Ok(rows)
}

/// A value of VALUES; `None`: DEFAULT.
fn bind_value(
    table: &Table,
    ordinal: usize,
    value: &Expr,
    constants: &Constants<'_>,
) -> Result<Option<Value>, SqlError> {
    if is_default(value) {
        return Ok(None);
    }
    let column = &table.columns[ordinal];
    let Some(written) = constants.read(value)? else {
        let error = refused("anything but a constant in VALUES")
            .hint("Compute the value before, and give it as a parameter.");
        return Err(constants.at(error, value));
    };
    stored(written, &column.name, column.data_type).map(Some).map_err(|error| constants.at(error, value))
}

/// Whether a value is DEFAULT.
pub(crate) fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The defaults of a table, each read once it is needed.
struct Defaults<'t> {
    table: &'t Table,
    now_ms: Option<u64>,
    known: Vec<Option<Value>>,
}

impl<'t> Defaults<'t> {
    fn new(table: &'t Table, now_ms: Option<u64>) -> Defaults<'t> {
        Defaults { table, now_ms, known: vec![None; table.columns.len()] }
    }

    /// A whole row, of values for some columns and defaults for the others.
    fn row(&mut self, targets: &[usize], values: Vec<Option<Value>>) -> Result<Row, SqlError> {
        let mut row: Vec<Option<Value>> = vec![None; self.table.columns.len()];
        for (ordinal, value) in targets.iter().zip(values) {
            row[*ordinal] = value;
        }
        let mut whole = Vec::with_capacity(row.len());
        for (ordinal, value) in row.into_iter().enumerate() {
            whole.push(match value {
                Some(value) => value,
                None => self.default(ordinal)?,
            });
        }
        Ok(whole.into())
    }

    fn default(&mut self, ordinal: usize) -> Result<Value, SqlError> {
        if let Some(known) = &self.known[ordinal] {
            return Ok(known.clone());
        }
        let value = default_value(self.table, ordinal, self.now_ms)?;
        self.known[ordinal] = Some(value.clone());
        Ok(value)
    }
}

fn finish(table: &Arc<Table>, rows: Vec<Row>) -> Result<Statement, SqlError> {
    let keys = rows.iter().map(|row| key_of(table, row)).collect::<Result<Vec<_>, _>>()?;
    let access = match table.primary_key.is_empty() {
        true => Access::Table,
        false => Access::Keys(keys),
    };
    Ok(Statement { table: table.clone(), action: Action::Insert(rows), access })
}

fn key_of(table: &Table, row: &Row) -> Result<Key, SqlError> {
    let mut values = Vec::with_capacity(table.primary_key.len());
    for ordinal in &table.primary_key {
        let value = &row[usize::from(*ordinal)];
        if value.is_null() {
            let message = format!(
                "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                table.columns[usize::from(*ordinal)].name,
                table.object_name()
            );
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message));
        }
        values.push(value);
    }
    let key = Key::encode(values)?;
    let found = key.as_bytes().len();
    if found > KEY_BYTES_MAX {
        let message = format!(
            "the primary key has {found} bytes, the limit is {KEY_BYTES_MAX} (KEY_BYTES_MAX) where databases execute scripts"
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Use shorter values in the columns of the primary key."));
    }
    Ok(key)
}
