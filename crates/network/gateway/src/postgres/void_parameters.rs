//! Parameters of type `void` in the arguments of a function: JDBC's `{? = call f(?)}` sends them where a result is to come, and
//! PostgreSQL leaves them out of the call.

use super::decode::VOID;
use super::script::{Kind, Lexeme, lexemes};
use std::borrow::Cow;

/// What stands in front of parentheses that are no call.
const NO_FUNCTIONS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "by",
    "case",
    "else",
    "exists",
    "filter",
    "from",
    "in",
    "limit",
    "not",
    "offset",
    "on",
    "or",
    "over",
    "returning",
    "row",
    "select",
    "set",
    "some",
    "then",
    "using",
    "values",
    "when",
    "where",
    "within",
];

/// An open parenthesis.
#[derive(Default)]
struct Parenthesis {
    is_call: bool,
    /// An argument in front of this one stays.
    has_kept: bool,
    /// This argument is left out.
    drops: bool,
    /// The newest comma.
    comma: Option<usize>,
}

/// The statement without such arguments. Blanks stand for them, so that everything else stays where it is.
pub(super) fn without_void<'s>(sql: &'s str, given: &[u32]) -> Cow<'s, str> {
    if !given.contains(&VOID) {
        return Cow::Borrowed(sql);
    }
    let lexemes = lexemes(sql);
    let mut blanks = Vec::new();
    let mut open = vec![Parenthesis::default()];
    for (at, lexeme) in lexemes.iter().enumerate() {
        let Some(inner) = open.last_mut() else { break };
        if lexeme.is("(") {
            open.push(Parenthesis { is_call: is_call(&lexemes[..at]), ..Parenthesis::default() });
        } else if lexeme.is(")") {
            open.pop();
            if open.is_empty() {
                open.push(Parenthesis::default());
            }
        } else if lexeme.is(",") {
            if std::mem::take(&mut inner.drops) {
                // The first of all arguments takes the comma behind it.
                blanks.extend((!inner.has_kept).then_some(lexeme.start..lexeme.start + 1));
            } else {
                inner.has_kept = true;
            }
            inner.comma = Some(lexeme.start);
        } else if inner.is_call && is_whole_void(&lexemes, at, given) {
            let end = lexemes[at + 1].start + lexemes[at + 1].text.len();
            blanks.push(lexeme.start..end);
            blanks.extend(inner.comma.filter(|_| inner.has_kept).map(|comma| comma..comma + 1));
            inner.drops = true;
        }
    }
    let mut text = sql.as_bytes().to_vec();
    for place in blanks {
        text[place].fill(b' ');
    }
    // Whole characters were replaced by as many blanks as they have bytes.
    String::from_utf8(text).map_or(Cow::Borrowed(sql), Cow::Owned)
}

/// Whether a parenthesis behind these is that of a call.
fn is_call(before: &[Lexeme<'_>]) -> bool {
    before.last().is_some_and(|lexeme| match lexeme.kind {
        Kind::Word => !NO_FUNCTIONS.iter().any(|word| lexeme.is(word)),
        Kind::Quoted => lexeme.text.starts_with('"'),
        Kind::Number | Kind::Symbol => false,
    })
}

/// Whether a parameter of type void begins here and is an argument by itself.
fn is_whole_void(lexemes: &[Lexeme<'_>], at: usize, given: &[u32]) -> bool {
    let [.., before] = &lexemes[..at] else { return false };
    let [dollar, number, behind, ..] = &lexemes[at..] else { return false };
    let number = || number.text.parse::<usize>().ok()?.checked_sub(1);
    let is_void = || number().and_then(|number| given.get(number)) == Some(&VOID);
    dollar.is("$") && (before.is("(") || before.is(",")) && (behind.is(",") || behind.is(")")) && is_void()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_type_void_are_left_out_of_calls() {
        for (sql, given, expected) in [
            ("select * from f($1,$2) as result", [2278, 0, 0].as_slice(), "select * from f(   $2) as result"),
            ("select * from f($1) as result", &[2278], "select * from f(  ) as result"),
            ("select * from f($1 , $2)", &[23, 2278], "select * from f($1     )"),
            ("select f($1, $2, $3)", &[2278, 2278, 2278], "select f(          )"),
            ("select f($1, $2, $3)", &[2278, 23, 2278], "select f(    $2    )"),
            ("select f($1, $2, $3)", &[23, 2278, 2278], "select f($1        )"),
            ("select f($1, $2, $3)", &[23, 2278, 23], "select f($1    , $3)"),
            ("select s.\"é f\"(g($1), $2)", &[2278, 2278], "select s.\"é f\"(g(  )    )"),
        ] {
            assert_eq!(without_void(sql, given), expected);
        }
    }

    #[test]
    fn everything_else_stays() {
        for sql in [
            "insert into t values ($1, 2)",
            "select 1 where 1 in ($1)",
            "select f($1::text)",
            "select f('$1', \"$1\", $2)",
            "select ($1)",
            "select f(a => $1)",
            "$1)",
            "f($1",
            "f(",
            ")($",
            "",
        ] {
            assert_eq!(without_void(sql, &[VOID]), sql);
        }
        assert_eq!(without_void("select f($1)", &[23]), "select f($1)");
    }
}
