//! `+ - *` of decimals: with products of 64 bits where all values of a batch fit, as amounts of money do; otherwise by Arrow.
//!
//! Arrow checks each product of 128 bits for an overflow, which takes most of the time of a query such as TPC-H's first. A product
//! of two numbers of 64 bits has at most 126 bits, and those have fewer than 38 digits: nothing is to be checked then.

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{Array, ArrayRef, Decimal128Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as ArrowType, Schema};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::BinaryExpr;
use std::fmt::{self, Display};
use std::sync::Arc;

/// Digits by which a side is shifted at most without an overflow of 64 bits times 64 bits.
const SHIFT_MAX: u32 = 18;

/// A sum, a difference or a product of decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DecimalArithmetic {
    operator: Operator,
    sides: [Arc<dyn PhysicalExpr>; 2],
    /// What the values of each side are multiplied with before they are added.
    factors: [i64; 2],
    result: ArrowType,
}

impl DecimalArithmetic {
    /// Of two sides whose arrays have these types; `None`: they are to be computed otherwise.
    pub(crate) fn of(
        operator: Operator,
        sides: [Arc<dyn PhysicalExpr>; 2],
        types: [&ArrowType; 2],
        result: &ArrowType,
    ) -> Option<DecimalArithmetic> {
        let [ArrowType::Decimal128(_, left), ArrowType::Decimal128(_, right)] = types else { return None };
        let ArrowType::Decimal128(_, scale) = result else { return None };
        let factors = match operator {
            Operator::Multiply if left + right == *scale => [1, 1],
            Operator::Plus | Operator::Minus => [factor(*left, *scale)?, factor(*right, *scale)?],
            _ => return None,
        };
        Some(DecimalArithmetic { operator, sides, factors, result: result.clone() })
    }

    /// `None`: some value does not fit.
    fn computed(&self, sides: &[ColumnarValue; 2], rows: usize) -> Option<ArrayRef> {
        let [left, right] = [Side::of(&sides[0])?, Side::of(&sides[1])?];
        let values = match self.operator {
            Operator::Multiply => each(&left, &right, rows, |a, b| i128::from(a) * i128::from(b)),
            operator => {
                let [by_left, by_right] = self.factors.map(i128::from);
                let by_right = if operator == Operator::Minus { -by_right } else { by_right };
                each(&left, &right, rows, |a, b| i128::from(a) * by_left + i128::from(b) * by_right)
            }
        };
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        let array = Decimal128Array::new(values.into(), nulls);
        Some(Arc::new(array.with_data_type(self.result.clone())))
    }

    fn by_arrow(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let [left, right] = self.sides.clone();
        BinaryExpr::new(left, self.operator, right).with_fail_on_overflow(true).evaluate(batch)
    }
}

fn factor(from: i8, to: i8) -> Option<i64> {
    let shift = u32::try_from(to.checked_sub(from)?).ok().filter(|shift| *shift <= SHIFT_MAX)?;
    10_i64.checked_pow(shift)
}

/// One side, all values of which have 64 bits.
enum Side<'a> {
    Array(&'a Decimal128Array),
    Value(i64),
}

impl<'a> Side<'a> {
    fn of(side: &'a ColumnarValue) -> Option<Side<'a>> {
        match side {
            ColumnarValue::Array(array) => {
                let array = array.as_primitive_opt::<Decimal128Type>()?;
                fit(array.values()).then_some(Side::Array(array))
            }
            ColumnarValue::Scalar(ScalarValue::Decimal128(Some(value), ..)) => {
                i64::try_from(*value).ok().map(Side::Value)
            }
            ColumnarValue::Scalar(_) => None,
        }
    }

    fn nulls(&self) -> Option<&NullBuffer> {
        match self {
            Side::Array(array) => array.nulls(),
            Side::Value(_) => None,
        }
    }
}

/// Whether all values have 64 bits. What stands where a value is NULL counts too: then Arrow computes.
fn fit(values: &[i128]) -> bool {
    let beyond = values.iter().fold(0, |beyond, value| beyond | (i128::from(*value as i64) ^ value));
    beyond == 0
}

fn each(left: &Side<'_>, right: &Side<'_>, rows: usize, compute: impl Fn(i64, i64) -> i128) -> Vec<i128> {
    match (left, right) {
        (Side::Array(left), Side::Array(right)) => {
            let pairs = left.values().iter().zip(right.values());
            pairs.map(|(a, b)| compute(*a as i64, *b as i64)).collect()
        }
        (Side::Array(left), Side::Value(b)) => left.values().iter().map(|a| compute(*a as i64, *b)).collect(),
        (Side::Value(a), Side::Array(right)) => {
            right.values().iter().map(|b| compute(*a, *b as i64)).collect()
        }
        (Side::Value(a), Side::Value(b)) => vec![compute(*a, *b); rows],
    }
}

impl Display for DecimalArithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.sides;
        write!(f, "({left} {} {right})", self.operator)
    }
}

impl PhysicalExpr for DecimalArithmetic {
    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(self.result.clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let [left, right] = &self.sides;
        let sides = [left.evaluate(batch)?, right.evaluate(batch)?];
        match self.computed(&sides, batch.num_rows()) {
            Some(array) => Ok(ColumnarValue::Array(array)),
            None => self.by_arrow(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.sides.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children);
        let sides = sides.map_err(|_| DataFusionError::Internal("an operator has two sides".into()))?;
        let (operator, factors, result) = (self.operator, self.factors, self.result.clone());
        Ok(Arc::new(DecimalArithmetic { operator, sides, factors, result }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Field;
    use datafusion_physical_expr::expressions::Column;

    /// What Arrow computes, and what is computed here, of columns of these types with these values.
    fn both(operator: Operator, left: (u8, i8, Vec<Option<i128>>), right: (u8, i8, Vec<Option<i128>>)) {
        let array = |(precision, scale, values): (u8, i8, Vec<Option<i128>>)| {
            let array = Decimal128Array::from(values).with_precision_and_scale(precision, scale);
            Arc::new(array.expect("a type of decimals")) as ArrayRef
        };
        let (left, right) = (array(left), array(right));
        let field = |name: &str, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field("a", &left), field("b", &right)]));
        let types = [left.data_type().clone(), right.data_type().clone()];
        let batch = RecordBatch::try_new(schema.clone(), vec![left, right]).expect("a batch");
        let side = |name: &str, position| Arc::new(Column::new(name, position)) as Arc<dyn PhysicalExpr>;
        let sides = [side("a", 0), side("b", 1)];
        let arrow = BinaryExpr::new(sides[0].clone(), operator, sides[1].clone()).with_fail_on_overflow(true);
        let result = arrow.data_type(&schema).expect("a type");
        let own =
            DecimalArithmetic::of(operator, sides, [&types[0], &types[1]], &result).expect("it is known");
        let array =
            |value: Result<ColumnarValue>| value.and_then(|value| value.into_array(batch.num_rows())).ok();
        let (expected, found) = (array(arrow.evaluate(&batch)), array(own.evaluate(&batch)));
        assert_eq!(found.is_some(), expected.is_some(), "{operator}");
        if let (Some(expected), Some(found)) = (expected, found) {
            assert_eq!(found.as_ref(), expected.as_ref(), "{operator}");
        }
    }

    #[test]
    fn results_and_overflows_are_arrows() {
        let largest = i128::from(i64::MAX);
        let small = vec![Some(0), Some(1), Some(-3), None, Some(99_999), Some(-99_999)];
        let mixed = vec![Some(7), None, Some(-1), Some(5), Some(-99_999), Some(99_999)];
        let long = vec![Some(largest), Some(-largest - 1), Some(largest), None, Some(1), Some(largest)];
        let longer = vec![Some(largest + 1), Some(1), Some(-largest - 2), None, Some(0), Some(3)];
        for operator in [Operator::Plus, Operator::Minus, Operator::Multiply] {
            both(operator, (15, 2, small.clone()), (16, 4, mixed.clone()));
            both(operator, (19, 2, long.clone()), (19, 0, long.clone()));
            both(operator, (30, 2, longer.clone()), (12, 6, small.clone()));
            both(operator, (38, 0, vec![Some(10_i128.pow(38) - 1)]), (38, 0, vec![Some(2)]));
        }
    }
}
