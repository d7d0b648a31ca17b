//! FOREACH: a loop over the elements of an array, as one over the rows of `unnest`.

use super::ast::{
    Branch, Expression, Name, Raise, RaiseLevel, RaiseOption, RaiseSubject, RowSource, Statement,
    StatementKind, Target,
};
use super::compile::{Compiler, or_at};
use super::program::Instruction;
use crate::parse::{parse_expression, parse_query};
use sqlparser::ast as sql;
use std::ops::ControlFlow;
use types::{DataType, SqlError, SqlState};

/// Name of the variable that holds the array. No identifier can be this.
const ARRAY: &str = "\0array";

impl Compiler<'_> {
    /// `FOREACH targets IN ARRAY array LOOP … END LOOP`
    pub(super) fn element_loop(
        &mut self,
        label: Option<&Name>,
        targets: &[Target],
        array: &Expression,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let value = self.expression(array)?;
        if !matches!(value.data_type, DataType::Array(_)) {
            let found = match value.data_type {
                DataType::Unknown => DataType::Text(None),
                known => known.family(),
            };
            let message = format!("FOREACH expression must yield an array, not type {found}");
            return Err(or_at(SqlError::new(SqlState::DATATYPE_MISMATCH, message), array.position));
        }
        self.variables.push_block(None);
        let slot = self.variables.declare_plain(ARRAY, value.data_type)?;
        self.emit(Instruction::Assign { slot, value });
        let of = |expression: sql::Expr| Expression { expression, position: array.position };
        let refusal = Raise {
            level: RaiseLevel::Exception,
            subject: RaiseSubject::Format {
                text: "FOREACH expression must not be null".to_string(),
                arguments: Vec::new(),
            },
            options: vec![(RaiseOption::ErrorCode, of(parse_expression("'22004'")?))],
        };
        let statement = |kind: StatementKind| Statement { position: array.position, kind };
        let refuse_null = StatementKind::If {
            branches: vec![Branch {
                condition: of(sql::Expr::IsNull(Box::new(variable()))),
                statements: vec![statement(StatementKind::Raise(refusal))],
            }],
            otherwise: Vec::new(),
        };
        self.statements(&[statement(refuse_null)])?;
        let mut query = parse_query("SELECT * FROM unnest(x)")?;
        let _ = sql::visit_expressions_mut(&mut query, |expression| {
            *expression = variable();
            ControlFlow::<()>::Continue(())
        });
        let rows = RowSource::Static(Box::new(sql::Statement::Query(Box::new(query))));
        self.row_loop(label, targets, &rows, body)?;
        self.variables.pop_block();
        Ok(())
    }
}

fn variable() -> sql::Expr {
    sql::Expr::Identifier(sql::Ident::with_quote('"', ARRAY))
}
