//! Small batches under many schedules of their threads, compared with the serial run.

use super::Speculation;
use super::synchronization::pause;
use crate::{Batch, serial};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use state::{
    AfterImage, Command, CommandKind, Effects, KeyRange, PlainState, RowChange, RowFunction, RowId, Simulate,
    Snapshot, StoreError,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use types::{ColumnSet, Key, Row, SqlError, StatementResult, TableId, Value};

const TABLE: TableId = TableId(1);
/// Of one test.
const TIME_MAX: Duration = Duration::from_secs(3);

fn row_id(key: u8) -> RowId {
    RowId { table: TABLE, key: Key::from_bytes(&[key]) }
}

fn value(row: Option<&Row>) -> i32 {
    match row.map(|row| &row[0]) {
        Some(Value::Integer(value)) => *value,
        _ => 0,
    }
}

fn state(rows: &[(u8, i32)]) -> PlainState {
    let mut state = PlainState::default();
    for (key, value) in rows {
        state.apply(&AfterImage { row: row_id(*key), value: Some([Value::Integer(*value)].into()) });
    }
    state
}

/// What a command makes of the number in a row; `None`: it removes the row.
#[derive(Clone, Copy)]
enum Change {
    Add(i32),
    Put(i32),
    Remove,
}

impl RowFunction for Change {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        let put = |value| Ok(RowChange::Put([Value::Integer(value)].into()));
        match *self {
            Change::Add(amount) => put(value(row) + amount),
            Change::Put(value) => put(value),
            Change::Remove => Ok(row.map_or(RowChange::Unmatched, |_| RowChange::Delete)),
        }
    }
}

fn command(key: u8, change: Change) -> Command {
    Command {
        row: row_id(key),
        function: Arc::new(change),
        kind: CommandKind::Update { known: vec![] },
        uses: ColumnSet::ALL,
        writes: ColumnSet::ALL,
        guard: None,
        can_fail: false,
        addition: None,
    }
}

/// Reads through a snapshot and says what to do, and what its client sees.
type Body = fn(&dyn Snapshot) -> (Vec<Command>, Vec<i32>);

struct Contract(Body);

impl Simulate for Contract {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let (commands, seen) = self.0(snapshot);
        let rows = vec![seen.into_iter().map(Value::Integer).collect()];
        let results =
            vec![StatementResult { tag: String::new(), columns: vec![], rows, notices: Vec::new() }];
        let (reads, scans) = Default::default();
        Ok(Effects { reads, scans, commands, result: Ok(results), steps: 1, catalog: None })
    }
}

fn read(snapshot: &dyn Snapshot, key: u8) -> i32 {
    value(snapshot.get(TABLE, &row_id(key).key).unwrap().as_ref())
}

/// Keys and numbers, at most `limit` of them.
fn scan(snapshot: &dyn Snapshot, reverse: bool, limit: usize) -> Vec<i32> {
    let mut seen = Vec::new();
    let scanned = snapshot.scan(TABLE, &KeyRange::ALL, reverse, &mut |key, row| {
        seen.extend([i32::from(key.as_bytes()[0]), value(Some(row))]);
        if seen.len() >= 2 * limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    scanned.unwrap();
    seen
}

fn batch(bodies: &[Body], steps_left: u64) -> Batch {
    let transactions = bodies.iter().map(|body| Arc::new(Contract(*body)) as Arc<dyn Simulate>).collect();
    Batch { height: 1, number: 0, transactions, steps_left, forget: false, oldest_snapshot: 0 }
}

/// Runs the batch once under the schedule that is being tried.
fn compare_with_serial(initial: &[(u8, i32)], bodies: &[Body], threads: usize, steps_left: u64) {
    let (base, batch) = (state(initial), batch(bodies, steps_left));
    let expected = serial::run(&batch, &base).unwrap();
    let speculation = Speculation::new(&batch, &base);
    shuttle::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| speculation.work());
        }
        speculation.work();
    });
    let mut found = speculation.into_result().unwrap();
    assert!(found.statistics.executions >= bodies.len() as u64);
    found.statistics = expected.statistics;
    assert_eq!(found, expected);
}

/// Tries random schedules, half of them with few changes of priority.
fn check(iterations: usize, test: impl Fn() + Clone + Send + Sync + 'static) {
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::default();
        config.max_time = Some(TIME_MAX / 2);
        Runner::new(scheduler, config).run(test.clone());
    };
    run(Box::new(RandomScheduler::new_from_seed(1, iterations)));
    run(Box::new(PctScheduler::new_from_seed(2, 3, iterations)));
}

#[test]
fn a_hot_row_is_counted_once_by_everybody() {
    let increment: Body = |snapshot| {
        let seen = read(snapshot, 0);
        (vec![command(0, Change::Put(seen + 1))], vec![seen])
    };
    check(3_000, move || compare_with_serial(&[(0, 5)], &[increment; 4], 3, u64::MAX));
}

#[test]
fn rows_that_are_written_only_on_a_wrong_state_are_not_there_in_the_end() {
    // Where each writes depends on what the one before wrote.
    let wander: Body = |snapshot| {
        let seen = read(snapshot, 0);
        (vec![command(0, Change::Add(1)), command(10 + seen as u8, Change::Put(seen))], vec![seen])
    };
    let follow: Body = |snapshot| {
        let seen = read(snapshot, 0);
        let found = read(snapshot, 9 + seen as u8);
        (vec![command(20 + found as u8, Change::Add(1))], vec![seen, found])
    };
    check(3_000, move || {
        compare_with_serial(&[(0, 0)], &[wander, follow, wander, follow], 3, u64::MAX);
    });
}

#[test]
fn phantoms_are_found_by_validation() {
    let insert: Body = |snapshot| {
        let seen = scan(snapshot, false, 100);
        (vec![command(seen.len() as u8, Change::Put(1))], seen)
    };
    let remove_last: Body = |snapshot| {
        let seen = scan(snapshot, true, 1);
        (seen.first().map(|key| command(*key as u8, Change::Remove)).into_iter().collect(), seen)
    };
    check(3_000, move || {
        compare_with_serial(&[(4, 1)], &[insert, remove_last, insert, remove_last], 3, u64::MAX);
    });
}

#[test]
fn a_row_does_not_change_under_the_hands_of_a_contract() {
    let write: Body = |_| {
        let row = command(3, Change::Add(1));
        (vec![command(1, Change::Add(1)), row, command(7, Change::Remove)], vec![])
    };
    let look_twice: Body = |snapshot| {
        let (one, before) = (read(snapshot, 3), scan(snapshot, false, 2));
        pause();
        let (two, after) = (read(snapshot, 3), scan(snapshot, false, 2));
        assert_eq!((one, &before), (two, &after), "also on a state that is given up");
        let last = before[before.len() - 2] as u8;
        for key in 0..=last {
            let listed = before.chunks(2).find(|row| row[0] == i32::from(key)).map_or(0, |row| row[1]);
            assert_eq!(read(snapshot, key), listed);
        }
        (vec![command(last, Change::Add(1))], before)
    };
    check(3_000, move || {
        let initial = [(2, 1), (3, 1), (7, 1)];
        compare_with_serial(&initial, &[write, look_twice, write, look_twice], 3, u64::MAX);
    });
}

#[test]
fn nothing_is_done_while_something_falls_back() {
    let increment: Body = |snapshot| {
        let seen = read(snapshot, 0);
        (vec![command(0, Change::Put(seen + 1)), command(seen as u8, Change::Add(1))], vec![seen])
    };
    check(20_000, move || compare_with_serial(&[(0, 5)], &[increment; 2], 3, u64::MAX));
}

#[test]
fn who_is_behind_the_end_of_the_budget_leaves_nothing() {
    let increment: Body = |snapshot| {
        let seen = read(snapshot, 0);
        (vec![command(0, Change::Put(seen + 1)), command(seen as u8, Change::Add(7))], vec![])
    };
    check(2_000, move || compare_with_serial(&[(0, 1)], &[increment; 4], 2, 2));
}
