//! Some rows of a table, on which conditions are tried before the order of joins is chosen.

use crate::lower::fields::{Fields, Known};
use crate::reason::OnRows;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion_common::hash_utils::{RandomState, create_hashes};
use datafusion_physical_expr::PhysicalExpr;
use state::ColumnBatch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Batches that rows are taken from.
const BATCHES_MAX: usize = 16;
/// Rows that are taken from one.
const ROWS_MAX: usize = 256;

/// Some rows of a table.
pub(crate) struct Sample {
    rows: RecordBatch,
}

impl Sample {
    /// Rows from everywhere in these batches.
    pub(crate) fn of(fields: &Fields, batches: &[ColumnBatch]) -> Result<Sample, OnRows> {
        let step = batches.len().div_ceil(BATCHES_MAX).max(1);
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); fields.0.len()];
        let mut count = 0;
        for batch in batches.iter().step_by(step).filter(|batch| batch.rows > 0) {
            let positions =
                UInt32Array::from_iter_values((0..batch.rows as u32).step_by(batch.rows.div_ceil(ROWS_MAX)));
            count += positions.len();
            for (part, column) in parts.iter_mut().zip(&batch.columns) {
                part.push(arrow_select::take::take(column, &positions, None).map_err(OnRows::because)?);
            }
        }
        let whole = |(part, known): (&Vec<ArrayRef>, &Known)| {
            let arrays: Vec<&dyn Array> = part.iter().map(AsRef::as_ref).collect();
            match arrays.is_empty() {
                true => Ok(arrow_array::new_empty_array(&known.arrow)),
                false => arrow_select::concat::concat(&arrays).map_err(OnRows::because),
            }
        };
        let columns = parts.iter().zip(&fields.0).map(whole).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(fields.schema(), columns, &options);
        Ok(Sample { rows: rows.map_err(OnRows::because)? })
    }

    /// The share of rows for which a condition is true; never zero.
    pub(crate) fn share(&self, condition: &Arc<dyn PhysicalExpr>) -> Result<f64, OnRows> {
        let rows = self.rows.num_rows();
        if rows == 0 {
            return Ok(1.0);
        }
        let truths = condition.evaluate(&self.rows)?.into_array(rows)?;
        let truths = truths.as_boolean_opt().ok_or_else(|| OnRows::because("a condition without truth"))?;
        Ok((truths.true_count() as f64).max(0.5) / rows as f64)
    }

    /// About how many different values each column has in a table of so many rows; texts are left out.
    pub(crate) fn distinct(&self, fields: &Fields, table_rows: f64) -> Result<BTreeMap<usize, f64>, OnRows> {
        let rows = self.rows.num_rows();
        let mut distinct = BTreeMap::new();
        for (known, column) in fields.0.iter().zip(self.rows.columns()) {
            if rows == 0 || !known.arrow.is_primitive() {
                continue;
            }
            let mut hashes = vec![0; rows];
            create_hashes([column], &RandomState::with_seed(0), &mut hashes)?;
            let found = hashes.into_iter().collect::<BTreeSet<u64>>().len();
            // Where many rows of the sample have a value of their own, so have many rows of the table.
            let values = match found * 2 > rows {
                true => table_rows * found as f64 / rows as f64,
                false => found as f64,
            };
            distinct.insert(known.column, values);
        }
        Ok(distinct)
    }
}
