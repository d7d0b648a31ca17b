//! The state of an aggregate while rows are added.

mod ordered_set;
mod regression;
mod user;

use crate::sorting::{Sortable, compare_by};
use plan::aggregate::{Aggregate, AggregateFunction, Deviation};
use plan::expression::{Environment, long_bytes, row_space};
use regression::Pairs;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{
    Array, DataType, Numeric, NumericDeviations, NumericSum, SqlError, SqlState, VALUE_BYTES, Value, add,
    check_array_elements, concatenate, divide,
};
use user::UserState;
use values::broken;
use values::functions::{self, aggregated_json};

/// What a short text adds to those that are joined.
const SHORT_TEXT_BYTES: u64 = 16;

/// What sums and deviations of numerics are computed from.
enum Numerics {
    None,
    Sum(Box<NumericSum>),
    Deviations(Box<NumericDeviations>),
}

/// The state of one aggregate in one group.
pub struct Accumulator<'a> {
    aggregate: &'a Aggregate,
    count: i64,
    value: Value,
    pairs: Pairs,
    /// What stands in the parentheses of an ordered-set aggregate, once a row has told.
    direct: Option<Vec<Value>>,
    /// The elements of an array; of JSON what tells them apart, or the keys, and the values behind it in turn.
    values: Vec<Value>,
    /// The sum of the squared deviations of doubles.
    squares: f64,
    numerics: Numerics,
    seen: BTreeSet<Sortable>,
    /// Where the order of the rows matters: what they are sorted by, the argument, the second argument.
    rows: Vec<(Vec<Value>, Value, Value)>,
    /// The state of an aggregate of the ledger.
    user: Option<Box<UserState>>,
}

/// What an accumulator counts for where memory is limited: the same on every machine.
pub const ACCUMULATOR_BYTES: u64 = 384;
const _: () = assert!(size_of::<Accumulator<'_>>() as u64 <= ACCUMULATOR_BYTES);

impl<'a> Accumulator<'a> {
    /// No rows yet.
    pub fn new(aggregate: &'a Aggregate) -> Accumulator<'a> {
        Accumulator {
            aggregate,
            count: 0,
            value: Value::Null,
            pairs: Pairs::default(),
            direct: None,
            values: Vec::new(),
            squares: 0.0,
            numerics: Numerics::None,
            seen: BTreeSet::new(),
            rows: Vec::new(),
            user: aggregate.user.as_deref().map(|functions| Box::new(UserState::new(functions))),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// What evaluation raises; a sum out of range.
    pub fn add(&mut self, environment: &Environment<'_>) -> Result<(), SqlError> {
        let aggregate = self.aggregate;
        if self.direct.is_none() && !aggregate.direct.is_empty() {
            self.direct = Some(direct_values(aggregate, environment)?);
        }
        if let Some(filter) = &aggregate.filter
            && !filter.is_true(environment)?
        {
            return Ok(());
        }
        if let (Some(functions), Some(state)) = (&aggregate.user, &mut self.user) {
            return state.add(aggregate, functions, environment);
        }
        if let AggregateFunction::OrderedSet(function) = aggregate.function {
            let keys = aggregate.order.iter().map(|key| key.expression.evaluate(environment));
            let keys = keys.collect::<Result<Vec<Value>, _>>()?;
            if function.is_hypothetical() || !keys.iter().any(Value::is_null) {
                environment.hold(row_space(keys.len() + 2))?;
                self.rows.push((keys, Value::Null, Value::Null));
            }
            return Ok(());
        }
        let Some(argument) = &aggregate.argument else {
            self.count += 1;
            return Ok(());
        };
        let value = argument.evaluate(environment)?;
        let takes_null = matches!(aggregate.function, AggregateFunction::Array | AggregateFunction::Json(_));
        if value.is_null() && !takes_null {
            return Ok(());
        }
        let second = match &aggregate.second {
            Some(second) => second.evaluate(environment)?,
            None => Value::Null,
        };
        if second.is_null() && matches!(aggregate.function, AggregateFunction::Regression(_)) {
            return Ok(());
        }
        let keys = || {
            let keys = aggregate.order.iter().map(|key| key.expression.evaluate(environment));
            keys.collect::<Result<Vec<Value>, _>>()
        };
        let tells_by_order = matches!(aggregate.function, AggregateFunction::Json(of) if of.tells_by_order);
        let known_keys = if tells_by_order { Some(keys()?) } else { None };
        if aggregate.distinct {
            let key = known_keys.clone().unwrap_or_else(|| vec![value.clone(), second.clone()]);
            let width = key.len();
            if !self.seen.insert(Sortable(key)) {
                return Ok(());
            }
            environment.hold(row_space(width))?;
        }
        if aggregate.order.is_empty() && !(aggregate.distinct && aggregate.function.follows_order()) {
            environment.hold(self.growth(&value, &second))?;
            return self.step(value, &second);
        }
        let keys = known_keys.map_or_else(keys, Ok)?;
        environment.hold(row_space(keys.len() + 2))?;
        self.rows.push((keys, value, second));
        Ok(())
    }

    /// What the state takes more with this value, which is not the value's own.
    fn growth(&self, value: &Value, second: &Value) -> u64 {
        match self.aggregate.function {
            AggregateFunction::Array | AggregateFunction::Ranges => VALUE_BYTES,
            AggregateFunction::Json(_) => 2 * VALUE_BYTES,
            AggregateFunction::Join => SHORT_TEXT_BYTES + long_bytes(value) + long_bytes(second),
            AggregateFunction::Sum | AggregateFunction::Average | AggregateFunction::Variance(_)
                if self.count == 0 =>
            {
                long_bytes(value)
            }
            _ => 0,
        }
    }

    /// Takes one value that counts.
    fn step(&mut self, value: Value, second: &Value) -> Result<(), SqlError> {
        self.count += 1;
        let function = self.aggregate.function;
        match function {
            AggregateFunction::Count => return Ok(()),
            AggregateFunction::Variance(_) => return self.deviate(&value),
            AggregateFunction::Sum | AggregateFunction::Average if matches!(value, Value::Numeric(_)) => {
                return self.sum_up(value);
            }
            AggregateFunction::Regression(_) => {
                return match (&value, second) {
                    (Value::Double(y), Value::Double(x)) => self.pairs.add(*y, *x),
                    _ => Err(broken("a regression of something else than doubles")),
                };
            }
            AggregateFunction::Json(_) => {
                self.values.extend([value, second.clone()]);
                return Ok(());
            }
            AggregateFunction::Ranges => {
                self.values.push(value);
                return Ok(());
            }
            AggregateFunction::Array => {
                if self.takes_arrays() {
                    functions::check_accumulated(self.values.first(), &value)?;
                }
                self.values.push(value);
                return check_array_elements(self.values.len());
            }
            _ => {}
        }
        if self.value.is_null() {
            self.value = value;
            return Ok(());
        }
        let replaces = |order: Ordering| value.compare(&self.value) == Some(order);
        let both = |truth: bool| (self.value == Value::Boolean(truth), value == Value::Boolean(truth));
        self.value = match function {
            AggregateFunction::Sum | AggregateFunction::Average => add(&self.value, &value)?,
            AggregateFunction::Minimum if replaces(Ordering::Less) => value,
            AggregateFunction::Maximum if replaces(Ordering::Greater) => value,
            AggregateFunction::And => Value::Boolean(both(true) == (true, true)),
            AggregateFunction::Or => Value::Boolean(both(false) != (true, true)),
            AggregateFunction::Join if second.is_null() => concatenate(&self.value, &value)?,
            AggregateFunction::Join => concatenate(&concatenate(&self.value, second)?, &value)?,
            AggregateFunction::Intersection => functions::range_intersection(&self.value, &value)?,
            AggregateFunction::BitAnd | AggregateFunction::BitOr | AggregateFunction::BitXor => {
                bits(function, &self.value, &value)?
            }
            _ => return Ok(()),
        };
        Ok(())
    }

    fn sum_up(&mut self, value: Value) -> Result<(), SqlError> {
        match (&mut self.numerics, value) {
            (Numerics::Sum(sum), Value::Numeric(number)) => sum.add(&number),
            (numerics, Value::Numeric(number)) => {
                *numerics = Numerics::Sum(Box::new(NumericSum::new(number)))
            }
            _ => return Err(broken("a sum of something else than numbers")),
        }
        Ok(())
    }

    /// Numerics are summed up with their squares, which is exact; doubles by the method of Youngs and Cramer, which
    /// PostgreSQL uses as well.
    fn deviate(&mut self, value: &Value) -> Result<(), SqlError> {
        let number = match (value, &mut self.numerics) {
            (Value::Double(number), _) => *number,
            (Value::Numeric(number), Numerics::Deviations(deviations)) => {
                deviations.add(number);
                return Ok(());
            }
            (Value::Numeric(number), numerics) => {
                let mut deviations = NumericDeviations::default();
                deviations.add(number);
                *numerics = Numerics::Deviations(Box::new(deviations));
                return Ok(());
            }
            _ => return Err(broken("a variance of something else than numbers")),
        };
        let (sum, mut squares) = match &self.value {
            Value::Double(sum) => (*sum + number, self.squares),
            _ => (number, if number.is_finite() { 0.0 } else { f64::NAN }),
        };
        if self.count > 1 {
            let count = self.count as f64;
            let deviation = number * count - sum;
            squares += deviation * deviation / (count * (count - 1.0));
            if sum.is_infinite() || squares.is_infinite() {
                let known_infinite = matches!(self.value, Value::Double(before) if before.is_infinite());
                if !known_infinite && !number.is_infinite() {
                    let message = "value out of range: overflow";
                    return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
                }
                squares = f64::NAN;
            }
        }
        (self.value, self.squares) = (Value::Double(sum), squares);
        Ok(())
    }

    /// The result. The environment is that of a group without rows.
    ///
    /// # Errors
    /// A quotient out of range.
    pub fn finish(mut self, environment: &Environment<'_>) -> Result<Value, SqlError> {
        if let (Some(functions), Some(state)) = (&self.aggregate.user, &mut self.user) {
            state.finish_rows(self.aggregate, functions, environment)?;
        }
        let mut rows = std::mem::take(&mut self.rows);
        if let AggregateFunction::OrderedSet(function) = self.aggregate.function {
            let direct = match self.direct.take() {
                Some(direct) => direct,
                None => direct_values(self.aggregate, environment)?,
            };
            let keys = rows.into_iter().map(|(keys, _, _)| keys).collect();
            let data_type = self.aggregate.data_type;
            return ordered_set::result_of(function, &self.aggregate.order, keys, &direct, data_type);
        }
        rows.sort_by(|left, right| {
            let by_keys = compare_by(&self.aggregate.order, &left.0, &right.0);
            // DISTINCT sorts by what is distinct, as PostgreSQL does.
            match self.aggregate.distinct {
                true => by_keys
                    .then_with(|| left.1.sort_compare(&right.1))
                    .then_with(|| left.2.sort_compare(&right.2)),
                false => by_keys,
            }
        });
        for (_, value, second) in rows {
            self.step(value, &second)?;
        }
        self.result(environment)
    }

    /// The result of the rows so far, where their order does not matter.
    ///
    /// # Errors
    /// As [`Accumulator::finish`].
    pub fn result(&self, environment: &Environment<'_>) -> Result<Value, SqlError> {
        if let (Some(functions), Some(state)) = (&self.aggregate.user, &self.user) {
            return state.result(functions, environment);
        }
        match self.aggregate.function {
            AggregateFunction::Count => Ok(Value::BigInt(self.count)),
            AggregateFunction::Average => match &self.value {
                Value::Double(sum) => Ok(Value::Double(sum / self.count as f64)),
                sum @ Value::Interval(_) => divide(sum, &Value::Double(self.count as f64)),
                sum => match &self.numerics {
                    Numerics::Sum(sum) => {
                        sum.sum()?.checked_div(&Numeric::from(self.count)).map(Value::Numeric)
                    }
                    _ => divide(sum, &Value::Numeric(Numeric::from(self.count))),
                },
            },
            AggregateFunction::Sum => match &self.numerics {
                Numerics::Sum(sum) => sum.sum().map(Value::Numeric),
                _ => Ok(self.value.clone()),
            },
            AggregateFunction::Array => match self.values.is_empty() {
                true => Ok(Value::Null),
                false => self.array(),
            },
            AggregateFunction::Ranges if self.values.is_empty() => Ok(Value::Null),
            AggregateFunction::Ranges => functions::range_union_all(&self.values),
            AggregateFunction::Json(of) if self.count > 0 => {
                let between = if of.has_lines && !of.is_binary { ", \n " } else { ", " };
                aggregated_json(self.values.as_chunks().0, of.has_keys, of.is_binary, between)
            }
            AggregateFunction::Variance(deviation) => self.deviation(deviation),
            AggregateFunction::Regression(wanted) => Ok(self.pairs.result(wanted)),
            _ => Ok(self.value.clone()),
        }
    }

    fn array(&self) -> Result<Value, SqlError> {
        let DataType::Array(element) = self.aggregate.data_type else {
            return Err(broken("array_agg without a type of arrays"));
        };
        if self.takes_arrays() {
            return functions::nested(element, &self.values);
        }
        Ok(Value::Array(Arc::new(Array::new(element, self.values.clone())?)))
    }

    /// Whether what `array_agg` takes are arrays itself.
    fn takes_arrays(&self) -> bool {
        let argument = self.aggregate.argument.as_ref();
        argument.is_some_and(|argument| argument.data_type.element().is_some())
    }

    fn deviation(&self, Deviation { sample, root }: Deviation) -> Result<Value, SqlError> {
        if let Numerics::Deviations(deviations) = &self.numerics {
            return Ok(deviations.result(sample, root)?.map_or(Value::Null, Value::Numeric));
        }
        let divisor = if sample { self.count - 1 } else { self.count };
        if divisor < 1 {
            return Ok(Value::Null);
        }
        let variance = self.squares / divisor as f64;
        Ok(Value::Double(if root { variance.sqrt() } else { variance }))
    }
}

fn direct_values(aggregate: &Aggregate, environment: &Environment<'_>) -> Result<Vec<Value>, SqlError> {
    aggregate.direct.iter().map(|direct| direct.evaluate(environment)).collect()
}

/// Of two whole numbers of one type, or two strings of bits.
fn bits(function: AggregateFunction, left: &Value, right: &Value) -> Result<Value, SqlError> {
    if let (Value::Bit(left), Value::Bit(right)) = (left, right) {
        return match function {
            AggregateFunction::BitAnd => functions::bits_and(left, right),
            AggregateFunction::BitOr => functions::bits_or(left, right),
            _ => functions::bits_xor(left, right),
        };
    }
    let of = |left: i64, right: i64| match function {
        AggregateFunction::BitAnd => left & right,
        AggregateFunction::BitOr => left | right,
        _ => left ^ right,
    };
    // The bits of the wider type behind the sign are all like it, so that the result fits again.
    match (left, right) {
        (Value::SmallInt(a), Value::SmallInt(b)) => Ok(Value::SmallInt(of((*a).into(), (*b).into()) as i16)),
        (Value::Integer(a), Value::Integer(b)) => Ok(Value::Integer(of((*a).into(), (*b).into()) as i32)),
        (Value::BigInt(a), Value::BigInt(b)) => Ok(Value::BigInt(of(*a, *b))),
        _ => Err(broken("bits of something else than whole numbers")),
    }
}
