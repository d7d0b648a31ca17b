//! Queries whose rows do not fit into memory give what they give with all rows in memory.

mod support;

use sql::{Reader, Scratch, ScratchFile, prepare};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use support::{Database, SmallMemory, shown, texts};
use types::{MemoryPool, SqlError, format_value};

const TABLES: [&str; 4] = [
    "CREATE TABLE t (k integer PRIMARY KEY, g integer, word text, at numeric)",
    "INSERT INTO t SELECT n, n * 7919 % 13, CASE WHEN n % 11 > 0 THEN 'word ' || n * 31 % 101 END, n % 5 / 2.0 \
     FROM generate_series(1, 900) AS s (n)",
    "CREATE TABLE other (k integer PRIMARY KEY, g integer, note text)",
    "INSERT INTO other SELECT n, CASE WHEN n % 7 > 0 THEN n % 17 END, repeat('long ', n % 40) FROM generate_series(1, 300) AS s (n)",
];

/// Queries whose rows are written where an operator holds 4 kilobytes.
const QUERIES: [&str; 26] = [
    "SELECT * FROM t ORDER BY word, g DESC, k",
    "SELECT word, k FROM t ORDER BY word NULLS FIRST, at",
    "SELECT k FROM t ORDER BY g",
    "SELECT g, k FROM t ORDER BY g DESC NULLS LAST, word OFFSET 700 LIMIT 20",
    "SELECT DISTINCT word FROM t",
    "SELECT DISTINCT word, at FROM t ORDER BY at DESC, word LIMIT 30",
    "SELECT DISTINCT word, g FROM t OFFSET 200 LIMIT 50",
    "SELECT DISTINCT ON (g) g, k, word FROM t ORDER BY g, k DESC",
    "SELECT DISTINCT ON (word) word, k FROM t",
    "SELECT word, count(*), sum(k), array_agg(k), min(at) FROM t GROUP BY word",
    "SELECT k % 200, count(*), string_agg(word, ',' ORDER BY k DESC) FROM t GROUP BY 1 HAVING count(*) > 3 ORDER BY 2, 1",
    "SELECT word, at, count(DISTINCT g) FROM t GROUP BY word, at ORDER BY 3 DESC, word, at LIMIT 25",
    "SELECT t.k, other.k, note FROM t JOIN other ON t.g = other.g",
    "SELECT t.k, other.k FROM t LEFT JOIN other ON t.g = other.g AND t.k % 3 = other.k % 3",
    "SELECT t.k, other.k FROM other RIGHT JOIN t ON t.g = other.g AND t.k < other.k",
    "SELECT t.k, other.k, note FROM t FULL JOIN other ON t.k = other.k + 200",
    "SELECT a.k, b.k FROM other a JOIN other b ON a.k < b.k AND a.g > b.g",
    "SELECT count(*), sum(a.k) FROM t a, other b WHERE a.k > b.k",
    "SELECT word, (SELECT max(note) FROM other WHERE other.g = t.g) FROM t ORDER BY k DESC",
    "SELECT * FROM (SELECT word, count(*) AS n FROM t GROUP BY word) AS s JOIN t USING (word) ORDER BY n, k",
    "SELECT k FROM t WHERE EXISTS (SELECT FROM other WHERE other.g = t.g AND other.k > t.k) ORDER BY word",
    "SELECT * FROM (SELECT k, word FROM t UNION ALL SELECT k, note FROM other) AS u ORDER BY 2, 1",
    "SELECT n, k FROM generate_series(1, 2000) AS s (n) LEFT JOIN t ON n = k + 5 ORDER BY k NULLS FIRST, n",
    "SELECT t.k, x.k FROM t LEFT JOIN LATERAL (SELECT k FROM other WHERE other.g = t.g ORDER BY note LIMIT 2) AS x ON true",
    "SELECT k, rank() OVER (PARTITION BY g ORDER BY word) FROM t ORDER BY k",
    "WITH w AS (SELECT g, word FROM t) SELECT g, count(*) FROM w JOIN other USING (g) GROUP BY g",
];

/// Queries with an operator that writes in them, under its name.
const NAMED_QUERIES: [(&str, &str); 30] = [
    ("UNION", "SELECT word, at FROM t UNION SELECT note, g FROM other"),
    ("UNION", "SELECT at FROM t UNION SELECT at + 0.00 FROM t UNION SELECT k FROM other"),
    ("UNION", "SELECT g, k FROM t UNION ALL SELECT g, k FROM other"),
    ("UNION", "SELECT k FROM t UNION SELECT k FROM other LIMIT 20 OFFSET 850"),
    ("INTERSECT", "SELECT g, at FROM t INTERSECT SELECT g, k % 5 / 2.00 FROM other"),
    ("INTERSECT", "SELECT g, at FROM t INTERSECT ALL SELECT g, k % 5 / 2.00 FROM other"),
    ("EXCEPT", "SELECT g, k % 40 FROM t EXCEPT SELECT g, k FROM other"),
    ("EXCEPT", "SELECT g, at FROM t EXCEPT ALL SELECT g, k % 5 / 2.00 FROM other"),
    ("EXCEPT", "(SELECT k FROM t EXCEPT SELECT k FROM other) INTERSECT SELECT k * 3 FROM t ORDER BY 1 DESC"),
    ("OVER", "SELECT k, row_number() OVER (PARTITION BY g ORDER BY word, k DESC) FROM t"),
    (
        "OVER",
        "SELECT rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, word FROM t WINDOW w AS (ORDER BY word)",
    ),
    ("OVER", "SELECT k, ntile(7) OVER (PARTITION BY at ORDER BY word), count(*) OVER () FROM t"),
    ("OVER", "SELECT k, lag(k) OVER w, lead(word, 3, 'none') OVER w FROM t WINDOW w AS (ORDER BY g, k)"),
    ("OVER", "SELECT k, lag(k, g * 40) OVER (ORDER BY k), lead(k, k % 300) OVER (ORDER BY word, k) FROM t"),
    (
        "OVER",
        "SELECT k, sum(k) OVER (PARTITION BY at ORDER BY g), string_agg(word, ',') OVER (PARTITION BY k % 100 ORDER BY k) FROM t",
    ),
    ("OVER", "SELECT k, sum(at) OVER (ORDER BY k ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM t"),
    ("OVER", "SELECT k, max(word) OVER (ORDER BY k ROWS BETWEEN 200 PRECEDING AND 150 PRECEDING) FROM t"),
    (
        "OVER",
        "SELECT k, count(*) OVER (PARTITION BY g ORDER BY at RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t",
    ),
    (
        "OVER",
        "SELECT first_value(k) OVER w, last_value(k) OVER w, nth_value(k, 5) OVER w FROM t WINDOW w AS (PARTITION BY word ORDER BY at)",
    ),
    (
        "OVER",
        "SELECT last_value(k) OVER w, nth_value(k, 300) OVER w FROM t          WINDOW w AS (ORDER BY g DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
    (
        "OVER",
        "SELECT DISTINCT g, avg(k) OVER (PARTITION BY g) FROM t WHERE k > (SELECT min(k) + 100 FROM other) ORDER BY 2",
    ),
    (
        "OVER",
        "SELECT word, g, count(*), rank() OVER (PARTITION BY g ORDER BY count(*)) FROM t GROUP BY word, g HAVING sum(k) > 200",
    ),
    ("OVER", "SELECT k, sum((SELECT count(*) FROM other WHERE other.g = t.g)) OVER (ORDER BY k) FROM t"),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 300) SELECT * FROM r",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (n) AS (SELECT k FROM t UNION SELECT n * 7 % 2000 FROM r) SELECT * FROM r",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (n, d) AS (SELECT k, 0 FROM other UNION ALL SELECT n + 1, d + 1 FROM r WHERE d < 4) SELECT * FROM r",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (a) AS (SELECT 1.0 UNION SELECT (a * 3 + s) % 500 FROM r, generate_series(1, 3) AS x (s)) SELECT * FROM r",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (k, g) AS (SELECT k, g FROM t WHERE k < 5 UNION SELECT t.k, t.g FROM r JOIN t ON t.g = r.g AND t.k > r.k)          SELECT g, count(*) FROM r GROUP BY g",
    ),
    (
        "WITH RECURSIVE",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 200) SELECT a.n, b.n FROM r a JOIN r b USING (n)",
    ),
    (
        "WITH RECURSIVE",
        "SELECT k, word FROM t WHERE k IN (WITH RECURSIVE r (n) AS (SELECT 3 UNION SELECT n * 2 % 907 FROM r) SELECT n FROM r)",
    ),
];

fn filled() -> Database {
    Database { step_limit: 100_000_000, ..Database::with(&TABLES) }
}

#[test]
fn what_does_not_fit_comes_to_the_same() {
    let mut whole = filled();
    for query in QUERIES.into_iter().chain(NAMED_QUERIES.map(|(_, query)| query)) {
        let expected = whole.rows(query);
        assert!(!expected.is_empty(), "{query}");
        for operator_bytes in [1, 600, 4_096, 1 << 30] {
            let memory = SmallMemory::of(operator_bytes);
            let (written, files) = (memory.written.clone(), memory.files.clone());
            let mut small = Database { scratch: Some(Arc::new(memory)), ..whole.clone() };
            let found = small.rows(query);
            let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            assert!(found == expected, "{query} with {operator_bytes} bytes: {differs:?}");
            assert_eq!(
                written.load(Relaxed) > 0,
                operator_bytes <= 4_096,
                "{query} with {operator_bytes} bytes"
            );
            drop(small);
            assert_eq!(Arc::strong_count(&files), 1, "files of {query} are left");
        }
    }
}

#[test]
fn every_operator_writes_what_has_no_room() {
    for (operator, query) in NAMED_QUERIES {
        let memory = SmallMemory::of(600);
        let written_by = memory.written_by.clone();
        let mut small = Database { scratch: Some(Arc::new(memory)), ..filled() };
        small.rows(query);
        let written_by = written_by.lock().expect("nobody panics with it").clone();
        assert!(written_by.contains_key(operator), "{query}: only {written_by:?} have written");
    }
}

/// A reader with so much memory for all queries, and files.
fn reader(database: &Database, memory: u64, operator_bytes: u64) -> Reader {
    let scratch: Arc<dyn sql::Scratch> = Arc::new(SmallMemory::of(operator_bytes));
    Reader { memory: Some(MemoryPool::new(memory)), scratch: Some(scratch), ..database.reader() }
}

#[test]
fn rows_are_handed_out_that_no_memory_would_hold() {
    let mut database = filled();
    for query in [
        "SELECT a.k, b.k FROM t a JOIN t b ON a.g = b.g ORDER BY b.word, a.k, b.k",
        "SELECT DISTINCT a.k, b.k % 400 FROM t a JOIN t b ON a.g = b.g",
        "SELECT a.k, b.word, count(*) FROM t a JOIN t b ON a.g = b.g GROUP BY a.k, b.word",
        "SELECT n, 'a' FROM generate_series(1, 20000) AS s (n) UNION ALL SELECT n, 'b' FROM generate_series(1, 20000) AS s (n)",
        "SELECT n, n % 7 FROM generate_series(1, 20000) AS s (n) UNION SELECT n, n % 9 FROM generate_series(1, 20000) AS s (n)",
        "SELECT n % 25000 FROM generate_series(1, 40000) AS s (n) INTERSECT SELECT n FROM generate_series(1, 30000) AS s (n)",
        "SELECT n % 25000 FROM generate_series(1, 60000) AS s (n) INTERSECT ALL SELECT n % 26000 FROM generate_series(1, 50000) AS s (n)",
        "SELECT n % 25000 FROM generate_series(1, 40000) AS s (n) EXCEPT SELECT n * 7 FROM generate_series(1, 30000) AS s (n)",
        "SELECT n % 25000 FROM generate_series(1, 60000) AS s (n) EXCEPT ALL SELECT n FROM generate_series(1, 30000) AS s (n)",
        "SELECT n, rank() OVER (PARTITION BY n % 3 ORDER BY n % 5000), sum(n) OVER (ORDER BY n % 1000) FROM generate_series(1, 21000) AS s (n)",
        "SELECT n, lag(n, 9000) OVER (ORDER BY n % 10 DESC), last_value(n) OVER (), ntile(9) OVER (ORDER BY n) FROM generate_series(1, 21000) AS s (n)",
        "SELECT n, max(n % 1001) OVER (ORDER BY n ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING) FROM generate_series(1, 21000) AS s (n)",
        "SELECT n % 21000, count(*), row_number() OVER (ORDER BY count(*), n % 21000 DESC) FROM generate_series(1, 42000) AS s (n) GROUP BY 1",
        "WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n + s FROM r, generate_series(1, 20) AS x (s) WHERE n < 21000) SELECT * FROM r",
        "WITH RECURSIVE r (n, d) AS (SELECT 1, 0 UNION ALL SELECT n + s, d + 1 FROM r, generate_series(1, 30) AS x (s) WHERE d < 3) SELECT * FROM r",
        "WITH RECURSIVE r (n) AS (SELECT n FROM generate_series(1, 21000) AS s (n) UNION SELECT n * 3 % 50021 FROM r) SELECT * FROM r",
    ] {
        let prepared = prepare(&database.library, query, &[]).expect("a query");
        // Memory for some thousand of more than a hundred thousand rows.
        let reader = reader(&database, 2 << 20, 64 << 10);
        let mut found = Vec::new();
        let mut take = |row: Vec<types::Value>| {
            found.push(
                row.iter()
                    .map(format_value)
                    .map(|text| text.unwrap_or("NULL".into()))
                    .collect::<Vec<String>>(),
            );
            ControlFlow::Continue(())
        };
        prepared.query_each(&reader, &database.state, &[], &mut take).expect(query);
        let expected = database.rows(query);
        assert_eq!(found.len(), expected.len(), "{query}");
        let differs = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert!(differs.is_none_or(|at| panic!("{query}: {:?} for {:?}", found[at], expected[at])));
        assert!(found.len() > 20_000, "{query}");
        // Without files it is an error, and so is the whole result at once.
        let without = Reader { scratch: None, ..reader.clone() };
        let mut nothing = |_| ControlFlow::Continue(());
        let error = prepared.query_each(&without, &database.state, &[], &mut nothing).expect_err("no room");
        assert_eq!(error.state.to_string(), "53200", "{query}: {error:?}");
    }
}

#[test]
fn a_full_disk_and_a_client_that_goes_end_a_query() {
    let mut database = filled();
    database.scratch = Some(Arc::new(SmallMemory { room: Some(10_000), ..SmallMemory::of(1_000) }));
    for query in [QUERIES[0], QUERIES[4], QUERIES[9], QUERIES[12]] {
        assert_eq!(shown(database.gateway(query)), "53100 no room", "{query}");
    }
    for (_, query) in NAMED_QUERIES {
        database.scratch = Some(Arc::new(SmallMemory { room: Some(3_000), ..SmallMemory::of(200) }));
        assert_eq!(shown(database.gateway(query)), "53100 no room", "{query}");
    }
    database.scratch = Some(Arc::new(SmallMemory::of(1_000)));
    let reader = database.reader();
    let prepared = prepare(&database.library, QUERIES[0], &[]).expect("a query");
    let mut first = Vec::new();
    let mut take = |row: Vec<types::Value>| {
        first.push(row);
        if first.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    prepared.query_each(&reader, &database.state, &[], &mut take).expect("enough");
    assert_eq!(first.len(), 3);
    reader.interrupt.store(true, Relaxed);
    let error = prepared.query_as(&reader, &database.state, &[]).expect_err("interrupted");
    assert_eq!(error.state.to_string(), "57014");
}

#[test]
fn rows_that_an_operator_has_from_several_queries_count_together() {
    let mut database = filled();
    database
        .run("INSERT INTO t SELECT n, n, 'more' FROM generate_series(1000, 10000) AS s (n)")
        .expect("rows");
    let query = "SELECT count(*) FROM (SELECT k, word FROM t UNION ALL SELECT k, word FROM t) AS u";
    let prepared = prepare(&database.library, query, &[]).expect("a query");
    // Room for the 96 bytes of each of 9,901 rows of one side, but not of both.
    let memory = SmallMemory::of(1 << 30);
    let written = memory.written.clone();
    let memory_of_all = Some(MemoryPool::new(1_500 << 10));
    let reader = Reader { memory: memory_of_all, scratch: Some(Arc::new(memory)), ..database.reader() };
    let found = prepared.query_as(&reader, &database.state, &[]).expect("files");
    assert_eq!(texts(&found[0]), [["19802"]]);
    assert!(written.load(Relaxed) > 0, "nothing was written");
}

#[test]
fn transactions_have_no_files() {
    let mut database = filled();
    let memory = SmallMemory::of(1);
    let written = memory.written.clone();
    database.scratch = Some(Arc::new(memory));
    let inserted =
        "INSERT INTO other SELECT 1000 + k, g, word FROM (SELECT DISTINCT * FROM t ORDER BY word) AS s";
    assert_eq!(shown(database.run(inserted)), "INSERT 0 900");
    assert_eq!(written.load(Relaxed), 0);
    assert_eq!(texts(&database.gateway("SELECT count(*) FROM other").expect("rows")[0]), [["1200"]]);
}

/// Says when a file was made, so that a client can go right then.
#[derive(Debug)]
struct Interrupting {
    memory: SmallMemory,
    operator: &'static str,
    interrupt: Arc<AtomicBool>,
}

impl Scratch for Interrupting {
    fn file(&self) -> Result<Box<dyn ScratchFile>, SqlError> {
        self.memory.file()
    }

    fn file_for(&self, operator: &'static str) -> Result<Box<dyn ScratchFile>, SqlError> {
        self.interrupt.fetch_or(operator == self.operator, Relaxed);
        self.memory.file_for(operator)
    }

    fn operator_bytes(&self) -> u64 {
        self.memory.operator_bytes()
    }
}

#[test]
fn a_client_that_goes_while_an_operator_writes_ends_its_query() {
    let database = filled();
    for (operator, query) in NAMED_QUERIES {
        let interrupt = Arc::new(AtomicBool::new(false));
        let memory = SmallMemory::of(600);
        let scratch = Interrupting { memory, operator, interrupt: interrupt.clone() };
        let reader = Reader { scratch: Some(Arc::new(scratch)), interrupt, ..database.reader() };
        let prepared = prepare(&database.library, query, &[]).expect("a query");
        let error = prepared.query_as(&reader, &database.state, &[]).expect_err("interrupted");
        assert_eq!(error.state.to_string(), "57014", "{query}");
    }
}

/// Draws the same numbers in every run.
struct Dice(u64);

impl Dice {
    fn draw<'c, T: ?Sized>(&mut self, choices: &[&'c T]) -> &'c T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choices[(self.0 % choices.len() as u64) as usize]
    }

    /// A query of three columns.
    fn query(&mut self, depth: u32) -> String {
        let shape = if depth == 0 {
            "plain"
        } else {
            self.draw(&["plain", "set", "set", "window", "recursive", "join"])
        };
        match shape {
            "set" => {
                let operation =
                    self.draw(&["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]);
                format!("({}) {operation} ({})", self.query(depth - 1), self.query(depth - 1))
            }
            "window" => format!(
                "SELECT a, {}, {} FROM ({}) AS q",
                self.window(),
                self.window(),
                self.query(depth - 1)
            ),
            "recursive" => {
                let union = self.draw(&["UNION", "UNION ALL"]);
                let step = self.draw(&["a + 4, b, c", "a + 5, b * 2 % 9, c", "a + 6, x, c"]);
                let limit = self.draw(&["8", "15"]);
                format!(
                    "(WITH RECURSIVE r AS (SELECT a % 10 AS a, b, c FROM ({}) AS q {union} \
                     SELECT {step} FROM r, generate_series(1, 2) AS s (x) WHERE a < {limit}) SELECT a, b, c FROM r)",
                    self.query(depth - 1)
                )
            }
            "join" => format!(
                "SELECT q.a, p.b, p.c FROM ({}) AS q JOIN ({}) AS p ON q.a = p.a AND p.b < 4",
                self.query(depth - 1),
                self.query(depth - 1)
            ),
            _ => {
                let table = self.draw(&["t", "other"]);
                let columns =
                    self.draw(&["k, g, k % 5 / 2.0", "g, k, 1.50", "k % 50, g, 2.500", "k, k % 3, g * 1.0"]);
                let condition =
                    self.draw(&["k < 60", "k % 9 = 2", "g = 4", "k BETWEEN 20 AND 90", "k > 880"]);
                format!("SELECT * FROM (SELECT {columns} FROM {table} WHERE {condition}) AS q (a, b, c)")
            }
        }
    }

    fn window(&mut self) -> String {
        let function = self.draw(&[
            "row_number()",
            "rank()",
            "dense_rank()",
            "ntile(3)",
            "count(*)",
            "sum(c)",
            "min(b)",
            "lag(a, 2)",
            "lead(b, a, 7)",
            "first_value(a)",
            "last_value(b)",
            "nth_value(a, 2)",
            "percent_rank()",
            "cume_dist()",
            "array_agg(b)",
        ]);
        let cast = if matches!(function, "percent_rank()" | "cume_dist()") { "::numeric" } else { "" };
        let partition = self.draw(&["", "PARTITION BY b", "PARTITION BY a % 4, c"]);
        let order = self.draw(&["", "ORDER BY a", "ORDER BY c DESC NULLS LAST, a", "ORDER BY b, a, c"]);
        let frame = self.draw(&[
            "",
            "",
            "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
            "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        ]);
        let value = format!("{function} OVER ({partition} {order} {frame}){cast}");
        // A number, so that whatever stands around it can go on with it.
        if function == "array_agg(b)" { format!("coalesce(array_length({value}, 1), 0)") } else { value }
    }
}

#[test]
fn random_queries_come_to_the_same() {
    let mut whole = filled();
    let mut dice = Dice(0x5eed_0020);
    let (mut rows, mut answered, mut written_by) = (0, 0, BTreeSet::new());
    for number in 0..400 {
        let query = format!("SELECT * FROM ({}) AS whole", dice.query(3));
        let expected = whole.gateway(&query).map(|results| texts(&results[0]));
        for operator_bytes in [1, 300, 5_000] {
            let memory = SmallMemory::of(operator_bytes);
            let wrote = memory.written_by.clone();
            let mut small = Database { scratch: Some(Arc::new(memory)), ..whole.clone() };
            let found = small.gateway(&query).map(|results| texts(&results[0]));
            match (&found, &expected) {
                (Ok(found), Ok(expected)) => {
                    assert!(found == expected, "{number}, {operator_bytes} bytes: {query}");
                    rows += found.len();
                    answered += 1;
                }
                (Err(found), Err(expected)) => {
                    assert_eq!(
                        found.to_string(),
                        expected.to_string(),
                        "{number}, {operator_bytes} bytes: {query}"
                    );
                }
                _ => panic!("{number}, {operator_bytes} bytes: {query}: {found:?} for {expected:?}"),
            }
            written_by.extend(wrote.lock().expect("nobody panics with it").keys().copied());
        }
    }
    assert!(rows > 10_000 && answered > 600, "only {rows} rows of {answered} answers");
    for operator in ["UNION", "INTERSECT", "EXCEPT", "OVER", "WITH RECURSIVE"] {
        assert!(written_by.contains(operator), "{operator} has written nothing");
    }
}
