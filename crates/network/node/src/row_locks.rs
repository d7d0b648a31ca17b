//! The rows that transaction blocks of this node's sessions have locked, as they see them of one another.
//!
//! ```text
//!  a block: begins on height 7 ─▶ holds rows ─┬▶ ROLLBACK: nobody holds them
//!                                             └▶ COMMIT, applied at height 9: they count as held for blocks that began before 9,
//!                                                because these do not see what has become of them
//! ```
//!
//! They tell `SKIP LOCKED` what to leave out, `NOWAIT` when to fail, and the first statement of a block how long to wait. Whoever waits
//! holds nothing, so that no two blocks wait for one another.

use crate::published::Published;
use parking_lot::Mutex;
use sql::RowLocks;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::watch;
use types::{HeldRow, Key, RowLockMode, TableId, limits};

/// Rows that blocks have left and older blocks may still meet.
const LEFT_ROWS_MAX: usize = 100_000;

/// What all blocks of a node hold.
#[derive(Debug, Default)]
pub(crate) struct NodeRowLocks {
    inner: Mutex<Inner>,
    /// Counts the blocks that have left rows.
    left: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    rows: HashMap<HeldRow, Holders>,
    /// How many open blocks have begun on each height.
    open: BTreeMap<u64, usize>,
    /// Rows that blocks have left which may have changed them, with the height by which that had happened.
    left: VecDeque<(u64, HeldRow)>,
    /// The number of the next block.
    next: u64,
}

/// Who holds a row.
#[derive(Debug, Default)]
struct Holders {
    blocks: Vec<(u64, RowLockMode)>,
    /// A block that held it may have changed it by this height.
    changed_by: u64,
}

impl Inner {
    fn is_held(&self, row: &HeldRow, mode: RowLockMode, block: u64, height: u64) -> bool {
        self.rows.get(row).is_some_and(|holders| {
            let other = |(holder, held): &(u64, RowLockMode)| *holder != block && held.conflicts(mode);
            holders.changed_by > height || holders.blocks.iter().any(other)
        })
    }

    /// Gives whether the block did not hold it before.
    fn hold(&mut self, row: HeldRow, mode: RowLockMode, block: u64) -> bool {
        let blocks = &mut self.rows.entry(row).or_default().blocks;
        match blocks.iter_mut().find(|(holder, _)| *holder == block) {
            Some((_, held)) => {
                *held = mode.max(*held);
                false
            }
            None => {
                blocks.push((block, mode));
                true
            }
        }
    }

    fn leave(&mut self, row: HeldRow, block: u64, changed_by: Option<u64>) {
        let Some(holders) = self.rows.get_mut(&row) else { return };
        holders.blocks.retain(|(holder, _)| *holder != block);
        match changed_by {
            Some(height) => {
                holders.changed_by = height;
                self.left.push_back((height, row));
            }
            None if holders.blocks.is_empty() && holders.changed_by == 0 => drop(self.rows.remove(&row)),
            None => {}
        }
    }

    /// Forgets what no open block can meet any more.
    fn forget(&mut self) {
        let oldest = self.open.keys().next().copied().unwrap_or(u64::MAX);
        while let Some((height, _)) = self.left.front()
            && (*height <= oldest || self.left.len() > LEFT_ROWS_MAX)
            && let Some((height, row)) = self.left.pop_front()
        {
            let Some(holders) = self.rows.get_mut(&row) else { continue };
            if holders.changed_by == height {
                holders.changed_by = 0;
            }
            if holders.blocks.is_empty() && holders.changed_by == 0 {
                self.rows.remove(&row);
            }
        }
    }
}

impl NodeRowLocks {
    /// A block begins on the state of a height, or of a later one.
    pub(crate) fn begin(self: &Arc<Self>, height: u64, published: &Arc<Published>) -> Arc<BlockRowLocks> {
        let published = Arc::clone(published);
        self.begin_with(height, Box::new(move || published.applied_height()))
    }

    fn begin_with(self: &Arc<Self>, height: u64, applied: AppliedHeight) -> Arc<BlockRowLocks> {
        let mut inner = self.inner.lock();
        let block = inner.next;
        inner.next += 1;
        *inner.open.entry(height).or_default() += 1;
        drop(inner);
        Arc::new(BlockRowLocks {
            all: Arc::clone(self),
            block,
            height,
            rows: Mutex::default(),
            is_finished: AtomicBool::new(false),
            applied,
        })
    }

    /// Changes whenever a block leaves rows.
    pub(crate) fn left(&self) -> watch::Receiver<u64> {
        self.left.subscribe()
    }

    /// Whether any block has one of these rows.
    pub(crate) fn are_held(&self, rows: &[HeldRow]) -> bool {
        let inner = self.inner.lock();
        rows.iter().any(|row| inner.rows.get(row).is_some_and(|holders| !holders.blocks.is_empty()))
    }

    /// What somebody sees of the locks who holds none, and reads the newest state.
    pub(crate) fn seen(self: &Arc<Self>) -> Arc<SeenRowLocks> {
        Arc::new(SeenRowLocks { all: Arc::clone(self) })
    }
}

/// The height of the newest applied block.
type AppliedHeight = Box<dyn Fn() -> u64 + Send + Sync>;

/// What one block holds, until this is dropped.
pub(crate) struct BlockRowLocks {
    all: Arc<NodeRowLocks>,
    block: u64,
    /// What it has begun on.
    height: u64,
    rows: Mutex<Vec<HeldRow>>,
    /// It is to be committed.
    is_finished: AtomicBool,
    applied: AppliedHeight,
}

impl BlockRowLocks {
    /// The block is to be committed: who drops this knows how it has ended.
    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Relaxed);
    }
}

impl fmt::Debug for BlockRowLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockRowLocks").field("block", &self.block).field("height", &self.height).finish()
    }
}

impl RowLocks for BlockRowLocks {
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool {
        let row = HeldRow { table, key: key.clone() };
        self.all.inner.lock().is_held(&row, mode, self.block, self.height)
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        let row = HeldRow { table, key: key.clone() };
        let (mut inner, mut rows) = (self.all.inner.lock(), self.rows.lock());
        if alone && inner.is_held(&row, mode, self.block, self.height) {
            return false;
        }
        if rows.len() < limits::HELD_ROWS_MAX && inner.hold(row.clone(), mode, self.block) {
            rows.push(row);
        }
        true
    }
}

impl Drop for BlockRowLocks {
    fn drop(&mut self) {
        let changed_by = self.is_finished.load(Relaxed).then(|| (self.applied)());
        let rows = std::mem::take(self.rows.get_mut());
        let has_held = !rows.is_empty();
        let mut inner = self.all.inner.lock();
        for row in rows {
            inner.leave(row, self.block, changed_by);
        }
        if let Some(blocks) = inner.open.get_mut(&self.height) {
            *blocks -= 1;
            if *blocks == 0 {
                inner.open.remove(&self.height);
            }
        }
        inner.forget();
        drop(inner);
        if has_held {
            self.all.left.send_modify(|left| *left += 1);
        }
    }
}

/// The locks as somebody sees them who holds none.
#[derive(Debug)]
pub(crate) struct SeenRowLocks {
    all: Arc<NodeRowLocks>,
}

impl RowLocks for SeenRowLocks {
    fn is_held(&self, table: TableId, key: &Key, mode: RowLockMode) -> bool {
        let row = HeldRow { table, key: key.clone() };
        self.all.inner.lock().is_held(&row, mode, u64::MAX, u64::MAX)
    }

    fn hold(&self, table: TableId, key: &Key, mode: RowLockMode, alone: bool) -> bool {
        !(alone && self.is_held(table, key, mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use types::Value;

    const JOB: TableId = TableId(7);

    fn key(number: i32) -> Key {
        Key::encode([&Value::Integer(number)]).expect("a key")
    }

    struct Node {
        locks: Arc<NodeRowLocks>,
        height: Arc<AtomicU64>,
    }

    impl Node {
        fn new() -> Node {
            Node { locks: Arc::default(), height: Arc::new(AtomicU64::new(5)) }
        }

        fn begin(&self) -> Arc<BlockRowLocks> {
            let height = Arc::clone(&self.height);
            self.locks.begin_with(height.load(Relaxed), Box::new(move || height.load(Relaxed)))
        }

        fn is_empty(&self) -> bool {
            let inner = self.locks.inner.lock();
            inner.rows.is_empty() && inner.open.is_empty() && inner.left.is_empty()
        }
    }

    #[test]
    fn a_row_is_held_by_one_block_until_it_is_rolled_back() {
        let node = Node::new();
        let (one, other) = (node.begin(), node.begin());
        assert!(one.hold(JOB, &key(1), RowLockMode::Update, true));
        assert!(one.hold(JOB, &key(1), RowLockMode::Update, true), "it holds it itself");
        assert!(!other.hold(JOB, &key(1), RowLockMode::Update, true));
        assert!(other.is_held(JOB, &key(1), RowLockMode::KeyShare));
        assert!(!other.is_held(JOB, &key(2), RowLockMode::Update));
        assert!(!other.is_held(TableId(8), &key(1), RowLockMode::Update));
        assert!(node.locks.seen().is_held(JOB, &key(1), RowLockMode::Share));
        let row = |number| HeldRow { table: JOB, key: key(number) };
        assert!(node.locks.are_held(&[row(2), row(1)]) && !node.locks.are_held(&[row(2)]));
        let left = node.locks.left();
        drop(one);
        assert!(left.has_changed().expect("the locks are there"));
        assert!(!node.locks.are_held(&[row(1)]));
        assert!(other.hold(JOB, &key(1), RowLockMode::Update, true));
        drop(other);
        assert!(node.is_empty());
    }

    #[test]
    fn who_shares_a_row_holds_it_together_with_others() {
        let node = Node::new();
        let (one, other, third) = (node.begin(), node.begin(), node.begin());
        assert!(one.hold(JOB, &key(1), RowLockMode::Share, true));
        assert!(other.hold(JOB, &key(1), RowLockMode::KeyShare, true));
        assert!(!third.hold(JOB, &key(1), RowLockMode::NoKeyUpdate, true));
        drop(one);
        assert!(third.hold(JOB, &key(1), RowLockMode::NoKeyUpdate, true), "a key is not changed");
        assert!(third.is_held(JOB, &key(1), RowLockMode::Update), "and another holds it");
        // A stronger mode counts.
        assert!(other.hold(JOB, &key(1), RowLockMode::Update, false));
        assert!(third.is_held(JOB, &key(1), RowLockMode::KeyShare));
        drop((other, third));
        assert!(node.is_empty());
    }

    #[test]
    fn what_a_block_has_committed_is_held_for_those_that_do_not_see_it() {
        let node = Node::new();
        let (one, before) = (node.begin(), node.begin());
        assert!(one.hold(JOB, &key(1), RowLockMode::Update, true));
        one.finish();
        node.height.store(9, Relaxed);
        let between = node.begin();
        assert!(between.is_held(JOB, &key(1), RowLockMode::Update), "its outcome is not known");
        drop(one);
        assert!(before.is_held(JOB, &key(1), RowLockMode::Update), "it sees what was there at height 5");
        assert!(!between.is_held(JOB, &key(1), RowLockMode::Update));
        assert!(between.hold(JOB, &key(1), RowLockMode::Update, true));
        drop(before);
        assert!(node.begin().is_held(JOB, &key(1), RowLockMode::Update));
        drop(between);
        assert!(node.is_empty());
    }

    #[test]
    fn blocks_hold_a_bounded_number_of_rows() {
        let node = Node::new();
        let one = node.begin();
        for number in 0..=limits::HELD_ROWS_MAX {
            assert!(one.hold(JOB, &key(number as i32), RowLockMode::Update, true));
        }
        let seen = node.locks.seen();
        assert!(seen.is_held(JOB, &key(limits::HELD_ROWS_MAX as i32 - 1), RowLockMode::Update));
        assert!(!seen.is_held(JOB, &key(limits::HELD_ROWS_MAX as i32), RowLockMode::Update));
        drop(one);
        assert!(node.is_empty());
    }
}
