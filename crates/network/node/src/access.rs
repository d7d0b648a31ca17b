//! Who may connect to the ports for clients, from `node.toml` and the files beside it.

use crate::NodeError;
use crate::folder::NodeConfig;
use crate::founding::NODE_KEY_FILE;
use crypto::SecretKey;
use gateway::{Access, Certificate, HttpAccess, HttpTls, Passwords, SharedAccess, limits};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Passwords of the node's users, in its folder.
pub const PASSWORDS_FILE: &str = "passwords";

/// What an Ed25519 key is in PKCS #8 (RFC 8410), before its 32 bytes.
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Reads what the gateway needs to let clients in. `node`: the certificate of the node's key; without it HTTP has no TLS.
///
/// # Errors
/// Names the file and what is wrong with it.
pub(crate) fn open(
    folder: &Path,
    config: &NodeConfig,
    node: Option<&Certificate>,
) -> Result<Access, NodeError> {
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
    let tls = node.map(|node| HttpTls::new(node, certificate.as_ref()));
    Ok(Access {
        authentication: config.authentication,
        passwords: Arc::new(passwords),
        certificate,
        http: HttpAccess { plain: config.plain_http, tls },
        connections_max: config.connections_max.unwrap_or(limits::CONNECTIONS_MAX),
    })
}

/// Who may connect to a node that starts, and the certificate of its key.
///
/// # Errors
/// As [`open`].
pub(crate) fn of_node(
    folder: &Path,
    config: &NodeConfig,
    node_key: &SecretKey,
) -> Result<(SharedAccess, Certificate), NodeError> {
    let certificate = node_certificate(folder, node_key)?;
    let access = open(folder, config, Some(&certificate))?;
    Ok((access.into(), certificate))
}

fn read(path: &PathBuf) -> Result<Vec<u8>, NodeError> {
    std::fs::read(path).map_err(|error| NodeError::File { action: "read", path: path.clone(), error })
}

/// A certificate for a new node under these host names and addresses, and its key, in PEM. It is signed by itself, so clients take
/// the certificate itself for the authority that they trust (`sslrootcert`).
pub(crate) fn own_certificate(organisation: &str, hosts: &[String]) -> (String, String) {
    let key = KeyPair::generate().expect("the system gives random numbers");
    signed_by_itself(organisation, hosts, &key)
}

/// The certificate by which others know a node who have its key from the charter. It is made anew at each start: nobody keeps it.
///
/// # Errors
/// The key cannot sign for TLS.
pub(crate) fn node_certificate(folder: &Path, node_key: &SecretKey) -> Result<Certificate, NodeError> {
    let unusable = |reason: String| NodeError::Key { path: folder.join(NODE_KEY_FILE), reason };
    let pkcs8 = [&PKCS8_PREFIX[..], &node_key.to_bytes()].concat();
    let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(pkcs8), &PKCS_ED25519)
        .map_err(|error| unusable(format!("the key cannot sign for TLS: {error}")))?;
    // Clients look at the key alone.
    let (certificate, key) = signed_by_itself(&node_key.public_key().to_string(), &[], &key);
    Certificate::of_node_key(certificate.as_bytes(), key.as_bytes())
        .map_err(|error| unusable(error.to_string()))
}

fn signed_by_itself(name: &str, hosts: &[String], key: &KeyPair) -> (String, String) {
    let mut own = CertificateParams::new(hosts).expect("host names and addresses");
    // Whoever trusts several nodes tells their certificates apart by it.
    own.distinguished_name = DistinguishedName::new();
    own.distinguished_name.push(DnType::CommonName, name);
    let certificate = own.self_signed(key).expect("all that it needs is there");
    (certificate.pem(), key.serialize_pem())
}
