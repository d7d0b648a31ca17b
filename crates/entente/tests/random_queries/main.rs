//! Random queries over random tables give on rows and on columns what PostgreSQL 15 gives: values to the last digit, order,
//! errors by SQLSTATE. The PostgreSQL server is one of the test's own.
//!
//! The queries are the same at every run. More and others:
//! `RANDOM_QUERIES=100000 RANDOM_SEED=7 cargo test -p entente --test random_queries -- --nocapture`.

#[path = "../../../analytics/analytics/tests/columned/mod.rs"]
mod columned;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod database;
#[path = "../../../analytics/analytics/tests/generator/mod.rs"]
mod generator;
#[path = "../../../laboratory/bench/tests/differential/postgres.rs"]
#[allow(dead_code)]
mod postgres;
mod verdict;

use columned::{Columned, Counted};
use database::Database;
use generator::{Query, tables};
use postgres::{Answer, Postgres};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Reader, prepare};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{SqlError, StatementResult, format_value};
use verdict::{Rule, Verdict, verdict};

/// Queries in all, if nothing else is said.
const QUERIES: usize = 5_000;
/// Queries of a database; the next ones are asked on other rows.
const QUERIES_OF_A_DATABASE: usize = 500;
/// Differences that are shown before the test gives up.
const SHOWN_MAX: usize = 10;

/// How often a rule may be used among a thousand queries. What is more would hide something.
const PERMITTED_OF_THOUSAND: [(Rule, usize); 4] = [
    (Rule::ErrorOnRowsLeftOut, 120),
    (Rule::AnotherErrorFirst, 10),
    (Rule::EqualWrittenOtherwise, 30),
    (Rule::SumOfFloats, 1),
];

/// The same tables in both systems.
fn load(postgres: &Postgres, random: &mut StdRng) -> Database {
    let mut database = Database { step_limit: 1_000_000_000, ..Database::default() };
    postgres.run("DROP TABLE IF EXISTS one, two");
    for statement in tables(random) {
        postgres.run(&statement);
        database.run(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    postgres.run("ANALYZE one, two");
    database
}

fn answer(result: Result<Vec<StatementResult>, SqlError>) -> Answer {
    match result {
        Ok(results) => Answer::Rows(results.last().map_or_else(Vec::new, |result| {
            result.rows.iter().map(|row| row.iter().map(format_value).collect()).collect()
        })),
        Err(error) => Answer::Error { state: error.state.to_string(), message: error.message },
    }
}

/// The answers of rows and of columns.
fn ask(database: &Database, groups: &Arc<Counted>, sql: &str) -> [Answer; 2] {
    let prepared = match prepare(&database.library, sql, &[]) {
        Ok(prepared) => prepared,
        Err(error) => return [(); 2].map(|()| answer(Err(error.clone()))),
    };
    let reader = Reader { fragments: Some(groups.clone()), ..database.reader() };
    [
        answer(prepared.query_as(&database.reader(), &database.state, &[])),
        answer(prepared.query_as(&reader, &Columned(&database.state), &[])),
    ]
}

/// What all queries came to.
#[derive(Default)]
struct Tally {
    asked: usize,
    same_rows: usize,
    same_errors: usize,
    /// By SQLSTATE.
    errors: BTreeMap<String, usize>,
    permitted: BTreeMap<Rule, usize>,
    different: Vec<String>,
}

impl Tally {
    fn compare(&mut self, query: &Query, seed: u64, [rows, columns]: [Answer; 2], expected: &Answer) {
        self.asked += 1;
        let sql = query.determined();
        let by_rows = verdict(&sql, query.is_ordered(), &rows, expected);
        // Columns give what rows give. Only an error of rows they may miss, and then their answer is held against PostgreSQL's.
        let by_columns = match (&rows, &columns) {
            (Answer::Error { .. }, Answer::Rows(_)) => verdict(&sql, query.is_ordered(), &columns, expected),
            _ if rows == columns => Verdict::SameRows,
            // Both are an error that a value causes: which value is met first is open.
            (Answer::Error { .. }, Answer::Error { .. }) => {
                verdict(&sql, query.is_ordered(), &columns, &rows)
            }
            _ => Verdict::Different,
        };
        if by_rows == Verdict::Different || by_columns == Verdict::Different {
            let shown = format!(
                "seed {seed}: {sql}\nPostgreSQL: {expected:?}\nrows: {rows:?}\ncolumns: {}",
                if columns == rows { "as rows".to_string() } else { format!("{columns:?}") }
            );
            self.different.push(shown);
            return;
        }
        if let Answer::Error { state, .. } = expected {
            *self.errors.entry(state.clone()).or_default() += 1;
        }
        match by_rows {
            Verdict::SameRows => self.same_rows += 1,
            Verdict::SameError => self.same_errors += 1,
            Verdict::Permitted(rule) => *self.permitted.entry(rule).or_default() += 1,
            Verdict::Different => {}
        }
    }

    /// Says what there was, and fails if it is not as it should be.
    fn finish(self, groups: usize) {
        let Tally { asked, same_rows, same_errors, errors, permitted, different } = self;
        println!(
            "{asked} queries: {same_rows} with the same rows in all three, {groups} of all with fragments from columns, \
             {same_errors} with the same error, permitted {permitted:?}; PostgreSQL's errors {errors:?}"
        );
        assert!(different.is_empty(), "{} differences:\n\n{}", different.len(), different.join("\n\n"));
        for (rule, of_thousand) in PERMITTED_OF_THOUSAND {
            let used = permitted.get(&rule).copied().unwrap_or(0);
            assert!(used <= asked * of_thousand / 1000, "{rule:?} was used {used} times in {asked} queries");
        }
        assert!(same_rows > asked / 3 && groups > asked / 10 && same_errors > asked / 100);
    }
}

#[test]
fn random_queries_give_what_postgresql_gives() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let queries = number("RANDOM_QUERIES").map_or(QUERIES, |number| number as usize);
    let first = number("RANDOM_SEED").unwrap_or(0);
    let postgres = Postgres::with(&["SET jit = off", "SET statement_timeout = '60s'"]);
    let groups = Arc::new(Counted::default());
    let mut tally = Tally::default();
    for seed in first.. {
        let random = &mut StdRng::seed_from_u64(seed);
        let database = load(&postgres, random);
        for _ in 0..QUERIES_OF_A_DATABASE {
            if tally.asked == queries || tally.different.len() == SHOWN_MAX {
                return tally.finish(groups.made());
            }
            let query = Query::any(random);
            let sql = query.determined();
            tally.compare(&query, seed, ask(&database, &groups, &sql), &postgres.ask(&sql));
        }
    }
}
