//! Reads the queue of executed blocks' outcomes and what other nodes say; hands certificates to ordering and to those who
//! wait for them, and says when this node's outcomes are not those of a quorum.

use super::attestations::{Attestations, Output};
use super::certified::{Certified, Divergence};
use super::message::{HEADERS_MAX, Message};
use super::search::{Difference, Search};
use crate::metrics::{ATTEST, NodeMetrics};
use crate::published::Published;
use crossbeam_channel::{Receiver, Sender, never, select, tick};
use ledger::Ledger;
use ordering::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Attested, BlockDigest, OutcomeHeader};

/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(50);
/// Outcomes that are told in one message if they wait together.
const TOGETHER: usize = 64;
/// How often the others are asked again where outcomes begin to differ.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// After this time a node heals with what it knows.
const SEARCH: Duration = Duration::from_secs(5);
/// The least time between two answers to the same member.
const ANSWER_PAUSE: Duration = Duration::from_millis(50);
/// Own digests that are kept for the search.
const DIGESTS_MAX: usize = 12_000;

/// What an executed block came to.
pub(crate) struct OwnOutcome {
    /// In one header.
    pub(crate) outcome: OutcomeHeader,
    /// Table by table.
    pub(crate) digest: BlockDigest,
    /// The certificates that stand in the block.
    pub(crate) attested: Attested,
}

/// What the pipeline tells.
pub(crate) enum Input {
    /// A block is executed, or was when the node started.
    Executed(Box<OwnOutcome>),
    /// The blocks from this height on will be executed again.
    TakenBack(u64),
}

/// What attesting shares with the rest of the node.
type Parts = (Arc<dyn Ordering>, Arc<Ledger>, Arc<Published>, Arc<NodeMetrics>);

/// Everything that attesting needs.
pub(crate) struct Attester {
    attestations: Attestations,
    ordering: Arc<dyn Ordering>,
    ledger: Arc<Ledger>,
    published: Arc<Published>,
    certified: Arc<Certified>,
    metrics: Arc<NodeMetrics>,
    /// Wakes those who hand out answers.
    answers: Sender<()>,
    /// The pipeline is asked to take back the blocks from this height on.
    heal: Sender<u64>,
    began: Instant,
    digests: BTreeMap<u64, BlockDigest>,
    searching: Option<Searching>,
    /// The certificate that this node's outcomes did not agree with, until they do.
    differing: Option<OutcomeHeader>,
    answered: Vec<Option<Duration>>,
}

struct Searching {
    search: Search,
    began: Duration,
    asked: Duration,
}

impl Attester {
    /// `attestations` knows what is certified; `heal` is asked to take blocks back. `recorded`: what the ledger has and
    /// no block certifies, so that it is attested again.
    pub(crate) fn new(
        attestations: Attestations,
        (ordering, ledger, published, metrics): Parts,
        (answers, heal): (Sender<()>, Sender<u64>),
        recorded: impl Iterator<Item = Input>,
    ) -> Attester {
        let certified = published.certified().clone();
        let mut attester = Attester {
            answered: vec![None; attestations.told().count()],
            attestations,
            ordering,
            ledger,
            published,
            certified,
            metrics,
            answers,
            heal,
            began: Instant::now(),
            digests: BTreeMap::new(),
            searching: None,
            differing: None,
        };
        let mut outputs = Vec::new();
        recorded.for_each(|input| attester.take(input, &mut outputs));
        attester.act(&mut outputs);
        attester
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn take(&mut self, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Executed(own) => {
                let OwnOutcome { outcome, digest, attested } = *own;
                self.digests.insert(outcome.height, digest);
                if self.digests.len() > DIGESTS_MAX {
                    self.digests.pop_first();
                }
                self.attestations.executed(outcome, outputs);
                if let Some(certificate) = &attested.outcome {
                    self.attestations.in_block(certificate, outputs);
                }
            }
            Input::TakenBack(height) => {
                self.digests.split_off(&height);
                self.searching = None;
                self.attestations.take_back(height);
            }
        }
    }

    fn hear(&mut self, member: u16, bytes: &[u8], outputs: &mut Vec<Output>) {
        let Some(message) = Message::from_bytes(bytes) else {
            tracing::debug!(member, bytes = bytes.len(), "ignored what is no message about outcomes");
            return;
        };
        match message {
            Message::Attestations { again, attestations } => {
                self.attestations.hear_all(member, again, attestations, outputs);
            }
            Message::Certificate(certificate) => {
                if let Err(error) = self.attestations.hear_certificate(certificate, outputs) {
                    tracing::warn!(member, %error, "a member has sent a wrong certificate");
                }
            }
            Message::AskHeaders { from, to } => self.answer(member, |own| own.headers(from, to)),
            Message::AskDigest { height } => self.answer(member, |own| own.digest(height)),
            Message::Headers(headers) => self.search_in(&headers),
            Message::Digest { height, digest } => self.compare(height, &digest),
        }
    }

    /// Answers a member, not too often.
    fn answer(&mut self, member: u16, answer: impl FnOnce(&Attester) -> Option<Message>) {
        let now = self.now();
        let Some(answered) = self.answered.get_mut(usize::from(member)) else { return };
        if answered.is_some_and(|before| now < before + ANSWER_PAUSE) {
            return;
        }
        *answered = Some(now);
        if let Some(message) = answer(self) {
            self.send(&message);
        }
    }

    /// Own headers of a range, where they are certified.
    fn headers(&self, from: u64, to: u64) -> Option<Message> {
        if to > self.attestations.certified() || from > to {
            return None;
        }
        let from = from.max((to + 1).saturating_sub(HEADERS_MAX as u64)).max(1);
        let header = |height| match self.attestations.own(height) {
            Some(own) => Some(own.clone()),
            None => self.ledger.summary(height).ok().flatten().map(|summary| summary.outcome),
        };
        (from..=to).map(header).collect::<Option<Vec<_>>>().map(Message::Headers)
    }

    /// What a block did, where that is certified.
    fn digest(&self, height: u64) -> Option<Message> {
        if height > self.attestations.certified() {
            return None;
        }
        let digest = match self.digests.get(&height) {
            Some(digest) => digest.clone(),
            None => self.ledger.outcome(height).ok().flatten()?.digest,
        };
        Some(Message::Digest { height, digest })
    }

    fn send(&self, message: &Message) {
        if let Some(bytes) = message.to_bytes() {
            self.ordering.broadcast(bytes);
        }
    }

    fn search_in(&mut self, headers: &[OutcomeHeader]) {
        let Some(Searching { search, .. }) = &mut self.searching else { return };
        if search.headers(headers, |height| self.attestations.own(height)) {
            self.ask();
        }
    }

    fn compare(&mut self, height: u64, digest: &BlockDigest) {
        let Some(Searching { search, .. }) = &self.searching else { return };
        let Some(own) = self.digests.get(&height) else { return };
        if let Some(difference) = search.digest(height, digest, own, |at| self.attestations.own(at)) {
            self.differ(&difference);
        }
    }

    fn ask(&mut self) {
        let now = self.now();
        let Some(searching) = &mut self.searching else { return };
        searching.asked = now;
        let question = searching.search.question();
        self.send(&question);
    }

    fn tick(&mut self, outputs: &mut Vec<Output>) {
        let now = self.now();
        self.attestations.tick(now, outputs);
        self.certified.tell(self.attestations.told());
        let Some(searching) = &self.searching else { return };
        if now >= searching.began + SEARCH {
            let height = searching.search.height();
            self.differ(&Difference { height, tables: Vec::new(), others: vec!["something"] });
        } else if now >= searching.asked + ASK_AGAIN {
            self.ask();
        }
    }

    fn act(&mut self, outputs: &mut Vec<Output>) {
        self.attestations.tell(outputs);
        for output in std::mem::take(outputs) {
            match output {
                Output::Send(message) => self.send(&message),
                Output::Certified(certificate) => {
                    let height = certificate.statement.height;
                    self.ordering.certify(certificate.clone());
                    self.certified.certify(certificate);
                    self.metrics.certified(height);
                    // Whoever hands out answers sees the newest height when it looks.
                    let _ = self.answers.try_send(());
                    while self.digests.first_key_value().is_some_and(|(first, _)| *first <= height) {
                        self.digests.pop_first();
                    }
                    self.heal_if_agreed(height);
                }
                Output::Diverged(certificate) => self.diverge(certificate.statement),
                Output::Contradiction(both) => {
                    let [first, second] = *both;
                    tracing::warn!(
                        member = first.organisation,
                        height = first.statement.height,
                        ?first,
                        ?second,
                        "a member has attested two different outcomes; these two signatures prove it"
                    );
                    self.metrics.contradicted();
                }
                Output::Split(height) => {
                    let text = format!("no outcome of block {height} finds a quorum");
                    self.report(Divergence { height, text });
                    let _ = self.heal.try_send(height);
                }
            }
        }
    }

    /// This node's outcomes are not those of a quorum: nobody is served any more, and where they begin to differ is
    /// looked for.
    fn diverge(&mut self, differing: OutcomeHeader) {
        let height = differing.height;
        let text =
            format!("a quorum of organisations came to another outcome of block {height} than this node");
        self.report(Divergence { height, text });
        self.metrics.diverged();
        let search = Search::new(differing.ledger, self.attestations.certified(), differing.clone());
        self.differing = Some(differing);
        let now = self.now();
        self.searching = Some(Searching { search, began: now, asked: now });
        self.ask();
    }

    /// It is found where they begin to differ.
    fn differ(&mut self, difference: &Difference) {
        self.searching = None;
        let library = self.published.library();
        let tables = difference.tables.iter().map(|id| match library.catalog().table(*id) {
            Some(table) => format!("table {}", table.name),
            None => format!("table number {}", id.0),
        });
        let what: Vec<String> = tables.chain(difference.others.iter().map(|what| what.to_string())).collect();
        let (height, what) = (difference.height, what.join(", "));
        let text =
            format!("this node's outcomes differ from those of a quorum from block {height} on, in {what}");
        self.report(Divergence { height, text });
        let _ = self.heal.try_send(height);
    }

    fn report(&self, divergence: Divergence) {
        tracing::error!(height = divergence.height, "{}", divergence.text);
        self.published.suspend(divergence.text.clone());
        self.certified.diverge(Some(divergence));
    }

    /// Serves again once the outcomes agree that did not.
    fn heal_if_agreed(&mut self, certified: u64) {
        let agreed = match &self.differing {
            Some(differing) => differing.height <= certified,
            None => self.certified.divergence().is_some_and(|split| split.height <= certified),
        };
        if agreed {
            tracing::info!(certified, "this node's outcomes are those of a quorum again");
            self.differing = None;
            self.certified.diverge(None);
            self.published.resume();
        }
    }
}

/// Works until the pipeline has ended.
pub(crate) fn run(mut attester: Attester, inputs: &Receiver<Input>) {
    let ticks = tick(TICK);
    let mut messages = attester.ordering.messages().clone();
    let mut outputs = Vec::new();
    loop {
        select! {
            recv(inputs) -> input => {
                let Ok(input) = input else { return };
                let start = Instant::now();
                attester.take(input, &mut outputs);
                for input in inputs.try_iter().take(TOGETHER - 1) {
                    attester.take(input, &mut outputs);
                }
                attester.act(&mut outputs);
                attester.metrics.worked(ATTEST, start.elapsed());
            }
            recv(messages) -> message => match message {
                Ok((member, bytes)) => attester.hear(member, &bytes, &mut outputs),
                // Nobody will say anything any more; the pipeline ends soon.
                Err(_) => messages = never(),
            },
            recv(ticks) -> _ => attester.tick(&mut outputs),
        }
        attester.act(&mut outputs);
    }
}
