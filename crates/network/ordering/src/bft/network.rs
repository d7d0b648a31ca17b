//! Connections to the other members: encrypted, each side authenticated by the node key in the charter.

use super::application::{KnownIds, Shared};
use super::block::{BlockRules, OrderedBlock};
use super::config::{channel, memory};
use super::epochs::Epochs;
use super::messages::Messages;
use super::wiring::{Channels, Peers};
use super::work::Work;
use super::{BftConfig, committee};
use crate::certificates::Certificates;
use crate::mempool::{Clock, Mempool};
use crate::{Admission, MempoolLimits, OrderingError};
use commonware_consensus::marshal::{self, standard::Standard};
use commonware_consensus::simplex::{self, scheme::ed25519::Scheme};
use commonware_cryptography::{ChaCha20Poly1305, ed25519, sha256};
use commonware_p2p::authenticated::lookup::{self, Network, Oracle};
use commonware_p2p::utils::mux::prefixed;
use commonware_p2p::{AddressableManager as _, AddressableTrackedPeers, max_message_size as largest};
use commonware_runtime::{Quota, Supervisor as _, tokio::Context};
use commonware_stream::cups::{self, Cups};
use commonware_stream::sake::{self, Sake};
use commonware_utils::{NZU32, NZUsize, ordered::Map};
use crypto::{Digest, SecretKey};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{error, warn};
use types::{Charters, limits};

type Handshake = Cups<Sake<ed25519::PrivateKey>, ChaCha20Poly1305>;
type Sender = lookup::Sender<ed25519::PublicKey, Context>;
type Receiver = lookup::Receiver<ed25519::PublicKey>;

/// Refuses the configuration of a ledger that is ordered in another way.
pub(super) fn check_service(config: &BftConfig) -> Result<(), OrderingError> {
    let charter = config.charters.founding();
    match charter.ordering.as_str() {
        "bft" => Ok(()),
        other => Err(OrderingError::OtherService { expected: "bft", found: other.to_string() }),
    }
}

/// Refuses a port that another process has; the network itself would only say so by a panic.
pub(super) fn check_port(address: SocketAddr) -> Result<(), OrderingError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(OrderingError::PortBusy(address)),
        Err(error) => Err(OrderingError::Listen { address, reason: error.to_string() }),
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
        epochs: Epochs::new(charters, node_key.clone()),
        work: Arc::new(Work::new(clock.clone())),
        mempool: Arc::new(Mempool::new(limits, clock.clone())),
        admission,
        certificates: Certificates::default(),
        checks_certificates: true,
        messages: Arc::new(Messages::new()),
        exchange: Arc::new(Messages::new()),
        clock,
        final_height: AtomicU64::new(0),
        final_view: AtomicU64::new(0),
        delivered: AtomicU64::new(0),
        reached: watch::Sender::new(0),
        ids: parking_lot::Mutex::new(KnownIds::default()),
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

/// Connects with members as the charters say where they are.
struct Addressed {
    oracle: Oracle<ed25519::PublicKey>,
    /// How many peers there may be; the network has queues for no more.
    room: usize,
    /// Number of the last set of peers.
    last: Option<u64>,
}

impl Peers for Addressed {
    fn track(&mut self, charters: &Charters, epoch: u64) {
        // Grows with the epoch, and within one with the charters that are known.
        let number = epoch * (limits::AMENDMENTS_PENDING_MAX as u64 + 1) + charters.newest().charter.version;
        if self.last.is_some_and(|last| last >= number) {
            return;
        }
        self.last = Some(number);
        let version = usize::try_from(epoch).unwrap_or(usize::MAX);
        let reigns = charters.reigns();
        let others = reigns.iter().enumerate().skip(version.saturating_sub(1));
        let others = others.filter(|(other, _)| *other != version).map(|(_, reign)| reign).rev();
        let mut secondary: Vec<_> = Vec::new();
        for reign in others {
            match committee::addresses(&reign.charter) {
                Ok(addresses) => secondary.extend(addresses),
                Err(error) => warn!(%error, "nobody can be reached as an amended charter says"),
            }
        }
        let primary = reigns.get(version).map(|reign| committee::addresses(&reign.charter));
        match primary {
            Some(Ok(primary)) => {
                let mut primary: Vec<_> = primary.into_iter().collect();
                if primary.len() >= self.room {
                    error!(
                        members = primary.len(),
                        room = self.room,
                        "the ledger has more members than this node can connect with; restart it"
                    );
                    primary.truncate(self.room - 1);
                }
                // One place is this node's own, which is not always a member.
                secondary.truncate(self.room - 1 - primary.len());
                let (primary, secondary) = (Map::from_iter_dedup(primary), Map::from_iter_dedup(secondary));
                self.oracle.track(number, AddressableTrackedPeers::new(primary, secondary));
            }
            Some(Err(error)) => warn!(%error, "nobody can be reached as the charter says"),
            None => {}
        }
    }
}

/// Peers at a time of a node that starts with these charters: the members of an epoch, and of the one before and those to
/// come. Every peer costs 2 MB of queues whether it is there or not (one second's quota of every channel, twice), so there
/// is room for a ledger that doubles until the node is started again, and for no more.
fn room(charters: &Charters) -> usize {
    let members = charters.newest().charter.organisations.len();
    (2 * members).max(members + 12).min(4 * limits::ORGANISATIONS_MAX)
}

/// Prepares the network; it runs once it is started.
pub(super) fn join(
    context: &Context,
    config: &BftConfig,
) -> (Network<Context, Handshake>, Oracle<ed25519::PublicKey>, Channels<Sender, Receiver>) {
    let handshake = Cups::<_, ChaCha20Poly1305>::new(
        Sake {
            signer: committee::private_key(&config.node_key),
            synchrony_bound: Duration::from_secs(10),
            max_handshake_age: Duration::from_secs(20),
            version: sake::Version::V1,
        },
        cups::Version::V1,
    );
    let (mut network, oracle) = Network::new(
        context.child("network"),
        lookup::Config {
            handshake,
            namespace: committee::namespace(config.charters.founding()),
            listen: config.listen,
            // Members meet on one machine, in one data centre or behind address translation: the key counts.
            allow_private_ips: true,
            allow_dns: true,
            bypass_ip_check: true,
            max_message_size: max_message_size(),
            max_peers_per_set: NZUsize!(room(&config.charters)),
            mailbox_size: memory::MAILBOX,
            send_batch_size: NZUsize!(8),
            handshake_timeout: Duration::from_secs(5),
            dial_timeout: Duration::from_secs(5),
            // A member that was killed and restarted is back within seconds.
            peer_connection_cooldown: Duration::from_millis(500),
            max_concurrent_handshakes: NZU32!(256),
            allowed_handshake_rate_per_ip: Quota::per_second(NZU32!(64)),
            allowed_handshake_rate_per_subnet: Quota::per_second(NZU32!(256)),
            ping_frequency: Duration::from_secs(5),
            dial_frequency: Duration::from_millis(100),
            tracked_peer_sets: NZUsize!(1),
            // A member that misbehaved because of a fault, since repaired, gets another chance after a while.
            block_duration: Duration::from_secs(600),
        },
    );
    let channels: Vec<_> =
        channel::quotas().map(|(channel, quota)| network.register(channel, quota)).collect();
    let Ok(channels) = channels.try_into() else { unreachable!("there are as many channels as quotas") };
    (network, oracle, channels)
}

/// Keeps connections to the members that `oracle` is told of, in a network of [`join`] with the same charters.
pub(super) fn tracked(oracle: Oracle<ed25519::PublicKey>, charters: &Charters) -> Box<dyn Peers> {
    Box::new(Addressed { oracle, room: room(charters), last: None })
}
