//! What the database itself remembers: whose copy it is, up to which height, and rows that somebody else has changed.
//!
//! ```text
//!  PostgreSQL: schema entente         MariaDB, in the same database
//!  position                           entente_position        one row: ledger, node, height, state digest
//!  tables                             entente_tables          which tables are copies, and the digest of their triggers
//!  strange_rows                       entente_strange_rows    rows as they were found, before they were put right
//! ```
//!
//! The height changes in the transaction that changes the rows: whatever happens, the two belong together.

use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::Session;
use crate::{DatabaseError, Kind};
use crypto::Digest;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Where the copy stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The ledger, as hexadecimal text.
    pub(crate) ledger: String,
    /// The node's key, as hexadecimal text.
    pub(crate) node: String,
    pub(crate) height: u64,
    /// As hexadecimal text; empty where it is not known.
    pub(crate) state_digest: String,
}

/// A row that was not what the ledger says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StrangeRow {
    pub(crate) table: String,
    pub(crate) key: String,
    /// As it was found; `None`: it was not there.
    pub(crate) found: Option<String>,
    /// As it must be; `None`: it must not be there.
    pub(crate) agreed: Option<String>,
}

impl StrangeRow {
    /// In one sentence, without values: whoever may see that there is such a row may not see what is in it.
    pub(crate) fn shown(&self) -> String {
        let StrangeRow { table, key, found, agreed } = self;
        let what = match (found, agreed) {
            (None, _) => "is missing",
            (_, None) => "is not in the ledger",
            _ => "is another row than the ledger's",
        };
        format!("{table} {key} {what}")
    }
}

/// Rows that are written down of one kind of strangeness; the others are counted.
pub(crate) const STRANGE_ROWS_MAX: usize = 10_000;

pub(crate) fn position_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "entente.position",
        Dialect::MariaDb => "entente_position",
    }
}

fn tables_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "entente.tables",
        Dialect::MariaDb => "entente_tables",
    }
}

pub(crate) fn strange_table(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "entente.strange_rows",
        Dialect::MariaDb => "entente_strange_rows",
    }
}

/// Makes what is missing of it.
pub(crate) fn create(session: &mut dyn Session, dialect: Dialect) -> Result<(), DatabaseError> {
    let (position, tables, strange) =
        (position_table(dialect), tables_table(dialect), strange_table(dialect));
    let statements = match dialect {
        Dialect::Postgres => vec![
            "CREATE SCHEMA IF NOT EXISTS entente".to_string(),
            format!(
                "CREATE TABLE IF NOT EXISTS {position} (only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one), \
                 ledger text NOT NULL, node text NOT NULL, height bigint NOT NULL, state_digest text NOT NULL, \
                 written_at timestamptz NOT NULL DEFAULT now())"
            ),
            format!("CREATE TABLE IF NOT EXISTS {tables} (name text PRIMARY KEY, guard text NOT NULL)"),
            format!(
                "CREATE TABLE IF NOT EXISTS {strange} (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                 found_at timestamptz NOT NULL DEFAULT now(), height bigint NOT NULL, table_name text NOT NULL, \
                 row_key text NOT NULL, found text, agreed text)"
            ),
        ],
        Dialect::MariaDb => {
            let text = "longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";
            vec![
                format!(
                    "CREATE TABLE IF NOT EXISTS {position} (only_one tinyint PRIMARY KEY DEFAULT 1, ledger char(64) NOT NULL, \
                     node char(64) NOT NULL, height bigint NOT NULL, state_digest char(64) NOT NULL, \
                     written_at datetime(6) NOT NULL DEFAULT now(6)) ENGINE=InnoDB"
                ),
                format!(
                    "CREATE TABLE IF NOT EXISTS {tables} (name varchar(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin \
                     PRIMARY KEY, guard text NOT NULL) ENGINE=InnoDB"
                ),
                format!(
                    "CREATE TABLE IF NOT EXISTS {strange} (number bigint AUTO_INCREMENT PRIMARY KEY, \
                     found_at datetime(6) NOT NULL DEFAULT now(6), height bigint NOT NULL, table_name {text} NOT NULL, \
                     row_key {text} NOT NULL, found {text}, agreed {text}) ENGINE=InnoDB"
                ),
            ]
        }
    };
    statements.iter().try_for_each(|statement| session.execute(statement).map(drop))
}

/// Reads where the copy stands.
pub(crate) fn position(
    session: &mut dyn Session,
    dialect: Dialect,
    for_update: bool,
) -> Result<Option<Position>, DatabaseError> {
    let height = match dialect {
        Dialect::Postgres => "height::text",
        Dialect::MariaDb => "CAST(height AS CHAR)",
    };
    let lock = if for_update { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT ledger, node, {height}, state_digest FROM {}{lock}", position_table(dialect));
    let Some(row) = session.query(&sql)?.into_iter().next() else { return Ok(None) };
    let text = |column: usize| row.get(column).cloned().flatten().unwrap_or_default();
    let height = text(2).parse().map_err(|_| {
        DatabaseError::new(
            ErrorKind::Unfit,
            format!("{}: expected a height, found {:?}", position_table(dialect), text(2)),
        )
    })?;
    Ok(Some(Position { ledger: text(0), node: text(1), height, state_digest: text(3) }))
}

/// Writes where the copy stands; part of the transaction that brings it there.
pub(crate) fn set_position(
    session: &mut dyn Session,
    dialect: Dialect,
    position: &Position,
) -> Result<(), DatabaseError> {
    let Position { height, .. } = position;
    let [ledger, node, state_digest] =
        [&position.ledger, &position.node, &position.state_digest].map(|text| dialect.text_literal(text));
    let table = position_table(dialect);
    let now = match dialect {
        Dialect::Postgres => "now()",
        Dialect::MariaDb => "now(6)",
    };
    let changed = session.execute(&format!(
        "UPDATE {table} SET ledger = {ledger}, node = {node}, height = {height}, state_digest = {state_digest}, \
         written_at = {now}"
    ))?;
    if changed == 0 {
        session.execute(&format!(
            "INSERT INTO {table} (ledger, node, height, state_digest) \
             VALUES ({ledger}, {node}, {height}, {state_digest})"
        ))?;
    }
    Ok(())
}

/// The tables that are copies, with the digests of their triggers as they were made.
pub(crate) fn tables(
    session: &mut dyn Session,
    dialect: Dialect,
) -> Result<BTreeMap<String, String>, DatabaseError> {
    let rows = session.query(&format!("SELECT name, guard FROM {}", tables_table(dialect)))?;
    let pair = |row: Vec<Option<String>>| {
        let mut values = row.into_iter();
        Some((values.next()??, values.next()??))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Writes down that a table is a copy, and what its triggers are.
pub(crate) fn set_table(
    session: &mut dyn Session,
    dialect: Dialect,
    name: &str,
    guard: &str,
) -> Result<(), DatabaseError> {
    let (table, name, guard) =
        (tables_table(dialect), dialect.text_literal(name), dialect.text_literal(guard));
    if session.execute(&format!("UPDATE {table} SET guard = {guard} WHERE name = {name}"))? == 0 {
        session.execute(&format!("INSERT INTO {table} (name, guard) VALUES ({name}, {guard})"))?;
    }
    Ok(())
}

/// A table is no copy any more.
pub(crate) fn forget_table(
    session: &mut dyn Session,
    dialect: Dialect,
    name: &str,
) -> Result<(), DatabaseError> {
    let (table, name) = (tables_table(dialect), dialect.text_literal(name));
    session.execute(&format!("DELETE FROM {table} WHERE name = {name}")).map(drop)
}

/// Refuses a database that is another ledger's or another node's.
pub(crate) fn check_owner(
    found: &Position,
    ledger: &str,
    node: &str,
    dialect: Dialect,
) -> Result<(), DatabaseError> {
    let refused = |message: String| Err(DatabaseError::new(ErrorKind::Access, message));
    let table = position_table(dialect);
    if found.ledger != ledger {
        return refused(format!(
            "the database is a copy of another ledger, {}; this one is {ledger}. Use another database, or DELETE FROM {table} and \
             take the ledger's rows",
            found.ledger
        ));
    }
    if found.node != node {
        return refused(format!(
            "the database is the copy of node {}; this is node {node}. Each node needs a database of its own; if the old node is \
             gone for ever: UPDATE {table} SET node = '{node}'",
            found.node
        ));
    }
    Ok(())
}

/// Nothing is a copy any more.
pub(crate) fn forget(session: &mut dyn Session, dialect: Dialect) -> Result<(), DatabaseError> {
    for table in [position_table(dialect), tables_table(dialect)] {
        session.execute(&format!("DELETE FROM {table}"))?;
    }
    Ok(())
}

/// Bytes of a statement that writes rows down.
const STATEMENT_BYTES: usize = 256 * 1024;

/// Writes down rows that somebody else has changed.
pub(crate) fn keep_strange(
    session: &mut dyn Session,
    dialect: Dialect,
    height: u64,
    rows: &[StrangeRow],
) -> Result<(), DatabaseError> {
    let literal = |text: &str| dialect.text_literal(text);
    let optional = |text: &Option<String>| text.as_deref().map_or("NULL".to_string(), literal);
    let head = format!(
        "INSERT INTO {} (height, table_name, row_key, found, agreed) VALUES ",
        strange_table(dialect)
    );
    let mut values: Vec<String> = Vec::new();
    let mut bytes = 0;
    for row in &rows[..rows.len().min(STRANGE_ROWS_MAX)] {
        let StrangeRow { table, key, found, agreed } = row;
        let (found, agreed) = (optional(found), optional(agreed));
        values.push(format!("({height}, {}, {}, {found}, {agreed})", literal(table), literal(key)));
        bytes += values.last().map_or(0, String::len);
        if bytes >= STATEMENT_BYTES {
            session.execute(&format!("{head}{}", values.join(", ")))?;
            (values, bytes) = (Vec::new(), 0);
        }
    }
    if !values.is_empty() {
        session.execute(&format!("{head}{}", values.join(", ")))?;
    }
    Ok(())
}

/// How long the lock of a connection that has just ended may take to go.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Keeps a second node away from the database for as long as the connection lasts.
pub(crate) fn lock(session: &mut dyn Session, kind: Kind, database: &str) -> Result<(), DatabaseError> {
    let start = Instant::now();
    let sql = match kind {
        Kind::Postgres => "SELECT pg_try_advisory_lock(7306374, 1)::text".to_string(),
        Kind::MariaDb => {
            // Names of locks have 64 characters, and are the server's.
            let name = crypto::sha256(&[b"entente", database.as_bytes()]).to_string();
            format!("SELECT CAST(GET_LOCK('entente {}', 0) AS CHAR)", &name[..32])
        }
    };
    loop {
        let taken = session.value(&sql)?;
        if matches!(taken.as_deref(), Some("true" | "t" | "1")) {
            return Ok(());
        }
        if start.elapsed() > LOCK_WAIT {
            return Err(DatabaseError::new(
                ErrorKind::Access,
                "another node writes to this database; each organisation needs one of its own",
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A digest as the database has it.
pub(crate) fn hexadecimal(digest: Option<Digest>) -> String {
    digest.map(|digest| digest.to_string()).unwrap_or_default()
}
