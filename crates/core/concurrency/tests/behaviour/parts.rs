//! Parts of transactions over several schemas: the cases of the reference model `schemas.py`, and what goes wrong without each
//! rule.
//!
//! `tests/data/schemas.jsonl` has the first 300 seeds, and two in which parts may not overtake one another: nobody knows what the parts
//! may touch. `tests/data/overtaking.jsonl` has 300 of `tests/oracle/overtaking.py`, where that is known. More:
//!
//! ```sh
//! python3 schemas.py --emit 10000 > cases.jsonl
//! python3 overtaking.py --emit 10000 > overtaking.jsonl
//! SCHEMAS_CASES=cases.jsonl OVERTAKING_CASES=overtaking.jsonl cargo test -p concurrency --test behaviour parts
//! ```

use crate::program::{TABLE, row_id};
use concurrency::parts::{
    Decided, Decision, LedgerPosition, NewPart, PartOutcome, PartsBlock, PartsError, PartsExecutor, PartsRule,
};
use serde::Deserialize;
use serde_json::Value as Json;
use state::{
    Command, CommandKind, Effects, Footprint, KeyRange, Overlay, PlainState, Read, Region, RowChange,
    RowFunction, Scan, Simulate, Snapshot, StoreError,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, ColumnSet, Row, SqlError, SqlState, StatementResult, Value};

#[derive(Deserialize)]
pub struct Case {
    seed: u64,
    blocks: Vec<CaseBlock>,
    pub schemas: Vec<CaseSchema>,
    /// What programs may touch can be told before they run.
    #[serde(default)]
    is_foreseen: bool,
}

#[derive(Deserialize)]
struct CaseBlock {
    height: u64,
    decisions: Vec<(u64, bool)>,
    transactions: Vec<CaseTransaction>,
}

#[derive(Deserialize)]
struct CaseTransaction {
    number: u64,
    parts: BTreeMap<String, Vec<Vec<Json>>>,
}

#[derive(Deserialize)]
pub struct CaseSchema {
    schema: u64,
    rows: Vec<(u8, i64)>,
    results: BTreeMap<String, CaseResult>,
    rows_at_the_end: Vec<(u8, i64)>,
}

/// How a part ended, the values that it read, and the height at which it took effect.
type CaseResult = (String, Option<Vec<Option<i64>>>, Option<u64>);

/// A program of the model, on rows of one number.
pub struct ModelProgram {
    pub operations: Vec<Operation>,
    /// What it may touch can be told before it runs.
    pub is_foreseen: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Operation {
    Add(u8, i64),
    Need(u8, i64),
    Is(u8, i64),
    If(u8, u8),
    Delete(u8),
    Sum,
}

impl Operation {
    fn parse(operation: &[Json]) -> Operation {
        let number = |at: usize| operation[at].as_i64().expect("a number");
        let key = |at: usize| number(at) as u8;
        match operation[0].as_str().expect("its name") {
            "add" => Operation::Add(key(1), number(2)),
            "need" => Operation::Need(key(1), number(2)),
            "is" => Operation::Is(key(1), number(2)),
            "if" => Operation::If(key(1), key(2)),
            "delete" => Operation::Delete(key(1)),
            "sum" => Operation::Sum,
            other => panic!("the model has no operation {other}"),
        }
    }
}

/// The row has this value from now on, whatever it was.
struct Put(Option<i64>);

impl RowFunction for Put {
    fn apply(&self, _: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(self.0.map_or(RowChange::Delete, |value| RowChange::Put([Value::BigInt(value)].into())))
    }
}

fn value_of(row: &Row) -> i64 {
    match row[0] {
        Value::BigInt(value) => value,
        ref other => panic!("expected a number, found {other:?}"),
    }
}

struct Run<'a> {
    snapshot: &'a dyn Snapshot,
    state: Overlay<'a>,
    reads: Vec<Read>,
    scans: Vec<Scan>,
    commands: Vec<Command>,
    values: Vec<Value>,
}

impl Run<'_> {
    fn read(&mut self, key: u8) -> Result<Option<i64>, StoreError> {
        self.reads.push(Read { row: row_id(key), columns: ColumnSet::column(0) | ColumnSet::EXISTS });
        Ok(self.state.current(&row_id(key))?.map(|row| value_of(&row)))
    }

    fn write(&mut self, key: u8, value: Option<i64>) -> Result<(), StoreError> {
        let row: Option<Row> = value.map(|value| [Value::BigInt(value)].into());
        self.state.set(row_id(key), row.clone())?;
        // One command per row, as the model has one value.
        self.commands.retain(|command| command.row != row_id(key));
        self.commands.push(Command {
            row: row_id(key),
            function: Arc::new(Put(value)),
            // The model takes every write for one that a sum of all rows must not miss, even where nothing was there to delete.
            kind: CommandKind::Insert(row.unwrap_or_else(|| [Value::Null].into())),
            uses: ColumnSet::EXISTS,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: false,
            addition: None,
        });
        Ok(())
    }

    fn sum(&mut self) -> Result<i64, StoreError> {
        let mut sum = 0;
        self.state.scan(TABLE, &KeyRange::ALL, false, &mut |_, row| {
            sum += value_of(row);
            ControlFlow::Continue(())
        })?;
        let mut result = Vec::new();
        self.snapshot.scan(TABLE, &KeyRange::ALL, false, &mut |key, _| {
            result.push(key.clone());
            ControlFlow::Continue(())
        })?;
        self.scans.push(Scan {
            table: TABLE,
            range: KeyRange::ALL,
            columns: ColumnSet::ALL,
            predicate_columns: ColumnSet::EMPTY,
            predicate: None,
            result,
        });
        Ok(sum)
    }

    /// Whether the program may go on.
    fn step(&mut self, operation: Operation) -> Result<bool, StoreError> {
        match operation {
            Operation::Add(key, amount) => {
                let value = self.read(key)?.unwrap_or(0) + amount;
                self.write(key, Some(value))?;
            }
            Operation::Need(key, least) => return Ok(self.read(key)?.is_some_and(|value| value >= least)),
            Operation::Is(key, expected) => {
                let value = self.read(key)?;
                self.values.push(value.map_or(Value::Null, Value::BigInt));
                return Ok(value == Some(expected));
            }
            Operation::If(key, other) => {
                if let Some(value) = self.read(key)?.filter(|value| value % 2 != 0) {
                    self.write(other, Some(value))?;
                }
            }
            Operation::Delete(key) => {
                self.read(key)?;
                self.write(key, None)?;
            }
            Operation::Sum => {
                let sum = self.sum()?;
                self.values.push(Value::BigInt(sum));
            }
        }
        Ok(true)
    }
}

/// What a failed program has read reaches its client in the error, so that the model's values can be compared.
fn failed(values: &[Value]) -> SqlError {
    SqlError::new(SqlState::RAISE_EXCEPTION, format!("{values:?}"))
}

impl Simulate for ModelProgram {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let (reads, scans, commands, values) = Default::default();
        let mut run = Run { snapshot, state: Overlay::new(snapshot), reads, scans, commands, values };
        let mut ok = true;
        for operation in &self.operations {
            ok = run.step(*operation)?;
            if !ok {
                break;
            }
        }
        let Run { reads, scans, commands, values, .. } = run;
        let result = match ok {
            true => Ok(vec![StatementResult { rows: vec![values], ..StatementResult::default() }]),
            false => Err(failed(&values)),
        };
        Ok(Effects { reads, scans, commands, result, steps: 1, catalog: None })
    }

    fn footprint(&self, _: &Catalog) -> Result<Footprint, SqlError> {
        if !self.is_foreseen {
            return Err(SqlError::unsupported("what this program may touch"));
        }
        let row = |key| Region::row(TABLE, row_id(key).key, ColumnSet::ALL);
        let mut footprint = Footprint::default();
        for operation in &self.operations {
            match *operation {
                Operation::Add(key, _) | Operation::Delete(key) => {
                    footprint.read(row(key));
                    footprint.write(row(key));
                }
                Operation::Need(key, _) | Operation::Is(key, _) => footprint.read(row(key)),
                Operation::If(key, other) => {
                    footprint.read(row(key));
                    footprint.write(row(other));
                }
                Operation::Sum => {
                    footprint.read(Region { table: TABLE, range: KeyRange::ALL, columns: ColumnSet::ALL });
                }
            }
        }
        Ok(footprint)
    }
}

/// How the model writes a result down: how it ended, the values that it read, and the height at which it took effect.
type Ended = (String, Option<String>, Option<u64>);

fn ended(outcome: &PartOutcome, height: u64) -> Ended {
    match outcome {
        PartOutcome::Committed(results) => {
            ("committed".into(), Some(format!("{:?}", results[0].rows[0])), Some(height))
        }
        PartOutcome::Aborted(error) => ("failed".into(), Some(error.message.clone()), Some(height)),
        PartOutcome::Undone { .. } => ("aborted".into(), None, None),
    }
}

/// Goes on from a checkpoint, where one is made after every block.
pub type Resume = fn(PartsExecutor, &PlainState) -> PartsExecutor;

/// What a schema comes to.
struct Replayed {
    ended: BTreeMap<String, Ended>,
    rows: Vec<(u8, i64)>,
}

fn replay(
    case: &Case,
    schema: &CaseSchema,
    resume: Resume,
    mut executor: PartsExecutor,
) -> Result<Replayed, PartsError> {
    let mut state = PlainState::default();
    for (key, value) in &schema.rows {
        state.apply(&state::AfterImage { row: row_id(*key), value: Some([Value::BigInt(*value)].into()) });
    }
    let name = schema.schema.to_string();
    // The model numbers transactions, the ledger has positions.
    let mut numbers = BTreeMap::new();
    let mut ended_parts = BTreeMap::new();
    for block in &case.blocks {
        let decided = |(number, commits): &(u64, bool)| {
            let (transaction, _) = numbers.iter().find(|(_, known)| *known == number)?;
            let decision = if *commits { Decision::Commit } else { Decision::No };
            Some(Decided { transaction: *transaction, decision })
        };
        let decisions = block.decisions.iter().filter_map(decided).collect();
        let mut parts = Vec::new();
        for (index, transaction) in block.transactions.iter().enumerate() {
            let Some(program) = transaction.parts.get(&name) else { continue };
            let position = LedgerPosition { height: block.height, index: index as u32 };
            numbers.insert(position, transaction.number);
            let operations = program.iter().map(|operation| Operation::parse(operation)).collect();
            let part = Arc::new(ModelProgram { operations, is_foreseen: case.is_foreseen });
            parts.push(NewPart { position, part, crossing: transaction.parts.len() > 1, moved: None });
        }
        let block = PartsBlock { height: block.height, decisions, parts, steps: u64::MAX };
        let height = block.height;
        let executed = executor.execute(block, &state)?;
        for (position, outcome) in &executed.outcomes {
            ended_parts.insert(numbers[position].to_string(), ended(outcome, height));
        }
        executed.changes.iter().for_each(|change| state.apply(change));
        executor = resume(executor, &state);
    }
    let rows = state.tables.get(&TABLE).into_iter().flatten();
    let rows = rows.map(|(key, row)| (key.as_bytes()[0], value_of(row))).collect();
    Ok(Replayed { ended: ended_parts, rows })
}

fn said(case: &Case, schema: &CaseSchema) -> String {
    let model = if case.is_foreseen { "overtaking.py" } else { "schemas.py" };
    format!("{model}, seed {}, schema {}", case.seed, schema.schema)
}

/// Where a replay differs from the model.
fn difference(case: &Case, schema: &CaseSchema, resume: Resume) -> Option<String> {
    difference_of(case, schema, resume, PartsExecutor::default())
}

pub fn difference_of(
    case: &Case,
    schema: &CaseSchema,
    resume: Resume,
    executor: PartsExecutor,
) -> Option<String> {
    let replayed = match replay(case, schema, resume, executor) {
        Ok(replayed) => replayed,
        Err(error) => return Some(error.to_string()),
    };
    let expected: BTreeMap<String, Ended> = schema
        .results
        .iter()
        .map(|(number, (how, values, height))| {
            let values = values.as_ref().map(|values| {
                let values: Vec<Value> =
                    values.iter().map(|value| value.map_or(Value::Null, Value::BigInt)).collect();
                format!("{values:?}")
            });
            (number.clone(), (how.clone(), values, *height))
        })
        .collect();
    if replayed.ended != expected {
        return Some(format!("expected {expected:?}, found {:?}", replayed.ended));
    }
    (replayed.rows != schema.rows_at_the_end)
        .then(|| format!("expected rows {:?}, found {:?}", schema.rows_at_the_end, replayed.rows))
}

/// Cases of both models.
fn cases() -> impl Iterator<Item = Case> {
    let read = |variable: &str, small: &str, is_foreseen: bool| -> Vec<Case> {
        let text = std::env::var(variable).map_or_else(
            |_| small.to_string(),
            |path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{variable}: {error}")),
        );
        let case = |line| Case { is_foreseen, ..serde_json::from_str(line).expect("a case of the model") };
        text.lines().map(case).collect()
    };
    let in_order = read("SCHEMAS_CASES", include_str!("../data/schemas.jsonl"), false);
    let overtaking = read("OVERTAKING_CASES", include_str!("../data/overtaking.jsonl"), true);
    in_order.into_iter().chain(overtaking)
}

pub fn as_it_is(executor: PartsExecutor, _: &PlainState) -> PartsExecutor {
    executor
}

/// From a checkpoint that has everything.
pub fn with_what_is_undecided(executor: PartsExecutor, state: &PlainState) -> PartsExecutor {
    let prepared = executor.prepared().map(|(position, part)| (position, part.clone()));
    let waiting = executor.waiting().map(|(position, part, crossing)| (position, part.clone(), crossing));
    PartsExecutor::resume(prepared, waiting, state).expect("memory")
}

/// From one that has the rows alone.
pub fn of_rows_alone(_: PartsExecutor, _: &PlainState) -> PartsExecutor {
    PartsExecutor::default()
}

#[test]
fn every_schema_comes_to_what_the_model_says() {
    let (mut schemas, mut waited) = (0, 0);
    for case in cases() {
        for schema in &case.schemas {
            let found = difference(&case, schema, as_it_is);
            assert_eq!(found, None, "{}", said(&case, schema));
            schemas += 1;
        }
        let late = |block: &CaseBlock| block.decisions.iter().filter(|(_, commits)| *commits).count();
        waited += case.blocks.iter().map(late).sum::<usize>();
    }
    println!("{schemas} schemas, {waited} transactions of several schemas committed");
    assert!(
        schemas > 800 && waited > 200,
        "the cases are what they should be: {schemas} schemas, {waited} decided"
    );
}

#[test]
fn a_checkpoint_needs_what_is_undecided_and_nothing_else() {
    let mut lost = 0;
    for case in cases() {
        for schema in &case.schemas {
            let found = difference(&case, schema, with_what_is_undecided);
            assert_eq!(found, None, "{}", said(&case, schema));
            lost += usize::from(difference(&case, schema, of_rows_alone).is_some());
        }
    }
    assert!(lost > 10, "checkpoints of the rows alone lose what is undecided: {lost}");
}

#[test]
fn without_each_rule_something_goes_wrong() {
    let rules = [PartsRule::Locks, PartsRule::ReadLocks, PartsRule::FirstInFirstOut, PartsRule::Fair];
    let mut wrong = [0; 4];
    for case in cases() {
        for schema in &case.schemas {
            for (rule, wrong) in rules.into_iter().zip(&mut wrong) {
                let executor = PartsExecutor::default().without(rule);
                *wrong += usize::from(difference_of(&case, schema, as_it_is, executor).is_some());
            }
        }
    }
    println!("schemas that come to something else without {rules:?}: {wrong:?}");
    assert!(wrong.iter().all(|wrong| *wrong > 0), "{rules:?}: {wrong:?}");
}
