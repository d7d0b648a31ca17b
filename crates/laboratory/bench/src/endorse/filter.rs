use super::experiments::Experiment;
use super::point::Point;
use super::system::SYSTEMS;
use crate::LaboratoryError;
use std::collections::{BTreeMap, BTreeSet};

/// What `--only` leaves: of every key that is named, one of its values.
pub(super) struct Filter(BTreeMap<String, Vec<String>>);

impl Filter {
    /// From `key=value` texts; they are checked against what the file of experiments has.
    pub(super) fn parse(only: &[String], experiments: &[Experiment]) -> Result<Filter, LaboratoryError> {
        let (mut parameters, mut variants) = (BTreeSet::new(), BTreeSet::new());
        for point in experiments.iter().flat_map(Experiment::points) {
            parameters.extend(point.parameters().into_keys());
            variants.extend(Some(point.variant().to_string()).filter(|variant| !variant.is_empty()));
        }
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in only {
            let wrong = |expected: String| Err(LaboratoryError::Only { expected, found: text.clone() });
            let Some((key, value)) = text.split_once('=') else {
                return wrong("key=value, such as system=fabric++".to_string());
            };
            let (key, value) = (key.trim(), value.trim());
            let known: Vec<&str> = match key {
                "experiment" => experiments.iter().map(|experiment| experiment.id.as_str()).collect(),
                "system" => SYSTEMS.iter().map(|system| system.name).collect(),
                "variant" => variants.iter().map(String::as_str).collect(),
                number if !parameters.contains(number) => {
                    let keys: Vec<&str> = ["experiment", "system", "variant"]
                        .into_iter()
                        .chain(parameters.iter().map(String::as_str))
                        .collect();
                    return wrong(format!("as key one of {}", keys.join(", ")));
                }
                number if !value.parse::<f64>().is_ok_and(f64::is_finite) => {
                    return wrong(format!("a number as {number}"));
                }
                _ => vec![value],
            };
            if !known.contains(&value) {
                return wrong(format!("as {key} one of {}", known.join(", ")));
            }
            wanted.entry(key.to_string()).or_default().push(value.to_string());
        }
        Ok(Filter(wanted))
    }

    pub(super) fn leaves(&self, experiment: &Experiment, point: &Point) -> bool {
        self.0.iter().all(|(key, values)| {
            values.iter().any(|value| match key.as_str() {
                "experiment" => *value == experiment.id,
                "system" => value == point.system.name,
                "variant" => value == point.variant(),
                number => point.parameters().get(number).is_some_and(|found| value.parse() == Ok(*found)),
            })
        })
    }
}
