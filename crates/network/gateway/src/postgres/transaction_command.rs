//! The statements that begin, end and divide transaction blocks.

use super::script::Statement;
use super::words::Words;
use types::{SqlError, SqlState, limits::NAME_BYTES_MAX};

/// What is asked of a transaction block. Isolation levels are read and not kept: every block is serializable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TransactionCommand {
    /// BEGIN, START TRANSACTION; READ ONLY or READ WRITE where it says so.
    Begin { read_only: Option<bool> },
    /// SET TRANSACTION
    SetMode { read_only: Option<bool> },
    /// COMMIT, END; another block of the same kind begins at once where it says AND CHAIN.
    Commit { chain: bool },
    /// ROLLBACK, ABORT
    Rollback { chain: bool },
    /// SAVEPOINT
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT
    RollbackTo(String),
    /// RELEASE SAVEPOINT
    Release(String),
}

impl Words<'_, '_> {
    /// The name of a savepoint, and the end.
    fn savepoint(&mut self) -> Result<String, SqlError> {
        let name = self.name()?;
        if name.len() > NAME_BYTES_MAX {
            let message =
                format!("the name of a savepoint has at most {NAME_BYTES_MAX} bytes (NAME_BYTES_MAX)");
            return Err(SqlError::new(SqlState::NAME_TOO_LONG, message));
        }
        self.end(name)
    }

    /// `[AND [NO] CHAIN]` and the end.
    fn chain(&mut self) -> Result<bool, SqlError> {
        let mut chain = false;
        if self.take("and") {
            chain = !self.take("no");
            self.expect("chain")?;
        }
        self.end(chain)
    }

    /// Isolation level, access mode, deferrability, in any order, to the end.
    fn modes(&mut self) -> Result<Option<bool>, SqlError> {
        let mut read_only = None;
        while self.peek().is_some() {
            if self.take("isolation") {
                self.expect("level")?;
                let level = self.take("serializable")
                    || (self.take("repeatable") && self.take("read"))
                    || (self.take("read") && (self.take("committed") || self.take("uncommitted")));
                if !level {
                    return Err(self.error());
                }
            } else if self.take("read") {
                read_only = Some(self.take("only"));
                if read_only == Some(false) {
                    self.expect("write")?;
                }
            } else {
                self.take("not");
                self.expect("deferrable")?;
            }
            self.take(",");
        }
        Ok(read_only)
    }
}

/// Reads a statement of the classes `Begin`, `Commit`, `Rollback` and `Transaction`.
pub(super) fn parse(statement: &Statement<'_>) -> Result<TransactionCommand, SqlError> {
    let mut words = Words::of(statement);
    if words.take("begin") || words.take("start") {
        if !words.take("work") {
            words.take("transaction");
        }
        return Ok(TransactionCommand::Begin { read_only: words.modes()? });
    }
    if words.take("set") {
        words.expect("transaction")?;
        if words.take("snapshot") {
            return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(TransactionCommand::SetMode { read_only: words.modes()? });
    }
    if words.take("savepoint") {
        return Ok(TransactionCommand::Savepoint(words.savepoint()?));
    }
    if words.take("release") {
        words.take("savepoint");
        return Ok(TransactionCommand::Release(words.savepoint()?));
    }
    let commits = words.take("commit") || words.take("end");
    if !commits && !words.take("rollback") {
        words.expect("abort")?;
    }
    if !words.take("work") {
        words.take("transaction");
    }
    if !commits && words.take("to") {
        words.take("savepoint");
        return Ok(TransactionCommand::RollbackTo(words.savepoint()?));
    }
    let chain = words.chain()?;
    Ok(match commits {
        true => TransactionCommand::Commit { chain },
        false => TransactionCommand::Rollback { chain },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::script::split;

    fn read(sql: &str) -> Result<TransactionCommand, SqlError> {
        parse(&split(sql)[0])
    }

    #[test]
    fn transaction_commands_are_read_in_all_their_spellings() {
        use TransactionCommand::{Begin, Commit, Release, Rollback, RollbackTo, Savepoint, SetMode};
        let name = || "s".to_string();
        for (sql, command) in [
            ("BEGIN", Begin { read_only: None }),
            ("begin work", Begin { read_only: None }),
            ("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", Begin { read_only: Some(true) }),
            ("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", Begin { read_only: Some(false) }),
            ("BEGIN TRANSACTION READ ONLY, NOT DEFERRABLE", Begin { read_only: Some(true) }),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", SetMode { read_only: None }),
            ("SET TRANSACTION READ ONLY", SetMode { read_only: Some(true) }),
            ("COMMIT", Commit { chain: false }),
            ("END TRANSACTION", Commit { chain: false }),
            ("COMMIT WORK AND NO CHAIN", Commit { chain: false }),
            ("END AND CHAIN", Commit { chain: true }),
            ("ROLLBACK", Rollback { chain: false }),
            ("ABORT WORK", Rollback { chain: false }),
            ("ROLLBACK TRANSACTION AND CHAIN", Rollback { chain: true }),
            ("SAVEPOINT s", Savepoint(name())),
            ("SAVEPOINT \"S t\"", Savepoint("S t".to_string())),
            ("ROLLBACK TO s", RollbackTo(name())),
            ("ROLLBACK WORK TO SAVEPOINT S", RollbackTo(name())),
            ("RELEASE s", Release(name())),
            ("RELEASE SAVEPOINT s", Release(name())),
        ] {
            assert_eq!(read(sql), Ok(command), "{sql}");
        }
    }

    #[test]
    fn what_is_none_is_refused_where_it_goes_wrong() {
        for (sql, state, position) in [
            ("BEGIN now", "42601", Some(7)),
            ("BEGIN ISOLATION LEVEL high", "42601", Some(23)),
            ("SAVEPOINT", "42601", Some(10)),
            ("SAVEPOINT a b", "42601", Some(13)),
            ("SAVEPOINT 'a'", "42601", Some(11)),
            ("ROLLBACK TO", "42601", Some(12)),
            ("COMMIT TO s", "42601", Some(8)),
            ("COMMIT AND", "42601", Some(11)),
            ("COMMIT CHAIN", "42601", Some(8)),
            ("SET TRANSACTION SNAPSHOT 'x'", "0A000", None),
        ] {
            let error = read(sql).expect_err(sql);
            assert_eq!((error.state.to_string().as_str(), error.position), (state, position), "{sql}");
        }
        let long = format!("SAVEPOINT {}", "s".repeat(64));
        assert_eq!(read(&long).expect_err("too long").state, SqlState::NAME_TOO_LONG);
    }
}
