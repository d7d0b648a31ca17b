//! A connection to an organisation's database, of whatever kind: statements as text, rows as text.

use crate::address::{Address, Kind};
use crate::mariadb::MariaDbSession;
use crate::postgres::PostgresSession;
use crate::{DatabaseError, dialect::ForeignType};

/// A row as the database writes its values; `None`: NULL.
pub(crate) type TextRow = Vec<Option<String>>;

/// A script of a block, in the database's own SQL.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenScript {
    /// Its position in the block.
    pub(crate) place: u32,
    pub(crate) statements: Vec<String>,
}

/// How a script has ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScriptEnd {
    pub(crate) place: u32,
    /// The rows that each of its statements has met; nothing where it failed.
    pub(crate) met: Option<Vec<u64>>,
}

/// A connection.
pub(crate) trait Session: Send {
    /// Runs a statement. Gives the number of rows that it has changed or matched.
    fn execute(&mut self, sql: &str) -> Result<u64, DatabaseError>;

    /// Runs a query.
    fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, DatabaseError>;

    /// Adds rows to a table: the fastest way that the database has. `columns`: names as they are quoted, with their types; values
    /// are as [`crate::dialect::text_of`] writes them.
    fn load(
        &mut self,
        table: &str,
        columns: &[(String, ForeignType)],
        rows: &mut dyn Iterator<Item = TextRow>,
    ) -> Result<u64, DatabaseError>;

    /// Runs scripts of the block at `height` one after the other, and writes down how each has ended, in one transaction. A
    /// script that breaks a rule for values fails alone, and nothing of it stays.
    ///
    /// # Errors
    /// What no script is to blame for: nothing of any stays.
    fn run_scripts(
        &mut self,
        height: u64,
        scripts: &[WrittenScript],
    ) -> Result<Vec<ScriptEnd>, DatabaseError>;

    /// The first value of the first row.
    fn value(&mut self, sql: &str) -> Result<Option<String>, DatabaseError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

/// The numbers of rows as they are written down, with a space behind each.
pub(crate) fn met_rows(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Connects, with everything pinned that decides how values are written and what statements mean.
pub(crate) fn connect(address: &Address) -> Result<Box<dyn Session>, DatabaseError> {
    Ok(match address.kind {
        Kind::Postgres => Box::new(PostgresSession::connect(address)?),
        Kind::MariaDb => Box::new(MariaDbSession::connect(address)?),
    })
}
