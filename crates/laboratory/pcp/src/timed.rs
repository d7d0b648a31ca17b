//! One transaction in time: blocks come to each shard at its own moment, and messages take a while.

use crate::case::Case;
use crate::message::{Message, ShardId};
use crate::rules::Rules;
use crate::shard::Shard;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What a transaction took.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Taken {
    /// By shard, microseconds from the block to the decision.
    pub(crate) micros: BTreeMap<ShardId, u64>,
    /// The most rounds that a shard took.
    pub(crate) rounds: u32,
    /// Messages between shards.
    pub(crate) messages: usize,
}

/// Events by moment; of two at one moment, the one that was foreseen first.
struct Events<E> {
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<E>>,
}

impl<E> Events<E> {
    fn new() -> Events<E> {
        Events { queue: BinaryHeap::new(), events: Vec::new() }
    }

    fn at(&mut self, moment: u64, event: E) {
        self.queue.push(Reverse((moment, self.events.len())));
        self.events.push(Some(event));
    }

    fn next(&mut self) -> Option<(u64, E)> {
        let Reverse((moment, number)) = self.queue.pop()?;
        self.events[number].take().map(|event| (moment, event))
    }
}

enum Event {
    Block(ShardId),
    Message(Message),
}

/// pCP, for the first transaction of a case. `arrives`: microseconds at which each shard gets the block; `delay`: those of a message.
pub(crate) fn pcp(case: &Case, arrives: &[u64], delay: &mut dyn FnMut() -> u64) -> Taken {
    let rules = Rules::CORRECTED;
    let mut shards: Vec<Shard> = (0..case.shards).map(|shard| Shard::new(ShardId(shard), rules)).collect();
    let mut events = Events::new();
    arrives.iter().zip(0..).for_each(|(moment, shard)| events.at(*moment, Event::Block(ShardId(shard))));
    let mut taken = Taken::default();
    while let Some((now, event)) = events.next() {
        let id = match &event {
            Event::Block(shard) => *shard,
            Event::Message(Message::Ask(request)) => request.to,
            Event::Message(Message::Say(answer)) => answer.to,
        };
        let shard = &mut shards[id.0 as usize];
        match &event {
            Event::Block(_) => {
                shard.receive(case.transactions.first().and_then(|first| first.own_part(0, id)));
                shard.validate(0);
            }
            Event::Message(message) => shard.hear(message),
        }
        if shard.decision(0).is_some() {
            taken.micros.entry(id).or_insert(now - arrives[id.0 as usize]);
        }
        for message in shard.take_sent() {
            taken.messages += 1;
            events.at(now + delay(), Event::Message(message));
        }
    }
    let rounds = shards.iter().filter_map(|shard| shard.rounds(0));
    taken.rounds = rounds.map(|(rounds, _)| rounds).max().unwrap_or(0);
    taken
}

/// Two-phase commit: everybody tells shard 0 what it finds, which tells everybody what that comes to.
pub(crate) fn two_phase(arrives: &[u64], delay: &mut dyn FnMut() -> u64) -> Taken {
    let others = arrives.iter().zip(0..).skip(1);
    let last = others.clone().map(|(moment, _)| moment + delay()).chain(arrives.first().copied()).max();
    let decided = last.unwrap_or(0);
    let mut taken = Taken { messages: 2 * others.clone().count(), rounds: 1, ..Taken::default() };
    if let Some(first) = arrives.first() {
        taken.micros.insert(ShardId(0), decided - first);
    }
    for (moment, shard) in others {
        taken.micros.insert(ShardId(shard), decided + delay() - moment);
    }
    taken
}
