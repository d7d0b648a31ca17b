//! A connection to an organisation's database, of whatever kind: statements as text, rows as text.

use crate::address::{Address, Kind};
use crate::mariadb::MariaDbSession;
use crate::postgres::PostgresSession;
use crate::{DatabaseError, dialect::ForeignType};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

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

/// The scripts of a block as sets: statements that touch rows of their own, many as one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sets {
    /// One after the other.
    pub(crate) statements: Vec<SetStatement>,
    pub(crate) scripts: Vec<SetScript>,
    /// By the numbers of the scripts' statements, the rows that each meets where its row is there.
    pub(crate) met: Vec<u64>,
}

/// Many statements as one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetStatement {
    pub(crate) sql: String,
    /// Which ones.
    pub(crate) numbers: Vec<usize>,
    /// They change rows, which may not be there.
    pub(crate) updates: bool,
}

/// A script of a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetScript {
    pub(crate) place: u32,
    /// The numbers of its statements.
    pub(crate) statements: Range<usize>,
}

impl Sets {
    /// How the scripts have ended, where statements have met so many rows.
    pub(crate) fn ends(&self, met: &[u64]) -> Vec<ScriptEnd> {
        let end = |script: &SetScript| ScriptEnd {
            place: script.place,
            met: Some(met[script.statements.clone()].to_vec()),
        };
        self.scripts.iter().map(end).collect()
    }
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

    /// Runs scripts of the block at `height` as sets, and writes down how each has ended, in one transaction. Nothing where one
    /// breaks a rule for values, or where it cannot be said which rows were met: nothing of any stays then.
    ///
    /// # Errors
    /// As [`Session::run_scripts`].
    fn run_sets(&mut self, height: u64, sets: &Sets) -> Result<Option<Vec<ScriptEnd>>, DatabaseError>;

    /// The first value of the first row.
    fn value(&mut self, sql: &str) -> Result<Option<String>, DatabaseError> {
        Ok(self.query(sql)?.into_iter().next().and_then(|row| row.into_iter().next()).flatten())
    }
}

/// The rows that say how scripts have ended, as an INSERT has them. `failures`: by the number of the script, why.
pub(crate) fn executed_rows(
    height: u64,
    ends: &[ScriptEnd],
    failures: &BTreeMap<usize, String>,
    literal: impl Fn(&str) -> String,
) -> String {
    let mut rows = String::with_capacity(ends.len() * 32);
    for (number, ScriptEnd { place, met }) in ends.iter().enumerate() {
        let met = met.as_ref().map(|met| met.iter().map(|rows| format!("{rows} ")).collect::<String>());
        let failure = failures.get(&number).cloned();
        let [met, failure] =
            [met, failure].map(|text| text.map_or("NULL".to_string(), |text| literal(&text)));
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(rows, "{separator}({height},{place},{met},{failure})");
    }
    rows
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
