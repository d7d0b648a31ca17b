//! What a database and its tables are: version, columns, key, and what no copy of the ledger's may have.

use crate::address::Kind;
use crate::dialect::Dialect;
use crate::session::{Session, TextRow};
use crate::{DatabaseError, ErrorKind};

/// A column as the database has it.
pub(crate) struct DatabaseColumn {
    pub(crate) name: String,
    /// As the database writes it.
    pub(crate) type_name: String,
    pub(crate) not_null: bool,
    /// Why such a column does not do.
    pub(crate) problem: Option<String>,
}

/// A table as the database has it.
pub(crate) struct DatabaseTable {
    pub(crate) columns: Vec<DatabaseColumn>,
    pub(crate) key: Vec<String>,
    pub(crate) rows: u64,
    pub(crate) problems: Vec<String>,
}

/// Refuses servers that are too old or cannot write all text.
pub(crate) fn check_server(session: &mut dyn Session, kind: Kind) -> Result<(), DatabaseError> {
    let unfit = |message: String| Err(DatabaseError::new(ErrorKind::Unfit, message));
    match kind {
        Kind::Postgres => {
            let version = session.value("SHOW server_version_num")?.unwrap_or_default();
            if version.parse::<u32>().is_ok_and(|version| version < 130_000) {
                return unfit(format!("PostgreSQL {version} is too old: 13 or newer is needed"));
            }
            let encoding = session.value("SHOW server_encoding")?.unwrap_or_default();
            if encoding != "UTF8" {
                return unfit(format!(
                    "the database's encoding is {encoding}: make one with ENCODING 'UTF8'"
                ));
            }
        }
        Kind::MariaDb => {
            let version = session.value("SELECT VERSION()")?.unwrap_or_default();
            let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
            let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            if !version.contains("MariaDB") {
                return unfit(format!(
                    "version {version} is no MariaDB: MySQL has no collation utf8mb4_nopad_bin, and is not supported"
                ));
            }
            if found < (10, 6) {
                return unfit(format!("version {version} is too old: MariaDB 10.6 or newer is needed"));
            }
        }
    }
    Ok(())
}

/// Reads what a table is, if there is one. `parts`: its schema and name.
pub(crate) fn read(
    session: &mut dyn Session,
    dialect: Dialect,
    parts: &(String, String),
) -> Result<Option<DatabaseTable>, DatabaseError> {
    match dialect {
        Dialect::Postgres => read_postgres(session, parts),
        Dialect::MariaDb => read_mariadb(session, &parts.1),
    }
}

fn text(row: &TextRow, column: usize) -> String {
    row.get(column).cloned().flatten().unwrap_or_default()
}

/// Names that a query gives, if any, as the end of a finding.
fn named(
    session: &mut dyn Session,
    problems: &mut Vec<String>,
    sql: &str,
    finding: &str,
) -> Result<(), DatabaseError> {
    let names: Vec<String> = session.query(sql)?.iter().map(|row| text(row, 0)).collect();
    if !names.is_empty() {
        problems.push(finding.replace("{}", &names.join(", ")));
    }
    Ok(())
}

/// What a table has that copies cannot have. `row`: its number, kind, row-level security and whether it is a partition.
fn postgres_problems(session: &mut dyn Session, row: &TextRow) -> Result<Vec<String>, DatabaseError> {
    let (oid, kind) = (text(row, 0), text(row, 1));
    let mut problems = Vec::new();
    match kind.as_str() {
        "r" => {}
        "p" => problems.push("it is partitioned: make it a plain table".to_string()),
        "v" | "m" => problems.push("it is a view: share the tables that it shows".to_string()),
        "f" => problems.push("it is a foreign table: share it where its rows are".to_string()),
        other => problems.push(format!("it is no table (relkind {other})")),
    }
    if text(row, 2) == "true" {
        problems.push(
            "it has row-level security, which hides rows from the writer: ALTER TABLE … DISABLE ROW LEVEL SECURITY"
                .to_string(),
        );
    }
    if text(row, 3) == "true" {
        problems.push("it is a partition of another table".to_string());
    }
    named(
        session,
        &mut problems,
        &format!(
            "SELECT tgname::text FROM pg_trigger WHERE tgrelid = {oid} AND NOT tgisinternal AND tgname NOT IN ('entente_refuse', 'entente_record')"
        ),
        "it has triggers ({}), which would change what the ledger writes: DROP TRIGGER",
    )?;
    named(
        session,
        &mut problems,
        &format!("SELECT rulename::text FROM pg_rewrite WHERE ev_class = {oid} AND ev_type <> '1'"),
        "it has rules ({}): DROP RULE",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT inhparent::regclass::text FROM pg_inherits WHERE inhrelid = {oid} OR inhparent = {oid}"
        ),
        "it inherits from other tables or others from it ({})",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT conname::text FROM pg_constraint WHERE conrelid = {oid} AND contype IN ('u','x','f') AND NOT condeferrable"
        ),
        "constraints ({}) are checked row by row, and rows come in no order: make them DEFERRABLE INITIALLY DEFERRED",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT conrelid::regclass::text || '.' || conname FROM pg_constraint WHERE confrelid = {oid} AND contype = 'f' \
             AND (NOT condeferrable OR confdeltype <> 'a' OR confupdtype <> 'a')"
        ),
        "foreign keys of other tables ({}) change rows with it, or are checked row by row: make them NO ACTION DEFERRABLE INITIALLY \
         DEFERRED",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT i.indexrelid::regclass::text FROM pg_index i WHERE i.indrelid = {oid} AND i.indisunique \
             AND NOT i.indisprimary AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)"
        ),
        "unique indexes ({}) are checked row by row: make them constraints that are DEFERRABLE INITIALLY DEFERRED",
    )?;
    Ok(problems)
}

fn read_postgres(
    session: &mut dyn Session,
    (schema, name): &(String, String),
) -> Result<Option<DatabaseTable>, DatabaseError> {
    let literal = |text: &str| Dialect::Postgres.text_literal(text);
    let found = session.query(&format!(
        "SELECT c.oid::text, c.relkind::text, c.relrowsecurity::text, c.relispartition::text, \
         c.reltuples::bigint::text FROM pg_class c \
         WHERE c.relnamespace = to_regnamespace({})::oid AND c.relname = {}",
        literal(&Dialect::Postgres.quoted(schema)),
        literal(name)
    ))?;
    let Some(row) = found.first() else { return Ok(None) };
    let oid = text(row, 0);
    let problems = postgres_problems(session, row)?;
    let key = session.query(&format!(
        "SELECT a.attname::text FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(number, position) \
         JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number \
         WHERE i.indrelid = {oid} AND i.indisprimary ORDER BY k.position"
    ))?;
    let key: Vec<String> = key.iter().map(|row| text(row, 0)).collect();
    let rows = session.query(&format!(
        "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text, a.attgenerated::text, \
         a.attidentity::text, coalesce(c.collname::text, ''), coalesce(c.collisdeterministic, true)::text \
         FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation \
         WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    ))?;
    // What `default` stands for.
    let default =
        session.value("SELECT datcollate::text FROM pg_database WHERE datname = current_database()")?;
    let by_bytes = |collation: &str| match collation {
        "" | "C" | "POSIX" | "ucs_basic" => true,
        "default" => {
            default.as_deref().is_some_and(|default| matches!(default, "C" | "POSIX" | "C.UTF-8" | "C.utf8"))
        }
        _ => false,
    };
    let column = |row: &TextRow| {
        let name = text(row, 0);
        let problem = if !text(row, 3).is_empty() {
            Some(format!("column {name} is generated: make it a plain column, which the ledger fills"))
        } else if text(row, 4) == "a" {
            Some(format!("column {name} is GENERATED ALWAYS AS IDENTITY: ALTER COLUMN … DROP IDENTITY"))
        } else if text(row, 6) == "false" {
            Some(format!("column {name} has a collation for which different texts are equal: COLLATE \"C\""))
        } else if key.contains(&name) && !by_bytes(&text(row, 5)) {
            Some(format!(
                "column {name} is in the key and not ordered by bytes: ALTER COLUMN … TYPE … COLLATE \"C\""
            ))
        } else {
            None
        };
        DatabaseColumn { type_name: text(row, 1), not_null: text(row, 2) == "true", name, problem }
    };
    let columns = rows.iter().map(column).collect();
    // Nobody has counted them yet.
    let counted = match text(row, 4).starts_with('-') && matches!(text(row, 1).as_str(), "r" | "p") {
        true => session.value(&format!("SELECT count(*)::text FROM {}", qualified(schema, name)))?,
        false => Some(text(row, 4)),
    };
    let rows = counted.and_then(|count| count.parse().ok()).unwrap_or(0);
    Ok(Some(DatabaseTable { columns, key, rows, problems }))
}

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", Dialect::Postgres.quoted(schema), Dialect::Postgres.quoted(name))
}

fn read_mariadb(session: &mut dyn Session, name: &str) -> Result<Option<DatabaseTable>, DatabaseError> {
    let table = Dialect::MariaDb.text_literal(name);
    let of_table = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {table}");
    let found = session.query(&format!(
        "SELECT TABLE_TYPE, ENGINE, CAST(TABLE_ROWS AS CHAR), CREATE_OPTIONS FROM information_schema.TABLES WHERE {of_table}"
    ))?;
    let Some(row) = found.first() else { return Ok(None) };
    let mut problems = Vec::new();
    if text(row, 0) != "BASE TABLE" {
        problems.push(format!("it is a {}: share the tables that it shows", text(row, 0).to_lowercase()));
    } else if text(row, 1) != "InnoDB" {
        problems.push(format!("its engine is {}: ALTER TABLE … ENGINE=InnoDB", text(row, 1)));
    }
    if text(row, 3).contains("partitioned") {
        problems.push("it is partitioned: ALTER TABLE … REMOVE PARTITIONING".to_string());
    }
    named(
        session,
        &mut problems,
        &format!(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() \
             AND EVENT_OBJECT_TABLE = {table} AND TRIGGER_NAME NOT LIKE 'entente\\_refuse\\_%' \
             AND TRIGGER_NAME NOT LIKE 'entente\\_record\\_%'"
        ),
        "it has triggers ({}), which would change what the ledger writes: DROP TRIGGER",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS WHERE {of_table} AND NON_UNIQUE = 0 \
             AND INDEX_NAME <> 'PRIMARY'"
        ),
        "unique indexes ({}) are checked row by row, and MariaDB cannot defer that: make them plain indexes, the ledger holds what \
         is unique",
    )?;
    named(
        session,
        &mut problems,
        &format!(
            "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS \
             WHERE CONSTRAINT_SCHEMA = DATABASE() AND {table} IN (TABLE_NAME, REFERENCED_TABLE_NAME)"
        ),
        "foreign keys ({}) are checked row by row, and MariaDB cannot defer that: drop them, the ledger holds them",
    )?;
    let key = session.query(&format!(
        "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE {of_table} AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX"
    ))?;
    let key: Vec<String> = key.iter().map(|row| text(row, 0)).collect();
    let rows = session.query(&format!(
        "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA, COALESCE(COLLATION_NAME, '') FROM information_schema.COLUMNS \
         WHERE {of_table} ORDER BY ORDINAL_POSITION"
    ))?;
    let column = |row: &TextRow| {
        let (name, extra, collation) = (text(row, 0), text(row, 3).to_lowercase(), text(row, 4));
        let problem = if extra.contains("on update") {
            Some(format!("column {name} changes by itself (ON UPDATE CURRENT_TIMESTAMP): take that away"))
        } else if extra.contains("generated") {
            Some(format!("column {name} is generated: make it a plain column, which the ledger fills"))
        } else if !matches!(collation.as_str(), "" | "utf8mb4_nopad_bin" | "ascii_bin") {
            Some(format!(
                "column {name} has collation {collation}, for which different texts are equal ('a' and 'a '): CHARACTER SET utf8mb4 \
                 COLLATE utf8mb4_nopad_bin"
            ))
        } else {
            None
        };
        DatabaseColumn { type_name: text(row, 1), not_null: text(row, 2) == "NO", name, problem }
    };
    let columns = rows.iter().map(column).collect();
    Ok(Some(DatabaseTable { columns, key, rows: text(row, 2).parse().unwrap_or(0), problems }))
}
