//! Compiling IF and CASE.

use crate::compile::compiler::Compiler;
use crate::program::{Address, Instruction};
use crate::shape::Branches;
use plan::expression;
use sqlparser::ast as sql;
use syntax::plpgsql::ast::{Branch, CaseBranch, Expression, RaiseLevel, Statement, StatementKind};
use types::{DataType, SqlError};

impl Compiler<'_> {
    /// A jump that is taken unless the condition is true, to a place that [`Compiler::land`] tells.
    pub(crate) fn jump_unless(&mut self, condition: expression::Expression) -> Address {
        self.emit(Instruction::JumpUnless { condition, to: 0 })
    }

    pub(crate) fn if_statement(
        &mut self,
        branches: &[Branch],
        otherwise: &[Statement],
    ) -> Result<(), SqlError> {
        let mut ends = Vec::new();
        let mut ways = Branches::new(&self.variables);
        for (index, branch) in branches.iter().enumerate() {
            let condition = self.condition(&branch.condition)?;
            let skip = self.jump_unless(condition);
            self.statements(&branch.statements)?;
            ways.end(&mut self.variables, goes_on(&branch.statements));
            if index + 1 < branches.len() || !otherwise.is_empty() {
                ends.push(self.emit(Instruction::Jump { to: 0 }));
            }
            self.land(skip);
        }
        self.statements(otherwise)?;
        ways.end(&mut self.variables, goes_on(otherwise));
        ways.meet(&mut self.variables);
        self.land_all(ends);
        Ok(())
    }

    pub(crate) fn case_statement(
        &mut self,
        operand: Option<&Expression>,
        branches: &[CaseBranch],
        otherwise: Option<&[Statement]>,
    ) -> Result<(), SqlError> {
        let mut ends = Vec::new();
        let operand = match operand {
            Some(operand) => Some(self.case_operand(operand)?),
            None => None,
        };
        let mut ways = Branches::new(&self.variables);
        for branch in branches {
            let Some(first) = branch.values.first() else { continue };
            let condition = match &operand {
                None => self.condition(first)?,
                Some(subject) => {
                    let list = branch.values.iter().map(|value| value.expression.clone()).collect();
                    let subject = Box::new(subject.clone());
                    let expression = sql::Expr::InList { expr: subject, list, negated: false };
                    self.condition(&Expression { expression, position: first.position })?
                }
            };
            let skip = self.jump_unless(condition);
            self.statements(&branch.statements)?;
            ways.end(&mut self.variables, goes_on(&branch.statements));
            ends.push(self.emit(Instruction::Jump { to: 0 }));
            self.land(skip);
        }
        match otherwise {
            Some(statements) => {
                self.statements(statements)?;
                ways.end(&mut self.variables, goes_on(statements));
            }
            None => {
                self.emit(Instruction::CaseNotFound);
            }
        }
        ways.meet(&mut self.variables);
        self.land_all(ends);
        if operand.is_some() {
            self.variables.pop_block();
        }
        Ok(())
    }

    /// Keeps the operand in a variable of a block of its own, and gives what names it.
    fn case_operand(&mut self, operand: &Expression) -> Result<sql::Expr, SqlError> {
        let is_field = matches!(operand.expression, sql::Expr::CompoundIdentifier(_));
        if is_field && !self.late_records(&operand.expression).is_empty() {
            // Its type is not known, and it stays what it is while the cases are looked at.
            self.variables.push_block(None);
            return Ok(operand.expression.clone());
        }
        let value = self.expression(operand)?;
        let data_type = match value.data_type {
            DataType::Unknown => DataType::Text(None),
            known => known,
        };
        let value = crate::coercion::coerce(value, data_type, "the operand of CASE")?;
        self.variables.push_block(None);
        let name = format!("__case_variable_{}__", self.here());
        let slot = self.variables.declare_plain(&name, data_type)?;
        self.emit(Instruction::Assign { slot, value });
        Ok(sql::Expr::Identifier(sql::Ident::with_quote('"', name)))
    }
}

/// Whether what stands behind these statements can be reached through them.
fn goes_on(statements: &[Statement]) -> bool {
    match statements.last().map(|last| &last.kind) {
        Some(
            StatementKind::Return(_)
            | StatementKind::Exit { condition: None, .. }
            | StatementKind::Continue { condition: None, .. },
        ) => false,
        Some(StatementKind::Raise(raise)) => raise.level != RaiseLevel::Exception,
        _ => true,
    }
}
