//! Says early enough that node keys expire, and that they have.
//!
//! Keys expire by height, so that every node comes to the same. How long that is follows from the times of the last blocks;
//! it is for people and decides nothing.

use crate::charters::DecidedCharters;
use ledger::Ledger;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{BlockHeader, Charter, Organisation};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// A key that expires within this time is warned of.
const WARNED_BEFORE_MS: u64 = 30 * DAY_MS;
/// After this time it is said again in the log; by the times of blocks.
const SAID_AGAIN_MS: u64 = DAY_MS;
/// Over so many of the last blocks their pace is measured.
const PACE_BLOCKS: u64 = 10_000;
/// How often the log's part looks, in blocks.
const LOOK_BLOCKS: u64 = 16;

/// Looks at keys that expire.
pub(crate) struct KeyWatch {
    ledger: Arc<Ledger>,
    charters: Arc<DecidedCharters>,
    /// What was said, with the time of the block at which it was.
    said: Mutex<BTreeMap<Expiry, u64>>,
}

/// A node key that expires.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Expiry {
    organisation: String,
    /// The last height that it signs for.
    last: u64,
    standing: Standing,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Standing {
    /// It will.
    Expires,
    /// It has.
    Expired,
    /// It has, and counts all the same: [`Charter::signs_at`].
    Needed,
}

impl KeyWatch {
    pub(crate) fn new(ledger: Arc<Ledger>, charters: Arc<DecidedCharters>) -> KeyWatch {
        KeyWatch { ledger, charters, said: Mutex::default() }
    }

    /// What to warn of at a height, for people.
    pub(crate) fn warnings(&self, height: u64) -> Vec<String> {
        let charter = self.charters.newest();
        if !has_expiring(&charter) {
            return Vec::new();
        }
        let pace_ms = self.pace_ms(&charter, height);
        expiring_soon(&charter, height, pace_ms)
    }

    /// A block has been executed: what is new, or was said a day ago, goes to the log.
    pub(crate) fn executed(&self, header: &BlockHeader) {
        let charter = self.charters.newest();
        let (height, now_ms) = (header.height, header.timestamp_ms);
        let ends = charter.members().any(|(_, member)| member.node_key_expires == Some(height));
        if !has_expiring(&charter) || !(ends || height.is_multiple_of(LOOK_BLOCKS)) {
            return;
        }
        let pace_ms = self.pace_ms(&charter, height);
        let found = expiring(&charter, height, pace_ms);
        let mut said = self.said.lock();
        said.retain(|expiry, _| found.contains(expiry));
        for expiry in found {
            let again = said.get(&expiry).is_none_or(|at| now_ms >= at + SAID_AGAIN_MS);
            if again {
                tracing::warn!(height, "{}", expiry.text(height, pace_ms));
                said.insert(expiry, now_ms);
            }
        }
    }

    /// Milliseconds from one block to the next, by the times of the last ones that are recorded; what an idle network
    /// takes, where there are too few.
    fn pace_ms(&self, charter: &Charter, height: u64) -> u64 {
        let idle_ms = u64::from(charter.block.idle_ms);
        let Some((tip, _)) = self.ledger.tip() else { return idle_ms };
        let (last, first) = (tip.min(height), self.ledger.first_height());
        let since = last.saturating_sub(PACE_BLOCKS).max(first);
        let time = |at: u64| self.ledger.header(at).ok().flatten().map(|header| header.timestamp_ms);
        match (time(since), time(last)) {
            (Some(from), Some(to)) if since < last => (to.saturating_sub(from) / (last - since)).max(1),
            _ => idle_ms,
        }
    }
}

/// What to warn of at a height where blocks take so long, for people.
pub(crate) fn expiring_soon(charter: &Charter, height: u64, pace_ms: u64) -> Vec<String> {
    expiring(charter, height, pace_ms).into_iter().map(|expiry| expiry.text(height, pace_ms)).collect()
}

fn has_expiring(charter: &Charter) -> bool {
    charter.members().any(|(_, member)| member.node_key_expires.is_some())
}

/// What has expired behind the block of this height, or will within 30 days where blocks take so long.
fn expiring(charter: &Charter, height: u64, pace_ms: u64) -> Vec<Expiry> {
    let expiry = |(position, member): (u16, &Organisation)| {
        let last = member.node_key_expires?;
        let standing = match (height < last, charter.signs_at(position.into(), height + 1)) {
            (true, _) => Standing::Expires,
            (false, false) => Standing::Expired,
            (false, true) => Standing::Needed,
        };
        let soon = last.saturating_sub(height).saturating_mul(pace_ms) <= WARNED_BEFORE_MS;
        soon.then(|| Expiry { organisation: member.name.clone(), last, standing })
    };
    charter.members().filter_map(expiry).collect()
}

impl Expiry {
    fn text(&self, height: u64, pace_ms: u64) -> String {
        let Expiry { organisation, last, standing } = self;
        let when = match last.saturating_sub(height).saturating_mul(pace_ms) / DAY_MS {
            0 => "within a day".to_string(),
            1 => "in about a day".to_string(),
            days => format!("in about {days} days"),
        };
        let what = match standing {
            Standing::Expires => format!("expires with height {last}, {when}"),
            Standing::Expired => {
                format!("has expired with height {last}: what it attests and endorses does not count")
            }
            Standing::Needed => format!(
                "has expired with height {last} and counts all the same, because too few others have not expired"
            ),
        };
        let change = format!("SELECT entente.replace_node_key('{organisation}', KEY)");
        format!("the node key of {organisation} {what}; replace it: {change}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;

    fn charter(lasts: [Option<u64>; 4]) -> Charter {
        let mut charter = Charter::with_defaults("test", 1);
        charter.organisations = (1..5_u8)
            .zip(lasts)
            .map(|(number, node_key_expires)| Organisation {
                name: format!("org{number}"),
                root_key: SecretKey::from_bytes([number; 32]).public_key(),
                node_key: SecretKey::from_bytes([number + 10; 32]).public_key(),
                address: String::new(),
                gateway: String::new(),
                removed: false,
                node_key_expires,
            })
            .collect();
        charter
    }

    fn said(charter: &Charter, height: u64, pace_ms: u64) -> String {
        let found = expiring(charter, height, pace_ms);
        found.iter().map(|one| one.text(height, pace_ms)).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn keys_are_warned_of_thirty_days_before_by_the_pace_of_blocks() {
        let charter = charter([None, Some(100_000), None, None]);
        // A block a minute: 30 days are 43,200 blocks.
        let minute = 60_000;
        assert_eq!(said(&charter, 56_799, minute), "");
        assert!(said(&charter, 56_800, minute).contains("org2 expires with height 100000, in about 30 days"));
        assert!(said(&charter, 99_000, minute).contains("within a day"));
        assert_eq!(said(&charter, 56_800, 2 * minute), "");
        assert!(said(&charter, 100_000, minute).contains("has expired with height 100000"));
        assert!(said(&charter, 200_000, 1).contains("entente.replace_node_key('org2', KEY)"));
        assert_eq!(said(&self::charter([None; 4]), 10, 1), "");
    }

    #[test]
    fn where_no_quorum_would_be_left_keys_count_and_that_is_said() {
        let charter = charter([Some(10), Some(20), Some(30), None]);
        let text = said(&charter, 19, 1);
        assert!(text.contains("org1 has expired with height 10: what it attests"), "{text}");
        assert!(text.contains("org2 expires with height 20"), "{text}");
        let text = said(&charter, 20, 1);
        assert!(text.contains("org1 has expired with height 10 and counts all the same"), "{text}");
        assert!(text.contains("org2 has expired with height 20 and counts all the same"), "{text}");
        assert!(text.contains("org3 expires with height 30"), "{text}");
    }
}
