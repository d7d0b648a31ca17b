//! What expressions cost beyond the step of the row or instruction that they belong to: work that grows with the values
//! that they look at. A text of 100 kB, a regular expression and a number of 50,000 digits are seconds, not a step.
//!
//! The work is a function of the values alone, so that it is the same on every node: what is kept from one evaluation to
//! the next (compiled regular expressions) costs as if it were not. An execution measures what it evaluates and takes the
//! steps off its limit; work that nobody measures costs nothing, and each operation has a bound of its own.
//!
//! Commands at their place and footprints are not measured: commands have been measured in the simulation, and the
//! operation bounds the rest.

use std::cell::Cell;
use types::{ArithmeticOperator, Jsonb, Numeric, Spans, SqlError, SqlState, Value};

/// Units in a step. A unit is about a byte that is looked at once, so a step is about a microsecond.
const UNITS_PER_STEP: u64 = 1024;

/// Steps that the value of a constant expression may take when a statement is bound; what takes more is left to be computed
/// when it runs, where somebody is charged.
const CONSTANT_STEPS_MAX: u64 = 1_000;

#[derive(Clone, Copy)]
struct Measure {
    /// Steps that may be taken.
    most: u64,
    /// Steps that have been taken.
    taken: u64,
}

thread_local! {
    /// Of the evaluation that is running on this thread.
    static MEASURE: Cell<Option<Measure>> = const { Cell::new(None) };
}

/// Puts back what was measured around it, also where an evaluation panics.
struct Around(Option<Measure>);

impl Drop for Around {
    fn drop(&mut self) {
        MEASURE.set(self.0);
    }
}

/// Evaluates something, which may take so many steps; gives those that it took. Where they are more it ends with an error soon.
/// What is measured inside of it counts there and not here.
#[inline]
pub fn measured<R>(most: u64, evaluate: impl FnOnce() -> R) -> (R, u64) {
    let _around = Around(MEASURE.replace(Some(Measure { most, taken: 0 })));
    let result = evaluate();
    (result, MEASURE.get().map_or(0, |measure| measure.taken))
}

/// Runs something whose work is not that of the evaluation around it.
pub fn unmeasured<R>(run: impl FnOnce() -> R) -> R {
    let _around = Around(MEASURE.replace(None));
    run()
}

/// Evaluates a constant expression while a statement is bound.
///
/// # Errors
/// Those of `evaluate`, `57014` where it takes too much work.
pub fn constant<R>(evaluate: impl FnOnce() -> Result<R, SqlError>) -> Result<R, SqlError> {
    let (result, taken) = measured(CONSTANT_STEPS_MAX, evaluate);
    if taken > CONSTANT_STEPS_MAX { Err(too_much()) } else { result }
}

/// Work of this many units is about to be done.
///
/// # Errors
/// `57014` where no steps are left for it; who measures says it with the limit.
#[inline]
pub fn spend(units: u64) -> Result<(), SqlError> {
    match units / UNITS_PER_STEP {
        0 => Ok(()),
        steps => take(steps),
    }
}

#[cold]
fn take(steps: u64) -> Result<(), SqlError> {
    let Some(Measure { most, taken }) = MEASURE.get() else { return Ok(()) };
    let taken = taken.saturating_add(steps);
    MEASURE.set(Some(Measure { most, taken }));
    if taken > most { Err(too_much()) } else { Ok(()) }
}

fn too_much() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "an expression needs more steps than there are left")
        .hint("Work on shorter values, or split the work into several transactions.")
}

/// Units of going over a value once.
#[inline]
pub fn of_value(value: &Value) -> u64 {
    /// An element is cloned and compared.
    const UNITS_PER_ELEMENT: usize = 4;
    match value {
        Value::Text(text) | Value::Char(text) | Value::Citext(text) => text.len() as u64,
        Value::Hstore(store) => store.bytes().len() as u64,
        Value::Bytea(bytes) => bytes.len() as u64,
        Value::Json(text) => text.len() as u64,
        Value::Jsonb(value) => value.bytes().len() as u64,
        Value::Numeric(number) => number.stored_bytes() as u64,
        Value::Bit(bits) | Value::VarBit(bits) => bits.bytes().len() as u64,
        Value::Array(array) => (array.values().len() * UNITS_PER_ELEMENT) as u64,
        Value::Composite(row) => (row.values().len() * UNITS_PER_ELEMENT) as u64,
        Value::Range(_) | Value::Multirange(_) => of_ranges(value),
        _ => 0,
    }
}

/// Units of finding the place of each range of a multirange, or of putting them in order: bounds are compared some times.
fn of_ranges(value: &Value) -> u64 {
    const UNITS_PER_RANGE: u64 = 32;
    let bounds = Spans::of(value).map_or(&[][..], Spans::bounds);
    let ends = bounds.iter().flat_map(|bounds| [&bounds.lower, &bounds.upper]).flatten();
    ends.fold(bounds.len() as u64 * UNITS_PER_RANGE, |sum, end| sum.saturating_add(of_value(&end.value)))
}

/// Units of what a function does with an argument: it may have to write a number down.
#[inline]
pub fn of_argument(value: &Value) -> u64 {
    match value {
        Value::Numeric(number) => of_numbers(number, &Numeric::ZERO),
        other => of_value(other),
    }
}

/// Units of arithmetic on two numbers. A sum goes over both once they have the same scale.
#[inline]
pub fn of_arithmetic(operator: ArithmeticOperator, left: &Numeric, right: &Numeric) -> u64 {
    const DIGITS_PER_WORD: u64 = 19;
    match operator {
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => {
            let words = machine_words(left) + machine_words(right);
            let difference = u64::from(left.scale().abs_diff(right.scale())) / DIGITS_PER_WORD;
            words.saturating_mul(2 + difference)
        }
        _ => of_numbers(left, right),
    }
}

/// Units of multiplying or dividing two numbers, and of writing one down: all of them grow with the square of the digits.
fn of_numbers(left: &Numeric, right: &Numeric) -> u64 {
    let digits = machine_words(left) + machine_words(right);
    digits.saturating_mul(digits) / 4
}

/// Units of reading a number from a text of so many bytes.
#[inline]
pub fn of_written_number(bytes: usize) -> u64 {
    const DIGITS_PER_WORD: u64 = 19;
    let words = bytes as u64 / DIGITS_PER_WORD;
    bytes as u64 + words.saturating_mul(words) / 2
}

/// Units of writing out what came of a text of JSON, beside those of reading the text: a number with an exponent may have a
/// hundred thousand digits. Nothing else is more than twice as long as it was written.
pub fn of_growth(written: usize, json: &Jsonb) -> u64 {
    json.bytes().len().saturating_sub(2 * written) as u64
}

/// Units of a function that adds up a series until so many digits are certain, of numbers that are as long.
pub fn of_series(numbers: &[Value]) -> u64 {
    /// PostgreSQL gives no more digits behind the point.
    const SCALE_MAX: u64 = 2_000;
    const DIGITS_PER_WORD: u64 = 19;
    let scale = |value: &Value| match value {
        Value::Numeric(number) if !number.is_special() => u64::from(number.scale()).min(SCALE_MAX),
        _ => 0,
    };
    let words = 1 + numbers.iter().map(scale).max().unwrap_or(0) / DIGITS_PER_WORD;
    // As many terms as there are digits, more or less, and each of them a product.
    words.saturating_pow(3).saturating_mul(16)
}

fn machine_words(number: &Numeric) -> u64 {
    number.stored_bytes() as u64 / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_where_it_is_measured() {
        assert_eq!(spend(u64::MAX), Ok(()), "nobody measures");
        let (inner, outer) = measured(1_000, || {
            spend(10 * UNITS_PER_STEP).expect("enough is left");
            spend(UNITS_PER_STEP - 1).expect("no whole step");
            unmeasured(|| spend(u64::MAX)).expect("it is not measured");
            let ((), inner) = measured(1_000, || spend(7 * UNITS_PER_STEP).expect("enough is left"));
            inner
        });
        assert_eq!((inner, outer), (7, 10));
        let (result, taken) = measured(5, || spend(6 * UNITS_PER_STEP));
        assert_eq!(result.map_err(|error| error.state), Err(SqlState::QUERY_CANCELED));
        assert_eq!(taken, 6);
        assert!(constant(|| spend((CONSTANT_STEPS_MAX + 1) * UNITS_PER_STEP)).is_err());
        assert!(constant(|| spend(CONSTANT_STEPS_MAX * UNITS_PER_STEP)).is_ok());
        assert_eq!(spend(u64::MAX), Ok(()), "nobody measures any more");
    }

    #[test]
    fn short_values_cost_nothing_beyond_their_step() {
        for value in [Value::text("x".repeat(200)), Value::Integer(7), Value::Null] {
            assert!(of_value(&value) < UNITS_PER_STEP, "{value:?}");
        }
        let number = |digits: usize| Value::Numeric(Numeric::parse(&"7".repeat(digits)).expect("a number"));
        assert!(of_argument(&number(300)) < UNITS_PER_STEP);
        assert!(of_argument(&number(30_000)) > 100 * UNITS_PER_STEP);
        assert!(of_series(&[number(40)]) < UNITS_PER_STEP);
        let exact = Value::Numeric(Numeric::parse(&format!("1.{}", "3".repeat(1_000))).expect("a number"));
        assert!(of_series(&[exact]) > 1_000 * UNITS_PER_STEP);
    }
}
