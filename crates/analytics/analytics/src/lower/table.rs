//! A table as an operator over its columns.

use crate::interrupted::Interrupted;
use crate::lower::estimate::Estimate;
use crate::lower::fields::{Fields, Known};
use crate::lower::relations::Lower;
use crate::lower::rows::Rows;
use crate::lower::sample::Sample;
use crate::lower::source::Source;
use crate::question::{Table, columns_of};
use crate::reason::OnRows;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
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
        let (fields, source) = self.read(table, &read)?;
        let rows = source.rows() as f64;
        let mut estimate = Estimate { rows, ..Estimate::default() };
        if !table.plan.key.is_empty() {
            let key = table.plan.key.iter().map(|ordinal| table.first + usize::from(*ordinal));
            estimate.unique.push((key.collect(), estimate.rows));
        }
        let sample = match compared {
            true => Some(Sample::of(&fields, &source.some()?)?),
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
        let operator = operator(&fields, source, self.interrupted.clone())?;
        self.filtered(Rows { operator, fields, estimate }, &table.conditions, needed)
    }

    /// The columns of a table.
    fn read(&self, table: &Table, read: &BTreeSet<usize>) -> Result<(Fields, Source), OnRows> {
        let known = |column: &usize| {
            let data_type = table.plan.columns[column - table.first].data_type;
            let arrow = state::column_type(data_type);
            let arrow = arrow.ok_or_else(|| OnRows::because(format_args!("a column of type {data_type}")))?;
            Ok(Known { column: *column, data_type, arrow, has_own_scale: true })
        };
        let fields = Fields(read.iter().map(known).collect::<Result<_, OnRows>>()?);
        let Some(snapshot) = self.snapshot else { return Ok((fields, Source::Kept(Vec::new()))) };
        let found = snapshot.catalog().tables.get(&table.plan.relation);
        let found = found.filter(|found| found.id == table.plan.id);
        let found = found.ok_or_else(|| OnRows::because("the table is another one now"))?;
        let ordinals: Vec<usize> = read.iter().map(|column| column - table.first).collect();
        if let Some(batches) = snapshot.columns(found, &ordinals)? {
            return Ok((fields, Source::Kept(batches)));
        }
        let made = snapshot.read_columns(found, &ordinals);
        let made = made.ok_or_else(|| OnRows::because("the table is not kept in columns"))?;
        let about_rows = snapshot.about_rows(table.plan.id).unwrap_or_default();
        Ok((fields, Source::Made { made, about_rows }))
    }
}

/// The operator that gives the rows of a table.
fn operator(fields: &Fields, source: Source, interrupted: Interrupted) -> Result<Arc<dyn ExecutionPlan>> {
    let table = TableRows { schema: fields.schema(), source, interrupted };
    let schema = table.schema.clone();
    Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(table)], None, Vec::new(), false, None)?))
}

/// The rows of a table.
struct TableRows {
    schema: SchemaRef,
    source: Source,
    interrupted: Interrupted,
}

impl fmt::Debug for TableRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {} rows", self.source.rows())
    }
}

impl PartitionStream for TableRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, interrupted) = (self.schema.clone(), self.interrupted.clone());
        let batches = self.source.batches().map(move |batch| {
            interrupted.check()?;
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
            RecordBatch::try_new_with_options(schema.clone(), batch.columns, &options)
                .map_err(DataFusionError::from)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches)))
    }
}
