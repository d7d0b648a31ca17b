//! How a statement finds its rows: by primary key, or over an interval of it or of an index.

use crate::expression::{Environment, Expression, Kind};
use crate::statement::BoundSelect;
use crate::table::TablePlan;
use state::KeyRange;
use std::ops::Bound;
use std::sync::Arc;
use types::{ColumnSet, DataType, Index, Key, SqlError, Value, cast, limits};
use values::Comparison;

/// How rows are found.
#[derive(Debug)]
pub enum Access {
    /// At most one row: every column of the key equals a value.
    Key(Vec<KeyPart>),
    /// The rows in an interval of the primary key.
    Range(Interval),
    /// The rows in an interval of an index.
    Index(Box<IndexAccess>),
    /// Of UPDATE and DELETE: a query finds them. Its rows have the key first, in its encoding, then whatever the change
    /// needs; of several rows with the same key the first one counts.
    Found(Box<BoundSelect>),
}

/// An interval of ordered columns: the first ones equal values, the next one lies between bounds.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Values of the first columns.
    pub equal: Vec<KeyPart>,
    /// Of the next column; the flag: inclusive.
    pub lower: Option<(KeyPart, bool)>,
    /// Of the next column; the flag: inclusive.
    pub upper: Option<(KeyPart, bool)>,
}

/// An interval of an index.
#[derive(Debug)]
pub struct IndexAccess {
    /// Which.
    pub index: Arc<Index>,
    /// Over its columns.
    pub interval: Interval,
    /// What the same conditions say of the primary key: no row outside of it is looked for.
    pub within: Interval,
    /// The rows are wanted in the order of the index. Otherwise they come in that of the primary key.
    pub in_order: bool,
}

/// What a column of the key is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
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
        let within = Interval::plan(table, &table.key, &conditions);
        let mut best: Option<(&Arc<Index>, Interval)> = None;
        for index in &table.indexes {
            let interval = Interval::plan(table, &index.columns, &conditions);
            let finds_one = |interval: &Interval, index: &Index| {
                index.unique && interval.equal.len() == index.columns.len()
            };
            let (than, one) = match &best {
                None => (within.narrowness(), false),
                Some((index, interval)) => (interval.narrowness(), finds_one(interval, index)),
            };
            if (finds_one(&interval, index), interval.narrowness()) > (one, than) {
                best = Some((index, interval));
            }
        }
        let access = match best {
            None => Access::Range(within),
            Some((index, interval)) => Access::Index(Box::new(IndexAccess {
                index: index.clone(),
                interval,
                within,
                in_order: false,
            })),
        };
        (access, conditions)
    }

    /// What columns are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let (equal, intervals) = match self {
            Access::Key(parts) => (parts.as_slice(), [None, None]),
            Access::Range(interval) => (&[][..], [Some(interval), None]),
            Access::Index(access) => (&[][..], [Some(&access.interval), Some(&access.within)]),
            Access::Found(_) => (&[][..], [None, None]),
        };
        equal.iter().chain(intervals.into_iter().flatten().flat_map(Interval::parts))
    }

    /// Columns that the access itself looks at besides the primary key: those of an index.
    pub fn columns(&self) -> ColumnSet {
        match self {
            Access::Index(access) => access.index.column_set(),
            Access::Key(_) | Access::Range(_) | Access::Found(_) => ColumnSet::EMPTY,
        }
    }

    /// The order in which rows can be read: columns of which the first so many are the same for all rows found.
    pub fn order(&self, table: &TablePlan) -> (Vec<u16>, usize) {
        match self {
            Access::Key(parts) => (table.key.clone(), parts.len()),
            Access::Range(interval) => (table.key.clone(), interval.equal.len()),
            Access::Index(access) => {
                let rest = table.key.iter().filter(|ordinal| !access.index.columns.contains(ordinal));
                let columns = access.index.columns.iter().chain(rest).copied().collect();
                (columns, access.interval.equal.len())
            }
            Access::Found(_) => (Vec::new(), 0),
        }
    }
}

impl Interval {
    /// What conditions, all of which must be true, say of ordered columns of a table.
    fn plan(table: &TablePlan, columns: &[u16], conditions: &[Expression]) -> Interval {
        let mut equal = Vec::new();
        for ordinal in columns {
            let found =
                conditions.iter().find_map(|condition| match comparison_with_column(condition, *ordinal) {
                    Some((Comparison::Equal, value)) => Some(value),
                    _ => None,
                });
            let Some(value) = found else { break };
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            equal.push(KeyPart { value: value.clone(), data_type });
        }
        let (mut lower, mut upper) = (None, None);
        if let Some(ordinal) = columns.get(equal.len()) {
            let data_type = table.columns[usize::from(*ordinal)].data_type;
            for condition in conditions {
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
        Interval { equal, lower, upper }
    }

    /// True where it holds every row.
    pub fn is_whole(&self) -> bool {
        self.parts().next().is_none()
    }

    /// How few rows it promises to hold, without statistics: equalities, then bounds.
    fn narrowness(&self) -> usize {
        2 * self.equal.len() + usize::from(self.lower.is_some() || self.upper.is_some())
    }

    /// What columns are compared with.
    pub fn parts(&self) -> impl Iterator<Item = &KeyPart> {
        let bounds = [&self.lower, &self.upper].into_iter().flatten().map(|(part, _)| part);
        self.equal.iter().chain(bounds)
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
        Value::Numeric(number) if number.is_special() => {
            return Ok(if *number == types::Numeric::NEGATIVE_INFINITY {
                Placed::Below
            } else {
                Placed::Above
            });
        }
        Value::Numeric(number) => {
            let floor = number.floor()?;
            match floor.small_mantissa() {
                Some(mantissa) => (mantissa, floor == *number),
                None => return Ok(if floor.is_negative() { Placed::Below } else { Placed::Above }),
            }
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
pub fn resolve_key(parts: &[KeyPart], environment: &Environment<'_>) -> Result<Option<Key>, SqlError> {
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
pub fn encode_lookup(values: &[Value]) -> Result<Option<Key>, SqlError> {
    match Key::encode(values) {
        Ok(key) => Ok(Some(key)),
        Err(error) if error.state == types::SqlState::PROGRAM_LIMIT_EXCEEDED => Ok(None),
        Err(error) => Err(error),
    }
}

impl Interval {
    /// The primary keys that it holds; `None` where it holds no row.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn resolve(&self, environment: &Environment<'_>) -> Result<Option<KeyRange>, SqlError> {
        self.resolve_with(environment, encode_lookup)
    }

    /// The entries that it holds of the index whose columns it is over; there may be others between them.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn resolve_entries(&self, environment: &Environment<'_>) -> Result<Option<KeyRange>, SqlError> {
        let Some(whole) = self.resolve_with(environment, |values| Ok(Some(Key::index_prefix(values))))?
        else {
            return Ok(None);
        };
        // Entries have the first bytes of their values only.
        let start = match whole.start {
            Bound::Included(key) | Bound::Excluded(key) => Bound::Included(key.cut_to_index()),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match whole.end {
            Bound::Excluded(key) if key.as_bytes().len() > limits::INDEX_BYTES_MAX => {
                key.cut_to_index().after_prefix().map_or(Bound::Unbounded, Bound::Excluded)
            }
            end => end,
        };
        Ok(Some(KeyRange { start, end }))
    }

    fn resolve_with(
        &self,
        environment: &Environment<'_>,
        encode: impl Fn(&[Value]) -> Result<Option<Key>, SqlError>,
    ) -> Result<Option<KeyRange>, SqlError> {
        let mut values = Vec::with_capacity(self.equal.len() + 1);
        for part in &self.equal {
            match part.place(environment)? {
                Placed::At(value) => values.push(value),
                _ => return Ok(None),
            }
        }
        let Some(prefix) = encode(&values)? else { return Ok(None) };
        let whole = if values.is_empty() { KeyRange::ALL } else { KeyRange::prefix(prefix) };
        let mut with = |value: Value| {
            values.push(value);
            let key = encode(&values);
            values.pop();
            key
        };
        let after = |key: Key| key.after_prefix().map_or(Bound::Unbounded, Bound::Included);
        let before_next = |key: Key| key.after_prefix().map_or(Bound::Unbounded, Bound::Excluded);
        let start = match &self.lower {
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
        let end = match &self.upper {
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
            let interval = Interval { equal: Vec::new(), lower: bound(lower), upper: bound(upper) };
            interval.resolve(&NOTHING).expect("no error")
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
