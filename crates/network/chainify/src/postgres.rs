//! Connections to PostgreSQL.

use crate::DatabaseError;
use crate::address::{Address, Tls};
use crate::dialect::ForeignType;
use crate::error::ErrorKind;
use crate::session::{Session, TextRow};
use crate::tls;
use postgres::config::SslMode;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::io::Write;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT_MAX: Duration = Duration::from_secs(5);
const SILENT_MAX: Duration = Duration::from_secs(10);

/// What a session is told first. Plans: what is looked up by key is never worth a scan of the table.
const SETTINGS: &str = "SET client_encoding = 'UTF8'; SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; \
     SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1; \
     SET standard_conforming_strings = on; SET default_transaction_isolation = 'read committed'; \
     SET lock_timeout = '5s'; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 3; SET statement_timeout = '10min'; \
     SET idle_in_transaction_session_timeout = '5min'; SET search_path = pg_catalog; \
     SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET jit = off";

pub(crate) struct PostgresSession {
    client: Client,
}

impl PostgresSession {
    pub(crate) fn connect(address: &Address) -> Result<PostgresSession, DatabaseError> {
        let mut config = Config::new();
        config.user(&address.user).dbname(&address.database).port(address.port);
        config.application_name("entente").connect_timeout(CONNECT_MAX);
        // A machine that is gone says nothing.
        config.keepalives_idle(SILENT_MAX).keepalives_interval(SILENT_MAX / 2).keepalives_retries(3);
        config.tcp_user_timeout(SILENT_MAX * 3);
        match &address.socket {
            Some(folder) => config.host_path(folder),
            None => config.host(&address.host),
        };
        if let Some(password) = &address.password {
            config.password(password);
        }
        let connected = match &address.tls {
            Tls::Off => config.ssl_mode(SslMode::Disable).connect(NoTls),
            Tls::On(authority) => {
                let tls = MakeRustlsConnect::new(tls::config(authority.as_deref())?);
                config.ssl_mode(SslMode::Require).connect(tls)
            }
        };
        let mut session =
            PostgresSession { client: connected.map_err(|error| explain(&error).during(address))? };
        session.batch(SETTINGS)?;
        Ok(session)
    }

    fn batch(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.client.batch_execute(sql).map_err(|error| explain(&error))
    }
}

impl Session for PostgresSession {
    fn execute(&mut self, sql: &str) -> Result<u64, DatabaseError> {
        let messages = self.client.simple_query(sql).map_err(|error| explain(&error))?;
        let completed = messages.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
            _ => None,
        });
        Ok(completed.unwrap_or(0))
    }

    fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, DatabaseError> {
        let messages = self.client.simple_query(sql).map_err(|error| explain(&error))?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    fn load(
        &mut self,
        table: &str,
        columns: &[(String, ForeignType)],
        rows: &mut dyn Iterator<Item = TextRow>,
    ) -> Result<u64, DatabaseError> {
        let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
        let sql = format!("COPY {table} ({}) FROM STDIN", names.join(", "));
        let mut writer = self.client.copy_in(&sql).map_err(|error| explain(&error))?;
        let (mut line, mut count) = (Vec::new(), 0);
        for row in rows {
            count += 1;
            for (position, value) in row.iter().enumerate() {
                if position > 0 {
                    line.push(b'\t');
                }
                push_copied(&mut line, value.as_deref());
            }
            line.push(b'\n');
            if line.len() >= 64 * 1024 {
                writer.write_all(&line).map_err(|error| broken(&error))?;
                line.clear();
            }
        }
        writer.write_all(&line).map_err(|error| broken(&error))?;
        writer.finish().map_err(|error| explain(&error))?;
        Ok(count)
    }
}

/// A value as COPY reads it.
fn push_copied(line: &mut Vec<u8>, value: Option<&str>) {
    let Some(text) = value else { return line.extend_from_slice(b"\\N") };
    for byte in text.bytes() {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(byte),
        }
    }
}

fn broken(error: &std::io::Error) -> DatabaseError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
        Some(error) => explain(error),
        None => DatabaseError::new(ErrorKind::Away, error.to_string()),
    }
}

fn explain(error: &postgres::Error) -> DatabaseError {
    let Some(database) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
        return DatabaseError::new(ErrorKind::Away, format!("{error}{cause}"));
    };
    let code = database.code().code();
    let kind = match code {
        "23505" => ErrorKind::Duplicate,
        "55P03" | "40P01" => ErrorKind::Locked,
        "53100" | "25006" => ErrorKind::Unwritable,
        "42501" => ErrorKind::Access,
        _ => match &code[..2] {
            "08" | "57" | "53" => ErrorKind::Away,
            "28" | "3D" => ErrorKind::Access,
            "22" | "23" => ErrorKind::Value,
            "42" => ErrorKind::Unfit,
            _ => ErrorKind::Other,
        },
    };
    let detail = database.detail().map_or_else(String::new, |detail| format!(" ({detail})"));
    DatabaseError::new(kind, format!("{} [{code}]{detail}", database.message()))
}
