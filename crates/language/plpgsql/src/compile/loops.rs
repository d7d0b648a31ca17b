//! Compiling loops.

use crate::compile::compiler::{Compiler, Enclosing, ErrorRole};
use crate::program::{Address, Instruction, OpenCursor, RangeStart, RowsSource, RowsStart};
use plan::expression;
use syntax::plpgsql::ast::{
    Argument, Declaration, DeclaredType, Expression, Name, RowSource, Statement, StatementKind, Target,
};
use types::{DataType, SqlError, SqlState, Value};
use values::broken;

impl Compiler<'_> {
    fn enter_loop(&mut self, label: Option<&Name>, sets_found: bool) {
        self.variables.enter_loop();
        let next_turn = Some(self.here());
        let label = label.map(|label| label.text.clone());
        let role = ErrorRole::None;
        self.enclosing.push(Enclosing {
            label,
            next_turn,
            sets_found,
            exits: Vec::new(),
            role,
            cursor_level: None,
        });
    }

    /// The jump back, and the place behind the loop.
    fn close_loop(&mut self, leaving: Option<Address>) -> Result<(), SqlError> {
        self.variables.leave_loop()?;
        let Some(enclosing) = self.enclosing.pop() else { return Ok(()) };
        self.emit(Instruction::Jump { to: enclosing.next_turn.unwrap_or(0) });
        if let Some(leaving) = leaving {
            self.land(leaving);
        }
        self.land_all(enclosing.exits);
        Ok(())
    }

    pub(crate) fn while_loop(
        &mut self,
        label: Option<&Name>,
        condition: Option<&Expression>,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let before = self.variables.record_states();
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
        self.close_loop(leaving)?;
        self.variables.pop_block();
        self.variables.left_anywhere(&before);
        Ok(())
    }

    pub(crate) fn range_loop(&mut self, kind: &StatementKind) -> Result<(), SqlError> {
        let StatementKind::ForRange { label, variable, reverse, first, last, step, body } = kind else {
            return Ok(());
        };
        let bound = |compiler: &mut Compiler<'_>, expression: &Expression| {
            compiler.expression_of(expression, DataType::Integer, "the bound of a FOR loop")
        };
        let first = bound(self, first)?;
        let last = bound(self, last)?;
        let step = match step {
            Some(step) => Some(bound(self, step)?),
            None => None,
        };
        let before = self.variables.record_states();
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
        self.close_loop(Some(leaving))?;
        self.ranges.leave();
        self.variables.pop_block();
        self.variables.left_anywhere(&before);
        Ok(())
    }

    pub(crate) fn row_loop(
        &mut self,
        label: Option<&Name>,
        targets: &[Target],
        query: &RowSource,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let (source, target) = match query {
            RowSource::Static(query) if !self.late_records(query.as_ref()).is_empty() => {
                let wanted = self.dynamic_target(targets, None, "FOR", false)?;
                let types = wanted.target.record.is_none().then_some(wanted.wanted);
                (self.late_rows(query, types)?.ok_or_else(|| broken("a query of no record"))?, wanted.target)
            }
            RowSource::Static(query) => {
                let (source, columns) = self.rows_of(query)?;
                (source, self.row_target(targets, &columns, false)?)
            }
            RowSource::Dynamic(dynamic) => {
                let wanted = self.dynamic_target(targets, None, "EXECUTE", false)?;
                let types = wanted.target.record.is_none().then_some(wanted.wanted);
                (RowsSource::Dynamic(self.dynamic(dynamic, types)?), wanted.target)
            }
        };
        let before = self.variables.record_states();
        self.variables.push_block(label);
        let cursor = self.cursors.enter();
        self.emit(Instruction::RowsStart(Box::new(RowsStart { cursor, source, flag: target.flag })));
        self.enter_loop(label, true);
        let leaving =
            self.emit(Instruction::RowsNext { cursor, stores: target.stores, record: target.record, end: 0 });
        self.emit_packed();
        self.statements(body)?;
        self.close_loop(Some(leaving))?;
        self.cursors.leave();
        self.variables.pop_block();
        self.variables.left_anywhere(&before);
        Ok(())
    }

    /// `FOR record IN cursor [(arguments)] LOOP … END LOOP`
    pub(crate) fn cursor_loop(
        &mut self,
        label: Option<&Name>,
        record: &Name,
        cursor: &Name,
        arguments: Option<&[Argument]>,
        body: &[Statement],
    ) -> Result<(), SqlError> {
        let variable = self.cursor_variable(&Target { parts: vec![cursor.clone()] })?;
        let Some(declared) = self.cursor_of(variable.slot)? else {
            let message = "cursor FOR loop must use a bound cursor variable";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).at(cursor.position));
        };
        let arguments = self.cursor_arguments(cursor, &declared, arguments)?;
        self.prepare(&declared.used);
        let before = self.variables.record_states();
        self.variables.push_block(label);
        self.variables.declare_record(&Declaration {
            name: record.clone(),
            constant: false,
            declared: DeclaredType::Record,
            not_null: false,
            default: None,
        })?;
        let record = Target { parts: vec![record.clone()] };
        let target = self.row_target(&[record], &declared.query.columns, false)?;
        let level = self.cursor_loops.enter();
        let scroll = declared.scroll.unwrap_or(true);
        let query = declared.query.clone();
        let open = OpenCursor { variable, arguments, query, scroll, level: Some(level) };
        self.emit(Instruction::OpenCursor(Box::new(open)));
        if let Some(flag) = target.flag {
            let value = expression::Expression::constant(Value::Boolean(true), DataType::Boolean);
            self.emit(Instruction::Assign { slot: flag, value });
        }
        self.enter_loop(label, true);
        if let Some(enclosing) = self.enclosing.last_mut() {
            enclosing.cursor_level = Some(level);
        }
        let leaving = self.emit(Instruction::CursorNext {
            level,
            stores: target.stores,
            record: target.record,
            end: 0,
        });
        self.statements(body)?;
        self.close_loop(Some(leaving))?;
        self.cursor_loops.leave();
        self.variables.pop_block();
        self.variables.left_anywhere(&before);
        Ok(())
    }
}
