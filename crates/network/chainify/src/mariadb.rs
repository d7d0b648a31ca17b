//! Connections to MariaDB.

use crate::DatabaseError;
use crate::address::{Address, Tls};
use crate::dialect::{Dialect, ForeignType};
use crate::error::ErrorKind;
use crate::recorder;
use crate::session::{ScriptEnd, Session, Sets, TextRow, WrittenScript, executed_rows};
use crate::tls;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, SslOpts, Value};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

const CONNECT_MAX: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(600);
/// Bytes of one statement that adds rows.
const STATEMENT_BYTES: usize = 512 * 1024;

/// What a session is told first.
const SETTINGS: [&str; 10] = [
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION innodb_lock_wait_timeout = 5",
    "SET SESSION lock_wait_timeout = 5",
    "SET SESSION group_concat_max_len = 1073741824",
    // Rows come in the order of changes; what must hold between them the ledger holds.
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION autocommit = 1",
    // A connection that is lost lets its locks go; the writer says something more often than that.
    "SET SESSION wait_timeout = 60",
];

pub(crate) struct MariaDbSession {
    connection: Conn,
}

impl MariaDbSession {
    pub(crate) fn connect(address: &Address) -> Result<MariaDbSession, DatabaseError> {
        let ssl = match &address.tls {
            Tls::Off => None,
            Tls::On(authority) => {
                tls::choose_cryptography();
                Some(SslOpts::default().with_root_cert_path(authority.clone()))
            }
        };
        let socket = address.socket.as_ref().map(|path| path.display().to_string());
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.host.clone()))
            .tcp_port(address.port)
            .prefer_socket(false)
            .socket(socket)
            .user(Some(address.user.clone()))
            .pass(address.password.clone())
            .db_name(Some(address.database.clone()))
            .tcp_connect_timeout(Some(CONNECT_MAX))
            .read_timeout(Some(ANSWER_MAX))
            .write_timeout(Some(ANSWER_MAX))
            .tcp_nodelay(true)
            .tcp_keepalive_time_ms(Some(10_000))
            // Rows that a statement has found count, also where their values were the new ones already.
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
            .ssl_opts(ssl)
            .init(SETTINGS.to_vec());
        let connection = Conn::new(Opts::from(options)).map_err(|error| explain(&error).during(address))?;
        Ok(MariaDbSession { connection })
    }
}

impl Session for MariaDbSession {
    fn execute(&mut self, sql: &str) -> Result<u64, DatabaseError> {
        let result = self.connection.query_iter(sql).map_err(|error| explain(&error))?;
        Ok(result.affected_rows())
    }

    fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, DatabaseError> {
        let result = self.connection.query_iter(sql).map_err(|error| explain(&error))?;
        let mut rows = Vec::new();
        for row in result {
            let values = row.map_err(|error| explain(&error))?.unwrap();
            rows.push(values.into_iter().map(text).collect::<Result<TextRow, _>>()?);
        }
        Ok(rows)
    }

    fn load(
        &mut self,
        table: &str,
        columns: &[(String, ForeignType)],
        rows: &mut dyn Iterator<Item = TextRow>,
    ) -> Result<u64, DatabaseError> {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let head = format!("INSERT INTO {table} ({}) VALUES ", names.join(","));
        let (mut sql, mut count) = (head.clone(), 0);
        for row in rows {
            count += 1;
            sql.push(if sql.len() == head.len() { '(' } else { ',' });
            if sql.ends_with(',') {
                sql.push('(');
            }
            for (position, (value, (_, column))) in row.iter().zip(columns).enumerate() {
                if position > 0 {
                    sql.push(',');
                }
                match value {
                    None => sql.push_str("NULL"),
                    Some(text) => Dialect::MariaDb.push_literal(&mut sql, column, text),
                }
            }
            sql.push(')');
            if sql.len() >= STATEMENT_BYTES {
                self.execute(&sql)?;
                sql.truncate(head.len());
            }
        }
        if sql.len() > head.len() {
            self.execute(&sql)?;
        }
        Ok(count)
    }

    fn run_scripts(
        &mut self,
        height: u64,
        scripts: &[WrittenScript],
    ) -> Result<Vec<ScriptEnd>, DatabaseError> {
        let run = self.try_scripts(height, scripts);
        if run.is_err() {
            // Where the connection is gone the database does it by itself.
            let _ = self.execute("ROLLBACK");
        }
        run
    }

    fn run_sets(&mut self, height: u64, sets: &Sets) -> Result<Option<Vec<ScriptEnd>>, DatabaseError> {
        let run = self.try_sets(height, sets);
        if !matches!(run, Ok(Some(_))) {
            let _ = self.execute("ROLLBACK");
        }
        run.or_else(|error| if error.kind.is_of_statements() { Ok(None) } else { Err(error) })
    }
}

impl MariaDbSession {
    /// Runs statements that are sent together, up to the first that fails: the rows that each has met, and that failure.
    fn several(&mut self, sql: &str) -> Result<(Vec<u64>, Option<DatabaseError>), DatabaseError> {
        let mut met = Vec::new();
        let mut result = match self.connection.query_iter(sql) {
            Ok(result) => result,
            Err(error) => return failed(met, explain(&error)),
        };
        loop {
            let affected = result.affected_rows();
            let Some(mut set) = result.iter() else { return Ok((met, None)) };
            if let Some(Err(error)) = set.next() {
                return failed(met, explain(&error));
            }
            met.push(affected);
        }
    }

    fn try_scripts(
        &mut self,
        height: u64,
        scripts: &[WrittenScript],
    ) -> Result<Vec<ScriptEnd>, DatabaseError> {
        let (mut ends, mut failures) = (Vec::with_capacity(scripts.len()), BTreeMap::new());
        let mut before = vec![format!("SET @entente_height = {height}"), "BEGIN".to_string()];
        while ends.len() < scripts.len() {
            let rest = &scripts[ends.len()..];
            let savepoint = "SAVEPOINT entente_script".to_string();
            let mut statements: Vec<&str> = before.iter().map(String::as_str).collect();
            for script in rest {
                statements.push(&savepoint);
                statements.extend(script.statements.iter().map(String::as_str));
            }
            let (met, failure) = self.several(&statements.join("; "))?;
            let mut at = before.len();
            for script in rest {
                let end = at + 1 + script.statements.len();
                let met = met.get(at + 1..end).map(<[u64]>::to_vec);
                let has_failed = met.is_none();
                ends.push(ScriptEnd { place: script.place, met });
                if has_failed {
                    break;
                }
                at = end;
            }
            if let Some(failure) = failure {
                if met.len() < before.len() {
                    return Err(failure);
                }
                failures.insert(ends.len() - 1, failure.message);
                // What its statements in front of that have done stands until then.
                before = vec!["ROLLBACK TO SAVEPOINT entente_script".to_string()];
            } else {
                before.clear();
            }
        }
        let rows = executed_rows(height, &ends, &failures, |text| Dialect::MariaDb.text_literal(text));
        let executed = recorder::executed_table(Dialect::MariaDb);
        before.push(format!("INSERT INTO {executed} VALUES {rows}; COMMIT"));
        let (_, failure) = self.several(&before.join("; "))?;
        failure.map_or(Ok(ends), Err)
    }
}

impl MariaDbSession {
    fn try_sets(&mut self, height: u64, sets: &Sets) -> Result<Option<Vec<ScriptEnd>>, DatabaseError> {
        let statements: Vec<&str> = sets.statements.iter().map(|statement| statement.sql.as_str()).collect();
        let before = format!("SET @entente_height = {height}; BEGIN; ");
        let (met, failure) = self.several(&(before + &statements.join("; ")))?;
        // Which rows an UPDATE has not met it does not say.
        let expected = sets
            .statements
            .iter()
            .map(|statement| -> u64 { statement.numbers.iter().map(|number| sets.met[*number]).sum() });
        if failure.is_some()
            || met.len() != sets.statements.len() + 2
            || !met[2..].iter().copied().eq(expected)
        {
            return Ok(None);
        }
        let ends = sets.ends(&sets.met);
        let rows = executed_rows(height, &ends, &BTreeMap::new(), |text| Dialect::MariaDb.text_literal(text));
        let executed = recorder::executed_table(Dialect::MariaDb);
        let (_, failure) = self.several(&format!("INSERT INTO {executed} VALUES {rows}; COMMIT"))?;
        failure.map_or(Ok(Some(ends)), Err)
    }
}

/// A statement that fails behind others.
fn failed(met: Vec<u64>, error: DatabaseError) -> Result<(Vec<u64>, Option<DatabaseError>), DatabaseError> {
    match error.kind {
        ErrorKind::Value | ErrorKind::Duplicate => Ok((met, Some(error))),
        _ => Err(error),
    }
}

/// What the text protocol gives.
fn text(value: Value) -> Result<Option<String>, DatabaseError> {
    Ok(Some(match value {
        Value::NULL => return Ok(None),
        Value::Bytes(bytes) => String::from_utf8(bytes)
            .map_err(|_| DatabaseError::new(ErrorKind::Value, "the database gave text that is no UTF-8"))?,
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        other => {
            let mut text = String::new();
            let _ = write!(text, "{other:?}");
            text
        }
    }))
}

fn explain(error: &mysql::Error) -> DatabaseError {
    let mysql::Error::MySqlError(refused) = error else {
        return DatabaseError::new(ErrorKind::Away, error.to_string());
    };
    let kind = match refused.code {
        1062 | 1586 => ErrorKind::Duplicate,
        1205 | 1213 | 1969 => ErrorKind::Locked,
        1021 | 1114 | 1290 | 1036 | 1792 | 1015 => ErrorKind::Unwritable,
        1044 | 1045 | 1049 | 1142 | 1143 | 1227 | 1370 | 1698 => ErrorKind::Access,
        1040 | 1053 | 1077 | 1079 | 1152 | 1158..=1161 | 1184 | 1203 | 1927 => ErrorKind::Away,
        1153 | 1264 | 1690 | 1265 | 1292 | 1366 | 1406 | 1411 | 1048 | 3819 | 4025 => ErrorKind::Value,
        1054 | 1146 | 1051 | 1072 => ErrorKind::Unfit,
        _ => ErrorKind::Other,
    };
    DatabaseError::new(kind, format!("{} [{}]", refused.message, refused.code))
}
