//! Which transactions of a block run where: those that touch what one holder has run there; all others here, with every
//! transaction that they could meet.
//!
//! ```text
//!  footprints ──▶ which nodes hold what it touches ──┬─ one holder, and meets nobody who runs here ──▶ there
//!                                                    └─ else ─────────────────────────────────────────▶ here
//! ```
//!
//! Two transactions meet where they touch a row, or an interval, which one of them writes; and whoever meets somebody belongs with
//! all whom that one meets. What a batch comes to depends on edges between transactions that meet, and on nothing else
//! (`protocols.md`, sections 2 and 3). So what runs in several places comes to the same as in one.

use crate::messages::{SentResult, SentRun, SentTransaction};
use crate::placement::Places;
use crate::remote::Remote;
use crate::store::SharedStore;
use crate::stores::SharedStores;
use concurrency::BatchResult;
use engine::{BatchOfRun, Elsewhere, RunOfBatches, Split, SplitRuns};
use parking_lot::Mutex;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use state::{Footprint, KeyRange, Region, StoreError};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use types::{Key, SqlError, TableId};

/// Pairs of an interval and a key, or of two intervals, that are looked at for one run. Where there are more, all of it runs here.
const PAIRS_MAX: usize = 2_000_000;
/// Blocks that are not split behind one that has spent too many steps: more of its kind may come.
const CAREFUL_BLOCKS: u64 = 1_000;

/// Splits blocks by where the rows stand that their transactions touch.
pub struct Splitter {
    stores: Arc<SharedStores>,
    /// Blocks of these heights are not split: the first one, or what came of it there, is why.
    careful: Arc<Mutex<RangeInclusive<u64>>>,
    counts: Counts,
    /// Who meets a transaction that runs here runs here, too: off in tests alone.
    follows_meetings: bool,
}

/// What a splitter has done since the process began.
#[derive(Default)]
struct Counts {
    there: AtomicU64,
    here: AtomicU64,
}

impl Splitter {
    /// For engines on these stores.
    pub fn new(stores: Arc<SharedStores>) -> Splitter {
        let careful = Arc::new(Mutex::new(0..=0));
        Splitter { stores, careful, counts: Counts::default(), follows_meetings: true }
    }

    /// The same without the rule that transactions which meet run in one place: for tests alone.
    #[must_use]
    pub fn without_meetings(self) -> Splitter {
        Splitter { follows_meetings: false, ..self }
    }

    /// Transactions that ran at holders, and here.
    pub fn counts(&self) -> (u64, u64) {
        (self.counts.there.load(Ordering::Relaxed), self.counts.here.load(Ordering::Relaxed))
    }

    fn all_here(&self, run: &RunOfBatches<'_>) -> Split {
        let all = |batch: &BatchOfRun| (0..batch.positions.len() as u32).collect::<Vec<_>>();
        let here: Vec<Vec<u32>> = run.batches.iter().map(all).collect();
        self.counts.here.fetch_add(here.iter().map(Vec::len).sum::<usize>() as u64, Ordering::Relaxed);
        Split { here, elsewhere: None, here_waits: false }
    }
}

impl SplitRuns for Splitter {
    fn split(&self, run: &RunOfBatches<'_>) -> Result<Split, StoreError> {
        let Some(store) = self.stores.newest_shared() else { return Ok(self.all_here(run)) };
        let places = store.places();
        if places.is_empty() || self.careful.lock().contains(&run.block.header.height) {
            return Ok(self.all_here(run));
        }
        let catalog = run.library.catalog();
        let transactions: Vec<_> = run.batches.iter().flat_map(|batch| &batch.transactions).collect();
        let footprints: Vec<Result<Footprint, SqlError>> =
            transactions.par_iter().map(|transaction| transaction.footprint(catalog)).collect();
        let Some(sides) = sides(&footprints, &places, self.follows_meetings) else {
            return Ok(self.all_here(run));
        };
        let mut here: Vec<Vec<u32>> = Vec::new();
        let holders = store.remotes().len();
        let mut sent: Vec<Vec<Vec<SentTransaction>>> = (0..holders).map(|_| Vec::new()).collect();
        let mut there: Vec<Vec<Vec<u32>>> = vec![Vec::new(); holders];
        let (mut next, mut here_waits) = (0, false);
        for BatchOfRun { positions, .. } in &run.batches {
            let mut of_here = Vec::new();
            sent.iter_mut().for_each(|sent| sent.push(Vec::new()));
            there.iter_mut().for_each(|there| there.push(Vec::new()));
            for (number, position) in (0..).zip(positions) {
                match sides[next] {
                    Side::Holder(holder) => {
                        let transaction = run.transaction(*position);
                        let (by, payload) = (&transaction.principal, &transaction.payload);
                        let ids = (transaction.id, transaction.client);
                        let one = SentTransaction::new(*position, ids, by, payload);
                        if let (Some(sent), Some(there)) = (sent[holder].last_mut(), there[holder].last_mut())
                        {
                            sent.push(one);
                            there.push(number);
                        }
                    }
                    Side::Here { reads_there } => {
                        here_waits |= reads_there;
                        of_here.push(number);
                    }
                }
                next += 1;
            }
            here.push(of_here);
        }
        let of_here: usize = here.iter().map(Vec::len).sum();
        self.counts.here.fetch_add(of_here as u64, Ordering::Relaxed);
        self.counts.there.fetch_add((next - of_here) as u64, Ordering::Relaxed);
        let mut running = Vec::new();
        for (holder, (batches, there)) in sent.into_iter().zip(there).enumerate() {
            if batches.iter().all(Vec::is_empty) {
                continue;
            }
            let (header, first) = (run.block.header.clone(), run.first);
            let (step_limit, steps_left) = (run.step_limit, run.steps_left);
            let sent = SentRun { header, step_limit, steps_left, first, batches };
            running.push(Running::begin(store.remotes().clone(), holder, sent, there)?);
        }
        let elsewhere: Option<Box<dyn Elsewhere>> = if running.is_empty() {
            None
        } else {
            Some(Box::new(Runs { running, store, careful: self.careful.clone() }))
        };
        Ok(Split { here, elsewhere, here_waits })
    }

    fn overspent(&self, height: u64) -> StoreError {
        *self.careful.lock() = height..=height + CAREFUL_BLOCKS;
        StoreError::lost(
            format_args!("the rows behind block {height}"),
            format_args!(
                "its transactions have spent more steps than a block may, so it is executed again in one place"
            ),
        )
    }
}

/// What runs at one holder.
struct Running {
    /// Of each batch the transactions, by number in it.
    there: Vec<Vec<u32>>,
    height: u64,
    first: u32,
    answer: JoinHandle<Result<Vec<SentResult>, StoreError>>,
}

impl Running {
    fn begin(
        remotes: Arc<Vec<Remote>>,
        holder: usize,
        sent: SentRun,
        there: Vec<Vec<u32>>,
    ) -> Result<Running, StoreError> {
        let (height, first, batches) = (sent.header.height, sent.first, sent.batches.len() as u32);
        let ask = move || {
            let remote = &remotes[holder];
            let results = remote.execute(sent)?;
            let last = state::Version::after_batch(height, first + batches.saturating_sub(1));
            remote.version.store(last.number(), Ordering::Release);
            Ok(results)
        };
        let thread = std::thread::Builder::new().name("holder".to_string()).spawn(ask);
        let answer = thread.map_err(|error| StoreError::lost("a holder's rows", error))?;
        Ok(Running { there, height, first, answer })
    }
}

/// What runs at holders.
struct Runs {
    running: Vec<Running>,
    store: Arc<SharedStore>,
    careful: Arc<Mutex<RangeInclusive<u64>>>,
}

impl Elsewhere for Runs {
    fn end(self: Box<Self>) -> Result<Vec<(u32, Vec<u32>, BatchResult)>, StoreError> {
        let (careful, height) = (self.careful.clone(), self.running.first().map_or(0, |one| one.height));
        self.take_in().inspect_err(|_| {
            // Whatever it was: when the block comes again it is executed in one place.
            let mut careful = careful.lock();
            *careful = height..=height.max(*careful.end());
        })
    }
}

impl Runs {
    fn take_in(self) -> Result<Vec<(u32, Vec<u32>, BatchResult)>, StoreError> {
        let mut ended = Vec::new();
        // All are waited for, also where one has failed: nothing goes on behind the engine's back.
        let answers: Vec<_> = (self.running.into_iter())
            .map(|Running { there, height, first, answer }| (there, height, first, answer.join()))
            .collect();
        for (there, height, first, answer) in answers {
            let lost = |cause: &str| StoreError::lost("a holder's rows", cause);
            let results = answer.map_err(|_| lost("the thread that asked has ended"))??;
            if results.len() != there.len()
                || results.iter().zip(&there).any(|(result, there)| result.transactions() != there.len())
            {
                return Err(lost("its answer is about other transactions than it was sent"));
            }
            for (batch, (there, result)) in (0..).zip(there.into_iter().zip(results)) {
                if !there.is_empty() {
                    ended.push((batch, there, result.of_batch(height, first + batch)));
                }
            }
        }
        self.store.holders_have_executed();
        Ok(ended)
    }
}

/// Where a transaction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Holder(usize),
    /// `reads_there`: it touches what a holder has.
    Here {
        reads_there: bool,
    },
}

/// Where each transaction runs. `None`: somebody may touch anything, or it would take too long to say.
fn sides(
    footprints: &[Result<Footprint, SqlError>],
    places: &Places,
    follows_meetings: bool,
) -> Option<Vec<Side>> {
    let mut sides = Vec::with_capacity(footprints.len());
    for footprint in footprints {
        let footprint = footprint.as_ref().ok()?;
        sides.push(side(footprint, places));
    }
    if follows_meetings && sides.contains(&Side::Here { reads_there: true }) {
        let mut meeting = Meeting::new(footprints.len());
        for (number, footprint) in (0..).zip(footprints) {
            let Ok(Footprint { reads, writes }) = footprint else { continue };
            // What the validator alone has nobody meets who runs elsewhere.
            let held = |region: &&Region| places.of(region.table).is_some();
            reads.iter().filter(held).for_each(|region| meeting.add(number, region, false));
            writes.iter().filter(held).for_each(|region| meeting.add(number, region, true));
        }
        let mut groups = meeting.groups()?;
        let mut crossing = vec![false; sides.len()];
        for number in 0..sides.len() {
            if sides[number] == (Side::Here { reads_there: true }) {
                crossing[groups.of(number)] = true;
            }
        }
        for (number, side) in sides.iter_mut().enumerate() {
            if matches!(side, Side::Holder(_)) && crossing[groups.of(number)] {
                *side = Side::Here { reads_there: true };
            }
        }
    }
    Some(sides)
}

/// Where a transaction runs that meets nobody.
fn side(footprint: &Footprint, places: &Places) -> Side {
    let mut regions = footprint.reads.iter().chain(&footprint.writes).map(|region| places.of(region.table));
    let Some(first) = regions.next() else { return Side::Here { reads_there: false } };
    let mut reads_there = first.is_some();
    let mut one = true;
    for place in regions {
        reads_there |= place.is_some();
        one &= place == first;
    }
    match first {
        Some(holder) if one => Side::Holder(holder),
        _ => Side::Here { reads_there },
    }
}

/// Whom each transaction meets, directly or through others.
struct Meeting<'a> {
    groups: Groups,
    /// By table and key: who touches the row, and whether anybody writes it.
    rows: FxHashMap<TableId, BTreeMap<&'a Key, Touched>>,
    intervals: FxHashMap<TableId, Vec<(u32, &'a KeyRange, bool)>>,
}

#[derive(Default)]
struct Touched {
    by: Vec<u32>,
    is_written: bool,
}

impl<'a> Meeting<'a> {
    fn new(transactions: usize) -> Meeting<'a> {
        let (rows, intervals) = Default::default();
        Meeting { groups: Groups::new(transactions), rows, intervals }
    }

    fn add(&mut self, number: u32, region: &'a Region, writes: bool) {
        match region.key() {
            Some(key) => {
                let touched = self.rows.entry(region.table).or_default().entry(key).or_default();
                if touched.by.last() != Some(&number) {
                    touched.by.push(number);
                }
                touched.is_written |= writes;
            }
            None => self.intervals.entry(region.table).or_default().push((number, &region.range, writes)),
        }
    }

    fn groups(self) -> Option<Groups> {
        let Meeting { mut groups, rows, intervals } = self;
        let mut pairs = 0;
        for touched in rows.values().flat_map(BTreeMap::values).filter(|touched| touched.is_written) {
            touched.by.iter().for_each(|one| groups.unite(touched.by[0], *one));
        }
        for (table, intervals) in &intervals {
            for (position, (number, range, writes)) in intervals.iter().enumerate() {
                for (other, met, also_writes) in &intervals[..position] {
                    if (*writes || *also_writes) && range.meets(met) {
                        groups.unite(*number, *other);
                    }
                }
                pairs += position;
                let rows = rows.get(table).filter(|_| !range.is_empty());
                for touched in rows.into_iter().flat_map(|rows| rows.range::<Key, _>(range.bounds())) {
                    let (_, touched) = touched;
                    pairs += touched.by.len();
                    if *writes || touched.is_written {
                        touched.by.iter().for_each(|one| groups.unite(*number, *one));
                    }
                }
                if pairs > PAIRS_MAX {
                    return None;
                }
            }
        }
        Some(groups)
    }
}

/// Disjoint groups of transactions.
struct Groups(Vec<u32>);

impl Groups {
    fn new(count: usize) -> Groups {
        Groups((0..count as u32).collect())
    }

    fn of(&mut self, number: usize) -> usize {
        let mut root = number as u32;
        while self.0[root as usize] != root {
            let above = self.0[self.0[root as usize] as usize];
            self.0[root as usize] = above;
            root = above;
        }
        root as usize
    }

    fn unite(&mut self, one: u32, other: u32) {
        let (one, other) = (self.of(one as usize), self.of(other as usize));
        self.0[one.max(other)] = one.min(other) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use types::{Catalog, ColumnSet, Table, Value};

    fn places() -> Places {
        let mut catalog = Catalog::default();
        for (id, name) in [(1, "a.t"), (2, "b.t"), (3, "t")] {
            let (columns, primary_key, checks) = Default::default();
            let table = Table {
                id: TableId(id),
                name: name.into(),
                columns,
                primary_key,
                primary_key_name: String::new(),
                checks,
                endorsement: None,
                row_security: types::RowSecurity::default(),
                partitioning: None,
                materialized: None,
            };
            catalog.tables.insert(name.into(), Arc::new(table));
        }
        Placement::of_schemas(vec![vec!["a".into()], vec!["b".into()]]).places(&catalog)
    }

    fn row(table: u32, key: i64) -> Region {
        let key = Key::encode([&Value::BigInt(key)]).expect("a key");
        Region::row(TableId(table), key, ColumnSet::ALL)
    }

    fn all(table: u32) -> Region {
        Region { table: TableId(table), range: KeyRange::ALL, columns: ColumnSet::ALL }
    }

    fn touching(reads: &[Region], writes: &[Region]) -> Result<Footprint, SqlError> {
        Ok(Footprint { reads: reads.to_vec(), writes: writes.to_vec() })
    }

    const CROSSING: Side = Side::Here { reads_there: true };

    #[test]
    fn what_touches_one_holder_runs_there_and_what_meets_a_crossing_one_runs_with_it() {
        let footprints = [
            touching(&[row(1, 1)], &[row(1, 1)]),
            touching(&[row(2, 1)], &[row(2, 1)]),
            // It crosses, and the next ones meet it, one after the other.
            touching(&[row(1, 2)], &[row(2, 2)]),
            touching(&[row(1, 3)], &[row(1, 2)]),
            touching(&[], &[row(1, 3)]),
            touching(&[], &[row(3, 1)]),
            touching(&[], &[]),
        ];
        let here = Side::Here { reads_there: false };
        let expected = [Side::Holder(0), Side::Holder(1), CROSSING, CROSSING, CROSSING, here, here];
        assert_eq!(sides(&footprints, &places(), true).expect("all are known"), expected);
    }

    #[test]
    fn intervals_meet_rows_and_one_another_where_somebody_writes() {
        let crossing = |reads: &[Region]| touching(reads, &[row(2, 9)]);
        let reader = touching(&[row(1, 7)], &[row(1, 8)]);
        let of = |footprints: &[Result<Footprint, SqlError>]| {
            sides(footprints, &places(), true).expect("known")[1]
        };
        assert_eq!(of(&[crossing(&[all(1)]), reader.clone()]), CROSSING, "it writes what the other scans");
        let only_reads = touching(&[row(1, 7)], &[]);
        assert_eq!(of(&[crossing(&[all(1)]), only_reads.clone()]), Side::Holder(0), "both only read");
        assert_eq!(of(&[crossing(&[row(1, 7)]), only_reads]), Side::Holder(0), "both only read");
        let writes_all = touching(&[], &[all(1)]);
        assert_eq!(of(&[crossing(&[row(1, 7)]), writes_all.clone()]), CROSSING);
        assert_eq!(of(&[crossing(&[all(1)]), writes_all]), CROSSING);
        assert_eq!(of(&[crossing(&[all(1)]), touching(&[all(1)], &[])]), Side::Holder(0), "both only scan");
    }

    #[test]
    fn who_may_touch_anything_keeps_everybody_here() {
        let unknown = Err(SqlError::unsupported("its analysis"));
        assert_eq!(sides(&[touching(&[row(1, 1)], &[]), unknown], &places(), true), None);
    }
}
