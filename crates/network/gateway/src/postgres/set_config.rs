//! `SELECT set_config(name, value, is_local)`: what it sets. The catalogue gives name and value as an array, and the session sets that.

use super::script::{Kind, Lexeme, Statement};
use super::session::Session;
use super::session_statement::SessionStatement;
use types::{DataType, OutputColumn, SqlError, SqlState, StatementResult, Value};

const FUNCTION: &str = "set_config";

/// A call among the columns of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetConfig {
    /// Which column gives name and value.
    column: usize,
    is_local: bool,
}

/// A literal, maybe with a cast behind it: what is known without running anything.
fn literal(lexemes: &[Lexeme<'_>]) -> Option<String> {
    let (literal, rest) = lexemes.split_first()?;
    let is_cast = match rest {
        [] => true,
        [one, other, name] => one.is(":") && other.is(":") && name.kind == Kind::Word,
        _ => false,
    };
    let is_text = literal.kind == Kind::Quoted && !literal.text.starts_with('"');
    (is_cast && (is_text || literal.is("true") || literal.is("false"))).then(|| literal.value())
}

/// The calls in a query. A statement without any has none.
///
/// # Errors
/// One stands where its value is no column of the query: such a call would set nothing, and nobody would know.
pub(super) fn find(statement: &Statement<'_>) -> Result<Vec<SetConfig>, SqlError> {
    let lexemes = &statement.lexemes;
    let all = lexemes.iter().filter(|lexeme| lexeme.is(FUNCTION)).count();
    if all == 0 {
        return Ok(Vec::new());
    }
    let columns = lexemes.split_first().filter(|(select, _)| select.is("select")).map(|(_, rest)| rest);
    let columns = columns.map(|rest| split(rest)).unwrap_or_default();
    let calls: Vec<SetConfig> =
        columns.iter().enumerate().filter_map(|(column, item)| call(column, item)).collect();
    if calls.len() == all {
        return Ok(calls);
    }
    Err(SqlError::unsupported("set_config() that is no column of a query")
        .hint("Write SELECT set_config('name', value, false), or SET."))
}

/// The columns of a query, up to FROM or what else comes behind them.
fn split<'s, 'l>(lexemes: &'s [Lexeme<'l>]) -> Vec<&'s [Lexeme<'l>]> {
    let mut depth = 0usize;
    let (mut columns, mut begin, mut end) = (Vec::new(), 0, lexemes.len());
    for (index, lexeme) in lexemes.iter().enumerate() {
        match lexeme {
            _ if lexeme.is("(") => depth += 1,
            _ if lexeme.is(")") => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            _ if lexeme.is(",") => {
                columns.push(&lexemes[begin..index]);
                begin = index + 1;
            }
            _ if ["from", "where", "order", "limit", "union", "group", ";"]
                .iter()
                .any(|word| lexeme.is(word)) =>
            {
                end = index;
                break;
            }
            _ => {}
        }
    }
    columns.push(&lexemes[begin..end]);
    columns
}

/// The call that a column is.
fn call(column: usize, item: &[Lexeme<'_>]) -> Option<SetConfig> {
    let item = match item {
        [schema, dot, rest @ ..] if schema.is("pg_catalog") && dot.is(".") => rest,
        item => item,
    };
    let [name, open, rest @ ..] = item else { return None };
    if !name.is(FUNCTION) || !open.is("(") {
        return None;
    }
    let mut depth = 1usize;
    let close = rest.iter().position(|lexeme| {
        depth = if lexeme.is("(") { depth + 1 } else { depth - usize::from(lexeme.is(")")) };
        depth == 0
    })?;
    // Only a name may follow.
    match &rest[close + 1..] {
        [] => {}
        [name] if name.kind != Kind::Symbol => {}
        [word, _] if word.is("as") => {}
        _ => return None,
    }
    let [_, _, is_local] = split(&rest[..close]).try_into().ok()?;
    let is_local = literal(is_local)?.to_ascii_lowercase();
    Some(SetConfig { column, is_local: ["true", "t", "on", "yes", "1"].contains(&is_local.as_str()) })
}

/// What clients are told of the columns: the value.
pub(super) fn told(calls: &[SetConfig], columns: &mut [OutputColumn]) {
    for call in calls {
        if let Some(column) = columns.get_mut(call.column) {
            column.data_type = DataType::Text(None);
        }
    }
}

/// Name and value, each `None` where it is NULL.
fn name_and_value(cell: &Value) -> Option<[Option<String>; 2]> {
    let Value::Array(array) = cell else { return None };
    let [name, value] = array.values() else { return None };
    Some([name, value].map(|given| match given {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    }))
}

impl Session {
    /// Sets what the rows of a query say, and puts into them what holds then.
    pub(super) fn set_what_was_given(
        &mut self,
        calls: &[SetConfig],
        result: &mut StatementResult,
    ) -> Result<(), SqlError> {
        told(calls, &mut result.columns);
        for SetConfig { column, is_local } in calls {
            for row in &mut result.rows {
                let Some(cell) = row.get_mut(*column) else { continue };
                let Some([name, value]) = name_and_value(cell) else { continue };
                *cell = value.as_deref().map_or(Value::Null, Value::text);
                let Some(name) = name else {
                    let null = SqlState(*b"22004");
                    return Err(SqlError::new(null, "SET requires parameter name"));
                };
                // Dumps of pg_dump begin so and name schemas themselves. A routine keeps the path that it is made with, so that an empty
                // one would take the tables of its body from it.
                if name.eq_ignore_ascii_case("search_path") && value.as_deref() == Some("") {
                    continue;
                }
                // Outside of a block it would hold for this statement.
                if *is_local && self.block.is_none() {
                    continue;
                }
                let set = SessionStatement::Set { name: name.clone(), value, local: *is_local };
                self.session_statement(&set)?;
                if let Some(shown) = self.settings.get(&name) {
                    *cell = Value::text(shown);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::script;

    fn found(sql: &str) -> Result<Vec<SetConfig>, SqlError> {
        find(&script::split(sql)[0])
    }

    #[test]
    fn calls_are_found_where_their_values_are_columns() {
        let one = |column, is_local| SetConfig { column, is_local };
        assert_eq!(found("SELECT 1"), Ok(vec![]));
        assert_eq!(found("SELECT pg_catalog.set_config('search_path', '', false)"), Ok(vec![one(0, false)]));
        assert_eq!(
            found(
                "select f(1, 2), set_config('a.b', coalesce($1, ('x')), 'on'::boolean) AS x, set_config('c', NULL, true) y FROM t"
            ),
            Ok(vec![one(1, true), one(2, true)])
        );
        for named in ["'a'", "'a' || 'b'", "$1", "name"] {
            let sql = format!("SELECT set_config({named}, $1, false::bool)");
            assert_eq!(found(&sql), Ok(vec![one(0, false)]));
        }
        for refused in [
            "SELECT upper(set_config('a', '1', false))",
            "SELECT 1 WHERE set_config('a', '1', false) = '1'",
            "SELECT * FROM set_config('a', '1', false)",
            "SELECT set_config('a', '1')",
            "VALUES (set_config('a', '1', false))",
            "SELECT set_config('a', '1', false) || 'x'",
        ] {
            assert!(found(refused).is_err(), "{refused}");
        }
    }
}
