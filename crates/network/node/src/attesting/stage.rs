//! Reads the queue of executed blocks' outcomes and what other nodes say; hands certificates to ordering and to those who
//! wait for them, and says when this node's outcomes are not those of a quorum.

use super::attestations::{Attestations, Output};
use super::certified::{Certified, Divergence};
use super::heal::Heal;
use super::message::{HEADERS_MAX, Message};
use super::roots::Roots;
use super::search::{Difference, Search};
use crate::metrics::{ATTEST, NodeMetrics};
use crate::published::Published;
use crossbeam_channel::{Receiver, Sender, never, select, tick};
use ledger::{Anchor, Ledger};
use ordering::{CertifyOutcomes, ExchangeMessages};
use state::KeptState;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Attested, BlockDigest, Charters, CheckpointRoot, OutcomeHeader};

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
    /// The state has decided on these charters after the block that is told next.
    Decided(Charters),
    /// The blocks from this height on will be executed again.
    TakenBack(u64),
    /// A checkpoint is written.
    Checkpoint(Arc<KeptState>),
    /// The state was made again; the checkpoints from this height on will be read again.
    StateReplaced(u64),
    /// Rows of a certified checkpoint are not what they were, and why that is known.
    Damaged(CheckpointRoot, String),
    /// The node goes on behind a block that a quorum has certified, with the state there, and has executed neither.
    Joined(Box<Anchor>),
}

/// How long ago something began that lies before everything else: real time, or that of a simulation.
pub(crate) type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// What attesting shares with the rest of the node.
type Parts = (Arc<Ledger>, Arc<Published>, Arc<NodeMetrics>);
/// What it needs of the network.
type Network = (Arc<dyn CertifyOutcomes>, Arc<dyn ExchangeMessages>);

/// Everything that attesting needs.
pub(crate) struct Attester {
    attestations: Attestations<OutcomeHeader>,
    pub(super) roots: Roots,
    pub(super) certifying: Arc<dyn CertifyOutcomes>,
    messages: Arc<dyn ExchangeMessages>,
    ledger: Arc<Ledger>,
    published: Arc<Published>,
    pub(super) certified: Arc<Certified>,
    pub(super) metrics: Arc<NodeMetrics>,
    /// Wakes those who hand out answers.
    answers: Sender<()>,
    /// The pipeline is asked to make something again.
    pub(super) heal: Sender<Heal>,
    clock: Clock,
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
        (attestations, roots): (Attestations<OutcomeHeader>, Roots),
        (certifying, messages): Network,
        (ledger, published, metrics): Parts,
        (answers, heal): (Sender<()>, Sender<Heal>),
        clock: Clock,
        recorded: impl Iterator<Item = Input>,
    ) -> Attester {
        let certified = published.certified().clone();
        let mut attester = Attester {
            answered: vec![None; attestations.told().count()],
            attestations,
            roots,
            certifying,
            messages,
            ledger,
            published,
            certified,
            metrics,
            answers,
            heal,
            clock,
            digests: BTreeMap::new(),
            searching: None,
            differing: None,
        };
        let mut outputs = Vec::new();
        recorded.for_each(|input| attester.take(input, &mut outputs));
        attester.act(&mut outputs);
        attester
    }

    pub(super) fn now(&self) -> Duration {
        (self.clock)()
    }

    /// What the pipeline tells.
    pub(crate) fn take(&mut self, input: Input, outputs: &mut Vec<Output<OutcomeHeader>>) {
        match input {
            Input::Executed(own) => {
                let OwnOutcome { outcome, digest, attested } = *own;
                self.digests.insert(outcome.height, digest);
                if self.digests.len() > DIGESTS_MAX {
                    self.digests.pop_first();
                }
                self.attestations.reached(outcome.height);
                self.roots.attestations.reached(outcome.height);
                self.attestations.found(outcome, outputs);
                if let Some(certificate) = &attested.outcome {
                    self.attestations.in_block(certificate, outputs);
                }
                if let Some(certificate) = &attested.checkpoint {
                    let Roots { attestations, outputs, .. } = &mut self.roots;
                    attestations.in_block(certificate, outputs);
                }
            }
            Input::Decided(charters) => {
                self.roots.attestations.decided(charters.clone());
                self.attestations.decided(charters);
            }
            Input::TakenBack(height) => {
                self.digests.split_off(&height);
                self.searching = None;
                self.attestations.take_back(height);
                self.roots.take_back(height);
            }
            // What it holds is taken back soon, where outcomes differ.
            Input::Checkpoint(_) if self.attestations.is_diverged() => {}
            Input::Checkpoint(kept) => self.roots.found(kept),
            Input::StateReplaced(height) => self.roots.take_back(height),
            Input::Damaged(expected, text) => {
                self.differ_in_state(expected.height, text, Some(expected));
            }
            Input::Joined(anchor) => {
                let Anchor { outcome, checkpoint, .. } = *anchor;
                let height = outcome.height;
                self.digests.clear();
                self.searching = None;
                self.attestations.reached(height);
                self.roots.attestations.reached(height);
                self.attestations.join(outcome);
                self.certified.reach(height);
                self.metrics.certified(height);
                self.roots.join(checkpoint);
                self.heal_if_agreed(height);
            }
        }
    }

    /// What a member's node says.
    pub(crate) fn hear(&mut self, member: u16, bytes: &[u8], outputs: &mut Vec<Output<OutcomeHeader>>) {
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
            Message::Roots { again, attestations } => {
                let Roots { attestations: known, outputs, .. } = &mut self.roots;
                known.hear_all(member, again, attestations, outputs);
            }
            Message::RootCertificate(certificate) => {
                let Roots { attestations, outputs, .. } = &mut self.roots;
                if let Err(error) = attestations.hear_certificate(certificate, outputs) {
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
        let members = self.attestations.told().count();
        if self.answered.len() < members {
            self.answered.resize(members, None);
        }
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
            None => self.ledger.outcome_header(height).ok().flatten(),
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

    pub(super) fn send(&self, message: &Message) {
        if let Some(bytes) = message.to_bytes() {
            self.messages.broadcast(bytes);
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

    /// Time has passed.
    pub(crate) fn tick(&mut self, outputs: &mut Vec<Output<OutcomeHeader>>) {
        let now = self.now();
        self.attestations.tick(now, outputs);
        let Roots { attestations, outputs, .. } = &mut self.roots;
        attestations.tick(now, outputs);
        let told = self.attestations.told();
        self.certified.tell(told.map(|told| told.map(|newest| (newest.height, newest.state_digest))));
        let Some(searching) = &self.searching else { return };
        if now >= searching.began + SEARCH {
            let height = searching.search.height();
            self.differ(&Difference { height, tables: Vec::new(), others: vec!["something"] });
        } else if now >= searching.asked + ASK_AGAIN {
            self.ask();
        }
    }

    /// Does what came of it.
    pub(crate) fn act(&mut self, outputs: &mut Vec<Output<OutcomeHeader>>) {
        self.attestations.tell(outputs);
        for output in std::mem::take(outputs) {
            match output {
                Output::Say { again, attestations } => {
                    self.send(&Message::Attestations { again, attestations })
                }
                Output::Show(certificate) => self.send(&Message::Certificate(certificate)),
                Output::Certified(certificate) => {
                    let height = certificate.statement.height;
                    self.certifying.certify(certificate.clone());
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
                    let _ = self.heal.try_send(Heal::Blocks(height));
                }
            }
        }
        self.act_on_roots();
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
        let _ = self.heal.try_send(Heal::Blocks(height));
    }

    pub(super) fn report(&self, divergence: Divergence) {
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
            self.differing = None;
            self.serve_again();
        }
    }

    /// Unless something else still differs.
    pub(super) fn serve_again(&mut self) {
        if self.differing.is_none() && !self.roots.differ() {
            tracing::info!("this node agrees with a quorum again");
            self.certified.diverge(None);
            self.published.resume();
        }
    }
}

/// Works until the pipeline has ended.
pub(crate) fn run(mut attester: Attester, inputs: &Receiver<Input>) {
    let ticks = tick(TICK);
    let mut messages = attester.messages.messages().clone();
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
