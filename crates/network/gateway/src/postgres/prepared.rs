//! The prepared statements of a session. Those of messages and those of PREPARE are the same ones.
//!
//! ```text
//!  Parse ──────────────▶ ┌────────────────────┐ ──▶ Bind, Execute
//!  PREPARE name AS … ──▶ │ PreparedStatements │ ──▶ EXECUTE name (expressions): the values of the expressions are its parameters
//!                        └────────────────────┘
//! ```
//!
//! A literal is a value by itself. Other expressions are a query `VALUES (…)`, which runs where any query of the session would:
//! in a transaction block it is a step of its own, so that every node finds out whether it gives the same.

use super::encode::wire_type;
use super::prepared_command::{self, Execute, Prepare};
use super::script::{self, Statement, classify, position};
use super::session::{Failure, INVALID_STATEMENT_NAME, Session, problem};
use super::statement::{Body, ParsedStatement, empty_statement, shift};
use crate::{StatementKind, limits};
use catalogue::PreparedFacts;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use types::session_format::within_format;
use types::{
    CompositeTypes, DataType, OutputColumn, SqlError, SqlState, StatementResult, Value, ValueLimits,
    can_cast_in_assignment,
};

/// `42P05` a prepared statement that exists already.
const DUPLICATE_STATEMENT: SqlState = SqlState(*b"42P05");
/// Seconds from 1970-01-01 to 2000-01-01, where PostgreSQL's time starts.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The prepared statements of a session, by name; that without a name among them.
#[derive(Default)]
pub(super) struct PreparedStatements {
    by_name: BTreeMap<String, PreparedStatement>,
}

struct PreparedStatement {
    parsed: Arc<ParsedStatement>,
    /// What the client has sent.
    text: Arc<str>,
    /// Microseconds since 2000-01-01.
    prepared_at: i64,
    from_sql: bool,
}

impl PreparedStatements {
    /// Whether there can be another one of this name.
    ///
    /// # Errors
    /// `42P05` where there is one already, `54000` where there are too many, or it is too long to be kept.
    pub(super) fn check_new(&self, name: &str, sql: &str) -> Result<(), SqlError> {
        let (bytes, limit) = (sql.len(), limits::PREPARED_STATEMENT_BYTES_MAX);
        if bytes > limit && !name.is_empty() {
            let message = format!(
                "the prepared statement has {bytes} bytes, the limit is {limit} (PREPARED_STATEMENT_BYTES_MAX)"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Give long values as parameters, or run it without a name."));
        }
        let exists = self.by_name.contains_key(name);
        if exists && !name.is_empty() {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(SqlError::new(DUPLICATE_STATEMENT, message));
        }
        let limit = limits::PREPARED_STATEMENTS_MAX;
        if self.by_name.len() >= limit && !exists {
            let message =
                format!("a session has at most {limit} prepared statements (PREPARED_STATEMENTS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("DEALLOCATE what is not needed any more."));
        }
        Ok(())
    }

    /// Keeps one, in the place of what has its name.
    pub(super) fn keep(&mut self, name: String, text: &str, parsed: ParsedStatement, from_sql: bool) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let prepared_at =
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX).saturating_sub(EPOCH_SECONDS * 1_000_000);
        let parsed = Arc::new(parsed);
        self.by_name.insert(name, PreparedStatement { parsed, text: text.into(), prepared_at, from_sql });
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<ParsedStatement>> {
        self.by_name.get(name).map(|known| &known.parsed)
    }

    /// # Errors
    /// `26000` where there is none of this name.
    pub(super) fn find(&self, name: &str) -> Result<Arc<ParsedStatement>, SqlError> {
        self.get(name).cloned().ok_or_else(|| missing(name))
    }

    /// Forgets one, if there is one.
    pub(super) fn close(&mut self, name: &str) {
        self.by_name.remove(name);
    }

    /// # Errors
    /// `26000` where there is none of this name.
    pub(super) fn deallocate(&mut self, name: &str) -> Result<(), SqlError> {
        self.by_name.remove(name).map(drop).ok_or_else(|| missing(name))
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.by_name.clear();
    }

    /// The rows of `pg_prepared_statements`, which does not show the one without a name.
    pub(super) fn facts(&self) -> Vec<PreparedFacts> {
        let named = self.by_name.iter().filter(|(name, _)| !name.is_empty());
        let facts = |(name, known): (&String, &PreparedStatement)| PreparedFacts {
            name: name.clone(),
            statement: Arc::clone(&known.text),
            prepared_at: known.prepared_at,
            parameter_types: known.parsed.parameter_oids(),
            from_sql: known.from_sql,
        };
        named.map(facts).collect()
    }
}

fn missing(name: &str) -> SqlError {
    let message = match name {
        "" => "unnamed prepared statement does not exist".to_string(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    SqlError::new(INVALID_STATEMENT_NAME, message)
}

/// The only statement of a text that is one.
fn only(sql: &str) -> Result<Statement<'_>, SqlError> {
    let missing = || SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input");
    script::split(sql).pop().ok_or_else(missing)
}

/// Moves an error's position from a part of a statement to the statement. `front`: what was put in front of the part.
fn moved(error: SqlError, sql: &str, part: &Statement<'_>, front: &str) -> SqlError {
    let front = front.len() as u32;
    let position = error.position.and_then(|at| at.checked_sub(front)).filter(|at| *at > 0);
    SqlError { position: position.map(|at| at + position_of(sql, part) - 1), ..error }
}

fn position_of(sql: &str, part: &Statement<'_>) -> u32 {
    position(sql, part.start)
}

/// What runs under another text: a position in that says nothing to the client.
pub(super) fn without_position(failure: Failure) -> Failure {
    match failure {
        Failure::Problem(error, context) => {
            Failure::Problem(Box::new(SqlError { position: None, ..*error }), context)
        }
        Failure::Closed => Failure::Closed,
    }
}

impl Session {
    /// Runs PREPARE.
    pub(super) async fn prepare_statement(&mut self, sql: &str) -> Result<StatementResult, Failure> {
        let statement = only(sql)?;
        let Prepare { name, types, statement } = prepared_command::parse_prepare(&statement)?;
        let mut given = Vec::with_capacity(types.len());
        for one in &types {
            given.push(self.type_number(sql, one).await?);
        }
        let class = classify(&statement, &*self.known_tables()?);
        let parsed = self.parse(&statement, class, given).await;
        let parsed = parsed.map_err(|failure| shift(failure, sql, statement.start))?;
        self.statements.check_new(&name, sql)?;
        self.statements.keep(name, sql, parsed, true);
        Ok(StatementResult { tag: "PREPARE".to_string(), ..StatementResult::default() })
    }

    /// The object identifier of a type that is named; 0 where the type is to be found out. Length, precision and scale do not
    /// count, as in PostgreSQL.
    async fn type_number(&self, sql: &str, one: &Statement<'_>) -> Result<u32, SqlError> {
        const FRONT: &str = "SELECT CAST(NULL AS ";
        if one.text.eq_ignore_ascii_case("unknown") {
            return Ok(0);
        }
        let prepared = self.prepare(&format!("{FRONT}{})", one.text), &[]).await;
        let prepared = prepared.map_err(|error| moved(error, sql, one, FRONT))?;
        Ok(prepared.columns.first().map_or(0, |column| wire_type(column.data_type).oid()))
    }

    /// What the client can be told of an EXECUTE before it runs.
    pub(super) fn describe_execute(
        &self,
        sql: String,
        execute: &Execute<'_>,
        given: Vec<u32>,
    ) -> ParsedStatement {
        let none = ParsedStatement { sql, body: Body::Execute, ..empty_statement(given) };
        if execute.explain.is_some() {
            let plan = OutputColumn { name: "QUERY PLAN".to_string(), data_type: DataType::Text(None) };
            return ParsedStatement { columns: vec![plan], returns_rows: true, ..none };
        }
        // One that is not there is missed when it is run.
        let Some(known) = self.statements.get(&execute.name) else { return none };
        let (columns, told) = (known.columns.clone(), known.told.clone());
        ParsedStatement { columns, told, returns_rows: known.returns_rows, ..none }
    }

    /// What an EXECUTE runs, and the values of its parameters.
    pub(super) async fn executed(
        &mut self,
        statement: &ParsedStatement,
    ) -> Result<(Arc<ParsedStatement>, Vec<Value>), Failure> {
        let sql = statement.sql.as_str();
        let only = only(sql)?;
        let Execute { explain, name, arguments } = prepared_command::parse_execute(&only)?;
        let known = self.statements.find(&name)?;
        if matches!(known.body, Body::Execute) {
            let error = SqlError::unsupported("EXECUTE of a prepared EXECUTE");
            return Err(error.hint("Prepare the statement itself.").into());
        }
        let (found, expected) = (arguments.len(), known.parameters.len());
        if found != expected {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            return Err(error.detail(format!("Expected {expected} parameters but got {found}.")).into());
        }
        let values = self.arguments(sql, &arguments, &known.parameters).await?;
        let known = match explain {
            None => known,
            Some(explain) => Arc::new(self.explained(explain, &known).await.map_err(without_position)?),
        };
        let same = known.columns == statement.columns && known.returns_rows == statement.returns_rows;
        if statement.described && !same {
            let error =
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type");
            return Err(error.hint("prepare the statement again").into());
        }
        Ok((known, values))
    }

    /// EXPLAIN of a prepared statement.
    async fn explained(
        &mut self,
        explain: &str,
        known: &ParsedStatement,
    ) -> Result<ParsedStatement, Failure> {
        let sql = format!("{explain}{}", known.sql);
        let statement = only(&sql)?;
        let class = classify(&statement, &*self.known_tables()?);
        self.parse(&statement, class, known.parameter_oids()).await
    }

    /// The values of arguments as the parameters' types have them, by the rules of assignment.
    async fn arguments(
        &mut self,
        sql: &str,
        arguments: &[Statement<'_>],
        parameters: &[DataType],
    ) -> Result<Vec<Value>, Failure> {
        let literals: Option<Vec<_>> = arguments.iter().map(prepared_command::literal).collect();
        let given = match literals {
            Some(literals) => literals,
            None => self.computed(sql, arguments).await?,
        };
        let (format, limits) = (self.settings.format(), ValueLimits::of(self.version()));
        let types = parameters.iter().chain(given.iter().map(|(_, from)| from));
        // They are made of all tables, which most values have nothing to do with.
        let known = match types.into_iter().any(|data_type| data_type.needs_catalog()) {
            true => CompositeTypes::new(&*self.known_tables()?),
            false => CompositeTypes::default(),
        };
        let mut values = Vec::with_capacity(given.len());
        for (index, ((value, from), parameter)) in given.into_iter().zip(parameters).enumerate() {
            let (target, at) = (wire_type(*parameter), position_of(sql, &arguments[index]));
            if !can_cast_in_assignment(from, known.base_of(target)) {
                let shown = |data_type: DataType| match data_type {
                    DataType::Text(Some(_)) => "character varying".to_string(),
                    other => known.name_of(other.family()),
                };
                let message = format!(
                    "parameter ${} of type {} cannot be coerced to the expected type {}",
                    index + 1,
                    shown(from),
                    shown(target)
                );
                let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
                return Err(error.hint("You will need to rewrite or cast the expression.").at(at).into());
            }
            let assign = || match target.needs_catalog() {
                true => known.assign(value, target),
                false => types::assign(value, target),
            };
            let assigned = limits.within(|| within_format(format, assign));
            // A literal is read where it stands.
            values.push(
                assigned.map_err(|error| if from == DataType::Unknown { error.at(at) } else { error })?,
            );
        }
        Ok(values)
    }

    /// The values of expressions, with their types.
    async fn computed(
        &mut self,
        sql: &str,
        arguments: &[Statement<'_>],
    ) -> Result<Vec<(Value, DataType)>, Failure> {
        const FRONT: &str = "VALUES (";
        let (Some(first), Some(last)) = (arguments.first(), arguments.last()) else { return Ok(Vec::new()) };
        if let Some(at) = arguments.iter().find_map(prepared_command::subquery_in) {
            let message = "cannot use subquery in EXECUTE parameter";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(position(sql, at)).into());
        }
        let text = format!("{FRONT}{})", &sql[first.start..last.end()]);
        let query = only(&text)?;
        let class = classify(&query, &*self.known_tables()?);
        let parsed = self.parse(&query, class, Vec::new()).await.map_err(|failure| match failure {
            Failure::Problem(mut error, context) => {
                // VALUES takes what EXECUTE takes, but for its name.
                if let Some(what) = error.message.strip_suffix(" are not allowed in VALUES") {
                    error.message = format!("{what} are not allowed in EXECUTE parameters");
                }
                Failure::Problem(Box::new(moved(*error, sql, first, FRONT)), context)
            }
            Failure::Closed => Failure::Closed,
        })?;
        if !parsed.parameters.is_empty() {
            return Err(problem(SqlState::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        if self.block.is_none()
            && let Body::Database(prepared) = &parsed.body
            && prepared.lock().kind == StatementKind::Write
        {
            let error = SqlError::unsupported("a function that writes in a parameter of EXECUTE");
            return Err(error.hint("BEGIN first: it is a step of a transaction block.").into());
        }
        let mut result = self.execute_statement(&parsed, Vec::new()).await.map_err(without_position)?;
        self.connection.put_notices(&result.notices);
        let row = result.rows.pop().unwrap_or_default();
        let typed = row.into_iter().zip(arguments).zip(&parsed.columns);
        let typed =
            typed.map(|((value, argument), column)| match prepared_command::is_of_unknown_type(argument) {
                true => (value, DataType::Unknown),
                false => (value, column.data_type),
            });
        Ok(typed.collect())
    }
}
