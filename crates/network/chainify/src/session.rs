//! A connection to an organisation's database, of whatever kind: statements as text, rows as text.

use crate::address::{Address, Kind};
use crate::mariadb::MariaDbSession;
use crate::postgres::PostgresSession;
use crate::{DatabaseError, dialect::ForeignType};

/// A row as the database writes its values; `None`: NULL.
pub(crate) type TextRow = Vec<Option<String>>;

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

    /// The first value of the first row.
    fn value(&mut self, sql: &str) -> Result<Option<String>, DatabaseError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

/// Connects, with everything pinned that decides how values are written and what statements mean.
pub(crate) fn connect(address: &Address) -> Result<Box<dyn Session>, DatabaseError> {
    Ok(match address.kind {
        Kind::Postgres => Box::new(PostgresSession::connect(address)?),
        Kind::MariaDb => Box::new(MariaDbSession::connect(address)?),
    })
}
