//! Parallel validators on the graph of those that wait (SmartFabric, sections 3.1.2 and 3.1.3).
//!
//! Each validator takes what waits for nobody, holds what it read against what was written since, notes what it writes
//! if it is valid, and tells the graph; whoever depends on that comes after it. What is noted is the paper's *dirty
//! state*: it is ahead of the state that blocks have been applied to, and behind it nobody else needs to look, because
//! a version is the height of a block. Every schedule comes to the same verdicts as judging one after the other.

use super::recent_writes::{RecentWrites, Search};
use super::waiting_graph::{Number, Ready, WaitingGraph, WaitingTransaction};
use parking_lot::{Condvar, Mutex, RwLock};
use state::Effects;
use std::collections::VecDeque;
use std::sync::Arc;

/// Transactions that a validator takes at once.
const TAKEN_MAX: usize = 16;

/// A transaction as validators get it.
pub(super) struct Proposed {
    pub(super) effects: Arc<Effects>,
    /// Height of the state that it was simulated on.
    pub(super) snapshot: u64,
    /// If it is stale, it runs again at the end of its batch and counts as a writer from there on.
    pub(super) runs_again: bool,
}

/// Judges the transactions of all batches that wait.
pub(super) struct Validators {
    waiting: Mutex<WaitingBatches>,
    /// Something became ready, or a batch is judged.
    changed: Condvar,
    recent: RwLock<RecentWrites>,
}

/// Which batches wait, and how far they are.
#[derive(Default)]
struct WaitingBatches {
    graph: WaitingGraph,
    batches: VecDeque<JudgedBatch>,
    /// Taken and not finished.
    running: usize,
}

struct JudgedBatch {
    first: Number,
    height: u64,
    search: Search,
    /// By transaction.
    verdicts: Vec<Option<bool>>,
    /// Those that run again at its end if they are stale, by position.
    run_again: Vec<(usize, Arc<Effects>)>,
    /// Nodes that are not finished, its end included.
    open: usize,
}

/// What a validator has to do, and what it needs for that.
struct Task {
    ready: Ready,
    height: u64,
    search: Search,
    /// At a batch's end: what is written there.
    writes: Vec<Arc<Effects>>,
}

impl WaitingBatches {
    fn batch_of(&mut self, number: Number) -> &mut JudgedBatch {
        let behind = self.batches.partition_point(|batch| batch.first <= number);
        &mut self.batches[behind - 1]
    }

    fn take(&mut self, most: usize) -> Vec<Task> {
        let taken = self.graph.take(most);
        self.running += taken.len();
        let task = |ready: Ready| {
            let batch = self.batch_of(ready.number());
            let writes = match ready {
                Ready::Barrier(_) => batch.stale_writes(),
                Ready::Judge(..) | Ready::Fated(_) => Vec::new(),
            };
            Task { ready, height: batch.height, search: batch.search, writes }
        };
        taken.into_iter().map(task).collect()
    }

    fn finish(&mut self, number: Number, valid: bool) {
        self.running -= 1;
        let batch = self.batch_of(number);
        batch.open -= 1;
        // The end of a batch has a number behind them and no verdict.
        if let Some(verdict) = batch.verdicts.get_mut((number - batch.first) as usize) {
            *verdict = Some(valid);
        }
        self.graph.finish(number, valid);
    }
}

impl JudgedBatch {
    fn stale_writes(&self) -> Vec<Arc<Effects>> {
        let stale = self.run_again.iter().filter(|(position, _)| self.verdicts[*position] == Some(false));
        stale.map(|(_, effects)| effects.clone()).collect()
    }
}

impl Validators {
    pub(super) fn new(recent: RecentWrites) -> Validators {
        Validators { waiting: Mutex::default(), changed: Condvar::new(), recent: RwLock::new(recent) }
    }

    /// Adds a batch behind those that wait.
    pub(super) fn offer(&mut self, height: u64, search: Search, proposed: Vec<Proposed>) {
        let WaitingBatches { graph, batches, .. } = self.waiting.get_mut();
        graph.begin_batch();
        let (first, count) = (graph.next(), proposed.len());
        let mut run_again = Vec::new();
        for (position, Proposed { effects, snapshot, runs_again }) in proposed.into_iter().enumerate() {
            if runs_again {
                run_again.push((position, effects.clone()));
            }
            let void = !search.reaches(snapshot, height);
            graph.add(WaitingTransaction { effects, snapshot, height }, void);
        }
        let ends = !run_again.is_empty();
        if ends {
            graph.add_barrier();
        }
        let (verdicts, open) = (vec![None; count], count + usize::from(ends));
        batches.push_back(JudgedBatch { first, height, search, verdicts, run_again, open });
    }

    /// Judges the batch that has waited longest: by transaction, whether it holds.
    pub(super) fn next_batch(&mut self) -> Option<Vec<bool>> {
        self.judge(1);
        let batch = self.waiting.get_mut().batches.pop_front()?;
        self.recent.get_mut().forget(batch.search.oldest());
        Some(batch.verdicts.into_iter().map(|verdict| verdict == Some(true)).collect())
    }

    /// Judges so many of the batches that wait, or all, on the threads of the current pool.
    pub(super) fn judge(&self, batches: usize) {
        rayon::scope(|scope| {
            for _ in 1..rayon::current_num_threads() {
                scope.spawn(|_| self.validate(batches));
            }
            self.validate(batches);
        });
    }

    fn validate(&self, batches: usize) {
        let threads = rayon::current_num_threads();
        let mut waiting = self.waiting.lock();
        while waiting.batches.iter().take(batches).any(|batch| batch.open > 0) {
            let most = waiting.graph.ready().div_ceil(threads).min(TAKEN_MAX);
            let tasks = waiting.take(most);
            if tasks.is_empty() {
                assert!(waiting.running > 0, "the oldest that waits depends on nobody");
                self.changed.wait(&mut waiting);
                continue;
            }
            drop(waiting);
            let verdicts = self.perform(&tasks);
            waiting = self.waiting.lock();
            for (task, valid) in tasks.iter().zip(verdicts) {
                waiting.finish(task.ready.number(), valid);
            }
            self.changed.notify_all();
        }
    }

    /// Tasks that do not depend on one another. What is valid is noted before anybody hears of it.
    fn perform(&self, tasks: &[Task]) -> Vec<bool> {
        let recent = self.recent.read();
        let holds = |task: &Task| match &task.ready {
            Ready::Judge(_, WaitingTransaction { effects, snapshot, .. }) => {
                !recent.is_stale(effects, *snapshot, &mut { task.search })
            }
            Ready::Fated(_) | Ready::Barrier(_) => false,
        };
        let verdicts: Vec<bool> = tasks.iter().map(holds).collect();
        drop(recent);
        let mut recent = self.recent.write();
        for (task, valid) in tasks.iter().zip(&verdicts) {
            match &task.ready {
                Ready::Judge(_, transaction) if *valid => recent.note_all(&transaction.effects, task.height),
                Ready::Judge(..) | Ready::Fated(_) => {}
                Ready::Barrier(_) => {
                    task.writes.iter().for_each(|effects| recent.note_all(effects, task.height));
                }
            }
        }
        verdicts
    }
}

#[cfg(test)]
mod tests;
