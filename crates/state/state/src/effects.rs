use crate::{Endorsed, Footprint, KeyRange, Snapshot, StoreError};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use types::{Catalog, ColumnSet, Key, Row, SqlError, StatementResult, TableId, Value};

/// Names a row, whether it exists or not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowId {
    /// Its table.
    pub table: TableId,
    /// Its primary key.
    pub key: Key,
}

/// Columns of a row whose before-image the transaction looked at. `exists` belongs to every read.
#[derive(Clone, Debug)]
pub struct Read {
    /// Which row.
    pub row: RowId,
    /// Which columns.
    pub columns: ColumnSet,
}

/// A condition on the rows of one table, as conflict detection sees it.
pub trait RowPredicate: Send + Sync {
    /// False only if no row with these values can match. `known[c]` is the value of column `c` where it is known;
    /// every other column may have any value, NULL included.
    fn may_match(&self, known: &[Option<Value>]) -> bool;
}

/// A predicate over an interval that the transaction evaluated (`protocols.md`, section 1).
#[derive(Clone)]
pub struct Scan {
    /// Which table.
    pub table: TableId,
    /// The interval that was really examined: LIMIT stops it early.
    pub range: KeyRange,
    /// Columns of predicate and projection, and `exists`.
    pub columns: ColumnSet,
    /// Columns of the predicate alone.
    pub predicate_columns: ColumnSet,
    /// The condition; `None`: every row of the interval is in the result.
    pub predicate: Option<Arc<dyn RowPredicate>>,
    /// Keys of the rows in the result on the snapshot, ascending.
    pub result: Vec<Key>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("table", &self.table)
            .field("range", &self.range)
            .field("columns", &self.columns)
            .field("predicate_columns", &self.predicate_columns)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

/// What a command makes of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum RowChange {
    /// The row is not there, or the command's WHERE is not true for it: nothing happens.
    Unmatched,
    /// The row has this value now.
    Put(Row),
    /// The row is gone.
    Delete,
}

/// A function of one row and of nothing else: the same row gives the same change on every node.
pub trait RowFunction: Send + Sync {
    /// Applies to the row as it stands at the command's place in the order (`None`: there is none).
    ///
    /// # Errors
    /// A constraint, an overflow, a duplicate key: a business abort of the whole transaction.
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError>;
}

/// What conflict detection must know of a command's form.
#[derive(Clone, PartialEq, Debug)]
pub enum CommandKind {
    /// Makes this row; an error if the key exists.
    Insert(Row),
    /// Assigns columns of the row if it exists and matches. `known[i]`: ordinal and new value of a column whose new
    /// value does not depend on the row.
    Update {
        /// Ordinal and value, ascending.
        known: Vec<(u16, Value)>,
    },
    /// Removes the row if it exists and matches.
    Delete,
}

/// `column = column + amount` on an integer column, without WHERE. Without CHECK it fails only where the sum leaves the
/// column's range, so many of them on one row can be judged together ([`Command::unchecked_addition`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addition {
    /// One more than the ordinal: commands are many and should be short.
    ordinal: NonZeroU32,
    /// A CHECK looks at the row that comes out.
    checked: bool,
    /// What is added.
    pub amount: i64,
    /// The least sum that the column takes.
    pub smallest: i64,
    /// The greatest sum that the column takes.
    pub largest: i64,
}

impl Addition {
    /// Adds `amount` to the column of this ordinal, whose values are from `smallest` to `largest`.
    pub fn new(ordinal: u16, amount: i64, smallest: i64, largest: i64) -> Addition {
        let ordinal = NonZeroU32::MIN.saturating_add(u32::from(ordinal));
        Addition { ordinal, checked: false, amount, smallest, largest }
    }

    /// The same where a CHECK looks at the row that comes out.
    pub fn with_check(self, checked: bool) -> Addition {
        Addition { checked, ..self }
    }

    /// Ordinal of the column.
    pub fn ordinal(&self) -> u16 {
        (self.ordinal.get() - 1) as u16
    }
}

/// A change of one row, decided when its turn comes and not when it was simulated.
#[derive(Clone)]
pub struct Command {
    /// Which row.
    pub row: RowId,
    /// What happens to it.
    pub function: Arc<dyn RowFunction>,
    /// Its form.
    pub kind: CommandKind,
    /// Columns that its assignments, WHERE, CHECK and existence use. They are not reads: they are evaluated at the
    /// command's place.
    pub uses: ColumnSet,
    /// Columns that it writes; insert and delete write all of them.
    pub writes: ColumnSet,
    /// `Some(matched)`: the contract or the client looked at whether a row matched (FOUND, ROW_COUNT, the command
    /// tag), and this is what it saw. If it is otherwise at the command's place, the transaction runs again.
    pub guard: Option<bool>,
    /// False only if `function` can never return an error.
    pub can_fail: bool,
    /// The command adds an amount to a column and does nothing else.
    pub addition: Option<Addition>,
}

impl Command {
    /// The addition, if it fails only where the sum leaves the column's range.
    pub fn unchecked_addition(&self) -> Option<Addition> {
        self.addition.filter(|addition| !addition.checked)
    }
}

// Two cache lines.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Command>() == 128);

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("row", &self.row)
            .field("kind", &self.kind)
            .field("uses", &self.uses)
            .field("writes", &self.writes)
            .field("guard", &self.guard)
            .field("can_fail", &self.can_fail)
            .finish_non_exhaustive()
    }
}

/// What a simulation found.
#[derive(Clone, Debug)]
pub struct Effects {
    /// Rows and columns looked at. A row may stand several times.
    pub reads: Vec<Read>,
    /// Predicates evaluated.
    pub scans: Vec<Scan>,
    /// Changes, in program order. Empty where `result` is an error; then everything that commands had used until
    /// the error stands among the reads.
    pub commands: Vec<Command>,
    /// What the client gets, or the error that the contract ended with.
    pub result: Result<Vec<StatementResult>, SqlError>,
    /// Logical steps spent.
    pub steps: u64,
    /// The catalog as a schema change leaves it; such a transaction runs alone.
    pub catalog: Option<Arc<Catalog>>,
}

/// A transaction that can be executed, as often as a protocol needs, with the same effects on the same snapshot.
pub trait Simulate: Send + Sync {
    /// Runs on `snapshot` and changes nothing.
    ///
    /// # Errors
    /// The snapshot cannot be read: the transaction has come to nothing, whatever it made of that itself.
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError>;

    /// What it may touch on any state with this catalog, from its statements alone: at least what an execution touches.
    /// For protocols that plan before they execute.
    ///
    /// # Errors
    /// `0A000` names what of it cannot be analysed.
    fn footprint(&self, _catalog: &Catalog) -> Result<Footprint, SqlError> {
        Err(SqlError::unsupported("the analysis of this transaction before it runs"))
    }

    /// The simulation that came with it, where transactions are executed before they are ordered.
    fn endorsed(&self) -> Option<&Endorsed> {
        None
    }
}

/// The value that a row has from now on; `None`: it is gone.
#[derive(Clone, PartialEq, Debug)]
pub struct AfterImage {
    /// Which row.
    pub row: RowId,
    /// Its value.
    pub value: Option<Row>,
}
