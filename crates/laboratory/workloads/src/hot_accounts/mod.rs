//! Fabric++'s own workload (Sharma et al., SIGMOD 2019, 6.2.2): transactions that read and write a few accounts, some of
//! which are hot.

mod follower;

use crate::parameters::ROWS_MAX;
use crate::workload::{Follower, portions_of, statements};
use crate::{Call, Invariant, ParameterError, Rows, Workload};
use rand::RngExt;
use rand::rngs::StdRng;
use types::{Outcome, Value};

const SCHEMA: &str = include_str!("schema.sql");
const PROCEDURES: &str = include_str!("procedures.sql");

/// Reads and writes, each hot with its own probability; read and written accounts are chosen independently.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HotAccounts {
    /// Accounts.
    pub accounts: u64,
    /// Accounts that a transaction reads, and as many that it writes: 4 or 8 (RW); 0 for blank transactions (1).
    pub operations: u32,
    /// Probability that a read is of a hot account (HR).
    pub hot_reads: f64,
    /// Probability that a write is (HW).
    pub hot_writes: f64,
    /// Share of the accounts that is hot (HSS).
    pub hot_share: f64,
}

impl HotAccounts {
    /// Checks the parameters.
    ///
    /// # Errors
    /// Which one is out of range.
    pub fn check(self) -> Result<HotAccounts, ParameterError> {
        if !(100..=ROWS_MAX).contains(&self.accounts) {
            return Err(ParameterError::Rows {
                workload: "hot-accounts",
                least: 100,
                most: ROWS_MAX,
                found: self.accounts,
            });
        }
        for found in [self.hot_reads, self.hot_writes, self.hot_share] {
            if !(0.0..=1.0).contains(&found) {
                return Err(ParameterError::Share { workload: "hot-accounts", found });
            }
        }
        if ![0, 4, 8].contains(&self.operations) {
            return Err(ParameterError::Operations(self.operations));
        }
        Ok(self)
    }

    fn account(&self, hot: f64, random: &mut StdRng) -> Value {
        let number = ((self.accounts as f64 * self.hot_share) as u64).clamp(1, self.accounts - 1);
        Value::BigInt(match random.random_bool(hot) {
            true => random.random_range(1..=number),
            false => random.random_range(number + 1..=self.accounts),
        } as i64)
    }
}

impl Workload for HotAccounts {
    fn id(&self) -> &'static str {
        "hot-accounts"
    }

    fn set_up(&self) -> Vec<&'static str> {
        statements(SCHEMA, PROCEDURES)
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        Box::new(portions_of(self.accounts).map(|(first, count)| Rows {
            table: "hot_accounts",
            columns: &["account_id", "balance"],
            rows: (first..first + count).map(|id| vec![Value::BigInt(id as i64), Value::BigInt(0)]).collect(),
        }))
    }

    fn call(&self, _: u64, random: &mut StdRng) -> Call {
        let mut arguments = Vec::with_capacity(2 * self.operations as usize);
        for hot in [self.hot_reads, self.hot_writes] {
            arguments.extend((0..self.operations).map(|_| self.account(hot, random)));
        }
        let procedure = match self.operations {
            0 => "hot_0",
            4 => "hot_4",
            _ => "hot_8",
        };
        Call { procedure, arguments }
    }

    /// No sum is kept but the number of accounts: what they hold is overwritten. The follower knows what that must be.
    fn invariant(&self) -> Invariant {
        let queries = &["SELECT count(*) FROM hot_accounts"];
        Invariant { queries, initial: i128::from(self.accounts), change }
    }

    fn follower(&self) -> Option<Box<dyn Follower>> {
        Some(Box::new(follower::LastWriters::of(self)))
    }
}

fn change(_: &str, _: &[Value], _: &Outcome) -> i128 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_probabilities_are_those_of_reads_and_writes() {
        let workload =
            HotAccounts { accounts: 10_000, operations: 8, hot_reads: 0.4, hot_writes: 0.1, hot_share: 0.01 };
        let workload = workload.check().expect("valid");
        let mut random = StdRng::seed_from_u64(5);
        let (mut reads, mut writes) = (0, 0);
        for number in 0..2_000 {
            let call = workload.call(number, &mut random);
            assert_eq!((call.procedure, call.arguments.len()), ("hot_8", 16));
            let hot = |value: &&Value| matches!(value, Value::BigInt(id) if *id <= 100);
            reads += call.arguments[..8].iter().filter(hot).count();
            writes += call.arguments[8..].iter().filter(hot).count();
        }
        assert!((6_000..6_800).contains(&reads) && (1_400..1_800).contains(&writes), "{reads}, {writes}");
        assert!(HotAccounts { operations: 5, ..workload }.check().is_err());
        assert!(HotAccounts { hot_reads: 1.5, ..workload }.check().is_err());
    }
}
