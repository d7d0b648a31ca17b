//! What of the tables that a database has can be kept, and what would have to change.
//!
//! Every finding says what was found, why it does not do, and what to do. Nothing is changed.

use crate::address::{Address, Kind};
use crate::dialect::{Dialect, ForeignType};
use crate::inspect::{self, DatabaseColumn, DatabaseTable};
use crate::session::{self, Session};
use crate::shared_table::SharedTable;
use crate::{DatabaseError, ErrorKind};
use std::sync::Arc;
use types::{Column, DataType, RangeType, Table, TableId};

/// Something that keeps a table from being shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(pub String);

/// A table of the database, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTable {
    /// Its name as it was asked for.
    pub name: String,
    /// About how many rows it has.
    pub rows: u64,
    /// What has to change; nothing: it fits.
    pub findings: Vec<Finding>,
    /// What makes the table in the ledger; `None` where the findings leave none.
    pub create: Option<String>,
    is_there: bool,
    shared: Option<SharedTable>,
}

/// Rows of one query where all are read.
const COPY_ROWS: usize = 10_000;
const POSTGRES_TYPES: &str = "smallint, integer, bigint, numeric(p,s), boolean, varchar(n), text, date, timestamp, timestamptz, \
                              bytea or uuid";
const MARIADB_TYPES: &str = "smallint, int, bigint, decimal(p,s), tinyint(1), varchar(n), longtext, date, datetime(6), longblob or \
                             char(36)";

/// Looks at tables of a database: `orders` or `schema.orders`.
///
/// # Errors
/// The database cannot be reached or read, is too old, or writes in another encoding.
pub fn plan(address: &Address, tables: &[String]) -> Result<Vec<PlannedTable>, DatabaseError> {
    let mut session = session::connect(address)?;
    let dialect = Dialect::from(address.kind);
    inspect::check_server(&mut *session, address.kind)?;
    let mut planned = Vec::new();
    for name in tables {
        let parts = dialect.parts(name);
        planned.push(match inspect::read(&mut *session, dialect, &parts)? {
            Some(table) => planned_table(name, &table, dialect),
            None => PlannedTable {
                name: name.clone(),
                rows: 0,
                findings: vec![Finding("there is no such table in the database".to_string())],
                create: None,
                is_there: false,
                shared: None,
            },
        });
    }
    Ok(planned)
}

/// What keeps the database's table from being a copy of the ledger's: nothing where it fits; `None` where there is no such table.
pub(crate) fn check(
    session: &mut dyn Session,
    table: &SharedTable,
) -> Result<Option<Vec<String>>, DatabaseError> {
    let dialect = table.dialect;
    let Some(found) = inspect::read(session, dialect, &table.parts)? else { return Ok(None) };
    let mut problems = found.problems;
    let key: Vec<&String> = table.key.iter().map(|ordinal| &table.table.columns[*ordinal].name).collect();
    if found.key.iter().collect::<Vec<_>>() != key {
        let names = |names: &[&String]| match names.is_empty() {
            true => "none".to_string(),
            false => names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "),
        };
        let (expected, found) = (names(&key), names(&found.key.iter().collect::<Vec<_>>()));
        problems.push(format!("its primary key is ({found}), expected ({expected})"));
    }
    for (ordinal, (_, kind)) in table.columns.iter().enumerate() {
        let name = &table.table.columns[ordinal].name;
        let Some(column) = found.columns.iter().find(|column| column.name == *name) else {
            let expected = dialect.type_name(kind);
            problems.push(format!("column {name} is missing; add it: {name} {expected}"));
            continue;
        };
        let expected = written(dialect, kind);
        if !is_type(dialect, kind, &column.type_name) {
            problems.push(format!("column {name} is {}, expected {expected}", column.type_name));
        }
        if let Some(problem) = &column.problem {
            problems.push(problem.clone());
        }
        if column.not_null && !table.table.columns[ordinal].not_null && !table.key.contains(&ordinal) {
            problems.push(format!("column {name} is NOT NULL, and the ledger's may be NULL"));
        }
    }
    for column in &found.columns {
        if !table.table.columns.iter().any(|known| known.name == column.name) {
            problems.push(format!("column {} is not in the ledger's table", column.name));
        }
    }
    Ok(Some(problems))
}

/// A type as the database's own catalogue writes it.
fn written(dialect: Dialect, kind: &ForeignType) -> String {
    match (dialect, kind) {
        (Dialect::Postgres, ForeignType::Text(Some(length))) => format!("character varying({length})"),
        (Dialect::Postgres, ForeignType::Text(None)) => "text".to_string(),
        (Dialect::Postgres, ForeignType::Timestamp) => "timestamp without time zone".to_string(),
        (Dialect::Postgres, ForeignType::TimestampTz) => "timestamp with time zone".to_string(),
        (Dialect::Postgres, kind) => dialect.type_name(kind),
        (Dialect::MariaDb, kind) => {
            let name = dialect.type_name(kind);
            let name = name.split(" CHARACTER SET").next().unwrap_or_default().to_string();
            // As information_schema has them.
            match name.as_str() {
                "smallint" => "smallint(6)".to_string(),
                "integer" => "int(11)".to_string(),
                "bigint" => "bigint(20)".to_string(),
                _ => name,
            }
        }
    }
}

/// Whether the database's own catalogue says that a column has this type.
fn is_type(dialect: Dialect, kind: &ForeignType, found: &str) -> bool {
    // How wide numbers are shown is nobody's business.
    let narrow = |name: &str| match name.split_once('(') {
        Some((kind @ ("smallint" | "int" | "bigint"), rest)) => {
            kind.to_string() + rest.split_once(')').map_or("", |(_, rest)| rest)
        }
        _ => name.to_string(),
    };
    narrow(found) == narrow(&written(dialect, kind))
        || (dialect == Dialect::Postgres && *kind == ForeignType::Text(None) && found == "character varying")
}

/// The ledger's type for one of the database's.
fn ledger_type(dialect: Dialect, written: &str) -> Option<DataType> {
    let (name, inside) = match written.split_once('(') {
        Some((name, rest)) => (name, rest.split(')').next().unwrap_or_default()),
        None => (written, ""),
    };
    let length = || inside.parse::<u32>().ok();
    let numeric = || {
        let (precision, scale) = inside.split_once(',')?;
        Some(DataType::Numeric(Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?))))
    };
    match (dialect, name) {
        (_, "smallint") if !written.contains("unsigned") => Some(DataType::SmallInt),
        (_, "bigint") if !written.contains("unsigned") => Some(DataType::BigInt),
        (_, "date") => Some(DataType::Date),
        (Dialect::Postgres, _) => match written {
            "integer" => Some(DataType::Integer),
            "numeric" => Some(DataType::Numeric(None)),
            "boolean" => Some(DataType::Boolean),
            "text" => Some(DataType::Text(None)),
            "character varying" => Some(DataType::VARCHAR),
            "bytea" => Some(DataType::Bytea),
            "uuid" => Some(DataType::Uuid),
            "json" => Some(DataType::Json),
            "jsonb" => Some(DataType::Jsonb),
            "double precision" => Some(DataType::Double),
            "real" => Some(DataType::Real),
            "interval" => Some(DataType::Interval),
            "timestamp without time zone" => Some(DataType::Timestamp),
            "timestamp with time zone" => Some(DataType::TimestampTz),
            "time without time zone" => Some(DataType::Time),
            "time with time zone" => Some(DataType::TimeTz),
            "inet" => Some(DataType::Inet),
            "cidr" => Some(DataType::Cidr),
            "macaddr" => Some(DataType::MacAddr),
            "oid" => Some(DataType::Oid),
            "tsvector" => Some(DataType::TsVector),
            "tsquery" => Some(DataType::TsQuery),
            "bit varying" => Some(DataType::VarBit(None)),
            _ if name == "bit" => Some(DataType::Bit(Some(length()?))),
            _ if name == "bit varying" => Some(DataType::VarBit(Some(length()?))),
            _ if name == "numeric" => numeric(),
            _ if name == "character varying" => Some(DataType::Text(Some(length()?))),
            _ if name == "character" => Some(DataType::Char(Some(length()?))),
            _ => RangeType::type_where(|(_, known)| known == name),
        },
        (Dialect::MariaDb, "int") if !written.contains("unsigned") => Some(DataType::Integer),
        (Dialect::MariaDb, "decimal") if !written.contains("unsigned") => numeric(),
        (Dialect::MariaDb, "varchar") => Some(DataType::Text(Some(length()?))),
        (Dialect::MariaDb, _) => match written {
            "tinyint(1)" => Some(DataType::Boolean),
            "longtext" => Some(DataType::Text(None)),
            "datetime(6)" => Some(DataType::Timestamp),
            "longblob" => Some(DataType::Bytea),
            "char(36)" => Some(DataType::Uuid),
            _ => None,
        },
    }
}

fn planned_table(name: &str, table: &DatabaseTable, dialect: Dialect) -> PlannedTable {
    let mut findings: Vec<String> = table.problems.clone();
    if table.key.is_empty() {
        findings.push("it has no primary key: add one, so that rows can be told apart".to_string());
    }
    let (mut columns, mut parts) = (Vec::new(), Vec::new());
    for DatabaseColumn { name, type_name, not_null, problem } in &table.columns {
        findings.extend(problem.clone());
        let Some(data_type) = ledger_type(dialect, type_name) else {
            let choice = match dialect {
                Dialect::Postgres => POSTGRES_TYPES,
                Dialect::MariaDb => MARIADB_TYPES,
            };
            findings.push(format!(
                "column {name} is {type_name}, which the ledger has not; change it to {choice}"
            ));
            continue;
        };
        let check = match (dialect, &data_type) {
            // What the ledger could hold and the database not.
            (Dialect::MariaDb, DataType::Date | DataType::Timestamp) => {
                let name = Dialect::Postgres.quoted(name);
                format!(" CHECK ({name} >= '0001-01-01' AND {name} < '10000-01-01')")
            }
            _ => String::new(),
        };
        let constraint = if *not_null { " NOT NULL" } else { "" };
        parts.push(format!("{} {data_type}{constraint}{check}", Dialect::Postgres.quoted(name)));
        columns.push(Column {
            name: name.clone(),
            data_type,
            not_null: *not_null,
            default: None,
            generated: false,
        });
    }
    let ordinal = |key: &String| columns.iter().position(|column| column.name == *key).map(|at| at as u16);
    let primary_key: Option<Vec<u16>> = table.key.iter().map(ordinal).collect();
    let is_whole = columns.len() == table.columns.len() && !table.key.is_empty();
    let shared = primary_key.filter(|_| is_whole).and_then(|primary_key| {
        let table = Table {
            id: TableId(0),
            name: name.to_string(),
            columns,
            primary_key,
            primary_key_name: String::new(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        SharedTable::new(Arc::new(table), dialect).map_err(|error| findings.push(error.message)).ok()
    });
    let key: Vec<String> = table.key.iter().map(|name| Dialect::Postgres.quoted(name)).collect();
    parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    let create = shared
        .is_some()
        .then(|| format!("CREATE TABLE {} (\n  {}\n)", quoted_path(name), parts.join(",\n  ")));
    findings.dedup();
    PlannedTable {
        name: name.to_string(),
        rows: table.rows,
        findings: findings.into_iter().map(Finding).collect(),
        create,
        is_there: true,
        shared,
    }
}

impl PlannedTable {
    /// Whether the database has such a table.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// Its name as SQL of the ledger writes it.
    pub fn ledger_name(&self) -> String {
        quoted_path(&self.name)
    }

    /// Gives all rows to `visit`, as COPY reads them: values between tabs, a line for each row.
    ///
    /// # Errors
    /// The table does not fit, or the database cannot be read.
    pub fn copy(&self, address: &Address, visit: &mut dyn FnMut(&str)) -> Result<u64, DatabaseError> {
        let Some(table) = &self.shared else {
            let findings: Vec<&str> = self.findings.iter().map(|finding| finding.0.as_str()).collect();
            let message = format!("table {} cannot be shared: {}", self.name, findings.join("; "));
            return Err(DatabaseError::new(ErrorKind::Unfit, message));
        };
        let mut session = session::connect(address)?;
        session.execute(match address.kind {
            Kind::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Kind::MariaDb => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        })?;
        let (mut from, mut count, mut line) = (None, 0, String::new());
        loop {
            let rows = session.query(&table.select_rows(from.as_ref(), None, COPY_ROWS))?;
            // Each but the first begins with the last row of the one before.
            let new = usize::from(from.is_some());
            for row in rows.iter().skip(new) {
                line.clear();
                for (position, (value, (_, kind))) in row.iter().zip(&table.columns).enumerate() {
                    if position > 0 {
                        line.push('\t');
                    }
                    push_copied(
                        &mut line,
                        value.as_deref(),
                        address.kind == Kind::MariaDb && *kind == ForeignType::Bytea,
                    );
                }
                line.push('\n');
                visit(&line);
                count += 1;
            }
            let Some(last) = rows.last().filter(|_| rows.len() == COPY_ROWS) else { return Ok(count) };
            from = Some(table.key_of(last));
        }
    }
}

/// A value as COPY reads it.
fn push_copied(line: &mut String, value: Option<&str>, is_hexadecimal: bool) {
    let Some(text) = value else { return line.push_str("\\N") };
    if is_hexadecimal {
        line.push_str("\\\\x");
    }
    for character in text.chars() {
        match character {
            '\\' => line.push_str("\\\\"),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            other => line.push(other),
        }
    }
}

fn quoted_path(name: &str) -> String {
    let (schema, object) = types::split_catalog_name(name);
    match schema == types::PUBLIC_SCHEMA {
        true => Dialect::Postgres.quoted(object),
        false => format!("{}.{}", Dialect::Postgres.quoted(schema), Dialect::Postgres.quoted(object)),
    }
}
