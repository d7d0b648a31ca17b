//! Where the clients of one organisation submit.

use super::tally::Tally;
use client::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often clients that ask another gateway look whether their own one is back.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// A node is level with the others up to so many blocks below the newest that a client has heard of.
const LEVEL_BLOCKS: u64 = 3;

/// The gateway that the clients of an organisation ask: its own one, and while that does not answer another one.
pub(super) struct Route {
    home: usize,
    clients: Arc<[Client]>,
    at: AtomicUsize,
}

impl Route {
    pub(super) fn new(home: usize, clients: Arc<[Client]>) -> Route {
        Route { home, clients, at: AtomicUsize::new(home) }
    }

    /// Number of the organisation whose clients these are.
    pub(super) fn home(&self) -> usize {
        self.home
    }

    /// Signs for them.
    pub(super) fn own_client(&self) -> &Client {
        &self.clients[self.home]
    }

    pub(super) fn gateways(&self) -> usize {
        self.clients.len()
    }

    /// Number of the gateway to ask, and a connection to it.
    pub(super) fn gateway(&self) -> (usize, &Client) {
        let at = self.at.load(Ordering::Relaxed);
        (at, &self.clients[at])
    }

    /// `gateway` does not answer: the next one is asked, unless somebody has already gone on.
    pub(super) fn leave(&self, gateway: usize) {
        let next = (gateway + 1) % self.clients.len();
        // An error says that somebody has gone on.
        let _ = self.at.compare_exchange(gateway, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Takes clients that have left their own gateway back to it, each time that it has come level with the others: before
    /// that it would let them wait for blocks which others have executed long ago. Never ends.
    pub(super) async fn return_when_level(&self, tally: &Tally) {
        loop {
            tokio::time::sleep(LOOK_AGAIN).await;
            if self.gateway().0 == self.home {
                continue;
            }
            let Ok(status) = self.own_client().status().await else { continue };
            if status.not_serving.is_none() && status.height + LEVEL_BLOCKS >= tally.height() {
                self.at.store(self.home, Ordering::Relaxed);
            }
        }
    }
}
