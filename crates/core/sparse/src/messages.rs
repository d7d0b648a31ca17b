//! What a validator and its holders say to one another: a question, an answer. Both are nodes of one organisation, with the same
//! program; another version of it is told at [`Ask::Hello`].

use borsh::{BorshDeserialize, BorshSerialize};
use concurrency::{BatchResult, BatchStatistics, History, TransactionOutcome};
use crypto::Digest;
use state::{AfterImage, CheckpointHeader, KeyRange, ResumePoint, RowId};
use std::ops::Bound;
use std::sync::Arc;
use types::{
    BlockHeader, Catalog, ClientId, Key, Outcome, Payload, Principal, RejectReason, Row, TableId,
    TransactionId,
};

/// What both must speak.
pub(crate) const FORMAT: u32 = 1;

/// A question, in a session that a validator has begun.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct Question {
    pub(crate) session: u64,
    /// Which of the states that are open in it, as the validator has numbered them.
    pub(crate) state: u64,
    pub(crate) ask: Ask,
}

/// A row's value from now on.
pub(crate) type Image = (TableId, Key, Option<Row>);

/// A group of rows in the tree of a checkpoint: its table and first key, how many rows it has, its leaf.
pub(crate) type SentGroup = (TableId, Key, u32, Digest);

/// The rows that a scan has found.
pub(crate) type Rows = Vec<(Key, Row)>;

/// What a validator wants.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) enum Ask {
    /// Begins a session: whatever the holder's state was, it is closed.
    Hello { format: u32, ledger: Digest, schemas: Vec<String> },
    /// Begins a state without rows.
    Begin { version: u64, catalog: Arc<Catalog> },
    /// Adds rows to it.
    Add(Vec<Image>),
    /// It has all of them.
    Finish,
    /// Nobody reads this state any more.
    Close,
    /// Where states can be taken up.
    Left,
    /// Takes one up.
    Reopen(u64),
    /// The others may go.
    Settle,
    /// Of the checkpoints these are needed.
    KeepCheckpoints(Vec<u64>),
    /// Blocks behind this height are taken back.
    RemoveCheckpointsBehind(u64),
    /// Blocks up to this height are recorded for good.
    Recorded(u64),
    /// No more are recorded for a while.
    RecordingEnds,
    /// Transactions of a block, to be executed, and to take effect.
    Execute(SentRun),
    /// What transactions that ran elsewhere make of rows here.
    Apply { version: u64, changes: Vec<Image>, catalog: Option<Arc<Catalog>> },
    /// A block has ended. Snapshots before the version `oldest` are not read any more.
    EndBlock { point: ResumePoint, is_resumable: bool, is_checkpoint: bool, is_due: bool, oldest: u64 },
    /// Makes what there is survive.
    DurablePoint,
    /// Keeps the state at a checkpoint.
    KeepCheckpoint { header: CheckpointHeader, shape: u32 },
    /// One that was kept.
    KeptCheckpoint { height: u64, shape: u32 },
    /// Rows by key.
    Get { at: Point, rows: Vec<(TableId, Key)> },
    /// Rows of an interval.
    Scan { at: Point, table: TableId, range: Interval, reverse: bool, rows_max: u32 },
    /// How many rows a table has.
    Rows(TableId),
}

/// Which state is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) enum Point {
    /// After a batch, or the last one before it that has changed anything here.
    Version(u64),
    /// At a checkpoint that is kept.
    Checkpoint(u64),
}

/// What a holder says.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) enum Said {
    Done,
    Left(Vec<ResumePoint>),
    Reopened(Option<ResumePoint>),
    Executed(Vec<SentResult>),
    Durable(Option<u64>),
    Kept(Option<Vec<SentGroup>>),
    Got(Vec<Option<Row>>),
    Scanned(Rows),
    Rows(u64),
    /// A block has ended; what the store has and has done.
    Ended {
        rows: u64,
        file_bytes: u64,
        changed_bytes: u64,
        written_bytes: u64,
    },
    /// Nothing came of it.
    Refused(Refusal),
}

/// Why nothing came of a question.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) enum Refusal {
    /// The holder is in another session, or in none: it has started again, or another validator asks it.
    Session,
    /// Its store has failed.
    Store(String),
    /// The question makes no sense to it.
    Question(String),
}

/// An interval of keys.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub(crate) struct Interval {
    start: End,
    end: End,
}

#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
enum End {
    Open,
    With(Key),
    Without(Key),
}

impl From<&KeyRange> for Interval {
    fn from(range: &KeyRange) -> Interval {
        let end = |bound: &Bound<Key>| match bound {
            Bound::Unbounded => End::Open,
            Bound::Included(key) => End::With(key.clone()),
            Bound::Excluded(key) => End::Without(key.clone()),
        };
        Interval { start: end(&range.start), end: end(&range.end) }
    }
}

impl From<Interval> for KeyRange {
    fn from(interval: Interval) -> KeyRange {
        let bound = |end| match end {
            End::Open => Bound::Unbounded,
            End::With(key) => Bound::Included(key),
            End::Without(key) => Bound::Excluded(key),
        };
        KeyRange { start: bound(interval.start), end: bound(interval.end) }
    }
}

/// Transactions that run at a holder: a sparse block, without those that do not touch what it holds.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct SentRun {
    pub(crate) header: BlockHeader,
    pub(crate) step_limit: u64,
    pub(crate) steps_left: u64,
    /// The number of the first batch in its block.
    pub(crate) first: u32,
    /// Of each batch those that run there; a batch may have none.
    pub(crate) batches: Vec<Vec<SentTransaction>>,
}

/// One of them.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct SentTransaction {
    /// Where it stands in the block.
    pub(crate) index: u32,
    pub(crate) id: TransactionId,
    /// Who signed it, and what the client calls it.
    pub(crate) client: ClientId,
    organisation: u16,
    role: String,
    pub(crate) payload: Arc<Payload>,
}

impl SentTransaction {
    pub(crate) fn new(
        index: u32,
        (id, client): (TransactionId, ClientId),
        by: &Principal,
        payload: &Arc<Payload>,
    ) -> Self {
        let (organisation, role, payload) = (by.organisation, by.role.clone(), payload.clone());
        SentTransaction { index, id, client, organisation, role, payload }
    }

    pub(crate) fn principal(&self) -> Principal {
        Principal::new(self.organisation, self.role.clone())
    }
}

/// What a batch came to there.
#[derive(BorshSerialize, BorshDeserialize)]
pub(crate) struct SentResult {
    outcomes: Vec<Outcome>,
    changes: Vec<Image>,
    steps: u64,
    /// Executions, those that ran again, rejected ones, guards that failed.
    counts: [u64; 4],
}

impl From<BatchResult> for SentResult {
    fn from(result: BatchResult) -> SentResult {
        let outcome = |outcome| match outcome {
            TransactionOutcome::Committed(results) => Outcome::Committed(results),
            TransactionOutcome::Aborted(error) => Outcome::Aborted(error),
            TransactionOutcome::Conflict => Outcome::Conflict,
            TransactionOutcome::OverBudget => Outcome::Rejected(RejectReason::BlockBudget),
        };
        let BatchStatistics { executions, reexecuted, rejected, guards_failed } = result.statistics;
        SentResult {
            outcomes: result.outcomes.into_iter().map(outcome).collect(),
            changes: images(result.changes),
            steps: result.steps,
            counts: [executions, reexecuted, rejected, guards_failed],
        }
    }
}

impl SentResult {
    /// The result of the batch with this number.
    pub(crate) fn of_batch(self, height: u64, number: u32) -> BatchResult {
        let outcome = |outcome| match outcome {
            Outcome::Committed(results) => TransactionOutcome::Committed(results),
            Outcome::Aborted(error) => TransactionOutcome::Aborted(error),
            Outcome::Conflict => TransactionOutcome::Conflict,
            Outcome::Rejected(_) => TransactionOutcome::OverBudget,
        };
        let [executions, reexecuted, rejected, guards_failed] = self.counts;
        BatchResult {
            height,
            number,
            outcomes: self.outcomes.into_iter().map(outcome).collect(),
            changes: after_images(self.changes),
            history: History::default(),
            steps: self.steps,
            statistics: BatchStatistics { executions, reexecuted, rejected, guards_failed },
        }
    }

    /// How many transactions it is about.
    pub(crate) fn transactions(&self) -> usize {
        self.outcomes.len()
    }
}

/// As they travel.
pub(crate) fn images(changes: Vec<AfterImage>) -> Vec<Image> {
    changes.into_iter().map(|change| (change.row.table, change.row.key, change.value)).collect()
}

/// As stores take them.
pub(crate) fn after_images(images: Vec<Image>) -> Vec<AfterImage> {
    let image = |(table, key, value)| AfterImage { row: RowId { table, key }, value };
    images.into_iter().map(image).collect()
}
