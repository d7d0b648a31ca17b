//! The charter's members as the consensus crates see them: sorted by key, where the charter has its own order.

use crate::{CertificateError, OrderingError};
use bytes::Bytes;
use commonware_codec::DecodeExt as _;
use commonware_cryptography::ed25519;
use commonware_p2p::{Address, Ingress};
use commonware_utils::{Hostname, ordered::Map, ordered::Set};
use crypto::SecretKey;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use types::{Charter, Organisation};

/// Separates the votes of one ledger from everything else that its members sign.
pub(crate) fn namespace(charter: &Charter) -> Vec<u8> {
    [b"entente ordering 1\0".as_slice(), &charter.ledger().0].concat()
}

/// A key in the form of the consensus crates; `None` for bytes that are no curve point.
pub(crate) fn public_key(key: &crypto::PublicKey) -> Option<ed25519::PublicKey> {
    ed25519::PublicKey::decode(Bytes::copy_from_slice(&key.0)).ok()
}

/// The node's key in the form that the consensus crates sign with.
pub(crate) fn private_key(key: &SecretKey) -> ed25519::PrivateKey {
    ed25519::PrivateKey::decode(Bytes::copy_from_slice(&key.to_bytes()))
        .expect("every 32 bytes are a secret key")
}

/// The organisations' node keys in the charter's order; none of those that have left.
pub(crate) fn keys(charter: &Charter) -> Result<Vec<Option<ed25519::PublicKey>>, CertificateError> {
    let key = |organisation: &Organisation| {
        let key = public_key(&organisation.node_key);
        let key = key.ok_or_else(|| CertificateError::Key(organisation.name.clone()))?;
        Ok((!organisation.removed).then_some(key))
    };
    charter.organisations.iter().map(key).collect()
}

/// The members' keys, as a set.
pub(crate) fn members(charter: &Charter) -> Result<Set<ed25519::PublicKey>, CertificateError> {
    Ok(Set::from_iter_dedup(keys(charter)?.into_iter().flatten()))
}

/// Where each member listens.
pub(crate) fn addresses(charter: &Charter) -> Result<Map<ed25519::PublicKey, Address>, OrderingError> {
    let mut addresses = Vec::with_capacity(charter.organisations.len());
    for (_, organisation) in charter.members() {
        let wrong = |what: String| OrderingError::Member { organisation: organisation.name.clone(), what };
        let key = public_key(&organisation.node_key)
            .ok_or_else(|| wrong("its node key is no curve point".to_string()))?;
        let address = address(&organisation.address).ok_or_else(|| {
            wrong(format!("its address must be `host:port`, found `{}`", organisation.address))
        })?;
        addresses.push((key, address));
    }
    Ok(Map::from_iter_dedup(addresses))
}

fn address(text: &str) -> Option<Address> {
    if let Ok(socket) = text.parse::<SocketAddr>() {
        return Some(Address::Symmetric(socket));
    }
    let (host, port) = text.rsplit_once(':')?;
    let (host, port) = (Hostname::new(host).ok()?, port.parse().ok()?);
    // Peers prove who they are with their key, so where they call from does not matter and is not checked.
    let egress = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    Some(Address::Asymmetric { ingress: Ingress::Dns { host, port }, egress })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_numbers_or_names() {
        assert!(matches!(address("127.0.0.1:7000"), Some(Address::Symmetric(_))));
        assert!(matches!(address("[::1]:7000"), Some(Address::Symmetric(_))));
        assert!(matches!(address("node1.example.org:7000"), Some(Address::Asymmetric { .. })));
        for wrong in ["", "node1", "node1:", ":7000", "node1:70000", "no de:1"] {
            assert!(address(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn keys_mean_the_same_to_both_crates() {
        use commonware_cryptography::Signer as _;
        let key = SecretKey::from_bytes([7; 32]);
        let ours = key.public_key().0;
        assert_eq!(private_key(&key).public_key().as_ref(), ours.as_slice());
    }
}
