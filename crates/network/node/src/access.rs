//! Who may connect to the Postgres port, from `node.toml` and the files beside it.

use crate::NodeError;
use crate::folder::NodeConfig;
use gateway::{Access, Certificate, Passwords, limits};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Passwords of the node's users, in its folder.
pub const PASSWORDS_FILE: &str = "passwords";

/// Reads what the gateway needs to let clients in.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn open(folder: &Path, config: &NodeConfig) -> Result<Access, NodeError> {
    let path = folder.join(PASSWORDS_FILE);
    let passwords =
        Passwords::open(&path).map_err(|error| NodeError::Config { path, reason: error.to_string() })?;
    let certificate = match (&config.tls_certificate, &config.tls_key) {
        (None, None) => None,
        (Some(chain), Some(key)) => {
            let (chain, key) = (folder.join(chain), folder.join(key));
            let (chain_pem, key_pem) = (read(&chain)?, read(&key)?);
            let certificate = Certificate::from_pem(&chain_pem, &key_pem)
                .map_err(|error| NodeError::Certificates { certificate: chain, key, error })?;
            Some(certificate)
        }
        _ => {
            let path = folder.join("node.toml");
            let reason =
                "expected both of `tls_certificate` and `tls_key`, or neither, found one".to_string();
            return Err(NodeError::Config { path, reason });
        }
    };
    Ok(Access {
        authentication: config.authentication,
        passwords: Arc::new(passwords),
        certificate,
        connections_max: config.connections_max.unwrap_or(limits::CONNECTIONS_MAX),
    })
}

fn read(path: &PathBuf) -> Result<Vec<u8>, NodeError> {
    std::fs::read(path).map_err(|error| NodeError::File { action: "read", path: path.clone(), error })
}

/// A certificate for a new node and its key, in PEM: signed by itself, so that clients can encrypt at once, and to be
/// replaced by one that they can verify.
pub(crate) fn own_certificate(organisation: &str) -> (String, String) {
    let names = vec![organisation.to_string(), "localhost".to_string(), "127.0.0.1".to_string()];
    let own = rcgen::generate_simple_self_signed(names).expect("names of plain letters");
    (own.cert.pem(), own.signing_key.serialize_pem())
}
