//! Running a plan on the current rayon pool: each transaction when its predecessors are done.

use super::edges::Plan;
use rayon::Scope;
use std::sync::atomic::{AtomicU32, Ordering};

/// Transactions without predecessors that one task runs one after the other.
const CHUNK: usize = 16;

/// Calls `run` once for every transaction, for each behind all its predecessors.
pub(super) fn run(plan: &Plan, run: &(dyn Fn(u32) + Sync)) {
    let waits = plan.predecessors().map(AtomicU32::new).collect::<Vec<_>>();
    let ready: Vec<u32> =
        (0..).zip(plan.predecessors()).filter(|(_, count)| *count == 0).map(|(n, _)| n).collect();
    let walk = Walk { plan, waits, run };
    rayon::scope(|scope| {
        for chunk in ready.chunks(CHUNK) {
            let walk = &walk;
            scope.spawn(move |scope| {
                for node in chunk {
                    if let Some(next) = walk.one(scope, *node) {
                        scope.spawn(move |scope| walk.chain(scope, next));
                    }
                }
            });
        }
    });
}

struct Walk<'a> {
    plan: &'a Plan,
    /// By node: predecessors that are not done.
    waits: Vec<AtomicU32>,
    run: &'a (dyn Fn(u32) + Sync),
}

impl Walk<'_> {
    /// Runs a node and what waited for it alone, as long as there is something: a hot row's transactions stay on the
    /// thread that has the row in its cache.
    fn chain<'s>(&'s self, scope: &Scope<'s>, node: u32) {
        let mut next = Some(node);
        while let Some(node) = next {
            next = self.one(scope, node);
        }
    }

    /// Runs a node. Of those that can run now the first is for the caller; the others are on their way.
    fn one<'s>(&'s self, scope: &Scope<'s>, node: u32) -> Option<u32> {
        if node < self.plan.transactions() {
            (self.run)(node);
        }
        let mut first = None;
        for successor in self.plan.successors(node) {
            // The last one to count down has everything before it in sight that the others did.
            if self.waits[*successor as usize].fetch_sub(1, Ordering::AcqRel) > 1 {
                continue;
            }
            match first {
                None => first = Some(*successor),
                Some(_) => {
                    let successor = *successor;
                    scope.spawn(move |scope| self.chain(scope, successor));
                }
            }
        }
        first
    }
}
