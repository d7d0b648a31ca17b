//! A table as an operator over its columns.

use crate::interrupted::Interrupted;
use crate::lower::estimate::Estimate;
use crate::lower::fields::{Fields, Known};
use crate::lower::relations::Lower;
use crate::lower::rows::Rows;
use crate::lower::sample::Sample;
use crate::question::{Table, columns_of};
use crate::reason::OnRows;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use state::ColumnBatch;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Of the rows that a condition looks at, so many are taken to fulfil it where nobody has tried.
const SHARE: f64 = 1.0 / 3.0;

impl Lower<'_> {
    /// The rows of a table for which its conditions are true.
    pub(super) fn table(
        &self,
        table: &Table,
        needed: &BTreeSet<usize>,
        compared: bool,
    ) -> Result<Rows, OnRows> {
        let columns = table.first..table.first + table.plan.columns.len();
        let mut read: BTreeSet<usize> = needed.range(columns.clone()).copied().collect();
        read.extend(table.conditions.iter().flat_map(columns_of));
        let is_kept =
            |column: &usize| state::column_type(table.plan.columns[column - table.first].data_type).is_some();
        if read.is_empty() {
            // Rows are counted by any column.
            read.extend(columns.clone().find(is_kept));
        }
        let (fields, batches) = self.read(table, &read)?;
        let rows: usize = batches.iter().map(|batch| batch.rows).sum();
        let mut estimate = Estimate { rows: rows as f64, ..Estimate::default() };
        if !table.plan.key.is_empty() {
            let key = table.plan.key.iter().map(|ordinal| table.first + usize::from(*ordinal));
            estimate.unique.push((key.collect(), estimate.rows));
        }
        let sample = match compared {
            true => Some(Sample::of(&fields, &batches)?),
            false => None,
        };
        if let Some(sample) = &sample {
            estimate.distinct = sample.distinct(&fields, estimate.rows)?;
        }
        if let Some(condition) = self.over(&fields).conjunction(&table.conditions)? {
            let share = match &sample {
                Some(sample) => sample.share(&condition)?,
                None => SHARE,
            };
            estimate = estimate.scaled(share);
        }
        let operator = operator(&fields, batches, self.interrupted.clone())?;
        self.filtered(Rows { operator, fields, estimate }, &table.conditions, needed)
    }

    /// The columns of a table.
    fn read(&self, table: &Table, read: &BTreeSet<usize>) -> Result<(Fields, Vec<ColumnBatch>), OnRows> {
        let known = |column: &usize| {
            let data_type = table.plan.columns[column - table.first].data_type;
            let arrow = state::column_type(data_type);
            let arrow = arrow.ok_or_else(|| OnRows::because(format_args!("a column of type {data_type}")))?;
            Ok(Known { column: *column, data_type, arrow, has_own_scale: true })
        };
        let fields = Fields(read.iter().map(known).collect::<Result<_, OnRows>>()?);
        let Some(snapshot) = self.snapshot else { return Ok((fields, Vec::new())) };
        let found = snapshot.catalog().tables.get(&table.plan.relation);
        let found = found.filter(|found| found.id == table.plan.id);
        let found = found.ok_or_else(|| OnRows::because("the table is another one now"))?;
        let ordinals: Vec<usize> = read.iter().map(|column| column - table.first).collect();
        let batches = snapshot.columns(found, &ordinals)?;
        let batches = batches.ok_or_else(|| OnRows::because("the table is not kept in columns"))?;
        Ok((fields, batches))
    }
}

/// The operator that gives the rows of these batches.
fn operator(
    fields: &Fields,
    batches: Vec<ColumnBatch>,
    interrupted: Interrupted,
) -> Result<Arc<dyn ExecutionPlan>> {
    let table = TableBatches { schema: fields.schema(), batches, interrupted };
    let schema = table.schema.clone();
    Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(table)], None, Vec::new(), false, None)?))
}

/// The columns of a table.
struct TableBatches {
    schema: SchemaRef,
    batches: Vec<ColumnBatch>,
    interrupted: Interrupted,
}

impl fmt::Debug for TableBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} batches", self.batches.len())
    }
}

impl PartitionStream for TableBatches {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, interrupted) = (self.schema.clone(), self.interrupted.clone());
        let batches = self.batches.clone().into_iter().map(move |batch| {
            interrupted.check()?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
            RecordBatch::try_new_with_options(schema.clone(), batch.columns, &options)
                .map_err(DataFusionError::from)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches)))
    }
}
