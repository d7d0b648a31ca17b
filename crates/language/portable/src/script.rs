//! A transaction to typed statements.

use crate::change::{bind_delete, bind_update};
use crate::constant::Constants;
use crate::insert::{bind_copy, bind_insert};
use crate::refusal::refused;
use crate::statement::{Script, Statement};
use sqlparser::ast;
use syntax::parse::{ParsedStatement, parse_script};
use types::{Catalog, ExecutionVersion, Payload, SqlError, SqlState};

/// Statements of a script.
const STATEMENTS_MAX: usize = 1_000;

/// Checks a transaction. `now_ms`: the time of its block, which `now()` is, in milliseconds since 1970-01-01 00:00 UTC.
///
/// # Errors
/// `0A000` with what is not the same everywhere and what to write instead; otherwise as PostgreSQL: `42601`, `42P01`, `42703`,
/// `42804`, `22P02`, `23502`, `54000`.
pub fn check_script(catalog: &Catalog, payload: &Payload, now_ms: u64) -> Result<Script, SqlError> {
    match payload {
        Payload::Script { sql, parameters } => {
            check_statements(catalog, &Constants { sql, parameters, now_ms: Some(now_ms) })
        }
        Payload::Insert { table, columns, rows } => {
            Ok(Script { statements: vec![bind_copy(catalog, table, columns, rows, Some(now_ms))?] })
        }
        Payload::Call { procedure, .. } => Err(refused(format_args!("the call of procedure {procedure}"))
            .hint("Write the statements as a script.")),
        Payload::Session { .. } => Err(refused("a transaction block").hint(AS_ONE_SCRIPT)),
        Payload::Parts { .. }
        | Payload::SchemaOutcomes { .. }
        | Payload::MovingOutcomes { .. }
        | Payload::HeldParts { .. }
        | Payload::Agreed(_) => Err(refused("a transaction in schemas with members")),
    }
}

const AS_ONE_SCRIPT: &str = "Send the statements as one script, without BEGIN and COMMIT.";

fn check_statements(catalog: &Catalog, constants: &Constants<'_>) -> Result<Script, SqlError> {
    let parsed = parse_script(constants.sql, ExecutionVersion::NEWEST)?;
    if parsed.len() > STATEMENTS_MAX {
        let message = format!(
            "the script has {} statements, the limit is {STATEMENTS_MAX} (STATEMENTS_MAX)",
            parsed.len()
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .hint("Send several scripts, or one INSERT with several rows."));
    }
    let statements = parsed.iter().map(|statement| check_statement(catalog, statement, constants));
    Ok(Script { statements: statements.collect::<Result<_, _>>()? })
}

fn check_statement(
    catalog: &Catalog,
    statement: &ParsedStatement,
    constants: &Constants<'_>,
) -> Result<Statement, SqlError> {
    let ParsedStatement::Sql(sql) = statement else {
        return Err(refused_statement(name_of_other(statement)));
    };
    match sql.as_ref() {
        ast::Statement::Insert(insert) => bind_insert(catalog, insert, constants),
        ast::Statement::Update(update) => bind_update(catalog, update, constants),
        ast::Statement::Delete(delete) => bind_delete(catalog, delete, constants),
        ast::Statement::Query(query) if query.with.is_some() => {
            Err(refused("WITH").hint("Write the statements one after the other."))
        }
        ast::Statement::Query(_) => {
            Err(refused("SELECT in a script").hint("Read with a query of its own, outside of the script."))
        }
        ast::Statement::StartTransaction { .. }
        | ast::Statement::Commit { .. }
        | ast::Statement::Rollback { .. }
        | ast::Statement::Savepoint { .. }
        | ast::Statement::ReleaseSavepoint { .. } => {
            Err(refused("a transaction block in a script").hint(AS_ONE_SCRIPT))
        }
        other => {
            let text = other.to_string();
            let first = text.split([' ', '\n', '(']).next().unwrap_or_default();
            Err(refused_statement(&first.to_uppercase()))
        }
    }
}

fn refused_statement(name: &str) -> SqlError {
    refused(format_args!("{name} in a script")).hint("A script has INSERT, UPDATE and DELETE.")
}

fn name_of_other(statement: &ParsedStatement) -> &'static str {
    match statement {
        ParsedStatement::Sql(_) => "this statement",
        ParsedStatement::CreateRoutine(_) => "CREATE PROCEDURE or CREATE FUNCTION",
        ParsedStatement::CreateAggregate(_) => "CREATE AGGREGATE",
        ParsedStatement::DropAggregate(_) => "DROP AGGREGATE",
        ParsedStatement::CreateTableAs(_) => "CREATE TABLE … AS",
        ParsedStatement::Role(_) => "a statement about roles",
        ParsedStatement::Sequence(_) => "a statement about sequences",
        ParsedStatement::Trigger(_) => "a statement about triggers",
        ParsedStatement::Comment(_) => "COMMENT ON",
        ParsedStatement::Checkpoint => "CHECKPOINT",
        ParsedStatement::SetSchema(_) => "ALTER TABLE",
        ParsedStatement::SchemaWithMembers(_) => "CREATE SCHEMA",
        ParsedStatement::SchemaMember(_) => "ALTER SCHEMA",
        ParsedStatement::Governance(_) => "a function of governance",
        ParsedStatement::Do(_) => "DO",
        ParsedStatement::AlterType(_) => "ALTER TYPE",
        ParsedStatement::AlterRoutine(_) => "ALTER FUNCTION",
        ParsedStatement::AlterView(_) => "ALTER VIEW",
        ParsedStatement::Database(_) => "a statement about databases",
        ParsedStatement::MaterializedView(_) => "a statement about materialized views",
        ParsedStatement::DropExpression(_)
        | ParsedStatement::AlterConstraint(_)
        | ParsedStatement::Partition(_) => "ALTER TABLE",
        ParsedStatement::SetConstraints(_) => "SET CONSTRAINTS",
        ParsedStatement::Notify(_) => "NOTIFY",
        ParsedStatement::Cursor(_) => "a statement about cursors",
        ParsedStatement::Domain(_) => "a statement about domains",
    }
}
