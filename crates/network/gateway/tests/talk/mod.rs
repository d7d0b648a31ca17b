//! A client that says messages of the protocol and shows the answers as short words.
#![allow(missing_docs, dead_code)]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection whose messages are shown as short words.
pub struct Talk {
    pub stream: TcpStream,
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
}

/// The field of an error or a notice.
pub fn field(body: &[u8], kind: u8) -> String {
    let fields = body.split(|byte| *byte == 0);
    let found = fields.filter_map(|field| field.split_first()).find(|(first, _)| **first == kind);
    found.map(|(_, text)| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

/// Whose notification it is, its channel and what it says.
pub fn notified(body: &[u8]) -> String {
    let process = i32::from_be_bytes([body[0], body[1], body[2], body[3]]);
    let mut texts = body[4..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let mut text = || texts.next().unwrap_or_default();
    format!("{process} says {}:{}", text(), text())
}

impl Talk {
    pub async fn start(port: u16) -> Talk {
        Talk::start_with(port, "user\0ada\0\0").await
    }

    /// With these parameters: names and values, each with a zero byte behind it, and one more.
    pub async fn start_with(port: u16, parameters: &str) -> Talk {
        let body = [b"\0\x03\0\0", parameters.as_bytes()].concat();
        let startup = [&(body.len() as u32 + 4).to_be_bytes(), body.as_slice()].concat();
        let mut talk = Talk { stream: TcpStream::connect(("127.0.0.1", port)).await.expect("connected") };
        talk.stream.write_all(&startup).await.expect("sent");
        talk.answer().await;
        talk
    }

    pub async fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = self.stream.read_u8().await.ok()?;
        let length = self.stream.read_u32().await.ok()?;
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).await.ok()?;
        Some((kind, body))
    }

    /// Everything up to ReadyForQuery, or the end.
    pub async fn answer(&mut self) -> String {
        let mut words = Vec::new();
        while let Some((kind, body)) = self.read().await {
            let text = |body: &[u8]| {
                String::from_utf8_lossy(body.strip_suffix(b"\0").unwrap_or(body)).replace('\0', "=")
            };
            match kind {
                b'C' => words.push(text(&body)),
                b'E' => words.push(format!("error {}", field(&body, b'C'))),
                b'N' => words.push(format!("warning {}", field(&body, b'C'))),
                b'A' => words.push(notified(&body)),
                b'D' => words.push("row".to_string()),
                b's' => words.push("suspended".to_string()),
                b'G' => {
                    words.push("copy".to_string());
                    break;
                }
                b'S' if body.starts_with(b"entente") || body.starts_with(b"application") => {
                    words.push(text(&body))
                }
                b'Z' => {
                    words.push((body[0] as char).to_string());
                    break;
                }
                _ => {}
            }
        }
        words.join(", ")
    }

    pub async fn send(&mut self, messages: &[Vec<u8>]) {
        self.stream.write_all(&messages.concat()).await.expect("sent");
    }

    /// A query string.
    pub async fn query(&mut self, sql: &str) -> String {
        self.send(&[message(b'Q', format!("{sql}\0").as_bytes())]).await;
        self.answer().await
    }

    /// A statement by Parse, Bind, Execute and Sync.
    pub async fn extended(&mut self, sql: &str) -> String {
        let parse = message(b'P', format!("\0{sql}\0\0\0").as_bytes());
        self.send(&[parse, bind(), execute(0), message(b'S', b"")]).await;
        self.answer().await
    }

    /// Queries and what comes back.
    pub async fn check(&mut self, expected: &[(&str, &str)]) {
        for (sql, answer) in expected {
            assert_eq!(self.query(sql).await, *answer, "{sql}");
        }
    }
}

/// The unnamed portal of the unnamed statement.
pub fn bind() -> Vec<u8> {
    message(b'B', &[0, 0, 0, 0, 0, 0, 0, 0])
}

pub fn execute(rows_max: u32) -> Vec<u8> {
    message(b'E', &[&[0][..], &rows_max.to_be_bytes()].concat())
}
