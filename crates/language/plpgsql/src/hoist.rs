//! What the expressions of PL/pgSQL need from outside of them: subqueries (`x := (SELECT …)`, `IF EXISTS (SELECT …)`) and
//! oracles (`x := entente.oracle('eur_usd')`).
//!
//! Nothing of the expression can stand inside, so it is run first, into a variable of its own. That is done where
//! PostgreSQL would certainly run it: not behind AND, OR or in CASE, where it may not be reached; there the binder refuses
//! it.

use crate::coercion::coerce;
use crate::compile::compiler::Compiler;
use crate::program::{Instruction, SubqueryPlan};
use plan::statement::{BoundSelect, BoundStatement};
use sqlparser::ast as sql;
use types::{DataType, SqlError, SqlState};

impl Compiler<'_> {
    /// Emits what an expression needs and puts the variables in its place.
    pub(super) fn hoist(&mut self, expression: &mut sql::Expr) -> Result<(), SqlError> {
        match expression {
            sql::Expr::Subquery(query) => {
                let query = self.bound_query(query)?;
                let [column] = query.columns.as_ref() else {
                    let message = "subquery must return only one column";
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                };
                let data_type = match column.data_type {
                    DataType::Unknown => DataType::Text(None),
                    known => known,
                };
                *expression = self.emit_subquery(query, data_type, None)?;
                Ok(())
            }
            sql::Expr::Exists { subquery, negated } => {
                let query = self.bound_query(subquery)?;
                *expression = self.emit_subquery(query, DataType::Boolean, Some(!*negated))?;
                Ok(())
            }
            sql::Expr::Nested(inner)
            | sql::Expr::UnaryOp { expr: inner, .. }
            | sql::Expr::IsNull(inner)
            | sql::Expr::IsNotNull(inner)
            | sql::Expr::IsTrue(inner)
            | sql::Expr::IsNotTrue(inner)
            | sql::Expr::IsFalse(inner)
            | sql::Expr::IsNotFalse(inner)
            | sql::Expr::Cast { expr: inner, .. } => self.hoist(inner),
            sql::Expr::BinaryOp { left, op, right } => {
                self.hoist(left)?;
                match op {
                    sql::BinaryOperator::And | sql::BinaryOperator::Or => Ok(()),
                    _ => self.hoist(right),
                }
            }
            sql::Expr::Function(function) => {
                self.hoist_arguments(function)?;
                if is_oracle(function) {
                    *expression = self.emit_oracle(function)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Of COALESCE only the first argument is certainly evaluated.
    fn hoist_arguments(&mut self, function: &mut sql::Function) -> Result<(), SqlError> {
        let first_only = function.name.to_string().eq_ignore_ascii_case("coalesce");
        let sql::FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        let count = if first_only { 1 } else { list.args.len() };
        for argument in list.args.iter_mut().take(count) {
            if let sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(argument)) = argument {
                self.hoist(argument)?;
            }
        }
        Ok(())
    }

    fn emit_oracle(&mut self, function: &sql::Function) -> Result<sql::Expr, SqlError> {
        let asked = match &function.args {
            sql::FunctionArguments::List(list) => match list.args.as_slice() {
                [sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(asked))] => Some(asked),
                _ => None,
            },
            _ => None,
        };
        let asked = asked.ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_FUNCTION, "entente.oracle() takes one text, the oracle's name")
        })?;
        let name = coerce(self.bind(asked)?, DataType::Text(None), "the oracle's name")?;
        let variable = format!("__oracle_{}__", self.here());
        let slot = self.variables.declare_plain(&variable, DataType::Text(None))?;
        self.emit(Instruction::Oracle { slot, name });
        Ok(sql::Expr::Identifier(sql::Ident::with_quote('"', variable)))
    }

    fn bound_query(&mut self, query: &sql::Query) -> Result<BoundSelect, SqlError> {
        match self.statement_of_sql(&sql::Statement::Query(Box::new(query.clone())))? {
            BoundStatement::Select(select) => Ok(select),
            // What is hoisted is a part of an expression.
            _ => {
                let message = "WITH clause containing a data-modifying statement must be at the top level";
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    fn emit_subquery(
        &mut self,
        query: BoundSelect,
        data_type: DataType,
        exists: Option<bool>,
    ) -> Result<sql::Expr, SqlError> {
        let name = format!("__subquery_{}__", self.here());
        let slot = self.variables.declare_plain(&name, data_type)?;
        self.emit(Instruction::Subquery(Box::new(SubqueryPlan { query, slot, exists })));
        Ok(sql::Expr::Identifier(sql::Ident::with_quote('"', name)))
    }
}

/// True where an expression holds a subquery, or asks an oracle, anywhere.
pub(super) fn needs_hoisting(expression: &sql::Expr) -> bool {
    let flow = sql::visit_expressions(expression, |inner| match inner {
        sql::Expr::Subquery(_) | sql::Expr::Exists { .. } => std::ops::ControlFlow::Break(()),
        sql::Expr::Function(function) if is_oracle(function) => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    });
    flow.is_break()
}

fn is_oracle(function: &sql::Function) -> bool {
    function.name.to_string().eq_ignore_ascii_case("entente.oracle")
}
