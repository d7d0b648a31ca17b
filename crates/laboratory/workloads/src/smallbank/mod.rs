//! Smallbank (Alomari et al., 2008) with the mix of HarmonyBC: 25 % SendPayment, 15 % each of the other five; customers
//! by Zipf's law.

mod scripts;

pub use crate::ParameterError;
use crate::parameters::ROWS_MAX;
use crate::workload::portions_of;
use crate::{Call, Invariant, Rows, Workload};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Zipf};
pub use scripts::money_change_of_script;
use types::{Outcome, Value};

/// The three tables, one statement each.
pub const SCHEMA: &str = include_str!("schema.sql");
/// The six procedures, one statement each.
pub const PROCEDURES: &str = include_str!("procedures.sql");

/// Balance of every account at the beginning, in cents.
pub const INITIAL_BALANCE: i64 = 1_000_000;
/// Largest amount of a call, in cents.
pub const AMOUNT_MAX: i64 = 100;

/// A population of customers, numbered from 1, and how they are chosen.
#[derive(Clone, Debug)]
pub struct Smallbank {
    customers: u64,
    choice: Zipf<f64>,
    mix: Mix,
}

/// Which procedures are called, and how often.
#[derive(Clone, Copy, Debug)]
enum Mix {
    HarmonyBC,
    /// With this probability a call writes.
    FabricPlusPlus(f64),
    ChainifyDb,
}

impl Smallbank {
    /// `customers` of whom number k is chosen with a probability proportional to `1 / k^skew`.
    ///
    /// # Errors
    /// Fewer than two customers; a skew that is negative, above 10 or no number.
    pub fn new(customers: u64, skew: f64) -> Result<Smallbank, ParameterError> {
        if !(2..=ROWS_MAX).contains(&customers) {
            return Err(ParameterError::Rows {
                workload: "smallbank",
                least: 2,
                most: ROWS_MAX,
                found: customers,
            });
        }
        if !(0.0..=10.0).contains(&skew) {
            return Err(ParameterError::Skew(skew));
        }
        let choice = Zipf::new(customers as f64, skew).map_err(|_| ParameterError::Skew(skew))?;
        Ok(Smallbank { customers, choice, mix: Mix::HarmonyBC })
    }

    /// With the mix of Fabric++ (Sharma et al., SIGMOD 2019, 6.2.2): with this probability one of the five procedures that
    /// write, each equally often, otherwise `balance`.
    ///
    /// # Errors
    /// No probability.
    pub fn with_write_probability(self, writes: f64) -> Result<Smallbank, ParameterError> {
        if !(0.0..=1.0).contains(&writes) {
            return Err(ParameterError::Share { workload: "smallbank", found: writes });
        }
        Ok(Smallbank { mix: Mix::FabricPlusPlus(writes), ..self })
    }

    /// With the mix of ChainifyDB (Sharma, 2021, 4.8.1): four procedures that write, each equally often, as [`Smallbank::next_script`]
    /// does with scripts.
    #[must_use]
    pub fn with_chainify_mix(self) -> Smallbank {
        Smallbank { mix: Mix::ChainifyDb, ..self }
    }

    /// The statements of schema and procedures, one by one.
    pub fn statements() -> impl Iterator<Item = &'static str> {
        crate::workload::statements(SCHEMA, PROCEDURES).into_iter()
    }

    /// The statements of the schema alone.
    pub fn tables() -> impl Iterator<Item = &'static str> {
        crate::workload::statements(SCHEMA, "").into_iter()
    }

    /// Rows of customers `first..first + count` for the three tables.
    pub fn rows(&self, first: u64, count: u64) -> [Rows; 3] {
        let last = (first + count).min(self.customers + 1);
        let ids = || (first..last).map(|id| id as i64);
        let balances = |table| Rows {
            table,
            columns: &["customer_id", "balance"],
            rows: ids().map(|id| vec![Value::BigInt(id), Value::BigInt(INITIAL_BALANCE)]).collect(),
        };
        let accounts = Rows {
            table: "accounts",
            columns: &["customer_id", "name"],
            rows: ids().map(|id| vec![Value::BigInt(id), Value::text(format!("customer {id}"))]).collect(),
        };
        [accounts, balances("savings"), balances("checking")]
    }

    /// The sum of all balances at the beginning, in cents.
    pub fn initial_total(&self) -> i128 {
        i128::from(self.customers) * 2 * i128::from(INITIAL_BALANCE)
    }

    /// The next call.
    pub fn next_call(&self, random: &mut impl Rng) -> Call {
        let one = self.customer(random);
        let amount = Value::BigInt(random.random_range(1..=AMOUNT_MAX));
        let draw = match self.mix {
            Mix::HarmonyBC => random.random_range(0..100),
            Mix::FabricPlusPlus(writes) if random.random_bool(writes) => {
                [0, 15, 30, 55, 70][random.random_range(0..5)]
            }
            Mix::FabricPlusPlus(_) => 85,
            Mix::ChainifyDb => [0, 15, 30, 55][random.random_range(0..4)],
        };
        let (procedure, arguments) = match draw {
            0..15 => {
                let sign = if random.random_bool(0.5) { 1 } else { -1 };
                let change = sign * random.random_range(1..=AMOUNT_MAX);
                ("transact_savings", vec![Value::BigInt(one), Value::BigInt(change)])
            }
            15..30 => ("deposit_checking", vec![Value::BigInt(one), amount]),
            30..55 => {
                ("send_payment", vec![Value::BigInt(one), Value::BigInt(self.other(random, one)), amount])
            }
            55..70 => ("write_check", vec![Value::BigInt(one), amount]),
            70..85 => ("amalgamate", vec![Value::BigInt(one), Value::BigInt(self.other(random, one))]),
            _ => ("balance", vec![Value::BigInt(one)]),
        };
        Call { procedure, arguments }
    }

    /// Who pays, whom, and how much, in cents.
    pub fn payment(&self, random: &mut impl Rng) -> Vec<Value> {
        let amount = Value::BigInt(random.random_range(1..=AMOUNT_MAX));
        vec![Value::BigInt(self.customer(random)), Value::BigInt(self.customer(random)), amount]
    }

    fn customer(&self, random: &mut impl Rng) -> i64 {
        (self.choice.sample(random) as u64).clamp(1, self.customers) as i64
    }

    fn other(&self, random: &mut impl Rng, one: i64) -> i64 {
        // At a high skew nearly every draw is the first customer: after a few the neighbour is taken.
        for _ in 0..8 {
            let other = self.customer(random);
            if other != one {
                return other;
            }
        }
        one % self.customers as i64 + 1
    }
}

impl Workload for Smallbank {
    fn id(&self) -> &'static str {
        "smallbank"
    }

    fn set_up(&self) -> Vec<&'static str> {
        Smallbank::statements().collect()
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        Box::new(portions_of(self.customers).flat_map(|(first, count)| self.rows(first, count)))
    }

    fn call(&self, _: u64, random: &mut StdRng) -> Call {
        self.next_call(random)
    }

    fn invariant(&self) -> Invariant {
        let queries = &["SELECT sum(balance) FROM savings", "SELECT sum(balance) FROM checking"];
        Invariant { queries, initial: self.initial_total(), change: money_change }
    }
}

/// By how much a call that ended like this changes the sum of all balances, in cents: the invariant is that the sum is
/// [`Smallbank::initial_total`] plus these.
pub fn money_change(procedure: &str, arguments: &[Value], outcome: &Outcome) -> i128 {
    let Outcome::Committed(results) = outcome else { return 0 };
    let amount = |value: Option<&Value>| match value {
        Some(Value::BigInt(amount)) => i128::from(*amount),
        Some(Value::Integer(amount)) => i128::from(*amount),
        _ => 0,
    };
    match procedure {
        "transact_savings" | "deposit_checking" => amount(arguments.get(1)),
        "write_check" => {
            let charged = results.first().and_then(|result| result.rows.first()).and_then(|row| row.first());
            -amount(charged)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeMap;

    #[test]
    fn statements_are_three_tables_and_six_procedures() {
        let statements: Vec<_> = Smallbank::statements().collect();
        assert_eq!(statements.len(), 9);
        assert_eq!(statements.iter().filter(|text| text.contains("CREATE PROCEDURE")).count(), 6);
    }

    #[test]
    fn the_mix_is_that_of_harmonybc() {
        let smallbank = Smallbank::new(1_000, 0.9).expect("valid");
        let mut random = StdRng::seed_from_u64(1);
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for _ in 0..20_000 {
            let call = smallbank.next_call(&mut random);
            *counts.entry(call.procedure).or_default() += 1;
            if let ("send_payment" | "amalgamate", [one, other, ..]) =
                (call.procedure, call.arguments.as_slice())
            {
                assert_ne!(one, other, "money moves between two customers");
            }
        }
        for (procedure, count) in counts {
            let expected = if procedure == "send_payment" { 5_000 } else { 3_000 };
            assert!(count.abs_diff(expected) < 300, "{procedure}: {count}");
        }
    }

    #[test]
    fn a_high_skew_still_finds_two_customers() {
        let smallbank = Smallbank::new(2, 10.0).expect("valid");
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..200 {
            let one = smallbank.customer(&mut random);
            assert_ne!(smallbank.other(&mut random, one), one);
        }
        assert_eq!(
            Smallbank::new(1, 0.0).err(),
            Some(ParameterError::Rows { workload: "smallbank", least: 2, most: ROWS_MAX, found: 1 })
        );
        assert!(Smallbank::new(2, f64::NAN).is_err());
    }

    #[test]
    fn rows_cover_every_customer_once() {
        let smallbank = Smallbank::new(10, 0.0).expect("valid");
        let ids: Vec<Value> = [(1, 4), (5, 4), (9, 4)]
            .iter()
            .flat_map(|(first, count)| smallbank.rows(*first, *count)[1].rows.clone())
            .map(|row| row[0].clone())
            .collect();
        assert_eq!(ids, (1..=10).map(Value::BigInt).collect::<Vec<_>>());
    }
}
