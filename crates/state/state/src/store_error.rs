use std::fmt;
use std::sync::{Arc, OnceLock};
use types::{SqlError, SqlState};

/// Why a store cannot read or write: what it was doing, with which file, and what came back.
///
/// It is no property of a transaction and never becomes an outcome: whoever meets one passes it up, and the node stops. One
/// pointer, so that results that may be one stay short.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(Arc<Failure>);

#[derive(PartialEq, Eq)]
struct Failure {
    action: Action,
    place: String,
    cause: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    Write,
    /// What was read is not what was written.
    ReadDamaged,
    /// Rows that stand elsewhere.
    ReadLost,
}

impl StoreError {
    /// A read that failed. `place`: the file; `cause`: what the system says.
    #[cold]
    pub fn read(place: impl fmt::Display, cause: impl fmt::Display) -> StoreError {
        StoreError::new(Action::Read, place, cause)
    }

    /// A write that failed. `place`: the file; `cause`: what the system says.
    #[cold]
    pub fn write(place: impl fmt::Display, cause: impl fmt::Display) -> StoreError {
        StoreError::new(Action::Write, place, cause)
    }

    /// What was read is not what was written: somebody or a disk has changed it since. `place`: the file, or the folder; `cause`:
    /// what shows it.
    #[cold]
    pub fn damaged(place: impl fmt::Display, cause: impl fmt::Display) -> StoreError {
        StoreError::new(Action::ReadDamaged, place, cause)
    }

    /// Rows stand elsewhere, and whoever has them does not show them any more as they were. `place`: which, and where; `cause`: what
    /// shows it.
    #[cold]
    pub fn lost(place: impl fmt::Display, cause: impl fmt::Display) -> StoreError {
        StoreError::new(Action::ReadLost, place, cause)
    }

    /// Whether the state can be made again, and nobody has to mend anything before: no disk is full, none fails.
    pub fn can_be_made_again(&self) -> bool {
        matches!(self.0.action, Action::ReadDamaged | Action::ReadLost)
    }

    /// Whether files are damaged.
    pub fn is_damage(&self) -> bool {
        self.0.action == Action::ReadDamaged
    }

    fn new(action: Action, place: impl fmt::Display, cause: impl fmt::Display) -> StoreError {
        StoreError(Arc::new(Failure { action, place: place.to_string(), cause: cause.to_string() }))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEND: &str = "mend that and start the node again: it goes on from what is on its disk";
        let (action, advice) = match self.action {
            Action::Read => ("read", MEND),
            Action::Write => ("write", MEND),
            Action::ReadDamaged => {
                ("read", "it is damaged: the node makes its state again, while it runs or when it is started")
            }
            Action::ReadLost => ("read", "the node makes its state again as soon as they can be read"),
        };
        let Failure { place, cause, .. } = self;
        write!(f, "the store of the state cannot {action} {place}: {cause}; {advice}")
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreError({self})")
    }
}

/// What an execution unwinds with, and what a client hears whose query alone has failed.
impl From<StoreError> for SqlError {
    #[cold]
    fn from(error: StoreError) -> SqlError {
        SqlError::new(SqlState::IO_ERROR, error.to_string())
    }
}

/// Keeps the first failure of work that goes on, on one thread or many, where each part of it cannot stop by itself. What
/// the work came to counts only where there was none.
#[derive(Debug, Default)]
pub struct FirstFailure(OnceLock<StoreError>);

impl FirstFailure {
    /// What was read; nothing where that failed.
    #[inline]
    pub fn keep<T: Default>(&self, read: Result<T, StoreError>) -> T {
        match read {
            Ok(found) => found,
            Err(error) => {
                self.note(error);
                T::default()
            }
        }
    }

    /// Keeps a failure, unless there was one before.
    #[cold]
    pub fn note(&self, error: StoreError) {
        let _ = self.0.set(error);
    }

    /// The first failure so far.
    #[inline]
    pub fn get(&self) -> Option<&StoreError> {
        self.0.get()
    }

    /// What the work came to.
    ///
    /// # Errors
    /// The first failure.
    #[inline]
    pub fn check<T>(self, done: T) -> Result<T, StoreError> {
        match self.0.into_inner() {
            None => Ok(done),
            Some(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_file_and_the_cause_and_what_to_do() {
        let error = StoreError::read("/data/rows.7", std::io::Error::from_raw_os_error(5));
        let message = error.to_string();
        assert_eq!(
            message,
            "the store of the state cannot read /data/rows.7: Input/output error (os error 5); mend that and start the node again: it goes on from what is on its disk"
        );
        let damaged = StoreError::damaged("/data/rows.7", "its checksum is another one");
        assert!(damaged.is_damage() && !error.is_damage());
        let lost = StoreError::lost("rows at node two", "it has started again");
        assert!(lost.can_be_made_again() && damaged.can_be_made_again() && !error.can_be_made_again());
        assert!(!lost.is_damage());
        assert_eq!(
            damaged.to_string(),
            "the store of the state cannot read /data/rows.7: its checksum is another one; it is damaged: the node makes its state again, while it runs or when it is started"
        );
        let told: SqlError = error.into();
        assert_eq!((told.state, told.message), (SqlState::IO_ERROR, message));
    }

    #[test]
    fn the_first_failure_is_kept() {
        let failure = FirstFailure::default();
        assert_eq!(failure.keep(Ok(Some(7))), Some(7));
        assert_eq!(failure.keep::<Option<u8>>(Err(StoreError::read("a", "first"))), None);
        assert_eq!(failure.keep::<Option<u8>>(Err(StoreError::write("b", "second"))), None);
        assert_eq!(failure.check(()), Err(StoreError::read("a", "first")));
    }

    #[test]
    fn a_failure_is_one_pointer() {
        assert_eq!(size_of::<StoreError>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), StoreError>>(), size_of::<usize>());
    }
}
