//! Binding of queries inside of expressions.

use crate::expression::bind::{boolean, unsupported_expression};
use crate::expression::bind_composite::constructor_parts;
use crate::expression::bind_operator::no_operator;
use crate::expression::{Binder, Comparison, Expression, Kind, Subquery, SubqueryForm};
use crate::statement::bind_nested;
use sqlparser::ast::{self, BinaryOperator, Expr, Spanned};
use std::sync::Arc;
use types::{DataType, ElementType, SqlError, SqlState, common_type};

impl Binder<'_> {
    /// A scalar subquery, EXISTS, IN, ANY or ALL.
    pub(super) fn bind_subquery_expression(&self, expr: &Expr) -> Result<Expression, SqlError> {
        match expr {
            Expr::Subquery(query) => self.scalar_subquery(query),
            Expr::Exists { subquery, negated } => {
                let exists = self.subquery(subquery, Vec::new(), SubqueryForm::Exists)?;
                Ok(negate_if(*negated, exists))
            }
            Expr::InSubquery { expr, subquery, negated } => {
                let is_in = self.compared(expr, Comparison::Equal, false, subquery)?;
                Ok(negate_if(*negated, is_in))
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.quantified(expr, left, compare_op, right, false)
            }
            Expr::AllOp { left, compare_op, right } => self.quantified(expr, left, compare_op, right, true),
            other => Err(unsupported_expression(other)),
        }
    }

    fn quantified(
        &self,
        whole: &Expr,
        left: &Expr,
        operator: &BinaryOperator,
        right: &Expr,
        all: bool,
    ) -> Result<Expression, SqlError> {
        let Expr::Subquery(query) = right else {
            return Err(self.at(unsupported_expression(whole), whole.span()));
        };
        let Some(comparison) = Comparison::of(operator) else {
            let error = SqlError::unsupported(format_args!("{operator} with ANY or ALL"));
            return Err(self.at(error, left.span()));
        };
        self.compared(left, comparison, all, query)
    }

    fn scalar_subquery(&self, query: &ast::Query) -> Result<Expression, SqlError> {
        let mut bound = self.subquery(query, Vec::new(), SubqueryForm::Scalar)?;
        let Kind::Subquery(subquery) = &bound.kind else { return Ok(bound) };
        let [column] = subquery.query.columns.as_ref() else {
            let message = "subquery must return only one column";
            return Err(self.at(SqlError::new(SqlState::SYNTAX_ERROR, message), query.span()));
        };
        bound.data_type = column.data_type;
        Ok(bound)
    }

    /// `ARRAY(query)`: the values of its only column.
    pub(super) fn array_subquery(&self, query: &ast::Query) -> Result<Expression, SqlError> {
        let mut bound = self.subquery(query, Vec::new(), SubqueryForm::Exists)?;
        let Kind::Subquery(subquery) = &mut bound.kind else { return Ok(bound) };
        let [column] = subquery.query.columns.as_ref() else {
            let message = "subquery must return only one column";
            return Err(self.at(SqlError::new(SqlState::SYNTAX_ERROR, message), query.span()));
        };
        let Some(element) = ElementType::new(column.data_type) else {
            return Err(SqlError::unsupported("an array of more than one dimension").hint("Use a table."));
        };
        subquery.form = SubqueryForm::Array(element);
        bound.data_type = DataType::Array(element);
        Ok(bound)
    }

    /// The operand compared with the columns of the query, both in the types in which they compare.
    fn compared(
        &self,
        operand: &Expr,
        comparison: Comparison,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expression, SqlError> {
        let operands = match operand {
            Expr::Tuple(parts) => parts.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>()?,
            one => match constructor_parts(one) {
                Some(parts) => parts.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>()?,
                None => vec![self.bind(one)?],
            },
        };
        let form = if all { SubqueryForm::All(comparison) } else { SubqueryForm::Any(comparison) };
        let mut bound = self.subquery(query, operands, form)?;
        let Kind::Subquery(subquery) = &mut bound.kind else { return Ok(bound) };
        let columns = subquery.query.columns.clone();
        if columns.len() != subquery.operands.len() {
            let few = if columns.len() < subquery.operands.len() { "few" } else { "many" };
            let message = format!("subquery has too {few} columns");
            return Err(self.at(SqlError::new(SqlState::SYNTAX_ERROR, message), query.span()));
        }
        for (operand, column) in subquery.operands.iter_mut().zip(columns.iter()) {
            let Some(common) = common_type([operand.data_type, column.data_type]) else {
                let form = format!("{} {} {}", operand.data_type, comparison.symbol(), column.data_type);
                return Err(self.at(no_operator(&form), query.span()));
            };
            let same_family = common.family() == column.data_type.family();
            let numbers = operand.data_type.family() != column.data_type.family();
            // Values of exact numbers compare across their types; a double must meet a double.
            if common == DataType::Double && !same_family {
                let error =
                    SqlError::unsupported("a double precision value compared with a query of exact numbers");
                return Err(error.hint("Cast the column of the query to double precision."));
            }
            if operand.data_type == DataType::Unknown || (numbers && common == DataType::Double) {
                let taken = std::mem::replace(operand, Expression::constant(types::Value::Null, common));
                *operand = self.cast_to(taken, common)?;
            }
        }
        Ok(bound)
    }

    fn subquery(
        &self,
        query: &ast::Query,
        operands: Vec<Expression>,
        form: SubqueryForm,
    ) -> Result<Expression, SqlError> {
        let Some((scope, _)) = self.query else {
            return Err(SqlError::unsupported("a subquery here"));
        };
        // An aggregate inside belongs to the query inside.
        let clause = self.no_aggregates_in.get();
        let nested = bind_nested(scope, query, Some(self));
        self.no_aggregates_in.set(clause);
        let (select, arguments) = nested?;
        let subquery = Subquery { query: Arc::new(select), arguments, operands, form };
        Ok(boolean(Kind::Subquery(Box::new(subquery))))
    }
}

fn negate_if(negated: bool, condition: Expression) -> Expression {
    match negated {
        true => boolean(Kind::Not(Box::new(condition))),
        false => condition,
    }
}
