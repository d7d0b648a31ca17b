//! Validation as a protocol: what all of execute–order–validate's protocols share.

use super::recent_writes::RecentWrites;
use super::sharp::SharpGraph;
use crate::optimistic::{Committed, Decision, Simulated, Simulation, commit_permitted, free};
use crate::{Batch, BatchResult, OnConflict, Protocol, ProtocolOptions, Snapshots};
use state::{Effects, Endorsed, Footprint, Region, RowId};
use std::collections::VecDeque;
use types::{SqlError, SqlState};

/// Blocks of which is remembered what they did: a simulation that is older is outdated.
const SNAPSHOT_BLOCKS_MAX: u64 = 256;

/// How it is judged whether endorsed effects still hold.
enum Rule {
    /// Nobody has written what they read.
    Versions(RecentWrites),
    /// They close no cycle.
    Graph(SharpGraph),
}

/// Decides in block order which endorsed effects hold, and places those.
pub(crate) struct Validation {
    id: &'static str,
    options: ProtocolOptions,
    waiting: VecDeque<Batch>,
    rule: Rule,
}

impl Validation {
    /// Fabric's: who is stale is given up.
    pub(crate) fn occ(id: &'static str, options: ProtocolOptions) -> Validation {
        let rule = Rule::Versions(RecentWrites::new(SNAPSHOT_BLOCKS_MAX));
        Validation::new(id, OnConflict::Abort, options, rule)
    }

    /// XOX's: who is stale runs again at the end of the block.
    pub(crate) fn xox(options: ProtocolOptions) -> Validation {
        let rule = Rule::Versions(RecentWrites::new(SNAPSHOT_BLOCKS_MAX));
        Validation::new("xox", OnConflict::Reexecute, options, rule)
    }

    /// Fabric#'s: who closes a cycle is given up.
    pub(crate) fn sharp(options: ProtocolOptions) -> Validation {
        let rule = Rule::Graph(SharpGraph::new(SNAPSHOT_BLOCKS_MAX));
        Validation::new("fabric-sharp", OnConflict::Abort, options, rule)
    }

    fn new(id: &'static str, on_conflict: OnConflict, options: ProtocolOptions, rule: Rule) -> Validation {
        let options = ProtocolOptions { on_conflict, ..options };
        Validation { id, options, waiting: VecDeque::new(), rule }
    }
}

impl Protocol for Validation {
    fn id(&self) -> &'static str {
        self.id
    }

    fn offer(&mut self, batch: Batch) {
        self.waiting.push_back(batch);
    }

    fn poll(&mut self, snapshots: &dyn Snapshots) -> Option<BatchResult> {
        let batch = self.waiting.pop_front()?;
        self.rule.begin(&batch);
        let newest = snapshots.newest();
        let endorsed: Vec<Option<&Endorsed>> =
            batch.transactions.iter().map(|transaction| transaction.endorsed()).collect();
        let simulation = Simulation::of(endorsed.iter().map(|endorsed| effects_of(*endorsed)).collect());
        let rule = &mut self.rule;
        let decide = |simulated: &Simulated<'_>| decide(simulated, &endorsed, rule, batch.height);
        let permits = |number: u32, effects: &Effects| {
            endorsed[number as usize].is_some_and(|endorsed| may_run_again(endorsed, effects))
        };
        let Committed { result, effects } =
            commit_permitted(&batch, simulation, newest.as_ref(), &self.options, decide, &permits);
        for number in &result.history.serial {
            if let (Rule::Versions(recent), Some(endorsed)) = (&mut self.rule, endorsed[*number as usize]) {
                recent.note_all(&endorsed.effects, batch.height);
            }
        }
        free(effects);
        Some(result)
    }
}

impl Rule {
    fn begin(&mut self, batch: &Batch) {
        match self {
            Rule::Versions(recent) => {
                recent.begin(batch.height);
                recent.forget(batch.oldest_snapshot);
            }
            Rule::Graph(graph) => {
                graph.begin(batch.height);
                graph.forget(batch.oldest_snapshot);
            }
        }
    }

    /// Whether effects found on the state after `snapshot` hold in the block of this height; if so, they count from now
    /// on, also where less of them happens in the end: so that blocks alone tell what is remembered.
    fn accepts(&mut self, effects: &Effects, snapshot: u64, height: u64) -> bool {
        // Nobody can have seen the state after a block that is not there yet.
        if snapshot >= height {
            return false;
        }
        match self {
            Rule::Versions(recent) => {
                let holds = !recent.is_outdated(snapshot) && !recent.is_stale(effects, snapshot);
                if holds {
                    recent.note_all(effects, height);
                }
                holds
            }
            Rule::Graph(graph) => {
                !graph.is_outdated(snapshot) && graph.accept(effects, snapshot, height).is_ok()
            }
        }
    }
}

/// A transaction without endorsements changes nothing.
fn effects_of(endorsed: Option<&Endorsed>) -> Effects {
    match endorsed {
        Some(endorsed) => endorsed.effects.as_ref().clone(),
        None => {
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "the transaction is not endorsed")
                .hint("This ledger executes transactions before it orders them: ask endorsers first.");
            let (reads, scans, commands) = Default::default();
            Effects { reads, scans, commands, result: Err(error), steps: 1, catalog: None }
        }
    }
}

/// In block order.
fn decide(
    simulated: &Simulated<'_>,
    endorsed: &[Option<&Endorsed>],
    rule: &mut Rule,
    height: u64,
) -> Decision {
    let mut decision = Decision { order: Vec::new(), rejected: Vec::new() };
    for (number, (effects, endorsed)) in (0u32..).zip(simulated.effects.iter().zip(endorsed)) {
        let Some(effects) = effects else { continue };
        let snapshot = endorsed.map_or(height - 1, |endorsed| endorsed.snapshot);
        let list = match rule.accepts(effects, snapshot, height) {
            true => &mut decision.order,
            false => &mut decision.rejected,
        };
        list.push(number);
    }
    decision
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
