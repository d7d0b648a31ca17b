//! Why a read could not be avoided.

/// Why a read of the procedure registers what it reads instead of being part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The library was compiled without fusion.
    SwitchedOff,
    /// The procedure is too long to be analysed.
    TooLong,
    /// It reads an interval, not one row by its whole primary key.
    NotByKey,
    /// It changes columns in a PRIMARY KEY, UNIQUE or FOREIGN KEY constraint, whose values must be known at simulation.
    Constrained,
    /// It changes a table with triggers, which get the row.
    Triggers(String),
    /// It reads one row, but with grouping, DISTINCT, ORDER BY, LIMIT or OFFSET.
    NotPlain,
    /// A FOR loop goes through the rows.
    RowLoop,
    /// A cursor has them, or is used in between.
    Cursor,
    /// Nothing after it changes the same row by the same key.
    NotChanged,
    /// Another region needs it in front.
    Overlaps,
    /// This variable holds something of the row, and is used after the change or given to the caller.
    UsedLater(u16),
    /// FOUND or ROW_COUNT is looked at afterwards and may come from the read.
    FoundUsedLater,
    /// FOUND of an earlier statement is looked at between read and change.
    EarlierFound,
    /// Between read and change this table is changed: another row, or the same by a key that is written differently.
    OtherChange(String),
    /// Between read and change this table is read in a way that cannot come first: it depends on what was read or
    /// decided before, or it may fail.
    OtherRead(String),
    /// Between read and change this variable of the key is assigned.
    KeyAssigned(u16),
    /// RETURNING shows the row.
    Returning,
    /// Between read and change a procedure or function is called.
    Call,
    /// Between read and change a text is executed.
    Execute,
    /// In between, something is said to the client that may depend on the row.
    Message,
    /// A handler of errors encloses it: what fails at a command's place could not be handled.
    Handler,
    /// An oracle is asked in between.
    Oracle,
    /// Between read and change constraints are set.
    Constraints,
    /// Between read and change a notification is sent that may depend on the row.
    Notifies,
    /// Between read and change there is a loop.
    Loop,
    /// Between read and change ROW_COUNT is asked.
    RowCount,
    /// Between read and change the block, loop or procedure may be left.
    Leaves,
    /// The change can be reached without the read.
    EnteredInside,
    /// The row is updated in one case and deleted in another.
    MixedChanges,
}

impl Obstacle {
    /// In words; `name` gives the name of a variable.
    pub fn describe(&self, name: &dyn Fn(u16) -> String) -> String {
        match self {
            Obstacle::SwitchedOff => "fusion is switched off".to_string(),
            Obstacle::TooLong => "the procedure is too long to be analysed".to_string(),
            Obstacle::NotByKey => "it does not give the whole primary key".to_string(),
            Obstacle::Constrained => {
                "it changes columns in a PRIMARY KEY, UNIQUE or FOREIGN KEY constraint, whose values must be known"
                    .to_string()
            }
            Obstacle::Triggers(table) => {
                format!("the change of {table} fires triggers, which run with the row at hand")
            }
            Obstacle::NotPlain => {
                "it groups, sorts or limits; only a plain SELECT of one row is fused".to_string()
            }
            Obstacle::RowLoop => "a FOR loop goes through its rows".to_string(),
            Obstacle::Cursor => "a cursor is used".to_string(),
            Obstacle::NotChanged => "nothing after it changes the same row by the same key".to_string(),
            Obstacle::Overlaps => "what is fused around it needs its value first".to_string(),
            Obstacle::UsedLater(slot) => {
                format!("{} depends on the row and is used after the change or returned", name(*slot))
            }
            Obstacle::FoundUsedLater => "FOUND or ROW_COUNT is looked at afterwards".to_string(),
            Obstacle::EarlierFound => {
                "FOUND of an earlier statement is looked at between read and change".to_string()
            }
            Obstacle::OtherChange(table) => {
                format!("another row, or one by another key, of {table} is changed in between")
            }
            Obstacle::OtherRead(table) => {
                format!("the read of {table} in between depends on what comes before it, or may fail")
            }
            Obstacle::KeyAssigned(slot) => {
                format!("{}, a part of the key, is assigned in between", name(*slot))
            }
            Obstacle::Returning => "the change shows the row by RETURNING".to_string(),
            Obstacle::Call => "a procedure or function is called in between".to_string(),
            Obstacle::Message => "RAISE says something to the client in between".to_string(),
            Obstacle::Execute => "EXECUTE runs a text in between".to_string(),
            Obstacle::Handler => "an EXCEPTION block encloses it or stands in between".to_string(),
            Obstacle::Oracle => "an oracle is asked in between".to_string(),
            Obstacle::Constraints => "constraints are set in between".to_string(),
            Obstacle::Notifies => "NOTIFY stands in between".to_string(),
            Obstacle::Loop => "there is a loop in between".to_string(),
            Obstacle::RowCount => "ROW_COUNT is asked in between".to_string(),
            Obstacle::Leaves => "the block, loop or procedure may be left in between".to_string(),
            Obstacle::EnteredInside => "the change can be reached without the read".to_string(),
            Obstacle::MixedChanges => "the row is updated in one case and deleted in another".to_string(),
        }
    }
}
