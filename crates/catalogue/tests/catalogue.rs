//! (development harness)
use catalogue::{Catalogue, History, SessionFacts};
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::{Row, Value, format_value};

struct Nothing;
impl History for Nothing {
    fn height(&self) -> u64 { 0 }
    fn blocks(&self, _: RangeInclusive<u64>, _: usize) -> Vec<Row> { Vec::new() }
    fn transactions(&self, _: RangeInclusive<u64>, _: usize) -> Vec<Row> { Vec::new() }
    fn transaction(&self, _: &str) -> Option<Row> { None }
    fn nodes(&self) -> Vec<Row> { Vec::new() }
}

fn ledger(script: &str) -> Arc<types::Catalog> {
    use state::Simulate;
    let mut catalog = Arc::new(types::Catalog::default());
    for statement in script.split(";\n") {
        if statement.trim().is_empty() { continue; }
        let library = Arc::new(sql::Library::new(catalog.clone()).unwrap());
        let context = sql::Context { height: 1, timestamp_ms: 0, index: 0, transaction: Default::default(), step_limit: 1 << 40 };
        let payload = types::Payload::Script { sql: statement.to_string(), parameters: Vec::new() };
        let effects = sql::Invocation::new(library, context, payload).simulate(&state::PlainState::new(catalog.clone()));
        if let Err(error) = &effects.result { println!("SCHEMA {statement}: {error:?}"); }
        if let Some(changed) = effects.catalog { catalog = changed; }
    }
    catalog
}

#[test]
fn try_all() {
    let schema = std::fs::read_to_string(std::env::var("SCHEMA").unwrap()).unwrap();
    let queries = std::fs::read_to_string(std::env::var("QUERIES").unwrap()).unwrap();
    let ledger = ledger(&schema);
    let catalogue = Catalogue::default();
    let facts = SessionFacts { user: "postgres".into(), ..Default::default() };
    let mut bad = 0;
    for (n, sql) in queries.split("\n;;\n").enumerate() {
        let started = std::time::Instant::now();
        let result = catalogue.prepare(&ledger, sql, &facts, &[]).and_then(|query| {
            let parameters: Vec<Value> = query.parameters().iter().map(|_| Value::Null).collect();
            catalogue.run(&ledger, &Nothing, &query, &parameters, 0)
        });
        match result {
            Ok(result) => {
                println!("-- {n} ok {} rows {:?}", result.rows.len(), started.elapsed());
                if std::env::var("SHOW").is_ok() {
                    println!("{}", sql.chars().take(3000).collect::<String>());
                    println!("  [{}]", result.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>().join("|"));
                    for row in result.rows.iter().take(8) {
                        println!("  {}", row.iter().map(|v| format_value(v).unwrap_or("∅".into())).collect::<Vec<_>>().join("|"));
                    }
                }
            }
            Err(error) => {
                bad += 1;
                println!("!! {n} {} {} {:?}\n{}", error.state, error.message, error.position, sql);
            }
        }
    }
    println!("BAD {bad}");
}
