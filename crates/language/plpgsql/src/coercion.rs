//! How values of one type become values of another in PL/pgSQL.

use crate::target::Coercion;
use plan::expression::{Expression, Kind};
use types::{DataType, SqlError, SqlState, assign, can_cast_in_assignment};

/// How PL/pgSQL makes a value of one type one of another: by assignment, or through text.
///
/// # Errors
/// 42804 where no value could be converted.
pub(super) fn coercion(from: DataType, to: DataType, what: &str) -> Result<Coercion, SqlError> {
    let same = from == to || (from.family() == to && from != DataType::Unknown);
    if same {
        return Ok(Coercion::None);
    }
    let is_text = matches!(from, DataType::Text(_) | DataType::Unknown);
    if is_text || can_cast_in_assignment(from, to) {
        return Ok(Coercion::Assign(to));
    }
    if from.is_composite() || to.is_composite() {
        return Ok(Coercion::ThroughText(to));
    }
    let is_number = |data_type: DataType| {
        types::arithmetic_result(types::ArithmeticOperator::Divide, data_type, data_type).is_some()
    };
    // `20150717` is a date as well.
    let reads_numbers = is_number(to)
        || matches!(
            to,
            DataType::Boolean
                | DataType::Date
                | DataType::Time
                | DataType::Timestamp
                | DataType::TimestampTz
                | DataType::Interval
                | DataType::RefCursor
        );
    let are_arrays = from.element().is_some() && to.element().is_some();
    if !are_arrays && (!is_number(from) || !reads_numbers) {
        let message = format!("{what} is of type {to} but expression is of type {from}");
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
            .hint("You will need to rewrite or cast the expression."));
    }
    Ok(Coercion::ThroughText(to))
}

/// The expression, of this type.
///
/// # Errors
/// As [`coercion`].
pub(super) fn coerce(value: Expression, to: DataType, what: &str) -> Result<Expression, SqlError> {
    let assigned = |value: Expression, data_type: DataType| Expression {
        kind: Kind::Assign(Box::new(value)),
        data_type,
    };
    match coercion(value.data_type, to, what)? {
        Coercion::None => Ok(value),
        Coercion::Assign(to) => {
            // A constant is converted once; where that fails, the error belongs to the run.
            if let Some(constant) = value.as_constant()
                && let Ok(constant) = assign(constant.clone(), to)
            {
                return Ok(Expression::constant(constant, to));
            }
            Ok(assigned(value, to))
        }
        Coercion::ThroughText(to) => Ok(assigned(assigned(value, DataType::Text(None)), to)),
    }
}
