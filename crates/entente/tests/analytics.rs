//! Analytical queries on a network of real processes: the same answers from columns and from rows, in memory and on disk, while
//! tables change, are altered and go.

mod support;

use std::fs;
use support::TestNetwork;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Questions about `payment` and `account`: groups, joins, sums that need more than 64 bits, texts, NULLs, an error.
const QUESTIONS: [&str; 8] = [
    "SELECT count(*), sum(amount), min(at), max(label) FROM payment",
    "SELECT label, count(*), sum(amount), avg(amount) FROM payment GROUP BY label ORDER BY label",
    "SELECT payer % 7, count(DISTINCT payee), sum(cents) FROM payment WHERE cents > 100 GROUP BY 1 HAVING count(*) > 3",
    "SELECT a.region, sum(p.amount) FROM payment p JOIN account a ON a.id = p.payer GROUP BY a.region ORDER BY 2 DESC LIMIT 3",
    "SELECT a.region, count(p.id) FROM account a LEFT JOIN payment p ON p.payee = a.id AND p.cents > 9000 GROUP BY a.region",
    "SELECT sum(9223372036854775807 - cents), avg(cents) FROM payment",
    "SELECT max(total) FROM (SELECT payer, sum(amount) AS total FROM payment GROUP BY payer) AS of_payer",
    "SELECT sum(cents / (cents - cents)) FROM payment",
];

async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let messages = match client.simple_query(sql).await {
        Ok(messages) => messages,
        Err(error) => return vec![error.as_db_error().expect("an answer").message().to_string()],
    };
    let text = |row: &tokio_postgres::SimpleQueryRow| {
        (0..row.len())
            .map(|column| row.get(column).unwrap_or("NULL").to_string())
            .collect::<Vec<_>>()
            .join("|")
    };
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(text(row)),
        _ => None,
    });
    rows.collect()
}

/// How many groupings a node has made from columns.
async fn from_columns(network: &TestNetwork, node: usize) -> u64 {
    let url = format!("http://127.0.0.1:{}/metrics", network.port_base + 200 + node as u16);
    let text = reqwest::get(url).await.expect("an answer").text().await.expect("a text");
    let line = text.lines().find_map(|line| line.strip_prefix("entente_fragments_total{from=\"columns\"} "));
    line.map_or(0, |number| number.parse().expect("a number"))
}

/// All nodes answer all questions alike.
async fn ask(network: &TestNetwork, sessions: &[Client], writer: usize) {
    network.wait_until_level_with(writer, &[0, 1, 2, 3]).await;
    for question in QUESTIONS {
        let expected = rows(&sessions[3], question).await;
        assert!(!expected.is_empty(), "{question}");
        for session in &sessions[..3] {
            assert_eq!(rows(session, question).await, expected, "{question}");
        }
    }
}

fn append(network: &TestNetwork, node: usize, line: &str) {
    let path = network.node_folder(node).join("node.toml");
    let text = fs::read_to_string(&path).expect("node.toml");
    fs::write(&path, format!("{line}\n{text}")).expect("it can be written");
}

async fn fill(session: &Client) {
    let definitions = "CREATE TABLE account (id int PRIMARY KEY, region varchar(12) NOT NULL); \
         CREATE TABLE payment (id int PRIMARY KEY, payer int NOT NULL, payee int, cents bigint NOT NULL, \
         amount numeric(15,2) NOT NULL, label text, at timestamptz NOT NULL)";
    for definition in definitions.split("; ") {
        session.batch_execute(definition).await.expect("created");
    }
    let fills = [
        "INSERT INTO account SELECT n, 'region ' || n % 5 FROM generate_series(1, 500) AS n",
        "INSERT INTO payment SELECT n, n % 500 + 1, CASE WHEN n % 9 > 0 THEN n % 83 + 1 END, n * 37 % 10007, \
         (n * 91 % 100000) / 100.0, CASE WHEN n % 11 > 0 THEN 'label ' || n % 13 END, \
         timestamptz '2026-01-01 00:00:00+00' + n * interval '1 minute' FROM generate_series(1, 4000) AS n",
    ];
    for fill in fills {
        session.batch_execute(fill).await.expect("filled");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_answer_as_rows_do_while_tables_change() {
    let mut network = TestNetwork::create(|_| ());
    append(&network, 2, "store = \"disk\"");
    append(&network, 3, "column_memory_megabytes = 0");
    network.start_all().await;
    let mut sessions = Vec::new();
    for node in 0..4 {
        sessions.push(network.session(node).await);
    }
    fill(&sessions[0]).await;
    ask(&network, &sessions, 0).await;

    for change in [
        "UPDATE payment SET amount = amount + 1.25, label = 'changed' WHERE id % 3 = 0",
        "DELETE FROM payment WHERE id % 10 = 7",
        "INSERT INTO payment SELECT n, n % 500 + 1, 3, 50, 0.5, NULL, timestamptz '2027-01-01 00:00:00+00' \
         FROM generate_series(4001, 4300) AS n",
        "ALTER TABLE payment ADD COLUMN note text DEFAULT 'none'",
        "UPDATE account SET region = 'moved' WHERE id % 50 = 0",
    ] {
        sessions[0].batch_execute(change).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
        ask(&network, &sessions, 0).await;
    }
    for node in 0..3 {
        let made = from_columns(&network, node).await;
        assert!(made >= 6 * 6, "node {node} has made {made} groupings from columns");
    }
    assert_eq!(from_columns(&network, 3).await, 0);

    sessions[0].batch_execute("DROP TABLE payment").await.expect("dropped");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    for session in &sessions {
        assert_eq!(rows(session, QUESTIONS[0]).await, ["relation \"payment\" does not exist"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_that_of_one_height() {
    let mut network = TestNetwork::create(|_| ());
    append(&network, 1, "store = \"disk\"");
    network.start_all().await;
    let (writer, memory, disk) =
        (network.session(0).await, network.session(0).await, network.session(1).await);
    fill(&writer).await;
    network.wait_until_level_with(0, &[1]).await;
    let sum = rows(&memory, "SELECT sum(cents) FROM payment").await;
    let transfers = tokio::spawn(async move {
        for round in 0..60 {
            let (from, to) = (round * 61 % 4000 + 1, round * 89 % 4000 + 1);
            let change = format!(
                "UPDATE payment SET cents = cents + CASE id WHEN {from} THEN -7 ELSE 7 END WHERE id IN ({from}, {to})"
            );
            // The sum is the same behind every one of them.
            if from != to {
                writer.batch_execute(&change).await.expect("changed");
            }
        }
    });
    let mut asked = 0;
    while !transfers.is_finished() {
        for session in [&memory, &disk] {
            assert_eq!(rows(session, "SELECT sum(cents) FROM payment").await, sum);
            asked += 1;
        }
    }
    transfers.await.expect("all were changed");
    assert!(asked > 20 && from_columns(&network, 0).await > 10 && from_columns(&network, 1).await > 10);
}
