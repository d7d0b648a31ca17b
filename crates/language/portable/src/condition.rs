//! Conditions: comparisons, tests, and what joins them.

use crate::arithmetic::chain;
use crate::bind::{Binder, Operand};
use crate::data_type::{Kind, kind_of};
use crate::expression::{Expression, Term};
use crate::fit::{meeting, mismatch};
use crate::refusal::{not_boolean, refused};
use crate::written::Written;
use sqlparser::ast::{BinaryOperator, Expr};
use types::{DataType, SqlError, Value};
use values::Comparison;

impl Binder<'_> {
    /// A condition of a clause.
    pub(crate) fn condition(&self, expr: &Expr, clause: &str) -> Result<Expression, SqlError> {
        let bound = match self.operand(expr, None)? {
            Operand::Bound(bound) => bound,
            Operand::Written(written) => {
                let error = match written.data_type {
                    DataType::Boolean | DataType::Unknown => refused("a constant as a condition")
                        .hint("Leave it out, or compare a column with it."),
                    other => not_boolean(clause, other),
                };
                return Err(self.constants.at(error, expr));
            }
        };
        match bound.data_type {
            DataType::Boolean => Ok(bound),
            other => Err(self.constants.at(not_boolean(clause, other), expr)),
        }
    }

    /// AND or OR, and all that stand in one chain with it.
    pub(crate) fn junction(&self, whole: &Expr, operator: &BinaryOperator) -> Result<Expression, SqlError> {
        let mut found = Vec::new();
        chain(whole, operator, &mut found);
        let is_and = *operator == BinaryOperator::And;
        let mut parts = Vec::with_capacity(found.len());
        for part in found {
            let part = self.condition(part, if is_and { "AND" } else { "OR" })?;
            match part.term {
                Term::And(inner) if is_and => parts.extend(inner),
                Term::Or(inner) if !is_and => parts.extend(inner),
                _ => parts.push(part),
            }
        }
        Ok(Expression::boolean(if is_and { Term::And(parts) } else { Term::Or(parts) }))
    }

    /// NOT
    pub(crate) fn negation(&self, expr: &Expr) -> Result<Expression, SqlError> {
        Ok(negated(self.condition(expr, "NOT")?))
    }

    /// IS NULL and IS NOT NULL
    pub(crate) fn null_test(&self, of: &Expr, negated: bool) -> Result<Expression, SqlError> {
        match self.operand(of, None)? {
            Operand::Bound(of) => Ok(Expression::boolean(Term::IsNull { of: Box::new(of), negated })),
            Operand::Written(_) => Err(refused("IS NULL of a constant").hint("Leave it out.")),
        }
    }

    /// `=` and its kind; anything else is refused.
    pub(crate) fn comparison(
        &self,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
    ) -> Result<Expression, SqlError> {
        let comparison = match operator {
            BinaryOperator::Eq => Comparison::Equal,
            BinaryOperator::NotEq => Comparison::NotEqual,
            BinaryOperator::Lt => Comparison::Less,
            BinaryOperator::LtEq => Comparison::LessOrEqual,
            BinaryOperator::Gt => Comparison::Greater,
            BinaryOperator::GtEq => Comparison::GreaterOrEqual,
            other => {
                return Err(refused(format_args!("the operator {other}"))
                    .hint("Use +, -, *, ||, =, <>, <, <=, >, >=, AND, OR and NOT."));
            }
        };
        compared(comparison, self.operand(left, None)?, self.operand(right, None)?)
    }

    /// BETWEEN: two comparisons.
    pub(crate) fn between(
        &self,
        expr: &Expr,
        low: &Expr,
        high: &Expr,
        is_negated: bool,
    ) -> Result<Expression, SqlError> {
        let value = || self.operand(expr, None);
        let low = compared(Comparison::GreaterOrEqual, value()?, self.operand(low, None)?)?;
        let high = compared(Comparison::LessOrEqual, value()?, self.operand(high, None)?)?;
        let both = Expression::boolean(Term::And(vec![low, high]));
        Ok(if is_negated { negated(both) } else { both })
    }

    /// IN with a list of constants.
    pub(crate) fn in_list(
        &self,
        expr: &Expr,
        list: &[Expr],
        is_negated: bool,
    ) -> Result<Expression, SqlError> {
        let Operand::Bound(value) = self.operand(expr, None)? else {
            return Err(refused("IN behind a constant").hint("Compare the columns with it: a = 1 OR b = 1."));
        };
        let mut constants = Vec::with_capacity(list.len());
        for element in list {
            let element = match self.operand(element, None)? {
                Operand::Written(Written { value: Value::Null, .. }) => {
                    refused("NULL in a list of IN").hint("Leave it out, and write IS NULL beside it.")
                }
                Operand::Written(written) => {
                    constants.push(meeting(written, "=", value.data_type)?);
                    continue;
                }
                Operand::Bound(_) => {
                    refused("anything but constants in a list of IN").hint("Write a = b OR a = c.")
                }
            };
            return Err(element);
        }
        if constants.is_empty() {
            return Err(refused("IN with an empty list").hint("Leave the condition out."));
        }
        let found = Expression::boolean(Term::In(Box::new(value), constants));
        Ok(if is_negated { negated(found) } else { found })
    }
}

fn negated(condition: Expression) -> Expression {
    Expression::boolean(Term::Not(Box::new(condition)))
}

/// A comparison of values of one kind, of which one at least is no constant.
fn compared(comparison: Comparison, left: Operand, right: Operand) -> Result<Expression, SqlError> {
    let sign = sign_of(comparison);
    let (left, right) = match (left, right) {
        (Operand::Bound(left), Operand::Bound(right)) => (left, right),
        (Operand::Bound(left), Operand::Written(right)) => {
            let right = meeting(right, sign, left.data_type)?;
            (left, right)
        }
        (Operand::Written(left), Operand::Bound(right)) => {
            let left = meeting(left, sign, right.data_type)?;
            (left, right)
        }
        (Operand::Written(_), Operand::Written(_)) => {
            return Err(refused("a comparison of two constants").hint("Leave it out."));
        }
    };
    let kind = kind_of(left.data_type);
    if kind != kind_of(right.data_type) {
        return Err(mismatch(left.data_type, sign, right.data_type));
    }
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if !is_equality && matches!(kind, Some(Kind::Boolean | Kind::Uuid | Kind::Bytea)) {
        let what = format!("the operator {sign} with values of type {}", left.data_type);
        return Err(refused(what).hint("Use = or <>."));
    }
    Ok(Expression::boolean(Term::Compared(comparison, Box::new(left), Box::new(right))))
}

fn sign_of(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}
