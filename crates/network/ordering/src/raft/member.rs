//! Drives one member of the group: brings it time, messages and a disk.
//!
//! ```text
//!   messages ─▶ Group ─▶ Ready ─▶ Disk, flushed ─▶ messages
//!                          └─▶ committed entries ─▶ delivery ─▶ node
//!   leads:        mempool ─▶ Offer ─▶ Group              (leading)
//!   does not:     mempool ─▶ the leader's mempool        (forwarding)
//!   lacks blocks: other members' logs ─▶ delivery        (backfill)
//! ```

use super::chain::Offer;
use super::config::{COMMITS_UNSAVED, FED_ENTRIES, NEWEST_KEPT, PRESENCE, SNAPSHOT_AGAIN, TICK, channel};
use super::delivery::{self, Feed};
use super::disk::{Disk, Failed, Floor, Runtime, State};
use super::group::Group;
use super::shared::{Shared, Tip};
use super::window::Position;
use super::wire::{Backfill, Said, Voters};
use crate::Delivery;
use crate::cutting::Parent;
use crate::members::{Forwarded, Peers, committee, forwarding, messages};
use crate::mempool::Source;
use crate::sink::Sink;
use bytes::Bytes;
use commonware_cryptography::ed25519::PublicKey;
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Handle;
use crypto::Digest;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info};
use types::{BlockHeader, Charter, TransactionId, decode_exactly, encode};

/// Arrivals within this time are looked at together.
pub(super) const ARRIVALS: Duration = Duration::from_millis(1);

/// A member's end of every channel.
pub(crate) type Channels<S, R> = [(S, R); channel::ALL.len()];

/// What differs between members and runtimes.
pub(crate) struct Parts<S, R> {
    pub shared: Arc<Shared>,
    pub tracked: Box<dyn Peers>,
    pub channels: Channels<S, R>,
    /// The last block of the node's ledger.
    pub last: Option<BlockHeader>,
    /// Whether the ledger begins behind that block: the node was about to say so when it ended.
    pub joined: bool,
    /// Of a node that prunes, the first height whose payload its ledger has.
    pub keeps_from: Option<u64>,
    pub entries_per_file: NonZeroU64,
    pub requests: mpsc::Receiver<Request>,
}

/// What the node asks of its member.
pub(crate) enum Request {
    /// A block of another time.
    Read { height: u64, answer: oneshot::Sender<Option<Delivery>> },
}

/// The name of a node in the group: the beginning of its key. A new key is a new member, which has promised nothing.
fn id_of(key: &PublicKey) -> u64 {
    let bytes: &[u8] = key.as_ref();
    bytes.first_chunk().map_or(1, |start| u64::from_le_bytes(*start).max(1))
}

/// The members of a charter.
pub(super) fn members_of(charter: &Charter) -> BTreeSet<u64> {
    let keys = charter.members().filter_map(|(_, member)| committee::public_key(&member.node_key));
    keys.map(|key| id_of(&key)).collect()
}

/// A block that this leader has offered.
pub(super) struct Offered {
    pub(super) position: Position,
    pub(super) parent: Parent,
    pub(super) ids: Vec<TransactionId>,
}

/// This node's work as the leader.
#[derive(Default)]
pub(super) struct Reign {
    /// Since which term it leads; 0 if it does not.
    pub(super) term: u64,
    /// It offers nothing before it has judged the log up to here: what it builds on must be known.
    pub(super) from: u64,
    pub(super) offered: VecDeque<Offered>,
    pub(super) ids: FxHashSet<TransactionId>,
    /// When it offered last, or could first.
    pub(super) idle_since: Duration,
}

/// What this node knows of the leader's mempool.
#[derive(Default)]
pub(super) struct Forwarding {
    /// The term in which that holds.
    pub(super) term: u64,
    /// What came before this position is at the leader.
    pub(super) next: u64,
    pub(super) last: Duration,
    /// When everything was given again last.
    pub(super) again: Duration,
}

/// What this node lacks, and whom it has asked.
#[derive(Default)]
pub(super) struct Missing {
    /// The log begins behind this block, which the node does not have.
    pub(super) floor: Option<Floor>,
    pub(super) asked: Option<Duration>,
    /// The greatest height that another member has said it has.
    pub(super) ahead: u64,
    /// How often; says who is next.
    pub(super) times: usize,
    /// How often since somebody has given some.
    pub(super) in_vain: usize,
}

/// One member at work.
pub(super) struct Member<E: Runtime, S> {
    pub(super) context: E,
    pub(super) shared: Arc<Shared>,
    pub(super) disk: Disk<E>,
    pub(super) group: Group,
    pub(super) raft: S,
    pub(super) forward: S,
    pub(super) backfill: S,
    pub(super) feeds: mpsc::Sender<Feed>,
    /// How many have been given.
    pub(super) given: u64,
    pub(super) taken: mpsc::Sender<Forwarded>,
    pub(super) tracked: Box<dyn Peers>,
    /// Keys of all members that were, are or will be, by their name in the group; made anew with every charter.
    pub(super) keys: (Digest, BTreeMap<u64, PublicKey>),
    pub(super) own: u64,
    /// The last entry that was given to be judged.
    pub(super) fed: u64,
    pub(super) saved_commit: u64,
    pub(super) reign: Reign,
    pub(super) forwarding: Forwarding,
    pub(super) missing: Missing,
    /// Who was sent a snapshot, and when.
    pub(super) snapshots: BTreeMap<u64, Duration>,
    /// If the node prunes, what the log was last to forget.
    pub(super) forgotten: Option<u64>,
    pub(super) tick: Duration,
    pub(super) presence: Duration,
}

/// Opens a member's log and starts it. Names of its files begin with `prefix`.
pub(crate) async fn start<E, S, R>(
    context: E,
    prefix: &str,
    parts: Parts<S, R>,
    sink: impl Sink,
) -> Result<Handle<Failed>, Failed>
where
    E: Runtime,
    S: Sender<PublicKey = PublicKey>,
    R: Receiver<PublicKey = PublicKey>,
{
    let Parts { shared, tracked, channels, last, joined, keeps_from, entries_per_file, requests } = parts;
    let founding = shared.members.epochs.charters().founding().clone();
    let first = first_state(&founding);
    let mut disk = Disk::open(context.child("disk"), (prefix, entries_per_file), first).await?;
    let own = id_of(shared.members.epochs.own_key());
    if let Some(last) = &last {
        // A node that judged by older ones would find another ledger than the others.
        if !shared.members.epochs.knows(&last.charters) {
            return Err(format!(
                "the charters that block {} names are not those of this node's ledger",
                last.height
            ));
        }
    }
    disk.state.follows |= joined;
    let fed = place_of(&mut disk, last.as_ref(), own).await?;
    let window = disk.window().await?;
    disk.save().await?;
    shared.forget_below.fetch_max(keeps_from.unwrap_or(0), Atomic::AcqRel);
    // Whoever will come in is not at any place yet.
    let place = shared
        .members
        .epochs
        .member(shared.members.epochs.own_key())
        .map_or((own % 64) as u16, |place| place as u16);
    let group = Group::new(own, place, window, disk.state.voters_since)?;
    let parent = shared.tip.borrow().parent;
    let tip = judged_so_far(&mut disk, fed, parent).await?;
    shared.publish(tip);
    let [raft, forward, backfill, to_all, to_one] = channels;
    messages::start_both(&context, &shared.members, to_all, to_one);
    let (feeds, fed_entries) = mpsc::channel(FED_ENTRIES);
    let delivered = shared.clone();
    context.child("delivery").spawn(move |context| delivery::run(context, delivered, fed_entries, sink));
    let taken = take_from_others(context.child("taking"), &shared);
    let floor = Some(disk.state.floor).filter(|floor| floor.height > tip.parent.height);
    let now = shared.now();
    let member = Member {
        context: context.child("member"),
        saved_commit: disk.state.commit,
        disk,
        group,
        raft: raft.0,
        forward: forward.0,
        backfill: backfill.0,
        feeds,
        given: 0,
        taken,
        tracked,
        keys: (Digest::ZERO, BTreeMap::new()),
        own,
        fed,
        reign: Reign::default(),
        forwarding: Forwarding::default(),
        missing: Missing { floor, ..Missing::default() },
        snapshots: BTreeMap::new(),
        forgotten: keeps_from.map(|_| 0),
        tick: now + TICK,
        presence: now,
        shared,
    };
    let heard = (raft.1, forward.1, backfill.1);
    Ok(context.child("group").spawn(move |_| async move {
        match member.run(heard, requests).await {
            Ok(()) => "the node does not take blocks any more".to_string(),
            Err(failed) => failed,
        }
    }))
}

/// The last entry that was judged, and what it led to.
async fn judged_so_far<E: Runtime>(disk: &mut Disk<E>, fed: u64, parent: Parent) -> Result<Tip, Failed> {
    let floor = disk.state.floor;
    let term = if fed == floor.index { floor.term } else { disk.read(fed).await?.term };
    let is_logged = fed > floor.index;
    Ok(Tip { parent, position: Position { index: fed, term }, is_logged, feeds: 0 })
}

/// Puts into this node's mempool what other members give it. What is refused here its own node refuses, too.
fn take_from_others<E: Runtime>(context: E, shared: &Arc<Shared>) -> mpsc::Sender<Forwarded> {
    let taking = shared.clone();
    let put = move |transactions, placing| drop(taking.put(transactions, placing, Source::Member));
    let mempool = shared.mempool.clone();
    forwarding::start(context, move || mempool.has_room_for_others(), put)
}

/// How the log of every founding member begins.
fn first_state(founding: &Charter) -> State {
    let voters = members_of(founding).into_iter().collect();
    State {
        term: 0,
        vote: 0,
        commit: 0,
        voters: Voters { voters, ..Voters::default() },
        voters_since: 0,
        floor: Floor { index: 0, term: 0, height: 0, block: founding.ledger() },
        follows: false,
        dropped: BTreeSet::new(),
    }
}

/// Up to which entry of the log the node's ledger goes.
async fn place_of<E: Runtime>(
    disk: &mut Disk<E>,
    last: Option<&BlockHeader>,
    own: u64,
) -> Result<u64, Failed> {
    let floor = disk.state.floor;
    let Some(last) = last else { return Ok(floor.index) };
    let (found, end) = (disk.first_where(|header| header.height >= last.height).await?, disk.end()?);
    for index in found..end {
        let entry = disk.read(index).await?;
        match Offer::from_bytes(&entry.data) {
            Ok(offer) if offer.block.header == *last => return Ok(index),
            Ok(offer) if offer.block.header.height > last.height => break,
            _ => {}
        }
    }
    let (voted, logged) = (disk.state.voters.voters.contains(&own), end > floor.index + 1);
    if found == end && logged && voted && floor.height < last.height && !disk.state.follows {
        return Err(format!(
            "the Raft log of this node ends before block {}, which its ledger has: the folder has been rolled back; restore \
             it, or give the organisation a new node key",
            last.height
        ));
    }
    Ok(floor.index)
}

impl<E, S> Member<E, S>
where
    E: Runtime,
    S: Sender<PublicKey = PublicKey>,
{
    async fn run<R: Receiver<PublicKey = PublicKey>>(
        mut self,
        (mut raft, mut forward, mut backfill): (R, R, R),
        mut requests: mpsc::Receiver<Request>,
    ) -> Result<(), Failed> {
        let shared = self.shared.clone();
        let mut tips = shared.tip.subscribe();
        loop {
            // Created before the look at what there is, so that nothing that happens after it is missed.
            let (arrival, certified) = (shared.mempool.arrival(), shared.members.certificates.changed());
            let acknowledged = shared.acknowledgement.notified();
            tips.borrow_and_update();
            self.know_members();
            self.work().await?;
            if self.feeds.is_closed() {
                return shared.failed.lock().take().map_or(Ok(()), Err);
            }
            let wake = self.lead_or_follow().await?;
            self.work().await?;
            let wake = wake.min(self.tick).saturating_sub(shared.now());
            select! {
                message = raft.recv() => match message {
                    Ok((peer, message)) => self.hear(&peer, message.as_ref())?,
                    Err(_) => return Ok(()),
                },
                message = forward.recv() => match message {
                    Ok((peer, message)) => self.hear_forwarded(&peer, message.as_ref()),
                    Err(_) => return Ok(()),
                },
                message = backfill.recv() => match message {
                    Ok((peer, message)) => self.hear_backfill(&peer, message.as_ref()).await?,
                    Err(_) => return Ok(()),
                },
                request = requests.recv() => match request {
                    Some(request) => self.answer(request).await?,
                    None => return Ok(()),
                },
                _ = arrival => self.context.sleep(ARRIVALS).await,
                _ = certified => {},
                _ = acknowledged => {},
                _ = tips.changed() => {},
                _ = self.context.sleep(wake) => {},
            }
            self.pass_time()?;
        }
    }

    fn pass_time(&mut self) -> Result<(), Failed> {
        let now = self.shared.now();
        // A machine that slept does not make up for it: the others have not slept.
        let behind = now.saturating_sub(self.tick) > TICK * 4;
        while self.tick <= now {
            self.group.tick()?;
            self.tick = if behind { now + TICK } else { self.tick + TICK };
        }
        if self.presence <= now {
            self.presence = now + PRESENCE;
            let here = Backfill::Here { height: self.shared.height() };
            self.backfill.send(Recipients::All, encode(&here), false);
        }
        Ok(())
    }

    /// Looks up who the members are, if a charter is new.
    fn know_members(&mut self) {
        let charters = self.shared.members.epochs.charters();
        self.tracked.track(&charters, self.shared.members.epochs.epoch_at(self.shared.height() + 1));
        if self.keys.0 == charters.digest() {
            return;
        }
        let organisations = charters.reigns().iter().flat_map(|reign| &reign.charter.organisations);
        let keys = organisations.filter_map(|organisation| committee::public_key(&organisation.node_key));
        self.keys = (charters.digest(), keys.map(|key| (id_of(&key), key)).collect());
    }

    /// Everything that the group wants done: what it needs to be durable, to be said, and to be judged.
    async fn work(&mut self) -> Result<(), Failed> {
        while let Some(mut ready) = self.group.ready() {
            self.say(ready.take_messages());
            if !ready.snapshot().is_empty() {
                let metadata = ready.snapshot().get_metadata();
                let begin = Position { index: metadata.index, term: metadata.term };
                let (voters, data) = (metadata.get_conf_state().clone(), ready.snapshot().data.clone());
                self.begin_behind(begin, (&voters).into(), &data).await?;
                self.group.restart(begin, voters);
            }
            // Who holds a change of members must not forget that the one before is committed: it could win an election among those
            // who voted then.
            let is_change = |entry: &Entry| entry.get_entry_type() != EntryType::EntryNormal;
            let changes = ready.entries().iter().chain(ready.committed_entries()).any(is_change);
            let entries = ready.take_entries();
            if !entries.is_empty() {
                self.disk.append(&entries).await?;
                self.group.window().append(&entries);
            }
            let mut unsaved = changes;
            if let Some(hard) = ready.hs().cloned() {
                let state = &mut self.disk.state;
                unsaved |= (state.term, state.vote) != (hard.term, hard.vote);
                unsaved |= hard.commit >= self.saved_commit + COMMITS_UNSAVED;
                (state.term, state.vote, state.commit) = (hard.term, hard.vote, hard.commit);
                self.shared.term.store(hard.term, Atomic::Relaxed);
                self.group.window().hard = hard;
            }
            if unsaved {
                self.save().await?;
            }
            self.say(ready.take_persisted_messages());
            let mut others = false;
            for entry in ready.take_committed_entries() {
                others |= self.group.apply(&entry);
            }
            let mut light = self.group.advance(ready);
            if let Some(commit) = light.commit_index() {
                self.disk.state.commit = commit;
                self.group.window().hard.commit = commit;
            }
            self.say(light.take_messages());
            for entry in light.take_committed_entries() {
                others |= self.group.apply(&entry);
            }
            self.group.applied();
            if others {
                self.note_voters().await?;
            }
        }
        self.forget().await?;
        self.feed().await
    }

    /// Forgets what the node's ledger has given up, where that is in this log and judged.
    async fn forget(&mut self) -> Result<(), Failed> {
        let newest = self.shared.acknowledged.load(Atomic::Acquire).saturating_sub(NEWEST_KEPT);
        let below = self.shared.forget_below.load(Atomic::Acquire).min(newest);
        if self.forgotten.is_some_and(|forgotten| below > forgotten) {
            self.forgotten = Some(below);
            let judged = self.shared.tip.borrow().position.index;
            if self.disk.forget(below, judged).await? {
                debug!(below, "the Raft log has forgotten the blocks below");
            }
        }
        Ok(())
    }

    pub(super) async fn save(&mut self) -> Result<(), Failed> {
        self.saved_commit = self.disk.state.commit;
        self.disk.save().await
    }

    /// Others vote now: made durable, so that the entry is not applied twice.
    async fn note_voters(&mut self) -> Result<(), Failed> {
        let (since, voters) = self.group.voters();
        let (since, voters) = (since, Voters::from(voters));
        info!(
            since,
            voters = voters.voters.len(),
            joint = !voters.outgoing.is_empty(),
            "members of the Raft group"
        );
        let state = &mut self.disk.state;
        (state.voters, state.voters_since, state.commit) = (voters, since, state.commit.max(since));
        self.save().await
    }

    /// The log begins behind a block that another member names.
    async fn begin_behind(&mut self, begin: Position, voters: Voters, data: &[u8]) -> Result<(), Failed> {
        let (height, block) = decode_exactly::<(u64, Digest)>(data)
            .map_err(|error| format!("the leader's snapshot names no block: {error}"))?;
        let floor = Floor { index: begin.index, term: begin.term, height, block };
        info!(
            height,
            entry = begin.index,
            "the Raft log begins behind this block; those before come from others"
        );
        self.disk.restart(floor, voters).await?;
        self.saved_commit = self.disk.state.commit;
        self.missing.floor = Some(floor);
        Ok(())
    }

    fn say(&mut self, messages: Vec<Message>) {
        for message in messages {
            let Some(key) = self.keys.1.get(&message.to).cloned() else { continue };
            if message.get_msg_type() == MessageType::MsgSnapshot {
                self.snapshots.insert(message.to, self.shared.now() + SNAPSHOT_AGAIN);
            }
            let urgent = message.get_msg_type() != MessageType::MsgAppend;
            self.raft.send(Recipients::One(key), encode(&Said::of(&message)), urgent);
        }
    }

    /// Gives committed entries to be judged, as many as there is room for.
    async fn feed(&mut self) -> Result<(), Failed> {
        let tip = *self.shared.tip.borrow();
        let dropped = std::mem::take(&mut *self.shared.dropped.lock());
        if !dropped.is_empty() {
            self.disk.state.dropped.extend(dropped);
            self.save().await?;
        }
        let skip = self.shared.skip.lock().take();
        if skip.is_some() {
            self.follow_others().await?;
        }
        if let Some(header) = skip
            && !self.give(Feed::Skip { header: header.clone() })
        {
            self.shared.skip.lock().get_or_insert(header);
        }
        if let Some(floor) = self.missing.floor {
            if tip.parent.height < floor.height {
                return Ok(());
            }
            if tip.parent.height == floor.height && tip.parent.digest != floor.block {
                return Err(format!(
                    "block {} of this node's ledger is {}, and the Raft group has {}: the ledger or the group is another \
                     network's",
                    floor.height, tip.parent.digest, floor.block
                ));
            }
            self.missing.floor = None;
            self.fed = floor.index;
        }
        // What others brought may still be on its way to the ledger.
        if self.disk.state.follows && self.group.is_voter() && tip.is_logged && tip.feeds == self.given {
            self.disk.state.follows = false;
            self.save().await?;
        }
        self.group.window().trim(tip.position.index);
        self.group.offer_point(tip.position, encode(&(tip.parent.height, tip.parent.digest)));
        let committed = self.group.committed();
        while self.fed < committed {
            let index = self.fed + 1;
            let entry = match self.group.window().get(index).cloned() {
                Some(entry) => entry,
                None => self.disk.read(index).await?,
            };
            let position = Position { index, term: entry.term };
            let is_block = entry.get_entry_type() == EntryType::EntryNormal;
            let bytes = if is_block { entry.data.clone() } else { Bytes::new() };
            if !self.give(Feed::Entry { position, bytes }) {
                return Ok(());
            }
            self.fed = index;
        }
        Ok(())
    }

    /// Has something judged, if there is room.
    pub(super) fn give(&mut self, feed: Feed) -> bool {
        let given = self.feeds.try_send(feed).is_ok();
        self.given += u64::from(given);
        given
    }

    /// Whether everything that was given is judged.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.tip.borrow().feeds == self.given
    }

    /// What there is to do beside the group's work; gives when to look again.
    async fn lead_or_follow(&mut self) -> Result<Duration, Failed> {
        let now = self.shared.now();
        let again: Vec<u64> =
            self.snapshots.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for id in again {
            self.snapshots.remove(&id);
            self.group.send_snapshot_again(id);
        }
        let asks = self.ask_for_blocks().await?;
        let does = match self.group.is_leader() {
            true => self.lead().await,
            false => {
                self.reign = Reign::default();
                self.forward()
            }
        };
        Ok(asks.min(does))
    }

    fn hear(&mut self, peer: &PublicKey, message: &[u8]) -> Result<(), Failed> {
        let Some(member) = self.shared.members.epochs.member(peer) else { return Ok(()) };
        self.shared.hear(member);
        // Whoever has left says nothing any more.
        let is_member = self.shared.members.epochs.key_of(member as u16).as_ref() == Some(peer);
        if !is_member && !self.group.counts(id_of(peer)) {
            return Ok(());
        }
        let message = decode_exactly::<Said>(message).ok().and_then(Said::into_message);
        match message.filter(|message| message.from == id_of(peer) && message.to == self.own) {
            Some(message) => self.group.hear(message),
            None => {
                debug!(member, "ignored what is no message of the Raft group from this member");
                Ok(())
            }
        }
    }
}
