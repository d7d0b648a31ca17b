//! Random queries over random tables give the same on rows and on columns: values, errors, order. (`entente --test
//! random_queries` asks PostgreSQL too.)

mod columned;
mod generator;
#[path = "../../../language/sql/tests/support/mod.rs"]
mod support;

use columned::{Columned, Counted};
use generator::{Query, tables};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sql::{Reader, prepare};
use std::sync::Arc;
use support::Database;

/// Queries in all, if nothing else is said.
const QUERIES: usize = 18_000;
/// Queries of a database; the next ones are asked on other rows.
const QUERIES_OF_A_DATABASE: usize = 3_000;

#[test]
fn random_queries_give_the_same_on_columns() {
    let groups = Arc::new(Counted::default());
    let queries = std::env::var("RANDOM_QUERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(QUERIES);
    let (mut asked, mut answered, mut joins, mut inside, mut listings) = (0, 0, 0, 0, 0);
    for seed in 0..queries.div_ceil(QUERIES_OF_A_DATABASE) as u64 {
        let random = &mut StdRng::seed_from_u64(seed);
        let mut database = Database::default();
        for statement in tables(random) {
            database.run(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        }
        for _ in 0..QUERIES_OF_A_DATABASE.min(queries - asked) {
            asked += 1;
            let sql = Query::any(random).text();
            let Ok(prepared) = prepare(&database.library, &sql, &[]) else { continue };
            let before = groups.made();
            let is_listing =
                !["count(", "sum(", "avg(", "min(", "max(", "GROUP BY"].iter().any(|word| sql.contains(word));
            let is_inside = sql.matches("SELECT").count() > 1;
            let by_rows = prepared.query_as(&database.reader(), &database.state, &[]);
            let reader = Reader { fragments: Some(groups.clone()), ..database.reader() };
            let by_columns = prepared.query_as(&reader, &Columned(&database.state), &[]);
            // The order in which conditions of joined relations are asked is anybody's choice, as in PostgreSQL: one may leave out
            // the row on which another one fails.
            // And outputs of rows behind a LIMIT need not be computed.
            let has_orders = is_inside || sql.contains(" JOIN ") || sql.contains(" LIMIT ");
            let may_miss_an_error = has_orders && by_rows.is_err();
            if !may_miss_an_error {
                assert_eq!(by_columns, by_rows, "seed {seed}: {sql}");
            }
            answered += usize::from(by_rows.is_ok());
            inside += usize::from(groups.made() > before && is_inside);
            listings += usize::from(groups.made() > before && is_listing);
            joins +=
                usize::from(groups.made() > before && sql.contains(" JOIN ") && sql.contains("GROUP BY"));
        }
    }
    let made = groups.made();
    println!(
        "{asked} queries, {answered} answered, {made} groups made on columns, {joins} of joins, {inside} with queries inside, \
         {listings} without groups"
    );
    assert!(answered > asked / 3 && made > asked / 10 && joins > asked / 100 && inside > asked / 50);
    assert!(listings > asked / 50);
}
