//! Checks of constraints that wait: for the end of the transaction, or for `SET CONSTRAINTS … IMMEDIATE`.
//!
//! ```text
//!  a statement ends ─▶ settle ─┬▶ the constraint is immediate now: checked
//!                              └▶ it is deferred: a check waits ─┬▶ SET CONSTRAINTS … IMMEDIATE: checked
//!                                                                └▶ the transaction ends: checked
//! ```
//!
//! A check looks at the rows as they are when it is made. It names its row by the key, so a row that has gone needs none, and one
//! that has been changed is checked once. What it reads is registered as ever.
//!
//! **Keys of a unique index that can be deferred** are not taken and freed row by row: what rows have freed and taken is counted by
//! key, and the check of a key makes one command that frees it and one that takes it. Until then the index has the key as the
//! transaction found it, and two rows may have it.
//!
//! Blocks with handlers and savepoints return to what waited when they began: every change notes what was there before.

use crate::execution::Execution;
use crate::own::key_space;
use plan::constraint::{ForeignKeyPlan, free_key, take_key};
use plan::expression::rows_space;
use plan::table::TablePlan;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{
    Catalog, ColumnSet, Deferral, ForeignKey, Index, Key, Row, SqlError, SqlState, TableId, Value, limits,
};

/// Bytes that a check takes besides its key and values.
const CHECK_BYTES: u64 = 256;

/// Bytes of what SET CONSTRAINTS has said of a constraint.
const MODE_BYTES: u64 = 16;
/// Checks that wait and are gone through for a step.
const CHECKS_PER_STEP: u64 = 16;

/// A check that waits.
#[derive(Clone, Debug)]
pub(super) enum Check {
    /// The row with this key references something.
    References { foreign_key: u32, child: TableId, key: Key },
    /// A key that may be referenced has gone.
    Gone { foreign_key: u32, parent: TableId, values: Vec<Value> },
    /// Rows have taken or freed a key of a unique index.
    Taken { index: u32, table: TableId, key: Key },
}

impl Check {
    /// The table whose rows have made it necessary, and the number of the constraint.
    fn of(&self) -> (TableId, u32) {
        match self {
            Check::References { foreign_key, child, .. } => (*child, *foreign_key),
            Check::Gone { foreign_key, parent, .. } => (*parent, *foreign_key),
            Check::Taken { index, table, .. } => (*table, *index),
        }
    }

    /// The row or key that no other check of its constraint is about.
    fn place(&self) -> Option<(u32, Key)> {
        match self {
            Check::References { foreign_key: number, key, .. } | Check::Taken { index: number, key, .. } => {
                Some((*number, key.clone()))
            }
            Check::Gone { .. } => None,
        }
    }

    fn bytes(&self) -> u64 {
        CHECK_BYTES
            + match self {
                Check::References { key, .. } | Check::Taken { key, .. } => 3 * key_space(key),
                Check::Gone { values, .. } => rows_space(std::slice::from_ref(values)),
            }
    }
}

/// What rows have done to a key of a unique index since it was checked last.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// A row has freed it that had it then.
    freed: bool,
    /// Rows that have it now.
    takers: u32,
    /// One of them.
    row: Option<Row>,
}

/// What SET CONSTRAINTS has said: true where constraints are deferred.
#[derive(Clone, Debug, Default)]
pub(crate) struct Modes {
    pub(crate) all: Option<bool>,
    pub(crate) named: BTreeMap<u32, bool>,
}

/// How something was before it was changed.
#[derive(Debug)]
enum Before {
    Check(u64, Option<Check>),
    Taken((u32, Key), Option<Taken>),
    Modes(Modes),
}

/// The checks of a transaction that wait.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    modes: Modes,
    /// In the order in which they became necessary.
    waiting: BTreeMap<u64, Check>,
    next: u64,
    /// Where the check of a row or key is.
    places: BTreeMap<(u32, Key), u64>,
    /// What rows have done to keys of unique indexes, by index.
    taken: BTreeMap<(u32, Key), Taken>,
    /// What blocks with handlers may have to return to.
    before: Vec<Before>,
}

impl Deferred {
    fn set_check(&mut self, number: u64, check: Option<Check>) -> Option<Check> {
        let before = self.waiting.remove(&number);
        if let Some(place) = before.as_ref().and_then(Check::place)
            && self.places.get(&place) == Some(&number)
        {
            self.places.remove(&place);
        }
        if let Some(check) = check {
            if let Some(place) = check.place() {
                self.places.insert(place, number);
            }
            self.waiting.insert(number, check);
        }
        before
    }

    fn set_taken(&mut self, key: (u32, Key), taken: Option<Taken>) -> Option<Taken> {
        match taken {
            Some(taken) => self.taken.insert(key, taken),
            None => self.taken.remove(&key),
        }
    }

    /// What there is to return to.
    pub fn mark(&self) -> usize {
        self.before.len()
    }

    /// Returns to how it was.
    pub fn undo(&mut self, mark: usize) {
        while self.before.len() > mark {
            match self.before.pop() {
                Some(Before::Check(number, check)) => drop(self.set_check(number, check)),
                Some(Before::Taken(key, taken)) => drop(self.set_taken(key, taken)),
                Some(Before::Modes(modes)) => self.modes = modes,
                None => {}
            }
        }
    }

    /// Nothing can be undone any more.
    pub fn forget_before(&mut self) {
        self.before.clear();
    }

    /// What SET CONSTRAINTS has said.
    pub(crate) fn modes(&self) -> &Modes {
        &self.modes
    }

    /// Whether checks wait.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a constraint is held at the end of the transaction.
    fn is_deferred(&self, number: u32, deferral: Deferral) -> bool {
        let initially = deferral == Deferral::InitiallyDeferred;
        let said = || self.modes.named.get(&number).copied().or(self.modes.all);
        deferral.is_deferrable() && said().unwrap_or(initially)
    }

    /// Refuses another schema for tables of which checks wait: these were noted for the one before.
    ///
    /// # Errors
    /// `55006`
    pub fn refuse_change(&self, before: &Catalog, after: &Catalog) -> Result<(), SqlError> {
        let mut seen = BTreeSet::new();
        for (id, number) in self.waiting.values().map(Check::of) {
            let Some(table) = before.table(id).filter(|_| seen.insert((id, number))) else { continue };
            // What a table references may change.
            let own = |catalog: &Catalog| -> Vec<ForeignKey> {
                let own = catalog.foreign_keys_of(id).iter().cloned();
                own.map(|known| ForeignKey { parent: id, index: None, ..known }).collect()
            };
            let foreign_keys = || after.foreign_keys.values().flatten().map(|known| known.number);
            let indexes = || after.indexes_of(id).iter().map(|known| known.number);
            let has_constraint = foreign_keys().chain(indexes()).any(|known| known == number);
            if after.table(id) == Some(table) && own(after) == own(before) && has_constraint {
                continue;
            }
            let goes = !after.tables.contains_key(&table.name) && after.table(id).is_none();
            return Err(has_pending(if goes { "DROP TABLE" } else { "ALTER TABLE" }, table.object_name()));
        }
        Ok(())
    }
}

fn has_pending(what: &str, table: &str) -> SqlError {
    let message = format!("cannot {what} \"{table}\" because it has pending trigger events");
    SqlError::new(SqlState(*b"55006"), message)
        .hint("SET CONSTRAINTS ALL IMMEDIATE checks what waits for the end of the transaction.")
}

impl Execution<'_> {
    fn journal(&mut self, before: Before) {
        if self.written.protected > 0 {
            self.deferred.before.push(before);
        }
    }

    fn set_check(&mut self, number: u64, check: Option<Check>) {
        let before = self.deferred.set_check(number, check);
        self.journal(Before::Check(number, before));
    }

    /// Whether a constraint is held at the end of the transaction, as SET CONSTRAINTS has it now.
    pub(super) fn is_deferred(&self, number: u32, deferral: Deferral) -> bool {
        self.deferred.is_deferred(number, deferral)
    }

    /// A check waits; one of the same row or key does not any more.
    ///
    /// # Errors
    /// `54000` where too many wait.
    pub(super) fn put_off(&mut self, check: Check) -> Result<(), SqlError> {
        if self.deferred.waiting.len() >= limits::DEFERRED_CHECKS_MAX {
            let message = format!(
                "a transaction puts off at most {} checks of constraints (DEFERRED_CHECKS_MAX)",
                limits::DEFERRED_CHECKS_MAX
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("SET CONSTRAINTS ALL IMMEDIATE checks those that wait."));
        }
        self.meter.memory.keep(check.bytes())?;
        let known = check.place().and_then(|place| self.deferred.places.get(&place).copied());
        if let Some(number) = known {
            self.set_check(number, None);
        }
        let number = self.deferred.next;
        self.deferred.next += 1;
        self.set_check(number, Some(check));
        Ok(())
    }

    /// A row leaves its primary key for another one: the constraints whose checks of it wait, and do not any more.
    pub(super) fn take_put_off(&mut self, table: TableId, key: &Key) -> Vec<u32> {
        if self.deferred.waiting.is_empty() {
            return Vec::new();
        }
        let foreign_keys = self.on.programs.tables().foreign_keys().of_child(table);
        let mut found = Vec::new();
        for number in foreign_keys.iter().map(|foreign_key| foreign_key.number) {
            if let Some(at) = self.deferred.places.get(&(number, key.clone())).copied() {
                self.set_check(at, None);
                found.push(number);
            }
        }
        found
    }

    /// It stands under another key now: the checks wait there.
    ///
    /// # Errors
    /// As [`Execution::put_off`].
    pub(super) fn put_off_again(
        &mut self,
        table: TableId,
        key: &Key,
        constraints: &[u32],
    ) -> Result<(), SqlError> {
        constraints.iter().try_for_each(|number| {
            self.put_off(Check::References { foreign_key: *number, child: table, key: key.clone() })
        })
    }

    /// A row has other values in the columns of a unique index that can be deferred: the key that it had is free, and it has
    /// another one. Gives both.
    ///
    /// # Errors
    /// `54000` where a key is too long, or there are too many.
    pub(super) fn count_key(
        &mut self,
        index: &Index,
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<Vec<Key>, SqlError> {
        let entry = |row: Option<&Row>| row.map_or(Ok(None), |row| index.unique_entry(row));
        let (old, new) = (entry(before)?, entry(after)?);
        if old == new {
            return Ok(Vec::new());
        }
        let mut changed = Vec::with_capacity(2);
        for (key, row) in [(old, None), (new, after)] {
            let Some(key) = key else { continue };
            let place = (index.number, key.clone());
            let mut taken = self.deferred.taken.get(&place).cloned().unwrap_or_default();
            match row {
                Some(row) => {
                    taken.takers += 1;
                    taken.row = Some(row.clone());
                }
                // Which of the rows that have it is the same to everybody.
                None if taken.takers > 0 => taken.takers -= 1,
                None => taken.freed = true,
            }
            self.meter.memory.keep(CHECK_BYTES + key_space(&key))?;
            let before = self.deferred.set_taken(place.clone(), Some(taken));
            self.journal(Before::Taken(place, before));
            changed.push(key);
        }
        Ok(changed)
    }

    /// Frees and takes a key of a unique index as rows have left it.
    ///
    /// # Errors
    /// `23505` where several rows have it.
    pub(super) fn settle_key(
        &mut self,
        table: &Arc<TablePlan>,
        index: &Arc<Index>,
        key: &Key,
    ) -> Result<(), SqlError> {
        let place = (index.number, key.clone());
        let Some(taken) = self.deferred.set_taken(place.clone(), None) else { return Ok(()) };
        self.journal(Before::Taken(place, Some(taken.clone())));
        if taken.freed {
            self.apply(free_key(table, index, key.clone()))?;
        }
        match taken.row.filter(|_| taken.takers > 0) {
            None => Ok(()),
            Some(row) if taken.takers > 1 => Err(table.duplicate_key(&index.name, &index.columns, &row)),
            Some(row) => self.apply(take_key(table, index, key.clone(), row)).map(drop),
        }
    }

    fn make_check(&mut self, check: &Check) -> Result<(), SqlError> {
        let tables = self.on.programs.tables();
        let of = |plans: &[Arc<ForeignKeyPlan>], number: u32| {
            plans.iter().find(|plan| plan.number == number).cloned()
        };
        match check {
            Check::References { foreign_key, child, key } => {
                match of(tables.foreign_keys().of_child(*child), *foreign_key) {
                    Some(plan) => self.check_reference_of(&plan, key),
                    None => Ok(()),
                }
            }
            Check::Gone { foreign_key, parent, values } => {
                match of(tables.foreign_keys().of_parent(*parent), *foreign_key) {
                    Some(plan) => self.check_gone(&plan, values),
                    None => Ok(()),
                }
            }
            Check::Taken { index: number, table, key } => {
                let Some(table) = tables.by_id(*table).cloned() else { return Ok(()) };
                let index = table.indexes.iter().find(|index| index.number == *number).cloned();
                index.map_or(Ok(()), |index| self.settle_key(&table, &index, key))
            }
        }
    }

    /// The end of the transaction: makes the checks that wait.
    ///
    /// # Errors
    /// `23503`, `23505`; the transaction has no effect then.
    pub fn settle_deferred(&mut self) -> Result<(), SqlError> {
        self.make_checks(&|_, _| true)
    }

    fn make_checks(&mut self, is_meant: &dyn Fn(&Deferred, &Check) -> bool) -> Result<(), SqlError> {
        if self.deferred.waiting.is_empty() {
            return Ok(());
        }
        self.see_newer();
        let mut from = 0;
        loop {
            let mut waiting = self.deferred.waiting.range(from..);
            let next = waiting.find(|(_, check)| is_meant(&self.deferred, check));
            let Some((number, check)) = next.map(|(number, check)| (*number, check.clone())) else {
                return Ok(());
            };
            from = number + 1;
            self.charge(1)?;
            self.set_check(number, None);
            self.measured(|execution| execution.make_check(&check))?;
        }
    }

    /// SET CONSTRAINTS says this from now on.
    ///
    /// # Errors
    /// What it said before takes too much memory.
    pub(crate) fn set_modes(&mut self, modes: Modes) -> Result<(), SqlError> {
        if self.written.protected > 0 {
            self.meter.memory.keep(CHECK_BYTES + MODE_BYTES * self.deferred.modes.named.len() as u64)?;
        }
        let before = std::mem::replace(&mut self.deferred.modes, modes);
        self.journal(Before::Modes(before));
        Ok(())
    }

    /// Makes the checks that wait of constraints that are not deferred any more; `deferrals`: those of the catalog.
    ///
    /// # Errors
    /// What the checks end with.
    pub(crate) fn settle_immediate(&mut self, deferrals: &BTreeMap<u32, Deferral>) -> Result<(), SqlError> {
        self.charge_waiting()?;
        self.make_checks(&|deferred, check| {
            let (_, number) = check.of();
            !deferrals.get(&number).is_some_and(|deferral| deferred.is_deferred(number, *deferral))
        })
    }

    /// All checks that wait are gone through.
    fn charge_waiting(&mut self) -> Result<(), SqlError> {
        self.charge(self.deferred.waiting.len() as u64 / CHECKS_PER_STEP)
    }

    /// Frees and takes the keys whose checks wait and find no other row: for PostgreSQL such a row waits for nothing.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn settle_free_keys(&mut self) -> Result<(), SqlError> {
        self.charge_waiting()?;
        let mut free = Vec::new();
        for (number, check) in &self.deferred.waiting {
            let Check::Taken { index, key, .. } = check else { continue };
            let Some(taken) = self.deferred.taken.get(&(*index, key.clone())) else { continue };
            if taken.takers <= 1 {
                free.push((*number, check.clone(), taken.freed));
            }
        }
        for (number, check, freed) in free {
            let Check::Taken { index, table, key } = &check else { continue };
            self.charge(1)?;
            let plan = self.on.programs.tables().by_id(*table);
            let index = plan.and_then(|plan| plan.indexes.iter().find(|known| known.number == *index));
            let Some(entries) = index.map(|index| index.unique_entries()) else { continue };
            self.register_read(entries, key, ColumnSet::EXISTS);
            if freed || self.current(entries, key)?.is_none() {
                self.set_check(number, None);
                self.make_check(&check)?;
            }
        }
        Ok(())
    }

    /// Refuses to empty a table of which checks wait.
    ///
    /// # Errors
    /// `55006`
    pub(super) fn refuse_pending(&mut self, what: &str, table: &TablePlan) -> Result<(), SqlError> {
        self.settle_free_keys()?;
        match self.deferred.waiting.values().any(|check| check.of().0 == table.id) {
            true => Err(has_pending(what, &table.name)),
            false => Ok(()),
        }
    }
}
