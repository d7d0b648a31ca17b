//! What a procedure may touch: a walk over its instructions with the values that are the same on every state.
//!
//! A conditional jump is followed both ways. Where ways meet, only what both know stays known; an instruction behind is
//! walked again if that has become less. A variable becomes unknown once and for all, so the walk ends after at most
//! (places where ways meet) × (variables + 1) rounds.

use crate::program::FusedStatement;
use crate::program::{Address, CompiledProcedure, Instruction, RowsSource};
use crate::target::{Coercion, Store};
use execute::{Analysis, KnownFrame, refused};
use std::collections::BTreeMap;
use types::{ColumnSet, SqlError, Value};

/// Adds what a call may touch to an analysis. `arguments`: one per IN and INOUT parameter, `None` where it depends on
/// data.
///
/// # Errors
/// `0A000` for what is refused.
pub fn footprint(
    procedure: &CompiledProcedure,
    analysis: &mut Analysis<'_>,
    arguments: Vec<Option<Value>>,
) -> Result<(), SqlError> {
    analysis.within_routine(|analysis| walk(procedure, analysis, arguments))
}

fn walk(
    procedure: &CompiledProcedure,
    analysis: &mut Analysis<'_>,
    arguments: Vec<Option<Value>>,
) -> Result<(), SqlError> {
    let mut frame = KnownFrame::new(vec![Value::Null; procedure.slots]);
    frame.set(procedure.found, Some(Value::Boolean(false)));
    for (slot, value) in procedure.inputs.iter().zip(arguments) {
        frame.set(*slot, value);
    }
    let mut walk = Walk {
        procedure,
        analysis,
        targets: vec![false; procedure.code.len()],
        seen: BTreeMap::new(),
        pending: BTreeMap::from([(0, frame)]),
    };
    for instruction in &procedure.code {
        if let Some(to) = target(instruction) {
            walk.targets[to as usize] = true;
        }
    }
    walk.run()
}

/// Where an instruction may jump to.
fn target(instruction: &Instruction) -> Option<Address> {
    match instruction {
        Instruction::Jump { to }
        | Instruction::JumpIf { to, .. }
        | Instruction::JumpUnless { to, .. }
        | Instruction::RangeNext { end: to, .. }
        | Instruction::RowsNext { end: to, .. }
        | Instruction::CursorNext { end: to, .. }
        | Instruction::JumpUnlessCaught { to, .. } => Some(*to),
        Instruction::Fused(fused) => Some(fused.end() as Address),
        _ => None,
    }
}

struct Walk<'p, 'w, 'a> {
    procedure: &'p CompiledProcedure,
    analysis: &'w mut Analysis<'a>,
    /// By address: whether ways meet there.
    targets: Vec<bool>,
    /// What was known there when it was walked last.
    seen: BTreeMap<Address, KnownFrame>,
    /// Where the walk has still to go, and what is known there.
    pending: BTreeMap<Address, KnownFrame>,
}

impl Walk<'_, '_, '_> {
    /// Walks from the first address on, so that ways have met before what is behind is walked.
    fn run(&mut self) -> Result<(), SqlError> {
        while let Some((start, mut frame)) = self.pending.pop_first() {
            let mut at = start;
            loop {
                if self.targets[at as usize] && !self.arrive(at, &mut frame)? {
                    break;
                }
                self.analysis.count_instruction()?;
                let instruction = &self.procedure.code[at as usize];
                let goes_on = !matches!(
                    instruction,
                    Instruction::Jump { .. }
                        | Instruction::Return
                        | Instruction::ReturnValue { .. }
                        | Instruction::ReturnFirst
                        | Instruction::NoReturn
                        | Instruction::Fail(_)
                        | Instruction::Rethrow
                        | Instruction::CaseNotFound
                        | Instruction::Fused(_)
                );
                self.step(at, instruction, &mut frame)?;
                if let Some(to) = target(instruction) {
                    self.later(to, &frame)?;
                }
                if !goes_on {
                    break;
                }
                at += 1;
                let behind = self.pending.first_key_value().is_some_and(|(first, _)| *first <= at);
                if behind {
                    self.later(at, &frame)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Ways meet here. False where nothing is new.
    fn arrive(&mut self, at: Address, frame: &mut KnownFrame) -> Result<bool, SqlError> {
        self.analysis.count_frame(frame)?;
        let Some(seen) = self.seen.get_mut(&at) else {
            self.seen.insert(at, frame.clone());
            return Ok(true);
        };
        let changed = seen.join(frame);
        if changed {
            frame.clone_from(seen);
        }
        Ok(changed)
    }

    /// The walk goes to this address, too.
    fn later(&mut self, at: Address, frame: &KnownFrame) -> Result<(), SqlError> {
        self.analysis.count_frame(frame)?;
        match self.pending.get_mut(&at) {
            Some(pending) => {
                pending.join(frame);
            }
            None => {
                self.pending.insert(at, frame.clone());
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        at: Address,
        instruction: &Instruction,
        frame: &mut KnownFrame,
    ) -> Result<(), SqlError> {
        let found = self.procedure.found;
        for expression in instruction.expressions() {
            self.analysis.expression(expression, frame)?;
        }
        match instruction {
            Instruction::Assign { slot, value } => {
                let value = self.analysis.evaluate(value, frame);
                frame.set(*slot, value);
            }
            Instruction::Clear { slot } => frame.set(*slot, Some(Value::Null)),
            Instruction::RangeNext { slot, .. } => {
                frame.set(*slot, None);
                frame.set(found, None);
            }
            Instruction::RowsStart(start) => {
                self.rows(&start.source, frame)?;
                if let Some(flag) = start.flag {
                    frame.set(flag, Some(Value::Boolean(true)));
                }
            }
            Instruction::RowsNext { stores, .. } => {
                forget(stores, frame);
                frame.set(found, None);
            }
            Instruction::SetFound => frame.set(found, Some(Value::Boolean(true))),
            Instruction::SelectInto(select) => {
                self.analysis.select(&select.query, frame)?;
                self.stored(&select.target, frame);
            }
            Instruction::Oracle { slot, .. } => frame.set(*slot, None),
            Instruction::Subquery(plan) => {
                self.analysis.select(&plan.query, frame)?;
                frame.set(plan.slot, None);
            }
            Instruction::Perform(query) => {
                self.analysis.select(query, frame)?;
                frame.set(found, None);
            }
            Instruction::Change(statement) => {
                self.analysis.statement(statement, frame)?;
                frame.set(found, None);
            }
            Instruction::ChangeInto(change) => {
                self.analysis.statement(&change.statement, frame)?;
                self.stored(&change.target, frame);
            }
            Instruction::Fused(fused) => {
                touch_fused(self.analysis, fused, frame);
                frame.set(found, None);
                for (slot, value) in fused.assigned_outside() {
                    let value = self.analysis.evaluate(value, frame);
                    frame.set(*slot, value);
                }
            }
            Instruction::Call(call) => {
                self.analysis.statement(&call.statement, frame)?;
                for (position, variable) in call.variables.iter().enumerate() {
                    if let Some(variable) = variable
                        && self.analysis.may_assign(&call.statement, position)
                    {
                        frame.set(variable.slot, None);
                    }
                }
            }
            Instruction::RowCount { stores } | Instruction::Context { stores } => forget(stores, frame),
            Instruction::ReturnQuery(query) => {
                self.rows(&query.source, frame)?;
                frame.set(found, None);
            }
            Instruction::LateValue(_) | Instruction::LateStatement(_) | Instruction::LateRow(_) => {
                return Err(refused("a record whose columns only running tells"));
            }
            Instruction::Execute(_) => return Err(refused("EXECUTE of a text that is computed")),
            Instruction::Protect { handlers } => {
                // Handlers find what any instruction of the block has left.
                let mut left = frame.clone();
                self.forget_written(at..*handlers, &mut left);
                self.later(*handlers, &left)?;
            }
            Instruction::ShowError { state, message } => {
                frame.set(*state, None);
                frame.set(*message, None);
            }
            Instruction::StackedDiagnostics { items } => {
                items.iter().for_each(|(_, store)| frame.set(store.slot, None));
            }
            Instruction::OpenCursor(open) => {
                for (store, value) in &open.arguments {
                    // What a conversion makes of it is not followed.
                    let value = match store.coercion {
                        Coercion::None => self.analysis.evaluate(value, frame),
                        _ => None,
                    };
                    frame.set(store.slot, value);
                }
                self.rows(&open.query.source, frame)?;
                frame.set(open.variable.slot, None);
            }
            Instruction::FetchCursor(fetch) => {
                fetch.target.iter().for_each(|fetched| self.stored(&fetched.target, frame));
                frame.set(found, None);
            }
            Instruction::CursorNext { stores, .. } => {
                forget(stores, frame);
                frame.set(found, None);
            }
            Instruction::CurrentRow(current) => {
                current.slots.iter().for_each(|slot| frame.set(*slot, None));
            }
            Instruction::CloseCursor(_)
            | Instruction::LeaveCursor { .. }
            | Instruction::RefuseNull { .. }
            | Instruction::RequireRecord { .. }
            | Instruction::Jump { .. }
            | Instruction::JumpIf { .. }
            | Instruction::JumpUnless { .. }
            | Instruction::RangeStart(_)
            | Instruction::LookAtFound
            | Instruction::Raise(_)
            | Instruction::Assert(_)
            | Instruction::CaseNotFound
            | Instruction::ReturnValue { .. }
            | Instruction::ReturnNext { .. }
            | Instruction::ReturnFirst
            | Instruction::NoReturn
            | Instruction::Fail(_)
            | Instruction::Leave { .. }
            | Instruction::JumpUnlessCaught { .. }
            | Instruction::Rethrow
            | Instruction::Return => {}
        }
        Ok(())
    }

    /// What the rows of a loop or of RETURN QUERY may touch.
    fn rows(&mut self, source: &RowsSource, frame: &KnownFrame) -> Result<(), SqlError> {
        match source {
            RowsSource::Query(query) => self.analysis.select(query, frame),
            RowsSource::Change(statement) => self.analysis.statement(statement, frame),
            RowsSource::Dynamic(_) => Err(refused("EXECUTE of a text that is computed")),
            RowsSource::Late(_) => Err(refused("a record whose columns only running tells")),
        }
    }

    /// Forgets what instructions may write, and what is computed from it is unknown by then.
    fn forget_written(&self, range: std::ops::Range<Address>, frame: &mut KnownFrame) {
        for instruction in &self.procedure.code[range.start as usize..range.end as usize] {
            written(instruction, &mut |slot| frame.set(slot, None));
        }
        frame.set(self.procedure.found, None);
    }

    /// A row went into variables.
    fn stored(&self, target: &crate::target::RowTarget, frame: &mut KnownFrame) {
        forget(&target.stores, frame);
        frame.set(self.procedure.found, None);
        if let Some(flag) = target.flag {
            frame.set(flag, Some(Value::Boolean(true)));
        }
    }
}

fn forget(stores: &[Store], frame: &mut KnownFrame) {
    stores.iter().for_each(|store| frame.set(store.slot, None));
}

/// Visits the variables that an instruction may write.
fn written(instruction: &Instruction, visit: &mut dyn FnMut(u16)) {
    let stored = |stores: &[Store], visit: &mut dyn FnMut(u16)| {
        stores.iter().for_each(|store| visit(store.slot));
    };
    match instruction {
        Instruction::Assign { slot, .. }
        | Instruction::Clear { slot }
        | Instruction::RangeNext { slot, .. }
        | Instruction::Oracle { slot, .. } => visit(*slot),
        Instruction::RowsStart(start) => start.flag.iter().for_each(|flag| visit(*flag)),
        Instruction::RowsNext { stores, .. }
        | Instruction::CursorNext { stores, .. }
        | Instruction::Context { stores }
        | Instruction::RowCount { stores } => stored(stores, visit),
        Instruction::OpenCursor(open) => {
            visit(open.variable.slot);
            open.arguments.iter().for_each(|(store, _)| visit(store.slot));
        }
        Instruction::FetchCursor(fetch) => {
            if let Some(fetched) = &fetch.target {
                stored(&fetched.target.stores, visit);
                fetched.target.flag.iter().for_each(|flag| visit(*flag));
            }
        }
        Instruction::CurrentRow(current) => current.slots.iter().for_each(|slot| visit(*slot)),
        Instruction::Subquery(plan) => visit(plan.slot),
        Instruction::Fused(fused) => fused.assigned_outside().iter().for_each(|(slot, _)| visit(*slot)),
        Instruction::Call(call) => call.variables.iter().flatten().for_each(|variable| visit(variable.slot)),
        Instruction::ShowError { state, message } => [*state, *message].into_iter().for_each(visit),
        Instruction::StackedDiagnostics { items } => items.iter().for_each(|(_, store)| visit(store.slot)),
        Instruction::SelectInto(select) => {
            stored(&select.target.stores, visit);
            select.target.flag.iter().for_each(|flag| visit(*flag));
        }
        Instruction::ChangeInto(change) => {
            stored(&change.target.stores, visit);
            change.target.flag.iter().for_each(|flag| visit(*flag));
        }
        // Those that the analysis refuses, and those that write nothing but FOUND.
        _ => {}
    }
}

/// What statements that are one command on one row may touch.
fn touch_fused(analysis: &mut Analysis<'_>, fused: &FusedStatement, frame: &KnownFrame) {
    let Some(range) = analysis.key_range(fused.key(), frame) else { return };
    let (uses, writes) = fused.columns();
    let shown = if fused.may_show_row() { ColumnSet::ALL } else { ColumnSet::EMPTY };
    analysis.read(fused.table(), range.clone(), uses | shown | ColumnSet::EXISTS);
    analysis.write(fused.table(), range, writes);
}
