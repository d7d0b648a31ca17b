//! From text to syntax trees: sqlparser's PostgreSQL grammar behind our limits.

pub mod aggregate;
pub mod alter_routine;
pub mod alter_type;
pub mod comment;
pub mod conflict_target;
pub mod create_as;
pub mod cursor;
pub mod database;
pub mod deferrals;
mod dialect;
pub mod domain;
pub mod drop_expression;
mod drop_routine;
pub(crate) mod errors;
mod exclusion;
mod fetch;
mod frame_offsets;
pub mod governance;
pub mod grant;
mod locking;
pub(crate) mod long_names;
pub mod materialized_view;
pub mod notify;
mod only;
pub mod partition;
pub(crate) mod parts;
mod qualified;
pub mod refused;
pub mod role;
pub mod routine;
mod schema_change;
pub mod schema_members;
pub mod sequence;
pub mod set_columns;
pub mod set_schema;
mod spoken;
mod statement_texts;
mod storage_words;
pub mod subscripts;
pub(crate) mod tokens;
pub mod trigger;
mod type_collation;
pub mod view;
mod words;
mod written;

use crate::parse::aggregate::{
    CreateAggregate, DropAggregate, is_about_aggregates, parse_create_aggregate, parse_drop_aggregate,
};
use crate::parse::alter_routine::{AlterRoutine, alters_routine, parse_alter_routine};
use crate::parse::alter_type::{AlterType, alters_type, parse_alter_type};
use crate::parse::comment::{CommentOn, parse_comment};
use crate::parse::create_as::{CreateTableAs, creates_table_as, parse_create_table_as, select_into};
use crate::parse::cursor::{CursorUse, parse_cursor_tokens, uses_cursor};
use crate::parse::database::{DatabaseStatement, is_about_databases, parse_database};
use crate::parse::deferrals::{
    AlterConstraint, SetConstraints, alters_constraint, misplaced_deferral, parse_alter_constraint,
    parse_set_constraints, sets_constraints,
};
use crate::parse::domain::{DomainStatement, is_about_domains, parse_domain};
use crate::parse::drop_expression::{DropExpression, drops_expression, parse_drop_expression};
use crate::parse::errors::{expect_end, parser_error};
pub use crate::parse::exclusion::{Exclusion, exclusion};
pub use crate::parse::fetch::{limit_with_ties, write_ties};
use crate::parse::governance::{GovernanceCall, governance_function, parse_governance};
pub use crate::parse::locking::lock_strength;
use crate::parse::long_names::cut_long_names;
use crate::parse::materialized_view::{
    MaterializedViewStatement, is_about_materialized_views, parse_materialized_view,
};
use crate::parse::notify::{NotifyStatement, notifies, parse_notify};
pub use crate::parse::only::{put_only, take_only, without_only};
use crate::parse::partition::{AlterPartition, alters_partition, parse_alter_partition};
pub use crate::parse::parts::{parse_expression, parse_query};
pub use crate::parse::qualified::qualified_names;
use crate::parse::refused::refused;
use crate::parse::role::{RoleStatement, changes_owner, is_about_roles, parse_role};
use crate::parse::routine::{CreateRoutine, parse_create_routine, parse_do};
pub use crate::parse::schema_change::is_schema_change;
use crate::parse::schema_members::{
    AlterSchemaMember, CreateSchemaWithMembers, is_about_members, parse_schema_member,
    parse_schema_with_members,
};
use crate::parse::sequence::{SequenceStatement, is_about_sequences, parse_sequence};
use crate::parse::set_columns::move_set_columns;
use crate::parse::set_schema::{SetSchema, parse_set_schema, sets_schema};
pub use crate::parse::statement_texts::statement_texts;
use crate::parse::storage_words::{drop_unlogged, drop_without_oids};
pub use crate::parse::tokens::{OPERATORS_MAX, tokenize, too_deep};
use crate::parse::tokens::{is_word, parser, tokenize_by, word_at};
use crate::parse::trigger::{TriggerStatement, is_about_triggers, parse_trigger};
use crate::parse::type_collation::drop_type_collations;
use crate::parse::view::{AlterView, add_check_option, alters_view, parse_alter_view, take_check_option};
pub use crate::parse::written::written_query;
use sqlparser::ast::{Ident, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{ExecutionVersion, SqlError, SqlState};

/// A statement of a script.
#[derive(Clone, Debug)]
pub enum ParsedStatement {
    /// What sqlparser reads.
    Sql(Box<Statement>),
    /// CREATE PROCEDURE and CREATE FUNCTION, which it does not read in PostgreSQL's form.
    CreateRoutine(Box<CreateRoutine>),
    /// CREATE AGGREGATE.
    CreateAggregate(Box<CreateAggregate>),
    /// DROP AGGREGATE.
    DropAggregate(Box<DropAggregate>),
    /// CREATE TABLE … AS and SELECT … INTO.
    CreateTableAs(Box<CreateTableAs>),
    /// CREATE ROLE, GRANT and their kind.
    Role(Box<RoleStatement>),
    /// CREATE and ALTER SEQUENCE, and identity columns of tables that exist.
    Sequence(Box<SequenceStatement>),
    /// CREATE, ALTER and DROP TRIGGER.
    Trigger(Box<TriggerStatement>),
    /// COMMENT ON.
    Comment(Box<CommentOn>),
    /// CHECKPOINT.
    Checkpoint,
    /// ALTER TABLE … SET SCHEMA.
    SetSchema(SetSchema),
    /// CREATE SCHEMA … MEMBERS.
    SchemaWithMembers(CreateSchemaWithMembers),
    /// ALTER SCHEMA … ADD MEMBER and DROP MEMBER.
    SchemaMember(AlterSchemaMember),
    /// `SELECT entente.approve(…)` and its kind.
    Governance(Box<GovernanceCall>),
    /// DO: the text of its block.
    Do(String),
    /// ALTER TYPE.
    AlterType(Box<AlterType>),
    /// ALTER FUNCTION, ALTER PROCEDURE, ALTER ROUTINE.
    AlterRoutine(Box<AlterRoutine>),
    /// ALTER TABLE … ALTER COLUMN … DROP EXPRESSION.
    DropExpression(DropExpression),
    /// ALTER TABLE … ALTER CONSTRAINT.
    AlterConstraint(AlterConstraint),
    /// ALTER TABLE … ATTACH PARTITION and DETACH PARTITION.
    Partition(Box<AlterPartition>),
    /// SET CONSTRAINTS.
    SetConstraints(SetConstraints),
    /// NOTIFY.
    Notify(NotifyStatement),
    /// CREATE, ALTER and DROP DOMAIN.
    Domain(Box<DomainStatement>),
    /// ALTER VIEW … SET and RESET.
    AlterView(Box<AlterView>),
    /// CREATE, REFRESH, ALTER and DROP MATERIALIZED VIEW.
    MaterializedView(Box<MaterializedViewStatement>),
    /// CREATE and DROP DATABASE.
    Database(DatabaseStatement),
    /// FETCH, MOVE and CLOSE.
    Cursor(CursorUse),
}

/// The statements of a script.
///
/// # Errors
/// `42601` with the position.
pub fn parse_script(sql: &str, version: ExecutionVersion) -> Result<Vec<ParsedStatement>, SqlError> {
    let mut statements = Vec::new();
    for tokens in tokenize_by(sql, version)?.split(|token| token.token == Token::SemiColon) {
        if tokens.iter().all(|token| token.token == Token::EOF) {
            continue;
        }
        let mut tokens = tokens.to_vec();
        if version >= ExecutionVersion::V8 {
            move_set_columns(&mut tokens);
        }
        if version >= ExecutionVersion::V9 {
            drop_without_oids(&mut tokens);
        }
        if version >= ExecutionVersion::V13 {
            drop_unlogged(&mut tokens);
        }
        if version >= ExecutionVersion::V14 {
            cut_long_names(&mut tokens);
            drop_type_collations(&mut tokens, sql)?;
        }
        statements.push(parse_statement_tokens(tokens, sql, version)?);
    }
    Ok(statements)
}

/// The only statement of a text.
///
/// # Errors
/// `42601` with the position, or where there is not one statement; `0A000` where it is none that sqlparser reads.
pub fn parse_only_statement(sql: &str) -> Result<Statement, SqlError> {
    let mut statements = parse_script(sql, ExecutionVersion::NEWEST)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(ParsedStatement::Sql(statement)), true) => Ok(*statement),
        (Some(_), true) => Err(SqlError::unsupported("this statement here")),
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, "one statement is expected here")),
    }
}

fn parse_statement_tokens(
    mut tokens: Vec<TokenWithSpan>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<ParsedStatement, SqlError> {
    if let Some(function) = governance_function(tokens.iter().map(|token| &token.token), version) {
        let call = parse_governance(function, &tokens, sql)?;
        return Ok(ParsedStatement::Governance(Box::new(call)));
    }
    if version >= ExecutionVersion::V16 && uses_cursor(&tokens) {
        return parse_cursor_tokens(&tokens, sql).map(ParsedStatement::Cursor);
    }
    let check_option = match version >= ExecutionVersion::V10 {
        true => take_check_option(&mut tokens),
        false => None,
    };
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_routine = |keyword: Keyword| matches!(keyword, Keyword::PROCEDURE | Keyword::FUNCTION);
    let creates_routine = keyword(0) == Keyword::CREATE
        && (is_routine(keyword(1)) || (keyword(1) == Keyword::OR && is_routine(keyword(3))));
    let is_block = keyword(0) == Keyword::DO;
    let creates_table = keyword(0) == Keyword::CREATE && creates_table_as(&tokens);
    let about_roles = is_about_roles(keyword(0), keyword(1)) || changes_owner(&tokens, version);
    let about_triggers = is_about_triggers([keyword(0), keyword(1), keyword(2), keyword(3), keyword(4)]);
    let own_form = OwnForm::of(&tokens, version);
    let refusal = refused(&tokens).filter(|_| !about_roles && own_form.is_none());
    if let Some(error) = refusal.or_else(|| misplaced_deferral(&tokens, sql, version)) {
        return Err(error);
    }
    let about_aggregates =
        is_about_aggregates(&tokens.iter().take(4).map(|token| &token.token).collect::<Vec<_>>());
    let about_members =
        version >= ExecutionVersion::V4 && keyword(1) == Keyword::SCHEMA && is_about_members(&tokens);
    let first = keyword(0);
    let is_checkpoint = tokens.first().is_some_and(|token| is_word(&token.token, "checkpoint"));
    let about_sequences = !about_roles && is_about_sequences(&tokens);
    let mut parser = parser(tokens, version);
    if about_sequences {
        return Ok(ParsedStatement::Sequence(Box::new(parse_sequence(&mut parser, sql)?)));
    }
    if about_aggregates {
        return parse_about_aggregates(&mut parser, first, sql);
    }
    if about_roles {
        return Ok(ParsedStatement::Role(Box::new(parse_role(&mut parser, sql, version)?)));
    }
    if about_triggers {
        return Ok(ParsedStatement::Trigger(Box::new(parse_trigger(&mut parser, sql)?)));
    }
    if first == Keyword::COMMENT {
        let comment = parse_comment(&mut parser, sql, version)?;
        return Ok(ParsedStatement::Comment(Box::new(comment)));
    }
    if is_checkpoint {
        let _ = parser.next_token();
        return expect_end(&parser, sql).map(|()| ParsedStatement::Checkpoint);
    }
    if about_members {
        return parse_about_members(&mut parser, first, sql);
    }
    if let Some(alter) = own_form {
        return alter.parse(&mut parser, sql);
    }
    if creates_routine {
        let create = parse_create_routine(&mut parser, sql)?;
        return Ok(ParsedStatement::CreateRoutine(Box::new(create)));
    }
    if creates_table {
        let create = parse_create_table_as(&mut parser, sql)?;
        return Ok(ParsedStatement::CreateTableAs(Box::new(create)));
    }
    if is_block {
        return parse_do(&mut parser, sql).map(ParsedStatement::Do);
    }
    parse_standard(&mut parser, check_option, sql)
}

/// What sqlparser reads. `check_option`: what stood behind CREATE VIEW.
fn parse_standard(
    parser: &mut Parser<'_>,
    check_option: Option<Ident>,
    sql: &str,
) -> Result<ParsedStatement, SqlError> {
    let mut statement = parser.parse_statement().map_err(|error| parser_error(error, parser, sql))?;
    expect_end(parser, sql)?;
    if let Some(value) = check_option {
        add_check_option(&mut statement, value);
    }
    Ok(match select_into(statement) {
        Ok(create) => ParsedStatement::CreateTableAs(Box::new(create)),
        Err(statement) => ParsedStatement::Sql(statement),
    })
}

/// A statement that sqlparser does not read in PostgreSQL's form.
#[derive(Clone, Copy)]
enum OwnForm {
    Type,
    Routine,
    Domain,
    DropExpression,
    SetSchema,
    AlterConstraint,
    SetConstraints,
    Notify,
    View,
    Partition,
    MaterializedView,
    Database,
}

impl OwnForm {
    /// The one that these tokens are.
    fn of(tokens: &[TokenWithSpan], version: ExecutionVersion) -> Option<OwnForm> {
        let is = |at: usize, word: &str| word_at(tokens, at, word);
        if version >= ExecutionVersion::V7 && is_about_domains(tokens) {
            return Some(OwnForm::Domain);
        }
        let since_8 = version >= ExecutionVersion::V8;
        if since_8 && sets_constraints(tokens) {
            return Some(OwnForm::SetConstraints);
        }
        if version >= ExecutionVersion::V14 && notifies(tokens) {
            return Some(OwnForm::Notify);
        }
        if version >= ExecutionVersion::V11 && is_about_materialized_views(tokens) {
            return Some(OwnForm::MaterializedView);
        }
        if version >= ExecutionVersion::V11 && is_about_databases(tokens) {
            return Some(OwnForm::Database);
        }
        if !is(0, "alter") {
            return None;
        }
        if version >= ExecutionVersion::V9 && alters_routine(tokens) {
            return Some(OwnForm::Routine);
        }
        if version >= ExecutionVersion::V10 && alters_view(tokens) {
            return Some(OwnForm::View);
        }
        let (since_7, table) = (version >= ExecutionVersion::V7, is(1, "table"));
        if since_7 && alters_type(tokens) {
            return Some(OwnForm::Type);
        }
        if since_7 && table && drops_expression(tokens) {
            return Some(OwnForm::DropExpression);
        }
        if since_8 && table && alters_constraint(tokens) {
            return Some(OwnForm::AlterConstraint);
        }
        if version >= ExecutionVersion::V10 && table && alters_partition(tokens) {
            return Some(OwnForm::Partition);
        }
        (table && sets_schema(tokens)).then_some(OwnForm::SetSchema)
    }

    fn parse(self, parser: &mut Parser<'_>, sql: &str) -> Result<ParsedStatement, SqlError> {
        match self {
            OwnForm::Type => {
                parse_alter_type(parser, sql).map(|alter| ParsedStatement::AlterType(Box::new(alter)))
            }
            OwnForm::Routine => {
                let alter = parse_alter_routine(parser, sql)?;
                Ok(ParsedStatement::AlterRoutine(Box::new(alter)))
            }
            OwnForm::Domain => {
                parse_domain(parser, sql).map(|statement| ParsedStatement::Domain(Box::new(statement)))
            }
            OwnForm::DropExpression => {
                parse_drop_expression(parser, sql).map(ParsedStatement::DropExpression)
            }
            OwnForm::SetSchema => parse_set_schema(parser, sql).map(ParsedStatement::SetSchema),
            OwnForm::AlterConstraint => {
                parse_alter_constraint(parser, sql).map(ParsedStatement::AlterConstraint)
            }
            OwnForm::Partition => {
                let alter = parse_alter_partition(parser, sql)?;
                Ok(ParsedStatement::Partition(Box::new(alter)))
            }
            OwnForm::SetConstraints => {
                parse_set_constraints(parser, sql).map(ParsedStatement::SetConstraints)
            }
            OwnForm::Notify => parse_notify(parser, sql).map(ParsedStatement::Notify),
            OwnForm::Database => parse_database(parser, sql).map(ParsedStatement::Database),
            OwnForm::MaterializedView => {
                let statement = parse_materialized_view(parser, sql)?;
                Ok(ParsedStatement::MaterializedView(Box::new(statement)))
            }
            OwnForm::View => {
                parse_alter_view(parser, sql).map(|alter| ParsedStatement::AlterView(Box::new(alter)))
            }
        }
    }
}

/// CREATE, DROP or ALTER AGGREGATE, told by the first word.
fn parse_about_aggregates(
    parser: &mut Parser<'_>,
    first: Keyword,
    sql: &str,
) -> Result<ParsedStatement, SqlError> {
    match first {
        Keyword::CREATE => {
            let create = parse_create_aggregate(parser, sql)?;
            Ok(ParsedStatement::CreateAggregate(Box::new(create)))
        }
        Keyword::DROP => {
            let drop = parse_drop_aggregate(parser, sql)?;
            Ok(ParsedStatement::DropAggregate(Box::new(drop)))
        }
        _ => Err(SqlError::unsupported("ALTER AGGREGATE").hint("Drop it and create it again.")),
    }
}

/// CREATE SCHEMA … MEMBERS or ALTER SCHEMA … ADD or DROP MEMBER, told by the first word.
fn parse_about_members(
    parser: &mut Parser<'_>,
    first: Keyword,
    sql: &str,
) -> Result<ParsedStatement, SqlError> {
    match first {
        Keyword::CREATE => parse_schema_with_members(parser, sql).map(ParsedStatement::SchemaWithMembers),
        _ => parse_schema_member(parser, sql).map(ParsedStatement::SchemaMember),
    }
}

/// The statements of a function in SQL.
///
/// # Errors
/// As [`parse_script`]; `0A000` for CREATE PROCEDURE and CREATE FUNCTION.
pub fn parse_plain_statements(sql: &str, version: ExecutionVersion) -> Result<Vec<Statement>, SqlError> {
    let plain = |statement| match statement {
        ParsedStatement::Sql(statement) => Ok(*statement),
        ParsedStatement::CreateRoutine(_)
        | ParsedStatement::CreateTableAs(_)
        | ParsedStatement::CreateAggregate(_) => Err(SqlError::unsupported("CREATE in a function")),
        ParsedStatement::DropAggregate(_) => Err(SqlError::unsupported("DROP in a function")),
        ParsedStatement::Sequence(_) => {
            Err(SqlError::unsupported("a statement about sequences in a function"))
        }
        ParsedStatement::Trigger(_) => Err(SqlError::unsupported("a statement about triggers in a function")),
        ParsedStatement::Governance(call) => {
            Err(SqlError::unsupported(format_args!("entente.{} in a function", call.function)))
        }
        ParsedStatement::Role(_) => Err(SqlError::unsupported("a statement about roles in a function")),
        ParsedStatement::Comment(_) => Err(SqlError::unsupported("COMMENT ON in a function")),
        ParsedStatement::Checkpoint => Err(SqlError::unsupported("CHECKPOINT in a function")),
        ParsedStatement::SetSchema(_) => Err(SqlError::unsupported("ALTER TABLE in a function")),
        ParsedStatement::SchemaWithMembers(_) => Err(SqlError::unsupported("CREATE SCHEMA in a function")),
        ParsedStatement::SchemaMember(_) => Err(SqlError::unsupported("ALTER SCHEMA in a function")),
        ParsedStatement::Do(_) => Err(SqlError::unsupported("DO in a function")),
        ParsedStatement::AlterType(_) => Err(SqlError::unsupported("ALTER TYPE in a function")),
        ParsedStatement::AlterRoutine(_) => Err(SqlError::unsupported("ALTER FUNCTION in a function")),
        ParsedStatement::AlterView(_) => Err(SqlError::unsupported("ALTER VIEW in a function")),
        ParsedStatement::Database(_) => {
            Err(SqlError::unsupported("a statement about databases in a function"))
        }
        ParsedStatement::MaterializedView(_) => {
            Err(SqlError::unsupported("a statement about materialized views in a function"))
        }
        ParsedStatement::Domain(_) => Err(SqlError::unsupported("a statement about domains in a function")),
        ParsedStatement::DropExpression(_)
        | ParsedStatement::AlterConstraint(_)
        | ParsedStatement::Partition(_) => Err(SqlError::unsupported("ALTER TABLE in a function")),
        ParsedStatement::SetConstraints(_) => {
            Err(SqlError::unsupported("SET CONSTRAINTS in a function in SQL")
                .hint("Write the function in PL/pgSQL."))
        }
        ParsedStatement::Cursor(_) => {
            Err(SqlError::unsupported("FETCH, MOVE and CLOSE in a function in SQL")
                .hint("Write the function in PL/pgSQL."))
        }
        ParsedStatement::Notify(_) => Err(SqlError::unsupported("NOTIFY in a function in SQL")
            .hint("Call pg_notify(channel, payload): SELECT pg_notify('news', 'text').")),
    };
    parse_script(sql, version)?.into_iter().map(plain).collect()
}
