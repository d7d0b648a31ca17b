//! Reading PREPARE, EXECUTE and EXPLAIN EXECUTE.

use super::script::{Kind, Lexeme, Statement};
use super::words::Words;
use types::limits::{NUMERIC_PRECISION_MAX, TEXT_BYTES_MAX};
use types::{DataType, Numeric, SqlError, Value};

/// What PREPARE takes, as in PostgreSQL.
const PREPARED: [&str; 9] = ["select", "values", "table", "with", "(", "insert", "update", "delete", "merge"];

/// PREPARE: binds a statement under a name.
#[derive(Debug)]
pub(super) struct Prepare<'a> {
    pub(super) name: String,
    /// The types of its parameters, as far as they are given.
    pub(super) types: Vec<Statement<'a>>,
    pub(super) statement: Statement<'a>,
}

/// EXECUTE: runs such a statement.
#[derive(Debug)]
pub(super) struct Execute<'a> {
    /// EXPLAIN and its options, where that is all that is asked for.
    pub(super) explain: Option<&'a str>,
    pub(super) name: String,
    /// What its parameters get, each an expression.
    pub(super) arguments: Vec<Statement<'a>>,
}

/// Whether it is EXPLAIN of an EXECUTE.
pub(super) fn explains_execute(statement: &Statement<'_>) -> bool {
    let mut words = Words::of(statement);
    words.take("explain") && skip_options(&mut words) && words.take("execute")
}

/// `(options)`, or the old words; false where they have no end.
fn skip_options(words: &mut Words<'_, '_>) -> bool {
    if words.peek().is_some_and(|lexeme| lexeme.is("(")) {
        return words.list().is_ok();
    }
    while words.take("analyze") || words.take("analyse") || words.take("verbose") {}
    true
}

/// Reads PREPARE.
pub(super) fn parse_prepare<'a>(statement: &Statement<'a>) -> Result<Prepare<'a>, SqlError> {
    let mut words = Words::of(statement);
    words.expect("prepare")?;
    let name = words.name()?;
    let has_types = words.peek().is_some_and(|lexeme| lexeme.is("("));
    let types = if has_types { words.list()? } else { Vec::new() };
    words.expect("as")?;
    Ok(Prepare { name, types, statement: words.rest(&PREPARED)? })
}

/// Reads EXECUTE, with EXPLAIN or not.
pub(super) fn parse_execute<'a>(statement: &Statement<'a>) -> Result<Execute<'a>, SqlError> {
    let mut words = Words::of(statement);
    let explained = words.take("explain");
    if explained {
        skip_options(&mut words);
    }
    let explain = words.peek().filter(|_| explained);
    let explain = explain.map(|execute| &statement.text[..execute.start - statement.start]);
    words.expect("execute")?;
    let name = words.name()?;
    let has_arguments = words.peek().is_some_and(|lexeme| lexeme.is("("));
    let arguments = if has_arguments { words.list()? } else { Vec::new() };
    words.end(Execute { explain, name, arguments })
}

/// Where a query stands inside of an expression, in bytes of the query string: PostgreSQL names the word in front of it, if one
/// belongs to it.
pub(super) fn subquery_in(expression: &Statement<'_>) -> Option<usize> {
    let lexemes = &expression.lexemes;
    let queries = ["select", "values", "table", "with"];
    let begins = |at: &usize| {
        let query = |lexeme: &Lexeme<'_>| queries.iter().any(|word| lexeme.is(word));
        lexemes[*at].is("(") && lexemes.get(at + 1).is_some_and(query)
    };
    let at = (0..lexemes.len()).find(begins)?;
    let named = at
        .checked_sub(1)
        .filter(|before| ["exists", "array", "in"].iter().any(|word| lexemes[*before].is(word)));
    Some(lexemes[named.unwrap_or(at)].start)
}

/// Whether it is a literal that may be of any type.
pub(super) fn is_of_unknown_type(expression: &Statement<'_>) -> bool {
    let [only] = expression.lexemes.as_slice() else { return false };
    let is_text = |lexeme: &Lexeme<'_>| {
        lexeme.kind == Kind::Quoted
            && ["'", "e'", "E'", "$"].iter().any(|quote| lexeme.text.starts_with(quote))
    };
    only.is("null") || is_text(only)
}

/// The value of what is nothing but a literal, and its type; `None` where somebody else has to compute it.
pub(super) fn literal(expression: &Statement<'_>) -> Option<(Value, DataType)> {
    let (sign, literal) = match expression.lexemes.as_slice() {
        [only] => ("", only),
        [sign, number] if (sign.is("-") || sign.is("+")) && number.kind == Kind::Number => {
            (sign.text, number)
        }
        _ => return None,
    };
    match literal.kind {
        Kind::Number => number(sign, literal.text),
        Kind::Quoted if literal.text.starts_with('\'') => {
            let text = literal.value();
            (text.len() <= TEXT_BYTES_MAX).then(|| (Value::text(text), DataType::Unknown))
        }
        _ if literal.is("null") => Some((Value::Null, DataType::Unknown)),
        _ if literal.is("true") || literal.is("false") => {
            Some((Value::Boolean(literal.is("true")), DataType::Boolean))
        }
        _ => None,
    }
}

/// The first type that a number fits into without its sign, as in PostgreSQL.
fn number(sign: &str, text: &str) -> Option<(Value, DataType)> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let negative = sign == "-";
    if plain(text) {
        if let Ok(number) = text.parse::<i32>() {
            return Some((Value::Integer(if negative { -number } else { number }), DataType::Integer));
        }
        if let Ok(number) = text.parse::<i64>() {
            return Some((Value::BigInt(if negative { -number } else { number }), DataType::BigInt));
        }
    }
    let is_decimal =
        plain(text) || text.split_once('.').is_some_and(|(whole, part)| plain(whole) && plain(part));
    if !is_decimal || text.len() > usize::from(NUMERIC_PRECISION_MAX) {
        return None;
    }
    let number = Numeric::parse(&format!("{sign}{text}")).ok()?;
    Some((Value::Numeric(number), DataType::Numeric(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(parts: &[Statement<'a>]) -> Vec<&'a str> {
        parts.iter().map(|part| part.text).collect()
    }

    #[test]
    fn prepare_is_read_with_and_without_types() {
        let sql = "PREPARE \"P q\" (int, numeric(8,2), text [ ]) AS  SELECT $1, (2)";
        let split = self::split(sql);
        let prepare = parse_prepare(&split[0]).expect("PREPARE");
        assert_eq!(prepare.name, "P q");
        assert_eq!(texts(&prepare.types), ["int", "numeric(8,2)", "text [ ]"]);
        assert_eq!((prepare.statement.text, prepare.statement.start), ("SELECT $1, (2)", 48));
        for sql in ["prepare prepare as values (1)", "PREPARE a AS (select 1)", "prepare a as delete from t"]
        {
            assert!(parse_prepare(&self::split(sql)[0]).is_ok(), "{sql}");
        }
    }

    fn split(sql: &str) -> Vec<Statement<'_>> {
        super::super::script::split(sql)
    }

    #[test]
    fn what_is_no_prepare_is_refused_where_it_goes_wrong() {
        // Each with what PostgreSQL 15 points at.
        for (sql, position) in [
            ("PREPARE c AS create table t(a int)", 14),
            ("PREPARE c AS begin", 14),
            ("PREPARE c AS call p()", 14),
            ("PREPARE c AS execute b", 14),
            ("PREPARE c AS explain select 1", 14),
            ("PREPARE", 8),
            ("PREPARE a", 10),
            ("PREPARE a AS", 13),
            ("PREPARE a(int) select 1", 16),
            ("PREPARE a() AS select 1", 11),
            ("PREPARE \"\" AS select 1", 9),
        ] {
            let error = parse_prepare(&split(sql)[0]).expect_err(sql);
            assert_eq!(
                (error.state.to_string().as_str(), error.position),
                ("42601", Some(position)),
                "{sql}"
            );
        }
        for (sql, position) in [
            ("EXECUTE", 8),
            ("EXECUTE a()", 11),
            ("EXECUTE a(1", 12),
            ("EXECUTE a(1,)", 13),
            ("EXECUTE a 1", 11),
            ("EXECUTE a(1) x", 14),
            ("EXECUTE a(1), (2)", 13),
        ] {
            let error = parse_execute(&split(sql)[0]).expect_err(sql);
            assert_eq!(
                (error.state.to_string().as_str(), error.position),
                ("42601", Some(position)),
                "{sql}"
            );
        }
    }

    #[test]
    fn execute_is_read_with_and_without_explain() {
        let sql = "EXECUTE p(1, f(2, 3), ARRAY[4, 5], ',')";
        let split = self::split(sql);
        let execute = parse_execute(&split[0]).expect("EXECUTE");
        assert_eq!((execute.name.as_str(), execute.explain), ("p", None));
        assert_eq!(texts(&execute.arguments), ["1", "f(2, 3)", "ARRAY[4, 5]", "','"]);
        for (sql, explain) in [
            ("EXPLAIN EXECUTE p", "EXPLAIN "),
            ("EXPLAIN (LOGICAL, COSTS off) EXECUTE p", "EXPLAIN (LOGICAL, COSTS off) "),
            ("explain analyze verbose execute p(1)", "explain analyze verbose "),
        ] {
            let split = self::split(sql);
            assert!(explains_execute(&split[0]), "{sql}");
            assert_eq!(parse_execute(&split[0]).expect(sql).explain, Some(explain), "{sql}");
        }
        for sql in ["EXPLAIN SELECT 1", "EXECUTE p", "EXPLAIN (EXECUTE p"] {
            assert!(!explains_execute(&self::split(sql)[0]), "{sql}");
        }
    }

    #[test]
    fn literals_have_the_types_that_postgresql_gives_them() {
        for (sql, expected) in [
            ("7", Some("integer 7")),
            ("- 7", Some("integer -7")),
            ("2147483648", Some("bigint 2147483648")),
            ("-2147483648", Some("bigint -2147483648")),
            ("9223372036854775808", Some("numeric 9223372036854775808")),
            ("+1.50", Some("numeric 1.50")),
            ("'it''s'", Some("unknown it's")),
            ("TRUE", Some("boolean t")),
            ("null", Some("unknown NULL")),
            ("1e5", None),
            ("0x10", None),
            ("E'a'", None),
            ("1 + 1", None),
            ("now", None),
            ("\"a\"", None),
        ] {
            let found = literal(&split(sql)[0]).map(|(value, data_type)| {
                let text =
                    types::format_value(&value).map_or_else(|| "NULL".to_string(), |text| text.to_string());
                format!("{data_type} {text}")
            });
            assert_eq!(found.as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn queries_in_expressions_are_found_where_postgresql_points() {
        for (sql, at) in [
            ("(select 1)", Some(0)),
            ("1 + ((select 1))", Some(5)),
            ("exists (select 1)", Some(0)),
            ("1 in (values (1))", Some(2)),
            ("array(table t)", Some(0)),
            ("f('(select 1)')", None),
            ("(1)", None),
        ] {
            assert_eq!(subquery_in(&split(sql)[0]), at, "{sql}");
        }
    }
}
