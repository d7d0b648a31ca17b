//! The groups of a query from its plan: lowered, run, and handed out as rows.

use crate::aggregate::{self, Computed, Finish};
use crate::arrays::value_at;
use crate::expression::Lowering;
use crate::memory::QueryMemory;
use crate::reason::OnRows;
use crate::relation::Relations;
use crate::rows::Rows;
use arrow_array::RecordBatch;
use datafusion_execution::TaskContext;
use datafusion_execution::config::SessionConfig;
use datafusion_execution::runtime_env::RuntimeEnvBuilder;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use futures::TryStreamExt;
use plan::aggregate::Aggregate;
use plan::expression::Expression;
use plan::logical::LogicalPlan;
use sql::{MakeGroups, WantedGroups};
use std::cmp::Ordering;
use std::sync::Arc;
use types::{DataType, Value};

/// Tables with fewer rows together are read faster row by row.
const ROWS_MIN: u64 = 3_000;

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
        let groups = groups(wanted, self.rows_min);
        if let Err(reason) = &groups {
            tracing::debug!(%reason, "a query stays on rows");
        }
        groups.ok()
    }
}

fn groups(wanted: &WantedGroups<'_>, rows_min: u64) -> Result<Vec<Vec<Value>>, OnRows> {
    let LogicalPlan::Aggregate { input, keys, aggregates } = wanted.plan else {
        return Err(OnRows::because("no groups are asked for"));
    };
    let aggregated = aggregates.iter().flat_map(Aggregate::expressions);
    let above: Vec<&Expression> = keys.iter().chain(aggregated).collect();
    let relations = Relations::of(wanted, input, &above);
    let read = relations.rows_read(input, true)?;
    if read < rows_min {
        return Err(OnRows::because(format_args!("{read} rows are few")));
    }
    let mut lifted = Vec::new();
    let rows = relations.lower(input, 0, &mut lifted)?;
    if !lifted.is_empty() {
        return Err(OnRows::because("a condition that looks to the left of everything"));
    }
    let (operator, finish) = grouped(&rows, keys, aggregates, (wanted.frame, wanted.now))?;
    let batches = run(operator, wanted)?;
    let mut found = rows_of(&batches, keys, aggregates, &finish)?;
    if found.is_empty() && keys.is_empty() {
        return Err(OnRows::because("no row for all rows"));
    }
    found.sort_by(|one, other| {
        let keys = one[..keys.len()].iter().zip(other);
        keys.map(|(one, other)| one.sort_compare(other))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    });
    Ok(found)
}

/// The operator that groups, and how each aggregate's value is made of what it computes.
fn grouped(
    rows: &Rows,
    keys: &[Expression],
    aggregates: &[Aggregate],
    given: (&[Value], i64),
) -> Result<(Arc<dyn ExecutionPlan>, Vec<Finish>), OnRows> {
    let (lowering, schema) = (Lowering::new(&rows.fields, given), rows.operator.schema());
    let lower_key = |(number, key): (usize, &Expression)| {
        let lowered = lowering.lower(key)?;
        match lowered.data_type {
            DataType::Real | DataType::Double => Err(OnRows::because("groups by floating-point numbers")),
            _ => Ok((lowered.expression, format!("k{number}"))),
        }
    };
    let keys = keys.iter().enumerate().map(lower_key).collect::<Result<Vec<_>, OnRows>>()?;
    let mut computed = Computed::default();
    let finish =
        aggregates.iter().map(|aggregate| aggregate::lower(aggregate, &lowering, &schema, &mut computed));
    let finish = finish.collect::<Result<Vec<Finish>, OnRows>>()?;
    let Computed { functions, filters, .. } = computed;
    let operator = AggregateExec::try_new(
        AggregateMode::Single,
        PhysicalGroupBy::new_single(keys),
        functions,
        filters,
        rows.operator.clone(),
        schema,
    )?;
    Ok((Arc::new(operator), finish))
}

/// Runs an operator on this thread.
fn run(operator: Arc<dyn ExecutionPlan>, wanted: &WantedGroups<'_>) -> Result<Vec<RecordBatch>, OnRows> {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(QueryMemory::of(wanted.memory)));
    let context = TaskContext::default()
        .with_session_config(SessionConfig::new().with_target_partitions(1))
        .with_runtime(Arc::new(runtime.build()?));
    // What spills to the disk is written and read by this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(OnRows::because)?;
    let _entered = runtime.enter();
    let batches = operator.execute(0, Arc::new(context))?;
    Ok(runtime.block_on(batches.try_collect())?)
}

/// The rows of the groups: keys, then aggregates.
fn rows_of(
    batches: &[RecordBatch],
    keys: &[Expression],
    aggregates: &[Aggregate],
    finish: &[Finish],
) -> Result<Vec<Vec<Value>>, OnRows> {
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for groups in batches {
        for row in 0..groups.num_rows() {
            let mut values = Vec::with_capacity(keys.len() + aggregates.len());
            for (number, key) in keys.iter().enumerate() {
                values.push(value_at(groups.column(number), row, key.data_type)?);
            }
            for (aggregate, finish) in aggregates.iter().zip(finish) {
                values.push(finish.value(groups, row, (keys.len(), aggregate.data_type))?);
            }
            rows.push(values);
        }
    }
    Ok(rows)
}
