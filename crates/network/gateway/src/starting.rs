//! Connections that have not said yet what they want: so many, and the oldest goes for a new one.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// The connections, by age.
#[derive(Default)]
pub(crate) struct Starting {
    waiting: Mutex<ConnectionsByAge>,
}

#[derive(Default)]
struct ConnectionsByAge {
    next: u64,
    by_age: BTreeMap<u64, Arc<Notify>>,
}

/// The place of one connection, until it is dropped.
pub(crate) struct StartingConnection<'a> {
    starting: &'a Starting,
    number: u64,
    goes: Arc<Notify>,
}

impl Starting {
    /// A connection comes; where there are more than `most` the oldest has to go.
    pub fn enter(&self, most: usize) -> StartingConnection<'_> {
        let goes = Arc::new(Notify::new());
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.by_age.insert(number, goes.clone());
        if waiting.by_age.len() > most
            && let Some((_, oldest)) = waiting.by_age.pop_first()
        {
            oldest.notify_one();
        }
        StartingConnection { starting: self, number, goes }
    }
}

impl StartingConnection<'_> {
    /// Comes to an end when the connection has to go.
    pub async fn lost(&self) {
        self.goes.notified().await;
    }
}

impl Drop for StartingConnection<'_> {
    fn drop(&mut self) {
        self.starting.waiting.lock().by_age.remove(&self.number);
    }
}
