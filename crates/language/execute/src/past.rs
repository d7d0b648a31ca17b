//! Reading a table as it was after an earlier block, and what became of a row.

use crate::execution::Execution;

use crate::row_security::no_history;
use crate::scan::VisitKeyed;
use crate::subqueries::Given;
use plan::expression::Expression;
use plan::statement::{Access, Scanned, encode_lookup, resolve_key};
use plan::table::TablePlan;
use state::{PastChange, PastError, Snapshot};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{SchemaMembers, SqlError, SqlState, Value};
use values::broken;

/// `55000` something is not as it would have to be.
const NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");

impl Execution<'_> {
    /// Visits the rows of a table after the block at a height. Nothing is registered: who reads the past is never ordered.
    pub(super) fn visit_past(
        &mut self,
        scanned: &Scanned,
        height: &Expression,
        given: Given<'_>,
        reverse: bool,
        visit: &mut VisitKeyed<'_>,
    ) -> Result<(), SqlError> {
        if SchemaMembers::has_numbers_of(scanned.table.id) {
            // A schema may be behind the ledger for a while, and nobody keeps what it was at which height.
            return Err(SqlError::unsupported("AS OF HEIGHT of a table in a schema with members"));
        }
        let height = self.with_subqueries(&[], given, |environment| height.evaluate(environment))?;
        let snapshot = self.past(&height)?;
        check_schema(&scanned.table, snapshot.as_ref(), &height)?;
        match &scanned.access {
            Access::Key(parts) => {
                let key = self.with_subqueries(&[], given, |environment| resolve_key(parts, environment))?;
                let Some(key) = key else { return Ok(()) };
                self.charge(1)?;
                let Some(row) = self.read(snapshot.get(scanned.table.id, &key))? else { return Ok(()) };
                if let Some(filter) = &scanned.filter
                    && !self.with_subqueries(&row, given, |environment| filter.is_true_in(environment))?
                {
                    return Ok(());
                }
                visit(&key, &row).map(drop)
            }
            Access::Range(interval) => {
                let range = self.with_subqueries(&[], given, |environment| interval.resolve(environment))?;
                let Some(range) = range else { return Ok(()) };
                let filter = match &scanned.filter {
                    Some(filter) => {
                        Some(self.with_subqueries(&[], given, |environment| filter.with_values(environment))?)
                    }
                    None => None,
                };
                let (mut examined, most) =
                    (0_u64, self.on.context.step_limit.saturating_sub(self.meter.steps));
                let mut outcome = Ok(());
                let read = snapshot.scan(scanned.table.id, &range, reverse, &mut |key, row| {
                    examined += 1;
                    let found = match filter.as_ref().map_or(Ok(true), |filter| filter.is_true(row)) {
                        Ok(true) => visit(key, row),
                        Ok(false) => Ok(ControlFlow::Continue(())),
                        Err(error) => Err(error),
                    };
                    match found {
                        Ok(_) if examined > most || self.is_interrupted() => ControlFlow::Break(()),
                        Ok(flow) => flow,
                        Err(error) => {
                            outcome = Err(error);
                            ControlFlow::Break(())
                        }
                    }
                });
                self.read(read)?;
                self.charge(examined)?;
                outcome
            }
            Access::Index(_) | Access::Found(_) => Err(broken("an index of a table as it was")),
        }
    }

    /// The state after the block at a height.
    fn past(&self, height: &Value) -> Result<Arc<dyn Snapshot>, SqlError> {
        let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        let asked = match height {
            Value::BigInt(height) => u64::try_from(*height).ok(),
            _ => None,
        };
        let Some(asked) = asked else {
            let message = match height {
                Value::BigInt(height) => format!("AS OF HEIGHT must not be negative: {height}"),
                _ => "AS OF HEIGHT must not be NULL".to_string(),
            };
            return Err(invalid(message));
        };
        self.on.snapshot.at_height(asked).map_err(|error| match error {
            PastError::Nowhere | PastError::Nothing | PastError::Unreadable => in_transaction("AS OF HEIGHT"),
            PastError::NotYet { oldest, newest } => invalid(format!(
                "height {asked} has not been applied yet: this node keeps heights {oldest} to {newest}"
            )),
            PastError::NoMore { oldest, newest } => invalid(format!(
                "height {asked} is no longer kept: this node keeps heights {oldest} to {newest}"
            ))
            .hint("history_heights in node.toml says how many heights a node keeps; the history of a row goes back further."),
        })
    }
}

impl Execution<'_> {
    /// The changes of a row, the oldest first: who made them, and the row's values behind each.
    pub(super) fn row_history(
        &mut self,
        table: &TablePlan,
        key: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        if SchemaMembers::has_numbers_of(table.id) {
            return Err(SqlError::unsupported("the history of rows in a schema with members"));
        }
        self.refuse_row_security(table, no_history)?;
        // No row has NULL in its key, or so long a key.
        let given = key;
        if given.iter().any(Value::is_null) {
            return Ok(Vec::new());
        }
        let Some(key) = encode_lookup(given)? else { return Ok(Vec::new()) };
        let changes = self.on.snapshot.row_history(table.id, &key).map_err(|error| match error {
            PastError::Nothing => {
                let error = SqlError::new(NOT_IN_PREREQUISITE_STATE, "this node keeps no history of rows");
                error.hint("row_history_megabytes in node.toml says how much of it is kept.")
            }
            PastError::Unreadable => SqlError::new(
                SqlState::INTERNAL_ERROR,
                "the history of the row cannot be read; the node's log says why",
            ),
            _ => in_transaction("entente.history"),
        })?;
        self.charge(1 + changes.len() as u64)?;
        let width = table.columns.len();
        let row = |change: PastChange| {
            let operation = match (change.existed, &change.value) {
                (_, None) => "DELETE",
                (true, Some(_)) => "UPDATE",
                (false, Some(_)) => "INSERT",
            };
            let mut row = vec![
                Value::BigInt(change.height as i64),
                Value::Integer(change.index as i32),
                Value::text(change.transaction),
                Value::text(change.organisation),
                Value::text(change.role),
                Value::text(operation),
            ];
            match change.value {
                Some(values) => row.extend(values.iter().take(width).cloned()),
                None => {
                    // Of what is gone the key is known.
                    let of_key = |column: usize| table.key.iter().position(|key| usize::from(*key) == column);
                    row.extend(
                        (0..width).map(|column| of_key(column).map_or(Value::Null, |at| given[at].clone())),
                    );
                }
            }
            row
        };
        Ok(changes.into_iter().map(row).collect())
    }
}

fn in_transaction(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} in a transaction")).hint(
        "Other nodes may keep less of the past. Use it in a SELECT of its own, or in a transaction block that begins with BEGIN READ ONLY.",
    )
}

/// A table has the same number for as long as its rows have the same shape.
fn check_schema(table: &TablePlan, snapshot: &dyn Snapshot, height: &Value) -> Result<(), SqlError> {
    let catalog = snapshot.catalog();
    if catalog.table(table.id).is_some() {
        return Ok(());
    }
    let (name, height) = (&table.name, types::format_value(height).unwrap_or_default());
    Err(match catalog.tables.contains_key(name) {
        true => SqlError::unsupported(format_args!(
            "table \"{name}\" at height {height}, where it had other columns"
        ))
        .hint("It can be read at heights behind the ALTER TABLE that gave it the columns that it has."),
        false => {
            let message = format!("table \"{name}\" did not exist at height {height}");
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
    })
}
