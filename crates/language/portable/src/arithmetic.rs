//! Exact arithmetic and texts one behind the other.

use crate::bind::{Binder, Operand};
use crate::data_type::{Kind, PRECISION_MAX, digits_of, integer_rank, kind_of, numeric};
use crate::expression::{Expression, Operator, Term};
use crate::fit::{meeting, mismatch};
use crate::refusal::{COMPUTE_BEFORE, no_operator, refused};
use crate::written::Written;
use sqlparser::ast::{BinaryOperator, Expr};
use types::{DataType, SqlError, Value, limits};

/// Digits after the point that every database computes with.
const COMPUTED_SCALE_MAX: u16 = 30;

impl Binder<'_> {
    /// `+`, `-` or `*`
    pub(crate) fn arithmetic(
        &self,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let sign = operator.to_string();
        let (left, right) = (self.operand(left, None)?, self.operand(right, None)?);
        if is_time(left.data_type()) || is_time(right.data_type()) {
            return Err(refused("arithmetic of dates and times").hint(COMPUTE_BEFORE));
        }
        let (left, right) = match (left, right) {
            (Operand::Bound(left), Operand::Bound(right)) => (left, right),
            (Operand::Bound(left), Operand::Written(right)) => {
                let right = beside(right, &sign, left.data_type)?;
                widened(left, right)
            }
            (Operand::Written(left), Operand::Bound(right)) => {
                let left = beside(left, &sign, right.data_type)?;
                let (right, left) = widened(right, left);
                (left, right)
            }
            (Operand::Written(_), Operand::Written(_)) => {
                return Err(refused("arithmetic of two constants").hint(COMPUTE_BEFORE));
            }
        };
        let is_number = |of: &Expression| kind_of(of.data_type) == Some(Kind::Number);
        if !is_number(&left) || !is_number(&right) {
            return Err(no_operator(left.data_type, &sign, right.data_type));
        }
        let operator = match operator {
            BinaryOperator::Plus => Operator::Add,
            BinaryOperator::Minus => Operator::Subtract,
            _ => Operator::Multiply,
        };
        let data_type = result(operator, left.data_type, right.data_type)?;
        Ok(Expression { term: Term::Arithmetic(operator, Box::new(left), Box::new(right)), data_type })
    }

    /// `||`, and all that stand in one chain with it.
    pub(crate) fn concatenation(&self, whole: &Expr) -> Result<Expression, SqlError> {
        let mut written = Vec::new();
        chain(whole, &BinaryOperator::StringConcat, &mut written);
        let (mut parts, mut is_constant) = (Vec::new(), true);
        for part in written {
            let part = match self.operand(part, None)? {
                Operand::Written(written) if written.data_type == DataType::Unknown => {
                    meeting(written, "||", DataType::Text(None))?
                }
                Operand::Written(Written { value, data_type }) => Expression::constant(value, data_type),
                Operand::Bound(bound) => {
                    is_constant = false;
                    bound
                }
            };
            if kind_of(part.data_type) != Some(Kind::Text) {
                return Err(refused(format_args!("|| with a value of type {}", part.data_type))
                    .hint(format!("It joins texts alone. {COMPUTE_BEFORE}")));
            }
            match part.term {
                Term::Concatenated(inner) => parts.extend(inner),
                _ => parts.push(part),
            }
        }
        if is_constant {
            return Err(refused("|| of two constants").hint("Write them as one text."));
        }
        // What is too long for a text here a database outside would take. As short as in the oldest version: what a script may be
        // follows from its words alone.
        let bytes = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(bytes_max(part)?));
        if bytes.is_none_or(|bytes| bytes > limits::TEXT_BYTES_BEFORE) {
            let what = format!(
                "|| of texts that may have more than {} bytes (TEXT_BYTES_MAX) together",
                limits::TEXT_BYTES_BEFORE
            );
            return Err(
                refused(what).hint("Use columns of type varchar(n): each character counts as four bytes.")
            );
        }
        Ok(Expression { term: Term::Concatenated(parts), data_type: DataType::Text(None) })
    }
}

/// The most bytes that a text can have; nothing where that is not known.
fn bytes_max(text: &Expression) -> Option<usize> {
    match (&text.term, text.data_type) {
        (Term::Constant(Value::Text(text)), _) => Some(text.len()),
        (Term::Constant(Value::Null), _) => Some(0),
        (_, DataType::Text(Some(characters))) => Some(characters as usize * 4),
        _ => None,
    }
}

/// Everything in a chain of one operator, through parentheses.
pub(crate) fn chain<'e>(expr: &'e Expr, operator: &BinaryOperator, found: &mut Vec<&'e Expr>) {
    match expr {
        Expr::BinaryOp { left, op, right } if op == operator => {
            chain(left, operator, found);
            chain(right, operator, found);
        }
        Expr::Nested(inner) if matches!(&**inner, Expr::BinaryOp { op, .. } if op == operator) => {
            chain(inner, operator, found);
        }
        other => found.push(other),
    }
}

/// A constant beside a number. It keeps its own type where it has one, so that the result has the type that PostgreSQL gives it.
fn beside(written: Written, sign: &str, other: DataType) -> Result<Expression, SqlError> {
    let both_integers = integer_rank(written.data_type).is_some() && integer_rank(other).is_some();
    match both_integers {
        true => Ok(Expression::constant(written.value, written.data_type)),
        false => meeting(written, sign, other),
    }
}

/// Both sides, the constant as wide an integer as the other.
fn widened(other: Expression, constant: Expression) -> (Expression, Expression) {
    let (Some(rank), Some(width)) = (integer_rank(constant.data_type), integer_rank(other.data_type)) else {
        return (other, constant);
    };
    let Term::Constant(value) = &constant.term else { return (other, constant) };
    if rank >= width {
        return (other, constant);
    }
    let written = Written { value: value.clone(), data_type: constant.data_type };
    match meeting(written, "+", other.data_type) {
        Ok(wide) => (other, wide),
        Err(_) => (other, constant),
    }
}

fn is_time(data_type: DataType) -> bool {
    matches!(data_type, DataType::Date | DataType::Timestamp | DataType::TimestampTz)
}

/// The type of what comes out.
fn result(operator: Operator, left: DataType, right: DataType) -> Result<DataType, SqlError> {
    if let (Some(left_rank), Some(right_rank)) = (integer_rank(left), integer_rank(right)) {
        return Ok(if left_rank < right_rank { right } else { left });
    }
    let (Some((left_precision, left_scale)), Some((right_precision, right_scale))) =
        (digits_of(left), digits_of(right))
    else {
        return Err(mismatch(left, "+", right));
    };
    let (precision, scale) = match operator {
        Operator::Add | Operator::Subtract => {
            let whole = (left_precision - left_scale).max(right_precision - right_scale);
            let scale = left_scale.max(right_scale);
            (whole + scale + 1, scale)
        }
        Operator::Multiply => (left_precision + right_precision, left_scale + right_scale),
    };
    if precision > PRECISION_MAX || scale > COMPUTED_SCALE_MAX {
        let what =
            format!("arithmetic whose result can have {precision} digits, {scale} of them after the point,");
        return Err(refused(what).hint(
            "MariaDB computes with 65 digits, and exactly with 30 after the point. Use columns and constants with fewer digits.",
        ));
    }
    Ok(numeric(precision, scale))
}
