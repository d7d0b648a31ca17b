//! Effects that endorsers signed, held against the schema: whoever has signed them, no row may be what no execution
//! could have made it.

use crate::library::Library;
use execute::sized;
use plan::computed_index::{ComputedIndex, primary_of};
use plan::expression::Environment;
use plan::sequence::counter_key;
use plan::table::TablePlan;
use state::{
    Addition, Command, CommandKind, Effects, RowChange, RowFunction, RowId, effects_of, write_command,
};
use std::sync::Arc;
use types::{
    ColumnSet, CompositeTypes, Counter, DataType, EndorsedEffects, EndorsedRead, EndorsedScan, EndorsedWrite,
    ExecutionVersion, Index, Key, Row, RowWrite, SqlError, SqlState, TableId, Value, ValueLimits,
    is_advisory_row,
};

/// The effects as validation works on them. Their commands check what the row is at its place: NOT NULL, CHECK, length.
///
/// # Errors
/// A table or column that is not there, a value of another type, a key that is not the row's: nothing that a simulation
/// on this catalog gives.
pub fn bind_endorsed(library: &Library, endorsed: &EndorsedEffects) -> Result<Effects, SqlError> {
    library.value_limits().within(|| bind_within_limits(library, endorsed))
}

fn bind_within_limits(library: &Library, endorsed: &EndorsedEffects) -> Result<Effects, SqlError> {
    let is_entries = |table: TableId| library.tables().computed_index(table).is_some();
    for EndorsedRead { table, .. } in &endorsed.reads {
        let known = library.tables().unique_index(*table).is_some()
            || counter(library, *table).is_some()
            || has_advisory_locks(library, *table);
        if !known && !is_entries(*table) {
            plan(library, *table)?;
        }
    }
    for EndorsedScan { table, result, .. } in &endorsed.scans {
        if !is_entries(*table) {
            plan(library, *table)?;
        }
        if !result.is_sorted_by(|a, b| a < b) {
            return Err(broken("the keys of a scan's result do not ascend".to_string()));
        }
    }
    let types = library.tables().routines().types();
    effects_of(endorsed, |write| {
        if let Some((table, index)) = library.tables().unique_index(write.table) {
            return unique_command(table, index, write);
        }
        if let Some((_, computed)) = library.tables().computed_index(write.table) {
            return entry_command(computed, write);
        }
        if has_advisory_locks(library, write.table) {
            return advisory_command(write);
        }
        match counter(library, write.table) {
            Some(counter) => counter_command(counter, write),
            None => command(types, plan(library, write.table)?, write),
        }
    })
}

/// The sequence that counts under this number.
fn counter(library: &Library, table: TableId) -> Option<&Counter> {
    library.catalog().counters().find(|counter| counter.table == table)
}

/// The last value of a sequence.
fn counter_command(counter: &Counter, endorsed: &EndorsedWrite) -> Result<Command, SqlError> {
    let is_value = |value: &Value, is_drawn: &Value| {
        matches!(value, Value::BigInt(value) if (counter.smallest..=counter.largest).contains(value))
            && matches!(is_drawn, Value::Boolean(_))
    };
    let fits = endorsed.key == counter_key()
        && match &endorsed.write {
            RowWrite::Put(row) => matches!(&row[..], [value, is_drawn] if is_value(value, is_drawn)),
            RowWrite::Assign(values) => {
                matches!(&values[..], [(0, value), (1, is_drawn)] if is_value(value, is_drawn))
            }
            RowWrite::Add { .. } | RowWrite::Delete => false,
        };
    match fits {
        true => Ok(write_command(endorsed)),
        false => Err(broken("a sequence has come to no value of it".to_string())),
    }
}

/// Whether rows of advisory locks stand there.
fn has_advisory_locks(library: &Library, table: TableId) -> bool {
    table == TableId::ADVISORY_LOCKS && library.version() >= ExecutionVersion::V14
}

/// What sessions hold. Whether they may is for the endorsers to say.
fn advisory_command(endorsed: &EndorsedWrite) -> Result<Command, SqlError> {
    let fits = match &endorsed.write {
        RowWrite::Put(row) => is_advisory_row(&endorsed.key, row),
        RowWrite::Assign(values) => match values.as_slice() {
            [(0, value)] => is_advisory_row(&endorsed.key, &Row::from([value.clone()])),
            _ => false,
        },
        RowWrite::Delete => true,
        RowWrite::Add { .. } => false,
    };
    match fits {
        true => Ok(write_command(endorsed)),
        false => Err(broken("a row of advisory locks has come to no value of it".to_string())),
    }
}

/// A key of a unique index that is taken or freed. Which row takes it is not looked at: whoever endorses decides what
/// keys there are, as they decide what rows there are.
fn unique_command(
    table: &Arc<TablePlan>,
    index: &Arc<Index>,
    endorsed: &EndorsedWrite,
) -> Result<Command, SqlError> {
    match &endorsed.write {
        RowWrite::Put(row) if row.is_empty() => Ok(write_command(endorsed)),
        RowWrite::Delete => Ok(write_command(endorsed)),
        _ => {
            Err(broken(format!("the keys of index \"{}\" of \"{}\" have no columns", index.name, table.name)))
        }
    }
}

/// An entry of a computed index that comes or goes, likewise.
fn entry_command(computed: &ComputedIndex, endorsed: &EndorsedWrite) -> Result<Command, SqlError> {
    let leads = |row: &Row| row.len() == Index::ENTRY_COLUMNS && primary_of(row).is_some();
    match &endorsed.write {
        RowWrite::Put(row) if leads(row) => Ok(write_command(endorsed)),
        RowWrite::Delete => Ok(write_command(endorsed)),
        _ => Err(broken(format!("an entry of index \"{}\" has a primary key alone", computed.index.name))),
    }
}

fn plan(library: &Library, table: TableId) -> Result<&Arc<TablePlan>, SqlError> {
    let found = library.tables().by_id(table);
    found.ok_or_else(|| broken(format!("there is no table with the number {}", table.0)))
}

fn broken(what: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, what)
        .hint("Ask endorsers whose node has the ledger's schema.")
}

/// A write that checks the row it makes.
struct CheckedWrite {
    table: Arc<TablePlan>,
    write: RowWrite,
    /// Positions of the table's checks that look at a written column.
    checks: Vec<usize>,
    /// Ordinals of generated columns that what is written decides on.
    computed: Vec<u16>,
    /// How large what it makes may be.
    limits: ValueLimits,
}

impl RowFunction for CheckedWrite {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        self.limits.within(|| self.checked(row))
    }
}

impl CheckedWrite {
    fn checked(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let change = sized(self.write.apply(row)?)?;
        if let RowChange::Put(row) = &change {
            let environment = Environment::new(row, &[], 0);
            for ordinal in &self.computed {
                let column = &self.table.columns[usize::from(*ordinal)];
                let value =
                    column.computed.as_ref().map(|computed| computed.evaluate(&environment)).transpose()?;
                if value.as_ref() != row.get(usize::from(*ordinal)) {
                    return Err(broken(format!(
                        "column \"{}\" of table \"{}\" has another value than it is generated with",
                        column.name, self.table.name
                    )));
                }
            }
            for check in self.checks.iter().map(|index| &self.table.checks[*index]) {
                if check.is_violated(&environment)? {
                    return Err(self.table.check_violation(check, row));
                }
            }
        }
        Ok(change)
    }
}

fn command(
    types: &CompositeTypes,
    table: &Arc<TablePlan>,
    endorsed: &EndorsedWrite,
) -> Result<Command, SqlError> {
    let (key, write) = (&endorsed.key, &endorsed.write);
    let mut uses = ColumnSet::EXISTS;
    let mut addition = None;
    let kind = match write {
        RowWrite::Put(row) => {
            whole_row(types, table, key, row)?;
            uses = ColumnSet::EMPTY;
            CommandKind::Insert(row.clone())
        }
        RowWrite::Assign(values) => {
            if !values.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(broken(format!(
                    "the columns assigned in table \"{}\" do not ascend",
                    table.name
                )));
            }
            values.iter().try_for_each(|(ordinal, value)| column_value(types, table, *ordinal, value))?;
            CommandKind::Update { known: values.clone() }
        }
        RowWrite::Add { ordinal, amount } => {
            let data_type = not_in_key(table, *ordinal)?;
            let (smallest, largest) =
                data_type
                    .integer_range()
                    .filter(|_| data_type != DataType::SmallInt)
                    .ok_or_else(|| broken(format!("an amount is added to a column of type {data_type}")))?;
            uses |= write.columns();
            addition = Some(Addition::new(*ordinal, *amount, smallest, largest));
            CommandKind::Update { known: Vec::new() }
        }
        RowWrite::Delete => CommandKind::Delete,
    };
    let writes = write.columns();
    let checks = checks_of(table, writes, &mut uses);
    let computed: Vec<u16> = table
        .computed_from(writes)
        .map(|(ordinal, value)| {
            if writes != ColumnSet::ALL {
                uses |= (value.columns() | ColumnSet::column(usize::from(ordinal))).without(writes);
            }
            ordinal
        })
        .collect();
    // What is checked is more than an addition.
    let addition = addition.filter(|_| checks.is_empty() && computed.is_empty());
    let can_fail = addition.is_some()
        || matches!(write, RowWrite::Add { .. })
        || !checks.is_empty()
        || !computed.is_empty()
        || may_grow(table, write);
    let (table_plan, write, limits) = (table.clone(), write.clone(), ValueLimits::here());
    let function = Arc::new(CheckedWrite { table: table_plan, write, checks, computed, limits });
    let row = RowId { table: table.id, key: key.clone() };
    Ok(Command { row, function, kind, uses, writes, guard: endorsed.guard, can_fail, addition })
}

/// The checks that look at a written column, and those that not all rows keep; what else they look at is used.
fn checks_of(table: &TablePlan, writes: ColumnSet, uses: &mut ColumnSet) -> Vec<usize> {
    let mut found = Vec::new();
    for (index, check) in table.checks.iter().enumerate() {
        let columns = check.condition.columns();
        if columns.intersects(writes) || (!check.valid && !writes.is_empty()) {
            found.push(index);
            if writes != ColumnSet::ALL {
                *uses |= columns.without(writes);
            }
        }
    }
    found
}

/// Whether a row may become too long by this write although every value fits.
fn may_grow(table: &TablePlan, write: &RowWrite) -> bool {
    matches!(write, RowWrite::Put(_) | RowWrite::Assign(_)) && plan::table::may_be_too_long(table)
}

fn whole_row(types: &CompositeTypes, table: &TablePlan, key: &Key, row: &Row) -> Result<(), SqlError> {
    if row.len() != table.columns.len() {
        let (found, expected) = (row.len(), table.columns.len());
        return Err(broken(format!(
            "a row of table \"{}\" has {expected} values, found {found}",
            table.name
        )));
    }
    for (ordinal, value) in (0u16..).zip(row.iter()) {
        typed(types, table, ordinal, value)?;
    }
    if !table.key.is_empty() {
        let expected = Key::encode(table.key.iter().map(|ordinal| &row[usize::from(*ordinal)]))?;
        if expected != *key {
            return Err(broken(format!("a row of table \"{}\" stands under another row's key", table.name)));
        }
    }
    Ok(())
}

fn column_value(
    types: &CompositeTypes,
    table: &TablePlan,
    ordinal: u16,
    value: &Value,
) -> Result<(), SqlError> {
    not_in_key(table, ordinal)?;
    typed(types, table, ordinal, value)
}

/// The type of a column that is no part of the primary key.
fn not_in_key(table: &TablePlan, ordinal: u16) -> Result<DataType, SqlError> {
    if table.key.contains(&ordinal) {
        return Err(broken(format!("a column of the primary key of table \"{}\" is changed", table.name)));
    }
    let column = table.columns.get(usize::from(ordinal));
    let column = column
        .ok_or_else(|| broken(format!("table \"{}\" has no column {}", table.name, u32::from(ordinal) + 1)));
    Ok(column?.data_type)
}

/// Whether the value is one of the column's type, as it is stored.
fn typed(types: &CompositeTypes, table: &TablePlan, ordinal: u16, value: &Value) -> Result<(), SqlError> {
    let column = &table.columns[usize::from(ordinal)];
    if value.is_null() {
        return if column.not_null {
            Err(broken(format!("column \"{}\" of table \"{}\" is NOT NULL", column.name, table.name)))
        } else {
            Ok(())
        };
    }
    if types.fits(value, column.data_type) {
        return Ok(());
    }
    Err(broken(format!(
        "column \"{}\" of table \"{}\" is of type {}, found {}",
        column.name,
        table.name,
        column.data_type,
        value.data_type()
    )))
}
