//! Transactions that a node gives to whoever leads next: their clients need not wait for this node's turn.
//!
//! They stay in this node's mempool until a block has them, so nothing is lost with the one that was to lead.

use crate::computation::off_the_reactor;
use crate::mempool::{Placing, Waiting};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use commonware_runtime::Spawner;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Messages with transactions that wait for the mempool.
const TAKEN: usize = 1_024;

/// Transactions for another node's mempool. Those of a group stand in one block.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Forwarded {
    groups: Vec<Group>,
}

/// Transactions that a node's clients have submitted, in their order.
#[derive(BorshSerialize, BorshDeserialize, Clone, PartialEq, Eq, Debug)]
struct Group {
    together: bool,
    transactions: Vec<Vec<u8>>,
}

impl Forwarded {
    pub(crate) fn of(waiting: Vec<Waiting>) -> Forwarded {
        let group = |waiting: Waiting| Group {
            together: waiting.group.is_some(),
            transactions: waiting.transactions.iter().map(|bytes| bytes.to_vec()).collect(),
        };
        Forwarded { groups: waiting.into_iter().map(group).collect() }
    }

    /// How many there are.
    pub(crate) fn transactions(&self) -> usize {
        self.groups.iter().map(|group| group.transactions.len()).sum()
    }
}

/// Where transactions of others go: into this node's mempool, which verifies their signatures, one message after the other.
/// Those that find no room are lost: their own node keeps them. `put` is called where it may hold its thread.
pub(crate) fn start<E: Spawner>(
    context: E,
    has_room: impl Fn() -> bool + Send + 'static,
    put: impl Fn(Vec<Bytes>, Placing) + Send + Sync + 'static,
) -> mpsc::Sender<Forwarded> {
    let (taken, mut to_take) = mpsc::channel::<Forwarded>(TAKEN);
    let put = Arc::new(put);
    context.spawn(move |context| async move {
        while let Some(forwarded) = to_take.recv().await {
            let mut groups = forwarded.groups;
            // Signatures of many are verified faster.
            while let Ok(more) = to_take.try_recv() {
                groups.extend(more.groups);
            }
            if !has_room() {
                continue;
            }
            let put = put.clone();
            let take = move || {
                let (together, alone): (Vec<Group>, Vec<Group>) =
                    groups.into_iter().partition(|group| group.together);
                let bytes = |transactions: Vec<Vec<u8>>| transactions.into_iter().map(Bytes::from);
                let alone: Vec<Bytes> =
                    alone.into_iter().flat_map(|group| bytes(group.transactions)).collect();
                if !alone.is_empty() {
                    put(alone, Placing::Anywhere);
                }
                for group in together {
                    put(bytes(group.transactions).collect(), Placing::InOneBlock);
                }
            };
            off_the_reactor(&context, take).await;
        }
    });
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use commonware_runtime::{Clock as _, Runner as _, Supervisor as _, deterministic};
    use parking_lot::Mutex;
    use std::time::Duration;
    use types::{decode_exactly, encode};

    #[test]
    fn what_is_forwarded_comes_in_its_order_and_its_groups() {
        let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
        let waiting = vec![
            Waiting { group: None, transactions: vec![bytes("one"), bytes("two")] },
            Waiting { group: Some(7), transactions: vec![bytes("three"), bytes("four")] },
        ];
        let sent = encode(&Forwarded::of(waiting));
        for length in 0..sent.len() {
            assert!(decode_exactly::<Forwarded>(&sent[..length]).is_err(), "{length}");
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let put = heard.clone();
        deterministic::Runner::default().start(|context| async move {
            let put = move |transactions: Vec<Bytes>, placing| put.lock().push((transactions, placing));
            let taken = start(context.child("taking"), || true, put);
            taken.try_send(decode_exactly(&sent).expect("what was sent")).expect("room");
            context.sleep(Duration::from_millis(100)).await;
        });
        let expected = vec![
            (vec![bytes("one"), bytes("two")], Placing::Anywhere),
            (vec![bytes("three"), bytes("four")], Placing::InOneBlock),
        ];
        assert_eq!(*heard.lock(), expected);
    }
}
