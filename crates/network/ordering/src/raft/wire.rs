//! What members say to one another: the Raft crate's messages, and blocks for who is behind.
//!
//! Messages have an encoding of ours. That of the Raft crate reads what strangers send by recursion without a bound.

use borsh::{BorshDeserialize, BorshSerialize};
use raft::eraftpb::{ConfState, Entry, EntryType, Message, MessageType, Snapshot, SnapshotMetadata};

/// A message of the Raft crate.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct Said {
    kind: u8,
    to: u64,
    from: u64,
    term: u64,
    log_term: u64,
    index: u64,
    entries: Vec<WireEntry>,
    commit: u64,
    commit_term: u64,
    snapshot: Option<WireSnapshot>,
    request_snapshot: u64,
    reject: bool,
    reject_hint: u64,
    context: Vec<u8>,
    priority: i64,
}

/// An entry of the log.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct WireEntry {
    kind: u8,
    term: u64,
    index: u64,
    data: Vec<u8>,
    context: Vec<u8>,
}

/// Where a member's log begins that does not get the entries before.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
struct WireSnapshot {
    index: u64,
    term: u64,
    voters: Voters,
    data: Vec<u8>,
}

/// Who votes: as the Raft crate's `ConfState`, of which learners are not used.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Voters {
    pub voters: Vec<u64>,
    /// Those before, while both have to agree.
    pub outgoing: Vec<u64>,
    pub auto_leave: bool,
}

/// Asks for final blocks, or brings some, or says that one is there.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
pub(super) enum Backfill {
    /// The sender is there, and has blocks up to this height.
    Here { height: u64 },
    /// Blocks from this height on.
    Wanted { from: u64 },
    /// What stands in the sender's log from this height on, as it was offered.
    Blocks { from: u64, offered: Vec<Vec<u8>> },
}

impl From<&ConfState> for Voters {
    fn from(state: &ConfState) -> Voters {
        Voters {
            voters: state.get_voters().to_vec(),
            outgoing: state.get_voters_outgoing().to_vec(),
            auto_leave: state.auto_leave,
        }
    }
}

impl Voters {
    pub(super) fn to_state(&self) -> ConfState {
        let mut state = ConfState::default();
        state.set_voters(self.voters.clone());
        state.set_voters_outgoing(self.outgoing.clone());
        state.auto_leave = self.auto_leave;
        state
    }
}

impl WireEntry {
    pub(super) fn of(entry: &Entry) -> WireEntry {
        WireEntry {
            kind: entry.get_entry_type() as u8,
            term: entry.term,
            index: entry.index,
            data: entry.data.to_vec(),
            context: entry.context.to_vec(),
        }
    }

    pub(super) fn into_entry(self) -> Option<Entry> {
        let mut entry = Entry::default();
        entry.set_entry_type(match self.kind {
            0 => EntryType::EntryNormal,
            1 => EntryType::EntryConfChange,
            2 => EntryType::EntryConfChangeV2,
            _ => return None,
        });
        (entry.term, entry.index) = (self.term, self.index);
        (entry.data, entry.context) = (self.data.into(), self.context.into());
        Some(entry)
    }
}

impl Said {
    pub(super) fn of(message: &Message) -> Said {
        let snapshot = message.snapshot.as_ref().map(|snapshot| {
            let metadata = snapshot.get_metadata();
            WireSnapshot {
                index: metadata.index,
                term: metadata.term,
                voters: metadata.get_conf_state().into(),
                data: snapshot.data.to_vec(),
            }
        });
        Said {
            kind: message.get_msg_type() as u8,
            to: message.to,
            from: message.from,
            term: message.term,
            log_term: message.log_term,
            index: message.index,
            entries: message.entries.iter().map(WireEntry::of).collect(),
            commit: message.commit,
            commit_term: message.commit_term,
            snapshot,
            request_snapshot: message.request_snapshot,
            reject: message.reject,
            reject_hint: message.reject_hint,
            context: message.context.to_vec(),
            priority: message.priority,
        }
    }

    /// The message, if its kinds are ones that there are and its entries follow one another.
    pub(super) fn into_message(self) -> Option<Message> {
        let kind = KINDS.iter().copied().find(|kind| *kind as u8 == self.kind)?;
        let mut message = Message::default();
        message.set_msg_type(kind);
        (message.to, message.from, message.term) = (self.to, self.from, self.term);
        (message.log_term, message.index) = (self.log_term, self.index);
        let mut next = self.index;
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in self.entries {
            next = next.checked_add(1)?;
            if kind == MessageType::MsgAppend && entry.index != next {
                return None;
            }
            entries.push(entry.into_entry()?);
        }
        message.set_entries(entries.into());
        (message.commit, message.commit_term) = (self.commit, self.commit_term);
        if let Some(WireSnapshot { index, term, voters, data }) = self.snapshot {
            let mut metadata = SnapshotMetadata::default();
            metadata.set_conf_state(voters.to_state());
            (metadata.index, metadata.term) = (index, term);
            let mut snapshot = Snapshot::default();
            snapshot.set_metadata(metadata);
            snapshot.data = data.into();
            message.set_snapshot(snapshot);
        }
        message.request_snapshot = self.request_snapshot;
        (message.reject, message.reject_hint) = (self.reject, self.reject_hint);
        message.context = self.context.into();
        message.priority = self.priority;
        Some(message)
    }
}

/// What members send one another; the crate's other kinds are for itself.
const KINDS: [MessageType; 10] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgTimeoutNow,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
];

#[cfg(test)]
mod tests {
    use super::*;
    use types::{decode_exactly, encode};

    fn message() -> Message {
        let entry = |kind, index: u64| {
            let mut entry = Entry::default();
            entry.set_entry_type(kind);
            (entry.term, entry.index) = (3, index);
            entry.data = format!("entry {index}").into_bytes().into();
            entry
        };
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgAppend);
        (message.to, message.from, message.term, message.log_term, message.index) = (1, 2, 3, 3, 6);
        let entries = vec![entry(EntryType::EntryNormal, 7), entry(EntryType::EntryConfChangeV2, 8)];
        message.set_entries(entries.into());
        (message.commit, message.commit_term, message.reject_hint) = (5, 3, 9);
        let mut snapshot = Snapshot::default();
        let mut metadata = SnapshotMetadata::default();
        (metadata.index, metadata.term) = (4, 2);
        let voters = Voters { voters: vec![1, 2], outgoing: vec![1, 3], auto_leave: true };
        metadata.set_conf_state(voters.to_state());
        snapshot.set_metadata(metadata);
        message.set_snapshot(snapshot);
        message
    }

    #[test]
    fn messages_round_trip_and_nothing_else_decodes() {
        let bytes = encode(&Said::of(&message()));
        let said: Said = decode_exactly(&bytes).expect("what was encoded");
        assert_eq!(said.into_message(), Some(message()));
        for length in 0..bytes.len() {
            assert!(decode_exactly::<Said>(&bytes[..length]).is_err(), "{length}");
        }
        // Whatever the bytes, reading ends with a message or without one.
        for at in 0..bytes.len() {
            for bit in [1, 0x80] {
                let mut flipped = bytes.clone();
                flipped[at] ^= bit;
                if let Ok(said) = decode_exactly::<Said>(&flipped) {
                    drop(said.into_message());
                }
            }
        }
    }

    #[test]
    fn kinds_for_the_crate_itself_and_entries_with_gaps_are_refused() {
        let mut hup = message();
        hup.set_msg_type(MessageType::MsgHup);
        assert_eq!(Said::of(&hup).into_message(), None);
        let mut gap = message();
        gap.mut_entries()[1].index = 9;
        assert_eq!(Said::of(&gap).into_message(), None);
    }
}
