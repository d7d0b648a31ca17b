//! Sums of whole numbers and decimals that are exact: an overflow is an error, where DataFusion's own sum wraps.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Decimal128Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use std::sync::Arc;

/// Digits of a sum.
const PRECISION: u8 = 38;

/// The exact sum of the values that are not NULL; NULL where there are none.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExactSum {
    signature: Signature,
}

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "exact_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.first() {
            Some(DataType::Decimal128(_, scale)) => Ok(DataType::Decimal128(PRECISION, *scale)),
            _ => Ok(DataType::Decimal128(PRECISION, 0)),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let sum = arguments.return_field.data_type().clone();
        Ok(vec![Arc::new(Field::new(format!("{}[sum]", arguments.name), sum, true))])
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneSum { scale: scale_of(arguments.return_field.data_type()), sum: None }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let scale = scale_of(arguments.return_field.data_type());
        Ok(Box::new(GroupSums { scale, sums: Vec::new(), has_any: Vec::new() }))
    }
}

fn scale_of(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal128(_, scale) => *scale,
        _ => 0,
    }
}

#[cold]
fn overflow() -> DataFusionError {
    DataFusionError::Execution("a sum has more than 38 digits".into())
}

/// The sum of all rows.
#[derive(Debug)]
struct OneSum {
    scale: i8,
    sum: Option<i128>,
}

impl OneSum {
    fn add(&mut self, more: i128) -> Result<()> {
        self.sum = Some(self.sum.unwrap_or(0).checked_add(more).ok_or_else(overflow)?);
        Ok(())
    }
}

impl Accumulator for OneSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return Err(overflow()) };
        if values.null_count() == values.len() {
            return Ok(());
        }
        // Of at most 2^31 whole numbers of 64 bits there is no overflow.
        let sum = match values.data_type() {
            DataType::Int64 if values.null_count() == 0 => {
                values.as_primitive::<Int64Type>().values().iter().map(|value| i128::from(*value)).sum()
            }
            DataType::Int32 if values.null_count() == 0 => {
                let values = values.as_primitive::<Int32Type>().values();
                i128::from(values.iter().map(|value| i64::from(*value)).sum::<i64>())
            }
            _ => {
                let mut sum = 0_i128;
                each_value(values, &mut |_, value| {
                    sum = sum.checked_add(value).ok_or_else(overflow)?;
                    Ok(())
                })?;
                sum
            }
        };
        self.add(sum)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Decimal128(self.sum, PRECISION, self.scale))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

/// So many groups have sums of a batch of their own.
const FEW_GROUPS: usize = 1_024;
/// Of so many rows, values of fewer bits than this have no sum of 64 bits or more.
const SMALL_ROWS: usize = 1 << 14;
const SMALL: i128 = 1 << 48;
const SMALL_BITS: u32 = 49;

/// The sum of each group.
struct GroupSums {
    scale: i8,
    sums: Vec<i128>,
    /// Whether a group has a value.
    has_any: Vec<bool>,
}

impl GroupSums {
    fn array(&self, sums: impl IntoIterator<Item = Option<i128>>) -> Result<ArrayRef> {
        let sums: Decimal128Array = sums.into_iter().collect();
        Ok(Arc::new(sums.with_precision_and_scale(PRECISION, self.scale)?))
    }

    /// Adds decimals of few groups with sums of 64 bits, where no sum of a batch can have more. False: nothing was added.
    fn add_small(&mut self, values: &ArrayRef, groups: &[usize]) -> Result<bool> {
        let Some(values) = values.as_primitive_opt::<Decimal128Type>().map(|array| array.values()) else {
            return Ok(false);
        };
        let beyond =
            values.iter().fold(0, |beyond, value| beyond | value.wrapping_add(SMALL) as u128 >> SMALL_BITS);
        if beyond != 0 || values.len() > SMALL_ROWS {
            return Ok(false);
        }
        let mut sums = vec![(0_i64, false); self.sums.len()];
        for (value, group) in values.iter().zip(groups) {
            let sum = &mut sums[*group];
            *sum = (sum.0 + *value as i64, true);
        }
        for (group, (sum, has_any)) in sums.into_iter().enumerate() {
            self.sums[group] = self.sums[group].checked_add(i128::from(sum)).ok_or_else(overflow)?;
            self.has_any[group] |= has_any;
        }
        Ok(true)
    }

    /// Adds the values that are not NULL. An overflow is looked for once: whatever the sums are then, nobody gets them.
    fn add(&mut self, values: &ArrayRef, groups: &[usize], takes: impl Fn(usize) -> bool) -> Result<()> {
        let (sums, has_any, mut overflows) = (&mut self.sums, &mut self.has_any, false);
        each_value(values, &mut |row, value| {
            if takes(row) {
                let group = groups[row];
                let (sum, overflow) = sums[group].overflowing_add(value);
                (sums[group], has_any[group]) = (sum, true);
                overflows |= overflow;
            }
            Ok(())
        })?;
        if overflows { Err(overflow()) } else { Ok(()) }
    }
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let [values] = values else { return Err(overflow()) };
        self.sums.resize(total, 0);
        self.has_any.resize(total, false);
        match filter {
            None if values.null_count() == 0 && total <= FEW_GROUPS && self.add_small(values, groups)? => {
                Ok(())
            }
            None => self.add(values, groups, |_| true),
            Some(filter) => self.add(values, groups, |row| filter.is_valid(row) && filter.value(row)),
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, has_any) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.has_any));
        self.array(sums.into_iter().zip(has_any).map(|(sum, has_any)| has_any.then_some(sum)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(values, groups, None, total)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return Err(overflow()) };
        let mut sums = vec![None; values.len()];
        each_value(values, &mut |row, value| {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                sums[row] = Some(value);
            }
            Ok(())
        })?;
        Ok(vec![self.array(sums)?])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.has_any.capacity()
    }
}

/// Visits the values that are not NULL.
fn each_value(values: &ArrayRef, visit: &mut impl FnMut(usize, i128) -> Result<()>) -> Result<()> {
    macro_rules! visit_all {
        ($kind:ty) => {{
            let array = values.as_primitive::<$kind>();
            match array.nulls() {
                None => array
                    .values()
                    .iter()
                    .enumerate()
                    .try_for_each(|(row, value)| visit(row, i128::from(*value))),
                Some(nulls) => {
                    nulls.valid_indices().try_for_each(|row| visit(row, i128::from(array.value(row))))
                }
            }
        }};
    }
    match values.data_type() {
        DataType::Int16 => visit_all!(Int16Type),
        DataType::Int32 => visit_all!(Int32Type),
        DataType::Int64 => visit_all!(Int64Type),
        DataType::Decimal128(..) => visit_all!(Decimal128Type),
        other => Err(DataFusionError::Execution(format!("a sum of {other}"))),
    }
}
