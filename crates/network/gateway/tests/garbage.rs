//! Whatever is sent to the Postgres port: an error or a closed connection, never a panic, and others are not disturbed.

mod fake;

use fake::{Fake, serve};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn port() -> u16 {
    serve(Arc::new(Fake::default())).await.0
}

fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0ada\0\0";
    [&(body.len() as u32 + 4).to_be_bytes(), body.as_slice()].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

/// Sends bytes, and no more, and reads until the server closes.
async fn exchange(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    // The server may close before everything is sent.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    // It may reset the connection where it has not read everything; what came before counts.
    let _ = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
    answer
}

fn contains(answer: &[u8], text: &str) -> bool {
    answer.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A session that works, whatever happens beside it.
async fn assert_alive(port: u16) {
    let answer =
        exchange(port, &[startup(), message(b'Q', b"select series 2\0"), message(b'X', b"")].concat()).await;
    assert!(contains(&answer, "SELECT 2"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_startups_are_refused() {
    let port = port().await;
    for bytes in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 64],
        vec![0; 64],
        vec![0, 0, 0, 3],
        [&100_u32.to_be_bytes()[..], b"\0\x02\0\0"].concat(),
        [&8_u32.to_be_bytes()[..], b"\0\x02\0\0"].concat(),
        [&13_u32.to_be_bytes()[..], b"\0\x03\0\0user\0"].concat(),
        [&9_u32.to_be_bytes()[..], b"\0\x03\0\0\0"].concat(),
        [&12_u32.to_be_bytes()[..], b"\x04\xd2\x16\x2e\0\0\0\0"].concat(),
    ] {
        let answer = exchange(port, &bytes).await;
        assert!(answer.is_empty() || answer[0] == b'E', "{bytes:?}: {}", String::from_utf8_lossy(&answer));
        assert!(!contains(&answer, "server_version"));
    }
    assert_alive(port).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_is_refused_with_one_letter() {
    let port = port().await;
    let ssl = [8_u32.to_be_bytes(), 80_877_103_u32.to_be_bytes()].concat();
    let gss = [8_u32.to_be_bytes(), 80_877_104_u32.to_be_bytes()].concat();
    let answer = exchange(port, &[ssl, gss, startup()].concat()).await;
    assert_eq!(&answer[..3], b"NNR");
    assert!(contains(&answer, "server_version") && contains(&answer, "integer_datetimes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_end_the_connection_with_08p01() {
    let port = port().await;
    for bytes in [
        // Too long, negative, too short.
        [b"Q".as_slice(), &u32::MAX.to_be_bytes()].concat(),
        [b"Q".as_slice(), &0x7fff_ffff_u32.to_be_bytes()].concat(),
        [b"Q".as_slice(), &2_u32.to_be_bytes()].concat(),
        message(b'!', b""),
        message(b'Q', b"no end"),
        message(b'P', b"a\0select 1\0\xff\xff"),
        message(b'B', b"\0\0\0\x01\0"),
        message(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff"),
        message(b'D', b"X\0"),
        message(b'E', b""),
        message(b'p', b"password\0"),
    ] {
        let answer = exchange(port, &[startup(), bytes.clone()].concat()).await;
        assert!(contains(&answer, "C08P01"), "{bytes:?}: {}", String::from_utf8_lossy(&answer));
    }
    assert_alive(port).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_orders_and_names_are_errors_of_the_session() {
    let port = port().await;
    let sync = message(b'S', b"");
    for (bytes, code) in [
        (message(b'E', b"no\0\0\0\0\0"), "C34000"),
        (message(b'D', b"Sno\0"), "C26000"),
        (message(b'B', b"\0no\0\0\0\0\0\0\0"), "C26000"),
        (message(b'F', b"\0\0\0\0"), "C0A000"),
        (message(b'P', b"\0select $1\0\0\x01\0\0\0\x17"), "1\0\0\0\x04Z"),
        (message(b'Q', b"select '\xff\xfe'\0"), "C22021"),
    ] {
        let query = message(b'Q', b"select series 2\0");
        let answer = exchange(port, &[startup(), bytes.clone(), sync.clone(), query].concat()).await;
        let shown = String::from_utf8_lossy(&answer).into_owned();
        assert!(contains(&answer, code), "{code}: {shown}");
        assert!(contains(&answer, "SELECT 2"), "the session goes on after {code}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_suspend_after_as_many_rows_as_asked() {
    let port = port().await;
    let parse = message(b'P', b"\0select series 5\0\0\0");
    let bind = message(b'B', b"p\0\0\0\0\0\0\0\0");
    let execute = message(b'E', b"p\0\0\0\0\x02");
    let rest = message(b'E', b"p\0\0\0\0\0");
    let sync = message(b'S', b"");
    let answer =
        exchange(port, &[startup(), parse, bind, execute.clone(), execute, rest, sync].concat()).await;
    let suspended = answer.windows(5).filter(|window| window == b"s\0\0\0\x04").count();
    assert_eq!(suspended, 2);
    assert!(contains(&answer, "SELECT 1\0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_half_open_connections_keep_nobody_out() {
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
        pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4096
    };
    // Sessions are few: what has not started one must not count.
    let access = gateway::Access { connections_max: 3, ..gateway::Access::default() };
    let (port, _) = fake::serve_with(Arc::new(Fake::default()), access).await;
    assert_alive(port).await;
    let before = resident();
    let (startup, mut held) = (startup(), Vec::new());
    for number in 0..3_000 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
        // Closed at once where it is too much; nothing, a part of a first message, and a length that promises more.
        let _ = stream.write_all([&[][..], &startup[..number % 9], &[0, 0, 0x20, 0, 0]][number % 3]).await;
        held.push(stream);
        if number % 500 == 499 {
            assert_alive(port).await;
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "3,000 half-open connections take {grown} bytes");
    let mut open = 0;
    for stream in &mut held {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(1), stream.read(&mut byte)).await;
        open += usize::from(read.is_err());
    }
    assert!(open <= gateway::limits::STARTING_MAX, "{open} are still open");
    assert_alive(port).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_and_idle_connections_block_nobody() {
    let port = port().await;
    let mut held = Vec::new();
    for bytes in [&startup()[..3], &startup()[..7], &[startup(), b"Q\0\0\0\x20sel".to_vec()].concat(), b""] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
        stream.write_all(bytes).await.expect("sent");
        held.push(stream);
    }
    assert_alive(port).await;
    drop(held);
    assert_alive(port).await;
}
