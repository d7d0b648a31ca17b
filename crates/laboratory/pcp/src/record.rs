//! What comes out of an experiment, for machines and for people.

use serde::Serialize;
use std::fmt::Write;

/// What `entente bench pcp --json` promises: one figure of one experiment, with the thesis's beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PcpRecord {
    /// `figure-5-11` and so on.
    pub experiment: &'static str,
    /// What was measured: `pcp`, `two-phase`, `plain`, a variant's name.
    pub system: String,
    /// Under which circumstances: `just-in-time, 3 proposals` and the like.
    pub point: String,
    /// What is measured, with its unit.
    pub metric: &'static str,
    /// The figure.
    pub value: f64,
    /// The thesis's at the same point; null where it prints none.
    pub paper: Option<f64>,
}

impl PcpRecord {
    pub(crate) fn new(
        experiment: &'static str,
        system: impl Into<String>,
        point: impl Into<String>,
        metric: &'static str,
        value: f64,
    ) -> PcpRecord {
        PcpRecord { experiment, system: system.into(), point: point.into(), metric, value, paper: None }
    }

    pub(crate) fn beside(mut self, paper: Option<f64>) -> PcpRecord {
        self.paper = paper;
        self
    }

    fn cell(&self) -> String {
        match self.paper {
            Some(paper) => format!("{} ({})", number(self.value), number(paper)),
            None => number(self.value),
        }
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 || value.fract() == 0.0 => {
            format!("{value:.1}").trim_end_matches(".0").to_string()
        }
        _ => format!("{value:.3}"),
    }
}

/// The records for people: a table for each experiment, with a column for each metric. The thesis's figures are in brackets.
pub fn pcp_table(records: &[PcpRecord]) -> String {
    let mut text = String::new();
    for of_experiment in records.chunk_by(|one, next| one.experiment == next.experiment) {
        let mut metrics: Vec<&str> = Vec::new();
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for record in of_experiment {
            let row = (record.system.as_str(), record.point.as_str());
            if !metrics.contains(&record.metric) {
                metrics.push(record.metric);
            }
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let experiment = of_experiment[0].experiment;
        let heads: Vec<String> = metrics.iter().map(|metric| metric.replace('_', " ")).collect();
        let _ = writeln!(
            text,
            "{experiment} (the thesis's figures in brackets)\n\n| system | point | {} |",
            heads.join(" | ")
        );
        let _ = writeln!(text, "|{}", " --- |".repeat(metrics.len() + 2));
        for (system, point) in rows {
            let cell = |metric: &&str| {
                let mut own = of_experiment.iter().filter(|record| record.metric == *metric);
                let own =
                    own.find(|record| (record.system.as_str(), record.point.as_str()) == (system, point));
                own.map_or_else(String::new, PcpRecord::cell)
            };
            let cells: Vec<String> = metrics.iter().map(cell).collect();
            let _ = writeln!(text, "| {system} | {point} | {} |", cells.join(" | "));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_row_for_each_point_and_the_thesis_s_figures_in_brackets() {
        let record = |point: &str, metric, value| PcpRecord::new("figure-5-11", "pcp", point, metric, value);
        let records = [
            record("1 proposal", "committed_tps", 1_234.5),
            record("1 proposal", "share", 0.5).beside(Some(0.7)),
        ];
        let table = pcp_table(&records);
        assert!(table.contains("| system | point | committed tps | share |"), "{table}");
        assert!(table.contains("| pcp | 1 proposal | 1234 | 0.500 (0.700) |"), "{table}");
    }
}
