//! The extended protocol: prepared statements and portals.

use super::decode::{Place, decode_parameter, is_newer, is_of_rows, no_such_type};
use super::encode::{Format, data_row, row_description};
use super::message::{Message, Target};
use super::prepared::without_position;
use super::script;
use super::session::{Failure, INVALID_CURSOR_NAME, Session, problem};
use super::statement::{Body, ParsedStatement, check_length, empty_statement, shift};
use super::void_parameters::without_void;
use crate::limits;
use bytes::Bytes;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use std::sync::Arc;
use types::session_format::within_format;
use types::{CompositeTypes, MemoryShare, SqlError, SqlState, StatementResult, Value, ValueLimits};

/// `42P03` a portal that exists already.
const DUPLICATE_CURSOR: SqlState = SqlState(*b"42P03");
/// `55000` a portal that has run already.
const NOT_IN_PREREQUISITE_STATE: SqlState = SqlState(*b"55000");

/// How far a portal is.
enum PortalState {
    Ready,
    /// The result, what it takes, and how many of its rows were sent.
    Rows(StatementResult, MemoryShare, usize),
    /// All rows were sent as they were found.
    Given,
    Done,
}

/// A statement with its parameters.
pub(super) struct Portal {
    statement: Arc<ParsedStatement>,
    parameters: Vec<Value>,
    formats: Vec<i16>,
    progress: PortalState,
}

impl Session {
    pub(super) async fn extended(&mut self, message: Message) -> Result<(), Failure> {
        match message {
            Message::Parse { name, sql, types } => self.on_parse(name, &sql, types).await,
            Message::Bind { portal, statement, formats, values, results } => {
                self.on_bind(portal, &statement, &formats, &values, results)
            }
            Message::Describe { target: Target::Statement, name } => self.describe_statement(&name),
            Message::Describe { target: Target::Portal, name } => self.describe_portal(&name),
            Message::Execute { portal, rows_max } => self.on_execute(&portal, rows_max).await,
            Message::Close { target, name } => {
                match target {
                    Target::Statement => self.statements.close(&name),
                    Target::Portal => self.close_portal(&name).await?,
                }
                self.connection.put(&CloseComplete::new());
                Ok(())
            }
            Message::Flush => Ok(self.connection.flush().await?),
            Message::FunctionCall => {
                Err(SqlError::unsupported("the function call message").hint("use CALL or SELECT").into())
            }
            // Answered by the caller.
            Message::Query(_)
            | Message::Sync
            | Message::CopyData(_)
            | Message::CopyDone
            | Message::CopyFail(_)
            | Message::Terminate => Ok(()),
        }
    }

    async fn on_parse(&mut self, name: String, sql: &str, types: Vec<u32>) -> Result<(), Failure> {
        check_length(sql)?;
        self.statements.check_new(&name, sql)?;
        let sql = &*without_void(sql, &types);
        let statements = script::split(sql);
        let parsed = match statements.as_slice() {
            [] => empty_statement(types),
            [statement] => {
                let class = script::classify(statement, &self.known_schema());
                self.check_not_failed(class.ends_block())?;
                let parsed = self.parse(statement, class, types).await;
                parsed.map_err(|failure| shift(failure, sql, statement.start))?
            }
            _ => {
                let message = "cannot insert multiple commands into a prepared statement";
                return Err(problem(SqlState::SYNTAX_ERROR, message));
            }
        };
        self.statements.keep(name, sql, parsed, false);
        self.connection.put(&ParseComplete::new());
        Ok(())
    }

    fn on_bind(
        &mut self,
        name: String,
        statement: &str,
        formats: &[i16],
        values: &[Option<Bytes>],
        results: Vec<i16>,
    ) -> Result<(), Failure> {
        let shown = statement;
        let statement = self.bound_now(self.statements.find(statement)?);
        self.check_not_failed(statement.ends_block())?;
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(problem(DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        if self.portals.len() >= limits::PORTALS_MAX {
            let message = format!("a session has at most {} portals (PORTALS_MAX)", limits::PORTALS_MAX);
            return Err(problem(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        check_counts(shown, &statement, formats, values, &results)?;
        // What a parameter may be, the ledger's rules say.
        let limits = ValueLimits::of(self.version());
        let mut parameters = Vec::with_capacity(values.len());
        for (index, bytes) in values.iter().enumerate() {
            let (oid, data_type) = (statement.parameter_oid(index), statement.parameters[index]);
            let format = Format::of(formats, index);
            let oid = match (is_newer(oid, self.version()), format) {
                (false, _) => oid,
                (true, Format::Text) => 0,
                (true, Format::Binary) => return Err(no_such_type(Place::Parameter(index), oid).into()),
            };
            let decode = || match (
                decode_parameter(index, bytes.as_deref(), format, oid, data_type),
                is_of_rows(data_type),
            ) {
                (Ok(value), true) => CompositeTypes::new(&self.known_catalog()).assign(value, data_type),
                (decoded, _) => decoded,
            };
            parameters.push(limits.within(|| within_format(self.settings.format(), decode))?);
        }
        self.portals
            .insert(name, Portal { statement, parameters, formats: results, progress: PortalState::Ready });
        self.connection.put(&BindComplete::new());
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), Failure> {
        let statement = self.statements.find(name)?;
        self.connection.put(&ParameterDescription::new(statement.parameter_oids()));
        self.describe_rows(&statement, &[]);
        Ok(())
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Failure> {
        let Some(portal) = self.portals.get(name) else {
            // An open cursor is a portal too.
            let missing = || problem(INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist"));
            let (columns, told) = self.described_cursor(name).ok_or_else(missing)?;
            self.connection.put(&row_description(&columns, &told, &[]));
            return Ok(());
        };
        let (statement, formats) = (Arc::clone(&portal.statement), portal.formats.clone());
        self.describe_rows(&statement, &formats);
        Ok(())
    }

    fn describe_rows(&mut self, statement: &ParsedStatement, formats: &[i16]) {
        if statement.returns_rows {
            self.connection.put(&row_description(&statement.columns, &statement.told, formats));
        } else {
            self.connection.put(&NoData::new());
        }
    }

    async fn on_execute(&mut self, name: &str, rows_max: usize) -> Result<(), Failure> {
        let Some(mut portal) = self.portals.remove(name) else {
            return Err(problem(INVALID_CURSOR_NAME, format!("portal \"{name}\" does not exist")));
        };
        let ends = portal.statement.ends_block();
        self.check_not_failed(ends)?;
        self.join_pipeline(&portal.statement).await?;
        let result = self.run_portal(name, &mut portal, rows_max).await;
        self.portals.insert(name.to_string(), portal);
        result
    }

    async fn run_portal(&mut self, name: &str, portal: &mut Portal, rows_max: usize) -> Result<(), Failure> {
        if !matches!(portal.statement.body, Body::Execute) {
            return self.run_bound(name, portal, rows_max).await;
        }
        (portal.statement, portal.parameters) = self.executed(&portal.statement).await?;
        self.run_bound(name, portal, rows_max).await.map_err(without_position)
    }

    async fn run_bound(&mut self, name: &str, portal: &mut Portal, rows_max: usize) -> Result<(), Failure> {
        match &portal.statement.body {
            Body::Empty => {
                self.connection.put(&EmptyQueryResponse::new());
                return Ok(());
            }
            Body::Copy(copy) => {
                let copy = Arc::clone(copy);
                return self.copy_in(copy).await;
            }
            Body::CopyOut(copy) => {
                let copy = Arc::clone(copy);
                return self.copy_out(&copy).await;
            }
            _ => {}
        }
        if rows_max == 0
            && matches!(portal.progress, PortalState::Ready)
            && let Some(cached) = self.streamed(&portal.statement).await?
        {
            portal.progress = PortalState::Done;
            let parameters = std::mem::take(&mut portal.parameters);
            self.send_rows(&portal.statement, cached, parameters, (false, &portal.formats)).await?;
            portal.progress = PortalState::Given;
            return Ok(());
        }
        let (result, memory, sent) = match std::mem::replace(&mut portal.progress, PortalState::Done) {
            PortalState::Ready => {
                let parameters = std::mem::take(&mut portal.parameters);
                let result = self.execute_statement(&portal.statement, parameters).await?;
                self.connection.put_notices(&result.notices);
                let memory = self.share_of(&result)?;
                (result, memory, 0)
            }
            PortalState::Rows(result, memory, sent) => (result, memory, sent),
            PortalState::Given => {
                portal.progress = PortalState::Given;
                self.connection.put(&CommandComplete::new("SELECT 0".to_string()));
                return Ok(());
            }
            PortalState::Done => {
                return Err(problem(NOT_IN_PREREQUISITE_STATE, format!("portal \"{name}\" cannot be run")));
            }
        };
        if !portal.statement.returns_rows {
            self.connection.put(&CommandComplete::new(result.tag));
            return Ok(());
        }
        let end = if rows_max == 0 {
            result.rows.len()
        } else {
            result.rows.len().min(sent.saturating_add(rows_max))
        };
        let format = self.settings.format();
        for row in &result.rows[sent..end] {
            let output = self.connection.output();
            within_format(format, || data_row(output, &result.columns, row, &portal.formats));
            self.connection.flush_if_full().await?;
        }
        // As PostgreSQL: a portal that gave as many rows as asked is suspended, even if none are left.
        if rows_max > 0 && end - sent == rows_max {
            self.connection.put(&PortalSuspended::new());
            portal.progress = PortalState::Rows(result, memory, end);
            return Ok(());
        }
        // A query says how many rows this message has given, a change how many it has changed.
        let tag = match sent > 0 && result.tag.starts_with("SELECT") {
            true => format!("SELECT {}", end - sent),
            false => result.tag.clone(),
        };
        self.connection.put(&CommandComplete::new(tag));
        portal.progress = PortalState::Rows(result, memory, end);
        Ok(())
    }
}

/// Compares the counts of a Bind message with the statement.
fn check_counts(
    name: &str,
    statement: &ParsedStatement,
    formats: &[i16],
    values: &[Option<Bytes>],
    results: &[i16],
) -> Result<(), SqlError> {
    let violation = |message: String| Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message));
    if values.len() != statement.parameters.len() {
        let (found, expected) = (values.len(), statement.parameters.len());
        return violation(format!(
            "bind message supplies {found} parameters, but prepared statement \"{name}\" requires {expected}"
        ));
    }
    if formats.len() > 1 && formats.len() != values.len() {
        let (formats, values) = (formats.len(), values.len());
        return violation(format!("bind message has {formats} parameter formats but {values} parameters"));
    }
    let columns = if statement.returns_rows { statement.columns.len() } else { 0 };
    if results.len() > 1 && results.len() != columns {
        let results = results.len();
        return violation(format!(
            "bind message has {results} result formats but query has {columns} columns"
        ));
    }
    match formats.iter().chain(results).find(|code| !matches!(code, 0 | 1)) {
        Some(code) => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}")))
        }
        None => Ok(()),
    }
}
