//! Puts into the topic what this node has to say: its clients' transactions, certificates, and that blocks are to be cut. A thread
//! of its own, which never waits for brokers.

use super::KafkaSettings;
use super::config::{OUTSTANDING, SAY_AGAIN, TICK, producer};
use super::due::{Due, Saying, View};
use super::record::{Offer, Record, record_bytes_max};
use super::shared::{Shared, Tip};
use super::topic::ToTracing;
use crate::certificates::Allowed;
use crate::mempool::Survey;
use crypto::Digest;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::Message as _;
use rdkafka::producer::{
    BaseProducer, BaseRecord, DeliveryResult, Producer as _, ProducerContext, PurgeConfig,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::time::Duration;
use tracing::{debug, warn};
use types::{Attested, Charter};

/// How long the library may take to let go.
const STOP_WAIT: Duration = Duration::from_millis(500);

/// Hears what became of records.
struct Reports {
    shared: Arc<Shared>,
    /// The producer can go on no more; another one has to.
    failed: Arc<AtomicBool>,
}

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        ToTracing.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        if reason.contains("Fatal error") {
            warn!(%error, reason, "the producer begins anew");
            self.failed.store(true, Atomic::Release);
        }
        ToTracing.error(error, reason);
    }
}

impl ProducerContext for Reports {
    /// What names the record's transactions.
    type DeliveryOpaque = Box<Digest>;

    fn delivery(&self, result: &DeliveryResult<'_>, content: Box<Digest>) {
        let mut offered = self.shared.offered.lock();
        match result {
            Ok(message) => drop(offered.acknowledged.insert(message.offset().max(0) as u64, *content)),
            Err((error, _)) => {
                debug!(%error, "a record did not get into the topic; its transactions are offered again");
                offered.release(&content);
            }
        }
    }
}

type Producer = BaseProducer<Reports>;

/// The offering thread's work.
pub(super) struct Offering {
    shared: Arc<Shared>,
    settings: KafkaSettings,
    said: Saying,
    /// The newest outcome that this node has put into the topic, and when.
    brought: (u64, Duration),
    /// The newest outcome that the topic lacked, and since when.
    news: Option<(u64, Duration)>,
}

impl Offering {
    pub(super) fn new(shared: Arc<Shared>, settings: KafkaSettings) -> Offering {
        Offering { shared, settings, said: Saying::default(), brought: (0, Duration::ZERO), news: None }
    }

    /// Works until the service is stopped.
    pub(super) fn run(mut self) {
        while !self.shared.is_stopped() {
            let failed = Arc::new(AtomicBool::new(false));
            let producer = match self.producer(failed.clone()) {
                Ok(producer) => producer,
                Err(error) => {
                    self.shared.say(Some(format!("nothing can be put into the topic: {error}")));
                    std::thread::sleep(SAY_AGAIN);
                    continue;
                }
            };
            while !self.shared.is_stopped() && !failed.load(Atomic::Acquire) {
                let arrivals = self.shared.mempool.end();
                producer.poll(Duration::ZERO);
                let wait = self.step(&producer);
                self.shared.mempool.wait_on_thread(arrivals, wait);
            }
            producer.purge(PurgeConfig::default().queue().inflight());
            // What is not reported by then is let go with the producer.
            let _ = producer.flush(STOP_WAIT);
            self.forget();
        }
    }

    fn producer(&self, failed: Arc<AtomicBool>) -> Result<Producer, KafkaError> {
        let longest = record_bytes_max(types::limits::BLOCK_BYTES_MAX);
        let reports = Reports { shared: self.shared.clone(), failed };
        producer(&self.settings, longest).create_with_context(reports)
    }

    /// Nothing that was offered counts as such.
    fn forget(&self) {
        let mut offered = self.shared.offered.lock();
        let contents: Vec<Digest> = offered.records.keys().copied().collect();
        contents.iter().for_each(|content| drop(offered.release(content)));
    }

    /// Says what is due; gives how long there is nothing more to do.
    fn step(&mut self, producer: &Producer) -> Duration {
        let (shared, now) = (self.shared.clone(), self.shared.now());
        let tip = shared.tip();
        let height = tip.parent.height + 1;
        let Some(own) = shared.members.epochs.own_at(height).filter(|_| tip.has_caught_up) else {
            return TICK;
        };
        if producer.in_flight_count() >= OUTSTANDING {
            return Duration::from_millis(1);
        }
        let charter = shared.members.epochs.charter_at(height);
        let members: Vec<u16> = charter.members().map(|(position, _)| position).collect();
        let attested = self.news(&tip, now);
        let may_open = shared.members.certificates.allow(&tip.parent, &charter) == Allowed::Transactions;
        let is_open = height - tip.certified <= u64::from(charter.outcome_lag_blocks);
        let survey = self.survey(&charter);
        let view = View {
            now,
            tip: &tip,
            block: &charter.block,
            survey,
            members: &members,
            own,
            is_open,
            may_open: may_open || is_open,
            news_since: self.news.map(|(_, since)| since),
            backlog: tip.parent.height.saturating_sub(shared.acknowledged()),
        };
        match view.due(&self.said) {
            Due::At(time) => time.saturating_sub(now).clamp(Duration::from_millis(1), TICK),
            Due::Record { transactions, cut } => {
                let has_news = attested != Attested::default();
                self.offer(producer, (height, own, &charter), (transactions, cut), attested);
                self.said.brought = (!transactions && !cut).then_some(now).or(self.said.brought);
                if has_news && let Some((outcome, _)) = self.news {
                    self.brought = (outcome, now);
                }
                if cut {
                    self.said.cut = Some((height, now));
                }
                if transactions {
                    self.said.offered = now;
                }
                Duration::ZERO
            }
        }
    }

    /// What waits at this node and is not offered; nothing where enough is.
    fn survey(&self, charter: &Charter) -> Survey {
        let offered = self.shared.offered.lock();
        match offered.ids.len() < 2 * charter.block.transactions_max as usize {
            true => self.shared.mempool.survey(&charter.block, &offered.ids),
            false => Survey::default(),
        }
    }

    /// Certificates that the topic lacks, as far as is known here.
    fn news(&mut self, tip: &Tip, now: Duration) -> Attested {
        let mut attested = self.shared.members.certificates.for_child_of(&tip.parent);
        let outcome = attested.outcome.as_ref().map(|outcome| outcome.statement.height);
        let new = outcome.filter(|height| *height > tip.certified);
        self.news = new.map(|height| match self.news {
            Some((known, since)) if known == height => (height, since),
            _ => (height, now),
        });
        let (brought, when) = self.brought;
        if new.is_none_or(|height| height <= brought && now < when + SAY_AGAIN / 4) {
            (attested.outcome, attested.charters) = (None, Vec::new());
        }
        attested
    }

    fn offer(
        &self,
        producer: &Producer,
        (height, own, charter): (u64, u16, &Charter),
        (transactions, cut): (bool, bool),
        attested: Attested,
    ) {
        let shared = &self.shared;
        let (ids, transactions) = match transactions {
            true => {
                let offered = shared.offered.lock();
                shared.mempool.take(&*shared.admission, &charter.block, &offered.ids)
            }
            false => Default::default(),
        };
        let offer = Offer { height, cut, attested, transactions };
        let record = Record::sign(offer, (shared.ledger, own), &shared.key);
        let content = record.statement.content;
        {
            let mut offered = shared.offered.lock();
            offered.ids.extend(&ids);
            if !ids.is_empty() {
                offered.records.insert(content, ids);
            }
        }
        let bytes = record.to_bytes();
        let message =
            BaseRecord::<(), [u8], Box<Digest>>::with_opaque_to(&self.settings.topic, Box::new(content));
        match producer.send(message.partition(0).payload(&bytes)) {
            Ok(()) => drop(shared.records_offered.fetch_add(1, Atomic::Relaxed)),
            Err((error, _)) => {
                warn!(%error, "a record cannot be put into the topic; its transactions are offered again");
                shared.offered.lock().release(&content);
            }
        }
    }
}
