//! Connections to the other members: encrypted, each side authenticated by the node key in the charter.

use super::committee;
use crate::OrderingError;
use commonware_cryptography::{ChaCha20Poly1305, ed25519};
use commonware_p2p::authenticated::lookup::{self, Network, Oracle};
use commonware_p2p::{AddressableManager as _, AddressableTrackedPeers};
use commonware_runtime::{Quota, Supervisor as _, tokio::Context};
use commonware_stream::cups::{self, Cups};
use commonware_stream::sake::{self, Sake};
use commonware_utils::{NZU32, NZUsize, ordered::Map};
use crypto::SecretKey;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::time::Duration;
use tracing::{error, warn};
use types::{Charters, limits};

pub(super) type Handshake = Cups<Sake<ed25519::PrivateKey>, ChaCha20Poly1305>;
type Sender = lookup::Sender<ed25519::PublicKey, Context>;
type Receiver = lookup::Receiver<ed25519::PublicKey>;

/// This node's ends of so many channels.
type Channels<const CHANNELS: usize> = [(Sender, Receiver); CHANNELS];

/// Messages between two parts of the network.
const MAILBOX: NonZeroUsize = NZUsize!(1_024);

/// Whom the network connects with.
pub(crate) trait Peers: Send {
    /// The node is in this epoch, and these charters are known: the members of the epoch, of the one before and of those
    /// to come are its peers.
    fn track(&mut self, charters: &Charters, epoch: u64);
}

/// How this node meets the others.
pub(crate) struct Connection<'a> {
    pub charters: &'a Charters,
    /// Proves to the others who this node is.
    pub node_key: &'a SecretKey,
    /// Where it listens.
    pub listen: SocketAddr,
}

/// Refuses a port that another process has; the network itself would only say so by a panic.
pub(crate) fn check_port(address: SocketAddr) -> Result<(), OrderingError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(OrderingError::PortBusy(address)),
        Err(error) => Err(OrderingError::Listen { address, reason: error.to_string() }),
    }
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

/// How both sides of a connection prove their keys.
pub(super) fn handshake(node_key: &SecretKey) -> Handshake {
    Cups::<_, ChaCha20Poly1305>::new(
        Sake {
            signer: committee::private_key(node_key),
            synchrony_bound: Duration::from_secs(10),
            max_handshake_age: Duration::from_secs(20),
            version: sake::Version::V1,
        },
        cups::Version::V1,
    )
}

/// Prepares the network, with a channel per quota; it runs once it is started.
pub(crate) fn join<const CHANNELS: usize>(
    context: &Context,
    config: &Connection<'_>,
    quotas: [(u64, Quota); CHANNELS],
    max_message_size: u32,
) -> (Network<Context, Handshake>, Oracle<ed25519::PublicKey>, Channels<CHANNELS>) {
    let handshake = handshake(config.node_key);
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
            max_message_size,
            max_peers_per_set: NZUsize!(room(config.charters)),
            mailbox_size: MAILBOX,
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
    let channels = quotas.map(|(channel, quota)| network.register(channel, quota));
    (network, oracle, channels)
}

/// Keeps connections to the members that `oracle` is told of, in a network of [`join`] with the same charters.
pub(crate) fn tracked(oracle: Oracle<ed25519::PublicKey>, charters: &Charters) -> Box<dyn Peers> {
    Box::new(Addressed { oracle, room: room(charters), last: None })
}
