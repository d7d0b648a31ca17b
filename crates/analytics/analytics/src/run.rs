//! The groups of a query from its plan: translated, lowered, run, and handed out as rows.

use crate::interrupted::Interrupted;
use crate::lower::Lower;
use crate::memory::QueryMemory;
use crate::question::{Groups, Listed, Relation, Scalars, Table, Translation};
use crate::reason::OnRows;
use arrow_array::RecordBatch;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::ExecutionPlan;
use futures::TryStreamExt;
use plan::expression::{Environment, Expression, Kind};
use plan::logical::LogicalPlan;
use plan::statement::AccessPath;
use sql::{MakeGroups, WantedGroups};
use state::Snapshot;
use std::cmp::Ordering;
use std::sync::Arc;
use types::Value;

/// Tables with fewer rows together are read faster row by row.
const ROWS_MIN: u64 = 3_000;

/// Of a query without groups, more rows are found row by row: they have to become rows anyway.
const LISTED_MAX: usize = 100_000;

/// Makes groups with operators of DataFusion over the columns of a snapshot, on one thread.
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

impl MakeGroups for DataFusion {
    fn groups(&self, wanted: &WantedGroups<'_>) -> Option<Vec<Vec<Value>>> {
        let groups = made(wanted, self.rows_min);
        if let Err(reason) = &groups {
            tracing::debug!(%reason, "a query stays on rows");
        }
        groups.ok()
    }

    fn explain(&self, wanted: &WantedGroups<'_>) -> Result<String, String> {
        let question = possible(wanted, self.rows_min).map_err(|reason| reason.to_string())?;
        let mut tables = Vec::new();
        question.input().visit_tables(&mut |table| {
            let rows = wanted.snapshot.about_rows(table.plan.id).unwrap_or_default();
            let table = format!("{} (about {rows} rows)", table.plan.name);
            if !tables.contains(&table) {
                tables.push(table);
            }
        });
        Ok(tables.join(", "))
    }
}

fn made(wanted: &WantedGroups<'_>, rows_min: u64) -> Result<Vec<Vec<Value>>, OnRows> {
    // Whether all can be done is found out before any value of a query inside is computed.
    possible(wanted, rows_min)?;
    let interrupted = Interrupted::of(wanted.interrupt);
    let (frame, now) = (wanted.frame, wanted.now);
    let lower = Lower { snapshot: Some(wanted.snapshot), frame, now, interrupted: &interrupted };
    let values = |groups: &LogicalPlan, output: &Expression| value(groups, output, lower, wanted);
    match translated(wanted.plan, &values)? {
        Question::Groups(groups) => {
            let mut found = run(&groups, lower, wanted)?;
            if found.is_empty() && groups.keys.is_empty() {
                return Err(OnRows::because("no row for all rows"));
            }
            sort_by_keys(&mut found, groups.keys.len());
            Ok(found)
        }
        Question::Listed(listed) => {
            let top = lower.listed(&listed)?;
            top.rows(&collected(top.operator.clone(), wanted, LISTED_MAX)?)
        }
    }
}

/// What is asked for, where all of it can be done; nothing is read.
fn possible(wanted: &WantedGroups<'_>, rows_min: u64) -> Result<Question, OnRows> {
    let nothing = |_: &LogicalPlan, _: &Expression| Ok(Value::Null);
    let question = translated(wanted.plan, &nothing)?;
    let read = rows_read(question.input(), wanted.snapshot)?;
    if read < rows_min {
        return Err(OnRows::because(format_args!("{read} rows are few")));
    }
    let interrupted = Interrupted::of(wanted.interrupt);
    let (frame, now) = (wanted.frame, wanted.now);
    operator(&question, Lower { snapshot: None, frame, now, interrupted: &interrupted })?;
    Ok(question)
}

fn sort_by_keys(rows: &mut [Vec<Value>], keys: usize) {
    rows.sort_by(|one, other| {
        let keys = one[..keys].iter().zip(other);
        keys.map(|(one, other)| one.sort_compare(other))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
}

/// What a plan asks for.
enum Question {
    Groups(Groups),
    Listed(Listed),
}

impl Question {
    fn input(&self) -> &Relation {
        match self {
            Question::Groups(groups) => &groups.input,
            Question::Listed(listed) => &listed.input,
        }
    }
}

fn translated(plan: &LogicalPlan, scalars: &Scalars<'_>) -> Result<Question, OnRows> {
    Ok(match plan {
        LogicalPlan::Aggregate { .. } => Question::Groups(translated_groups(plan, scalars)?),
        rows => Question::Listed(Translation::new(scalars).listed(rows)?),
    })
}

fn translated_groups(plan: &LogicalPlan, scalars: &Scalars<'_>) -> Result<Groups, OnRows> {
    let LogicalPlan::Aggregate { input, keys, aggregates } = plan else {
        return Err(OnRows::because("no groups are asked for"));
    };
    Translation::new(scalars).groups(input, keys, aggregates)
}

/// The operator that gives what is asked for.
fn operator(question: &Question, lower: Lower<'_>) -> Result<Arc<dyn ExecutionPlan>, OnRows> {
    Ok(match question {
        Question::Groups(groups) => lower.top(groups)?.operator,
        Question::Listed(listed) => lower.listed(listed)?.operator,
    })
}

/// The value of a query that gives one row, whatever there is.
fn value(
    plan: &LogicalPlan,
    output: &Expression,
    lower: Lower<'_>,
    wanted: &WantedGroups<'_>,
) -> Result<Value, OnRows> {
    let values = |groups: &LogicalPlan, output: &Expression| value(groups, output, lower, wanted);
    let groups = translated_groups(plan, &values)?;
    let rows = run(&groups, lower, wanted)?;
    let row = rows.first().ok_or_else(|| OnRows::because("no row for all rows"))?;
    Ok(output.evaluate(&Environment::new(row, wanted.frame, wanted.now))?)
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
fn run(groups: &Groups, lower: Lower<'_>, wanted: &WantedGroups<'_>) -> Result<Vec<Vec<Value>>, OnRows> {
    let top = lower.top(groups)?;
    let batches = collected(top.operator.clone(), wanted, usize::MAX)?;
    top.rows(&batches)
}

fn collected(
    operator: Arc<dyn ExecutionPlan>,
    wanted: &WantedGroups<'_>,
    rows_max: usize,
) -> Result<Vec<RecordBatch>, OnRows> {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(QueryMemory::of(wanted.memory)));
    let context = TaskContext::default()
        .with_session_config(SessionConfig::new().with_target_partitions(1))
        .with_runtime(Arc::new(runtime.build()?));
    // What spills to the disk is written and read by this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(OnRows::because)?;
    let _entered = runtime.enter();
    let mut stream = operator.execute(0, Arc::new(context))?;
    let (mut batches, mut rows) = (Vec::new(), 0);
    while let Some(batch) = runtime.block_on(stream.try_next())? {
        rows += batch.num_rows();
        if rows > rows_max {
            return Err(OnRows::because(format_args!("more than {rows_max} rows")));
        }
        batches.push(batch);
    }
    Ok(batches)
}
