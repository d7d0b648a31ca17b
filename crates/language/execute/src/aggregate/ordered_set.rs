//! Ordered-set aggregates: percentiles and the mode of sorted values, and the rank that a row would have among them.

use crate::sorting::{Sortable, compare_by};
use plan::aggregate::{AggregateOrder, OrderedSet};
use std::cmp::Ordering;
use std::sync::Arc;
use types::{DataType, SqlError, SqlState, Value, add, multiply, subtract};
use values::broken;

/// The result over the sort keys of all rows. `direct` is what stands in the parentheses.
///
/// # Errors
/// `22003` of a percentile that is none.
pub(super) fn result_of(
    function: OrderedSet,
    order: &[AggregateOrder],
    mut rows: Vec<Vec<Value>>,
    direct: &[Value],
    data_type: DataType,
) -> Result<Value, SqlError> {
    rows.sort_by(|left, right| compare_by(order, left, right));
    if function.is_hypothetical() {
        return Ok(of_row(function, order, &rows, direct));
    }
    let values: Vec<Value> = rows.into_iter().filter_map(|row| row.into_iter().next()).collect();
    match (function, direct.first()) {
        (OrderedSet::Mode, _) => Ok(mode(&values)),
        (_, Some(Value::Array(fractions))) => {
            let DataType::Array(element) = data_type else {
                return Err(broken("percentiles without a type of arrays"));
            };
            if values.is_empty() {
                return Ok(Value::Null);
            }
            let found = fractions.values().iter().map(|fraction| percentile(function, &values, fraction));
            let found = found.collect::<Result<Vec<Value>, SqlError>>()?;
            Ok(Value::Array(Arc::new(fractions.with_values(element, found)?)))
        }
        (_, Some(fraction)) => percentile(function, &values, fraction),
        (_, None) => Err(broken("a percentile without a fraction")),
    }
}

fn percentile(function: OrderedSet, values: &[Value], fraction: &Value) -> Result<Value, SqlError> {
    let Value::Double(fraction) = fraction else { return Ok(Value::Null) };
    if !(0.0..=1.0).contains(fraction) {
        let shown = types::format_value(&Value::Double(*fraction)).unwrap_or_default();
        let message = format!("percentile value {shown} is not between 0 and 1");
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    let Some(last) = values.len().checked_sub(1) else { return Ok(Value::Null) };
    let at = |position: f64| values[(position as usize).min(last)].clone();
    if function == OrderedSet::Discrete {
        return Ok(at((fraction * values.len() as f64).ceil() - 1.0));
    }
    let position = fraction * last as f64;
    let (low, high) = (at(position.floor()), at(position.ceil()));
    if position.floor() == position.ceil() {
        return Ok(low);
    }
    let distance = subtract(&high, &low)?;
    add(&low, &multiply(&distance, &Value::Double(position - position.floor()))?)
}

/// The rank of a row that is not there.
fn of_row(function: OrderedSet, order: &[AggregateOrder], rows: &[Vec<Value>], row: &[Value]) -> Value {
    let before = rows.partition_point(|other| compare_by(order, other, row) == Ordering::Less);
    let up_to = rows.partition_point(|other| compare_by(order, other, row) != Ordering::Greater);
    match function {
        OrderedSet::DenseRank => {
            let different = rows[..before]
                .windows(2)
                .filter(|pair| Sortable(pair[0].clone()) != Sortable(pair[1].clone()));
            Value::BigInt((different.count() + usize::from(before > 0) + 1) as i64)
        }
        OrderedSet::PercentRank if rows.is_empty() => Value::Double(0.0),
        OrderedSet::PercentRank => Value::Double(before as f64 / rows.len() as f64),
        OrderedSet::CumulativeShare => Value::Double((up_to + 1) as f64 / (rows.len() + 1) as f64),
        _ => Value::BigInt(before as i64 + 1),
    }
}

/// Of sorted values; the first where several are there as often.
fn mode(values: &[Value]) -> Value {
    let mut best: (usize, &Value) = (0, &Value::Null);
    for run in values.chunk_by(|left, right| left.sort_compare(right) == Ordering::Equal) {
        if run.len() > best.0 {
            best = (run.len(), &run[0]);
        }
    }
    best.1.clone()
}
