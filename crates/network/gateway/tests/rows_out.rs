//! Rows of a SELECT on their way to the client, message by message, from a gateway in front of a database in memory.

mod fake;

use fake::{Fake, serve};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More than the operating system buffers of a connection.
const ROWS_MANY: u64 = 10_000_000;

/// A client that reads when it is told to.
struct Client {
    stream: TcpStream,
    /// What cancels its statements.
    key: Vec<u8>,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

fn parse(sql: &str) -> Vec<u8> {
    message(b'P', format!("\0{sql}\0\0\0").as_bytes())
}

/// The unnamed portal of the unnamed statement.
fn bind() -> Vec<u8> {
    message(b'B', &[0, 0, 0, 0, 0, 0, 0, 0])
}

fn execute(rows_max: u32) -> Vec<u8> {
    message(b'E', &[&[0][..], &rows_max.to_be_bytes()].concat())
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

impl Client {
    async fn start(port: u16) -> Client {
        let body = b"\0\x03\0\0user\0ada\0\0";
        let startup = [&(body.len() as u32 + 4).to_be_bytes(), body.as_slice()].concat();
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
        let mut client = Client { stream, key: Vec::new() };
        client.stream.write_all(&startup).await.expect("sent");
        loop {
            match client.read().await {
                (b'K', key) => client.key = key,
                (b'Z', _) => return client,
                _ => {}
            }
        }
    }

    async fn send(&mut self, messages: &[Vec<u8>]) {
        self.stream.write_all(&messages.concat()).await.expect("sent");
    }

    async fn read(&mut self) -> (u8, Vec<u8>) {
        let kind = self.stream.read_u8().await.expect("a message");
        let length = self.stream.read_u32().await.expect("its length");
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).await.expect("its body");
        (kind, body)
    }

    /// Everything up to ReadyForQuery in short words: rows that follow one another are counted.
    async fn answer(&mut self) -> String {
        let (mut words, mut rows) = (Vec::new(), 0);
        loop {
            let (kind, body) = self.read().await;
            if kind == b'D' {
                rows += 1;
                continue;
            }
            if rows > 0 {
                words.push(format!("{rows} rows"));
                rows = 0;
            }
            let field = |kind: u8| {
                let fields = body.split(|byte| *byte == 0);
                let found = fields.filter_map(|field| field.split_first()).find(|(first, _)| **first == kind);
                String::from_utf8_lossy(found.expect("the field").1).into_owned()
            };
            match kind {
                b'T' => words.push("described".to_string()),
                b'C' => words.push(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned()),
                b'E' => words.push(format!("error {}", field(b'C'))),
                b'N' => words.push(format!("notice {}", field(b'M'))),
                b's' => words.push("suspended".to_string()),
                b'Z' => return words.join(", "),
                _ => {}
            }
        }
    }

    async fn query(&mut self, sql: &str) -> String {
        self.send(&[message(b'Q', format!("{sql}\0").as_bytes())]).await;
        self.answer().await
    }
}

async fn started() -> (Arc<Fake>, Client, u16) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(Arc::clone(&fake)).await;
    (fake, Client::start(port).await, port)
}

/// How many rows the query had found when it found no more.
async fn rows_when_it_waits(fake: &Fake) -> u64 {
    let start = Instant::now();
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let found = fake.handed_out.load(Ordering::SeqCst);
        if found == before && found > 0 {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it goes on and on: {found} rows");
        before = found;
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_does_not_read_is_not_found() {
    let (fake, mut client, _) = started().await;
    client.send(&[message(b'Q', format!("select series {ROWS_MANY}\0").as_bytes())]).await;
    let found = rows_when_it_waits(&fake).await;
    // A row has 18 bytes at most. The operating system takes some megabytes of them, the gateway half of one.
    assert!(found * 18 < 32 << 20, "{found} rows");
    let taken = fake.memory.taken();
    assert!((64 << 10..1 << 20).contains(&taken), "{taken} bytes");
    drop(client);
    until("the query ends with its client", || fake.stopped.load(Ordering::SeqCst)).await;
    until("its memory is free", || fake.memory.taken() == 0).await;
    assert!(fake.handed_out.load(Ordering::SeqCst) < ROWS_MANY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_cancelled_waits_for_nobody() {
    let (fake, mut client, port) = started().await;
    client.send(&[message(b'Q', format!("select series {ROWS_MANY}\0").as_bytes())]).await;
    rows_when_it_waits(&fake).await;
    let mut other = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let cancel = [&16_u32.to_be_bytes()[..], &80_877_102_u32.to_be_bytes(), &client.key].concat();
    other.write_all(&cancel).await.expect("sent");
    // Before the client has read anything.
    until("the query is over", || fake.stopped.load(Ordering::SeqCst)).await;
    let answer = client.answer().await;
    assert!(answer.starts_with("described, ") && answer.ends_with(" rows, error 57014"), "{answer}");
    assert_eq!(client.query("select series 1").await, "described, 1 rows, SELECT 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_statement_is_up_while_its_client_reads_nothing() {
    let (fake, mut client, _) = started().await;
    assert_eq!(client.query("SET statement_timeout = 500").await, "SET");
    client.send(&[message(b'Q', format!("select series {ROWS_MANY}\0").as_bytes())]).await;
    until("the query is over", || fake.stopped.load(Ordering::SeqCst)).await;
    let answer = client.answer().await;
    assert!(answer.ends_with(" rows, error 57014"), "{answer}");
    assert_eq!(client.query("select series 1").await, "described, 1 rows, SELECT 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rows_arrive_whatever_their_number() {
    let (fake, mut client, _) = started().await;
    for rows in [1, 100, 5_000, 300_000] {
        let sql = format!("select series {rows}");
        assert_eq!(client.query(&sql).await, format!("described, {rows} rows, SELECT {rows}"));
        // A portal that has given all its rows has no more.
        client.send(&[parse(&sql), bind(), execute(0), execute(0), sync()]).await;
        assert_eq!(client.answer().await, format!("{rows} rows, SELECT {rows}, SELECT 0"));
    }
    assert_eq!(client.query("select series 0").await, "described, SELECT 0");
    assert_eq!(client.query("select noticed").await, "notice two rows, described, 2 rows, SELECT 2");
    assert_eq!(fake.memory.taken(), 0);
    // What runs again because the catalog has changed meanwhile gives each row once.
    fake.changes.store(1, Ordering::SeqCst);
    assert_eq!(client.query("select series 3").await, "described, 3 rows, SELECT 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_give_as_many_rows_as_are_asked_for() {
    let (_, mut client, _) = started().await;
    client.send(&[parse("select series 5"), bind(), execute(2), execute(2), execute(0), sync()]).await;
    assert_eq!(client.answer().await, "2 rows, suspended, 2 rows, suspended, 1 rows, SELECT 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_comes_behind_the_rows_that_were_sent() {
    let (fake, mut client, _) = started().await;
    fake.fails_at.store(200_000, Ordering::SeqCst);
    let answer = client.query("select series 300000").await;
    assert!(answer.starts_with("described, ") && answer.ends_with(" rows, error 22012"), "{answer}");
    // Where nothing was sent yet it comes alone.
    fake.fails_at.store(fake.handed_out.load(Ordering::SeqCst) + 2, Ordering::SeqCst);
    assert_eq!(client.query("select series 3").await, "error 22012");
    fake.fails_at.store(fake.handed_out.load(Ordering::SeqCst) + 2, Ordering::SeqCst);
    client.send(&[parse("select series 3"), bind(), execute(0), sync()]).await;
    assert_eq!(client.answer().await, "error 22012");
    assert_eq!(client.query("select series 3").await, "described, 3 rows, SELECT 3");
}
