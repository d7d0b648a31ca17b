//! Operators and functions of numbers.

use crate::functions::Function;
use crate::functions::number_format::to_char;
use crate::functions::number_parse::to_number;
use crate::functions::signature::Signature;
use types::{DataType, Numeric, SqlError, SqlState, Value};

/// A function of numbers that is NULL where an argument is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberFunction {
    /// `a & b`
    And,
    /// `a | b`
    Or,
    /// `a # b`
    ExclusiveOr,
    /// `a << count`
    ShiftLeft,
    /// `a >> count`
    ShiftRight,
    /// `~ a`
    Not,
    /// `sqrt(numeric)`
    SquareRoot,
    /// `exp(numeric)`
    Exponential,
    /// `ln(numeric)`
    NaturalLogarithm,
    /// `log(numeric)`, `log10(numeric)`, to base 10
    DecimalLogarithm,
    /// `log(base, numeric)`
    Logarithm,
    /// `power(numeric, numeric)`, `a ^ b`
    Power,
    /// `div(numeric, numeric)`
    WholeQuotient,
    /// `factorial(bigint)`
    Factorial,
    /// `gcd(numeric, numeric)`
    GreatestDivisor,
    /// `lcm(numeric, numeric)`
    LeastMultiple,
    /// `scale(numeric)`
    Scale,
    /// `min_scale(numeric)`
    MinimalScale,
    /// `trim_scale(numeric)`
    TrimScale,
    /// `width_bucket(value, low, high, count)`
    Bucket,
    /// `to_char(number, template)`
    ToChar,
    /// `to_number(text, template)`
    ToNumber,
}

impl NumberFunction {
    /// The function's value; `None` where it was bound for other types.
    pub fn of(self, values: &[Value]) -> Option<Result<Value, SqlError>> {
        Some(match values {
            [Value::Integer(a)] => Ok(Value::Integer(self.of_bits(i64::from(*a), 0, 32)? as i32)),
            [Value::BigInt(number)] if self == NumberFunction::Factorial => {
                Numeric::factorial(*number).map(Value::Numeric)
            }
            [Value::BigInt(a)] => Ok(Value::BigInt(self.of_bits(*a, 0, 64)?)),
            [Value::Integer(a), Value::Integer(b)] => {
                Ok(Value::Integer(self.of_bits(i64::from(*a), i64::from(*b), 32)? as i32))
            }
            [Value::BigInt(a), Value::BigInt(b)] => Ok(Value::BigInt(self.of_bits(*a, *b, 64)?)),
            [Value::SmallInt(a)] => Ok(Value::SmallInt(self.of_bits(i64::from(*a), 0, 32)? as i16)),
            [Value::SmallInt(a), Value::SmallInt(b)] => {
                Ok(Value::SmallInt(self.of_bits(i64::from(*a), i64::from(*b), 32)? as i16))
            }
            [Value::SmallInt(a), Value::Integer(b)] => {
                Ok(Value::SmallInt(self.of_bits(i64::from(*a), i64::from(*b), 32)? as i16))
            }
            [Value::BigInt(a), Value::Integer(b)] => {
                Ok(Value::BigInt(self.of_bits(*a, i64::from(*b), 64)?))
            }
            [Value::Numeric(a)] => return self.of_numeric(a),
            [Value::Numeric(a), Value::Numeric(b)] => self.of_numerics(a, b)?.map(Value::Numeric),
            [Value::Numeric(value), Value::Numeric(low), Value::Numeric(high), Value::Integer(count)] => {
                value.bucket(low, high, *count).map(Value::Integer)
            }
            [Value::Double(value), Value::Double(low), Value::Double(high), Value::Integer(count)] => {
                bucket(*value, *low, *high, *count).map(Value::Integer)
            }
            [Value::Text(text), Value::Text(template)] if self == NumberFunction::ToNumber => {
                to_number(text, template)
            }
            [number, Value::Text(template)] if self == NumberFunction::ToChar => to_char(number, template),
            _ => return None,
        })
    }

    /// A shift counts modulo the width, as PostgreSQL's does on all common machines.
    fn of_bits(self, a: i64, b: i64, width: u32) -> Option<i64> {
        let count = (b as u32) & (width - 1);
        Some(match self {
            NumberFunction::And => a & b,
            NumberFunction::Or => a | b,
            NumberFunction::ExclusiveOr => a ^ b,
            NumberFunction::ShiftLeft => a << count,
            NumberFunction::ShiftRight => a >> count,
            NumberFunction::Not => !a,
            _ => return None,
        })
    }

    fn of_numeric(self, number: &Numeric) -> Option<Result<Value, SqlError>> {
        let value = match self {
            NumberFunction::SquareRoot => number.sqrt(),
            NumberFunction::Exponential => number.exponential(),
            NumberFunction::NaturalLogarithm => number.natural_logarithm(),
            NumberFunction::DecimalLogarithm => number.logarithm(&Numeric::from(10)),
            NumberFunction::TrimScale => number.round(i32::from(number.minimal_scale())),
            NumberFunction::Scale | NumberFunction::MinimalScale if number.is_special() => {
                return Some(Ok(Value::Null));
            }
            NumberFunction::Scale => return Some(Ok(Value::Integer(i32::from(number.scale())))),
            NumberFunction::MinimalScale => {
                return Some(Ok(Value::Integer(i32::from(number.minimal_scale()))));
            }
            _ => return None,
        };
        Some(value.map(Value::Numeric))
    }

    fn of_numerics(self, a: &Numeric, b: &Numeric) -> Option<Result<Numeric, SqlError>> {
        Some(match self {
            NumberFunction::Logarithm => b.logarithm(a),
            NumberFunction::Power => a.power(b),
            NumberFunction::WholeQuotient => a.whole_quotient(b),
            NumberFunction::GreatestDivisor => a.greatest_divisor(b),
            NumberFunction::LeastMultiple => a.least_multiple(b),
            _ => return None,
        })
    }
}

/// The function of numbers that PostgreSQL calls; `None` where there is none.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    use DataType::{BigInt, Double, Integer, Real, SmallInt, Unknown};
    const NUMERIC: DataType = DataType::Numeric(None);
    let signature = |function, arguments: &[DataType], result| {
        let function = Function::Number(function);
        Some(Signature { function, arguments: arguments.to_vec(), result })
    };
    let family: Vec<DataType> = arguments.iter().map(|argument| argument.family()).collect();
    let inexact = family.contains(&Double) || family.contains(&Real);
    // Exact where one of them is and no other is a double; whole numbers alone become doubles in PostgreSQL.
    let exact = family.contains(&NUMERIC) && !inexact;
    let one = |function| if exact { signature(function, &[NUMERIC], NUMERIC) } else { None };
    let two = |function| if exact { signature(function, &[NUMERIC, NUMERIC], NUMERIC) } else { None };
    match (name, family.as_slice()) {
        ("sqrt", [_]) => one(NumberFunction::SquareRoot),
        ("exp", [_]) => one(NumberFunction::Exponential),
        ("ln", [_]) => one(NumberFunction::NaturalLogarithm),
        ("log" | "log10", [_]) => one(NumberFunction::DecimalLogarithm),
        // There is no other with two arguments.
        ("log", [_, _]) if !inexact => signature(NumberFunction::Logarithm, &[NUMERIC, NUMERIC], NUMERIC),
        ("power" | "pow" | "^", [_, _]) => two(NumberFunction::Power),
        ("div", [_, _]) if !inexact => signature(NumberFunction::WholeQuotient, &[NUMERIC, NUMERIC], NUMERIC),
        ("factorial", [SmallInt | Integer | BigInt | Unknown]) => {
            signature(NumberFunction::Factorial, &[BigInt], NUMERIC)
        }
        ("gcd", [_, _]) => two(NumberFunction::GreatestDivisor),
        ("lcm", [_, _]) => two(NumberFunction::LeastMultiple),
        ("scale", [_]) => signature(NumberFunction::Scale, &[NUMERIC], Integer),
        ("min_scale", [_]) => signature(NumberFunction::MinimalScale, &[NUMERIC], Integer),
        ("trim_scale", [_]) => signature(NumberFunction::TrimScale, &[NUMERIC], NUMERIC),
        ("width_bucket", [value, low, high, _]) if [value, low, high].contains(&&NUMERIC) && exact => {
            signature(NumberFunction::Bucket, &[NUMERIC, NUMERIC, NUMERIC, Integer], Integer)
        }
        ("width_bucket", [value, low, high, _]) if !exact => {
            let number = |argument: &&DataType| {
                matches!(**argument, SmallInt | Integer | BigInt | NUMERIC | Real | Double | Unknown)
            };
            let all = [value, low, high].iter().all(number);
            all.then(|| signature(NumberFunction::Bucket, &[Double, Double, Double, Integer], Integer))?
        }
        ("to_char", [number @ (SmallInt | Integer | BigInt | NUMERIC | Real | Double), _]) => {
            signature(NumberFunction::ToChar, &[*number, DataType::Text(None)], DataType::Text(None))
        }
        ("to_number", [_, _]) => {
            signature(NumberFunction::ToNumber, &[DataType::Text(None), DataType::Text(None)], NUMERIC)
        }
        ("&" | "|" | "#", [SmallInt | Integer | BigInt | Unknown, SmallInt | Integer | BigInt | Unknown]) => {
            let function = match name {
                "&" => NumberFunction::And,
                "|" => NumberFunction::Or,
                _ => NumberFunction::ExclusiveOr,
            };
            let both = whole(&family)?;
            signature(function, &[both, both], both)
        }
        ("<<" | ">>", [number @ (SmallInt | Integer | BigInt), SmallInt | Integer | Unknown]) => {
            let function = if name == "<<" { NumberFunction::ShiftLeft } else { NumberFunction::ShiftRight };
            signature(function, &[*number, Integer], *number)
        }
        ("~", [number @ (SmallInt | Integer | BigInt)]) => {
            signature(NumberFunction::Not, &[*number], *number)
        }
        _ => None,
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

/// The wider of two whole numbers; `None` where nothing says what they are.
fn whole(family: &[DataType]) -> Option<DataType> {
    [DataType::BigInt, DataType::Integer, DataType::SmallInt].into_iter().find(|width| family.contains(width))
}

/// What stands in for a function of doubles whose last digits differ between machines.
///
/// # Errors
/// `0A000` where `name` is one.
pub(super) fn refuse_inexact(name: &str, arguments: &[DataType]) -> Result<(), SqlError> {
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
