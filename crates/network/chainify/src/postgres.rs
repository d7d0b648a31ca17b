//! Connections to PostgreSQL.

use crate::DatabaseError;
use crate::address::{Address, Tls};
use crate::dialect::{Dialect, ForeignType};
use crate::error::ErrorKind;
use crate::recorder;
use crate::session::{ScriptEnd, Session, Sets, TextRow, WrittenScript, executed_rows, met_rows};
use crate::tls;
use postgres::config::SslMode;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use std::collections::BTreeMap;
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

/// Runs scripts one after the other. Only what is wrong with values (classes 22 and 23) is a script's own failure.
pub(crate) const RUN_SCRIPTS: &str = r"CREATE OR REPLACE FUNCTION entente.run(at bigint, places bigint[], ends int[], statements text[])
RETURNS TABLE (place bigint, met text) LANGUAGE plpgsql AS $$
DECLARE
  next int := 1;
  rows bigint;
  state text;
  message text;
BEGIN
  PERFORM set_config('entente.height', at::text, true);
  FOR script IN 1 .. cardinality(places) LOOP
    place := places[script];
    met := '';
    BEGIN
      FOR statement IN next .. ends[script] LOOP
        EXECUTE statements[statement];
        GET DIAGNOSTICS rows = ROW_COUNT;
        met := met || rows || ' ';
      END LOOP;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
      IF left(state, 2) NOT IN ('22', '23') THEN
        RAISE;
      END IF;
      met := NULL;
    END;
    INSERT INTO entente.executed VALUES (at, place, met, CASE WHEN met IS NULL THEN message || ' [' || state || ']' END);
    next := ends[script] + 1;
    RETURN NEXT;
  END LOOP;
END $$";

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

    fn run_scripts(
        &mut self,
        height: u64,
        scripts: &[WrittenScript],
    ) -> Result<Vec<ScriptEnd>, DatabaseError> {
        let places: Vec<String> = scripts.iter().map(|script| script.place.to_string()).collect();
        let (mut ends, mut end, mut statements) = (Vec::new(), 0, Vec::new());
        for script in scripts {
            end += script.statements.len();
            ends.push(end.to_string());
            statements.extend(script.statements.iter().map(|sql| Dialect::Postgres.text_literal(sql)));
        }
        let (places, ends, statements) = (places.join(","), ends.join(","), statements.join(","));
        let sql = format!(
            "SELECT place::text, met FROM entente.run({height}, ARRAY[{places}]::bigint[], ARRAY[{ends}]::int[], ARRAY[{statements}]::text[])"
        );
        let rows = self.query(&sql)?;
        let ended = |row: TextRow| {
            let place = row.first()?.as_ref()?.parse().ok()?;
            Some(ScriptEnd { place, met: row.get(1)?.as_deref().map(met_rows) })
        };
        Ok(rows.into_iter().filter_map(ended).collect())
    }

    fn run_sets(&mut self, height: u64, sets: &Sets) -> Result<Option<Vec<ScriptEnd>>, DatabaseError> {
        let statements: Vec<&str> = sets.statements.iter().map(|statement| statement.sql.as_str()).collect();
        let sql = format!("BEGIN; SET LOCAL entente.height = '{height}'; {}", statements.join("; "));
        let messages = match self.client.simple_query(&sql) {
            Ok(messages) => messages,
            Err(error) => {
                let error = explain(&error);
                // Where the connection is gone the database does it by itself.
                let _ = self.batch("ROLLBACK");
                tracing::debug!(%error, "the scripts of the block run one by one");
                return if error.kind.is_of_statements() { Ok(None) } else { Err(error) };
            }
        };
        let mut met = sets.met.clone();
        let updated = sets.statements.iter().filter(|statement| statement.updates);
        updated.flat_map(|statement| &statement.numbers).for_each(|number| met[*number] = 0);
        for message in messages {
            let SimpleQueryMessage::Row(row) = message else { continue };
            let number = row.get(0).and_then(|text| text.parse::<usize>().ok());
            if let Some(met) = number.and_then(|number| met.get_mut(number)) {
                *met += 1;
            }
        }
        let ends = sets.ends(&met);
        let rows =
            executed_rows(height, &ends, &BTreeMap::new(), |text| Dialect::Postgres.text_literal(text));
        let executed = recorder::executed_table(Dialect::Postgres);
        let ended = self.batch(&format!("INSERT INTO {executed} VALUES {rows}; COMMIT"));
        if ended.is_err() {
            let _ = self.batch("ROLLBACK");
        }
        ended.map(|()| Some(ends))
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
