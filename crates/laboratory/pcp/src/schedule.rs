//! A deterministic scheduler: the shards of a case under an order of events that follows from a seed, and whether everything ended as
//! it must.

use crate::case::Case;
use crate::message::{Answer, Message, Number, ShardId};
use crate::rules::{Rules, Variant};
use crate::shard::Shard;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

/// Events until a schedule is given up.
const EVENTS_MAX: usize = 20_000;
/// Requests that are repeated in a schedule.
const REPEATS_MAX: usize = 500;

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Violation {
    /// A part commits that depends on one which does not, or on nothing.
    Closure(Number, ShardId),
    /// A part is discarded though all that it depends on is valid.
    Exact(Number, ShardId),
    /// A shard takes more rounds than it may.
    Bound(Number, ShardId),
    /// A shard never decides.
    Ends(Number, ShardId),
    /// The versions of a shard are not those of a serial run.
    Serial(ShardId),
}

impl Violation {
    /// The model's word for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Violation::Closure(..) => "closure",
            Violation::Exact(..) => "exact",
            Violation::Bound(..) => "bound",
            Violation::Ends(..) => "ends",
            Violation::Serial(_) => "serial",
        }
    }
}

#[derive(Clone, Copy)]
enum Event {
    Receive,
    Validate,
    Deliver,
    Lose,
    Repeat,
    Crash,
    Replay,
}

/// The shards of a case, and the messages between them.
pub struct Schedule<'a> {
    case: &'a Case,
    rules: Rules,
    rng: StdRng,
    shards: Vec<Shard>,
    messages: Vec<Message>,
    /// Answers that were given, where somebody repeats them.
    old: Option<Vec<Answer>>,
    liar: Option<ShardId>,
    losses: usize,
    crashes: usize,
    repeats: usize,
    crashed: bool,
}

impl<'a> Schedule<'a> {
    /// The same seed gives the same order of events.
    pub fn new(case: &'a Case, variant: &Variant, seed: u64) -> Schedule<'a> {
        let mut rng = StdRng::seed_from_u64(seed);
        let shards = (0..case.shards).map(|shard| Shard::new(ShardId(shard), variant.rules)).collect();
        let mut faults = |most: usize| if variant.has_faults { rng.random_range(0..=most) } else { 0 };
        let (losses, crashes) = (faults(3), faults(2));
        let liar = variant.lies.then(|| ShardId(rng.random_range(0..case.shards.max(1))));
        let old = variant.replays.then(Vec::new);
        let (rules, messages) = (variant.rules, Vec::new());
        let (repeats, crashed) = (0, false);
        Schedule { case, rules, rng, shards, messages, old, liar, losses, crashes, repeats, crashed }
    }

    /// The same with another liar.
    #[must_use]
    pub fn with_liar(mut self, liar: ShardId) -> Schedule<'a> {
        self.liar = Some(liar);
        self
    }

    /// Runs until nobody has anything to do.
    ///
    /// # Errors
    /// What is wrong in the end.
    pub fn run(&mut self) -> Result<(), Violation> {
        for _ in 0..EVENTS_MAX {
            if !self.step() && !self.repeat() && self.messages.is_empty() {
                break;
            }
        }
        self.judge()
    }

    /// The shards.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    fn step(&mut self) -> bool {
        let mut events = vec![Event::Receive, Event::Validate, Event::Deliver, Event::Deliver];
        events.extend((self.losses > 0).then_some(Event::Lose));
        events.extend((self.rules.repeats_requests && self.rng.random_bool(0.05)).then_some(Event::Repeat));
        events.extend((self.crashes > 0 && self.rng.random_bool(0.1)).then_some(Event::Crash));
        events.extend((self.old.is_some() && self.rng.random_bool(0.3)).then_some(Event::Replay));
        events.shuffle(&mut self.rng);
        events.into_iter().any(|event| self.happens(event))
    }

    fn happens(&mut self, event: Event) -> bool {
        match event {
            Event::Deliver | Event::Lose => {
                if self.messages.is_empty() {
                    return false;
                }
                let at = self.rng.random_range(0..self.messages.len());
                let message = self.messages.swap_remove(at);
                match event {
                    Event::Lose => self.losses -= 1,
                    _ => self.deliver(message),
                }
                true
            }
            Event::Replay => {
                let old = self.old.as_ref().and_then(|old| old.choose(&mut self.rng)).copied();
                old.is_some_and(|answer| {
                    self.deliver(Message::Say(answer));
                    // Repeating takes no end; what matters is that other things go on.
                    false
                })
            }
            Event::Repeat => {
                self.repeat();
                false
            }
            Event::Receive | Event::Validate | Event::Crash => {
                let mut shards: Vec<usize> = (0..self.shards.len()).collect();
                shards.shuffle(&mut self.rng);
                shards.into_iter().any(|shard| self.at_shard(event, shard))
            }
        }
    }

    fn at_shard(&mut self, event: Event, shard: usize) -> bool {
        let id = ShardId(shard as u32);
        match event {
            Event::Receive => {
                let number = self.shards[shard].received();
                let Some(transaction) = self.case.transactions.get(number as usize) else { return false };
                self.shards[shard].receive(transaction.own_part(number, id));
            }
            Event::Validate => {
                let ready: Vec<Number> = self.shards[shard].ready().collect();
                let Some(number) = ready.choose(&mut self.rng) else { return false };
                self.shards[shard].validate(*number);
            }
            _ => {
                self.crashes -= 1;
                self.crashed = true;
                self.shards[shard].restart();
            }
        }
        self.send(id);
        true
    }

    fn deliver(&mut self, message: Message) {
        let to = match message {
            Message::Ask(request) => request.to,
            Message::Say(answer) => answer.to,
        };
        if let Some(shard) = self.shards.get_mut(to.0 as usize) {
            shard.hear(&message);
            self.send(to);
        }
    }

    fn send(&mut self, from: ShardId) {
        let Some(shard) = self.shards.get_mut(from.0 as usize) else { return };
        for message in shard.take_sent() {
            let message = match message {
                Message::Say(answer) if self.liar == Some(from) && self.rng.random_bool(0.5) => {
                    Message::Say(Answer { belief: !answer.belief, is_final: true, ..answer })
                }
                message => message,
            };
            if let (Some(old), Message::Say(answer)) = (&mut self.old, message) {
                old.push(answer);
            }
            self.messages.push(message);
        }
    }

    /// Somebody runs out of patience.
    fn repeat(&mut self) -> bool {
        if !self.rules.repeats_requests || self.repeats >= REPEATS_MAX {
            return false;
        }
        let open: Vec<Message> =
            self.shards.iter().flat_map(|shard| shard.open_requests()).map(Message::Ask).collect();
        let open: Vec<&Message> = open.iter().filter(|open| !self.messages.contains(open)).collect();
        let Some(again) = open.choose(&mut self.rng) else { return false };
        self.messages.push(**again);
        self.repeats += 1;
        true
    }

    fn judge(&self) -> Result<(), Violation> {
        let truth = self.case.truth();
        for (transaction, number) in self.case.transactions.iter().zip(0..) {
            let decision = |shard: &ShardId| self.shards[shard.0 as usize].decision(number);
            for shard in transaction.parts.keys() {
                if decision(shard).is_none() {
                    return Err(Violation::Ends(number, *shard));
                }
                let rounds = self.shards[shard.0 as usize].rounds(number);
                if !self.crashed && rounds.is_some_and(|(taken, limit)| taken > limit) {
                    return Err(Violation::Bound(number, *shard));
                }
            }
            for shard in transaction.parts.keys().filter(|shard| self.liar != Some(**shard)) {
                let commits = decision(shard) == Some(true);
                let on = transaction.reachable(*shard);
                let discards = |other: &ShardId| self.liar != Some(*other) && decision(other) != Some(true);
                if commits && on.iter().any(discards) {
                    return Err(Violation::Closure(number, *shard));
                }
                if !commits && truth.commits[number as usize][shard] && self.liar.is_none() {
                    return Err(Violation::Exact(number, *shard));
                }
            }
        }
        if self.liar.is_some() {
            return Ok(());
        }
        for shard in 0..self.case.shards {
            let versions = truth.versions.get(&ShardId(shard));
            let mut keys = versions.into_iter().flatten();
            if keys.any(|(key, version)| self.shards[shard as usize].version(*key) != *version) {
                return Err(Violation::Serial(ShardId(shard)));
            }
        }
        Ok(())
    }
}
