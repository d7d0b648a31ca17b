//! Operators and functions of numbers.

use crate::functions::entry::Argument::{From, OneOf, To};
use crate::functions::entry::Gives::{As, Is};
use crate::functions::entry::{Computed, Function, Types, code, misplaced, once, out_of_range};
use crate::functions::number_format::to_char;
use crate::functions::number_parse::to_number;
use crate::functions::real;
use crate::work;
use DataType::{BigInt, Double, Integer, Real, SmallInt, Unknown};
use types::{DataType, ExecutionVersion, Numeric, SqlError, SqlState, Value, absolute};

const NUMERIC: DataType = DataType::Numeric(None);
const TEXT: DataType = DataType::Text(None);

/// Whole numbers.
const WHOLE: &[DataType] = &[SmallInt, Integer, BigInt];

/// Numbers, and literals that may be some.
const NUMBERS: &[DataType] = &[SmallInt, Integer, BigInt, NUMERIC, Real, Double, Unknown];

/// PostgreSQL prefers double precision among the types that an integer can become.
const DOUBLES: &[DataType] = &[SmallInt, Integer, BigInt, Real, Double, Unknown];

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(&["abs", "@"], &[OneOf(&[SmallInt, Integer, BigInt, Real])], As(0), code!(
        [number] => absolute(number),
    )),
    of_numeric(&["abs", "@"], code!([Value::Numeric(number)] => numeric(number.abs()))),
    of_double(&["abs", "@"], code!([Value::Double(number)] => double(number.abs()))),
    of_numeric(&["ceil", "ceiling"], code!([Value::Numeric(number)] => number.ceil().map(Value::Numeric))),
    of_double(&["ceil", "ceiling"], code!([Value::Double(number)] => double(number.ceil()))),
    of_numeric(&["floor"], code!([Value::Numeric(number)] => number.floor().map(Value::Numeric))),
    of_double(&["floor"], code!([Value::Double(number)] => double(number.floor()))),
    of_numeric(&["round"], code!([Value::Numeric(number)] => number.round(0).map(Value::Numeric))),
    of_double(&["round"], code!([Value::Double(number)] => double(number.round_ties_even()))),
    Function::new(&["round"], &[To(NUMERIC), To(Integer)], Is(NUMERIC), code!(
        [Value::Numeric(number), Value::Integer(digits)] => number.round(*digits).map(Value::Numeric),
    )),
    of_numeric(&["trunc"], code!([Value::Numeric(number)] => number.trunc(0).map(Value::Numeric))),
    of_double(&["trunc"], code!([Value::Double(number)] => double(number.trunc()))),
    Function::new(&["trunc"], &[To(NUMERIC), To(Integer)], Is(NUMERIC), code!(
        [Value::Numeric(number), Value::Integer(digits)] => number.trunc(*digits).map(Value::Numeric),
    )),
    of_numeric(&["sign"], code!([Value::Numeric(number)] => numeric(number.sign()))),
    of_double(&["sign"], code!([Value::Double(number)] => double(sign(*number)))),
    exact(&["sqrt"], code!([Value::Numeric(number)] => number.sqrt().map(Value::Numeric))).costs(series),
    // IEEE 754 rounds it the same everywhere.
    Function::new(&["sqrt", "|/"], &[To(Double)], Is(Double), code!(
        [Value::Double(number)] => square_root(*number),
    ))
    .shown_as("squareroot"),
    exact(&["exp"], code!([Value::Numeric(number)] => number.exponential().map(Value::Numeric))).costs(series),
    exact(&["ln"], code!([Value::Numeric(number)] => number.natural_logarithm().map(Value::Numeric)))
        .costs(series),
    exact(&["log", "log10"], code!(
        [Value::Numeric(number)] => number.logarithm(&Numeric::from(10)).map(Value::Numeric),
    ))
    .costs(series),
    // To the base that comes first. There is no other with two arguments.
    of_numerics(&["log"], code!(
        [Value::Numeric(base), Value::Numeric(number)] => number.logarithm(base).map(Value::Numeric),
    ))
    .when(is_not_inexact)
    .costs(series),
    of_numerics(&["power", "pow", "^"], code!(
        [Value::Numeric(number), Value::Numeric(power)] => number.power(power).map(Value::Numeric),
    ))
    .when(is_exact)
    .costs(series),
    of_numerics(&["div"], code!(
        [Value::Numeric(number), Value::Numeric(divisor)] => number.whole_quotient(divisor).map(Value::Numeric),
    ))
    .when(is_not_inexact),
    Function::new(&["factorial"], &[From(&[SmallInt, Integer, BigInt, Unknown], BigInt)], Is(NUMERIC), code!(
        [Value::BigInt(number)] => Numeric::factorial(*number).map(Value::Numeric),
    ))
    .shown_as(OF_NUMBERS),
    of_numerics(&["gcd"], code!(
        [Value::Numeric(a), Value::Numeric(b)] => a.greatest_divisor(b).map(Value::Numeric),
    ))
    .when(is_exact)
    .costs(divisions),
    Function::new(&["gcd"], &[To(BigInt), To(BigInt)], Is(BigInt), code!(
        [Value::BigInt(a), Value::BigInt(b)] => bigint(greatest_divisor(*a, *b).into()),
    ))
    .when(has_bigint)
    .shown_as("greatestdivisor"),
    Function::new(&["gcd"], &[To(Integer), To(Integer)], Is(Integer), code!(
        [Value::Integer(a), Value::Integer(b)] => {
            integer(greatest_divisor(i64::from(*a), i64::from(*b)).into())
        }
    ))
    .shown_as("greatestdivisor"),
    of_numerics(&["lcm"], code!(
        [Value::Numeric(a), Value::Numeric(b)] => a.least_multiple(b).map(Value::Numeric),
    ))
    .when(is_exact)
    .costs(divisions),
    Function::new(&["lcm"], &[To(BigInt), To(BigInt)], Is(BigInt), code!(
        [Value::BigInt(a), Value::BigInt(b)] => bigint(least_multiple(*a, *b)),
    ))
    .when(has_bigint)
    .shown_as("leastmultiple"),
    Function::new(&["lcm"], &[To(Integer), To(Integer)], Is(Integer), code!(
        [Value::Integer(a), Value::Integer(b)] => integer(least_multiple(i64::from(*a), i64::from(*b))),
    ))
    .shown_as("leastmultiple"),
    Function::new(&["scale"], &[To(NUMERIC)], Is(Integer), code!(
        [Value::Numeric(number)] if number.is_special() => Ok(Value::Null),
        [Value::Numeric(number)] => Ok(Value::Integer(i32::from(number.scale()))),
    ))
    .shown_as(OF_NUMBERS),
    Function::new(&["min_scale"], &[To(NUMERIC)], Is(Integer), code!(
        [Value::Numeric(number)] if number.is_special() => Ok(Value::Null),
        [Value::Numeric(number)] => Ok(Value::Integer(i32::from(number.minimal_scale()))),
    ))
    .shown_as(OF_NUMBERS),
    Function::new(&["trim_scale"], &[To(NUMERIC)], Is(NUMERIC), code!(
        [Value::Numeric(number)] => number.round(i32::from(number.minimal_scale())).map(Value::Numeric),
    ))
    .shown_as(OF_NUMBERS),
    Function::new(
        &["width_bucket"],
        &[To(NUMERIC), To(NUMERIC), To(NUMERIC), To(Integer)],
        Is(Integer),
        code!(
            [Value::Numeric(value), Value::Numeric(low), Value::Numeric(high), Value::Integer(count)] => {
                value.bucket(low, high, *count).map(Value::Integer)
            }
        ),
    )
    .when(|types| is_exact(types) && is_exact(&types[..3]))
    .shown_as(OF_NUMBERS),
    Function::new(
        &["width_bucket"],
        &[From(NUMBERS, Double), From(NUMBERS, Double), From(NUMBERS, Double), To(Integer)],
        Is(Integer),
        code!(
            [Value::Double(value), Value::Double(low), Value::Double(high), Value::Integer(count)] => {
                bucket(*value, *low, *high, *count).map(Value::Integer)
            }
        ),
    )
    .when(|types| !is_exact(types))
    .shown_as(OF_NUMBERS),
    Function::new(
        &["to_char"],
        &[OneOf(&[SmallInt, Integer, BigInt, NUMERIC, Real, Double]), To(TEXT)],
        Is(TEXT),
        code!([number, Value::Text(template)] => to_char(number, template)),
    ).stable()
    .shown_as(OF_NUMBERS),
    Function::new(&["to_number"], &[To(TEXT), To(TEXT)], Is(NUMERIC), code!(
        [Value::Text(text), Value::Text(template)] => to_number(text, template),
    )).stable()
    .costs(written)
    .shown_as(OF_NUMBERS),
    Function::worked(&["&"], widest, |values| of_bits(values, |a, b| a & b)).shown_as(OF_NUMBERS),
    Function::worked(&["|"], widest, |values| of_bits(values, |a, b| a | b)).shown_as(OF_NUMBERS),
    Function::worked(&["#"], widest, |values| of_bits(values, |a, b| a ^ b)).shown_as(OF_NUMBERS),
    shift(&["<<"], |values| shifted(values, |a, count| a << count)),
    shift(&[">>"], |values| shifted(values, |a, count| a >> count)),
    Function::new(&["~"], &[OneOf(WHOLE)], As(0), code!(
        [Value::SmallInt(a)] => Ok(Value::SmallInt(!a)),
        [Value::Integer(a)] => Ok(Value::Integer(!a)),
        [Value::BigInt(a)] => Ok(Value::BigInt(!a)),
    ))
    .shown_as(OF_NUMBERS),
];

/// What EXPLAIN calls most of them.
const OF_NUMBERS: &str = "number";

const fn of_numeric(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[OneOf(&[NUMERIC])], Is(NUMERIC), code)
}

const fn of_double(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[From(DOUBLES, Double)], Is(Double), code)
}

/// A function of one number that must be exact.
const fn exact(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[To(NUMERIC)], Is(NUMERIC), code).when(is_exact).shown_as(OF_NUMBERS)
}

const fn of_numerics(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[To(NUMERIC), To(NUMERIC)], Is(NUMERIC), code).shown_as(OF_NUMBERS)
}

const fn shift(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    let count = &[OneOf(WHOLE), From(&[SmallInt, Integer, Unknown], Integer)];
    Function::new(names, count, As(0), code).shown_as(OF_NUMBERS)
}

/// None of them is a double.
fn is_not_inexact(types: &[DataType]) -> bool {
    !types.iter().any(|given| matches!(given, Double | Real))
}

/// One of them is exact and none is a double; whole numbers alone become doubles in PostgreSQL.
fn is_exact(types: &[DataType]) -> bool {
    is_not_inexact(types) && types.iter().any(|given| given.family() == NUMERIC)
}

fn has_bigint(types: &[DataType]) -> bool {
    types.contains(&BigInt)
}

/// Two whole numbers become the wider of both; nothing says what two literals are.
fn widest(types: &[DataType]) -> Option<Types> {
    let [SmallInt | Integer | BigInt | Unknown, SmallInt | Integer | BigInt | Unknown] = types else {
        return None;
    };
    let both = [BigInt, Integer, SmallInt].into_iter().find(|width| types.contains(width))?;
    Some((vec![both, both], both))
}

/// Adds up a series until so many digits are certain.
fn series(values: &[Value]) -> u64 {
    work::of_series(values).saturating_add(once(values))
}

/// As many divisions as the shorter number has digits, each of which takes off some of the longer one.
fn divisions(values: &[Value]) -> u64 {
    const DIVISIONS: u64 = 16;
    once(values).saturating_mul(DIVISIONS)
}

/// Reads a number from a text.
fn written(values: &[Value]) -> u64 {
    match values {
        [Value::Text(text), ..] => work::of_written_number(text.len()),
        _ => once(values),
    }
}

fn numeric(number: Numeric) -> Computed {
    Ok(Value::Numeric(number))
}

fn double(number: f64) -> Computed {
    Ok(Value::Double(number))
}

fn integer(number: u128) -> Computed {
    i32::try_from(number).map(Value::Integer).map_err(|_| out_of_range("integer"))
}

fn bigint(number: u128) -> Computed {
    i64::try_from(number).map(Value::BigInt).map_err(|_| out_of_range("bigint"))
}

fn sign(number: f64) -> f64 {
    match number {
        _ if number.is_nan() => f64::NAN,
        0.0 => 0.0,
        _ => number.signum(),
    }
}

fn square_root(number: f64) -> Computed {
    if number < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(SqlError::new(SqlState(*b"2201F"), message));
    }
    double(number.sqrt())
}

fn of_bits(values: &[Value], operation: fn(i64, i64) -> i64) -> Computed {
    match values {
        [Value::SmallInt(a), Value::SmallInt(b)] => {
            Ok(Value::SmallInt(operation(i64::from(*a), i64::from(*b)) as i16))
        }
        [Value::Integer(a), Value::Integer(b)] => {
            Ok(Value::Integer(operation(i64::from(*a), i64::from(*b)) as i32))
        }
        [Value::BigInt(a), Value::BigInt(b)] => Ok(Value::BigInt(operation(*a, *b))),
        _ => Err(misplaced(values)),
    }
}

/// The count is taken modulo the width, as PostgreSQL's is on all common machines.
fn shifted(values: &[Value], operation: fn(i64, u32) -> i64) -> Computed {
    let count = |count: i32, width: u32| count as u32 & (width - 1);
    match values {
        [Value::SmallInt(a), Value::Integer(b)] => {
            Ok(Value::SmallInt(operation(i64::from(*a), count(*b, 32)) as i16))
        }
        [Value::Integer(a), Value::Integer(b)] => {
            Ok(Value::Integer(operation(i64::from(*a), count(*b, 32)) as i32))
        }
        [Value::BigInt(a), Value::Integer(b)] => Ok(Value::BigInt(operation(*a, count(*b, 64)))),
        _ => Err(misplaced(values)),
    }
}

fn greatest_divisor(a: i64, b: i64) -> u64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_multiple(a: i64, b: i64) -> u128 {
    match greatest_divisor(a, b) {
        0 => 0,
        divisor => u128::from(a.unsigned_abs() / divisor) * u128::from(b.unsigned_abs()),
    }
}

/// As [`Numeric::bucket`], of doubles: every operation is rounded as IEEE 754 says.
fn bucket(value: f64, low: f64, high: f64, count: i32) -> Result<i32, SqlError> {
    let wrong = |message: &str| Err(SqlError::new(SqlState(*b"2201G"), message));
    if count <= 0 {
        return wrong("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return wrong("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return wrong("lower and upper bounds must be finite");
    }
    if low == high {
        return wrong("lower bound cannot equal upper bound");
    }
    let up = low < high;
    if (up && value < low) || (!up && value > low) {
        return Ok(0);
    }
    if (up && value >= high) || (!up && value <= high) {
        let message = "integer out of range";
        let beyond = count.checked_add(1);
        return beyond.ok_or_else(|| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    let width = if up { high - low } else { low - high };
    let share = match (width.is_infinite(), up) {
        (false, true) => (value - low) / width,
        (false, false) => (low - value) / width,
        // Halves, whose distance is a double.
        (true, true) => (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0),
        (true, false) => (low / 2.0 - value / 2.0) / (low / 2.0 - high / 2.0),
    };
    Ok(((f64::from(count) * share) as i32).min(count - 1) + 1)
}

/// What stands in for a function of doubles whose last digits differ between machines.
///
/// # Errors
/// `0A000` where `name` is one.
pub(super) fn refuse_inexact(
    name: &str,
    arguments: &[DataType],
    version: ExecutionVersion,
) -> Result<(), SqlError> {
    if version >= ExecutionVersion::V7 && real::is_named(name) {
        return Ok(());
    }
    let hint = match (name, arguments.len()) {
        ("exp" | "ln" | "log" | "log10", 1) => "Cast the argument to numeric.",
        ("power" | "pow" | "^", 2) => "Cast an argument to numeric.",
        (
            "cbrt" | "||/" | "sin" | "cos" | "tan" | "cot" | "asin" | "acos" | "atan" | "sind" | "cosd"
            | "tand" | "sinh" | "cosh" | "tanh" | "asinh" | "acosh" | "atanh" | "degrees" | "radians",
            1,
        )
        | ("atan2" | "atan2d", 2) => "Compute it in the client, and pass it as an argument.",
        _ => return Ok(()),
    };
    let known = |argument: &DataType| {
        matches!(
            argument,
            DataType::Double
                | DataType::Integer
                | DataType::BigInt
                | DataType::Numeric(_)
                | DataType::Unknown
        )
    };
    if !arguments.iter().all(known) {
        return Ok(());
    }
    let what = format!("{name} of double precision, whose last digits differ between machines,");
    let message = format!("{what} is not supported");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(hint))
}
