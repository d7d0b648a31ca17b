//! Transfers as FastFabric and SmartFabric measure committers with: they carry a payload, and wallets follow Zipf's law.

use rand::RngExt;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Zipf};
use types::Value;
use workloads::{Call, Contention, Invariant, ParameterError, Rows, Workload};

/// Longest payload: a block of a few hundred must stay within a block's size.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16_384;

/// The contract `transfer` of [`Contention`] with a memo that it does not look at.
const WITH_MEMO: &str =
    "CREATE PROCEDURE transfer_with_memo(sender bigint, receiver bigint, amount bigint, memo text)
LANGUAGE plpgsql AS $$
DECLARE
    sender_balance bigint;
    receiver_balance bigint;
BEGIN
    SELECT balance INTO sender_balance FROM wallets WHERE wallet_id = sender;
    SELECT balance INTO receiver_balance FROM wallets WHERE wallet_id = receiver;
    IF sender_balance IS NULL OR receiver_balance IS NULL OR sender_balance < amount THEN
        RAISE EXCEPTION 'wallet % cannot pay % to wallet %', sender, amount, receiver;
    END IF;
    UPDATE wallets SET balance = sender_balance - amount WHERE wallet_id = sender;
    UPDATE wallets SET balance = receiver_balance + amount WHERE wallet_id = receiver;
END
$$;
";

/// Transfers between pairs of wallets that nobody else uses for a long time, or between wallets by Zipf's law.
pub(super) struct Transfers {
    pairs: Contention,
    wallets: u64,
    choice: Option<Zipf<f64>>,
    payload_bytes: usize,
}

impl Transfers {
    /// As [`Contention`]: a share of them between the same two wallets.
    pub(super) fn of_pairs(
        wallets: u64,
        share: f64,
        payload_bytes: usize,
    ) -> Result<Transfers, ParameterError> {
        Ok(Transfers { pairs: Contention::new(wallets, share)?, wallets, choice: None, payload_bytes })
    }

    /// Both wallets by Zipf's law; one that would pay to itself pays to its neighbour.
    pub(super) fn by_zipf(
        wallets: u64,
        skew: f64,
        payload_bytes: usize,
    ) -> Result<Transfers, ParameterError> {
        if !(0.0..=10.0).contains(&skew) {
            return Err(ParameterError::Skew(skew));
        }
        let choice = Some(Zipf::new(wallets as f64, skew).map_err(|_| ParameterError::Skew(skew))?);
        Ok(Transfers { choice, ..Transfers::of_pairs(wallets, 0.0, payload_bytes)? })
    }
}

impl Workload for Transfers {
    fn id(&self) -> &'static str {
        "transfers"
    }

    fn set_up(&self) -> Vec<&'static str> {
        let mut statements = self.pairs.set_up();
        statements.push(WITH_MEMO);
        statements
    }

    fn portions(&self) -> Box<dyn Iterator<Item = Rows> + '_> {
        self.pairs.portions()
    }

    fn call(&self, number: u64, random: &mut StdRng) -> Call {
        let mut call = self.pairs.call(number, random);
        if let Some(choice) = &self.choice {
            let mut wallet = || (choice.sample(random) as i64).clamp(1, self.wallets as i64);
            let (sender, receiver) = (wallet(), wallet());
            let receiver = if sender == receiver { sender % self.wallets as i64 + 1 } else { receiver };
            call.arguments[0] = Value::BigInt(sender);
            call.arguments[1] = Value::BigInt(receiver);
        }
        if self.payload_bytes > 0 {
            let memo: String = (0..self.payload_bytes).map(|_| random.random_range('a'..='z')).collect();
            call.arguments.push(Value::Text(memo.into()));
            call.procedure = "transfer_with_memo";
        }
        call
    }

    fn invariant(&self) -> Invariant {
        self.pairs.invariant()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn memos_have_their_length_and_nobody_pays_himself() {
        let transfers = Transfers::by_zipf(1_000, 1.5, 700).expect("valid");
        let mut random = StdRng::seed_from_u64(1);
        let mut first = 0;
        for number in 0..2_000 {
            let arguments = transfers.call(number, &mut random).arguments;
            let [Value::BigInt(sender), Value::BigInt(receiver), _, Value::Text(memo)] = arguments.as_slice()
            else {
                panic!("{arguments:?}")
            };
            assert_ne!(sender, receiver);
            assert!((1..=1_000).contains(sender) && (1..=1_000).contains(receiver));
            assert_eq!(memo.len(), 700);
            first += u32::from(*sender == 1);
        }
        // 1 / ζ(1.5) = 0.38.
        assert!((700..850).contains(&first), "{first}");
    }
}
