//! What is known of a record at a place of the program: the columns of the rows that it holds there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use types::DataType;

/// The columns of the rows that a record holds.
#[derive(Debug)]
pub(super) struct Shape {
    pub fields: Vec<(String, DataType)>,
    pub slots: Vec<u16>,
}

/// What is known of a record.
pub(super) struct RecordInfo {
    /// Slot of the flag; it also tells which record is meant.
    pub flag: u16,
    pub name: String,
    pub constant: bool,
    /// The columns of its rows at this place of the program; `None` where nothing has told them.
    pub shape: Option<Rc<Shape>>,
    /// Its rows may have different columns here.
    pub mixed: bool,
    /// All that it has had.
    pub shapes: Vec<Rc<Shape>>,
    /// How often its shape has changed going down the program.
    pub changes: u32,
    /// It is declared with these columns: rows of others become rows of them.
    pub fixed: bool,
    /// A row has certainly been assigned at this point of the program.
    pub assigned: bool,
}

impl RecordInfo {
    /// CONSTANT
    pub fn is_constant(&self) -> bool {
        self.constant
    }

    /// Whether this is the slot of one of its fields.
    pub fn has(&self, slot: usize) -> bool {
        let slots = self.shape.iter().flat_map(|shape| &shape.slots);
        slots.into_iter().any(|known| usize::from(*known) == slot)
    }
}

/// What is known of a record at a place of the program.
#[derive(Clone)]
pub(super) struct RecordState {
    pub shape: Option<Rc<Shape>>,
    pub mixed: bool,
    pub changes: u32,
    pub assigned: bool,
}

/// A loop, and the records that it began with.
pub(super) struct LoopRecords {
    pub before: Vec<RecordState>,
    /// By index: fields have been used that came from in front of the loop.
    pub used: RefCell<BTreeSet<usize>>,
}

/// Ways that start at one place and meet again.
pub(super) struct Branches {
    pub before: Vec<RecordState>,
    pub ends: Vec<Vec<RecordState>>,
}
