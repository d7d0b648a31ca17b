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
use state::{ColumnBatch, ColumnPiece, ReadColumns, Snapshot};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use types::Key;

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
        let rows = source.rows(self.snapshot, table);
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
        Ok((fields, Source::Made(made)))
    }
}

/// Where the columns of a table come from.
#[derive(Clone)]
enum Source {
    /// They are kept.
    Kept(Vec<ColumnBatch>),
    /// They are made of rows as they are read, which needs memory for some thousand rows only.
    Made(Arc<dyn ReadColumns>),
}

impl Source {
    /// About how many rows there are.
    fn rows(&self, snapshot: Option<&dyn Snapshot>, table: &Table) -> f64 {
        match self {
            Source::Kept(batches) => batches.iter().map(|batch| batch.rows).sum::<usize>() as f64,
            Source::Made(_) => {
                snapshot.and_then(|snapshot| snapshot.about_rows(table.plan.id)).unwrap_or_default() as f64
            }
        }
    }

    /// What a sample is taken from.
    fn some(&self) -> Result<Vec<ColumnBatch>, OnRows> {
        match self {
            Source::Kept(batches) => Ok(batches.clone()),
            Source::Made(made) => Pieces::of(made.clone()).take(1).map(|batch| Ok(batch?)).collect(),
        }
    }

    fn batches(&self) -> Box<dyn Iterator<Item = Result<ColumnBatch>> + Send> {
        match self {
            Source::Kept(batches) => Box::new(batches.clone().into_iter().map(Ok)),
            Source::Made(made) => Box::new(Pieces::of(made.clone())),
        }
    }
}

/// Reads rows as columns to their end, or to the first error.
struct Pieces {
    made: Arc<dyn ReadColumns>,
    behind: Option<Key>,
    has_ended: bool,
}

impl Pieces {
    fn of(made: Arc<dyn ReadColumns>) -> Pieces {
        Pieces { made, behind: None, has_ended: false }
    }
}

impl Iterator for Pieces {
    type Item = Result<ColumnBatch>;

    fn next(&mut self) -> Option<Result<ColumnBatch>> {
        if self.has_ended {
            return None;
        }
        match self.made.piece(self.behind.as_ref()) {
            Ok(Some(ColumnPiece { last, batch })) => {
                (self.has_ended, self.behind) = (last.is_none() || batch.is_none(), last);
                let does_not_fit =
                    || DataFusionError::Execution("a value does not fit in its column".to_string());
                Some(batch.ok_or_else(does_not_fit))
            }
            Ok(None) => {
                self.has_ended = true;
                None
            }
            Err(error) => {
                self.has_ended = true;
                Some(Err(DataFusionError::External(Box::new(error))))
            }
        }
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
        match &self.source {
            Source::Kept(batches) => write!(f, "{} batches", batches.len()),
            Source::Made(_) => write!(f, "batches made of rows"),
        }
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
