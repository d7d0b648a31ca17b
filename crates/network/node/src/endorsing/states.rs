use crate::store_failure::{Reporting, StoreHealth};
use engine::EndorsementBasis;
use parking_lot::RwLock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// States that are kept: gateways that are so many blocks behind this node still get endorsements. Each keeps the versions
/// of rows that have changed since.
const STATES_MAX: usize = 32;

/// The states after the last blocks, on which proposals are executed.
pub(crate) struct RecentStates {
    /// By height, ascending; never empty.
    states: RwLock<VecDeque<EndorsementBasis>>,
    newest: watch::Sender<u64>,
    health: Arc<StoreHealth>,
}

fn reporting(mut state: EndorsementBasis, health: &StoreHealth) -> EndorsementBasis {
    state.snapshot = Arc::new(Reporting::new(state.snapshot, health.of_readers()));
    state
}

/// A state that is gone, or not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSuchState {
    pub(crate) oldest: u64,
    pub(crate) newest: u64,
}

impl RecentStates {
    /// `health`: where it is noted that one of them cannot be read.
    pub(crate) fn new(first: EndorsementBasis, health: Arc<StoreHealth>) -> RecentStates {
        let newest = watch::Sender::new(first.height);
        let first = reporting(first, &health);
        RecentStates { states: RwLock::new(VecDeque::from([first])), newest, health }
    }

    /// The next block has been executed.
    pub(crate) fn push(&self, state: EndorsementBasis) {
        let (height, state) = (state.height, reporting(state, &self.health));
        let mut states = self.states.write();
        let gone = if states.len() == STATES_MAX { states.pop_front() } else { None };
        states.push_back(state);
        drop(states);
        // Without the lock: letting go of a snapshot may free rows.
        drop(gone);
        self.newest.send_replace(height);
    }

    /// The blocks above this state are taken back.
    pub(crate) fn replace(&self, state: EndorsementBasis) {
        let (height, state) = (state.height, reporting(state, &self.health));
        let gone = std::mem::replace(&mut *self.states.write(), VecDeque::from([state]));
        drop(gone);
        self.newest.send_replace(height);
    }

    /// Whether one of them could not be read, or the store of the state has failed elsewhere.
    pub(crate) fn have_failed(&self) -> bool {
        self.health.failure().is_some()
    }

    /// The newest state.
    pub(crate) fn newest(&self) -> EndorsementBasis {
        self.states.read().back().expect("it starts with one and never loses the last").clone()
    }

    /// The state after the block at `height`; waits for it at most `within`.
    pub(crate) async fn at(&self, height: u64, within: Duration) -> Result<EndorsementBasis, NoSuchState> {
        let mut newest = self.newest.subscribe();
        // Whether it came or not, what is there says.
        let _ = tokio::time::timeout(within, newest.wait_for(|newest| *newest >= height)).await;
        self.there(height)
    }

    /// The state after the block at `height`, if it is there now.
    pub(crate) fn there(&self, height: u64) -> Result<EndorsementBasis, NoSuchState> {
        let states = self.states.read();
        let heights =
            states.front().zip(states.back()).map(|(oldest, newest)| (oldest.height, newest.height));
        let (oldest, newest) = heights.expect("it starts with one and never loses the last");
        let found = height.checked_sub(oldest).and_then(|position| states.get(position as usize));
        found.cloned().ok_or(NoSuchState { oldest, newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Engine;
    use types::Charter;

    fn state(height: u64) -> EndorsementBasis {
        let mut charter = Charter::with_defaults("test", 1);
        charter.endorsement.policy = "one".into();
        charter.organisations.push(types::Organisation {
            name: "one".into(),
            root_key: crypto::SecretKey::from_bytes([1; 32]).public_key(),
            node_key: crypto::SecretKey::from_bytes([2; 32]).public_key(),
            address: String::new(),
            gateway: String::new(),
            removed: false,
            node_key_expires: None,
        });
        let engine = Engine::new(Arc::new(charter), &memory::Memory).expect("a charter");
        let mut state = engine.endorsement_basis(0);
        state.height = height;
        state
    }

    #[tokio::test]
    async fn states_are_kept_for_a_while_and_waited_for() {
        let states = Arc::new(RecentStates::new(state(5), Arc::default()));
        (6..=50).for_each(|height| states.push(state(height)));
        assert_eq!(states.newest().height, 50);
        let soon = Duration::from_millis(10);
        assert_eq!(states.at(19, soon).await.map(|state| state.height), Ok(19));
        let bounds = |oldest, newest| Some(NoSuchState { oldest, newest });
        assert_eq!(states.at(18, soon).await.err(), bounds(19, 50));
        assert_eq!(states.at(51, soon).await.err(), bounds(19, 50));
        let waiting = tokio::spawn({
            let states = states.clone();
            async move { states.at(51, Duration::from_secs(30)).await.map(|state| state.height) }
        });
        tokio::task::yield_now().await;
        states.push(state(51));
        assert_eq!(waiting.await.expect("it does not panic"), Ok(51));
    }
}
