//! Whether a value is within so much of another one, as frames of values ask.

use std::cmp::Ordering;
use types::{Interval, Numeric, SqlError, SqlState, TimeTz, Value, add, subtract};
use values::broken;

/// The side of a frame on which a value is.
#[derive(Clone, Copy)]
pub(super) struct Side {
    /// The offset is taken from the value of the current row, where it is otherwise added.
    pub earlier: bool,
    /// The value must not be greater than what comes out, where it otherwise must not be less.
    pub below: bool,
}

impl Side {
    /// What holds where a value is so ordered to what comes out.
    fn holds(self, order: Ordering) -> bool {
        if self.below { order.is_le() } else { order.is_ge() }
    }

    /// What comes out is beyond all values of the type.
    fn holds_beyond(self) -> bool {
        self.below != self.earlier
    }
}

/// Whether `value` is on this side of `base` with the offset; none of them is NULL. As PostgreSQL's `in_range` functions.
///
/// # Errors
/// `22013` for an offset that is less than nothing; `22008` what is no value of the type.
pub(super) fn in_range(value: &Value, base: &Value, offset: &Value, side: Side) -> Result<bool, SqlError> {
    if let (Some(value), Some(base), Some(offset)) =
        (value.as_integer(), base.as_integer(), offset.as_integer())
    {
        check_offset(offset >= 0)?;
        let offset = if side.earlier { -i128::from(offset) } else { i128::from(offset) };
        return Ok(side.holds(i128::from(value).cmp(&(i128::from(base) + offset))));
    }
    match (value, base, offset) {
        (Value::Real(value), Value::Real(base), Value::Double(offset)) => {
            doubles(f64::from(*value), f64::from(*base), *offset, side)
        }
        (Value::Double(value), Value::Double(base), Value::Double(offset)) => {
            doubles(*value, *base, *offset, side)
        }
        (Value::Numeric(value), Value::Numeric(base), Value::Numeric(offset)) => {
            numerics(value, base, offset, side)
        }
        (Value::Time(value), Value::Time(base), Value::Interval(offset)) => {
            // Not around midnight.
            let Some(sum) = time_away(*base, *offset, side)? else { return Ok(side.below) };
            Ok(side.holds(value.cmp(&sum)))
        }
        (Value::TimeTz(value), Value::TimeTz(base), Value::Interval(offset)) => {
            let Some(microseconds) = time_away(base.microseconds, *offset, side)? else {
                return Ok(side.below);
            };
            Ok(side.holds(value.compare(&TimeTz { microseconds, ..*base })))
        }
        (_, _, Value::Interval(interval)) => {
            check_offset(interval.normalised() >= 0)?;
            let sum = if side.earlier { subtract(base, offset)? } else { add(base, offset)? };
            let order = match value {
                // A date is its midnight.
                Value::Date(_) => add(value, &Value::Interval(Interval::default()))?.sort_compare(&sum),
                value => value.sort_compare(&sum),
            };
            Ok(side.holds(order))
        }
        _ => Err(broken("the offset of a frame")),
    }
}

fn check_offset(is_good: bool) -> Result<(), SqlError> {
    if is_good {
        return Ok(());
    }
    let message = "invalid preceding or following size in window function";
    Err(SqlError::new(SqlState(*b"22013"), message))
}

fn doubles(value: f64, base: f64, offset: f64, side: Side) -> Result<bool, SqlError> {
    check_offset(offset >= 0.0)?;
    // NaN is greater than all others.
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(!side.below),
        (false, true) => return Ok(side.below),
        (false, false) => {}
    }
    let opposite = if side.earlier { base > 0.0 } else { base < 0.0 };
    if offset.is_infinite() && base.is_infinite() && opposite {
        return Ok(true);
    }
    let sum = if side.earlier { base - offset } else { base + offset };
    Ok(if side.below { value <= sum } else { value >= sum })
}

fn numerics(value: &Numeric, base: &Numeric, offset: &Numeric, side: Side) -> Result<bool, SqlError> {
    check_offset(!offset.is_nan() && !offset.is_negative())?;
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ok(true),
        (true, false) => return Ok(!side.below),
        (false, true) => return Ok(side.below),
        (false, false) => {}
    }
    let sum = if side.earlier { base.checked_sub(offset) } else { base.checked_add(offset) };
    Ok(match sum {
        // Infinity less infinity.
        Ok(sum) if sum.is_nan() => true,
        Ok(sum) => side.holds(Value::Numeric(value.clone()).sort_compare(&Value::Numeric(sum))),
        Err(_) => side.holds_beyond(),
    })
}

/// A time of day so far away; `None` where no number has it.
fn time_away(base: i64, offset: Interval, side: Side) -> Result<Option<i64>, SqlError> {
    check_offset(offset.microseconds >= 0)?;
    Ok(match side.earlier {
        true => Some(base - offset.microseconds),
        false => base.checked_add(offset.microseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_all_values_is_compared_all_the_same() {
        let side = |earlier, below| Side { earlier, below };
        let far = Value::BigInt(i64::MAX);
        for (earlier, below, expected) in
            [(false, true, true), (false, false, false), (true, true, false), (true, false, true)]
        {
            let base = Value::Integer(if earlier { -2 } else { 1 });
            let found = in_range(&Value::Integer(0), &base, &far, side(earlier, below));
            assert_eq!(found.expect("numbers"), expected, "{earlier} {below}");
        }
        let interval = |microseconds| Value::Interval(Interval { microseconds, ..Interval::default() });
        let time = Value::Time(5);
        assert!(in_range(&time, &time, &interval(i64::MAX), side(false, true)).expect("times"));
        assert!(!in_range(&time, &time, &interval(i64::MAX), side(false, false)).expect("times"));
        assert_eq!(
            in_range(&time, &time, &interval(-1), side(false, true)).expect_err("less").state.0,
            *b"22013"
        );
    }
}
