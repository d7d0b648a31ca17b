//! A fragment of a query from its plan to its rows: translated, lowered, run.

use crate::interrupted::Interrupted;
use crate::lower::{Joins, Lower};
use crate::memory::QueryMemory;
use crate::question::{Groups, Listed, Relation, Scalars, Table, Translation};
use crate::reason::OnRows;
use arrow_array::RecordBatch;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::ExecutionPlan;
use futures::TryStreamExt as _;
use plan::expression::{Environment, Expression, Kind};
use plan::logical::LogicalPlan;
use plan::statement::AccessPath;
use sql::{Fragment, RunFragments};
use state::Snapshot;
use std::cell::Cell;
use std::cmp::Ordering;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use types::Value;

/// Tables with fewer rows together are read faster row by row.
const ROWS_MIN: u64 = 3_000;

/// Rows of a batch where memory is short.
const SMALL_BATCH_ROWS: usize = 1_024;

/// Of a query without groups, more rows are found row by row: they have to become rows anyway.
const LISTED_MAX: usize = 100_000;

/// Runs fragments of queries with operators of DataFusion over the columns of a snapshot, on one thread.
#[derive(Clone, Copy, Debug)]
pub struct DataFusion {
    rows_min: u64,
}

impl Default for DataFusion {
    fn default() -> DataFusion {
        DataFusion { rows_min: ROWS_MIN }
    }
}

impl DataFusion {
    /// Of queries over tables that have so many rows together.
    pub fn from_rows(rows_min: u64) -> DataFusion {
        DataFusion { rows_min }
    }
}

impl RunFragments for DataFusion {
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>> {
        let mut rows = found(fragment, self.rows_min, Joins::Hashed);
        if rows.as_ref().is_err_and(|reason| reason.lacks_memory) {
            rows = found(fragment, self.rows_min, Joins::Merged);
        }
        if let Err(reason) = &rows {
            tracing::debug!(%reason, "a query stays on rows");
        }
        rows.ok()
    }

    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String> {
        let possible = possible(fragment, self.rows_min).and_then(|question| {
            dry(&question, fragment)?;
            Ok(question)
        });
        let question = possible.map_err(|reason| reason.to_string())?;
        let mut tables = Vec::new();
        question.input().visit_tables(&mut |table| {
            let rows = fragment.snapshot.about_rows(table.plan.id).unwrap_or_default();
            let table = format!("{} (about {rows} rows)", table.plan.name);
            if !tables.contains(&table) {
                tables.push(table);
            }
        });
        Ok(tables.join(", "))
    }
}

/// The rows of a fragment.
fn found(fragment: &Fragment<'_>, rows_min: u64, joins: Joins) -> Result<Vec<Vec<Value>>, OnRows> {
    let mut question = possible(fragment, rows_min)?;
    let interrupted = Interrupted::of(fragment.interrupt);
    let lower = lower(Some(fragment.snapshot), fragment, &interrupted, joins);
    if question.needs_values {
        // Whether all can be done is found out before any value of a query inside is computed.
        dry(&question, fragment)?;
        let values = |groups: &LogicalPlan, output: &Expression| value(groups, output, lower, fragment);
        question = translated(fragment.plan, &values)?;
    }
    match &question.asked {
        Asked::Groups(groups) => {
            let mut found = run(groups, lower, fragment)?;
            if found.is_empty() && groups.keys.is_empty() {
                return Err(OnRows::because("no row for all rows"));
            }
            sort_by_keys(&mut found, groups.keys.len());
            Ok(found)
        }
        Asked::Listed(listed) => {
            let top = lower.listed(listed)?;
            top.rows(&collected(top.operator.clone(), lower, fragment, LISTED_MAX)?)
        }
    }
}

/// What is asked for, where it is worth it; values of queries inside are NULL.
fn possible(fragment: &Fragment<'_>, rows_min: u64) -> Result<Question, OnRows> {
    let needs_values = Cell::new(false);
    let nothing = |_: &LogicalPlan, _: &Expression| {
        needs_values.set(true);
        Ok(Value::Null)
    };
    let mut question = translated(fragment.plan, &nothing)?;
    question.needs_values = needs_values.get();
    let read = rows_read(question.input(), fragment.snapshot)?;
    match read < rows_min {
        true => Err(OnRows::because(format_args!("{read} rows are few"))),
        false => Ok(question),
    }
}

/// Finds out whether all of a question can be done; nothing is read.
fn dry(question: &Question, fragment: &Fragment<'_>) -> Result<(), OnRows> {
    let interrupted = Interrupted::of(fragment.interrupt);
    let lower = lower(None, fragment, &interrupted, Joins::Hashed);
    match &question.asked {
        Asked::Groups(groups) => lower.top(groups).map(|_| ()),
        Asked::Listed(listed) => lower.listed(listed).map(|_| ()),
    }
}

fn lower<'a>(
    snapshot: Option<&'a dyn Snapshot>,
    fragment: &Fragment<'a>,
    interrupted: &'a Interrupted,
    joins: Joins,
) -> Lower<'a> {
    Lower { snapshot, frame: fragment.frame, now: fragment.now, interrupted, joins }
}

fn sort_by_keys(rows: &mut [Vec<Value>], keys: usize) {
    rows.sort_by(|one, other| {
        let keys = one[..keys].iter().zip(other);
        keys.map(|(one, other)| one.sort_compare(other))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
}

/// What a fragment asks for.
struct Question {
    asked: Asked,
    /// Values of queries inside are still to be put in.
    needs_values: bool,
}

enum Asked {
    Groups(Groups),
    Listed(Listed),
}

impl Question {
    fn input(&self) -> &Relation {
        match &self.asked {
            Asked::Groups(groups) => &groups.input,
            Asked::Listed(listed) => &listed.input,
        }
    }
}

fn translated(plan: &LogicalPlan, scalars: &Scalars<'_>) -> Result<Question, OnRows> {
    let asked = match plan {
        LogicalPlan::Aggregate { .. } => Asked::Groups(translated_groups(plan, scalars)?),
        rows => Asked::Listed(Translation::new(scalars).listed(rows)?),
    };
    Ok(Question { asked, needs_values: false })
}

fn translated_groups(plan: &LogicalPlan, scalars: &Scalars<'_>) -> Result<Groups, OnRows> {
    let LogicalPlan::Aggregate { input, keys, aggregates } = plan else {
        return Err(OnRows::because("no groups are asked for"));
    };
    Translation::new(scalars).groups(input, keys, aggregates)
}

/// The value of a query that gives one row, whatever there is.
fn value(
    plan: &LogicalPlan,
    output: &Expression,
    lower: Lower<'_>,
    fragment: &Fragment<'_>,
) -> Result<Value, OnRows> {
    let values = |groups: &LogicalPlan, output: &Expression| value(groups, output, lower, fragment);
    let groups = translated_groups(plan, &values)?;
    let rows = run(&groups, lower, fragment)?;
    let row = rows.first().ok_or_else(|| OnRows::because("no row for all rows"))?;
    Ok(output.evaluate(&Environment::new(row, fragment.frame, fragment.now))?)
}

/// About how many rows the tables have.
fn rows_read(input: &Relation, snapshot: &dyn Snapshot) -> Result<u64, OnRows> {
    if input.leading_table().is_some_and(is_found_by_key) {
        return Err(OnRows::because("a key or an index finds the rows"));
    }
    let mut read = Some(0_u64);
    input.visit_tables(&mut |table| {
        read = read.zip(snapshot.about_rows(table.plan.id)).map(|(read, rows)| read.saturating_add(rows));
    });
    read.ok_or_else(|| OnRows::because("the store keeps no columns"))
}

/// Whether some column of a key or an index equals a value: few rows do, and an index finds them.
fn is_found_by_key(table: &Table) -> bool {
    let mut conditions = table.conditions.clone();
    conditions.iter_mut().for_each(|condition| number_from(condition, table.first));
    match AccessPath::choose(&table.plan, &conditions).0 {
        AccessPath::Key(_) => true,
        AccessPath::Range(interval) => !interval.equal.is_empty(),
        AccessPath::Index(index) => !index.interval.equal.is_empty() || !index.within.equal.is_empty(),
    }
}

/// Numbers columns as their table does.
fn number_from(expression: &mut Expression, first: usize) {
    if let Kind::Column(ordinal) = &mut expression.kind {
        *ordinal -= first as u16;
    }
    expression.operands_mut().into_iter().for_each(|operand| number_from(operand, first));
}

/// Runs the operators of groups on this thread.
fn run(groups: &Groups, lower: Lower<'_>, fragment: &Fragment<'_>) -> Result<Vec<Vec<Value>>, OnRows> {
    let top = lower.top(groups)?;
    let batches = collected(top.operator.clone(), lower, fragment, usize::MAX)?;
    top.rows(&batches)
}

/// One thread. Where memory is short, sorts write and merge small batches, and put no more than an eighth of it aside for that.
fn config(fragment: &Fragment<'_>, joins: Joins) -> SessionConfig {
    let mut config = SessionConfig::new().with_target_partitions(1);
    if joins == Joins::Merged {
        config = config.with_batch_size(SMALL_BATCH_ROWS);
    }
    let aside = config.options().execution.sort_spill_reservation_bytes;
    let most = fragment.memory.map_or(usize::MAX, |memory| memory.most() as usize / 8);
    config.with_sort_spill_reservation_bytes(aside.min(most))
}

fn collected(
    operator: Arc<dyn ExecutionPlan>,
    Lower { interrupted, joins, .. }: Lower<'_>,
    fragment: &Fragment<'_>,
    rows_max: usize,
) -> Result<Vec<RecordBatch>, OnRows> {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(QueryMemory::of(fragment.memory)));
    let context = TaskContext::default()
        .with_session_config(config(fragment, joins))
        .with_runtime(Arc::new(runtime.build()?));
    // What spills to the disk is written and read by this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(OnRows::because)?;
    let _entered = runtime.enter();
    let mut stream = operator.execute(0, Arc::new(context))?;
    let (mut batches, mut rows) = (Vec::new(), 0);
    // Operators that can give many rows for few let go from time to time, and are polled again: see `lower::join`.
    let mut next = || {
        let stream = &mut stream;
        runtime.block_on(poll_fn(|context| match interrupted.check() {
            Ok(()) => stream.try_poll_next_unpin(context),
            Err(error) => Poll::Ready(Some(Err(error))),
        }))
    };
    while let Some(batch) = next().transpose()? {
        rows += batch.num_rows();
        if rows > rows_max {
            return Err(OnRows::because(format_args!("more than {rows_max} rows")));
        }
        batches.push(batch);
    }
    Ok(batches)
}
