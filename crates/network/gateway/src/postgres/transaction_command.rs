//! The statements that begin, end and divide transaction blocks.

use super::script::Statement;
use super::words::Words;
use types::SqlError;
use types::limits::NAME_BYTES_MAX;

/// How a transaction is to be, as far as somebody says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modes {
    /// What is asked for at least: every block is serializable.
    pub(super) isolation: Option<&'static str>,
    pub(super) read_only: Option<bool>,
    pub(super) deferrable: Option<bool>,
}

/// What is asked of a transaction block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TransactionCommand {
    /// BEGIN, START TRANSACTION
    Begin(Modes),
    /// SET TRANSACTION
    SetMode(Modes),
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
    /// LOCK TABLE … IN ACCESS SHARE MODE: the schema in front of each name, where there is one, and the name by which SQL finds it.
    LockForReading(Vec<(Option<String>, String)>),
}

impl Words<'_, '_> {
    /// The name of a savepoint, and the end.
    fn savepoint(&mut self) -> Result<String, SqlError> {
        let mut name = self.name()?;
        // As of every name its first bytes count.
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
        self.end(name)
    }

    /// `[TABLE] [ONLY] table [*], … IN ACCESS SHARE MODE [NOWAIT]` and the end.
    fn locked_tables(&mut self) -> Result<Vec<(Option<String>, String)>, SqlError> {
        self.take("table");
        let mut tables = Vec::new();
        loop {
            self.take("only");
            tables.push(self.relation()?);
            self.take("*");
            if !self.take(",") {
                break;
            }
        }
        ["in", "access", "share", "mode"].into_iter().try_for_each(|word| self.expect(word))?;
        self.take("nowait");
        self.end(tables)
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
    pub(super) fn modes(&mut self) -> Result<Modes, SqlError> {
        let mut modes = Modes::default();
        while self.peek().is_some() {
            if self.take("isolation") {
                self.expect("level")?;
                modes.isolation = Some(self.isolation_level()?);
            } else if self.take("read") {
                let read_only = self.take("only");
                if !read_only {
                    self.expect("write")?;
                }
                modes.read_only = Some(read_only);
            } else {
                let not = self.take("not");
                self.expect("deferrable")?;
                modes.deferrable = Some(!not);
            }
            self.take(",");
        }
        Ok(modes)
    }

    fn isolation_level(&mut self) -> Result<&'static str, SqlError> {
        Ok(if self.take("serializable") {
            "serializable"
        } else if self.take("repeatable") {
            self.expect("read")?;
            "repeatable read"
        } else {
            self.expect("read")?;
            if self.take("committed") {
                "read committed"
            } else {
                self.expect("uncommitted")?;
                "read uncommitted"
            }
        })
    }
}

/// Reads a statement of the classes `Begin`, `Commit`, `Rollback` and `Transaction`.
pub(super) fn parse(statement: &Statement<'_>) -> Result<TransactionCommand, SqlError> {
    let mut words = Words::of(statement);
    if words.take("begin") || words.take("start") {
        if !words.take("work") {
            words.take("transaction");
        }
        return Ok(TransactionCommand::Begin(words.modes()?));
    }
    if words.take("set") {
        words.expect("transaction")?;
        if words.take("snapshot") {
            return Err(SqlError::unsupported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(TransactionCommand::SetMode(words.modes()?));
    }
    if words.take("savepoint") {
        return Ok(TransactionCommand::Savepoint(words.savepoint()?));
    }
    if words.take("release") {
        words.take("savepoint");
        return Ok(TransactionCommand::Release(words.savepoint()?));
    }
    if words.take("lock") {
        return Ok(TransactionCommand::LockForReading(words.locked_tables()?));
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
        use TransactionCommand::{
            Begin, Commit, LockForReading, Release, Rollback, RollbackTo, Savepoint, SetMode,
        };
        let name = || "s".to_string();
        let none = Modes::default();
        let read_only = |read_only| Modes { read_only: Some(read_only), ..none };
        let level = |level, modes| Modes { isolation: Some(level), ..modes };
        for (sql, command) in [
            ("BEGIN", Begin(none)),
            ("begin work", Begin(none)),
            (
                "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
                Begin(level("repeatable read", read_only(true))),
            ),
            (
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
                Begin(level("read committed", read_only(false))),
            ),
            (
                "BEGIN TRANSACTION READ ONLY, NOT DEFERRABLE",
                Begin(Modes { deferrable: Some(false), ..read_only(true) }),
            ),
            ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", SetMode(level("serializable", none))),
            ("SET TRANSACTION READ ONLY", SetMode(read_only(true))),
            ("SET TRANSACTION DEFERRABLE", SetMode(Modes { deferrable: Some(true), ..none })),
            ("LOCK TABLE t IN ACCESS SHARE MODE", LockForReading(vec![(None, "t".to_string())])),
            (
                "lock only s.t *, \"T.u\" in access share mode nowait",
                LockForReading(vec![(Some("s".to_string()), "s.t".to_string()), (None, "T.u".to_string())]),
            ),
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
        assert_eq!(read(&long), Ok(TransactionCommand::Savepoint("s".repeat(63))));
    }
}
