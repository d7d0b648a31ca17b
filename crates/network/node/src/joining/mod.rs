//! Joining from a certified checkpoint of other members instead of executing every block, and helping others to.
//!
//! ```text
//!  Shelf ─▶ Server ──parts──▶ ExchangeMessages::tell ──▶ other member's Fetch ─▶ Fetched ─▶ pipeline::join
//!            ▲ AskOffer, AskPart ◀── ExchangeMessages::told
//! ```
//!
//! Both sides are state machines, `Joining`, on one thread, `run`: whoever asks, is asked. A fetch goes on beside the pipeline, which
//! executes blocks meanwhile and stops for a moment when the state is there and still ahead.
//!
//! # One way in for three occasions
//!
//! An empty folder, a node far behind, and a rung of the healing ladder lead here. The stages are stopped as for
//! healing and start again with another engine. A node that heals waits for the fetch. Otherwise blocks are executed
//! meanwhile, and the quicker way wins.
//!
//! # Why nobody has to be believed
//!
//! - **An offer proves itself** (`ledger::Anchor`). It has the block's header with ordering's certificate, the
//!   outcome header, the checkpoint's certificate, and the handovers from the founding charter to the charters that
//!   the block names.
//! - **Handovers may be longer than a message.** They are an item of their own, asked for before the offer is judged,
//!   from one member at a time. What they prove, ordering is told at once (`CertifyOutcomes::follow`).
//! - **Ordering starts from a block that was finalized by itself.** Its floor must be a finalization of that very
//!   block. So a checkpoint whose block became final with a later one is not offered.
//! - **Sizes are limits, not claims.** Parts come in order and memory grows with them: at most 1 GiB for an outline
//!   and about 800 KiB for a piece.
//!
//! # What helps
//!
//! - **Pieces are known by their content.** A group ends where its rows say, so a newer checkpoint shares most leaves
//!   with an older one. No server has to keep an old checkpoint for somebody who is slow.
//! - **What is not in the tree follows from rows**: entries of ordered indexes, and the keys that unique ones have
//!   taken.
//! - **The anchor is the moment.** The checkpoint is durable before the anchor is. Everything after it is found again
//!   at the start: files of blocks in front of it, the history of rows, ordering's floor.
//! - **Helping is bounded.** A member may ask for so many parts per second, fewer than its connection would carry.

mod fetch;
mod message;
mod serve;
mod staging;

pub use fetch::{Fetch, FetchProgress};
pub use message::{Item, Message};
pub use serve::{KeptCheckpoint, Served, Server, Shelf};
pub use staging::Staging;

use crate::metrics::NodeMetrics;
use crate::private::is_private;
use crate::published::Published;
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, never, select, tick};
use ledger::{Anchor, Ledger, LedgerError, handovers_up_to, prove_charters};
use ordering::{CertificateVerifier, Services};
use state::{Checkpoint, Stores};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Atomic};
use std::time::{Duration, Instant};
use types::{Charter, CheckpointCertificate};

/// How often the time is looked at.
const TICK: Duration = Duration::from_millis(10);
/// How often it is looked how far behind the node is.
const LOOK: Duration = Duration::from_secs(1);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(2);
/// After a fetch that has failed the next one waits so long.
const PAUSE: Duration = Duration::from_secs(10);

/// A whole state that a quorum has attested.
pub struct Fetched {
    /// What proves it.
    pub anchor: Anchor,
    /// The state.
    pub checkpoint: Checkpoint,
}

/// A checkpoint is wanted now, whatever the height.
pub(crate) struct Wanted(pub(crate) Sender<Option<Box<Fetched>>>);

/// What fetching and handing out work with.
pub(crate) struct Exchange {
    pub(crate) charter: Arc<Charter>,
    pub(crate) organisation: u16,
    pub(crate) services: Services,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) published: Arc<Published>,
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Where pieces are kept until all are there.
    pub(crate) staging: PathBuf,
    /// Makes the store that the state comes into.
    pub(crate) stores: Arc<dyn Stores>,
    /// So many blocks behind, the node joins by itself; `None`: it does not.
    pub(crate) behind_blocks: Option<u64>,
    /// The node began without a block: it joins if it can, however few there are.
    pub(crate) empty: bool,
    /// Blocks are missing that only a checkpoint makes up for.
    pub(crate) gap: Arc<AtomicBool>,
    /// Who wants a checkpoint now.
    pub(crate) wanted: Receiver<Wanted>,
    /// Gets what other members say about schemas, which comes the same way.
    pub(crate) private: Option<Sender<(u16, Bytes)>>,
    /// Gets what was fetched because the node is behind.
    pub(crate) join: Sender<Box<Fetched>>,
}

struct Running {
    fetch: Fetch,
    began: Duration,
    told: Duration,
    /// Who waits for it; nobody where the node wants it by itself.
    wanted: Option<Sender<Option<Box<Fetched>>>>,
}

/// Works until nobody can want a checkpoint any more: the pipeline has ended.
pub(crate) fn run(exchange: Exchange) {
    let began = Instant::now();
    let (ticks, mut told) = (tick(TICK), exchange.services.messages.told().clone());
    let wanted = exchange.wanted.clone();
    let mut joining = Joining::new(exchange);
    loop {
        select! {
            recv(told) -> message => match message {
                Ok((member, bytes)) => joining.hear(member, &bytes, began.elapsed()),
                Err(_) => told = never(),
            },
            recv(wanted) -> want => match want {
                Ok(Wanted(answer)) => joining.want(answer, began.elapsed()),
                Err(_) => return,
            },
            recv(ticks) -> _ => joining.tick(began.elapsed()),
        }
    }
}

/// Both sides of the exchange: what this node fetches, and what it hands out.
pub(crate) struct Joining {
    exchange: Exchange,
    shelf: Arc<Shelf>,
    server: Server,
    running: Option<Running>,
    look_at: Duration,
}

impl Joining {
    pub(crate) fn new(exchange: Exchange) -> Joining {
        let shelf = Arc::new(Shelf::default());
        let server = Server::new(shelf.clone(), exchange.charter.organisations.len());
        Joining { exchange, shelf, server, running: None, look_at: Duration::ZERO }
    }

    /// What a member has told this node.
    pub(crate) fn hear(&mut self, member: u16, bytes: &[u8], now: Duration) {
        self.exchange.hear((member, bytes), now, &mut self.server, &mut self.running);
    }

    /// A checkpoint is wanted now.
    fn want(&mut self, answer: Sender<Option<Box<Fetched>>>, now: Duration) {
        self.running = self.exchange.begin(0, Some(answer), now);
    }

    /// To be called every few milliseconds.
    pub(crate) fn tick(&mut self, now: Duration) {
        let Joining { exchange, shelf, server, running, look_at } = self;
        server.tick(now);
        exchange.tick(now, running);
        if now < *look_at {
            return;
        }
        *look_at = now + LOOK;
        exchange.restock(shelf);
        server.members(exchange.services.certifying.charters().newest().charter.organisations.len());
        if running.is_none()
            && let Some(above) = exchange.above()
        {
            *running = exchange.begin(above, None, now);
            *look_at = now + PAUSE;
        }
    }
}

impl Exchange {
    /// Above which height a checkpoint is of use, if this node is far behind.
    fn above(&mut self) -> Option<u64> {
        let behind_blocks = self.behind_blocks?;
        let (height, last) = (self.published.newest().0, self.services.ordering.status().final_height);
        let lacks = self.gap.load(Atomic::Acquire) || self.services.ordering.unobtainable().is_some();
        if std::mem::take(&mut self.empty) || lacks {
            return Some(height);
        }
        (last >= height + behind_blocks).then_some(height + behind_blocks / 2)
    }

    /// Hands out the newest checkpoint of this node that is certified.
    fn restock(&self, shelf: &Shelf) {
        let newest = self.published.certified().checkpoint();
        let height = newest.as_ref().map(|newest| newest.certificate.statement.height);
        if height == shelf.height() {
            return;
        }
        let served = newest.and_then(|newest| match self.anchor(&newest.certificate) {
            Ok(anchor) => {
                let served: Arc<dyn Served> = Arc::new(KeptCheckpoint { anchor, kept: newest.kept.clone() });
                Some(served)
            }
            Err(error) => {
                tracing::debug!(height, error, "nobody can join from this checkpoint");
                None
            }
        });
        // Where it cannot be handed out, the one before is better than none.
        if height.is_none() || served.is_some() {
            shelf.put(served);
            self.metrics.offered(shelf.height());
        }
    }

    fn anchor(&self, checkpoint: &CheckpointCertificate) -> Result<Anchor, String> {
        let height = checkpoint.statement.height;
        if let Some(anchor) = self.ledger.anchor().filter(|anchor| anchor.height() == height) {
            return Ok(Anchor::clone(&anchor));
        }
        let failed = |error: LedgerError| error.to_string();
        let missing = || format!("the ledger has no block {height}");
        let outcome = self.ledger.outcome_header(height).map_err(failed)?.ok_or_else(missing)?;
        let header = self.ledger.header(height).map_err(failed)?.ok_or_else(missing)?;
        let (_, certificate) = self.ledger.certificates(height).map_err(failed)?.ok_or_else(missing)?;
        // Ordering can only begin at a block that was finalized by itself.
        let (ledger, named) = (self.charter.ledger(), header.charters);
        let handovers = match named == ledger {
            true => Vec::new(),
            false => handovers_up_to(self.ledger.handovers(ledger).map_err(failed)?, ledger, named),
        };
        let charters = prove_charters(&self.charter, &handovers, named)?;
        let certificates = CertificateVerifier::new(charters).map_err(|error| error.to_string())?;
        certificates.verify_own(&header, &certificate).map_err(|error| error.to_string())?;
        let (header, certificate) = (header, certificate.to_vec());
        let anchor = Anchor { header, certificate, outcome, checkpoint: checkpoint.clone(), handovers };
        anchor.check(self.charter.ledger())?;
        Ok(anchor)
    }

    fn begin(
        &self,
        above: u64,
        wanted: Option<Sender<Option<Box<Fetched>>>>,
        now: Duration,
    ) -> Option<Running> {
        let staging = match Staging::open(&self.staging) {
            Ok(staging) => staging,
            Err(error) => {
                tracing::error!(%error, "no checkpoint of another node can be fetched");
                return None;
            }
        };
        let fetch =
            Fetch::new(&self.charter, self.organisation, above, staging, self.stores.clone(), now).ok()?;
        Some(Running { fetch, began: now, told: now, wanted })
    }

    fn tick(&self, now: Duration, running: &mut Option<Running>) {
        let Some(Running { fetch, began, told, .. }) = running else { return };
        for (member, message) in fetch.tick(now) {
            self.send(member, &message);
        }
        let progress = fetch.progress();
        self.metrics.joining(&progress);
        if now >= *told + TELL && progress.height > 0 {
            *told = now;
            let FetchProgress { height, pieces, checked, staged, bytes, liars } = progress;
            tracing::info!(height, pieces, checked, staged, bytes, liars, "a checkpoint is being fetched");
        }
        if let Some(failure) = fetch.store_failure() {
            self.published.store_health().note(failure.clone());
        }
        if fetch.has_failed(now) {
            let seconds = (now - *began).as_secs_f64();
            tracing::info!(seconds, ?progress, "no certified checkpoint of use was got from other nodes");
            if let Some(Running { wanted: Some(wanted), .. }) = running.take() {
                // Whoever asked waits for it.
                let _ = wanted.send(None);
            }
        }
    }

    fn hear(
        &self,
        (member, bytes): (u16, &[u8]),
        now: Duration,
        server: &mut Server,
        running: &mut Option<Running>,
    ) {
        if is_private(bytes) {
            if let Some(private) = &self.private {
                // Full where they come too quickly: whoever needs an answer asks again.
                let _ = private.try_send((member, Bytes::copy_from_slice(bytes)));
            }
            return;
        }
        let Some(message) = Message::from_bytes(bytes) else {
            tracing::debug!(member, bytes = bytes.len(), "ignored what is no message about checkpoints");
            return;
        };
        if matches!(message, Message::AskOffer | Message::AskPart { .. }) {
            if let Some(answer) = server.answer(member, &message, now) {
                self.send(member, &answer);
            }
            return;
        }
        let Some(Running { fetch, began, .. }) = running else { return };
        let known = fetch.charters().reigns().len();
        let fetched = fetch.hear(member, message, now);
        if fetch.charters().reigns().len() > known {
            // Who came in by them can be asked, too.
            self.services.certifying.follow(fetch.charters());
        }
        let Some(fetched) = fetched else { return };
        let progress = fetch.progress();
        self.metrics.joining(&progress);
        let seconds = (now - *began).as_secs_f64();
        tracing::info!(seconds, ?progress, "a certified checkpoint is here and checked");
        let fetched = Box::new(fetched);
        match running.take().and_then(|running| running.wanted) {
            Some(wanted) => drop(wanted.send(Some(fetched))),
            // Full where the pipeline has not taken the one before.
            None => drop(self.join.try_send(fetched)),
        }
    }

    fn send(&self, member: u16, message: &Message) {
        if let Some(bytes) = message.to_bytes() {
            self.services.messages.tell(member, bytes);
        }
    }
}
