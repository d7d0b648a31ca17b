//! Connections to the other members: encrypted, each side authenticated by the node key in the charter.

use super::application::{KnownIds, Shared};
use super::block::{BlockRules, OrderedBlock};
use super::config::{channel, memory};
use super::messages::Messages;
use super::wiring::Channels;
use super::work::Work;
use super::{BftConfig, committee};
use crate::certificates::Certificates;
use crate::mempool::{Clock, Mempool};
use crate::{Admission, MempoolLimits, OrderingError};
use commonware_consensus::marshal::{self, standard::Standard};
use commonware_consensus::simplex::{self, scheme::ed25519::Scheme};
use commonware_cryptography::{ChaCha20Poly1305, ed25519, sha256};
use commonware_p2p::authenticated::lookup::{self, Network, Oracle};
use commonware_p2p::{Address, AddressableManager as _, max_message_size as largest};
use commonware_runtime::{Quota, Supervisor as _, tokio::Context};
use commonware_stream::cups::{self, Cups};
use commonware_stream::sake::{self, Sake};
use commonware_utils::{NZU32, NZUsize, ordered::Map};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use types::{CertificateRules, Charter};

pub(super) type Addresses = Map<ed25519::PublicKey, Address>;
type Handshake = Cups<Sake<ed25519::PrivateKey>, ChaCha20Poly1305>;
type Sender = lookup::Sender<ed25519::PublicKey, Context>;
type Receiver = lookup::Receiver<ed25519::PublicKey>;

/// Refuses a configuration that is not that of a member.
pub(super) fn check_member(config: &BftConfig) -> Result<(), OrderingError> {
    let charter = &config.charter;
    if charter.ordering != "bft" {
        return Err(OrderingError::OtherService { expected: "bft", found: charter.ordering.clone() });
    }
    let (organisation, members) = (config.organisation, charter.organisations.len());
    let member = charter
        .organisations
        .get(organisation)
        .ok_or(OrderingError::NoSuchOrganisation { organisation, members })?;
    if member.node_key != config.node_key.public_key() {
        return Err(OrderingError::WrongKey {
            organisation: member.name.clone(),
            expected: member.node_key,
            found: config.node_key.public_key(),
        });
    }
    Ok(())
}

/// Refuses a port that another process has; the network itself would only say so by a panic.
pub(super) fn check_port(address: SocketAddr) -> Result<(), OrderingError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(OrderingError::PortBusy(address)),
        Err(error) => Err(OrderingError::Listen { address, reason: error.to_string() }),
    }
}

/// What the parts of one member share. The charter's keys have been checked.
pub(crate) fn shared(
    charter: &Arc<Charter>,
    organisation: usize,
    limits: MempoolLimits,
    admission: Arc<dyn Admission>,
    clock: Clock,
) -> Arc<Shared> {
    let members = committee::members(charter).expect("the keys of a charter are checked before it is used");
    Arc::new(Shared {
        charter: charter.clone(),
        ledger: charter.ledger(),
        organisation: organisation as u16,
        work: Arc::new(Work::new(members.len(), clock.clone())),
        members,
        mempool: Arc::new(Mempool::new(limits, clock.clone())),
        admission,
        certificates: Certificates::default(),
        rules: CertificateRules::new(charter),
        messages: Arc::new(Messages::new()),
        clock,
        final_height: AtomicU64::new(0),
        final_view: AtomicU64::new(0),
        delivered: AtomicU64::new(0),
        ids: parking_lot::Mutex::new(KnownIds::default()),
    })
}

/// The longest message between members: a block with a certificate around it.
pub(crate) fn max_message_size(charter: &Charter) -> u32 {
    let members = charter.organisations.len() as u32;
    let rules = BlockRules { ledger: charter.ledger(), limits: charter.block };
    largest(&[
        marshal::max_payload_size::<Standard<OrderedBlock>, Scheme>(members, &rules),
        simplex::max_payload_size::<Scheme, sha256::Digest>(members),
    ])
}

/// Prepares the network; it runs once it is started.
pub(super) fn join(
    context: &Context,
    config: &BftConfig,
    shared: &Shared,
    addresses: Addresses,
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
    let members = NonZeroUsize::new(shared.members.len()).expect("a charter has members");
    let (mut network, mut oracle) = Network::new(
        context.child("network"),
        lookup::Config {
            handshake,
            namespace: committee::namespace(&config.charter),
            listen: config.listen,
            // Members meet on one machine, in one data centre or behind address translation: the key counts.
            allow_private_ips: true,
            allow_dns: true,
            bypass_ip_check: true,
            max_message_size: max_message_size(&config.charter),
            max_peers_per_set: members,
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
    oracle.track(0, addresses);
    let channels: Vec<_> =
        channel::quotas().map(|(channel, quota)| network.register(channel, quota)).collect();
    let Ok(channels) = channels.try_into() else { unreachable!("there are as many channels as quotas") };
    (network, oracle, channels)
}
