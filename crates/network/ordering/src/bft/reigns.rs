//! Runs consensus, one epoch after the other.
//!
//! ```text
//!  epoch 0: simplex ──▶ … ──▶ last block ─┐ final, delivered
//!                                         └─▶ epoch 1: simplex, from the last block on, with the new members
//! ```
//!
//! Votes, certificates and what is asked for have a channel of their own in every epoch ([`Muxer`]). A node whose key is
//! no member's follows an epoch without voting.

use super::application::Shared;
use super::config::{Timing, memory};
use super::own_votes::Watched;
use super::wiring::MarshalMailbox;
use crate::members::Peers;
use commonware_consensus::marshal::Identifier;
use commonware_consensus::simplex::config::{Floor, ForwardPolicy, SkipPolicy};
use commonware_consensus::simplex::types::{Activity, Context as View};
use commonware_consensus::simplex::{self, Plan, SkipBudget, elector::RoundRobin, scheme::ed25519::Scheme};
use commonware_consensus::types::{Epoch, Height, ViewDelta};
use commonware_consensus::{CertifiableAutomaton, Relay, Reporter};
use commonware_cryptography::{
    Digestible as _, Sha256, certificate::Scheme as _, ed25519::PublicKey, sha256,
};
use commonware_macros::select;
use commonware_p2p::utils::mux::{MuxHandle, Muxer};
use commonware_p2p::{Blocker, Receiver, Sender};
use commonware_parallel::Sequential;
use commonware_runtime::buffer::paged::CacheRef;
use commonware_runtime::{Clock, Handle, Metrics, Spawner, Storage};
use commonware_utils::NonZeroDuration;
use rand_core::CryptoRng;
use std::sync::Arc;

/// What consensus of every epoch needs.
pub(super) struct Reigns<B, A> {
    pub(super) shared: Arc<Shared>,
    pub(super) marshal: MarshalMailbox,
    pub(super) blocker: B,
    /// Proposes, judges, sends on and hears.
    pub(super) automaton: A,
    pub(super) peers: Box<dyn Peers>,
    pub(super) prefix: String,
    pub(super) page_cache: CacheRef,
    /// Digest of the block at height 0.
    pub(super) genesis: sha256::Digest,
}

impl<B, A> Reigns<B, A>
where
    B: Blocker<PublicKey = PublicKey>,
    A: CertifiableAutomaton<Context = View<sha256::Digest, PublicKey>, Digest = sha256::Digest>
        + Relay<Digest = sha256::Digest, PublicKey = PublicKey, Plan = Plan<PublicKey>>
        + Reporter<Activity = Activity<Scheme, sha256::Digest>>,
{
    /// Starts with the epoch of the block after the one that is delivered. Ends when consensus ends.
    pub(super) fn start<E, S, R>(self, context: E, channels: [(S, R); 3]) -> Handle<()>
    where
        E: Clock + CryptoRng + Spawner + Storage + Metrics,
        S: Sender<PublicKey = PublicKey>,
        R: Receiver<PublicKey = PublicKey>,
    {
        context.spawn(move |context| self.run(context, channels))
    }

    async fn run<E, S, R>(mut self, context: E, channels: [(S, R); 3])
    where
        E: Clock + CryptoRng + Spawner + Storage + Metrics,
        S: Sender<PublicKey = PublicKey>,
        R: Receiver<PublicKey = PublicKey>,
    {
        let mut number = 0;
        let mut channels = channels.map(|(sender, receiver)| {
            number += 1;
            let mux = context.child("mux").with_attribute("channel", number);
            let (mux, handle) = Muxer::new(mux, sender, receiver);
            mux.start();
            handle
        });
        let mut reached = self.shared.reached.subscribe();
        let mut running: Option<Handle<()>> = None;
        loop {
            let epoch = self.shared.members.epochs.epoch_at(*reached.borrow_and_update() + 1);
            let before = running.take();
            let Some(consensus) = self.enter(&context, epoch, &mut channels).await else { return };
            if let Some(before) = before {
                // The last block of its epoch is final.
                before.abort();
            }
            let mut consensus = consensus;
            loop {
                let changed = self.shared.members.epochs.changed();
                self.peers.track(&self.shared.members.epochs.charters(), epoch);
                let over =
                    self.shared.members.epochs.last_of(epoch).is_some_and(|last| *reached.borrow() >= last);
                if over {
                    break;
                }
                select! {
                    _ = &mut consensus => return,
                    reached = reached.changed() => if reached.is_err() { return },
                    _ = changed => {},
                }
            }
            running = Some(consensus);
        }
    }

    /// What an epoch begins with: the last block of the one before; where the node has joined from a checkpoint behind
    /// that, the newest block of the epoch that was finalized by itself. The checkpoint's was. Nothing where the node is
    /// ending.
    async fn floor(&mut self, first: u64) -> Option<Floor<Scheme, sha256::Digest>> {
        let mut reached = self.shared.reached.subscribe();
        loop {
            let Some(last) = first.checked_sub(1) else { return Some(Floor::Genesis(self.genesis)) };
            if let Some(last) = self.marshal.get_block(Identifier::Height(Height::new(last))).await {
                return Some(Floor::Genesis(last.digest()));
            }
            let top = *reached.borrow_and_update();
            for height in (first..=top).rev() {
                if let Some(finalization) = self.marshal.get_finalization(Height::new(height)).await {
                    return Some(Floor::Finalized(finalization));
                }
            }
            // The checkpoint's block is on its way.
            reached.changed().await.ok()?;
        }
    }

    /// Starts consensus of an epoch; nothing where the node is ending.
    async fn enter<E, S>(
        &mut self,
        context: &E,
        epoch: u64,
        channels: &mut [MuxHandle<S>; 3],
    ) -> Option<Handle<()>>
    where
        E: Clock + CryptoRng + Spawner + Storage + Metrics,
        S: Sender<PublicKey = PublicKey>,
    {
        let epochs = self.shared.members.epochs.clone();
        let first = epochs.first_of(epoch)?;
        let floor = self.floor(first).await?;
        let charter = epochs.charter_at(first);
        let scheme = epochs.scheme(epoch)?;
        let timing = Timing::of(&charter.block);
        let place = epochs.own_at(first);
        let own = scheme.me().and_then(|membership| membership.signer());
        let reporter = Watched::new(self.automaton.clone(), self.shared.own_votes.clone(), own);
        tracing::info!(
            epoch,
            first,
            members = charter.members().count(),
            place,
            "an epoch of ordering begins"
        );
        let engine = simplex::Engine::new(
            context.child("simplex").with_attribute("epoch", epoch),
            simplex::Config {
                scheme: (*scheme).clone(),
                elector: RoundRobin::<Sha256>::default(),
                blocker: self.blocker.clone(),
                automaton: self.automaton.clone(),
                relay: self.automaton.clone(),
                reporter,
                strategy: Sequential,
                // Of this key alone: votes of one that it has replaced are another's.
                partition: format!("{}-simplex-{epoch}-{:.16}", self.prefix, epochs.own_key().to_string()),
                mailbox_size: memory::MAILBOX,
                epoch: Epoch::new(epoch),
                floor,
                replay_buffer: memory::FILE_BUFFER,
                write_buffer: memory::FILE_BUFFER,
                page_cache: self.page_cache.clone(),
                leader_timeout: timing.leader,
                certification_timeout: timing.certification,
                timeout_retry: timing.retry,
                view_retention: ViewDelta::new(64),
                skip: SkipPolicy::Enabled { timeout: timing.skip, budget: SkipBudget::Participants },
                fetch_timeout: NonZeroDuration::new_panic(timing.fetch),
                fetch_retry_delay: timing.fetch_retry,
                // Whoever else lacks the block fetches it: each member would send it to all whose votes come late.
                forward: ForwardPolicy::SilentLeader,
                track_historical_votes: false,
            },
        );
        let [votes, certificates, resolver] = channels;
        let votes = votes.register(epoch).await.ok()?;
        let certificates = certificates.register(epoch).await.ok()?;
        let resolver = resolver.register(epoch).await.ok()?;
        Some(engine.start(votes, certificates, resolver))
    }
}
