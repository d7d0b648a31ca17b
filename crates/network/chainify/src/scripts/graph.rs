//! Which scripts of a block may run beside one another: an edge leads from each to every later one that can touch the same rows,
//! and whoever is free takes what waits for nobody (ChainifyDB, paper 002, section 4.6.3, without its stages: nobody waits for
//! scripts that have nothing to do with its own).
//!
//! Two scripts conflict where they name a key of the same row. A statement that does not say the whole key can touch any row of its
//! table and runs alone there: databases lock what they look at, and one DELETE without an index ended 270 of 300 transactions
//! that had nothing to do with it in deadlocks.

use parking_lot::{Condvar, Mutex};
use portable::{Access, Script};
use std::collections::{BTreeSet, HashMap};
use types::{Key, TableId};

/// Scripts of one transaction of the database, at most.
const TOGETHER_MAX: usize = 64;

/// Who must have ended before whom.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Graph {
    /// Who waits for each, by position.
    followers: Vec<Vec<usize>>,
    /// For how many each waits.
    waits_for: Vec<usize>,
}

/// What has touched a table so far.
#[derive(Default)]
struct Touched<'a> {
    /// The last that can have touched any row.
    whole: Option<usize>,
    /// Those since.
    since: Vec<usize>,
    /// The last since to name each key.
    keys: HashMap<&'a Key, usize>,
}

impl Graph {
    pub(super) fn of(scripts: &[&Script]) -> Graph {
        let mut graph =
            Graph { followers: vec![Vec::new(); scripts.len()], waits_for: vec![0; scripts.len()] };
        let mut tables: HashMap<TableId, Touched<'_>> = HashMap::new();
        for (number, script) in scripts.iter().enumerate() {
            let mut before = BTreeSet::new();
            for statement in &script.statements {
                let touched = tables.entry(statement.table.id).or_default();
                match &statement.access {
                    Access::Table => {
                        before.extend(touched.whole);
                        before.extend(touched.since.drain(..));
                        touched.keys.clear();
                        touched.whole = Some(number);
                    }
                    Access::Keys(keys) => {
                        before.extend(touched.whole);
                        before.extend(keys.iter().filter_map(|key| touched.keys.insert(key, number)));
                        touched.since.push(number);
                    }
                }
            }
            before.remove(&number);
            graph.waits_for[number] = before.len();
            before.into_iter().for_each(|earlier| graph.followers[earlier].push(number));
        }
        graph
    }
}

/// Hands scripts out to those who run them.
pub(super) struct Schedule {
    state: Mutex<State>,
    changed: Condvar,
    workers: usize,
}

struct State {
    graph: Graph,
    /// Those that wait for nobody, the last one first.
    ready: BTreeSet<usize>,
    taken: Vec<bool>,
    left: usize,
    has_failed: bool,
}

impl Schedule {
    pub(super) fn new(graph: Graph, workers: usize) -> Schedule {
        let waits = graph.waits_for.iter().enumerate();
        let ready = waits.filter(|(_, count)| **count == 0).map(|(number, _)| number).collect();
        let left = graph.waits_for.len();
        let state = State { graph, ready, taken: vec![false; left], left, has_failed: false };
        Schedule { state: Mutex::new(state), changed: Condvar::new(), workers }
    }

    /// Scripts to run next, one after the other in one transaction: they wait for nobody but one another. Waits until there are
    /// any; nothing where all have ended or one could not.
    pub(super) fn take(&self) -> Option<Vec<usize>> {
        let mut state = self.state.lock();
        loop {
            if state.left == 0 || state.has_failed {
                return None;
            }
            if !state.ready.is_empty() {
                return Some(state.take(self.workers));
            }
            self.changed.wait(&mut state);
        }
    }

    /// They have ended.
    pub(super) fn ended(&self, numbers: &[usize]) {
        let mut state = self.state.lock();
        for number in numbers {
            state.left -= 1;
            for follower in std::mem::take(&mut state.graph.followers[*number]) {
                state.graph.waits_for[follower] -= 1;
                if state.graph.waits_for[follower] == 0 && !state.taken[follower] {
                    state.ready.insert(follower);
                }
            }
        }
        self.changed.notify_all();
    }

    /// Nobody goes on.
    pub(super) fn fail(&self) {
        self.state.lock().has_failed = true;
        self.changed.notify_all();
    }
}

impl State {
    fn take(&mut self, workers: usize) -> Vec<usize> {
        // Something is left for everybody else who is free.
        let share = self.ready.len().div_ceil(workers).min(TOGETHER_MAX);
        let mut queue: Vec<usize> = Vec::with_capacity(share);
        while queue.len() < share
            && let Some(first) = self.ready.pop_first()
        {
            queue.push(first);
        }
        // Whoever waits for these alone runs behind them without coming back for it.
        let (mut known, mut at): (HashMap<usize, usize>, usize) = (HashMap::new(), 0);
        while at < queue.len() {
            let number = queue[at];
            self.taken[number] = true;
            for follower in &self.graph.followers[number] {
                let count = known.entry(*follower).or_default();
                *count += 1;
                if *count == self.graph.waits_for[*follower] && queue.len() < TOGETHER_MAX {
                    queue.push(*follower);
                }
            }
            at += 1;
        }
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{key, table};
    use portable::{Action, Statement};
    use rand::{RngExt, SeedableRng, rngs::StdRng};
    use std::sync::Arc;
    use types::Table;

    fn script(accesses: &[(u32, &[i64])]) -> Script {
        let statement = |(id, keys): &(u32, &[i64])| Statement {
            table: Arc::new(Table { id: TableId(*id), ..(*table()).clone() }),
            action: Action::Delete { condition: None },
            access: match keys.is_empty() {
                true => Access::Table,
                false => Access::Keys(keys.iter().map(|id| key(*id)).collect()),
            },
        };
        Script { statements: accesses.iter().map(statement).collect() }
    }

    #[test]
    fn edges_lead_to_the_next_that_touches_the_same_row_or_any() {
        let scripts = [
            script(&[(1, &[1, 2])]),
            script(&[(1, &[2, 3])]),
            script(&[(1, &[4])]),
            script(&[(2, &[2])]),
            script(&[(1, &[])]),
            script(&[(1, &[4]), (1, &[5])]),
            script(&[(2, &[3])]),
        ];
        let graph = Graph::of(&scripts.iter().collect::<Vec<_>>());
        assert_eq!(
            graph.followers,
            [vec![1, 4], vec![4], vec![4], vec![], vec![5], vec![], vec![]],
            "the one without a key waits for all of its table, and the next one for it"
        );
        assert_eq!(graph.waits_for, [0, 1, 0, 0, 3, 1, 0]);
    }

    #[test]
    fn whoever_takes_scripts_finds_all_that_conflict_ended_or_in_front_of_its_own() {
        for seed in 0..40 {
            let mut random = StdRng::seed_from_u64(seed);
            let scripts: Vec<Script> = (0..300)
                .map(|_| match random.random_range(0..60) {
                    0 => script(&[(random.random_range(1..3), &[])]),
                    _ => script(&[(
                        random.random_range(1..3),
                        &[random.random_range(0..40), random.random_range(0..40)],
                    )]),
                })
                .collect();
            let scripts: Vec<&Script> = scripts.iter().collect();
            let graph = Graph::of(&scripts);
            let before: Vec<(usize, usize)> = graph
                .followers
                .iter()
                .enumerate()
                .flat_map(|(one, all)| all.iter().map(move |two| (one, *two)))
                .collect();
            let schedule = Schedule::new(graph, 4);
            let (mut running, mut ended): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
            loop {
                let is_ready = !schedule.state.lock().ready.is_empty();
                if is_ready && (running.len() < 4 || running.is_empty()) {
                    let taken = schedule.take().expect("some are ready");
                    assert!(taken.len() <= TOGETHER_MAX);
                    for (position, number) in taken.iter().enumerate() {
                        for (earlier, _) in before.iter().filter(|(_, later)| later == number) {
                            assert!(
                                ended.contains(earlier) || taken[..position].contains(earlier),
                                "seed {seed}"
                            );
                        }
                    }
                    running.push(taken);
                } else if running.is_empty() {
                    break;
                } else {
                    let done = running.swap_remove(random.random_range(0..running.len()));
                    schedule.ended(&done);
                    ended.extend(done);
                }
            }
            ended.sort_unstable();
            assert_eq!(ended, (0..scripts.len()).collect::<Vec<_>>(), "seed {seed}");
            assert!(schedule.take().is_none());
        }
    }
}
