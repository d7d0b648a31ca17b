//! Asks other nodes over HTTP who they are and how they are. Where they speak TLS, they have to prove their node keys first.

use client::{Client, ClientError, NodeKey, Spoken, Status, Trust};
use crypto::{Digest, SecretKey, Signature};
use types::{Credential, Identity, Presence};

/// A node that is asked without a signature.
pub(crate) struct Asked(Client);

impl Asked {
    /// The node at an address of the charter, and who it must be.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(gateway: &str, whom: NodeKey) -> Result<Asked, ClientError> {
        let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
        let nobody = Identity::new(Digest::ZERO, SecretKey::generate(), credential);
        Ok(Asked(Client::trusting(gateway, &Trust::NodeKey(whom), nobody)?))
    }

    /// Who answers there.
    pub(crate) async fn presence(&self) -> Result<Presence, ClientError> {
        self.0.presence().await
    }

    /// How it is.
    pub(crate) async fn status(&self) -> Result<Status, ClientError> {
        self.0.status().await
    }

    /// How it answers, as far as it has.
    pub(crate) fn spoken(&self) -> Spoken {
        self.0.spoken()
    }
}
