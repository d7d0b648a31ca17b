//! Somebody who stands at a node's address, speaks TLS with a key of his own choosing, and passes on what comes.

use crypto::SecretKey;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use types::NODE_KEY_ALPN;

/// What stands before an Ed25519 key in PKCS #8.
const PKCS8_PREFIX: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// What speaks TLS with this key as if it were a node's.
fn acceptor(key: &SecretKey) -> TlsAcceptor {
    let pkcs8 = PrivatePkcs8KeyDer::from([PKCS8_PREFIX, &key.to_bytes()].concat());
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(&pkcs8, &PKCS_ED25519).expect("a key");
    let certificate =
        CertificateParams::new(Vec::new()).expect("no names").self_signed(&pair).expect("signed");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::from(pkcs8))
        .expect("they belong together");
    config.alpn_protocols = vec![NODE_KEY_ALPN.to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Stands on a port, with this key, and passes on to an address in plain text what comes. Goes when the task is ended.
pub async fn stand(port: u16, key: &SecretKey, behind: SocketAddr) -> JoinHandle<()> {
    let (listener, acceptor) = (TcpListener::bind(("127.0.0.1", port)).await.expect("free"), acceptor(key));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut node = TcpStream::connect(behind).await.expect("it listens");
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut node).await;
            });
        }
    })
}
