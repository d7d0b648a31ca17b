//! Who may connect, and how they prove who they are.

mod passwords;
mod role_password;

pub(crate) use role_password::RolePassword;

pub use passwords::{PasswordError, Passwords, Verifier};

use crate::limits;
use parking_lot::RwLock;
use pgwire::api::auth::sasl::scram::ScramServerAuth;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::ClientHello;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig, SupportedProtocolVersion};
use types::NODE_KEY_ALPN;

/// What a Postgres client must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Authentication {
    /// Clients on the same machine are believed; others need TLS and a password.
    #[default]
    Trust,
    /// Everybody needs a password, clients of other machines TLS as well.
    ScramSha256,
}

impl Authentication {
    /// As `node.toml` and PostgreSQL's `pg_hba.conf` call it.
    pub fn name(self) -> &'static str {
        match self {
            Authentication::Trust => "trust",
            Authentication::ScramSha256 => "scram-sha-256",
        }
    }
}

impl fmt::Display for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Authentication {
    type Err = String;

    fn from_str(text: &str) -> Result<Authentication, String> {
        [Authentication::Trust, Authentication::ScramSha256]
            .into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| format!("expected `trust` or `scram-sha-256`, found {text:?}"))
    }
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// Not PEM.
    #[error("expected {expected} in PEM (-----BEGIN …-----): {reason}")]
    Pem {
        /// What should be there.
        expected: &'static str,
        /// The reader's words.
        reason: String,
    },
    /// Certificate and key do not fit together, or are of a kind that TLS does not know.
    #[error("certificate and key cannot be used for TLS: {0}")]
    Unusable(String),
}

/// A certificate with its key, ready for clients.
#[derive(Clone)]
pub struct Certificate {
    pub(crate) acceptor: TlsAcceptor,
    config: Arc<ServerConfig>,
    /// For SCRAM's channel binding.
    pem: Arc<[u8]>,
}

impl Certificate {
    /// Reads a certificate chain, the server's own first, and its private key.
    ///
    /// # Errors
    /// [`CertificateError`] says which of the two is wrong.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Certificate, CertificateError> {
        Certificate::read(chain, key, DEFAULT_VERSIONS)
    }

    /// The same, of a key that signs for more than TLS. Only TLS 1.3 is spoken with it: there the server signs nothing that begins as
    /// whoever connects has chosen it.
    ///
    /// # Errors
    /// As [`Certificate::from_pem`].
    pub fn of_node_key(chain: &[u8], key: &[u8]) -> Result<Certificate, CertificateError> {
        Certificate::read(chain, key, &[&TLS13])
    }

    fn read(
        chain: &[u8],
        key: &[u8],
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Certificate, CertificateError> {
        let pem = |expected| move |reason: String| CertificateError::Pem { expected, reason };
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| pem("a certificate")(error.to_string()))?;
        if certificates.is_empty() {
            return Err(pem("a certificate")("there is none".to_string()));
        }
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| pem("a private key")(error.to_string()))?;
        let unusable = |error: tokio_rustls::rustls::Error| CertificateError::Unusable(error.to_string());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(unusable)?;
        let config = Arc::new(config);
        Ok(Certificate { acceptor: TlsAcceptor::from(config.clone()), config, pem: chain.into() })
    }

    /// What speaks with this certificate a protocol of this name (ALPN).
    fn speaking(&self, protocol: &[u8]) -> Arc<ServerConfig> {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }
}

impl PartialEq for Certificate {
    /// Whether clients are shown the same chain.
    fn eq(&self, other: &Certificate) -> bool {
        self.pem == other.pem
    }
}

/// Who may ask over HTTP in plain text. TLS everybody may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlainHttp {
    /// As where there was no TLS yet.
    #[default]
    Everybody,
    /// Programs on the same machine.
    Loopback,
    /// Nobody.
    Nobody,
}

/// TLS of the HTTP port: two certificates, of which whoever connects sees the one that it asks for.
#[derive(Clone)]
pub struct HttpTls {
    /// For who knows the node's key from the charter.
    node_key: Arc<ServerConfig>,
    /// For everybody else.
    own: Arc<ServerConfig>,
}

impl HttpTls {
    /// With a certificate of the node's key, and one for those who do not ask for that; `None`: they see the same.
    pub fn new(node_key: &Certificate, own: Option<&Certificate>) -> HttpTls {
        HttpTls {
            node_key: node_key.speaking(NODE_KEY_ALPN),
            own: own.unwrap_or(node_key).speaking(b"http/1.1"),
        }
    }

    /// What a client that begins so is answered with.
    pub(crate) fn for_client(&self, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        let asks_for_node_key =
            hello.alpn().is_some_and(|mut protocols| protocols.any(|protocol| protocol == NODE_KEY_ALPN));
        if asks_for_node_key { self.node_key.clone() } else { self.own.clone() }
    }
}

/// Who may connect to the HTTP port.
#[derive(Clone, Default)]
pub struct HttpAccess {
    /// Who may do without TLS.
    pub plain: PlainHttp,
    /// Encrypts; without it there is plain text alone.
    pub tls: Option<HttpTls>,
}

/// Who may connect: to the Postgres port, and how HTTP is answered.
pub struct Access {
    /// What clients must show.
    pub authentication: Authentication,
    /// What proves that they know their passwords.
    pub passwords: Arc<Passwords>,
    /// Encrypts; without one, only clients on the same machine may connect.
    pub certificate: Option<Certificate>,
    /// Sessions at the same time; one more gets `53300`.
    pub connections_max: usize,
    /// Who may connect to the HTTP port.
    pub http: HttpAccess,
}

/// Who may connect, for a gateway that runs: whoever has it changes that for all who connect from then on. Sessions go on.
#[derive(Clone)]
pub struct SharedAccess(Arc<RwLock<Arc<Access>>>);

impl From<Access> for SharedAccess {
    fn from(access: Access) -> SharedAccess {
        SharedAccess(Arc::new(RwLock::new(Arc::new(access))))
    }
}

impl SharedAccess {
    /// What holds now.
    pub fn get(&self) -> Arc<Access> {
        self.0.read().clone()
    }

    /// From now on this holds.
    pub fn set(&self, access: Access) {
        *self.0.write() = Arc::new(access);
    }
}

impl Default for Access {
    fn default() -> Access {
        Access {
            authentication: Authentication::default(),
            passwords: Arc::default(),
            certificate: None,
            connections_max: limits::CONNECTIONS_MAX,
            http: HttpAccess::default(),
        }
    }
}

impl Access {
    /// SCRAM for one connection; with channel binding where the connection is encrypted.
    pub(crate) fn scram(&self, encrypted: bool) -> ScramServerAuth {
        let mut scram = ScramServerAuth::new();
        if let Some(certificate) = self.certificate.as_ref().filter(|_| encrypted)
            && let Err(error) = scram.configure_certificate(&certificate.pem)
        {
            // A kind of signature that has no hash for RFC 5929: clients are not offered the binding.
            tracing::debug!(%error, "no channel binding with this certificate");
        }
        scram
    }
}
