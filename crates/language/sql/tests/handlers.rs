//! EXCEPTION blocks: what their effects register suffices. Random procedures run on a state; then the commands that came
//! out are applied to another state, which is the same in everything that was read. Where all guards hold, that must
//! give what the procedure gives there.

mod support;

use proptest::prelude::*;
use state::{AfterImage, PlainState, RowChange, RowId, Snapshot};
use support::Database;
use types::{ColumnSet, Key, Payload, Row, SqlError, Value};

const KEYS: i32 = 4;

const TABLE: &str = "CREATE TABLE t (k integer PRIMARY KEY, v integer NOT NULL CHECK (v >= 0), w integer)";

/// Statements of a procedure with the variables `x` and `y`.
fn statements(depth: u32) -> BoxedStrategy<String> {
    let key = || 1..=KEYS;
    let simple = prop_oneof![
        (key(), -5..15).prop_map(|(k, n)| format!("UPDATE t SET v = v - {n} WHERE k = {k};")),
        (key(), key()).prop_map(|(k, n)| format!("UPDATE t SET w = v WHERE k = {k} AND v > {n};")),
        (key(), key()).prop_map(|(k, n)| format!("UPDATE t SET w = 12 / (v - {n}) WHERE k = {k};")),
        (key(), -2..20).prop_map(|(k, n)| format!("INSERT INTO t VALUES ({k}, {n}, 0);")),
        key().prop_map(|k| format!("DELETE FROM t WHERE k = {k};")),
        key().prop_map(|k| format!("SELECT v INTO x FROM t WHERE k = {k};")),
        key().prop_map(|k| format!("SELECT w INTO STRICT x FROM t WHERE k = {k};")),
        (0..15).prop_map(|n| format!("IF x > {n} THEN RAISE EXCEPTION 'more than {n}'; END IF;")),
        Just("y := y + 1;".to_string()),
        Just("y := y + 12 / x;".to_string()),
        Just("IF FOUND THEN y := y + 100; END IF;".to_string()),
        Just("CALL inner_one(x);".to_string()),
        key().prop_map(|k| format!("y := y + withdrawn({k}, 3);")),
    ];
    if depth == 0 {
        return simple.boxed();
    }
    let condition = prop_oneof![
        Just("OTHERS"),
        Just("check_violation"),
        Just("unique_violation"),
        Just("division_by_zero OR raise_exception"),
        Just("SQLSTATE 'P0002'"),
    ];
    let list = || prop::collection::vec(statements(depth - 1), 1..5).prop_map(|all| all.join("\n"));
    let block = (list(), condition, list()).prop_map(|(body, condition, handler)| {
        format!("BEGIN\n{body}\nEXCEPTION WHEN {condition} THEN\n{handler}\ny := y + length(SQLERRM);\nEND;")
    });
    prop_oneof![2 => simple, 3 => block].boxed()
}

/// A change of the second state: row, and its columns `v` and `w`; `None`: the row is not there.
type Change = (i32, Option<(i32, Option<i32>)>);

fn rows() -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((1..=KEYS, prop::option::of((0..20, prop::option::of(0..20)))), 0..6)
}

fn key(k: i32) -> Key {
    Key::encode([&Value::Integer(k)]).expect("short")
}

fn row((v, w): (i32, Option<i32>), k: i32) -> Row {
    [Value::Integer(k), Value::Integer(v), w.map_or(Value::Null, Value::Integer)].into_iter().collect()
}

/// The state with a change, as far as nothing of it was read.
fn changed(state: &mut PlainState, table: types::TableId, reads: &[state::Read], (k, to): Change) {
    let id = RowId { table, key: key(k) };
    let read = reads
        .iter()
        .filter(|read| read.row == id)
        .fold(None, |known, read| Some(known.unwrap_or(ColumnSet::EMPTY) | read.columns));
    let before = state.get(table, &id.key);
    let value = match (read, before, to) {
        (None, _, to) => to.map(|to| row(to, k)),
        // Its existence was read; columns may still change that were not.
        (Some(read), Some(before), Some((v, w))) => {
            let mut after: Vec<Value> = before.to_vec();
            let wanted = row((v, w), k);
            for ordinal in 1..3 {
                if !read.intersects(ColumnSet::column(ordinal)) {
                    after[ordinal] = wanted[ordinal].clone();
                }
            }
            Some(after.into_iter().collect())
        }
        _ => return,
    };
    state.apply(&AfterImage { row: id, value });
}

/// The state after the commands, all or none of them; `None` where a guard does not hold.
fn applied(mut state: PlainState, effects: &state::Effects) -> Option<Result<PlainState, SqlError>> {
    for command in &effects.commands {
        let current = state.get(command.row.table, &command.row.key);
        let change = match command.function.apply(current.as_ref()) {
            Ok(change) => change,
            Err(error) => return Some(Err(error)),
        };
        if command.guard.is_some_and(|guard| guard != (change != RowChange::Unmatched)) {
            return None;
        }
        let value = match change {
            RowChange::Unmatched => continue,
            RowChange::Put(row) => Some(row),
            RowChange::Delete => None,
        };
        state.apply(&AfterImage { row: command.row.clone(), value });
    }
    Some(Ok(state))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_was_read_decides_what_handlers_do(
        body in prop::collection::vec(statements(2), 1..6),
        before in rows(),
        after in rows(),
    ) {
        let procedure = format!(
            "CREATE PROCEDURE p(INOUT y integer) LANGUAGE plpgsql AS $$\nDECLARE x integer := 1;\nBEGIN\n{}\nEND $$",
            body.join("\n")
        );
        let mut database = Database::with(&[
            TABLE,
            "CREATE PROCEDURE inner_one(x integer) LANGUAGE plpgsql AS $$
             DECLARE v bigint;
             BEGIN
                 SELECT t.v INTO v FROM t WHERE k = 1;
                 IF v < x THEN RAISE EXCEPTION 'too little'; END IF;
                 UPDATE t SET v = t.v - x WHERE k = 1;
             END $$",
            "CREATE FUNCTION withdrawn(key integer, n integer) RETURNS integer LANGUAGE plpgsql AS $$
             BEGIN
                 UPDATE t SET v = v - n WHERE k = key;
                 RETURN CASE WHEN FOUND THEN n ELSE 0 END;
             END $$",
        ]);
        // PostgreSQL, too, finds the variable and the column.
        if database.run(&procedure).is_err() {
            return Ok(());
        }
        let table = database.state.catalog().tables["t"].id;
        for change in before {
            changed(&mut database.state, table, &[], change);
        }
        let call = || Payload::Call { procedure: "p".to_string(), arguments: vec![Value::Integer(0)] };
        let effects = database.effects(call());
        prop_assert!(effects.scans.is_empty());
        for change in after {
            changed(&mut database.state, table, &effects.reads, change);
        }
        let there = database.effects(call());
        let Some(replayed) = applied(database.state.clone(), &effects) else { return Ok(()) };
        match (&effects.result, replayed) {
            // An error is decided by what was read.
            (Err(error), _) => prop_assert_eq!(Some(error), there.result.as_ref().err(), "{}", procedure),
            (Ok(_), Err(error)) => prop_assert_eq!(Some(&error), there.result.as_ref().err(), "{}", procedure),
            (Ok(results), Ok(state)) => {
                prop_assert_eq!(Ok(results), there.result.as_ref(), "{}", procedure);
                let expected = applied(database.state.clone(), &there).and_then(Result::ok).expect("it has run there");
                prop_assert!(state.tables == expected.tables, "{}", procedure);
            }
        }
    }
}

#[test]
fn a_failure_that_is_handled_and_a_success_that_could_fail_are_read() {
    let mut database = Database::with(&[
        TABLE,
        "INSERT INTO t VALUES (1, 10, 0)",
        "CREATE PROCEDURE p(k1 integer) LANGUAGE plpgsql AS $$
         BEGIN
             UPDATE t SET w = 1 WHERE k = 1;
             BEGIN
                 UPDATE t SET v = v - 1 WHERE k = k1;
             EXCEPTION WHEN check_violation THEN NULL;
             END;
         END $$",
    ]);
    let call = Payload::Call { procedure: "p".to_string(), arguments: vec![Value::Integer(1)] };
    let effects = database.effects(call);
    assert_eq!(effects.commands.len(), 2);
    let columns = effects.reads.iter().fold(ColumnSet::EMPTY, |set, read| set | read.columns);
    assert!(columns.intersects(ColumnSet::column(1)), "v decides whether the CHECK holds");
    assert!(!columns.intersects(ColumnSet::column(2)), "w is changed outside of the block");
    database.run("CALL p(1)").expect("it runs");
}

#[test]
fn a_block_without_an_error_that_can_come_reads_nothing() {
    let database = Database::with(&[
        "CREATE TABLE note (k integer PRIMARY KEY, s text)",
        "INSERT INTO note VALUES (1, 'x')",
        "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$
         BEGIN
             UPDATE note SET s = 'y' WHERE k = 1;
         EXCEPTION WHEN OTHERS THEN NULL;
         END $$",
    ]);
    let call = Payload::Call { procedure: "p".to_string(), arguments: Vec::new() };
    assert!(database.effects(call).reads.is_empty());
}

#[test]
fn messages_reach_the_client_in_order_and_within_limits() {
    let mut database = Database::with(&[
        "CREATE FUNCTION told(n integer) RETURNS integer LANGUAGE plpgsql AS $$
         BEGIN
             RAISE NOTICE 'n is %', n;
             RAISE DEBUG 'nobody hears';
             RAISE WARNING 'careful' USING DETAIL = 'd', HINT = 'h', ERRCODE = '01004';
             BEGIN
                 RAISE INFO 'inside';
                 RAISE EXCEPTION 'undone';
             EXCEPTION WHEN OTHERS THEN NULL;
             END;
             RETURN n;
         END $$",
        "CREATE PROCEDURE chatter(n integer) LANGUAGE plpgsql AS $$
         BEGIN FOR i IN 1..n LOOP RAISE NOTICE 'line %', i; END LOOP; END $$",
    ]);
    let shown = |results: &[types::StatementResult]| -> Vec<String> {
        let notices = results.iter().flat_map(|result| &result.notices);
        notices.map(|n| format!("{}: {} {}", n.severity.name(), n.report.state, n.report.message)).collect()
    };
    let results = database.gateway("SELECT told(5)").expect("it reads");
    assert_eq!(shown(&results), ["NOTICE: 00000 n is 5", "WARNING: 01004 careful", "INFO: 00000 inside"]);
    assert_eq!(results[0].notices[1].report.detail.as_deref(), Some("d"));
    assert_eq!(results[0].notices[1].report.hint.as_deref(), Some("h"));
    let results = database.run("DO $$ BEGIN PERFORM told(7); END $$").expect("it runs");
    assert_eq!(results[0].tag, "DO");
    assert_eq!(shown(&results).len(), 3);
    let results = database.run("CALL chatter(1000)").expect("it runs");
    let lines = shown(&results);
    assert_eq!(lines.len(), 101);
    assert!(lines[100].contains("more messages are left out"), "{}", lines[100]);
    let results = database.run("CALL chatter(2); CALL chatter(1)").expect("it runs");
    assert_eq!(results.iter().map(|result| result.notices.len()).collect::<Vec<_>>(), [2, 1]);
}
