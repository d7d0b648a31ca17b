//! TLS between nodes of one organisation: each side shows a certificate of its own, which the other one knows by its digest. No
//! authority vouches for anybody, and nobody else can connect.

use crate::NodeError;
use crate::access::own_certificate;
use crypto::sha256;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files with the certificate that a node shows to other nodes of its organisation, and its key.
const FILES: [&str; 2] = ["holders.crt", "holders.key"];

/// A node's certificate for other nodes of its organisation, and its key.
#[derive(Debug)]
pub(super) struct Own {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Own {
    /// Those in a folder.
    ///
    /// # Errors
    /// Names the file, and what is wrong with it.
    pub(super) fn read(folder: &Path) -> Result<Own, NodeError> {
        let [certificate, key] = FILES.map(|file| folder.join(file));
        let wrong = |path: PathBuf, reason: String| NodeError::Config { path, reason };
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| NodeError::File { action: "read", path: path.clone(), error })
        };
        Ok(Own {
            certificate: CertificateDer::from_pem_slice(&read(&certificate)?)
                .map_err(|error| wrong(certificate, format!("expected a certificate in PEM: {error}")))?,
            key: PrivateKeyDer::from_pem_slice(&read(&key)?)
                .map_err(|error| wrong(key, format!("expected a private key in PEM: {error}")))?,
        })
    }

    /// Makes them where there are none. Gives the digest that the other side knows the certificate by.
    ///
    /// # Errors
    /// A file cannot be written, or there are others that cannot be read.
    pub(super) fn ensure(folder: &Path, name: &str) -> Result<String, NodeError> {
        let [certificate, key] = FILES.map(|file| folder.join(file));
        if !certificate.exists() {
            // Its digest is what counts, whatever it is called.
            let (certificate_pem, key_pem) = own_certificate(name, &["localhost".to_string()]);
            for (path, content, mode) in [(key, key_pem, 0o600), (certificate, certificate_pem, 0o644)] {
                let file = std::fs::OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(mode)
                    .open(&path);
                file.and_then(|mut file| file.write_all(content.as_bytes()))
                    .map_err(|error| NodeError::File { action: "write", path, error })?;
            }
        }
        Ok(digest(&Own::read(folder)?.certificate))
    }

    /// Connects to whoever shows the certificate with this digest.
    pub(super) fn client(&self, expected: &str) -> Result<Arc<ClientConfig>, Error> {
        let pinned = Arc::new(Pinned::new(expected));
        let config = ClientConfig::builder_with_provider(pinned.provider.clone())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(pinned)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }

    /// Lets in whoever shows the certificate with this digest.
    pub(super) fn server(&self, expected: &str) -> Result<Arc<ServerConfig>, Error> {
        let pinned = Arc::new(Pinned::new(expected));
        let config = ServerConfig::builder_with_provider(pinned.provider.clone())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(pinned)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }
}

fn digest(certificate: &CertificateDer<'_>) -> String {
    sha256(&[certificate.as_ref()]).to_string()
}

/// One certificate is right, and no other.
#[derive(Debug)]
struct Pinned {
    expected: String,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn new(expected: &str) -> Pinned {
        Pinned { expected: expected.to_string(), provider: Arc::new(ring::default_provider()) }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        match digest(certificate) == self.expected {
            true => Ok(()),
            false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
        }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}
