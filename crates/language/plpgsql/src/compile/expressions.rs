//! Compiling expressions, and what must happen before they are evaluated.

use crate::compile::compiler::Compiler;
use crate::hoist::needs_hoisting;
use crate::late::Wanted;
use crate::position::or_at;
use crate::program::Instruction;
use crate::variables::NamesUsed;
use plan::expression;
use plan::statement::bind_expression;
use sqlparser::ast as sql;
use syntax::plpgsql::ast::Expression;
use types::{DataType, SqlError};

impl Compiler<'_> {
    /// A bound expression, after the instructions that look at what it needs.
    pub(crate) fn expression(&mut self, expression: &Expression) -> Result<expression::Expression, SqlError> {
        let expanded = self.variables.expanded(&expression.expression);
        let tree = expanded.as_ref().unwrap_or(&expression.expression);
        self.prepare_names(tree)?;
        let with_variables = if needs_hoisting(tree) {
            let mut hoisted = tree.clone();
            self.hoist(&mut hoisted).map_err(|error| or_at(error, expression.position))?;
            Some(hoisted)
        } else {
            None
        };
        let tree = with_variables.as_ref().unwrap_or(tree);
        self.bind(tree).map_err(|error| or_at(error, expression.position))
    }

    /// An expression that needs nothing else.
    pub(crate) fn bind(&self, tree: &sql::Expr) -> Result<expression::Expression, SqlError> {
        bind_expression(self.tables, self.variables.scope(), tree)
    }

    /// A bound expression, of this type as an assignment makes it; `what` is assigned.
    pub(crate) fn expression_of(
        &mut self,
        expression: &Expression,
        data_type: DataType,
        what: &str,
    ) -> Result<expression::Expression, SqlError> {
        if matches!(data_type, DataType::Domain(_)) {
            let base = self.tables.routines().types().base_of(data_type);
            let value = self.expression_of(expression, base, what)?;
            return Ok(self.held_against(value, Some(data_type)));
        }
        if let Some(value) = self.late_value(expression, Wanted::Type(data_type), what)? {
            return Ok(value);
        }
        let bound = self.expression(expression)?;
        self.converted(bound, data_type, what).map_err(|error| or_at(error, expression.position))
    }

    /// A bound condition.
    pub(crate) fn condition(&mut self, condition: &Expression) -> Result<expression::Expression, SqlError> {
        self.expression_of(condition, DataType::Boolean, "a condition")
    }

    /// Emits what must happen before these names are read: a look at FOUND, a check that a record has a row.
    pub(crate) fn prepare_names<T: sql::Visit + sql::VisitMut + Clone>(
        &mut self,
        tree: &T,
    ) -> Result<(), SqlError> {
        self.refuse_late(tree)?;
        let used = self.variables.names_used(tree)?;
        self.prepare(&used);
        Ok(())
    }

    /// The same for names that are known already.
    pub(crate) fn prepare(&mut self, used: &NamesUsed) {
        if used.found {
            self.looks_at_matched = true;
            self.emit(Instruction::LookAtFound);
        }
        for (flag, record) in &used.unassigned_records {
            self.emit(Instruction::RequireRecord { flag: *flag, record: record.clone() });
        }
    }
}
