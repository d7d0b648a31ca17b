//! TLS and plain text on the port of HTTP: who sees which certificate, who may do without, and who comes with something else.

mod fake;

use fake::{Fake, serve_with};
use gateway::{Access, Certificate, HttpAccess, HttpTls, PlainHttp, limits};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use types::NODE_KEY_ALPN;

/// Two certificates: of the node's key, and the company's.
struct Certificates {
    node_key: CertificateDer<'static>,
    own: CertificateDer<'static>,
}

/// A gateway with both; gives its port of HTTP.
async fn started(plain: PlainHttp) -> (Certificates, u16) {
    let make = |key: KeyPair| {
        let parameters = CertificateParams::new(["localhost".to_string()]).expect("a name");
        (parameters.self_signed(&key).expect("signed"), key.serialize_pem())
    };
    let (node_key, node_secret) = make(KeyPair::generate_for(&PKCS_ED25519).expect("a key"));
    let (own, own_secret) = make(KeyPair::generate().expect("a key"));
    let of_node = Certificate::of_node_key(node_key.pem().as_bytes(), node_secret.as_bytes()).expect("fits");
    let company = Certificate::from_pem(own.pem().as_bytes(), own_secret.as_bytes()).expect("fits");
    let http = HttpAccess { plain, tls: Some(HttpTls::new(&of_node, Some(&company))) };
    let access = Access { http, ..Access::default() };
    let (_, port) = serve_with(Arc::new(Fake::default()), access).await;
    (Certificates { node_key: node_key.der().clone(), own: own.der().clone() }, port)
}

/// Connects, and believes this certificate.
async fn connect(
    port: u16,
    believed: &CertificateDer<'static>,
    protocol: Option<&[u8]>,
    version: &'static SupportedProtocolVersion,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(believed.clone()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .expect("it is known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn plain(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.expect("connected")
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_the_node_key_sees_it_and_others_the_companys_certificate() {
    let (certificates, port) = started(PlainHttp::Loopback).await;
    let Certificates { node_key, own } = &certificates;
    let stream = connect(port, node_key, Some(NODE_KEY_ALPN), &TLS13).await.expect("the node's key");
    assert!(ask(stream, "/health").await.starts_with("HTTP/1.1 200"));
    for protocol in [None, Some(&b"http/1.1"[..])] {
        for version in [&TLS12, &TLS13] {
            let stream = connect(port, own, protocol, version).await.expect("the company's");
            assert!(ask(stream, "/health").await.ends_with("ok\n"));
        }
    }
    connect(port, own, Some(NODE_KEY_ALPN), &TLS13).await.expect_err("another certificate is shown");
    connect(port, node_key, None, &TLS13).await.expect_err("another certificate is shown");
    // The node key never signs what a client begins.
    connect(port, node_key, Some(NODE_KEY_ALPN), &TLS12).await.expect_err("TLS 1.2 is not for it");
    assert!(ask(plain(port).await, "/health").await.ends_with("ok\n"), "this machine may do without");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_text_is_refused_with_what_to_do() {
    let (_, port) = started(PlainHttp::Nobody).await;
    for request in [
        "GET /status HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /v1/transactions HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
    ] {
        let mut stream = plain(port).await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(answer.contains("ask with https://") && answer.contains("plain_http"), "{answer}");
    }
    let (_, http) = serve_with(Arc::new(Fake::default()), Access::default()).await;
    assert!(ask(plain(http).await, "/health").await.ends_with("ok\n"), "where nothing is said");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_slow_handshakes_keep_nobody_out() {
    let (certificates, port) = started(PlainHttp::Loopback).await;
    for garbage in [
        &b"\x16"[..],
        b"\x16\x03\x01\xff\xff",
        b"\x16nonsense that is no handshake at all\r\n\r\n",
        b"\0\0\0\0",
    ] {
        let mut stream = plain(port).await;
        stream.write_all(garbage).await.expect("sent");
        stream.shutdown().await.expect("closed");
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "{garbage:?} is held");
    }
    let mut held = Vec::new();
    for number in 0..limits::STARTING_MAX + 300 {
        let mut stream = plain(port).await;
        let _ = stream.write_all(&b"\x16\x03\x01\x02\x00\x01"[..number % 7]).await;
        held.push(stream);
    }
    let stream = connect(port, &certificates.own, None, &TLS13).await.expect("there is room for who goes on");
    assert!(ask(stream, "/health").await.ends_with("ok\n"));
    let begin = Instant::now();
    for stream in &mut held {
        let left =
            limits::STARTUP_TIME_MAX + Duration::from_secs(5) - begin.elapsed().min(Duration::from_secs(12));
        // Alerts come before the end.
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(left, stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "a handshake that does not go on is given up");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_so_many_connections_and_one_more_is_told() {
    let (_, port) = started(PlainHttp::Loopback).await;
    let mut held = Vec::new();
    for _ in 0..limits::HTTP_CONNECTIONS_MAX {
        let mut stream = plain(port).await;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
        let mut answer = [0; 512];
        assert!(stream.read(&mut answer).await.expect("an answer") > 0);
        held.push(stream);
    }
    let answer = ask(plain(port).await, "/health").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("HTTP_CONNECTIONS_MAX"), "{answer}");
    held.pop();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ask(plain(port).await, "/health").await.ends_with("ok\n") {
        assert!(Instant::now() < deadline, "there is room again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
