//! How a server's certificate is checked.

use crate::DatabaseError;
use crate::error::ErrorKind;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Says which cryptography counts in this process: other crates bring another one, and MariaDB's driver takes what was said.
pub(crate) fn choose_cryptography() {
    // Somebody may have said it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Believes the authorities in a file of PEM, or those that the system trusts.
pub(crate) fn config(authority: Option<&Path>) -> Result<ClientConfig, DatabaseError> {
    let wrong = |what: String| DatabaseError::new(ErrorKind::Access, what);
    let mut roots = RootCertStore::empty();
    match authority {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(|found| found.collect::<Result<Vec<_>, _>>())
                .map_err(|error| wrong(format!("ca={}: {error}", path.display())))?;
            let (added, _) = roots.add_parsable_certificates(certificates);
            if added == 0 {
                return Err(wrong(format!(
                    "ca={}: expected a certificate in PEM, found none",
                    path.display()
                )));
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            if roots.add_parsable_certificates(found.certs).0 == 0 {
                return Err(wrong(
                    "this system trusts no authority; name the server's by ca=FILE in the address"
                        .to_string(),
                ));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
