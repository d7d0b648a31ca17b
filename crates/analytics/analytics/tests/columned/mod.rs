//! A plain state with columns, made whenever they are asked for; and fragments that are counted.

#![allow(dead_code)]

use analytics::DataFusion;
use arrow_array::builder::{
    BooleanBuilder, Decimal128Builder, Int16Builder, Int32Builder, Int64Builder, StringViewBuilder,
};
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType as ArrowType;
use sql::{Fragment, RunFragments};
use state::{ColumnBatch, ColumnPiece, KeyRange, PlainState, ReadColumns, Snapshot, StoreError, column_type};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use types::{Catalog, Key, Row, Table, TableId, Value};

/// Rows to a batch of a small table: few, so that there are several.
const BATCH_ROWS: usize = 7;
/// Of a larger one: as many as a store gives.
const LARGE_BATCH_ROWS: usize = 8_192;

/// A state with columns.
pub struct Columned<'a>(pub &'a PlainState);

impl Snapshot for Columned<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.0.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Snapshot::get(self.0, table, key)
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        Snapshot::scan(self.0, table, range, reverse, visit)
    }

    fn about_rows(&self, _: TableId) -> Option<u64> {
        Some(1)
    }

    fn columns(&self, table: &Table, ordinals: &[usize]) -> Result<Option<Vec<ColumnBatch>>, StoreError> {
        let mut rows: Vec<Row> = Vec::new();
        self.scan(table.id, &KeyRange::ALL, false, &mut |_, row| {
            rows.push(row.clone());
            ControlFlow::Continue(())
        })?;
        // Nobody may count on an order.
        rows.reverse();
        let batch = |rows: &[Row]| {
            let columns = ordinals.iter().map(|ordinal| {
                let arrow = column_type(table.columns[*ordinal].data_type)?;
                array(&arrow, rows.iter().map(|row| &row[*ordinal]))
            });
            Some(ColumnBatch { rows: rows.len(), columns: columns.collect::<Option<_>>()? })
        };
        let batch_rows = if rows.len() > LARGE_BATCH_ROWS { LARGE_BATCH_ROWS } else { BATCH_ROWS };
        Ok(rows.chunks(batch_rows).map(batch).collect())
    }
}

/// A state whose columns are made of rows as they are read.
pub struct Streamed<'a>(pub &'a PlainState);

impl Snapshot for Streamed<'_> {
    fn catalog(&self) -> &Arc<Catalog> {
        self.0.catalog()
    }

    fn get(&self, table: TableId, key: &Key) -> Result<Option<Row>, StoreError> {
        Ok(self.0.get(table, key))
    }

    fn scan(
        &self,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(&Key, &Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.0.scan(table, range, reverse, visit);
        Ok(())
    }

    fn about_rows(&self, table: TableId) -> Option<u64> {
        Columned(self.0).about_rows(table)
    }

    fn read_columns(&self, table: &Table, ordinals: &[usize]) -> Option<Arc<dyn ReadColumns>> {
        let batches = Columned(self.0).columns(table, ordinals).ok()?;
        Some(Arc::new(Pieces(batches)))
    }
}

/// Pieces whose keys are their numbers; nothing where a value does not fit.
struct Pieces(Option<Vec<ColumnBatch>>);

impl ReadColumns for Pieces {
    fn piece(&self, behind: Option<&Key>) -> Result<Option<ColumnPiece>, StoreError> {
        let Some(batches) = &self.0 else { return Ok(Some(ColumnPiece { last: None, batch: None })) };
        let number = behind.map_or(0, |key| {
            let bytes = key.as_bytes().try_into().expect("eight bytes");
            u64::from_be_bytes(bytes) as usize + 1
        });
        let last = Key::from_bytes(&(number as u64).to_be_bytes());
        Ok(batches.get(number).map(|batch| ColumnPiece { last: Some(last), batch: Some(batch.clone()) }))
    }
}

macro_rules! built {
    ($builder:expr, $values:expr, $($kind:ident)|+) => {{
        let mut builder = $builder;
        for value in $values {
            match value {
                Value::Null => builder.append_null(),
                $(Value::$kind(value) => builder.append_value(value.clone()),)+
                _ => return None,
            }
        }
        Some(Arc::new(builder.finish()))
    }};
}

fn array<'v>(arrow: &ArrowType, values: impl Iterator<Item = &'v Value>) -> Option<ArrayRef> {
    match arrow {
        ArrowType::Boolean => built!(BooleanBuilder::new(), values, Boolean),
        ArrowType::Int16 => built!(Int16Builder::new(), values, SmallInt),
        ArrowType::Int32 => built!(Int32Builder::new(), values, Integer | Date),
        ArrowType::Int64 => {
            built!(Int64Builder::new(), values, BigInt | Time | Timestamp | TimestampTz)
        }
        ArrowType::Utf8View => built!(StringViewBuilder::new(), values, Text | Char),
        ArrowType::Float32 => {
            let of = |value: &Value| if let Value::Real(value) = value { Some(*value) } else { None };
            Some(Arc::new(PrimitiveArray::<Float32Type>::from_iter(values.map(of))))
        }
        ArrowType::Float64 => {
            let of = |value: &Value| if let Value::Double(value) = value { Some(*value) } else { None };
            Some(Arc::new(PrimitiveArray::<Float64Type>::from_iter(values.map(of))))
        }
        ArrowType::Decimal128(precision, scale) => {
            let mut builder = Decimal128Builder::new();
            for value in values {
                match value {
                    Value::Null => builder.append_null(),
                    Value::Numeric(number) if i32::from(number.scale()) == i32::from(*scale) => {
                        builder.append_value(number.small_mantissa()?);
                    }
                    _ => return None,
                }
            }
            let array = builder.finish().with_precision_and_scale(*precision, *scale).ok()?;
            Some(Arc::new(array) as Arc<dyn Array>)
        }
        _ => None,
    }
}

/// Runs fragments over any tables, and counts them.
#[derive(Debug, Default)]
pub struct Counted(AtomicUsize);

impl Counted {
    pub fn made(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl RunFragments for Counted {
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>> {
        let rows = DataFusion::from_rows(0).rows(fragment);
        self.0.fetch_add(usize::from(rows.is_some()), Relaxed);
        rows
    }

    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String> {
        DataFusion::from_rows(0).explain(fragment)
    }
}
