//! Random values of type `jsonb`: how they sort, what they contain, what becomes of them.

use crate::expressions::Sql;
use crate::statements::Statement;
use proptest::prelude::*;
use proptest::sample::select;

/// A random JSON text, whose keys, numbers and strings are near one another.
fn json() -> Sql {
    let scalar = prop_oneof![
        select(vec!["null", "true", "false", "1", "1.0", "1.00", "-2", "1e2", "0.5", "12345678901234567890"])
            .prop_map(String::from),
        select(vec!["", "a", "b", "ab", "1", "\\n", "\\u00e9", "\\\"", "\\\\"])
            .prop_map(|text| format!("\"{text}\"")),
    ];
    scalar
        .prop_recursive(3, 16, 4, |inner| {
            let member = (select(vec!["", "a", "b", "aa", "ab", "1"]), inner.clone())
                .prop_map(|(key, value)| format!("\"{key}\": {value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
                prop::collection::vec(member, 0..4).prop_map(|all| format!("{{{}}}", all.join(" , "))),
            ]
        })
        .boxed()
}

fn path() -> Sql {
    let part = select(vec!["a", "b", "aa", "1", "0", "-1", "7", "-9", "x", "NULL", "\"\""]);
    prop::collection::vec(part, 0..4).prop_map(|parts| format!("'{{{}}}'", parts.join(","))).boxed()
}

fn jsonb() -> Sql {
    json().prop_map(|text| format!("'{text}'::jsonb")).boxed()
}

/// A random operation on values.
fn operation() -> Sql {
    let name = select(vec!["a", "b", "aa", "", "1"]).prop_map(|name| format!("'{name}'"));
    let index = (-4i32..5).prop_map(|index| format!("({index})"));
    let step = prop_oneof![name, index];
    prop_oneof![
        (jsonb(), select(vec!["->", "->>", "-"]), step.clone())
            .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (json(), select(vec!["->", "->>"]), step).prop_map(|(a, op, b)| format!("'{a}'::json {op} {b}")),
        (jsonb(), select(vec!["@>", "<@", "||", "=", "<", ">="]), jsonb())
            .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (jsonb(), select(vec!["#>", "#>>", "#-", "?|", "?&"]), path())
            .prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        (json(), select(vec!["#>", "#>>"]), path()).prop_map(|(a, op, b)| format!("'{a}'::json {op} {b}")),
        (jsonb(), path(), jsonb(), any::<bool>())
            .prop_map(|(a, path, b, create)| format!("jsonb_set({a}, {path}, {b}, {create})")),
        (jsonb(), path(), jsonb(), any::<bool>())
            .prop_map(|(a, path, b, behind)| format!("jsonb_insert({a}, {path}, {b}, {behind})")),
        (select(vec!["jsonb_pretty", "jsonb_strip_nulls", "jsonb_typeof", "jsonb_array_length"]), jsonb())
            .prop_map(|(function, a)| format!("{function}({a})")),
        (select(vec!["json_strip_nulls", "json_typeof", "json_array_length"]), json())
            .prop_map(|(function, a)| format!("{function}('{a}')")),
        (select(vec!["numeric", "integer", "boolean", "float8", "text"]), jsonb())
            .prop_map(|(target, a)| format!("{a}::{target}")),
        (jsonb(), jsonb()).prop_map(|(a, b)| format!("to_json(ARRAY[{a}, {b}])")),
        (json(), json()).prop_map(|(a, b)| format!("jsonb_build_array('{a}'::json, '{b}'::json)")),
    ]
    .boxed()
}

/// Statements about several values at once.
pub fn statements() -> BoxedStrategy<Vec<Statement>> {
    let sorted = prop::collection::vec(jsonb(), 2..12).prop_flat_map(|values| {
        let rows: Vec<String> = values.iter().map(|value| format!("({value})")).collect();
        let rows = rows.join(", ");
        let sqls = vec![
            format!("SELECT v FROM (VALUES {rows}) AS t (v) ORDER BY v, v::text"),
            format!("SELECT count(DISTINCT v), jsonb_agg(v ORDER BY v DESC, v::text) FROM (VALUES {rows}) AS t (v)"),
            format!("SELECT count(*) FROM (VALUES {rows}) AS t (v) GROUP BY v ORDER BY v"),
            format!(
                "SELECT e FROM (VALUES {rows}) AS t (v), jsonb_array_elements(CASE jsonb_typeof(v) WHEN 'array' THEN v END) AS e \
                 ORDER BY e, e::text"
            ),
            format!(
                "SELECT key, value FROM (VALUES {rows}) AS t (v), jsonb_each_text(CASE jsonb_typeof(v) WHEN 'object' THEN v END) \
                 ORDER BY key, value"
            ),
        ];
        select(sqls)
    });
    let single = operation().prop_map(|operation| format!("SELECT {operation} AS v"));
    let sql = prop_oneof![1 => sorted, 3 => single];
    let statement = sql.prop_map(|sql| Statement { sql, ordered: true });
    prop::collection::vec(statement, 1..6).boxed()
}

/// Random texts that are hardly JSON.
pub fn texts() -> Sql {
    let piece = select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"",
        "\\",
        "\\u00",
        "\\ud83d\\ude00",
        "1",
        "-",
        "0",
        ".5",
        "e3",
        "true",
        "nul",
        "null",
        " ",
        "\t",
        "x",
        "é",
    ]);
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat()).boxed()
}
