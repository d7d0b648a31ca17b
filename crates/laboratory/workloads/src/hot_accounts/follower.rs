use super::HotAccounts;
use crate::Follower;
use types::{Outcome, Value};

/// What an account can hold: a call says what the accounts that it has read came to, and from that follows what it has written
/// where. Of the calls in one block any may have been the last; of an earlier block none.
pub(super) struct LastWriters {
    operations: usize,
    /// By account, from 1.
    accounts: Vec<Written>,
}

/// What may have been written to an account.
#[derive(Clone, Default)]
struct Written {
    /// In the block of this height, the last in which somebody has; 0: nobody has.
    height: u64,
    values: Vec<i64>,
}

impl LastWriters {
    /// Nobody has called anything yet.
    pub(super) fn of(workload: &HotAccounts) -> LastWriters {
        let accounts = vec![Written::default(); workload.accounts as usize];
        LastWriters { operations: workload.operations as usize, accounts }
    }
}

/// What a committed call says that it has read.
fn total(outcome: &Outcome) -> Option<i64> {
    let Outcome::Committed(results) = outcome else { return None };
    match results.last()?.rows.first()?.first()? {
        Value::BigInt(total) => Some(*total),
        _ => None,
    }
}

impl Follower for LastWriters {
    fn ended(&mut self, height: u64, _: &str, arguments: &[Value], outcome: &Outcome) {
        let Some(total) = total(outcome) else { return };
        let written = &arguments[self.operations..];
        for (position, account) in written.iter().enumerate() {
            // A call that writes an account twice leaves what it wrote last.
            let Value::BigInt(number) = account else { continue };
            if written[position + 1..].contains(account) {
                continue;
            }
            let account = &mut self.accounts[*number as usize - 1];
            if account.height != height {
                *account = Written { height, values: Vec::new() };
            }
            account.values.push((total + position as i64 + 1) % 1_000);
        }
    }

    fn query(&self) -> &'static str {
        "SELECT account_id, balance FROM hot_accounts ORDER BY account_id"
    }

    fn check(&self, rows: &[Vec<Value>]) -> Result<(), String> {
        let (expected, found) = (self.accounts.len(), rows.len());
        if found != expected {
            return Err(format!("expected {expected} accounts, found {found}"));
        }
        for ((number, account), row) in (1..).zip(&self.accounts).zip(rows) {
            let [Value::BigInt(id), Value::BigInt(balance)] = row.as_slice() else {
                return Err(format!("expected an account and a number, found {row:?}"));
            };
            let right = match account.height {
                0 => *balance == 0,
                _ => account.values.contains(balance),
            };
            if *id != number || !right {
                let Written { height, values } = account;
                return Err(format!(
                    "account {number} was written last in block {height}, with one of {values:?}; found {balance} in \
                     account {id}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use types::StatementResult;

    #[test]
    fn what_no_committed_call_has_written_is_found() {
        let workload =
            HotAccounts { accounts: 100, operations: 4, hot_reads: 0.5, hot_writes: 0.5, hot_share: 0.1 };
        let (mut random, mut balances) = (StdRng::seed_from_u64(3), [0; 100]);
        let mut follower = LastWriters::of(&workload);
        let mut lost = None;
        for number in 0..60 {
            let call = workload.call(number, &mut random);
            let accounts: Vec<usize> = call
                .arguments
                .iter()
                .map(|account| match account {
                    Value::BigInt(id) => *id as usize - 1,
                    other => panic!("{other:?}"),
                })
                .collect();
            let total: i64 = accounts[..4].iter().map(|account| balances[*account]).sum();
            let before = balances;
            for (write, account) in (1..).zip(&accounts[4..]) {
                balances[*account] = (total + write) % 1_000;
            }
            let rows = vec![vec![Value::BigInt(total)]];
            let outcome = Outcome::Committed(vec![StatementResult { rows, ..StatementResult::default() }]);
            // Blocks of three.
            follower.ended(1 + number / 3, call.procedure, &call.arguments, &outcome);
            follower.ended(1 + number / 3, call.procedure, &call.arguments, &Outcome::Conflict);
            lost = (number == 59).then_some(before);
        }
        let rows = |balances: &[i64]| -> Vec<Vec<Value>> {
            (1..)
                .zip(balances)
                .map(|(id, balance)| vec![Value::BigInt(id), Value::BigInt(*balance)])
                .collect()
        };
        assert_eq!(follower.check(&rows(&balances)), Ok(()));
        let found = follower.check(&rows(&lost.expect("the last call"))).expect_err("the last call is lost");
        assert!(found.contains("was written last in block 20"), "{found}");
        let mut made_up = balances;
        made_up[99] += 1;
        assert!(follower.check(&rows(&made_up)).is_err_and(|found| found.contains("account 100")));
        assert!(follower.check(&rows(&balances[1..])).is_err_and(|found| found.contains("found 99")));
    }
}
