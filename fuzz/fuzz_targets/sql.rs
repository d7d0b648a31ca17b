//! Any text as a script, on the database that one of the tests' .slt files leaves behind: the input's first line names the
//! file. Every check that the tests hold a statement against holds here too.
#![no_main]

#[path = "../../crates/language/sql/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use sql::is_schema_change;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use support::Database;
use types::Payload;

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/language/sql/tests/slt");
/// Steps of an input: the limit must be met as soon as the checks of what is below it.
const STEPS: u64 = 20_000;
/// A database with more rows is copied too slowly.
const ROWS_MAX: usize = 2_000;

/// The .slt files in the order of their names.
static PATHS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| {
    let files = std::fs::read_dir(FILES).expect("the tests' statements");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    paths
});

thread_local! {
    /// By position in `PATHS`, made when an input asks for it first.
    static DATABASES: RefCell<HashMap<usize, Database>> = RefCell::default();
}

/// The statements of an .slt file.
fn statements(path: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("an .slt file");
    let records = text.split("\n\n").filter_map(|record| {
        let record = record.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
        let (kind, rest) = record.split_once('\n')?;
        let asks = kind.starts_with("statement") || kind.starts_with("query");
        asks.then(|| rest.split("\n----").next().unwrap_or(rest).to_string())
    });
    records.collect()
}

/// The database after the statements of a file that change it.
fn database(path: &PathBuf) -> Database {
    let mut database = Database::default();
    let queries = ["SELECT", "WITH", "VALUES", "EXPLAIN", "SHOW", "DROP"];
    let changes = |sql: &String| !queries.iter().any(|word| sql.trim_start().starts_with(word));
    for sql in statements(path).iter().filter(|sql| changes(sql)) {
        let before = database.clone();
        let _ = database.gateway(sql);
        if database.state.tables.values().map(|rows| rows.len()).sum::<usize>() > ROWS_MAX {
            database = before;
        }
    }
    database.step_limit = STEPS;
    database
}

/// The position of the named file; of some file where the fuzzer has changed the name.
fn position(name: &str) -> usize {
    let named = PATHS.iter().position(|path| path.file_stem().is_some_and(|stem| stem == name));
    named.unwrap_or_else(|| name.bytes().map(usize::from).sum::<usize>() % PATHS.len())
}

fuzz_target!(|input: &str| {
    let (name, sql) = input.split_once('\n').unwrap_or(("", input));
    let position = position(name);
    let mut database = DATABASES.with_borrow_mut(|databases| {
        databases.entry(position).or_insert_with(|| database(&PATHS[position])).clone()
    });
    let mut again = database.clone();
    let result = database.gateway(sql);
    let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
    // What is read outside of transactions is also asked for inside of one, which has a footprint.
    if result.is_ok() && database.height == again.height && !is_schema_change(&payload) {
        let _ = again.execute(payload);
    }
});
