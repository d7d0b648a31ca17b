//! `entente.blocks`, `entente.transactions` and `entente.nodes`: the history of the ledger as tables.
//!
//! Filters on `height` and `id` and a LIMIT go down to the node, rows come newest first and only as far as they are
//! asked for, so `ORDER BY height DESC LIMIT 10` reads ten rows. A query without a filter on `height` or `id` sees the
//! newest [`HISTORY_ROWS_MAX`] rows.

use super::objects::{Attribute, ENTENTE, Relation};
use crate::limits::HISTORY_ROWS_MAX;
use crate::{BlockRow, Database, NodeRow, TransactionFilter, TransactionRow};
use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType as Arrow, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Between, Expr, Operator, TableProviderFilterPushDown, TableType, col};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::{DataType, TransactionId};

/// No height at all.
const NOTHING: RangeInclusive<u64> = RangeInclusive::new(1, 0);
/// Rows that are asked of the node at once.
const PAGE_ROWS: usize = 1_000;

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Blocks,
    Transactions,
    Nodes,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Table::Blocks => "blocks",
            Table::Transactions => "transactions",
            Table::Nodes => "nodes",
        }
    }

    fn columns(self) -> &'static [(&'static str, DataType)] {
        const TEXT: DataType = DataType::Text(None);
        match self {
            Table::Blocks => &[
                ("height", DataType::BigInt),
                ("time", DataType::TimestampTz),
                ("transactions", DataType::Integer),
                ("committed", DataType::Integer),
                ("aborted", DataType::Integer),
                ("proposer", TEXT),
                ("digest", TEXT),
                ("previous", TEXT),
                ("receipts_root", TEXT),
                ("state_digest", TEXT),
                ("bytes", DataType::BigInt),
            ],
            Table::Transactions => &[
                ("height", DataType::BigInt),
                ("index", DataType::Integer),
                ("id", TEXT),
                ("organisation", TEXT),
                ("client", TEXT),
                ("request", TEXT),
                ("call", TEXT),
                ("outcome", TEXT),
                ("sqlstate", TEXT),
                ("message", TEXT),
            ],
            Table::Nodes => &[
                ("organisation", TEXT),
                ("address", TEXT),
                ("node_key", TEXT),
                ("is_this_node", DataType::Boolean),
                ("height", DataType::BigInt),
                ("state_digest", TEXT),
            ],
        }
    }

    fn schema(self) -> SchemaRef {
        let fields = self.columns().iter().map(|(name, data_type)| match data_type {
            DataType::TimestampTz => {
                Field::new(*name, Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true)
            }
            other => super::values::arrow_field(name, *other, false),
        });
        Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
    }
}

const TABLES: [Table; 3] = [Table::Blocks, Table::Transactions, Table::Nodes];

/// The tables as the catalogue describes them.
pub(super) fn relations() -> Vec<Relation> {
    let relation = |(number, table): (usize, &Table)| Relation {
        oid: ENTENTE + 1 + number as i32,
        schema: ENTENTE,
        schema_name: "entente".to_string(),
        name: table.name().to_string(),
        kind: "v",
        row_type: 0,
        attributes: table
            .columns()
            .iter()
            .map(|(name, data_type)| Attribute::new(name, *data_type))
            .collect(),
        constraints: Vec::new(),
        indexes: Vec::new(),
        triggers: Vec::new(),
    };
    TABLES.iter().enumerate().map(relation).collect()
}

/// The schema `entente`.
pub(super) fn schema(database: &Arc<dyn Database>) -> Result<Arc<dyn SchemaProvider>> {
    let schema = MemorySchemaProvider::new();
    for table in TABLES {
        let provider = History { table, schema: table.schema(), database: Arc::clone(database) };
        schema.register_table(table.name().to_string(), Arc::new(provider))?;
    }
    Ok(Arc::new(schema))
}

/// A table of the history.
struct History {
    table: Table,
    schema: SchemaRef,
    database: Arc<dyn Database>,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entente.{}", self.table.name())
    }
}

/// What filters leave of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Selection {
    heights: RangeInclusive<u64>,
    id: Option<TransactionId>,
    /// Whether a filter on height or id was among them.
    filtered: bool,
}

impl Selection {
    const ALL: Selection = Selection { heights: 0..=u64::MAX, id: None, filtered: false };

    /// The part of this selection that passes `filter`; nothing where the filter is not a simple one.
    fn narrowed(&self, filter: &Expr, with_id: bool) -> Option<Selection> {
        let mut selection = self.clone();
        selection.filtered = true;
        let (low, high) = (*self.heights.start(), *self.heights.end());
        let clamp = |number: i64| u64::try_from(number).unwrap_or(0);
        match filter {
            Expr::BinaryExpr(binary) if binary.op == Operator::And => {
                self.narrowed(&binary.left, with_id)?.narrowed(&binary.right, with_id)
            }
            Expr::BinaryExpr(binary) => {
                let (column, operator, literal) = match (column(&binary.left), column(&binary.right)) {
                    (Some(name), None) => (name, binary.op, literal(&binary.right)?),
                    (None, Some(name)) => (name, binary.op.swap()?, literal(&binary.left)?),
                    _ => return None,
                };
                if column == "id" && with_id && operator == Operator::Eq {
                    let ScalarValue::Utf8(Some(text)) = literal.cast_to(&Arrow::Utf8).ok()? else {
                        return None;
                    };
                    // What is no id is the id of nothing.
                    selection.id = Some(TransactionId(text.parse().unwrap_or_default()));
                    return Some(selection);
                }
                let ScalarValue::Int64(Some(number)) = literal.cast_to(&Arrow::Int64).ok()? else {
                    return None;
                };
                if column != "height" {
                    return None;
                }
                selection.heights = match operator {
                    Operator::Eq if number < 0 => NOTHING,
                    Operator::Eq => low.max(clamp(number))..=high.min(clamp(number)),
                    Operator::Gt => low.max(clamp(number.saturating_add(1)))..=high,
                    Operator::GtEq => low.max(clamp(number))..=high,
                    Operator::Lt if number <= 0 => NOTHING,
                    Operator::Lt => low..=high.min(clamp(number - 1)),
                    Operator::LtEq if number < 0 => NOTHING,
                    Operator::LtEq => low..=high.min(clamp(number)),
                    _ => return None,
                };
                Some(selection)
            }
            Expr::Between(Between { expr, negated: false, low: from, high: to })
                if column(expr) == Some("height") =>
            {
                let number = |expr: &Expr| match literal(expr)?.cast_to(&Arrow::Int64).ok()? {
                    ScalarValue::Int64(number) => number,
                    _ => None,
                };
                let (from, to) = (number(from)?, number(to)?);
                selection.heights = if to < 0 { NOTHING } else { low.max(clamp(from))..=high.min(clamp(to)) };
                Some(selection)
            }
            _ => None,
        }
    }
}

fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(column.name()),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

#[async_trait]
impl TableProvider for History {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let exact = |filter: &Expr| {
            let with_id = self.table == Table::Transactions;
            self.table != Table::Nodes && Selection::ALL.narrowed(filter, with_id).is_some()
        };
        Ok(filters
            .iter()
            .map(|filter| match exact(filter) {
                true => TableProviderFilterPushDown::Exact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut selection = Selection::ALL;
        for filter in filters {
            let with_id = self.table == Table::Transactions;
            selection = selection.narrowed(filter, with_id).ok_or_else(|| {
                DataFusionError::Internal(format!("a filter was pushed down that is no simple one: {filter}"))
            })?;
        }
        let rows_max = if selection.filtered { usize::MAX } else { HISTORY_ROWS_MAX };
        let rows_max = rows_max.min(limit.unwrap_or(usize::MAX));
        let pages = Pages {
            table: self.table,
            schema: Arc::clone(&self.schema),
            database: Arc::clone(&self.database),
            selection,
            rows_max,
        };
        let sort = match self.table {
            Table::Blocks => vec![col("height").sort(false, true)],
            Table::Transactions => vec![col("height").sort(false, true), col("index").sort(false, true)],
            Table::Nodes => Vec::new(),
        };
        let table = StreamingTable::try_new(Arc::clone(&self.schema), vec![Arc::new(pages)])?;
        table.with_sort_order(sort).scan(state, projection, &[], limit).await
    }
}

/// Rows of the history, page by page, the newest first.
#[derive(Clone)]
struct Pages {
    table: Table,
    schema: SchemaRef,
    database: Arc<dyn Database>,
    selection: Selection,
    rows_max: usize,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entente.{} {:?}", self.table.name(), self.selection)
    }
}

impl PartitionStream for Pages {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let stream = futures::stream::try_unfold(Some(self.clone()), |pages| async move {
            let Some(mut pages) = pages else { return Ok(None) };
            let reading = tokio::task::spawn_blocking(move || {
                let batch = pages.read();
                (batch, pages)
            });
            let (batch, pages) = reading.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let Some((batch, more)) = batch? else { return Ok(None) };
            Ok(Some((batch, more.then_some(pages))))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), Box::pin(stream)))
    }
}

impl Pages {
    /// The next batch, and whether there may be more after it.
    fn read(&mut self) -> Result<Option<(RecordBatch, bool)>> {
        let (low, high) = (*self.selection.heights.start(), *self.selection.heights.end());
        if low > high || self.rows_max == 0 {
            return Ok(None);
        }
        let page = PAGE_ROWS.min(self.rows_max);
        let (batch, last) = match self.table {
            Table::Nodes => (node_batch(&self.schema, &self.database.nodes())?, None),
            Table::Blocks => {
                let rows = self.database.blocks(low..=high, page);
                let last = rows.last().filter(|_| rows.len() >= page).map(|row| row.height);
                (block_batch(&self.schema, &rows)?, last.and_then(|height| height.checked_sub(1)))
            }
            Table::Transactions => {
                let (rows, next) = self.transactions(low..=high, page);
                (transaction_batch(&self.schema, &rows)?, next)
            }
        };
        self.rows_max = self.rows_max.saturating_sub(batch.num_rows());
        self.selection.heights = low..=last.unwrap_or(0);
        Ok(Some((batch, last.is_some_and(|next| next >= low) && self.rows_max > 0)))
    }

    /// A page of transactions, ending between two blocks, and the height to go on at.
    fn transactions(&self, heights: RangeInclusive<u64>, page: usize) -> (Vec<TransactionRow>, Option<u64>) {
        let high = *heights.end();
        let filter = |heights| TransactionFilter { heights: Some(heights), id: self.selection.id };
        let mut rows = self.database.transactions(&filter(heights), page);
        let Some(last) = rows.last().map(|row| row.height) else { return (rows, None) };
        if rows.len() < page || page == self.rows_max {
            return (rows, None);
        }
        // The last block may go on beyond the page.
        let newest = rows.first().map_or(high, |row| row.height);
        if newest == last {
            let all = types::limits::BLOCK_TRANSACTIONS_MAX as usize;
            rows = self.database.transactions(&filter(last..=last), all.min(self.rows_max));
            return (rows, last.checked_sub(1));
        }
        rows.retain(|row| row.height != last);
        (rows, Some(last))
    }
}

fn batch(schema: &SchemaRef, arrays: Vec<ArrayRef>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays)?)
}

fn texts<T>(rows: &[T], text: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(text(row))).collect::<StringArray>())
}

fn numbers<T>(rows: &[T], number: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(
        rows.iter().map(|row| Some(i64::try_from(number(row)).unwrap_or(i64::MAX))).collect::<Int64Array>(),
    )
}

fn integers<T>(rows: &[T], number: impl Fn(&T) -> u32) -> ArrayRef {
    Arc::new(
        rows.iter().map(|row| Some(i32::try_from(number(row)).unwrap_or(i32::MAX))).collect::<Int32Array>(),
    )
}

fn block_batch(schema: &SchemaRef, rows: &[BlockRow]) -> Result<RecordBatch> {
    let microseconds = |row: &BlockRow| i64::try_from(row.timestamp_ms).unwrap_or(0).saturating_mul(1_000);
    let times: TimestampMicrosecondArray = rows.iter().map(|row| Some(microseconds(row))).collect();
    let arrays = vec![
        numbers(rows, |row| row.height),
        Arc::new(times.with_timezone("UTC")) as ArrayRef,
        integers(rows, |row| row.transactions),
        integers(rows, |row| row.committed),
        integers(rows, |row| row.aborted),
        texts(rows, |row| row.proposer.clone()),
        texts(rows, |row| row.digest.to_string()),
        texts(rows, |row| row.previous.to_string()),
        texts(rows, |row| row.receipts_root.to_string()),
        texts(rows, |row| row.state_digest.to_string()),
        numbers(rows, |row| row.bytes),
    ];
    batch(schema, arrays)
}

fn transaction_batch(schema: &SchemaRef, rows: &[TransactionRow]) -> Result<RecordBatch> {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let optional = |text: &dyn Fn(&TransactionRow) -> Option<String>| -> ArrayRef {
        Arc::new(rows.iter().map(text).collect::<StringArray>())
    };
    let arrays = vec![
        numbers(rows, |row| row.height),
        integers(rows, |row| row.index),
        texts(rows, |row| row.id.to_string()),
        texts(rows, |row| row.organisation.clone()),
        texts(rows, |row| row.client.clone()),
        texts(rows, |row| hexadecimal(&row.request.0)),
        texts(rows, |row| row.call.clone()),
        texts(rows, |row| row.outcome.as_str().to_string()),
        optional(&|row| row.sqlstate.clone()),
        optional(&|row| row.message.clone()),
    ];
    batch(schema, arrays)
}

fn node_batch(schema: &SchemaRef, rows: &[NodeRow]) -> Result<RecordBatch> {
    let heights = rows.iter().map(|row| row.height.and_then(|height| i64::try_from(height).ok()));
    let digests = rows.iter().map(|row| row.state_digest.map(|digest| digest.to_string()));
    let arrays = vec![
        texts(rows, |row| row.organisation.clone()),
        texts(rows, |row| row.address.clone()),
        texts(rows, |row| row.node_key.clone()),
        Arc::new(rows.iter().map(|row| Some(row.is_this_node)).collect::<BooleanArray>()) as ArrayRef,
        Arc::new(heights.collect::<Int64Array>()),
        Arc::new(digests.collect::<StringArray>()),
    ];
    batch(schema, arrays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::lit;

    #[test]
    fn simple_filters_narrow_the_selection() {
        let heights =
            |filter: Expr| Selection::ALL.narrowed(&filter, true).map(|selection| selection.heights);
        assert_eq!(heights(col("height").eq(lit(5_i64))), Some(5..=5));
        assert_eq!(heights(col("height").gt(lit(5_i64)).and(col("height").lt_eq(lit(9_i64)))), Some(6..=9));
        assert_eq!(heights(lit(5_i64).gt_eq(col("height"))), Some(0..=5));
        assert_eq!(heights(col("height").between(lit(2_i64), lit(3_i64))), Some(2..=3));
        assert_eq!(heights(col("height").lt(lit(0_i64))), Some(NOTHING));
        assert_eq!(heights(col("outcome").eq(lit("aborted"))), None);
        assert_eq!(heights(col("height").not_eq(lit(5_i64))), None);
        let id = Selection::ALL.narrowed(&col("id").eq(lit("ab".repeat(32))), true).expect("an id");
        assert_eq!(id.id, Some(TransactionId(crypto::Digest([0xab; 32]))));
    }
}
