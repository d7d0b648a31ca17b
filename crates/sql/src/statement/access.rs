//! How a statement finds its rows: by primary key, or over an interval of it.

use super::BoundSelect;
use crate::expression::{Comparison, Environment, Expression, Kind};
use crate::table::TablePlan;
use state::KeyRange;
use std::ops::Bound;
use types::{DataType, Key, SqlError, Value, cast};

/// How rows are found.
#[derive(Debug)]
pub(crate) enum Access {
    /// At most one row: every column of the key equals a value.
    Key(Vec<KeyPart>),
    /// The rows whose key begins with `equal`, and whose next key column lies between the bounds.
    Range {
        /// Values of the first key columns.
        equal: Vec<KeyPart>,
        /// Of the next key column; the flag: inclusive.
        lower: Option<(KeyPart, bool)>,
        /// Of the next key column; the flag: inclusive.
        upper: Option<(KeyPart, bool)>,
    },
    /// Of UPDATE and DELETE: a query finds them. Its rows have the columns of the key first, then whatever the change
    /// needs; of several rows with the same key the first one counts.
    Found(Box<BoundSelect>),
}

/// What a column of the key is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyPart {
    /// The value; the same for every row.
    pub value: Expression,
    /// Type of the column.
    pub data_type: DataType,
}

impl Access {
    /// Plans the conditions of a WHERE, all of which must be true. Gives the access and what is left to ask of a row:
    /// for [`Access::Key`] without the conditions that the key fulfils.
    pub fn plan(table: &TablePlan, conditions: Vec<Expression>) -> (Access, Vec<Expression>) {
        let mut equal = Vec::new();
        let mut used = Vec::new();
        for ordinal in &table.key {
            let found = conditions.iter().enumerate().find_map(|(index, condition)| {
                match comparison_with_column(condition, *ordinal) {
                    Some((Comparison::Equal, value)) => Some((index, value)),
                    _ => None,
                }
            });
            let Some((index, value)) = found else { break };
            used.push(index);
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            equal.push(KeyPart { value: value.clone(), data_type });
        }
        if !table.key.is_empty() && equal.len() == table.key.len() {
            let keep = |index: &usize| !used.contains(index);
            let rest = (0..conditions.len()).filter(keep).collect::<Vec<_>>();
            let mut conditions: Vec<Option<Expression>> = conditions.into_iter().map(Some).collect();
            let rest = rest.into_iter().filter_map(|index| conditions[index].take()).collect();
            return (Access::Key(equal), rest);
        }
        let (mut lower, mut upper) = (None, None);
        if let Some(ordinal) = table.key.get(equal.len()) {
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            for condition in &conditions {
                let Some((comparison, value)) = comparison_with_column(condition, *ordinal) else { continue };
                let part = || KeyPart { value: value.clone(), data_type };
                match comparison {
                    Comparison::Greater if lower.is_none() => lower = Some((part(), false)),
                    Comparison::GreaterOrEqual if lower.is_none() => lower = Some((part(), true)),
                    Comparison::Less if upper.is_none() => upper = Some((part(), false)),
                    Comparison::LessOrEqual if upper.is_none() => upper = Some((part(), true)),
                    _ => {}
                }
            }
        }
        (Access::Range { equal, lower, upper }, conditions)
    }

    /// What columns of the key are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let (equal, bounds) = match self {
            Access::Key(parts) => (parts.as_slice(), [&None, &None]),
            Access::Range { equal, lower, upper } => (equal.as_slice(), [lower, upper]),
            Access::Found(_) => (&[][..], [&None, &None]),
        };
        equal.iter().chain(bounds.into_iter().flatten().map(|(part, _)| part))
    }

    /// How many of the first key columns are the same for all rows found.
    pub fn fixed_key_columns(&self) -> usize {
        match self {
            Access::Key(parts) => parts.len(),
            Access::Range { equal, .. } => equal.len(),
            Access::Found(_) => 0,
        }
    }
}

/// `column op value` or `value op column` with a value that is the same for every row. The column may have been cast
/// to a wider exact type, which keeps order and equality.
fn comparison_with_column(condition: &Expression, ordinal: u16) -> Option<(Comparison, &Expression)> {
    let Kind::Compare(comparison, operands) = &condition.kind else { return None };
    let [left, right] = operands.as_ref();
    if is_column(left, ordinal) && right.is_row_independent() {
        Some((*comparison, right))
    } else if is_column(right, ordinal) && left.is_row_independent() {
        Some((comparison.mirrored(), left))
    } else {
        None
    }
}

fn is_column(expression: &Expression, ordinal: u16) -> bool {
    match &expression.kind {
        Kind::Column(column) => *column == ordinal,
        Kind::Cast(operand) => {
            matches!(operand.kind, Kind::Column(column) if column == ordinal)
                && (operand.data_type.is_integer() || matches!(operand.data_type, DataType::Numeric(_)))
                && matches!(expression.data_type, DataType::BigInt | DataType::Numeric(None))
        }
        _ => false,
    }
}

/// Where a value stands among those of a key column's type.
enum Placed {
    /// It is one of them.
    At(Value),
    /// It lies between this one, which is less, and the next.
    After(Value),
    /// Below all.
    Below,
    /// Above all.
    Above,
    /// NULL: compares with nothing.
    Null,
}

fn place(value: Value, data_type: DataType) -> Result<Placed, SqlError> {
    let (smallest, largest) = match data_type.integer_range() {
        Some((smallest, largest)) => (i128::from(smallest), i128::from(largest)),
        None => {
            return Ok(if value.is_null() {
                Placed::Null
            } else {
                Placed::At(cast(value, data_type.family())?)
            });
        }
    };
    let (floor, exact) = match &value {
        Value::Null => return Ok(Placed::Null),
        Value::Integer(number) => (i128::from(*number), true),
        Value::BigInt(number) => (i128::from(*number), true),
        Value::SmallInt(number) => (i128::from(*number), true),
        Value::Numeric(number) => {
            let floor = number.floor()?;
            (floor.mantissa(), floor == *number)
        }
        other => return Ok(Placed::At(cast(other.clone(), data_type)?)),
    };
    if floor < smallest {
        return Ok(Placed::Below);
    }
    if floor > largest {
        return Ok(Placed::Above);
    }
    let number = match data_type {
        DataType::SmallInt => Value::SmallInt(floor as i16),
        DataType::Integer => Value::Integer(floor as i32),
        _ => Value::BigInt(floor as i64),
    };
    Ok(if exact { Placed::At(number) } else { Placed::After(number) })
}

impl KeyPart {
    /// True where finding the row gives no error, whatever the variables hold.
    pub fn cannot_fail(&self) -> bool {
        let same = self.value.data_type.family() == self.data_type.family()
            && matches!(self.data_type, DataType::Text(_) | DataType::Boolean);
        !self.value.can_fail() && (same || (self.data_type.is_integer() && self.value.data_type.is_integer()))
    }

    fn place(&self, environment: &Environment<'_>) -> Result<Placed, SqlError> {
        place(self.value.evaluate(environment)?, self.data_type)
    }
}

/// The key that these parts say; `None` where no row can have it.
///
/// # Errors
/// What evaluation raises; a key that is too long.
pub(crate) fn resolve_key(parts: &[KeyPart], environment: &Environment<'_>) -> Result<Option<Key>, SqlError> {
    if let [part] = parts {
        return match part.place(environment)? {
            Placed::At(value) => encode_lookup(&[value]),
            _ => Ok(None),
        };
    }
    let mut values = Vec::with_capacity(parts.len());
    for part in parts {
        match part.place(environment)? {
            Placed::At(value) => values.push(value),
            _ => return Ok(None),
        }
    }
    encode_lookup(&values)
}

/// A key longer than any that can be stored belongs to no row.
fn encode_lookup(values: &[Value]) -> Result<Option<Key>, SqlError> {
    match Key::encode(values) {
        Ok(key) => Ok(Some(key)),
        Err(error) if error.state == types::SqlState::PROGRAM_LIMIT_EXCEEDED => Ok(None),
        Err(error) => Err(error),
    }
}

/// The interval that these parts say; `None` where it holds no row.
///
/// # Errors
/// What evaluation raises.
pub(crate) fn resolve_range(
    equal: &[KeyPart],
    lower: &Option<(KeyPart, bool)>,
    upper: &Option<(KeyPart, bool)>,
    environment: &Environment<'_>,
) -> Result<Option<KeyRange>, SqlError> {
    let mut values = Vec::with_capacity(equal.len() + 1);
    for part in equal {
        match part.place(environment)? {
            Placed::At(value) => values.push(value),
            _ => return Ok(None),
        }
    }
    let Some(prefix) = encode_lookup(&values)? else { return Ok(None) };
    let whole = if values.is_empty() { KeyRange::ALL } else { KeyRange::prefix(prefix) };
    let mut with = |value: Value| {
        values.push(value);
        let key = encode_lookup(&values);
        values.pop();
        key
    };
    let after = |key: Key| key.after_prefix().map_or(Bound::Unbounded, Bound::Included);
    let before_next = |key: Key| key.after_prefix().map_or(Bound::Unbounded, Bound::Excluded);
    let start = match lower {
        None => whole.start,
        Some((part, inclusive)) => match part.place(environment)? {
            Placed::Null | Placed::Above => return Ok(None),
            Placed::Below => whole.start,
            Placed::At(value) => match with(value)? {
                Some(key) if *inclusive => Bound::Included(key),
                Some(key) => after(key),
                None => whole.start,
            },
            Placed::After(value) => with(value)?.map_or(whole.start, after),
        },
    };
    let end = match upper {
        None => whole.end,
        Some((part, inclusive)) => match part.place(environment)? {
            Placed::Null | Placed::Below => return Ok(None),
            Placed::Above => whole.end,
            Placed::At(value) => match with(value)? {
                Some(key) if *inclusive => before_next(key),
                Some(key) => Bound::Excluded(key),
                None => whole.end,
            },
            Placed::After(value) => with(value)?.map_or(whole.end, before_next),
        },
    };
    let range = KeyRange { start, end };
    Ok((!range.is_empty()).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Numeric;

    fn numeric(text: &str) -> Value {
        Value::Numeric(Numeric::parse(text).expect("a number"))
    }

    fn part(value: Value) -> KeyPart {
        let data_type = value.data_type();
        KeyPart { value: Expression::constant(value, data_type), data_type: DataType::BigInt }
    }

    fn key(value: i64) -> Key {
        Key::encode(&[Value::BigInt(value)]).expect("a key")
    }

    const NOTHING: Environment<'static> = Environment::new(&[], &[], 0);

    #[test]
    fn a_key_is_found_for_equal_values_of_other_number_types_only() {
        let resolve = |value| resolve_key(&[part(value)], &NOTHING).expect("no error");
        assert_eq!(resolve(Value::Integer(5)), Some(key(5)));
        assert_eq!(resolve(numeric("5.00")), Some(key(5)));
        assert_eq!(resolve(numeric("5.01")), None);
        assert_eq!(resolve(numeric("99999999999999999999")), None);
        assert_eq!(resolve(Value::Null), None);
    }

    #[test]
    fn bounds_between_two_integers_round_to_the_right_side() {
        let range = |lower: Option<(&str, bool)>, upper: Option<(&str, bool)>| {
            let bound =
                |bound: Option<(&str, bool)>| bound.map(|(text, inclusive)| (part(numeric(text)), inclusive));
            resolve_range(&[], &bound(lower), &bound(upper), &NOTHING).expect("no error")
        };
        let between = range(Some(("1.5", true)), Some(("3.5", false))).expect("2 and 3");
        assert!(!between.contains(&key(1)) && between.contains(&key(2)) && between.contains(&key(3)));
        assert!(!between.contains(&key(4)));
        let inclusive = range(Some(("2", true)), Some(("3", true))).expect("2 and 3");
        assert!(inclusive.contains(&key(2)) && inclusive.contains(&key(3)) && !inclusive.contains(&key(4)));
        let exclusive = range(Some(("2", false)), Some(("4", false))).expect("3");
        assert!(!exclusive.contains(&key(2)) && exclusive.contains(&key(3)) && !exclusive.contains(&key(4)));
        assert_eq!(range(Some(("99999999999999999999", true)), None), None);
        assert_eq!(range(Some(("4", true)), Some(("2", true))), None);
    }
}
