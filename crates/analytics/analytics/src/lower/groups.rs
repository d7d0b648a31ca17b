//! Groups: those that a query is asked for, and those that stand below others.

use crate::lower::aggregate::{self, Computed, Finish};
use crate::lower::arrays::value_at;
use crate::lower::estimate::Estimate;
use crate::lower::expression::column_at;
use crate::lower::fields::{Fields, Known};
use crate::lower::packed::Packing;
use crate::lower::relations::Lower;
use crate::lower::rows::Rows;
use crate::question::{Groups, columns_of};
use crate::reason::OnRows;
use arrow_array::RecordBatch;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::projection::ProjectionExec;
use plan::aggregate::Aggregate;
use plan::expression::Expression;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{DataType, Value};

/// Groups whose rows leave the columns.
pub(crate) struct TopGroups<'a> {
    keys: &'a [Expression],
    aggregates: &'a [Aggregate],
    finish: Vec<Finish>,
    /// The operator that gives them, to be read by [`TopGroups::rows`].
    pub(crate) operator: Arc<dyn ExecutionPlan>,
}

/// What an operator that groups gives: keys, then what is computed for aggregates.
struct Aggregated {
    operator: Arc<dyn ExecutionPlan>,
    /// The keys, numbered from 0.
    keys: Fields,
    /// How each aggregate's value is made of what is computed.
    finish: Vec<Finish>,
}

impl Lower<'_> {
    /// The groups that a query is asked for.
    pub(crate) fn top<'g>(&self, groups: &'g Groups) -> Result<TopGroups<'g>, OnRows> {
        let Groups { input, keys, aggregates, .. } = groups;
        let looked_at = keys.iter().chain(aggregates.iter().flat_map(Aggregate::expressions));
        let rows = self.relation(input, &looked_at.flat_map(columns_of).collect(), false)?;
        let Aggregated { operator, finish, .. } = self.aggregated(&rows, keys, aggregates.iter())?;
        Ok(TopGroups { keys, aggregates, finish, operator })
    }

    /// Groups below others.
    pub(super) fn groups(&self, groups: &Groups, needed: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let Groups { input, keys, aggregates, first } = groups;
        let first_aggregate = first + keys.len();
        let wanted: Vec<(usize, &Aggregate)> = aggregates
            .iter()
            .enumerate()
            .map(|(number, aggregate)| (first_aggregate + number, aggregate))
            .filter(|(column, _)| needed.contains(column))
            .collect();
        let expressions = wanted.iter().flat_map(|(_, aggregate)| aggregate.expressions());
        let rows =
            self.relation(input, &keys.iter().chain(expressions).flat_map(columns_of).collect(), true)?;
        let Aggregated { operator, keys: mut fields, finish } =
            self.aggregated(&rows, keys, wanted.iter().map(|(_, aggregate)| *aggregate))?;
        fields.0.iter_mut().for_each(|key| key.column += first);
        let schema = operator.schema();
        let mut outputs: Vec<_> = (0..keys.len())
            .map(|number| {
                let (expression, _) = column_at(&schema, number);
                (expression, format!("c{}", first + number))
            })
            .collect();
        for ((column, aggregate), finish) in wanted.iter().zip(&finish) {
            let finished = finish.column(&schema, (keys.len(), aggregate.data_type))?;
            outputs.push((finished.expression.clone(), format!("c{column}")));
            fields.0.push(finished.known_as(*column));
        }
        let count = rows.estimate.groups(keys);
        let unique = vec![((*first..first_aggregate).collect(), count)];
        let estimate = Estimate { rows: count, unique, ..Estimate::default() };
        let operator = Arc::new(ProjectionExec::try_new(outputs, operator)?);
        Ok(Rows { operator, fields, estimate })
    }

    /// The operator that groups.
    fn aggregated<'g>(
        &self,
        rows: &Rows,
        keys: &[Expression],
        aggregates: impl Iterator<Item = &'g Aggregate>,
    ) -> Result<Aggregated, OnRows> {
        let (lowering, schema) = (self.over(&rows.fields), rows.operator.schema());
        let (mut by, mut fields) = (Vec::with_capacity(keys.len()), Fields::default());
        for (number, key) in keys.iter().enumerate() {
            let lowered = lowering.lower(key)?;
            if matches!(lowered.data_type, DataType::Real | DataType::Double) {
                return Err(OnRows::because("groups by floating-point numbers"));
            }
            let known = lowered.known_as(number);
            if !known.has_own_scale {
                return Err(OnRows::because("groups by numeric values of several scales"));
            }
            by.push((lowered.expression, format!("k{number}")));
            fields.0.push(Known { data_type: key.data_type, ..known });
        }
        let mut computed = Computed::default();
        let finish =
            aggregates.map(|aggregate| aggregate::lower(aggregate, &lowering, &schema, &mut computed));
        let finish = finish.collect::<Result<Vec<Finish>, OnRows>>()?;
        let Computed { functions, filters, .. } = computed;
        let packing = Packing::of(fields.0.iter().map(|key| (key.data_type, &key.arrow)));
        if let Some(packing) = &packing {
            let keys = by.into_iter().map(|(key, _)| key).collect();
            by = vec![(packing.number(keys), "k".to_string())];
        }
        let operator = AggregateExec::try_new(
            AggregateMode::Single,
            PhysicalGroupBy::new_single(by),
            functions,
            filters,
            rows.operator.clone(),
            schema,
        )?;
        let mut operator: Arc<dyn ExecutionPlan> = Arc::new(operator);
        if let Some(packing) = &packing {
            operator = unpacked(operator, packing)?;
        }
        Ok(Aggregated { operator, keys: fields, finish })
    }
}

/// Groups with their keys instead of the number in front.
fn unpacked(groups: Arc<dyn ExecutionPlan>, packing: &Packing) -> Result<Arc<dyn ExecutionPlan>, OnRows> {
    let schema = groups.schema();
    let (number, _) = column_at(&schema, 0);
    let keys = packing.keys(&number).enumerate().map(|(at, key)| (key, format!("k{at}")));
    let rest = (1..schema.fields().len()).map(|position| column_at(&schema, position));
    Ok(Arc::new(ProjectionExec::try_new(keys.chain(rest).collect::<Vec<_>>(), groups)?))
}

impl TopGroups<'_> {
    /// The rows of the groups: keys, then aggregates.
    pub(crate) fn rows(&self, batches: &[RecordBatch]) -> Result<Vec<Vec<Value>>, OnRows> {
        let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        for groups in batches {
            for row in 0..groups.num_rows() {
                let mut values = Vec::with_capacity(self.keys.len() + self.aggregates.len());
                for (number, key) in self.keys.iter().enumerate() {
                    values.push(value_at(groups.column(number), row, key.data_type)?);
                }
                for (aggregate, finish) in self.aggregates.iter().zip(&self.finish) {
                    values.push(finish.value(groups, row, (self.keys.len(), aggregate.data_type))?);
                }
                rows.push(values);
            }
        }
        Ok(rows)
    }
}
