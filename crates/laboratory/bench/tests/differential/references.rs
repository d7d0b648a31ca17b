//! Tables with random foreign keys, also over their own keys and in circles, and random changes of them, many with WITH
//! queries that change rows as well.

use super::expressions::Sql;
use super::statements::Statement;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// What is in the tables.
pub const TABLES: [&str; 3] = [
    "SELECT * FROM t0 ORDER BY 1, 2, 3",
    "SELECT * FROM t1 ORDER BY 1, 2, 3",
    "SELECT * FROM t2 ORDER BY 1, 2, 3",
];

pub const DROP: &str = "DROP TABLE IF EXISTS t0, t1, t2 CASCADE";

/// Columns that may reference others, and what they may reference.
const CHILDREN: [(&str, &str); 7] =
    [("t0", "id"), ("t0", "x"), ("t1", "id"), ("t1", "x"), ("t2", "a"), ("t2", "b"), ("t2", "v")];
const PARENTS: [&str; 3] = ["t0 (id)", "t1 (id)", "t1 (y)"];
const PAIRS: [(&str, &str); 5] =
    [("t0", "id, x"), ("t1", "x, id"), ("t1", "id, x"), ("t2", "a, b"), ("t2", "v, a")];

fn actions() -> Sql {
    let action = || select(vec!["NO ACTION", "RESTRICT", "CASCADE", "CASCADE", "SET NULL", "SET DEFAULT"]);
    (action(), action()).prop_map(|(delete, update)| format!("ON DELETE {delete} ON UPDATE {update}")).boxed()
}

fn foreign_key() -> Sql {
    let one = (select(&CHILDREN[..]), select(&PARENTS[..]), actions());
    let two = (select(&PAIRS[..]), select(vec!["t2 (a, b)", "t2 (b, a)"]), actions());
    let said = |((table, columns), parent, actions): ((&str, &str), &str, String)| {
        format!("ALTER TABLE {table} ADD FOREIGN KEY ({columns}) REFERENCES {parent} {actions}")
    };
    let numeric = actions().prop_map(move |actions| said((("t0", "y"), "t1 (y)", actions)));
    prop_oneof![8 => one.prop_map(said), 2 => two.prop_map(said), 1 => numeric].boxed()
}

/// Statements that make the tables and put rows into them. Numbers from 1 to 4 are there as keys, so that rows may have
/// them wherever they reference something.
pub fn schema() -> impl Strategy<Value = Vec<String>> {
    let number = || prop_oneof![5 => (1..5i32).prop_map(|n| n.to_string()), 1 => Just("NULL".to_string())];
    let rows = (vec(number(), 12), Just([2, 4, 1, 3]).prop_shuffle(), vec(1..5i32, 16));
    let indexes = subsequence(vec!["t0 (x)", "t1 (x)", "t2 (b)", "t2 (v, a)"], 0..3);
    (rows, indexes, vec(foreign_key(), 1..5)).prop_map(|((numbers, unique, values), indexes, keys)| {
        let mut statements = vec![
            "CREATE TABLE t0 (id int PRIMARY KEY, x int DEFAULT 2, y numeric)".to_string(),
            "CREATE TABLE t1 (id int PRIMARY KEY, x int DEFAULT 9, y numeric UNIQUE)".to_string(),
            "CREATE TABLE t2 (a int, b int DEFAULT 3, v int DEFAULT 1, PRIMARY KEY (a, b))".to_string(),
        ];
        for row in 0..4 {
            let [x, y, z] = [&numbers[row], &numbers[row + 4], &numbers[row + 8]];
            let (id, unique) = (row + 1, unique[row]);
            statements.push(format!("INSERT INTO t0 VALUES ({id}, {x}, {y})"));
            statements.push(format!("INSERT INTO t1 VALUES ({id}, {z}, {unique}.0)"));
            let row = |b: usize| format!("({id}, {}, {})", b + 1, values[4 * row + b]);
            statements.push(format!("INSERT INTO t2 VALUES {}", [0, 1, 2, 3].map(row).join(", ")));
        }
        statements.extend(indexes.iter().map(|index| format!("CREATE INDEX ON {index}")));
        statements.into_iter().chain(keys).collect()
    })
}

/// A table with its columns; the first ones are its key.
#[derive(Clone, Copy, Debug)]
struct Columns {
    table: &'static str,
    key: &'static str,
    all: [&'static str; 3],
}

const COLUMNS: [Columns; 3] = [
    Columns { table: "t0", key: "id", all: ["id", "x", "y"] },
    Columns { table: "t1", key: "id", all: ["id", "x", "y"] },
    Columns { table: "t2", key: "a", all: ["a", "b", "v"] },
];

fn number() -> Sql {
    prop_oneof![6 => (1..6i32).prop_map(|n| n.to_string()), 1 => Just("101".to_string())].boxed()
}

/// A query of numbers, from a table or from what a WITH query returns.
fn numbers(known: &[String]) -> Sql {
    let tables = COLUMNS.iter().flat_map(|columns| {
        columns.all.iter().map(|column| format!("SELECT {column} FROM {}", columns.table))
    });
    let known = known.iter().flat_map(|name| ["p", "q"].map(|column| format!("SELECT {column} FROM {name}")));
    select(tables.chain(known.clone()).chain(known).collect::<Vec<_>>()).boxed()
}

fn condition(columns: Columns, known: &[String]) -> Sql {
    let column = select(columns.all.to_vec());
    let comparisons = vec!["=", "=", "<", ">=", "<>"];
    let tests = vec!["IN", "NOT IN", "= ANY", "<> ALL", ">= ALL"];
    prop_oneof![
        3 => (column.clone(), select(comparisons), number()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        2 => (column.clone(), select(tests), numbers(known)).prop_map(|(a, test, query)| format!("{a} {test} ({query})")),
        1 => (column.clone(), number(), number()).prop_map(|(a, b, c)| format!("{a} IN ({b}, {c}.0)")),
        1 => (column.clone(), column).prop_map(|(a, b)| format!("{a} = {b}")),
        1 => Just("true".to_string()),
    ]
    .boxed()
}

fn update(columns: Columns, known: &[String]) -> Sql {
    let key = columns.key;
    let value = prop_oneof![
        4 => number(),
        1 => Just("NULL".to_string()),
        1 => Just("DEFAULT".to_string()),
        1 => select(columns.all.to_vec()).prop_map(str::to_string),
        1 => numbers(known).prop_map(|query| format!("(SELECT max(n) FROM ({query}) AS m (n))")),
    ];
    let others = (select(columns.all[1..].to_vec()), value, condition(columns, known));
    let moved = condition(columns, known);
    prop_oneof![
        // Rows that get one another's keys do so in an order that nobody tells: they move out of the way, or alone.
        1 => moved.prop_map(move |condition| format!("SET {key} = {key} + 100 WHERE {key} < 100 AND {condition}")),
        2 => (number(), number()).prop_map(move |(to, from)| match key {
            "a" => format!("SET a = {to} WHERE a = {from} AND b = 1"),
            _ => format!("SET {key} = {to} WHERE {key} = {from}"),
        }),
        3 => others.prop_map(move |(column, value, condition)| match column {
            "b" => format!("SET b = b + 100 WHERE b < 100 AND {condition}"),
            _ => format!("SET {column} = {value} WHERE {condition}"),
        }),
    ]
    .prop_map(move |set| format!("UPDATE {} {set}", columns.table))
    .boxed()
}

fn insert(columns: Columns, known: &[String]) -> Sql {
    let value =
        || prop_oneof![5 => number(), 1 => Just("NULL".to_string()), 1 => Just("DEFAULT".to_string())];
    let conflict = select(vec!["", "", " ON CONFLICT DO NOTHING"]);
    let table = columns.table;
    let written = (number(), value(), value()).prop_map(|(a, b, c)| format!("VALUES ({a}, {b}, {c})"));
    let found = (numbers(known), number()).prop_map(|(query, c)| {
        format!("SELECT DISTINCT n::int + 200, 1, {c} FROM ({query}) AS m (n) WHERE n < 100 ORDER BY 1")
    });
    (prop_oneof![2 => written, 1 => found], conflict)
        .prop_map(move |(rows, conflict)| format!("INSERT INTO {table} {rows}{conflict}"))
        .boxed()
}

/// A change of a table, in which these WITH queries may be named.
fn change(columns: Columns, known: &[String]) -> Sql {
    let table = columns.table;
    let delete =
        condition(columns, known).prop_map(move |condition| format!("DELETE FROM {table} WHERE {condition}"));
    prop_oneof![2 => update(columns, known), 1 => insert(columns, known), 1 => delete].boxed()
}

fn returning(columns: Columns) -> String {
    format!("RETURNING {} AS p, {} AS q", columns.all[0], columns.all[2])
}

/// A statement with WITH queries that change one table each, and a main statement about another one.
fn with() -> Sql {
    Just(COLUMNS)
        .prop_shuffle()
        .prop_flat_map(|[first, second, third]| {
            let names = ["a".to_string(), "b".to_string()];
            let returned = |sql: String, columns, returns: bool| match returns {
                true => format!("{sql} {}", returning(columns)),
                false => sql,
            };
            let one =
                change(first, &[]).prop_map(move |sql| format!("WITH a AS ({})", returned(sql, first, true)));
            let two = (change(first, &[]), change(second, &names[..1]), any::<bool>()).prop_map(
                move |(one, other, is_read)| {
                    let (one, other) = (returned(one, first, true), returned(other, second, is_read));
                    format!("WITH a AS ({one}), b AS ({other})")
                },
            );
            let counts = select(vec![
                "SELECT count(*), sum(p), sum(q) FROM a",
                "SELECT 1",
                "SELECT (SELECT count(*) FROM t0), (SELECT sum(v) FROM t2), (SELECT sum(x) FROM t1)",
                "SELECT x.p, y.q FROM a AS x JOIN a AS y ON x.p = y.p",
                "SELECT id, x FROM t0 WHERE id IN (SELECT p FROM a) OR x IN (SELECT q FROM a)",
            ]);
            let main = prop_oneof![
                2 => change(third, &names[..1]),
                1 => change(third, &names[..1]).prop_map(move |sql| format!("{sql} {}", returning(third))),
                2 => counts.prop_map(str::to_string),
            ];
            (prop_oneof![one, two], main).prop_map(|(with, main)| format!("{with} {main}"))
        })
        .boxed()
}

pub fn statement() -> BoxedStrategy<Statement> {
    let plain = select(&COLUMNS[..]).prop_flat_map(|columns| {
        let returned = any::<bool>().prop_map(move |is| if is { returning(columns) } else { String::new() });
        (change(columns, &[]), returned).prop_map(|(sql, returning)| format!("{sql} {returning}"))
    });
    let truncate = select(&COLUMNS[..]).prop_map(|columns| format!("TRUNCATE {} CASCADE", columns.table));
    prop_oneof![8 => plain, 8 => with(), 1 => truncate]
        .prop_map(|sql| Statement { sql, ordered: false })
        .boxed()
}
