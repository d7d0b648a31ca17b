//! A table as an operator over its columns.

use crate::fields::Fields;
use crate::interrupted::Interrupted;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use state::ColumnBatch;
use std::fmt;
use std::sync::Arc;

/// The operator that gives the rows of these batches.
pub(crate) fn operator(
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
