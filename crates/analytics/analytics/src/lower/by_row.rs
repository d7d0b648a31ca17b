//! Expressions for which Arrow has no kernel that gives what PostgreSQL gives: the row operators' own code computes them, row by
//! row, on the values of the columns that they look at.

use crate::lower::arrays::{ANY_NUMERIC, array_of, numeric_column, value_at};
use crate::lower::fields::Fields;
use crate::question::columns_of;
use crate::reason::OnRows;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType as ArrowType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use plan::expression::{Environment, Expression, Kind};
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use types::{DataType, Numeric, Value};

/// What of a value is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    /// The value.
    Value,
    /// The digits behind the point that a numeric value shows.
    Scale,
}

/// An expression that is computed row by row.
#[derive(Debug)]
pub(crate) struct ByRow {
    /// Its columns are numbered by `inputs`.
    expression: Expression,
    inputs: Vec<Arc<dyn PhysicalExpr>>,
    types: Vec<DataType>,
    frame: Arc<[Value]>,
    now: i64,
    wanted: Wanted,
    arrow: ArrowType,
}

impl ByRow {
    /// An expression over these columns. `given`: parameters and time.
    pub(crate) fn of(
        expression: &Expression,
        fields: &Fields,
        (frame, now): (&[Value], i64),
        wanted: Wanted,
    ) -> Result<ByRow, OnRows> {
        let arrow = match (expression.data_type, wanted) {
            (DataType::Numeric(_), Wanted::Value) => ANY_NUMERIC,
            (DataType::Numeric(_), Wanted::Scale) => ArrowType::Int16,
            (data_type, _) => state::column_type(data_type)
                .ok_or_else(|| OnRows::because(format_args!("an expression of type {data_type}")))?,
        };
        let schema = fields.schema();
        let columns: Vec<usize> = columns_of(expression).into_iter().collect();
        let (mut inputs, mut types) = (Vec::<Arc<dyn PhysicalExpr>>::new(), Vec::new());
        for column in &columns {
            let position = fields.position(*column)?;
            inputs.push(Arc::new(Column::new(schema.field(position).name(), position)));
            types.push(fields.0[position].data_type);
        }
        let mut expression = expression.clone();
        renumber(&mut expression, &columns);
        Ok(ByRow { expression, inputs, types, frame: Arc::from(frame), now, wanted, arrow })
    }

    fn values(&self, batch: &RecordBatch) -> Result<Vec<Value>, OnRows> {
        let rows = batch.num_rows();
        let inputs = self.inputs.iter().map(|input| input.evaluate(batch)?.into_array(rows));
        let inputs = inputs.collect::<Result<Vec<ArrayRef>>>()?;
        if let ([input], [data_type]) = (inputs.as_slice(), self.types.as_slice())
            && let Some(numbers) = whole_numbers(input)
        {
            return self.values_of_one(input, *data_type, numbers);
        }
        let mut values = Vec::with_capacity(rows);
        let mut row = Vec::with_capacity(inputs.len());
        for number in 0..rows {
            row.clear();
            for (input, data_type) in inputs.iter().zip(&self.types) {
                row.push(value_at(input, number, *data_type)?);
            }
            values.push(self.evaluate(&row)?);
        }
        Ok(values)
    }

    /// Days and numbers come again and again: each is computed once per batch.
    fn values_of_one(
        &self,
        input: &ArrayRef,
        data_type: DataType,
        numbers: impl Iterator<Item = Option<i64>>,
    ) -> Result<Vec<Value>, OnRows> {
        let mut known: HashMap<Option<i64>, Value> = HashMap::new();
        let mut values = Vec::with_capacity(input.len());
        for (row, number) in numbers.enumerate() {
            if let Some(value) = known.get(&number) {
                values.push(value.clone());
                continue;
            }
            let value = self.evaluate(&[value_at(input, row, data_type)?])?;
            known.insert(number, value.clone());
            values.push(value);
        }
        Ok(values)
    }

    fn evaluate(&self, row: &[Value]) -> Result<Value, OnRows> {
        Ok(self.expression.evaluate(&Environment::new(row, &self.frame, self.now))?)
    }
}

/// The values of an array of whole numbers.
fn whole_numbers(array: &ArrayRef) -> Option<Box<dyn Iterator<Item = Option<i64>> + '_>> {
    Some(match array.data_type() {
        ArrowType::Int32 => {
            Box::new(array.as_primitive::<Int32Type>().iter().map(|value| value.map(i64::from)))
        }
        ArrowType::Int64 => Box::new(array.as_primitive::<Int64Type>().iter()),
        _ => return None,
    })
}

fn renumber(expression: &mut Expression, columns: &[usize]) {
    if let Kind::Column(ordinal) = &mut expression.kind {
        *ordinal = columns.partition_point(|column| column < &usize::from(*ordinal)) as u16;
    }
    expression.operands_mut().into_iter().for_each(|operand| renumber(operand, columns));
}

fn number(value: Value) -> Option<Numeric> {
    match value {
        Value::Numeric(number) => Some(number),
        _ => None,
    }
}

impl PartialEq for ByRow {
    fn eq(&self, other: &ByRow) -> bool {
        self.expression == other.expression && self.wanted == other.wanted && self.inputs == other.inputs
    }
}

impl Eq for ByRow {}

impl Hash for ByRow {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inputs.hash(state);
        self.wanted.hash(state);
    }
}

impl Display for ByRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.wanted, self.expression)
    }
}

impl PhysicalExpr for ByRow {
    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(self.arrow.clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.values(batch)?;
        let array = match (self.expression.data_type, self.wanted) {
            (DataType::Numeric(_), Wanted::Value) => numeric_column(values.into_iter().map(number))?,
            (DataType::Numeric(_), Wanted::Scale) => {
                let scale = |value| number(value).map(|number| number.scale() as i16);
                Arc::new(values.into_iter().map(scale).collect::<PrimitiveArray<Int16Type>>())
            }
            (data_type, _) => array_of(&values, data_type, &self.arrow)?,
        };
        Ok(ColumnarValue::Array(array))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.inputs.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if inputs.len() != self.inputs.len() {
            return Err(DataFusionError::Internal("an expression keeps its inputs".into()));
        }
        let (expression, types) = (self.expression.clone(), self.types.clone());
        let (frame, arrow) = (self.frame.clone(), self.arrow.clone());
        Ok(Arc::new(ByRow { expression, inputs, types, frame, now: self.now, wanted: self.wanted, arrow }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}
