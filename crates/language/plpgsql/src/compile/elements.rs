//! FOREACH: a loop over the elements of an array, as one over the rows of `unnest`; with SLICE over its parts of so many dimensions. Before
//! execution version 16 arrays have one dimension, and such a loop has one turn for the array itself.

use crate::compile::compiler::Compiler;
use crate::position::or_at;
use crate::program::Instruction;
use plan::statement::SLICES;
use sqlparser::ast as sql;
use std::ops::ControlFlow;
use syntax::parse::{parse_expression, parse_query};
use syntax::plpgsql::ast::{
    Branch, Expression, Name, Raise, RaiseLevel, RaiseOption, RaiseSubject, RowSource, Statement,
    StatementKind, Target,
};
use types::{DataType, ExecutionVersion, SqlError, SqlState};

/// Name of the variable that holds the array. No identifier can be this.
const ARRAY: &str = "\0array";

impl Compiler<'_> {
    /// `FOREACH targets [SLICE slice] IN ARRAY array LOOP … END LOOP`
    pub(crate) fn element_loop(
        &mut self,
        label: Option<&Name>,
        targets: &[Target],
        slice: u32,
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
        let statement = |kind: StatementKind| Statement { position: array.position, kind };
        let refuse_if = |condition: sql::Expr, state: &str, text: String, arguments: Vec<Expression>| {
            let refusal = Raise {
                level: RaiseLevel::Exception,
                subject: RaiseSubject::Format { text, arguments },
                options: vec![(
                    RaiseOption::ErrorCode,
                    of(parse_expression(state, ExecutionVersion::NEWEST)?),
                )],
            };
            Ok::<Statement, SqlError>(statement(StatementKind::If {
                branches: vec![Branch {
                    condition: of(condition),
                    statements: vec![statement(StatementKind::Raise(refusal))],
                }],
                otherwise: Vec::new(),
            }))
        };
        let is_null = sql::Expr::IsNull(Box::new(variable()));
        let mut checks = vec![refuse_if(
            is_null,
            "'22004'",
            "FOREACH expression must not be null".to_string(),
            Vec::new(),
        )?];
        let is_older = self.tables.version() < ExecutionVersion::V16;
        if slice > 0 && is_older {
            // An empty array has no dimension.
            let (condition, dimensions) = match slice {
                1 => (with_variable("cardinality(x) = 0")?, 0),
                _ => (parse_expression("TRUE", ExecutionVersion::NEWEST)?, 1),
            };
            let text = format!("slice dimension ({slice}) is out of the valid range 0..{dimensions}");
            checks.push(refuse_if(condition, "'2202E'", text, Vec::new())?);
        } else if slice > 0 {
            let condition = with_variable(&format!("coalesce(array_ndims(x), 0) < {slice}"))?;
            let text = format!("slice dimension ({slice}) is out of the valid range 0..%");
            let dimensions = of(with_variable("coalesce(array_ndims(x), 0)")?);
            checks.push(refuse_if(condition, "'2202E'", text, vec![dimensions])?);
        }
        self.statements(&checks)?;
        if let [target] = targets
            && let Ok(found) = self.variables.scalar(target)
            && found.data_type.element().is_some() != (slice > 0)
        {
            // PostgreSQL finds out when it runs.
            let message = match slice {
                0 => "FOREACH loop variable must not be of an array type",
                _ => "FOREACH ... SLICE loop variable must be of an array type",
            };
            self.emit(Instruction::Fail(Box::new(SqlError::new(SqlState::DATATYPE_MISMATCH, message))));
            self.variables.pop_block();
            return Ok(());
        }
        let rows = RowSource::Static(Box::new(rows_of(slice, is_older)?));
        self.row_loop(label, targets, &rows, body)?;
        self.variables.pop_block();
        Ok(())
    }
}

/// The query for the rows that the loop goes over.
fn rows_of(slice: u32, is_older: bool) -> Result<sql::Statement, SqlError> {
    let text = match slice {
        0 => "SELECT * FROM unnest(x)".to_string(),
        _ if is_older => "SELECT x".to_string(),
        slice => format!("SELECT * FROM slices(x, {slice})"),
    };
    let mut query = parse_query(&text, ExecutionVersion::NEWEST)?;
    let _ = sql::visit_relations_mut(&mut query, |name| {
        *name = sql::ObjectName::from(vec![sql::Ident::new(SLICES)]);
        ControlFlow::<()>::Continue(())
    });
    let _ = sql::visit_expressions_mut(&mut query, put_variable);
    Ok(sql::Statement::Query(Box::new(query)))
}

/// An expression in which `x` is the array.
fn with_variable(text: &str) -> Result<sql::Expr, SqlError> {
    let mut expression = parse_expression(text, ExecutionVersion::NEWEST)?;
    let _ = sql::visit_expressions_mut(&mut expression, put_variable);
    Ok(expression)
}

fn put_variable(expression: &mut sql::Expr) -> ControlFlow<()> {
    if matches!(expression, sql::Expr::Identifier(_)) {
        *expression = variable();
    }
    ControlFlow::Continue(())
}

fn variable() -> sql::Expr {
    sql::Expr::Identifier(sql::Ident::with_quote('"', ARRAY))
}
