use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::hash::BuildHasher;
use tokio::sync::mpsc;
use types::{Outcome, Receipt, RejectReason, SubmissionRefusal, SubmissionReply, TransactionId};

/// Locks that waiting clients are spread over.
const SHARDS: usize = 16;
/// Clients that may wait for receipts at once.
const WAITING_MAX: usize = 1_000_000;

/// Who waits for the receipt of a transaction, and where the reply goes.
struct Waiter {
    position: u32,
    /// What ordering knows it by.
    name: TransactionId,
    expires_at: u64,
    reply: mpsc::Sender<SubmissionReply>,
}

/// Clients that wait for receipts, by transaction.
pub(crate) struct Receipts {
    shards: Vec<Mutex<FxHashMap<TransactionId, Vec<Waiter>>>>,
}

impl Receipts {
    pub(crate) fn new() -> Receipts {
        Receipts { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    fn shard(&self, id: &TransactionId) -> &Mutex<FxHashMap<TransactionId, Vec<Waiter>>> {
        let hash = rustc_hash::FxBuildHasher.hash_one(id);
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Sends the receipt of `id` to `reply` when it is recorded; false where too many wait already.
    pub(crate) fn wait(
        &self,
        id: TransactionId,
        name: TransactionId,
        position: u32,
        expires_at: u64,
        reply: mpsc::Sender<SubmissionReply>,
    ) -> bool {
        let mut shard = self.shard(&id).lock();
        if shard.len() >= WAITING_MAX / SHARDS {
            return false;
        }
        shard.entry(id).or_default().push(Waiter { position, name, expires_at, reply });
        true
    }

    /// Tells those who wait for `id` with the endorsements that `name` covers. The others wait on.
    pub(crate) fn answer(
        &self,
        id: &TransactionId,
        name: &TransactionId,
        result: &Result<Receipt, SubmissionRefusal>,
    ) {
        let mut shard = self.shard(id).lock();
        let Some(waiters) = shard.get_mut(id) else { return };
        let answered: Vec<Waiter> = waiters.extract_if(.., |waiter| waiter.name == *name).collect();
        if waiters.is_empty() {
            shard.remove(id);
        }
        drop(shard);
        answered.into_iter().for_each(|waiter| waiter.send(result.clone()));
    }

    /// Hands out the receipts of a block that is recorded. A receipt that says "duplicate" is replaced by the first
    /// one's, which `original` finds: the same transaction gets the same receipt. What is wrong with endorsements is only
    /// told to who sent these: `name` is what ordering knew the transaction by.
    pub(crate) fn publish(
        &self,
        receipts: &[Receipt],
        original: impl Fn(u64, u32) -> Option<Receipt>,
        name: impl Fn(&Receipt) -> TransactionId,
    ) {
        for receipt in receipts {
            if matches!(receipt.outcome, Outcome::Rejected(RejectReason::Endorsement(_))) {
                self.answer(&receipt.transaction, &name(receipt), &Ok(receipt.clone()));
                continue;
            }
            let Some(waiters) = self.shard(&receipt.transaction).lock().remove(&receipt.transaction) else {
                continue;
            };
            let first = match &receipt.outcome {
                Outcome::Rejected(RejectReason::Duplicate { height, index }) => original(*height, *index),
                _ => None,
            };
            for waiter in waiters {
                let result = Ok(first.as_ref().unwrap_or(receipt).clone());
                waiter.send(result);
            }
        }
    }

    /// Answers those whose transaction can no longer be ordered, and forgets those who have gone.
    pub(crate) fn expire(&self, height: u64) {
        for shard in &self.shards {
            shard.lock().retain(|_, waiters| {
                waiters.retain(|waiter| {
                    let expired = waiter.expires_at < height;
                    if expired {
                        let reason = RejectReason::Expired { height, expires_at: waiter.expires_at };
                        waiter.send(Err(SubmissionRefusal::Rejected(reason)));
                    }
                    !expired && !waiter.reply.is_closed()
                });
                !waiters.is_empty()
            });
        }
    }
}

impl Waiter {
    fn send(&self, result: Result<Receipt, SubmissionRefusal>) {
        // The channel has room for every transaction of its submission; an error says that the client has gone.
        let _ = self.reply.try_send(SubmissionReply { position: self.position, result });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::StatementResult;

    fn receipt(id: u8, height: u64, outcome: Outcome) -> Receipt {
        Receipt { transaction: TransactionId(crypto::sha256(&[&[id]])), height, index: 0, outcome }
    }

    #[test]
    fn a_duplicate_gets_the_first_receipt() {
        let receipts = Receipts::new();
        let first = receipt(1, 5, Outcome::Committed(vec![StatementResult::default()]));
        let again = receipt(1, 9, Outcome::Rejected(RejectReason::Duplicate { height: 5, index: 0 }));
        let (sender, mut replies) = mpsc::channel(2);
        assert!(receipts.wait(first.transaction, first.transaction, 7, 100, sender.clone()));
        receipts.publish(
            &[again],
            |height, index| {
                assert_eq!((height, index), (5, 0));
                Some(first.clone())
            },
            |receipt| receipt.transaction,
        );
        let reply = replies.try_recv().expect("published");
        assert_eq!(reply, SubmissionReply { position: 7, result: Ok(first) });
    }

    #[test]
    fn what_is_wrong_with_endorsements_is_told_to_who_sent_them() {
        let receipts = Receipts::new();
        let committed = receipt(1, 5, Outcome::Committed(vec![]));
        let fault = types::EndorsementFault::Repeated { organisation: 1 };
        let rejected = receipt(1, 4, Outcome::Rejected(RejectReason::Endorsement(fault)));
        let id = committed.transaction;
        let name = |number: u8| TransactionId(crypto::sha256(&[&[number]]));
        let (sender, mut replies) = mpsc::channel(3);
        for variant in [10, 11, 12] {
            assert!(receipts.wait(id, name(variant), variant.into(), 100, sender.clone()));
        }
        receipts.publish(std::slice::from_ref(&rejected), |_, _| None, |_| name(11));
        let reply = replies.try_recv().expect("told");
        assert_eq!(reply, SubmissionReply { position: 11, result: Ok(rejected) });
        let early = Err(SubmissionRefusal::EarlyAbort { stale: true });
        receipts.answer(&id, &name(12), &early);
        assert_eq!(replies.try_recv(), Ok(SubmissionReply { position: 12, result: early }));
        assert!(replies.try_recv().is_err());
        receipts.publish(std::slice::from_ref(&committed), |_, _| None, |_| name(99));
        assert_eq!(replies.try_recv(), Ok(SubmissionReply { position: 10, result: Ok(committed) }));
    }

    #[test]
    fn who_waits_for_an_expired_transaction_is_told() {
        let receipts = Receipts::new();
        let (sender, mut replies) = mpsc::channel(2);
        let id = TransactionId(crypto::sha256(&[b"x"]));
        assert!(receipts.wait(id, id, 0, 10, sender));
        receipts.expire(10);
        assert!(replies.try_recv().is_err(), "it may still stand at height 10");
        receipts.expire(11);
        let refusal = SubmissionRefusal::Rejected(RejectReason::Expired { height: 11, expires_at: 10 });
        assert_eq!(replies.try_recv().expect("told").result, Err(refusal));
    }
}
