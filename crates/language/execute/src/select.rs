//! SELECT: grouping and sorting of the rows that were found.

use crate::distinct::DistinctRows;
use crate::execution::Execution;
use crate::grouping::Groups;
use crate::scratch::{KeyOrder, RowList, Rows, Sorted, Sorter, named};
use crate::sorting::Sortable;
use crate::subqueries::Given;
use crate::window::window_values;
use plan::expression::{
    Environment, Expression, Memory, QueryEnvironment, RunSubquery, row_space, rows_space,
};
use plan::polymorphic::Callee;
use plan::statement::{BoundSelect, Distinctness, From, Grouping};
use plan::window::WindowCall;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use types::{SqlError, SqlState, Value, assign, limits};
use values::broken;

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

    fn call(&self, _: &Callee, _: Vec<Value>) -> Result<Vec<Value>, SqlError> {
        Err(broken("a function where none was bound"))
    }
}

impl Execution<'_> {
    /// Runs a SELECT and gives its rows, at most `limit`. Who keeps them says so (`Execution::memory`).
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
        let held = self.meter.memory.held();
        let rows = self.select_given(select, Given { frame, arguments: &[], left: &[] }, limit);
        self.meter.memory.release_to(held);
        self.see_newer();
        rows
    }

    /// A statement begins: what subqueries of the one before gave may have changed.
    pub(super) fn forget_subqueries(&mut self) {
        self.running.subqueries.clear();
    }

    /// Runs a SELECT and hands out its rows as they are found, until `take` says that it is enough.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn select_each(
        &mut self,
        select: &BoundSelect,
        frame: &[Value],
        take: &mut TakeRow<'_>,
    ) -> Result<(), SqlError> {
        self.forget_subqueries();
        let given = Given { frame, arguments: &[], left: &[] };
        let rest = self.select_handing_out(select, given, None, Some(take));
        self.see_newer();
        for row in rest? {
            if take(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The same for a query inside of another one.
    pub(super) fn select_given(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        limit: Option<usize>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        self.select_handing_out(select, given, limit, None)
    }

    /// Rows that come in their order go to `take`, where there is one; gives the others, and holds nothing but these when
    /// it ends.
    pub(super) fn select_handing_out(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        limit: Option<usize>,
        take: Option<&mut TakeRow<'_>>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        match select.locks() {
            None => self.select_plain(select, given, limit, take),
            Some(locked) => self.select_locking(select, locked, given, limit, take),
        }
    }

    /// The same for a query of which nothing is locked, or whose rows still have their keys.
    pub(super) fn select_plain(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        limit: Option<usize>,
        take: Option<&mut TakeRow<'_>>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let held = self.meter.memory.held();
        let rows = self.measured(|execution| execution.select_holding(select, given, limit, take));
        self.meter.memory.release_to(held);
        let rows = rows?;
        self.meter.memory.hold(rows_space(&rows))?;
        Ok(rows)
    }

    fn select_holding(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        limit: Option<usize>,
        take: Option<&mut TakeRow<'_>>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        if let Some(lock) = select.lock.filter(|_| self.on.read_only) {
            return Err(SqlError::not_in_read_only(&format!("SELECT {lock}")));
        }
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
            rows: Sorter::new(KeyOrder::By(&select.order), self.on.scratch.clone()),
            distinct: DistinctRows::new(self.on.scratch.clone()),
            enough: limit.map(|limit| limit.saturating_add(offset)),
            found: 0,
            offset,
            take,
        };
        let streams = select.windows.is_empty() && select.filter.is_none() && !select.has_subqueries;
        if !streams || matches!(select.source, From::Relation(_)) {
            self.gathered(select, given, &mut output)?;
        } else {
            let memory = self.meter.memory.clone();
            let query = QueryEnvironment {
                arguments: given.arguments,
                left: &[],
                subqueries: &NoSubqueries,
                memory: &memory,
            };
            let environment =
                Environment { query: Some(&query), ..Environment::new(&[], given.frame, self.on.now) };
            match &select.grouping {
                Some(grouping) => {
                    let mut groups = Groups::new(grouping, self.on.scratch.clone());
                    self.visit_rows(select, given, &mut |row| {
                        groups.add(&Environment { row, ..environment })?;
                        Ok(ControlFlow::Continue(()))
                    })?;
                    if groups.are_late() {
                        groups.finish_each(&environment, &mut |row| {
                            output.take_group(grouping, &Environment { row: &row, ..environment })
                        })?;
                        return self.finished(output, limit);
                    }
                    for row in groups.finish(&environment)? {
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
        self.finished(output, limit)
    }

    /// The rows in their order, without those that OFFSET and LIMIT leave out.
    fn finished(
        &mut self,
        mut output: Output<'_, '_>,
        limit: Option<usize>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let memory = self.meter.memory.clone();
        output.take_late(&memory)?;
        self.charge(output.found as u64)?;
        let Output { select, rows, offset, mut take, .. } = output;
        let (is_on, most) = (matches!(select.distinct, Distinctness::On(_)), limit.unwrap_or(usize::MAX));
        let mut sorted = match rows.finish()? {
            Sorted::Held(rows) if !is_on && !select.ties => {
                return Ok(rows.map(|(_, row)| row).skip(offset).take(most).collect());
            }
            sorted => sorted,
        };
        let is_written = sorted.is_written();
        // What is read again from files is counted where it is held.
        let hold = |width: usize| if is_written { memory.hold_row(width) } else { Ok(()) };
        let mut seen = BTreeSet::new();
        let (mut rows, mut left_out, mut given) = (Vec::new(), 0, 0);
        let mut last = Vec::new();
        while (given < most || select.ties)
            && let Some((mut keys, row)) = sorted.next()?
        {
            self.charge(0)?;
            if given >= most && KeyOrder::By(&select.order).compare(&last, &keys).is_ne() {
                break;
            }
            if is_on {
                let on = keys.split_off(select.order.len());
                hold(on.len())?;
                if !seen.insert(Sortable(on)) {
                    continue;
                }
            }
            if left_out < offset {
                left_out += 1;
                continue;
            }
            given += 1;
            if select.ties && given == most {
                last = keys;
            }
            match &mut take {
                Some(take) if is_written => {
                    if take(row).is_break() {
                        break;
                    }
                }
                _ => {
                    hold(row.len())?;
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    /// All rows first, then what is made of them: so that subqueries can run in between.
    fn gathered(
        &mut self,
        select: &BoundSelect,
        given: Given<'_>,
        output: &mut Output<'_, '_>,
    ) -> Result<(), SqlError> {
        let rows = match &select.source {
            From::Nothing => Rows::Held(vec![Vec::new()]),
            From::Table(scanned) => self.table_rows(scanned, given)?,
            From::Relation(relation) => self.relation_rows(relation, given)?,
        };
        if !select.windows.is_empty() {
            return self.windowed(select, rows, given, output);
        }
        let scratch = self.on.scratch.clone();
        let mut groups = select.grouping.as_ref().map(|grouping| Groups::new(grouping, scratch));
        let mut rows = rows.into_each();
        while let Some(row) = rows.next()? {
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
        if groups.are_late() {
            return self.with_subqueries(&[], given, |environment| {
                groups.finish_each(environment, &mut |row| {
                    output.take_group(grouping, &Environment { row: &row, ..*environment })
                })
            });
        }
        for row in self.with_subqueries(&[], given, |environment| groups.finish(environment))? {
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
        rows: Rows,
        given: Given<'_>,
        output: &mut Output<'_, '_>,
    ) -> Result<(), SqlError> {
        let kept = self.rows_of_windows(select, rows, given)?;
        let kept = match (kept, self.on.scratch.clone()) {
            (Rows::Held(kept), None) => kept,
            (Rows::Held(kept), Some(_)) if self.has_room_for(&select.windows, kept.len()) => kept,
            (kept, Some(scratch)) => {
                let mut rows = self.with_windows(&select.windows, kept, given, &named(&scratch, "OVER"))?;
                while let Some(row) = rows.next()? {
                    if self.with_subqueries(&row, given, |environment| output.take(environment))?.is_break() {
                        break;
                    }
                }
                return Ok(());
            }
            (Rows::Written { .. }, None) => return Err(broken("rows in a file where there are none")),
        };
        // Where transactions run, what is counted stays what it was.
        let returned = self.on.scratch.as_ref().map(|_| self.meter.memory.clone());
        let mut columns = Vec::with_capacity(select.windows.len());
        for window in &select.windows {
            self.meter.memory.hold(space_of(window).saturating_mul(kept.len() as u64))?;
            let steps_max = self.on.context.step_limit.saturating_sub(self.meter.steps);
            let (values, steps) = self.with_subqueries(&[], given, |environment| {
                window_values(window, &kept, environment, steps_max, returned.as_deref())
            })?;
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

    /// The rows that window functions look at: those that the filter leaves, or groups.
    fn rows_of_windows(
        &mut self,
        select: &BoundSelect,
        rows: Rows,
        given: Given<'_>,
    ) -> Result<Rows, SqlError> {
        let (scratch, memory) = (self.on.scratch.clone(), self.meter.memory.clone());
        // What is held was counted when it was found; what comes from files, and groups where there are files, is not.
        let is_counted = matches!(rows, Rows::Held(_));
        let space = |row: &Vec<Value>, is_counted: bool| if is_counted { 0 } else { row_space(row.len()) };
        let mut groups = select.grouping.as_ref().map(|grouping| Groups::new(grouping, scratch.clone()));
        let mut kept = RowList::new(scratch.clone());
        let mut rows = rows.into_each();
        while let Some(row) = rows.next()? {
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
                kept.push(&memory, space(&row, is_counted), row)?;
            }
        }
        let (Some(grouping), Some(groups)) = (&select.grouping, groups) else { return kept.complete() };
        let keeps = |environment: &Environment<'_>| match &grouping.having {
            Some(having) => having.is_true(environment),
            None => Ok(true),
        };
        let is_counted = scratch.is_none();
        if groups.are_late() {
            self.with_subqueries(&[], given, |environment| {
                groups.finish_each(environment, &mut |row| {
                    if keeps(&Environment { row: &row, ..*environment })? {
                        kept.push(&memory, space(&row, is_counted), row)?;
                    }
                    Ok(ControlFlow::Continue(()))
                })
            })?;
            return kept.complete();
        }
        for row in self.with_subqueries(&[], given, |environment| groups.finish(environment))? {
            if self.with_subqueries(&row, given, keeps)? {
                kept.push(&memory, space(&row, is_counted), row)?;
            }
        }
        kept.complete()
    }

    /// Whether the values of windows of so many rows fit into memory.
    fn has_room_for(&self, windows: &[WindowCall], rows: usize) -> bool {
        let space = windows.iter().map(space_of).fold(0, u64::saturating_add).saturating_mul(rows as u64);
        let fits = self.meter.memory.hold(space).is_ok();
        self.meter.memory.release(space);
        fits
    }

    /// Evaluates something over a row of a query whose expressions may hold subqueries.
    pub(super) fn with_subqueries<R>(
        &mut self,
        row: &[Value],
        given: Given<'_>,
        evaluate: impl FnOnce(&Environment<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let (now, memory) = (self.on.now, self.meter.memory.clone());
        self.measured(|execution| {
            let runner = Runner(RefCell::new(execution));
            let query = QueryEnvironment {
                arguments: given.arguments,
                left: given.left,
                subqueries: &runner,
                memory: &memory,
            };
            evaluate(&Environment { row, frame: given.frame, now, query: Some(&query) })
        })
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
}

/// What the value of a window function takes, with the keys of its row.
fn space_of(window: &WindowCall) -> u64 {
    row_space(window.partition.len() + window.order.len() + 1)
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
        if let Some(known) = execution.running.subqueries.get(&known_as) {
            return Ok(known.clone());
        }
        execution.enter_query()?;
        let held = execution.meter.memory.held();
        let given = Given { frame, arguments: &known_as.2.0, left: &[] };
        let rows = execution.select_given(query, given, limit);
        execution.leave_query();
        // What is remembered has a bound of its own.
        execution.meter.memory.release_to(held);
        let rows = Rc::new(rows?);
        execution.running.subqueries.remember(known_as, rows.clone());
        Ok(rows)
    }

    fn call(&self, function: &Callee, arguments: Vec<Value>) -> Result<Vec<Value>, SqlError> {
        let mut execution = self.0.try_borrow_mut().map_err(|_| broken("a function inside of itself"))?;
        Ok(execution.call_function(function, arguments)?.values)
    }
}

/// Takes a row of a result; says whether there may be more.
pub type TakeRow<'t> = dyn FnMut(Vec<Value>) -> ControlFlow<()> + 't;

/// The rows of a result while they are made.
struct Output<'b, 't> {
    select: &'b BoundSelect,
    /// By their sort keys, where they are not handed out. Behind those of a query that locks stands the key of their row.
    rows: Sorter<'b>,
    distinct: DistinctRows,
    /// So many rows are enough, where they come in the wanted order.
    enough: Option<usize>,
    /// So many there were.
    found: usize,
    /// So many of them are left out.
    offset: usize,
    /// Takes rows that come in the wanted order, which are not kept then.
    take: Option<&'b mut TakeRow<'t>>,
}

impl Output<'_, '_> {
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
        let memory = environment.query.map(|query| query.memory);
        let memory = memory.ok_or_else(|| broken("rows of a result outside of a query"))?;
        let mut output = Vec::with_capacity(self.select.projection.len());
        for expression in &self.select.projection {
            output.push(expression.evaluate(environment)?);
        }
        if self.select.locks().is_some() {
            output.extend(environment.row.last().cloned());
        }
        let is_first = match self.select.distinct {
            Distinctness::Distinct => self.distinct.is_first(memory, &output)?,
            _ => Some(true),
        };
        if is_first == Some(false) {
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
        match is_first {
            None => self.distinct.put_off(memory, output, keys).map(ControlFlow::Continue),
            _ => self.put(memory, output, keys),
        }
    }

    fn put(
        &mut self,
        memory: &Memory,
        output: Vec<Value>,
        keys: Vec<Value>,
    ) -> Result<ControlFlow<()>, SqlError> {
        self.found += 1;
        let streams = self.select.order.is_empty() && !matches!(self.select.distinct, Distinctness::On(_));
        let mut enough = streams && self.enough.is_some_and(|enough| self.found >= enough);
        match &mut self.take {
            Some(take) if streams => enough |= self.found > self.offset && take(output).is_break(),
            _ => self.rows.push(memory, keys, output)?,
        }
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The rows of which it was not known whether they are the first of their kind.
    fn take_late(&mut self, memory: &Memory) -> Result<(), SqlError> {
        let mut distinct = std::mem::replace(&mut self.distinct, DistinctRows::new(None));
        distinct.later(memory, &mut |output, keys| self.put(memory, output, keys))
    }
}

/// Refuses a result that is too large for a receipt.
pub fn check_result_rows(rows: usize) -> Result<(), SqlError> {
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
