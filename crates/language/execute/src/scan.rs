//! Finding the rows of a table: by key, over an interval of the key or of an index; and what that registers.

use crate::execution::Execution;
use crate::own::{SCAN_BYTES, key_space};
use crate::row_locks::counts;
use crate::scratch::{RowList, Rows};
use crate::subqueries::Given;
use plan::computed_index::primary_of;
use plan::condition::Condition;
use plan::expression::row_space;
use plan::predicate::{CapturedCondition, EntryPredicate};
use plan::statement::{Access, BoundSelect, From, KeyPart, Scanned, resolve_key};
use plan::table::TablePlan;
use state::{KeyRange, RowPredicate, Scan};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use types::{ColumnSet, ExecutionVersion, Index, Key, Row, SqlError, Value};
use values::broken;

/// What is done with a matching row: its values; gives whether to go on.
pub(super) type Visit<'v> = dyn FnMut(&[Value]) -> Result<ControlFlow<()>, SqlError> + 'v;

/// The same with the row's key.
pub(super) type VisitKeyed<'v> = dyn FnMut(&Key, &[Value]) -> Result<ControlFlow<()>, SqlError> + 'v;

/// A search for rows.
struct Search<'b> {
    table: &'b TablePlan,
    place: SearchSpace,
    reverse: bool,
    /// Columns of filter and output.
    columns: ColumnSet,
    filter_columns: ColumnSet,
    filter: Option<CapturedCondition>,
}

/// Where rows are searched.
enum SearchSpace {
    /// In an interval of the primary key.
    Keys(KeyRange),
    /// In an interval of an index.
    Entries { index: Arc<Index>, entries: KeyRange, within: KeyRange, in_order: bool },
    /// In intervals of an inverted index.
    Parts { index: Arc<Index>, entries: Vec<KeyRange>, within: KeyRange },
}

/// How a search went.
struct Searched {
    /// Keys of the rows of the snapshot that the filter is true for, as they came.
    result: Vec<Key>,
    /// The entries of a computed index that it has looked at.
    entries: Vec<Key>,
    /// Where it stopped before its end: a primary key, or an entry of an index.
    stopped_at: Option<Key>,
    examined: u64,
    outcome: Result<(), SqlError>,
}

impl Execution<'_> {
    /// Visits the rows of the source that the WHERE is true for, in key order.
    pub(super) fn visit_rows(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<(), SqlError> {
        match &select.source {
            From::Nothing => visit(&[]).map(drop),
            From::Table(scanned) if scanned.keyed => {
                let mut keyed = Vec::new();
                self.visit_table(scanned, given, select.reverse, &mut |key, row| {
                    keyed.clear();
                    keyed.extend_from_slice(row);
                    keyed.push(Value::Bytea(key.as_bytes().into()));
                    visit(&keyed)
                })
            }
            From::Table(scanned) => {
                self.visit_table(scanned, given, select.reverse, &mut |_, row| visit(row))
            }
            From::Relation(_) => Err(broken("the rows of several relations are gathered first")),
        }
    }

    /// The rows of a table that its conditions are true for, in key order.
    pub(super) fn table_rows(&mut self, scanned: &Scanned, given: Given<'_>) -> Result<Rows, SqlError> {
        let mut rows = RowList::new(self.on.scratch.clone());
        let memory = self.meter.memory.clone();
        self.visit_table(scanned, given, false, &mut |key, row| {
            let mut row = row.to_vec();
            let mut space = row_space(row.len() + 1);
            if scanned.keyed {
                space += key.as_bytes().len() as u64;
                row.push(Value::Bytea(key.as_bytes().into()));
            }
            rows.push(&memory, space, row)?;
            Ok(ControlFlow::Continue(()))
        })?;
        rows.complete()
    }

    fn visit_table(
        &mut self,
        scanned: &Scanned,
        given: Given<'_>,
        reverse: bool,
        visit: &mut VisitKeyed<'_>,
    ) -> Result<(), SqlError> {
        scanned.table.check_filled()?;
        if let Some(height) = &scanned.past {
            return self.visit_past(scanned, height, given, reverse, visit);
        }
        if let (Some(locks), Some(locking)) = (self.on.row_locks.clone(), scanned.locking) {
            return self.visit_found(scanned, given, reverse, &mut |key, row| match counts(
                &*locks,
                (scanned, locking),
                key,
            )? {
                true => visit(key, row),
                false => Ok(ControlFlow::Continue(())),
            });
        }
        self.visit_found(scanned, given, reverse, visit)
    }

    fn visit_found(
        &mut self,
        scanned: &Scanned,
        given: Given<'_>,
        reverse: bool,
        visit: &mut VisitKeyed<'_>,
    ) -> Result<(), SqlError> {
        if let Access::Key(parts) = &scanned.access {
            let found = self.row_by_key(&scanned.table, parts, &scanned.filter, scanned.columns, given)?;
            let Some((key, row)) = found else { return Ok(()) };
            return visit(&key, &row).map(drop);
        }
        let Some(place) = self.place(&scanned.access, given)? else { return Ok(()) };
        let filter = match &scanned.filter {
            Some(filter) => {
                Some(self.with_subqueries(&[], given, |environment| filter.with_values(environment))?)
            }
            None => None,
        };
        let search = Search {
            table: &scanned.table,
            place,
            reverse,
            columns: scanned.columns,
            filter_columns: scanned.filter_columns,
            filter,
        };
        self.search(search, visit)
    }

    /// The row with this key, where the filter is true for it. `columns`: what is looked at.
    fn row_by_key(
        &mut self,
        table: &TablePlan,
        parts: &[KeyPart],
        filter: &Option<Condition>,
        columns: ColumnSet,
        given: Given<'_>,
    ) -> Result<Option<(Key, Row)>, SqlError> {
        let key = self.with_subqueries(&[], given, |environment| resolve_key(parts, environment))?;
        let Some(key) = key else { return Ok(None) };
        self.charge(1)?;
        self.register_read(table.id, &key, columns);
        let Some(row) = self.current(table.id, &key)? else { return Ok(None) };
        let matches = match filter {
            Some(filter) => {
                self.with_subqueries(&row, given, |environment| filter.is_true_in(environment))?
            }
            None => true,
        };
        Ok(matches.then_some((key, row)))
    }

    /// Keys of the rows that the filter is true for: what UPDATE and DELETE change, and what references a key.
    pub(super) fn matching_keys(
        &mut self,
        table: &TablePlan,
        access: &Access,
        filter: &Option<Condition>,
        filter_columns: ColumnSet,
        frame: &[Value],
    ) -> Result<Vec<Key>, SqlError> {
        let columns = filter_columns | ColumnSet::EXISTS;
        let given = Given { frame, arguments: &[], left: &[] };
        // In version 1 what references a key by its own key cannot be found: such a statement ends with XX000.
        if let Access::Key(parts) = access
            && self.on.programs.version() >= ExecutionVersion::V2
        {
            let scanned = self.row_by_key(table, parts, filter, columns, given)?;
            return Ok(scanned.map(|(key, _)| key).into_iter().collect());
        }
        let Some(place) = self.place(access, given)? else { return Ok(Vec::new()) };
        let environment = self.environment(&[], frame);
        let filter = filter.as_ref().map(|filter| filter.with_values(&environment)).transpose()?;
        let search = Search { table, place, reverse: false, columns, filter_columns, filter };
        let mut keys = Vec::new();
        self.search(search, &mut |key, _| {
            keys.push(key.clone());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(keys)
    }

    /// Where an access searches; `None`: nowhere, because no row can be there.
    fn place(&mut self, access: &Access, given: Given<'_>) -> Result<Option<SearchSpace>, SqlError> {
        self.with_subqueries(&[], given, |environment| match access {
            Access::Range(interval) => Ok(interval.resolve(environment)?.map(SearchSpace::Keys)),
            Access::Index(access) => {
                let Some(within) = access.within.resolve(environment)? else { return Ok(None) };
                let (index, in_order) = (access.index.clone(), access.in_order);
                if let Some(parts) = &access.parts {
                    return Ok(match parts.resolve(environment)? {
                        Some(entries) if entries.is_empty() => None,
                        Some(entries) => Some(SearchSpace::Parts { index, entries, within }),
                        None => Some(SearchSpace::Keys(within)),
                    });
                }
                let Some(entries) = access.interval.resolve_entries(environment)? else { return Ok(None) };
                Ok(Some(SearchSpace::Entries { index, entries, within, in_order }))
            }
            Access::Key(_) | Access::Found(_) => Err(broken("a search where nothing is searched")),
        })
    }

    /// Visits the rows of a place that the filter is true for, own writes included, and registers the scan.
    fn search(&mut self, search: Search<'_>, visit: &mut VisitKeyed<'_>) -> Result<(), SqlError> {
        let (SearchSpace::Keys(range)
        | SearchSpace::Entries { within: range, .. }
        | SearchSpace::Parts { within: range, .. }) = &search.place;
        let own = match self.written.own.is_empty() {
            true => Vec::new(),
            false => self.written.own.in_range(search.table.id, range),
        };
        let walk = Walk {
            search: &search,
            visit,
            result: Vec::new(),
            entries: Vec::new(),
            last: None,
            registers: self.on.registers,
            examined: 0,
            examined_max: self.on.context.step_limit.saturating_sub(self.meter.steps),
            interrupt: self.on.interrupt.clone(),
            outcome: Ok(ControlFlow::Continue(())),
        };
        let searched = match &search.place {
            SearchSpace::Keys(range) => self.search_keys(range, &own, walk),
            SearchSpace::Entries { index, entries, in_order: true, .. } => {
                self.search_entries_in_order(index, entries, &own, walk)
            }
            SearchSpace::Entries { index, entries, in_order: false, .. } => {
                self.search_entries(index, std::slice::from_ref(entries), &own, walk)
            }
            SearchSpace::Parts { index, entries, .. } => self.search_entries(index, entries, &own, walk),
        };
        let Searched { result, entries, stopped_at, examined, outcome } = searched;
        let kept = self
            .register_entries(&search.place, entries)
            .and_then(|()| self.register_scan(search, result, stopped_at, &own));
        self.charge(examined)?;
        kept.and(outcome)
    }

    fn search_keys(&self, range: &KeyRange, own: &[usize], mut walk: Walk<'_, '_>) -> Searched {
        let (table, reverse) = (walk.search.table.id, walk.search.reverse);
        if own.is_empty() {
            let scanned =
                self.on.snapshot.scan(table, range, reverse, &mut |key, row| walk.snapshot_row(key, row));
            let _ = walk.note(self.read(scanned));
        } else {
            self.walk_with_own(range, own, &mut walk);
        }
        let stopped_at = walk.last.take();
        walk.finish(stopped_at)
    }

    /// All entries first, then the rows in the order of their primary keys.
    fn search_entries(
        &self,
        index: &Index,
        entries: &[KeyRange],
        own: &[usize],
        mut walk: Walk<'_, '_>,
    ) -> Searched {
        let table = walk.search.table.id;
        let mut keys: Vec<Key> =
            own.iter().map(|position| self.written.own.get(*position).row.key.clone()).collect();
        let mut left = walk.examined_max.saturating_add(1);
        let computed = index.is_computed();
        let stand = if computed { index.computed_entries() } else { index.entries() };
        for range in entries {
            let scanned = self.on.snapshot.scan(stand, range, false, &mut |entry, row| {
                keys.extend(if computed { primary_of(row) } else { entry.primary_of_entry() });
                if computed && walk.registers {
                    walk.entries.push(entry.clone());
                }
                left -= 1;
                if left == 0 || self.is_interrupted() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            if walk.note(self.read(scanned)).is_break() {
                return walk.finish(None);
            }
            if left == 0 || self.is_interrupted() {
                break;
            }
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let before = match self.read(self.on.snapshot.get(table, &key)) {
                Ok(before) => before,
                Err(error) => {
                    let _ = walk.note(Err(error));
                    break;
                }
            };
            let flow = match (self.written.own.position(table, &key), &before) {
                (Some(position), before) => {
                    walk.own_row(&key, self.written.own.get(position).value.as_ref(), before.as_ref())
                }
                (None, Some(row)) => walk.snapshot_row(&key, row),
                (None, None) => ControlFlow::Continue(()),
            };
            if flow.is_break() {
                break;
            }
        }
        // Every entry has been looked at, wherever the visitor stopped.
        walk.finish(None)
    }

    fn search_entries_in_order(
        &self,
        index: &Index,
        entries: &KeyRange,
        own: &[usize],
        mut walk: Walk<'_, '_>,
    ) -> Searched {
        let (table, reverse) = (walk.search.table.id, walk.search.reverse);
        let own_entry = |position: &usize| {
            let own = self.written.own.get(*position);
            Some((index.entry(&own.row.key, own.value.as_ref()?), *position))
        };
        let mut own: Vec<(Key, usize)> =
            own.iter().filter_map(own_entry).filter(|(entry, _)| entries.contains(entry)).collect();
        own.sort();
        // The next one is the last of the vector.
        if !reverse {
            own.reverse();
        }
        let mut last = None;
        let scanned = self.on.snapshot.scan(index.entries(), entries, reverse, &mut |entry, _| {
            let comes = |own: &Key| if reverse { own > entry } else { own < entry };
            while let Some((own_entry, position)) = own.pop_if(|(own, _)| comes(own)) {
                last = Some(own_entry);
                let own = self.written.own.get(position);
                walk.own_row(&own.row.key, own.value.as_ref(), None)?;
            }
            last = Some(entry.clone());
            let Some(key) = entry.primary_of_entry() else { return ControlFlow::Continue(()) };
            let row = match self.read(self.on.snapshot.get(table, &key)) {
                Ok(Some(row)) => row,
                Ok(None) => return ControlFlow::Continue(()),
                Err(error) => return walk.note(Err(error)),
            };
            match self.written.own.position(table, &key) {
                // How it stands now comes at its own place.
                Some(_) => walk.own_row(&key, None, Some(&row)),
                None => walk.snapshot_row(&key, &row),
            }
        });
        let _ = walk.note(self.read(scanned));
        while let Some((entry, position)) = own.pop() {
            if !matches!(walk.outcome, Ok(ControlFlow::Continue(()))) {
                break;
            }
            last = Some(entry);
            let own = self.written.own.get(position);
            if walk.own_row(&own.row.key, own.value.as_ref(), None).is_break() {
                break;
            }
        }
        walk.finish(last)
    }

    /// Own rows stand in front of those of the snapshot.
    fn walk_with_own(&self, range: &KeyRange, own: &[usize], walk: &mut Walk<'_, '_>) {
        let reverse = walk.search.reverse;
        let mut own: Vec<usize> = own.to_vec();
        // The next one is the last of the vector.
        if !reverse {
            own.reverse();
        }
        let table = walk.search.table.id;
        let scanned = self.on.snapshot.scan(table, range, reverse, &mut |key, row| {
            while let Some(position) = own.last() {
                let next = self.written.own.get(*position);
                let order = if reverse { key.cmp(&next.row.key) } else { next.row.key.cmp(key) };
                if order == Ordering::Greater {
                    break;
                }
                own.pop();
                let before = (order == Ordering::Equal).then_some(row);
                walk.own_row(&next.row.key, next.value.as_ref(), before)?;
                if order == Ordering::Equal {
                    return ControlFlow::Continue(());
                }
            }
            walk.snapshot_row(key, row)
        });
        let _ = walk.note(self.read(scanned));
        while let Some(position) = own.pop() {
            if !matches!(walk.outcome, Ok(ControlFlow::Continue(()))) {
                return;
            }
            let next = self.written.own.get(position);
            if walk.own_row(&next.row.key, next.value.as_ref(), None).is_break() {
                return;
            }
        }
    }

    /// The entries of a computed index are rows, which others write: that they were looked at is noted, too.
    fn register_entries(&mut self, place: &SearchSpace, found: Vec<Key>) -> Result<(), SqlError> {
        let (index, ranges) = match place {
            SearchSpace::Entries { index, entries, .. } => (index, std::slice::from_ref(entries)),
            SearchSpace::Parts { index, entries, .. } => (index, entries.as_slice()),
            SearchSpace::Keys(_) => return Ok(()),
        };
        if !self.on.registers || !index.is_computed() {
            return Ok(());
        }
        let table = index.computed_entries();
        // Found in one range after the other.
        let mut found = found.into_iter().peekable();
        for range in ranges {
            for position in self.written.own.in_range(table, range) {
                let key = self.written.own.get(position).row.key.clone();
                self.register_read(table, &key, ColumnSet::EXISTS);
            }
            let result: Vec<Key> =
                std::iter::from_fn(|| found.next_if(|entry| range.contains(entry))).collect();
            let bytes = SCAN_BYTES + result.iter().map(key_space).sum::<u64>();
            self.outcome.scans.push(Scan {
                table,
                range: range.clone(),
                columns: ColumnSet::ALL,
                predicate_columns: ColumnSet::EMPTY,
                predicate: None,
                result,
            });
            self.meter.memory.keep(bytes)?;
        }
        Ok(())
    }

    fn register_scan(
        &mut self,
        search: Search<'_>,
        mut result: Vec<Key>,
        stopped_at: Option<Key>,
        own: &[usize],
    ) -> Result<(), SqlError> {
        if !self.on.registers {
            return Ok(());
        }
        let stop = |range: &mut KeyRange| match stopped_at {
            Some(last) if search.reverse => range.start = Bound::Included(last),
            Some(last) => range.end = Bound::Included(last),
            None => {}
        };
        let filter = search.filter;
        let (range, predicate) = match search.place {
            SearchSpace::Keys(mut range) => {
                stop(&mut range);
                (range, filter.map(|filter| Arc::new(filter) as Arc<dyn RowPredicate>))
            }
            SearchSpace::Entries { index, mut entries, within, .. } => {
                stop(&mut entries);
                (within, Some(Arc::new(EntryPredicate { index, entries, filter }) as Arc<dyn RowPredicate>))
            }
            // What is looked for in the index the filter asks, too.
            SearchSpace::Parts { within, .. } => {
                (within, filter.map(|filter| Arc::new(filter) as Arc<dyn RowPredicate>))
            }
        };
        result.sort_unstable();
        let bytes = SCAN_BYTES + result.iter().map(key_space).sum::<u64>();
        for position in own {
            let key = self.written.own.get(*position).row.key.clone();
            if range.contains(&key) {
                self.register_read(search.table.id, &key, search.columns);
            }
        }
        self.outcome.scans.push(Scan {
            table: search.table.id,
            range,
            columns: search.columns | ColumnSet::EXISTS,
            predicate_columns: search.filter_columns,
            predicate,
            result,
        });
        self.meter.memory.keep(bytes)
    }
}

/// A scan on its way.
struct Walk<'b, 'v> {
    search: &'b Search<'b>,
    visit: &'v mut VisitKeyed<'v>,
    /// Keys of the rows of the snapshot that the filter is true for.
    result: Vec<Key>,
    /// Entries of a computed index that the snapshot has in the interval.
    entries: Vec<Key>,
    /// The row examined last.
    last: Option<Key>,
    registers: bool,
    examined: u64,
    examined_max: u64,
    interrupt: Option<Arc<AtomicBool>>,
    outcome: Result<ControlFlow<()>, SqlError>,
}

impl Walk<'_, '_> {
    /// `at`: where it is, if it has stopped.
    fn finish(self, at: Option<Key>) -> Searched {
        let stopped = !matches!(self.outcome, Ok(ControlFlow::Continue(())));
        Searched {
            result: self.result,
            entries: self.entries,
            stopped_at: at.filter(|_| stopped),
            examined: self.examined,
            outcome: self.outcome.map(drop),
        }
    }

    /// A part of the way has ended, well or because the snapshot cannot be read.
    fn note(&mut self, read: Result<(), SqlError>) -> ControlFlow<()> {
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.outcome = Err(error);
                ControlFlow::Break(())
            }
        }
    }

    fn snapshot_row(&mut self, key: &Key, row: &Row) -> ControlFlow<()> {
        self.examined += 1;
        let result = match self.matches(row) {
            Ok(true) => {
                if self.registers {
                    self.result.push(key.clone());
                }
                (self.visit)(key, row)
            }
            Ok(false) => Ok(ControlFlow::Continue(())),
            Err(error) => {
                // The row is why the transaction fails: it counts as found.
                self.result.push(key.clone());
                Err(error)
            }
        };
        self.go_on(key, result)
    }

    /// A row that the transaction has written: `value` is how it stands, `before` how the snapshot has it.
    fn own_row(&mut self, key: &Key, value: Option<&Row>, before: Option<&Row>) -> ControlFlow<()> {
        self.examined += 1;
        let mut examine = || {
            if let Some(before) = before
                && self.registers
                && self.matches(before)?
            {
                self.result.push(key.clone());
            }
            match value {
                Some(row) if self.matches(row)? => (self.visit)(key, row),
                _ => Ok(ControlFlow::Continue(())),
            }
        };
        let result = examine();
        self.go_on(key, result)
    }

    fn matches(&self, row: &Row) -> Result<bool, SqlError> {
        self.search.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(row))
    }

    /// The scan ends where the visitor says so, at an error, and where the steps have run out or nobody waits any more
    /// (which the caller sees).
    fn go_on(&mut self, key: &Key, result: Result<ControlFlow<()>, SqlError>) -> ControlFlow<()> {
        let stop = !matches!(result, Ok(ControlFlow::Continue(())))
            || self.examined > self.examined_max
            || self.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Relaxed));
        if !stop {
            return ControlFlow::Continue(());
        }
        self.last = Some(key.clone());
        self.outcome = match result {
            Ok(_) => Ok(ControlFlow::Break(())),
            error => error,
        };
        ControlFlow::Break(())
    }
}
