//! A shard: it validates its parts in the order of the ledger, asks for the others' beliefs, and answers (Algorithms 1 and 2).

use crate::message::{Answer, Message, Number, Request, ShardId};
use crate::part::{OwnPart, Part};
use crate::rules::{Absent, Rules};
use std::collections::{BTreeMap, BTreeSet};

/// Requests that a shard keeps until it can answer them: those beyond must be repeated.
pub const WAITING_REQUESTS_MAX: usize = 65_536;

/// One shard. It is a process that does what is told to it, and puts messages into a box.
#[derive(Clone, Debug)]
pub struct Shard {
    id: ShardId,
    rules: Rules,
    /// Transactions that have come.
    received: Number,
    parts: BTreeMap<Number, Part>,
    undecided: BTreeSet<Number>,
    /// Requests that cannot be answered yet: the newest of each caller.
    waiting: BTreeMap<(Number, ShardId), Request>,
    versions: BTreeMap<u64, u64>,
    sent: Vec<Message>,
}

impl Shard {
    /// A shard with nothing in it.
    pub fn new(id: ShardId, rules: Rules) -> Shard {
        Shard {
            id,
            rules,
            received: 0,
            parts: BTreeMap::new(),
            undecided: BTreeSet::new(),
            waiting: BTreeMap::new(),
            versions: BTreeMap::new(),
            sent: Vec::new(),
        }
    }

    /// Transactions that have come.
    pub fn received(&self) -> Number {
        self.received
    }

    /// The version of a key.
    pub fn version(&self, key: u64) -> u64 {
        self.versions.get(&key).copied().unwrap_or(0)
    }

    /// The next transaction of the ledger; `part`: what of it the shard knows.
    pub fn receive(&mut self, part: Option<OwnPart>) {
        let transaction = self.received;
        self.received += 1;
        if let Some(part) = part {
            self.parts.insert(transaction, Part::new(part));
            self.undecided.insert(transaction);
        }
        self.answer_waiting(transaction);
    }

    /// Transactions whose own part can be validated: nothing before them that they meet is undecided.
    pub fn ready(&self) -> impl Iterator<Item = Number> {
        let is_ready = |number: &Number| {
            let Some(part) = self.parts.get(number).filter(|part| part.is_waiting()) else { return false };
            let mut before = self.undecided.range(..*number).filter_map(|before| self.parts.get(before));
            !before.any(|before| before.own.meets(&part.own))
        };
        self.undecided.iter().copied().filter(is_ready)
    }

    /// Validates the own part of a transaction, and asks those that it depends on.
    pub fn validate(&mut self, transaction: Number) {
        let Some(part) = self.parts.get_mut(&transaction).filter(|part| part.is_waiting()) else { return };
        let current = |(key, version): (&u64, &u64)| self.versions.get(key).copied().unwrap_or(0) == *version;
        let is_valid = part.own.is_endorsed && part.own.reads.iter().all(current);
        part.begin(self.id, is_valid, &self.rules);
        self.advanced(transaction);
    }

    /// Takes a message.
    pub fn hear(&mut self, message: &Message) {
        match message {
            Message::Ask(request) => self.asked(*request),
            Message::Say(answer) => {
                let part = self.parts.get_mut(&answer.transaction);
                if part.is_some_and(|part| part.hear(answer, &self.rules)) {
                    self.advanced(answer.transaction);
                }
            }
        }
    }

    /// What it has said since the last call.
    pub fn take_sent(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.sent)
    }

    /// What it waits for: to be asked again.
    pub fn open_requests(&self) -> impl Iterator<Item = Request> {
        self.undecided.iter().filter_map(|number| self.parts.get(number)?.request(self.id, *number))
    }

    /// Whether its part of a transaction commits; `None`: it has none, or is not decided.
    pub fn decision(&self, transaction: Number) -> Option<bool> {
        self.parts.get(&transaction)?.decision()
    }

    /// Rounds of a transaction so far, and how many there may be.
    pub fn rounds(&self, transaction: Number) -> Option<(u32, u32)> {
        self.parts.get(&transaction).map(|part| (part.rounds, part.limit()))
    }

    /// It crashes and starts again: requests are forgotten, and each part goes on in the round that it has stored.
    pub fn restart(&mut self) {
        self.waiting.clear();
        self.sent.clear();
        for transaction in self.undecided.clone() {
            if let Some(part) = self.parts.get_mut(&transaction) {
                part.restart();
            }
            self.advanced(transaction);
        }
    }

    fn asked(&mut self, request: Request) {
        let place = (request.transaction, request.from);
        if self.waiting.len() >= WAITING_REQUESTS_MAX && !self.waiting.contains_key(&place) {
            return;
        }
        // One that was overtaken by a later one of the same caller says nothing.
        if self.waiting.get(&place).is_none_or(|known| known.round <= request.round) {
            self.waiting.insert(place, request);
        }
        self.answer(request);
    }

    fn answer(&mut self, request: Request) {
        let Request { from, to, transaction, round, secret } = request;
        let part = self.parts.get_mut(&transaction);
        let is_strange =
            |part: &Part| self.rules.asks_for_secrets && !part.own.callers.contains(&secret) && from != to;
        let said = match part {
            Some(part) if !is_strange(part) => part.pull(from, round, &self.rules),
            // Who has no part, and who is not to know that there is one, say the same.
            _ if self.received <= transaction => None,
            _ => match self.rules.absent {
                Absent::Discards => Some((false, true)),
                Absent::Commits => Some((true, true)),
                Absent::IsSilent => None,
            },
        };
        if let Some((belief, is_final)) = said {
            self.waiting.remove(&(transaction, from));
            let answer = Answer { from: to, to: from, transaction, round, belief, is_final };
            self.sent.push(Message::Say(answer));
        }
    }

    fn answer_waiting(&mut self, transaction: Number) {
        let of = (transaction, ShardId(0))..=(transaction, ShardId(u32::MAX));
        let waiting: Vec<Request> = self.waiting.range(of).map(|(_, request)| *request).collect();
        waiting.into_iter().for_each(|request| self.answer(request));
    }

    /// A part is in another round, or decided.
    fn advanced(&mut self, transaction: Number) {
        let Some(part) = self.parts.get(&transaction) else { return };
        if let Some(request) = part.request(self.id, transaction) {
            self.sent.push(Message::Ask(request));
        }
        if let Some(commits) = part.decision()
            && self.undecided.remove(&transaction)
            && commits
        {
            for key in &part.own.writes {
                self.versions.insert(*key, transaction + 1);
            }
        }
        self.answer_waiting(transaction);
    }
}
