//! Compiling a trigger function for the table that its trigger is on.
//!
//! `NEW` and `OLD` are records with the columns of the table; where there is no such row, all their fields are NULL, and so
//! is the record where it is returned. What else is known of the trigger comes in variables that the caller fills.

use crate::CompileOptions;
use crate::compile::compiler::Compiler;
use crate::compile::result_shape::ResultShape;
use crate::late_records::LateRecords;
use crate::program::{CompiledProcedure, Instruction};
use plan::expression;
use plan::table::TablePlan;
use plan::tables::Tables;
use plan::trigger::{NEW_TABLE, OLD_TABLE};
use sqlparser::ast as sql;
use syntax::plpgsql::ast::{Expression, Name, Statement, StatementKind, Target};
use types::{DataType, ExecutionVersion, Procedure, SqlError, SqlState, Trigger, Value};

/// Compiles the function of a trigger. The inputs are, in this order: for `NEW` and then `OLD` whether there is such a row,
/// and its fields; `TG_NAME`, `TG_WHEN`, `TG_LEVEL`, `TG_OP`, `TG_RELID`, `TG_RELNAME`, `TG_TABLE_NAME`, `TG_TABLE_SCHEMA`,
/// `TG_NARGS`, `TG_ARGV`.
///
/// # Errors
/// What is wrong in the body, with its position in the body.
pub fn compile_trigger(
    tables: &Tables,
    procedure: &Procedure,
    table: &TablePlan,
    trigger: &Trigger,
    options: CompileOptions,
) -> Result<CompiledProcedure, SqlError> {
    LateRecords::find(|late| compile_with(tables, procedure, table, trigger, (options, late)))
}

fn compile_with(
    tables: &Tables,
    procedure: &Procedure,
    table: &TablePlan,
    trigger: &Trigger,
    (options, late): (CompileOptions, LateRecords),
) -> Result<CompiledProcedure, SqlError> {
    let tables = &tables.with_search_path(&procedure.search_path);
    let columns: Vec<(String, DataType)> =
        table.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let result = ResultShape::of_trigger(columns.iter().map(|(_, data_type)| *data_type).collect());
    let mut compiler = Compiler::new(tables, procedure, result, late)?;
    let mut inputs = Vec::with_capacity(2 * (columns.len() + 1) + 10);
    for record in ["new", "old"] {
        inputs.extend(compiler.variables.declare_given_row(record, &columns)?);
    }
    let text = DataType::Text(None);
    let variables = [
        ("tg_name", text),
        ("tg_when", text),
        ("tg_level", text),
        ("tg_op", text),
        ("tg_relid", DataType::Integer),
        ("tg_relname", text),
        ("tg_table_name", text),
        ("tg_table_schema", text),
        ("tg_nargs", DataType::Integer),
        ("tg_argv", text.array().unwrap_or(text)),
    ];
    for (name, data_type) in variables {
        inputs.push(compiler.variables.declare_plain(name, data_type)?);
    }
    if let Some(arguments) = inputs.last() {
        compiler.variables.count_from_zero(*arguments);
    }
    for (number, name) in [(OLD_TABLE, &trigger.old_table), (NEW_TABLE, &trigger.new_table)] {
        if let Some(name) = name {
            compiler.variables.add_transition_table(name, number, &columns);
        }
    }
    compiler.body(&procedure.body)?;
    let message = "control reached end of trigger procedure without RETURN";
    compiler.emit(Instruction::Fail(Box::new(SqlError::new(SqlState::NO_RETURN, message))));
    compiler.finish(procedure, inputs, options)
}

/// Checks a trigger function as far as it can be without a table.
///
/// # Errors
/// What is wrong with its syntax; RETURN without a row, and RETURN NEXT and QUERY.
pub fn check_trigger_function(procedure: &Procedure, version: ExecutionVersion) -> Result<(), SqlError> {
    check_statements(&syntax::plpgsql::parse(&procedure.body, version)?.block.statements)
}

fn check_statements(statements: &[Statement]) -> Result<(), SqlError> {
    for Statement { position, kind } in statements {
        let set = |what: &str| {
            let message = format!("cannot use RETURN {what} in a non-SETOF function");
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(*position))
        };
        match kind {
            StatementKind::Return(None) => {
                let message = "missing expression at or near \";\"";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(*position));
            }
            StatementKind::ReturnNext(_) => return set("NEXT"),
            StatementKind::ReturnQuery(_) => return set("QUERY"),
            StatementKind::Block(block) => {
                check_statements(&block.statements)?;
                block.handlers.iter().try_for_each(|handler| check_statements(&handler.statements))?;
            }
            StatementKind::If { branches, otherwise } => {
                branches.iter().try_for_each(|branch| check_statements(&branch.statements))?;
                check_statements(otherwise)?;
            }
            StatementKind::Case { branches, otherwise, .. } => {
                branches.iter().try_for_each(|branch| check_statements(&branch.statements))?;
                check_statements(otherwise.as_deref().unwrap_or_default())?;
            }
            StatementKind::Loop { body, .. }
            | StatementKind::While { body, .. }
            | StatementKind::ForRange { body, .. }
            | StatementKind::ForRows { body, .. }
            | StatementKind::ForCursor { body, .. }
            | StatementKind::ForElements { body, .. } => check_statements(body)?,
            _ => {}
        }
    }
    Ok(())
}

impl Compiler<'_> {
    /// RETURN of a trigger function: a row, or NULL.
    pub(crate) fn returns_triggered_row(&mut self, value: &Expression) -> Result<(), SqlError> {
        let is_null =
            |value: &sql::Expr| matches!(value, sql::Expr::Value(value) if value.value == sql::Value::Null);
        let parts = match &value.expression {
            sql::Expr::Nested(inner) => {
                let inner = Expression { expression: inner.as_ref().clone(), position: value.position };
                return self.returns_triggered_row(&inner);
            }
            null if is_null(null) => return self.returns_no_row(),
            sql::Expr::Identifier(name) => {
                let target = Target {
                    parts: vec![Name { text: syntax::names::name_of(name)?, position: value.position }],
                };
                if self.variables.is_record(&target) {
                    return self.returns_record(&target);
                }
                None
            }
            sql::Expr::Tuple(parts) => Some(parts.clone()),
            sql::Expr::Function(function) => row_constructor(function),
            _ => None,
        };
        let Some(parts) = parts else {
            // It is a value, whatever it is.
            self.expression(value)?;
            let message = "cannot return non-composite value from function returning composite type";
            self.emit(Instruction::Fail(Box::new(SqlError::new(SqlState::DATATYPE_MISMATCH, message))));
            return Ok(());
        };
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let part = Expression { expression: part, position: value.position };
            let bound = self.expression(&part)?;
            let known = match bound.data_type {
                DataType::Unknown => DataType::Text(None),
                known => known,
            };
            values.push(crate::coercion::coerce(bound, known, "a column of the result")?);
        }
        self.returns_values(values)
    }

    /// RETURN of a record: its row, or NULL where it has none.
    fn returns_record(&mut self, target: &Target) -> Result<(), SqlError> {
        let (flag, fields) = self.variables.record_values(target)?;
        let has_row = expression::Expression::slot(usize::from(flag), DataType::Boolean);
        let skip = self.jump_unless(has_row);
        self.returns_values(fields)?;
        self.land(skip);
        self.returns_no_row()
    }

    /// A field has been assigned: where records are returned, the record has a row from now on.
    pub(crate) fn record_has_row(&mut self, target: &Target) {
        if let Some(slot) = self.variables.flag_of(target).filter(|_| self.result.is_triggered_row()) {
            let value = expression::Expression::constant(Value::Boolean(true), DataType::Boolean);
            self.emit(Instruction::Assign { slot, value });
        }
    }

    fn returns_no_row(&mut self) -> Result<(), SqlError> {
        self.emit(Instruction::ReturnValue { values: Box::default() });
        Ok(())
    }

    /// What PostgreSQL finds wrong with the row when it gets it.
    fn returns_values(&mut self, values: Vec<expression::Expression>) -> Result<(), SqlError> {
        let types: Vec<DataType> = values.iter().map(|value| value.data_type).collect();
        let instruction = match self.result.refuses_row(&types) {
            Some(error) => Instruction::Fail(Box::new(error)),
            None => Instruction::ReturnValue { values: values.into() },
        };
        self.emit(instruction);
        Ok(())
    }
}

/// The values of `ROW(a, b)`.
fn row_constructor(function: &sql::Function) -> Option<Vec<sql::Expr>> {
    if !function.name.to_string().eq_ignore_ascii_case("row") {
        return None;
    }
    let sql::FunctionArguments::List(list) = &function.args else { return None };
    let value = |argument: &sql::FunctionArg| match argument {
        sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}
