//! One call of one procedure, and what it has come to: values, loops, cursors, errors at hand.

use crate::program::{Address, CompiledProcedure};
use execute::{Place, Savepoint};
use plan::needs::Needs;
use plan::statement::BoundStatement;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{DataType, OutputColumn, SqlError, Value};

/// Values of a frame that need no allocation.
pub(crate) const FRAME_INLINE: usize = 16;

/// One call of one procedure.
pub(super) struct Activation<'p> {
    pub procedure: &'p CompiledProcedure,
    pub frame: SmallVec<[Value; FRAME_INLINE]>,
    pub ranges: SmallVec<[Range; 2]>,
    pub cursors: SmallVec<[Cursor; 1]>,
    pub row_count: u64,
    /// FOUND comes from a change whose matches nobody has looked at.
    pub found_unseen: bool,
    /// The same of ROW_COUNT.
    pub row_count_unseen: bool,
    /// Blocks with handlers that are running, the innermost last.
    pub protections: Vec<Protection>,
    /// Errors that are being handled, the innermost last, each with where it has come from.
    pub caught: Vec<(SqlError, Vec<Place>)>,
    /// The value of RETURN.
    pub returned: Option<Vec<Value>>,
    /// The rows of RETURN NEXT and RETURN QUERY.
    pub rows: Vec<Vec<Value>>,
    /// The cursors that loops run over, the outermost first.
    pub loop_cursors: Vec<Option<LoopCursor>>,
    /// The rows of records whose columns running tells, by number.
    pub told: Vec<Option<ToldRow>>,
    /// What has been bound for such records, by its address.
    pub late: BTreeMap<Address, Arc<BoundLate>>,
    /// The types of values that stay what they are, by slot.
    pub late_types: BTreeMap<u16, DataType>,
}

/// The numbers that an integer loop has not had.
#[derive(Clone, Copy, Default)]
pub(super) struct Range {
    pub next: i64,
    pub last: i64,
    /// Never 0 in a loop that runs; negative downwards.
    pub step: i64,
    pub had_turn: bool,
}

impl Range {
    /// The next number.
    #[inline]
    pub fn take(&mut self) -> Option<i32> {
        let over = if self.step < 0 { self.next < self.last } else { self.next > self.last };
        if over {
            return None;
        }
        let number = i32::try_from(self.next).ok()?;
        self.next += self.step;
        self.had_turn = true;
        Some(number)
    }
}

/// The rows that a row loop has not had.
#[derive(Default)]
pub(super) struct Cursor {
    pub rows: std::vec::IntoIter<Vec<Value>>,
    pub columns: Arc<[OutputColumn]>,
    pub had_turn: bool,
    /// What they all take.
    pub space: u64,
}

/// The cursor that a loop runs over.
pub(super) struct LoopCursor {
    pub name: String,
    pub had_turn: bool,
    /// The variable that has got the cursor's name by the loop.
    pub named: Option<u16>,
}

/// A block with handlers that is running.
pub(super) struct Protection {
    pub handlers: Address,
    pub savepoint: Savepoint,
    /// Errors that were being handled when it began.
    pub caught: usize,
}

/// The row that such a record holds.
#[derive(Debug)]
pub(super) struct ToldRow {
    pub columns: Arc<[OutputColumn]>,
    pub values: Vec<Value>,
}

/// A statement, bound for records of these columns.
pub(super) struct BoundLate {
    pub columns: Vec<Arc<[OutputColumn]>>,
    pub statement: BoundStatement,
    pub needs: Needs,
}
