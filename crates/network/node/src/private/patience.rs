//! How whoever waits for other members knows the time.

use crate::attesting::Clock;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// The time of a node that runs, or of a simulated one: that is polled whenever its time has gone on, and nothing wakes it.
pub(crate) enum Patience {
    /// Counts from here.
    Real(Instant),
    /// The network's.
    Simulated(Clock),
}

impl Patience {
    pub(crate) fn real() -> Patience {
        Patience::Real(Instant::now())
    }

    /// Since some moment that stays the same.
    pub(crate) fn now(&self) -> Duration {
        match self {
            Patience::Real(began) => began.elapsed(),
            Patience::Simulated(clock) => clock(),
        }
    }

    pub(super) async fn sleep(&self, length: Duration) {
        match self {
            Patience::Real(_) => tokio::time::sleep(length).await,
            Patience::Simulated(clock) => {
                let end = clock() + length;
                poll_fn(|_| if clock() < end { Poll::Pending } else { Poll::Ready(()) }).await;
            }
        }
    }
}
