//! What `consistency = "strict"` promises: who has an answer sees it, whichever node it asks next. Under `serializable`
//! the test fails: the first batch of a block is simulated on the state that the last batch of the block before found.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::TestNetwork;
use tokio_postgres::SimpleQueryMessage;
use types::{Consistency, Payload};

const SET_UP: [&str; 7] = [
    "CREATE TABLE board (id bigint PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE counters (id bigint PRIMARY KEY, n bigint NOT NULL)",
    "INSERT INTO board VALUES (1, 0)",
    "INSERT INTO counters VALUES (1, 0)",
    "CREATE PROCEDURE put(value bigint) LANGUAGE plpgsql AS $$
    BEGIN UPDATE board SET n = value WHERE id = 1; END $$",
    "CREATE PROCEDURE look(OUT value bigint) LANGUAGE plpgsql AS $$
    BEGIN SELECT n INTO value FROM board WHERE id = 1; END $$",
    "CREATE PROCEDURE count_up(OUT value bigint) LANGUAGE plpgsql AS $$
    BEGIN
        SELECT n INTO value FROM counters WHERE id = 1;
        UPDATE counters SET n = n + 1 WHERE id = 1;
    END $$",
];

/// The value of the only row.
fn only(messages: &[SimpleQueryMessage]) -> i64 {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let values: Vec<i64> = rows.map(|row| row.get(0).expect("a value").parse().expect("a number")).collect();
    assert_eq!(values.len(), 1);
    values[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_reads_through_another_node_what_it_has_just_committed() {
    let mut network = TestNetwork::create(|charter| {
        assert_eq!(charter.concurrency.consistency, Consistency::Strict, "a new charter's consistency");
        assert!(charter.concurrency.inter_block, "batches overlap in a new charter");
        // Many batches in a block, and blocks that follow one another closely.
        charter.block.batch_transactions = 4;
    });
    network.start_all().await;
    let session = network.session(0).await;
    for statement in SET_UP {
        session.batch_execute(statement).await.expect("created");
    }
    network.wait_until_level_with(0, &[1, 2, 3]).await;

    let stop = Arc::new(AtomicBool::new(false));
    let loads: Vec<_> = [1, 3]
        .map(|node| (network.client(node), stop.clone()))
        .map(|(client, stop)| {
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let height = client.status().await.expect("it answers").height;
                    let call = || Payload::Call { procedure: "count_up".into(), arguments: vec![] };
                    let signed: Vec<_> =
                        (0..40).map(|_| client.identity().sign(call(), height + 1_000)).collect();
                    let mut replies = client.submit(&signed).await.expect("it accepts them");
                    while let Some(reply) = replies.next().await.expect("an answer") {
                        reply.result.expect("a receipt");
                    }
                }
            })
        })
        .into_iter()
        .collect();

    let sessions = [network.session(0).await, network.session(1).await, network.session(2).await];
    for value in 1..=60 {
        let (writer, reader) = (&sessions[value % 3], &sessions[(value + 1) % 3]);
        writer.batch_execute(&format!("CALL put({value})")).await.expect("committed");
        let seen = only(&reader.simple_query("CALL look(NULL)").await.expect("committed"));
        assert_eq!(seen, value as i64, "the answer to put came before look was submitted");
    }
    stop.store(true, Ordering::Relaxed);
    for load in loads {
        load.await.expect("the load ends");
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
