//! What a transaction may touch, from its statements alone: [`state::Footprint`].
//!
//! ChainifyDB's semantic analysis (Sharma, *Snapshots in data management*, section 4.6.3) takes an interval over the
//! primary key from every statement. Here statements stand in procedures, so the values of variables are followed as far
//! as they are the same on every state: arguments, constants, `now()`, and what straight-line code computes from
//! them. A key column that is compared with such a value is fixed; the first one that is not leaves the interval of
//! the prefix before it, in the worst case the whole table.
//!
//! | where | region |
//! | --- | --- |
//! | SELECT | reads the columns of WHERE and output |
//! | UPDATE by key | reads what the command uses, writes what it assigns |
//! | UPDATE over a range | the same for every row of it, and reads the columns of WHERE |
//! | UPDATE of the primary key | reads and writes every column of the old key, and of the new one |
//! | DELETE | writes every column |
//! | INSERT | writes every column of the new key; a hidden key begins with height and position |
//! | RETURNING | reads its columns |
//! | UNIQUE, FOREIGN KEY | the keys taken and referenced; all of them where they depend on data |
//!
//! Both branches of IF count, every turn of a loop, and everything behind a statement that may fail. An UPDATE whose
//! error may show the row (NOT NULL, CHECK, a numeric overflow), or that may make it too long, reads all columns:
//! the answer of the client depends on them.
//!
//! **Refused** with `0A000`: a call of a procedure or function that is already being called (its regions would have to be
//! followed through data); EXECUTE of a text that is computed; more than [`STEPS_MAX`] instructions in all calls together (places where ways meet count
//! by their variables); a change of the schema, which is
//! alone in its batch anyway. All other statements name their table when they are bound, so nothing else is left to
//! refuse. What ends with an error before it touches anything has an empty footprint and ends with that error when it
//! runs.

use crate::context::{Context, timestamp};
use crate::programs::Programs;
use crate::serial_sequence::serial_sequence;
use plan::advisory::AdvisoryFunction;
use plan::command::UpdatePlan;
use plan::computed_index::ComputedIndex;
use plan::expression::{Environment, Expression, Kind, RoutineCall, is_same};
use plan::in_execution::runs_in_execution;
use plan::polymorphic::Actual;
use plan::row_check::RowCheck;
use plan::sequence::{SERIAL_SEQUENCE, is_sequence_function, looks_at_sequence, stored_sequence_name};
use plan::statement::{
    Access, Arbiter, BoundCall, BoundDelete, BoundInsert, BoundSelect, BoundStatement, BoundUpdate,
    ConflictAction, InsertSource, Interval, KeyPart, OnConflict, Returning, resolve_key,
};
use plan::table::TablePlan;
use state::{Footprint, KeyRange, Region};
use std::ops::Bound;
use std::sync::Arc;
use types::{
    ColumnSet, ExecutionVersion, Key, ReferentialAction, Sequence, SqlError, TableId, TriggerEvent, Value,
    cast, limits,
};

/// Instructions that the analysis of one transaction may walk, those of called procedures included. Nobody is charged
/// for it, so there are not many: about a millisecond's work.
const STEPS_MAX: usize = 10_000;
/// Variables that cost as much as an instruction where a frame is copied or compared.
const VARIABLES_PER_STEP: usize = 16;

/// Variables of a procedure, or parameters of a script, as far as they are the same on every state.
#[derive(Clone, Debug)]
pub struct KnownFrame {
    /// By slot; NULL where it is not known.
    values: Vec<Value>,
    known: Vec<bool>,
}

impl KnownFrame {
    /// All of these are known.
    pub fn new(values: Vec<Value>) -> KnownFrame {
        KnownFrame { known: vec![true; values.len()], values }
    }

    /// The variable has this value now; `None`: one that depends on data.
    pub fn set(&mut self, slot: u16, value: Option<Value>) {
        let slot = usize::from(slot);
        self.known[slot] = value.is_some();
        self.values[slot] = value.unwrap_or_default();
    }

    /// Forgets what is not the same in both. Gives whether that changed anything.
    pub fn join(&mut self, other: &KnownFrame) -> bool {
        let mut changed = false;
        for slot in 0..self.values.len() {
            let stays = other.known[slot] && is_same(&self.values[slot], &other.values[slot]);
            if self.known[slot] && !stays {
                self.known[slot] = false;
                self.values[slot] = Value::Null;
                changed = true;
            }
        }
        changed
    }

    /// Whether an expression has the same value on every state.
    fn knows(&self, expression: &Expression) -> bool {
        !expression.any(&mut |inner| match inner.kind {
            Kind::Slot(slot) => !self.known.get(usize::from(slot)).copied().unwrap_or(false),
            Kind::Column(_)
            | Kind::Aggregate(_)
            | Kind::Window(_)
            | Kind::Argument(_)
            | Kind::Left(_)
            | Kind::State(_)
            | Kind::Subquery(_)
            | Kind::Call(_) => true,
            _ => false,
        })
    }

    /// How many parts from the first on have the same values on every state.
    fn known_parts(&self, parts: &[KeyPart]) -> usize {
        parts.iter().take_while(|part| self.knows(&part.value)).count()
    }
}

/// The analysis of one transaction.
pub struct Analysis<'a> {
    programs: &'a dyn Programs,
    context: Context,
    /// `now()` in what is analysed next.
    now: i64,
    footprint: Footprint,
    steps: usize,
    /// Procedures that are being called.
    calls: Vec<String>,
    /// What triggers have been followed for: they know nothing of their rows, so that once is enough.
    fired: Vec<(TableId, TriggerEvent)>,
}

impl<'a> Analysis<'a> {
    /// Nothing is known to be touched yet.
    pub fn new(programs: &'a dyn Programs, context: Context) -> Analysis<'a> {
        let (footprint, calls, fired) = Default::default();
        Analysis { programs, context, now: context.now(), footprint, steps: 0, calls, fired }
    }

    /// `now()` outside of routines, in milliseconds since 1970-01-01 00:00 UTC.
    pub fn set_now(&mut self, milliseconds: u64) {
        self.now = timestamp(milliseconds);
    }

    /// What was found.
    pub fn finish(self) -> Footprint {
        self.footprint
    }

    /// Walks one instruction.
    ///
    /// # Errors
    /// `0A000` where that is one too many.
    pub fn count_instruction(&mut self) -> Result<(), SqlError> {
        self.count(1)
    }

    /// Copies or compares what is known.
    ///
    /// # Errors
    /// `0A000` where that is too much.
    pub fn count_frame(&mut self, frame: &KnownFrame) -> Result<(), SqlError> {
        self.count(frame.values.len() / VARIABLES_PER_STEP)
    }

    fn count(&mut self, steps: usize) -> Result<(), SqlError> {
        self.steps += steps;
        if self.steps <= STEPS_MAX {
            return Ok(());
        }
        let name = self.calls.first().map_or("", String::as_str);
        Err(refused(&format!("the analysis of procedure \"{name}\" beyond {STEPS_MAX} instructions")))
    }

    /// The value, where it is the same on every state. `None` also where evaluation fails: the transaction ends there.
    pub fn evaluate(&self, expression: &Expression, frame: &KnownFrame) -> Option<Value> {
        if !frame.knows(expression) {
            return None;
        }
        expression.evaluate(&self.environment(frame)).ok()
    }

    fn environment<'f>(&self, frame: &'f KnownFrame) -> Environment<'f> {
        Environment::new(&[], &frame.values, self.now)
    }

    /// What a statement may touch.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    pub fn statement(&mut self, statement: &BoundStatement, frame: &KnownFrame) -> Result<(), SqlError> {
        match statement {
            BoundStatement::Select(select) => self.select(select, frame)?,
            BoundStatement::Insert(insert) => self.insert(insert, frame)?,
            BoundStatement::Update(update) => self.update(update, frame)?,
            BoundStatement::Delete(delete) => self.delete(delete, frame)?,
            BoundStatement::With(with) => {
                with.statements().try_for_each(|part| self.statement(part, frame))?;
            }
            BoundStatement::Call(call) => return self.call_bound(call, frame),
            // It shows a procedure, which changes only alone in a batch.
            BoundStatement::Explain(_) => {}
        }
        Ok(())
    }

    /// What a SELECT may touch.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    pub fn select(&mut self, select: &BoundSelect, frame: &KnownFrame) -> Result<(), SqlError> {
        let mut calls = Vec::new();
        select.visit_calls(&mut |call| calls.push(call.clone()));
        self.calls_of(&calls, frame)?;
        select.visit_tables(&mut |scanned| {
            let Some(range) = self.range(&scanned.access, frame) else { return };
            self.entries_read(&scanned.access);
            let columns = scanned.columns | scanned.filter_columns | ColumnSet::EXISTS;
            self.read(&scanned.table, range, columns);
        });
        Ok(())
    }

    /// What functions may touch that a statement calls, any number of times.
    fn calls_of(&mut self, calls: &[RoutineCall], frame: &KnownFrame) -> Result<(), SqlError> {
        for call in calls {
            if is_sequence_function(&call.callee.name) || looks_at_sequence(&call.callee.name) {
                self.counters_of(call);
                continue;
            }
            let name = &call.callee.name;
            if AdvisoryFunction::named(name).is_some() {
                self.advisory_locks();
            }
            if runs_in_execution(name) {
                continue;
            }
            let known = |argument: &Expression| match argument.is_row_independent() {
                true => self.evaluate(argument, frame),
                false => None,
            };
            let arguments = call.arguments.iter().map(known).collect();
            self.call(&call.callee.name, call.callee.actual, arguments)?;
        }
        Ok(())
    }

    /// Drawing from a sequence touches its row where it counts, and nothing else.
    fn counters_of(&mut self, call: &RoutineCall) {
        let named = match call.arguments.first().map(|argument| &argument.kind) {
            Some(Kind::Constant(Value::Text(text))) => stored_sequence_name(text).ok(),
            Some(Kind::Call(inner)) => self.sequence_asked_for(inner),
            _ => None,
        };
        let writes = !looks_at_sequence(&call.callee.name);
        self.counters(writes, &|sequence| named.as_ref().is_none_or(|named| *named == sequence.name));
    }

    /// Which sessions hold an advisory lock is not known before the rows are.
    fn advisory_locks(&mut self) {
        let (table, columns) = (TableId::ADVISORY_LOCKS, ColumnSet::ALL);
        self.footprint.read(Region { table, range: KeyRange::ALL, columns });
        self.footprint.write(Region { table, range: KeyRange::ALL, columns });
    }

    /// The sequence that `pg_get_serial_sequence` gives, where it is asked for a column that is written out.
    fn sequence_asked_for(&self, call: &RoutineCall) -> Option<String> {
        let value = |argument: &Expression| argument.as_constant().cloned();
        let arguments = call.arguments.iter().map(value).collect::<Option<Vec<Value>>>()?;
        match serial_sequence(self.programs.catalog(), &arguments) {
            Ok(Value::Text(text)) if *call.callee.name == *SERIAL_SEQUENCE => {
                stored_sequence_name(&text).ok()
            }
            _ => None,
        }
    }

    fn counters(&mut self, writes: bool, is_meant: &dyn Fn(&Sequence) -> bool) {
        let programs = self.programs;
        for sequence in programs.catalog().sequences.values() {
            let Some(counter) = &sequence.counter else { continue };
            if is_meant(sequence) {
                let region = |columns| Region { table: counter.table, range: KeyRange::ALL, columns };
                self.footprint.read(region(ColumnSet::ALL));
                if writes {
                    self.footprint.write(region(ColumnSet::ALL));
                }
            }
        }
    }

    fn insert(&mut self, insert: &BoundInsert, frame: &KnownFrame) -> Result<(), SqlError> {
        if let Some(OnConflict { action, .. }) = &insert.on_conflict
            && let ConflictAction::Update { plan, values, condition, existing_check, uses: _ } = action
        {
            values.iter().chain(condition).try_for_each(|value| self.expression(value, frame))?;
            self.policies(plan.row_check.as_deref())?;
            self.policies(existing_check.as_deref())?;
        }
        self.returning(&insert.returning, frame)?;
        self.policies(insert.row_check.as_deref())?;
        match &insert.source {
            InsertSource::Rows(rows) => {
                for row in rows {
                    row.iter().try_for_each(|value| self.expression(value, frame))?;
                    self.insert_row(insert, row, frame)?;
                }
            }
            InsertSource::Select(select, targets) => {
                self.select(select, frame)?;
                targets.iter().try_for_each(|value| self.expression(value, frame))?;
                self.insert_row(insert, targets, frame)?;
            }
        }
        if let Some(OnConflict { action: ConflictAction::Update { .. }, .. }) = &insert.on_conflict {
            self.triggers(&insert.table, TriggerEvent::Update)?;
        }
        self.triggers(&insert.table, TriggerEvent::Insert)
    }

    /// What the triggers of a table may touch that fire at an event.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    pub fn triggers(&mut self, table: &TablePlan, event: TriggerEvent) -> Result<(), SqlError> {
        if !table.triggers.at(event).any || self.fired.contains(&(table.id, event)) {
            return Ok(());
        }
        self.fired.push((table.id, event));
        let programs = self.programs;
        for trigger in programs.triggers_of(table.id) {
            if !trigger.definition.events.contains(event) {
                continue;
            }
            if let Some(Ok(condition)) = &trigger.condition {
                self.expression(condition, &KnownFrame::new(Vec::new()))?;
            }
            let inputs = trigger.known_inputs(event);
            programs.footprint_of_trigger(self, trigger, inputs)?;
        }
        Ok(())
    }

    fn returning(&mut self, returning: &Option<Returning>, frame: &KnownFrame) -> Result<(), SqlError> {
        let expressions = returning.iter().flat_map(|returning| &returning.projection);
        expressions.into_iter().try_for_each(|expression| self.expression(expression, frame))
    }

    /// What policies and views may touch that hold rows that are written.
    fn policies(&mut self, check: Option<&RowCheck>) -> Result<(), SqlError> {
        let mut conditions = check.into_iter().flat_map(RowCheck::expressions);
        conditions.try_for_each(|condition| self.expression(condition, &KnownFrame::new(Vec::new())))
    }

    /// What the queries and functions inside of an expression may touch.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    pub fn expression(&mut self, expression: &Expression, frame: &KnownFrame) -> Result<(), SqlError> {
        let (mut queries, mut calls) = (Vec::new(), Vec::new());
        expression.any(&mut |inner| {
            match &inner.kind {
                Kind::Subquery(subquery) => queries.push(subquery.query.clone()),
                Kind::Call(call) => calls.push(call.as_ref().clone()),
                _ => {}
            }
            false
        });
        queries.iter().try_for_each(|query| self.select(query, frame))?;
        self.calls_of(&calls, frame)
    }

    fn insert_row(
        &mut self,
        insert: &BoundInsert,
        row: &[Expression],
        frame: &KnownFrame,
    ) -> Result<(), SqlError> {
        let table = &insert.table;
        if table.id.is_view() {
            return Ok(());
        }
        let Some(on_conflict) = &insert.on_conflict else {
            let known = |analysis: &Self, ordinal: u16| analysis.evaluate(&row[usize::from(ordinal)], frame);
            self.insert_known(table, &known, ColumnSet::EXISTS);
            return Ok(());
        };
        let (looks, changes) = match &on_conflict.action {
            // The row that exists is changed as any row is, and its error may show it.
            ConflictAction::Update { plan, .. } => (ColumnSet::ALL, written(plan)),
            ConflictAction::Nothing => (ColumnSet::EXISTS, ColumnSet::EMPTY),
        };
        let moves = match &on_conflict.action {
            ConflictAction::Update { plan, .. } => may_move(plan),
            ConflictAction::Nothing => false,
        };
        // What row has a key of a unique index is not known before the rows are, nor where rows are moved to.
        if moves || on_conflict.arbiters.iter().any(|arbiter| !matches!(arbiter, Arbiter::Key)) {
            self.read(table, KeyRange::ALL, looks);
            self.write(table, KeyRange::ALL, changes);
        }
        let known = |analysis: &Self, ordinal: u16| analysis.evaluate(&row[usize::from(ordinal)], frame);
        self.insert_known(table, &known, looks);
        self.constraints(table, changes, &mut Vec::new())
    }

    /// What is looked at of a row that is changed to see who has a stake in it: all of it, for simplicity. Whether anybody asks is not known
    /// here.
    fn stakes(&self, table: &TablePlan) -> ColumnSet {
        match table.endorsement.is_some() && self.programs.version() >= ExecutionVersion::V6 {
            true => ColumnSet::ALL,
            false => ColumnSet::EMPTY,
        }
    }

    /// A row is inserted; of one that exists these columns are looked at. `known`: the value of a column, where it is the
    /// same on every state.
    pub fn insert_known(
        &mut self,
        table: &TablePlan,
        known: &dyn Fn(&Self, u16) -> Option<Value>,
        looks: ColumnSet,
    ) {
        let looks = looks | self.stakes(table);
        // A trigger may make any row of it.
        let changes = table.triggers.at(TriggerEvent::Insert).before_row;
        let known = |analysis: &Self, ordinal: u16| {
            // What is generated is known when the row is there.
            let computed = table.columns[usize::from(ordinal)].computed.is_some();
            if changes || computed { None } else { known(analysis, ordinal) }
        };
        let key: Vec<Value> = table.key.iter().map_while(|ordinal| known(self, *ordinal)).collect();
        let range = if table.key.is_empty() {
            // Height and position in the block, then what counts the transaction's rows.
            let mut bytes = [0; 12];
            bytes[..8].copy_from_slice(&self.context.height.to_be_bytes());
            bytes[8..].copy_from_slice(&self.context.index.to_be_bytes());
            KeyRange::prefix(Key::from_bytes(&bytes))
        } else {
            match Key::encode(&key) {
                Ok(encoded) if key.len() == table.key.len() => single(encoded),
                Ok(encoded) if !key.is_empty() => KeyRange::prefix(encoded),
                Ok(_) => KeyRange::ALL,
                // NULL, or too long: the transaction ends here.
                Err(_) => return,
            }
        };
        self.read(table, range.clone(), looks);
        self.write(table, range, ColumnSet::ALL);
        for index in table.indexes.iter().filter(|index| index.unique) {
            let values: Option<Vec<Value>> = index.columns.iter().map(|c| known(self, *c)).collect();
            let range = match values {
                Some(values) => match index.unique_key(values.iter()) {
                    Ok(Some(key)) => single(key),
                    Ok(None) => continue,
                    Err(_) => return,
                },
                None => KeyRange::ALL,
            };
            self.footprint.read(Region {
                table: index.unique_entries(),
                range: range.clone(),
                columns: ColumnSet::EXISTS,
            });
            self.footprint.write(Region { table: index.unique_entries(), range, columns: ColumnSet::ALL });
        }
        self.entries_change(table.computed.iter());
        for foreign_key in self.programs.tables().foreign_keys().of_child(table.id) {
            let values: Option<Vec<Value>> = foreign_key.columns.iter().map(|c| known(self, *c)).collect();
            let range = match values {
                Some(values) if values.iter().any(Value::is_null) => continue,
                Some(values) => {
                    let environment = Environment::new(&[], &values, self.now);
                    match foreign_key.parent_key(&environment) {
                        Ok(Some(key)) => single(key),
                        _ => continue,
                    }
                }
                None => KeyRange::ALL,
            };
            self.footprint.read(Region { table: foreign_key.keys, range, columns: ColumnSet::EXISTS });
        }
    }

    /// What constraints add to a change of these columns, or of all where rows are deleted. `done`: the tables whose rows
    /// are deleted or changed already, by cascading.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    fn constraints(
        &mut self,
        table: &TablePlan,
        writes: ColumnSet,
        done: &mut Vec<(TableId, ColumnSet)>,
    ) -> Result<(), SqlError> {
        let writes = writes & table.constrained;
        if writes.is_empty() || done.contains(&(table.id, writes)) {
            return Ok(());
        }
        done.push((table.id, writes));
        let set = |columns: &[u16]| {
            columns.iter().fold(ColumnSet::EMPTY, |set, c| set | ColumnSet::column(usize::from(*c)))
        };
        let mut read = |table: TableId, columns: ColumnSet| {
            self.footprint.read(Region { table, range: KeyRange::ALL, columns });
        };
        let unique =
            table.indexes.iter().filter(|index| index.unique && index.column_set().intersects(writes));
        for index in unique.clone() {
            read(index.unique_entries(), ColumnSet::EXISTS);
        }
        let foreign_keys = self.programs.tables().foreign_keys();
        for foreign_key in foreign_keys.of_child(table.id) {
            if set(&foreign_key.columns).intersects(writes) {
                read(foreign_key.keys, ColumnSet::EXISTS);
            }
        }
        let referenced = foreign_keys.of_parent(table.id).iter();
        let referenced = referenced.filter(|foreign_key| set(&foreign_key.referenced).intersects(writes));
        for foreign_key in referenced.clone() {
            read(foreign_key.keys, ColumnSet::EXISTS);
            // Rows that are changed may be shown by an error.
            read(foreign_key.child.id, ColumnSet::ALL);
        }
        self.entries_change(table.computed.iter().filter(|computed| computed.columns.intersects(writes)));
        for index in unique {
            let (table, columns) = (index.unique_entries(), ColumnSet::ALL);
            self.footprint.write(Region { table, range: KeyRange::ALL, columns });
        }
        for foreign_key in referenced {
            let child = &foreign_key.child;
            let cascades = foreign_key.on_delete == ReferentialAction::Cascade;
            let writes = if cascades { ColumnSet::ALL } else { written(&foreign_key.assign) };
            self.write(child, KeyRange::ALL, writes);
            self.constraints(child, writes, done)?;
            self.triggers(child, TriggerEvent::Delete)?;
            self.triggers(child, TriggerEvent::Update)?;
        }
        Ok(())
    }

    fn update(&mut self, update: &BoundUpdate, frame: &KnownFrame) -> Result<(), SqlError> {
        let plan = &update.plan;
        if let Access::Found(select) = &update.access {
            self.select(select, frame)?;
        }
        self.returning(&update.returning, frame)?;
        self.policies(plan.row_check.as_deref())?;
        self.triggers(&plan.table, TriggerEvent::Update)?;
        if plan.table.id.is_view() {
            return Ok(());
        }
        let Some(range) = self.range(&update.access, frame) else { return Ok(()) };
        self.entries_read(&update.access);
        let given = plan.table.triggers.at(TriggerEvent::Update).rows;
        let shown =
            if plan.may_show_row() || plan.moves || given { ColumnSet::ALL } else { ColumnSet::EMPTY };
        let writes = written(plan);
        if may_move(plan) {
            let range = self.moved_to(update, frame);
            self.read(&plan.table, range.clone(), ColumnSet::EXISTS);
            self.write(&plan.table, range, ColumnSet::ALL);
        }
        let columns = plan.uses | update.filter_columns | returned(&update.returning) | shown;
        let columns = columns | self.stakes(&plan.table);
        let constrained =
            if writes.intersects(plan.table.constrained) { plan.table.constrained } else { ColumnSet::EMPTY };
        self.read(&plan.table, range.clone(), columns | constrained | ColumnSet::EXISTS);
        self.write(&plan.table, range, writes);
        self.constraints(&plan.table, writes, &mut Vec::new())
    }

    /// The keys that the rows of an UPDATE may get.
    fn moved_to(&self, update: &BoundUpdate, frame: &KnownFrame) -> KeyRange {
        let plan = &update.plan;
        // A trigger may make any row of it.
        if plan.table.triggers.at(TriggerEvent::Update).before_row {
            return KeyRange::ALL;
        }
        let stays = match &update.access {
            Access::Key(parts) => parts.as_slice(),
            _ => &[],
        };
        let known = |(position, ordinal): (usize, &u16)| match plan.assigns(*ordinal) {
            true => {
                let (_, value) = plan.known().iter().find(|(assigned, _)| assigned == ordinal)?;
                self.evaluate(value, frame)
            }
            false => {
                let part = stays.get(position)?;
                cast(self.evaluate(&part.value, frame)?, part.data_type.family()).ok()
            }
        };
        let values: Vec<Value> = plan.table.key.iter().enumerate().map_while(known).collect();
        match Key::encode(&values) {
            Ok(key) if values.len() == plan.table.key.len() => single(key),
            Ok(key) if !values.is_empty() => KeyRange::prefix(key),
            _ => KeyRange::ALL,
        }
    }

    fn delete(&mut self, delete: &BoundDelete, frame: &KnownFrame) -> Result<(), SqlError> {
        let plan = &delete.plan;
        for other in delete.truncation.iter().flat_map(|truncation| &truncation.also) {
            self.delete(other, frame)?;
        }
        if delete.truncation.as_ref().is_some_and(|truncation| truncation.restarts) {
            self.counters(true, &|sequence| {
                sequence.owner.as_ref().is_some_and(|owner| owner.table == plan.table.id)
            });
        }
        if let Access::Found(select) = &delete.access {
            self.select(select, frame)?;
        }
        self.returning(&delete.returning, frame)?;
        let event = if delete.truncation.is_some() { TriggerEvent::Truncate } else { TriggerEvent::Delete };
        self.triggers(&plan.table, event)?;
        if plan.table.id.is_view() {
            return Ok(());
        }
        let Some(range) = self.range(&delete.access, frame) else { return Ok(()) };
        self.entries_read(&delete.access);
        let given = plan.table.triggers.at(event).rows;
        let shown = if plan.may_show_row() || given { ColumnSet::ALL } else { ColumnSet::EMPTY };
        let columns = plan.uses | delete.filter_columns | returned(&delete.returning) | shown;
        let columns = columns | self.stakes(&plan.table);
        let constrained = if plan.table.holds_keys { plan.table.constrained } else { ColumnSet::EMPTY };
        self.read(&plan.table, range.clone(), columns | constrained | ColumnSet::EXISTS);
        self.write(&plan.table, range, ColumnSet::ALL);
        if plan.table.holds_keys {
            self.constraints(&plan.table, ColumnSet::ALL, &mut Vec::new())?;
        }
        Ok(())
    }

    fn call_bound(&mut self, call: &BoundCall, frame: &KnownFrame) -> Result<(), SqlError> {
        // What does not fit ends with an error before it touches anything.
        let programs = self.programs;
        let Some(routine) = programs.tables().routines().named(&call.procedure) else { return Ok(()) };
        let parameters = &routine.definition.parameters;
        if !call.fits(parameters) {
            return Ok(());
        }
        let inputs = parameters.iter().zip(&call.arguments);
        let inputs = inputs.filter(|(parameter, _)| parameter.mode.is_input());
        let arguments = inputs.map(|(parameter, argument)| {
            let value = self.evaluate(argument, frame)?;
            let types = programs.tables().routines().types();
            types.cast(value, parameter.data_type.family()).ok()
        });
        let arguments = arguments.collect();
        self.call(&call.procedure, Actual::default(), arguments)
    }

    /// Whether a CALL may assign its argument at this position.
    pub fn may_assign(&self, call: &BoundStatement, position: usize) -> bool {
        let BoundStatement::Call(call) = call else { return true };
        let procedure = self.programs.catalog().procedures.get(&call.procedure);
        let parameter = procedure.and_then(|procedure| procedure.parameters.get(position));
        parameter.is_none_or(|parameter| parameter.mode.is_output())
    }

    /// A procedure is called with one value per IN and INOUT parameter; `None`: one that depends on data.
    ///
    /// # Errors
    /// `0A000` for what is refused.
    pub fn call(
        &mut self,
        name: &str,
        actual: Actual,
        arguments: Vec<Option<Value>>,
    ) -> Result<(), SqlError> {
        if self.calls.iter().any(|caller| caller == name) {
            return Err(refused(&format!("the recursive call of \"{name}\"")));
        }
        if self.calls.len() >= limits::NESTING_MAX {
            // So deep no call gets.
            return Ok(());
        }
        let programs = self.programs;
        self.calls.push(name.to_string());
        let result = programs.footprint_of_call(self, name, actual, arguments);
        self.calls.pop();
        result
    }

    /// Looks at the body of a routine, which sees the block's time.
    ///
    /// # Errors
    /// Those of `walk`.
    pub fn within_routine(
        &mut self,
        walk: impl FnOnce(&mut Self) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let now = std::mem::replace(&mut self.now, self.context.now());
        let result = walk(self);
        self.now = now;
        result
    }

    /// The interval in which a statement looks for its rows; `None`: it touches none.
    fn range(&self, access: &Access, frame: &KnownFrame) -> Option<KeyRange> {
        // An error ends the transaction before the statement touches a row.
        match access {
            Access::Key(parts) => self.key_range(parts, frame),
            Access::Range(interval) => self.interval(interval, frame),
            // Where the entries of an index stand is not known before the rows are.
            Access::Index(access) => self.interval(&access.within, frame),
            Access::Found(_) => Some(KeyRange::ALL),
        }
    }

    /// Entries of a computed index may be read: which is not known before the rows are.
    fn entries_read(&mut self, access: &Access) {
        if let Access::Index(access) = access
            && access.index.is_computed()
        {
            let (table, columns) = (access.index.computed_entries(), ColumnSet::ALL);
            self.footprint.read(Region { table, range: KeyRange::ALL, columns });
        }
    }

    /// Entries of computed indexes may be looked at and change.
    fn entries_change<'i>(&mut self, indexes: impl Iterator<Item = &'i Arc<ComputedIndex>>) {
        for computed in indexes {
            let (table, columns) = (computed.index.computed_entries(), ColumnSet::ALL);
            self.footprint.read(Region { table, range: KeyRange::ALL, columns });
            self.footprint.write(Region { table, range: KeyRange::ALL, columns });
        }
    }

    fn interval(&self, interval: &Interval, frame: &KnownFrame) -> Option<KeyRange> {
        let equal = interval.equal[..frame.known_parts(&interval.equal)].to_vec();
        let known = |bound: &Option<(KeyPart, bool)>| {
            let all_equal = equal.len() == interval.equal.len();
            bound.clone().filter(|(part, _)| all_equal && frame.knows(&part.value))
        };
        let (lower, upper) = (known(&interval.lower), known(&interval.upper));
        Interval { equal, lower, upper }.resolve(&self.environment(frame)).ok().flatten()
    }

    /// The same where the whole key is given.
    pub fn key_range(&self, parts: &[KeyPart], frame: &KnownFrame) -> Option<KeyRange> {
        let environment = self.environment(frame);
        match frame.known_parts(parts) {
            all if all == parts.len() => resolve_key(parts, &environment).ok().flatten().map(single),
            prefix => {
                let interval = Interval { equal: parts[..prefix].to_vec(), ..Interval::default() };
                interval.resolve(&environment).ok().flatten()
            }
        }
    }

    /// Rows of an interval may be read, these columns of them.
    pub fn read(&mut self, table: &TablePlan, range: KeyRange, columns: ColumnSet) {
        self.footprint.read(Region { table: table.id, range, columns });
    }

    /// Rows of an interval may be written, these columns of them.
    pub fn write(&mut self, table: &TablePlan, range: KeyRange, columns: ColumnSet) {
        self.footprint.write(Region { table: table.id, range, columns });
    }
}

/// What an UPDATE may write: with triggers that may change the row, or where it moves, all of it.
fn written(plan: &UpdatePlan) -> ColumnSet {
    if may_move(plan) { ColumnSet::ALL } else { plan.writes }
}

/// Whether an UPDATE may give rows another key.
fn may_move(plan: &UpdatePlan) -> bool {
    plan.moves || plan.table.triggers.at(TriggerEvent::Update).before_row
}

fn single(key: Key) -> KeyRange {
    KeyRange { start: Bound::Included(key.clone()), end: Bound::Included(key) }
}

fn returned(returning: &Option<Returning>) -> ColumnSet {
    returning.as_ref().map_or(ColumnSet::EMPTY, |returning| returning.uses)
}

/// The refusal of what cannot be analysed.
pub fn refused(what: &str) -> SqlError {
    SqlError::unsupported(format_args!("{what} under the protocol \"graph\""))
        .hint("It must be known before a transaction runs what it may touch; the protocol \"harmony\" runs everything.")
}
