//! Figure 5.11: what private proposals cost, by their number in a transaction.

use crate::PcpError;
use crate::arguments::Plan;
use crate::endorsing::{Commit, World};
use crate::record::PcpRecord;
use std::time::Instant;

const FIGURE: &str = "figure-5-11";
/// The most shards of a transaction, as in the thesis.
const PROPOSALS_MAX: u32 = 5;
/// Keys that a proposal reads and writes.
const KEYS: f64 = 2.0;
/// 5.5.2: keys that change per second, however many proposals a transaction has.
const PAPER_KEYS: f64 = 230.0;
/// 5.5.2: about 30 % less than regular Fabric for one proposal.
const PAPER_OF_PLAIN: f64 = 0.7;

/// Seconds for endorsing and for validating all transactions.
struct Seconds {
    endorsing: f64,
    validating: f64,
}

pub(super) fn figure_5_11(plan: &Plan) -> Result<Vec<PcpRecord>, PcpError> {
    let mut records = Vec::new();
    let count = plan.transactions as f64;
    let plain = plain(plan)?;
    let plain_tps = count / (plain.endorsing + plain.validating);
    records.push(PcpRecord::new(FIGURE, "plain", "just-in-time, 1 proposal", "committed_tps", plain_tps));
    let pre = count / plain.validating;
    records.push(PcpRecord::new(FIGURE, "plain", "pre-endorsed, 1 proposal", "committed_tps", pre));
    for (system, commit) in [("pcp", Commit::Pcp), ("two-phase", Commit::TwoPhase)] {
        let mut of_one = None;
        for proposals in 1..=PROPOSALS_MAX {
            let Seconds { endorsing, validating } = private(plan, proposals, commit)?;
            // Shards are machines of their own, which validate beside one another; the client asks them one after the other.
            let validating = validating / f64::from(proposals);
            let plural = if proposals == 1 { "" } else { "s" };
            let tps = count / (endorsing + validating);
            let one = *of_one.get_or_insert(tps);
            let record = |endorsed: &str, metric, value| {
                PcpRecord::new(
                    FIGURE,
                    system,
                    format!("{endorsed}, {proposals} proposal{plural}"),
                    metric,
                    value,
                )
            };
            records.push(record("just-in-time", "committed_tps", tps));
            let keys = tps * KEYS * f64::from(proposals);
            records.push(record("just-in-time", "keys_per_second", keys).beside(Some(PAPER_KEYS)));
            let share = record("just-in-time", "share_of_one_proposal", tps / one);
            records.push(share.beside(Some(1.0 / f64::from(proposals))));
            if proposals == 1 {
                let share = record("just-in-time", "share_of_plain", tps / plain_tps);
                records.push(share.beside(Some(PAPER_OF_PLAIN)));
            }
            records.push(record("pre-endorsed", "committed_tps", count / validating));
        }
    }
    Ok(records)
}

fn plain(plan: &Plan) -> Result<Seconds, PcpError> {
    let wrong = || PcpError::Wrong { what: "decisions" };
    let mut world = World::new(1);
    let began = Instant::now();
    let transactions: Option<Vec<_>> =
        (0..plan.transactions as u64).map(|number| world.endorse_plain(number)).collect();
    let transactions = transactions.ok_or_else(wrong)?;
    let endorsing = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for (transaction, number) in transactions.iter().zip(0..) {
        if !world.validate_plain(number, transaction) {
            return Err(wrong());
        }
    }
    Ok(Seconds { endorsing, validating: began.elapsed().as_secs_f64() })
}

fn private(plan: &Plan, proposals: u32, commit: Commit) -> Result<Seconds, PcpError> {
    let wrong = || PcpError::Wrong { what: "decisions" };
    let mut world = World::new(proposals);
    let began = Instant::now();
    let transactions: Option<Vec<_>> =
        (0..plan.transactions as u64).map(|number| world.endorse(number, proposals)).collect();
    let transactions = transactions.ok_or_else(wrong)?;
    let endorsing = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for (transaction, number) in transactions.iter().zip(0..) {
        if world.validate(number, transaction, commit) != Some(true) {
            return Err(wrong());
        }
    }
    Ok(Seconds { endorsing, validating: began.elapsed().as_secs_f64() })
}
