//! Compiling a body: names become slots, blocks and loops become jumps, expressions and statements are bound once.
//!
//! Statements of SQL, CALL and RAISE are compiled in [`crate::compile::statement`], names and types in
//! [`crate::variables`].

mod assignment;
mod block;
mod branch;
pub(crate) mod compiler;
mod cursor;
mod elements;
mod expressions;
mod failing;
pub(crate) mod late;
mod loops;
mod place;
pub(crate) mod result;
pub(crate) mod result_shape;
mod rows;
mod statement;
pub(crate) mod trigger;

use crate::compile::compiler::Compiler;
use crate::compile::result_shape::ResultShape;
use crate::fuse::flow::Surroundings;
use crate::fuse::obstacle::Obstacle;
use crate::fuse::{fuse, unfused};
use crate::late_records::LateRecords;
use crate::position::or_at;
use crate::program::{CompiledProcedure, Instruction};
use plan::expression;
use plan::tables::Tables;
use std::sync::Arc;
use syntax::plpgsql::ast::{DeclaredType, Statement, StatementKind};
use types::{DataType, ExecutionVersion, Language, Procedure, SqlError};

/// Compiles a procedure against the tables of a catalog. Procedures that it calls are looked up when it runs.
///
/// # Errors
/// What is wrong in the body, with its position in the body.
pub fn compile(
    tables: &Tables,
    procedure: &Procedure,
    options: CompileOptions,
) -> Result<CompiledProcedure, SqlError> {
    let tables = tables.with_search_path(&procedure.search_path);
    let named = |error| tables.routines().types().named_in(error);
    compile_body(&tables, procedure, options).map_err(named)
}

fn compile_body(
    tables: &Tables,
    procedure: &Procedure,
    options: CompileOptions,
) -> Result<CompiledProcedure, SqlError> {
    LateRecords::find(|late| compile_with(tables, procedure, options, late))
}

fn compile_with(
    tables: &Tables,
    procedure: &Procedure,
    options: CompileOptions,
    late: LateRecords,
) -> Result<CompiledProcedure, SqlError> {
    let mut compiler = Compiler::new(tables, procedure, ResultShape::of(tables, procedure)?, late)?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for parameter in &procedure.parameters {
        // Parameters have no length, precision or scale, as in PostgreSQL.
        let slot = compiler.variables.declare_parameter(&parameter.name, parameter.data_type.family())?;
        if parameter.mode.is_input() {
            compiler.hold_parameter(slot)?;
            inputs.push(slot);
        }
        if parameter.mode.is_output() {
            outputs.push(slot);
        }
    }
    compiler.outputs.clone_from(&outputs);
    match procedure.language {
        Language::PlPgSql => {
            compiler.body(&procedure.body)?;
            compiler.end();
        }
        Language::Sql => compiler.sql_body(&procedure.body)?,
    }
    compiler.finish(procedure, inputs, options)
}

impl<'a> Compiler<'a> {
    /// The whole program.
    pub(super) fn finish(
        self,
        procedure: &Procedure,
        inputs: Vec<u16>,
        options: CompileOptions,
    ) -> Result<CompiledProcedure, SqlError> {
        let described = self.described(procedure);
        let (slots, found) = (self.variables.slots()?, self.variables.found);
        let surroundings = Surroundings {
            slots,
            found,
            outputs: &self.outputs,
            types: self.tables.routines().types(),
            protected: &self.protected_code,
        };
        let (code, obstacles) = match options.fusion {
            true => fuse(self.code, &surroundings),
            false => unfused(self.code, &Obstacle::SwitchedOff),
        };
        Ok(CompiledProcedure {
            slots,
            found,
            types: self.tables.routines().types().clone(),
            code: code.into(),
            names: self.variables.names(),
            records: self.variables.named_records(),
            described: Arc::new(described),
            result: self.result.form(),
            needs: self.variables.scope().needs(),
            obstacles: obstacles.into(),
            inputs: inputs.into(),
            outputs: self.outputs.into(),
            ranges: self.ranges.most,
            cursors: self.cursors.most,
            cursor_loops: self.cursor_loops.most,
            print_strict_params: self.print_strict_params,
            looks_at_matched: self.looks_at_matched,
            missing: self.missing.into(),
        })
    }

    /// Callers give values of the type that a domain is of: the routine holds them against it.
    fn hold_parameter(&mut self, slot: u16) -> Result<(), SqlError> {
        let Some(variable) = self.variables.at_slot(usize::from(slot)) else { return Ok(()) };
        let (data_type, Some(domain)) = (variable.data_type, variable.domain) else { return Ok(()) };
        let what = format!("parameter \"{}\"", variable.name);
        // Of the domain's length, precision and scale callers know nothing.
        let given = expression::Expression::slot(usize::from(slot), data_type.family());
        let value = self.converted(given, domain, &what)?;
        self.emit(Instruction::Assign { slot, value });
        Ok(())
    }

    /// The body of LANGUAGE plpgsql.
    pub(super) fn body(&mut self, body: &str) -> Result<(), SqlError> {
        let body = syntax::plpgsql::parse(body, self.tables.version())?;
        self.print_strict_params = body.options.print_strict_params;
        self.variables.decide_conflicts(body.options.conflict);
        self.block(&body.block)
    }

    pub(super) fn declaration(
        &mut self,
        declaration: &syntax::plpgsql::ast::Declaration,
    ) -> Result<(), SqlError> {
        let position = declaration.name.position;
        match &declaration.declared {
            DeclaredType::Cursor { scroll, parameters, query } => {
                return self.cursor_declaration(declaration, *scroll, parameters, query);
            }
            DeclaredType::Alias(target) => {
                let declared = self.variables.declare_alias(&declaration.name, target);
                self.at_once |= declared.is_err() && self.looks_late();
                return declared;
            }
            _ => {}
        }
        let tables = self.tables;
        let declared = self.variables.declared_type(tables, declaration);
        self.at_once |= declared.is_err() && self.looks_late();
        let Some(declared) = declared.map_err(|error| or_at(error, position))? else {
            if let DeclaredType::Row(table) = &declaration.declared {
                let slots = self.variables.declare_row(tables, declaration, table);
                self.at_once |= slots.is_err() && self.looks_late();
                for slot in slots? {
                    if self.is_repeated() {
                        self.emit(Instruction::Clear { slot });
                    }
                }
                return Ok(());
            }
            let flag = self.variables.declare_record(declaration)?;
            if self.is_repeated() {
                self.emit(Instruction::Clear { slot: flag });
            }
            return Ok(());
        };
        let what = format!("variable \"{}\"", declaration.name.text);
        let default = match &declaration.default {
            Some(default) => {
                let start = self.place();
                match self.expression_of(default, declared, &what) {
                    Ok(default) => Some(default),
                    Err(error) if self.looks_late() => {
                        self.fail_later(start, or_at(error, position))?;
                        None
                    }
                    Err(error) => return Err(error),
                }
            }
            // NULL is a value of it, or the block ends here.
            None if matches!(declared, DataType::Domain(_)) => {
                let nothing = expression::Expression::constant(types::Value::Null, DataType::Unknown);
                Some(self.converted(nothing, declared, &what)?)
            }
            None => None,
        };
        let slot = self.variables.declare(declaration, declared)?;
        match default {
            Some(value) => {
                self.emit(Instruction::Assign { slot, value });
                if declaration.not_null {
                    self.emit(Instruction::RefuseNull {
                        slot,
                        variable: declaration.name.text.as_str().into(),
                    });
                }
            }
            None if self.is_repeated() => {
                self.emit(Instruction::Clear { slot });
            }
            None => {}
        }
        Ok(())
    }

    pub(super) fn statements(&mut self, statements: &[Statement]) -> Result<(), SqlError> {
        for statement in statements {
            if let Some(what) = statement.kind.described() {
                self.begin_place(statement.position, what);
            }
            let start = self.place();
            if let Err(error) = self.statement(statement) {
                let error = or_at(error, statement.position);
                self.fail_later(start, error)?;
            }
            if statement.kind.described().is_some() {
                self.end_place();
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), SqlError> {
        let may_be_skipped = match &statement.kind {
            StatementKind::Block(block) => !block.handlers.is_empty(),
            kind => kind.has_statements(),
        };
        self.skippable += usize::from(may_be_skipped);
        let result = self.statement_of_kind(&statement.kind);
        self.skippable -= usize::from(may_be_skipped);
        result
    }

    fn statement_of_kind(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        match kind {
            StatementKind::Block(block) => self.block(block),
            StatementKind::Assign { target, path, value } => self.assign(target, path, value),
            StatementKind::If { branches, otherwise } => self.if_statement(branches, otherwise),
            StatementKind::Case { operand, branches, otherwise } => {
                self.case_statement(operand.as_ref(), branches, otherwise.as_deref())
            }
            StatementKind::Loop { label, body } => self.while_loop(label.as_ref(), None, body),
            StatementKind::While { label, condition, body } => {
                self.while_loop(label.as_ref(), Some(condition), body)
            }
            StatementKind::ForRange { .. } => self.range_loop(kind),
            StatementKind::ForElements { label, targets, slice, array, body } => {
                self.element_loop(label.as_ref(), targets, *slice, array, body)
            }
            StatementKind::ForRows { label, targets, query, body } => {
                self.row_loop(label.as_ref(), targets, query, body)
            }
            StatementKind::ForCursor { label, record, cursor, arguments, body } => {
                self.cursor_loop(label.as_ref(), record, cursor, arguments.as_deref(), body)
            }
            StatementKind::Exit { label, condition } => self.exit(label.as_ref(), condition.as_ref()),
            StatementKind::Continue { label, condition } => {
                self.next_turn(label.as_ref(), condition.as_ref())
            }
            StatementKind::Return(value) => {
                let start = self.code.len();
                self.returns(value.as_ref()).or_else(|error| self.fail_when_run(start, error))
            }
            StatementKind::ReturnNext(value) => self.returns_next(value.as_ref()),
            StatementKind::ReturnQuery(source) => self.returns_query(source),
            StatementKind::Null => Ok(()),
            other => {
                let start = self.code.len();
                self.simple_statement(other).or_else(|error| self.fail_when_run(start, error))
            }
        }
    }
}

/// How procedures are compiled. Every node of a ledger must compile alike: what is fused registers fewer reads, and so
/// changes which transactions conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompileOptions {
    /// Whether reading a row, deciding on it and changing it become one command (`plpgsql::fuse`). Off only to measure
    /// and test what it does.
    pub fusion: bool,
    /// The rules that transactions are bound and executed with.
    pub version: ExecutionVersion,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { fusion: true, version: ExecutionVersion::CURRENT }
    }
}
