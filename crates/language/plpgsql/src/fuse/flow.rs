//! What instructions read and write, where they go, and which variables are used after them.

use crate::program::{Address, Instruction};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;
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
        instruction.visit_read(visit);
        match instruction {
            Instruction::LookAtFound => visit(self.found),
            Instruction::RowCount { .. } => visit(self.row_count),
            Instruction::Return => self.outputs.iter().for_each(|slot| visit(*slot)),
            _ => {}
        }
    }

    /// Visits every variable that the instruction certainly writes, if it ends without an error.
    pub fn writes(&self, instruction: &Instruction, visit: &mut dyn FnMut(u16)) {
        if instruction.writes_certainly() {
            instruction.visit_written(visit);
        }
        match instruction {
            Instruction::SetFound => visit(self.found),
            Instruction::Subquery(_) => visit(self.row_count),
            other if other.counts_rows() => {
                visit(self.found);
                visit(self.row_count);
            }
            _ => {}
        }
    }
}

/// Where the instruction jumps, if it may.
pub(crate) fn jump_target(instruction: &Instruction) -> Option<usize> {
    instruction.jump().map(|to| to as usize)
}

/// Where control may be after the instruction at `address`.
fn successors(address: usize, instruction: &Instruction) -> SmallVec<[usize; 2]> {
    let mut next: SmallVec<[usize; 2]> = smallvec![];
    if !instruction.never_goes_on() {
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
