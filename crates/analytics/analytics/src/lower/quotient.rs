//! Averages below other groups: a sum divided by a count, as PostgreSQL divides numeric values.

use crate::lower::arrays::{ANY_NUMERIC, numeric_at, numeric_column};
use crate::reason::OnRows;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType as ArrowType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use std::fmt::{self, Display};
use std::sync::Arc;
use types::Numeric;

/// A sum of numbers divided by a count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Quotient {
    /// The sum and the count.
    sides: [Arc<dyn PhysicalExpr>; 2],
}

impl Quotient {
    pub(crate) fn of(sum: Arc<dyn PhysicalExpr>, count: Arc<dyn PhysicalExpr>) -> Quotient {
        Quotient { sides: [sum, count] }
    }
}

impl Display for Quotient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [sum, count] = &self.sides;
        write!(f, "{sum} / {count}")
    }
}

impl PhysicalExpr for Quotient {
    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(ANY_NUMERIC)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let [sum, count] = &self.sides;
        let sums = sum.evaluate(batch)?.into_array(rows)?;
        let counts = count.evaluate(batch)?.into_array(rows)?;
        let counts = counts.as_primitive_opt::<Int64Type>();
        let counts = counts.ok_or_else(|| DataFusionError::Execution("a count of another type".into()))?;
        let quotient = |row: usize| match sums.is_null(row) {
            true => Ok(None),
            false => Ok(Some(numeric_at(&sums, row)?.checked_div(&Numeric::from(counts.value(row)))?)),
        };
        let quotients = (0..rows).map(quotient).collect::<Result<Vec<Option<Numeric>>, OnRows>>()?;
        Ok(ColumnarValue::Array(numeric_column(quotients.into_iter())?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.sides.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children);
        let sides = sides.map_err(|_| DataFusionError::Internal("a quotient has two sides".into()))?;
        Ok(Arc::new(Quotient { sides }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
