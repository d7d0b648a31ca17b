//! Timeouts, limits and channels, each with its reason.

use commonware_runtime::Quota;
use commonware_utils::NZU32;
use std::time::Duration;

/// The clock of the group.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// A leader shows that it is there every so many ticks.
const HEARTBEAT_TICKS: usize = 2;
/// A member that hears nothing for so long stands for election: 1 s, more than a busy machine pauses.
const ELECTION_TICKS: usize = 20;
/// Members stand for election one after the other, 150 ms apart: more than a vote takes on most networks.
const PLACE_TICKS: usize = 3;

/// Bytes of entries in a message; one entry may be longer.
const APPEND_BYTES: u64 = 1024 * 1024;
/// Messages with entries on their way to a member.
const APPENDS: usize = 64;

/// Blocks that a leader has offered and that are not delivered at its own node.
pub(super) const OFFERED_BLOCKS: usize = 4;
/// Entries on their way from the log to the node.
pub(super) const FED_ENTRIES: usize = 16;
/// So many of the newest blocks stay in a log whatever the ledger says: for members that are a little behind, and for a ledger that
/// loses its tail.
pub(super) const NEWEST_KEPT: u64 = 64;
/// Blocks that the node has not made durable.
pub(super) const PENDING_BLOCKS: u64 = 16;

/// Transactions of this node that are at the leader and not in a block.
pub(super) const FORWARDED: usize = 8_192;
/// Bytes of transactions in a message.
pub(super) const FORWARD_BYTES: usize = 256 * 1024;
/// The pause between two messages with transactions.
pub(super) const FORWARD_PAUSE: Duration = Duration::from_millis(4);
/// What is not in a block after so long is sent to the leader again.
pub(super) const FORWARD_AGAIN: Duration = Duration::from_secs(3);

/// Bytes of blocks in an answer to who is behind; one block may be longer.
pub(super) const BACKFILL_BYTES: usize = 1024 * 1024;
/// After so long somebody else is asked.
pub(super) const BACKFILL_AGAIN: Duration = Duration::from_millis(300);
/// After so long a snapshot is sent again.
pub(super) const SNAPSHOT_AGAIN: Duration = Duration::from_secs(2);

/// A member says that it is there at least so often, if only to who leads or is led.
pub(super) const PRESENCE: Duration = Duration::from_secs(1);

/// Commits that are not written on their own: a member that starts again hears of them from the leader.
pub(super) const COMMITS_UNSAVED: u64 = 64;

/// The longest message between members of any ledger: an offered block with what stands around it. The charter may change
/// while the network runs, so it is what any charter may allow.
pub(crate) fn max_message_size() -> u32 {
    const AROUND: usize = 16 * 1024;
    let head = types::BlockHeader::BYTES + types::Attested::BYTES_MAX;
    types::limits::BLOCK_BYTES_MAX + (head + AROUND) as u32
}

pub(super) fn raft_config(id: u64, place: u16, applied: u64) -> raft::Config {
    let first = ELECTION_TICKS + PLACE_TICKS * usize::from(place);
    raft::Config {
        id,
        election_tick: ELECTION_TICKS,
        heartbeat_tick: HEARTBEAT_TICKS,
        applied,
        max_size_per_msg: APPEND_BYTES,
        max_inflight_msgs: APPENDS,
        check_quorum: true,
        pre_vote: true,
        // The crate draws a timeout from this range with a source of chance of its own. From a range of one a seed decides
        // everything.
        min_election_tick: first,
        max_election_tick: first + 1,
        ..raft::Config::default()
    }
}

/// The channels between members.
pub(crate) mod channel {
    use super::{NZU32, Quota};

    /// Number and quota in messages per second and peer of: the group's messages, transactions for the leader, blocks for who
    /// is behind, messages to all nodes, messages to one node. A queue holds one second's quota of every peer.
    pub(crate) const ALL: [(u64, u32); 5] = [(0, 1_024), (1, 256), (2, 64), (3, 512), (4, 512)];

    pub(crate) fn quotas() -> [(u64, Quota); ALL.len()] {
        ALL.map(|(channel, rate)| {
            let rate = std::num::NonZeroU32::new(rate).unwrap_or(NZU32!(1));
            (channel, Quota::per_second(rate))
        })
    }
}
