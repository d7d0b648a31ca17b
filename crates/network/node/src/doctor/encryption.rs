//! How other members' nodes answer HTTP: over TLS, with the node key of the charter, and with which certificate for everybody else.

use super::certificate::wrong_now;
use super::finding::Findings;
use super::members::{Answer, Member, NotAsked};
use client::{CertificateCheck, Spoken};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use types::GatewayAddress;

const ENCRYPTION: &str = "encryption";

pub(super) fn check(member: &Member, answer: &Answer, findings: &mut Findings) {
    let Member { name, gateway, .. } = member;
    let place = GatewayAddress::of(gateway).place;
    match (&answer.not_asked, &answer.status, answer.spoken) {
        (Some(NotAsked::OtherKey(other)), ..) => findings.problem(
            ENCRYPTION,
            format!("{name}: whoever answers at {gateway} was not asked: {other}"),
            format!(
                "ask {name} over the phone which key is theirs, and whether something stands before the node; a new key is an amendment \
                 (docs/governance.md)"
            ),
        ),
        (Some(NotAsked::PlainText), ..) => findings.problem(
            ENCRYPTION,
            format!("{name}: {place} answers in plain text, where the charter says https: it was not asked"),
            format!("ask {name} which program listens there: a node of a version with TLS answers it"),
        ),
        (None, Ok(_), Spoken::Plain) => findings.warning(
            ENCRYPTION,
            format!("{name}: {gateway} answers in plain text: who stands between reads along"),
            format!(
                "have {name} install a version with TLS; then SELECT entente.set_address('{name}', …, 'https://{place}') forbids plain text"
            ),
        ),
        (None, Ok(_), Spoken::Tls) => match &answer.shown {
            Some(wrong) => findings.warning(
                ENCRYPTION,
                format!("{name}: the certificate that {place} shows to others than members {wrong}"),
                format!("tell {name}; members know the node by its key and do not mind"),
            ),
            None => findings.ok(ENCRYPTION, format!("{name}: {place} speaks TLS with its node key")),
        },
        (None, Err(_), _) => {}
    }
}

/// What is wrong with the certificate that a node shows to who does not ask for its key; nothing where it cannot be seen.
pub(super) async fn wrong_with_shown(gateway: &str) -> Option<String> {
    let place = GatewayAddress::of(gateway).place;
    let host = place.rsplit_once(':')?.0.trim_matches(['[', ']']).to_string();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        // Whoever has it: nothing is asked of him.
        .with_custom_certificate_verifier(CertificateCheck::new(|_| Ok(())))
        .with_no_client_auth();
    let stream = TcpStream::connect(place).await.ok()?;
    let name = ServerName::try_from(host).ok()?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    wrong_now(stream.get_ref().1.peer_certificates()?.first()?)
}
