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

/// A certificate for a new node under these host names and addresses, and its key, in PEM. It is signed by itself, so clients take
/// the certificate itself for the authority that they trust (`sslrootcert`).
pub(crate) fn own_certificate(organisation: &str, hosts: &[String]) -> (String, String) {
    let mut own = rcgen::CertificateParams::new(hosts).expect("host names and addresses");
    // Whoever trusts several nodes tells their certificates apart by it.
    own.distinguished_name = rcgen::DistinguishedName::new();
    own.distinguished_name.push(rcgen::DnType::CommonName, organisation);
    let key = rcgen::KeyPair::generate().expect("the system gives random numbers");
    let certificate = own.self_signed(&key).expect("all that it needs is there");
    (certificate.pem(), key.serialize_pem())
}
