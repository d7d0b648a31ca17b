//! Execute–order–validate: transactions that were executed on older states, serializable by the checker.

use crate::program::{A, B, Operation, Program, add, program, read, row_id, rows, set, table};
use crate::random_histories::{Mix, random_program};
use concurrency::checker::{CheckedBatch, RecordingTransaction, Violation, check};
use concurrency::endorsed::{Cut, EarlyAbort, Orderer, OrdererOptions, PendingTransaction};
use concurrency::{Batch, BatchResult, Protocol, ProtocolOptions, Snapshots, TransactionOutcome, validation};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{
    Effects, Endorsed, EndorsedForm, PlainState, RowFunction, RowId, Simulate, Snapshot, StoreError,
    endorsed_effects,
};
use std::sync::Arc;
use types::Pipeline;

/// A transaction with the simulation that came with it.
struct EndorsedTransaction {
    recorded: Arc<RecordingTransaction>,
    endorsed: Endorsed,
}

impl Simulate for EndorsedTransaction {
    fn simulate(&self, snapshot: &dyn Snapshot) -> Result<Effects, StoreError> {
        self.recorded.simulate(snapshot)
    }

    fn endorsed(&self) -> Option<&Endorsed> {
        Some(&self.endorsed)
    }
}

pub struct Newest<'a>(pub &'a PlainState);

impl Snapshots for Newest<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.0.clone())
    }
}

/// A ledger that is validated block by block.
pub struct Ledger {
    protocol: Box<dyn Protocol>,
    form: EndorsedForm,
    may_run_again: bool,
    /// After every block, the initial state first.
    pub states: Vec<PlainState>,
    pub blocks: Vec<Block>,
}

pub struct Block {
    pub submitted: Vec<Arc<dyn Simulate>>,
    transactions: Vec<Arc<RecordingTransaction>>,
    snapshots: Vec<usize>,
    result: BatchResult,
}

impl Ledger {
    fn new(id: &str, form: EndorsedForm, initial: PlainState) -> Ledger {
        let protocol =
            validation(id, ProtocolOptions::default(), Pipeline::Serial).expect("a validation protocol");
        Ledger { protocol, form, may_run_again: true, states: vec![initial], blocks: Vec::new() }
    }

    /// Endorses each program on the state that many blocks ago, and validates them as the next block. Who ends with an
    /// error when it is endorsed is not submitted.
    fn block(&mut self, programs: &[(Program, usize)]) -> &BatchResult {
        let height = self.states.len();
        let mut submitted: Vec<Arc<dyn Simulate>> = Vec::new();
        let (mut transactions, mut snapshots) = (Vec::new(), Vec::new());
        for (program, age) in programs {
            let snapshot = height - 1 - age.min(&(height - 1));
            let recorded = RecordingTransaction::new(Arc::new(program.clone()));
            let Ok(effects) = recorded.endorse(&self.states[snapshot], self.form) else { continue };
            let effects = Arc::new(effects);
            let endorsed = Endorsed { snapshot: snapshot as u64, effects, may_run_again: self.may_run_again };
            submitted.push(Arc::new(EndorsedTransaction { recorded: recorded.clone(), endorsed }));
            transactions.push(recorded);
            snapshots.push(snapshot);
        }
        self.protocol.offer(Batch {
            height: height as u64,
            number: 0,
            transactions: submitted.clone(),
            steps_left: u64::MAX,
            forget: false,
            oldest_snapshot: 0,
        });
        let mut state = self.states[height - 1].clone();
        let result = self.protocol.poll(&Newest(&state)).unwrap().expect("a block was offered");
        result.changes.iter().for_each(|change| state.apply(change));
        self.states.push(state);
        self.blocks.push(Block { submitted, transactions, snapshots, result });
        &self.blocks[height - 1].result
    }

    fn check(&self) -> Result<usize, Violation> {
        let blocks = self.blocks.iter().map(|block| CheckedBatch {
            transactions: &block.transactions,
            result: &block.result,
            unseen: 0,
            snapshots: Some(&block.snapshots),
        });
        let verified = check(&self.states[0], &blocks.collect::<Vec<_>>())?;
        assert_eq!(&verified.state, self.states.last().expect("the initial state at least"));
        Ok(verified.edges)
    }

    fn newest(&self) -> Vec<(u8, i64, i64)> {
        rows(self.states.last().expect("the initial state at least"))
    }
}

fn conflicts(result: &BatchResult) -> Vec<usize> {
    let outcomes = result.outcomes.iter().enumerate();
    outcomes.filter(|(_, outcome)| **outcome == TransactionOutcome::Conflict).map(|(at, _)| at).collect()
}

fn fresh(programs: &[&[Operation]]) -> Vec<(Program, usize)> {
    programs.iter().map(|operations| (program(operations), 0)).collect()
}

#[test]
fn the_first_writer_of_what_is_read_makes_the_others_stale() {
    let mut ledger = Ledger::new("occ", EndorsedForm::Writes, table(&[(0, 1, 1), (1, 1, 1)]));
    let block = fresh(&[&[add(0, A, 1)], &[add(0, A, 1)], &[read(0, B), set(1, A, 5)], &[set(0, B, 7)]]);
    assert_eq!(conflicts(ledger.block(&block)), [1], "columns are told apart, and existence is read alone");
    assert_eq!(ledger.newest(), [(0, 2, 7), (1, 5, 1)]);
    ledger.check().expect("serializable");
}

#[test]
fn what_was_read_before_the_last_write_is_stale_however_much_later_it_comes() {
    let mut ledger = Ledger::new("occ", EndorsedForm::Writes, table(&[(0, 1, 1)]));
    for _ in 0..4 {
        ledger.block(&[]);
    }
    ledger.block(&fresh(&[&[add(0, A, 1)]]));
    let old = |age| (program(&[read(0, A)]), age);
    assert_eq!(conflicts(ledger.block(&[old(0), old(1), old(3)])), [1, 2]);
    assert_eq!(conflicts(ledger.block(&[old(1), old(2)])), [1]);
}

#[test]
fn endorsed_additions_on_a_hot_row_are_never_stale() {
    for (form, lost) in [(EndorsedForm::Writes, 9), (EndorsedForm::Commands, 0)] {
        let mut ledger = Ledger::new("occ", form, table(&[(0, 1, 1)]));
        let result = ledger.block(&vec![(program(&[add(0, A, 2)]), 0); 10]);
        assert_eq!(conflicts(result).len(), lost, "{form:?}");
        assert_eq!(ledger.newest()[0].1, 1 + 2 * (10 - lost as i64));
        ledger.check().expect("serializable");
    }
}

#[test]
fn a_row_that_enters_a_scanned_interval_is_a_phantom() {
    let mut ledger = Ledger::new("occ", EndorsedForm::Writes, table(&[(0, 0, 0), (1, 3, 3)]));
    let scan = Operation::Scan(2, 2);
    let block = fresh(&[&[Operation::Insert(2, 9, 9)], &[scan.clone(), set(0, A, 0)], &[scan]]);
    assert_eq!(conflicts(ledger.block(&block)), [1, 2]);
    ledger.check().expect("serializable");
}

#[test]
fn what_is_stale_runs_again_within_its_keys() {
    let initial = table(&[(0, 1, 1), (1, 1, 1)]);
    let mut ledger = Ledger::new("xox", EndorsedForm::Writes, initial.clone());
    let block = vec![(program(&[add(0, A, 1)]), 0); 5];
    let result = ledger.block(&block);
    assert_eq!(conflicts(result), Vec::<usize>::new());
    assert_eq!((result.statistics.executions, result.statistics.reexecuted), (5 + 4, 4));
    assert_eq!(ledger.newest()[0].1, 6);
    // It now finds the row and takes another branch, which writes what nobody endorsed.
    let branch = program(&[
        Operation::Update(crate::program::update(2, A, crate::program::Formula::Set(1))),
        Operation::Found(
            Some(crate::program::update(1, A, crate::program::Formula::Set(8))),
            Some(crate::program::update(0, B, crate::program::Formula::Set(9))),
        ),
    ]);
    let block = [(program(&[Operation::Insert(2, 0, 0)]), 0), (branch.clone(), 0)];
    assert_eq!(conflicts(ledger.block(&block)), [1], "row 1 was not endorsed");
    ledger.check().expect("serializable");

    let mut strict = Ledger::new("xox", EndorsedForm::Writes, initial);
    strict.may_run_again = false;
    assert_eq!(conflicts(strict.block(&vec![(program(&[add(0, A, 1)]), 0); 3])), [1, 2]);
}

#[test]
fn a_stale_reader_that_closes_no_cycle_is_kept_by_the_graph_alone() {
    let initial = table(&[(0, 1, 1), (1, 1, 1)]);
    let block = fresh(&[&[set(0, A, 5)], &[read(0, A), set(1, A, 6)], &[read(1, A), set(0, A, 7)]]);
    let mut occ = Ledger::new("occ", EndorsedForm::Writes, initial.clone());
    assert_eq!(conflicts(occ.block(&block)), [1]);
    let mut sharp = Ledger::new("fabric-sharp", EndorsedForm::Writes, initial);
    // The second comes before the first in a serial order; the third would come before the second and behind it.
    assert_eq!(conflicts(sharp.block(&block)), [2]);
    sharp.check().expect("serializable");
    // Blocks later the same: it read row 0 before the first, and writes what the second read.
    assert_eq!(conflicts(sharp.block(&[(program(&[read(0, A), set(1, B, 1)]), 1)])), Vec::<usize>::new());
    assert_eq!(conflicts(sharp.block(&[(program(&[read(0, A), set(0, A, 1)]), 2)])), [0], "lost update");
    sharp.check().expect("serializable");
}

#[test]
fn the_graph_gives_up_fewer_than_versions_do() {
    let given_up = |id: &str| -> usize {
        let ledgers = (0..60).map(|seed| random_ledger(1_000 + seed, id, EndorsedForm::Writes));
        ledgers.flat_map(|ledger| ledger.blocks).map(|block| conflicts(&block.result).len()).sum()
    };
    let (occ, sharp) = (given_up("occ"), given_up("fabric-sharp"));
    assert!(sharp * 5 < occ * 4, "{sharp} against {occ}");
}

#[test]
fn who_is_too_old_or_from_the_future_or_without_endorsement_does_not_hold() {
    let mut ledger = Ledger::new("occ", EndorsedForm::Writes, table(&[(0, 1, 1)]));
    let blind = program(&[set(0, A, 3)]);
    for _ in 0..300 {
        ledger.block(&[]);
    }
    assert_eq!(
        conflicts(ledger.block(&[(blind.clone(), 255), (blind.clone(), 257), (blind.clone(), 0)])),
        [1]
    );
    let endorse = |snapshot: u64| -> Arc<dyn Simulate> {
        let recorded = RecordingTransaction::new(Arc::new(blind.clone()));
        let effects = recorded.simulate(&ledger.states[0]).unwrap();
        let endorsed = Endorsed { snapshot, effects: Arc::new(effects), may_run_again: false };
        Arc::new(EndorsedTransaction { recorded, endorsed })
    };
    let mut protocol = validation("occ", ProtocolOptions::default(), Pipeline::Serial).expect("known");
    let offer = |protocol: &mut Box<dyn Protocol>, transactions, oldest_snapshot| {
        let (height, number, steps_left, forget) = (10, 0, u64::MAX, false);
        protocol.offer(Batch { height, number, transactions, steps_left, forget, oldest_snapshot });
        protocol.poll(&Newest(&ledger.states[0])).unwrap().expect("a block").outcomes
    };
    let outcomes =
        offer(&mut protocol, vec![endorse(10), endorse(9), endorse(6), Arc::new(blind.clone())], 7);
    assert_eq!(outcomes[0], TransactionOutcome::Conflict, "from the future");
    assert!(matches!(outcomes[1], TransactionOutcome::Committed(_)));
    assert_eq!(outcomes[2], TransactionOutcome::Conflict, "before the oldest state that counts");
    assert!(
        matches!(&outcomes[3], TransactionOutcome::Aborted(error) if error.message.contains("not endorsed"))
    );
}

/// What a fresh orderer makes of effects that were all found on one state.
fn cut(effects: &[Effects], protocol: &str) -> Cut {
    let options = OrdererOptions::of_protocol(protocol);
    let waiting: Vec<PendingTransaction<'_>> =
        effects.iter().map(|effects| PendingTransaction { effects, snapshot: 0 }).collect();
    Orderer::new(options, 8).cut(&waiting, usize::MAX)
}

#[test]
fn whatever_the_orderer_keeps_commits_and_keeps_as_much_as_arrival_does() {
    for protocol in ["fabric++", "fabric-sharp"] {
        whatever_this_orderer_keeps_commits(protocol);
    }
}

fn whatever_this_orderer_keeps_commits(protocol: &str) {
    let (mut kept, mut valid) = (0, 0);
    for seed in 0..400 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mix = random_mix(&mut rng);
        let initial = table(&(0..mix.keys).map(|key| (key, 3, 3)).collect::<Vec<_>>());
        let programs: Vec<Program> = (0..20).map(|_| random_program(&mut rng, mix)).collect();
        let endorsed: Vec<(Program, Effects)> = programs
            .into_iter()
            .filter_map(|program| {
                let recorded = RecordingTransaction::new(Arc::new(program.clone()));
                Some((program, recorded.endorse(&initial, EndorsedForm::Writes).ok()?))
            })
            .collect();
        let effects: Vec<Effects> = endorsed.iter().map(|(_, effects)| effects.clone()).collect();
        let cut = cut(&effects, protocol);
        assert_eq!((cut.order.len() + cut.dropped.len(), cut.taken), (effects.len(), effects.len()));
        let run = |order: &mut dyn Iterator<Item = usize>| {
            let mut ledger = Ledger::new(protocol, EndorsedForm::Writes, initial.clone());
            let block: Vec<(Program, usize)> = order.map(|at| (endorsed[at].0.clone(), 0)).collect();
            let lost = conflicts(ledger.block(&block)).len();
            ledger.check().expect("serializable");
            (block.len() - lost, lost)
        };
        let (committed, lost) = run(&mut cut.order.iter().map(|position| *position as usize));
        assert_eq!(lost, 0, "{protocol}, seed {seed}: {cut:?}");
        kept += committed;
        valid += run(&mut (0..effects.len())).0;
    }
    match protocol {
        // What closes a cycle is given up behind the orderer too.
        "fabric-sharp" => assert_eq!(kept, valid),
        _ => assert!(kept * 20 > valid * 21, "{protocol}: {kept} against {valid}"),
    }
}

#[test]
fn an_orderer_drops_what_is_old_and_cuts_at_its_bounds() {
    let initial = table(&(0..9).map(|key| (key, 1, 1)).collect::<Vec<_>>());
    let endorse = |operations: &[Operation]| {
        let recorded = RecordingTransaction::new(Arc::new(program(operations)));
        recorded.endorse(&initial, EndorsedForm::Writes).expect("no error")
    };
    let (writer, reader) = (endorse(&[set(0, A, 2)]), endorse(&[read(0, A)]));
    let options = OrdererOptions { early_abort: true, unique_rows_max: 3, ..OrdererOptions::FABRIC };
    let mut orderer = Orderer::new(options, 8);
    let at = |effects, snapshot| PendingTransaction { effects, snapshot };
    orderer.validated(5, [at(&writer, 4)]);
    let cut = orderer.cut(&[at(&reader, 4), at(&reader, 5), at(&writer, 4)], 9);
    assert_eq!((cut.order, cut.dropped), (vec![1, 2], vec![(0, EarlyAbort::Stale)]));
    assert!(orderer.drops(&at(&reader, 4)) && !orderer.drops(&at(&reader, 5)));
    let wide = endorse(&[read(1, A), read(2, A), read(3, A)]);
    let cut = orderer.cut(&[at(&reader, 5), at(&wide, 5), at(&reader, 5)], 9);
    assert_eq!((cut.order, cut.taken), (vec![0], 1), "four rows are too many");
    let cut = orderer.cut(&[at(&reader, 5), at(&reader, 5), at(&reader, 5)], 2);
    assert_eq!((cut.order, cut.taken), (vec![0, 1], 2));
}

#[test]
fn random_histories_are_serializable_whatever_their_age_and_form() {
    let pools: Vec<rayon::ThreadPool> =
        [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()).into();
    let (mut committed, mut given_up, mut again) = (0, 0, 0);
    for seed in 0..150 {
        for id in concurrency::VALIDATION_IDS {
            for form in [EndorsedForm::Writes, EndorsedForm::Commands] {
                let ledgers: Vec<Ledger> =
                    pools.iter().map(|pool| pool.install(|| random_ledger(seed, id, form))).collect();
                ledgers[0]
                    .check()
                    .unwrap_or_else(|violation| panic!("{id}, {form:?}, seed {seed}: {violation}"));
                let results = |ledger: &Ledger| -> Vec<BatchResult> {
                    ledger.blocks.iter().map(|block| block.result.clone()).collect()
                };
                assert_eq!(results(&ledgers[0]), results(&ledgers[1]), "{id}, {form:?}, seed {seed}");
                for block in &ledgers[0].blocks {
                    let lost = conflicts(&block.result).len();
                    given_up += lost;
                    committed += block.transactions.len() - lost;
                    again += block.result.statistics.reexecuted;
                }
            }
        }
    }
    assert!(committed > 10_000 && given_up > 2_000 && again > 2_000, "{committed}, {given_up}, {again}");
}

fn random_mix(rng: &mut StdRng) -> Mix {
    Mix {
        keys: rng.random_range(3..14),
        operations: rng.random_range(1..5),
        scans: [0.0, 0.15][rng.random_range(0..2)],
        conditions: 0.2,
        checks: 0.2,
        inserts: [0.0, 0.25][rng.random_range(0..2)],
    }
}

pub fn random_ledger(seed: u64, id: &str, form: EndorsedForm) -> Ledger {
    let mut rng = StdRng::seed_from_u64(seed);
    let mix = random_mix(&mut rng);
    let initial: Vec<(u8, i64, i64)> =
        (0..mix.keys).map(|key| (key, rng.random_range(0..6), rng.random_range(0..6))).collect();
    let mut ledger = Ledger::new(id, form, table(&initial));
    for _ in 0..8 {
        let programs: Vec<(Program, usize)> = (0..rng.random_range(1..12))
            .map(|_| (random_program(&mut rng, mix), [0, 0, 1, 2, 3][rng.random_range(0..5)]))
            .collect();
        ledger.block(&programs);
    }
    ledger
}

#[test]
fn rows_of_far_columns_are_kept_together() {
    // Columns that share a bit of a column set are assigned together, so their writer reads them.
    let wide = |values: i64| -> types::Row { (0..80).map(|_| types::Value::BigInt(values)).collect() };
    let mut state = PlainState::default();
    state.apply(&state::AfterImage { row: row_id(0), value: Some(wide(1)) });
    let RowId { table, key } = row_id(0);
    let write = types::RowWrite::Assign(vec![(70, types::Value::BigInt(5))]);
    let command = state::write_command(&types::EndorsedWrite { table, key, guard: None, write });
    let effects = Effects {
        reads: vec![],
        scans: vec![],
        commands: vec![command],
        result: Ok(vec![]),
        steps: 1,
        catalog: None,
    };
    let endorsed = endorsed_effects(&effects, &state, 0, EndorsedForm::Writes).expect("no error");
    assert!(endorsed.reads[0].columns.contains(types::ColumnSet::column(79)));
    let changed = endorsed.writes[0].write.apply(Some(&wide(2))).expect("it applies");
    let state::RowChange::Put(row) = changed else { panic!("{changed:?}") };
    assert_eq!(
        (&row[70], &row[61], &row[79]),
        (&types::Value::BigInt(5), &types::Value::BigInt(2), &types::Value::BigInt(1))
    );
}
