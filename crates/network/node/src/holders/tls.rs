//! TLS between nodes of one organisation: each side shows a certificate of its own, which the other one knows by its digest. No
//! authority vouches for anybody, and nobody else can connect.

use crate::NodeError;
use crate::access::own_certificate;
use client::CertificateCheck;
use crypto::sha256;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, Error, ServerConfig};
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
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(pinned(expected))
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }

    /// Lets in whoever shows the certificate with this digest.
    pub(super) fn server(&self, expected: &str) -> Result<Arc<ServerConfig>, Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(pinned(expected))
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())?;
        Ok(Arc::new(config))
    }
}

fn digest(certificate: &CertificateDer<'_>) -> String {
    sha256(&[certificate.as_ref()]).to_string()
}

/// One certificate is right, and no other.
fn pinned(
    expected: &str,
) -> Arc<CertificateCheck<impl Fn(&CertificateDer<'_>) -> Result<(), Error> + use<>>> {
    let expected = expected.to_string();
    CertificateCheck::new(move |certificate: &CertificateDer<'_>| match digest(certificate) == expected {
        true => Ok(()),
        false => Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
    })
}
