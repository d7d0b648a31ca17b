//! The faster way compared with the definition.

use super::*;
use crate::execution::{Step, step};
use proptest::prelude::*;
use state::{Addition, CommandKind, PlainState, RowChange, RowFunction, RowId};
use std::sync::Arc;
use types::{ColumnSet, Key, SqlState, TableId, Value};

/// What a test's command does to a row of two integers.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Adds to a column, within these bounds.
    Add(u16, i32, i32, i32),
    /// Sets a column if the other one is at least this.
    SetIf(u16, i32, i32),
    /// Sets a column to the other one plus this; cannot fail.
    Copy(u16, i32),
    Insert(i32, i32),
    Delete,
}

impl RowFunction for Change {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let value = |ordinal: u16| match row.map(|row| &row[usize::from(ordinal)]) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        };
        let put = |ordinal: u16, value: Value| {
            let mut values = row.map_or(Vec::new(), |row| row.to_vec());
            values[usize::from(ordinal)] = value;
            Ok(RowChange::Put(values.into()))
        };
        match *self {
            Change::Insert(a, b) if row.is_none() => {
                Ok(RowChange::Put([Value::Integer(a), Value::Integer(b)].into()))
            }
            Change::Insert(..) => Err(SqlError::new(SqlState::UNIQUE_VIOLATION, "there")),
            _ if row.is_none() => Ok(RowChange::Unmatched),
            Change::Delete => Ok(RowChange::Delete),
            Change::Add(ordinal, amount, smallest, largest) => {
                match value(ordinal).map(|value| value + amount) {
                    None => put(ordinal, Value::Null),
                    Some(sum) if (smallest..=largest).contains(&sum) => put(ordinal, Value::Integer(sum)),
                    Some(_) => Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "range")),
                }
            }
            Change::SetIf(ordinal, new, least) => match value(1 - ordinal) {
                Some(other) if other >= least => put(ordinal, Value::Integer(new)),
                _ => Ok(RowChange::Unmatched),
            },
            Change::Copy(ordinal, amount) => put(
                ordinal,
                value(1 - ordinal).map_or(Value::Null, |value| Value::Integer(value % 100 + amount)),
            ),
        }
    }
}

fn row_id(key: u8) -> RowId {
    RowId { table: TableId(1), key: Key::from_bytes(&[key]) }
}

fn command(key: u8, change: Change, guard: Option<bool>) -> Command {
    let column = |ordinal: u16| ColumnSet::column(usize::from(ordinal));
    let (kind, writes, can_fail, addition) = match change {
        Change::Add(ordinal, amount, smallest, largest) => {
            let addition = Addition::new(ordinal, amount.into(), smallest.into(), largest.into());
            (CommandKind::Update { known: vec![] }, column(ordinal), true, Some(addition))
        }
        Change::SetIf(ordinal, new, _) => (
            CommandKind::Update { known: vec![(ordinal, Value::Integer(new))] },
            column(ordinal),
            false,
            None,
        ),
        Change::Copy(ordinal, _) => (CommandKind::Update { known: vec![] }, column(ordinal), false, None),
        Change::Insert(a, b) => {
            (CommandKind::Insert([Value::Integer(a), Value::Integer(b)].into()), ColumnSet::ALL, true, None)
        }
        Change::Delete => (CommandKind::Delete, ColumnSet::ALL, false, None),
    };
    let uses = ColumnSet::ALL;
    Command { row: row_id(key), function: Arc::new(change), kind, uses, writes, guard, can_fail, addition }
}

fn effects(commands: Vec<Command>) -> Option<Effects> {
    let (reads, scans) = (vec![], vec![]);
    Some(Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None })
}

/// The definition: one transaction after the other.
fn definition(effects: &[Option<Effects>], order: &[u32], state: &PlainState) -> Placement {
    let mut after = state.clone();
    let mut verdicts = Vec::new();
    for transaction in order {
        let mut tried = after.clone();
        let mut verdict = Verdict::Applied;
        for command in effects[*transaction as usize].iter().flat_map(|effects| &effects.commands) {
            match step(command, tried.get(command.row.table, &command.row.key).as_ref()) {
                Step::Unchanged => {}
                Step::Changed(value) => tried.apply(&AfterImage { row: command.row.clone(), value }),
                Step::Again => verdict = Verdict::Again,
                Step::Error(error) => verdict = Verdict::Error(Box::new(error)),
            }
            if verdict != Verdict::Applied {
                break;
            }
        }
        if verdict == Verdict::Applied {
            after = tried;
        }
        verdicts.push(verdict);
    }
    let keys = 0..=u8::MAX;
    let changes = keys.filter_map(|key| {
        let row = row_id(key);
        let (was, is) = (state.get(row.table, &row.key), after.get(row.table, &row.key));
        (was != is).then_some(AfterImage { row, value: is })
    });
    Placement { verdicts, changes: changes.collect() }
}

fn placed(effects: &[Option<Effects>], order: &[u32], state: &PlainState) -> Placement {
    place(effects, &WrittenRows::new(effects), order, state, true).unwrap()
}

fn changes() -> impl Strategy<Value = Change> {
    let near = -9..10i32;
    prop_oneof![
        4 => (0..2u16, near.clone()).prop_map(|(ordinal, amount)| Change::Add(ordinal, amount, -20, 20)),
        2 => (0..2u16, near.clone()).prop_map(|(ordinal, amount)| Change::Add(ordinal, amount, -1000, 1000)),
        2 => (0..2u16, near.clone(), near.clone()).prop_map(|(o, new, least)| Change::SetIf(o, new, least)),
        2 => (0..2u16, near.clone()).prop_map(|(ordinal, amount)| Change::Copy(ordinal, amount)),
        1 => (near.clone(), near).prop_map(|(a, b)| Change::Insert(a, b)),
        1 => Just(Change::Delete),
    ]
}

fn commands() -> impl Strategy<Value = Command> {
    let guards = prop_oneof![4 => Just(None), 1 => prop::bool::ANY.prop_map(Some)];
    // Few rows with guards, some without, so that all kinds of rows occur.
    prop_oneof![
        (0..6u8, changes(), guards).prop_map(|(key, change, guard)| command(key, change, guard)),
        (6..9u8, changes()).prop_filter_map("cannot fail", |(key, change)| {
            let command = command(key, change, None);
            (!command.can_fail || command.addition.is_some()).then_some(command)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn placement_equals_the_definition_on_any_number_of_threads(
        initial in prop::collection::vec(prop::option::of((-9..10i32, -9..10i32, prop::bool::weighted(0.1))), 9),
        transactions in prop::collection::vec(prop::collection::vec(commands(), 0..4), 0..14),
        shuffle in any::<u64>(),
    ) {
        let mut state = PlainState::default();
        for (key, row) in initial.iter().enumerate() {
            let values = |(a, b, null): (i32, i32, bool)| -> Row {
                [if null { Value::Null } else { Value::Integer(a) }, Value::Integer(b)].into()
            };
            state.apply(&AfterImage { row: row_id(key as u8), value: row.map(values) });
        }
        let effects: Vec<Option<Effects>> = transactions.into_iter().map(effects).collect();
        let mut order: Vec<u32> = (0..effects.len() as u32).filter(|number| shuffle >> number & 1 == 0).collect();
        order.sort_by_key(|number| (shuffle.rotate_right(*number) % 7, *number));
        let expected = definition(&effects, &order, &state);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let found = pool.install(|| placed(&effects, &order, &state));
            prop_assert_eq!(&found, &expected, "{} threads", threads);
        }
    }
}

fn state(rows: &[(u8, i32)]) -> PlainState {
    let mut state = PlainState::default();
    for (key, value) in rows {
        let row: Row = [Value::Integer(*value), Value::Integer(0)].into();
        state.apply(&AfterImage { row: row_id(*key), value: Some(row) });
    }
    state
}

#[test]
fn judging_guards_row_by_row_would_lose_money() {
    // 0 pays 5 to 1, but has nothing; 1 pays 5 on to 2 out of what it would have got.
    let state = state(&[(0, 0), (1, 0), (2, 0)]);
    let pay = |from: u8, to: u8| {
        let take = command(from, Change::Add(0, -5, 0, 100), None);
        effects(vec![command(to, Change::Add(0, 5, 0, 100), None), take])
    };
    let placement = placed(&[pay(0, 1), pay(1, 2)], &[0, 1], &state);
    let refused = |verdict: &Verdict| matches!(verdict, Verdict::Error(_));
    assert!(placement.verdicts.iter().all(refused), "the second payment has nothing to stand on");
    assert_eq!(placement.changes, vec![]);
}

#[test]
fn steps_of_one_transaction_on_one_row_keep_their_errors() {
    let state = state(&[(0, 5)]);
    let there_and_back = effects(vec![
        command(0, Change::Add(0, -7, 0, 100), None),
        command(0, Change::Add(0, 7, 0, 100), None),
    ]);
    let placement = placed(&[there_and_back], &[0], &state);
    assert!(matches!(placement.verdicts[..], [Verdict::Error(_)]), "not an addition of 0: {placement:?}");
}

#[test]
fn the_first_step_that_fails_decides() {
    let state = state(&[(0, 5), (1, 5)]);
    let guard = command(0, Change::SetIf(0, 1, 3), Some(true));
    let error = command(1, Change::Insert(1, 1), None);
    let placement =
        placed(&[effects(vec![guard.clone(), error.clone()]), effects(vec![error, guard])], &[0, 1], &state);
    assert!(matches!(placement.verdicts[..], [Verdict::Again, Verdict::Error(_)]));
}

#[test]
fn many_additions_are_judged_together_and_written_once() {
    let state = state(&[(0, 0)]);
    let effects: Vec<_> =
        (0..100).map(|_| effects(vec![command(0, Change::Add(0, 1, 0, 100), Some(true))])).collect();
    let order: Vec<u32> = (0..100).collect();
    let rows = WrittenRows::new(&effects);
    let queues = Queues::new(&effects, &rows, &order);
    let row = state.get(TableId(1), &row_id(0).key);
    assert!(fold::cannot_fail(row.as_ref(), queues.of_row(0)), "0 to 100 is in range");
    let placement = placed(&effects, &order, &state);
    assert_eq!(placement, definition(&effects, &order, &state));
    let value: Row = [Value::Integer(100), Value::Integer(0)].into();
    assert_eq!(placement.changes, vec![AfterImage { row: row_id(0), value: Some(value) }]);
}

#[test]
fn a_row_that_comes_out_as_it_was_is_no_change() {
    let state = state(&[(0, 3)]);
    let effects = [
        effects(vec![command(0, Change::Add(0, 1, 0, 9), None)]),
        effects(vec![command(0, Change::Add(0, -1, 0, 9), None), command(1, Change::Insert(1, 1), None)]),
        effects(vec![command(1, Change::Delete, None)]),
    ];
    assert_eq!(placed(&effects, &[0, 1, 2], &state).changes, vec![]);
}
