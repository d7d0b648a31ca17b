//! Changes of rows in tables with UNIQUE or FOREIGN KEY constraints.

use crate::deferred::Check;
use crate::execution::Execution;
use crate::moving::Updated;
use crate::remaining::{Event, Unsettled};
use plan::command::{DeletePlan, UpdatePlan};
use plan::computed_index::{ComputedIndex, primary_of, put_entry, remove_entry};
use plan::constraint::{ForeignKeyPlan, free_key, take_key};
use plan::expression::{Environment, is_same};
use plan::table::TablePlan;
use state::{Command, KeyRange};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{ColumnSet, ExecutionVersion, Index, Key, ReferentialAction, Row, SqlError, TableId, Value};
use values::broken;

impl Execution<'_> {
    /// Applies the command of an UPDATE, with what constraints ask. Gives whether it matched.
    pub(super) fn apply_update(&mut self, plan: &UpdatePlan, command: Command) -> Result<bool, SqlError> {
        if !plan.writes.intersects(plan.table.constrained) {
            return self.apply(command);
        }
        self.apply_constrained(&plan.table, plan.uses, command)
    }

    /// Applies the command of a DELETE, with what constraints ask. Gives whether it matched.
    pub(super) fn apply_delete(&mut self, plan: &DeletePlan, command: Command) -> Result<bool, SqlError> {
        if !plan.table.holds_keys {
            return self.apply(command);
        }
        self.apply_constrained(&plan.table, plan.uses, command)
    }

    /// What the row was and whether it matched is looked at, so that nobody else of the batch changes it.
    fn apply_constrained(
        &mut self,
        table: &Arc<TablePlan>,
        uses: ColumnSet,
        mut command: Command,
    ) -> Result<bool, SqlError> {
        let key = command.row.key.clone();
        self.register_read(table.id, &key, uses | table.constrained);
        let before = self.current(table.id, &key)?;
        // Judged now, so that a later look at whether it matched changes nothing.
        let matches = command.function.apply(before.as_ref());
        command.guard = matches.ok().map(|change| change != state::RowChange::Unmatched);
        let matched = self.apply(command)?;
        if matched {
            let after = self.current(table.id, &key)?;
            self.row_changed(table, &key, before.as_ref(), after.as_ref())?;
        }
        Ok(matched)
    }

    /// A row has changed, and has this primary key now or had it last: takes and frees keys of unique indexes, and notes
    /// what references are to be looked at. As in PostgreSQL what is done about a key that has gone comes in front of the
    /// row's own references: the action may make the key that these need.
    pub(super) fn row_changed(
        &mut self,
        table: &Arc<TablePlan>,
        key: &Key,
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<(), SqlError> {
        self.change_unique_entries(table, key, before, after)?;
        self.count_keys(table, before, after, true)?;
        if self.on.programs.version() < ExecutionVersion::V2 {
            return self.note_references_of_version_1(table, key, before, after);
        }
        let foreign_keys = self.on.programs.tables().foreign_keys();
        for foreign_key in foreign_keys.of_parent(table.id) {
            let Some(old) = before.and_then(|row| values_of(row, &foreign_key.referenced)) else { continue };
            let new = after.map(|row| row_values(row, &foreign_key.referenced));
            // Equal is not enough: rows that reference 1.0 follow to 1.00.
            let same = |new: &Vec<Value>| old.iter().zip(new).all(|(old, new)| is_same(old, new));
            if !new.as_ref().is_some_and(same) {
                self.running.remaining.unsettled.push_back(Unsettled::Gone(foreign_key.clone(), old, new));
            }
        }
        for foreign_key in foreign_keys.of_child(table.id) {
            let Some(values) = after.map(|row| row_values(row, &foreign_key.columns)) else { continue };
            // NULL references nothing.
            if values.iter().any(Value::is_null) && !foreign_key.mixes_nulls(&values) {
                continue;
            }
            if before.map(|row| row_values(row, &foreign_key.columns)).as_ref() != Some(&values) {
                let references = Unsettled::References(foreign_key.clone(), key.clone(), values);
                self.running.remaining.unsettled.push_back(references);
            }
        }
        self.count_keys(table, before, after, false)
    }

    /// Counts what a row has done to the keys of the unique indexes that can be deferred. As in PostgreSQL those of the primary key
    /// are checked in front of the row's references, others behind them.
    fn count_keys(
        &mut self,
        table: &Arc<TablePlan>,
        before: Option<&Row>,
        after: Option<&Row>,
        primary: bool,
    ) -> Result<(), SqlError> {
        let is_meant = |index: &&Arc<Index>| index.deferral.is_deferrable() && index.primary == primary;
        for index in table.indexes.iter().filter(is_meant) {
            for key in self.count_key(index, before, after)? {
                let taken = Unsettled::Taken(table.clone(), index.clone(), key);
                self.running.remaining.unsettled.push_back(taken);
            }
        }
        Ok(())
    }

    /// What execution version 1 notes: the row's own references come first, and RESTRICT looks at once.
    fn note_references_of_version_1(
        &mut self,
        table: &Arc<TablePlan>,
        key: &Key,
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<(), SqlError> {
        let foreign_keys = self.on.programs.tables().foreign_keys();
        for foreign_key in foreign_keys.of_child(table.id) {
            let Some(values) = after.and_then(|row| values_of(row, &foreign_key.columns)) else { continue };
            if before.and_then(|row| values_of(row, &foreign_key.columns)).as_ref() != Some(&values) {
                let references = Unsettled::References(foreign_key.clone(), key.clone(), values);
                self.running.remaining.unsettled.push_back(references);
            }
        }
        for foreign_key in foreign_keys.of_parent(table.id) {
            let Some(old) = before.and_then(|row| values_of(row, &foreign_key.referenced)) else { continue };
            let new = after.map(|row| row_values(row, &foreign_key.referenced));
            if new.as_ref() == Some(&old) {
                continue;
            }
            let action = if new.is_some() { foreign_key.on_update } else { foreign_key.on_delete };
            match action {
                ReferentialAction::Restrict => self.refuse_referenced(foreign_key, &old)?,
                _ => {
                    let gone = Unsettled::Gone(foreign_key.clone(), old, new);
                    self.running.remaining.unsettled.push_back(gone);
                }
            }
        }
        Ok(())
    }

    fn change_unique_entries(
        &mut self,
        table: &Arc<TablePlan>,
        key: &Key,
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<(), SqlError> {
        let mut computed = table.computed.iter().peekable();
        for index in table.indexes.iter().filter(|index| index.unique && !index.deferral.is_deferrable()) {
            // In the order in which they were made, as PostgreSQL.
            while let Some(next) = computed.next_if(|next| next.index.number < index.number) {
                self.change_computed_entry(table, next, (before, after), key)?;
            }
            let entry = |row: Option<&Row>| row.map_or(Ok(None), |row| index.unique_entry(row));
            let (old, new) = (entry(before)?, entry(after)?);
            if old == new {
                continue;
            }
            if let Some(old) = old {
                self.apply(free_key(table, index, old))?;
            }
            if let (Some(new), Some(row)) = (new, after) {
                self.apply(take_key(table, index, new, row.clone()))?;
            }
        }
        computed.try_for_each(|next| self.change_computed_entry(table, next, (before, after), key))
    }

    /// `key`: the primary key that the row has now, or had last.
    fn change_computed_entry(
        &mut self,
        table: &TablePlan,
        computed: &Arc<ComputedIndex>,
        (before, after): (Option<&Row>, Option<&Row>),
        key: &Key,
    ) -> Result<(), SqlError> {
        let is_same_key = |(before, after): (&Row, &Row)| {
            table
                .key
                .iter()
                .map(|ordinal| usize::from(*ordinal))
                .all(|key| is_same(&before[key], &after[key]))
        };
        let both = before.zip(after);
        if both.is_some_and(|(before, after)| computed.has_same(before, after))
            && both.is_some_and(is_same_key)
        {
            return Ok(());
        }
        // A row that was before, and is now, may have had another key.
        let primary = |row: &Row| match table.key.as_slice() {
            [] => Ok(key.clone()),
            columns => Key::encode(columns.iter().map(|ordinal| &row[usize::from(*ordinal)])),
        };
        let entries = |row: Option<&Row>| {
            let Some(row) = row else { return Ok::<_, SqlError>(None) };
            let primary = primary(row)?;
            Ok(Some((computed.entries(&primary, row)?, primary)))
        };
        let old = self.measured(|_| entries(before))?;
        let new = self.measured(|_| entries(after))?;
        // An entry stays where it leads to the same row.
        let stays = |entry: &Key, primary: &Key, other: &Option<(BTreeMap<Key, Vec<Value>>, Key)>| {
            other.as_ref().is_some_and(|(entries, key)| key == primary && entries.contains_key(entry))
        };
        if let Some((entries, primary)) = &old {
            for entry in entries.keys().filter(|entry| !stays(entry, primary, &new)) {
                self.apply(remove_entry(computed, entry.clone()))?;
            }
        }
        let Some((entries, primary)) = new else { return Ok(()) };
        for (entry, values) in entries {
            if !stays(&entry, &primary, &old) {
                self.apply(put_entry(computed, entry, primary.clone(), values))?;
            }
        }
        Ok(())
    }

    /// A row has another primary key now: what was noted of it is to be looked at there.
    pub(super) fn move_noted(&mut self, table: TableId, old_key: &Key, new_key: &Key) {
        for noted in &mut self.running.remaining.unsettled {
            if let Unsettled::References(foreign_key, key, _) = noted
                && foreign_key.child.id == table
                && key == old_key
            {
                *key = new_key.clone();
            }
        }
    }

    /// The end of a statement: every reference must have its key, and AFTER triggers fire, in the order of the rows that they
    /// are about; of a row its references come first, as in PostgreSQL, whose triggers for them have such names.
    ///
    /// # Errors
    /// `23503`; what cascaded changes and triggers end with.
    pub fn settle(&mut self) -> Result<(), SqlError> {
        if self.running.remaining.parts.is_some() {
            // There is one end for all of them.
            return Ok(());
        }
        while let Some(next) = self.running.remaining.unsettled.pop_front() {
            self.charge(1)?;
            match next {
                Unsettled::References(foreign_key, key, _)
                    if self.is_deferred(foreign_key.number, foreign_key.deferral) =>
                {
                    let (foreign_key, child) = (foreign_key.number, foreign_key.child.id);
                    self.put_off(Check::References { foreign_key, child, key })?;
                }
                Unsettled::References(foreign_key, key, values) => {
                    if self.still_has(&foreign_key, &key, &values)? {
                        self.check_reference(&foreign_key, &values)?;
                    }
                }
                Unsettled::Taken(table, index, key) => match self.is_deferred(index.number, index.deferral) {
                    true => self.put_off(Check::Taken { index: index.number, table: table.id, key })?,
                    false => self.settle_key(&table, &index, &key)?,
                },
                Unsettled::Gone(foreign_key, old, new) => self.settle_gone(&foreign_key, &old, new)?,
                Unsettled::Fires(firing) => self.fire_noted(&firing)?,
            }
        }
        self.running.remaining.clear();
        Ok(())
    }

    fn settle_gone(
        &mut self,
        foreign_key: &Arc<ForeignKeyPlan>,
        old: &[Value],
        new: Option<Vec<Value>>,
    ) -> Result<(), SqlError> {
        let (action, assign) = match new {
            Some(_) => (foreign_key.on_update, &foreign_key.assign),
            None => (foreign_key.on_delete, &foreign_key.set_on_delete),
        };
        let values = match (action, new) {
            (ReferentialAction::Restrict, _) => return self.refuse_referenced(foreign_key, old),
            (ReferentialAction::NoAction, _)
                if self.is_deferred(foreign_key.number, foreign_key.deferral) =>
            {
                let (foreign_key, parent) = (foreign_key.number, foreign_key.parent.id);
                return self.put_off(Check::Gone { foreign_key, parent, values: old.to_vec() });
            }
            (ReferentialAction::NoAction, _) => return self.check_gone(foreign_key, old),
            (ReferentialAction::Cascade, None) => {
                let keys = self.referencing(foreign_key, old)?;
                self.begin_statement(&foreign_key.child, Event::Delete)?;
                for key in keys {
                    self.charge(1)?;
                    let seen = self.seen(&foreign_key.child, &key);
                    let command = foreign_key.delete.command(key, &self.environment(&[], &[]))?;
                    self.delete_found(&foreign_key.delete, command, seen)?;
                }
                return self.end_statement(&foreign_key.child, Event::Delete);
            }
            (ReferentialAction::Cascade, Some(new)) => new,
            (ReferentialAction::SetNull, _) => vec![Value::Null; old.len()],
            (ReferentialAction::SetDefault, _) => {
                let mut values = Vec::with_capacity(old.len());
                for ordinal in &foreign_key.columns {
                    let default = &foreign_key.child.columns[usize::from(*ordinal)].default;
                    values.push(match default {
                        Some(default) => self.evaluate(default, &[])?,
                        None => Value::Null,
                    });
                }
                values
            }
        };
        let keys = self.referencing(foreign_key, old)?;
        let mut waiting = Vec::new();
        let environment = Environment::new(&[], &values, self.on.now);
        let known = assign.known_values(&environment);
        self.begin_statement(&foreign_key.child, Event::Update(assign))?;
        for key in keys {
            self.charge(1)?;
            let seen = self.seen(&foreign_key.child, &key);
            let planned = assign.planned(key, &known, &environment)?;
            if let Updated::Waits(row) = self.update_found(assign, planned, seen)? {
                waiting.push(row);
            }
        }
        for row in waiting {
            self.end_waiting(*row)?;
        }
        self.end_statement(&foreign_key.child, Event::Update(assign))?;
        // A default may be the very key that has gone, and a generated column stays what it is: such a row has not changed.
        let stays = action == ReferentialAction::SetDefault
            || (foreign_key.has_generated() && self.on.programs.version() >= ExecutionVersion::V8);
        if stays && !self.has_key(foreign_key, old)? {
            self.refuse_referenced(foreign_key, old)?;
        }
        Ok(())
    }

    /// A row has these values in the columns that reference.
    fn check_reference(&mut self, foreign_key: &ForeignKeyPlan, values: &[Value]) -> Result<(), SqlError> {
        if foreign_key.mixes_nulls(values) {
            return Err(foreign_key.mixed_nulls());
        }
        match self.has_key(foreign_key, values)? {
            true => Ok(()),
            false => Err(foreign_key.not_present(values)),
        }
    }

    /// The check of what a row references, as it is now; a row that has gone references nothing.
    pub(super) fn check_reference_of(
        &mut self,
        foreign_key: &ForeignKeyPlan,
        key: &Key,
    ) -> Result<(), SqlError> {
        let Some(row) = self.current(foreign_key.child.id, key)? else { return Ok(()) };
        let values = row_values(&row, &foreign_key.columns);
        match values.iter().any(Value::is_null) && !foreign_key.mixes_nulls(&values) {
            true => Ok(()),
            false => self.check_reference(foreign_key, &values),
        }
    }

    /// A key has gone; another row may have it now.
    pub(super) fn check_gone(
        &mut self,
        foreign_key: &ForeignKeyPlan,
        values: &[Value],
    ) -> Result<(), SqlError> {
        match self.has_key(foreign_key, values)? {
            true => Ok(()),
            false => self.refuse_referenced(foreign_key, values),
        }
    }

    /// Whether the row that these values were noted of has them still. What has changed it since then has noted its new
    /// values. Version 1 did not ask.
    fn still_has(&self, foreign_key: &ForeignKeyPlan, key: &Key, values: &[Value]) -> Result<bool, SqlError> {
        if self.on.programs.version() < ExecutionVersion::V2 {
            return Ok(true);
        }
        let row = self.current(foreign_key.child.id, key)?;
        Ok(row.is_some_and(|row| row_values(&row, &foreign_key.columns) == values))
    }

    /// Whether the key is there that these values reference.
    fn has_key(&mut self, foreign_key: &ForeignKeyPlan, values: &[Value]) -> Result<bool, SqlError> {
        let key = foreign_key.parent_key(&Environment::new(&[], values, self.on.now))?;
        let Some(key) = key else { return Ok(false) };
        self.register_read(foreign_key.keys, &key, ColumnSet::EXISTS);
        Ok(self.current(foreign_key.keys, &key)?.is_some())
    }

    fn refuse_referenced(&mut self, foreign_key: &ForeignKeyPlan, values: &[Value]) -> Result<(), SqlError> {
        match self.referencing(foreign_key, values)?.is_empty() {
            true => Ok(()),
            false => Err(foreign_key.still_referenced(values)),
        }
    }

    /// Keys of the rows that reference these values.
    fn referencing(&mut self, foreign_key: &ForeignKeyPlan, values: &[Value]) -> Result<Vec<Key>, SqlError> {
        let ForeignKeyPlan { child, access, filter, filter_columns, .. } = foreign_key;
        self.matching_keys(child, access, filter, *filter_columns, values)
    }

    /// The primary key of the row that has taken a key of a computed unique index.
    pub(super) fn taken_in_computed(
        &mut self,
        computed: &ComputedIndex,
        row: &[Value],
    ) -> Result<Option<Key>, SqlError> {
        let Some(entry) = self.measured(|_| computed.taken(row))? else { return Ok(None) };
        let entries = computed.index.computed_entries();
        self.register_read(entries, &entry, ColumnSet::ALL);
        let found = self.current(entries, &entry)?;
        found.map(|row| primary_of(&row).ok_or_else(|| broken("an entry that leads nowhere"))).transpose()
    }

    /// The primary key of the row that has taken a key of a unique index.
    pub(super) fn taken_by(
        &mut self,
        table: &TablePlan,
        index: &Index,
        row: &[Value],
    ) -> Result<Option<Key>, SqlError> {
        let Some(entry) = index.unique_entry(row)? else { return Ok(None) };
        self.register_read(index.unique_entries(), &entry, ColumnSet::EXISTS);
        if self.current(index.unique_entries(), &entry)?.is_none() {
            return Ok(None);
        }
        let has = |row: &Row| index.unique_entry(row).is_ok_and(|found| found.as_ref() == Some(&entry));
        for position in self.written.own.in_range(table.id, &KeyRange::ALL) {
            let own = self.written.own.get(position);
            if own.value.as_ref().is_some_and(has) {
                return Ok(Some(own.row.key.clone()));
            }
        }
        let values = index.columns.iter().map(|ordinal| &row[usize::from(*ordinal)]);
        let entries = KeyRange::prefix(Key::index_prefix(values).cut_to_index());
        let mut found = Ok(None);
        let scanned = self.on.snapshot.scan(index.entries(), &entries, false, &mut |entry, _| {
            let key =
                entry.primary_of_entry().filter(|key| self.written.own.position(table.id, key).is_none());
            let Some(key) = key else { return ControlFlow::Continue(()) };
            found = self
                .read(self.on.snapshot.get(table.id, &key))
                .map(|row| row.as_ref().is_some_and(has).then_some(key));
            if matches!(found, Ok(None)) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.read(scanned)?;
        found
    }
}

/// The values of columns.
fn row_values(row: &[Value], columns: &[u16]) -> Vec<Value> {
    columns.iter().map(|ordinal| row[usize::from(*ordinal)].clone()).collect()
}

/// The same; `None` where one of them is NULL, which references nothing.
fn values_of(row: &Row, columns: &[u16]) -> Option<Vec<Value>> {
    let values = row_values(row, columns);
    (!values.iter().any(Value::is_null)).then_some(values)
}
