//! Scripts for recorded networks: paragraphs of SQL, each with what is to become of it.

use crate::support::TestNetwork;
use std::collections::BTreeMap;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Outcome, Payload};

/// How a paragraph is sent, and what it comes to.
#[derive(Default, Debug)]
struct Paragraph {
    sql: String,
    /// Number of the node, from 1.
    node: usize,
    /// How many sessions send it together.
    copies: Option<usize>,
    /// The SQLSTATE that it ends with, or may end with where several send it.
    fails: Option<String>,
    /// It may end as it likes: what it came to is in the answers.
    ends_anyhow: bool,
    /// By HTTP, signed by the client of the node's organisation.
    is_signed: bool,
    /// So many blocks later.
    wait_blocks: u64,
}

fn paragraphs(text: &str) -> Vec<Paragraph> {
    let paragraphs = text.split("\n\n").map(|text| {
        let mut paragraph = Paragraph { node: 1, ..Paragraph::default() };
        for line in text.lines() {
            match line.strip_prefix("--@ ") {
                Some(words) => paragraph.read(words),
                None if line.starts_with("--") => {}
                None => paragraph.sql.extend([line, "\n"]),
            }
        }
        paragraph.sql.truncate(paragraph.sql.trim_end().len());
        paragraph
    });
    paragraphs.filter(|paragraph| !paragraph.sql.is_empty()).collect()
}

impl Paragraph {
    fn read(&mut self, words: &str) {
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            let mut next = || words.next().expect("a word more");
            match word {
                "at" => self.node = next().parse().expect("the number of a node"),
                "together" => self.copies = Some(next().parse().expect("a number")),
                "fails" => self.fails = Some(next().to_string()),
                "whatever" => self.ends_anyhow = true,
                "signed" => self.is_signed = true,
                "wait" => self.wait_blocks = next().parse().expect("a number of blocks"),
                other => panic!("`{other}` says nothing"),
            }
        }
    }
}

fn code(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.code().code().to_string())
}

/// From which height on a checkpoint can be made, where that is what an error says.
fn next_checkpoint(error: &tokio_postgres::Error) -> Option<u64> {
    let message = error.as_db_error()?.message();
    let (_, rest) = message.split_once("the next one can be at height ")?;
    rest.split(' ').next()?.parse().ok()
}

/// The rows of a query, their values with tabs between.
pub async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let value = |value: Option<&str>| value.map_or("NULL".into(), |value| value.escape_debug().to_string());
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| value(row.get(column))).collect::<Vec<_>>().join("\t"))
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// The sessions of a script, one per node, and what they have come to.
pub struct Runner<'a> {
    network: &'a TestNetwork,
    sessions: BTreeMap<usize, (Client, bool)>,
    /// The newest height that one of them has written at.
    height: u64,
}

impl<'a> Runner<'a> {
    pub fn new(network: &'a TestNetwork) -> Runner<'a> {
        Runner { network, sessions: BTreeMap::new(), height: 0 }
    }

    /// Sends everything, and sees that it comes to what the script says.
    pub async fn run(&mut self, script: &str) {
        for paragraph in paragraphs(script) {
            if paragraph.wait_blocks > 0 {
                let height = self.network.client(0).status().await.expect("it answers").height;
                self.network.wait_for_height(0, height + paragraph.wait_blocks).await;
            }
            match paragraph.copies {
                Some(copies) => self.together(&paragraph, copies).await,
                None if paragraph.is_signed => self.signed(&paragraph).await,
                None => self.one(&paragraph).await,
            }
        }
    }

    async fn one(&mut self, paragraph: &Paragraph) {
        let (sql, node) = (paragraph.sql.as_str(), paragraph.node);
        if !self.sessions.contains_key(&node) {
            self.sessions.insert(node, (self.network.session(node - 1).await, false));
        }
        let (session, is_in_block) = self.sessions.get_mut(&node).expect("it was just made");
        if !*is_in_block {
            let seen = format!("SET entente.min_height = {}", self.height);
            session.batch_execute(&seen).await.expect("it can be set");
        }
        let mut result = session.simple_query(sql).await;
        // How many blocks there are by now depends on how fast the machine is, and nodes make checkpoints by themselves, too.
        if let Err(error) = &result
            && let Some(height) = next_checkpoint(error)
        {
            self.network.wait_for_height(node - 1, height).await;
            result = session.simple_query(sql).await;
        }
        let failed = result.err().map(|error| (code(&error), error));
        let (found, error) = failed.unzip();
        assert!(paragraph.ends_anyhow || found == paragraph.fails, "{sql}: {error:?}");
        match sql {
            "BEGIN" => *is_in_block = true,
            "COMMIT" | "ROLLBACK" => *is_in_block = false,
            _ => {}
        }
        if !*is_in_block {
            let height = &rows(session, "SHOW entente.last_height").await[0];
            self.height = self.height.max(height.parse().unwrap_or(0));
        }
    }

    async fn together(&mut self, paragraph: &Paragraph, copies: usize) {
        let mut tasks = Vec::new();
        for number in 1..=copies {
            let session = self.network.session(number % 4).await;
            let seen = format!("SET entente.min_height = {}", self.height);
            session.batch_execute(&seen).await.expect("it can be set");
            let sql = paragraph.sql.replace("{n}", &number.to_string());
            tasks.push(tokio::spawn(async move {
                let result = session.batch_execute(&sql).await.map_err(|error| (code(&error), error));
                (result, rows(&session, "SHOW entente.last_height").await.remove(0))
            }));
        }
        for task in tasks {
            let (result, height) = task.await.expect("no panic");
            if let Err((found, error)) = result {
                assert_eq!(Some(found), paragraph.fails, "{}: {error:?}", paragraph.sql);
            }
            self.height = self.height.max(height.parse().unwrap_or(0));
        }
    }

    async fn signed(&mut self, paragraph: &Paragraph) {
        let client = self.network.client(paragraph.node - 1);
        let height = client.status().await.expect("it answers").height;
        let payload = Payload::Script { sql: paragraph.sql.clone(), parameters: vec![] };
        let signed = client.identity().sign(payload, height + 1_000);
        let receipt = client.execute(&signed).await.expect("a receipt");
        let failed = match &receipt.outcome {
            Outcome::Committed(_) => None,
            Outcome::Aborted(error) => Some(error.state.to_string()),
            other => panic!("{}: {other:?}", paragraph.sql),
        };
        assert!(paragraph.ends_anyhow || failed == paragraph.fails, "{}: {receipt:?}", paragraph.sql);
        self.height = self.height.max(receipt.height);
    }

    /// The newest height that it has written at.
    pub fn height(&self) -> u64 {
        self.height
    }
}

/// What a node answers to the queries of a file: each with its rows below.
pub async fn answers(session: &Client, queries: &str) -> String {
    let mut answers = String::new();
    for Paragraph { sql, .. } in paragraphs(queries) {
        answers.extend([sql.as_str(), "\n"]);
        for row in rows(session, &sql).await {
            answers.extend(["    ", &row, "\n"]);
        }
        answers.push('\n');
    }
    answers
}
