//! What an instruction reads, runs and writes, and where it goes: fusion, footprints and EXPLAIN ask here.

use crate::late::Late;
use crate::program::{
    Address, CompiledProcedure, Count, CursorName, Dynamic, Instruction, RaiseMessage, RowsSource,
};
use crate::target::RowTarget;
use plan::expression::Expression;
use plan::statement::{BoundSelect, BoundStatement, VisitSlot};
use syntax::plpgsql::ast::RaiseLevel;

/// What an instruction runs.
pub(crate) enum Runs<'i> {
    /// A query.
    Query(&'i BoundSelect),
    /// Another statement of SQL.
    Statement(&'i BoundStatement),
    /// A text that is computed.
    Dynamic(&'i Dynamic),
    /// A statement that is bound when it runs.
    Late(&'i Late),
}

impl Runs<'_> {
    /// Visits the slots that it reads.
    fn visit_slots(&self, visit: &mut VisitSlot<'_>) {
        match self {
            Runs::Query(query) => query.visit_slots(visit),
            Runs::Statement(statement) => statement.visit_slots(visit),
            Runs::Dynamic(dynamic) => {
                dynamic.text.visit_slots(visit);
                dynamic.arguments.iter().for_each(|argument| argument.visit_slots(visit));
            }
            Runs::Late(late) => late.visit_slots(visit),
        }
    }
}

impl RowsSource {
    fn runs(&self) -> Runs<'_> {
        match self {
            RowsSource::Query(query) => Runs::Query(query),
            RowsSource::Change(statement) => Runs::Statement(statement),
            RowsSource::Dynamic(dynamic) => Runs::Dynamic(dynamic),
            RowsSource::Late(late) => Runs::Late(&late.statement),
        }
    }
}

impl RowTarget {
    fn visit_slots(&self, visit: &mut dyn FnMut(u16)) {
        self.stores.iter().map(|store| store.slot).chain(self.flag).for_each(visit);
    }
}

impl CompiledProcedure {
    /// Whether it may change rows itself, or needs a transaction for another reason.
    pub fn may_write(&self) -> bool {
        self.code.iter().any(|instruction| match instruction {
            Instruction::Fused(_) | Instruction::Oracle { .. } | Instruction::Notify(_) => true,
            // It is one of the calls.
            Instruction::Call(_) => false,
            other => other.runs().is_some_and(|runs| !matches!(runs, Runs::Query(_))),
        })
    }
}

impl Instruction {
    /// What it runs. Fused statements are no statements any more.
    pub(crate) fn runs(&self) -> Option<Runs<'_>> {
        Some(match self {
            Instruction::SelectInto(select) => Runs::Query(&select.query),
            Instruction::Subquery(plan) => Runs::Query(&plan.query),
            Instruction::Perform(query) => Runs::Query(query),
            Instruction::Change(statement) => Runs::Statement(statement),
            Instruction::ChangeInto(change) => Runs::Statement(&change.statement),
            Instruction::Call(call) => Runs::Statement(&call.statement),
            Instruction::RowsStart(start) => start.source.runs(),
            Instruction::ReturnQuery(query) => query.source.runs(),
            Instruction::OpenCursor(open) => open.query.source.runs(),
            Instruction::Execute(execute) => Runs::Dynamic(&execute.dynamic),
            Instruction::LateValue(late) => Runs::Late(&late.query),
            Instruction::LateStatement(late) => Runs::Late(&late.statement),
            Instruction::Assign { .. }
            | Instruction::RefuseNull { .. }
            | Instruction::Clear { .. }
            | Instruction::RequireRecord { .. }
            | Instruction::Jump { .. }
            | Instruction::JumpIf { .. }
            | Instruction::JumpUnless { .. }
            | Instruction::RangeStart(_)
            | Instruction::RangeNext { .. }
            | Instruction::RowsNext { .. }
            | Instruction::SetFound
            | Instruction::LookAtFound
            | Instruction::Oracle { .. }
            | Instruction::Context { .. }
            | Instruction::RowCount { .. }
            | Instruction::Raise(_)
            | Instruction::Assert(_)
            | Instruction::SetConstraints(_)
            | Instruction::Notify(_)
            | Instruction::CaseNotFound
            | Instruction::Fused(_)
            | Instruction::Return
            | Instruction::ReturnValue { .. }
            | Instruction::NoReturn
            | Instruction::ReturnNext { .. }
            | Instruction::ReturnFirst
            | Instruction::Fail(_)
            | Instruction::LateRow(_)
            | Instruction::Protect { .. }
            | Instruction::Leave { .. }
            | Instruction::JumpUnlessCaught { .. }
            | Instruction::ShowError { .. }
            | Instruction::Rethrow
            | Instruction::StackedDiagnostics { .. }
            | Instruction::FetchCursor(_)
            | Instruction::CloseCursor(_)
            | Instruction::CursorNext { .. }
            | Instruction::LeaveCursor { .. }
            | Instruction::CurrentRow(_) => return None,
        })
    }

    /// Visits the slots that it reads, FOUND and the results of a procedure left out.
    pub(crate) fn visit_read(&self, visit: &mut dyn FnMut(u16)) {
        self.expressions().iter().for_each(|expression| expression.visit_slots(visit));
        if let Some(runs) = self.runs() {
            runs.visit_slots(visit);
        }
        match self {
            Instruction::RefuseNull { slot, .. } => visit(*slot),
            Instruction::RequireRecord { flag, .. } => visit(*flag),
            Instruction::LateRow(late) => visit(late.flag),
            Instruction::OpenCursor(open) => visit(open.variable.slot),
            Instruction::FetchCursor(fetch) => visit(fetch.variable.slot),
            Instruction::CloseCursor(variable) => visit(variable.slot),
            Instruction::CurrentRow(current) => {
                if let CursorName::Variable(variable) = &current.cursor {
                    visit(variable.slot);
                }
            }
            Instruction::Fused(fused) => fused.visit_slots(visit),
            _ => {}
        }
    }

    /// Visits the slots that it may write, FOUND left out.
    pub(crate) fn visit_written(&self, visit: &mut dyn FnMut(u16)) {
        match self {
            Instruction::Assign { slot, .. }
            | Instruction::Clear { slot }
            | Instruction::RangeNext { slot, .. }
            | Instruction::Oracle { slot, .. } => visit(*slot),
            Instruction::RowsStart(start) => start.flag.into_iter().for_each(visit),
            Instruction::RowsNext { stores, .. }
            | Instruction::CursorNext { stores, .. }
            | Instruction::Context { stores }
            | Instruction::RowCount { stores } => stores.iter().for_each(|store| visit(store.slot)),
            Instruction::Subquery(plan) => visit(plan.slot),
            Instruction::SelectInto(select) => select.target.visit_slots(visit),
            Instruction::ChangeInto(change) => change.target.visit_slots(visit),
            Instruction::Execute(execute) => {
                execute.target.iter().for_each(|target| target.visit_slots(visit));
            }
            Instruction::LateStatement(late) => {
                late.target.iter().for_each(|(target, _)| target.visit_slots(visit));
            }
            Instruction::LateValue(late) => visit(late.slot),
            Instruction::LateRow(late) => visit(late.slot),
            Instruction::Fused(fused) => fused.assigned_outside().iter().for_each(|(slot, _)| visit(*slot)),
            Instruction::Call(call) => {
                call.variables.iter().flatten().for_each(|variable| visit(variable.slot));
            }
            Instruction::ShowError { state, message } => [*state, *message].into_iter().for_each(visit),
            Instruction::StackedDiagnostics { items } => {
                items.iter().for_each(|(_, store)| visit(store.slot));
            }
            Instruction::OpenCursor(open) => {
                visit(open.variable.slot);
                open.arguments.iter().for_each(|(store, _)| visit(store.slot));
            }
            Instruction::FetchCursor(fetch) => {
                fetch.target.iter().for_each(|fetched| fetched.target.visit_slots(visit));
            }
            Instruction::CurrentRow(current) => current.slots.iter().for_each(|slot| visit(*slot)),
            _ => {}
        }
    }

    /// Whether it writes all of those slots wherever it ends without an error.
    pub(crate) fn writes_certainly(&self) -> bool {
        !self.takes_turn()
            && !matches!(self, Instruction::OpenCursor(_) | Instruction::Fused(_) | Instruction::Call(_))
    }

    /// The flag of a record that has a row behind it.
    pub(crate) fn record_flag(&self) -> Option<u16> {
        match self {
            Instruction::RowsStart(start) => start.flag,
            Instruction::SelectInto(select) => select.target.flag,
            Instruction::ChangeInto(change) => change.target.flag,
            Instruction::FetchCursor(fetch) => fetch.target.as_ref()?.target.flag,
            _ => None,
        }
    }

    /// Whether it sets FOUND and ROW_COUNT.
    pub(crate) fn counts_rows(&self) -> bool {
        matches!(
            self,
            Instruction::SelectInto(_)
                | Instruction::Perform(_)
                | Instruction::Change(_)
                | Instruction::ChangeInto(_)
                | Instruction::ReturnQuery(_)
                | Instruction::Fused(_)
                | Instruction::FetchCursor(_)
                | Instruction::LateStatement(_)
        )
    }

    /// Whether it takes the next turn of a loop, or leaves it and sets FOUND.
    pub(crate) fn takes_turn(&self) -> bool {
        matches!(
            self,
            Instruction::RangeNext { .. } | Instruction::RowsNext { .. } | Instruction::CursorNext { .. }
        )
    }

    /// Where it jumps, if it may.
    pub(crate) fn jump(&self) -> Option<Address> {
        match self {
            Instruction::Jump { to }
            | Instruction::JumpIf { to, .. }
            | Instruction::JumpUnless { to, .. }
            | Instruction::RangeNext { end: to, .. }
            | Instruction::RowsNext { end: to, .. }
            | Instruction::JumpUnlessCaught { to, .. }
            | Instruction::CursorNext { end: to, .. }
            // An error inside of the block goes on there.
            | Instruction::Protect { handlers: to } => Some(*to),
            Instruction::Fused(fused) => Some(fused.end() as Address),
            _ => None,
        }
    }

    /// True where the next instruction is not the one behind it.
    pub(crate) fn never_goes_on(&self) -> bool {
        match self {
            Instruction::Jump { .. }
            | Instruction::Return
            | Instruction::ReturnValue { .. }
            | Instruction::ReturnFirst
            | Instruction::NoReturn
            | Instruction::Fail(_)
            | Instruction::Rethrow
            | Instruction::CaseNotFound
            | Instruction::Fused(_) => true,
            Instruction::Raise(plan) => plan.level == RaiseLevel::Exception,
            _ => false,
        }
    }

    /// Its expressions, those of its statements of SQL left out.
    pub fn expressions(&self) -> Vec<&Expression> {
        match self {
            Instruction::Assign { value, .. } | Instruction::Oracle { name: value, .. } => vec![value],
            Instruction::JumpIf { condition, .. } | Instruction::JumpUnless { condition, .. } => {
                vec![condition]
            }
            Instruction::RangeStart(start) => {
                [&start.first, &start.last].into_iter().chain(&start.step).collect()
            }
            Instruction::Raise(plan) => {
                let arguments = match &plan.message {
                    RaiseMessage::Format { arguments, .. } => arguments.as_ref(),
                    _ => &[],
                };
                arguments.iter().chain(plan.options.iter().map(|(_, option)| option)).collect()
            }
            Instruction::Assert(assertion) => [&assertion.0].into_iter().chain(&assertion.1).collect(),
            Instruction::ReturnValue { values } | Instruction::ReturnNext { values } => {
                values.iter().collect()
            }
            Instruction::OpenCursor(open) => open.arguments.iter().map(|(_, value)| value).collect(),
            Instruction::FetchCursor(fetch) => match &fetch.count {
                Count::Expression(count) => vec![count],
                Count::Constant(_) | Count::All => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}
