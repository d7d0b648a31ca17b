//! What the analysis knows before a transaction runs: keys and intervals, columns, and what it refuses.
//!
//! That every execution is inside of its footprint is checked wherever `support` and the programs of `plpgsql/` run
//! anything.

mod support;

use proptest::prelude::*;
use state::{Footprint, KeyRange, Region};
use std::ops::Bound;
use support::Database;
use types::{ColumnSet, Key, Payload, SqlState, TableId, Value};

const TABLES: [&str; 4] = [
    "CREATE TABLE a (id bigint PRIMARY KEY, x bigint, y bigint, z text)",
    "CREATE TABLE pairs (first integer, second integer, v bigint CHECK (v >= 0), w bigint, PRIMARY KEY (first, second))",
    "CREATE TABLE log (line text)",
    "INSERT INTO a VALUES (1, 10, 100, 'one'), (2, 20, 200, 'two'), (3, 30, 300, 'three')",
];

fn database(procedures: &[&str]) -> Database {
    Database::with(&[&TABLES[..], procedures].concat())
}

fn id(database: &Database, table: &str) -> TableId {
    database.library.catalog().tables.values().find(|one| one.name == table).expect("a table").id
}

fn script(database: &Database, sql: &str) -> Footprint {
    let payload = Payload::Script { sql: sql.to_string(), parameters: vec![] };
    database.footprint(payload).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

fn call(procedure: &str, arguments: &[i64]) -> Payload {
    let arguments = arguments.iter().map(|argument| Value::BigInt(*argument)).collect();
    Payload::Call { procedure: procedure.to_string(), arguments }
}

fn big(id: i64) -> Key {
    Key::encode([&Value::BigInt(id)]).expect("a key")
}

fn pair(values: &[i32]) -> Key {
    Key::encode(&values.iter().map(|value| Value::Integer(*value)).collect::<Vec<_>>()).expect("a key")
}

fn column(ordinal: usize) -> ColumnSet {
    ColumnSet::column(ordinal) | ColumnSet::EXISTS
}

/// The only region.
fn only(regions: &[Region]) -> &Region {
    assert_eq!(regions.len(), 1, "{regions:?}");
    &regions[0]
}

/// The keys of single rows, ascending; fails where there is an interval.
fn keys(regions: &[Region]) -> Vec<Key> {
    let mut keys: Vec<Key> =
        regions.iter().map(|region| region.key().expect("a single row").clone()).collect();
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn a_select_by_key_reads_the_columns_of_output_and_where_of_one_row() {
    let database = database(&[]);
    let footprint = script(&database, "SELECT x FROM a WHERE id = 2 AND y > 5");
    let region = only(&footprint.reads);
    assert_eq!((region.table, region.key()), (id(&database, "a"), Some(&big(2))));
    assert!(
        region.columns.contains(column(1) | column(2)) && !region.columns.intersects(ColumnSet::column(3))
    );
    assert!(footprint.writes.is_empty());
}

#[test]
fn an_update_writes_what_it_assigns_and_reads_what_it_uses() {
    let database = database(&[]);
    let footprint = script(&database, "UPDATE a SET x = y + 1 WHERE id = 1");
    assert_eq!(only(&footprint.writes).columns, ColumnSet::column(1));
    assert_eq!(only(&footprint.reads).columns, column(2));
    let footprint = script(&database, "UPDATE pairs SET v = v + 1 WHERE first = 1 AND second = 2");
    assert_eq!(only(&footprint.writes).key(), Some(&pair(&[1, 2])));
    assert_eq!(only(&footprint.reads).columns, ColumnSet::ALL, "the error of a CHECK shows the row");
    let footprint = script(&database, "UPDATE a SET z = 'longer' WHERE id = 1");
    assert_eq!(
        only(&footprint.reads).columns,
        ColumnSet::ALL,
        "whether the row is too long depends on all of it"
    );
}

#[test]
fn ranges_give_intervals_and_prefixes_of_the_key() {
    let database = database(&[]);
    let range = |sql: &str| only(&script(&database, sql).reads).range.clone();
    let between = range("SELECT x FROM a WHERE id >= 2 AND id < 5");
    assert!(!between.contains(&big(1)) && between.contains(&big(2)) && between.contains(&big(4)));
    assert!(!between.contains(&big(5)));
    assert_eq!(range("SELECT v FROM pairs WHERE first = 3"), KeyRange::prefix(pair(&[3])));
    assert_eq!(range("SELECT v FROM pairs WHERE second = 3"), KeyRange::ALL);
    assert_eq!(range("SELECT count(*) FROM a"), KeyRange::ALL);
    let footprint = script(&database, "DELETE FROM a WHERE id > 7");
    assert_eq!(only(&footprint.writes).columns, ColumnSet::ALL);
    assert!(matches!(&only(&footprint.writes).range.start, Bound::Included(key) if *key > big(7)));
    assert_eq!(script(&database, "SELECT x FROM a WHERE id = NULL"), Footprint::default());
}

#[test]
fn inserts_write_every_column_of_their_keys() {
    let database = database(&[]);
    let footprint = script(&database, "INSERT INTO a (id, x) VALUES (7, 1), (8, 2)");
    assert_eq!(keys(&footprint.writes), [big(7), big(8)]);
    assert!(footprint.writes.iter().all(|region| region.columns == ColumnSet::ALL));
    let rows = vec![vec![Value::BigInt(9), Value::BigInt(0)]];
    let columns = vec!["id".to_string(), "x".to_string()];
    let payload = Payload::Insert { table: "a".to_string(), columns, rows };
    assert_eq!(keys(&database.footprint(payload).expect("analysed").writes), [big(9)]);
    let hidden = script(&database, "INSERT INTO log VALUES ('a'), ('b')");
    let region = only(&hidden.writes);
    assert!(region.key().is_none() && region.range != KeyRange::ALL, "rows of this transaction alone");
    let copied = script(&database, "INSERT INTO pairs SELECT 4, id::integer, 0, 0 FROM a");
    assert_eq!(only(&copied.writes).range, KeyRange::ALL, "what a query gives is not followed");
}

#[test]
fn variables_are_followed_through_straight_lines_and_both_branches() {
    let database = database(&["CREATE PROCEDURE p(n bigint) LANGUAGE plpgsql AS $$
        DECLARE
            next bigint := n + 1;
            other bigint;
            seen bigint;
        BEGIN
            other := next * 10;
            SELECT x INTO seen FROM a WHERE id = n;
            IF seen > 5 THEN
                UPDATE a SET x = seen WHERE id = next;
            ELSE
                UPDATE a SET x = 0 WHERE id = other;
            END IF;
            UPDATE a SET y = 1 WHERE id = next + other;
        END $$"]);
    let footprint = database.footprint(call("p", &[2])).expect("analysed");
    assert_eq!(keys(&footprint.reads), [big(2), big(3), big(30), big(33)]);
    assert_eq!(keys(&footprint.writes), [big(3), big(30), big(33)]);
}

#[test]
fn statements_that_are_one_command_touch_its_row() {
    let mut database = database(&["CREATE PROCEDURE take(k bigint, amount bigint) LANGUAGE plpgsql AS $$
        DECLARE
            held bigint;
            next bigint;
        BEGIN
            SELECT x INTO held FROM a WHERE id = k AND y > 0;
            next := k + 1;
            IF held < amount THEN RAISE EXCEPTION 'only % left', held; END IF;
            UPDATE a SET x = x - amount WHERE id = k;
            DELETE FROM a WHERE id = next;
        END $$"]);
    let explained = database.rows("EXPLAIN CALL take(1, 2)");
    assert!(explained.iter().flatten().any(|line| line.contains("Fused command")), "{explained:?}");
    let footprint = database.footprint(call("take", &[1, 3])).expect("analysed");
    assert_eq!(keys(&footprint.reads), [big(1), big(2)]);
    let of =
        |regions: &[Region]| regions.iter().find(|region| region.key() == Some(&big(1))).expect("it").columns;
    assert_eq!(of(&footprint.reads), column(1) | column(2));
    assert_eq!(of(&footprint.writes), ColumnSet::column(1));
    assert_eq!(keys(&footprint.writes), [big(1), big(2)], "what it computes beside the row stays known");
}

#[test]
fn what_data_or_branches_or_loops_decide_gives_the_widest_interval() {
    let database = database(&[
        "CREATE PROCEDURE data(n bigint) LANGUAGE plpgsql AS $$
        DECLARE seen bigint;
        BEGIN
            SELECT x INTO seen FROM a WHERE id = n;
            UPDATE a SET y = 1 WHERE id = seen;
        END $$",
        "CREATE PROCEDURE branch(n bigint) LANGUAGE plpgsql AS $$
        DECLARE k bigint := 1;
        BEGIN
            IF n > 5 THEN k := 2; END IF;
            UPDATE a SET y = 1 WHERE id = k;
        END $$",
        "CREATE PROCEDURE rounds(n bigint) LANGUAGE plpgsql AS $$
        DECLARE k bigint := 0;
        BEGIN
            WHILE k < n LOOP
                k := k + 1;
                UPDATE pairs SET w = 1 WHERE first = 6 AND second = k;
            END LOOP;
        END $$",
        "CREATE PROCEDURE numbers(n bigint) LANGUAGE plpgsql AS $$
        BEGIN
            FOR i IN 1..3 LOOP UPDATE pairs SET w = 1 WHERE first = n AND second = i; END LOOP;
        END $$",
    ]);
    let widest = |procedure: &str| {
        let footprint = database.footprint(call(procedure, &[4])).expect("analysed");
        footprint.writes.iter().any(|region| region.range == KeyRange::ALL)
    };
    assert!(widest("data") && widest("branch"));
    let prefix = |procedure: &str, first: i32| {
        let footprint = database.footprint(call(procedure, &[4])).expect("analysed");
        let range = KeyRange::prefix(pair(&[first]));
        footprint.writes.iter().any(|region| region.range == range)
            && footprint.writes.iter().all(|region| region.range != KeyRange::ALL)
    };
    assert!(prefix("rounds", 6) && prefix("numbers", 4), "the columns before the unknown one are known");
}

#[test]
fn calls_are_followed_with_their_arguments() {
    let database = database(&[
        "CREATE PROCEDURE put(k bigint, OUT old bigint) LANGUAGE plpgsql AS $$
        BEGIN
            SELECT x INTO old FROM a WHERE id = k;
            UPDATE a SET x = 0 WHERE id = k;
        END $$",
        "CREATE PROCEDURE both(k bigint) LANGUAGE plpgsql AS $$
        DECLARE old bigint;
        BEGIN
            CALL put(k, old);
            CALL put(k + 1, old);
            UPDATE a SET y = old WHERE id = k;
        END $$",
    ]);
    let footprint = database.footprint(call("both", &[5])).expect("analysed");
    assert_eq!(keys(&footprint.writes), [big(5), big(6)], "an IN argument stays known behind the call");
}

#[test]
fn recursion_schema_changes_and_endless_contracts_are_refused_by_name() {
    let mut doubled = vec!["CREATE PROCEDURE p0() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$".to_string()];
    for level in 1..20 {
        let below = level - 1;
        doubled.push(format!(
            "CREATE PROCEDURE p{level}() LANGUAGE plpgsql AS $$ BEGIN CALL p{below}(); CALL p{below}(); END $$"
        ));
    }
    let mut procedures: Vec<&str> = doubled.iter().map(String::as_str).collect();
    procedures.push(
        "CREATE PROCEDURE down(n bigint) LANGUAGE plpgsql AS $$
        BEGIN IF n > 0 THEN CALL down(n - 1); END IF; END $$",
    );
    let database = database(&procedures);
    let refusal = |payload| database.footprint(payload).expect_err("refused");
    let ddl =
        Payload::Script { sql: "CREATE TABLE b (id bigint PRIMARY KEY)".to_string(), parameters: vec![] };
    for (payload, message) in [
        (call("down", &[3]), "the recursive call of \"down\" under the protocol \"graph\" is not supported"),
        (
            call("p19", &[]),
            "the analysis of procedure \"p19\" beyond 10000 instructions under the protocol \"graph\" is not supported",
        ),
        (
            ddl,
            "a schema change together with other transactions under the protocol \"graph\" is not supported",
        ),
    ] {
        let error = refusal(payload);
        assert_eq!((error.state, error.message.as_str()), (SqlState::FEATURE_NOT_SUPPORTED, message));
        assert!(error.hint.is_some());
    }
}

#[test]
fn what_ends_with_an_error_at_once_touches_nothing() {
    let database = database(&[]);
    for sql in ["SELECT nothing FROM a", "CALL nothing()", "UPDATE a SET x = 1 WHERE id = 1 / 0"] {
        assert_eq!(script(&database, sql), Footprint::default(), "{sql}");
    }
}

#[test]
fn a_value_that_is_too_long_tells_of_the_columns_it_is_made_of_and_a_row_of_all() {
    let mut database = database(&[
        "CREATE TABLE short (id bigint PRIMARY KEY, name varchar(5), n bigint)",
        "INSERT INTO short VALUES (1, 'name', 1)",
        "CREATE TABLE long (id bigint PRIMARY KEY, a text, b text, c text)",
        "INSERT INTO long VALUES (1, 'a', 'b', 'c')",
    ]);
    let too_long = "length(repeat('a', 2000000))";
    for sql in [
        format!("UPDATE short SET n = {too_long} WHERE id = 1"),
        format!("UPDATE short SET n = 1 WHERE id = 1 AND n < {too_long} + n"),
        "UPDATE short SET name = name || repeat(name, 2000000) WHERE id = 1".to_string(),
        "DELETE FROM short WHERE id = 1 AND n < length(repeat(name, 2000000))".to_string(),
        "UPDATE long SET a = repeat(a, 800000), b = repeat(b, 800000), c = repeat(c, 800000) WHERE id = 1"
            .to_string(),
    ] {
        // The support asserts that what it touched is inside of its footprint.
        let error = database.run(&sql).expect_err(&sql);
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED, "{sql}: {error:?}");
    }
}

/// Statements of a random procedure over variables `n`, `k` and `s`.
fn statement() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["n", "k", "s", "n + 1", "k * 2", "3", "coalesce(s, n)"]);
    let key = key.prop_map(str::to_string);
    let leaf = (0..12u8, key.clone(), key).prop_map(|(kind, key, other)| match kind {
        0 => format!("k := {key};"),
        1 => format!("SELECT x INTO s FROM a WHERE id = {key};"),
        2 => format!("UPDATE a SET x = x + 1 WHERE id = {key};"),
        3 => format!("UPDATE a SET y = {other} WHERE id >= {key} AND id < {other};"),
        4 => format!("DELETE FROM a WHERE id = {key};"),
        5 => format!("INSERT INTO a VALUES ({key}, {other}, 0, 'new');"),
        6 => format!("UPDATE pairs SET v = v - 1 WHERE first = {key} AND second = {other};"),
        7 => format!("SELECT sum(v) INTO s FROM pairs WHERE first = {key};"),
        8 => format!("INSERT INTO pairs VALUES ({key}, {other}, 1, 1);"),
        9 => format!("DELETE FROM a WHERE id > {key} AND y > {other};"),
        // One command, unless `t` is used elsewhere.
        10 => format!(
            "SELECT x INTO t FROM a WHERE id = {key}; k := {other}; \
             IF t < 15 THEN RAISE 'only %', t; END IF; UPDATE a SET x = t - 15 WHERE id = {key};"
        ),
        _ => "IF NOT FOUND THEN INSERT INTO log VALUES ('none'); END IF;".to_string(),
    });
    leaf.prop_recursive(3, 16, 4, |inner| {
        let block = prop::collection::vec(inner, 1..4).prop_map(|statements| statements.join("\n"));
        (0..4u8, block.clone(), block).prop_map(|(kind, one, two)| match kind {
            0 => format!("IF s > n THEN {one} ELSE {two} END IF;"),
            1 => format!("FOR i IN 1..3 LOOP {one} k := i; END LOOP;"),
            2 => format!("FOR s IN SELECT y FROM a WHERE id < n LOOP {one} END LOOP;"),
            _ => format!("IF k > 2 THEN {one} END IF;"),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_execution_of_a_random_procedure_is_inside_its_footprint(
        statements in prop::collection::vec(statement(), 1..7),
        calls in prop::collection::vec((0..6i64, 0..6i64), 1..5),
    ) {
        let body = statements.join("\n");
        let procedure = format!(
            "CREATE PROCEDURE p(n bigint, k bigint) LANGUAGE plpgsql AS $$ DECLARE s bigint := 2; t bigint; BEGIN {body} END $$"
        );
        let mut database = database(&[
            "INSERT INTO pairs SELECT id::integer, 1, 2, 3 FROM a",
            &procedure,
        ]);
        for (n, k) in calls {
            // Fails where an execution leaves its footprint; errors of the program are as good as results.
            let _ = database.call("p", vec![Value::BigInt(n), Value::BigInt(k)]);
        }
    }
}

#[test]
fn the_query_of_a_cursor_is_read_where_it_opens() {
    let database = database(&["CREATE PROCEDURE p(n bigint) LANGUAGE plpgsql AS $$
        DECLARE
            c CURSOR (k bigint) FOR SELECT x FROM a WHERE id = k;
            seen bigint;
        BEGIN
            OPEN c(n + 1);
            FETCH c INTO seen;
            CLOSE c;
            FOR r IN c(n + 2) LOOP
                seen := r.x;
            END LOOP;
        END $$"]);
    let footprint = database.footprint(call("p", &[1])).expect("analysed");
    assert_eq!(keys(&footprint.reads), [big(2), big(3)]);
    assert!(footprint.reads.iter().all(|region| region.columns == column(0) | column(1)));
    assert!(footprint.writes.is_empty());
}

#[test]
fn the_row_that_a_cursor_stands_on_may_be_any_row() {
    let database = database(&["CREATE PROCEDURE p(n bigint) LANGUAGE plpgsql AS $$
        DECLARE
            c CURSOR FOR SELECT x FROM a WHERE id = n;
            seen bigint;
        BEGIN
            OPEN c;
            FETCH c INTO seen;
            UPDATE a SET y = 1 WHERE CURRENT OF c;
        END $$"]);
    let footprint = database.footprint(call("p", &[1])).expect("analysed");
    let written = only(&footprint.writes);
    assert_eq!((&written.range, written.columns), (&KeyRange::ALL, ColumnSet::column(2)));
    assert_eq!(keys(&footprint.reads[..1]), [big(1)]);
}

#[test]
fn a_polymorphic_function_is_followed_for_the_types_that_it_is_called_with() {
    let database = database(&["CREATE FUNCTION held(k anyelement) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT x FROM a WHERE id = k); END $$"]);
    let footprint = script(&database, "SELECT held(2), held(3::smallint); UPDATE a SET y = 1 WHERE id = 1");
    assert_eq!(keys(&footprint.reads), [big(1), big(2), big(3)]);
    assert_eq!(keys(&footprint.writes), [big(1)]);
}
