//! How commands that ask a node over HTTP make sure that it is the one that is meant.

use crate::CommandError;
use clap::Args;
use client::{Client, NodeKey, Trust};
use crypto::{Digest, PublicKey, SecretKey, Signature};
use std::path::PathBuf;
use types::{Charter, Credential, GatewayAddress, GatewayScheme, Identity};

/// Whom to believe behind an address with TLS. At most one; none: in plain text, and with https:// the authorities that this machine
/// trusts.
#[derive(Args, Default)]
pub(crate) struct TrustArguments {
    /// The charter of the network: each node proves the key that the charter says it has
    #[arg(long, conflicts_with_all = ["node_key", "ca"])]
    charter: Option<PathBuf>,
    /// The key that the node proves, where the charter has been amended since it was founded
    #[arg(long, conflicts_with = "ca")]
    node_key: Option<PublicKey>,
    /// Certificates that the node's own is signed by, in PEM; its tls.crt for one
    #[arg(long)]
    ca: Option<PathBuf>,
}

impl TrustArguments {
    /// What asks the node at an address, and signs nothing.
    pub(crate) fn client(&self, address: &str) -> Result<Client, CommandError> {
        let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
        let nobody = Identity::new(Digest::ZERO, SecretKey::generate(), credential);
        let (trust, is_said) = self.trust(address)?;
        let GatewayAddress { scheme, place } = GatewayAddress::of(address);
        if is_said && scheme == GatewayScheme::Plain {
            return Err(format!(
                "{address} is plain text, and nobody proves anything there: expected https://{place}, or the address alone"
            )
            .into());
        }
        // Who says whom he expects does not want to be answered by anybody else.
        let address = if is_said { format!("https://{place}") } else { address.to_string() };
        Ok(Client::trusting(&address, &trust, nobody)?)
    }

    /// Whom to believe at an address, and whether somebody was named.
    fn trust(&self, address: &str) -> Result<(Trust, bool), CommandError> {
        if let Some(path) = &self.charter {
            let charter = Charter::from_toml(
                &std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
            )
            .map_err(|error| format!("{}: {error}", path.display()))?;
            let node = NodeKey::at(&charter, address).ok_or_else(|| not_there(&charter, address))?;
            return Ok((Trust::NodeKey(node), true));
        }
        if let Some(key) = self.node_key {
            let node = NodeKey { organisation: "--node-key".to_string(), key, others: Vec::new() };
            return Ok((Trust::NodeKey(node), true));
        }
        let Some(path) = &self.ca else { return Ok((Trust::System, false)) };
        let pem = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let trust = Trust::authorities(&pem).map_err(|reason| format!("{}: {reason}", path.display()))?;
        Ok((trust, true))
    }
}

fn not_there(charter: &Charter, address: &str) -> String {
    let known: Vec<String> =
        charter.members().map(|(_, member)| format!("{} ({})", member.gateway, member.name)).collect();
    format!(
        "the charter names no node at {address}, it has {}: ask at one of these addresses, or name the node's key with --node-key",
        known.join(", ")
    )
}
