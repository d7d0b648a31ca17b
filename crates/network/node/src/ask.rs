//! Asks other nodes over HTTP who they are and how they are.

use client::{Client, ClientError, Status};
use crypto::{Digest, SecretKey, Signature};
use types::{Credential, Identity, Presence};

/// A client that signs nothing.
fn client(gateway: &str) -> Result<Client, ClientError> {
    let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
    let url = if gateway.contains("://") { gateway.to_string() } else { format!("http://{gateway}") };
    Client::new(&url, Identity::new(Digest::ZERO, SecretKey::generate(), credential))
}

/// Who answers there.
pub(crate) async fn presence(gateway: &str) -> Result<Presence, ClientError> {
    client(gateway)?.presence().await
}

/// How it is.
pub(crate) async fn status(gateway: &str) -> Result<Status, ClientError> {
    client(gateway)?.status().await
}
