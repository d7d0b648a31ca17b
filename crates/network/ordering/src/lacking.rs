//! Final blocks that a node lacks and that nobody gives it: those who prune have forgotten them, and those who do not are away.
//!
//! Nobody says so. A request that finds nothing is answered with nothing, or not at all, and others are asked in turn; what shows
//! it is that no block comes while some are known to be there.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// No block came for so long: each member was asked many times meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a node waits for.
#[derive(Default)]
pub(crate) struct Lacking(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// Blocks up to there have come, or are not needed.
    have: u64,
    /// Blocks up to there are final.
    there: u64,
    /// What single members have said last of how far blocks go, who may be wrong.
    said: BTreeMap<usize, u64>,
    /// Since when a block is lacking and none has come.
    since: Option<Duration>,
}

impl Waiting {
    fn look(&mut self, now: Duration) {
        self.since = (self.there > self.have).then(|| self.since.unwrap_or(now));
    }
}

impl Lacking {
    /// Blocks up to a height are final.
    pub(crate) fn there(&self, height: u64, now: Duration) {
        let mut waiting = self.0.lock();
        waiting.there = waiting.there.max(height);
        waiting.look(now);
    }

    /// A member says that blocks up to a height are final. It is believed once more than `faulty` members say as much.
    pub(crate) fn said(&self, (member, height): (usize, u64), faulty: usize, now: Duration) {
        let mut waiting = self.0.lock();
        waiting.said.insert(member, height);
        let mut heights: Vec<u64> = waiting.said.values().copied().collect();
        heights.sort_unstable_by(|left, right| right.cmp(left));
        let believed = heights.get(faulty).copied().unwrap_or(0);
        waiting.there = waiting.there.max(believed);
        waiting.look(now);
    }

    /// Blocks up to a height have come, or are not needed any more.
    pub(crate) fn have(&self, height: u64, now: Duration) {
        let mut waiting = self.0.lock();
        waiting.have = waiting.have.max(height);
        waiting.since = None;
        waiting.look(now);
    }

    /// It is not the others who keep this node waiting.
    pub(crate) fn pause(&self, now: Duration) {
        let mut waiting = self.0.lock();
        waiting.since = None;
        waiting.look(now);
    }

    /// What nobody gives.
    pub(crate) fn unobtainable(&self, now: Duration) -> Option<RangeInclusive<u64>> {
        let waiting = self.0.lock();
        let since = waiting.since?;
        (now.saturating_sub(since) >= PATIENCE).then(|| waiting.have + 1..=waiting.there)
    }
}

/// What that is to whoever runs the node.
pub(crate) fn trouble(lacking: &RangeInclusive<u64>, connected: usize) -> String {
    format!(
        "blocks {} to {} are final, and for {} seconds none of the {connected} members that are connected has given this node block \
         {}: members that prune have forgotten it; with `join = \"checkpoint\"` in node.toml, the default, the node joins by itself from a \
         checkpoint behind those blocks; otherwise wait for a member that keeps all blocks",
        lacking.start(),
        lacking.end(),
        PATIENCE.as_secs(),
        lacking.start(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_lacking_once_none_has_come_for_a_while_though_some_are_there() {
        let (lacking, seconds) = (Lacking::default(), Duration::from_secs);
        lacking.there(5, seconds(1));
        lacking.have(5, seconds(2));
        assert_eq!(lacking.unobtainable(seconds(100)), None, "nothing is there that has not come");
        lacking.there(9, seconds(100));
        lacking.there(10, seconds(129));
        assert_eq!(lacking.unobtainable(seconds(129)), None);
        assert_eq!(lacking.unobtainable(seconds(130)), Some(6..=10));
        lacking.have(6, seconds(131));
        assert_eq!(lacking.unobtainable(seconds(140)), None, "something has come");
        lacking.pause(seconds(150));
        assert_eq!(lacking.unobtainable(seconds(179)), None);
        let found = lacking.unobtainable(seconds(180)).expect("nothing comes");
        assert_eq!(found, 7..=10);
        let text = trouble(&found, 3);
        assert!(text.contains("none of the 3 members") && text.contains("join = \"checkpoint\""), "{text}");
    }

    #[test]
    fn what_single_members_say_is_believed_of_more_than_can_be_faulty() {
        let (lacking, seconds) = (Lacking::default(), Duration::from_secs);
        lacking.said((0, u64::MAX), 1, seconds(0));
        assert_eq!(lacking.unobtainable(seconds(100)), None);
        lacking.said((0, u64::MAX), 1, seconds(100));
        assert_eq!(lacking.unobtainable(seconds(200)), None, "it is one member still");
        lacking.said((2, 40), 1, seconds(200));
        assert_eq!(lacking.unobtainable(seconds(230)), Some(1..=40));
    }
}
