//! What comes out of an experiment, for machines and for people.

use serde::Serialize;
use std::collections::BTreeMap;

/// What `entente bench anker --json` promises: one figure of one experiment, with the paper's beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnkerRecord {
    /// `table-2-1` and so on.
    pub experiment: &'static str,
    /// A [`crate::System`], or the paper's `vm_snapshot`, which needs a kernel of its own and is quoted only.
    pub system: &'static str,
    /// Where in the experiment: `columns`, `modified_pages`, `question` and the like.
    pub point: BTreeMap<&'static str, Parameter>,
    /// What is measured, with its unit: `snapshot_ms`, `committed_tps` and the like.
    pub metric: &'static str,
    /// The figure; null where it was refused or is the paper's alone.
    pub value: Option<f64>,
    /// Why there is none.
    pub refused: Option<String>,
    /// The paper's figure at the same point, from its text or tables; null where it prints none.
    pub paper: Option<f64>,
    /// The upper end where the paper says from … to ….
    pub paper_to: Option<f64>,
}

/// A value of a point.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A count.
    Number(u64),
    /// A name.
    Name(&'static str),
}

impl From<usize> for Parameter {
    fn from(number: usize) -> Parameter {
        Parameter::Number(number as u64)
    }
}

impl From<&'static str> for Parameter {
    fn from(name: &'static str) -> Parameter {
        Parameter::Name(name)
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Parameter::Number(number) => number.fmt(formatter),
            Parameter::Name(name) => name.fmt(formatter),
        }
    }
}

impl AnkerRecord {
    pub(crate) fn new(experiment: &'static str, system: &'static str, metric: &'static str) -> AnkerRecord {
        AnkerRecord {
            experiment,
            system,
            point: BTreeMap::new(),
            metric,
            value: None,
            refused: None,
            paper: None,
            paper_to: None,
        }
    }

    pub(crate) fn at(mut self, name: &'static str, value: impl Into<Parameter>) -> AnkerRecord {
        self.point.insert(name, value.into());
        self
    }

    pub(crate) fn is(mut self, value: f64) -> AnkerRecord {
        self.value = Some(value);
        self
    }

    pub(crate) fn beside(mut self, paper: Option<f64>) -> AnkerRecord {
        self.paper = paper;
        self
    }

    pub(crate) fn beside_range(mut self, paper: Option<(f64, f64)>) -> AnkerRecord {
        self.paper = paper.map(|(from, _)| from);
        self.paper_to = paper.filter(|(from, to)| from < to).map(|(_, to)| to);
        self
    }

    pub(crate) fn refused(mut self, why: &str) -> AnkerRecord {
        self.refused = Some(why.to_string());
        self
    }

    /// Ours, with the paper's in brackets.
    fn cell(&self) -> String {
        let ours = match (self.value, &self.refused) {
            (Some(value), _) => number(value),
            (None, Some(_)) => "refused".to_string(),
            (None, None) => "–".to_string(),
        };
        match (self.paper, self.paper_to) {
            (Some(from), Some(to)) => format!("{ours} ({}–{})", number(from), number(to)),
            (Some(paper), None) => format!("{ours} ({})", number(paper)),
            (None, _) => ours,
        }
    }
}

/// With the digits that say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => {
            let digits = format!("{value:.0}");
            let (sign, digits) = digits.split_at(usize::from(value < 0.0));
            let first = digits.len() % 3;
            let groups = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
            let groups: Vec<_> =
                (first > 0).then(|| digits[..first].into()).into_iter().chain(groups).collect();
            format!("{sign}{}", groups.join(","))
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// The records for people: for each experiment and metric a table, in whose columns one parameter varies. The paper's figures are in
/// brackets.
pub fn anker_table(records: &[AnkerRecord]) -> String {
    let mut text = String::new();
    for of_experiment in records.chunk_by(|one, next| one.experiment == next.experiment) {
        let experiment = crate::figures::named(of_experiment[0].experiment);
        let (title, across) = experiment.map_or(("", ""), |experiment| (experiment.title, experiment.across));
        let mut metrics: Vec<&str> = Vec::new();
        of_experiment.iter().for_each(|record| {
            if !metrics.contains(&record.metric) {
                metrics.push(record.metric);
            }
        });
        for metric in metrics {
            let own: Vec<&AnkerRecord> =
                of_experiment.iter().filter(|record| record.metric == metric).collect();
            text += &format!("{}: {title}, {metric} (the paper's in brackets)\n\n", own[0].experiment);
            text += &one_table(&own, across);
            text.push('\n');
        }
        let mut reasons: Vec<&String> =
            of_experiment.iter().filter_map(|record| record.refused.as_ref()).collect();
        reasons.dedup();
        if let Some(reason) = reasons.first() {
            text += &format!("refused: {reason}\n\n");
        }
    }
    text
}

fn one_table(records: &[&AnkerRecord], across: &str) -> String {
    let mut heads: Vec<String> = Vec::new();
    let mut rows: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    for record in records {
        let head = record.point.get(across).map_or_else(String::new, Parameter::to_string);
        if !heads.contains(&head) {
            heads.push(head.clone());
        }
        let others = record.point.iter().filter(|(name, _)| **name != across);
        let others: Vec<String> =
            others.map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
        let name = [&[record.system.to_string()], others.as_slice()].concat().join(", ");
        match rows.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cells)) => drop(cells.insert(head, record.cell())),
            None => rows.push((name, BTreeMap::from([(head, record.cell())]))),
        }
    }
    let mut text = format!(
        "| by {} | {} |
|{}
",
        across.replace('_', " "),
        heads.join(" | "),
        " --- |".repeat(heads.len() + 1)
    );
    for (name, cells) in rows {
        let cells = heads.iter().map(|head| cells.get(head).map_or("", String::as_str));
        text += &format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let shown = [0.0123, 5.25, 123.4, 47_729.4, 1_234_567.0, -67.6, -5_000.0].map(number);
        assert_eq!(shown, ["0.012", "5.2", "123", "47,729", "1,234,567", "-67.6", "-5,000"]);
    }

    #[test]
    fn tables_have_the_papers_figures_beside_ours_and_say_what_was_refused() {
        let record = |columns: usize| {
            AnkerRecord::new("table-2-1", "rewire", "snapshot_ms")
                .at("columns", columns)
                .at("modified_pages", 500_usize)
        };
        let records = [
            record(1).is(0.5).beside(Some(1.22)),
            record(50).refused("no more mappings").beside(Some(61.87)),
        ];
        let table = anker_table(&records);
        assert!(table.contains("| by columns | 1 | 50 |"), "{table}");
        assert!(table.contains("| rewire, modified pages 500 | 0.500 (1.2) | refused (61.9) |"), "{table}");
        assert!(table.contains("refused: no more mappings"), "{table}");
        let range = record(1).is(2.0).beside_range(Some((30_000.0, 38_000.0)));
        assert!(anker_table(&[range]).contains("2.0 (30,000–38,000)"));
    }
}
