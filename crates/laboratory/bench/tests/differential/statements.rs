//! Random statements on the tables of the test.

use super::expressions::{Expressions, Scope, Sql, Type, literal, scope};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

/// Columns of `p`; `id` is its key.
pub const P: [(&str, Type); 6] = [
    ("id", Type::Integer),
    ("i", Type::Integer),
    ("n", Type::Numeric),
    ("s", Type::Text),
    ("f", Type::Boolean),
    ("d", Type::Date),
];
/// Columns of `q`; `id` is its key, and `s` is unique.
pub const Q: [(&str, Type); 5] =
    [("id", Type::Integer), ("p", Type::Integer), ("n", Type::Numeric), ("s", Type::Text), ("d", Type::Date)];
/// Columns of `r`, which has no key.
pub const R: [(&str, Type); 2] = [("k", Type::Text), ("v", Type::Integer)];

pub const SCHEMA: [&str; 4] = [
    "CREATE TABLE p (id integer PRIMARY KEY, i integer CHECK (i < 200), n numeric(9, 2), s text, f boolean, d date)",
    "CREATE TABLE q (id integer PRIMARY KEY, p integer, n numeric, s text UNIQUE, d date)",
    "CREATE INDEX q_p ON q (p)",
    "CREATE TABLE r (k text, v integer)",
];

/// A statement, and whether the order of its rows is told.
#[derive(Clone, Debug)]
pub struct Statement {
    pub sql: String,
    pub ordered: bool,
}

/// A value of a column of a row that a test begins with; keys come from a small range.
fn values(columns: &[(&'static str, Type)]) -> Sql {
    let value = |(name, kind): &(&str, Type)| match *name {
        "id" => (1..12i32).prop_map(|key| key.to_string()).boxed(),
        "p" => (1..12i32).prop_map(|key| key.to_string()).boxed(),
        _ => prop_oneof![5 => literal(*kind), 1 => Just("NULL".to_string())].boxed(),
    };
    columns
        .iter()
        .map(value)
        .collect::<Vec<_>>()
        .prop_map(|values| format!("({})", values.join(", ")))
        .boxed()
}

/// Rows for every table, as INSERTs that pass over what is there already.
pub fn rows() -> impl Strategy<Value = Vec<String>> {
    let insert = |table: &'static str, columns: &[(&'static str, Type)]| {
        vec(values(columns), 0..8).prop_map(move |rows| {
            rows.iter()
                .map(|row| format!("INSERT INTO {table} VALUES {row} ON CONFLICT DO NOTHING"))
                .collect::<Vec<_>>()
        })
    };
    (insert("p", &P), insert("q", &Q), insert("r", &R)).prop_map(|(p, q, r)| [p, q, r].concat())
}

pub fn statement() -> BoxedStrategy<Statement> {
    prop_oneof![6 => query(), 1 => values_only(), 3 => change()].boxed()
}

/// Expressions without a table.
fn values_only() -> BoxedStrategy<Statement> {
    let expressions = Expressions::new(&Scope::new(), 3);
    vec(expressions.any(), 1..4)
        .prop_map(|outputs| {
            let outputs: Vec<String> = outputs.into_iter().map(|(_, text)| text).collect();
            Statement { sql: format!("SELECT {}", outputs.join(", ")), ordered: true }
        })
        .boxed()
}

/// Numbers that are equal may be written with more zeros or less: which of them a group shows is not told.
fn one_form((kind, text): (Type, String)) -> (Type, String) {
    match kind {
        Type::Numeric => (kind, format!("round({text}, 3)")),
        _ => (kind, text),
    }
}

fn outputs(expressions: &Expressions) -> BoxedStrategy<Vec<(Type, String)>> {
    vec(expressions.any().prop_map(one_form), 1..4).boxed()
}

fn list(outputs: &[(Type, String)]) -> String {
    outputs.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(", ")
}

fn order(outputs: usize) -> impl Strategy<Value = String> {
    let direction = select(vec!["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
    vec(direction, outputs).prop_map(|directions| {
        let terms: Vec<String> =
            directions.iter().enumerate().map(|(at, direction)| format!("{}{direction}", at + 1)).collect();
        terms.join(", ")
    })
}

fn limit() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(String::new()),
        1 => (0..4u32).prop_map(|rows| format!(" LIMIT {rows}")),
        1 => (0..4u32, 0..3u32).prop_map(|(rows, skipped)| format!(" LIMIT {rows} OFFSET {skipped}")),
    ]
}

/// Relations with aliases, and the columns that they have.
fn from() -> BoxedStrategy<(String, Scope)> {
    let (x, y, z) = (scope("x.", &P), scope("y.", &Q), scope("z.", &R));
    let both = [x.clone(), y.clone()].concat();
    let all = [both.clone(), z.clone()].concat();
    let on = Expressions::new(&both, 1).boolean;
    let join = select(vec!["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
    let inner = Expressions::new(&[x.clone(), scope("w.", &Q)].concat(), 1);
    let (alone, pair) = (x.clone(), both.clone());
    prop_oneof![
        3 => Just(("p AS x".to_string(), alone)),
        1 => Just(("r AS z".to_string(), z)),
        3 => (join, on.clone()).prop_map(move |(join, on)| (format!("p AS x {join} q AS y ON {on}"), pair.clone())),
        1 => select(vec!["p AS x FULL JOIN q AS y ON x.id = y.p", "p AS x JOIN q AS y ON x.id = y.p", "p AS x, q AS y"])
            .prop_map({ let both = both.clone(); move |text| (text.to_string(), both.clone()) }),
        1 => on.prop_map({
            let all = all.clone();
            move |on| (format!("p AS x LEFT JOIN q AS y ON {on} JOIN r AS z ON z.v = x.i OR z.k = y.s"), all.clone())
        }),
        1 => (inner.integer, inner.text, inner.boolean).prop_map(move |(v, k, condition)| {
            let lateral = format!("(SELECT {v} AS v, {k} AS k FROM q AS w WHERE {condition}) AS z");
            (format!("p AS x CROSS JOIN LATERAL {lateral}"), [scope("x.", &P), scope("z.", &R)].concat())
        }),
    ]
    .boxed()
}

/// A condition that asks another table.
fn asks(outer: &Scope) -> Sql {
    let inner = [outer.clone(), scope("u.", &Q)].concat();
    let expressions = Expressions::new(&inner, 1);
    let mixed = (expressions.mixed(), expressions.mixed(), expressions.boolean.clone());
    let outer = Expressions::new(outer, 1);
    let tests = vec!["IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"];
    prop_oneof![
        2 => (mixed, select(tests)).prop_map(|(((a, b), (c, d), condition), test)| {
            match test {
                // Rows too.
                "< ANY" => format!("(({a}, {c}) {test} (SELECT {b}, {d} FROM q AS u WHERE {condition}))"),
                _ => format!("({a} {test} (SELECT {b} FROM q AS u WHERE {condition}))"),
            }
        }),
        1 => (select(vec!["EXISTS", "NOT EXISTS"]), expressions.boolean.clone())
            .prop_map(|(test, condition)| format!("{test} (SELECT FROM q AS u WHERE {condition})")),
        1 => (
            outer.integer.clone(),
            select(vec!["IN", "NOT IN"]),
            expressions.integer.clone(),
            expressions.boolean.clone()
        )
            .prop_map(|(value, test, output, condition)| {
                format!("({value} {test} (SELECT {output} FROM q AS u WHERE {condition}))")
            }),
        1 => (
            outer.integer.clone(),
            select(vec!["=", "<", ">="]),
            select(vec!["max(u.p)", "count(*)", "sum(u.id)"]),
            expressions.boolean
        )
            .prop_map(|(value, operator, output, condition)| {
                format!("({value} {operator} (SELECT {output} FROM q AS u WHERE {condition}))")
            }),
        1 => (outer.integer, select(vec!["> ALL", "<= ANY", "= SOME"]))
            .prop_map(|(value, test)| format!("({value} {test} (SELECT p FROM q))")),
    ]
    .boxed()
}

fn query() -> BoxedStrategy<Statement> {
    from()
        .prop_flat_map(|(from, columns)| {
            let expressions = Expressions::new(&columns, 2).with_condition(asks(&columns));
            prop_oneof![
                3 => plain(from.clone(), &expressions),
                3 => grouped(from.clone(), &expressions),
                1 => windowed(from.clone(), &expressions),
                1 => framed(from.clone(), &expressions),
                1 => united(from.clone(), &expressions),
                1 => named(from, &expressions),
            ]
        })
        .boxed()
}

fn ordered(sql: String) -> Statement {
    Statement { sql, ordered: true }
}

fn plain(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let distinct = select(vec!["", "DISTINCT "]);
    (outputs(expressions), expressions.boolean.clone(), distinct, limit())
        .prop_flat_map(move |(outputs, condition, distinct, limit)| {
            let select = format!("SELECT {distinct}{} FROM {from} WHERE {condition}", list(&outputs));
            order(outputs.len()).prop_map(move |order| ordered(format!("{select} ORDER BY {order}{limit}")))
        })
        .boxed()
}

fn aggregate(expressions: &Expressions) -> Sql {
    let (i, n, t, b) = (&expressions.integer, &expressions.numeric, &expressions.text, &expressions.boolean);
    let plain = prop_oneof![
        Just("count(*)".to_string()),
        (select(vec!["count", "sum", "avg", "min", "max", "bit_or"]), i.clone())
            .prop_map(|(function, a)| format!("{function}({a})")),
        (select(vec!["count(DISTINCT ", "sum(DISTINCT "]), i.clone())
            .prop_map(|(function, a)| format!("{function}{a})")),
        (select(vec!["sum", "avg", "min", "max", "variance"]), n.clone())
            .prop_map(|(function, a)| format!("round({function}(round({a}, 2)), 3)")),
        (select(vec!["min", "max"]), t.clone()).prop_map(|(function, a)| format!("{function}({a})")),
        (select(vec!["bool_and", "bool_or", "every"]), b.clone())
            .prop_map(|(function, a)| format!("{function}({a})")),
        t.clone().prop_map(|a| format!("string_agg({a}, ',' ORDER BY {a})")),
        i.clone().prop_map(|a| format!("array_agg({a} ORDER BY {a})")),
    ];
    let filter = prop_oneof![3 => Just(None), 1 => b.clone().prop_map(Some)];
    (plain, filter)
        .prop_map(|(call, filter)| match filter {
            // The condition stands behind the call, also where that is inside of round().
            Some(condition) if !call.starts_with("round") => format!("{call} FILTER (WHERE {condition})"),
            _ => call,
        })
        .boxed()
}

fn grouped(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let keys = vec(expressions.any().prop_map(one_form), 0..3);
    let having = (aggregate(expressions), select(vec!["", " IS NULL", " IS NOT NULL"]));
    (keys, vec(aggregate(expressions), 1..4), expressions.boolean.clone(), having, limit())
        .prop_flat_map(move |(keys, aggregates, condition, (tested, test), limit)| {
            let outputs: Vec<String> = keys.iter().map(|(_, text)| text.clone()).chain(aggregates).collect();
            let mut sql = format!("SELECT {} FROM {from} WHERE {condition}", outputs.join(", "));
            if !keys.is_empty() {
                let places: Vec<String> = (1..=keys.len()).map(|place| place.to_string()).collect();
                sql.push_str(&format!(" GROUP BY {}", places.join(", ")));
            }
            if !test.is_empty() {
                sql.push_str(&format!(" HAVING {tested}{test}"));
            }
            order(outputs.len()).prop_map(move |order| ordered(format!("{sql} ORDER BY {order}{limit}")))
        })
        .boxed()
}

fn windowed(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let function = prop_oneof![
        Just("rank()".to_string()),
        Just("dense_rank()".to_string()),
        Just("count(*)".to_string()),
        expressions.integer.clone().prop_map(|a| format!("sum({a})")),
        expressions.integer.clone().prop_map(|a| format!("max({a})")),
    ];
    let (i, t) = (expressions.integer.clone(), expressions.text.clone());
    (function, i.clone(), t, i, expressions.boolean.clone())
        .prop_map(move |(function, part, first, second, condition)| {
            ordered(format!(
                "SELECT {part}, {first}, {second}, {function} OVER (PARTITION BY {part} ORDER BY {first}, {second} DESC) \
                 FROM {from} WHERE {condition} ORDER BY 1, 2, 3, 4"
            ))
        })
        .boxed()
}

/// Bounds of a frame, in an order that there is. Offsets are written as this says.
fn bounds(offset: fn(u8) -> String) -> Sql {
    let side = |offset: fn(u8) -> String, last: &'static str, own: &'static str| {
        prop_oneof![
            1 => Just((0, format!("UNBOUNDED {last}"))),
            3 => (0..4u8).prop_map(move |n| (0, format!("{} {last}", offset(n)))),
            2 => Just((1, "CURRENT ROW".to_string())),
            2 => (0..4u8).prop_map(move |n| (2, format!("{} {own}", offset(n)))),
        ]
    };
    (side(offset, "PRECEDING", "FOLLOWING"), side(offset, "FOLLOWING", "PRECEDING"))
        .prop_map(|((after, start), (before, end))| match after + before <= 2 {
            true => format!("BETWEEN {start} AND {end}"),
            false => "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".to_string(),
        })
        .boxed()
}

/// Frames of values and of groups. What they give does not depend on the order of rows that are equal.
fn framed(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let number = |n: u8| n.to_string();
    let with_frame = |key: &Sql, offset: fn(u8) -> String| {
        let units = prop_oneof![
            bounds(offset).prop_map(|bounds| format!("RANGE {bounds}")),
            bounds(number).prop_map(|bounds| format!("GROUPS {bounds}")),
        ];
        (key.clone(), units).boxed()
    };
    let framed = prop_oneof![
        2 => with_frame(&expressions.integer, number),
        1 => with_frame(&expressions.numeric, |n| format!("{n}.5")),
        1 => with_frame(&expressions.date, |n| format!("'{} days'", 10 * u32::from(n))),
    ];
    let function = select(vec![
        "count(*)",
        "sum(VALUE)",
        "max(VALUE)",
        "array_length(array_agg(VALUE), 1)",
        "first_value(KEY)",
        "last_value(KEY)",
        "nth_value(KEY, 2)",
        "rank()",
    ]);
    let exclusion =
        select(vec!["", "EXCLUDE NO OTHERS", "EXCLUDE CURRENT ROW", "EXCLUDE GROUP", "EXCLUDE TIES"]);
    let order = select(vec!["", "DESC", "NULLS FIRST", "DESC NULLS LAST"]);
    let (i, t) = (expressions.integer.clone(), expressions.text.clone());
    (framed, function, exclusion, order, i, t)
        .prop_map(move |((key, frame), function, exclusion, order, value, part)| {
            let function = function.replace("VALUE", &value).replace("KEY", &key);
            ordered(format!(
                "SELECT {part}, {key}, {value}, {function} OVER (PARTITION BY {part} ORDER BY {key} {order} {frame} {exclusion}) \
                 FROM {from} ORDER BY 1, 2, 3, 4"
            ))
        })
        .boxed()
}

fn united(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let operators = vec!["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"];
    let (i, t) = (expressions.integer.clone(), expressions.text.clone());
    let other = Expressions::new(&scope("", &R), 1);
    (i, t, expressions.boolean.clone(), select(operators), other.integer, other.text, limit())
        .prop_map(move |(i, t, condition, operator, other_i, other_t, limit)| {
            ordered(format!(
                "SELECT {i} AS a, {t} AS b FROM {from} WHERE {condition} \
                 {operator} SELECT {other_i}, {other_t} FROM r ORDER BY a, b{limit}"
            ))
        })
        .boxed()
}

fn named(from: String, expressions: &Expressions) -> BoxedStrategy<Statement> {
    let (i, t) = (expressions.integer.clone(), expressions.text.clone());
    let behind = Expressions::new(&[scope("c.", &R), scope("x.", &P)].concat(), 1);
    let join = select(vec!["JOIN", "LEFT JOIN"]);
    (i, t, expressions.boolean.clone(), outputs(&behind), join, behind.boolean)
        .prop_map(move |(v, k, condition, outputs, join, on)| Statement {
            sql: format!(
                "WITH c AS (SELECT {k} AS k, {v} AS v FROM {from} WHERE {condition}) \
                 SELECT {} FROM c {join} p AS x ON {on}",
                list(&outputs)
            ),
            ordered: false,
        })
        .boxed()
}

/// An expression for a column, in the range that the other expressions are made for.
fn assigned(kind: Type, expressions: &Expressions) -> Sql {
    let value = expressions.of(kind);
    match kind {
        Type::Integer => value.prop_map(|text| format!("({text}) % 10")).boxed(),
        Type::Numeric => value.prop_map(|text| format!("round(({text}) % 10, 2)")).boxed(),
        Type::Text => value.prop_map(|text| format!("left({text}, 6)")).boxed(),
        _ => value,
    }
}

fn change() -> BoxedStrategy<Statement> {
    prop_oneof![insert(), insert_query(), update(), update_from(), delete()]
        .prop_map(|sql| Statement { sql, ordered: false })
        .boxed()
}

fn insert() -> Sql {
    select(vec![("p", &P[..]), ("q", &Q[..])])
        .prop_flat_map(|(table, columns)| {
            let conflict = prop_oneof![
                Just(String::new()),
                Just(" ON CONFLICT DO NOTHING".to_string()),
                Just(" ON CONFLICT (id) DO NOTHING".to_string()),
                Just(" ON CONFLICT (id) DO UPDATE SET s = left(EXCLUDED.s || 'u', 6)".to_string()),
            ];
            (vec(values(columns), 1..3), conflict).prop_map(move |(rows, conflict)| {
                format!("INSERT INTO {table} VALUES {}{conflict} RETURNING id, s", rows.join(", "))
            })
        })
        .boxed()
}

fn insert_query() -> Sql {
    let expressions = Expressions::new(&scope("", &P), 1);
    (expressions.text.clone(), assigned(Type::Integer, &expressions), expressions.boolean)
        .prop_map(|(k, v, condition)| {
            format!("INSERT INTO r SELECT {k}, {v} FROM p WHERE {condition} RETURNING *")
        })
        .boxed()
}

/// Some columns behind the key, each with its new value.
fn assignments(columns: &'static [(&'static str, Type)], expressions: &Expressions) -> Sql {
    let expressions = expressions.clone();
    subsequence(columns.to_vec(), 1..3)
        .prop_flat_map(move |columns| {
            let one = |(name, kind): &(&'static str, Type)| {
                let name = *name;
                assigned(*kind, &expressions).prop_map(move |value| format!("{name} = {value}"))
            };
            columns.iter().map(one).collect::<Vec<_>>().prop_map(|all| all.join(", "))
        })
        .boxed()
}

fn update() -> Sql {
    let columns = scope("", &P);
    let expressions = Expressions::new(&columns, 2).with_condition(asks(&columns));
    (assignments(&P[1..], &expressions), expressions.boolean)
        .prop_map(|(set, condition)| format!("UPDATE p SET {set} WHERE {condition} RETURNING *"))
        .boxed()
}

/// From a subquery with one row at most for every row that is changed.
fn update_from() -> Sql {
    let columns =
        [scope("x.", &P), vec![("y.p".to_string(), Type::Integer), ("y.v".to_string(), Type::Integer)]];
    let expressions = Expressions::new(&columns.concat(), 1);
    (assignments(&P[1..], &expressions), expressions.boolean)
        .prop_map(|(set, condition)| {
            format!(
                "UPDATE p AS x SET {set} FROM (SELECT p, max(id) AS v FROM q GROUP BY p) AS y \
                 WHERE x.id = y.p AND {condition} RETURNING *"
            )
        })
        .boxed()
}

fn delete() -> Sql {
    let columns = scope("", &Q);
    let expressions = Expressions::new(&columns, 1);
    let using = Expressions::new(&[scope("x.", &P), scope("q.", &Q)].concat(), 1);
    prop_oneof![
        expressions.boolean.prop_map(|condition| format!("DELETE FROM q WHERE {condition} RETURNING *")),
        using.boolean.prop_map(|condition| {
            format!("DELETE FROM q USING p AS x WHERE x.id = q.p AND {condition} RETURNING *")
        }),
    ]
    .boxed()
}
