//! What a procedure may touch: a walk over its instructions with the values that are the same on every state.
//!
//! A conditional jump is followed both ways. Where ways meet, only what both know stays known; an instruction behind is
//! walked again if that has become less. A variable becomes unknown once and for all, so the walk ends after at most
//! (places where ways meet) × (variables + 1) rounds.

use crate::analysis::Runs;
use crate::program::{Address, CompiledProcedure, FusedStatement, Instruction};
use crate::target::Coercion;
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

/// Where an instruction may jump to. Handlers are gone to with what any instruction of their block leaves.
fn target(instruction: &Instruction) -> Option<Address> {
    instruction.jump().filter(|_| !matches!(instruction, Instruction::Protect { .. }))
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
                // What is behind a RAISE is walked whatever its level.
                let goes_on = !instruction.never_goes_on() || matches!(instruction, Instruction::Raise(_));
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
        if let Instruction::OpenCursor(open) = instruction {
            for (store, value) in &open.arguments {
                // What a conversion makes of it is not followed.
                let value = match store.coercion {
                    Coercion::None => self.analysis.evaluate(value, frame),
                    _ => None,
                };
                frame.set(store.slot, value);
            }
        }
        match instruction.runs() {
            None => {}
            Some(Runs::Query(query)) => self.analysis.select(query, frame)?,
            Some(Runs::Statement(statement)) => self.analysis.statement(statement, frame)?,
            Some(Runs::Dynamic(_)) => return Err(refused("EXECUTE of a text that is computed")),
            Some(Runs::Late(_)) => return Err(refused("a record whose columns only running tells")),
        }
        match instruction {
            Instruction::Assign { slot, value } => {
                let value = self.analysis.evaluate(value, frame);
                frame.set(*slot, value);
            }
            Instruction::Clear { slot } => frame.set(*slot, Some(Value::Null)),
            Instruction::SetFound => frame.set(found, Some(Value::Boolean(true))),
            Instruction::Fused(fused) => {
                touch_fused(self.analysis, fused, frame);
                frame.set(found, None);
                for (slot, value) in fused.assigned_outside() {
                    let value = self.analysis.evaluate(value, frame);
                    frame.set(*slot, value);
                }
            }
            Instruction::Call(call) => {
                for (position, variable) in call.variables.iter().enumerate() {
                    if let Some(variable) = variable
                        && self.analysis.may_assign(&call.statement, position)
                    {
                        frame.set(variable.slot, None);
                    }
                }
            }
            Instruction::LateRow(_) => return Err(refused("a record whose columns only running tells")),
            Instruction::Protect { handlers } => {
                // Handlers find what any instruction of the block has left.
                let mut left = frame.clone();
                self.forget_written(at..*handlers, &mut left);
                self.later(*handlers, &left)?;
            }
            Instruction::OpenCursor(open) => frame.set(open.variable.slot, None),
            other => {
                other.visit_written(&mut |slot| frame.set(slot, None));
                if other.counts_rows() || other.takes_turn() {
                    frame.set(found, None);
                }
                if let Some(flag) = other.record_flag() {
                    frame.set(flag, Some(Value::Boolean(true)));
                }
            }
        }
        Ok(())
    }

    /// Forgets what instructions may write, and what is computed from it is unknown by then.
    fn forget_written(&self, range: std::ops::Range<Address>, frame: &mut KnownFrame) {
        for instruction in &self.procedure.code[range.start as usize..range.end as usize] {
            if !is_refused(instruction) {
                instruction.visit_written(&mut |slot| frame.set(slot, None));
            }
        }
        frame.set(self.procedure.found, None);
    }
}

/// Whether the walk ends where it comes to such an instruction.
fn is_refused(instruction: &Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Execute(_)
            | Instruction::LateValue(_)
            | Instruction::LateStatement(_)
            | Instruction::LateRow(_)
    )
}

/// What statements that are one command on one row may touch.
fn touch_fused(analysis: &mut Analysis<'_>, fused: &FusedStatement, frame: &KnownFrame) {
    let Some(range) = analysis.key_range(fused.key(), frame) else { return };
    let (uses, writes) = fused.columns();
    let shown = if fused.may_show_row() { ColumnSet::ALL } else { ColumnSet::EMPTY };
    analysis.read(fused.table(), range.clone(), uses | shown | ColumnSet::EXISTS);
    analysis.write(fused.table(), range, writes);
}
