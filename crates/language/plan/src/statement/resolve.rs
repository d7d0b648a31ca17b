//! What the parts of an access come to when a statement runs: a key, or an interval of keys.

use crate::expression::Environment;
use crate::statement::access_path::{Interval, KeyPart, PartsAccess};
use state::KeyRange;
use std::ops::Bound;
use types::{DataType, Key, SqlError, Value, cast, limits};
use values::inverted::{Needed, needed};

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

impl PartsAccess {
    /// Intervals of entries, in order and apart, of which a row that is found has one at least; `None` where it may have none of all that
    /// there are.
    ///
    /// # Errors
    /// What evaluation raises.
    pub fn resolve(&self, environment: &Environment<'_>) -> Result<Option<Vec<KeyRange>>, SqlError> {
        let operand = self.operand.value.evaluate(environment)?;
        let entries = |needed: Needed| {
            let prefix = Key::index_prefix([&needed.part]);
            let prefix = match needed.is_prefix {
                // Without the end of the text.
                true => prefix.without_last_byte(),
                false => prefix,
            };
            KeyRange::prefix(prefix.cut_to_index())
        };
        let Some(needed) = needed(self.search, &operand) else { return Ok(None) };
        let mut ranges: Vec<KeyRange> = needed.into_iter().map(entries).collect();
        let start = |range: &KeyRange| match &range.start {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Key::default(),
        };
        // What begins like another one lies in its interval.
        ranges.sort_by_cached_key(start);
        ranges.dedup_by(|next, last| last.contains(&start(next)));
        Ok(Some(ranges))
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
    use crate::expression::Expression;
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
