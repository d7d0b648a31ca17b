//! Expressions that are made of other expressions.

use crate::expression::{Expression, Kind};
use crate::scope::Variable;
use types::{DataType, Numeric, SqlError, Value, negate};

pub(super) fn boolean(kind: Kind) -> Expression {
    Expression { kind, data_type: DataType::Boolean }
}

pub(super) fn all_of(first: Expression, rest: Expression) -> Expression {
    let mut operands = first.into_conjuncts();
    operands.extend(rest.into_conjuncts());
    boolean(Kind::And(operands))
}

pub(super) fn any_of(first: Expression, rest: Expression) -> Expression {
    let mut operands = Vec::new();
    for side in [first, rest] {
        match side.kind {
            Kind::Or(inner) => operands.extend(inner),
            _ => operands.push(side),
        }
    }
    boolean(Kind::Or(operands))
}

pub(super) fn variable_expression(variable: Variable) -> Expression {
    Expression::slot(variable.slot, variable.data_type)
}

/// Evaluates what is constant. What gives an error stays: it is raised only if it is evaluated.
pub(super) fn fold(expression: Expression) -> Expression {
    // What stands in a row that is written out is looked at until it has a type.
    let is_open = expression.as_row().is_some() && expression.data_type == DataType::Record;
    if is_open || expression.as_constant().is_some() || !expression.is_constant() {
        return expression;
    }
    match expression.evaluate_constant(0) {
        Ok(value) => Expression::constant(value, expression.data_type),
        Err(_) => expression,
    }
}

pub(super) fn number(text: &str, negative: bool) -> Result<Expression, SqlError> {
    let signed = if negative { format!("-{text}") } else { text.to_string() };
    if let Ok(value) = signed.parse::<i32>() {
        return Ok(Expression::constant(Value::Integer(value), DataType::Integer));
    }
    if let Ok(value) = signed.parse::<i64>() {
        return Ok(Expression::constant(Value::BigInt(value), DataType::BigInt));
    }
    let value = Value::Numeric(Numeric::parse(text)?);
    let value = if negative { negate(&value)? } else { value };
    Ok(Expression::constant(value, DataType::Numeric(None)))
}
