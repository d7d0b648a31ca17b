//! What expressions do with rows: making them, taking them apart, comparing and converting them.

use crate::expression::enum_call::EnumCall;
use crate::expression::{Environment, Expression};
use std::cmp::Ordering;
use std::sync::Arc;
use types::{Composite, CompositeTypes, DataType, EnumValue, SqlError, TypeId, Value};
use values::functions::{Counting, json_record};
use values::{Comparison, broken};

/// What becomes of some operands.
#[derive(Clone, Debug)]
pub enum RowOperation {
    /// A row of them, of the expression's type.
    Build(RowForm),
    /// The field at this position of the operand.
    Field(u16),
    /// The first operand with the second one as the field at this position, of so many.
    WithField(u16, u16),
    /// A cast to the expression's type; the flag: an explicit one.
    Convert(bool, Arc<CompositeTypes>),
    /// The second operand, which is JSON, as a row with the fields of the first one where it has none; the function's name.
    OfJson(Arc<str>, Arc<CompositeTypes>),
    /// The operand, held against the conditions of the domain with this number.
    CheckDomain(TypeId, Arc<CompositeTypes>),
    /// The operand, in which rows have columns of domains: these are held against their conditions.
    CheckInside(Arc<CompositeTypes>),
    /// `enum_first` and its kind, of these values.
    EnumValues(EnumCall, Arc<[Arc<EnumValue>]>),
    /// `IS NULL`, where all fields are; the flag is false: `IS NOT NULL`, where none is.
    IsNull(bool),
    /// A comparison, field by field.
    Compare(Comparison),
    /// `IS [NOT] DISTINCT FROM`; the flag: distinct gives true.
    Distinct(bool),
}

/// Where a row comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowForm {
    /// Names of the fields; none for those of `ROW(…)`, which are `f1`, `f2`, …
    pub names: Option<Arc<[String]>>,
    /// It is written out: two of these compare by their fields' own comparisons.
    pub is_constructor: bool,
    /// It is NULL where all of its fields are: the row of an outer join that may not be there, and variables.
    pub may_be_missing: bool,
}

impl PartialEq for RowOperation {
    fn eq(&self, other: &RowOperation) -> bool {
        use RowOperation::{
            Build, CheckDomain, CheckInside, Compare, Convert, Distinct, EnumValues, Field, IsNull, OfJson,
            WithField,
        };
        match (self, other) {
            (Build(a), Build(b)) => a == b,
            (Field(a), Field(b)) => a == b,
            (WithField(a, count), WithField(b, other)) => a == b && count == other,
            // One statement has one catalog.
            (Convert(a, _), Convert(b, _)) => a == b,
            (OfJson(a, _), OfJson(b, _)) => a == b,
            (CheckDomain(a, _), CheckDomain(b, _)) => a == b,
            (CheckInside(_), CheckInside(_)) => true,
            (EnumValues(a, of), EnumValues(b, other)) => a == b && of == other,
            (IsNull(a), IsNull(b)) | (Distinct(a), Distinct(b)) => a == b,
            (Compare(a), Compare(b)) => a == b,
            _ => false,
        }
    }
}

impl RowOperation {
    /// Its value.
    ///
    /// # Errors
    /// What operands raise; a row that is too large; rows that do not compare.
    pub(super) fn evaluate(
        &self,
        operands: &[Expression],
        data_type: DataType,
        environment: &Environment<'_>,
    ) -> Result<Value, SqlError> {
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            values.push(operand.evaluate(environment)?);
        }
        match self {
            RowOperation::Build(form) => {
                if form.may_be_missing && values.iter().all(Value::is_null) {
                    return Ok(Value::Null);
                }
                row_value(data_type, values)
            }
            RowOperation::Field(position) => match values.first() {
                Some(Value::Composite(row)) => {
                    Ok(row.values().get(usize::from(*position)).cloned().unwrap_or_default())
                }
                _ => Ok(Value::Null),
            },
            RowOperation::WithField(position, count) => {
                let mut values = values.into_iter();
                let mut fields = match values.next() {
                    Some(Value::Composite(row)) => row.values().to_vec(),
                    _ => Vec::new(),
                };
                fields.resize(usize::from(*count), Value::Null);
                let field = fields.get_mut(usize::from(*position));
                *field.ok_or_else(|| broken("a field that a row does not have"))? =
                    values.next().unwrap_or_default();
                row_value(data_type, fields)
            }
            RowOperation::Convert(explicit, types) => {
                let value = values.pop().unwrap_or_default();
                if *explicit { types.cast(value, data_type) } else { types.assign(value, data_type) }
            }
            RowOperation::OfJson(function, types) => match values.as_slice() {
                [base, json] => {
                    let counting = Counting { row: &|_| Ok(()), number: &|value| environment.count(value) };
                    json_record(function, json, base, data_type, (types, counting))
                }
                _ => Err(broken("a record of JSON without any")),
            },
            RowOperation::CheckDomain(..) | RowOperation::CheckInside(_) => {
                self.checked(values.pop().unwrap_or_default())
            }
            RowOperation::EnumValues(call, known) => call.evaluate(known, &values, data_type),
            RowOperation::IsNull(expected) => {
                let truth = match values.first() {
                    Some(Value::Composite(row)) => {
                        row.values().iter().all(|field| field.is_null() == *expected)
                    }
                    Some(value) => value.is_null() == *expected,
                    None => false,
                };
                Ok(Value::Boolean(truth))
            }
            RowOperation::Compare(comparison) => match values.as_slice() {
                [Value::Composite(left), Value::Composite(right)] => {
                    Ok(Value::Boolean(comparison.holds(left.compare_similar(right)?)))
                }
                _ => Ok(Value::Null),
            },
            RowOperation::Distinct(distinct) => {
                let differs = match values.as_slice() {
                    [Value::Composite(left), Value::Composite(right)] => {
                        left.compare_similar(right)? != Ordering::Equal
                    }
                    [left, right] => left.is_null() != right.is_null(),
                    _ => false,
                };
                Ok(Value::Boolean(differs == *distinct))
            }
        }
    }

    /// The value, once it has been held against domains.
    fn checked(&self, value: Value) -> Result<Value, SqlError> {
        match self {
            RowOperation::CheckDomain(id, types) => types.check_domain(&value, *id)?,
            RowOperation::CheckInside(types) => types.check_inside(&value)?,
            _ => {}
        }
        Ok(value)
    }

    /// In words, for EXPLAIN.
    pub fn describe(&self, operands: &[String], data_type: DataType) -> String {
        let joined = operands.join(", ");
        let first = operands.first().map_or("", String::as_str);
        match self {
            RowOperation::Build(_) => format!("ROW({joined})"),
            RowOperation::Field(position) => format!("({first}).field {}", position + 1),
            RowOperation::WithField(position, _) => format!("({joined}) with field {}", position + 1),
            RowOperation::Convert(true, _) => format!("{first}::{data_type}"),
            RowOperation::Convert(false, _) => joined,
            RowOperation::OfJson(function, _) => format!("{function}({joined})"),
            RowOperation::CheckDomain(id, types) => {
                format!("{first}::{}", types.name_of(DataType::Domain(*id)))
            }
            RowOperation::CheckInside(_) => joined,
            RowOperation::EnumValues(call, _) => format!("{}({joined})", call.name()),
            RowOperation::IsNull(true) => format!("{first} IS NULL"),
            RowOperation::IsNull(false) => format!("{first} IS NOT NULL"),
            RowOperation::Compare(comparison) => operands.join(&format!(" {} ", comparison.symbol())),
            RowOperation::Distinct(true) => operands.join(" IS DISTINCT FROM "),
            RowOperation::Distinct(false) => operands.join(" IS NOT DISTINCT FROM "),
        }
    }

    /// Whether it may raise an error.
    pub fn can_fail(&self) -> bool {
        !matches!(self, RowOperation::Field(_) | RowOperation::IsNull(_))
    }
}

/// The row of these values as a value of a type.
///
/// # Errors
/// A row that is too large.
pub fn row_value(data_type: DataType, values: Vec<Value>) -> Result<Value, SqlError> {
    let type_id = match data_type {
        DataType::Composite(id) => Some(id),
        _ => None,
    };
    Ok(Value::Composite(Arc::new(Composite::new(type_id, values)?)))
}
