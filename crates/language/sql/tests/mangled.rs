//! Statements of the corpus, cut off at random places and with their words mixed up: an answer or an error, never a panic,
//! and whatever such a statement does stays inside of what its checks hold it against (`support::Database`).

mod support;

use rand::prelude::*;
use rand::rngs::StdRng;
use sqllogictest::{DefaultColumnType, Record};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use support::Database;

/// Variants of every statement.
const VARIANTS: usize = 10;

/// What replaces a word: bounds, openings without ends, names that are taken.
const WORDS: [&str; 34] = [
    "",
    "NULL",
    "0",
    "-1",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "1e400",
    "1e-400",
    "99999999999999999999999999999999999999",
    "'",
    "''",
    "\"",
    "(",
    ")",
    ",",
    ";",
    "$1",
    "$$",
    "*",
    "::",
    "[",
    "]",
    "--",
    "/*",
    "\u{0}",
    "é😀",
    "DEFAULT",
    "'infinity'",
    "'NaN'",
    "SELECT",
    "ALL",
    "interval '1 day'",
    "ARRAY[1, NULL]",
];

/// Words, and what stands between them.
fn words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            3
        }
    };
    let mut last = 0;
    for c in sql.chars() {
        match words.last_mut().filter(|_| class(c) == last && last != 3) {
            Some(word) => word.push(c),
            None => words.push(c.to_string()),
        }
        last = class(c);
    }
    words
}

fn mangle(sql: &str, others: &[String], random: &mut StdRng) -> String {
    let mut words = words(sql);
    for _ in 0..random.random_range(1..=2) {
        if words.is_empty() {
            break;
        }
        let at = random.random_range(0..words.len());
        match random.random_range(0..7) {
            0 => words.truncate(at),
            1 => drop(words.remove(at)),
            2 => words.insert(at, words[at].clone()),
            3 => {
                let other = random.random_range(0..words.len());
                words.swap(at, other);
            }
            4 => words[at] = WORDS.choose(random).expect("some").to_string(),
            5 => words.insert(at, format!(" {} ", WORDS.choose(random).expect("some"))),
            _ => {
                let other = self::words(others.choose(random).expect("some"));
                let from = random.random_range(0..other.len().max(1));
                let taken = other.into_iter().skip(from).take(random.random_range(1..8));
                words.splice(at..=at, taken);
            }
        }
    }
    let mut sql = words.concat();
    if random.random_bool(0.2) {
        let cut = random.random_range(0..=sql.chars().count());
        sql = sql.chars().take(cut).collect();
    }
    sql
}

fn statements(path: &Path) -> Vec<String> {
    let records = sqllogictest::parse_file::<DefaultColumnType>(path).expect("a good file");
    let sql = |record| match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
        _ => None,
    };
    records.into_iter().filter_map(sql).collect()
}

/// Runs the corpus's files whose number leaves `part` in four: in several tests, so that they run side by side.
fn run(part: usize) {
    let mut paths: Vec<_> = std::fs::read_dir("tests/slt")
        .expect("the corpus")
        .map(|entry| entry.expect("read").path())
        .collect();
    paths.sort();
    let mut panics = Vec::new();
    for (number, path) in paths.iter().enumerate().filter(|(number, _)| number % 4 == part) {
        let mut random = StdRng::seed_from_u64(number as u64);
        let statements = statements(path);
        let mut database = Database::default();
        for sql in &statements {
            // What the file's own statements answer is another test's question.
            let _ = database.gateway(sql);
            for _ in 0..VARIANTS {
                let mangled = mangle(sql, &statements, &mut random);
                let run = AssertUnwindSafe(|| drop(database.gateway(&mangled)));
                if catch_unwind(run).is_err() {
                    panics.push(format!("{}: {mangled:?}", path.display()));
                }
            }
        }
    }
    assert!(panics.is_empty(), "{}", panics.join("\n"));
}

#[test]
fn mangled_statements_are_answered_1() {
    run(0);
}

#[test]
fn mangled_statements_are_answered_2() {
    run(1);
}

#[test]
fn mangled_statements_are_answered_3() {
    run(2);
}

#[test]
fn mangled_statements_are_answered_4() {
    run(3);
}
