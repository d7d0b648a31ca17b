/// What an organisation's database has refused or failed at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DatabaseError {
    /// What kind of failure it is, which decides what happens next.
    pub kind: ErrorKind,
    /// For people: what was expected, what came, what to do.
    pub message: String,
}

/// What can be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The database is away, or stops: it is tried again.
    Away,
    /// Name, password or privileges do not do.
    Access,
    /// Somebody holds a lock for too long.
    Locked,
    /// There is a row already.
    Duplicate,
    /// The disk is full, or nothing may be written.
    Unwritable,
    /// A table is not what it must be.
    Unfit,
    /// A value that the database cannot hold.
    Value,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// It comes from what statements say, and would come again; not from where the database is or who holds it.
    pub(crate) fn is_of_statements(self) -> bool {
        matches!(self, ErrorKind::Duplicate | ErrorKind::Unfit | ErrorKind::Value | ErrorKind::Other)
    }
}

impl DatabaseError {
    /// An error of a kind, with its text.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> DatabaseError {
        DatabaseError { kind, message: message.into() }
    }

    /// The same, with what was being done in front.
    pub(crate) fn during(self, what: impl std::fmt::Display) -> DatabaseError {
        DatabaseError { message: format!("{what}: {}", self.message), kind: self.kind }
    }
}
