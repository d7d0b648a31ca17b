//! Building blocks and checking the blocks of others. Pure: no clock, no network, no storage.

use crate::mempool::{LENGTH_BYTES, Survey};
use bytes::Bytes;
use crypto::Digest;
use rustc_hash::FxHashSet;
use std::time::Duration;
use types::{Attested, Block, BlockHeader, BlockLimits, TransactionId, transactions_root};

/// What the next block builds on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parent {
    pub digest: Digest,
    pub height: u64,
    pub timestamp_ms: u64,
    pub certified_height: u64,
}

impl Parent {
    /// The charter itself, on which block 1 builds.
    pub(crate) fn charter(ledger: Digest) -> Parent {
        Parent { digest: ledger, height: 0, timestamp_ms: 0, certified_height: 0 }
    }

    pub(crate) fn block(header: &BlockHeader) -> Parent {
        Parent {
            digest: header.digest(),
            height: header.height,
            timestamp_ms: header.timestamp_ms,
            certified_height: header.certified_height,
        }
    }
}

/// What a proposer does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// Proposes what there is.
    Now,
    /// Looks again at this time.
    At(Duration),
}

/// When a block is cut: at once if it is full or nobody waits for more; else `fill_ms` after its first transaction
/// came, or as soon as a quarter of that has passed without another (then whoever submits waits for answers, and
/// waiting longer would only slow a closed loop); `idle_ms` after `began` if there is nothing. An empty block is
/// proposed at once if another member waits for its turn.
pub(crate) fn when_to_cut(
    survey: &Survey,
    block: &BlockLimits,
    began: Duration,
    now: Duration,
    others_wait: bool,
) -> Cut {
    let fill = Duration::from_millis(block.fill_ms.into());
    let time = match survey {
        Survey { full: true, .. } => return Cut::Now,
        Survey { transactions: 0, .. } if others_wait => return Cut::Now,
        Survey { transactions: 0, .. } => began + Duration::from_millis(block.idle_ms.into()),
        Survey { oldest, newest, .. } => (*oldest + fill).min(*newest + fill / 4),
    };
    if time <= now { Cut::Now } else { Cut::At(time) }
}

/// The block after `parent`. Its time is the proposer's, but always after the parent's.
pub(crate) fn assemble(
    ledger: Digest,
    parent: &Parent,
    proposer: u16,
    clock_ms: u64,
    attested: Attested,
    transactions: Vec<Bytes>,
) -> Block {
    let certified = attested.outcome.as_ref().map_or(0, |certificate| certificate.statement.height);
    let header = BlockHeader {
        ledger,
        height: parent.height + 1,
        timestamp_ms: clock_ms.max(parent.timestamp_ms + 1),
        previous: parent.digest,
        transactions_root: transactions_root(&transactions),
        transactions: transactions.len() as u32,
        proposer,
        certified_height: certified.max(parent.certified_height),
        attested: attested.digest(),
    };
    Block { header, attested, transactions }
}

/// Why a block is wrong for ever.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("its {field} must be {expected}, found {found}")]
    Field { field: &'static str, expected: String, found: String },
    #[error("transaction {id} stands in it or in a block before it already")]
    Repeated { id: TransactionId },
    #[error("transaction {position} is refused: {reason:?}")]
    Transaction { position: usize, reason: types::RejectReason },
}

/// Checks everything about a block that follows from its parent and the charter alone. The root is not recomputed:
/// decoding a block does that.
pub(crate) fn check(
    block: &Block,
    ledger: Digest,
    parent: &Parent,
    proposer: u16,
    limits: &BlockLimits,
) -> Result<(), Fault> {
    let header = &block.header;
    let bytes: usize = block.transactions.iter().map(|transaction| transaction.len() + LENGTH_BYTES).sum();
    equal("ledger", &ledger, &header.ledger)?;
    equal("height", &(parent.height + 1), &header.height)?;
    equal("previous", &parent.digest, &header.previous)?;
    equal("proposer", &proposer, &header.proposer)?;
    equal("count of transactions", &block.transactions.len(), &(header.transactions as usize))?;
    let earliest = parent.timestamp_ms + 1;
    within(
        "timestamp",
        header.timestamp_ms >= earliest,
        || format!("at least {earliest}"),
        header.timestamp_ms,
    )?;
    let most = limits.transactions_max;
    within("transactions", header.transactions <= most, || format!("at most {most}"), header.transactions)?;
    let most = limits.bytes_max as usize;
    within("bytes", bytes <= most, || format!("at most {most}"), bytes)
}

fn equal<T: PartialEq + ToString>(field: &'static str, expected: &T, found: &T) -> Result<(), Fault> {
    within(field, expected == found, || expected.to_string(), found.to_string())
}

fn within(
    field: &'static str,
    good: bool,
    expected: impl FnOnce() -> String,
    found: impl ToString,
) -> Result<(), Fault> {
    if good { Ok(()) } else { Err(Fault::Field { field, expected: expected(), found: found.to_string() }) }
}

/// Refuses a block that holds an id twice.
pub(crate) fn check_distinct(ids: &[TransactionId]) -> Result<(), Fault> {
    let mut seen = FxHashSet::with_capacity_and_hasher(ids.len(), Default::default());
    match ids.iter().find(|id| !seen.insert(**id)) {
        Some(id) => Err(Fault::Repeated { id: *id }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::sha256;

    const LIMITS: BlockLimits = BlockLimits {
        transactions_max: 3,
        bytes_max: 40,
        fill_ms: 20,
        idle_ms: 1_000,
        batch_transactions: 1,
    };

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn survey(transactions: usize, oldest: u64, newest: u64, full: bool) -> Survey {
        Survey { transactions, oldest: ms(oldest), newest: ms(newest), full, arrivals: 0 }
    }

    #[test]
    fn a_block_is_cut_when_it_is_full_or_nobody_submits_more_or_its_time_is_over() {
        let cut = |survey, now, others| when_to_cut(&survey, &LIMITS, ms(100), ms(now), others);
        assert_eq!(cut(survey(3, 100, 100, true), 100, false), Cut::Now);
        assert_eq!(cut(survey(1, 100, 100, false), 101, false), Cut::At(ms(105)));
        assert_eq!(cut(survey(1, 100, 100, false), 105, false), Cut::Now);
        assert_eq!(cut(survey(2, 100, 119, false), 119, false), Cut::At(ms(120)));
        assert_eq!(cut(survey(2, 50, 99, false), 100, false), Cut::Now, "it waited for this turn already");
    }

    #[test]
    fn an_empty_block_waits_for_the_idle_time_unless_others_have_work() {
        let cut = |now, others| when_to_cut(&survey(0, 0, 0, false), &LIMITS, ms(100), ms(now), others);
        assert_eq!(cut(100, false), Cut::At(ms(1_100)));
        assert_eq!(cut(1_100, false), Cut::Now);
        assert_eq!(cut(100, true), Cut::Now);
    }

    #[test]
    fn the_checks_accept_what_was_assembled_and_name_what_was_changed() {
        let ledger = sha256(&[b"ledger"]);
        let parent = Parent { digest: sha256(&[b"parent"]), height: 7, timestamp_ms: 1_000 };
        let good =
            assemble(ledger, &parent, 2, 900, vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")]);
        assert_eq!(good.header.timestamp_ms, 1_001, "a slow clock does not turn time back");
        assert_eq!(check(&good, ledger, &parent, 2, &LIMITS), Ok(()));
        assert_eq!(good.check_content(), Ok(()));

        let field = |change: fn(&mut Block)| {
            let mut block = good.clone();
            change(&mut block);
            match check(&block, ledger, &parent, 2, &LIMITS) {
                Err(Fault::Field { field, .. }) => field,
                other => panic!("expected a fault, found {other:?}"),
            }
        };
        assert_eq!(field(|block| block.header.ledger = sha256(&[b"other"])), "ledger");
        assert_eq!(field(|block| block.header.height = 9), "height");
        assert_eq!(field(|block| block.header.previous = Digest::ZERO), "previous");
        assert_eq!(field(|block| block.header.proposer = 1), "proposer");
        assert_eq!(field(|block| block.header.timestamp_ms = 1_000), "timestamp");
        assert_eq!(field(|block| block.header.transactions = 3), "count of transactions");
        assert_eq!(
            field(|block| {
                block.transactions = vec![Bytes::new(); 4];
                block.header.transactions = 4;
            }),
            "transactions"
        );
        assert_eq!(
            field(|block| {
                block.transactions = vec![Bytes::from(vec![0; 37])];
                block.header.transactions = 1;
            }),
            "bytes"
        );
    }

    #[test]
    fn an_id_that_stands_twice_is_found() {
        let id = |n: u8| TransactionId(sha256(&[&[n]]));
        assert_eq!(check_distinct(&[id(1), id(2)]), Ok(()));
        assert_eq!(check_distinct(&[id(1), id(2), id(1)]), Err(Fault::Repeated { id: id(1) }));
    }
}
