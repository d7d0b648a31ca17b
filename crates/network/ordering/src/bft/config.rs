//! Timeouts, quotas and buffers, each with its reason.

use std::time::Duration;
use types::BlockLimits;

/// From so many members on, transactions are given to all when they come, and blocks are sent without them: see
/// [`super::compact`]. Fewer members have them sooner with the block.
pub(crate) const SPREAD_MEMBERS: usize = 8;

/// Timeouts of the agreement, derived from the charter so that all members use the same.
pub(crate) struct Timing {
    /// A leader may wait for `idle_ms` before it proposes an empty block, then needs time to build, send and have it
    /// verified on busy machines.
    pub leader: Duration,
    /// Votes of the others are in by then, counted from the beginning of the view. Who has voted for a block that reached
    /// only some members waits so long after its leader has died, and then for the next leader.
    pub certification: Duration,
    /// A member that is stuck asks again to skip the view.
    pub retry: Duration,
    /// A leader that was silent for so long is skipped at once in its turns.
    pub skip: Duration,
    /// A peer that has not answered a request for a certificate by then is not asked further.
    pub fetch: Duration,
    /// The same of a request for a block, which may be long: what comes later is thrown away, so that a member on a narrow line, or a busy
    /// machine, would never catch up.
    pub fetch_block: Duration,
    /// The pause before the next peer is asked.
    pub fetch_retry: Duration,
}

/// What a slow line carries: 8 Mbit/s.
const SLOW_BYTES_PER_MS: u64 = 1_024;

impl Timing {
    pub(crate) fn of(block: &BlockLimits) -> Timing {
        let leader = Duration::from_millis(u64::from(block.idle_ms) + u64::from(block.fill_ms) + 1_000);
        let certification = leader + Duration::from_millis(700);
        Timing {
            leader,
            certification,
            retry: Duration::from_millis(1_000),
            skip: certification + Duration::from_millis(500),
            fetch: Duration::from_millis(1_000),
            fetch_block: Duration::from_millis(1_000 + u64::from(block.bytes_max) / SLOW_BYTES_PER_MS),
            fetch_retry: Duration::from_millis(100),
        }
    }
}

/// The channels between members.
pub(crate) mod channel {
    use commonware_runtime::Quota;
    use commonware_utils::NZU32;

    /// Number and quota in messages per second and peer of: votes, certificates, certificates asked for, blocks asked
    /// for, proposed blocks, words of work, messages to all nodes, messages to one node.
    ///
    /// A queue holds one second's quota of every peer, so quotas bound memory: blocks are large and few (a member
    /// proposes at most every n-th), votes are small and come in threes per view, nodes say something once per block.
    pub(crate) const ALL: [(u64, u32); 8] =
        [(0, 1_024), (1, 1_024), (2, 128), (3, 128), (4, 64), (5, 64), (6, 512), (7, 512)];

    pub(crate) fn quotas() -> [(u64, Quota); ALL.len()] {
        ALL.map(|(channel, rate)| {
            let rate = std::num::NonZeroU32::new(rate).unwrap_or(NZU32!(1));
            (channel, Quota::per_second(rate))
        })
    }
}

/// Buffers. A node holds far less than 100 MB here, also with blocks of 2 MB.
pub(crate) mod memory {
    use commonware_utils::NZUsize;
    use std::num::NonZeroUsize;

    /// Pages of 4 KiB for keys of archives and votes.
    pub(crate) const CACHE_PAGES: NonZeroUsize = NZUsize!(512);
    /// Per file that is written or replayed.
    pub(crate) const FILE_BUFFER: NonZeroUsize = NZUsize!(64 * 1024);
    /// Messages between two actors.
    pub(crate) const MAILBOX: NonZeroUsize = NZUsize!(1_024);
    /// Proposed blocks kept per member until they are final or forgotten.
    pub(crate) const BUFFERED_BLOCKS: usize = 6;
    /// Final blocks that are delivered but not acknowledged; marshal keeps up to twice as many in memory.
    pub(crate) const PENDING_BLOCKS: NonZeroUsize = NZUsize!(8);
    /// Threads for files, signatures and roots; they come and go.
    pub(crate) const BLOCKING_THREADS: usize = 32;
    /// Blocks in the archive share files of this size.
    pub(crate) const ARCHIVE_FILE_BYTES: u64 = 64 * 1024 * 1024;
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Charter;

    #[test]
    fn a_whole_block_arrives_over_a_slow_line_before_somebody_else_is_asked() {
        let timing = Timing::of(&Charter::with_defaults("test", 1).block);
        assert_eq!(
            (timing.fetch, timing.fetch_block),
            (Duration::from_secs(1), Duration::from_millis(5_096))
        );
    }
}
