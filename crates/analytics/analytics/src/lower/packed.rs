//! Several short keys of groups as one number, so that a row finds its group by comparing one number.

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType as ArrowType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use std::fmt::{self, Display};
use std::sync::Arc;
use types::DataType;

/// The number as an array has it. Its digits mean nothing.
const NUMBER: ArrowType = ArrowType::Decimal128(38, 0);
const NUMBER_BYTES: u32 = 16;
/// Most bytes of a text that stands in its view.
const VIEW_BYTES: u32 = 12;
/// Most bytes of a character.
const CHARACTER_BYTES: u32 = 4;

/// Where the value of one key stands in the number: a byte that is zero for NULL, and its own bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Part {
    arrow: ArrowType,
    /// Bits below it.
    shift: u32,
    /// Most bytes that a value has.
    bytes: u32,
}

/// How keys stand in one number.
#[derive(Clone, Debug)]
pub(super) struct Packing(Vec<Part>);

impl Packing {
    /// `None`: they do not fit, or nothing is gained.
    pub(super) fn of<'k>(keys: impl Iterator<Item = (DataType, &'k ArrowType)>) -> Option<Packing> {
        let (mut parts, mut used) = (Vec::new(), 0);
        for (data_type, arrow) in keys {
            let bytes = match (data_type, arrow) {
                (DataType::Char(Some(length)) | DataType::Text(Some(length)), ArrowType::Utf8View)
                    if length <= VIEW_BYTES / CHARACTER_BYTES =>
                {
                    length * CHARACTER_BYTES
                }
                (_, ArrowType::Boolean) => 1,
                (_, ArrowType::Int16) => 2,
                (_, ArrowType::Int32) => 4,
                (_, ArrowType::Int64) => 8,
                _ => return None,
            };
            parts.push(Part { arrow: arrow.clone(), shift: used * 8, bytes });
            used += 1 + bytes;
        }
        // One number is found as fast as it is.
        let gains = parts.len() > 1 || parts.first().is_some_and(|part| part.arrow == ArrowType::Utf8View);
        (gains && used <= NUMBER_BYTES).then_some(Packing(parts))
    }

    /// The number that these keys make.
    pub(super) fn number(&self, keys: Vec<Arc<dyn PhysicalExpr>>) -> Arc<dyn PhysicalExpr> {
        Arc::new(Packed { keys, parts: self.0.clone() })
    }

    /// The keys in the number.
    pub(super) fn keys(&self, number: &Arc<dyn PhysicalExpr>) -> impl Iterator<Item = Arc<dyn PhysicalExpr>> {
        self.0.iter().map(|part| {
            Arc::new(Unpacked { number: [number.clone()], part: part.clone() }) as Arc<dyn PhysicalExpr>
        })
    }
}

impl Part {
    /// Adds the values of an array to the numbers of their rows.
    fn add(&self, array: &ArrayRef, numbers: &mut [i128]) -> Result<()> {
        if *array.data_type() != self.arrow {
            return Err(unexpected(array.data_type()));
        }
        match self.arrow {
            ArrowType::Utf8View => return self.add_texts(array, numbers),
            ArrowType::Boolean => {
                let values = array.as_boolean();
                self.put(array, numbers, (0..values.len()).map(|row| values.value(row).into()));
            }
            ArrowType::Int16 => {
                let values = array.as_primitive::<Int16Type>().values();
                self.put(array, numbers, values.iter().map(|value| *value as u16 as u128));
            }
            ArrowType::Int32 => {
                let values = array.as_primitive::<Int32Type>().values();
                self.put(array, numbers, values.iter().map(|value| *value as u32 as u128));
            }
            ArrowType::Int64 => {
                let values = array.as_primitive::<Int64Type>().values();
                self.put(array, numbers, values.iter().map(|value| *value as u64 as u128));
            }
            _ => return Err(unexpected(&self.arrow)),
        }
        Ok(())
    }

    fn put(&self, array: &ArrayRef, numbers: &mut [i128], values: impl Iterator<Item = u128>) {
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for (number, value) in numbers.iter_mut().zip(values) {
                    *number |= ((value << 8 | 1) << self.shift) as i128;
                }
            }
            Some(nulls) => {
                for ((number, value), is_there) in numbers.iter_mut().zip(values).zip(nulls) {
                    *number |= if is_there { ((value << 8 | 1) << self.shift) as i128 } else { 0 };
                }
            }
        }
    }

    /// A short text stands in its view, behind its length, with zeros behind it (Arrow's format says so). The byte that is zero for
    /// NULL is its length and one here.
    fn add_texts(&self, array: &ArrayRef, numbers: &mut [i128]) -> Result<()> {
        let views = array.as_string_view().views();
        let lengths = |longest: u32, view: &u128| longest.max(*view as u32);
        let packed =
            |view: &u128| (((*view >> 32) << 8 | (u128::from(*view as u32) + 1)) << self.shift) as i128;
        let longest = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for (number, view) in numbers.iter_mut().zip(views.iter()) {
                    *number |= packed(view);
                }
                views.iter().fold(0, lengths)
            }
            Some(nulls) => {
                nulls.valid_indices().for_each(|row| numbers[row] |= packed(&views[row]));
                nulls.valid_indices().map(|row| &views[row]).fold(0, lengths)
            }
        };
        match longest > self.bytes {
            true => Err(DataFusionError::Execution("a text is longer than its type".into())),
            false => Ok(()),
        }
    }

    /// The value's own bytes in a number; `None`: it is NULL.
    fn value(&self, number: i128) -> Option<(usize, u128)> {
        let part = number as u128 >> self.shift;
        let tag = (part & 0xff) as usize;
        let mask = (1_u128 << (8 * self.bytes)) - 1;
        (tag > 0).then(|| (tag - 1, (part >> 8) & mask))
    }

    fn values(&self, numbers: &PrimitiveArray<Decimal128Type>) -> Result<ArrayRef> {
        let values = numbers.values().iter().map(|number| self.value(*number));
        Ok(match self.arrow {
            ArrowType::Boolean => {
                let mut builder = BooleanBuilder::with_capacity(numbers.len());
                values.for_each(|value| builder.append_option(value.map(|(_, value)| value == 1)));
                Arc::new(builder.finish())
            }
            ArrowType::Int16 => array::<Int16Type>(values, |value| value as i16),
            ArrowType::Int32 => array::<Int32Type>(values, |value| value as i32),
            ArrowType::Int64 => array::<Int64Type>(values, |value| value as i64),
            ArrowType::Utf8View => {
                let mut builder = StringViewBuilder::with_capacity(numbers.len());
                for value in values {
                    let bytes = value.map(|(length, value)| (length, value.to_le_bytes()));
                    let text = bytes.as_ref().map(|(length, bytes)| std::str::from_utf8(&bytes[..*length]));
                    builder.append_option(text.transpose().map_err(|_| unexpected(&self.arrow))?);
                }
                Arc::new(builder.finish())
            }
            _ => return Err(unexpected(&self.arrow)),
        })
    }
}

fn array<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = Option<(usize, u128)>>,
    value: impl Fn(u128) -> T::Native,
) -> ArrayRef {
    let mut builder = PrimitiveBuilder::<T>::new();
    values.for_each(|packed| builder.append_option(packed.map(|(_, bytes)| value(bytes))));
    Arc::new(builder.finish())
}

fn unexpected(arrow: &ArrowType) -> DataFusionError {
    DataFusionError::Execution(format!("a key of groups of another type: {arrow}"))
}

/// The number that some keys make.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Packed {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    parts: Vec<Part>,
}

impl Display for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one number of")?;
        self.keys.iter().try_for_each(|key| write!(f, " {key}"))
    }
}

impl PhysicalExpr for Packed {
    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(NUMBER)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut numbers = vec![0_i128; batch.num_rows()];
        for (key, part) in self.keys.iter().zip(&self.parts) {
            part.add(&key.evaluate(batch)?.into_array(batch.num_rows())?, &mut numbers)?;
        }
        let array = PrimitiveArray::<Decimal128Type>::new(numbers.into(), None).with_data_type(NUMBER);
        Ok(ColumnarValue::Array(Arc::new(array)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.keys.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, keys: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match keys.len() == self.keys.len() {
            true => Ok(Arc::new(Packed { keys, parts: self.parts.clone() })),
            false => Err(DataFusionError::Internal("a number keeps its keys".into())),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// One of the keys in a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Unpacked {
    number: [Arc<dyn PhysicalExpr>; 1],
    part: Part,
}

impl Display for Unpacked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key in {}", self.number[0])
    }
}

impl PhysicalExpr for Unpacked {
    fn data_type(&self, _: &Schema) -> Result<ArrowType> {
        Ok(self.part.arrow.clone())
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(true)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let numbers = self.number[0].evaluate(batch)?.into_array(batch.num_rows())?;
        let numbers = numbers.as_primitive_opt::<Decimal128Type>();
        let numbers = numbers.ok_or_else(|| unexpected(&NUMBER))?;
        Ok(ColumnarValue::Array(self.part.values(numbers)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.number.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let children = <[_; 1]>::try_from(children);
        let number = children.map_err(|_| DataFusionError::Internal("a key has one number".into()))?;
        Ok(Arc::new(Unpacked { number, part: self.part.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BooleanArray, Int16Array, Int32Array, Int64Array, StringViewArray};
    use arrow_schema::Field;
    use datafusion_physical_expr::expressions::Column;

    /// Packs columns, looks at the numbers, and unpacks them.
    fn round_trip(columns: Vec<(DataType, ArrayRef)>) -> Vec<u128> {
        let arrows: Vec<ArrowType> = columns.iter().map(|(_, array)| array.data_type().clone()).collect();
        let types = columns.iter().map(|(data_type, _)| *data_type);
        let packing = Packing::of(types.zip(&arrows)).expect("they fit");
        let fields = arrows.iter().map(|arrow| Field::new("c", arrow.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays: Vec<ArrayRef> = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(schema, arrays.clone()).expect("arrays of a length");
        let keys = (0..arrays.len()).map(|at| Arc::new(Column::new("c", at)) as Arc<dyn PhysicalExpr>);
        let number = packing.number(keys.collect());
        for (key, array) in packing.keys(&number).zip(&arrays) {
            let unpacked = key.evaluate(&batch).and_then(|values| values.into_array(batch.num_rows()));
            assert_eq!(&unpacked.expect("they are numbers"), array);
        }
        let numbers = number.evaluate(&batch).and_then(|values| values.into_array(batch.num_rows()));
        let numbers = numbers.expect("they fit");
        numbers.as_primitive::<Decimal128Type>().values().iter().map(|number| *number as u128).collect()
    }

    #[test]
    fn keys_come_back_and_different_ones_make_different_numbers() {
        let texts = StringViewArray::from(vec![Some("äöü"), Some(""), None, Some("a"), Some("a  ")]);
        let numbers = round_trip(vec![(DataType::Char(Some(3)), Arc::new(texts))]);
        let different: std::collections::BTreeSet<u128> = numbers.iter().copied().collect();
        assert_eq!(different.len(), numbers.len());
        let small = Int16Array::from(vec![Some(i16::MIN), Some(-1), Some(0), None, Some(i16::MAX)]);
        let middle = Int32Array::from(vec![None, Some(0), Some(i32::MIN), Some(-1), Some(i32::MAX)]);
        let truths = BooleanArray::from(vec![Some(false), None, Some(true), Some(false), Some(true)]);
        let numbers = round_trip(vec![
            (DataType::SmallInt, Arc::new(small)),
            (DataType::Date, Arc::new(middle)),
            (DataType::Boolean, Arc::new(truths)),
        ]);
        let different: std::collections::BTreeSet<u128> = numbers.iter().copied().collect();
        assert_eq!(different.len(), numbers.len());
        let large = Int64Array::from(vec![Some(i64::MIN), Some(-1), None]);
        let text = StringViewArray::from(vec![Some("x"), None, Some("ß")]);
        round_trip(vec![(DataType::BigInt, Arc::new(large)), (DataType::Text(Some(1)), Arc::new(text))]);
    }

    #[test]
    fn what_does_not_fit_or_gains_nothing_is_left() {
        let of = |keys: &[(DataType, ArrowType)]| {
            Packing::of(keys.iter().map(|(data_type, arrow)| (*data_type, arrow))).is_some()
        };
        let text = |length| (DataType::Char(Some(length)), ArrowType::Utf8View);
        assert!(of(&[text(1), text(1)]) && of(&[text(3)]) && of(&[text(1), text(1), text(1)]));
        assert!(!of(&[text(4)]) && !of(&[text(3), text(1)]));
        assert!(!of(&[(DataType::Text(None), ArrowType::Utf8View)]));
        assert!(!of(&[(DataType::BigInt, ArrowType::Int64)]), "it is a number already");
        assert!(!of(&[(DataType::BigInt, ArrowType::Int64), (DataType::Time, ArrowType::Int64)]));
        assert!(!of(&[]));
    }

    #[test]
    fn a_text_that_is_longer_than_its_type_is_an_error() {
        let part = Part { arrow: ArrowType::Utf8View, shift: 0, bytes: 4 };
        let of = |text: &str| {
            let array: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
            part.add(&array, &mut [0])
        };
        assert!(of("abcd").is_ok());
        assert!(of("abcde").is_err());
        assert!(of("a text that does not stand in its view").is_err());
        let array: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        assert!(part.add(&array, &mut [0]).is_err());
    }
}
