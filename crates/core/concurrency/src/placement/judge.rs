//! Transactions on rows where something may fail: connected ones one after the other, the others in parallel.

use super::{Queues, Verdict};
use crate::execution::{Step, step};
use rayon::prelude::*;
use types::Row;

/// Transactions that one task judges, unless more of them are connected.
const TRANSACTIONS_PER_TASK: usize = 48;
const NONE: u32 = u32::MAX;

/// Verdicts, and the judged rows as the applied transactions leave them.
pub(super) struct Judgement {
    /// By place.
    pub(super) verdicts: Vec<Verdict>,
    /// By row: which task judged it, and its position there.
    homes: Vec<(u32, u32)>,
    /// By task, by position.
    rows: Vec<Vec<Option<Row>>>,
}

impl Judgement {
    /// A judged row as it is now.
    pub(super) fn row(&self, row: u32) -> Option<&Row> {
        let (task, position) = self.homes[row as usize];
        self.rows[task as usize][position as usize].as_ref()
    }
}

/// Transactions that share rows with one another and with nobody else; several such groups if they are small.
#[derive(Default)]
struct Task {
    /// Ascending.
    places: Vec<u32>,
    rows: Vec<u32>,
}

/// Judges every transaction that has a command on a judged row; `loaded`: by row, its value before and whether it is
/// judged. Everybody else's commands apply.
pub(super) fn judge(queues: &Queues<'_>, loaded: &[(Option<Row>, bool)]) -> Judgement {
    let mut verdicts = vec![Verdict::Applied; queues.order.len()];
    if !loaded.iter().any(|(_, judged)| *judged) {
        return Judgement { verdicts, homes: Vec::new(), rows: Vec::new() };
    }
    let (tasks, homes) = divide(queues, loaded);
    let judged: Vec<(Vec<Verdict>, Vec<Option<Row>>)> =
        tasks.par_iter().map(|task| run(task, queues, loaded, &homes)).collect();
    let mut rows = Vec::with_capacity(tasks.len());
    for (task, (of_task, after)) in tasks.iter().zip(judged) {
        for (place, verdict) in task.places.iter().zip(of_task) {
            verdicts[*place as usize] = verdict;
        }
        rows.push(after);
    }
    Judgement { verdicts, homes, rows }
}

/// Distributes the judged rows and their transactions over tasks that share nothing.
fn divide(queues: &Queues<'_>, loaded: &[(Option<Row>, bool)]) -> (Vec<Task>, Vec<(u32, u32)>) {
    let judged_rows =
        |place: u32| queues.of_place(place).map(|(_, row)| row).filter(|row| loaded[*row as usize].1);
    let mut groups = Groups::new(loaded.len());
    let places = 0..queues.order.len() as u32;
    for place in places.clone() {
        let mut rows = judged_rows(place);
        if let Some(first) = rows.next() {
            let connected = rows.fold(groups.find(first), |group, row| groups.join(group, row));
            groups.transactions[connected as usize] += 1;
        }
    }
    let mut tasks: Vec<Task> = Vec::new();
    let mut sizes: Vec<usize> = Vec::new();
    let mut homes = vec![(NONE, NONE); loaded.len()];
    // By the row that stands for a group.
    let mut task_of = vec![NONE; loaded.len()];
    for place in places {
        let mut of_place = NONE;
        for row in judged_rows(place) {
            if of_place == NONE {
                let group = groups.find(row) as usize;
                if task_of[group] == NONE {
                    if sizes.last().is_none_or(|size| *size >= TRANSACTIONS_PER_TASK) {
                        tasks.push(Task::default());
                        sizes.push(0);
                    }
                    task_of[group] = tasks.len() as u32 - 1;
                    sizes[tasks.len() - 1] += groups.transactions[group] as usize;
                }
                of_place = task_of[group];
                tasks[of_place as usize].places.push(place);
            }
            if homes[row as usize].0 == NONE {
                let rows = &mut tasks[of_place as usize].rows;
                homes[row as usize] = (of_place, rows.len() as u32);
                rows.push(row);
            }
        }
    }
    (tasks, homes)
}

/// Judges the transactions of a task, by place: what the definition says, on these rows alone. Commands on other rows
/// cannot change a verdict.
fn run(
    task: &Task,
    queues: &Queues<'_>,
    loaded: &[(Option<Row>, bool)],
    homes: &[(u32, u32)],
) -> (Vec<Verdict>, Vec<Option<Row>>) {
    let mut rows: Vec<Option<Row>> = task.rows.iter().map(|row| loaded[*row as usize].0.clone()).collect();
    let mut undo: Vec<(u32, Option<Row>)> = Vec::new();
    let mut judge = |place: &u32| {
        undo.clear();
        for (command, row) in queues.of_place(*place).filter(|(_, row)| loaded[*row as usize].1) {
            let position = homes[row as usize].1;
            let row = &mut rows[position as usize];
            let failed = match step(command, row.as_ref()) {
                Step::Unchanged => continue,
                Step::Changed(after) => {
                    undo.push((position, std::mem::replace(row, after)));
                    continue;
                }
                Step::Again => Verdict::Again,
                Step::Error(error) => Verdict::Error(Box::new(error)),
            };
            for (position, before) in undo.drain(..).rev() {
                rows[position as usize] = before;
            }
            return failed;
        }
        Verdict::Applied
    };
    let verdicts = task.places.iter().map(&mut judge).collect();
    (verdicts, rows)
}

/// Disjoint sets of rows, each named by one of its members (union by size, path halving).
struct Groups {
    parent: Vec<u32>,
    /// Transactions counted on the name at that time.
    transactions: Vec<u32>,
}

impl Groups {
    fn new(rows: usize) -> Groups {
        Groups { parent: (0..rows as u32).collect(), transactions: vec![0; rows] }
    }

    fn find(&mut self, row: u32) -> u32 {
        let mut row = row as usize;
        while self.parent[row] as usize != row {
            self.parent[row] = self.parent[self.parent[row] as usize];
            row = self.parent[row] as usize;
        }
        row as u32
    }

    /// Makes one set of two; its name.
    fn join(&mut self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return a;
        }
        let (small, large) =
            if self.transactions[a as usize] < self.transactions[b as usize] { (a, b) } else { (b, a) };
        self.parent[small as usize] = large;
        self.transactions[large as usize] += self.transactions[small as usize];
        large
    }
}
