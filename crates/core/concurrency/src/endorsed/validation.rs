//! Validation as a protocol: what all of execute–order–validate's protocols share.

use super::recent_writes::{RecentWrites, Search};
use super::sharp::SharpGraph;
use super::validators::{Proposed, Validators};
use crate::optimistic::{Committed, Decision, Simulated, Simulation, commit_permitted, free};
use crate::{Batch, BatchResult, OnConflict, Protocol, ProtocolOptions, Snapshots};
use state::{Effects, Endorsed, Footprint, Region, RowId, StoreError};
use std::collections::VecDeque;
use std::sync::Arc;
use types::{Pipeline, SqlError, SqlState};

/// Blocks of which is remembered what they did: a simulation that is older is outdated.
const SNAPSHOT_BLOCKS_MAX: u64 = 256;
/// Batches whose transactions wait in SmartFabric's graph.
const WAITING_BATCHES: usize = 8;

/// How it is judged whether endorsed effects still hold. What it comes to depends on what is ordered and on nothing
/// else: who was accepted counts as a writer, also where less of it happened in the end.
enum Rule {
    /// Nobody has written what they read: one after the other.
    Versions(RecentWrites),
    /// The same on all threads, for all batches that wait.
    VersionsInParallel(Validators),
    /// They close no cycle.
    Graph(SharpGraph),
}

/// Decides in block order which endorsed effects hold, and places those.
pub(crate) struct Validation {
    id: &'static str,
    options: ProtocolOptions,
    /// With the bounds of each.
    waiting: VecDeque<(Batch, Search)>,
    /// Height of the oldest state on which simulations of the last batch offered can have been made.
    oldest: u64,
    rule: Rule,
}

impl Validation {
    /// Fabric's: who is stale is given up.
    pub(crate) fn occ(id: &'static str, options: ProtocolOptions, pipeline: Pipeline) -> Validation {
        Validation::new(id, OnConflict::Abort, options, Rule::versions(pipeline))
    }

    /// XOX's: who is stale runs again at the end of the block.
    pub(crate) fn xox(options: ProtocolOptions, pipeline: Pipeline) -> Validation {
        Validation::new("xox", OnConflict::Reexecute, options, Rule::versions(pipeline))
    }

    /// Fabric#'s: who closes a cycle is given up. A cycle may go through everybody, so this is judged in order, however
    /// validation is scheduled.
    pub(crate) fn sharp(options: ProtocolOptions) -> Validation {
        let rule = Rule::Graph(SharpGraph::new(SNAPSHOT_BLOCKS_MAX));
        Validation::new("fabric-sharp", OnConflict::Abort, options, rule)
    }

    fn new(id: &'static str, on_conflict: OnConflict, options: ProtocolOptions, rule: Rule) -> Validation {
        let options = ProtocolOptions { on_conflict, ..options };
        Validation { id, options, waiting: VecDeque::new(), oldest: 0, rule }
    }
}

impl Protocol for Validation {
    fn id(&self) -> &'static str {
        self.id
    }

    fn offer(&mut self, batch: Batch) {
        let window = batch.height.saturating_sub(SNAPSHOT_BLOCKS_MAX + 1);
        self.oldest = self.oldest.max(batch.oldest_snapshot).max(window);
        let effects =
            batch.transactions.iter().filter_map(|transaction| Some(&*transaction.endorsed()?.effects));
        let search = Search::of_each(self.oldest, effects);
        if let Rule::VersionsInParallel(validators) = &mut self.rule {
            validators.offer(batch.height, search, proposed(&batch, self.options.on_conflict));
        }
        self.waiting.push_back((batch, search));
    }

    fn lookahead(&self) -> usize {
        match self.rule {
            Rule::VersionsInParallel(_) => WAITING_BATCHES,
            Rule::Versions(_) | Rule::Graph(_) => 1,
        }
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Result<Option<BatchResult>, StoreError> {
        let Some((batch, search)) = self.waiting.pop_front() else { return Ok(None) };
        let holds = match &mut self.rule {
            Rule::VersionsInParallel(validators) => validators.next_batch().unwrap_or_default(),
            Rule::Versions(recent) => {
                in_order(recent, batch.height, search, &proposed(&batch, self.options.on_conflict))
            }
            Rule::Graph(graph) => {
                in_order_by_graph(graph, &batch, search, &proposed(&batch, self.options.on_conflict))
            }
        };
        let newest = snapshots.newest();
        let endorsed: Vec<Option<&Endorsed>> =
            batch.transactions.iter().map(|transaction| transaction.endorsed()).collect();
        let simulation = Simulation::of(endorsed.iter().map(|endorsed| effects_of(*endorsed)).collect());
        let permits = |number: u32, effects: &Effects| {
            endorsed[number as usize].is_some_and(|endorsed| may_run_again(endorsed, effects))
        };
        let decide = |simulated: &Simulated<'_>| decision(simulated, &holds);
        // Whoever is idle while this batch takes effect judges the next ones.
        let (committed, ()) = rayon::join(
            || commit_permitted(&batch, simulation, newest.as_ref(), &self.options, decide, &permits),
            || match &self.rule {
                Rule::VersionsInParallel(validators) => validators.judge(WAITING_BATCHES),
                Rule::Versions(_) | Rule::Graph(_) => {}
            },
        );
        let Committed { result, effects } = committed?;
        free(effects);
        // They were offered when nobody knew what this one would spend.
        for (waiting, _) in self.waiting.iter_mut().filter(|(waiting, _)| waiting.height == batch.height) {
            waiting.steps_left = waiting.steps_left.saturating_sub(result.steps);
        }
        Ok(Some(result))
    }
}

impl Rule {
    fn versions(pipeline: Pipeline) -> Rule {
        let recent = RecentWrites::new(SNAPSHOT_BLOCKS_MAX);
        match pipeline {
            Pipeline::Serial => Rule::Versions(recent),
            Pipeline::Graph => Rule::VersionsInParallel(Validators::new(recent)),
        }
    }
}

/// The transactions of a batch as they are judged.
fn proposed(batch: &Batch, on_conflict: OnConflict) -> Vec<Proposed> {
    let of = |endorsed: Option<&Endorsed>| match endorsed {
        Some(Endorsed { snapshot, effects, may_run_again }) => Proposed {
            effects: effects.clone(),
            snapshot: *snapshot,
            runs_again: *may_run_again && on_conflict == OnConflict::Reexecute,
        },
        None => Proposed {
            effects: Arc::new(not_endorsed()),
            snapshot: batch.height.saturating_sub(1),
            runs_again: false,
        },
    };
    batch.transactions.iter().map(|transaction| of(transaction.endorsed())).collect()
}

/// Which transactions have read nothing that was written since, judged one after the other.
pub(super) fn in_order(
    recent: &mut RecentWrites,
    height: u64,
    search: Search,
    proposed: &[Proposed],
) -> Vec<bool> {
    recent.forget(search.oldest());
    let judge = |Proposed { effects, snapshot, .. }: &Proposed| {
        let holds =
            search.reaches(*snapshot, height) && !recent.is_stale(effects, *snapshot, &mut { search });
        if holds {
            recent.note_all(effects, height);
        }
        holds
    };
    let holds: Vec<bool> = proposed.iter().map(judge).collect();
    for (one, _) in proposed.iter().zip(&holds).filter(|(one, holds)| one.runs_again && !**holds) {
        recent.note_all(&one.effects, height);
    }
    holds
}

/// Which transactions close no cycle with those that do not.
fn in_order_by_graph(
    graph: &mut SharpGraph,
    batch: &Batch,
    search: Search,
    proposed: &[Proposed],
) -> Vec<bool> {
    graph.begin(batch.height);
    graph.forget(search.oldest());
    let judge = |Proposed { effects, snapshot, .. }: &Proposed| {
        search.reaches(*snapshot, batch.height) && graph.accept(effects, *snapshot, batch.height).is_ok()
    };
    proposed.iter().map(judge).collect()
}

/// A transaction without endorsements changes nothing.
fn effects_of(endorsed: Option<&Endorsed>) -> Effects {
    endorsed.map_or_else(not_endorsed, |endorsed| endorsed.effects.as_ref().clone())
}

fn not_endorsed() -> Effects {
    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the transaction is not endorsed")
        .hint("This ledger executes transactions before it orders them: ask endorsers first.");
    let (reads, scans, commands) = Default::default();
    Effects { reads, scans, commands, result: Err(error), steps: 1, catalog: None }
}

/// What the block's budget has left, in block order.
fn decision(simulated: &Simulated<'_>, holds: &[bool]) -> Decision {
    let executed = (0u32..).zip(simulated.effects).filter(|(_, effects)| effects.is_some());
    let (order, rejected) = executed.map(|(number, _)| number).partition(|number| holds[*number as usize]);
    Decision { order, rejected }
}

/// Whether a second execution touched no more than the first: no other row, and no column that was only read is written.
fn may_run_again(endorsed: &Endorsed, again: &Effects) -> bool {
    endorsed.may_run_again && allowed(&endorsed.effects).covers(again)
}

/// What endorsed effects allow a second execution to touch.
fn allowed(effects: &Effects) -> Footprint {
    let mut footprint = Footprint::default();
    for read in &effects.reads {
        footprint.read(Region::row(read.row.table, read.row.key.clone(), read.columns));
    }
    for scan in &effects.scans {
        let (table, range) = (scan.table, scan.range.clone());
        footprint.read(Region { table, range, columns: scan.columns | scan.predicate_columns });
    }
    for command in &effects.commands {
        let RowId { table, key } = &command.row;
        footprint.read(Region::row(*table, key.clone(), command.uses | command.writes));
        footprint.write(Region::row(*table, key.clone(), command.writes));
    }
    footprint
}
