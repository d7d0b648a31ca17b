//! Asks whoever is at the address of a node who it is and how it is, over TLS and with the certificate that it shows to others.

use super::certificate::wrong_now;
use super::clocks::ahead_ms;
use crate::ask::Asked;
use client::{CertificateCheck, ClientError, NodeKey, OtherKey, Spoken, Status};
use crypto::PublicKey;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use types::{GatewayAddress, Presence};

/// Who does not answer within this time does not count as there.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// What somebody answers over HTTP.
pub(super) struct Answer {
    pub(super) presence: Option<Presence>,
    /// By how many milliseconds its clock is ahead.
    pub(super) ahead_ms: Option<i64>,
    pub(super) status: Result<Status, String>,
    /// How it answers.
    pub(super) spoken: Spoken,
    /// Why it was not asked over TLS.
    pub(super) not_asked: Option<NotAsked>,
    /// What is wrong with the certificate that it shows to others than members.
    pub(super) shown: Option<String>,
}

/// Why somebody who answers was not asked.
pub(super) enum NotAsked {
    /// Another key was proved.
    OtherKey(Box<OtherKey>),
    /// It answers in plain text, where the charter says TLS.
    PlainText,
}

/// What whoever is at an address answers, who must be this node.
pub(super) async fn answer_of(gateway: &str, whom: Option<NodeKey>) -> Answer {
    let nobody = |reason: String| Answer {
        presence: None,
        ahead_ms: None,
        status: Err(reason),
        spoken: Spoken::Tls,
        not_asked: None,
        shown: None,
    };
    let Some(whom) = whom else { return nobody("its node key cannot be read".to_string()) };
    let asked = match Asked::new(gateway, whom) {
        Ok(asked) => asked,
        Err(error) => return nobody(error.to_string()),
    };
    let now_ms =
        || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
    let (asked_ms, began) = (now_ms(), Instant::now());
    let presence = tokio::time::timeout(PATIENCE, asked.presence()).await;
    let took_ms = began.elapsed().as_millis() as u64;
    let presence = presence.ok().and_then(Result::ok);
    let (status, not_asked) = match tokio::time::timeout(PATIENCE, asked.status()).await {
        Ok(Ok(status)) => (Ok(status), None),
        Ok(Err(error)) => (Err(error.to_string()), NotAsked::of(error)),
        Err(_) => (Err(format!("no answer within {PATIENCE:?}")), None),
    };
    let ahead_ms = presence.as_ref().map(|presence| ahead_ms(presence.time_ms, asked_ms, took_ms));
    let spoken = asked.spoken();
    let shown = match (&status, spoken) {
        (Ok(_), Spoken::Tls) => {
            tokio::time::timeout(PATIENCE, wrong_with_shown(gateway)).await.ok().flatten()
        }
        _ => None,
    };
    Answer { presence, ahead_ms, status, spoken, not_asked, shown }
}

/// What is wrong with the certificate that a node shows to who does not ask for its key; nothing where it cannot be seen.
async fn wrong_with_shown(gateway: &str) -> Option<String> {
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

impl NotAsked {
    fn of(error: ClientError) -> Option<NotAsked> {
        match error {
            ClientError::OtherKey { other, .. } => Some(NotAsked::OtherKey(other)),
            ClientError::PlainText { .. } => Some(NotAsked::PlainText),
            _ => None,
        }
    }
}

impl Answer {
    /// The key that was proved: in the handshake of TLS, or under the answer.
    pub(super) fn key(&self) -> Option<PublicKey> {
        match &self.not_asked {
            Some(NotAsked::OtherKey(other)) => other.found,
            _ => self.presence.as_ref().map(|presence| presence.node_key),
        }
    }

    /// Whether it has this key.
    pub(super) fn has_key(&self, key: &PublicKey) -> bool {
        self.key() == Some(*key)
    }
}
