//! The rules of the protocols that Harmony is compared with (`protocols.md`, section 3), one test each.

use crate::driver::{Driver, Recorded, STEP_BY_STEP};
use crate::program::{
    A, B, Check, Formula, Operation, Program, Update, add, program, read, rows, set, table, update,
};
use concurrency::{BatchResult, BatchStatistics, OnConflict, ProtocolOptions, TransactionOutcome};
use state::{Effects, Simulate, Snapshot, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const XYZ: &[(u8, i64, i64)] = &[(X, 10, 10), (Y, 10, 10), (Z, 10, 10)];

fn options(on_conflict: OnConflict, reordering: bool) -> ProtocolOptions {
    ProtocolOptions { on_conflict, reordering, ..STEP_BY_STEP }
}

/// Runs one batch whose conflicts are given up, and checks it.
fn run(id: &str, reordering: bool, programs: &[Program]) -> BatchResult {
    let options = options(OnConflict::Abort, reordering);
    let run = Recorded::run_with(id, options, &table(XYZ), &[programs.to_vec()]);
    run.check().unwrap();
    run.batches[0].1.clone()
}

fn given_up(result: &BatchResult) -> Vec<usize> {
    let conflict = |number: &usize| result.outcomes[*number] == TransactionOutcome::Conflict;
    (0..result.outcomes.len()).filter(conflict).collect()
}

// ---- Aria ----

#[test]
fn aria_gives_up_who_writes_what_a_smaller_number_writes() {
    let blind = |value| program(&[set(X, A, value)]);
    for reordering in [true, false] {
        let result = run("aria", reordering, &[blind(1), blind(2), program(&[set(X, B, 3)])]);
        assert_eq!(given_up(&result), [1], "another column is another item");
    }
}

#[test]
fn aria_gives_up_raw_together_with_war() {
    let crossed = [program(&[read(X, A), set(Y, A, 1)]), program(&[read(Y, A), set(X, A, 1)])];
    for reordering in [true, false] {
        assert_eq!(given_up(&run("aria", reordering, &crossed)), [1]);
    }
}

#[test]
fn reordering_saves_who_only_has_raw() {
    // 1 read what 0 writes, so it comes before it.
    let programs = [program(&[set(X, A, 1)]), program(&[read(X, A), set(Y, A, 1)])];
    let result = run("aria", true, &programs);
    assert_eq!((given_up(&result), result.history.placed), (vec![], vec![1, 0]));
    let result = run("aria", false, &programs);
    assert_eq!((given_up(&result), result.history.placed), (vec![1], vec![0]));
}

#[test]
fn who_only_has_war_commits_in_any_case() {
    let programs = [program(&[read(X, A), set(Y, A, 1)]), program(&[set(X, A, 1)])];
    for reordering in [true, false] {
        let result = run("aria", reordering, &programs);
        assert_eq!((given_up(&result), result.history.placed), (vec![], vec![0, 1]));
    }
}

#[test]
fn a_chain_of_readers_is_turned_around() {
    // Harmony's rule calls 1 dangerous; Aria's does not, since nobody smaller read what it writes.
    let programs = [
        program(&[set(X, A, 1)]),
        program(&[read(X, A), set(Y, A, 1)]),
        program(&[read(Y, A), set(Z, A, 1)]),
    ];
    let result = run("aria", true, &programs);
    assert_eq!((given_up(&result), result.history.placed), (vec![], vec![2, 1, 0]));
}

#[test]
fn reservations_of_those_that_are_given_up_count() {
    // 1 loses against 0; 2 loses against 1 all the same.
    let programs =
        [program(&[set(X, A, 1)]), program(&[set(X, A, 2), set(Y, A, 2)]), program(&[set(Y, A, 3)])];
    assert_eq!(given_up(&run("aria", true, &programs)), [1, 2]);
}

#[test]
fn who_writes_nothing_commits_always() {
    let check =
        Operation::Update(Update { check: Some(Check::Column(A)), ..update(Z, A, Formula::Add(-50)) });
    let programs = [
        program(&[read(Y, A), set(X, A, 1)]),
        program(&[read(X, A), read(Y, A)]),
        program(&[Operation::Scan(0, 0)]),
        program(&[read(X, A), check]),
    ];
    for (id, reordering) in [("aria", true), ("aria", false), ("ssi", true)] {
        let result = run(id, reordering, &programs);
        assert_eq!(given_up(&result), Vec::<usize>::new());
        assert!(
            matches!(&result.outcomes[3], TransactionOutcome::Aborted(error) if error.message == "check")
        );
        assert_eq!(result.history.placed.last(), Some(&0), "{id}");
    }
}

#[test]
fn phantoms_are_read_by_who_scans() {
    // Each scans, and makes a row that the other would have found.
    let programs = [
        program(&[Operation::Scan(50, 0), Operation::Insert(7, 60, 0)]),
        program(&[Operation::Scan(50, 0), Operation::Insert(8, 60, 0)]),
        program(&[Operation::Scan(90, 0), Operation::Insert(9, 20, 0)]),
    ];
    for id in ["aria", "ssi"] {
        assert_eq!(given_up(&run(id, true, &programs)), [1], "{id}");
    }
}

// ---- SSI ----

#[test]
fn ssi_lets_the_first_writer_win() {
    let programs =
        [program(&[set(X, A, 1)]), program(&[set(X, A, 2), set(Y, A, 2)]), program(&[set(Y, A, 3)])];
    let result = run("ssi", true, &programs);
    assert_eq!(given_up(&result), [1], "2 does not lose against one that did not commit");
}

#[test]
fn near_alone_commits() {
    let programs = [program(&[set(X, A, 1)]), program(&[read(X, A), set(Y, A, 1)])];
    let result = run("ssi", true, &programs);
    assert_eq!((given_up(&result), result.history.placed), (vec![], vec![1, 0]));
}

#[test]
fn near_is_given_up_if_far_has_not_committed() {
    // 2 → 1 → 0.
    let programs = [
        program(&[set(X, A, 1)]),
        program(&[read(X, A), set(Y, A, 1)]),
        program(&[read(Y, A), set(Z, A, 1)]),
    ];
    assert_eq!(given_up(&run("ssi", true, &programs)), [1]);
}

#[test]
fn near_is_given_up_if_far_has_committed() {
    // 0 → 2 → 1.
    let programs = [
        program(&[read(Y, A), set(Z, A, 1)]),
        program(&[set(X, A, 1)]),
        program(&[read(X, A), set(Y, A, 1)]),
    ];
    assert_eq!(given_up(&run("ssi", true, &programs)), [2]);
}

#[test]
fn near_is_given_up_if_far_is_the_one_that_commits() {
    let crossed = [program(&[read(X, A), set(Y, A, 1)]), program(&[read(Y, A), set(X, A, 1)])];
    assert_eq!(given_up(&run("ssi", true, &crossed)), [1]);
}

#[test]
fn far_that_was_given_up_is_no_danger() {
    // 1 loses against 0 as a writer; 1 → 3 → 2 would have been a danger to 3.
    let programs = [
        program(&[set(Z, A, 1)]),
        program(&[read(Y, A), set(Z, A, 2)]),
        program(&[set(X, A, 1)]),
        program(&[read(X, A), set(Y, A, 1)]),
    ];
    assert_eq!(given_up(&run("ssi", true, &programs)), [1]);
}

#[test]
fn edges_forward_are_no_danger() {
    // 0 → 1 → 2: block order itself.
    let programs = [
        program(&[read(Y, A), set(X, A, 1)]),
        program(&[read(Z, A), set(Y, A, 1)]),
        program(&[set(Z, A, 1)]),
    ];
    let result = run("ssi", true, &programs);
    assert_eq!((given_up(&result), result.history.placed), (vec![], vec![0, 1, 2]));
}

// ---- what becomes of conflicts ----

#[test]
fn conflicts_run_again_at_the_end_if_the_charter_says_so() {
    let crossed = [program(&[read(X, A), set(Y, A, 1)]), program(&[Operation::Move((X, A), (Y, A))])];
    for id in ["aria", "ssi"] {
        let run = Recorded::run(id, &table(XYZ), &[crossed.to_vec()]);
        run.check().unwrap();
        let result = &run.batches[0].1;
        assert_eq!((&result.history.placed, &result.history.serial), (&vec![0], &vec![1]));
        assert_eq!(rows(&run.state)[0], (X, 2, 10), "it has seen what 0 wrote");
        assert_eq!((result.statistics.rejected, result.statistics.reexecuted), (1, 1));
    }
}

#[test]
fn a_budget_that_ends_in_the_batch_ends_at_the_same_transaction() {
    let programs = [program(&[add(X, A, 1)]), program(&[add(Y, A, 1)]), program(&[add(Z, A, 1)])];
    for id in ["aria", "ssi"] {
        let mut driver = Driver::new(id, table(XYZ));
        let offered = programs.iter().map(|one| Arc::new(one.clone()) as Arc<dyn Simulate>).collect();
        let result = driver.run_limited(offered, 2, false);
        assert_eq!(result.outcomes[2], TransactionOutcome::OverBudget);
        assert_eq!((rows(&driver.state), result.steps), (vec![(X, 11, 10), (Y, 11, 10), (Z, 10, 10)], 2));
    }
}

// ---- the Hot Key Theorem (Gorenflo, section 4.1) ----

/// How many of these increments of one key commit in one batch.
fn committed(id: &str, increments: &[Program]) -> usize {
    let run = Recorded::run_with(id, options(OnConflict::Abort, true), &table(XYZ), &[increments.to_vec()]);
    run.check().unwrap();
    let outcomes = &run.batches[0].1.outcomes;
    let count = outcomes.iter().filter(|one| matches!(one, TransactionOutcome::Committed(_))).count();
    assert_eq!(rows(&run.state)[0].1, 10 + count as i64, "each of them counts once");
    count
}

#[test]
fn a_hot_key_lets_one_of_a_batch_commit_where_commands_count_as_reads() {
    let increments = vec![program(&[add(X, A, 1)]); 40];
    for id in ["aria", "ssi"] {
        assert_eq!(committed(id, &increments), 1, "{id}");
    }
    assert_eq!(committed("harmony", &increments), 40);
}

#[test]
fn requeued_increments_of_a_hot_key_need_a_batch_each() {
    let increments = vec![program(&[Operation::Move((X, A), (X, A))]); 20];
    for id in ["aria", "ssi"] {
        let options = options(OnConflict::Requeue, true);
        let run = Recorded::run_until_done(id, options, &table(XYZ), std::slice::from_ref(&increments));
        run.check().unwrap();
        assert_eq!((run.batches.len(), rows(&run.state)[0].1), (20, 30), "{id}");
        let executions: u64 = run.results().iter().map(|result| result.statistics.executions).sum();
        assert_eq!(executions, 210, "{id}: 20 + 19 + … + 1");
    }
}

// ---- Block-STM ----

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// The result without the counts, which Block-STM takes of what really happened.
fn uncounted(result: BatchResult) -> BatchResult {
    BatchResult { statistics: BatchStatistics::default(), ..result }
}

#[test]
fn block_stm_is_serial_byte_for_byte_with_every_budget() {
    let program = |i: u8| {
        let check =
            Operation::Update(Update { check: Some(Check::Column(A)), ..update(i % 4, A, Formula::Add(-3)) });
        let found = Operation::Found(None, Some(update(i % 6, B, Formula::Add(1))));
        match i % 5 {
            0 => program(&[Operation::Move((i % 7, A), (i % 3, A)), add(i % 3, B, 1)]),
            1 => program(&[check, found]),
            2 => program(&[Operation::Scan(5, 5), Operation::Insert(i, 9, 9), read(i, A)]),
            3 => program(&[Operation::Delete(i.wrapping_sub(9)), found, Operation::Scan(0, 0)]),
            _ => program(&[add(i % 2, A, 1), Operation::Raise]),
        }
    };
    let initial: Vec<(u8, i64, i64)> = (0..7).map(|key| (key, 6, 0)).collect();
    let run = |id: &str, threads, steps| {
        let programs = (0..150).map(|i| Arc::new(program(i)) as Arc<dyn Simulate>).collect();
        let mut driver = Driver::new(id, table(&initial));
        uncounted(pool(threads).install(|| driver.run_limited(programs, steps, false)))
    };
    for steps in [0, 1, 2, 57, 150, 299, u64::MAX] {
        let serial = run("serial", 1, steps);
        for threads in [1, 2, 4] {
            assert_eq!(run("block-stm", threads, steps), serial, "{threads} threads, {steps} steps");
        }
    }
}

/// Increments X by reading it, and waits the first time until everybody else has begun.
struct Together {
    increment: Program,
    begun: AtomicBool,
    barrier: Arc<Barrier>,
}

impl Simulate for Together {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        let effects = self.increment.simulate(snapshot);
        if !self.begun.swap(true, Ordering::SeqCst) {
            self.barrier.wait();
        }
        effects
    }
}

#[test]
fn a_hot_key_makes_block_stm_execute_again_instead_of_giving_up() {
    let threads = 4;
    let barrier = Arc::new(Barrier::new(threads));
    let together = |_| {
        let increment = program(&[Operation::Move((X, A), (X, A))]);
        Arc::new(Together { increment, begun: AtomicBool::new(false), barrier: barrier.clone() })
            as Arc<dyn Simulate>
    };
    let mut driver = Driver::new("block-stm", table(XYZ));
    let result = pool(threads).install(|| driver.run((0..threads).map(together).collect()));
    assert!(result.outcomes.iter().all(|outcome| matches!(outcome, TransactionOutcome::Committed(_))));
    assert_eq!((rows(&driver.state)[0], result.steps), ((X, 14, 10), 4), "only what counts is charged");
    // All of them have seen the first value, which only the first one may see.
    let BatchStatistics { executions, reexecuted, .. } = result.statistics;
    assert!(executions >= 7 && reexecuted == 3, "{executions} executions, {reexecuted} transactions again");
}

#[test]
fn one_thread_executes_everything_once() {
    let increments = vec![program(&[Operation::Move((X, A), (X, A))]); 40];
    let run = pool(1).install(|| Recorded::run("block-stm", &table(XYZ), &[increments]));
    run.check().unwrap();
    let statistics = run.batches[0].1.statistics;
    assert_eq!((statistics.executions, statistics.reexecuted, rows(&run.state)[0].1), (40, 0, 50));
}

struct Panics;

impl Simulate for Panics {
    fn simulate(&self, _: &dyn Snapshot) -> Result<Effects, StoreError> {
        panic!("a defect in the contract's language");
    }
}

#[test]
fn a_panic_ends_the_batch_and_nobody_waits_for_it() {
    let mut transactions: Vec<Arc<dyn Simulate>> = vec![Arc::new(Panics)];
    transactions.extend((0..50).map(|_| Arc::new(program(&[add(X, A, 1)])) as Arc<dyn Simulate>));
    let mut driver = Driver::new("block-stm", table(XYZ));
    let run = || pool(2).install(|| driver.run(transactions));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
}
