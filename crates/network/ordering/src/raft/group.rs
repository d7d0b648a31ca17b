//! The Raft group as this member sees it: the state machine of the `raft` crate, with what it must not be told kept away
//! from it. No clock, no network, no disk: [`super::member`] brings all three.

use super::config::raft_config;
use super::disk::Failed;
use super::window::{Point, Position, Window};
use borsh::{BorshDeserialize, BorshSerialize};
use raft::eraftpb::{
    ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState, Entry, EntryType, Message, MessageType,
};
use raft::{LightReady, RawNode, Ready, SnapshotStatus, StateRole};
use slog::{Drain, Logger, OwnedKVList, Record, o};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use types::{decode_exactly, encode};

/// Members do not get through so many elections between two messages.
const TERMS_AHEAD_MAX: u64 = 1_000_000;
/// Longer changes of who votes are none.
const CHANGE_BYTES_MAX: usize = 16 * 1024;

/// Who comes in and who leaves: the context of an entry that changes who votes.
#[derive(BorshSerialize, BorshDeserialize, Default, Clone, PartialEq, Eq, Debug)]
struct Change {
    comes: Vec<u64>,
    leaves: Vec<u64>,
}

impl Change {
    fn to_raft(&self) -> ConfChangeV2 {
        let single = |kind, id: &u64| {
            let mut single = ConfChangeSingle::default();
            single.set_change_type(kind);
            single.node_id = *id;
            single
        };
        let comes = self.comes.iter().map(|id| single(ConfChangeType::AddNode, id));
        let leaves = self.leaves.iter().map(|id| single(ConfChangeType::RemoveNode, id));
        let mut change = ConfChangeV2::default();
        change.set_changes(comes.chain(leaves).collect::<Vec<_>>().into());
        change
    }
}

/// One member of the group.
pub(super) struct Group {
    node: RawNode<Window>,
    /// Who votes, since which entry: the last changes that this node has seen.
    voters: Vec<(u64, ConfState)>,
    /// To whom this node has handed over, or tried to, last.
    handed_to: u64,
}

impl Group {
    /// Goes on where `window` ends. `place`: the member's among all, so that members do not stand for election at once.
    pub(super) fn new(id: u64, place: u16, window: Window, voters_since: u64) -> Result<Group, Failed> {
        let voters = vec![(voters_since, window.voters.clone())];
        let config = raft_config(id, place, window.base().index);
        let node = RawNode::new(&config, window, &Logger::root(ToTracing, o!()));
        let node = node.map_err(|error| format!("the Raft group cannot start from its log: {error}"))?;
        Ok(Group { node, voters, handed_to: 0 })
    }

    pub(super) fn tick(&mut self) -> Result<(), Failed> {
        let ticked = std::panic::catch_unwind(AssertUnwindSafe(|| self.node.tick()));
        ticked.map(|_| ()).map_err(|_| "the Raft group cannot go on from its log".to_string())
    }

    /// Hears another member. What contradicts this node's log ends the node: either its folder was rolled back, or the other
    /// one's was.
    pub(super) fn hear(&mut self, mut message: Message) -> Result<(), Failed> {
        let (from, last) = (message.from, self.last_index());
        if message.term > self.term().saturating_add(TERMS_AHEAD_MAX) {
            tracing::warn!(
                from,
                term = message.term,
                "ignored a member's message of a term that cannot have come"
            );
            return Ok(());
        }
        if message.get_msg_type() == MessageType::MsgHeartbeat && message.commit > last {
            // Who leads is believed at its second word.
            if message.term != self.term() || self.leader() != Some(from) {
                message.commit = last;
            }
        }
        if message.get_msg_type() == MessageType::MsgHeartbeat && message.commit > last {
            return Err(format!(
                "this node's Raft log ends at entry {last}, and the leader knows that it had entries up to {}: the folder \
                 has been rolled back; restore it, or give the organisation a new node key",
                message.commit
            ));
        }
        let heard = std::panic::catch_unwind(AssertUnwindSafe(|| self.node.step(message)));
        match heard {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::debug!(from, %error, "ignored a member's message");
                Ok(())
            }
            Err(_) => Err(format!(
                "what member {from:x} says contradicts this node's Raft log (committed up to entry {}): one of the two \
                 folders has been rolled back, or belongs to another network",
                self.committed()
            )),
        }
    }

    /// Puts an entry behind the last one; gives its index. Only a leader can.
    pub(super) fn offer(&mut self, bytes: Vec<u8>) -> Option<Position> {
        if !self.is_leader() {
            return None;
        }
        match self.node.propose(Vec::new(), bytes) {
            Ok(()) => Some(Position { index: self.last_index(), term: self.term() }),
            Err(error) => {
                tracing::debug!(%error, "an entry could not be offered");
                None
            }
        }
    }

    /// Has these members vote, if others do now; a leader's business. A leader that is none of them hands over first.
    pub(super) fn have_vote(&mut self, wanted: &BTreeSet<u64>) {
        if !self.is_leader() || self.node.raft.has_pending_conf() {
            return;
        }
        let now = self.node.raft.prs().conf().to_conf_state();
        let voting: BTreeSet<u64> = now.get_voters().iter().copied().collect();
        if !now.get_voters_outgoing().is_empty() || wanted.is_empty() {
            return;
        }
        if !wanted.contains(&self.node.raft.id) {
            let fit =
                |(id, progress): &(&u64, &raft::Progress)| wanted.contains(*id) && progress.recent_active;
            let members = self.node.raft.prs().iter().filter(fit);
            // Another one than last time, which may be gone.
            let rank =
                |(id, progress): &(&u64, &raft::Progress)| (**id != self.handed_to, progress.matched, **id);
            if let Some(next) = members.max_by_key(rank).map(|(id, _)| *id)
                && self.node.raft.lead_transferee.is_none()
            {
                self.handed_to = next;
                self.node.transfer_leader(next);
            }
            return;
        }
        if voting == *wanted {
            return;
        }
        let comes = wanted.difference(&voting).copied().collect();
        let leaves = voting.difference(wanted).copied().filter(|id| *id != self.node.raft.id).collect();
        let change = Change { comes, leaves };
        if change == Change::default() {
            return;
        }
        if let Err(error) = self.node.propose_conf_change(encode(&change), change.to_raft()) {
            tracing::debug!(%error, "a change of members could not be offered");
        }
    }

    /// Takes note of a committed entry; says whether others vote now.
    pub(super) fn apply(&mut self, entry: &Entry) -> bool {
        let since = self.voters.last().map_or(0, |(since, _)| *since);
        if entry.get_entry_type() == EntryType::EntryNormal || entry.index <= since {
            return false;
        }
        let known = Some(&entry.context).filter(|context| context.len() <= CHANGE_BYTES_MAX);
        let change = known.and_then(|context| decode_exactly::<Change>(context).ok()).unwrap_or_default();
        let applied =
            std::panic::catch_unwind(AssertUnwindSafe(|| self.node.apply_conf_change(&change.to_raft())));
        match applied {
            Ok(Ok(voters)) => {
                self.voters.push((entry.index, voters.clone()));
                self.window().voters = voters.clone();
                let own = self.node.raft.id;
                if self.is_leader()
                    && !voters.get_voters().contains(&own)
                    && !voters.get_voters_outgoing().contains(&own)
                {
                    // The crate would let it lead, and offer nothing.
                    let term = self.term();
                    self.node.raft.become_follower(term, 0);
                }
                // Members that need more than the last few get a newer point.
                let old = self.voters.len().saturating_sub(8);
                self.voters.drain(..old);
                true
            }
            Ok(Err(error)) => {
                tracing::warn!(index = entry.index, %error, "a change of members is none");
                false
            }
            Err(_) => false,
        }
    }

    /// Who votes, and since which entry.
    pub(super) fn voters(&self) -> (u64, &ConfState) {
        let (since, voters) = self.voters.last().expect("there is one from the beginning");
        (*since, voters)
    }

    /// Whether this node is one of those that vote.
    pub(super) fn is_voter(&self) -> bool {
        let (_, voters) = self.voters();
        voters.get_voters().contains(&self.node.raft.id)
    }

    /// Whether a member votes, or both had to agree with it.
    pub(super) fn counts(&self, id: u64) -> bool {
        let (_, voters) = self.voters();
        voters.get_voters().contains(&id) || voters.get_voters_outgoing().contains(&id)
    }

    /// The log begins anew behind a position: another member's snapshot is durable.
    pub(super) fn restart(&mut self, base: Position, voters: ConfState) {
        self.voters = vec![(base.index, voters.clone())];
        self.window().restart(base, voters);
    }

    /// Offers who lacks older entries to begin behind this block, unless it is not known who voted there.
    pub(super) fn offer_point(&mut self, position: Position, data: Vec<u8>) {
        let voters = self.voters.iter().rev().find(|(since, _)| *since <= position.index);
        let voters = voters.map(|(_, voters)| voters.clone());
        if let Some(voters) = voters
            && position.index > 0
        {
            self.window().point = Some(Point { position, voters, data });
        }
    }

    /// Nobody knows whether a snapshot has arrived; who has not got it is sent another.
    pub(super) fn send_snapshot_again(&mut self, to: u64) {
        self.node.report_snapshot(to, SnapshotStatus::Failure);
    }

    pub(super) fn ready(&mut self) -> Option<Ready> {
        self.node.has_ready().then(|| self.node.ready())
    }

    pub(super) fn advance(&mut self, ready: Ready) -> LightReady {
        self.node.advance(ready)
    }

    pub(super) fn applied(&mut self) {
        self.node.advance_apply();
    }

    pub(super) fn window(&mut self) -> &mut Window {
        self.node.mut_store()
    }

    pub(super) fn is_leader(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    /// The leader, if one is known.
    pub(super) fn leader(&self) -> Option<u64> {
        Some(self.node.raft.leader_id).filter(|id| *id != 0)
    }

    pub(super) fn term(&self) -> u64 {
        self.node.raft.term
    }

    pub(super) fn committed(&self) -> u64 {
        self.node.raft.raft_log.committed
    }

    pub(super) fn last_index(&self) -> u64 {
        self.node.raft.raft_log.last_index()
    }
}

/// What the crate logs, where ours stands.
struct ToTracing;

impl Drain for ToTracing {
    type Ok = ();
    type Err = slog::Never;

    fn log(&self, record: &Record<'_>, _: &OwnedKVList) -> Result<(), slog::Never> {
        if record.level().is_at_least(slog::Level::Error) {
            tracing::warn!(target: "raft", "{}", record.msg());
        } else {
            tracing::trace!(target: "raft", "{}", record.msg());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raft::eraftpb::HardState;

    /// Members whose messages all arrive at once, but for those of whom is away.
    struct Members {
        groups: Vec<Group>,
        away: BTreeSet<u64>,
    }

    impl Members {
        fn new(voters: u64, all: u64) -> Members {
            let group = |id| {
                let state = ConfState { voters: (1..=voters).collect(), ..ConfState::default() };
                let window = Window::new(HardState::default(), state, Position::default());
                Group::new(id, id as u16, window, 0).expect("an empty log")
            };
            Members { groups: (1..=all).map(group).collect(), away: BTreeSet::new() }
        }

        fn group(&mut self, id: u64) -> &mut Group {
            &mut self.groups[id as usize - 1]
        }

        /// Everything that wants to be done, until nothing does.
        fn settle(&mut self) {
            loop {
                let mut said = Vec::new();
                for group in self.groups.iter_mut().filter(|group| !self.away.contains(&group.node.raft.id)) {
                    said.extend(work(group));
                }
                if said.is_empty() {
                    return;
                }
                for message in said {
                    let to = message.to;
                    if !self.away.contains(&to) {
                        self.group(to).hear(message).expect("nobody lies");
                    }
                }
            }
        }

        fn pass(&mut self, ticks: usize) {
            for _ in 0..ticks {
                for group in &mut self.groups {
                    group.tick().expect("a good log");
                }
                self.settle();
            }
        }

        fn leader(&self) -> Option<u64> {
            let here = self.groups.iter().filter(|group| !self.away.contains(&group.node.raft.id));
            here.filter(|group| group.is_leader())
                .max_by_key(|group| group.term())
                .map(|group| group.node.raft.id)
        }
    }

    fn work(group: &mut Group) -> Vec<Message> {
        let mut said = Vec::new();
        while let Some(mut ready) = group.ready() {
            said.extend(ready.take_messages());
            let entries = ready.take_entries();
            group.window().append(&entries);
            if let Some(hard) = ready.hs().cloned() {
                group.window().hard = hard;
            }
            said.extend(ready.take_persisted_messages());
            for entry in ready.take_committed_entries() {
                group.apply(&entry);
            }
            let mut light = group.advance(ready);
            said.extend(light.take_messages());
            for entry in light.take_committed_entries() {
                group.apply(&entry);
            }
            group.applied();
        }
        said
    }

    #[test]
    fn who_is_to_vote_votes_and_who_has_left_leads_nobody() {
        let mut members = Members::new(4, 5);
        members.pass(60);
        assert_eq!(members.leader(), Some(1), "the first stands for election first");
        members.group(1).have_vote(&(1..=5).collect());
        members.settle();
        assert!((1..=5).all(|id| members.groups[0].counts(id)) && members.group(5).is_voter());
        // A leader that is to leave hands over; who leads then lets it go.
        members.group(1).have_vote(&(2..=5).collect());
        members.settle();
        let next = members.leader().expect("somebody leads");
        assert_ne!(next, 1);
        members.group(next).have_vote(&(2..=5).collect());
        members.settle();
        assert!(!members.group(next).counts(1));
    }

    #[test]
    fn a_leader_that_takes_part_in_its_own_removal_leads_no_more() {
        let mut members = Members::new(4, 4);
        members.pass(60);
        // As if another leader had offered it, and had died before it was committed.
        let change = Change { comes: Vec::new(), leaves: vec![1] };
        members.group(1).node.propose_conf_change(encode(&change), change.to_raft()).expect("it leads");
        members.settle();
        assert!(!members.group(1).is_leader());
        members.pass(60);
        let next = members.leader().expect("the others find another leader");
        assert!(next != 1 && members.group(next).offer(vec![7]).is_some());
    }

    #[test]
    fn a_leader_hands_over_to_another_where_the_first_is_gone() {
        let mut members = Members::new(4, 4);
        members.pass(60);
        let wanted: BTreeSet<u64> = (2..=4).collect();
        // The one that it would choose hears nothing any more.
        members.away.insert(4);
        for _ in 0..3 {
            members.group(1).have_vote(&wanted);
            members.pass(25);
        }
        assert!(members.leader().is_some_and(|leader| [2, 3].contains(&leader)), "{:?}", members.leader());
    }

    #[test]
    fn terms_that_cannot_have_come_are_ignored_and_a_log_that_was_rolled_back_is_found() {
        let mut members = Members::new(4, 4);
        members.pass(60);
        let term = members.group(2).term();
        let heartbeat = |term, commit| {
            let mut message = Message::default();
            message.set_msg_type(MessageType::MsgHeartbeat);
            (message.from, message.to, message.term, message.commit) = (1, 2, term, commit);
            message
        };
        members.group(2).hear(heartbeat(u64::MAX, 0)).expect("it is ignored");
        assert_eq!(members.group(2).term(), term);
        // Who is no leader that this member knows is not believed at once.
        members.group(2).hear(heartbeat(term + 1, 1_000)).expect("the first word");
        let error = members.group(2).hear(heartbeat(term + 1, 1_000)).expect_err("the second");
        assert!(error.contains("rolled back"), "{error}");
    }

    #[test]
    fn a_change_that_does_not_decode_changes_nobody() {
        let mut members = Members::new(4, 4);
        members.pass(60);
        let change = Change { comes: vec![9], leaves: vec![2] };
        members.group(1).node.propose_conf_change(vec![0xff; 5], change.to_raft()).expect("it leads");
        members.settle();
        assert!((1..=4).all(|id| members.groups[2].counts(id)), "{:?}", members.groups[2].voters());
    }
}
