//! Our functions are IMMUTABLE where PostgreSQL 15 says so: what is not must not stand in an index or a generated column.

use crate::postgres::{Answer, Postgres};
use std::collections::BTreeMap;
use types::DataType;

/// What an aggregate makes keys with, under the aggregate's name.
const OTHERS: [&str; 2] = ["json_object_agg", "jsonb_object_agg"];

#[test]
fn functions_are_immutable_where_postgresql_says_so() {
    let postgres = Postgres::with(&[]);
    let names = "SELECT proname, string_agg(DISTINCT provolatile::text, '') FROM pg_proc WHERE pronamespace = \
                 'pg_catalog'::regnamespace GROUP BY 1";
    let Answer::Rows(rows) = postgres.ask(names) else { panic!("it has functions") };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let volatility: BTreeMap<String, String> =
        rows.iter().map(|row| (text(&row[0]), text(&row[1]))).collect();
    let (mut compared, mut wrong) = (0, Vec::new());
    for function in values::functions::all() {
        for name in function.names().iter().filter(|name| !OTHERS.contains(name)) {
            // Of a name that has both, the types of the arguments say which.
            let is_immutable = match volatility.get(*name).map(String::as_str) {
                Some("i") => true,
                Some("s" | "v") => false,
                _ => continue,
            };
            compared += 1;
            if function.is_immutable([DataType::TimestampTz].into_iter()) != is_immutable {
                wrong.push(*name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(compared > 150, "{compared} functions");
}
