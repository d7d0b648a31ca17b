use crate::traces::{Traces, Way};
use ledger::Ledger;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use types::{
    AnswerAt, Charters, Outcome, Receipt, RejectReason, SubmissionRefusal, SubmissionReply, TransactionId,
};

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
    answer_at: AnswerAt,
    reply: mpsc::Sender<SubmissionReply>,
    /// Where transactions are traced.
    way: Option<Box<Way>>,
}

/// Clients that wait for receipts, by transaction.
pub(crate) struct Receipts {
    shards: Vec<Mutex<FxHashMap<TransactionId, Vec<Waiter>>>>,
    traces: Option<Arc<Traces>>,
}

/// Where this node's blocks with receipts begin, and how many blocks before its expiry a transaction may stand.
#[derive(Clone, Copy)]
pub(crate) struct Begins {
    first: u64,
    expiry_blocks_max: u64,
}

impl Begins {
    /// What stands in a block that is not here was admitted under any of the charters until now.
    pub(crate) fn of(ledger: &Ledger, charters: &Charters) -> Begins {
        let expiries = charters.reigns().iter().map(|reign| reign.charter.expiry_blocks_max);
        Begins { first: ledger.payloads_from(), expiry_blocks_max: expiries.max().unwrap_or(0).into() }
    }

    /// What is told of a transaction that has no receipt here and can no longer be ordered: where it may stand in a block that
    /// this node has never had, nothing is known.
    pub(crate) fn expired(self, height: u64, expires_at: u64) -> SubmissionRefusal {
        match self.first > 1 && expires_at.saturating_sub(self.expiry_blocks_max) < self.first {
            true => SubmissionRefusal::Unknown,
            false => SubmissionRefusal::Rejected(RejectReason::Expired { height, expires_at }),
        }
    }
}

impl Receipts {
    pub(crate) fn new() -> Receipts {
        Receipts { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), traces: None }
    }

    /// Tells these when receipts go out.
    pub(crate) fn with_traces(self, traces: Option<Arc<Traces>>) -> Receipts {
        Receipts { traces, ..self }
    }

    fn shard(&self, id: &TransactionId) -> &Mutex<FxHashMap<TransactionId, Vec<Waiter>>> {
        let hash = rustc_hash::FxBuildHasher.hash_one(id);
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Sends the receipt of `id` to `reply` at the moment `answer_at`; false where too many wait already.
    pub(crate) fn wait(
        &self,
        (id, name): (TransactionId, TransactionId),
        position: u32,
        expires_at: u64,
        answer_at: AnswerAt,
        reply: mpsc::Sender<SubmissionReply>,
    ) -> bool {
        self.wait_since(Instant::now(), (id, name), position, expires_at, answer_at, reply)
    }

    /// The same for a transaction that came at this time.
    pub(crate) fn wait_since(
        &self,
        came: Instant,
        (id, name): (TransactionId, TransactionId),
        position: u32,
        expires_at: u64,
        answer_at: AnswerAt,
        reply: mpsc::Sender<SubmissionReply>,
    ) -> bool {
        let mut shard = self.shard(&id).lock();
        if shard.len() >= WAITING_MAX / SHARDS {
            return false;
        }
        let way = self.traces.as_ref().map(|_| Box::new(Way { came, admitted: Instant::now() }));
        shard.entry(id).or_default().push(Waiter { position, name, expires_at, answer_at, reply, way });
        true
    }

    /// Tells those who wait for `id` with the endorsements that `name` covers. The others wait on.
    pub(crate) fn answer(
        &self,
        id: &TransactionId,
        name: &TransactionId,
        result: &Result<Receipt, SubmissionRefusal>,
    ) {
        let answered = self.take(id, |waiter| waiter.name == *name);
        answered.into_iter().for_each(|waiter| waiter.send(result.clone()));
    }

    /// Those who wait for `id` and whom `which` is true of; they wait no longer.
    fn take(&self, id: &TransactionId, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let mut shard = self.shard(id).lock();
        let Some(waiters) = shard.get_mut(id) else { return Vec::new() };
        let taken: Vec<Waiter> = waiters.extract_if(.., |waiter| which(waiter)).collect();
        if waiters.is_empty() {
            shard.remove(id);
        }
        taken
    }

    /// Hands out the receipts of a block that is recorded, to those who wait for no more, and to all once it is `attested`. A receipt that says "duplicate" is replaced by the first
    /// one's, which `original` finds: the same transaction gets the same receipt. What is wrong with endorsements is only
    /// told to who sent these: `name` is what ordering knew the transaction by.
    pub(crate) fn publish(
        &self,
        receipts: &[Receipt],
        attested: bool,
        original: impl Fn(u64, u32) -> Option<Receipt>,
        name: impl Fn(&Receipt) -> TransactionId,
    ) {
        for receipt in receipts {
            let id = &receipt.transaction;
            let due = |waiter: &Waiter| attested || waiter.answer_at == AnswerAt::Recorded;
            if matches!(receipt.outcome, Outcome::Rejected(RejectReason::Endorsement(_))) {
                let name = name(receipt);
                let told = self.take(id, |waiter| due(waiter) && waiter.name == name);
                told.into_iter().for_each(|waiter| waiter.send(Ok(receipt.clone())));
                continue;
            }
            let waiters = self.take(id, due);
            if waiters.is_empty() {
                continue;
            }
            let first = match &receipt.outcome {
                Outcome::Rejected(RejectReason::Duplicate { height, index }) => original(*height, *index),
                _ => None,
            };
            for waiter in waiters {
                let receipt = first.as_ref().unwrap_or(receipt);
                waiter.send(Ok(receipt.clone()));
                if let (Some(traces), Some(way)) = (&self.traces, waiter.way) {
                    traces.answered(receipt, *way);
                }
            }
        }
    }

    /// Answers those whose transaction can no longer be ordered, and forgets those who have gone. All receipts have been
    /// handed out that are recorded up to one height and attested up to another one.
    pub(crate) fn expire(&self, recorded: u64, attested: u64, begins: Begins) {
        for shard in &self.shards {
            shard.lock().retain(|_, waiters| {
                waiters.retain(|waiter| {
                    let height = match waiter.answer_at {
                        AnswerAt::Recorded => recorded,
                        AnswerAt::Attested => attested,
                    };
                    let expired = waiter.expires_at < height;
                    if expired {
                        waiter.send(Err(begins.expired(height, waiter.expires_at)));
                    }
                    !expired && !waiter.reply.is_closed()
                });
                !waiters.is_empty()
            });
        }
    }

    /// This node goes on behind blocks that it has not executed, or cannot read one: what everybody waits for may stand in one
    /// of them. They submit the same bytes again.
    pub(crate) fn give_up(&self) {
        for shard in &self.shards {
            let waiters = std::mem::take(&mut *shard.lock());
            waiters.into_values().flatten().for_each(|waiter| waiter.send(Err(SubmissionRefusal::Unknown)));
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
        assert!(receipts.wait(
            (first.transaction, first.transaction),
            7,
            100,
            AnswerAt::Recorded,
            sender.clone()
        ));
        receipts.publish(
            &[again],
            false,
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
            assert!(receipts.wait(
                (id, name(variant)),
                variant.into(),
                100,
                AnswerAt::Recorded,
                sender.clone()
            ));
        }
        receipts.publish(std::slice::from_ref(&rejected), false, |_, _| None, |_| name(11));
        let reply = replies.try_recv().expect("told");
        assert_eq!(reply, SubmissionReply { position: 11, result: Ok(rejected) });
        let early = Err(SubmissionRefusal::EarlyAbort { stale: true });
        receipts.answer(&id, &name(12), &early);
        assert_eq!(replies.try_recv(), Ok(SubmissionReply { position: 12, result: early }));
        assert!(replies.try_recv().is_err());
        receipts.publish(std::slice::from_ref(&committed), false, |_, _| None, |_| name(99));
        assert_eq!(replies.try_recv(), Ok(SubmissionReply { position: 10, result: Ok(committed) }));
    }

    #[test]
    fn who_waits_for_an_expired_transaction_is_told() {
        let receipts = Receipts::new();
        let (sender, mut replies) = mpsc::channel(2);
        let id = TransactionId(crypto::sha256(&[b"x"]));
        assert!(receipts.wait((id, id), 0, 10, AnswerAt::Recorded, sender));
        let begins = Begins { first: 1, expiry_blocks_max: 100 };
        receipts.expire(10, 9, begins);
        assert!(replies.try_recv().is_err(), "it may still stand at height 10");
        receipts.expire(11, 9, begins);
        let refusal = SubmissionRefusal::Rejected(RejectReason::Expired { height: 11, expires_at: 10 });
        assert_eq!(replies.try_recv().expect("told").result, Err(refusal));
    }

    /// A node that has joined from a checkpoint said of what may stand in blocks before that it would never be executed.
    #[test]
    fn who_waits_for_what_may_stand_in_a_block_that_is_not_here_is_told_that_nothing_is_known() {
        let receipts = Receipts::new();
        let wait = |number: u8, expires_at| {
            let (sender, replies) = mpsc::channel(1);
            let id = TransactionId(crypto::sha256(&[&[number]]));
            assert!(receipts.wait((id, id), 0, expires_at, AnswerAt::Recorded, sender));
            replies
        };
        let told = |mut replies: mpsc::Receiver<SubmissionReply>| replies.try_recv().expect("told").result;
        let begins = Begins { first: 500, expiry_blocks_max: 100 };
        // Of two that expire, the second was signed for blocks from 500 on only.
        let (before, behind) = (wait(1, 599), wait(2, 600));
        receipts.expire(601, 601, begins);
        assert_eq!(told(before), Err(SubmissionRefusal::Unknown));
        let expired = RejectReason::Expired { height: 601, expires_at: 600 };
        assert_eq!(told(behind), Err(SubmissionRefusal::Rejected(expired)));
        let waiting = wait(3, 10_000);
        receipts.give_up();
        assert_eq!(told(waiting), Err(SubmissionRefusal::Unknown));
    }

    #[test]
    fn who_waits_for_attested_receipts_gets_them_once_they_are() {
        let receipts = Receipts::new();
        let committed = receipt(1, 5, Outcome::Committed(vec![]));
        let id = committed.transaction;
        let (sender, mut replies) = mpsc::channel(3);
        for (position, moment) in [(1, AnswerAt::Attested), (2, AnswerAt::Recorded)] {
            assert!(receipts.wait((id, id), position, 6, moment, sender.clone()));
        }
        let publish =
            |attested| receipts.publish(std::slice::from_ref(&committed), attested, |_, _| None, |_| id);
        let told = |position| SubmissionReply { position, result: Ok(committed.clone()) };
        publish(false);
        assert_eq!(replies.try_recv(), Ok(told(2)));
        assert!(replies.try_recv().is_err());
        receipts.expire(9, 4, Begins { first: 1, expiry_blocks_max: 100 });
        assert!(replies.try_recv().is_err(), "it is recorded and not attested yet");
        publish(true);
        assert_eq!(replies.try_recv(), Ok(told(1)));
    }
}
