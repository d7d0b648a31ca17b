//! What stands in FROM, as operators over columns: tables with their conditions, and joins of them.

use crate::expression::Lowering;
use crate::fields::{Fields, Known};
use crate::join;
use crate::reason::OnRows;
use crate::run::Interrupted;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::filter::FilterExecBuilder;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use plan::expression::{Expression, Kind};
use plan::logical::{LogicalPlan, Scan};
use plan::statement::AccessPath;
use sql::GroupsElsewhere;
use state::ColumnBatch;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Rows that an operator gives.
pub(crate) struct Rows {
    pub(crate) operator: Arc<dyn ExecutionPlan>,
    pub(crate) fields: Fields,
    /// About how many.
    pub(crate) about: u64,
}

/// What relations are lowered with.
pub(crate) struct Relations<'a> {
    pub(crate) wanted: &'a GroupsElsewhere<'a>,
    /// The columns that somebody looks at behind the tables.
    needed: BTreeSet<usize>,
    interrupted: Interrupted,
}

impl<'a> Relations<'a> {
    /// Of a query whose keys and aggregates look at these expressions.
    pub(crate) fn of(
        wanted: &'a GroupsElsewhere<'a>,
        source: &LogicalPlan,
        above: &[&Expression],
    ) -> Relations<'a> {
        let mut needed = BTreeSet::new();
        above.iter().for_each(|expression| note(expression, &mut needed));
        note_between(source, 0, &mut needed);
        Relations { wanted, needed, interrupted: Interrupted::of(wanted.interrupt) }
    }

    /// About how many rows the tables have. `leads`: its rows are read first.
    pub(crate) fn rows_read(&self, relation: &LogicalPlan, leads: bool) -> Result<u64, OnRows> {
        match relation {
            LogicalPlan::Filter { input, .. } => self.rows_read(input, leads),
            LogicalPlan::Join(join) => {
                Ok(self.rows_read(&join.left, leads)?.saturating_add(self.rows_read(&join.right, false)?))
            }
            LogicalPlan::Scan(scan) if leads && is_found_by_key(scan) => {
                Err(OnRows::because("a key or an index finds the rows"))
            }
            LogicalPlan::Scan(scan) => {
                let rows = self.wanted.snapshot.about_rows(scan.table.id);
                rows.ok_or_else(|| OnRows::because("the store keeps no columns"))
            }
            _ => Err(OnRows::because("something else than tables in FROM")),
        }
    }

    /// A relation whose columns begin at `first`. What its tables are asked that looks to their left goes to `lifted`.
    pub(crate) fn lower(
        &self,
        relation: &LogicalPlan,
        first: usize,
        lifted: &mut Vec<Expression>,
    ) -> Result<Rows, OnRows> {
        match relation {
            LogicalPlan::Scan(scan) => self.scan(scan, first, lifted),
            LogicalPlan::Filter { input, conditions } => {
                let rows = self.lower(input, first, lifted)?;
                self.filtered(rows, conditions)
            }
            LogicalPlan::Join(join) => join::lower(self, join, first, lifted),
            _ => Err(OnRows::because("something else than tables in FROM")),
        }
    }

    fn scan(&self, scan: &Scan, first: usize, lifted: &mut Vec<Expression>) -> Result<Rows, OnRows> {
        let looks_left = |condition: &&Expression| {
            let mut columns = BTreeSet::new();
            note(condition, &mut columns);
            columns.first().is_some_and(|column| *column < first)
        };
        let (left, own): (Vec<&Expression>, Vec<&Expression>) = scan.conditions.iter().partition(looks_left);
        lifted.extend(left.into_iter().cloned());
        let own: Vec<Expression> = own.into_iter().cloned().collect();
        let end = first + scan.table.columns.len();
        let mut read: BTreeSet<usize> = self.needed.range(first..end).copied().collect();
        own.iter().for_each(|condition| note(condition, &mut read));
        let of_some_type =
            |ordinal: &usize| state::column_type(scan.table.columns[*ordinal].data_type).is_some();
        if read.is_empty() {
            // Rows are counted by any column.
            read.extend((0..scan.table.columns.len()).find(of_some_type).map(|ordinal| first + ordinal));
        }
        let rows = self.table(scan, first, &read)?;
        self.filtered(rows, &own)
    }

    fn table(&self, scan: &Scan, first: usize, read: &BTreeSet<usize>) -> Result<Rows, OnRows> {
        let known = |ordinal: &usize| {
            let data_type = scan.table.columns[ordinal - first].data_type;
            let arrow = state::column_type(data_type);
            let arrow = arrow.ok_or_else(|| OnRows::because(format_args!("a column of type {data_type}")))?;
            Ok(Known { ordinal: *ordinal, data_type, arrow })
        };
        let fields = Fields(read.iter().map(known).collect::<Result<_, OnRows>>()?);
        let snapshot = self.wanted.snapshot;
        let table = snapshot.catalog().tables.get(&scan.table.relation);
        let table = table.filter(|table| table.id == scan.table.id);
        let table = table.ok_or_else(|| OnRows::because("the table is another one now"))?;
        let ordinals: Vec<usize> = read.iter().map(|ordinal| ordinal - first).collect();
        let batches = snapshot.columns(table, &ordinals)?;
        let batches = batches.ok_or_else(|| OnRows::because("the table is not kept in columns"))?;
        let about = batches.iter().map(|batch| batch.rows as u64).sum();
        let batches =
            TableBatches { schema: fields.schema(), batches, interrupted: self.interrupted.clone() };
        let schema = batches.schema.clone();
        let operator =
            StreamingTableExec::try_new(schema, vec![Arc::new(batches)], None, Vec::new(), false, None)?;
        Ok(Rows { operator: Arc::new(operator), fields, about })
    }

    /// The rows for which all conditions are true, with the columns that somebody looks at behind them.
    pub(crate) fn filtered(&self, rows: Rows, conditions: &[Expression]) -> Result<Rows, OnRows> {
        let lowering = Lowering::new(&rows.fields, (self.wanted.frame, self.wanted.now));
        let Some(condition) = lowering.conjunction(conditions)? else { return Ok(rows) };
        let kept = |position: &usize| self.needed.contains(&rows.fields.0[*position].ordinal);
        let kept: Vec<usize> = (0..rows.fields.0.len()).filter(kept).collect();
        let fields = Fields(kept.iter().map(|position| rows.fields.0[*position].clone()).collect());
        let operator =
            FilterExecBuilder::new(condition, rows.operator).apply_projection(Some(kept))?.build()?;
        Ok(Rows { operator: Arc::new(operator), fields, about: rows.about.div_ceil(3) })
    }
}

/// Whether some column of a key or an index equals a value: few rows do, and an index finds them.
fn is_found_by_key(scan: &Scan) -> bool {
    match AccessPath::choose(&scan.table, &scan.conditions).0 {
        AccessPath::Key(_) => true,
        AccessPath::Range(interval) => !interval.equal.is_empty(),
        AccessPath::Index(index) => !index.interval.equal.is_empty() || !index.within.equal.is_empty(),
    }
}

/// Notes the columns that are looked at between tables: those of joins, of filters above them, and of what a table is asked about
/// columns to its left.
fn note_between(relation: &LogicalPlan, first: usize, needed: &mut BTreeSet<usize>) {
    match relation {
        LogicalPlan::Filter { input, conditions } => {
            conditions.iter().for_each(|condition| note(condition, needed));
            note_between(input, first, needed);
        }
        LogicalPlan::Join(join) => {
            let equal = join.equal.iter().flat_map(|(left, right)| [left, right]);
            equal.chain(&join.on).for_each(|expression| note(expression, needed));
            note_between(&join.left, first, needed);
            note_between(&join.right, first + join.left.width(), needed);
        }
        LogicalPlan::Scan(scan) => {
            for condition in &scan.conditions {
                let mut columns = BTreeSet::new();
                note(condition, &mut columns);
                if columns.first().is_some_and(|column| *column < first) {
                    needed.extend(columns);
                }
            }
        }
        _ => {}
    }
}

/// Notes the columns that an expression looks at.
pub(crate) fn note(expression: &Expression, columns: &mut BTreeSet<usize>) {
    expression.any(&mut |inner| {
        if let Kind::Column(ordinal) = inner.kind {
            columns.insert(usize::from(ordinal));
        }
        false
    });
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
