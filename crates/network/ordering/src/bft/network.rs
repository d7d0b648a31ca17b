//! What a member shares among its parts, and how long its messages are.

use super::BftConfig;
use super::application::{KnownIds, Shared};
use super::block::{BlockRules, OrderedBlock};
use super::work::Work;
use crate::lacking::Lacking;
use crate::members::Members;
use crate::mempool::{Clock, Mempool};
use crate::{Admission, MempoolLimits, OrderingError};
use commonware_consensus::marshal::{self, standard::Standard};
use commonware_consensus::simplex::{self, scheme::ed25519::Scheme};
use commonware_cryptography::sha256;
use commonware_p2p::max_message_size as largest;
use commonware_p2p::utils::mux::prefixed;
use crypto::{Digest, SecretKey};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::watch;
use types::{Charters, limits};

/// Refuses the configuration of a ledger that is ordered in another way.
pub(super) fn check_service(config: &BftConfig) -> Result<(), OrderingError> {
    let charter = config.charters.founding();
    match charter.ordering.as_str() {
        "bft" => Ok(()),
        other => Err(OrderingError::OtherService { expected: "bft", found: other.to_string() }),
    }
}

/// What the parts of one member share. The charters' keys have been checked.
pub(crate) fn shared(
    charters: Charters,
    node_key: &SecretKey,
    limits: MempoolLimits,
    admission: Arc<dyn Admission>,
    clock: Clock,
) -> Arc<Shared> {
    Arc::new(Shared {
        ledger: charters.ledger(),
        members: Members::new(charters, node_key),
        work: Arc::new(Work::new(clock.clone())),
        own_votes: Arc::default(),
        mempool: Arc::new(Mempool::new(limits, clock.clone())),
        admission,
        checks_certificates: true,
        clock,
        final_height: AtomicU64::new(0),
        final_view: AtomicU64::new(0),
        lacking: Lacking::default(),
        delivered: AtomicU64::new(0),
        reached: watch::Sender::new(0),
        ids: parking_lot::Mutex::new(KnownIds::default()),
        leader: parking_lot::Mutex::new(None),
    })
}

/// The longest message between members of any ledger: a block with a certificate around it. The charter may change while
/// the network runs, so it is what any charter may allow.
pub(crate) fn max_message_size() -> u32 {
    let members = limits::ORGANISATIONS_MAX as u32;
    let rules = BlockRules::of(Digest::ZERO);
    largest(&[
        marshal::max_payload_size::<Standard<OrderedBlock>, Scheme>(members, &rules),
        prefixed(simplex::max_payload_size::<Scheme, sha256::Digest>(members)),
    ])
}
