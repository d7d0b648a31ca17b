//! Rows that leave the columns in an order, all of them or the first ones.

use crate::lower::arrays::value_at;
use crate::lower::expression::{Lowered, Scale};
use crate::lower::fields::Fields;
use crate::lower::relations::Lower;
use crate::question::{Listed, columns_of};
use crate::reason::OnRows;
use arrow_array::RecordBatch;
use arrow_schema::SortOptions;
use datafusion_common::ScalarValue;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use plan::expression::Expression;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{DataType, Value};

/// Rows that leave the columns.
pub(crate) struct TopRows {
    /// By output: the position of its column, and its type.
    outputs: Vec<Option<(usize, DataType)>>,
    /// The operator that gives them, to be read by [`TopRows::rows`].
    pub(crate) operator: Arc<dyn ExecutionPlan>,
}

impl Lower<'_> {
    /// The rows that a query asks for.
    pub(crate) fn listed(&self, listed: &Listed) -> Result<TopRows, OnRows> {
        let sort = listed.first.iter().flat_map(|(keys, _)| keys);
        let looked_at = listed.outputs.iter().flatten().chain(&listed.keys);
        let mut needed: BTreeSet<usize> = looked_at.flat_map(columns_of).collect();
        needed.extend(sort.flat_map(|key| columns_of(&key.expression)));
        let rows = self.relation(&listed.input, &needed, false)?;
        let lowering = self.over(&rows.fields);
        let by = |lowered: Lowered, descending: bool, nulls_first: bool| {
            has_order_of_arrays(&lowered)?;
            let options = SortOptions { descending, nulls_first };
            Ok::<_, OnRows>(PhysicalSortExpr::new(lowered.expression, options))
        };
        // Where arrays have another order than values, all rows go to whoever sorts them.
        let (mut order, mut fetch) = (Vec::new(), None);
        if let Some((keys, limit)) = &listed.first {
            let wanted =
                keys.iter().map(|key| by(lowering.lower(&key.expression)?, key.descending, key.nulls_first));
            if let Ok(wanted) = wanted.collect::<Result<Vec<_>, OnRows>>() {
                (order, fetch) = (wanted, self.count(limit)?);
            }
        }
        for key in &listed.keys {
            order.push(by(lowering.lower(key)?, false, false)?);
        }
        let order = LexOrdering::new(order).ok_or_else(|| OnRows::because("rows without an order"))?;
        let (mut expressions, mut outputs) = (Vec::new(), Vec::new());
        for output in &listed.outputs {
            let Some(output) = output else {
                outputs.push(None);
                continue;
            };
            let lowered = lowering.lower(output)?;
            if !matches!(lowered.scale, Scale::OfArrays) {
                return Err(OnRows::because("rows with numeric values of several scales"));
            }
            outputs.push(Some((expressions.len(), output.data_type)));
            expressions.push((lowered.expression, format!("o{}", expressions.len())));
        }
        let sorted = Arc::new(SortExec::new(order, rows.operator).with_fetch(fetch));
        let operator = Arc::new(ProjectionExec::try_new(expressions, sorted)?);
        Ok(TopRows { outputs, operator })
    }

    /// How many rows are wanted; `None`: all.
    fn count(&self, limit: &Expression) -> Result<Option<usize>, OnRows> {
        let lowered = self.over(&Fields::default()).lower(limit)?;
        match lowered.constant() {
            Some(ScalarValue::Int64(None)) => Ok(None),
            Some(ScalarValue::Int64(Some(count))) => usize::try_from(*count)
                .map(Some)
                .map_err(|_| OnRows::because("a limit that is no number of rows")),
            _ => Err(OnRows::because("a limit that is no number of rows")),
        }
    }
}

/// Whether arrays are sorted as SQL sorts the values.
fn has_order_of_arrays(lowered: &Lowered) -> Result<(), OnRows> {
    match lowered.data_type {
        DataType::Real | DataType::Double | DataType::Char(_) => {
            Err(OnRows::because(format_args!("an order by {}", lowered.data_type)))
        }
        _ => Ok(()),
    }
}

impl TopRows {
    /// The rows.
    pub(crate) fn rows(&self, batches: &[RecordBatch]) -> Result<Vec<Vec<Value>>, OnRows> {
        let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        for batch in batches {
            for row in 0..batch.num_rows() {
                let value = |output: &Option<(usize, DataType)>| match output {
                    Some((position, data_type)) => value_at(batch.column(*position), row, *data_type),
                    None => Ok(Value::Null),
                };
                rows.push(self.outputs.iter().map(value).collect::<Result<Vec<Value>, OnRows>>()?);
            }
        }
        Ok(rows)
    }
}
