//! What consensus asks of us: propose a block, judge the block of another.
//!
//! Both may be cancelled at any await and leave nothing behind but caches, and what the node has dropped
//! ([`Admission::arrange`]), which nobody needs to see again. Both build on blocks that are not final
//! yet, so both walk back over those to know what they hold already.

use super::block::{OrderedBlock, consensus_digest, plain_digest};
use super::config::SPREAD_MEMBERS;
use super::delivery::Acknowledgements;
use super::finalization::{self, Floor};
use super::own_votes::OwnVotes;
use super::work::{Giving, Work};
use crate::certificates::Allowed;
use crate::computation::off_the_reactor;
use crate::cutting::{Cut, Fault, Parent, Rules, assemble, check, check_distinct, when_to_cut};
use crate::judging::{check_certificates, check_transactions};
use crate::lacking::{self, Lacking};
use crate::members::Members;
use crate::mempool::{Clock, Mempool, Placing, Source, Survey};
use crate::{Admission, CertificateError, CertificateVerifier, OrderingStatus, SubmitError};
use bytes::Bytes;
use commonware_consensus::marshal::ancestry::Ancestry;
use commonware_consensus::simplex::{scheme::ed25519::Scheme, types::Context};
use commonware_cryptography::{Digested, Digestible as _, ed25519::PublicKey, sha256};
use commonware_macros::select;
use commonware_runtime::{Clock as RuntimeClock, Metrics, Spawner};
use crypto::Digest;
use futures::StreamExt as _;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::Duration;
use tokio::sync::watch;
use tracing::{debug, warn};
use types::{Attested, Block, BlockHeader, BlockLimits, Place, TransactionId};

/// Blocks whose transactions' ids are remembered.
const IDS_MAX: usize = 64;

/// A proposer whose node lags further behind than this many blocks does not walk back; it proposes an empty block.
const LAG_MAX: u64 = 64;

/// While more than this many full blocks' transactions are not delivered to this node's pipeline, it proposes empty
/// blocks: the mempool fills, and clients learn that the node is full instead of waiting ever longer.
const BACKLOG_BLOCKS: usize = 4;

/// The pause before such an empty block, so that empty blocks do not add to the backlog.
const BACKLOG_PAUSE: Duration = Duration::from_millis(50);

/// Arrivals within this time are looked at together.
const ARRIVALS: Duration = Duration::from_millis(1);

/// What proposer, verifier, delivery and the service share.
pub(crate) struct Shared {
    pub ledger: Digest,
    pub members: Members,
    pub mempool: Arc<Mempool>,
    pub admission: Arc<dyn Admission>,
    pub work: Arc<Work>,
    /// What was signed with this node's key.
    pub own_votes: Arc<OwnVotes>,
    /// Whether certificates in others' blocks are looked at: a test takes them on trust to see what happens.
    pub checks_certificates: bool,
    pub clock: Clock,
    /// The highest height known to be final, and its view.
    pub final_height: AtomicU64,
    pub final_view: AtomicU64,
    /// Final blocks that have not come.
    pub lacking: Lacking,
    /// What is delivered up to this height is out of the mempool.
    pub delivered: AtomicU64,
    /// The same, for whoever waits for a height.
    pub reached: watch::Sender<u64>,
    pub ids: Mutex<KnownIds>,
    /// Who leads the newest view that this node has taken part in.
    pub leader: Mutex<Option<PublicKey>>,
}

/// Ids of the transactions of the latest blocks, so that each block's are computed once.
#[derive(Default)]
pub(crate) struct KnownIds {
    blocks: FxHashMap<Digest, Arc<Vec<TransactionId>>>,
    order: VecDeque<Digest>,
}

impl KnownIds {
    fn insert(&mut self, block: Digest, ids: Arc<Vec<TransactionId>>) {
        if self.blocks.insert(block, ids).is_none() {
            self.order.push_back(block);
        }
        if self.order.len() > IDS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.blocks.remove(&oldest);
        }
    }
}

impl Shared {
    /// The ids of a block's transactions, or why one of them is wrong. Signatures cost milliseconds, so they are
    /// verified on a thread that may block (in the simulation there is only one thread, and it runs in place).
    pub(crate) async fn ids<E: Spawner>(
        self: &Arc<Self>,
        context: &E,
        block: &Digested<OrderedBlock>,
    ) -> Result<Arc<Vec<TransactionId>>, Fault> {
        let digest = plain_digest(&block.digest());
        if let Some(ids) = self.ids.lock().blocks.get(&digest) {
            return Ok(ids.clone());
        }
        let (shared, judged) = (self.clone(), block.inner_shared());
        let judge = move || {
            let place = Place { charters: &shared.members.epochs.charters(), height: judged.0.header.height };
            check_transactions(&*shared.admission, place, &judged.0.transactions)
        };
        let ids = off_the_reactor(context, judge).await?;
        let ids = Arc::new(ids);
        self.ids.lock().insert(digest, ids.clone());
        Ok(ids)
    }

    /// Checks the signatures of a block's certificates.
    async fn check_certificates<E: Spawner>(
        self: &Arc<Self>,
        context: &E,
        block: &Digested<OrderedBlock>,
    ) -> Result<(), Fault> {
        if block.inner().0.attested == Attested::default() || !self.checks_certificates {
            return Ok(());
        }
        let (shared, judged) = (self.clone(), block.inner_shared());
        off_the_reactor(context, move || check_certificates(&shared.members.epochs, &judged.0.attested)).await
    }

    /// Blocks up to this one are not needed, if the certificate is of this very block; gives what marshal is to be told.
    pub(crate) fn skip_to(
        &self,
        acknowledgements: &Acknowledgements,
        header: &BlockHeader,
        certificate: &[u8],
    ) -> Result<Option<Floor>, CertificateError> {
        let charters = self.members.epochs.charters();
        let charter = charters.at(header.height).charter.clone();
        let finalization = CertificateVerifier::new(charters)?.verify_own(header, certificate)?;
        acknowledgements.durable(header.height);
        self.lacking.have(header.height, (self.clock)());
        Ok(finalization::floor(&charter, &finalization))
    }

    /// Final blocks that nobody gives, unless it is the node that does not take what is here.
    pub(crate) fn unobtainable(&self, acknowledgements: &Acknowledgements) -> Option<RangeInclusive<u64>> {
        self.lacking.unobtainable((self.clock)()).filter(|_| !acknowledgements.are_awaited())
    }

    /// What keeps this member from ordering now.
    pub(crate) fn trouble(&self, acknowledgements: &Acknowledgements) -> Option<String> {
        if let Some(lacking) = self.unobtainable(acknowledgements) {
            return Some(lacking::trouble(&lacking, self.work.connected()));
        }
        let height = self.final_height.load(Atomic::Relaxed);
        self.members.trouble_with_clocks(height, (self.clock)())
    }

    /// Transactions for this node's mempool, where it is a member's.
    pub(crate) fn submit(
        &self,
        transactions: Vec<Bytes>,
        placing: Placing,
        source: Source,
    ) -> Vec<Result<TransactionId, SubmitError>> {
        if source == Source::Client
            && self.giving() == Giving::Everybody
            && !self.mempool.has_room_for_others()
        {
            // What waits here waits everywhere: the other half is for what is on its way here.
            let (pending, limit) = (self.mempool.level().transactions, self.mempool.half());
            return transactions.iter().map(|_| Err(SubmitError::Full { pending, limit })).collect();
        }
        let pool = (&*self.mempool, &*self.admission);
        self.members.submit(pool, *self.reached.borrow() + 1, (transactions, placing, source))
    }

    /// Whom this node gives transactions that its clients bring.
    pub(crate) fn giving(&self) -> Giving {
        let members = self.members.epochs.charter_at(*self.reached.borrow() + 1).members().count();
        match members {
            // Whoever may drop one answers its client, so that nobody else may have it.
            _ if self.admission.may_drop() => Giving::Nobody,
            SPREAD_MEMBERS.. => Giving::Everybody,
            _ => Giving::NextLeader,
        }
    }

    /// The ids of a block that this node has judged or built lately.
    pub(crate) fn known_ids(&self, block: &Digest) -> Option<Arc<Vec<TransactionId>>> {
        self.ids.lock().blocks.get(block).cloned()
    }

    /// The ids of a block that this node has built.
    pub(crate) fn know_ids(&self, block: Digest, ids: Arc<Vec<TransactionId>>) {
        self.ids.lock().insert(block, ids);
    }

    /// A view has a proposal of this leader, or is to have one.
    fn led(&self, leader: &PublicKey) {
        *self.leader.lock() = Some(leader.clone());
    }

    /// How this member is doing.
    pub(crate) fn status(&self) -> OrderingStatus {
        let level = self.mempool.level();
        OrderingStatus {
            pending_transactions: level.transactions,
            pending_bytes: level.bytes,
            final_height: self.final_height.load(Atomic::Relaxed),
            view: self.final_view.load(Atomic::Relaxed),
            connected_peers: self.work.connected(),
        }
    }

    /// What the block after `parent` may be.
    fn allows(&self, parent: &Parent) -> Allowed {
        self.members.certificates.allow(parent, &self.members.epochs.charter_at(parent.height + 1))
    }

    fn clock_ms(&self) -> u64 {
        (self.clock)().as_millis() as u64
    }
}

/// The application under consensus.
#[derive(Clone)]
pub(crate) struct Application(pub Arc<Shared>);

impl Application {
    /// Ids that the proposer must leave out: those of `parent` and its ancestors that are not delivered here yet.
    /// `None` where that cannot be known, or where this node lags so far behind that finding out takes too long.
    async fn ordered<E: Spawner>(
        &self,
        context: &E,
        mut parent: Digested<OrderedBlock>,
        ancestry: &mut impl Ancestry<OrderedBlock>,
    ) -> Option<FxHashSet<TransactionId>> {
        let mut ordered = FxHashSet::default();
        let delivered = || self.0.delivered.load(Atomic::Acquire);
        if parent.inner().0.header.height > delivered() + LAG_MAX {
            return None;
        }
        while parent.inner().0.header.height > delivered() {
            // A certified block with a refused transaction takes more than f faulty members.
            ordered.extend(self.0.ids(context, &parent).await.ok()?.iter());
            parent = ancestry.next().await?;
        }
        Some(ordered)
    }

    /// Waits until a block is due. While ordering is too far ahead of certified outcomes, only an empty one is, at the
    /// pace of an idle network: whatever waits, here or elsewhere, waits for a certificate. Further ahead nothing is.
    async fn wait_for_work<E: RuntimeClock>(
        &self,
        context: &E,
        parent: &Parent,
        ordered: &FxHashSet<TransactionId>,
    ) {
        let shared = &self.0;
        let limits = shared.members.epochs.charter_at(parent.height + 1).block;
        let began = (shared.clock)();
        loop {
            // Created before the look at what there is, so that nothing that happens after it is missed.
            let (arrival, word) = (shared.mempool.arrival(), shared.work.changed());
            let certified = shared.members.certificates.changed();
            let (survey, others_wait) = match shared.allows(parent) {
                Allowed::Transactions => (shared.mempool.survey(&limits, ordered), shared.work.others_wait()),
                Allowed::Empty => (Survey::default(), false),
                Allowed::Nothing => {
                    certified.await;
                    continue;
                }
            };
            let now = (shared.clock)();
            let time = match when_to_cut(&survey, &limits, began, now, others_wait) {
                Cut::Now => return,
                Cut::At(time) => time,
            };
            select! {
                _ = certified => {},
                _ = arrival => context.sleep(ARRIVALS).await,
                _ = word => {},
                _ = context.sleep(time - now) => {},
            }
        }
    }

    async fn build<E: Spawner + RuntimeClock>(
        &self,
        context: &E,
        epoch: u64,
        mut ancestry: impl Ancestry<OrderedBlock>,
    ) -> Option<Digested<OrderedBlock>> {
        let shared = &self.0;
        let parent_block = ancestry.next().await?;
        let parent = parent_of(&parent_block);
        let height = parent.height + 1;
        if !shared.members.epochs.knows(&parent.charters) {
            // With what it says the parent may be the last block of its epoch; the next leader's turn comes soon.
            self.learn(context, &parent_block, &mut ancestry).await.ok()?;
            return None;
        }
        if shared.members.epochs.epoch_at(height) != epoch {
            return None;
        }
        let organisation = shared.members.epochs.own_at(height)?;
        let limits: BlockLimits = shared.members.epochs.charter_at(height).block;
        let mut attested = shared.members.certificates.for_child_of(&parent);
        let (ids, transactions) = match self.ordered(context, parent_block, &mut ancestry).await {
            Some(ordered) if ordered.len() <= BACKLOG_BLOCKS * limits.transactions_max as usize => {
                self.wait_for_work(context, &parent, &ordered).await;
                let allowed = shared.allows(&parent);
                // Newer than what was asked above: what allows transactions stands in the block.
                attested = shared.members.certificates.for_child_of(&parent);
                let shared = shared.clone();
                off_the_reactor(context, move || match allowed {
                    Allowed::Transactions => shared.mempool.take(&*shared.admission, &limits, &ordered),
                    Allowed::Empty | Allowed::Nothing => Default::default(),
                })
                .await
            }
            _ if shared.allows(&parent) == Allowed::Nothing => return None,
            _ => {
                debug!(height, "this node lags behind and proposes an empty block");
                context.sleep(BACKLOG_PAUSE).await;
                Default::default()
            }
        };
        let (ledger, now) = (shared.ledger, shared.clock_ms());
        let build = move || assemble(ledger, &parent, organisation, now, attested, transactions);
        let block = off_the_reactor(context, build).await;
        let digest = block.header.digest();
        shared.know_ids(digest, Arc::new(ids));
        Some(Digested::precomputed(OrderedBlock(block), consensus_digest(&digest)))
    }

    /// Whether the block is right, or why it is wrong for ever.
    async fn judge<E: Spawner + RuntimeClock>(
        &self,
        context: &E,
        consensus: &Context<sha256::Digest, PublicKey>,
        mut ancestry: impl Ancestry<OrderedBlock>,
    ) -> Result<(), Fault> {
        let shared = &self.0;
        let (Some(block), Some(mut parent)) = (ancestry.next().await, ancestry.next().await) else {
            // Without its parent nothing can be said about a block, neither good nor bad.
            return std::future::pending().await;
        };
        let mut ancestors = Ancestors { blocks: VecDeque::new(), further: ancestry };
        if !shared.members.epochs.knows(&parent.inner().0.header.charters) {
            // What is read on the way is looked at again below.
            let mut passed = vec![parent.clone()];
            self.learn_from(context, &parent, &mut ancestors.further, &mut passed).await?;
            ancestors.blocks = passed.into();
            parent = ancestors.blocks.pop_front().expect("it was put there");
        }
        let Block { header, attested, .. } = &block.inner().0;
        let epoch = consensus.round.epoch().get();
        if shared.members.epochs.epoch_at(header.height) != epoch {
            return Err(Fault::Epoch { epoch, height: header.height });
        }
        let proposer = shared.members.epochs.member_at(header.height, &consensus.leader);
        let proposer = proposer.expect("leaders are elected from the epoch's members");
        let charter = shared.members.epochs.charter_at(header.height);
        check(&block.inner().0, &Rules::of(&charter, shared.ledger), &parent_of(&parent), proposer)?;
        shared.work.proposed(proposer.into());
        let times = (header.timestamp_ms, parent_of(&parent).timestamp_ms);
        shared.members.clocks.see(proposer, times, (shared.clock)());
        shared.check_certificates(context, &block).await?;
        shared.members.epochs.learn(attested).map_err(Fault::Charters)?;
        let ids = shared.ids(context, &block).await?;
        check_distinct(&ids)?;
        self.check_ancestors(context, &ids, parent, ancestors).await?;
        let ahead = header.timestamp_ms.saturating_sub(shared.clock_ms());
        if ahead > 0 {
            context.sleep(Duration::from_millis(ahead)).await;
        }
        Ok(())
    }

    /// Learns the amended charters that `block` or one before it carries.
    async fn learn<E: Spawner>(
        &self,
        context: &E,
        block: &Digested<OrderedBlock>,
        ancestry: &mut impl Ancestry<OrderedBlock>,
    ) -> Result<(), Fault> {
        self.learn_from(context, block, ancestry, &mut Vec::new()).await
    }

    /// The same; `passed` gets the blocks before it that were looked at.
    async fn learn_from<E: Spawner>(
        &self,
        context: &E,
        block: &Digested<OrderedBlock>,
        ancestry: &mut impl Ancestry<OrderedBlock>,
        passed: &mut Vec<Digested<OrderedBlock>>,
    ) -> Result<(), Fault> {
        let shared = &self.0;
        let mut carrying = Vec::new();
        let mut looked_at = block.clone();
        while !shared.members.epochs.knows(&looked_at.inner().0.header.charters) {
            if !looked_at.inner().0.attested.charters.is_empty() {
                carrying.push(looked_at);
            }
            let Some(before) = ancestry.next().await else { return std::future::pending().await };
            passed.push(before.clone());
            looked_at = before;
        }
        for block in carrying.iter().rev() {
            shared.check_certificates(context, block).await?;
            shared.members.epochs.learn(&block.inner().0.attested).map_err(Fault::Charters)?;
        }
        Ok(())
    }

    /// Refuses a block that repeats what stands in an ancestor that is not final yet. A repetition of what is final
    /// is left to execution, which knows the ids of all times: here it would depend on how far a node has come.
    async fn check_ancestors<E: Spawner>(
        &self,
        context: &E,
        ids: &[TransactionId],
        parent: Digested<OrderedBlock>,
        mut ancestry: Ancestors<impl Ancestry<OrderedBlock>>,
    ) -> Result<(), Fault> {
        if ids.is_empty() {
            return Ok(());
        }
        let ids: FxHashSet<&TransactionId> = ids.iter().collect();
        let mut ancestor = parent;
        while ancestor.inner().0.header.height > self.0.final_height.load(Atomic::Acquire) {
            let held = self.0.ids(context, &ancestor).await?;
            if let Some(id) = held.iter().find(|id| ids.contains(id)) {
                return Err(Fault::Repeated { id: *id });
            }
            ancestor = match ancestry.next().await {
                Some(ancestor) => ancestor,
                None => return std::future::pending().await,
            };
        }
        Ok(())
    }
}

/// Blocks that were read already, and those before them.
struct Ancestors<A> {
    blocks: VecDeque<Digested<OrderedBlock>>,
    further: A,
}

impl<A: Ancestry<OrderedBlock>> Ancestors<A> {
    async fn next(&mut self) -> Option<Digested<OrderedBlock>> {
        match self.blocks.pop_front() {
            Some(block) => Some(block),
            None => self.further.next().await,
        }
    }
}

fn parent_of(block: &Digested<OrderedBlock>) -> Parent {
    // The digest of the block at height 0 is the charter's, not its header's.
    Parent { digest: plain_digest(&block.digest()), ..Parent::block(&block.inner().0.header) }
}

impl<E> commonware_consensus::Application<E> for Application
where
    E: RuntimeClock + Spawner + Metrics + Send + 'static,
{
    type SigningScheme = Scheme;
    type Context = Context<sha256::Digest, PublicKey>;
    type Block = OrderedBlock;
    type Input = ();

    async fn propose(
        &mut self,
        (context, consensus): (E, Self::Context),
        ancestry: impl Ancestry<OrderedBlock>,
        (): (),
    ) -> Option<Digested<OrderedBlock>> {
        let built = self.build(&context, consensus.round.epoch().get(), ancestry).await;
        self.0.led(&consensus.leader);
        built
    }

    async fn verify(
        &mut self,
        (context, consensus): (E, Self::Context),
        ancestry: impl Ancestry<OrderedBlock>,
    ) -> bool {
        self.0.led(&consensus.leader);
        match self.judge(&context, &consensus, ancestry).await {
            Ok(()) => true,
            Err(fault) => {
                warn!(leader = %consensus.leader, round = %consensus.round, %fault, "refused a block for ever");
                false
            }
        }
    }
}

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::*;
    use crate::MempoolLimits;
    use crate::bft::network;
    use crate::simulation::{AnyBytes, charter, node_key};
    use commonware_consensus::Application as _;
    use commonware_consensus::marshal::ancestry::from_iter;
    use commonware_consensus::types::{Epoch, Round, View};
    use commonware_runtime::{Runner as _, Supervisor as _, deterministic};
    use std::time::UNIX_EPOCH;
    use types::Charters;

    const BEGIN: Duration = Duration::from_secs(1_000);

    /// Runs `test` with the application of organisation 0, at second 1,000.
    fn with_application<F: Future<Output = ()>>(
        test: impl FnOnce(deterministic::Context, Application) -> F + Send + 'static,
    ) {
        deterministic::Runner::timed(Duration::from_secs(10_000)).start(|context| async move {
            let time = context.child("clock");
            let clock: Clock =
                Arc::new(move || time.current().duration_since(UNIX_EPOCH).unwrap_or_default());
            let limits = MempoolLimits::default();
            let charters = Charters::new(Arc::new(charter(1, 4)));
            let shared = network::shared(charters, &node_key(0), limits, Arc::new(AnyBytes), clock);
            context.sleep_until(UNIX_EPOCH + BEGIN).await;
            test(context, Application(shared)).await;
        });
    }

    fn genesis(application: &Application) -> Digested<OrderedBlock> {
        OrderedBlock::genesis(application.0.ledger).digested()
    }

    fn child(
        application: &Application,
        parent: &Digested<OrderedBlock>,
        proposer: u16,
        time: Duration,
        transactions: &[&'static str],
    ) -> Digested<OrderedBlock> {
        let transactions = transactions.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        let (ledger, time) = (application.0.ledger, time.as_millis() as u64);
        OrderedBlock(assemble(ledger, &parent_of(parent), proposer, time, Attested::default(), transactions))
            .digested()
    }

    fn consensus(leader: usize, parent: &Digested<OrderedBlock>) -> Context<sha256::Digest, PublicKey> {
        Context {
            round: Round::new(Epoch::zero(), View::new(9)),
            leader: crate::members::committee::public_key(&node_key(leader).public_key())
                .expect("a good key"),
            parent: (View::new(8), parent.digest()),
        }
    }

    /// The verdict about the last of `chain`, which member 1 leads.
    async fn verdict(
        context: &deterministic::Context,
        application: &Application,
        chain: &[&Digested<OrderedBlock>],
    ) -> bool {
        let consensus = consensus(1, chain[chain.len() - 2]);
        let ancestry = from_iter(chain.iter().rev().map(|block| (*block).clone()));
        application.clone().verify((context.child("verify"), consensus), ancestry).await
    }

    async fn proposal(
        context: &deterministic::Context,
        application: &Application,
        chain: &[&Digested<OrderedBlock>],
    ) -> Digested<OrderedBlock> {
        let consensus = consensus(0, chain[chain.len() - 1]);
        let ancestry = from_iter(chain.iter().rev().map(|block| (*block).clone()));
        application
            .clone()
            .propose((context.child("propose"), consensus), ancestry, ())
            .await
            .expect("a block")
    }

    #[test]
    fn blocks_are_refused_for_what_is_wrong_for_ever_and_for_nothing_else() {
        with_application(|context, application| async move {
            let zero = genesis(&application);
            let good = child(&application, &zero, 1, BEGIN, &["a", "b"]);
            assert!(verdict(&context, &application, &[&zero, &good]).await);
            let of_another = child(&application, &zero, 2, BEGIN, &[]);
            assert!(!verdict(&context, &application, &[&zero, &of_another]).await, "the leader is member 1");
            let bad = child(&application, &zero, 1, BEGIN, &["a", "bad"]);
            assert!(!verdict(&context, &application, &[&zero, &bad]).await, "a refused transaction");
            let twice = child(&application, &zero, 1, BEGIN, &["a", "a"]);
            assert!(!verdict(&context, &application, &[&zero, &twice]).await, "the same transaction twice");

            let between = child(&application, &good, 2, BEGIN, &["c"]);
            let repeating = child(&application, &between, 1, BEGIN, &["d", "b"]);
            let chain = [&zero, &good, &between, &repeating];
            assert!(!verdict(&context, &application, &chain).await, "an ancestor that is not final holds b");
            application.0.final_height.store(1, Atomic::Release);
            assert!(
                verdict(&context, &application, &chain).await,
                "execution judges repetitions of what is final"
            );
        });
    }

    #[test]
    fn a_block_from_the_future_is_waited_for() {
        with_application(|context, application| async move {
            let zero = genesis(&application);
            let early = child(&application, &zero, 1, BEGIN + Duration::from_secs(15), &[]);
            assert!(verdict(&context, &application, &[&zero, &early]).await);
            assert!((application.0.clock)() >= BEGIN + Duration::from_secs(15));
            let trouble = application.0.members.trouble_with_clocks(0, BEGIN).expect("a clock is wrong");
            assert!(trouble.starts_with("org2: a clock that is"), "{trouble}");
        });
    }

    #[test]
    fn proposals_leave_out_what_ancestors_hold_until_it_is_delivered() {
        with_application(|context, application| async move {
            let shared = application.0.clone();
            let texts = ["a", "b", "c"].map(|text| Bytes::from_static(text.as_bytes()));
            assert!(
                shared.submit(texts.to_vec(), Placing::Anywhere, Source::Client).iter().all(Result::is_ok)
            );
            let zero = genesis(&application);
            let first = child(&application, &zero, 1, BEGIN, &["b"]);
            let second = proposal(&context, &application, &[&zero, &first]).await;
            assert_eq!(second.inner().0.transactions, [texts[0].clone(), texts[2].clone()]);
            assert_eq!(second.inner().0.header.proposer, 0);
            // The first block did not become final: its transaction is still here, and goes into another block.
            let instead = proposal(&context, &application, &[&zero]).await;
            assert_eq!(instead.inner().0.transactions, texts);
        });
    }

    #[test]
    fn an_idle_leader_waits_for_the_idle_time_unless_it_hears_of_work_or_gets_some() {
        with_application(|context, application| async move {
            let (shared, zero) = (application.0.clone(), genesis(&application));
            let limits = shared.members.epochs.charter_at(1).block;
            let began = (shared.clock)();
            let empty = proposal(&context, &application, &[&zero]).await;
            assert!(empty.inner().0.transactions.is_empty());
            // The simulated clock moves a millisecond whenever tasks run.
            let (idle, slack) = (Duration::from_millis(limits.idle_ms.into()), Duration::from_millis(20));
            assert!((idle..idle + slack).contains(&((shared.clock)() - began)));

            let began = (shared.clock)();
            let late = shared.clone();
            context.child("client").spawn(|context| async move {
                context.sleep(Duration::from_millis(100)).await;
                late.submit(vec![Bytes::from_static(b"late")], Placing::Anywhere, Source::Client)
            });
            let block = proposal(&context, &application, &[&zero]).await;
            assert_eq!(block.inner().0.transactions.len(), 1);
            let fill = Duration::from_millis(limits.fill_ms.into());
            assert!((shared.clock)() - began <= Duration::from_millis(100) + fill + slack);
        });
    }

    /// Tells clients at once that what they sent is dropped.
    struct Drops;

    impl Admission for Drops {
        fn check(
            &self,
            place: Place<'_>,
            transactions: &[Bytes],
        ) -> Vec<Result<TransactionId, types::RejectReason>> {
            AnyBytes.check(place, transactions)
        }

        fn may_drop(&self) -> bool {
            true
        }
    }

    #[test]
    fn transactions_are_given_to_whom_they_help_and_never_where_their_clients_may_be_told_that_they_are_dropped()
     {
        let giving = |members: usize, admission: Arc<dyn Admission>| {
            let charters = Charters::new(Arc::new(charter(1, members)));
            let clock = Arc::new(|| BEGIN);
            network::shared(charters, &node_key(0), MempoolLimits::default(), admission, clock).giving()
        };
        assert_eq!(giving(4, Arc::new(AnyBytes)), Giving::NextLeader);
        assert_eq!(giving(7, Arc::new(AnyBytes)), Giving::NextLeader);
        assert_eq!(giving(8, Arc::new(AnyBytes)), Giving::Everybody);
        assert_eq!(giving(4, Arc::new(Drops)), Giving::Nobody);
        assert_eq!(giving(8, Arc::new(Drops)), Giving::Nobody);
    }

    #[test]
    fn where_everybody_has_everything_half_of_the_room_is_for_what_others_bring() {
        let charters = Charters::new(Arc::new(charter(1, 9)));
        let limits = MempoolLimits { transactions_max: 4, ..MempoolLimits::default() };
        let shared = network::shared(charters, &node_key(0), limits, Arc::new(AnyBytes), Arc::new(|| BEGIN));
        let submit = |text: &'static str, source| {
            shared.submit(vec![Bytes::from_static(text.as_bytes())], Placing::Anywhere, source).remove(0)
        };
        assert!(submit("a", Source::Client).is_ok() && submit("b", Source::Member).is_ok());
        assert_eq!(submit("c", Source::Client), Err(SubmitError::Full { pending: 2, limit: 2 }));
        assert!(submit("c", Source::Member).is_ok() && submit("d", Source::Member).is_ok());
        assert_eq!(submit("e", Source::Member), Err(SubmitError::Full { pending: 4, limit: 4 }));
    }

    #[test]
    fn a_node_that_does_not_keep_up_proposes_empty_blocks() {
        with_application(|context, application| async move {
            let shared = application.0.clone();
            shared.submit(vec![Bytes::from_static(b"waits")], Placing::Anywhere, Source::Client);
            let mut chain = vec![genesis(&application)];
            for height in 0..=LAG_MAX as usize {
                chain.push(child(&application, &chain[height], 1, BEGIN, &[]));
            }
            let chain: Vec<_> = chain.iter().collect();
            assert!(proposal(&context, &application, &chain).await.inner().0.transactions.is_empty());
            shared.delivered.store(1, Atomic::Release);
            assert_eq!(proposal(&context, &application, &chain).await.inner().0.transactions.len(), 1);
        });
    }
}
