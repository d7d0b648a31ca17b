//! Statement fusion: which idioms become one command, which do not and why, and that both run alike.
//!
//! `docs/fusion.md` lists the tests.

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod idioms;
mod near_misses;

use sql::{CompileOptions, Context, Invocation, Library};
use state::{Effects, PlainState, RowChange, Simulate, Snapshot};
use std::sync::Arc;
use support::{Database, START_MS, STEP_LIMIT};
use types::{Payload, TransactionId, Value};

const TABLES: [&str; 5] = [
    "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint, ceiling bigint, status text)",
    "CREATE TABLE stock (item bigint, depot text, quantity integer NOT NULL, PRIMARY KEY (item, depot))",
    "CREATE TABLE log (line text)",
    "INSERT INTO account VALUES (1, 100, 500, 'open'), (2, 7, NULL, 'closed'), (3, NULL, 10, NULL)",
    "INSERT INTO stock VALUES (1, 'east', 50), (1, 'west', 0), (2, 'east', 3)",
];

/// A database with one procedure.
pub struct Contract {
    /// Compiled with fusion.
    pub fused: Database,
    unfused: Arc<Library>,
    name: String,
}

impl Contract {
    /// `signature`: `name(parameters)`; `body`: from DECLARE or BEGIN on.
    #[track_caller]
    pub fn new(signature: &str, body: &str) -> Contract {
        let mut fused = Database::with(&TABLES);
        let create = format!("CREATE PROCEDURE {signature} LANGUAGE plpgsql AS $$ {body} $$");
        fused.run(&create).unwrap_or_else(|error| panic!("{create}: {error:?}"));
        let options = CompileOptions { fusion: false, ..CompileOptions::default() };
        let unfused = Library::with_options(fused.state.catalog().clone(), options).expect("it compiles");
        let name = signature.split('(').next().expect("a name").to_string();
        Contract { fused, unfused: Arc::new(unfused), name }
    }

    /// What EXPLAIN CALL says.
    pub fn explained(&mut self) -> String {
        let procedure = self.fused.library.catalog().procedures[&self.name].clone();
        let arguments = vec!["NULL"; procedure.parameters.len()].join(", ");
        let rows = self.fused.rows(&format!("EXPLAIN CALL {}({arguments})", self.name));
        rows.into_iter().map(|mut row| row.remove(0)).collect::<Vec<_>>().join("\n")
    }

    fn effects(&self, library: &Arc<Library>, arguments: &[Value]) -> Effects {
        let context = Context {
            height: 7,
            timestamp_ms: START_MS,
            index: 0,
            transaction: TransactionId::default(),
            step_limit: STEP_LIMIT,
        };
        let payload = Payload::Call { procedure: self.name.clone(), arguments: arguments.to_vec() };
        Invocation::new(library.clone(), context, payload)
            .simulate(&self.fused.state)
            .expect("memory can be read")
    }

    /// Runs with and without fusion, on many arguments, and compares results, steps and the rows afterwards.
    #[track_caller]
    pub fn runs_alike(&self) {
        let procedure = &self.fused.library.catalog().procedures[&self.name];
        let inputs = procedure.parameters.iter().filter(|one| one.mode != types::ParameterMode::Out).count();
        let values = [Some(1), Some(2), Some(3), Some(4), Some(60), Some(0), Some(-1), Some(i64::MAX), None];
        let values = values.map(|value| value.map_or(Value::Null, Value::BigInt));
        for number in 0..values.len().pow(inputs as u32) {
            let mut rest = number;
            let arguments: Vec<Value> = (0..inputs)
                .map(|_| {
                    let value = values[rest % values.len()].clone();
                    rest /= values.len();
                    value
                })
                .collect();
            let fused = self.effects(&self.fused.library, &arguments);
            let unfused = self.effects(&self.unfused, &arguments);
            assert_eq!(fused.result, unfused.result, "{arguments:?}");
            assert_eq!(fused.steps, unfused.steps, "{arguments:?}");
            assert_eq!(self.after(&fused), self.after(&unfused), "{arguments:?}");
            let registered = |effects: &Effects| effects.reads.len() + effects.scans.len();
            if fused.result.is_ok() {
                assert!(registered(&fused) <= registered(&unfused), "{arguments:?}");
            }
        }
    }

    fn after(&self, effects: &Effects) -> PlainState {
        let mut state = self.fused.state.clone();
        for command in &effects.commands {
            let current = state.get(command.row.table, &command.row.key);
            let change = command.function.apply(current.as_ref()).expect("as the simulation said");
            if let Some(guard) = command.guard {
                assert_eq!(guard, change != RowChange::Unmatched);
            }
            let value = match change {
                RowChange::Unmatched => continue,
                RowChange::Put(row) => Some(row),
                RowChange::Delete => None,
            };
            state.apply(&state::AfterImage { row: command.row.clone(), value });
        }
        state
    }

    /// The effects of one call on the first state.
    pub fn call(&self, arguments: &[i64]) -> Effects {
        let arguments: Vec<Value> = arguments.iter().copied().map(Value::BigInt).collect();
        self.effects(&self.fused.library, &arguments)
    }
}

/// The procedure reads nothing any more: `avoided` reads went into one command.
#[track_caller]
pub fn fuses(signature: &str, body: &str, avoided: usize) {
    fuses_partly(signature, body, 0, avoided);
}

/// Some reads are avoided, others stay.
#[track_caller]
pub fn fuses_partly(signature: &str, body: &str, registered: usize, avoided: usize) {
    let mut contract = Contract::new(signature, body);
    let explained = contract.explained();
    let summary = format!("Reads registered: {registered}, avoided by fusion: {avoided}");
    assert!(explained.contains("\nFused command: "), "{explained}");
    assert!(explained.ends_with(&summary), "expected {summary}\n{explained}");
    contract.runs_alike();
}

/// Nothing is fused, and EXPLAIN CALL says why.
#[track_caller]
pub fn stays(signature: &str, body: &str, why: &str) {
    let mut contract = Contract::new(signature, body);
    let explained = contract.explained();
    assert!(!explained.contains("Fused"), "{explained}");
    assert!(explained.contains(&format!("  not avoided: {why}")), "expected {why}\n{explained}");
    contract.runs_alike();
}
