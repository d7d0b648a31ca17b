//! Stores that outlive a process: they come back at the end of a block, or at a checkpoint, with everything that belongs to the
//! state. What a store says of checkpoints is compared with the plain map, also where it does not come back.

use super::checks::{assert_same, header};
use super::world::World;
use crate::{
    BlockEnd, CheckpointProgress, KeptState, LiveContent, LiveRequest, LiveRequests, PlainState, Reopened,
    ResumePoint, StateTree, StoreStatistics, Stores,
};
use crypto::{Digest, PublicKey};
use proofs::state::TreeShape;
use rand::RngExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{ClientId, RequestId, TransactionId};

/// Random histories of this number.
const SEEDS: u64 = 6;
/// Blocks of each.
const BLOCKS: u64 = 48;

/// What a store should come back with.
#[derive(Clone)]
struct Expected {
    point: ResumePoint,
    model: PlainState,
    live: LiveContent,
    is_resumable: bool,
    /// In this shape its tree was made, if it was.
    kept: Option<TreeShape>,
}

struct Running {
    world: World,
    live: LiveRequests,
    expected: BTreeMap<u64, Expected>,
    shape: TreeShape,
    checkpoint: u64,
    /// Only these checkpoints are kept.
    kept: Vec<u64>,
}

impl Running {
    fn new(stores: &dyn Stores, seed: u64) -> Running {
        Running {
            world: World::new(stores, seed),
            live: LiveRequests::new(),
            expected: BTreeMap::new(),
            shape: if seed.is_multiple_of(2) { TreeShape::Groups } else { TreeShape::Ranges },
            checkpoint: 0,
            kept: Vec::new(),
        }
    }

    /// A block, its end, and perhaps a checkpoint.
    fn block(&mut self, stores: &dyn Stores) {
        self.world.block();
        let height = self.world.height;
        let admitted = self.admit(height);
        let random = &mut self.world.random;
        let is_checkpoint = random.random_bool(0.2);
        let is_resumable = is_checkpoint || random.random_bool(0.7);
        let is_due = random.random_bool(0.2);
        let progress = CheckpointProgress { last: self.checkpoint, rows: height * 7 };
        let point = ResumePoint { header: header(height), progress };
        let end = BlockEnd { point, admitted, is_resumable, is_checkpoint, is_due };
        self.world.store.end_block(end).expect("nothing fails here");
        let (model, live) = (self.world.model.clone(), self.live.content());
        let mut expected = Expected { point, model, live, is_resumable, kept: None };
        if is_checkpoint {
            self.checkpoint = height;
            // One that nobody has the time to keep is left out.
            if self.world.random.random_bool(0.8) {
                self.keep(stores, &mut expected);
            }
        }
        self.expected.insert(height, expected);
    }

    /// Some ids, which expire soon or late.
    fn admit(&mut self, height: u64) -> Vec<LiveRequest> {
        self.live.begin_block(height);
        let mut admitted = Vec::new();
        for index in 0..self.world.random.random_range(0..4u32) {
            let mut request = [0; 16];
            request[..8].copy_from_slice(&height.to_le_bytes());
            request[8..12].copy_from_slice(&index.to_le_bytes());
            let key = PublicKey([self.world.random.random_range(0..5); 32]);
            let client = ClientId { key, request: RequestId(request) };
            let id = TransactionId(Digest([index as u8; 32]));
            let expires_at = height + self.world.random.random_range(0..20);
            self.live.admit(client, id, index, expires_at).expect("it is new");
            admitted.push(LiveRequest { client, id, height, index, expires_at });
        }
        admitted
    }

    fn keep(&mut self, stores: &dyn Stores, expected: &mut Expected) {
        if self.world.random.random_bool(0.1) {
            self.shape = match self.shape {
                TreeShape::Ranges => TreeShape::Groups,
                TreeShape::Groups => TreeShape::Ranges,
            };
        }
        let (store, header) = (&self.world.store, expected.point.header);
        let kept = store.keep_checkpoint(&header, store.snapshot(), expected.live.clone(), self.shape);
        let kept = kept.expect("nothing fails here").expect("the store is open");
        self.compare(&kept, expected, self.shape);
        expected.kept = Some(self.shape);
        self.kept.push(header.height);
        if self.world.random.random_bool(0.7) {
            // The newest two, or all but one.
            let one = self.world.random.random_range(0..self.kept.len());
            match self.world.random.random_bool(0.7) {
                true => drop(self.kept.drain(..self.kept.len().saturating_sub(2))),
                false if self.kept.len() > 1 => drop(self.kept.remove(one)),
                false => {}
            }
            stores.keep_checkpoints(&self.kept).expect("nothing fails here");
        }
    }

    /// The state of a checkpoint is what the map was, and its tree is what all rows of the map come to.
    fn compare(&self, kept: &KeptState, expected: &Expected, shape: TreeShape) {
        let Expected { point, model, live, .. } = expected;
        assert_eq!(*kept.header(), point.header);
        let full = StateTree::new(model, live, shape).expect("a map can be read");
        assert_eq!(kept.tree().root(), full.root(), "height {}", point.header.height);
        assert_eq!(*kept.tree(), full);
        let tables: Vec<_> = self.world.numbers().into_iter().filter(|table| !table.is_index()).collect();
        assert_same(kept.snapshot().as_ref(), model, &tables);
        let nodes = kept.tree().nodes().len();
        assert_eq!(kept.find_damage(0..nodes).expect("nothing fails here"), None);
    }

    /// The process ends, and the next one begins somewhere. `durable`: the height that is known to be durable. False: nothing was
    /// left.
    fn come_back(&mut self, stores: &dyn Stores, newest: bool, durable: Option<u64>) -> bool {
        self.world.held.clear();
        // As if nobody had it: the store is gone with its threads.
        self.world.go_on_with(memoryless());
        let left = stores.left().expect("nothing fails here");
        for point in &left {
            let expected = self.expected.get(&point.header.height).expect("the end of a block");
            assert!(expected.is_resumable, "height {}", point.header.height);
            assert_eq!(*point, expected.point);
        }
        assert!(left.is_sorted_by(|one, other| one.header.height > other.header.height));
        assert!(left.first().map(|point| point.header.height) >= durable, "{durable:?} is durable");
        if left.is_empty() {
            return false;
        }
        let one = if newest { 0 } else { self.world.random.random_range(0..left.len()) };
        let height = left[one].header.height;
        let reopened = stores.reopen(height).expect("nothing fails here").expect("it was left");
        stores.settle().expect("nothing fails here");
        stores.remove_checkpoints_behind(height).expect("nothing fails here");
        let Reopened { point, state, live } = reopened;
        let expected = self.expected[&height].clone();
        assert_eq!(point, expected.point);
        let requests = |content: &LiveContent| content.iter().collect::<Vec<_>>();
        assert_eq!(requests(&live.content()), requests(&expected.live));
        self.expected.retain(|known, _| *known <= height);
        self.kept.retain(|known| *known <= height);
        self.checkpoint = self
            .expected
            .iter()
            .rev()
            .find(|(_, one)| one.point.progress.last <= height)
            .map_or(0, |(_, one)| one.point.progress.last);
        (self.world.height, self.world.model, self.live) = (height, expected.model, live);
        self.world.go_on_with(state);
        let snapshot = self.world.store.snapshot();
        let model = self.world.model.clone();
        self.world.check(snapshot.as_ref(), &model);
        for height in self.kept.clone() {
            let expected = self.expected[&height].clone();
            let shape = expected.kept.expect("it was kept");
            let kept = stores.kept_checkpoint(height, shape).expect("nothing fails here");
            self.compare(&kept.expect("it is kept"), &expected, shape);
        }
        true
    }
}

/// Something to hold while there is no store.
fn memoryless() -> Arc<dyn crate::Store> {
    Arc::new(Nothing(PlainState::default()))
}

struct Nothing(PlainState);

impl crate::Store for Nothing {
    fn version(&self) -> crate::Version {
        crate::Version::GENESIS
    }

    fn catalog(&self) -> Arc<types::Catalog> {
        self.0.catalog.clone()
    }

    fn catalog_digest(&self) -> Digest {
        self.0.catalog.digest()
    }

    fn rows(&self, _: types::TableId) -> u64 {
        0
    }

    fn snapshot(&self) -> Arc<dyn crate::Snapshot> {
        Arc::new(self.0.clone())
    }

    fn snapshot_at(&self, _: crate::Version) -> Option<Arc<dyn crate::Snapshot>> {
        None
    }

    fn apply(
        &self,
        _: crate::Version,
        _: &[crate::AfterImage],
        _: Option<Arc<types::Catalog>>,
    ) -> Result<(), crate::StoreError> {
        Ok(())
    }
}

/// The tree of every checkpoint is that of a full computation, and its state stays as it was while blocks go on.
pub fn checkpoints_are_kept_as_they_were(stores: Arc<dyn Stores>) {
    for seed in 0..SEEDS {
        let mut running = Running::new(stores.as_ref(), seed);
        stores.settle().expect("nothing fails here");
        stores.remove_checkpoints_behind(0).expect("nothing fails here");
        for _ in 0..BLOCKS {
            running.block(stores.as_ref());
            let Some(height) = running.kept.first().copied() else { continue };
            let expected = running.expected[&height].clone();
            let shape = expected.kept.expect("it was kept");
            if let Some(kept) = stores.kept_checkpoint(height, shape).expect("nothing fails here") {
                running.compare(&kept, &expected, shape);
            }
        }
        let StoreStatistics { rows, file_bytes, .. } = running.world.store.statistics();
        let made = running.world.model.tables.iter().filter(|(table, _)| table.is_made());
        let expected: usize = made.map(|(_, rows)| rows.len()).sum();
        // A store without files counts nothing.
        assert!(rows == expected as u64 || (rows, file_bytes) == (0, 0), "{rows} rows of {expected}");
    }
}

/// Again and again, at the newest place or at another one, whatever was written by then.
pub fn a_state_comes_back_where_it_was_left(stores: Arc<dyn Stores>) {
    for seed in 0..SEEDS {
        let mut running = Running::new(stores.as_ref(), seed);
        stores.settle().expect("nothing fails here");
        stores.remove_checkpoints_behind(0).expect("nothing fails here");
        for round in 0..8 {
            (0..BLOCKS / 4).for_each(|_| running.block(stores.as_ref()));
            let mut durable = None;
            if running.world.random.random_bool(0.5) {
                durable = running.world.store.durable_point().expect("nothing fails here");
                if let Some(height) = durable {
                    assert!(running.expected[&height].is_resumable, "seed {seed}, round {round}");
                }
            }
            let newest = running.world.random.random_bool(0.6);
            let height = running.world.height;
            if !running.come_back(stores.as_ref(), newest, durable) {
                // It comes back from elsewhere.
                break;
            }
            assert!(running.world.height <= height, "seed {seed}, round {round}");
        }
    }
}
