//! Triggers: when they fire, what they are given, and what becomes of the row that they give back.
//!
//! ```text
//! statement ─▶ BEFORE STATEMENT ─▶ for every row: BEFORE ROW, change, note what comes after it
//!                                              └▶ settle: references and AFTER ROW in the order of the rows,
//!                                                 then AFTER STATEMENT
//! ```
//!
//! What a trigger function is given is read: the whole row, so that the function need not run again at a command's place.
//! A row that has come out of BEFORE ROW is assigned by a command with known values.
//!
//! - A statement whose row triggers fire reads its rows as a whole and is never fused. What the functions read and
//!   write is registered like anything else. A statement whose table has no trigger at its event takes the ways that
//!   it always took.
//! - What a statement has left to do is its own: a trigger function starts with nothing left, so its statements
//!   settle before it returns. Cascading adds to the statement that cascades, as in PostgreSQL.
//! - A row that a trigger of the same statement has changed cannot be changed by the statement (`27000`): own rows
//!   count their changes.
//! - Transition tables are rows of a query that is running, under numbers that no recursive query has.
//! - The footprint follows every trigger once per table and event. It knows nothing of the rows that the trigger is
//!   given, so a second look would show the same, and recursion ends.
//! - Whose consent is needed counts triggers, also those of tables to which a change cascades. The role that changes
//!   the table needs no `EXECUTE` on their functions, but everything that these do themselves.

use crate::execution::Execution;
use crate::moving::Updated;
use crate::remaining::{Begun, ChangedRows, Event, Firing, Gathered, Unsettled};
use plan::command::{DeletePlan, PlannedUpdate, UpdatePlan};
use plan::expression::{Environment, Expression, is_same, row_space};
use plan::table::TablePlan;
use plan::trigger::{NEW_TABLE, OLD_TABLE, TriggerPlan};
use state::{Command, RowId};
use std::rc::Rc;
use std::sync::Arc;
use types::session_format::{SessionFormat, within_format};
use types::{ColumnSet, Key, Row, SqlError, SqlState, TableId, TriggerEvent, TriggerTime, Value};

impl Execution<'_> {
    /// A statement begins to change a table: BEFORE STATEMENT fires, once however often the statement comes to the table.
    pub(super) fn begin_statement(&mut self, table: &TablePlan, event: Event<'_>) -> Result<(), SqlError> {
        let kind = event.kind();
        if !table.triggers.at(kind).any || self.running.remaining.begun(table.id, kind).is_some() {
            return Ok(());
        }
        self.running.remaining.begun.push(Begun { table: table.id, event: kind, rows: Gathered::default() });
        let programs = self.on.programs;
        for trigger in programs.triggers_of(table.id) {
            if trigger.definition.fires(TriggerTime::Before, false, kind)
                && self.is_to_fire(trigger, event, None, None)?
            {
                self.fire(trigger, kind, None, None, None)?;
            }
        }
        Ok(())
    }

    /// It has changed all the rows that it changes itself: AFTER STATEMENT comes behind what comes after the rows.
    pub(super) fn end_statement(&mut self, table: &TablePlan, event: Event<'_>) -> Result<(), SqlError> {
        let kind = event.kind();
        if !table.triggers.at(kind).any {
            return Ok(());
        }
        let programs = self.on.programs;
        for trigger in programs.triggers_of(table.id) {
            if !trigger.definition.fires(TriggerTime::After, false, kind)
                || !self.is_to_fire(trigger, event, None, None)?
            {
                continue;
            }
            // Cascading may come to the table again: it fires once, behind all rows.
            self.running.remaining.unsettled.retain(|waiting| {
                !matches!(waiting, Unsettled::Fires(firing) if Arc::ptr_eq(&firing.trigger, trigger)
                    && firing.event == kind && firing.old.is_none() && firing.new.is_none())
            });
            self.note_firing(trigger, table.id, kind, None, None);
        }
        Ok(())
    }

    fn note_firing(
        &mut self,
        trigger: &Arc<TriggerPlan>,
        table: TableId,
        event: TriggerEvent,
        old: Option<&Row>,
        new: Option<&Row>,
    ) {
        let has_tables = trigger.definition.has_transition_tables();
        let rows = self.running.remaining.begun(table, event).filter(|_| has_tables).cloned();
        let (trigger, old, new) = (trigger.clone(), old.cloned(), new.cloned());
        let firing = Firing { trigger, table, event, old, new, rows };
        self.running.remaining.unsettled.push_back(Unsettled::Fires(Box::new(firing)));
    }

    /// An AFTER trigger fires.
    pub(super) fn fire_noted(&mut self, firing: &Firing) -> Result<(), SqlError> {
        let Firing { trigger, table, event, old, new, rows } = firing;
        if !trigger.definition.per_row {
            // What comes to the table from now on is another statement.
            self.running.remaining.begun.retain(|begun| begun.table != *table || begun.event != *event);
        }
        let rows = rows.as_ref().map(|rows| rows.borrow().clone());
        self.fire(trigger, *event, old.as_ref(), new.as_ref(), rows)?;
        Ok(())
    }

    /// BEFORE ROW and INSTEAD OF: the row as the triggers leave it; `None` where one of them leaves it out.
    pub(super) fn row_as_left(
        &mut self,
        table: &TablePlan,
        (time, event): (TriggerTime, Event<'_>),
        old: Option<&Row>,
        mut new: Option<Row>,
    ) -> Result<Option<Row>, SqlError> {
        let (programs, kind) = (self.on.programs, event.kind());
        for trigger in programs.triggers_of(table.id) {
            if !trigger.definition.fires(time, true, kind)
                || !self.is_to_fire(trigger, event, old, new.as_ref())?
            {
                continue;
            }
            let Some(row) = self.fire(trigger, kind, old, new.as_ref(), None)? else { return Ok(None) };
            if new.is_some() {
                new = Some(row);
            }
        }
        Ok(new.or_else(|| old.cloned()))
    }

    /// A row has changed: notes which triggers fire when the statement ends.
    pub(super) fn after_row(
        &mut self,
        table: &TablePlan,
        event: Event<'_>,
        old: Option<&Row>,
        new: Option<&Row>,
    ) -> Result<(), SqlError> {
        let (programs, kind) = (self.on.programs, event.kind());
        if table.triggers.at(kind).tables
            && let Some(rows) = self.running.remaining.begun(table.id, kind).cloned()
        {
            let mut rows = rows.borrow_mut();
            let ChangedRows { old: olds, new: news } = &mut *rows;
            for (row, rows) in [(old, olds), (new, news)] {
                if let Some(row) = row {
                    self.meter.memory.keep(row_space(row.len()))?;
                    Rc::make_mut(rows).push(row.to_vec());
                }
            }
        }
        for trigger in programs.triggers_of(table.id) {
            if trigger.definition.fires(TriggerTime::After, true, kind)
                && self.is_to_fire(trigger, event, old, new)?
            {
                self.charge(1)?;
                self.note_firing(trigger, table.id, kind, old, new);
            }
        }
        Ok(())
    }

    /// Whether UPDATE OF and WHEN let a trigger fire.
    fn is_to_fire(
        &mut self,
        trigger: &TriggerPlan,
        event: Event<'_>,
        old: Option<&Row>,
        new: Option<&Row>,
    ) -> Result<bool, SqlError> {
        if let Event::Update(plan) = event
            && !trigger.is_for_update(|ordinal| plan.assigns(ordinal))
        {
            return Ok(false);
        }
        let Some(condition) = &trigger.condition else { return Ok(true) };
        let condition = condition.as_ref().map_err(Clone::clone)?;
        self.charge(1)?;
        let width = trigger.width();
        let mut both = Vec::with_capacity(2 * width);
        for row in [old, new] {
            match row {
                Some(row) => both.extend(row.iter().cloned()),
                None => both.extend(std::iter::repeat_n(Value::Null, width)),
            }
        }
        let given = crate::subqueries::Given { frame: &[], arguments: &[], left: &[] };
        // As the trigger's function: it means the same whatever the session's format is.
        let fires = self.with_subqueries(&both, given, |environment| {
            within_format(SessionFormat::default(), || condition.is_true(environment))
        })?;
        self.see_newer();
        Ok(fires)
    }

    /// Runs a trigger function. The statement goes on as if nothing had run in between, but for the rows.
    fn fire(
        &mut self,
        trigger: &TriggerPlan,
        event: TriggerEvent,
        old: Option<&Row>,
        new: Option<&Row>,
        rows: Option<ChangedRows>,
    ) -> Result<Option<Row>, SqlError> {
        let remaining = std::mem::take(&mut self.running.remaining);
        let matched = std::mem::take(&mut self.outcome.last_matched);
        let working = self.running.working.len();
        if let Some(ChangedRows { old, new }) = rows {
            self.running.working.push((OLD_TABLE, old.into()));
            self.running.working.push((NEW_TABLE, new.into()));
        }
        let (programs, inputs) = (self.on.programs, trigger.inputs(event, old, new));
        let definer = trigger.function.security_definer;
        let policy = trigger.function.endorsement.as_deref();
        let result = self.under_policy(policy, |execution| {
            execution.as_definer(definer, |execution| programs.fire(execution, trigger, inputs))
        });
        self.running.working.truncate(working);
        self.see_newer();
        (self.outcome.last_matched, self.running.remaining) = (matched, remaining);
        let values = result?.values;
        Ok((!values.is_empty()).then(|| Row::from(values)))
    }

    /// How often the transaction has changed a row.
    fn changes_of(&self, table: TableId, key: &Key) -> u32 {
        self.written.own.position(table, key).map_or(0, |position| self.written.own.get(position).changes)
    }

    /// Refuses to change a row that triggers of the same statement have changed. `seen`: how often it had been changed when
    /// the statement found it.
    pub(super) fn refuse_changed(&self, row: &RowId, seen: u32, what: &str) -> Result<(), SqlError> {
        if self.changes_of(row.table, &row.key) == seen {
            return Ok(());
        }
        let message = format!(
            "tuple to be {what} was already modified by an operation triggered by the current command"
        );
        Err(SqlError::new(SqlState(*b"27000"), message).hint(
            "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
        ))
    }

    /// The row that an INSERT is to insert, as BEFORE ROW leaves it, with its generated columns.
    pub(super) fn before_insert(&mut self, table: &TablePlan, row: Row) -> Result<Option<Row>, SqlError> {
        let row = match table.triggers.at(TriggerEvent::Insert).before_row {
            true => self.row_as_left(table, (TriggerTime::Before, Event::Insert), None, Some(row))?,
            false => Some(row),
        };
        self.measured(|_| row.map(|row| table.with_computed(row)).transpose())
    }

    /// A row has been inserted.
    pub(super) fn after_insert(&mut self, table: &TablePlan, row: &Row) -> Result<(), SqlError> {
        match table.triggers.at(TriggerEvent::Insert).rows {
            true => self.after_row(table, Event::Insert, None, Some(row)),
            false => Ok(()),
        }
    }

    /// How often a row has been changed that a statement has found; for [`Execution::update_found`] and
    /// [`Execution::delete_found`].
    pub(super) fn seen(&self, table: &TablePlan, key: &Key) -> u32 {
        self.changes_of(table.id, key)
    }

    /// Updates a row that a statement has found, with its triggers. A row that waits for its key is to be given to
    /// [`Execution::end_waiting`] when the statement is through with the others.
    pub(super) fn update_found(
        &mut self,
        plan: &Arc<UpdatePlan>,
        planned: PlannedUpdate,
        seen: u32,
    ) -> Result<Updated, SqlError> {
        let table = &plan.table;
        let row = planned.command.row.clone();
        let fires = table.triggers.at(TriggerEvent::Update);
        let as_whole = plan.moves || plan.row_check.is_some();
        if fires.rows || as_whole {
            self.register_read(row.table, &row.key, ColumnSet::ALL);
        }
        self.refuse_changed(&row, seen, "updated")?;
        let Some(old) = self.current(row.table, &row.key)? else { return Ok(Updated::Left) };
        let event = Event::Update(plan);
        let updated = if fires.before_row || as_whole {
            let Some(mut new) = planned.function.new_row(&old)? else { return Ok(Updated::Left) };
            if fires.before_row {
                let left = self.row_as_left(table, (TriggerTime::Before, event), Some(&old), Some(new))?;
                let Some(left) = left else { return Ok(Updated::Left) };
                new = self.measured(|_| table.with_computed(left))?;
                self.refuse_changed(&row, seen, "updated")?;
            }
            self.hold_policies(table, plan.row_check.as_deref(), &new)?;
            if let Some(check) = &plan.row_check {
                check.check_partitions(table, &new)?;
            }
            let updated = self.replace_row(plan, &row.key, &old, new.clone())?;
            self.hold_views(table, plan.row_check.as_deref(), &new)?;
            updated
        } else if self.apply_update(plan, planned.command)? {
            self.current(row.table, &row.key)?.map_or(Updated::Left, Updated::Row)
        } else {
            Updated::Left
        };
        if let (Updated::Row(new), true) = (&updated, fires.rows) {
            self.after_row(table, event, Some(&old), Some(new))?;
        }
        Ok(updated)
    }

    /// Assigns what an UPDATE and BEFORE ROW have made of a row that keeps its key.
    pub(super) fn assign_row(
        &mut self,
        plan: &Arc<UpdatePlan>,
        key: &Key,
        old: &Row,
        new: &Row,
    ) -> Result<(), SqlError> {
        let table = &plan.table;
        let (mut assignments, mut values) = (Vec::new(), Vec::new());
        for (ordinal, (before, after)) in old.iter().zip(new.iter()).enumerate() {
            let number = ordinal as u16;
            let assigned = plan.assigns(number) && !table.key.contains(&number);
            if assigned || !is_same(before, after) {
                assignments.push((number, Expression::slot(values.len(), table.columns[ordinal].data_type)));
                values.push(after.clone());
            }
        }
        let plan = Arc::new(UpdatePlan::new(table.clone(), Vec::new(), assignments));
        let environment = Environment::new(&[], &values, self.on.now);
        let known = plan.known_values(&environment);
        let command = plan.planned(key.clone(), &known, &environment)?.command;
        self.apply_update(&plan, command).map(drop)
    }

    /// Deletes a row that a statement has found, with its triggers. Gives the row as it was; `None` where a trigger has left
    /// it out.
    pub(super) fn delete_found(
        &mut self,
        plan: &Arc<DeletePlan>,
        command: Command,
        seen: u32,
    ) -> Result<Option<Row>, SqlError> {
        let table = &plan.table;
        let row = command.row.clone();
        let fires = table.triggers.at(TriggerEvent::Delete);
        if fires.rows {
            self.register_read(row.table, &row.key, ColumnSet::ALL);
        }
        self.refuse_changed(&row, seen, "deleted")?;
        let Some(old) = self.current(row.table, &row.key)? else { return Ok(None) };
        if fires.before_row {
            if self.row_as_left(table, (TriggerTime::Before, Event::Delete), Some(&old), None)?.is_none() {
                return Ok(None);
            }
            self.refuse_changed(&row, seen, "deleted")?;
        }
        if !self.apply_delete(plan, command)? {
            return Ok(None);
        }
        if fires.rows {
            self.after_row(table, Event::Delete, Some(&old), None)?;
        }
        Ok(Some(old))
    }
}
