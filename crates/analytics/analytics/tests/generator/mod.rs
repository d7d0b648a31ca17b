//! Random tables and random queries of them, as SQL that PostgreSQL takes too.

#![allow(dead_code)]

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

const ROWS: usize = 40;

/// A query in parts, so that it can be asked with another order.
pub struct Query {
    /// All up to ORDER BY.
    select: String,
    /// Its outputs.
    outputs: usize,
    /// Keys of ORDER BY.
    order: Vec<String>,
    /// LIMIT and OFFSET, or nothing.
    limit: String,
    /// Whether another query around it counts its rows.
    counted: bool,
}

impl Query {
    /// Any one, with groups or without.
    pub fn any(random: &mut StdRng) -> Query {
        if random.random_range(0..4) == 0 { listing(random) } else { grouping(random) }
    }

    /// As it was made. Where ORDER BY leaves rows equal, their order is anybody's choice, and so is what LIMIT takes of them.
    pub fn text(&self) -> String {
        self.ordered_by(&self.order)
    }

    /// The same, with all outputs as last keys if it has an order or a limit: then no choice is left.
    pub fn determined(&self) -> String {
        if self.order.is_empty() && self.limit.is_empty() {
            return self.text();
        }
        let outputs = (1..=self.outputs).map(|output| output.to_string());
        self.ordered_by(&self.order.iter().cloned().chain(outputs).collect::<Vec<_>>())
    }

    /// Whether [`Query::determined`] says in which order the rows come.
    pub fn is_ordered(&self) -> bool {
        let has_order = !self.order.is_empty() || !self.limit.is_empty();
        has_order && !self.counted
    }

    fn ordered_by(&self, keys: &[String]) -> String {
        let order = if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) };
        let query = format!("{}{order}{}", self.select, self.limit);
        let query = match self.counted {
            true => format!("SELECT count(*), min(x.s1) FROM ({query}) AS x ({})", names(self.outputs)),
            false => query,
        };
        query.replace("$1", "3")
    }
}

/// Two tables with columns of every type; some values are at the ends of their types.
pub fn tables(random: &mut StdRng) -> Vec<String> {
    let columns = "k integer PRIMARY KEY, a smallint, b integer, c bigint, n numeric(12,2), m numeric(30,6), s text, \
                   h char(4), t boolean, d date, w timestamp, f double precision, r real, u numeric";
    let mut statements = vec![
        format!("CREATE TABLE one ({columns})"),
        format!("CREATE TABLE two ({columns})"),
        "CREATE INDEX by_b ON one (b)".to_string(),
    ];
    for table in ["one", "two"] {
        for key in 0..ROWS {
            let values: Vec<String> = VALUES.iter().map(|of| some(random, of)).collect();
            statements.push(format!("INSERT INTO {table} VALUES ({key}, {})", values.join(", ")));
        }
    }
    statements
}

/// By column behind the key.
const VALUES: [&[&str]; 13] = [
    &["NULL", "0", "1", "2", "-3", "32767", "-32768"],
    &["NULL", "0", "1", "2", "-3", "2147483647", "-2147483648"],
    &["NULL", "0", "1", "2", "-3", "9223372036854775807", "-9223372036854775808"],
    &["NULL", "0", "1.5", "2.25", "-3.10", "9999999999.99", "-9999999999.99"],
    &["NULL", "0", "1.5", "0.000001", "-3", "999999999999999999999999.999999"],
    &["NULL", "''", "'a'", "'b'", "'ab'", "'a%b'", "'ä'", "'longer than twelve bytes'"],
    &["NULL", "''", "'a'", "'b'", "'a b'", "'abcd'", "'ä'"],
    &["NULL", "true", "false"],
    &["NULL", "'2026-11-24'", "'1999-12-31'", "'2000-01-01'", "'2000-01-02'", "'294276-12-31'"],
    &["NULL", "'2026-11-24 10:00:00'", "'1999-12-31 23:59:59.999999'"],
    &["NULL", "0", "'-0'", "1.5", "'NaN'", "'Infinity'"],
    &["NULL", "0", "'-0'", "1.5", "'NaN'"],
    &["NULL", "0", "1.50", "1.5", "'NaN'"],
];

fn some(random: &mut StdRng, of: &[&str]) -> String {
    of.choose(random).expect("some").to_string()
}

/// An expression of a kind over the columns of tables with these names.
fn number(random: &mut StdRng, tables: &[&str], depth: usize) -> String {
    if depth == 0 || random.random_range(0..4) == 0 {
        let column = some(random, &["k", "a", "b", "c", "n", "m", "k", "b", "u", "f"]);
        return match random.random_range(0..4) {
            0 => some(random, &["0", "1", "2", "-3", "1.5", "0.25", "2147483647", "$1"]),
            _ => format!("{}.{column}", some(random, tables)),
        };
    }
    let (a, b) = (number(random, tables, depth - 1), number(random, tables, depth - 1));
    match random.random_range(0..11) {
        9 => format!("coalesce({a}, {b})"),
        10 => {
            let table = some(random, tables);
            some(
                random,
                &[
                    "extract(year FROM T.d)",
                    "extract(second FROM T.w)",
                    "length(T.s)",
                    "abs(T.n)",
                    "round(T.m, 2)",
                ],
            )
            .replace('T', &table)
        }
        0..=1 => format!("({a} + {b})"),
        2..=3 => format!("({a} - {b})"),
        4..=5 => format!("({a} * {b})"),
        6 => format!("({a} {} {b})", some(random, &["/", "%"])),
        7 => format!("(- {a})"),
        _ => format!("CASE WHEN {} THEN {a} ELSE {b} END", condition(random, tables, depth - 1)),
    }
}

fn text(random: &mut StdRng, tables: &[&str]) -> String {
    match random.random_range(0..6) {
        0..=1 => some(random, &["'a'", "'ab'", "''", "'ä'"]),
        2 => format!(
            "{}({}.{}, 1, 2)",
            some(random, &["substring", "substr"]),
            some(random, tables),
            some(random, &["s", "h"])
        ),
        _ => format!("{}.{}", some(random, tables), some(random, &["s", "s", "h"])),
    }
}

fn condition(random: &mut StdRng, tables: &[&str], depth: usize) -> String {
    let comparison =
        some(random, &["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
    let table = some(random, tables);
    match random.random_range(0..if depth == 0 { 8 } else { 12 }) {
        0..=2 => format!("{} {comparison} {}", number(random, tables, depth), number(random, tables, 0)),
        3 => format!("{} {comparison} {}", text(random, tables), text(random, tables)),
        4 => format!(
            "{table}.d {comparison} date '2000-01-01'{}",
            some(
                random,
                &["", "", " + interval '1 day'", " - interval '12 hours'", " - interval '1 second'"]
            )
        ),
        5 => format!(
            "{table}.s {} {}",
            some(random, &["LIKE", "NOT LIKE"]),
            some(random, &["'a%'", "'%b'", "'_'", "'%'", "'a\\%b'"])
        ),
        6 => format!(
            "{table}.{} {} (1, 2, -3)",
            some(random, &["a", "b", "c", "n"]),
            some(random, &["IN", "NOT IN"])
        ),
        7 => format!(
            "{table}.{} IS {}",
            some(random, &["a", "n", "s", "t", "f", "w"]),
            some(random, &["NULL", "NOT NULL"])
        ),
        8 => {
            format!("({} AND {})", condition(random, tables, depth - 1), condition(random, tables, depth - 1))
        }
        9 => {
            format!("({} OR {})", condition(random, tables, depth - 1), condition(random, tables, depth - 1))
        }
        10 => format!("(NOT {})", condition(random, tables, depth - 1)),
        _ => {
            format!("{table}.t IS {}", some(random, &["TRUE", "NOT TRUE", "FALSE", "UNKNOWN", "NOT UNKNOWN"]))
        }
    }
}

/// A number that looks at the rows. PostgreSQL takes a constant for the number of an output, or refuses it; here it is a key
/// like any other (docs/sql.md).
fn key(random: &mut StdRng, tables: &[&str]) -> String {
    loop {
        let key = number(random, tables, 1);
        if tables.iter().any(|table| key.contains(&format!("{table}."))) {
            return key;
        }
    }
}

fn aggregate(random: &mut StdRng, tables: &[&str]) -> String {
    let table = some(random, tables);
    let aggregate = match random.random_range(0..9) {
        0 => "count(*)".to_string(),
        1 => format!("count({})", number(random, tables, 1)),
        2 => format!("count(DISTINCT {table}.{})", some(random, &["a", "b", "n", "s", "h", "t", "d", "f"])),
        3..=4 => format!("sum({})", number(random, tables, 2)),
        5 => format!("avg({})", number(random, tables, 1)),
        6 => format!("min({table}.{})", some(random, &["a", "n", "s", "h", "d", "w", "f", "u"])),
        7 => format!("max({table}.{})", some(random, &["b", "m", "s", "h", "d", "w", "r", "u"])),
        _ => format!("sum({table}.{})", some(random, &["a", "b", "c", "n", "m", "f", "u"])),
    };
    match random.random_range(0..5) {
        0 => format!("{aggregate} FILTER (WHERE {})", condition(random, tables, 1)),
        _ => aggregate,
    }
}

/// A condition with a query in it, which may look at the rows around it.
fn condition_with_query(random: &mut StdRng, tables: &[&str]) -> String {
    let (table, key) = (some(random, tables), some(random, &["k", "a", "b", "n", "s", "h", "d"]));
    let inner = |random: &mut StdRng| match random.random_range(0..3) {
        0 => String::new(),
        1 => format!(" AND {}", condition(random, &["x"], 1)),
        _ => format!(" AND x.{} {} {table}.c", some(random, &["b", "k"]), some(random, &["<>", "<", "="])),
    };
    let other = some(random, &["one", "two"]);
    let value = match random.random_range(0..3) {
        0 => number(random, &["x"], 0),
        _ => format!("x.{key}"),
    };
    match random.random_range(0..6) {
        0..=1 => format!(
            "{} (SELECT {value} FROM {other} x WHERE x.{key} = {table}.{key}{})",
            some(random, &["EXISTS", "NOT EXISTS"]),
            inner(random)
        ),
        2..=3 => {
            let (operand, asked) = (number(random, &[&table], 0), condition(random, &["x"], 0));
            let form = some(random, &["IN", "NOT IN", "= ANY", "<> ALL"]);
            match random.random_range(0..4) {
                0 => format!("{table}.k {form} (SELECT x.k FROM {other} x WHERE {asked})"),
                1 => format!(
                    "{table}.{key} {form} (SELECT x.{key} FROM {other} x GROUP BY x.{key} HAVING count(*) > 1)"
                ),
                2 => format!(
                    "{table}.{key} {form} (SELECT x.{key} FROM {other} x WHERE true{})",
                    inner(random)
                ),
                _ => format!("{operand} {form} (SELECT {value} FROM {other} x WHERE {asked})"),
            }
        }
        4 => {
            let aggregate = some(random, &["max", "min", "sum", "avg", "count", "0.2 * avg", "1 + sum"]);
            format!(
                "{} {} (SELECT {aggregate}(x.{}) FROM {other} x WHERE x.{key} = {table}.{key}{})",
                number(random, &[&table], 0),
                some(random, &["<", ">", "=", "<>"]),
                some(random, &["a", "b", "n", "m"]),
                inner(random)
            )
        }
        _ => format!(
            "{} {} (SELECT {} FROM {other} x)",
            number(random, &[&table], 0),
            some(random, &["<", ">", "="]),
            aggregate(random, &["x"])
        ),
    }
}

/// Something in FROM of this name, which has the columns of a table.
fn relation(random: &mut StdRng, name: &str) -> String {
    let columns = "k, a, b, c, n, m, s, h, t, d, w, f, r, u";
    match random.random_range(0..8) {
        0 => format!("(SELECT * FROM {name} WHERE {}) AS {name}", condition(random, &[name], 1)),
        1 => format!("(SELECT DISTINCT {columns} FROM {name}) AS {name}"),
        2 => {
            let changed = columns.replace("b,", "b + 1 AS b,").replace("n,", "coalesce(n, 0.5) AS n,");
            format!("(SELECT {changed} FROM {name}) AS {name}")
        }
        3 => {
            let grouped =
                "k, max(a) AS a, min(b) AS b, sum(k) AS c, avg(b) AS n, sum(m) AS m, s, h, t, d, w, f, r, u";
            format!("(SELECT {grouped} FROM {name} GROUP BY k, s, h, t, d, w, f, r, u) AS {name}")
                .replace(", f, r, u) AS", ") AS")
                .replace("w, f, r, u FROM", "w, 1.5 AS f, 2.5 AS r, k AS u FROM")
        }
        _ => name.to_string(),
    }
}

/// A query with groups or aggregates.
fn grouping(random: &mut StdRng) -> Query {
    let joins = random.random_range(0..3) == 0;
    let tables: &[&str] = if joins { &["one", "two"] } else { &["one"] };
    let source = match joins {
        true if random.random_range(0..4) == 0 => {
            let three = [relation(random, "one"), relation(random, "two"), "one AS three".to_string()];
            let [a, b] = [(); 2].map(|()| some(random, &["k", "a", "b", "n", "s", "h", "d"]));
            format!("({} CROSS JOIN {} CROSS JOIN {})", three[0], three[1], three[2])
                + &format!(
                    " JOIN two AS four ON one.{a} = two.{a} AND three.{b} = two.{b} AND four.k = three.k"
                )
        }
        true => format!(
            "{left} {} {right} ON one.{key} = two.{key}{}",
            some(random, &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
            if random.random_range(0..3) == 0 {
                format!(" AND {}", condition(random, tables, 0))
            } else {
                String::new()
            },
            key = some(random, &["k", "a", "b", "n", "s", "h", "d"]),
            left = relation(random, "one"),
            right = relation(random, "two"),
        ),
        false => relation(random, "one"),
    };
    let table = some(random, tables);
    let keys: Vec<String> = (0..random.random_range(0..3))
        .map(|_| match random.random_range(0..4) {
            0 => key(random, tables),
            _ => format!("{table}.{}", some(random, &["a", "b", "n", "s", "h", "t", "d", "w", "f", "u"])),
        })
        .collect();
    let aggregates: Vec<String> = (0..random.random_range(1..4)).map(|_| aggregate(random, tables)).collect();
    let outputs = [keys.clone(), aggregates.clone()].concat().join(", ");
    let mut select = format!("SELECT {outputs} FROM {source}");
    match random.random_range(0..4) {
        0..=1 => select += &format!(" WHERE {}", condition(random, tables, 2)),
        2 => {
            select += &format!(" WHERE {}", condition_with_query(random, tables));
            if random.random() {
                select += &format!(" AND {}", condition(random, tables, 1));
            }
        }
        _ => {}
    }
    let (mut order, mut limit) = (Vec::new(), "");
    if !keys.is_empty() {
        select += &format!(" GROUP BY {}", keys.join(", "));
        if random.random_range(0..3) == 0 {
            select += &format!(" HAVING {} > 1", aggregates[0]);
        }
        if random.random_range(0..3) == 0 {
            order.push(format!("{} DESC", keys.len() + 1));
        }
        if random.random_range(0..4) == 0 {
            limit = " LIMIT 3";
        }
    }
    let counted = random.random_range(0..6) == 0;
    Query { select, outputs: keys.len() + aggregates.len(), order, limit: limit.to_string(), counted }
}

/// A query without groups.
fn listing(random: &mut StdRng) -> Query {
    let joins = random.random_range(0..3) == 0;
    let tables: &[&str] = if joins { &["one", "two"] } else { &["one"] };
    let source = match joins {
        true => format!(
            "{} {} {} ON one.{key} = two.{key}",
            relation(random, "one"),
            some(random, &["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]),
            relation(random, "two"),
            key = some(random, &["k", "a", "b", "n", "s", "h", "d"]),
        ),
        false => relation(random, "one"),
    };
    let column = |random: &mut StdRng| {
        let column = some(random, &["k", "a", "b", "c", "n", "m", "s", "h", "t", "d", "w", "f", "u"]);
        format!("{}.{column}", some(random, tables))
    };
    let output = |random: &mut StdRng| match random.random_range(0..3) {
        0 => number(random, tables, 1),
        _ => column(random),
    };
    let outputs: Vec<String> = (0..random.random_range(1..4)).map(|_| output(random)).collect();
    let distinct = if random.random_range(0..6) == 0 { "DISTINCT " } else { "" };
    let mut select = format!("SELECT {distinct}{} FROM {source}", outputs.join(", "));
    match random.random_range(0..5) {
        0..=2 => select += &format!(" WHERE {}", condition(random, tables, 2)),
        3 => select += &format!(" WHERE {}", condition_with_query(random, tables)),
        _ => {}
    }
    let mut order = Vec::new();
    if distinct.is_empty() && random.random_range(0..3) > 0 {
        let key = match random.random_range(0..4) {
            0 => "1".to_string(),
            1 => key(random, tables),
            _ => column(random),
        };
        order.push(format!("{key}{}", some(random, &["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])));
        if random.random() {
            order.push(format!("{} DESC", column(random)));
        }
    }
    let limit = some(random, &["", "", " LIMIT 3", " LIMIT 4 OFFSET 2", " OFFSET 1"]);
    Query { select, outputs: outputs.len(), order, limit, counted: false }
}

fn names(count: usize) -> String {
    (1..=count).map(|number| format!("s{number}")).collect::<Vec<_>>().join(", ")
}
