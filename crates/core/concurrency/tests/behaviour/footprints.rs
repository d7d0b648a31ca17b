//! `graph`: equal to `serial` to the last byte, the kinds of edges, refusals, and what leaves its footprint.

use crate::driver::{Driver, Recorded};
use crate::program::{
    A, B, Formula, Operation, Program, TABLE, Update, column, number, row, row_id, rows, table,
};
use crate::random_histories::{TINY, mixes, pools, random_history};
use concurrency::{BatchResult, TransactionOutcome};
use proptest::prelude::*;
use state::{
    Command, CommandKind, Effects, Footprint, KeyRange, PlainState, Read, Region, RowChange, RowFunction,
    Simulate, Snapshot, StoreError,
};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use types::{Catalog, ColumnSet, Row, SqlError, SqlState};

fn offered(batch: &[Program]) -> Vec<Arc<dyn Simulate>> {
    batch.iter().map(|program| Arc::new(program.clone()) as Arc<dyn Simulate>).collect()
}

/// Runs batches with so many steps each.
fn run(
    id: &str,
    initial: &PlainState,
    batches: &[Vec<Program>],
    steps: u64,
) -> (Vec<BatchResult>, PlainState) {
    let mut driver = Driver::new(id, initial.clone());
    let results = batches.iter().map(|batch| driver.run_limited(offered(batch), steps, false)).collect();
    (results, driver.state)
}

#[test]
fn tiny_histories_are_those_of_serial() {
    let pool = &pools()[1];
    for seed in 0..3_000 {
        let (initial, batches) = random_history(seed, TINY, &[5, 5]);
        for steps in [u64::MAX, seed % 12] {
            let graph = pool.install(|| run("graph", &initial, &batches, steps));
            assert_eq!(graph, run("serial", &initial, &batches, steps), "seed {seed}, {steps} steps");
        }
    }
}

#[test]
fn histories_pass_the_checker() {
    for seed in 0..300 {
        let (initial, batches) = random_history(seed, TINY, &[12, 12]);
        let run = Recorded::run("graph", &initial, &batches);
        let verified = run.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert!(verified.order.is_sorted_by_key(|position| position.batch));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]
    #[test]
    fn results_budget_and_state_are_those_of_serial_for_any_number_of_threads(
        seed in any::<u64>(), mix in mixes(), sizes in prop::collection::vec(0..80usize, 1..4),
        steps in prop_oneof![Just(u64::MAX), 0..150u64],
    ) {
        let (initial, batches) = random_history(seed, mix, &sizes);
        let serial = run("serial", &initial, &batches, steps);
        for pool in pools() {
            let graph = pool.install(|| run("graph", &initial, &batches, steps));
            prop_assert_eq!(&graph, &serial);
        }
    }

    #[test]
    fn every_execution_of_a_program_is_inside_its_footprint(seed in any::<u64>(), mix in mixes()) {
        let (initial, batches) = random_history(seed, mix, &[40]);
        for program in &batches[0] {
            let effects = program.simulate(&initial).unwrap();
            let footprint = program.footprint(&Catalog::default()).unwrap();
            prop_assert!(footprint.covers(&effects), "{program:?}: {footprint:?} and {effects:?}");
        }
    }
}

// ---- edges ----

/// When transactions ran.
#[derive(Default)]
struct Clock {
    now: AtomicU32,
    /// Started and ended, by transaction.
    spans: Mutex<Vec<(usize, u32, u32)>>,
    running: AtomicUsize,
    together: AtomicUsize,
}

/// Touches what it says, slowly, and notes when.
struct Timed {
    number: usize,
    footprint: Footprint,
    clock: Arc<Clock>,
    /// So many wait for each other, if they can meet.
    meet: usize,
}

impl Simulate for Timed {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        let start = self.clock.now.fetch_add(1, Ordering::SeqCst);
        self.clock.running.fetch_add(1, Ordering::SeqCst);
        let since = Instant::now();
        let patience = Duration::from_millis(if self.meet > 1 { 5_000 } else { 2 });
        loop {
            let running = self.clock.running.load(Ordering::SeqCst);
            self.clock.together.fetch_max(running, Ordering::SeqCst);
            let met = self.meet > 1 && self.clock.together.load(Ordering::SeqCst) >= self.meet;
            if met || since.elapsed() > patience {
                break;
            }
            std::thread::yield_now();
        }
        self.clock.running.fetch_sub(1, Ordering::SeqCst);
        let end = self.clock.now.fetch_add(1, Ordering::SeqCst);
        self.clock.spans.lock().unwrap().push((self.number, start, end));
        let (reads, scans, commands) = Default::default();
        Ok(Effects { reads, scans, commands, result: Ok(vec![]), steps: 1, catalog: None })
    }

    fn footprint(&self, _: &Catalog) -> Result<Footprint, SqlError> {
        Ok(self.footprint.clone())
    }
}

fn reads(regions: Vec<Region>) -> Footprint {
    Footprint { reads: regions, writes: vec![] }
}

fn writes(regions: Vec<Region>) -> Footprint {
    Footprint { reads: vec![], writes: regions }
}

fn cell(key: u8, columns: ColumnSet) -> Region {
    Region::row(TABLE, row_id(key).key, columns)
}

fn interval(from: u8, to: u8, columns: ColumnSet) -> Region {
    let range = KeyRange { start: Bound::Included(row_id(from).key), end: Bound::Excluded(row_id(to).key) };
    Region { table: TABLE, range, columns }
}

/// Runs two transactions with these footprints on two threads; whether they ran at once.
fn at_once(first: Footprint, second: Footprint, expected: bool) {
    let clock = Arc::new(Clock::default());
    let meet = if expected { 2 } else { 1 };
    let footprints = [first, second].into_iter().enumerate();
    let transactions = footprints.map(|(number, footprint)| {
        Arc::new(Timed { number, footprint, clock: clock.clone(), meet }) as Arc<dyn Simulate>
    });
    // More transactions than one task takes, so that the two are not in one by chance.
    let mut driver = Driver::new("graph", PlainState::default());
    pools()[1].install(|| driver.run(spread(transactions.collect(), &clock)));
    let mut spans = clock.spans.lock().unwrap().clone();
    spans.retain(|(number, ..)| *number < 2);
    spans.sort_unstable();
    let [(_, _, end), (_, start, _)] = spans.as_slice() else { panic!("both ran: {spans:?}") };
    assert_eq!(start < end, expected, "{spans:?}");
}

/// The first transaction, fifteen that touch nothing and take two milliseconds, and the second.
fn spread(mut two: Vec<Arc<dyn Simulate>>, clock: &Arc<Clock>) -> Vec<Arc<dyn Simulate>> {
    let idle = |number| Timed { number, footprint: Footprint::default(), clock: clock.clone(), meet: 1 };
    let second = two.pop().unwrap();
    two.extend((2..17).map(|number| Arc::new(idle(number)) as Arc<dyn Simulate>));
    two.push(second);
    two
}

#[test]
fn a_reader_waits_for_the_writer_before_it() {
    at_once(writes(vec![cell(1, column(A))]), reads(vec![cell(1, column(A))]), false);
}

#[test]
fn a_writer_waits_for_the_reader_before_it() {
    at_once(reads(vec![cell(1, column(A))]), writes(vec![cell(1, column(A))]), false);
}

#[test]
fn a_writer_waits_for_the_writer_before_it() {
    at_once(writes(vec![cell(1, column(A))]), writes(vec![cell(1, column(A))]), false);
}

#[test]
fn readers_wait_for_nobody() {
    at_once(reads(vec![cell(1, column(A))]), reads(vec![cell(1, column(A))]), true);
}

#[test]
fn other_columns_of_the_row_are_no_conflict() {
    at_once(writes(vec![cell(1, column(A))]), writes(vec![cell(1, column(B))]), true);
    at_once(writes(vec![cell(1, ColumnSet::ALL)]), reads(vec![cell(1, ColumnSet::EXISTS)]), false);
}

#[test]
fn intervals_conflict_where_they_share_a_key() {
    at_once(writes(vec![interval(1, 5, column(A))]), reads(vec![interval(4, 9, column(A))]), false);
    at_once(writes(vec![interval(1, 5, column(A))]), reads(vec![interval(5, 9, column(A))]), true);
    at_once(writes(vec![cell(5, column(A))]), reads(vec![interval(1, 5, column(A))]), true);
    at_once(reads(vec![interval(1, 5, column(A))]), writes(vec![cell(4, column(A))]), false);
}

#[test]
fn two_updates_of_different_columns_at_once_both_count() {
    let update = |ordinal, value| {
        let formula = Formula::Set(value);
        Program(vec![Operation::Update(Update {
            key: 1,
            column: ordinal,
            formula,
            condition: None,
            check: None,
        })])
    };
    let batch: Vec<Program> = (0..200).map(|n| update([A, B][n % 2], n as i64)).collect();
    for pool in pools() {
        let (_, state) =
            pool.install(|| run("graph", &table(&[(1, 7, 7)]), std::slice::from_ref(&batch), u64::MAX));
        assert_eq!(rows(&state), [(1, 198, 199)]);
    }
}

// ---- refusals and what leaves its footprint ----

/// Cannot be analysed.
struct Unknown;

impl Simulate for Unknown {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        panic!("what cannot be analysed does not run")
    }
}

#[test]
fn what_cannot_be_analysed_is_refused_and_the_others_run() {
    let add = Program(vec![Operation::Update(Update {
        key: 1,
        column: A,
        formula: Formula::Add(1),
        condition: None,
        check: None,
    })]);
    let mut driver = Driver::new("graph", table(&[(1, 0, 0)]));
    let transactions = || -> Vec<Arc<dyn Simulate>> {
        vec![Arc::new(add.clone()), Arc::new(Unknown), Arc::new(add.clone())]
    };
    let result = driver.run(transactions());
    let TransactionOutcome::Aborted(error) = &result.outcomes[1] else { panic!("{:?}", result.outcomes[1]) };
    assert_eq!(error.state, SqlState::FEATURE_NOT_SUPPORTED);
    assert_eq!((result.history.serial, result.steps), (vec![0, 2], 2), "it costs nothing");
    assert_eq!(rows(&driver.state), [(1, 2, 0)]);
    let result = driver.run_limited(transactions(), 1, false);
    assert_eq!(result.outcomes[1], TransactionOutcome::OverBudget, "a refusal has its turn like everybody");
}

/// Adds one to a row's `a` and says that it touches another row.
struct Liar;

struct AddOne;

impl RowFunction for AddOne {
    fn apply(&self, row_now: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(row_now
            .map_or(RowChange::Unmatched, |now| RowChange::Put(row(number(now, A) + 1, number(now, B)))))
    }
}

impl Simulate for Liar {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let seen = snapshot.get(TABLE, &row_id(1).key)?.map_or(0, |row| number(&row, A));
        let command = Command {
            row: row_id(1),
            function: Arc::new(AddOne),
            kind: CommandKind::Update { known: vec![] },
            uses: column(A) | ColumnSet::EXISTS,
            writes: column(A),
            guard: None,
            can_fail: false,
            addition: None,
        };
        let reads = vec![Read { row: row_id(1), columns: column(A) | ColumnSet::EXISTS }];
        // What it spends depends on what it sees.
        let steps = 10 + seen as u64;
        let (scans, commands) = (vec![], vec![command]);
        Ok(Effects { reads, scans, commands, result: Ok(vec![]), steps, catalog: None })
    }

    fn footprint(&self, _: &Catalog) -> Result<Footprint, SqlError> {
        let mut footprint = Footprint::default();
        footprint.read(cell(2, ColumnSet::ALL));
        footprint.write(cell(2, ColumnSet::ALL));
        Ok(footprint)
    }
}

#[test]
fn what_leaves_its_footprint_changes_nothing_and_costs_the_same_everywhere() {
    let add = |key| Update { key, column: A, formula: Formula::Add(1), condition: None, check: None };
    for pool in pools() {
        let mut driver = Driver::new("graph", table(&[(1, 5, 0), (2, 0, 0)]));
        let transactions = (0..60).map(|number| match number % 3 {
            0 => Arc::new(Liar) as Arc<dyn Simulate>,
            one_or_two => Arc::new(Program(vec![Operation::Update(add(one_or_two))])),
        });
        let transactions = transactions.collect();
        let result = pool.install(|| driver.run(transactions));
        for (number, outcome) in result.outcomes.iter().enumerate() {
            match outcome {
                TransactionOutcome::Aborted(error) if number % 3 == 0 => {
                    assert_eq!(error.state, SqlState::INTERNAL_ERROR);
                }
                TransactionOutcome::Committed(_) if number % 3 != 0 => {}
                other => panic!("transaction {number}: {other:?}"),
            }
        }
        assert_eq!(rows(&driver.state), [(1, 25, 0), (2, 20, 0)]);
        assert_eq!(result.steps, 20 * 15 + 40, "the liars' steps are those on the batch's snapshot");
    }
}

#[test]
fn scans_see_what_was_inserted_before_them_and_nothing_later() {
    let insert = |key| Program(vec![Operation::Insert(key, 9, 9)]);
    let scan = || Program(vec![Operation::Scan(0, 0)]);
    let batch: Vec<Program> = (0..50u8).flat_map(|key| [insert(key), scan()]).collect();
    let serial = run("serial", &table(&[]), std::slice::from_ref(&batch), u64::MAX);
    for pool in pools() {
        assert_eq!(
            pool.install(|| run("graph", &table(&[]), std::slice::from_ref(&batch), u64::MAX)),
            serial
        );
    }
    let mut count = 0;
    serial.1.scan(TABLE, &KeyRange::ALL, false, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(count, 50);
}
