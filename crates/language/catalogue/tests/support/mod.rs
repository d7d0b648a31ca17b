//! A ledger whose catalogue is asked.

#![allow(dead_code, reason = "each program of tests uses a part")]

use catalogue::{Catalogue, History, PreparedFacts, Reader, SessionFacts, SettingFacts};
use sql::{Context, Invocation, Library};
use state::{PlainState, Simulate};
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::session_format::SessionFormat;
use types::{Catalog, Payload, Row, SqlError, SqlState, StatementResult, TransactionId, Value, format_value};

/// A ledger of as many blocks, each with two transactions.
pub struct Blocks(pub u64);

impl Blocks {
    fn rows(&self, heights: RangeInclusive<u64>, limit: usize, of: impl Fn(u64) -> Vec<Row>) -> Vec<Row> {
        let heights = (*heights.start()).max(1)..=(*heights.end()).min(self.0);
        heights.rev().flat_map(of).take(limit).collect()
    }
}

fn block(height: u64) -> Vec<Row> {
    let mut row = vec![Value::Null; 11];
    row[0] = Value::BigInt(height as i64);
    row[5] = Value::text("org1");
    vec![Arc::from(row)]
}

fn transactions(height: u64) -> Vec<Row> {
    let row = |index: i32| {
        let mut row = vec![Value::Null; 10];
        row[0] = Value::BigInt(height as i64);
        row[1] = Value::Integer(index);
        row[2] = Value::text(id(height, index));
        Arc::from(row)
    };
    vec![row(1), row(0)]
}

pub fn id(height: u64, index: i32) -> String {
    format!("{:064x}", height * 16 + index as u64)
}

impl History for Blocks {
    fn height(&self) -> u64 {
        self.0
    }

    fn blocks(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row> {
        self.rows(heights, limit, block)
    }

    fn transactions(&self, heights: RangeInclusive<u64>, limit: usize) -> Vec<Row> {
        self.rows(heights, limit, transactions)
    }

    fn transaction(&self, wanted: &str) -> Option<Row> {
        let all = self.rows(0..=self.0, usize::MAX, transactions);
        all.into_iter().find(|row| row[2] == Value::text(wanted))
    }

    fn receipt_proof(&self, wanted: &str) -> Result<String, SqlError> {
        match self.transaction(wanted) {
            Some(_) => Ok(format!("{{\"transaction\":\"{wanted}\"}}")),
            None => {
                Err(SqlError::new(SqlState::NO_DATA_FOUND, format!("no receipt of {wanted}")).hint("Wait."))
            }
        }
    }

    fn row_proof(&self, facts: &SessionFacts, table: &str, key: &[String]) -> Result<String, SqlError> {
        match table {
            "nothing" => Err(SqlError::new(SqlState(*b"55000"), "not yet").hint("CHECKPOINT")),
            _ => Ok(format!("{} {table} {key:?}", facts.role)),
        }
    }

    fn databases(&self) -> Vec<Row> {
        Vec::new()
    }

    fn nodes(&self) -> Vec<Row> {
        let mut row = vec![Value::Null; 6];
        row[0] = Value::text("org1");
        vec![Arc::from(row)]
    }
}

/// The catalog that these statements leave.
pub fn ledger(script: &str) -> Arc<Catalog> {
    changed(Catalog::default(), script)
}

pub fn context() -> Context {
    Context {
        height: 1,
        timestamp_ms: 0,
        index: 0,
        transaction: TransactionId::default(),
        step_limit: u64::MAX,
    }
}

pub fn changed(catalog: Catalog, script: &str) -> Arc<Catalog> {
    let mut catalog = Arc::new(catalog);
    for statement in script.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        let library = Arc::new(Library::new(catalog.clone()).expect("a library"));
        let context = context();
        let payload = Payload::Script { sql: statement.to_string(), parameters: Vec::new() };
        let effects = Invocation::new(library, context, payload)
            .simulate(&PlainState::new(catalog.clone()))
            .expect("memory can be read");
        effects.result.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
        catalog = effects.catalog.expect("a schema change");
    }
    catalog
}

/// Two settings of a session.
fn settings() -> Vec<SettingFacts> {
    let application = SettingFacts {
        name: "application_name".into(),
        setting: "test".to_string(),
        shown: "test".to_string(),
        vartype: "string",
        is_listed: true,
        ..SettingFacts::default()
    };
    let work_mem = SettingFacts {
        name: "work_mem".into(),
        setting: "4096".to_string(),
        shown: "4MB".to_string(),
        unit: Some("kB"),
        vartype: "integer",
        least: "64".to_string(),
        is_listed: true,
        ..SettingFacts::default()
    };
    let superuser = SettingFacts {
        name: "is_superuser".into(),
        setting: "on".to_string(),
        shown: "on".to_string(),
        ..SettingFacts::default()
    };
    vec![application, work_mem, superuser]
}

pub struct Asked {
    pub ledger: Arc<Catalog>,
    pub catalogue: Catalogue,
    pub facts: SessionFacts,
}

impl Asked {
    pub fn new() -> Asked {
        let facts = SessionFacts {
            role: String::new(),
            search_path: vec!["public".to_string()],
            user: "postgres".to_string(),
            process: 7,
            settings: settings(),
            format: SessionFormat::default(),
            server_version: "15.0".to_string(),
            listening: Vec::new(),
            advisory_locks: Vec::new(),
            prepared: vec![PreparedFacts {
                name: "p".to_string(),
                statement: "PREPARE p(int) AS SELECT $1".into(),
                prepared_at: 86_400_000_000,
                parameter_types: vec![23],
                from_sql: true,
            }],
        };
        Asked { ledger: ledger(include_str!("../schema.sql")), catalogue: Catalogue::default(), facts }
    }

    pub fn ask(&self, sql: &str) -> Result<StatementResult, SqlError> {
        let query = self.catalogue.prepare(&self.ledger, sql, &self.facts, &[])?;
        let parameters = vec![Value::Null; query.parameters().len()];
        self.catalogue.run(&self.ledger, &Blocks(1_000), &query, &parameters, &Reader::default())
    }

    /// Rows as psql prints them without alignment.
    pub fn answer(&self, sql: &str) -> String {
        let result = self.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let value = |value: &Value| match value {
            Value::Boolean(value) => if *value { "t" } else { "f" }.to_string(),
            other => format_value(other).unwrap_or_else(|| "NULL".to_string()),
        };
        let row = |row: &Vec<Value>| row.iter().map(value).collect::<Vec<String>>().join("|") + "\n";
        result.rows.iter().map(row).collect()
    }
}

pub fn assert_answers(asked: &Asked, answers: &str) {
    let mut different = String::new();
    for block in answers.split("\n\n") {
        let (sql, expected) = block.split_once("\n----\n").expect("a query and its answer");
        let found = match asked.ask(sql) {
            Ok(_) => asked.answer(sql),
            Err(error) => format!("{error:?}"),
        };
        if found.trim_end() != expected.trim_end() {
            different += &format!("{sql}\nexpected:\n{}\nfound:\n{found}\n", expected.trim_end());
        }
    }
    assert!(different.is_empty(), "{different}");
}
