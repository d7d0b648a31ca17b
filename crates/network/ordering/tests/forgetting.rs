//! Members that forget blocks which their ledgers have given up, among others that keep all: networks on the deterministic
//! runtime, ordered by BFT and by Raft.

use bytes::Bytes;
use crypto::Digest;
use ordering::simulation::{AnyBytes, Event, Join, LinkQuality, Network, Process, charter};
use ordering::{CertificateVerifier, Delivery, Services};
use parking_lot::Mutex;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::Duration;
use types::{BlockHeader, Charter, Charters};

const ORDERINGS: [&str; 2] = ["bft", "raft"];
const NODES: usize = 4;
/// What clients submit, every 100 ms: so that bytes of blocks are more than those of everything around them.
const TRANSACTION_BYTES: usize = 4 * 1024;
/// So many blocks a member's ledger keeps that prunes. Ordering keeps 64 of the newest whatever it is told, and whole files of 16.
const KEPT: u64 = 80;
/// No member keeps more blocks, which it has forgotten all others of: what the ledger keeps, what of a file is older, and what came
/// since it was told.
const KEPT_MOST: u64 = KEPT + 2 * 16;

/// A member's setting at its starts, one after the other; the last goes on.
type Settings = Vec<Option<u64>>;

/// What survives a kill, and what a member has come to.
#[derive(Default)]
struct Member {
    digests: Vec<Digest>,
    last: Option<BlockHeader>,
    /// The first block that it has itself, unless it is the first of all.
    joined_at: u64,
    starts: usize,
    services: Option<Services>,
    /// Bytes on its disk at each start, with its height then.
    stored: Vec<(u64, u64)>,
    /// How far the first member was when this one started last.
    first_at: u64,
    /// Heights that its ordering still had when it was asked.
    read: Vec<u64>,
    unobtainable: Option<RangeInclusive<u64>>,
    trouble: Option<String>,
}

impl Member {
    fn height(&self) -> u64 {
        self.joined_at + self.digests.len() as u64
    }

    fn digest_at(&self, height: u64) -> Option<&Digest> {
        self.digests.get(usize::try_from(height.checked_sub(self.joined_at + 1)?).ok()?)
    }
}

struct World {
    charter: Arc<Charter>,
    verifier: CertificateVerifier,
    settings: Vec<Settings>,
    members: Vec<Mutex<Member>>,
    /// At this height, and never before, every member reads these blocks from its ordering.
    reads: (u64, Range<u64>),
    /// A block that a member which nobody gives blocks goes on behind.
    joins: bool,
    /// Blocks from here on with what proves them, for who joins.
    blocks: Mutex<Vec<Delivery>>,
    submitted: AtomicU64,
    done: fn(&[Mutex<Member>]) -> bool,
}

impl World {
    fn new(ordering: &str, settings: [&[Option<u64>]; NODES], done: fn(&[Mutex<Member>]) -> bool) -> World {
        let mut charter = charter(1, NODES);
        // Nobody says what blocks come to.
        charter.outcome_lag_blocks = 10_000;
        charter.block.idle_ms = 100;
        charter.ordering = ordering.to_string();
        let charter = Arc::new(charter);
        World {
            verifier: CertificateVerifier::new(Charters::new(charter.clone())).expect("good keys"),
            charter,
            settings: settings.map(<[_]>::to_vec).to_vec(),
            members: (0..NODES).map(|_| Mutex::default()).collect(),
            reads: (0, 0..0),
            joins: false,
            blocks: Mutex::default(),
            submitted: AtomicU64::new(0),
            done,
        }
    }

    /// The setting with which a member runs that has started so often.
    fn setting(&self, node: usize, starts: usize) -> Option<u64> {
        let settings = &self.settings[node];
        settings[starts.min(settings.len()) - 1]
    }

    /// Runs, and checks that all members hold the same blocks.
    fn run(self, events: &[(u64, Event)]) -> Arc<World> {
        let events = events.iter().map(|(seconds, event)| (Duration::from_secs(*seconds), *event)).collect();
        let network = Network {
            seed: 1,
            charter: self.charter.clone(),
            nodes: NODES,
            links: LinkQuality::GOOD,
            events,
            scenario: None,
            adversaries: Vec::new(),
            withholding: Vec::new(),
            trusts_certificates: false,
            slow: None,
            timeout: Duration::from_secs(600),
        };
        let world = Arc::new(self);
        let ran = network.run(world.clone());
        let members: Vec<_> = world.members.iter().map(Mutex::lock).collect();
        let found: Vec<_> = members
            .iter()
            .map(|member| (member.height(), member.joined_at, member.starts, &member.trouble))
            .collect();
        ran.unwrap_or_else(|error| panic!("{}: {error}: {found:?}", world.charter.ordering));
        for height in 1..=members.iter().map(|member| member.height()).max().unwrap_or(0) {
            let mut digests = members.iter().filter_map(|member| member.digest_at(height));
            let first = digests.next();
            assert!(digests.all(|digest| Some(digest) == first), "height {height}");
        }
        drop(members);
        world
    }
}

impl Process for World {
    fn start(&self, node: usize, _: Arc<dyn Fn() -> Duration + Send + Sync>, join: Join<'_>) {
        let first_at = self.members[0].lock().height();
        let last = {
            let mut member = self.members[node].lock();
            (member.starts, member.first_at) = (member.starts + 1, first_at);
            member.last.clone()
        };
        let services = join(last, Charters::new(self.charter.clone()), Arc::new(AnyBytes));
        self.members[node].lock().services = Some(services);
    }

    fn keeps_from(&self, node: usize) -> Option<u64> {
        let member = self.members[node].lock();
        // It is asked while the member starts, which is counted already.
        let kept = self.setting(node, member.starts)?;
        Some(member.height().saturating_sub(kept) + 1)
    }

    fn measures_storage(&self) -> bool {
        true
    }

    fn stored(&self, node: usize, bytes: u64) {
        let mut member = self.members[node].lock();
        let height = member.height();
        member.stored.push((height, bytes));
    }

    fn missing(&self, _: usize, delivered: u64) -> Range<u64> {
        if delivered == self.reads.0 { self.reads.1.clone() } else { 0..0 }
    }

    fn deliver(&self, node: usize, delivery: Delivery) {
        let mut member = self.members[node].lock();
        self.verifier.verify_block(&delivery.block, &delivery.certificate).expect("it is certified");
        let header = &delivery.block.header;
        match header.height.cmp(&(member.height() + 1)) {
            std::cmp::Ordering::Less => member.read.push(header.height),
            std::cmp::Ordering::Greater => panic!("node {node}: height {} follows a gap", header.height),
            std::cmp::Ordering::Equal => {
                let (height, digest) = (header.height, header.digest());
                assert!(member.last.as_ref().is_none_or(|last| header.previous == last.digest()));
                member.last = Some(header.clone());
                member.digests.push(digest);
                let ordering = member.services.as_ref().expect("it runs").ordering.clone();
                ordering.acknowledge(height);
                if let Some(kept) = self.setting(node, member.starts) {
                    ordering.forget_below((height + 1).saturating_sub(kept));
                }
                if self.joins && node == 0 {
                    self.blocks.lock().push(delivery);
                }
            }
        }
    }

    fn turn(&self, node: usize) {
        let mut member = self.members[node].lock();
        let Some(services) = member.services.clone() else { return };
        let Some(unobtainable) = services.ordering.unobtainable() else { return };
        member.trouble = services.ordering.trouble();
        member.unobtainable.get_or_insert(unobtainable);
        if self.joins {
            // As who has the state of a block that others have kept.
            let blocks = self.blocks.lock();
            let newest = blocks.iter().rev().skip(20);
            let mut joined = newest.filter(|delivery| {
                let header = &delivery.block.header;
                services.ordering.skip_to(header, &delivery.certificate).is_ok()
            });
            let header = joined.next().expect("one was finalized by itself").block.header.clone();
            member.joined_at = header.height;
            member.digests.clear();
            member.last = Some(header);
        }
    }

    fn crash(&self, node: usize) {
        self.members[node].lock().services = None;
    }

    fn clients(&self, now: Duration) {
        if now.as_millis() as u64 / 100 <= self.submitted.load(Atomic::Relaxed) {
            return;
        }
        let number = self.submitted.fetch_add(1, Atomic::Relaxed);
        let services = self.members[number as usize % 2].lock().services.clone();
        if let Some(services) = services {
            let transaction = Bytes::from(number.to_le_bytes().repeat(TRANSACTION_BYTES / 8));
            drop(services.ordering.submit(vec![transaction]));
        }
    }

    fn height(&self, node: usize) -> u64 {
        self.members[node].lock().height()
    }

    fn is_done(&self) -> bool {
        (self.done)(&self.members)
    }
}

fn all_have(members: &[Mutex<Member>], height: u64) -> bool {
    members.iter().all(|member| member.lock().height() >= height)
}

const ALL: &[Option<u64>] = &[None];
const SOME: &[Option<u64>] = &[Some(KEPT)];

/// The first two members forget, the others do not. The last one is away nearly from the beginning until the others are far ahead.
#[test]
fn who_needs_forgotten_blocks_gets_them_from_members_that_keep_all() {
    for ordering in ORDERINGS {
        let mut world = World::new(ordering, [SOME, SOME, ALL, ALL], |members| all_have(members, 300));
        world.reads = (290, 1..9);
        let world = world.run(&[(1, Event::Crash(3)), (60, Event::Restart(3))]);
        let members: Vec<_> = world.members.iter().map(Mutex::lock).collect();
        assert_eq!(members[3].starts, 2, "{ordering}");
        let ahead = members[3].first_at;
        assert!(ahead > 150, "{ordering}: the others are far ahead when it comes back, {ahead}");
        // What others have brought does not stand in a Raft log.
        let logs = if ordering == "raft" { 3 } else { NODES };
        for (node, member) in members.iter().enumerate().take(logs) {
            let has_first = !member.read.is_empty();
            assert_eq!(has_first, node >= 2, "{ordering}, node {node} has read {:?}", member.read);
        }
    }
}

/// The leader of a Raft group has enough to do, and is asked for blocks only where nobody else has them.
#[test]
fn a_leader_that_alone_keeps_all_blocks_gives_them() {
    let world = World::new("raft", [ALL, SOME, SOME, ALL], |members| all_have(members, 300));
    let world = world.run(&[(1, Event::Crash(3)), (40, Event::Restart(3))]);
    assert_eq!(world.members[3].lock().trouble, None);
}

#[test]
fn who_was_away_for_a_while_needs_only_what_those_keep_who_forget() {
    for ordering in ORDERINGS {
        let mut world = World::new(ordering, [SOME; NODES], |members| all_have(members, 300));
        world.reads = (190, 1..2);
        let world = world.run(&[(15, Event::Crash(3)), (20, Event::Restart(3))]);
        let member = world.members[3].lock();
        assert_eq!((member.starts, &member.trouble), (2, &None), "{ordering}");
        let behind = member.first_at - member.stored.last().expect("measured").0;
        assert!(behind >= 10, "{ordering}: it was {behind} blocks behind");
        drop(member);
        let forgot = |member: &Mutex<Member>| member.lock().read.is_empty();
        assert!(world.members.iter().all(forgot), "{ordering}: all have forgotten the first block");
    }
}

#[test]
fn blocks_that_everybody_has_forgotten_stop_nobody_else_and_who_lacks_them_says_so() {
    for ordering in ORDERINGS {
        let mut world = World::new(ordering, [SOME, SOME, SOME, ALL], |members| all_have(members, 700));
        world.joins = true;
        let world = world.run(&[(1, Event::Crash(3)), (40, Event::Restart(3))]);
        let member = world.members[3].lock();
        let lacking = member.unobtainable.clone().expect("nobody gives it blocks");
        assert!(*lacking.start() < 30 && *lacking.end() > 150, "{ordering}: {lacking:?}");
        let trouble = member.trouble.clone().unwrap_or_default();
        let words = ["none of the 3 members", "have forgotten it", "`join = \"checkpoint\"`"];
        assert!(words.iter().all(|word| trouble.contains(word)), "{ordering}: {trouble}");
        assert!(member.joined_at > *lacking.start(), "{ordering}: it has gone on behind a checkpoint");
        assert!((0..3).all(|node| world.members[node].lock().unobtainable.is_none()), "{ordering}");
    }
}

/// No member's files have more that keeps [`KEPT_MOST`] blocks: there are at least as many blocks as transactions.
const KEPT_BYTES_MOST: u64 = KEPT_MOST * (TRANSACTION_BYTES as u64 + 512);

#[test]
fn what_is_on_the_disk_of_who_forgets_is_bounded() {
    for ordering in ORDERINGS {
        let world = World::new(ordering, [SOME, ALL, ALL, ALL], |members| all_have(members, 500));
        // Files are measured at starts.
        let restarts = [(12, 0), (18, 0), (24, 0), (36, 1)];
        let events = restarts.map(|(at, node)| [(at, Event::Crash(node)), (at + 1, Event::Restart(node))]);
        let world = world.run(events.as_flattened());
        let (forgets, keeps) = (world.members[0].lock(), world.members[1].lock());
        assert_eq!(forgets.stored.len(), 4, "{ordering}");
        let bounded = forgets.stored.iter().all(|(_, bytes)| *bytes < KEPT_BYTES_MOST);
        assert!(bounded, "{ordering}: {:?}, {KEPT_BYTES_MOST} at most", forgets.stored);
        let (height, all) = *keeps.stored.last().expect("measured");
        assert!(all > KEPT_BYTES_MOST * 3 / 2, "{ordering}: {all} bytes of {height} blocks");
    }
}

/// The first member starts again and again, with the other setting each time.
#[test]
fn a_member_that_changes_its_mind_between_starts_loses_nothing_that_is_kept() {
    for ordering in ORDERINGS {
        let settings: &[Option<u64>] = &[None, Some(KEPT), None, Some(KEPT)];
        let mut world = World::new(ordering, [settings, ALL, ALL, ALL], |members| all_have(members, 650));
        world.reads = (640, 562..570);
        let restarts = [22, 28, 34, 40].map(|at| [(at, Event::Crash(0)), (at + 1, Event::Restart(0))]);
        let world = world.run(restarts.as_flattened());
        let member = world.members[0].lock();
        assert_eq!(member.starts, 5, "{ordering}");
        assert!((562..570).all(|height| member.read.contains(&height)), "{ordering}: {:?}", member.read);
        let (height, all) = member.stored[1];
        assert!(all > KEPT_BYTES_MOST * 5 / 4, "{ordering}: {all} bytes of {height} blocks");
        for start in [2, 4] {
            let (height, bytes) = member.stored[start];
            assert!(bytes < KEPT_BYTES_MOST, "{ordering}: {bytes} bytes at {height}");
        }
    }
}
