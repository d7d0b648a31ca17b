//! The batch before, as the edges of the next one need it. Its transactions have settled: they are there whatever
//! the next batch decides, and that one did not see what they wrote (`protocols.md`, section 2, inter-block
//! parallelism).

use super::edges::Number;
use crate::{BatchResult, TransactionOutcome};
use state::{Effects, Read};

/// A batch that has taken effect.
pub(super) struct Previous {
    /// By transaction: what the execution that counts did. Who ended with an error has no commands; what they used
    /// stands among the reads.
    pub(super) effects: Vec<Option<Effects>>,
    /// By transaction, below zero: first those that were placed, then those that ran behind them.
    pub(super) numbers: Vec<Number>,
    /// By transaction: it must come before one with a smaller number.
    pub(super) backward: Vec<bool>,
}

impl Previous {
    /// `backward`: as validation found it, by transaction.
    pub(super) fn new(
        mut effects: Vec<Option<Effects>>,
        result: &BatchResult,
        mut backward: Vec<bool>,
    ) -> Previous {
        let count = effects.len() as Number;
        let mut numbers: Vec<Number> = (0..count).map(|position| position - 2 * count).collect();
        for number in &result.history.serial {
            numbers[*number as usize] += count;
            // They ran on the state that everything before them had left.
            backward[*number as usize] = false;
        }
        for (effects, outcome) in effects.iter_mut().zip(&result.outcomes) {
            match (effects, outcome) {
                (Some(effects), TransactionOutcome::Aborted(_)) => observe_only(effects),
                (effects, TransactionOutcome::Conflict | TransactionOutcome::OverBudget) => *effects = None,
                _ => {}
            }
        }
        Previous { effects, numbers, backward }
    }
}

/// A business abort wrote nothing, but its client knows what its commands met.
fn observe_only(effects: &mut Effects) {
    let commands = std::mem::take(&mut effects.commands);
    effects
        .reads
        .extend(commands.into_iter().map(|command| Read { row: command.row, columns: command.uses }));
}
