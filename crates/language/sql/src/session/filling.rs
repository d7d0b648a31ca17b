//! Temporary tables that a transaction block fills from the ledger: the query is a step, so that what was found is found again, and what it gave goes
//! into the table at the gateway alone.
//!
//! ```text
//!  CREATE TEMP TABLE t AS query ─▶ query: a step ─▶ CREATE TEMP TABLE t AS query WITH NO DATA, and its rows
//!  INSERT INTO t query          ─▶ query: a step ─▶ its rows
//! ```

use crate::library::Library;
use crate::script::Script;
use crate::temporary::TemporaryTables;
use sqlparser::ast::{self, Statement, TableObject};
use sqlparser::keywords::Keyword;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::create_as::CreateTableAs;
use syntax::parse::{ParsedStatement, written_query};
use types::{DataType, ExecutionVersion};

/// A statement that fills a temporary table from the ledger.
pub(crate) struct Filling {
    /// The query, with the settings of the statement.
    pub query: String,
    /// Makes the table, without rows.
    pub create: Option<String>,
    /// Its name.
    pub table: String,
    /// The columns that the query gives; none: the first ones.
    pub columns: Vec<String>,
}

impl Filling {
    /// Reads a statement; `None` where it is no such one, or says more than which columns get the rows of which query.
    fn read(sql: &str, version: ExecutionVersion) -> Option<Filling> {
        let Script { settings, mut statements, .. } = Script::parse(sql, version).ok()?;
        if statements.len() > 1 {
            return None;
        }
        let query = |query: &ast::Query| settings.in_front_of(&written_query(query, version)).into_owned();
        match statements.pop()? {
            ParsedStatement::CreateTableAs(create) if create.temporary && create.with_data => {
                if create.if_not_exists || !create.options.is_empty() {
                    return None;
                }
                let text = settings.in_front_of(&without_data(&create, version)).into_owned();
                let (query, table) = (query(&create.query), table_name(&create.name).ok()?);
                Some(Filling { query, create: Some(text), table, columns: Vec::new() })
            }
            ParsedStatement::Sql(statement) => {
                let Statement::Insert(insert) = *statement else { return None };
                let TableObject::TableName(name) = &insert.table else { return None };
                let is_plain = insert.on.is_none()
                    && insert.returning.is_none()
                    && insert.table_alias.is_none()
                    && insert.assignments.is_empty();
                let source = insert.source.as_ref().filter(|_| is_plain)?;
                let column = |name: &ast::ObjectName| match name.0.as_slice() {
                    [part] => name_of(part.as_ident()?).ok(),
                    _ => None,
                };
                let columns = insert.columns.iter().map(column).collect::<Option<Vec<_>>>()?;
                let table = table_name(name).ok()?;
                Some(Filling { query: query(source), create: None, table, columns })
            }
            _ => None,
        }
    }
}

/// The text of the statement that makes the table alone.
fn without_data(create: &CreateTableAs, version: ExecutionVersion) -> String {
    let columns: Vec<String> = create.columns.iter().map(ToString::to_string).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    let on_commit = match create.on_commit {
        Some(Keyword::DELETE) => " ON COMMIT DELETE ROWS",
        Some(Keyword::DROP) => " ON COMMIT DROP",
        _ => "",
    };
    let query = written_query(&create.query, version);
    format!("CREATE TEMPORARY TABLE {}{columns}{on_commit} AS {query} WITH NO DATA", create.name)
}

impl TemporaryTables {
    /// What a statement does that fills one of these tables from the ledger; `None` where it does anything else.
    pub(crate) fn filling(
        &mut self,
        ledger: &Arc<Library>,
        sql: &str,
        parameter_types: &[DataType],
    ) -> Option<Filling> {
        if ledger.version() < ExecutionVersion::V15 || !self.are_mentioned_in(sql) {
            return None;
        }
        let filling = Filling::read(sql, ledger.version())?;
        if filling.create.is_none() && !self.catalog().tables.contains_key(&filling.table) {
            return None;
        }
        self.concerns_ledger(ledger, &filling.query, parameter_types).then_some(filling)
    }
}
