//! Random statements and procedures give the same on PostgreSQL 15 and on Entente: rows, errors, and what is in the
//! tables afterwards. The PostgreSQL server is one of the test's own.
//!
//! The cases are the same at every run. More and others: `DIFFERENTIAL_SEED=7 PROPTEST_CASES=5000 cargo test -p bench
//! --test differential`. A case that fails is made smaller before it is shown.

mod corpus;
#[path = "../../../../language/sql/tests/support/mod.rs"]
mod entente;
mod expressions;
mod formats;
mod indexes;
mod json;
mod postgres;
mod programs;
mod references;
mod row_security;
mod statements;
mod values_of_version_10;
mod volatility;

use entente::Database;
use postgres::{Answer, Postgres};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use statements::{SCHEMA, Statement};
use types::format_value;
use types::session_format::{SessionFormat, within_format};

/// What both databases are asked at the end: everything that is in the tables.
const TABLES: [&str; 3] = [
    "SELECT * FROM p ORDER BY 1",
    "SELECT * FROM q ORDER BY 1",
    "SELECT k, v, count(*) FROM r GROUP BY k, v ORDER BY k, v",
];

/// Runs cases that follow from a seed.
fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>)
where
    S::Value: std::fmt::Debug,
{
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let cases = number("PROPTEST_CASES").unwrap_or(cases);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number("DIFFERENTIAL_SEED").unwrap_or(0).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    match runner.run(strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\n{value:#?}"),
        Err(error) => panic!("{error}"),
    }
}

fn ask(database: &mut Database, sql: &str) -> Answer {
    ask_in(SessionFormat::default(), database, sql)
}

/// As a session of a format shows it.
fn ask_in(format: SessionFormat, database: &mut Database, sql: &str) -> Answer {
    match database.gateway(sql) {
        Ok(results) => Answer::Rows(results.last().map_or_else(Vec::new, |result| {
            let text = |value| within_format(format, || format_value(value));
            result.rows.iter().map(|row| row.iter().map(text).collect()).collect()
        })),
        Err(error) => Answer::Error { state: error.state.to_string(), message: error.message },
    }
}

/// Asks both, and holds the answers against one another.
fn compare(
    postgres: &Postgres,
    database: &mut Database,
    statement: &Statement,
    exact: bool,
) -> Result<(), TestCaseError> {
    let (mut expected, mut found) = (postgres.ask(&statement.sql), ask(database, &statement.sql));
    if !statement.ordered {
        expected.sort();
        found.sort();
    }
    let same = match (&expected, &found) {
        // Of several rows or conditions that are in error, either database may come to any of them first.
        (Answer::Error { state: a, .. }, Answer::Error { state: b, .. }) if !exact => {
            let excused = |state: &str| state.starts_with("22") || state.starts_with("23");
            a == b || excused(a) && excused(b)
        }
        _ => expected == found,
    };
    prop_assert!(same, "{}\nPostgreSQL: {expected:#?}\nEntente: {found:#?}", statement.sql);
    Ok(())
}

/// Both databases with the same rows.
fn begin(postgres: &Postgres, rows: &[String]) -> Database {
    let mut database = Database::with(&SCHEMA);
    postgres.run("TRUNCATE p, q, r");
    for row in rows {
        postgres.run(row);
        database.run(row).unwrap_or_else(|error| panic!("{row}: {error:?}"));
    }
    database
}

fn compare_tables(
    postgres: &Postgres,
    database: &mut Database,
    tables: &[&str],
) -> Result<(), TestCaseError> {
    tables.iter().try_for_each(|table| {
        let statement = Statement { sql: (*table).to_string(), ordered: true };
        compare(postgres, database, &statement, true)
    })
}

#[test]
fn statements_answer_as_postgresql_does() {
    let postgres = Postgres::with(&SCHEMA);
    let cases = (statements::rows(), proptest::collection::vec(statements::statement(), 1..5));
    run(400, &cases, |(rows, statements)| {
        let mut database = begin(&postgres, &rows);
        for statement in &statements {
            compare(&postgres, &mut database, statement, false)?;
        }
        compare_tables(&postgres, &mut database, &TABLES)
    });
}

#[test]
fn programs_do_what_they_do_in_postgresql() {
    let postgres = Postgres::with(&SCHEMA);
    let cases = (statements::rows(), programs::program(), programs::calls());
    run(250, &cases, |(rows, program, calls)| {
        let mut database = begin(&postgres, &rows);
        for sql in std::iter::once(program).chain(calls) {
            compare(&postgres, &mut database, &Statement { sql, ordered: true }, true)?;
        }
        compare_tables(&postgres, &mut database, &TABLES)
    });
}

#[test]
fn references_are_kept_as_in_postgresql() {
    let postgres = Postgres::with(&[]);
    let cases = (references::schema(), proptest::collection::vec(references::statement(), 1..5));
    run(300, &cases, |(schema, statements)| {
        postgres.run(references::DROP);
        let mut database = Database::default();
        for sql in schema {
            compare(&postgres, &mut database, &Statement { sql, ordered: true }, false)?;
        }
        for statement in &statements {
            if statement.sql.starts_with("TRUNCATE")
                && let Answer::Error { state, .. } = ask(&mut database, &statement.sql)
            {
                prop_assert_eq!(state, "0A000", "tables in a circle: {}", statement.sql);
                continue;
            }
            compare(&postgres, &mut database, statement, false)?;
        }
        compare_tables(&postgres, &mut database, &references::TABLES)
    });
}

#[test]
fn indexes_keep_and_find_rows_as_in_postgresql() {
    let postgres = Postgres::with(&[]);
    run(
        300,
        &(indexes::schema(), proptest::collection::vec(indexes::statement(), 1..10)),
        |(schema, statements)| {
            postgres.run(indexes::DROP);
            let mut database = Database::default();
            for sql in schema {
                compare(&postgres, &mut database, &Statement { sql, ordered: true }, false)?;
            }
            for statement in &statements {
                compare(&postgres, &mut database, statement, false)?;
            }
            compare_tables(&postgres, &mut database, &indexes::TABLES)
        },
    );
}

#[test]
fn json_is_what_it_is_in_postgresql() {
    let postgres = Postgres::with(&[]);
    run(400, &json::statements(), |statements| {
        let mut database = Database::default();
        statements.iter().try_for_each(|statement| compare(&postgres, &mut database, statement, true))
    });
    run(300, &json::texts(), |text| {
        let mut database = Database::default();
        ["json", "jsonb"].iter().try_for_each(|name| {
            let sql = format!("SELECT '{text}'::{name}");
            compare(&postgres, &mut database, &Statement { sql, ordered: true }, true)
        })
    });
}

#[test]
fn addresses_bits_times_and_ranges_are_what_they_are_in_postgresql() {
    let postgres = Postgres::with(&[]);
    run(4_000, &values_of_version_10::statements(), |statement| {
        compare(&postgres, &mut Database::default(), &statement, true)
    });
}

#[test]
fn sessions_of_other_formats_answer_as_in_postgresql() {
    let postgres = Postgres::with(&[]);
    run(4_000, &formats::sessions(), |(settings, Statement { sql, .. })| {
        let changed = |format: SessionFormat, (name, value): &(&str, &str)| {
            format.changed_by(name, value).expect("a value").expect("known")
        };
        let format = settings.iter().fold(SessionFormat::default(), changed);
        let statement = |(name, value): &(&str, &str)| format!("SET {name} TO '{value}'; ");
        let front: String = settings.iter().map(statement).collect();
        postgres.run("RESET ALL");
        postgres.run("SET TimeZone = 'UTC'");
        let expected = postgres.ask(&format!("{front}{sql}"));
        let found = ask_in(format, &mut Database::default(), &format!("{front}{sql}"));
        prop_assert_eq!(expected, found, "{}{}", front, sql);
        Ok(())
    });
}
