//! A question that nobody waits for any more ends, also where few rows are read and the pairs of them are without end.

mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use columned::{Columned, Counted};
use sql::{Reader, prepare};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use support::Database;

/// Each has as many partners.
const ROWS: u64 = 30_000;

/// From the interruption to the end, at most: a node that does other things too may be slow, but not so slow.
const END_MAX: Duration = Duration::from_secs(20);

/// Asks, and interrupts; gives the state of the error.
fn interrupted(database: &Database, question: &str) -> String {
    let prepared = prepare(&database.library, question, &[]).expect("a question");
    let groups = Arc::new(Counted::default());
    let reader = Reader { fragments: Some(groups.clone()), ..database.reader() };
    let interrupt = reader.interrupt.clone();
    let timer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        interrupt.store(true, Relaxed);
    });
    let start = Instant::now();
    let answer = prepared.query_as(&reader, &Columned(&database.state), &[]);
    assert!(start.elapsed() < END_MAX, "{:?}: {question}", start.elapsed());
    timer.join().expect("it only waits");
    assert_eq!(groups.made(), 0, "it has not ended by itself");
    answer.expect_err("nobody waits").state.to_string()
}

#[test]
fn a_join_of_all_rows_with_all_rows_ends_when_nobody_waits() {
    let database = Database::with(&[
        "CREATE TABLE t (k int PRIMARY KEY, g int, n bigint)",
        &format!("INSERT INTO t SELECT n, 1, n FROM generate_series(1, {ROWS}) AS n"),
    ]);
    for question in [
        "SELECT count(*) FROM t AS a JOIN t AS b ON a.g = b.g JOIN t AS c ON b.g = c.g",
        // No pair fulfils the condition.
        "SELECT count(*) FROM t AS a JOIN t AS b ON a.g = b.g AND a.n + b.n < 0 JOIN t AS c ON b.g = c.g AND b.n + c.n < 0",
        "SELECT a.k FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b JOIN t AS c ON b.g = c.g AND b.n + c.n < 0 WHERE b.g = a.g)",
    ] {
        assert_eq!(interrupted(&database, question), "57014", "{question}");
    }
}
