//! UPDATE and DELETE of tables with triggers, and UPDATE of primary keys: all rows are found first, then BEFORE STATEMENT
//! fires, then row by row.

use crate::execution::Execution;
use crate::moving::Updated;
use crate::remaining::Event;
use plan::command::PlannedUpdate;
use plan::statement::{Access, BoundDelete, BoundUpdate, StatementOutput, resolve_key};
use state::{Command, RowChange};
use types::{SqlError, Value};

impl Execution<'_> {
    /// The rows that an UPDATE finds: what becomes of each, how often it had been changed, and the row of the query that
    /// found it.
    fn planned_updates(
        &mut self,
        update: &BoundUpdate,
        frame: &[Value],
    ) -> Result<Vec<(PlannedUpdate, u32, Vec<Value>)>, SqlError> {
        let plan = &update.plan;
        let table = &plan.table;
        let environment = self.environment(&[], frame);
        let mut found = Vec::new();
        match &update.access {
            Access::Key(parts) => {
                if let Some(key) = resolve_key(parts, &environment)? {
                    let known = plan.known_values(&environment);
                    let planned = plan.planned(key, &known, &environment)?;
                    let row = &planned.command.row;
                    self.register_read(row.table, &row.key, plan.uses);
                    let current = self.current(row.table, &row.key)?;
                    if let Some(current) = current
                        && planned.function.matches(&current)?
                    {
                        let seen = self.seen(table, &row.key);
                        found.push((planned, seen, Vec::new()));
                    }
                }
            }
            Access::Found(select) => {
                for (key, row) in self.found(select, frame)? {
                    // The values to assign stand in the row that was found.
                    let environment = self.environment(&[], &row);
                    let known = plan.known_values(&environment);
                    let seen = self.seen(table, &key);
                    let planned = plan.planned(key, &known, &environment)?;
                    found.push((planned, seen, row));
                }
            }
            access => {
                let keys = self.matching_keys(table, access, &update.filter, update.filter_columns, frame)?;
                let known = plan.known_values(&environment);
                for key in keys {
                    let seen = self.seen(table, &key);
                    found.push((plan.planned(key, &known, &environment)?, seen, Vec::new()));
                }
            }
        }
        Ok(found)
    }

    /// An UPDATE of a table with triggers, or of the primary key.
    pub(super) fn update_firing(
        &mut self,
        update: &BoundUpdate,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        let plan = &update.plan;
        let table = &plan.table;
        let found = self.planned_updates(update, frame)?;
        let mut output = StatementOutput::default();
        let mut waiting = Vec::new();
        self.begin_commands();
        self.begin_statement(table, Event::Update(plan))?;
        for (planned, seen, found) in found {
            self.charge(1)?;
            let key = planned.command.row.key.clone();
            if self.is_left_out(table.id, &key, "updated")? {
                continue;
            }
            let updated = self.update_found(plan, planned, seen)?;
            if let Updated::Left = updated {
                continue;
            }
            self.note_changed(table.id, &key);
            output.affected += 1;
            let position = output.rows.len();
            if let Some(returning) = &update.returning {
                self.register_read(table.id, &key, returning.uses);
                output.rows.push(match &updated {
                    Updated::Row(row) => returning.row(row, &found),
                    _ => Vec::new(),
                });
            }
            if let Updated::Waits(row) = updated {
                waiting.push((position, row, found));
            }
        }
        for (position, row, found) in waiting {
            let row = self.end_waiting(*row)?;
            if let Some(returning) = &update.returning {
                output.rows[position] = returning.row(&row, &found);
            }
        }
        self.end_statement(table, Event::Update(plan))?;
        self.finish_change(&update.returning, output, frame)
    }

    /// A DELETE of a table with triggers.
    pub(super) fn delete_firing(
        &mut self,
        delete: &BoundDelete,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        let plan = &delete.plan;
        let table = &plan.table;
        let environment = self.environment(&[], frame);
        let rows = self.rows_to_delete(delete, frame)?;
        let mut found: Vec<(Command, u32, Vec<Value>)> = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            let command = plan.command(key.clone(), &environment)?;
            if let Access::Key(_) = delete.access {
                self.register_read(table.id, &key, plan.uses);
                let current = self.current(table.id, &key)?;
                if command.function.apply(current.as_ref())? == RowChange::Unmatched {
                    continue;
                }
            }
            let seen = self.seen(table, &key);
            found.push((command, seen, row));
        }
        let mut output = StatementOutput::default();
        self.begin_commands();
        self.begin_statement(table, Event::Delete)?;
        for (command, seen, found) in found {
            self.charge(1)?;
            let key = command.row.key.clone();
            if self.is_left_out(table.id, &key, "deleted")? {
                continue;
            }
            if let Some(returning) = &delete.returning {
                self.register_read(table.id, &key, returning.uses);
            }
            let Some(row) = self.delete_found(plan, command, seen)? else { continue };
            self.note_changed(table.id, &key);
            output.affected += 1;
            if let Some(returning) = &delete.returning {
                output.rows.push(returning.row(&row, &found));
            }
        }
        self.end_statement(table, Event::Delete)?;
        self.finish_change(&delete.returning, output, frame)
    }
}
