//! Who waits for members to hold parts: a client may hand the same transaction in twice, and each time somebody waits.

use super::asking::Answered;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use types::TransactionId;

/// Where the answers to one who waits go.
type Waiting = mpsc::UnboundedSender<Answered>;

/// All who wait.
#[derive(Default)]
pub(super) struct Waiters(Mutex<FxHashMap<TransactionId, Vec<Waiting>>>);

/// Somebody waits as long as this is there.
pub(super) struct Waiter<'a> {
    waiters: &'a Waiters,
    transactions: Vec<TransactionId>,
    waiting: Waiting,
}

impl Waiters {
    /// Somebody waits for answers about these transactions.
    pub(super) fn come(
        &self,
        transactions: &[TransactionId],
    ) -> (Waiter<'_>, mpsc::UnboundedReceiver<Answered>) {
        let (waiting, answers) = mpsc::unbounded_channel();
        let mut all = self.0.lock();
        for id in transactions {
            all.entry(*id).or_default().push(waiting.clone());
        }
        (Waiter { waiters: self, transactions: transactions.to_vec(), waiting }, answers)
    }

    /// A member has answered.
    pub(super) fn tell(&self, answered: &Answered) {
        let (all, mut told) = (self.0.lock(), Vec::<&Waiting>::new());
        for waiting in answered.transactions().iter().filter_map(|id| all.get(id)).flatten() {
            // Whoever waits for several of a list hears of it once.
            if !told.iter().any(|one| one.same_channel(waiting)) {
                // An error says that nobody listens any more.
                let _ = waiting.send(answered.clone());
                told.push(waiting);
            }
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut all = self.waiters.0.lock();
        for id in &self.transactions {
            let Some(of_transaction) = all.get_mut(id) else { continue };
            of_transaction.retain(|one| !one.same_channel(&self.waiting));
            if of_transaction.is_empty() {
                all.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_who_wait_for_the_same_transaction_are_both_answered_until_they_leave() {
        let (waiters, id) = (Waiters::default(), TransactionId(crypto::sha256(&[b"t"])));
        let (first, mut to_first) = waiters.come(&[id]);
        let (second, mut to_second) = waiters.come(&[id]);
        let answered = Answered::Refused { transaction: id, member: 1, reason: "no".to_string() };
        waiters.tell(&answered);
        assert!(to_first.try_recv().is_ok() && to_second.try_recv().is_ok());
        drop(second);
        waiters.tell(&answered);
        assert!(to_first.try_recv().is_ok() && to_second.try_recv().is_err());
        drop(first);
        assert!(waiters.0.lock().is_empty(), "whoever gives up leaves nothing behind");
    }
}
