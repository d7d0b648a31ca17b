//! SELECT: finding rows, grouping, sorting; and what that registers.

use super::Execution;
use crate::aggregate::{Accumulator, Sortable, compare_key};
use crate::expression::{Environment, Expression, QueryEnvironment, RunSubquery, broken};
use crate::predicate::{CapturedCondition, Condition};
use crate::statement::{
    Access, BoundSelect, Distinctness, From, Grouping, Scanned, SortKey, resolve_key, resolve_range,
};
use crate::table::TablePlan;
use state::{KeyRange, RowPredicate, Scan};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
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

/// What a query is run with.
#[derive(Clone, Copy)]
pub(super) struct Given<'b> {
    /// Variables.
    pub frame: &'b [Value],
    /// What the query around it hands to it.
    pub arguments: &'b [Value],
    /// The columns to the left of the relation that is being read.
    pub left: &'b [Value],
}

/// Where no expression holds a subquery.
pub(super) struct NoSubqueries;

impl RunSubquery for NoSubqueries {
    fn rows(
        &self,
        _: &Arc<BoundSelect>,
        _: &[Value],
        _: Vec<Value>,
        _: Option<usize>,
    ) -> Result<Rc<Vec<Vec<Value>>>, SqlError> {
        Err(broken("a subquery where none was bound"))
    }
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
        self.forget_subqueries();
        self.select_given(select, Given { frame, arguments: &[], left: &[] }, limit)
    }

    /// A statement begins: what subqueries of the one before gave may have changed.
    pub(super) fn forget_subqueries(&mut self) {
        self.subqueries.clear();
    }

    /// The same for a query inside of another one.
    pub(super) fn select_given(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        limit: Option<usize>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let given = Given { left: &[], ..given };
        let offset = self.row_count(select.offset.as_ref(), given.frame, "OFFSET")?.unwrap_or(0);
        let own_limit = self.row_count(select.limit.as_ref(), given.frame, "LIMIT")?;
        let limit = match (own_limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        let mut output = Output {
            select,
            rows: Vec::new(),
            seen: BTreeSet::new(),
            enough: limit.map(|limit| limit.saturating_add(offset)),
        };
        let streams = select.windows.is_empty() && select.filter.is_none() && !select.has_subqueries;
        if !streams || matches!(select.source, From::Relation(_)) {
            self.gathered(select, given, &mut output)?;
        } else {
            let query = QueryEnvironment { arguments: given.arguments, left: &[], subqueries: &NoSubqueries };
            let environment =
                Environment { query: Some(&query), ..Environment::new(&[], given.frame, self.now) };
            match &select.grouping {
                Some(grouping) => {
                    let mut groups = Groups::new(grouping);
                    self.visit_rows(select, given, &mut |row| {
                        groups.add(&Environment { row, ..environment })?;
                        Ok(ControlFlow::Continue(()))
                    })?;
                    for row in groups.finish()? {
                        if output.take_group(grouping, &Environment { row: &row, ..environment })?.is_break()
                        {
                            break;
                        }
                    }
                }
                None => self
                    .visit_rows(select, given, &mut |row| output.take(&Environment { row, ..environment }))?,
            }
        }
        self.charge(output.rows.len() as u64)?;
        Ok(output.finish(offset, limit))
    }

    /// All rows first, then what is made of them: so that subqueries can run in between.
    fn gathered(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        output: &mut Output<'_>,
    ) -> Result<(), SqlError> {
        let rows = match &select.source {
            From::Nothing => vec![Vec::new()],
            From::Table(scanned) => self.table_rows(scanned, given)?,
            From::Relation(relation) => self.relation_rows(relation, given)?,
        };
        if !select.windows.is_empty() {
            return self.windowed(select, rows, given, output);
        }
        let mut groups = select.grouping.as_ref().map(Groups::new);
        for row in rows {
            let go_on = self.with_subqueries(&row, given, |environment| {
                if let Some(filter) = &select.filter
                    && !filter.is_true(environment)?
                {
                    return Ok(ControlFlow::Continue(()));
                }
                match &mut groups {
                    Some(groups) => groups.add(environment).map(ControlFlow::Continue),
                    None => output.take(environment),
                }
            })?;
            if go_on.is_break() {
                break;
            }
        }
        let (Some(grouping), Some(groups)) = (&select.grouping, groups) else { return Ok(()) };
        for row in groups.finish()? {
            let go_on =
                self.with_subqueries(&row, given, |environment| output.take_group(grouping, environment))?;
            if go_on.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The rows that the query is about, with the values of its window functions behind their columns.
    fn windowed(
        &mut self,
        select: &BoundSelect,
        rows: Vec<Vec<Value>>,
        given: Given<'_>,
        output: &mut Output<'_>,
    ) -> Result<(), SqlError> {
        let mut groups = select.grouping.as_ref().map(Groups::new);
        let mut kept = Vec::new();
        for row in rows {
            let keeps = self.with_subqueries(&row, given, |environment| {
                if let Some(filter) = &select.filter
                    && !filter.is_true(environment)?
                {
                    return Ok(false);
                }
                match &mut groups {
                    Some(groups) => groups.add(environment).map(|()| false),
                    None => Ok(true),
                }
            })?;
            if keeps {
                kept.push(row);
            }
        }
        if let (Some(grouping), Some(groups)) = (&select.grouping, groups) {
            for row in groups.finish()? {
                let keeps = self.with_subqueries(&row, given, |environment| match &grouping.having {
                    Some(having) => having.is_true(environment),
                    None => Ok(true),
                })?;
                if keeps {
                    kept.push(row);
                }
            }
        }
        let mut columns = Vec::with_capacity(select.windows.len());
        for window in &select.windows {
            let steps_max = self.context.step_limit.saturating_sub(self.steps);
            let (values, steps) =
                self.with_subqueries(&[], given, |environment| window.values(&kept, environment, steps_max))?;
            self.charge(steps)?;
            columns.push(values.into_iter());
        }
        let width = match &select.grouping {
            Some(grouping) => grouping.keys.len() + grouping.aggregates.len(),
            None => kept.first().map_or(0, Vec::len),
        };
        for mut row in kept {
            row.truncate(width);
            row.extend(columns.iter_mut().map(|column| column.next().unwrap_or_default()));
            if self.with_subqueries(&row, given, |environment| output.take(environment))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates something over a row of a query whose expressions may hold subqueries.
    pub(super) fn with_subqueries<R>(
        &mut self,
        row: &[Value],
        given: Given<'_>,
        evaluate: impl FnOnce(&Environment<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let now = self.now;
        let runner = Runner(RefCell::new(self));
        let query = QueryEnvironment { arguments: given.arguments, left: given.left, subqueries: &runner };
        evaluate(&Environment { row, frame: given.frame, now, query: Some(&query) })
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

    /// Visits the rows of the source that the WHERE is true for, in key order.
    fn visit_rows(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<(), SqlError> {
        match &select.source {
            From::Nothing => visit(&[]).map(drop),
            From::Table(scanned) => self.visit_table(scanned, given, select.reverse, visit),
            From::Relation(_) => Err(broken("the rows of several relations are gathered first")),
        }
    }

    /// The rows of a table that its conditions are true for, in key order.
    pub(super) fn table_rows(
        &mut self,
        scanned: &Scanned,
        given: Given<'_>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut rows = Vec::new();
        self.visit_table(scanned, given, false, &mut |row| {
            rows.push(row.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    fn visit_table(
        &mut self,
        scanned: &Scanned,
        given: Given<'_>,
        reverse: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), SqlError> {
        match &scanned.access {
            Access::Key(parts) => {
                let key = self.with_subqueries(&[], given, |environment| resolve_key(parts, environment))?;
                let Some(key) = key else { return Ok(()) };
                self.charge(1)?;
                self.register_read(scanned.table.id, &key, scanned.columns);
                let Some(row) = self.current(scanned.table.id, &key) else { return Ok(()) };
                if let Some(filter) = &scanned.filter
                    && !self.with_subqueries(&row, given, |environment| filter.is_true_in(environment))?
                {
                    return Ok(());
                }
                visit(&row).map(drop)
            }
            Access::Range { equal, lower, upper } => {
                let range = self.with_subqueries(&[], given, |environment| {
                    resolve_range(equal, lower, upper, environment)
                })?;
                let Some(range) = range else { return Ok(()) };
                let filter = match &scanned.filter {
                    Some(filter) => {
                        Some(self.with_subqueries(&[], given, |environment| filter.with_values(environment))?)
                    }
                    None => None,
                };
                let interval = Interval {
                    table: &scanned.table,
                    range,
                    reverse,
                    columns: scanned.columns,
                    filter_columns: scanned.filter_columns,
                    filter,
                };
                self.scan(interval, &mut |_, row| visit(row))
            }
            Access::Found(_) => Err(broken("a query finds what is changed, not what is read")),
        }
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
        let environment = self.environment(&[], frame);
        let filter = filter.as_ref().map(|filter| filter.with_values(&environment)).transpose()?;
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

/// Runs subqueries in the execution that their query runs in.
struct Runner<'e, 'x>(RefCell<&'e mut Execution<'x>>);

impl RunSubquery for Runner<'_, '_> {
    fn rows(
        &self,
        query: &Arc<BoundSelect>,
        frame: &[Value],
        arguments: Vec<Value>,
        limit: Option<usize>,
    ) -> Result<Rc<Vec<Vec<Value>>>, SqlError> {
        let mut execution = self.0.try_borrow_mut().map_err(|_| broken("a subquery inside of itself"))?;
        // The same query gives the same rows for the same arguments as long as the statement runs.
        let known_as = (Arc::as_ptr(query) as usize, limit, Sortable(arguments));
        if let Some(known) = execution.subqueries.get(&known_as) {
            return Ok(known.clone());
        }
        execution.enter_query()?;
        let given = Given { frame, arguments: &known_as.2.0, left: &[] };
        let rows = execution.select_given(query, given, limit);
        execution.leave_query();
        let rows = Rc::new(rows?);
        execution.subqueries.remember(known_as, rows.clone());
        Ok(rows)
    }
}

/// A subquery (where its plan stands in memory), its limit, and what it is handed.
type SubqueryRun = (usize, Option<usize>, Sortable);

/// Rows of subqueries that have run in a statement.
#[derive(Default)]
pub(super) struct KnownSubqueries {
    rows: BTreeMap<SubqueryRun, Rc<Vec<Vec<Value>>>>,
    values: usize,
}

impl KnownSubqueries {
    /// Values that are remembered.
    const VALUES_MAX: usize = 1 << 18;

    fn clear(&mut self) {
        self.rows.clear();
        self.values = 0;
    }

    fn get(&self, key: &SubqueryRun) -> Option<&Rc<Vec<Vec<Value>>>> {
        self.rows.get(key)
    }

    fn remember(&mut self, key: SubqueryRun, rows: Rc<Vec<Vec<Value>>>) {
        let values = key.2.0.len() + rows.iter().map(Vec::len).sum::<usize>() + 1;
        if self.values + values <= KnownSubqueries::VALUES_MAX {
            self.values += values;
            self.rows.insert(key, rows);
        }
    }
}

/// The groups of a query while they are made.
struct Groups<'b> {
    grouping: &'b Grouping,
    groups: BTreeMap<Sortable, Vec<Accumulator<'b>>>,
}

impl<'b> Groups<'b> {
    fn new(grouping: &'b Grouping) -> Groups<'b> {
        let mut groups = Groups { grouping, groups: BTreeMap::new() };
        if grouping.keys.is_empty() {
            groups.groups.insert(Sortable(Vec::new()), accumulators(grouping));
        }
        groups
    }

    fn add(&mut self, environment: &Environment<'_>) -> Result<(), SqlError> {
        let keys = self.grouping.keys.iter().map(|key| key.evaluate(environment));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let group = self.groups.entry(Sortable(keys)).or_insert_with(|| accumulators(self.grouping));
        group.iter_mut().try_for_each(|accumulator| accumulator.add(environment))
    }

    /// A row per group, by the keys: the keys, then the aggregates.
    fn finish(self) -> Result<Vec<Vec<Value>>, SqlError> {
        let row = |(Sortable(mut row), group): (Sortable, Vec<Accumulator<'_>>)| {
            for accumulator in group {
                row.push(accumulator.finish()?);
            }
            Ok(row)
        };
        self.groups.into_iter().map(row).collect()
    }
}

fn accumulators(grouping: &Grouping) -> Vec<Accumulator<'_>> {
    grouping.aggregates.iter().map(Accumulator::new).collect()
}

/// The rows of a result while they are made.
struct Output<'b> {
    select: &'b BoundSelect,
    /// Sort keys and output.
    rows: Vec<(Vec<Value>, Vec<Value>)>,
    seen: BTreeSet<Sortable>,
    /// So many rows are enough, where they come in the wanted order.
    enough: Option<usize>,
}

impl Output<'_> {
    fn take_group(
        &mut self,
        grouping: &Grouping,
        environment: &Environment<'_>,
    ) -> Result<ControlFlow<()>, SqlError> {
        match &grouping.having {
            Some(having) if !having.is_true(environment)? => Ok(ControlFlow::Continue(())),
            _ => self.take(environment),
        }
    }

    fn take(&mut self, environment: &Environment<'_>) -> Result<ControlFlow<()>, SqlError> {
        let mut output = Vec::with_capacity(self.select.projection.len());
        for expression in &self.select.projection {
            output.push(expression.evaluate(environment)?);
        }
        if self.select.distinct == Distinctness::Distinct && !self.seen.insert(Sortable(output.clone())) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut keys = Vec::with_capacity(self.select.order.len());
        for key in &self.select.order {
            keys.push(match key.output {
                Some(position) => output[position].clone(),
                None => key.expression.evaluate(environment)?,
            });
        }
        if let Distinctness::On(expressions) = &self.select.distinct {
            for expression in expressions {
                keys.push(expression.evaluate(environment)?);
            }
        }
        self.rows.push((keys, output));
        let streams = self.select.order.is_empty() && !matches!(self.select.distinct, Distinctness::On(_));
        let enough = streams && self.enough.is_some_and(|enough| self.rows.len() >= enough);
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Sorted, without the first `offset` and beyond `limit`. Equal rows keep the order of their keys.
    fn finish(mut self, offset: usize, limit: Option<usize>) -> Vec<Vec<Value>> {
        let order = &self.select.order;
        if !order.is_empty() {
            self.rows.sort_by(|(left, _), (right, _)| compare_keys(order, left, right));
        }
        if let Distinctness::On(_) = self.select.distinct {
            let mut seen = BTreeSet::new();
            self.rows.retain(|(keys, _)| seen.insert(Sortable(keys[order.len()..].to_vec())));
        }
        let rows = self.rows.into_iter().map(|(_, row)| row).skip(offset);
        rows.take(limit.unwrap_or(usize::MAX)).collect()
    }
}

fn compare_keys(order: &[SortKey], left: &[Value], right: &[Value]) -> Ordering {
    let keys = order.iter().zip(left.iter().zip(right));
    keys.map(|(key, (left, right))| compare_key(key.descending, key.nulls_first, left, right))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
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
