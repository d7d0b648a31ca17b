//! INSERT, UPDATE and DELETE.

use crate::execution::Execution;
use crate::moving::Updated;
use crate::remaining::Event;
use crate::row_security::no_truncate;
use crate::subqueries::Given;
use plan::command::insert_command;
use plan::expression::long_bytes;
use plan::row_check::RowCheck;
use plan::statement::{
    Access, Arbiter, BoundDelete, BoundInsert, BoundSelect, BoundUpdate, ConflictAction, InsertSource,
    OnConflict, Returning, StatementOutput, resolve_key,
};
use plan::table::TablePlan;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{ColumnSet, Key, Row, SqlError, SqlState, TriggerEvent, Value};
use values::broken;

/// What the row of a hidden key counts: height, position in the block, draw.
const HIDDEN_KEY_BYTES: usize = 8 + 4 + 4;

/// The key of a row that is to be changed, and what the query gives that has found it.
pub(super) type FoundRow = (Key, Vec<Value>);

impl Execution<'_> {
    pub(super) fn insert(
        &mut self,
        insert: &BoundInsert,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        let mut output = StatementOutput::default();
        let mut rows: Vec<Row> = Vec::new();
        match &insert.source {
            InsertSource::Rows(expressions) => {
                self.forget_subqueries();
                let given = Given { frame, arguments: &[], left: &[] };
                for expressions in expressions {
                    rows.push(self.with_subqueries(&[], given, |environment| {
                        expressions.iter().map(|expression| expression.evaluate(environment)).collect()
                    })?);
                }
            }
            InsertSource::Select(select, targets) => {
                let sources = self.select(select, frame, None)?;
                self.keep_rows(&sources)?;
                for source in sources {
                    let given = Given { frame, arguments: &[], left: &[] };
                    rows.push(self.with_subqueries(&source, given, |environment| {
                        targets.iter().map(|target| target.evaluate(environment)).collect()
                    })?);
                }
            }
        }
        self.begin_change();
        self.begin_commands();
        let updates = match &insert.on_conflict {
            Some(OnConflict { action: ConflictAction::Update { plan, .. }, .. }) => Some(Event::Update(plan)),
            _ => None,
        };
        self.begin_statement(&insert.table, Event::Insert)?;
        if let Some(event) = updates {
            self.begin_statement(&insert.table, event)?;
        }
        let mut touched = BTreeSet::new();
        for row in rows {
            let row = match &insert.on_conflict {
                _ if insert.table.id.is_view() => self.insert_instead(insert, row)?,
                None => self.insert_row(&insert.table, row, insert.row_check.as_deref())?,
                Some(on_conflict) => self.insert_or(insert, on_conflict, row, frame, &mut touched)?,
            };
            let Some(row) = row else { continue };
            output.affected += 1;
            if insert.returning.is_some() {
                output.rows.push(row.to_vec());
            }
        }
        if let Some(event) = updates {
            self.end_statement(&insert.table, event)?;
        }
        self.end_statement(&insert.table, Event::Insert)?;
        self.settle()?;
        self.return_rows(&insert.returning, &mut output, frame)?;
        Ok(output)
    }

    /// Rows are about to be inserted that a client sends.
    ///
    /// # Errors
    /// What BEFORE STATEMENT ends with.
    pub fn begin_insert(&mut self, table: &TablePlan) -> Result<(), SqlError> {
        self.begin_statement(table, Event::Insert)
    }

    /// They have been inserted: what comes after that is done.
    ///
    /// # Errors
    /// What references and triggers end with.
    pub fn end_insert(&mut self, table: &TablePlan) -> Result<(), SqlError> {
        self.end_statement(table, Event::Insert)?;
        self.settle()
    }

    /// The row that has what a new one is to have alone, and its key.
    fn conflicting(
        &mut self,
        table: &Arc<TablePlan>,
        on_conflict: &OnConflict,
        row: &Row,
    ) -> Result<Option<(Key, Row)>, SqlError> {
        let looks = match &on_conflict.action {
            ConflictAction::Nothing => ColumnSet::EXISTS,
            ConflictAction::Update { uses, .. } => *uses,
        };
        for arbiter in &on_conflict.arbiters {
            let key = match arbiter {
                Arbiter::Unique(index) if index.deferral.is_deferrable() => {
                    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
                    return Err(SqlError::new(SqlState(*b"55000"), message));
                }
                Arbiter::Key => {
                    Some(Key::encode(table.key.iter().map(|ordinal| &row[usize::from(*ordinal)]))?)
                }
                Arbiter::Unique(index) => self.taken_by(table, index, row)?,
                Arbiter::Computed(computed) => self.taken_in_computed(computed, row)?,
            };
            let Some(key) = key else { continue };
            self.register_read(table.id, &key, looks);
            if let Some(existing) = self.current(table.id, &key)? {
                return Ok(Some((key, existing)));
            }
        }
        Ok(None)
    }

    /// Inserts a row, or does what ON CONFLICT says if its key exists. Gives the row that was inserted or changed.
    fn insert_or(
        &mut self,
        insert: &BoundInsert,
        on_conflict: &OnConflict,
        row: Row,
        frame: &[Value],
        touched: &mut BTreeSet<Key>,
    ) -> Result<Option<Row>, SqlError> {
        let table = &insert.table;
        self.charge(row_steps(&row))?;
        let Some(row) = self.before_insert(table, row)? else { return Ok(None) };
        self.hold_policies(table, insert.row_check.as_deref(), &row)?;
        table.check_inserted(insert.row_check.as_deref(), &row)?;
        let Some((key, existing)) = self.conflicting(table, on_conflict, &row)? else {
            touched.insert(self.insert_checked(table, row.clone())?);
            self.hold_views(table, insert.row_check.as_deref(), &row)?;
            return Ok(Some(row));
        };
        let ConflictAction::Update { plan, values, condition, existing_check, uses: _ } = &on_conflict.action
        else {
            return Ok(None);
        };
        if touched.contains(&key) || self.is_left_out(table.id, &key, "updated")? {
            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
            return Err(SqlError::new(SqlState(*b"21000"), message).hint(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            ));
        }
        self.hold_policies(table, existing_check.as_deref(), &existing)?;
        let both = [&existing[..], &row].concat();
        let given = Given { frame, arguments: &[], left: &[] };
        let assigned = self.with_subqueries(&both, given, |environment| {
            if let Some(condition) = condition
                && !condition.is_true(environment)?
            {
                return Ok(None);
            }
            values
                .iter()
                .map(|value| value.evaluate(environment))
                .collect::<Result<Vec<Value>, _>>()
                .map(Some)
        })?;
        let Some(assigned) = assigned else { return Ok(None) };
        touched.insert(key.clone());
        self.note_changed(table.id, &key);
        let environment = self.environment(&[], &assigned);
        let known = plan.known_values(&environment);
        let planned = plan.planned(key.clone(), &known, &environment)?;
        let seen = self.seen(table, &key);
        let row = match self.update_found(plan, planned, seen)? {
            Updated::Left => None,
            Updated::Row(row) => Some(row),
            // There is no other row that could go.
            Updated::Waits(row) => Some(self.end_waiting(*row)?),
        };
        if plan.moves
            && let Some(row) = &row
        {
            touched.insert(Key::encode(table.key.iter().map(|ordinal| &row[usize::from(*ordinal)]))?);
        }
        if let Some(returning) = &insert.returning {
            self.register_read(table.id, &key, returning.uses);
        }
        Ok(row)
    }

    /// Inserts a row whose values have the types of the columns, and which is held against a check. What it references is looked at when the statement ends
    /// ([`Execution::settle`]). Gives it as triggers have left it; `None` where one of them has left it out.
    ///
    /// # Errors
    /// NOT NULL, CHECK, a key that exists, a limit; what triggers end with.
    pub fn insert_row(
        &mut self,
        table: &Arc<TablePlan>,
        row: Row,
        check: Option<&RowCheck>,
    ) -> Result<Option<Row>, SqlError> {
        self.charge(row_steps(&row))?;
        let Some(row) = self.before_insert(table, row)? else { return Ok(None) };
        self.hold_policies(table, check, &row)?;
        self.measured(|_| table.check_inserted(check, &row))?;
        self.insert_checked(table, row.clone())?;
        self.hold_views(table, check, &row)?;
        Ok(Some(row))
    }

    /// The same for a row that keeps NOT NULL and CHECK. Gives its key.
    fn insert_checked(&mut self, table: &Arc<TablePlan>, row: Row) -> Result<Key, SqlError> {
        let key = match table.key.as_slice() {
            [] => self.draw_key()?,
            key => Key::encode(key.iter().map(|ordinal| &row[usize::from(*ordinal)]))?,
        };
        self.apply(insert_command(table, key.clone(), row.clone()))?;
        self.note_changed(table.id, &key);
        if !table.constrained.is_empty() {
            self.row_changed(table, &key, None, Some(&row))?;
        }
        self.after_insert(table, &row)?;
        Ok(key)
    }

    /// A hidden key that no other row has and that keeps the order of insertion.
    pub fn draw_key(&mut self) -> Result<Key, SqlError> {
        let mut bytes = [0; HIDDEN_KEY_BYTES];
        bytes[..8].copy_from_slice(&self.on.context.height.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.on.context.index.to_be_bytes());
        bytes[12..].copy_from_slice(&self.written.draws.to_be_bytes());
        self.written.draws = self.written.draws.checked_add(1).ok_or_else(|| {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "a transaction inserts at most 2^32 rows")
        })?;
        Ok(Key::from_bytes(&bytes))
    }

    pub(super) fn update(
        &mut self,
        update: &BoundUpdate,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        self.begin_change();
        if update.plan.table.id.is_view() {
            return self.update_instead(update, frame);
        }
        let fires = update.plan.table.triggers.at(TriggerEvent::Update).any;
        if update.plan.moves || fires || update.plan.row_check.is_some() {
            return self.update_firing(update, frame);
        }
        let mut output = StatementOutput::default();
        let environment = self.environment(&[], frame);
        let table = &update.plan.table;
        if let Access::Key(parts) = &update.access {
            let Some(key) = resolve_key(parts, &environment)? else {
                return self.finish_change(&update.returning, output, frame);
            };
            let known = update.plan.known_values(&environment);
            let command = update.plan.command(key, &known, &environment)?;
            self.begin_commands();
            self.update_row(update, command, &[], &mut output)?;
            return self.finish_change(&update.returning, output, frame);
        }
        if let Access::Found(select) = &update.access {
            let rows = self.found(select, frame)?;
            self.begin_commands();
            for (key, row) in rows {
                // The values to assign stand in the row that was found.
                let environment = self.environment(&[], &row);
                let known = update.plan.known_values(&environment);
                let command = update.plan.command(key, &known, &environment)?;
                self.update_row(update, command, &row, &mut output)?;
            }
            return self.finish_change(&update.returning, output, frame);
        }
        // All found before the first is changed.
        let keys = self.matching_keys(table, &update.access, &update.filter, update.filter_columns, frame)?;
        let known = update.plan.known_values(&environment);
        self.begin_commands();
        for key in keys {
            let command = update.plan.command(key, &known, &environment)?;
            self.update_row(update, command, &[], &mut output)?;
        }
        self.finish_change(&update.returning, output, frame)
    }

    /// The end of an UPDATE or DELETE. Who sees the rows of RETURNING sees whether there was one.
    pub(super) fn finish_change(
        &mut self,
        returning: &Option<Returning>,
        mut output: StatementOutput,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        self.settle()?;
        if returning.is_some() {
            self.look_at_matched();
        }
        self.return_rows(returning, &mut output, frame)?;
        Ok(output)
    }

    /// Makes what RETURNING says of the rows that a statement has changed, all of them being changed: functions in it
    /// see that.
    fn return_rows(
        &mut self,
        returning: &Option<Returning>,
        output: &mut StatementOutput,
        frame: &[Value],
    ) -> Result<(), SqlError> {
        let Some(returning) = returning else { return Ok(()) };
        let given = Given { frame, arguments: &[], left: &[] };
        for row in &mut output.rows {
            let returned = self.with_subqueries(row, given, |environment| {
                returning.projection.iter().map(|expression| expression.evaluate(environment)).collect()
            })?;
            *row = returned;
        }
        self.see_newer();
        output.columns = returning.columns.clone();
        Ok(())
    }

    /// `found`: what the query gives that has found the row.
    fn update_row(
        &mut self,
        update: &BoundUpdate,
        command: state::Command,
        found: &[Value],
        output: &mut StatementOutput,
    ) -> Result<(), SqlError> {
        self.charge(1)?;
        let table = &update.plan.table;
        if self.is_left_out(table.id, &command.row.key, "updated")? {
            return Ok(());
        }
        if update.returning.is_none() && self.running.remaining.parts.is_none() {
            output.affected += u64::from(self.apply_update(&update.plan, command)?);
            return Ok(());
        }
        let key = command.row.key.clone();
        let matched = self.apply_update(&update.plan, command)?;
        if matched {
            self.note_changed(table.id, &key);
        }
        let Some(returning) = &update.returning else {
            output.affected += u64::from(matched);
            return Ok(());
        };
        self.register_read(table.id, &key, returning.uses);
        if let Some(row) = self.current(table.id, &key)?.filter(|_| matched) {
            output.affected += 1;
            output.rows.push(returning.row(&row, found));
        }
        Ok(())
    }

    pub(super) fn delete(
        &mut self,
        delete: &BoundDelete,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        self.begin_change();
        let table = &delete.plan.table;
        if let Some(truncation) = &delete.truncation {
            self.refuse_row_security(table, no_truncate)?;
            for other in &truncation.also {
                self.delete(other, frame)?;
            }
            if truncation.restarts {
                self.restart_counters(table.id)?;
            }
            self.refuse_pending("TRUNCATE", table)?;
            self.begin_change();
            self.begin_statement(table, Event::Truncate)?;
        } else if table.id.is_view() {
            return self.delete_instead(delete, frame);
        } else if table.triggers.at(TriggerEvent::Delete).any {
            return self.delete_firing(delete, frame);
        }
        let mut output = StatementOutput::default();
        let environment = self.environment(&[], frame);
        let rows = self.rows_to_delete(delete, frame)?;
        self.begin_commands();
        for (key, found) in rows {
            self.charge(1)?;
            if self.is_left_out(table.id, &key, "deleted")? {
                continue;
            }
            let command = delete.plan.command(key.clone(), &environment)?;
            let mut row = None;
            if let Some(returning) = &delete.returning {
                self.register_read(table.id, &key, returning.uses | delete.plan.uses);
                row = self.current(table.id, &key)?;
            }
            if !self.apply_delete(&delete.plan, command)? {
                continue;
            }
            self.note_changed(table.id, &key);
            output.affected += 1;
            if let (Some(returning), Some(row)) = (&delete.returning, row) {
                output.rows.push(returning.row(&row, &found));
            }
        }
        if delete.truncation.is_some() {
            self.end_statement(table, Event::Truncate)?;
        }
        self.finish_change(&delete.returning, output, frame)
    }

    /// The keys of the rows that a DELETE finds, with what a query gives that finds them; with a whole key, whether or not
    /// there is such a row.
    pub(super) fn rows_to_delete(
        &mut self,
        delete: &BoundDelete,
        frame: &[Value],
    ) -> Result<Vec<FoundRow>, SqlError> {
        let table = &delete.plan.table;
        let environment = self.environment(&[], frame);
        let keys = match &delete.access {
            Access::Key(parts) => resolve_key(parts, &environment)?.into_iter().collect(),
            Access::Found(select) => return self.found(select, frame),
            access => self.matching_keys(table, access, &delete.filter, delete.filter_columns, frame)?,
        };
        Ok(keys.into_iter().map(|key| (key, Vec::new())).collect())
    }

    /// What a query has found, by the key that its rows begin with; of several with the same key the first.
    pub(super) fn found(&mut self, select: &BoundSelect, frame: &[Value]) -> Result<Vec<FoundRow>, SqlError> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let rows = self.select(select, frame, None)?;
        self.keep_rows(&rows)?;
        for row in rows {
            let Some(Value::Bytea(key)) = row.first() else { return Err(broken("a row without its key")) };
            let key = Key::from_bytes(key);
            if seen.insert(key.clone()) {
                found.push((key, row));
            }
        }
        Ok(found)
    }
}

/// Bytes of a value in the encoding of its row, or a few more.
fn stored_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => text.len() + 5,
        Value::Hstore(store) => store.bytes().len() + 5,
        Value::Bytea(bytes) => bytes.len() + 5,
        Value::Json(text) => text.len() + 5,
        Value::Jsonb(value) => value.bytes().len() + 5,
        Value::Numeric(number) => number.stored_bytes() + 1,
        Value::Interval(_) | Value::Uuid(_) => 18,
        Value::Inet(_) | Value::Cidr(_) => 19,
        Value::TimeTz(_) => 13,
        Value::Bit(bits) | Value::VarBit(bits) => bits.bytes().len() + 9,
        Value::Range(range) => range.bytes(),
        Value::Multirange(ranges) => ranges.bytes(),
        Value::Enum(value) => value.label.len() + value.place.as_bytes().len() + 10,
        Value::Array(array) => 10 + array.values().iter().map(stored_bytes).sum::<usize>(),
        Value::Composite(row) => 10 + row.values().iter().map(stored_bytes).sum::<usize>(),
        _ => 9,
    }
}

/// What a row costs that is inserted: a step, and more of them for long values, which stay in memory until the block is
/// done.
pub(super) fn row_steps(row: &[Value]) -> u64 {
    const BYTES_PER_STEP: u64 = 256;
    1 + row.iter().map(long_bytes).sum::<u64>() / BYTES_PER_STEP
}

/// What a row takes to store.
pub fn row_bytes(row: &[Value]) -> usize {
    row.iter().map(stored_bytes).sum()
}

/// Refuses a row that is too long to store.
pub fn check_row_bytes(row: &[Value]) -> Result<(), SqlError> {
    let bytes = row_bytes(row);
    let limit = types::row_bytes_max();
    if bytes > limit {
        // A detail, because it tells of the whole row.
        let detail = format!("It has {bytes} bytes, the limit is {limit} (ROW_BYTES_MAX).");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "the row is too long").detail(detail));
    }
    Ok(())
}
