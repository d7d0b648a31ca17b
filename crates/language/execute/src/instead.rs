//! INSERT, UPDATE and DELETE of views whose INSTEAD OF triggers do them.
//!
//! All rows are found before the first trigger fires. A row counts, and is returned, if no trigger has left it out.

use crate::change::row_steps;
use crate::execution::Execution;
use crate::remaining::Event;
use plan::statement::{Access, BoundDelete, BoundInsert, BoundUpdate, StatementOutput};
use plan::table::TablePlan;
use types::{Key, Row, SqlError, TriggerTime, Value};
use values::broken;

impl Execution<'_> {
    /// A row that is inserted into a view.
    pub(super) fn insert_instead(&mut self, insert: &BoundInsert, row: Row) -> Result<Option<Row>, SqlError> {
        self.charge(row_steps(&row))?;
        let when = (TriggerTime::Instead, Event::Insert);
        let Some(row) = self.row_as_left(&insert.table, when, None, Some(row))? else { return Ok(None) };
        self.hold_views(&insert.table, insert.row_check.as_deref(), &row)?;
        Ok(Some(row))
    }

    /// An UPDATE of a view.
    pub(super) fn update_instead(
        &mut self,
        update: &BoundUpdate,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        let plan = &update.plan;
        let found = self.rows_of_view(&plan.table, &update.access, frame)?;
        let mut output = StatementOutput::default();
        for (old, found) in found {
            self.charge(row_steps(&old))?;
            // The values to assign stand in the row that was found.
            let environment = self.environment(&[], &found);
            let known = plan.known_values(&environment);
            let planned = plan.planned(Key::from_bytes(&[]), &known, &environment)?;
            let Some(new) = planned.function.new_row(&old)? else { continue };
            let when = (TriggerTime::Instead, Event::Update(plan));
            let Some(row) = self.row_as_left(&plan.table, when, Some(&old), Some(new))? else { continue };
            self.hold_views(&plan.table, plan.row_check.as_deref(), &row)?;
            output.affected += 1;
            output.rows.extend(update.returning.as_ref().map(|returning| returning.row(&row, &found)));
        }
        self.finish_change(&update.returning, output, frame)
    }

    /// A DELETE of a view.
    pub(super) fn delete_instead(
        &mut self,
        delete: &BoundDelete,
        frame: &[Value],
    ) -> Result<StatementOutput, SqlError> {
        let table = &delete.plan.table;
        let found = self.rows_of_view(table, &delete.access, frame)?;
        let mut output = StatementOutput::default();
        for (old, found) in found {
            self.charge(row_steps(&old))?;
            let when = (TriggerTime::Instead, Event::Delete);
            if self.row_as_left(table, when, Some(&old), None)?.is_none() {
                continue;
            }
            output.affected += 1;
            output.rows.extend(delete.returning.as_ref().map(|returning| returning.row(&old, &found)));
        }
        self.finish_change(&delete.returning, output, frame)
    }

    /// The rows of a view that a statement finds, each with what the query gives that has found it.
    fn rows_of_view(
        &mut self,
        view: &TablePlan,
        access: &Access,
        frame: &[Value],
    ) -> Result<Vec<(Row, Vec<Value>)>, SqlError> {
        let Access::Found(select) = access else { return Err(broken("a view without a query")) };
        let rows = self.select(select, frame, None)?;
        self.keep_rows(&rows)?;
        self.begin_commands();
        let width = view.columns.len();
        Ok(rows.into_iter().map(|row| (Row::from(row[..width].to_vec()), row)).collect())
    }
}
