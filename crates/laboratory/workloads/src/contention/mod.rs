//! Contention as XOX measures it: transfers between two wallets, a share of them between the same two, the rest on
//! pairs that nobody else uses for a long time.

use crate::parameters::ROWS_MAX;
use crate::workload::{portions_of, statements};
use crate::{Call, Invariant, ParameterError, Rows, Workload};
use rand::RngExt;
use rand::rngs::StdRng;
use types::{Outcome, Value};

/// Balance of every wallet at the beginning, in cents: no run is long enough to empty one.
const INITIAL_BALANCE: i64 = 1_000_000_000_000;
/// Largest amount of a transfer, in cents.
const AMOUNT_MAX: i64 = 100;
/// The two wallets that everybody wants.
const CONTESTED: [i64; 2] = [1, 2];

const SCHEMA: &str = include_str!("schema.sql");
const PROCEDURES: &str = include_str!("procedures.sql");

/// Transfers, a share of them between the same two wallets.
#[derive(Clone, Debug)]
pub struct Contention {
    wallets: u64,
    share: f64,
}

impl Contention {
    /// `share` of the transfers, from 0 to 1, are between the same two of the `wallets`; the others take the remaining
    /// wallets pair by pair, in turn.
    ///
    /// # Errors
    /// Fewer than four wallets or too many; a share outside 0 to 1.
    pub fn new(wallets: u64, share: f64) -> Result<Contention, ParameterError> {
        if !(4..=ROWS_MAX).contains(&wallets) {
            return Err(ParameterError::Rows {
                workload: "contention",
                least: 4,
                most: ROWS_MAX,
                found: wallets,
            });
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(ParameterError::Share { workload: "contention", found: share });
        }
        Ok(Contention { wallets, share })
    }
}

impl Workload for Contention {
    fn id(&self) -> &'static str {
        "contention"
    }

    fn set_up(&self) -> Vec<&'static str> {
        statements(SCHEMA, PROCEDURES)
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        Box::new(portions_of(self.wallets).map(|(first, count)| {
            Rows {
                table: "wallets",
                columns: &["wallet_id", "balance"],
                rows: (first..first + count)
                    .map(|id| vec![Value::BigInt(id as i64), Value::BigInt(INITIAL_BALANCE)])
                    .collect(),
            }
        }))
    }

    fn call(&self, number: u64, random: &mut StdRng) -> Call {
        let mut pair = CONTESTED;
        if !random.random_bool(self.share) {
            let first = 3 + 2 * (number % ((self.wallets - 2) / 2)) as i64;
            pair = [first, first + 1];
        }
        // Both directions, so that the contested wallets stay about as full as they are.
        if random.random_bool(0.5) {
            pair.reverse();
        }
        let amount = random.random_range(1..=AMOUNT_MAX);
        let arguments = [pair[0], pair[1], amount].map(Value::BigInt).to_vec();
        Call { procedure: "transfer", arguments }
    }

    fn invariant(&self) -> Invariant {
        let initial = i128::from(self.wallets) * i128::from(INITIAL_BALANCE);
        Invariant { queries: &["SELECT sum(balance) FROM wallets"], initial, change }
    }
}

/// Transfers move money and change nothing.
fn change(_: &str, _: &[Value], _: &Outcome) -> i128 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    #[test]
    fn the_share_meets_in_two_wallets_and_the_rest_in_none() {
        let contention = Contention::new(10_000, 0.4).expect("valid");
        let mut random = StdRng::seed_from_u64(3);
        let (mut contested, mut fresh) = (0, BTreeSet::new());
        for number in 0..4_000 {
            let arguments = contention.call(number, &mut random).arguments;
            let [Value::BigInt(one), Value::BigInt(other), _] = arguments.as_slice() else {
                panic!("{arguments:?}")
            };
            assert_ne!(one, other);
            if CONTESTED.contains(one) {
                assert!(CONTESTED.contains(other));
                contested += 1;
            } else {
                assert!(fresh.insert(*one.min(other)), "{one} {other} is not fresh");
            }
        }
        assert!((1_500..1_700).contains(&contested), "{contested}");
    }
}
