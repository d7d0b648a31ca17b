//! Statements about materialized views, of which sqlparser reads few.

use crate::names::{name_of, table_name};
use crate::parse::errors::{expect_end, located, parser_error, unexpected};
use crate::parse::tokens::word_at;
use crate::parse::words::{accept, expect_word, list, name, relation};
use sqlparser::ast::Query;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser};
use sqlparser::tokenizer::TokenWithSpan;
use types::SqlError;

/// One of these statements.
#[derive(Clone, Debug)]
pub enum MaterializedViewStatement {
    /// CREATE MATERIALIZED VIEW.
    Create(CreateMaterializedView),
    /// REFRESH MATERIALIZED VIEW.
    Refresh(RefreshMaterializedView),
    /// ALTER MATERIALIZED VIEW.
    Alter {
        /// IF EXISTS.
        if_exists: bool,
        /// The view.
        name: String,
        /// What becomes of it.
        change: MaterializedViewChange,
    },
    /// DROP MATERIALIZED VIEW.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The views.
        names: Vec<String>,
    },
}

/// `CREATE MATERIALIZED VIEW … AS …`
#[derive(Clone, Debug)]
pub struct CreateMaterializedView {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its name.
    pub name: String,
    /// Names that the first columns get.
    pub columns: Vec<String>,
    /// Whose rows it holds.
    pub query: Box<Query>,
    /// False: WITH NO DATA.
    pub with_data: bool,
}

/// `REFRESH MATERIALIZED VIEW …`
#[derive(Clone, Debug)]
pub struct RefreshMaterializedView {
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// The view.
    pub name: String,
    /// False: WITH NO DATA.
    pub with_data: bool,
}

/// What ALTER MATERIALIZED VIEW does.
#[derive(Clone, Debug)]
pub enum MaterializedViewChange {
    /// RENAME TO.
    Rename(String),
    /// RENAME COLUMN … TO.
    RenameColumn {
        /// The column.
        from: String,
        /// Its new name.
        to: String,
    },
    /// SET SCHEMA.
    SetSchema(String),
}

/// Whether these tokens are such a statement. Another owner is the affair of roles.
pub fn is_about_materialized_views(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, word: &str| word_at(tokens, at, word);
    ["create", "refresh", "alter", "drop"].iter().any(|first| is(0, first))
        && is(1, "materialized")
        && is(2, "view")
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` names what is not supported.
pub fn parse_materialized_view(
    parser: &mut Parser<'_>,
    sql: &str,
) -> Result<MaterializedViewStatement, SqlError> {
    let first = crate::parse::words::next_word(parser, sql)?;
    expect_word(parser, "materialized", sql)?;
    expect_word(parser, "view", sql)?;
    let statement = match first.as_str() {
        "create" => MaterializedViewStatement::Create(create(parser, sql)?),
        "refresh" => {
            let concurrently = accept(parser, "concurrently");
            let name = relation(parser, sql)?;
            let with_data = with_data(parser);
            let refresh = RefreshMaterializedView { concurrently, name, with_data };
            MaterializedViewStatement::Refresh(refresh)
        }
        "alter" => alter(parser, sql)?,
        _ => drop_views(parser, sql)?,
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

/// Whether rows are wanted: not behind WITH NO DATA.
fn with_data(parser: &mut Parser<'_>) -> bool {
    let no_data = parser.parse_keywords(&[Keyword::WITH, Keyword::NO, Keyword::DATA]);
    if !no_data {
        let _ = parser.parse_keywords(&[Keyword::WITH, Keyword::DATA]);
    }
    !no_data
}

fn create(parser: &mut Parser<'_>, sql: &str) -> Result<CreateMaterializedView, SqlError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let view = parser.parse_object_name(false).map_err(|error| parser_error(error, parser, sql))?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false);
    let columns = columns.map_err(|error| parser_error(error, parser, sql))?;
    let start = parser.peek_token().span.start;
    if ["using", "with", "tablespace"].iter().any(|word| accept(parser, word)) {
        let error = SqlError::unsupported("an option of CREATE MATERIALIZED VIEW");
        return Err(located(error, sql, start));
    }
    expect_word(parser, "as", sql)?;
    let query = parser.parse_query().map_err(|error| parser_error(error, parser, sql))?;
    Ok(CreateMaterializedView {
        if_not_exists,
        name: table_name(&view)?,
        columns: columns.iter().map(name_of).collect::<Result<_, _>>()?,
        query,
        with_data: with_data(parser),
    })
}

fn alter(parser: &mut Parser<'_>, sql: &str) -> Result<MaterializedViewStatement, SqlError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let view = relation(parser, sql)?;
    let start = parser.peek_token().span.start;
    let change = if accept(parser, "rename") {
        if accept(parser, "to") {
            MaterializedViewChange::Rename(name(parser, sql)?)
        } else {
            accept(parser, "column");
            let from = name(parser, sql)?;
            expect_word(parser, "to", sql)?;
            MaterializedViewChange::RenameColumn { from, to: name(parser, sql)? }
        }
    } else if accept(parser, "set") && accept(parser, "schema") {
        MaterializedViewChange::SetSchema(name(parser, sql)?)
    } else {
        return Err(located(SqlError::unsupported("this form of ALTER MATERIALIZED VIEW"), sql, start));
    };
    Ok(MaterializedViewStatement::Alter { if_exists, name: view, change })
}

fn drop_views(parser: &mut Parser<'_>, sql: &str) -> Result<MaterializedViewStatement, SqlError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = list(parser, sql, relation)?;
    let cascade = accept(parser, "cascade");
    if !cascade {
        accept(parser, "restrict");
    }
    match names.is_empty() {
        true => Err(unexpected(&parser.peek_token(), sql)),
        false => Ok(MaterializedViewStatement::Drop { if_exists, cascade, names }),
    }
}
