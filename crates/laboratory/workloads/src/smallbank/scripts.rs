//! The four transactions of ChainifyDB (paper 002, section 4.8.1) as scripts, for ledgers whose databases execute those: each
//! equally often.

use super::{AMOUNT_MAX, Smallbank};
use rand::{Rng, RngExt};
use types::{Outcome, Payload, Value};

const TRANSACT_SAVINGS: &str = "UPDATE savings SET balance = balance + $1 WHERE customer_id = $2";
const DEPOSIT_CHECKING: &str = "UPDATE checking SET balance = balance + $1 WHERE customer_id = $2";
const SEND_PAYMENT: &str = "UPDATE checking SET balance = balance - $1 WHERE customer_id = $2; \
                            UPDATE checking SET balance = balance + $1 WHERE customer_id = $3";
const WRITE_CHECK: &str = "UPDATE checking SET balance = balance - $1 WHERE customer_id = $2";

impl Smallbank {
    /// The next script.
    pub fn next_script(&self, random: &mut impl Rng) -> Payload {
        let one = self.customer(random);
        let amount = random.random_range(1..=AMOUNT_MAX);
        let (sql, parameters) = match random.random_range(0..4) {
            0 => (TRANSACT_SAVINGS, vec![if random.random_bool(0.5) { amount } else { -amount }, one]),
            1 => (DEPOSIT_CHECKING, vec![amount, one]),
            2 => (SEND_PAYMENT, vec![amount, one, self.other(random, one)]),
            _ => (WRITE_CHECK, vec![amount, one]),
        };
        Payload::Script {
            sql: sql.to_string(),
            parameters: parameters.into_iter().map(Value::BigInt).collect(),
        }
    }
}

/// By how much a script that ended like this changes the sum of all balances, in cents.
pub fn money_change_of_script(sql: &str, parameters: &[Value], outcome: &Outcome) -> i128 {
    let (Outcome::Committed(_), Some(Value::BigInt(amount))) = (outcome, parameters.first()) else {
        return 0;
    };
    match sql {
        TRANSACT_SAVINGS | DEPOSIT_CHECKING => i128::from(*amount),
        WRITE_CHECK => -i128::from(*amount),
        _ => 0,
    }
}
