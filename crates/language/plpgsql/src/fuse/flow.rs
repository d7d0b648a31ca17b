//! What instructions read and write, where they go, and which variables are used after them.

use crate::program::{Address, Count, CursorName, Instruction, RaiseMessage};
use crate::target::{RowTarget, Store};
use plan::expression::Expression;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;
use syntax::plpgsql::ast::RaiseLevel;
use types::CompositeTypes;

/// The variables of a procedure, FOUND among them, and behind them ROW_COUNT.
pub(crate) struct Variables<'a> {
    /// Values in the frame.
    pub slots: usize,
    /// Slot of FOUND.
    pub found: u16,
    /// The number that stands for ROW_COUNT: one more than any slot.
    pub row_count: u16,
    outputs: &'a [u16],
    /// What values of composite types are.
    pub types: &'a Arc<CompositeTypes>,
}

/// A set of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet(Vec<u64>);

impl SlotSet {
    pub fn new(variables: &Variables<'_>) -> SlotSet {
        SlotSet(vec![0; variables.words()])
    }

    pub fn contains(&self, slot: u16) -> bool {
        self.0.get(usize::from(slot) / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    pub fn insert(&mut self, slot: u16) {
        self.0[usize::from(slot) / 64] |= 1 << (slot % 64);
    }

    pub fn remove(&mut self, slot: u16) {
        self.0[usize::from(slot) / 64] &= !(1 << (slot % 64));
    }

    /// Adds all of the other; true where that changes anything.
    fn extend(&mut self, other: &SlotSet) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= *more & !*word != 0;
            *word |= more;
        }
        changed
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.0.len() as u32 * 64)
            .filter_map(|slot| u16::try_from(slot).ok().filter(|s| self.contains(*s)))
    }
}

impl<'a> Variables<'a> {
    pub fn new(surroundings: &Surroundings<'a>) -> Variables<'a> {
        Variables {
            slots: surroundings.slots,
            found: surroundings.found,
            // A procedure has fewer slots than a u16 counts.
            row_count: surroundings.slots as u16,
            outputs: surroundings.outputs,
            types: surroundings.types,
        }
    }

    /// Words of a [`SlotSet`].
    pub fn words(&self) -> usize {
        self.slots / 64 + 1
    }

    /// Visits every variable that the instruction reads.
    pub fn reads(&self, instruction: &Instruction, visit: &mut dyn FnMut(u16)) {
        let all = |expressions: &[&Expression], visit: &mut dyn FnMut(u16)| {
            expressions.iter().for_each(|expression| expression.visit_slots(visit));
        };
        match instruction {
            Instruction::Assign { value, .. } | Instruction::Oracle { name: value, .. } => {
                value.visit_slots(visit);
            }
            Instruction::ReturnValue { values } | Instruction::ReturnNext { values } => {
                values.iter().for_each(|value| value.visit_slots(visit));
            }
            Instruction::ReturnQuery(query) => query.source.visit_slots(visit),
            Instruction::Execute(execute) => execute.dynamic.visit_slots(visit),
            Instruction::LateValue(late) => late.query.visit_slots(visit),
            Instruction::LateStatement(late) => late.statement.visit_slots(visit),
            Instruction::LateRow(late) => visit(late.flag),
            Instruction::RefuseNull { slot, .. } => visit(*slot),
            Instruction::RequireRecord { flag, .. } => visit(*flag),
            Instruction::JumpIf { condition, .. } | Instruction::JumpUnless { condition, .. } => {
                condition.visit_slots(visit);
            }
            Instruction::RangeStart(start) => {
                all(&[&start.first, &start.last], visit);
                start.step.iter().for_each(|step| step.visit_slots(visit));
            }
            Instruction::RowsStart(start) => start.source.visit_slots(visit),
            Instruction::LookAtFound => visit(self.found),
            Instruction::SelectInto(select) => select.query.visit_slots(visit),
            Instruction::Subquery(plan) => plan.query.visit_slots(visit),
            Instruction::Perform(query) => query.visit_slots(visit),
            Instruction::Change(statement) => statement.visit_slots(visit),
            Instruction::ChangeInto(change) => change.statement.visit_slots(visit),
            Instruction::Call(call) => call.statement.visit_slots(visit),
            Instruction::RowCount { .. } => visit(self.row_count),
            Instruction::Raise(plan) => {
                if let RaiseMessage::Format { arguments, .. } = &plan.message {
                    arguments.iter().for_each(|argument| argument.visit_slots(visit));
                }
                plan.options.iter().for_each(|(_, option)| option.visit_slots(visit));
            }
            Instruction::Assert(assertion) => {
                assertion.0.visit_slots(visit);
                assertion.1.iter().for_each(|message| message.visit_slots(visit));
            }
            Instruction::Return => self.outputs.iter().for_each(|slot| visit(*slot)),
            Instruction::Clear { .. }
            | Instruction::Jump { .. }
            | Instruction::RangeNext { .. }
            | Instruction::RowsNext { .. }
            | Instruction::SetFound
            | Instruction::CaseNotFound
            | Instruction::NoReturn
            | Instruction::ReturnFirst
            | Instruction::Fail(_)
            | Instruction::Protect { .. }
            | Instruction::Leave { .. }
            | Instruction::JumpUnlessCaught { .. }
            | Instruction::ShowError { .. }
            | Instruction::Rethrow
            | Instruction::StackedDiagnostics { .. }
            | Instruction::CursorNext { .. }
            | Instruction::LeaveCursor { .. }
            | Instruction::Context { .. } => {}
            Instruction::OpenCursor(open) => {
                visit(open.variable.slot);
                open.arguments.iter().for_each(|(_, value)| value.visit_slots(visit));
                open.query.source.visit_slots(visit);
            }
            Instruction::FetchCursor(fetch) => {
                visit(fetch.variable.slot);
                if let Count::Expression(count) = &fetch.count {
                    count.visit_slots(visit);
                }
            }
            Instruction::CloseCursor(variable) => visit(variable.slot),
            Instruction::CurrentRow(current) => {
                if let CursorName::Variable(variable) = &current.cursor {
                    visit(variable.slot);
                }
            }
            Instruction::Fused(fused) => fused.visit_slots(visit),
        }
    }

    /// Visits every variable that the instruction certainly writes, if it ends without an error.
    pub fn writes(&self, instruction: &Instruction, visit: &mut dyn FnMut(u16)) {
        let stored = |stores: &[Store], visit: &mut dyn FnMut(u16)| {
            stores.iter().for_each(|store| visit(store.slot));
        };
        let target = |target: &RowTarget, visit: &mut dyn FnMut(u16)| {
            stored(&target.stores, visit);
            target.flag.iter().for_each(|flag| visit(*flag));
        };
        match instruction {
            Instruction::Assign { slot, .. }
            | Instruction::Clear { slot }
            | Instruction::Oracle { slot, .. } => visit(*slot),
            Instruction::RowsStart(start) => start.flag.iter().for_each(|flag| visit(*flag)),
            Instruction::SetFound => visit(self.found),
            Instruction::SelectInto(select) => target(&select.target, visit),
            Instruction::ChangeInto(change) => target(&change.target, visit),
            Instruction::Subquery(plan) => {
                visit(plan.slot);
                visit(self.row_count);
            }
            Instruction::RowCount { stores } | Instruction::Context { stores } => stored(stores, visit),
            Instruction::ShowError { state, message } => {
                visit(*state);
                visit(*message);
            }
            Instruction::StackedDiagnostics { items } => {
                items.iter().for_each(|(_, store)| visit(store.slot));
            }
            Instruction::Execute(execute) => execute.target.iter().for_each(|row| target(row, visit)),
            Instruction::LateValue(late) => visit(late.slot),
            Instruction::LateRow(late) => visit(late.slot),
            Instruction::LateStatement(late) => {
                late.target.iter().for_each(|(row, _)| target(row, visit));
            }
            Instruction::FetchCursor(fetch) => {
                fetch.target.iter().for_each(|fetched| target(&fetched.target, visit));
            }
            Instruction::CurrentRow(current) => current.slots.iter().for_each(|slot| visit(*slot)),
            _ => {}
        }
        let sets_found = matches!(
            instruction,
            Instruction::SelectInto(_)
                | Instruction::Perform(_)
                | Instruction::Change(_)
                | Instruction::ChangeInto(_)
                | Instruction::ReturnQuery(_)
                | Instruction::Fused(_)
                | Instruction::FetchCursor(_)
                | Instruction::LateStatement(_)
        );
        if sets_found {
            visit(self.found);
            visit(self.row_count);
        }
    }
}

/// Where the instruction jumps, if it may.
pub(crate) fn jump_target(instruction: &Instruction) -> Option<usize> {
    match instruction {
        Instruction::Jump { to }
        | Instruction::JumpIf { to, .. }
        | Instruction::JumpUnless { to, .. }
        | Instruction::RangeNext { end: to, .. }
        | Instruction::RowsNext { end: to, .. }
        | Instruction::JumpUnlessCaught { to, .. }
        | Instruction::CursorNext { end: to, .. }
        // An error inside of the block goes on there.
        | Instruction::Protect { handlers: to } => Some(*to as usize),
        Instruction::Fused(fused) => Some(fused.end()),
        _ => None,
    }
}

/// True where the next instruction is not the one behind it.
pub(crate) fn never_goes_on(instruction: &Instruction) -> bool {
    match instruction {
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

/// Where control may be after the instruction at `address`.
fn successors(address: usize, instruction: &Instruction) -> SmallVec<[usize; 2]> {
    let mut next: SmallVec<[usize; 2]> = smallvec![];
    if !never_goes_on(instruction) {
        next.push(address + 1);
    }
    next.extend(jump_target(instruction));
    next
}

/// The variables that are read before they are written, for each address of a piece of code; behind its end none is.
pub(crate) fn live(code: &[Instruction], variables: &Variables<'_>) -> Vec<SlotSet> {
    let mut live = vec![SlotSet::new(variables); code.len() + 1];
    loop {
        let mut changed = false;
        for (address, instruction) in code.iter().enumerate().rev() {
            let mut now = SlotSet::new(variables);
            for next in successors(address, instruction) {
                now.extend(&live[next.min(code.len())]);
            }
            variables.writes(instruction, &mut |slot| now.remove(slot));
            variables.reads(instruction, &mut |slot| now.insert(slot));
            changed |= live[address].extend(&now);
        }
        if !changed {
            return live;
        }
    }
}

/// What is known of the whole code of a procedure.
pub(crate) struct Flow<'a> {
    pub variables: &'a Variables<'a>,
    /// By address: what is used from there on.
    pub live: Vec<SlotSet>,
    /// To where and from where, for every jump, ascending.
    jumps: Vec<(usize, usize)>,
}

impl<'a> Flow<'a> {
    pub fn new(code: &[Instruction], variables: &'a Variables<'a>) -> Flow<'a> {
        let jumps = code.iter().enumerate();
        let jumps = jumps.filter_map(|(address, instruction)| Some((jump_target(instruction)?, address)));
        let mut jumps: Vec<(usize, usize)> = jumps.collect();
        jumps.sort_unstable();
        Flow { variables, live: live(code, variables), jumps }
    }

    /// From where these instructions are jumped to.
    pub fn jumps_into(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let first = self.jumps.partition_point(|(to, _)| *to < range.start);
        self.jumps[first..].iter().take_while(move |(to, _)| *to < range.end).map(|(_, from)| *from)
    }
}

/// What there is to know of a procedure besides its code.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// Values in the frame.
    pub slots: usize,
    /// Slot of FOUND.
    pub found: u16,
    /// Slots of the OUT and INOUT parameters.
    pub outputs: &'a [u16],
    /// What values of composite types are.
    pub types: &'a Arc<CompositeTypes>,
    /// What handlers of errors enclose.
    pub protected: &'a [Range<Address>],
}
