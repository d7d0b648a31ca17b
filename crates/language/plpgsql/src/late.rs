//! Records whose columns are told when the program runs: by EXECUTE, by a cursor that somebody else has opened, or by one of
//! several statements, whichever was run last.
//!
//! Such a record holds its row and the columns of it, beside the frame. What looks at it cannot be bound before they are known: it
//! stays a syntax tree, with the names that it mentions, and is bound when it is run, once for each set of columns. Steps pay for
//! that by the length of its text, and it has the privileges and policies of EXECUTE.

use crate::target::RowTarget;
use plan::scope::ScopeExcerpt;
use sqlparser::ast as sql;
use types::DataType;

/// A record of a program.
#[derive(Debug)]
pub struct NamedRecord {
    /// Slot of the flag that it has a row.
    pub flag: u16,
    pub name: Box<str>,
}

/// A statement that is bound when it runs.
#[derive(Debug)]
pub struct Late {
    pub statement: sql::Statement,
    pub scope: ScopeExcerpt,
    /// The records that it looks at, by number.
    pub records: Box<[u16]>,
    /// Bytes of its text.
    pub length: u64,
}

/// An expression as a query of one value.
#[derive(Debug)]
pub struct LateValue {
    pub query: Late,
    /// Where the value goes.
    pub slot: u16,
    pub wanted: Wanted,
    /// What is assigned.
    pub what: Box<str>,
}

/// What a value is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A value of this type, by an assignment.
    Type(DataType),
    /// The text that shows it.
    Shown,
    /// It stays what it is.
    Itself,
}

/// A statement of SQL by itself.
#[derive(Debug)]
pub struct LateStatement {
    pub statement: Late,
    /// Where the row of INTO goes, and the types that its columns are to have.
    pub target: Option<(RowTarget, Box<[DataType]>)>,
    /// PERFORM
    pub is_performed: bool,
}

/// The rows of a loop or of RETURN QUERY.
#[derive(Debug)]
pub struct LateRows {
    pub statement: Late,
    /// Types that the columns of its rows are to have; `None`: as they are.
    pub wanted: Option<Box<[DataType]>>,
}

/// A whole record as the value of RETURN and RETURN NEXT.
#[derive(Debug)]
pub struct LateRow {
    /// By number.
    pub record: u16,
    /// The slot of its flag.
    pub flag: u16,
    pub slot: u16,
    pub data_type: DataType,
    /// The types of the fields of that type, where it has any.
    pub fields: Option<Box<[DataType]>>,
    /// RETURN NEXT
    pub is_next: bool,
}

impl Late {
    /// Visits the variables that it may read.
    pub fn visit_slots(&self, visit: &mut dyn FnMut(u16)) {
        // All are slots of a program, which a u16 counts.
        self.scope.slots().for_each(|slot| visit(slot as u16));
    }
}
