//! Building blocks and checking the blocks of others. Pure: no clock, no network, no storage.

use crate::mempool::{LENGTH_BYTES, Survey};
use bytes::Bytes;
use crypto::Digest;
use rustc_hash::FxHashSet;
use std::time::Duration;
use types::{
    AttestationError, Attested, Block, BlockHeader, BlockLimits, Charter, HandoverError, TransactionId,
    transactions_root,
};

/// What the next block builds on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parent {
    pub digest: Digest,
    pub height: u64,
    pub timestamp_ms: u64,
    pub certified_height: u64,
    /// Names the amended charters that it or a block before it carries.
    pub charters: Digest,
}

impl Parent {
    /// The charter itself, on which block 1 builds.
    pub(crate) fn charter(ledger: Digest) -> Parent {
        Parent { digest: ledger, height: 0, timestamp_ms: 0, certified_height: 0, charters: ledger }
    }

    pub(crate) fn block(header: &BlockHeader) -> Parent {
        Parent {
            digest: header.digest(),
            height: header.height,
            timestamp_ms: header.timestamp_ms,
            certified_height: header.certified_height,
            charters: header.charters,
        }
    }
}

/// What the charter says about blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// Digest of the charter.
    pub ledger: Digest,
    pub limits: &'a BlockLimits,
    /// How far a block with transactions may be above what is certified.
    pub outcome_lag_blocks: u32,
    /// How far any block may be.
    pub uncertified_blocks_max: u64,
}

impl<'a> Rules<'a> {
    /// The rules of a charter with this digest.
    pub(crate) fn of(charter: &'a Charter, ledger: Digest) -> Rules<'a> {
        Rules {
            ledger,
            limits: &charter.block,
            outcome_lag_blocks: charter.outcome_lag_blocks,
            uncertified_blocks_max: charter.uncertified_blocks_max(),
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
/// waiting longer would only slow a closed loop); at once, too, if its first transaction came after `fill_ms` in which there was
/// nothing to do since `began`: on an idle network nobody waits for company, and what comes meanwhile fills the next block;
/// `idle_ms` after `began` if there is nothing. An empty block is proposed at once if another member waits for its turn.
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
        Survey { oldest, .. } if *oldest >= began + fill => return Cut::Now,
        Survey { oldest, newest, .. } => (*oldest + fill).min(*newest + fill / 4),
    };
    if time <= now { Cut::Now } else { Cut::At(time) }
}

/// The block after `parent`. Its time is the proposer's, but always after the parent's. `attested` carries the charters
/// that its outcome certificate names.
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
        charters: attested.outcome.as_ref().map_or(parent.charters, |outcome| outcome.statement.charters),
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
    #[error("it stands at height {height}, which is none of epoch {epoch}")]
    Epoch { epoch: u64, height: u64 },
    #[error("its amended charters: {0}")]
    Charters(HandoverError),
    #[error("its certificate of the {of} at height {height} is none: {reason}")]
    Certificate { of: &'static str, height: u64, reason: AttestationError },
}

/// Checks everything about a block that follows from its parent and the charter alone, but no signatures. The digests of
/// certificates and transactions are not computed again: decoding a block does that.
pub(crate) fn check(block: &Block, rules: &Rules<'_>, parent: &Parent, proposer: u16) -> Result<(), Fault> {
    let Rules { ledger, limits, .. } = *rules;
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
    within("bytes", bytes <= most, || format!("at most {most}"), bytes)?;
    let most = limits.transaction_bytes_max as usize;
    let longest = block.transactions.iter().map(Bytes::len).max().unwrap_or_default();
    within("longest transaction", longest <= most, || format!("at most {most} bytes long"), longest)?;
    check_charters(block, parent)?;
    check_heights(block, parent, rules)
}

/// Checks that a block carries the amended charters that its certificate is the first to name.
fn check_charters(block: &Block, parent: &Parent) -> Result<(), Fault> {
    let Block { header, attested, .. } = block;
    let expected = match attested.charters_after(&parent.charters) {
        Some(charters) => charters.to_string(),
        None => "of those that its certificate names, and to carry these".to_string(),
    };
    within(
        "charters",
        attested.charters_after(&parent.charters) == Some(header.charters),
        || expected,
        header.charters,
    )
}

/// Checks what a block's certificates are about, and that ordering is not too far ahead of them.
fn check_heights(block: &Block, parent: &Parent, rules: &Rules<'_>) -> Result<(), Fault> {
    let Block { header, attested, .. } = block;
    let mut certified = parent.certified_height;
    if let Some(certificate) = &attested.outcome {
        let (first, last, height) = (certified + 1, parent.height, certificate.statement.height);
        let new = (first..=last).contains(&height);
        within("height of the certified outcome", new, || format!("{first} to {last}"), height)?;
        certified = height;
    }
    equal("certified height", &certified, &header.certified_height)?;
    if let Some(certificate) = &attested.checkpoint {
        let (last, height) = (parent.height, certificate.statement.height);
        let before = (1..=last).contains(&height);
        within("height of the certified checkpoint", before, || format!("1 to {last}"), height)?;
    }
    let (ahead, most) = (header.height - certified, rules.uncertified_blocks_max);
    within("distance to the certified height", ahead <= most, || format!("at most {most}"), ahead)?;
    let most = u64::from(rules.outcome_lag_blocks);
    let good = block.transactions.is_empty() || ahead <= most;
    within("distance to the certified height", good, || format!("at most {most}, or no transaction"), ahead)
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
    use crate::certificates::{Allowed, Certificates};
    use crypto::sha256;
    use types::{Certificate, CheckpointRoot, OutcomeHeader};

    const LIMITS: BlockLimits = BlockLimits {
        transaction_bytes_max: 40,
        transactions_max: 3,
        bytes_max: 40,
        fill_ms: 20,
        idle_ms: 1_000,
        batch_transactions: 1,
    };

    fn rules(ledger: Digest, lag: u32) -> Rules<'static> {
        Rules { ledger, limits: &LIMITS, outcome_lag_blocks: lag, uncertified_blocks_max: u64::from(lag) + 2 }
    }

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
        assert_eq!(cut(survey(1, 120, 120, false), 120, false), Cut::Now, "the network is idle");
        assert_eq!(cut(survey(1, 119, 119, false), 119, false), Cut::At(ms(124)));
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
        let parent = Parent {
            digest: sha256(&[b"parent"]),
            height: 7,
            timestamp_ms: 1_000,
            certified_height: 5,
            charters: ledger,
        };
        let rules = rules(ledger, 10);
        let transactions = vec![Bytes::from_static(b"one"), Bytes::from_static(b"two")];
        let good = assemble(ledger, &parent, 2, 900, Attested::default(), transactions);
        assert_eq!(good.header.timestamp_ms, 1_001, "a slow clock does not turn time back");
        assert_eq!(check(&good, &rules, &parent, 2), Ok(()));
        assert_eq!(good.check_content(), Ok(()));

        let field = |change: fn(&mut Block)| {
            let mut block = good.clone();
            change(&mut block);
            match check(&block, &rules, &parent, 2) {
                Err(Fault::Field { field, .. }) => field,
                other => panic!("expected a fault, found {other:?}"),
            }
        };
        assert_eq!(field(|block| block.header.ledger = sha256(&[b"other"])), "ledger");
        assert_eq!(field(|block| block.header.height = 9), "height");
        assert_eq!(field(|block| block.header.previous = Digest::ZERO), "previous");
        assert_eq!(field(|block| block.header.proposer = 1), "proposer");
        assert_eq!(field(|block| block.header.timestamp_ms = 1_000), "timestamp");
        assert_eq!(field(|block| block.header.certified_height = 4), "certified height");
        assert_eq!(field(|block| block.header.certified_height = 6), "certified height");
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

    fn attested(outcome: Option<u64>, checkpoint: Option<u64>) -> Attested {
        let zero = Digest::ZERO;
        let outcome = outcome.map(|height| OutcomeHeader {
            ledger: zero,
            height,
            block: zero,
            previous: zero,
            receipts_root: zero,
            state_digest: zero,
            charters: zero,
        });
        let outcome = outcome.map(|statement| Certificate { statement, signatures: Vec::new() });
        let checkpoint =
            checkpoint.map(|height| CheckpointRoot { ledger: zero, height, outcome: zero, state_root: zero });
        let checkpoint = checkpoint.map(|statement| Certificate { statement, signatures: Vec::new() });
        Attested { outcome, checkpoint, charters: Vec::new() }
    }

    /// Every combination of small heights: what is accepted follows the rules, said in other words than by the code.
    #[test]
    fn certificates_are_new_and_below_and_transactions_keep_their_distance() {
        let ledger = sha256(&[b"ledger"]);
        let heights = || std::iter::once(None).chain((0..=8).map(Some));
        for lag in 2..=4 {
            let rules = rules(ledger, lag);
            for (height, before) in
                (0..=6).flat_map(|height| (0..=height).map(move |before| (height, before)))
            {
                let parent = Parent {
                    digest: ledger,
                    height,
                    timestamp_ms: 1,
                    certified_height: before,
                    charters: Digest::ZERO,
                };
                for (outcome, checkpoint) in heights().flat_map(|one| heights().map(move |two| (one, two))) {
                    for transactions in [Vec::new(), vec![Bytes::from_static(b"one")]] {
                        let with = !transactions.is_empty();
                        let block =
                            assemble(ledger, &parent, 0, 9, attested(outcome, checkpoint), transactions);
                        let certified = outcome.unwrap_or(before);
                        let good = outcome.is_none_or(|outcome| outcome > before && outcome < height + 1)
                            && checkpoint.is_none_or(|checkpoint| checkpoint > 0 && checkpoint < height + 1)
                            && (!with || height < certified + u64::from(lag))
                            && height < certified + u64::from(lag) + 2;
                        let found = check(&block, &rules, &parent, 0);
                        assert_eq!(found.is_ok(), good, "{parent:?} {outcome:?} {checkpoint:?}: {found:?}");
                        if good {
                            assert_eq!(block.header.certified_height, certified);
                            assert_eq!(block.check_content(), Ok(()));
                        }
                    }
                }
            }
        }
    }

    /// What a proposer takes from its certificates is never refused.
    #[test]
    fn what_a_proposer_carries_and_allows_is_accepted() {
        let ledger = sha256(&[b"ledger"]);
        for (known, height) in (0..=8).flat_map(|known| (0..=16).map(move |height| (known, height))) {
            let certificates = Certificates::default();
            let Attested { outcome, checkpoint, .. } = attested(Some(known), Some(known.max(1)));
            certificates.certify(outcome.expect("made"));
            certificates.certify_checkpoint(checkpoint.expect("made"));
            for (before, lag) in (0..=height).flat_map(|before| (2..=4).map(move |lag| (before, lag))) {
                let parent = Parent {
                    digest: ledger,
                    height,
                    timestamp_ms: 1,
                    certified_height: before,
                    charters: Digest::ZERO,
                };
                let carried = certificates.for_child_of(&parent);
                let mut charter = Charter::with_defaults("test", 1);
                charter.outcome_lag_blocks = lag;
                let allowed = certificates.allow(&parent, &charter);
                let rules = Rules { limits: &LIMITS, ..Rules::of(&charter, ledger) };
                let check = |transactions| {
                    check(&assemble(ledger, &parent, 0, 9, carried.clone(), transactions), &rules, &parent, 0)
                };
                let (empty, full) = (check(Vec::new()), check(vec![Bytes::from_static(b"one")]));
                assert_eq!(empty.is_ok(), allowed != Allowed::Nothing, "{known} {parent:?}: {empty:?}");
                assert_eq!(full.is_ok(), allowed == Allowed::Transactions, "{known} {parent:?}: {full:?}");
            }
        }
    }

    #[test]
    fn an_id_that_stands_twice_is_found() {
        let id = |n: u8| TransactionId(sha256(&[&[n]]));
        assert_eq!(check_distinct(&[id(1), id(2)]), Ok(()));
        assert_eq!(check_distinct(&[id(1), id(2), id(1)]), Err(Fault::Repeated { id: id(1) }));
    }
}
