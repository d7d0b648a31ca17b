//! Binding of queries inside of expressions.

use crate::expression::bind_composite::constructor_parts;
use crate::expression::build::boolean;
use crate::expression::refusals::{no_operator, unsupported_expression};
use crate::expression::written::comparison_of;
use crate::expression::{Binder, Expression, Kind, Subquery, SubqueryForm};
use crate::statement::bind_nested;
use sqlparser::ast::{self, BinaryOperator, Expr, Spanned};
use std::sync::Arc;
use types::{DataType, ElementType, ExecutionVersion, SqlError, SqlState, common_type};
use values::Comparison;

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
        let Some(comparison) = comparison_of(operator) else {
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
        if let DataType::Array(element) = column.data_type
            && self.scope.version() >= ExecutionVersion::V16
        {
            subquery.form = SubqueryForm::Array(element);
            bound.data_type = DataType::Array(element);
            return Ok(bound);
        }
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
        let operands = match parts_of(operand) {
            Some(parts) => parts.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>()?,
            None => vec![self.bind(operand)?],
        };
        let form = if all { SubqueryForm::All(comparison) } else { SubqueryForm::Any(comparison) };
        let bound = self.subquery(query, operands, form)?;
        if self.scope.version() < ExecutionVersion::V2 {
            return self.comparable_columns_of_version_1(bound, comparison, query);
        }
        self.comparable_columns(bound, comparison, query)
    }

    /// `(a, b) op (query)`, where the query has a column for each value; `None` where it has one.
    pub(super) fn row_and_query(
        &self,
        left: &Expr,
        comparison: Comparison,
        right: &Expr,
    ) -> Result<Option<Expression>, SqlError> {
        let (Some(parts), Expr::Subquery(query)) = (parts_of(left), right) else { return Ok(None) };
        let operands = parts.iter().map(|part| self.bind(part)).collect::<Result<Vec<_>, _>>()?;
        let bound = self.subquery(query, operands, SubqueryForm::Row(comparison))?;
        match &bound.kind {
            Kind::Subquery(subquery) if subquery.query.columns.len() == 1 => Ok(None),
            _ => self.comparable_columns(bound, comparison, query).map(Some),
        }
    }

    /// Operands and columns in the types in which they compare.
    fn comparable_columns(
        &self,
        mut bound: Expression,
        comparison: Comparison,
        query: &ast::Query,
    ) -> Result<Expression, SqlError> {
        let Kind::Subquery(subquery) = &mut bound.kind else { return Ok(bound) };
        let columns = subquery.query.columns.clone();
        self.check_count(columns.len(), subquery.operands.len(), query)?;
        for (operand, column) in subquery.operands.iter_mut().zip(columns.iter()) {
            let Some(common) = self.comparison_type(operand.data_type, column.data_type) else {
                let form = format!(
                    "{} {} {}",
                    operand.data_type.family(),
                    comparison.symbol(),
                    column.data_type.family()
                );
                return Err(self.at(no_operator(&form), query.span()));
            };
            self.check_compared_elements(common)?;
            self.check_compared_row(operand, comparison)?;
            // Rows compare field by field, integers of all widths as they are.
            let integers = column.data_type.is_integer() && common.is_integer();
            let as_it_is = integers || common.is_composite() || column.data_type.family() == common.family();
            subquery.compared_as.push((!as_it_is).then(|| common.family()));
            if !common.is_composite() {
                let taken = std::mem::replace(operand, Expression::constant(types::Value::Null, common));
                *operand = self.number_operand(taken, common)?;
            }
        }
        Ok(bound)
    }

    /// The same in execution version 1, where the values of a query compare as they come: an integer and a numeric are never
    /// equal.
    fn comparable_columns_of_version_1(
        &self,
        mut bound: Expression,
        comparison: Comparison,
        query: &ast::Query,
    ) -> Result<Expression, SqlError> {
        let Kind::Subquery(subquery) = &mut bound.kind else { return Ok(bound) };
        let columns = subquery.query.columns.clone();
        self.check_count(columns.len(), subquery.operands.len(), query)?;
        for (operand, column) in subquery.operands.iter_mut().zip(columns.iter()) {
            let Some(common) = common_type([operand.data_type, column.data_type]) else {
                let form = format!("{} {} {}", operand.data_type, comparison.symbol(), column.data_type);
                return Err(self.at(no_operator(&form), query.span()));
            };
            let same_family = common.family() == column.data_type.family();
            let numbers = operand.data_type.family() != column.data_type.family();
            if common == DataType::Double && !same_family {
                let error =
                    SqlError::unsupported("a double precision value compared with a query of exact numbers");
                return Err(error.hint("Cast the column of the query to double precision."));
            }
            subquery.compared_as.push(None);
            if operand.data_type == DataType::Unknown || (numbers && common == DataType::Double) {
                let taken = std::mem::replace(operand, Expression::constant(types::Value::Null, common));
                *operand = self.cast_to(taken, common)?;
            }
        }
        Ok(bound)
    }

    /// A query must have a column for each value that it is compared with.
    fn check_count(&self, columns: usize, operands: usize, query: &ast::Query) -> Result<(), SqlError> {
        if columns == operands {
            return Ok(());
        }
        let few = if columns < operands { "few" } else { "many" };
        let message = format!("subquery has too {few} columns");
        Err(self.at(SqlError::new(SqlState::SYNTAX_ERROR, message), query.span()))
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
        let (bound, arguments) = nested?;
        let logical = Arc::new(bound.plan.clone());
        let query = Arc::new(bound.operators());
        let subquery = Subquery { query, logical, arguments, operands, compared_as: Vec::new(), form };
        Ok(boolean(Kind::Subquery(Box::new(subquery))))
    }
}

/// The values of a row that is written out.
fn parts_of(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(parts) => Some(parts.clone()),
        one => constructor_parts(one),
    }
}

fn negate_if(negated: bool, condition: Expression) -> Expression {
    match negated {
        true => boolean(Kind::Not(Box::new(condition))),
        false => condition,
    }
}
