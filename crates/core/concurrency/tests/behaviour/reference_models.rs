//! Cases that the reference models of Harmony decided (`tests/data/emit.py`).

use crate::driver::{Driver, Recorded};
use crate::program::{Program, TABLE, parse, row_id, rows, table};
use concurrency::{OnConflict, ProtocolOptions, TransactionOutcome};
use serde::Deserialize;
use serde_json::Value as Json;
use state::{
    Command, CommandKind, Effects, PlainState, Read, RowChange, RowFunction, Simulate, Snapshot, StoreError,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use types::{ColumnSet, Row, SqlError, Value};

/// A history of `harmony_check.py`: key sets read, key sets updated by a command.
#[derive(Deserialize)]
struct History {
    transactions: Vec<Transaction>,
    committed: BTreeSet<u32>,
    order: BTreeMap<u8, Vec<u32>>,
}

#[derive(Clone, Deserialize)]
struct Transaction {
    tid: u32,
    block: u32,
    reads: Vec<u8>,
    updates: Vec<u8>,
}

/// Appends the number of its transaction, so that a row shows in which order it was written.
struct Append(u32);

impl RowFunction for Append {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let text = match row.map(|row| &row[0]) {
            Some(Value::Text(text)) => format!("{text} {}", self.0),
            _ => return Ok(RowChange::Unmatched),
        };
        Ok(RowChange::Put([Value::text(text)].into()))
    }
}

impl Simulate for Transaction {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        let column = ColumnSet::column(0);
        let columns = column | ColumnSet::EXISTS;
        let command = |key: &u8| Command {
            row: row_id(*key),
            function: Arc::new(Append(self.tid)),
            kind: CommandKind::Update { known: vec![] },
            uses: columns,
            writes: column,
            guard: None,
            can_fail: false,
            addition: None,
        };
        Ok(Effects {
            reads: self.reads.iter().map(|key| Read { row: row_id(*key), columns }).collect(),
            scans: vec![],
            commands: self.updates.iter().map(command).collect(),
            result: Ok(vec![]),
            steps: 1,
            catalog: None,
        })
    }
}

fn empty_texts() -> PlainState {
    let mut state = PlainState::default();
    for key in 0..5 {
        let value: Row = [Value::text("")].into();
        state.apply(&state::AfterImage { row: row_id(key), value: Some(value) });
    }
    state
}

/// Runs the first `blocks` blocks and compares who was accepted and in which order the rows were written.
fn compare_decisions(number: usize, history: &History, blocks: u32) {
    let mut driver = Driver::new("harmony", empty_texts());
    let mut order: BTreeMap<u8, Vec<u32>> = (0..5).map(|key| (key, vec![])).collect();
    for block in 1..=blocks {
        let now: Vec<&Transaction> = history.transactions.iter().filter(|one| one.block == block).collect();
        let result =
            driver.run(now.iter().map(|one| Arc::new((*one).clone()) as Arc<dyn Simulate>).collect());
        let tids =
            |numbers: &[u32]| numbers.iter().map(|number| now[*number as usize].tid).collect::<Vec<_>>();
        let accepted: BTreeSet<u32> = tids(&result.history.placed).into_iter().collect();
        let expected = now.iter().map(|one| one.tid).filter(|tid| history.committed.contains(tid)).collect();
        assert_eq!(accepted, expected, "history {number}, block {block}");
        let rejected = tids(&result.history.serial);
        assert_eq!(result.statistics.rejected as usize, rejected.len());
        for (key, order) in &mut order {
            let expected: Vec<u32> =
                history.order[key].iter().copied().filter(|tid| accepted.contains(tid)).collect();
            order.extend(expected);
            // Behind them, those that were rejected, by number.
            let wrote = |tid: &&u32| now.iter().any(|one| one.tid == **tid && one.updates.contains(key));
            order.extend(rejected.iter().filter(wrote));
        }
    }
    for (key, order) in order {
        let text: String = order.iter().map(|tid| format!(" {tid}")).collect();
        let found = driver.state.get(TABLE, &row_id(key).key).unwrap();
        assert_eq!(*found, [Value::text(text)], "history {number}, key {key}");
    }
}

#[test]
fn decisions_equal_those_of_the_reference_model() {
    let histories: Vec<History> = serde_json::from_str(include_str!("../data/harmony_intra.json")).unwrap();
    assert_eq!(histories.len(), 400);
    for (number, history) in histories.iter().enumerate() {
        compare_decisions(number, history, 4);
    }
}

/// With edges to the previous block and conflicts given up, as in the model, nothing else happens than what it says.
#[test]
fn decisions_across_blocks_equal_those_of_the_reference_model() {
    let histories: Vec<History> = serde_json::from_str(include_str!("../data/harmony_inter.json")).unwrap();
    assert_eq!(histories.len(), 400);
    let options =
        ProtocolOptions { inter_block: true, on_conflict: OnConflict::Abort, ..ProtocolOptions::default() };
    for (number, history) in histories.iter().enumerate() {
        let mut driver = Driver::with("harmony", options, empty_texts());
        let blocks: Vec<Vec<&Transaction>> = (1..=4)
            .map(|block| history.transactions.iter().filter(|one| one.block == block).collect())
            .collect();
        let offered = blocks
            .iter()
            .map(|block| block.iter().map(|one| Arc::new((*one).clone()) as Arc<dyn Simulate>).collect());
        let results = driver.run_all(offered.collect());
        let committed = blocks.iter().zip(&results).flat_map(|(block, result)| {
            result.history.placed.iter().map(|number| block[*number as usize].tid)
        });
        assert_eq!(committed.collect::<BTreeSet<u32>>(), history.committed, "history {number}");
        for (key, order) in &history.order {
            let text: String = order.iter().map(|tid| format!(" {tid}")).collect();
            let found = driver.state.get(TABLE, &row_id(*key).key).unwrap();
            assert_eq!(*found, [Value::text(text)], "history {number}, key {key}");
        }
    }
}

/// A history of `value_model.py`.
#[derive(Deserialize)]
struct ValueHistory {
    initial: Vec<(u8, i64, i64)>,
    blocks: Vec<Vec<Receipt>>,
    r#final: Vec<(u8, i64, i64)>,
}

#[derive(Deserialize)]
struct Receipt {
    program: Json,
    executions: u32,
    trace: Option<Vec<Json>>,
    error: Option<String>,
}

/// What a transaction's client sees, as the model writes it. Of an error it sees nothing but the error.
fn receipt(outcome: &TransactionOutcome) -> (Option<Json>, Option<String>) {
    let number = |value: &Value| match value {
        Value::BigInt(value) => Json::from(*value),
        _ => Json::Null,
    };
    match outcome {
        TransactionOutcome::Committed(results) => {
            let traced = |row: &Vec<Value>| match row.as_slice() {
                [Value::Boolean(_), keys @ ..] => keys.iter().map(number).collect(),
                [one] => number(one),
                _ => Json::Null,
            };
            (Some(results[0].rows.iter().map(traced).collect()), None)
        }
        TransactionOutcome::Aborted(error) => (None, Some(error.message.clone())),
        other => panic!("expected an outcome of a run without limits, found {other:?}"),
    }
}

/// The model runs again in waves what we run serially. Where at most one transaction runs again that is the same;
/// where more do, who they are still is.
#[test]
fn programs_end_as_in_the_reference_model() {
    let histories: Vec<ValueHistory> =
        serde_json::from_str(include_str!("../data/value_model.json")).unwrap();
    let mut compared = 0;
    for (number, history) in histories.iter().enumerate() {
        let batches: Vec<Vec<Program>> = history
            .blocks
            .iter()
            .map(|block| block.iter().map(|one| parse(&one.program)).collect())
            .collect();
        let run = Recorded::run("harmony", &table(&history.initial), &batches);
        run.check().unwrap_or_else(|violation| panic!("history {number}: {violation}"));
        let mut same_state = true;
        for (block, result) in history.blocks.iter().zip(run.results()) {
            let again: Vec<u32> =
                (0..).zip(block).filter(|(_, one)| one.executions > 1).map(|(i, _)| i).collect();
            assert_eq!(result.history.serial, again, "history {number}: who runs again");
            if again.len() > 1 {
                same_state = false;
                break;
            }
            for (expected, outcome) in block.iter().zip(&result.outcomes) {
                let (trace, error) = receipt(outcome);
                assert_eq!(error, expected.error, "history {number}");
                if error.is_none() {
                    let expected: Json = expected.trace.iter().flatten().cloned().collect();
                    assert_eq!(trace, Some(expected), "history {number}");
                }
                compared += 1;
            }
        }
        if same_state {
            assert_eq!(rows(&run.state), history.r#final, "history {number}");
        }
    }
    assert!(compared > 3_000, "{compared} receipts compared");
}
