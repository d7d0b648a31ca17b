//! Compiling a body: names become slots, blocks and loops become jumps, expressions and statements are bound once.
//!
//! Statements of SQL, CALL and RAISE are compiled in [`super::compile_statement`], names and types in
//! [`super::variables`].

use super::ast::{
    Branch, CaseBranch, DeclaredType, Expression, Name, RowSource, Statement, StatementKind, Target,
};
use super::compile_block::ErrorRole;
use super::compile_result::ResultShape;
use super::fuse::{Obstacle, Surroundings, fuse, unfused};
use super::hoist::needs_hoisting;
use super::program::{Address, CompiledProcedure, Instruction, RangeStart, RowsSource, RowsStart};
use super::variables::Variables;
use crate::expression;
use crate::library::CompileOptions;
use crate::statement::bind_expression;
use crate::table::Tables;
use sqlparser::ast as sql;
use std::ops::Range;
use std::sync::Arc;
use types::{DataType, Language, Procedure, SqlError, SqlState};

/// Compiles a procedure against the tables of a catalog. Procedures that it calls are looked up when it runs.
///
/// # Errors
/// What is wrong in the body, with its position in the body.
pub(crate) fn compile(
    tables: &Tables,
    procedure: &Procedure,
    options: CompileOptions,
) -> Result<CompiledProcedure, SqlError> {
    let mut compiler = Compiler::new(tables, procedure)?;
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for parameter in &procedure.parameters {
        // Parameters have no length, precision or scale, as in PostgreSQL.
        let slot = compiler.variables.declare_parameter(&parameter.name, parameter.data_type.family())?;
        if parameter.mode.is_input() {
            inputs.push(slot);
        }
        if parameter.mode.is_output() {
            outputs.push(slot);
        }
    }
    compiler.outputs.clone_from(&outputs);
    match procedure.language {
        Language::PlPgSql => {
            let body = super::parse(&procedure.body)?;
            compiler.block(&body.block)?;
            compiler.end();
        }
        Language::Sql => compiler.sql_body(&procedure.body)?,
    }
    compiler.finish(inputs, options)
}

/// Things of which each level of nesting needs one.
#[derive(Default)]
struct Nesting {
    now: usize,
    most: usize,
}

impl Nesting {
    fn enter(&mut self) -> u16 {
        let index = self.now;
        self.now += 1;
        self.most = self.most.max(self.now);
        // The parser limits nesting to far less.
        index as u16
    }

    fn leave(&mut self) {
        self.now -= 1;
    }
}

/// A block or loop around the statement that is compiled.
pub(super) struct Enclosing {
    pub label: Option<String>,
    /// Where CONTINUE goes; `None` for a block.
    pub next_turn: Option<Address>,
    /// FOR sets FOUND when it is left.
    pub sets_found: bool,
    /// Jumps to its end, which is not known yet.
    pub exits: Vec<Address>,
    /// Whether it has to do with errors.
    pub role: ErrorRole,
}

/// The compiler of one procedure.
pub(super) struct Compiler<'a> {
    pub(super) tables: &'a Tables,
    pub(super) variables: Variables,
    code: Vec<Instruction>,
    pub(super) enclosing: Vec<Enclosing>,
    /// What handlers enclose.
    pub(super) protected_code: Vec<Range<Address>>,
    /// What the procedure or function gives back.
    pub(super) result: ResultShape,
    ranges: Nesting,
    cursors: Nesting,
    pub(super) looks_at_matched: bool,
    /// Slots of the OUT and INOUT parameters.
    pub(super) outputs: Vec<u16>,
}

impl<'a> Compiler<'a> {
    fn new(tables: &'a Tables, procedure: &Procedure) -> Result<Compiler<'a>, SqlError> {
        let body = Arc::from(procedure.body.as_str());
        let variables = Variables::new(&procedure.name, body, tables.routines(), procedure.language)?;
        Ok(Compiler {
            tables,
            variables,
            code: Vec::new(),
            enclosing: Vec::new(),
            protected_code: Vec::new(),
            result: ResultShape::of(tables, procedure)?,
            ranges: Nesting::default(),
            cursors: Nesting::default(),
            looks_at_matched: false,
            outputs: Vec::new(),
        })
    }

    /// The whole program.
    fn finish(self, inputs: Vec<u16>, options: CompileOptions) -> Result<CompiledProcedure, SqlError> {
        let (slots, found) = (self.variables.slots()?, self.variables.found);
        let surroundings =
            Surroundings { slots, found, outputs: &self.outputs, protected: &self.protected_code };
        let (code, obstacles) = match options.fusion {
            true => fuse(self.code, &surroundings),
            false => unfused(self.code, &Obstacle::SwitchedOff),
        };
        Ok(CompiledProcedure {
            slots,
            found,
            code: code.into(),
            names: self.variables.names(),
            result: self.result.form(),
            needs: self.variables.scope().needs(),
            obstacles: obstacles.into(),
            inputs: inputs.into(),
            outputs: self.outputs.into(),
            ranges: self.ranges.most,
            cursors: self.cursors.most,
            looks_at_matched: self.looks_at_matched,
        })
    }

    /// Appends an instruction and gives its address.
    pub(super) fn emit(&mut self, instruction: Instruction) -> Address {
        let address = self.here();
        self.code.push(instruction);
        address
    }

    /// Address of the next instruction.
    pub(super) fn here(&self) -> Address {
        // A body is far shorter than 4 GiB: it fits in a transaction.
        self.code.len() as Address
    }

    /// The jump at `address` goes to the next instruction.
    pub(super) fn land(&mut self, address: Address) {
        let here = self.here();
        match &mut self.code[address as usize] {
            Instruction::Jump { to }
            | Instruction::JumpIf { to, .. }
            | Instruction::JumpUnless { to, .. }
            | Instruction::RangeNext { end: to, .. }
            | Instruction::RowsNext { end: to, .. }
            | Instruction::Protect { handlers: to }
            | Instruction::JumpUnlessCaught { to, .. } => *to = here,
            _ => debug_assert!(false, "only jumps land"),
        }
    }

    pub(super) fn land_all(&mut self, addresses: Vec<Address>) {
        for address in addresses {
            self.land(address);
        }
    }

    /// True where the statement may run more than once in a call.
    fn is_repeated(&self) -> bool {
        self.enclosing.iter().any(|enclosing| enclosing.next_turn.is_some())
    }

    /// A bound expression, after the instructions that look at what it needs.
    pub(super) fn expression(&mut self, expression: &Expression) -> Result<expression::Expression, SqlError> {
        self.prepare_names(&expression.expression)?;
        let with_variables = if needs_hoisting(&expression.expression) {
            let mut hoisted = expression.expression.clone();
            self.hoist(&mut hoisted).map_err(|error| or_at(error, expression.position))?;
            Some(hoisted)
        } else {
            None
        };
        let tree = with_variables.as_ref().unwrap_or(&expression.expression);
        self.bind(tree).map_err(|error| or_at(error, expression.position))
    }

    /// An expression that needs nothing else.
    pub(super) fn bind(&self, tree: &sql::Expr) -> Result<expression::Expression, SqlError> {
        bind_expression(self.tables, self.variables.scope(), tree)
    }

    /// A bound expression, of this type as an assignment makes it; `what` is assigned.
    pub(super) fn expression_of(
        &mut self,
        expression: &Expression,
        data_type: DataType,
        what: &str,
    ) -> Result<expression::Expression, SqlError> {
        let bound = self.expression(expression)?;
        super::variables::coerce(bound, data_type, what).map_err(|error| or_at(error, expression.position))
    }

    /// A bound condition.
    pub(super) fn condition(&mut self, condition: &Expression) -> Result<expression::Expression, SqlError> {
        self.expression_of(condition, DataType::Boolean, "a condition")
    }

    /// Emits what must happen before these names are read: a look at FOUND, a check that a record has a row.
    pub(super) fn prepare_names<T: sql::Visit>(&mut self, tree: &T) -> Result<(), SqlError> {
        let used = self.variables.names_used(tree)?;
        if used.found {
            self.looks_at_matched = true;
            self.emit(Instruction::LookAtFound);
        }
        for (flag, record) in used.unassigned_records {
            self.emit(Instruction::RequireRecord { flag, record });
        }
        Ok(())
    }

    pub(super) fn declaration(&mut self, declaration: &super::ast::Declaration) -> Result<(), SqlError> {
        let position = declaration.name.position;
        let tables = self.tables;
        let Some(declared) =
            self.variables.declared_type(tables, declaration).map_err(|error| or_at(error, position))?
        else {
            if let DeclaredType::Row(table) = &declaration.declared {
                for slot in self.variables.declare_row(tables, declaration, table)? {
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
            Some(default) => Some(self.expression_of(default, declared, &what)?),
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
            self.statement(statement).map_err(|error| or_at(error, statement.position))?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), SqlError> {
        match &statement.kind {
            StatementKind::Block(block) => self.block(block),
            StatementKind::Assign { target, subscript: None, value } => self.assignment(target, value),
            StatementKind::Assign { target, subscript: Some(subscript), value } => {
                self.element_assignment(target, subscript, value)
            }
            StatementKind::If { branches, otherwise } => self.if_statement(branches, otherwise),
            StatementKind::Case { operand, branches, otherwise } => {
                self.case_statement(operand.as_ref(), branches, otherwise.as_deref())
            }
            StatementKind::Loop { label, body } => self.while_loop(label.as_ref(), None, body),
            StatementKind::While { label, condition, body } => {
                self.while_loop(label.as_ref(), Some(condition), body)
            }
            StatementKind::ForRange { .. } => self.range_loop(&statement.kind),
            StatementKind::ForElements { label, targets, array, body } => {
                self.element_loop(label.as_ref(), targets, array, body)
            }
            StatementKind::ForRows { label, targets, query, body } => {
                self.row_loop(label.as_ref(), targets, query, body)
            }
            StatementKind::Exit { label, condition } => self.exit(label.as_ref(), condition.as_ref()),
            StatementKind::Continue { label, condition } => {
                self.next_turn(label.as_ref(), condition.as_ref())
            }
            StatementKind::Return(value) => self.returns(value.as_ref()),
            StatementKind::ReturnNext(value) => self.returns_next(value.as_ref()),
            StatementKind::ReturnQuery(source) => self.returns_query(source),
            StatementKind::Null => Ok(()),
            other => self.simple_statement(other),
        }
    }

    fn assignment(&mut self, target: &Target, value: &Expression) -> Result<(), SqlError> {
        if self.variables.is_record(target) {
            return self.record_assignment(target, value);
        }
        let variable = self.variables.assignable(target)?;
        let value =
            self.expression_of(value, variable.data_type, &format!("variable \"{}\"", variable.name))?;
        let (slot, not_null) = (variable.slot, variable.not_null);
        self.emit(Instruction::Assign { slot, value });
        if not_null {
            self.emit(Instruction::RefuseNull { slot, variable: target.text().into() });
        }
        Ok(())
    }

    /// `array[subscript] := value`: a new array with that element.
    fn element_assignment(
        &mut self,
        target: &Target,
        subscript: &Expression,
        value: &Expression,
    ) -> Result<(), SqlError> {
        let variable = self.variables.assignable(target)?;
        let (slot, data_type) = (variable.slot, variable.data_type);
        let Some(element) = data_type.element() else {
            let message =
                format!("cannot subscript type {data_type} because it does not support subscripting");
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).at(target.position()));
        };
        let subscript = self.expression_of(subscript, DataType::Integer, "a subscript")?;
        let value = self.expression_of(value, element, &format!("an element of \"{}\"", variable.name))?;
        let array = expression::Expression::slot(usize::from(slot), data_type);
        let value = expression::element_assigned(array, subscript, value);
        self.emit(Instruction::Assign { slot, value });
        Ok(())
    }

    /// A jump that is taken unless the condition is true, to a place that [`Compiler::land`] tells.
    pub(super) fn jump_unless(&mut self, condition: expression::Expression) -> Address {
        self.emit(Instruction::JumpUnless { condition, to: 0 })
    }

    fn if_statement(&mut self, branches: &[Branch], otherwise: &[Statement]) -> Result<(), SqlError> {
        let mut ends = Vec::new();
        let before = self.variables.assigned_records();
        for (index, branch) in branches.iter().enumerate() {
            let condition = self.condition(&branch.condition)?;
            let skip = self.jump_unless(condition);
            self.statements(&branch.statements)?;
            self.variables.restore_assigned(before.clone());
            if index + 1 < branches.len() || !otherwise.is_empty() {
                ends.push(self.emit(Instruction::Jump { to: 0 }));
            }
            self.land(skip);
        }
        self.statements(otherwise)?;
        self.variables.restore_assigned(before);
        self.land_all(ends);
        Ok(())
    }

    fn case_statement(
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
        let before = self.variables.assigned_records();
        for branch in branches {
            let Some(first) = branch.values.first() else { continue };
            let condition = match &operand {
                None => self.condition(first)?,
                Some(name) => {
                    let list = branch.values.iter().map(|value| value.expression.clone()).collect();
                    let subject = Box::new(sql::Expr::Identifier(sql::Ident::with_quote('"', name)));
                    let expression = sql::Expr::InList { expr: subject, list, negated: false };
                    self.condition(&Expression { expression, position: first.position })?
                }
            };
            let skip = self.jump_unless(condition);
            self.statements(&branch.statements)?;
            self.variables.restore_assigned(before.clone());
            ends.push(self.emit(Instruction::Jump { to: 0 }));
            self.land(skip);
        }
        match otherwise {
            Some(statements) => self.statements(statements)?,
            None => {
                self.emit(Instruction::CaseNotFound);
            }
        }
        self.variables.restore_assigned(before);
        self.land_all(ends);
        if operand.is_some() {
            self.variables.pop_block();
        }
        Ok(())
    }

    /// Keeps the operand in a variable of a block of its own, and gives its name.
    fn case_operand(&mut self, operand: &Expression) -> Result<String, SqlError> {
        let value = self.expression(operand)?;
        let data_type = match value.data_type {
            DataType::Unknown => DataType::Text(None),
            known => known,
        };
        let value = super::variables::coerce(value, data_type, "the operand of CASE")?;
        self.variables.push_block(None);
        let name = format!("__case_variable_{}__", self.code.len());
        let slot = self.variables.declare_plain(&name, data_type)?;
        self.emit(Instruction::Assign { slot, value });
        Ok(name)
    }

    fn enter_loop(&mut self, label: Option<&Name>, sets_found: bool) {
        let next_turn = Some(self.here());
        let label = label.map(|label| label.text.clone());
        let role = ErrorRole::None;
        self.enclosing.push(Enclosing { label, next_turn, sets_found, exits: Vec::new(), role });
    }

    /// The jump back, and the place behind the loop.
    fn close_loop(&mut self, leaving: Option<Address>) {
        let Some(enclosing) = self.enclosing.pop() else { return };
        self.emit(Instruction::Jump { to: enclosing.next_turn.unwrap_or(0) });
        if let Some(leaving) = leaving {
            self.land(leaving);
        }
        self.land_all(enclosing.exits);
    }

    fn while_loop(
        &mut self,
        label: Option<&Name>,
        condition: Option<&Expression>,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let before = self.variables.assigned_records();
        self.variables.push_block(label);
        self.enter_loop(label, false);
        let leaving = match condition {
            Some(condition) => {
                let condition = self.condition(condition)?;
                Some(self.jump_unless(condition))
            }
            None => None,
        };
        self.statements(body)?;
        self.close_loop(leaving);
        self.variables.pop_block();
        self.variables.restore_assigned(before);
        Ok(())
    }

    fn range_loop(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        let StatementKind::ForRange { label, variable, reverse, first, last, step, body } = kind else {
            return Ok(());
        };
        let bound = |compiler: &mut Compiler<'a>, expression: &Expression| {
            compiler.expression_of(expression, DataType::Integer, "the bound of a FOR loop")
        };
        let first = bound(self, first)?;
        let last = bound(self, last)?;
        let step = match step {
            Some(step) => Some(bound(self, step)?),
            None => None,
        };
        let before = self.variables.assigned_records();
        self.variables.push_block(label.as_ref());
        let slot = self.variables.declare_plain(&variable.text, DataType::Integer)?;
        let range = self.ranges.enter();
        self.emit(Instruction::RangeStart(Box::new(RangeStart {
            range,
            first,
            last,
            step,
            reverse: *reverse,
        })));
        self.enter_loop(label.as_ref(), true);
        let leaving = self.emit(Instruction::RangeNext { range, slot, end: 0 });
        self.statements(body)?;
        self.close_loop(Some(leaving));
        self.ranges.leave();
        self.variables.pop_block();
        self.variables.restore_assigned(before);
        Ok(())
    }

    pub(super) fn row_loop(
        &mut self,
        label: Option<&Name>,
        targets: &[Target],
        query: &RowSource,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let (source, target) = match query {
            RowSource::Static(query) => {
                let (source, columns) = self.rows_of(query)?;
                (source, self.row_target(targets, &columns, false)?)
            }
            RowSource::Dynamic(dynamic) => {
                let (target, wanted) = self.dynamic_target(targets, false)?;
                (RowsSource::Dynamic(self.dynamic(dynamic, Some(wanted))?), target)
            }
        };
        let before = self.variables.assigned_records();
        self.variables.push_block(label);
        let cursor = self.cursors.enter();
        self.emit(Instruction::RowsStart(Box::new(RowsStart { cursor, source, flag: target.flag })));
        self.enter_loop(label, true);
        let leaving = self.emit(Instruction::RowsNext { cursor, stores: target.stores, end: 0 });
        self.statements(body)?;
        self.close_loop(Some(leaving));
        self.cursors.leave();
        self.variables.pop_block();
        self.variables.restore_assigned(before);
        Ok(())
    }
}

/// The error at this position, unless it has one.
pub(super) fn or_at(error: SqlError, position: u32) -> SqlError {
    if error.position.is_some() { error } else { error.at(position) }
}
