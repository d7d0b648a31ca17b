//! SELECT: finding rows, grouping, sorting; and what that registers.

use super::Execution;
use crate::aggregate::{Accumulator, Sortable};
use crate::expression::{Environment, Expression};
use crate::predicate::{CapturedCondition, Condition};
use crate::statement::{Access, BoundSelect, Grouping, Scanned, SortKey, resolve_key, resolve_range};
use crate::table::TablePlan;
use state::{KeyRange, RowPredicate, Scan};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use types::{ColumnSet, Key, Row, SqlError, SqlState, Value, assign, limits};

/// What is done with a matching row: its values; gives whether to go on.
type Visit<'v> = dyn FnMut(&[Value]) -> Result<ControlFlow<()>, SqlError> + 'v;

/// The same with the row's key.
type VisitKeyed<'v> = dyn FnMut(&Key, &[Value]) -> Result<ControlFlow<()>, SqlError> + 'v;

/// A scan of one interval.
struct Interval<'b> {
    table: &'b TablePlan,
    range: KeyRange,
    reverse: bool,
    /// Columns of filter and output.
    columns: ColumnSet,
    filter_columns: ColumnSet,
    filter: Option<CapturedCondition>,
}

impl Execution<'_> {
    /// Runs a SELECT and gives its rows, at most `limit`.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn select(
        &mut self,
        select: &BoundSelect,
        frame: &[Value],
        limit: Option<usize>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let offset = self.row_count(select.offset.as_ref(), frame, "OFFSET")?.unwrap_or(0);
        let own_limit = self.row_count(select.limit.as_ref(), frame, "LIMIT")?;
        let limit = match (own_limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        let mut output = Output {
            select,
            frame,
            now: self.now,
            rows: Vec::new(),
            seen: BTreeSet::new(),
            enough: limit.map(|limit| limit.saturating_add(offset)),
        };
        match &select.grouping {
            Some(grouping) => self.grouped(select, grouping, frame, &mut output)?,
            None => self.visit_rows(select, frame, &mut |row| output.take(row))?,
        }
        self.charge(output.rows.len() as u64)?;
        Ok(output.finish(offset, limit))
    }

    fn row_count(
        &mut self,
        count: Option<&Expression>,
        frame: &[Value],
        clause: &str,
    ) -> Result<Option<usize>, SqlError> {
        let Some(count) = count else { return Ok(None) };
        match assign(self.evaluate(count, frame)?, types::DataType::BigInt)? {
            Value::BigInt(count) => usize::try_from(count).map(Some).map_err(|_| {
                let state = if clause == "LIMIT" { SqlState(*b"2201W") } else { SqlState(*b"2201X") };
                SqlError::new(state, format!("{clause} must not be negative"))
            }),
            _ => Ok(None),
        }
    }

    fn grouped(
        &mut self,
        select: &BoundSelect,
        grouping: &Grouping,
        frame: &[Value],
        output: &mut Output<'_>,
    ) -> Result<(), SqlError> {
        let now = self.now;
        let accumulators = || grouping.aggregates.iter().map(Accumulator::new).collect::<Vec<_>>();
        let mut groups: BTreeMap<Sortable, Vec<Accumulator<'_>>> = BTreeMap::new();
        if grouping.keys.is_empty() {
            groups.insert(Sortable(Vec::new()), accumulators());
        }
        self.visit_rows(select, frame, &mut |row| {
            let environment = Environment { row, frame, now };
            let keys = grouping.keys.iter().map(|key| key.evaluate(&environment));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            let group = groups.entry(Sortable(keys)).or_insert_with(accumulators);
            group.iter_mut().try_for_each(|accumulator| accumulator.add(&environment))?;
            Ok(ControlFlow::Continue(()))
        })?;
        for (Sortable(mut row), group) in groups {
            for accumulator in group {
                row.push(accumulator.finish()?);
            }
            let environment = Environment { row: &row, frame, now };
            if let Some(having) = &grouping.having
                && !having.is_true(&environment)?
            {
                continue;
            }
            if output.take(&row)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Visits the rows of the source that the WHERE is true for, in key order.
    fn visit_rows(
        &mut self,
        select: &BoundSelect,
        frame: &[Value],
        visit: &mut Visit<'_>,
    ) -> Result<(), SqlError> {
        let Some(source) = &select.source else {
            if match &select.filter {
                Some(filter) => self.is_true(filter, frame)?,
                None => true,
            } {
                visit(&[])?.is_break();
            }
            return Ok(());
        };
        match &source.access {
            Access::Key(parts) => {
                let Some(key) = resolve_key(parts, &self.environment(&[], frame))? else { return Ok(()) };
                self.visit_key(source, &key, frame, visit)
            }
            Access::Range { equal, lower, upper } => {
                let range = resolve_range(equal, lower, upper, &self.environment(&[], frame))?;
                let Some(range) = range else { return Ok(()) };
                let interval = Interval {
                    table: &source.table,
                    range,
                    reverse: select.reverse,
                    columns: source.columns,
                    filter_columns: source.filter_columns,
                    filter: self.captured(&source.filter, frame),
                };
                self.scan(interval, &mut |_, row| visit(row))
            }
        }
    }

    fn captured(&self, filter: &Option<Condition>, frame: &[Value]) -> Option<CapturedCondition> {
        filter.as_ref().map(|filter| filter.with_values(frame, self.now))
    }

    fn visit_key(
        &mut self,
        source: &Scanned,
        key: &Key,
        frame: &[Value],
        visit: &mut Visit<'_>,
    ) -> Result<(), SqlError> {
        self.charge(1)?;
        self.register_read(source.table.id, key, source.columns);
        let Some(row) = self.current(source.table.id, key) else { return Ok(()) };
        if let Some(filter) = &source.filter
            && !filter.is_true_in(&row, frame, self.now)?
        {
            return Ok(());
        }
        visit(&row)?.is_break();
        Ok(())
    }

    /// Keys of the rows of an interval that the filter is true for: what UPDATE and DELETE change.
    pub(super) fn matching_keys(
        &mut self,
        table: &TablePlan,
        range: KeyRange,
        filter: &Option<Condition>,
        filter_columns: ColumnSet,
        frame: &[Value],
    ) -> Result<Vec<Key>, SqlError> {
        let filter = self.captured(filter, frame);
        let columns = filter_columns | ColumnSet::EXISTS;
        let interval = Interval { table, range, reverse: false, columns, filter_columns, filter };
        let mut keys = Vec::new();
        self.scan(interval, &mut |key, _| {
            keys.push(key.clone());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(keys)
    }

    /// Visits the rows of an interval that the filter is true for, own writes included, and registers the scan.
    fn scan(&mut self, interval: Interval<'_>, visit: &mut VisitKeyed<'_>) -> Result<(), SqlError> {
        let table = interval.table.id;
        let own = match self.own.is_empty() {
            true => Vec::new(),
            false => self.own.in_range(table, &interval.range),
        };
        let mut walk = Walk {
            interval: &interval,
            visit,
            result: Vec::new(),
            last: None,
            registers: self.registers,
            examined: 0,
            examined_max: self.context.step_limit.saturating_sub(self.steps),
            outcome: Ok(ControlFlow::Continue(())),
        };
        if own.is_empty() {
            self.snapshot
                .scan(table, &interval.range, interval.reverse, &mut |key, row| walk.snapshot_row(key, row));
        } else {
            self.walk_with_own(&own, &mut walk);
        }
        let Walk { result, last, examined, outcome, .. } = walk;
        let stopped = matches!(outcome, Ok(ControlFlow::Break(()))) || outcome.is_err();
        self.register_scan(interval, result, last.filter(|_| stopped), &own);
        self.charge(examined)?;
        outcome.map(|_| ())
    }

    /// Own rows stand in front of those of the snapshot.
    fn walk_with_own(&self, own: &[usize], walk: &mut Walk<'_, '_>) {
        let reverse = walk.interval.reverse;
        let mut own: Vec<usize> = own.to_vec();
        // The next one is the last of the vector.
        if !reverse {
            own.reverse();
        }
        let (table, range) = (walk.interval.table.id, walk.interval.range.clone());
        self.snapshot.scan(table, &range, reverse, &mut |key, row| {
            while let Some(position) = own.last() {
                let next = self.own.get(*position);
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
        while let Some(position) = own.pop() {
            if !matches!(walk.outcome, Ok(ControlFlow::Continue(()))) {
                return;
            }
            let next = self.own.get(position);
            if walk.own_row(&next.row.key, next.value.as_ref(), None).is_break() {
                return;
            }
        }
    }

    fn register_scan(
        &mut self,
        interval: Interval<'_>,
        mut result: Vec<Key>,
        last: Option<Key>,
        own: &[usize],
    ) {
        if !self.registers {
            return;
        }
        let mut range = interval.range;
        match last {
            Some(last) if interval.reverse => range.start = Bound::Included(last),
            Some(last) => range.end = Bound::Included(last),
            None => {}
        }
        if interval.reverse {
            result.reverse();
        }
        for position in own {
            let key = self.own.get(*position).row.key.clone();
            if range.contains(&key) {
                self.register_read(interval.table.id, &key, interval.columns);
            }
        }
        self.scans.push(Scan {
            table: interval.table.id,
            range,
            columns: interval.columns | ColumnSet::EXISTS,
            predicate_columns: interval.filter_columns,
            predicate: interval.filter.map(|filter| Arc::new(filter) as Arc<dyn RowPredicate>),
            result,
        });
    }
}

/// A scan on its way.
struct Walk<'b, 'v> {
    interval: &'b Interval<'b>,
    visit: &'v mut VisitKeyed<'v>,
    /// Keys of the rows of the snapshot that the filter is true for.
    result: Vec<Key>,
    /// The row examined last.
    last: Option<Key>,
    registers: bool,
    examined: u64,
    examined_max: u64,
    outcome: Result<ControlFlow<()>, SqlError>,
}

impl Walk<'_, '_> {
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
        self.interval.filter.as_ref().map_or(Ok(true), |filter| filter.is_true(row))
    }

    /// The scan ends where the visitor says so, at an error, and where the steps have run out (which the caller sees).
    fn go_on(&mut self, key: &Key, result: Result<ControlFlow<()>, SqlError>) -> ControlFlow<()> {
        let stop = !matches!(result, Ok(ControlFlow::Continue(()))) || self.examined > self.examined_max;
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

/// The rows of a result while they are made.
struct Output<'b> {
    select: &'b BoundSelect,
    frame: &'b [Value],
    now: i64,
    /// Sort keys and output.
    rows: Vec<(Vec<Value>, Vec<Value>)>,
    seen: BTreeSet<Sortable>,
    /// So many rows are enough, where they come in the wanted order.
    enough: Option<usize>,
}

impl Output<'_> {
    fn take(&mut self, row: &[Value]) -> Result<ControlFlow<()>, SqlError> {
        let environment = Environment { row, frame: self.frame, now: self.now };
        let mut output = Vec::with_capacity(self.select.projection.len());
        for expression in &self.select.projection {
            output.push(expression.evaluate(&environment)?);
        }
        if self.select.distinct && !self.seen.insert(Sortable(output.clone())) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut keys = Vec::with_capacity(self.select.order.len());
        for key in &self.select.order {
            keys.push(match key.output {
                Some(position) => output[position].clone(),
                None => key.expression.evaluate(&environment)?,
            });
        }
        self.rows.push((keys, output));
        let enough =
            self.select.order.is_empty() && self.enough.is_some_and(|enough| self.rows.len() >= enough);
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Sorted, without the first `offset` and beyond `limit`. Equal rows keep the order of their keys.
    fn finish(mut self, offset: usize, limit: Option<usize>) -> Vec<Vec<Value>> {
        let order = &self.select.order;
        if !order.is_empty() {
            self.rows.sort_by(|(left, _), (right, _)| compare_keys(order, left, right));
        }
        let rows = self.rows.into_iter().map(|(_, row)| row).skip(offset);
        rows.take(limit.unwrap_or(usize::MAX)).collect()
    }
}

fn compare_keys(order: &[SortKey], left: &[Value], right: &[Value]) -> Ordering {
    for ((key, left), right) in order.iter().zip(left).zip(right) {
        let result = match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if key.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if key.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if key.descending => right.sort_compare(left),
            (false, false) => left.sort_compare(right),
        };
        if result.is_ne() {
            return result;
        }
    }
    Ordering::Equal
}

/// Refuses a result that is too large for a receipt.
pub(crate) fn check_result_rows(rows: usize) -> Result<(), SqlError> {
    if rows <= limits::RESULT_ROWS_MAX {
        return Ok(());
    }
    let message = format!(
        "the statement returns {rows} rows to the client, the limit is {} (RESULT_ROWS_MAX)",
        limits::RESULT_ROWS_MAX
    );
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Use LIMIT, or read with a plain SELECT."))
}
