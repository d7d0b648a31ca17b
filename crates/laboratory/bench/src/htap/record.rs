//! What comes out of transactions and questions side by side, for machines and for people.

use super::asking::Asked;
use super::failed;
use crate::LaboratoryError;
use crate::chain::EngineBenchError;
use crate::laboratory::Timed;
use crate::median::median;
use crate::report::{Table, grouped};
use serde::Serialize;
use std::collections::BTreeMap;

/// What `entente bench htap --json` promises, one per system and load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HtapRecord {
    /// `entente` or `postgres`.
    pub system: &'static str,
    /// `without_columns` (a store that keeps none), `nobody_asks`, `questions` or `idle` (questions alone).
    pub load: &'static str,
    /// Warehouses of TPC-C.
    pub warehouses: u64,
    /// Committed transactions per second, the median over the rounds; `None` where there are none.
    pub committed_tps: Option<f64>,
    /// The median over the rounds of these by those of the system's first load in the same round.
    pub share_of_first: Option<f64>,
    /// Questions that were answered, all rounds together.
    pub questions: usize,
    /// Of these per hour, while they were asked.
    pub questions_per_hour: Option<f64>,
    /// Milliseconds by question, medians.
    pub question_ms: BTreeMap<&'static str, f64>,
    /// The geometric mean over the questions of their medians by those of `idle`.
    pub ms_by_idle: Option<f64>,
}

/// What a load came to in all rounds.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// By round.
    pub(super) committed_tps: Vec<f64>,
    pub(super) asked: Asked,
}

impl Seen {
    /// Adds what transactions came to in a round.
    ///
    /// # Errors
    /// A consistency condition of TPC-C does not hold.
    pub(super) fn add(&mut self, timed: &Timed) -> Result<(), LaboratoryError> {
        if !timed.invariant_holds {
            let broken = EngineBenchError::Invariant("a consistency condition of TPC-C".to_string());
            return Err(failed(broken));
        }
        self.committed_tps.push(timed.committed_tps());
        Ok(())
    }

    pub(super) fn record(
        &self,
        (system, load): (&'static str, &'static str),
        warehouses: u64,
        first: &Seen,
        idle: &Seen,
    ) -> HtapRecord {
        let shares: Vec<f64> =
            self.committed_tps.iter().zip(&first.committed_tps).map(|(own, first)| own / first).collect();
        let medians = |seen: &Seen| -> BTreeMap<&'static str, f64> {
            let of_question = |(id, ms): (&&'static str, &Vec<f64>)| Some((*id, median(ms)?));
            seen.asked.ms.iter().filter_map(of_question).collect()
        };
        let (question_ms, idle_ms) = (medians(self), medians(idle));
        let ratios: Vec<f64> = question_ms
            .iter()
            .filter_map(|(id, ms)| Some((ms / idle_ms.get(id)?).ln()))
            .filter(|ratio| ratio.is_finite())
            .collect();
        let ms_by_idle =
            (!ratios.is_empty()).then(|| (ratios.iter().sum::<f64>() / ratios.len() as f64).exp());
        let questions = self.asked.count();
        HtapRecord {
            system,
            load,
            warehouses,
            committed_tps: median(&self.committed_tps),
            share_of_first: median(&shares),
            questions,
            questions_per_hour: (questions > 0)
                .then(|| questions as f64 * 3_600.0 / self.asked.seconds.max(1e-9)),
            question_ms,
            ms_by_idle,
        }
    }
}

/// The records for people.
pub fn htap_table(records: &[HtapRecord]) -> String {
    let mut table = Table::new([
        "system",
        "load",
        "committed tps",
        "of the first",
        "questions",
        "per hour",
        "ms of all questions once",
        "by idle",
    ]);
    let dash = || "–".to_string();
    for record in records {
        let all: f64 = record.question_ms.values().sum();
        table.rows.push(vec![
            record.system.to_string(),
            record.load.replace('_', " "),
            record.committed_tps.map_or_else(dash, |tps| grouped(tps as u64)),
            record.share_of_first.map_or_else(dash, |share| format!("{share:.3}")),
            record.questions.to_string(),
            record.questions_per_hour.map_or_else(dash, |count| grouped(count as u64)),
            if record.questions == 0 { dash() } else { format!("{all:.1}") },
            record.ms_by_idle.map_or_else(dash, |ratio| format!("{ratio:.2}")),
        ]);
    }
    table.markdown()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_same_round() {
        let seen = |tps: &[f64], ms: f64| Seen {
            committed_tps: tps.to_vec(),
            asked: Asked {
                ms: BTreeMap::from([("ch1", vec![ms, ms]), ("ch6", vec![2.0 * ms])]),
                seconds: 10.0,
            },
        };
        let (first, idle) = (seen(&[100.0, 200.0, 400.0], 1.0), seen(&[], 2.0));
        let record = seen(&[90.0, 100.0, 360.0], 3.0).record(("entente", "questions"), 1, &first, &idle);
        assert_eq!(record.share_of_first, Some(0.9));
        assert_eq!(record.committed_tps, Some(100.0));
        assert_eq!((record.questions, record.questions_per_hour), (3, Some(1_080.0)));
        assert!(record.ms_by_idle.is_some_and(|ratio| (ratio - 1.5).abs() < 1e-9));
        assert_eq!(htap_table(&[record]).lines().count(), 3);
    }
}
