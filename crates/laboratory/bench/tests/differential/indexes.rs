//! Random indexes on expressions and of some rows, with NULLS NOT DISTINCT and without, and statements that change rows, conflict,
//! and find rows by them.

use super::expressions::Sql;
use super::statements::Statement;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// What is in the table.
pub const TABLES: [&str; 1] = ["SELECT * FROM t ORDER BY id"];

pub const DROP: &str = "DROP TABLE IF EXISTS t";

const INDEXES: [&str; 12] = [
    "CREATE UNIQUE INDEX i1 ON t (b) WHERE c",
    "CREATE UNIQUE INDEX i2 ON t (lower(b))",
    "CREATE UNIQUE INDEX i3 ON t ((a % 3), b) NULLS NOT DISTINCT",
    "CREATE UNIQUE INDEX i4 ON t (a) NULLS NOT DISTINCT WHERE NOT c",
    "CREATE INDEX i5 ON t ((12 / a)) WHERE c IS NOT NULL",
    "CREATE INDEX i6 ON t ((a + id)) INCLUDE (c)",
    "CREATE INDEX i7 ON t (b DESC NULLS LAST, a) WHERE a > 1",
    "CREATE INDEX i8 ON t (upper(b)) WHERE b IS NOT NULL AND a IN (1, 2)",
    "CREATE UNIQUE INDEX i9 ON t ((coalesce(a, 0) * 10 + length(b))) WHERE c = false",
    "CREATE UNIQUE INDEX i10 ON t (b, a) INCLUDE (c) NULLS NOT DISTINCT",
    "ALTER TABLE t ADD CONSTRAINT i11 UNIQUE NULLS NOT DISTINCT (c, b)",
    "CREATE UNIQUE INDEX i12 ON t ((b || 'x'), (a IS NULL)) WHERE a < 3 OR c",
];

const TARGETS: [&str; 10] = [
    "",
    "(b) WHERE c",
    "(b) WHERE c AND a = 1",
    "(lower(b))",
    "(b, (a % 3))",
    "(a) WHERE c = false",
    "((coalesce(a, 0) * 10 + length(b))) WHERE NOT c",
    "(a, b)",
    "((a IS NULL), (b || 'x')) WHERE a = 2",
    "(id)",
];

const CONDITIONS: [&str; 16] = [
    "c",
    "c = true AND b = 'x'",
    "NOT c AND a >= 1",
    "c IS FALSE",
    "lower(b) = 'x'",
    "lower(b) > 'w' AND lower(b) <= 'y'",
    "a % 3 = 1",
    "a % 3 = 1 AND b = 'x'",
    "a + id = 4",
    "a + id BETWEEN 3 AND 6",
    "a > 1 AND b >= 'X'",
    "a = 2 AND b < 'y'",
    "a > 2 AND b IS NOT NULL",
    "upper(b) = 'X' AND a = 1",
    "upper(b) = upper('y') AND a IN (1, 2)",
    "12 / a = 6 AND c",
];

fn number() -> Sql {
    prop_oneof![8 => (0..4i32).prop_map(|n| n.to_string()), 1 => Just("NULL".to_string())].boxed()
}

fn text() -> Sql {
    select(vec!["'x'", "'X'", "'y'", "'Y'", "'z'", "NULL"]).prop_map(str::to_string).boxed()
}

fn truth() -> Sql {
    select(vec!["true", "false", "NULL"]).prop_map(str::to_string).boxed()
}

fn row() -> Sql {
    ((1..8i32), number(), text(), truth()).prop_map(|(id, a, b, c)| format!("({id}, {a}, {b}, {c})")).boxed()
}

/// A table with rows, and indexes of which some may not be possible.
pub fn schema() -> impl Strategy<Value = Vec<String>> {
    (vec(row(), 0..5), subsequence(INDEXES.to_vec(), 1..5), any::<bool>()).prop_map(
        |(rows, indexes, first)| {
            let mut statements =
                vec!["CREATE TABLE t (id int PRIMARY KEY, a int, b text, c boolean)".to_string()];
            let rows = rows.into_iter().map(|row| format!("INSERT INTO t VALUES {row}"));
            let indexes = indexes.into_iter().map(str::to_string);
            if first {
                statements.extend(indexes.chain(rows));
            } else {
                statements.extend(rows.chain(indexes));
            }
            statements
        },
    )
}

/// A change of one row, so that which row comes first does not matter; or a query.
pub fn statement() -> BoxedStrategy<Statement> {
    let id = || 1..8i32;
    let assigned = prop_oneof![
        number().prop_map(|a| format!("a = {a}")),
        text().prop_map(|b| format!("b = {b}")),
        truth().prop_map(|c| format!("c = {c}")),
        Just("c = NOT c".to_string()),
        Just("a = a + 1, b = lower(b)".to_string()),
        id().prop_map(|id| format!("id = {id}")),
    ];
    let does = prop_oneof![
        Just("DO NOTHING".to_string()),
        number().prop_map(|a| format!("DO UPDATE SET a = {a} RETURNING id, a")),
        Just("DO UPDATE SET c = NOT t.c, b = excluded.b RETURNING *".to_string()),
    ];
    let sql = prop_oneof![
        4 => row().prop_map(|row| format!("INSERT INTO t VALUES {row}")),
        4 => (row(), select(TARGETS.to_vec()), does).prop_map(|(row, target, does)| {
            format!("INSERT INTO t VALUES {row} ON CONFLICT {target} {does}")
        }),
        4 => (assigned, id()).prop_map(|(assigned, id)| format!("UPDATE t SET {assigned} WHERE id = {id}")),
        1 => id().prop_map(|id| format!("DELETE FROM t WHERE id = {id}")),
        4 => select(CONDITIONS.to_vec()).prop_map(|condition| {
            format!("SELECT id, a, b, c FROM t WHERE {condition} ORDER BY id")
        }),
        1 => select(CONDITIONS.to_vec()).prop_map(|condition| {
            format!("SELECT x.id, y.id FROM t x JOIN t y ON lower(y.b) = x.b WHERE y.{} ORDER BY 1, 2", if condition.starts_with('c') { "c" } else { "a > 1" })
        }),
        1 => Just("ALTER TABLE t ALTER COLUMN a TYPE bigint".to_string()),
    ];
    sql.prop_map(|sql| Statement { sql, ordered: true }).boxed()
}
