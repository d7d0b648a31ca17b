//! Groups and joins that do not fit into the memory of queries go to temporary files.

mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use analytics::DataFusion;
use columned::Columned;
use sql::{Fragment, Reader, RunFragments, prepare};
use state::{AfterImage, RowId};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use support::{Database, SmallMemory};
use types::{Key, MemoryPool, StatementResult, Value};

const ROWS: i64 = 60_000;

/// Notes how many rows each grouping gave, with this much memory.
#[derive(Debug)]
struct WithMemory(Arc<MemoryPool>, Mutex<Vec<Option<usize>>>);

impl RunFragments for WithMemory {
    fn rows(&self, fragment: &Fragment<'_>) -> Option<Vec<Vec<Value>>> {
        let fragment = Fragment { memory: Some(&self.0), ..*fragment };
        let groups = DataFusion::from_rows(0).rows(&fragment);
        self.1.lock().expect("nobody panics").push(groups.as_ref().map(Vec::len));
        groups
    }

    fn explain(&self, fragment: &Fragment<'_>) -> Result<String, String> {
        DataFusion::from_rows(0).explain(fragment)
    }
}

fn filled(rows: i64) -> Database {
    let mut database = Database::with(&[
        "CREATE TABLE t (k bigint PRIMARY KEY, g bigint NOT NULL, s text NOT NULL)",
        "CREATE TABLE u (k bigint PRIMARY KEY, g bigint NOT NULL, s text NOT NULL)",
    ]);
    let tables: Vec<_> = ["t", "u"].map(|name| database.state.catalog.tables[name].id).into();
    for (table, number) in tables.into_iter().flat_map(|table| (0..rows).map(move |number| (table, number))) {
        let text = Value::text(format!("group {} of many", number * 7_919 % rows));
        let row = [Value::BigInt(number), Value::BigInt(number * 7_919 % rows), text];
        let key = Key::encode([&row[0]]).expect("a number is a key");
        database.state.apply(&AfterImage { row: RowId { table, key }, value: Some(Arc::from(row)) });
    }
    database.step_limit = u64::MAX;
    database
}

/// The answer is that of the rows; gives how many groups came from columns with so many megabytes.
fn groups_with(database: &Database, megabytes: u64, sql: &str) -> Vec<Option<usize>> {
    rows_with(database, megabytes << 20, sql)
}

fn rows_with(database: &Database, bytes: u64, sql: &str) -> Vec<Option<usize>> {
    let prepared = prepare(&database.library, sql, &[]).expect("a query");
    let by_rows = prepared.query_as(&database.reader(), &database.state, &[]).expect("an answer");
    let (by_columns, made) = by_columns(database, bytes, sql);
    assert!(by_columns == by_rows, "{sql}: other rows with {bytes} bytes");
    made
}

/// The answer with so much memory, and how many rows came from columns for each fragment.
fn by_columns(database: &Database, bytes: u64, sql: &str) -> (Vec<StatementResult>, Vec<Option<usize>>) {
    let groups = Arc::new(WithMemory(MemoryPool::new(bytes), Mutex::default()));
    let prepared = prepare(&database.library, sql, &[]).expect("a query");
    let reader = Reader { fragments: Some(groups.clone()), ..database.reader() };
    let answer = prepared.query_as(&reader, &Columned(&database.state), &[]).expect("an answer");
    assert_eq!(groups.0.taken(), 0, "all of it is given back");
    let made = groups.1.lock().expect("nobody panics").clone();
    (answer, made)
}

#[test]
fn groups_that_do_not_fit_go_to_temporary_files() {
    let database = filled(ROWS);
    let question = "SELECT s, count(*), sum(g), min(k), avg(g) FROM t GROUP BY s ORDER BY s";
    assert_eq!(groups_with(&database, 1_024, question), [Some(ROWS as usize)]);
    // Keys and sums alone take more than twice as much.
    assert_eq!(groups_with(&database, 2, question), [Some(ROWS as usize)]);
}

#[test]
fn a_join_that_does_not_fit_sorts_both_sides_in_temporary_files() {
    // What joins in memory give is what rows give: see the other tests. Row by row, some of these take for ever.
    let database = filled(200_000);
    for question in [
        "SELECT count(*), sum(t.g + u.k) FROM t JOIN u ON u.g = t.g",
        "SELECT count(*), sum(t.g), count(u.k) FROM t LEFT JOIN u ON u.g = t.k AND u.k > t.k",
        "SELECT count(*), sum(t.k), sum(u.k) FROM t FULL JOIN u ON u.k = t.g AND u.g <> t.k",
        "SELECT count(*), sum(t.k) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.k < t.g)",
        "SELECT count(*), sum(t.k) FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.g = t.g AND u.g < t.k)",
    ] {
        let [enough, little] = [1_024, 4].map(|megabytes| by_columns(&database, megabytes << 20, question));
        assert_eq!((&enough.1, &little.1), (&vec![Some(1)], &vec![Some(1)]), "{question}");
        assert_eq!(enough.0, little.0, "{question}");
    }
}

#[test]
fn what_fits_in_no_way_stays_on_rows() {
    let database = filled(ROWS);
    let question = "SELECT count(*), sum(t.g + u.k) FROM t JOIN u ON u.s = t.s";
    assert_eq!(rows_with(&database, 64 << 10, question), [None]);
}

#[test]
fn groups_from_columns_that_no_memory_holds_are_made_of_rows_in_files() {
    let database = filled(20_000);
    let question = "SELECT s, count(*), sum(g) FROM t GROUP BY s";
    let prepared = prepare(&database.library, question, &[]).expect("a query");
    let expected = prepared.query_as(&database.reader(), &database.state, &[]).expect("an answer");
    // The groups themselves may have more: what they come to is handed out row by row.
    let groups = Arc::new(WithMemory(MemoryPool::new(1 << 30), Mutex::default()));
    let reader = Reader {
        fragments: Some(groups.clone()),
        memory: Some(MemoryPool::new(1 << 20)),
        scratch: Some(Arc::new(SmallMemory::of(100_000))),
        ..database.reader()
    };
    let ask = |reader: &Reader| {
        let mut rows = Vec::new();
        let mut take = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        prepared.query_each(reader, &Columned(&database.state), &[], &mut take).map(|_| rows)
    };
    assert_eq!(ask(&reader).expect("an answer"), expected[0].rows);
    assert_eq!(*groups.1.lock().expect("nobody panics"), [Some(20_000)]);
    let error = ask(&Reader { scratch: None, ..reader }).expect_err("no room");
    assert_eq!(error.state.to_string(), "53200");
}
