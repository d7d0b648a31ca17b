//! Functions of double precision without an exact result: exponentials, logarithms, trigonometry.
//!
//! A machine's own library rounds their last digit as it likes. These are computed by one pure implementation (`libm`), which uses nothing
//! but operations that IEEE 754 defines to the last bit, so that every node comes to the same. Its last digit is another than that of
//! PostgreSQL on glibc for one result of ten (`exp`, `power`, `cosh`) to thirty (`sin`, `log10`).

use crate::functions::entry::Argument::From;
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Argument, Computed, Function, code};
use DataType::{BigInt, Double, Integer, Real, SmallInt, Unknown};
use types::{DataType, ExecutionVersion, SqlError, SqlState, Value};

/// PostgreSQL prefers double precision among the types that these can become.
const NUMBER: Argument = From(&[SmallInt, Integer, BigInt, Real, Double, Unknown], Double);
/// The same beside another argument that is no exact number.
const ANY_NUMBER: Argument =
    From(&[SmallInt, Integer, BigInt, DataType::Numeric(None), Real, Double, Unknown], Double);

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Behind those of exact numbers, which come first.
pub(super) static FUNCTIONS: &[Function] = &[
    of_one(&["exp"], code!([Value::Double(number)] => exponential(*number))),
    of_one(&["ln"], code!([Value::Double(number)] => logarithm(*number, libm::log))),
    of_one(&["log", "log10"], code!([Value::Double(number)] => logarithm(*number, libm::log10))),
    of_two(
        &["power", "pow", "^"],
        code!(
            [Value::Double(number), Value::Double(exponent)] => power(*number, *exponent),
        ),
    ),
    of_one(&["cbrt", "||/"], code!([Value::Double(number)] => double(libm::cbrt(*number)))),
    of_one(&["sin"], code!([Value::Double(angle)] => of_angle(*angle, libm::sin))),
    of_one(&["cos"], code!([Value::Double(angle)] => of_angle(*angle, libm::cos))),
    of_one(&["tan"], code!([Value::Double(angle)] => of_angle(*angle, libm::tan))),
    of_one(&["cot"], code!([Value::Double(angle)] => of_angle(*angle, |angle| 1.0 / libm::tan(angle)))),
    of_one(&["asin"], code!([Value::Double(number)] => of_ratio(*number, libm::asin))),
    of_one(&["acos"], code!([Value::Double(number)] => of_ratio(*number, libm::acos))),
    of_one(&["atan"], code!([Value::Double(number)] => double(libm::atan(*number)))),
    of_two(
        &["atan2"],
        code!(
            [Value::Double(y), Value::Double(x)] => double(libm::atan2(*y, *x)),
        ),
    ),
    of_one(&["sinh"], code!([Value::Double(number)] => double(libm::sinh(*number)))),
    of_one(&["cosh"], code!([Value::Double(number)] => double(libm::cosh(*number)))),
    of_one(&["tanh"], code!([Value::Double(number)] => double(libm::tanh(*number)))),
    of_one(&["asinh"], code!([Value::Double(number)] => double(libm::asinh(*number)))),
    of_one(
        &["acosh"],
        code!([Value::Double(number)] => match *number < 1.0 {
            true => Err(input_out_of_range()),
            false => double(libm::acosh(*number)),
        }),
    ),
    of_one(&["atanh"], code!([Value::Double(number)] => of_ratio(*number, libm::atanh))),
    Function::new(&["pi"], &[], Is(Double), code!([] => double(std::f64::consts::PI)))
        .never_fails()
        .since(ExecutionVersion::V7),
    of_one(&["degrees"], code!([Value::Double(angle)] => in_range(*angle, angle / RADIANS_PER_DEGREE))),
    of_one(&["radians"], code!([Value::Double(angle)] => in_range(*angle, angle * RADIANS_PER_DEGREE))),
];

/// Whether there is a function of this name, whatever it takes.
pub(super) fn is_named(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.names().contains(&name))
}

const fn of_one(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[NUMBER], Is(Double), code).since(ExecutionVersion::V7)
}

const fn of_two(names: &'static [&'static str], code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[ANY_NUMBER, ANY_NUMBER], Is(Double), code).since(ExecutionVersion::V7)
}

fn double(number: f64) -> Computed {
    Ok(Value::Double(number))
}

fn input_out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// What came of a number that is neither infinite nor none, unless it is too great or too small for a double.
fn in_range(given: f64, found: f64) -> Computed {
    let message = match given.is_finite() {
        true if found.is_infinite() => "value out of range: overflow",
        true if found == 0.0 && given != 0.0 => "value out of range: underflow",
        _ => return double(found),
    };
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

fn exponential(number: f64) -> Computed {
    match number == 0.0 {
        true => double(1.0),
        false => in_range(number, libm::exp(number)),
    }
}

fn logarithm(number: f64, compute: fn(f64) -> f64) -> Computed {
    let message = match number {
        0.0 => "cannot take logarithm of zero",
        ..0.0 => "cannot take logarithm of a negative number",
        _ => return double(compute(number)),
    };
    Err(SqlError::new(SqlState(*b"2201E"), message))
}

fn power(number: f64, exponent: f64) -> Computed {
    let refused = |message: &str| Err(SqlError::new(SqlState(*b"2201F"), message));
    if number == 0.0 && exponent < 0.0 {
        return refused("zero raised to a negative power is undefined");
    }
    if number < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return refused("a negative number raised to a non-integer power yields a complex result");
    }
    let found = libm::pow(number, exponent);
    match exponent.is_finite() && exponent != 0.0 {
        true => in_range(number, found),
        false => double(found),
    }
}

fn of_angle(angle: f64, compute: fn(f64) -> f64) -> Computed {
    match angle.is_infinite() {
        true => Err(input_out_of_range()),
        false => double(compute(angle)),
    }
}

fn of_ratio(number: f64, compute: fn(f64) -> f64) -> Computed {
    match number.abs() > 1.0 {
        true => Err(input_out_of_range()),
        false => double(compute(number)),
    }
}
