//! Random histories of transactions: run by a protocol, checked for serializability, and what a serial run makes of them.

use concurrency::checker::{CheckedBatch, Position, RecordingTransaction, check};
use concurrency::{Batch, BatchResult, ProtocolOptions, Snapshots, TransactionOutcome, protocol};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sql::{Context, Invocation, Library};
use state::{AfterImage, Effects, PlainState, Simulate, Snapshot, apply_command};
use std::ops::RangeInclusive;
use std::sync::Arc;
use types::{Catalog, Payload, SqlError, StatementResult, TransactionId};

/// Those that execute after ordering.
pub const PROTOCOLS: [&str; 6] = ["serial", "harmony", "aria", "ssi", "block-stm", "graph"];

/// Batches of transactions. Batch `n` is block `n + 2`; what made the first state was block 1.
pub type History = Vec<Vec<Arc<Payload>>>;

pub type CallResult = Result<Vec<StatementResult>, SqlError>;

pub fn context(height: u64, index: u32) -> Context {
    Context {
        height,
        timestamp_ms: 1_800_000_000_000 + height,
        index,
        transaction: TransactionId(crypto::sha256(&[&height.to_be_bytes(), &index.to_be_bytes()])),
        step_limit: 10_000,
    }
}

pub fn invocation(library: &Arc<Library>, height: u64, index: u32, payload: &Arc<Payload>) -> Invocation {
    Invocation::new(library.clone(), context(height, index), payload.clone())
}

/// A catalog after this schema change.
pub fn changed(catalog: &Arc<Catalog>, sql: &str) -> Arc<Catalog> {
    let library = Arc::new(Library::new(catalog.clone()).expect("a valid catalog"));
    let payload = Arc::new(super::script(sql));
    let effects = invocation(&library, 1, 0, &payload)
        .simulate(&PlainState::new(catalog.clone()))
        .expect("memory can be read");
    effects.catalog.unwrap_or_else(|| panic!("{sql}: {:?}", effects.result))
}

/// What these statements create.
pub fn library(statements: &[&str]) -> Arc<Library> {
    let catalog = statements.iter().fold(Arc::new(Catalog::default()), |catalog, sql| changed(&catalog, sql));
    Arc::new(Library::new(catalog).expect("it compiles"))
}

/// Applies what a transaction did on this state.
pub fn apply(state: &mut PlainState, effects: Effects) -> CallResult {
    let results = effects.result?;
    for command in &effects.commands {
        let before = state.get(command.row.table, &command.row.key);
        let (after, matched) = apply_command(before, command).expect("the simulation succeeded");
        assert!(command.guard.is_none_or(|guard| guard == matched), "{command:?}");
        if matched {
            state.apply(&AfterImage { row: command.row.clone(), value: after });
        }
    }
    Ok(results)
}

/// The state after block 1 with these transactions; those that fail do nothing.
pub fn after(library: &Arc<Library>, payloads: impl IntoIterator<Item = Arc<Payload>>) -> PlainState {
    let mut state = PlainState::new(library.catalog().clone());
    for (index, payload) in (0..).zip(payloads) {
        let effects = invocation(library, 1, index, &payload).simulate(&state).expect("memory can be read");
        _ = apply(&mut state, effects);
    }
    state
}

struct Plain<'a>(&'a PlainState);

impl Snapshots for Plain<'_> {
    fn newest(&self) -> Arc<dyn Snapshot> {
        Arc::new(self.0.clone())
    }
}

/// What a protocol made of a history.
pub struct Ran {
    pub state: PlainState,
    pub results: Vec<BatchResult>,
    /// A serial order with the same results.
    pub order: Vec<Position>,
}

impl Ran {
    pub fn outcome(&self, position: &Position) -> &TransactionOutcome {
        &self.results[position.batch].outcomes[position.transaction as usize]
    }
}

/// Runs a history by a protocol and holds it against the serializability checker.
pub fn run(id: &str, library: &Arc<Library>, initial: &PlainState, history: &History) -> Ran {
    let mut protocol = protocol(id, ProtocolOptions::default()).expect("a known protocol");
    let record = |(batch, payloads): (usize, &Vec<Arc<Payload>>)| -> Vec<Arc<RecordingTransaction>> {
        let height = batch as u64 + 2;
        let one = |(index, payload)| {
            RecordingTransaction::new(Arc::new(invocation(library, height, index, payload)))
        };
        (0..).zip(payloads).map(one).collect()
    };
    let transactions: Vec<Vec<Arc<RecordingTransaction>>> = history.iter().enumerate().map(record).collect();
    let mut state = initial.clone();
    let mut results = Vec::new();
    for (number, transactions) in transactions.iter().enumerate() {
        protocol.offer(Batch {
            height: number as u64 + 2,
            number: 0,
            transactions: transactions.iter().map(|one| one.clone() as Arc<dyn Simulate>).collect(),
            steps_left: u64::MAX,
            forget: false,
            oldest_snapshot: 0,
        });
        // Harmony overlaps two batches, so that it has its results one later.
        while let Some(result) = protocol.poll(&Plain(&state)).expect("memory can be read") {
            result.changes.iter().for_each(|change| state.apply(change));
            results.push(result);
        }
    }
    assert_eq!(results.len(), history.len(), "{id}");
    let unseen = |number: usize| if id == "harmony" { number.min(1) } else { 0 };
    let checked = transactions.iter().zip(&results).enumerate().map(|(number, (transactions, result))| {
        CheckedBatch { transactions, result, unseen: unseen(number), snapshots: None }
    });
    let checked: Vec<CheckedBatch<'_>> = checked.collect();
    let verified = check(initial, &checked).unwrap_or_else(|violation| panic!("{id}: {violation}"));
    assert_eq!(verified.state, state, "{id}");
    Ran { state, results, order: verified.order }
}

/// Runs the transactions on `state` in that serial order: they end as they have `ran`. `library` may be another one than
/// theirs. Each is shown to `seen`, with what it comes to.
pub fn replay(
    ran: &Ran,
    library: &Arc<Library>,
    mut state: PlainState,
    history: &History,
    mut seen: impl FnMut(&Payload, &CallResult),
) -> PlainState {
    for position in &ran.order {
        let payload = &history[position.batch][position.transaction as usize];
        let effects = invocation(library, position.batch as u64 + 2, position.transaction, payload)
            .simulate(&state)
            .expect("memory can be read");
        let result = apply(&mut state, effects);
        seen(payload, &result);
        assert_eq!(*ran.outcome(position), outcome(result), "{payload:?}");
    }
    state
}

pub fn outcome(result: CallResult) -> TransactionOutcome {
    match result {
        Ok(results) => TransactionOutcome::Committed(results),
        Err(error) => TransactionOutcome::Aborted(error),
    }
}

/// A statement with small numbers in the place of `#`.
pub fn numbered(template: &str, random: &mut StdRng, numbers: RangeInclusive<u32>) -> String {
    let number = |character| match character {
        '#' => random.random_range(numbers.clone()).to_string(),
        other => String::from(other),
    };
    template.chars().map(number).collect()
}

/// A random history of three batches with six transactions each.
pub fn random_history(random: &mut StdRng, transaction: &dyn Fn(&mut StdRng) -> Arc<Payload>) -> History {
    (0..3).map(|_| (0..6).map(|_| transaction(random)).collect()).collect()
}

/// Runs a history by a protocol: it is serializable, and ends as a serial run. What each transaction comes to is shown to `seen`.
pub fn run_as_serial(
    id: &str,
    library: &Arc<Library>,
    initial: &PlainState,
    history: &History,
    mut seen: impl FnMut(&CallResult),
) -> PlainState {
    let ran = run(id, library, initial, history);
    let serial = replay(&ran, library, initial.clone(), history, |_, result| seen(result));
    assert_eq!(serial, ran.state, "{id}");
    ran.state
}

/// Runs random histories by every protocol: they end as serial runs. The first state is what some transactions alike have made.
/// `seen` is shown what each transaction comes to, and the place of its protocol among [`PROTOCOLS`].
pub fn run_random_histories(
    library: &Arc<Library>,
    (seeds, before): (u64, usize),
    transaction: impl Fn(&mut StdRng) -> Arc<Payload>,
    mut seen: impl FnMut(usize, &CallResult),
) {
    for seed in 0..seeds {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = after(library, (0..before).map(|_| transaction(&mut random)));
        let history = random_history(&mut random, &transaction);
        for (place, id) in PROTOCOLS.iter().enumerate() {
            run_as_serial(id, library, &initial, &history, |result| seen(place, result));
        }
    }
}

/// The same, where under each protocol more than so many transactions must commit, and more than so many be refused: with too few of
/// one kind the histories say nothing. `is_refusal`: which errors count.
pub fn run_random_histories_with_refusals(
    library: &Arc<Library>,
    histories: (u64, usize),
    transaction: impl Fn(&mut StdRng) -> Arc<Payload>,
    is_refusal: impl Fn(&SqlError) -> bool,
    least: (usize, usize),
) {
    let mut counts = [(0, 0); PROTOCOLS.len()];
    run_random_histories(library, histories, transaction, |place, result| match result {
        Ok(_) => counts[place].0 += 1,
        Err(error) => counts[place].1 += usize::from(is_refusal(error)),
    });
    eprintln!("{PROTOCOLS:?}: {counts:?} committed and refused");
    for (committed, refused) in counts {
        assert!(committed > least.0 && refused > least.1, "{committed} committed, {refused} refused");
    }
}

/// [`run_random_histories`] on pools of so many threads, which come to the same state. The first state is made by `begin`; each last one is shown to
/// `check`. Gives how many transactions were committed under each protocol.
pub fn run_random_histories_on_threads(
    library: &Arc<Library>,
    (seeds, threads): (u64, &[usize]),
    begin: impl Fn(&mut StdRng) -> PlainState,
    transaction: impl Fn(&mut StdRng) -> Arc<Payload>,
    check: impl Fn(&PlainState) + Sync,
) -> [usize; PROTOCOLS.len()] {
    let pool = |threads: &usize| rayon::ThreadPoolBuilder::new().num_threads(*threads).build();
    let pools: Vec<_> = threads.iter().map(|threads| pool(threads).expect("threads")).collect();
    let mut committed = [0; PROTOCOLS.len()];
    for seed in 0..seeds {
        let mut random = StdRng::seed_from_u64(seed);
        let initial = begin(&mut random);
        let history = random_history(&mut random, &transaction);
        for (id, committed) in PROTOCOLS.iter().zip(&mut committed) {
            let on = |pool: &rayon::ThreadPool| {
                let mut count = 0;
                let count_it = |result: &CallResult| count += usize::from(result.is_ok());
                let state = pool.install(|| run_as_serial(id, library, &initial, &history, count_it));
                check(&state);
                (state, count)
            };
            let mut all = pools.iter().map(on);
            let first = all.next().expect("a pool");
            assert!(all.all(|other| other == first), "{id}, seed {seed}: another number of threads");
            *committed += first.1;
        }
    }
    committed
}
