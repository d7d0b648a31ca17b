//! Aggregates, with exact results.

use crate::expression::{Environment, Expression};
use std::collections::BTreeSet;
use types::{DataType, Numeric, SqlError, Value, add, divide};

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateFunction {
    /// `count(*)` and `count(x)`
    Count,
    /// `sum`
    Sum,
    /// `avg`
    Average,
    /// `min`
    Minimum,
    /// `max`
    Maximum,
    /// `bool_and`, `every`
    And,
    /// `bool_or`
    Or,
}

/// An aggregate of a query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    /// Which.
    pub function: AggregateFunction,
    /// Over what; `None` is `count(*)`.
    pub argument: Option<Expression>,
    /// DISTINCT
    pub distinct: bool,
    /// FILTER (WHERE …)
    pub filter: Option<Expression>,
    /// Type of the result.
    pub data_type: DataType,
}

impl AggregateFunction {
    /// The function of this name.
    pub fn named(name: &str) -> Option<AggregateFunction> {
        Some(match name {
            "count" => AggregateFunction::Count,
            "sum" => AggregateFunction::Sum,
            "avg" => AggregateFunction::Average,
            "min" => AggregateFunction::Minimum,
            "max" => AggregateFunction::Maximum,
            "bool_and" | "every" => AggregateFunction::And,
            "bool_or" => AggregateFunction::Or,
            _ => return None,
        })
    }

    /// Type of the argument after a cast, and of the result; `None` where there is no such function.
    pub fn types(self, argument: DataType) -> Option<(DataType, DataType)> {
        use DataType::{BigInt, Boolean, Bytea, Double, Integer, Interval, Numeric, Real, SmallInt, Uuid};
        let result = match (self, argument.family()) {
            (AggregateFunction::Count, _) => BigInt,
            (AggregateFunction::Sum, SmallInt | Integer) => BigInt,
            (AggregateFunction::Sum, Real) => Real,
            (AggregateFunction::Sum | AggregateFunction::Average, Interval) => Interval,
            (AggregateFunction::Sum | AggregateFunction::Average, BigInt | Numeric(_)) => Numeric(None),
            (AggregateFunction::Average, SmallInt | Integer) => Numeric(None),
            (AggregateFunction::Average, Real) => Double,
            (AggregateFunction::Sum | AggregateFunction::Average, Double) => Double,
            (AggregateFunction::Minimum | AggregateFunction::Maximum, Boolean | Uuid | Bytea) => return None,
            (AggregateFunction::Minimum | AggregateFunction::Maximum, other) => other,
            (AggregateFunction::And | AggregateFunction::Or, Boolean) => Boolean,
            _ => return None,
        };
        let operand = match self {
            AggregateFunction::Sum | AggregateFunction::Average => result,
            _ => argument,
        };
        Some((operand, result))
    }
}

/// The state of one aggregate in one group.
pub(crate) struct Accumulator<'a> {
    aggregate: &'a Aggregate,
    count: i64,
    value: Value,
    seen: BTreeSet<Sortable>,
}

impl<'a> Accumulator<'a> {
    /// No rows yet.
    pub fn new(aggregate: &'a Aggregate) -> Accumulator<'a> {
        Accumulator { aggregate, count: 0, value: Value::Null, seen: BTreeSet::new() }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// What evaluation raises; a sum out of range.
    pub fn add(&mut self, environment: &Environment<'_>) -> Result<(), SqlError> {
        if let Some(filter) = &self.aggregate.filter
            && !filter.is_true(environment)?
        {
            return Ok(());
        }
        let Some(argument) = &self.aggregate.argument else {
            self.count += 1;
            return Ok(());
        };
        let value = argument.evaluate(environment)?;
        if value.is_null() || (self.aggregate.distinct && !self.seen.insert(Sortable(vec![value.clone()]))) {
            return Ok(());
        }
        self.count += 1;
        self.value =
            match (self.aggregate.function, &self.value) {
                (AggregateFunction::Count, _) => Value::Null,
                (_, Value::Null) => value,
                (AggregateFunction::Sum | AggregateFunction::Average, sum) => add(sum, &value)?,
                (AggregateFunction::Minimum, best) => {
                    if value.compare(best).is_some_and(|order| order.is_lt()) { value } else { return Ok(()) }
                }
                (AggregateFunction::Maximum, best) => {
                    if value.compare(best).is_some_and(|order| order.is_gt()) { value } else { return Ok(()) }
                }
                (AggregateFunction::And, truth) => {
                    Value::Boolean(*truth == Value::Boolean(true) && value == Value::Boolean(true))
                }
                (AggregateFunction::Or, truth) => {
                    Value::Boolean(*truth == Value::Boolean(true) || value == Value::Boolean(true))
                }
            };
        Ok(())
    }

    /// The result.
    ///
    /// # Errors
    /// A quotient out of range.
    pub fn finish(self) -> Result<Value, SqlError> {
        match self.aggregate.function {
            AggregateFunction::Count => Ok(Value::BigInt(self.count)),
            AggregateFunction::Average => match &self.value {
                Value::Double(sum) => Ok(Value::Double(sum / self.count as f64)),
                sum @ Value::Interval(_) => divide(sum, &Value::Double(self.count as f64)),
                sum => divide(sum, &Value::Numeric(Numeric::from(self.count))),
            },
            _ => Ok(self.value),
        }
    }
}

/// Values that sort and compare as SQL groups them: NULL equals NULL, `1.0` equals `1.00`.
#[derive(Clone, Debug)]
pub(crate) struct Sortable(pub Vec<Value>);

impl Ord for Sortable {
    fn cmp(&self, other: &Sortable) -> std::cmp::Ordering {
        let pairs = self.0.iter().zip(&other.0);
        pairs
            .map(|(left, right)| left.sort_compare(right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Sortable) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Sortable) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Sortable {}
