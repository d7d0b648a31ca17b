//! Whether two answers to a query are the same; and the few differences that PostgreSQL itself leaves open.

use crate::postgres::Answer;

/// A difference that is nobody's mistake. Each has a bound in the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// One meets an error on a row that another condition, a LIMIT or a branch has left out in the other, or in an output that
    /// nobody reads. PostgreSQL asks in the order that it takes for cheap, and computes constants before it reads a row.
    ErrorOnRowsLeftOut,
    /// Both fail, and another of several errors came first.
    AnotherErrorFirst,
    /// Of equal values that are written differently (1.5 and 1.50, 0 and -0), a group, DISTINCT, min and max may show any, and
    /// any may be the first.
    EqualWrittenOtherwise,
    /// A sum of floating-point numbers, which depends on the order of the rows: in the last digits, and where large numbers
    /// cancel one another in all of them. So the order by such a sum is open, too.
    SumOfFloats,
}

/// What a comparison comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    SameRows,
    SameError,
    Permitted(Rule),
    Different,
}

/// Compares our answer to a query with PostgreSQL's. `ordered`: the query says in which order the rows come.
pub fn verdict(sql: &str, ordered: bool, found: &Answer, expected: &Answer) -> Verdict {
    match (found, expected) {
        (Answer::Rows(found), Answer::Rows(expected)) => rows(sql, ordered, found, expected),
        (Answer::Error { state: found, .. }, Answer::Error { state: expected, .. }) if found == expected => {
            Verdict::SameError
        }
        (Answer::Error { state: found, .. }, Answer::Error { state: expected, .. })
            if is_of_a_value(found) && is_of_a_value(expected) =>
        {
            Verdict::Permitted(Rule::AnotherErrorFirst)
        }
        (Answer::Error { state, .. }, Answer::Rows(_)) | (Answer::Rows(_), Answer::Error { state, .. })
            if is_of_a_value(state) && leaves_out(sql) =>
        {
            Verdict::Permitted(Rule::ErrorOnRowsLeftOut)
        }
        _ => Verdict::Different,
    }
}

/// Errors that a value causes: out of range, division by zero.
fn is_of_a_value(state: &str) -> bool {
    ["22003", "22008", "22012"].contains(&state)
}

/// Whether something in the query leaves rows, branches or outputs out.
fn leaves_out(sql: &str) -> bool {
    let words = [" WHERE ", " JOIN ", " HAVING ", " LIMIT ", " OFFSET ", "(WHERE ", "CASE ", "coalesce("];
    words.iter().any(|word| sql.contains(word)) || sql.matches("SELECT ").count() > 1
}

type Row = Vec<Option<String>>;

fn rows(sql: &str, ordered: bool, found: &[Row], expected: &[Row]) -> Verdict {
    let in_order = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        if !ordered {
            rows.sort();
        }
        rows
    };
    let plain = |rows: &[Row]| {
        let value = |value: &Option<String>| value.as_deref().map(plain_number);
        let rows: Vec<Row> = rows.iter().map(|row| row.iter().map(value).collect()).collect();
        in_order(&rows)
    };
    if in_order(found) == in_order(expected) {
        return Verdict::SameRows;
    }
    let names = |columns: &[&str]| columns.iter().any(|column| sql.contains(column));
    let (found, expected) = (plain(found), plain(expected));
    if found == expected {
        return Verdict::Permitted(Rule::EqualWrittenOtherwise);
    }
    if found.len() == expected.len() && names(&[".f", ".r"]) && names(&["sum(", "avg("]) {
        return Verdict::Permitted(Rule::SumOfFloats);
    }
    Verdict::Different
}

/// A number without zeros at its end and without the sign of zero; any other text as it is.
fn plain_number(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    let trimmed = match is_number && text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    };
    if is_number && trimmed == "-0" { "0".to_string() } else { trimmed.to_string() }
}

#[test]
fn differences_are_found() {
    let rows = |rows: &[&[&str]]| {
        let text = |text: &&str| Some((*text).to_string());
        Answer::Rows(rows.iter().map(|row| row.iter().map(text).collect()).collect())
    };
    let error = |state: &str| Answer::Error { state: state.to_string(), message: String::new() };
    let (all, some) = ("SELECT one.b + 1 FROM one", "SELECT one.b + 1 FROM one WHERE one.t");
    let cases = [
        (all, false, rows(&[&["1"], &["2"]]), rows(&[&["2"], &["1"]]), Verdict::SameRows),
        (all, true, rows(&[&["1"], &["2"]]), rows(&[&["2"], &["1"]]), Verdict::Different),
        (all, false, rows(&[&["1"]]), rows(&[&["1"], &["1"]]), Verdict::Different),
        (all, false, rows(&[&["1.5"]]), rows(&[&["1.51"]]), Verdict::Different),
        (all, false, rows(&[&[""]]), Answer::Rows(vec![vec![None]]), Verdict::Different),
        (all, false, error("22003"), error("22003"), Verdict::SameError),
        (all, false, error("42883"), error("42804"), Verdict::Different),
        (all, false, error("0A000"), rows(&[]), Verdict::Different),
        (all, false, error("22003"), rows(&[]), Verdict::Different),
        (all, false, rows(&[]), error("22003"), Verdict::Different),
        (all, false, error("22003"), error("22012"), Verdict::Permitted(Rule::AnotherErrorFirst)),
        (some, false, error("22003"), rows(&[]), Verdict::Permitted(Rule::ErrorOnRowsLeftOut)),
        (some, false, rows(&[]), error("22012"), Verdict::Permitted(Rule::ErrorOnRowsLeftOut)),
        (some, false, rows(&[]), error("42883"), Verdict::Different),
    ];
    for (sql, ordered, found, expected, comes_to) in cases {
        assert_eq!(verdict(sql, ordered, &found, &expected), comes_to, "{sql}: {found:?}, {expected:?}");
    }
    let grouped = "SELECT one.u, sum(one.f) FROM one GROUP BY one.u";
    let cases = [
        (rows(&[&["1.5", "-0"]]), rows(&[&["1.50", "0"]]), Verdict::Permitted(Rule::EqualWrittenOtherwise)),
        (
            rows(&[&["1", "0.30000000000000004"]]),
            rows(&[&["1", "0.3"]]),
            Verdict::Permitted(Rule::SumOfFloats),
        ),
        (rows(&[&["1", "0.3"], &["1", "0.3"]]), rows(&[&["1", "0.3"]]), Verdict::Different),
    ];
    for (found, expected, comes_to) in cases {
        assert_eq!(verdict(grouped, true, &found, &expected), comes_to, "{found:?}, {expected:?}");
    }
}
