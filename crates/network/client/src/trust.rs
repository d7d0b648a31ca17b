//! How a client makes sure that it talks to the node that it means.

use crate::certificate_check::CertificateCheck;
use crypto::PublicKey;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, Error, OtherError, RootCertStore, version};
use std::fmt;
use std::sync::Arc;
use types::{Charter, GatewayAddress, NODE_KEY_ALPN};

/// What stands before an Ed25519 key in a certificate (RFC 8410).
const ED25519_PREFIX: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Who is believed to be the node at an address with TLS.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Whoever proves this node key, which the charter names. No authority vouches for anybody.
    NodeKey(NodeKey),
    /// Whoever has a certificate for the address from one of these.
    Authorities(Vec<CertificateDer<'static>>),
    /// Whoever has a certificate for the address from an authority that this machine trusts.
    System,
}

/// A member's node key, with what is known of the others, so that a mistake can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeKey {
    /// The member's name.
    pub organisation: String,
    /// Its node key.
    pub key: PublicKey,
    /// The other members and their keys.
    pub others: Vec<(String, PublicKey)>,
}

impl NodeKey {
    /// The key of the member at a position of a charter.
    pub fn of(charter: &Charter, position: usize) -> Option<NodeKey> {
        let member = charter.organisations.get(position)?;
        let others = charter.members().filter(|(other, _)| usize::from(*other) != position);
        let others = others.map(|(_, other)| (other.name.clone(), other.node_key)).collect();
        Some(NodeKey { organisation: member.name.clone(), key: member.node_key, others })
    }

    /// The key of the member that answers HTTP at this address, as the charter says.
    pub fn at(charter: &Charter, address: &str) -> Option<NodeKey> {
        let place = GatewayAddress::of(address).place;
        let mut members = charter.members();
        let (position, _) = members.find(|(_, member)| GatewayAddress::of(&member.gateway).place == place)?;
        NodeKey::of(charter, position.into())
    }

    /// Whether a certificate is for this key. Until when the key counts the charter says, not the certificate.
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let found = node_key_of(certificate);
        if found == Some(self.key) {
            return Ok(());
        }
        let is_whose = |(_, key): &&(String, PublicKey)| Some(*key) == found;
        let other = OtherKey {
            expected: (self.organisation.clone(), self.key),
            found,
            whose: self.others.iter().find(is_whose).map(|(name, _)| name.clone()),
        };
        Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(other)))))
    }
}

/// Somebody proved another key than the one that was expected, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherKey {
    /// Whose node was meant, and its key.
    pub expected: (String, PublicKey),
    /// The key that was proved; `None`: the certificate is for a key of another kind.
    pub found: Option<PublicKey>,
    /// The member that has this key.
    pub whose: Option<String>,
}

impl fmt::Display for OtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (organisation, key) = &self.expected;
        write!(f, "expected the node key {key} of {organisation}, ")?;
        match (&self.found, &self.whose) {
            (Some(found), Some(whose)) => write!(f, "found {found}, which is that of {whose}"),
            (Some(found), None) => write!(f, "found {found}, which is that of no member"),
            (None, _) => f.write_str(
                "found a certificate of no node key: members speak TLS with the node itself, not with a proxy that ends TLS before it",
            ),
        }
    }
}

impl std::error::Error for OtherKey {}

impl Trust {
    /// The authorities in a file in PEM; the file that `entente keys` writes is one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn authorities(pem: &[u8]) -> Result<Trust, String> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        match read {
            Ok(certificates) if certificates.is_empty() => {
                Err("expected a certificate in PEM (-----BEGIN CERTIFICATE-----), found none".to_string())
            }
            Ok(certificates) => Ok(Trust::Authorities(certificates)),
            Err(error) => Err(format!("expected certificates in PEM (-----BEGIN CERTIFICATE-----): {error}")),
        }
    }

    /// What TLS asks of whoever answers: also for programs that are no nodes, such as an oracle.
    ///
    /// # Errors
    /// Nobody is known whom to believe.
    pub fn config(&self) -> Result<ClientConfig, String> {
        match self {
            Trust::NodeKey(expected) => pinned(expected),
            Trust::Authorities(certificates) => named(certificates.clone()),
            Trust::System => named(rustls_native_certs::load_native_certs().certs),
        }
    }
}

fn unusable(error: Error) -> String {
    error.to_string()
}

/// Only this key is right.
fn pinned(expected: &NodeKey) -> Result<ClientConfig, String> {
    let expected = expected.clone();
    let pinned = CertificateCheck::new(move |certificate| expected.check(certificate));
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        // In TLS 1.2 the server signs what the client says first, and so perhaps something that means something elsewhere.
        .with_protocol_versions(&[&version::TLS13])
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(pinned)
        .with_no_client_auth();
    // The second one is for whatever stands between, so that its certificate can be named.
    config.alpn_protocols = vec![NODE_KEY_ALPN.to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Certificates of these authorities are right, for the host in the address.
fn named(authorities: Vec<CertificateDer<'static>>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if roots.add_parsable_certificates(authorities).0 == 0 {
        let none = "no certificate of an authority is known here; name the charter, the node's key, or a file with certificates";
        return Err(none.to_string());
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The key of a node that a certificate is for.
fn node_key_of(certificate: &CertificateDer<'_>) -> Option<PublicKey> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    let info = parsed.subject_public_key_info();
    info.strip_prefix(ED25519_PREFIX)?.try_into().ok().map(PublicKey)
}
