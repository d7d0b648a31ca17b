//! YCSB (Cooper et al., 2010) as HarmonyBC runs it: ten operations in a transaction, each with equal probability a SELECT
//! whose value is looked at or an UPDATE by command, keys by Zipf's law. And its hot-spot variant: ten UPDATEs, each of
//! which hits one of the 1 % hot rows with a given probability.

use crate::parameters::ROWS_MAX;
use crate::workload::{portions_of, statements};
use crate::{Call, Invariant, ParameterError, Rows, Workload};
use rand::RngExt;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Zipf};
use types::{Outcome, Value};

/// Operations of a transaction.
const OPERATIONS: usize = 10;
/// The procedures by how many of their operations are updates.
const PROCEDURE_OF_UPDATES: [&str; OPERATIONS + 1] = [
    "ycsb_0", "ycsb_1", "ycsb_2", "ycsb_3", "ycsb_4", "ycsb_5", "ycsb_6", "ycsb_7", "ycsb_8", "ycsb_9",
    "ycsb_10",
];
/// Value of every row at the beginning.
const INITIAL_VALUE: i64 = 1_000;
/// Largest amount that an update adds.
const AMOUNT_MAX: i64 = 100;
/// One row in so many is hot.
const HOT_ROW_OF: u64 = 100;

const SCHEMA: &str = include_str!("schema.sql");
const PROCEDURES: &str = include_str!("procedures.sql");

/// SELECTs and UPDATEs with equal probability, keys by Zipf's law.
#[derive(Clone, Debug)]
pub struct Ycsb {
    keys: u64,
    choice: Zipf<f64>,
}

impl Ycsb {
    /// `keys` of which number k is chosen with a probability proportional to `1 / k^skew`.
    ///
    /// # Errors
    /// No key or too many; a skew that is negative, above 10 or no number.
    pub fn new(keys: u64, skew: f64) -> Result<Ycsb, ParameterError> {
        check_rows("ycsb", keys, 1)?;
        if !(0.0..=10.0).contains(&skew) {
            return Err(ParameterError::Skew(skew));
        }
        let choice = Zipf::new(keys as f64, skew).map_err(|_| ParameterError::Skew(skew))?;
        Ok(Ycsb { keys, choice })
    }
}

impl Workload for Ycsb {
    fn id(&self) -> &'static str {
        "ycsb"
    }

    fn set_up(&self) -> Vec<&'static str> {
        statements(SCHEMA, PROCEDURES)
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        portions(self.keys)
    }

    fn call(&self, _: u64, random: &mut StdRng) -> Call {
        let updates = (0..OPERATIONS).filter(|_| random.random_bool(0.5)).count();
        call(updates, random, |random| (self.choice.sample(random) as u64).clamp(1, self.keys))
    }

    fn invariant(&self) -> Invariant {
        invariant(self.keys)
    }
}

/// Ten UPDATEs that meet in the hot rows.
#[derive(Clone, Debug)]
pub struct YcsbHotspot {
    keys: u64,
    probability: f64,
}

impl YcsbHotspot {
    /// `keys` of which the first hundredth is hot; an update hits a hot row with this probability, otherwise one of the
    /// others, evenly.
    ///
    /// # Errors
    /// Fewer than 200 keys or too many; a probability outside 0 to 1.
    pub fn new(keys: u64, probability: f64) -> Result<YcsbHotspot, ParameterError> {
        check_rows("ycsb-hotspot", keys, 2 * HOT_ROW_OF)?;
        if !(0.0..=1.0).contains(&probability) {
            return Err(ParameterError::Share { workload: "ycsb-hotspot", found: probability });
        }
        Ok(YcsbHotspot { keys, probability })
    }
}

impl Workload for YcsbHotspot {
    fn id(&self) -> &'static str {
        "ycsb-hotspot"
    }

    fn set_up(&self) -> Vec<&'static str> {
        statements(SCHEMA, PROCEDURES)
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        portions(self.keys)
    }

    fn call(&self, _: u64, random: &mut StdRng) -> Call {
        let hot = self.keys / HOT_ROW_OF;
        call(OPERATIONS, random, |random| {
            if random.random_bool(self.probability) {
                random.random_range(1..=hot)
            } else {
                random.random_range(hot + 1..=self.keys)
            }
        })
    }

    fn invariant(&self) -> Invariant {
        invariant(self.keys)
    }
}

fn check_rows(workload: &'static str, found: u64, least: u64) -> Result<(), ParameterError> {
    if (least..=ROWS_MAX).contains(&found) {
        Ok(())
    } else {
        Err(ParameterError::Rows { workload, least, most: ROWS_MAX, found })
    }
}

fn call(updates: usize, random: &mut StdRng, key: impl Fn(&mut StdRng) -> u64) -> Call {
    let mut arguments: Vec<Value> = (0..OPERATIONS).map(|_| Value::BigInt(key(random) as i64)).collect();
    arguments.push(Value::BigInt(random.random_range(1..=AMOUNT_MAX)));
    Call { procedure: PROCEDURE_OF_UPDATES[updates], arguments }
}

fn portions(keys: u64) -> Box<dyn Iterator<Item = Rows>> {
    Box::new(portions_of(keys).map(|(first, count)| {
        Rows {
            table: "usertable",
            columns: &["key", "v"],
            rows: (first..first + count)
                .map(|key| vec![Value::BigInt(key as i64), Value::BigInt(INITIAL_VALUE)])
                .collect(),
        }
    }))
}

fn invariant(keys: u64) -> Invariant {
    let initial = i128::from(keys) * i128::from(INITIAL_VALUE);
    Invariant { queries: &["SELECT sum(v) FROM usertable"], initial, change }
}

/// Every update adds the amount, which is the last argument.
fn change(procedure: &str, arguments: &[Value], outcome: &Outcome) -> i128 {
    let updates = PROCEDURE_OF_UPDATES.iter().position(|name| *name == procedure).unwrap_or(0);
    match (outcome, arguments.last()) {
        (Outcome::Committed(_), Some(Value::BigInt(amount))) => updates as i128 * i128::from(*amount),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    /// The share of operations on the first `first` keys.
    fn share(workload: &dyn Workload, first: i64) -> f64 {
        let mut random = StdRng::seed_from_u64(5);
        let calls = 5_000;
        let mut found = 0;
        for number in 0..calls {
            let arguments = workload.call(number, &mut random).arguments;
            assert_eq!(arguments.len(), OPERATIONS + 1);
            let on_first = |value: &&Value| matches!(value, Value::BigInt(key) if (1..=first).contains(key));
            found += arguments[..OPERATIONS].iter().filter(on_first).count();
        }
        found as f64 / (calls as usize * OPERATIONS) as f64
    }

    #[test]
    fn keys_follow_zipf() {
        let uniform = share(&Ycsb::new(10_000, 0.0).expect("valid"), 100);
        assert!((uniform - 0.01).abs() < 0.003, "{uniform}");
        // The hundredth harmonic number over the ten-thousandth: 5.187 / 9.788.
        let skewed = share(&Ycsb::new(10_000, 1.0).expect("valid"), 100);
        assert!((skewed - 0.53).abs() < 0.02, "{skewed}");
    }

    #[test]
    fn hot_rows_are_hit_with_the_probability() {
        for probability in [0.0, 0.3, 1.0] {
            let found = share(&YcsbHotspot::new(10_000, probability).expect("valid"), 100);
            assert!((found - probability).abs() < 0.02, "{probability}: {found}");
        }
    }

    #[test]
    fn procedures_have_as_many_updates_as_the_invariant_counts() {
        for (updates, name) in PROCEDURE_OF_UPDATES.into_iter().enumerate() {
            let all = statements(SCHEMA, PROCEDURES);
            let header = format!("CREATE PROCEDURE {name}(");
            let text = all.iter().find(|text| text.contains(&header)).expect("it is there");
            assert_eq!(text.matches("UPDATE usertable").count(), updates);
            assert_eq!(text.matches("SELECT v INTO").count(), OPERATIONS - updates);
        }
    }
}
