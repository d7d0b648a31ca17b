//! Whom a client believes behind an address: by the node key, by authorities, and who is refused by name.
#![allow(missing_docs)]

use client::{Client, ClientError, NodeKey, Spoken, Trust};
use crypto::{Digest, PublicKey, SecretKey, Signature};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use types::{Credential, Identity, NODE_KEY_ALPN};

/// What stands before a key in PKCS #8.
const PKCS8_PREFIX: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
/// What a message of a handshake begins with (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
const STATUS: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// A server that has some answer for every request, and counts handshakes of TLS.
struct Server {
    port: u16,
    handshakes: Arc<AtomicUsize>,
    pem: String,
}

/// A certificate for 127.0.0.1 and what serves it: of a node's key, or of a company's.
fn certificate(
    node_key: Option<&SecretKey>,
    change: impl FnOnce(&mut CertificateParams),
) -> (String, ServerConfig) {
    let key = match node_key {
        Some(key) => {
            let pkcs8 = [PKCS8_PREFIX, &key.to_bytes()].concat();
            KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(pkcs8), &PKCS_ED25519)
        }
        None => KeyPair::generate(),
    };
    let key = key.expect("a key");
    let mut parameters = CertificateParams::new(["127.0.0.1".to_string()]).expect("an address");
    change(&mut parameters);
    let certificate = parameters.self_signed(&key).expect("signed");
    let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], secret)
        .expect("they belong together");
    config.alpn_protocols = vec![NODE_KEY_ALPN.to_vec(), b"http/1.1".to_vec()];
    (certificate.pem(), config)
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        read.extend_from_slice(&buffer[..count]);
        if read.ends_with(b"\r\n\r\n") {
            read.clear();
            if stream.write_all(STATUS.as_bytes()).await.is_err() {
                return;
            }
        } else if !read.starts_with(b"G") {
            // As a program without TLS answers a handshake.
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
            return;
        }
    }
}

async fn serve(on: Option<u16>, tls: Option<(String, ServerConfig)>) -> Server {
    let listener = TcpListener::bind(("127.0.0.1", on.unwrap_or(0))).await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let handshakes = Arc::new(AtomicUsize::new(0));
    let counted = handshakes.clone();
    let (pem, acceptor) = match tls {
        Some((pem, config)) => (pem, Some(TlsAcceptor::from(Arc::new(config)))),
        None => (String::new(), None),
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), counted.clone());
            tokio::spawn(async move {
                let mut first = [0];
                if matches!(stream.peek(&mut first).await, Ok(1)) && first[0] == HANDSHAKE {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
                match acceptor {
                    Some(acceptor) => {
                        if let Ok(stream) = acceptor.accept(stream).await {
                            answer(stream).await;
                        }
                    }
                    None => answer(stream).await,
                }
            });
        }
    });
    Server { port, handshakes, pem }
}

fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes([number; 32])
}

/// Org2, whose key has number 2; org3 has number 3.
fn org2() -> Trust {
    let public = |number: u8| -> PublicKey { key(number).public_key() };
    Trust::NodeKey(NodeKey {
        organisation: "org2".to_string(),
        key: public(2),
        others: vec![("org3".to_string(), public(3))],
    })
}

fn client(address: &str, trust: &Trust) -> Client {
    let credential = Credential { organisation: 0, signature: Signature([0; 64]) };
    Client::trusting(address, trust, Identity::new(Digest::ZERO, key(9), credential)).expect("a client")
}

async fn refused(address: &str, trust: &Trust) -> ClientError {
    client(address, trust).metrics().await.expect_err("nobody whom it trusts")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_node_key_is_asked_and_its_connection_is_kept() {
    let server = serve(None, Some(certificate(Some(&key(2)), |_| {}))).await;
    let client = client(&format!("https://127.0.0.1:{}", server.port), &org2());
    for _ in 0..20 {
        assert_eq!(client.metrics().await.expect("the node answers"), "{}");
        // The connection goes back into the pool by itself. Another one begins where it is not there yet.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(client.spoken(), Spoken::Tls);
    let handshakes = server.handshakes.load(Ordering::Relaxed);
    assert!(handshakes <= 10, "{handshakes} handshakes for 20 requests");
    // Names and dates mean nothing where the key is right.
    let localhost = self::client(&format!("https://localhost:{}", server.port), &org2());
    assert_eq!(localhost.metrics().await.expect("the node answers"), "{}");
    let expired =
        |parameters: &mut CertificateParams| parameters.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let server = serve(None, Some(certificate(Some(&key(2)), expired))).await;
    let client = self::client(&format!("127.0.0.1:{}", server.port), &org2());
    assert_eq!(client.metrics().await.expect("the charter says until when"), "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_another_key_is_refused_by_name() {
    let address = |server: &Server| format!("https://127.0.0.1:{}", server.port);
    let stranger = serve(None, Some(certificate(Some(&key(7)), |_| {}))).await;
    let error = refused(&address(&stranger), &org2()).await;
    assert!(
        matches!(&error, ClientError::OtherKey { other, .. } if other.found == Some(key(7).public_key()))
    );
    let text = error.to_string();
    assert!(text.contains(&format!("expected the node key {} of org2", key(2).public_key())), "{text}");
    assert!(text.contains("which is that of no member") && text.contains("Nothing was sent"), "{text}");
    let member = serve(None, Some(certificate(Some(&key(3)), |_| {}))).await;
    // Also where nothing says that it has to be TLS.
    for address in [address(&member), format!("127.0.0.1:{}", member.port)] {
        let text = refused(&address, &org2()).await.to_string();
        assert!(text.contains("which is that of org3"), "{text}");
    }
    let proxy = serve(None, Some(certificate(None, |_| {}))).await;
    let text = refused(&address(&proxy), &org2()).await.to_string();
    assert!(text.contains("a certificate of no node key"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_text_is_spoken_where_nothing_forbids_it_and_never_behind_tls() {
    let plain = serve(None, None).await;
    let error = refused(&format!("https://127.0.0.1:{}", plain.port), &org2()).await;
    assert!(matches!(error, ClientError::PlainText { .. }), "{error}");
    assert!(error.to_string().contains("nothing was sent"), "{error}");
    // A node of before.
    let before = client(&format!("127.0.0.1:{}", plain.port), &org2());
    assert_eq!(before.metrics().await.expect("in plain text"), "{}");
    assert_eq!(before.spoken(), Spoken::Plain);
    let handshakes = plain.handshakes.load(Ordering::Relaxed);
    assert!(handshakes > 0);
    before.metrics().await.expect("in plain text");
    assert_eq!(plain.handshakes.load(Ordering::Relaxed), handshakes, "it is not asked over TLS each time");
    // Whoever has proved its key once is not asked in plain text any more, whoever stands between.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (_, config) = certificate(Some(&key(2)), |_| {});
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let between = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("it connects");
        let mut stream = acceptor.accept(stream).await.expect("a handshake");
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).await.expect("a request") > 0);
        let answer = STATUS.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("sent");
        stream.shutdown().await.expect("closed");
        while let Ok((stream, _)) = listener.accept().await {
            answer_plain(stream).await;
        }
    });
    let client = client(&format!("127.0.0.1:{port}"), &org2());
    assert_eq!(client.metrics().await.expect("over TLS"), "{}");
    let error = client.metrics().await.expect_err("no TLS any more");
    assert!(matches!(error, ClientError::PlainText { .. }), "{error}");
    between.abort();
}

async fn answer_plain(stream: tokio::net::TcpStream) {
    let _ = tokio::time::timeout(Duration::from_secs(2), answer(stream)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_companys_own_certificate_counts_by_its_authority_its_host_and_its_days() {
    let good = serve(None, Some(certificate(None, |_| {}))).await;
    let trust = Trust::authorities(good.pem.as_bytes()).expect("a certificate");
    let address = format!("https://127.0.0.1:{}", good.port);
    assert_eq!(client(&address, &trust).metrics().await.expect("its own"), "{}");
    let text = refused(&format!("https://localhost:{}", good.port), &trust).await.to_string();
    assert!(text.contains("does not count") && text.contains("localhost"), "{text}");
    let other = serve(None, Some(certificate(None, |_| {}))).await;
    let text = refused(&format!("https://127.0.0.1:{}", other.port), &trust).await.to_string();
    assert!(text.contains("does not count"), "{text}");
    let expired =
        |parameters: &mut CertificateParams| parameters.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = serve(None, Some(certificate(None, expired))).await;
    let trust = Trust::authorities(expired.pem.as_bytes()).expect("a certificate");
    let text = refused(&format!("https://127.0.0.1:{}", expired.port), &trust).await.to_string();
    assert!(text.contains("expired") && text.contains("have its owner replace it"), "{text}");
    for wrong in ["", "nonsense", "-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n"] {
        let error = Trust::authorities(wrong.as_bytes()).expect_err("no certificate");
        assert!(error.contains("in PEM"), "{error}");
    }
}
