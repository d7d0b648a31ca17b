//! Evaluation of bound expressions.

use crate::expression::environment::Environment;
use crate::expression::{Expression, Kind, SubqueryForm};
use smallvec::SmallVec;
use std::cmp::Ordering;
use types::{DataType, SqlError, Value, arithmetic, assign, cast, concatenate, format_value, negate};
use values::functions::Function;
use values::{broken, format_text, like, work};

impl Expression {
    /// The value.
    ///
    /// # Errors
    /// What arithmetic, casts and functions raise.
    pub fn evaluate(&self, environment: &Environment<'_>) -> Result<Value, SqlError> {
        match &self.kind {
            Kind::Constant(value) => Ok(value.clone()),
            Kind::Column(ordinal) => value_at(environment.row, *ordinal, "column").cloned(),
            Kind::Slot(slot) => value_at(environment.frame, *slot, "variable").cloned(),
            Kind::Argument(number) => value_at(environment.arguments(), *number, "argument").cloned(),
            Kind::Left(ordinal) => value_at(environment.left(), *ordinal, "column to the left").cloned(),
            Kind::State(number) => value_at(environment.row, *number, "state").cloned(),
            Kind::Now => Ok(Value::TimestampTz(environment.now)),
            Kind::Cast(operand) => {
                let value = operand.evaluate(environment)?;
                spend_on_cast(&value, self.data_type)?;
                environment.made(cast(value, self.data_type)?)
            }
            Kind::Assign(operand) => {
                let value = operand.evaluate(environment)?;
                spend_on_cast(&value, self.data_type)?;
                environment.made(assign(value, self.data_type)?)
            }
            Kind::Arithmetic(operator, operands) => {
                let (mut left, mut right) = (Value::Null, Value::Null);
                let left = operands[0].borrow(environment, &mut left)?;
                let right = operands[1].borrow(environment, &mut right)?;
                if let (Value::Numeric(left), Value::Numeric(right)) = (left, right) {
                    work::spend(work::of_arithmetic(*operator, left, right))?;
                }
                environment.made(arithmetic(*operator, left, right)?)
            }
            Kind::Negate(operand) => negate(&operand.evaluate(environment)?),
            Kind::Concatenate(operands) => {
                let (mut left, mut right) = (Value::Null, Value::Null);
                let left = operands[0].borrow(environment, &mut left)?;
                let right = operands[1].borrow(environment, &mut right)?;
                environment.made(concatenate(left, right)?)
            }
            Kind::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if condition.is_true(environment)? {
                        return result.evaluate(environment);
                    }
                }
                otherwise.evaluate(environment)
            }
            Kind::Coalesce(operands) => {
                for operand in operands {
                    let value = operand.evaluate(environment)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            Kind::Extreme(largest, operands) => extreme(*largest, operands, environment),
            Kind::Function(function, arguments) => {
                environment.made(function_value(function, arguments, self.data_type, environment)?)
            }
            Kind::Format(operands) => environment.made(format_call(operands, environment)?),
            Kind::Row(operation, operands) => {
                environment.made(operation.evaluate(operands, self.data_type, environment)?)
            }
            Kind::Subquery(subquery) => match subquery.form {
                SubqueryForm::Scalar => subquery.scalar(environment),
                SubqueryForm::Array(element) => subquery.array(element, environment),
                _ => Ok(subquery.truth(environment)?.map_or(Value::Null, Value::Boolean)),
            },
            Kind::Call(call) => call.evaluate(environment),
            Kind::Aggregate(_) => Err(broken("an aggregate outside of a grouping")),
            Kind::Window(_) => Err(broken("a window function outside of a query's output")),
            _ => Ok(self.truth(environment)?.map_or(Value::Null, Value::Boolean)),
        }
    }

    /// The value, without a copy where it stands somewhere already.
    #[inline]
    pub fn borrow<'a>(
        &'a self,
        environment: &'a Environment<'a>,
        place: &'a mut Value,
    ) -> Result<&'a Value, SqlError> {
        match &self.kind {
            Kind::Constant(value) => Ok(value),
            Kind::Column(ordinal) => value_at(environment.row, *ordinal, "column"),
            Kind::Slot(slot) => value_at(environment.frame, *slot, "variable"),
            Kind::Argument(number) => value_at(environment.arguments(), *number, "argument"),
            Kind::Left(ordinal) => value_at(environment.left(), *ordinal, "column to the left"),
            _ => {
                *place = self.evaluate(environment)?;
                Ok(place)
            }
        }
    }

    /// True where the condition is true, and not where it is NULL.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    #[inline]
    pub fn is_true(&self, environment: &Environment<'_>) -> Result<bool, SqlError> {
        Ok(self.truth(environment)? == Some(true))
    }

    /// The value of a condition; `None` is NULL.
    pub fn truth(&self, environment: &Environment<'_>) -> Result<Option<bool>, SqlError> {
        match &self.kind {
            Kind::Compare(comparison, operands) => {
                let (mut left, mut right) = (Value::Null, Value::Null);
                let left = operands[0].borrow(environment, &mut left)?;
                let right = operands[1].borrow(environment, &mut right)?;
                Ok(left.compare(right).map(|order| comparison.holds(order)))
            }
            Kind::Distinct(distinct, operands) => {
                let left = operands[0].evaluate(environment)?;
                let right = operands[1].evaluate(environment)?;
                let differs = match left.compare(&right) {
                    Some(order) => order != Ordering::Equal,
                    None => left.is_null() != right.is_null(),
                };
                Ok(Some(differs == *distinct))
            }
            Kind::And(operands) => connect(operands, environment, false),
            Kind::Or(operands) => connect(operands, environment, true),
            Kind::Not(operand) => Ok(operand.truth(environment)?.map(|truth| !truth)),
            Kind::IsNull(expected, operand) => {
                let mut place = Value::Null;
                Ok(Some(operand.borrow(environment, &mut place)?.is_null() == *expected))
            }
            Kind::IsTruth(truth, expected, operand) => {
                Ok(Some((operand.truth(environment)? == *truth) == *expected))
            }
            Kind::InList(expected, operands) => in_list(*expected, operands, environment),
            Kind::Subquery(subquery)
                if !matches!(subquery.form, SubqueryForm::Scalar | SubqueryForm::Array(_)) =>
            {
                subquery.truth(environment)
            }
            Kind::Like(form, operands) => {
                let (text, pattern) =
                    (operands[0].evaluate(environment)?, operands[1].evaluate(environment)?);
                match (&text, &pattern) {
                    (Value::Text(text), Value::Text(pattern)) => {
                        Ok(Some(like(text, pattern, *form)? != form.negated))
                    }
                    _ => Ok(None),
                }
            }
            _ => {
                let mut place = Value::Null;
                match self.borrow(environment, &mut place)? {
                    Value::Boolean(truth) => Ok(Some(*truth)),
                    Value::Null => Ok(None),
                    other => Err(broken(&format!("a condition of type {}", other.data_type()))),
                }
            }
        }
    }

    /// The value of an expression without columns and variables.
    pub fn evaluate_constant(&self, now: i64) -> Result<Value, SqlError> {
        work::constant(|| self.evaluate(&Environment::new(&[], &[], now)))
    }
}

/// The work of a cast, beside what the result costs.
#[inline]
fn spend_on_cast(value: &Value, data_type: DataType) -> Result<(), SqlError> {
    work::spend(match (value, data_type) {
        (Value::Text(text) | Value::Char(text) | Value::Citext(text), DataType::Numeric(_)) => {
            work::of_written_number(text.len())
        }
        (Value::Json(_) | Value::Jsonb(_), DataType::Text(_) | DataType::Char(_)) => work::of_value(value),
        (Value::Json(_), _) | (_, DataType::Json | DataType::Jsonb) => work::of_value(value),
        // As a whole it is a number.
        (Value::Jsonb(json), _) => work::of_written_number(json.bytes().len()),
        (Value::Text(_) | Value::Char(_) | Value::Citext(_) | Value::Hstore(_) | Value::Numeric(_), _) => {
            work::of_argument(value)
        }
        _ => 0,
    })
}

fn function_value(
    function: &Function,
    arguments: &[Expression],
    result: DataType,
    environment: &Environment<'_>,
) -> Result<Value, SqlError> {
    let mut values: SmallVec<[Value; 3]> = SmallVec::new();
    for argument in arguments {
        let value = argument.evaluate(environment)?;
        if value.is_null() && function.is_strict() {
            return Ok(Value::Null);
        }
        values.push(value);
    }
    function.call(&values, result)
}

fn format_call(operands: &[Expression], environment: &Environment<'_>) -> Result<Value, SqlError> {
    let texts = operands.iter().map(|operand| Ok(format_value(&operand.evaluate(environment)?)));
    let texts = texts.collect::<Result<Vec<Option<String>>, SqlError>>()?;
    work::spend(texts.iter().flatten().map(|text| text.len() as u64).sum())?;
    match texts.split_first() {
        Some((Some(format), arguments)) => format_text(format, arguments).map(Value::text),
        _ => Ok(Value::Null),
    }
}

#[inline]
fn value_at<'a>(values: &'a [Value], index: u16, what: &str) -> Result<&'a Value, SqlError> {
    values.get(usize::from(index)).ok_or_else(|| broken(&format!("{what} {index} has no value")))
}

/// AND (`decisive` is false) and OR (`decisive` is true): the first decisive operand decides, NULL beats the rest.
fn connect(
    operands: &[Expression],
    environment: &Environment<'_>,
    decisive: bool,
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(!decisive);
    for operand in operands {
        match operand.truth(environment)? {
            Some(truth) if truth == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn in_list(
    expected: bool,
    operands: &[Expression],
    environment: &Environment<'_>,
) -> Result<Option<bool>, SqlError> {
    let Some((operand, list)) = operands.split_first() else { return Err(broken("IN without operand")) };
    let value = operand.evaluate(environment)?;
    let mut unknown = false;
    for element in list {
        let mut place = Value::Null;
        match value.compare(element.borrow(environment, &mut place)?) {
            Some(Ordering::Equal) => return Ok(Some(expected)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(!expected) })
}

fn extreme(largest: bool, operands: &[Expression], environment: &Environment<'_>) -> Result<Value, SqlError> {
    let mut best = Value::Null;
    for operand in operands {
        let value = operand.evaluate(environment)?;
        let better = match value.compare(&best) {
            Some(order) => order == if largest { Ordering::Greater } else { Ordering::Less },
            None => best.is_null(),
        };
        if better {
            best = value;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that are called with NULL.
    const NOT_STRICT: [&str; 36] = [
        "[] =",
        "all",
        "any",
        "append",
        "assign",
        "concatenate",
        "construct",
        "datemultirange",
        "daterange",
        "fill",
        "formatarray",
        "hstore",
        "int4multirange",
        "int4range",
        "int8multirange",
        "int8range",
        "join",
        "jsonbbuildarray",
        "jsonbbuildobject",
        "jsonbsetlax",
        "jsonbuildarray",
        "jsonbuildobject",
        "jsonobjectagg",
        "nummultirange",
        "numrange",
        "oftext",
        "position",
        "positions",
        "prepend",
        "remove",
        "replace",
        "totext",
        "tsmultirange",
        "tsrange",
        "tstzmultirange",
        "tstzrange",
    ];

    #[test]
    fn a_strict_function_of_null_is_null() {
        let environment = Environment::new(&[], &[], 0);
        let mut see_null = std::collections::BTreeSet::new();
        for function in values::functions::all() {
            if !function.is_strict() {
                see_null.insert(function.shown());
                continue;
            }
            let null = Expression::constant(Value::Null, DataType::Unknown);
            let call =
                Expression { kind: Kind::Function(function, vec![null]), data_type: DataType::Unknown };
            assert_eq!(call.evaluate(&environment), Ok(Value::Null), "{function:?}");
        }
        assert_eq!(see_null.into_iter().collect::<Vec<_>>(), NOT_STRICT);
    }
}
