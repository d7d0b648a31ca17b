//! However validation is scheduled, it comes to the same.

use crate::endorsed::{Newest, random_ledger};
use concurrency::{Batch, BatchResult, GRAPH_IDS, ProtocolOptions, VALIDATION_IDS, validation};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::{EndorsedForm, PlainState, Simulate};
use std::sync::Arc;
use types::Pipeline;

/// A batch before it is offered.
#[derive(Clone)]
struct Cut {
    height: u64,
    number: u32,
    transactions: Vec<Arc<dyn Simulate>>,
    /// That the transactions of the block may spend together.
    block_steps: u64,
    oldest_snapshot: u64,
}

/// Offers batches, up to so many ahead of the one that is polled, and applies what comes out.
fn run(
    initial: &PlainState,
    cuts: &[Cut],
    id: &str,
    pipeline: Pipeline,
    mut ahead: impl FnMut() -> usize,
) -> Vec<BatchResult> {
    let mut protocol = validation(id, ProtocolOptions::default(), pipeline).expect("a validation protocol");
    let mut state = initial.clone();
    let mut waiting = cuts.iter().peekable();
    let mut results: Vec<BatchResult> = Vec::new();
    let mut offered = 0;
    while results.len() < cuts.len() {
        let wanted = results.len() + 1 + ahead();
        while offered < wanted
            && let Some(cut) = waiting.next()
        {
            let spent: u64 =
                results.iter().filter(|result| result.height == cut.height).map(|result| result.steps).sum();
            protocol.offer(Batch {
                height: cut.height,
                number: cut.number,
                transactions: cut.transactions.clone(),
                steps_left: cut.block_steps.saturating_sub(spent),
                forget: false,
                oldest_snapshot: cut.oldest_snapshot,
            });
            offered += 1;
        }
        let result = protocol.poll(&Newest(&state)).unwrap().expect("a batch was offered");
        result.changes.iter().for_each(|change| state.apply(change));
        results.push(result);
    }
    results
}

/// The blocks of a random ledger, some cut in two, some with little to spend, some behind a schema change.
fn random_cuts(seed: u64, id: &str, form: EndorsedForm) -> (PlainState, Vec<Cut>) {
    let ledger = random_ledger(seed, id, form);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut oldest_snapshot = 0;
    let mut cuts = Vec::new();
    for (height, block) in (1u64..).zip(&ledger.blocks) {
        if rng.random_bool(0.1) {
            oldest_snapshot = height - 1;
        }
        let block_steps = if rng.random_bool(0.2) { rng.random_range(0..30) } else { u64::MAX };
        let half = rng.random_range(0..=block.submitted.len());
        let halves = [&block.submitted[..half], &block.submitted[half..]];
        for (number, transactions) in (0..).zip(halves) {
            cuts.push(Cut {
                height,
                number,
                transactions: transactions.to_vec(),
                block_steps,
                oldest_snapshot,
            });
        }
    }
    (ledger.states[0].clone(), cuts)
}

/// Whatever is offered ahead, and on however many threads: the same as one batch after the other, under `pipeline`. Conflicts
/// on the way.
fn comes_to_the_same(ids: &[&str], pipeline: Pipeline) -> u64 {
    let pools = [1, 2, 4]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a small pool"));
    let mut rng = StdRng::seed_from_u64(1);
    let mut conflicts = 0;
    for seed in 0..250 {
        for id in ids {
            for form in [EndorsedForm::Writes, EndorsedForm::Commands] {
                let (initial, cuts) = random_cuts(seed, id, form);
                let serial = run(&initial, &cuts, id, Pipeline::Serial, || 0);
                conflicts += serial.iter().map(|result| result.statistics.rejected).sum::<u64>();
                for pool in &pools {
                    let ahead =
                        pool.install(|| run(&initial, &cuts, id, pipeline, || rng.random_range(0..9)));
                    assert_eq!(serial, ahead, "{id}, {form:?}, seed {seed}");
                }
            }
        }
    }
    conflicts
}

#[test]
fn the_graph_of_those_that_wait_decides_as_one_after_the_other() {
    // What `fabric++` validates is what `occ` does.
    let conflicts = comes_to_the_same(&["occ", "xox"], Pipeline::Graph);
    assert!(conflicts > 10_000, "{conflicts}");
}

#[test]
fn what_has_no_graph_decides_the_same_whatever_waits() {
    let conflicts = comes_to_the_same(&["fabric-sharp"], Pipeline::Serial);
    assert!(conflicts > 3_000, "{conflicts}");
}

#[test]
fn those_that_have_a_graph_look_ahead_and_no_others_do() {
    for id in VALIDATION_IDS {
        let lookahead = |pipeline| {
            validation(id, ProtocolOptions::default(), pipeline).expect("a validation protocol").lookahead()
        };
        assert_eq!(lookahead(Pipeline::Serial), 1, "{id}");
        assert_eq!(lookahead(Pipeline::Graph) > 1, GRAPH_IDS.contains(&id), "{id}");
    }
}
