use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;

/// A silent member counts as connected for so long.
pub(crate) const CONNECTED: Duration = Duration::from_millis(3_500);

/// When members were heard last.
#[derive(Default)]
pub(crate) struct Heard(Mutex<BTreeMap<usize, Duration>>);

impl Heard {
    pub(crate) fn hear(&self, member: usize, now: Duration) {
        self.0.lock().insert(member, now);
    }

    /// Members heard from lately.
    pub(crate) fn connected(&self, now: Duration) -> usize {
        self.0.lock().values().filter(|at| now.saturating_sub(**at) < CONNECTED).count()
    }

    /// Who they are.
    pub(crate) fn connected_members(&self, now: Duration) -> Vec<u16> {
        let heard = self.0.lock();
        let connected = heard.iter().filter(|(_, at)| now.saturating_sub(**at) < CONNECTED);
        connected.map(|(member, _)| *member as u16).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_connected_until_they_are_silent_for_long() {
        let heard = Heard::default();
        assert_eq!(heard.connected(Duration::ZERO), 0);
        heard.hear(1, Duration::ZERO);
        heard.hear(2, Duration::from_secs(2));
        heard.hear(2, Duration::from_secs(3));
        assert_eq!(heard.connected(Duration::from_secs(3)), 2);
        assert_eq!(heard.connected(CONNECTED), 1);
        assert_eq!(heard.connected_members(CONNECTED), [2]);
    }
}
