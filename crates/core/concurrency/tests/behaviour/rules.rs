//! The rules of `protocols.md`, sections 1 and 2, one test each.

use crate::driver::{Driver, Recorded};
use crate::program::{
    A, AtLeast, B, Check, Formula, Operation, Program, Update, add, column, program, read, row, row_id, rows,
    set, table, update,
};
use concurrency::{BatchResult, IDS, ProtocolOptions, TransactionOutcome, UnknownProtocol, protocol};
use state::{
    Command, CommandKind, Effects, KeyRange, PlainState, RowChange, RowFunction, Scan, Simulate, Snapshot,
    StoreError,
};
use std::ops::Bound;
use std::sync::Arc;
use types::{ColumnSet, Key, Row, SqlError, SqlState, Value};

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;

/// Subtracts, if that leaves something that is not negative.
fn pay(key: u8, amount: i64) -> Operation {
    Operation::Update(Update { check: Some(Check::Column(A)), ..update(key, A, Formula::Add(-amount)) })
}

/// Runs one batch with Harmony and checks it.
fn harmony(initial: &[(u8, i64, i64)], programs: &[Program]) -> (BatchResult, Vec<(u8, i64, i64)>) {
    let run = Recorded::run("harmony", &table(initial), &[programs.to_vec()]);
    run.check().unwrap();
    (run.batches[0].1.clone(), rows(&run.state))
}

const XY: &[(u8, i64, i64)] = &[(X, 10, 10), (Y, 10, 10)];

// ---- section 1: what conflicts ----

#[test]
fn two_that_read_what_the_other_writes_cannot_both_be_accepted() {
    let (result, state) =
        harmony(XY, &[program(&[read(X, A), set(Y, A, 1)]), program(&[Operation::Move((X, A), (Y, A))])]);
    assert_eq!((result.history.placed, result.history.serial), (vec![0], vec![1]));
    assert_eq!(state, [(X, 2, 10), (Y, 1, 10)], "the second one has seen what the first one wrote");
}

#[test]
fn a_read_of_one_column_does_not_conflict_with_an_update_of_another() {
    let (result, _) =
        harmony(XY, &[program(&[read(X, A), add(Y, A, 1)]), program(&[read(Y, B), add(X, A, 1)])]);
    assert_eq!(result.history.serial, Vec::<u32>::new());
    let (result, _) =
        harmony(XY, &[program(&[read(X, A), add(Y, A, 1)]), program(&[read(Y, A), add(X, A, 1)])]);
    assert_eq!(result.history.serial, [1]);
}

#[test]
fn updates_by_command_read_nothing() {
    let increments: Vec<Program> = (0..200).map(|_| program(&[add(X, A, 1)])).collect();
    let (result, state) = harmony(XY, &increments);
    assert_eq!(result.statistics.executions, 200);
    assert_eq!(state[0], (X, 210, 10));
}

#[test]
fn what_a_where_and_a_check_use_is_no_read_either() {
    let conditional = Operation::Update(Update {
        condition: Some((B, 0)),
        check: Some(Check::Sum),
        ..update(X, A, Formula::Use(B, 1))
    });
    let (result, _) = harmony(
        XY,
        &[
            program(&[conditional.clone(), add(Y, B, 1)]),
            program(&[conditional, add(X, B, 1)]),
            program(&[add(X, B, 1)]),
        ],
    );
    assert_eq!(result.history.placed, [0, 1, 2]);
}

#[test]
fn a_command_on_no_row_still_stands_at_a_place() {
    let (result, state) = harmony(&[], &[program(&[Operation::Insert(X, 5, 5)]), program(&[add(X, A, 1)])]);
    assert_eq!(result.history.placed, [0, 1]);
    assert_eq!(
        state,
        [(X, 6, 5)],
        "the update matched nothing in its simulation and the new row at its place"
    );
}

#[test]
fn matched_is_a_guard_only_where_somebody_looks_at_it() {
    let looks = Operation::Found(None, Some(update(Y, A, Formula::Add(1))));
    let programs = [program(&[Operation::Insert(X, 5, 5)]), program(&[add(X, A, 1), looks])];
    let (result, state) = harmony(&[(Y, 0, 0)], &programs);
    assert_eq!(result.history.serial, [1], "it saw FOUND as false, and at its place it is true");
    assert_eq!((result.statistics.guards_failed, result.statistics.rejected), (1, 0));
    assert_eq!(state, [(X, 6, 5), (Y, 0, 0)]);
}

#[test]
fn an_error_behind_an_unmatched_where_is_a_guard_that_fails() {
    let conditional = Operation::Update(Update {
        condition: Some((B, 1)),
        check: Some(Check::Column(A)),
        ..update(X, A, Formula::Add(-5))
    });
    let looks = program(&[conditional, Operation::Found(None, None)]);
    let (result, _) = harmony(&[(X, 0, 0)], &[program(&[set(X, B, 1)]), looks, program(&[add(X, A, 5)])]);
    assert_eq!(
        result.history.serial,
        [1],
        "it saw that nothing matched; at its place it would have met the CHECK"
    );
    assert!(matches!(result.outcomes[1], TransactionOutcome::Committed(_)));
}

#[test]
fn an_insert_errs_if_the_row_exists_at_its_place() {
    let insert = program(&[Operation::Insert(X, 1, 1)]);
    let (result, state) = harmony(&[], &[insert.clone(), insert]);
    assert_eq!(result.statistics.reexecuted, 0, "a business abort, nothing to run again");
    assert!(
        matches!(&result.outcomes[1], TransactionOutcome::Aborted(error) if error.state == SqlState::UNIQUE_VIOLATION)
    );
    assert_eq!(state, [(X, 1, 1)]);
}

#[test]
fn a_delete_leaves_nothing_for_those_behind_it() {
    let (result, state) = harmony(XY, &[program(&[Operation::Delete(X)]), program(&[add(X, A, 1)])]);
    assert_eq!((result.history.placed, state), (vec![0, 1], vec![(Y, 10, 10)]));
}

#[test]
fn several_commands_on_one_row_compose_and_keep_their_errors() {
    let there_and_back = program(&[pay(X, 7), add(X, A, 7)]);
    let (result, state) = harmony(XY, &[program(&[add(X, A, -5)]), there_and_back.clone()]);
    assert!(
        matches!(result.outcomes[1], TransactionOutcome::Aborted(_)),
        "5 - 7 is negative, whatever comes then"
    );
    assert_eq!(state[0], (X, 5, 10));
    let (result, _) = harmony(XY, &[there_and_back.clone(), there_and_back]);
    assert!(matches!(result.outcomes[1], TransactionOutcome::Committed(_)));
}

/// T0 scans and writes Y; T1 reads Y and does something to X: T1 runs again if it is in the scan's way.
fn in_the_way_of_a_scan(initial: &[(u8, i64, i64)], least: (i64, i64), operations: &[Operation]) -> bool {
    let scan =
        program(&[Operation::Scan(least.0, least.1), Operation::Update(update(Y, A, Formula::Add(0)))]);
    let other: Vec<Operation> = [read(Y, A)].into_iter().chain(operations.iter().cloned()).collect();
    let (result, _) = harmony(initial, &[scan, program(&other)]);
    result.history.serial == [1]
}

#[test]
fn a_scan_conflicts_with_an_update_of_a_row_in_its_result() {
    assert!(in_the_way_of_a_scan(XY, (5, 5), &[add(X, A, 1)]));
}

#[test]
fn a_scan_conflicts_with_an_update_that_may_bring_a_row_in() {
    assert!(in_the_way_of_a_scan(XY, (50, 0), &[add(X, A, 1)]), "what it adds to is not known");
    assert!(in_the_way_of_a_scan(XY, (50, 0), &[set(X, A, 60)]));
    assert!(!in_the_way_of_a_scan(XY, (50, 0), &[set(X, A, 40)]), "40 is certainly too small");
}

#[test]
fn two_updates_may_make_a_row_match_that_neither_makes_match_alone() {
    // Each leaves the other column too small; only with all other columns unknown is the conflict seen.
    assert!(in_the_way_of_a_scan(XY, (50, 50), &[set(X, A, 60)]));
    assert!(in_the_way_of_a_scan(XY, (50, 50), &[set(X, B, 60)]));
    let both = [program(&[Operation::Scan(50, 50)]), program(&[set(X, A, 60)]), program(&[set(X, B, 60)])];
    let (result, _) = harmony(XY, &both);
    assert_eq!(result.history.placed, [0, 1, 2]);
}

#[test]
fn of_several_updates_of_a_row_perhaps_only_some_match() {
    let sets = |column, value, other, least| {
        Operation::Update(Update {
            condition: Some((other, least)),
            ..update(X, column, Formula::Set(value))
        })
    };
    // Together they leave a = 0; if only the second one matches, X enters the result with its own a.
    let operations = [sets(A, 0, B, 10), sets(B, 60, A, 0)];
    assert!(in_the_way_of_a_scan(&[(X, 55, 10), (Y, 0, 0)], (50, 50), &operations));
}

#[test]
fn an_insert_is_compared_with_its_new_row() {
    let without_x = &[(Y, 10, 10)];
    assert!(in_the_way_of_a_scan(without_x, (20, 0), &[Operation::Insert(X, 20, 0)]));
    assert!(!in_the_way_of_a_scan(without_x, (20, 0), &[Operation::Insert(X, 19, 0)]));
    let changed = [Operation::Insert(X, 0, 0), set(X, A, 20)];
    assert!(in_the_way_of_a_scan(without_x, (20, 0), &changed), "what it makes of its new row counts");
}

#[test]
fn a_delete_is_compared_with_the_result() {
    assert!(in_the_way_of_a_scan(XY, (5, 5), &[Operation::Delete(X)]));
    assert!(!in_the_way_of_a_scan(XY, (20, 20), &[Operation::Delete(X)]));
}

/// A transaction whose effects are given.
struct Given(Effects);

impl Simulate for Given {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        Ok(self.0.clone())
    }
}

fn effects() -> Effects {
    let (reads, scans, commands) = (vec![], vec![], vec![]);
    Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None }
}

/// Adds 1 to `a`.
struct Increment;

impl RowFunction for Increment {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(row.map_or(RowChange::Unmatched, |found| {
            RowChange::Put(row_of(crate::program::number(found, A) + 1, crate::program::number(found, B)))
        }))
    }
}

fn row_of(a: i64, b: i64) -> Row {
    row(a, b)
}

fn increment(key: u8) -> Command {
    Command {
        row: row_id(key),
        function: Arc::new(Increment),
        kind: CommandKind::Update { known: vec![] },
        uses: column(A) | ColumnSet::EXISTS,
        writes: column(A),
        guard: None,
        can_fail: false,
        addition: None,
    }
}

/// Whether the increment of row `key` is in the way of the scan.
fn in_the_way_of(scan: Scan, key: u8) -> bool {
    let scanning = Effects { scans: vec![scan], commands: vec![increment(9)], ..effects() };
    let read = state::Read { row: row_id(9), columns: column(A) | ColumnSet::EXISTS };
    let other = Effects { reads: vec![read], commands: vec![increment(key)], ..effects() };
    let mut driver = Driver::new("harmony", table(&[(1, 0, 0), (2, 0, 0), (3, 0, 0), (9, 0, 0)]));
    let result = driver.run(vec![Arc::new(Given(scanning)), Arc::new(Given(other))]);
    result.history.serial == [1]
}

#[test]
fn only_the_interval_that_was_examined_counts() {
    let scan = Scan {
        table: crate::program::TABLE,
        range: KeyRange {
            start: Bound::Excluded(Key::from_bytes(&[1])),
            end: Bound::Included(Key::from_bytes(&[2])),
        },
        columns: column(A) | column(B) | ColumnSet::EXISTS,
        predicate_columns: column(A),
        predicate: Some(Arc::new(AtLeast(1, 0))),
        result: vec![],
    };
    assert_eq!([1, 2, 3].map(|key| in_the_way_of(scan.clone(), key)), [false, true, false]);
    let backwards =
        Scan { range: KeyRange { start: scan.range.end.clone(), end: scan.range.start.clone() }, ..scan };
    assert_eq!([1, 2, 3].map(|key| in_the_way_of(backwards.clone(), key)), [false; 3], "an empty interval");
}

#[test]
fn of_a_row_in_the_result_only_the_columns_looked_at_count() {
    let scan = |columns| Scan {
        table: crate::program::TABLE,
        range: KeyRange::ALL,
        columns,
        predicate_columns: column(B),
        predicate: Some(Arc::new(AtLeast(i64::MIN, 0))),
        result: [1, 2, 3, 9].map(|key| Key::from_bytes(&[key])).into(),
    };
    assert!(!in_the_way_of(scan(column(B) | ColumnSet::EXISTS), 1));
    assert!(in_the_way_of(scan(column(A) | column(B) | ColumnSet::EXISTS), 1));
}

#[test]
fn a_scan_without_a_condition_sees_every_new_row() {
    let scan = Scan {
        table: crate::program::TABLE,
        range: KeyRange::ALL,
        columns: ColumnSet::EXISTS,
        predicate_columns: ColumnSet::EMPTY,
        predicate: None,
        result: [1, 2, 3, 9].map(|key| Key::from_bytes(&[key])).into(),
    };
    let count = Effects { scans: vec![scan.clone()], commands: vec![increment(9)], ..effects() };
    let insert = program(&[read(9, A), Operation::Insert(4, 0, 0)]);
    let mut driver = Driver::new("harmony", table(&[(1, 0, 0), (2, 0, 0), (3, 0, 0), (9, 0, 0)]));
    assert_eq!(driver.run(vec![Arc::new(Given(count)), Arc::new(insert)]).history.serial, [1]);
    assert!(!in_the_way_of(scan, 7), "an update makes no row");
}

#[test]
fn who_scans_when_too_much_has_been_scanned_runs_again() {
    // 1,000 new rows and 1,300 scans that find nothing: each scan is cheap to execute, and meets every row twice (as a
    // row and as what its writer makes of it). The bound is 2^21.
    let insert = |key: u16| Command {
        row: state::RowId { table: crate::program::TABLE, key: Key::from_bytes(&key.to_be_bytes()) },
        kind: CommandKind::Insert(row_of(0, 0)),
        writes: ColumnSet::ALL,
        ..increment(0)
    };
    let inserts = Effects { commands: (0..1_000).map(insert).collect(), ..effects() };
    let scan = program(&[Operation::Scan(1, 1)]);
    let scans = (0..1_300).map(|_| Arc::new(scan.clone()) as Arc<dyn Simulate>);
    let batch = [Arc::new(Given(inserts)) as Arc<dyn Simulate>].into_iter().chain(scans).collect();
    let result = Driver::new("harmony", table(&[])).run(batch);
    assert_eq!(result.history.serial, (1_050..=1_300).collect::<Vec<u32>>());
    assert!(result.outcomes.iter().all(|outcome| matches!(outcome, TransactionOutcome::Committed(_))));
}

// ---- section 2: who is accepted, and where ----

#[test]
fn a_business_abort_is_validated_as_read_only() {
    // T1 raises because of what it saw of X, which T0 writes; T1 also saw Y, which comes behind it.
    let raise = program(&[read(X, A), Operation::Raise]);
    let (result, _) = harmony(XY, &[program(&[add(X, A, 1)]), raise]);
    assert_eq!(result.history.placed, [1, 0], "it is placed before what it did not see");
    assert!(matches!(&result.outcomes[1], TransactionOutcome::Aborted(error) if error.message == "raise"));
}

#[test]
fn what_the_guards_of_a_failed_simulation_used_counts_as_read() {
    // The simulation ends at the CHECK of X. T0 gives X enough, so T1 must come before T0, which read Y before T2...
    let fails = program(&[pay(X, 11)]);
    let (result, _) = harmony(XY, &[program(&[add(X, A, 5)]), fails]);
    assert_eq!(result.history.placed, [1, 0]);
    assert!(matches!(result.outcomes[1], TransactionOutcome::Aborted(_)));
}

#[test]
fn a_rejected_transaction_counts_like_any_other() {
    // T0 and T1 form a pair of which T1 is rejected; T2 reads what T1 would have written, and something T0 wrote
    // comes into its way only through T1's number.
    let (result, _) = harmony(
        &[(X, 0, 0), (Y, 0, 0), (Z, 0, 0), (3, 0, 0)],
        &[
            program(&[read(X, A), add(Y, A, 1)]),
            program(&[read(Y, A), add(X, A, 1), add(Z, A, 1), read(3, A)]),
            program(&[read(Z, A), add(3, A, 1)]),
        ],
    );
    assert_eq!(result.statistics.rejected, 2, "T2 has min_out 1 and max_in 1 although T1 is rejected");
    assert_eq!(result.history.serial, [1, 2]);
}

#[test]
fn ties_in_placement_go_by_number() {
    // min_out: T0 has 1, its own number plus one; T2 has 1, because it read what T1 writes; T0 read what T2 writes.
    let (result, _) = harmony(
        &[(X, 0, 0), (Y, 0, 0)],
        &[program(&[read(X, A)]), program(&[add(Y, A, 1)]), program(&[read(Y, A), add(X, A, 1)])],
    );
    assert_eq!(result.history.placed, [0, 2, 1]);
    assert_eq!(result.statistics.rejected, 0);
}

#[test]
fn writers_are_placed_behind_those_who_did_not_see_them() {
    let (result, state) = harmony(
        XY,
        &[program(&[set(X, A, 1)]), program(&[Operation::Move((Y, A), (X, A))]), program(&[set(Y, A, 3)])],
    );
    assert_eq!(result.history.placed, [1, 0, 2]);
    assert_eq!(state, [(X, 1, 10), (Y, 3, 10)]);
}

#[test]
fn all_steps_of_a_transaction_apply_or_none() {
    let (result, state) = harmony(
        XY,
        &[
            program(&[pay(X, 8), add(Y, A, 8)]),
            program(&[pay(X, 8), add(Y, A, 8)]),
            program(&[add(Y, A, 100)]),
        ],
    );
    assert!(matches!(&result.outcomes[1], TransactionOutcome::Aborted(error) if error.message == "check"));
    assert_eq!(state, [(X, 2, 10), (Y, 118, 10)], "the second payment's other half is not applied");
}

#[test]
fn judging_guards_row_by_row_would_lose_money() {
    // Each row alone would let the payment through on top of one that never happens.
    let accounts = [(X, 0, 0), (Y, 0, 0), (Z, 0, 0)];
    let send = |from, to| program(&[add(to, A, 5), pay(from, 5)]);
    let (result, state) = harmony(&accounts, &[send(X, Y), send(Y, Z), send(Z, X)]);
    assert!(result.outcomes.iter().all(|outcome| matches!(outcome, TransactionOutcome::Aborted(_))));
    assert_eq!(state, accounts);
}

#[test]
fn the_rejected_run_serially_in_transaction_order_behind_the_others() {
    let swap = |from: u8, to: u8| program(&[Operation::Move((to, A), (from, A))]);
    let (result, state) =
        harmony(XY, &[swap(X, Y), swap(Y, X), swap(X, Y), swap(Y, X), program(&[add(X, A, 100)])]);
    assert_eq!((result.history.placed.clone(), result.history.serial.clone()), (vec![0, 4], vec![1, 2, 3]));
    assert_eq!(state, [(X, 14, 10), (Y, 13, 10)]);
    assert_eq!((result.statistics.executions, result.statistics.reexecuted), (8, 3));
    assert!(result.outcomes.iter().all(|outcome| matches!(outcome, TransactionOutcome::Committed(_))));
}

#[test]
fn nobody_is_given_up_for_a_conflict() {
    let swap = |from: u8, to: u8| program(&[Operation::Move((to, A), (from, A))]);
    let programs: Vec<Program> = (0..60).map(|i| if i % 2 == 0 { swap(X, Y) } else { swap(Y, X) }).collect();
    let (result, _) = harmony(XY, &programs);
    assert!(!result.outcomes.contains(&TransactionOutcome::Conflict));
}

// ---- the budget ----

/// `count` increments of X that cost one step each, and something that runs twice.
fn costly() -> Vec<Arc<dyn Simulate>> {
    let swap = |from: u8, to: u8| program(&[Operation::Move((to, A), (from, A))]);
    let programs = [swap(X, Y), swap(Y, X), program(&[add(X, B, 1)]), program(&[add(Y, B, 1)])];
    programs.into_iter().map(|program| Arc::new(program) as Arc<dyn Simulate>).collect()
}

#[test]
fn every_execution_is_charged_and_what_comes_too_late_is_over_budget() {
    let over = |steps_left, id| {
        let mut driver = Driver::new(id, table(XY));
        let result = driver.run_limited(costly(), steps_left, false);
        let over = |outcome: &TransactionOutcome| *outcome == TransactionOutcome::OverBudget;
        (result.outcomes.iter().map(over).collect::<Vec<_>>(), result.steps, rows(&driver.state))
    };
    let all = vec![(X, 12, 11), (Y, 11, 11)];
    assert_eq!(over(5, "harmony"), (vec![false; 4], 5, all.clone()));
    // The second execution of T1 is the fifth.
    assert_eq!(over(4, "harmony"), (vec![false, true, false, false], 4, vec![(X, 10, 11), (Y, 11, 11)]));
    // T2 and T3 have no part in anything.
    assert_eq!(over(2, "harmony"), (vec![false, true, true, true], 2, vec![(X, 10, 10), (Y, 11, 10)]));
    assert_eq!(over(0, "harmony"), (vec![true; 4], 0, XY.to_vec()));
    assert_eq!(over(4, "serial"), (vec![false; 4], 4, all));
    assert_eq!(over(3, "serial"), (vec![false, false, false, true], 3, vec![(X, 12, 11), (Y, 11, 10)]));
}

#[test]
fn the_end_of_the_budget_is_the_same_for_any_number_of_threads() {
    let swap = |i: u8| program(&[Operation::Move((i % 7, A), (i % 5, A)), add(i % 3, B, 1)]);
    let initial: Vec<(u8, i64, i64)> = (0..7).map(|key| (key, 0, 0)).collect();
    for steps in [0, 1, 100, 333, 500, 640] {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let programs = (0..250).map(|i| Arc::new(swap(i)) as Arc<dyn Simulate>).collect();
            pool.install(|| Driver::new("harmony", table(&initial)).run_limited(programs, steps, false))
        };
        let one = run(1);
        assert!(one.steps <= steps + 1, "a transaction has two steps");
        assert_eq!(one, run(4));
    }
}

// ---- serially at once ----

#[test]
fn a_crowded_batch_makes_the_next_one_run_serially() {
    let options = ProtocolOptions { serial_threshold_percent: 25, ..ProtocolOptions::default() };
    let mut driver = Driver::with("harmony", options, table(XY));
    let mut serial = |forget| {
        let result = driver.run_limited(costly(), u64::MAX, forget);
        result.history.placed.is_empty()
    };
    assert!(!serial(false), "nothing is known yet");
    assert!(serial(false), "one of four ran twice");
    assert!(!serial(false), "nothing ran twice in the batch before");
    assert!(!serial(true), "behind a checkpoint nothing is remembered");
    assert!(serial(false));
    let mut never = Driver::new("harmony", table(XY));
    assert!((0..3).all(|_| !never.run(costly()).history.placed.is_empty()));
}

// ---- the front door ----

#[test]
fn an_unknown_protocol_is_refused_by_name() {
    let refused = protocol("magic", ProtocolOptions::default()).err();
    assert_eq!(refused, Some(UnknownProtocol("magic".into())));
    assert!(refused.unwrap().to_string().contains("`magic`"));
    for id in IDS {
        assert_eq!(protocol(id, ProtocolOptions::default()).unwrap().id(), id);
    }
}

#[test]
fn a_schema_change_among_other_transactions_is_refused() {
    let schema_change = Effects { catalog: Some(Arc::default()), commands: vec![increment(X)], ..effects() };
    for id in IDS {
        let mut driver = Driver::new(id, table(XY));
        let result = driver.run(vec![Arc::new(Given(schema_change.clone()))]);
        assert!(
            matches!(&result.outcomes[0], TransactionOutcome::Aborted(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED)
        );
        assert_eq!(result.changes, vec![]);
    }
}

#[test]
fn an_empty_batch_is_a_batch() {
    for id in IDS {
        let result = Driver::new(id, PlainState::default()).run(vec![]);
        assert_eq!((result.outcomes, result.changes, result.steps), (vec![], vec![], 0));
    }
}

#[test]
fn changes_come_by_table_and_key_and_only_where_something_changed() {
    let programs = [program(&[set(Y, A, 10), add(Z, A, 1)]), program(&[add(X, A, 1)])];
    let initial = [(X, 1, 1), (Y, 10, 1), (Z, 1, 1)];
    for id in IDS {
        let run = Recorded::run(id, &table(&initial), &[programs.to_vec()]);
        let changed: Vec<_> = run.results()[0].changes.iter().map(|change| change.row.clone()).collect();
        assert_eq!(changed, [row_id(X), row_id(Z)]);
    }
    assert_eq!(row(1, 2)[1], Value::BigInt(2));
}
