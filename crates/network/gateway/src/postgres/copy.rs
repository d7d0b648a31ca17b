//! `COPY table [(columns)] FROM STDIN`, `COPY table [(columns)] TO STDOUT` and `COPY (query) TO STDOUT`: what the statement
//! says. Rows that come are sent in chunks, each of which is a transaction of its own (`copy_in`); rows that go are those
//! of a query (`copy_out`).

use super::copy_format::{CopyFormat, Direction, ForceQuote, read_format};
use super::script::{Kind, Statement, position};
use super::words::Words;
use std::sync::Arc;
use types::{Catalog, DataType, SearchPath, SqlError, SqlState, Table, quoted_catalog_name};

/// `42P10` a column that stands where it cannot.
const INVALID_COLUMN_REFERENCE: SqlState = SqlState(*b"42P10");

/// `42809` a relation of another kind.
const WRONG_OBJECT_TYPE: SqlState = SqlState(*b"42809");

/// A COPY statement.
pub(super) enum CopyCommand<'a> {
    /// Into a table.
    From(CopyStatement),
    /// Out of a table or a query.
    To(CopyTo<'a>),
}

/// A COPY … FROM STDIN statement bound to the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyStatement {
    /// The table.
    pub(super) table: String,
    /// It is one of the session's temporary tables.
    pub(super) temporary: bool,
    /// Name and type of the columns that the data gives, in its order.
    pub(super) columns: Vec<(String, DataType)>,
    pub(super) format: CopyFormat,
}

/// A COPY … TO STDOUT statement.
pub(super) struct CopyTo<'a> {
    pub(super) source: CopySource<'a>,
    pub(super) format: CopyFormat,
}

/// Where rows come from.
pub(super) enum CopySource<'a> {
    /// A query that stands in the statement.
    Query(Statement<'a>),
    /// The query that a table and its columns stand for.
    Table(String),
}

impl<'a> Words<'_, 'a> {
    /// The query up to the parenthesis that closes it.
    fn query(&mut self) -> Result<Statement<'a>, SqlError> {
        let (first, mut open) = (self.at, 1_usize);
        while let Some(lexeme) = self.peek() {
            open = if lexeme.is("(") { open + 1 } else { open - usize::from(lexeme.is(")")) };
            if open == 0 {
                break;
            }
            self.at += 1;
        }
        let lexemes = self.statement.lexemes.get(first..self.at).unwrap_or_default();
        let (Some(start), Some(end), Some(_)) = (lexemes.first(), lexemes.last(), self.peek()) else {
            return Err(self.error());
        };
        let is_query = ["select", "values", "table", "with", "insert", "update", "delete", "("];
        if !is_query.iter().any(|word| start.is(word)) {
            self.at = first;
            return Err(self.error());
        }
        self.at += 1;
        let from = start.start - self.statement.start;
        let to = end.start + end.text.len() - self.statement.start;
        let text = self.statement.text.get(from..to).unwrap_or_default();
        Ok(Statement { text, start: start.start, lexemes: lexemes.to_vec() })
    }

    /// STDIN or STDOUT: as in PostgreSQL either word will do.
    fn standard_stream(&mut self, name: &str, otherwise: &str) -> Result<(), SqlError> {
        if self.take("stdin") || self.take("stdout") {
            return Ok(());
        }
        match self.peek() {
            Some(lexeme) if lexeme.kind == Kind::Quoted || lexeme.is("program") => {
                let hint = format!("use {}, or psql's \\copy", name.to_uppercase());
                Err(SqlError::unsupported(otherwise).hint(hint))
            }
            _ => Err(self.error()),
        }
    }
}

/// The name in the catalog of the relation that SQL calls by this name; where there is none, one that none has. What is temporary comes
/// first.
pub(super) fn found_relation(catalog: &Catalog, search_path: &SearchPath, name: &str) -> String {
    match catalog.tables.get(name).is_some_and(|table| table.id.is_temporary()) {
        true => name.to_string(),
        false => search_path.find_or_missing(name, |found| catalog.has_relation(found)),
    }
}

/// Reads a COPY statement and binds it to the catalog.
pub(super) fn parse<'a>(
    statement: &'a Statement<'a>,
    catalog: &Catalog,
    search_path: &SearchPath,
) -> Result<CopyCommand<'a>, SqlError> {
    let mut words = Words::of(statement);
    words.expect("copy")?;
    let is_binary = words.take("binary");
    if !is_binary && words.take("(") {
        let query = words.query()?;
        words.expect("to")?;
        words.standard_stream("stdout", "COPY to a file of the server")?;
        let format = read_format(&mut words, Direction::To, false)?;
        return Ok(CopyCommand::To(CopyTo { source: CopySource::Query(query), format }));
    }
    let table_at = words.peek().map_or(0, |lexeme| lexeme.start - statement.start);
    let (schema, name) = words.relation()?;
    if let Some(schema) = schema {
        let at = position(statement.text, table_at);
        catalog
            .check_schema(&schema)
            .map_err(|error| error.at(at).hint("of the catalogue there is COPY (SELECT …) TO STDOUT"))?;
    }
    let found = found_relation(catalog, search_path, &name);
    let of_partition = || catalog.partition(&found).map(|(table, _)| table);
    let table = catalog.tables.get(&found).or_else(of_partition).ok_or_else(|| {
        let error = match catalog.views.contains_key(&found) {
            true => SqlError::new(WRONG_OBJECT_TYPE, format!("cannot copy from view \"{name}\""))
                .hint("Try the COPY (SELECT ...) TO variant."),
            false => SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")),
        };
        error.at(position(statement.text, table_at))
    })?;
    let (columns, temporary) = (read_columns(&mut words, table)?, table.id.is_temporary());
    if words.take("to") {
        words.standard_stream("stdout", "COPY to a file of the server")?;
        let format = read_format(&mut words, Direction::To, is_binary)?;
        let source = CopySource::Table(table_query(&found, temporary, &columns));
        return Ok(CopyCommand::To(CopyTo { source, format }));
    }
    words.expect("from")?;
    if catalog.materialized_view(&found).is_some() {
        let error = SqlError::new(WRONG_OBJECT_TYPE, format!("cannot copy to materialized view \"{name}\""));
        return Err(error.at(position(statement.text, table_at)));
    }
    words.standard_stream("stdin", "COPY from a file of the server")?;
    let format = read_format(&mut words, Direction::From, is_binary)?;
    Ok(CopyCommand::From(CopyStatement { table: found, temporary, columns, format }))
}

/// The rows of a table, or of a partition.
fn table_query(name: &str, temporary: bool, columns: &[(String, DataType)]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let name = match temporary {
        true => quoted(name),
        false => quoted_catalog_name(name),
    };
    format!("SELECT {} FROM {}", columns.join(", "), name)
}

impl ForceQuote {
    /// Whether each of these columns is put in quotes.
    ///
    /// # Errors
    /// A column that is not among them.
    pub(super) fn of(&self, columns: &[&str]) -> Result<Vec<bool>, SqlError> {
        let ForceQuote::Columns(forced) = self else {
            return Ok(vec![*self == ForceQuote::All; columns.len()]);
        };
        match forced.iter().find(|name| !columns.contains(&name.as_str())) {
            Some(name) => {
                let message = format!("FORCE_QUOTE column \"{name}\" not referenced by COPY");
                Err(SqlError::new(INVALID_COLUMN_REFERENCE, message))
            }
            None => Ok(columns.iter().map(|name| forced.iter().any(|forced| forced == name)).collect()),
        }
    }
}

fn read_columns(words: &mut Words<'_, '_>, table: &Arc<Table>) -> Result<Vec<(String, DataType)>, SqlError> {
    if !words.take("(") {
        // What is generated is in no copy, and comes by itself.
        let given = table.columns.iter().filter(|column| !column.generated);
        return Ok(given.map(|column| (column.name.clone(), column.data_type)).collect());
    }
    let mut columns: Vec<(String, DataType)> = Vec::new();
    loop {
        let name = words.name()?;
        let Some(ordinal) = table.ordinal(&name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.object_name());
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        if table.columns[ordinal].generated {
            let message = format!("column \"{name}\" is a generated column");
            return Err(SqlError::new(INVALID_COLUMN_REFERENCE, message)
                .detail("Generated columns cannot be used in COPY."));
        }
        if columns.iter().any(|(other, _)| *other == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        columns.push((name, table.columns[ordinal].data_type));
        if !words.take(",") {
            words.expect(")")?;
            return Ok(columns);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::postgres::script::split;
    use types::{Column, TableId};

    fn catalog() -> Catalog {
        let column = |name: &str, data_type| Column {
            name: name.into(),
            data_type,
            not_null: false,
            default: None,
            generated: false,
        };
        let table = Table {
            id: TableId(1),
            name: "t".into(),
            columns: vec![column("a", DataType::Text(None)), column("b", DataType::Text(None))],
            primary_key: Vec::new(),
            primary_key_name: String::new(),
            checks: Vec::new(),
            endorsement: None,
            row_security: types::RowSecurity::default(),
            partitioning: None,
            materialized: None,
        };
        let mut catalog = Catalog::default();
        catalog.tables.insert("t".into(), Arc::new(table));
        catalog
    }

    pub(in crate::postgres) fn statement(sql: &str) -> Result<CopyCommand<'_>, SqlError> {
        // The command borrows from the statement, and tests end soon.
        parse(&Vec::leak(split(sql))[0], &catalog(), &SearchPath::default())
    }

    #[test]
    fn statements_that_cannot_be_are_refused_by_name() {
        let state = |sql: &str| statement(sql).err().expect(sql).state;
        assert_eq!(state("copy u from stdin"), SqlState::UNDEFINED_TABLE);
        assert_eq!(state("copy t (c) from stdin"), SqlState::UNDEFINED_COLUMN);
        assert_eq!(state("copy t (a, a) from stdin"), SqlState::DUPLICATE_COLUMN);
        assert_eq!(state("copy t from '/etc/passwd'"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin (format binary, header)"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin (format binary, quote 'x')"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin binary delimiter ','"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t from stdin binary csv"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy binary t from stdin (format csv)"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy binary (select 1) to stdout"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t from stdin with (nonsense)"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t from stdin (delimiter 'ab')"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t to '/tmp/t'"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t to stdout (force_quote (a))"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t to stdout (format csv, header match)"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t from stdin (format csv, force_quote *)"), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state("copy t to stdout (format binary, null 'x')"), SqlState::SYNTAX_ERROR);
        assert_eq!(state("copy t to stdout (format csv, quote ',')"), SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(state("copy t to stdout (delimiter '|', null 'a|b')"), SqlState::FEATURE_NOT_SUPPORTED);
        for wrong in [
            "copy (select 1 to stdout",
            "copy () to stdout",
            "copy (drop table t) to stdout",
            "copy (select 1) from stdin",
        ] {
            assert_eq!(state(wrong), SqlState::SYNTAX_ERROR, "{wrong}");
        }
        let Ok(CopyCommand::From(copy)) =
            statement("COPY public.t (b) FROM STDIN WITH (FORMAT csv, HEADER, NULL 'x')")
        else {
            panic!("a COPY FROM");
        };
        assert_eq!(copy.columns, [("b".to_string(), DataType::Text(None))]);
    }

    #[test]
    fn what_is_copied_out_is_a_query() {
        let source = |sql| match statement(sql) {
            Ok(CopyCommand::To(CopyTo { source: CopySource::Table(query), .. })) => query,
            Ok(CopyCommand::To(CopyTo { source: CopySource::Query(query), .. })) => query.text.to_string(),
            _ => panic!("no COPY TO: {sql}"),
        };
        assert_eq!(source("copy t to stdout"), "SELECT \"a\", \"b\" FROM \"public\".\"t\"");
        assert_eq!(source("copy public.t (b) to stdout csv"), "SELECT \"b\" FROM \"public\".\"t\"");
        assert_eq!(source("copy (select (1) /* ) */ , ')') to stdout"), "select (1) /* ) */ , ')'");
        let forced = ForceQuote::Columns(vec!["b".to_string()]);
        assert_eq!(forced.of(&["a", "b"]), Ok(vec![false, true]));
        assert_eq!(forced.of(&["a"]).expect_err("no b").state, INVALID_COLUMN_REFERENCE);
    }
}
