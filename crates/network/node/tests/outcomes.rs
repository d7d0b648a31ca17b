//! Four nodes in one process that agree on outcomes: answers wait for a quorum, and a node whose memory is tampered with
//! is found out, says where, heals and takes part again.

mod network;

use network::{PATIENCE, TestNetwork};
use node::{Faults, NodeOptions};
use std::sync::Arc;
use types::{AnswerAt, Payload};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_wait_for_a_quorum_and_come_earlier_to_those_who_ask_for_that() {
    let mut network = TestNetwork::create(|_| {});
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    for n in 0..20 {
        let receipt = network.run(&client, &format!("INSERT INTO accounts VALUES ({n}, 0)")).await;
        let node = network.nodes[0].as_ref().expect("it runs");
        let certificate = node.outcome_certificate(receipt.height).expect("it was waited for");
        assert!(certificate.statement.height >= receipt.height);
        types::CertificateRules::new(&network.network.charter)
            .check_certificate(&certificate)
            .expect("a quorum's signatures");
        // What proves it to anybody is there when the answer is.
        let proof = node.database().receipt_proof(&receipt.transaction).expect("it is certified");
        let proof = proofs::ReceiptProof::from_json(&proof).expect("a proof");
        assert_eq!(proof.verify(&network.network.charter), Ok(&receipt));
    }

    // Two nodes are away: nothing is certified, and nothing is ordered either, which needs as many.
    network.check_agreement().await;
    let recorded = network.client(1).answered_at(AnswerAt::Recorded);
    network.run(&recorded, "UPDATE accounts SET n = n + 1 WHERE id = 1").await;

    // A restarted node attests what it recorded, and goes on.
    network.stop(3);
    network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id = 2").await;
    network.start(3, NodeOptions::default());
    network.run(&network.client(3), "UPDATE accounts SET n = n + 1 WHERE id = 3").await;
    network.check_agreement().await;
    network.stop_all();
}

/// What was recorded and not certified when a node ended is answered for when it is certified. (Who submitted it again
/// waited for ever, or was told that it had expired.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_restarted_answers_for_what_it_had_recorded_before() {
    let mut network = TestNetwork::create(|_| {});
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    let height = network.status(0).await.height;
    let payload = Payload::Script { sql: "INSERT INTO accounts VALUES (1, 0)".into(), parameters: vec![] };
    let signed = [client.identity().sign(payload, height + 1_000)];
    let early = client.answered_at(AnswerAt::Recorded);
    let mut replies = early.submit(&signed).await.expect("submitted");
    let first = replies.next().await.expect("a reply").expect("one").result.expect("it is executed");
    (0..4).for_each(|node| network.stop(node));

    // Alone it certifies nothing.
    network.start(0, NodeOptions::default());
    let client = network.client(0);
    let mut replies = client.submit(&signed).await.expect("submitted");
    (1..4).for_each(|node| network.start(node, NodeOptions::default()));
    let reply = tokio::time::timeout(PATIENCE, replies.next()).await.expect("it is certified");
    assert_eq!(reply.expect("a reply").expect("one").result.expect("it was executed"), first);
    network.check_agreement().await;
    network.stop_all();
}

/// A node whose memory was damaged may have recorded what blocks did not come to, and have ended before it was told. (It
/// did not start again.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_that_were_recorded_wrongly_are_recorded_again_at_the_start() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 10);
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    for (rounds, above) in [(0, 1), (25, 4)] {
        for n in 0..5 {
            network.run(&client, &format!("INSERT INTO accounts VALUES ({}, 0)", rounds * 10 + n)).await;
        }
        network.stop(2);
        let folder = network.network.folders[2].join("ledger");
        let (ledger, _) = ledger::Ledger::open(&folder, network.network.charter.ledger()).expect("it opens");
        let (tip, _) = ledger.tip().expect("it has blocks");
        // The first wrong one is the last, which nobody has certified, or one that later blocks have certificates of.
        let first = tip + 1 - above;
        let records: Result<Vec<_>, _> = ledger.blocks_from(first).collect();
        ledger.truncate_after(first - 1).expect("it has that block");
        for mut record in records.expect("they can be read") {
            record.outcome.header.state_digest.0[3] ^= 1;
            ledger.append(&record).expect("the next");
        }
        ledger.flush().expect("written");
        drop(ledger);
        network.run(&client, &format!("INSERT INTO accounts VALUES ({}, 0)", rounds * 10 + 9)).await;
        network.start(2, NodeOptions::default());
        network.check_agreement().await;
        assert_eq!(network.status(2).await.diverged, None, "it is right before it begins");
        network.run(&network.client(2), "UPDATE accounts SET n = n + 1 WHERE id = 1").await;
    }
    network.stop_all();
}

/// What executing comes to is held against certificates before it is recorded again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_blocks_contradict_a_certificate_does_not_start() {
    let mut network = TestNetwork::create(|_| {});
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    let created =
        network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    let inserted = network.run(&client, "INSERT INTO accounts VALUES (1, 0)").await;
    network.wait(2, "it is certified in a later block", |status| status.height > inserted.height + 12).await;
    network.stop(2);
    let folder = network.network.folders[2].join("ledger");
    let (ledger, _) = ledger::Ledger::open(&folder, network.network.charter.ledger()).expect("it opens");
    let (first, _) = ledger.block(created.height).expect("it can be read").expect("it is there");
    let records: Result<Vec<_>, _> = ledger.blocks_from(inserted.height).collect();
    ledger.truncate_after(inserted.height - 1).expect("it has that block");
    for mut record in records.expect("they can be read") {
        if record.block.header.height == inserted.height {
            // A request that was answered before.
            record.block.transactions = first.transactions.clone();
        }
        ledger.append(&record).expect("the next");
    }
    ledger.flush().expect("written");
    drop(ledger);
    // It ended in good order, so its state stands behind those blocks: it is to execute them again.
    std::fs::remove_dir_all(network.network.folders[2].join("state")).expect("it was there");
    let files = || {
        let names = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file").path());
        let mut files: Vec<_> = names
            .filter(|path| path.is_file())
            .map(|path| (std::fs::read(&path).expect("reads"), path))
            .collect();
        files.sort();
        files
    };
    let before = files();
    let node = node::NodeFolder::open(&network.network.folders[2]).expect("what create wrote");
    let started = tokio::task::block_in_place(|| node::Node::start_with(node, NodeOptions::default()));
    match started.map(|_| ()) {
        // The first certificate that a block carries may be of a later height, and covers the one before.
        Err(node::NodeError::Diverged { height, .. }) => {
            let expected = inserted.height..inserted.height + 12;
            assert!(expected.contains(&height), "{height}, expected {expected:?}");
        }
        other => panic!("expected that it does not start, found {other:?}"),
    }
    assert!(files() == before, "what was found stays as it is");
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_one_attests_alone() {
    let mut network = TestNetwork::of(1, |charter| {
        charter.ordering = "solo".to_string();
        charter.outcome_lag_blocks = 2;
        charter.block.transactions_max = 1;
    });
    network.start(0, NodeOptions::default());
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    for n in 0..10 {
        let receipt = network.run(&client, &format!("INSERT INTO accounts VALUES ({n}, 0)")).await;
        assert!(network.status(0).await.certified_height >= receipt.height);
    }
    network.stop(0);
    network.start(0, NodeOptions::default());
    let receipt = network.run(&client, "UPDATE accounts SET n = 1").await;
    assert!(network.status(0).await.certified_height >= receipt.height);
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_is_found_named_and_healed_by_replaying_everything() {
    // No checkpoint comes in between, whose root would tell.
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 1_000);
    let faults = Arc::new(Faults::default());
    for node in 0..4 {
        let faults = (node == 2).then(|| faults.clone());
        network.start(node, NodeOptions { faults, ..NodeOptions::default() });
    }
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    network.run(&client, "CREATE TABLE others (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    network
        .run(&client, "INSERT INTO accounts VALUES (0, 0), (1, 0); INSERT INTO others VALUES (0, 0)")
        .await;

    faults.flip_in("accounts");
    network.wait(2, "it strikes", |_| faults.has_struck()).await;
    network.run(&client, "UPDATE others SET n = n + 1 WHERE id = 0").await;
    let receipt = network.run(&client, "UPDATE accounts SET n = n + 1 WHERE id = 0").await;

    // The others go on; the node says what differs from where on.
    let told = network.wait(2, "it reports", |status| status.diverged.is_some()).await;
    for n in 0..5 {
        network.run(&client, &format!("UPDATE accounts SET n = n + {n} WHERE id = 1")).await;
    }
    let healed =
        |status: &client::Status| status.not_serving.is_none() && status.certified_height >= receipt.height;
    let status = network.wait(2, "it heals", healed).await;
    let text = status.diverged.or(told.diverged).expect("reported");
    assert!(text.contains(&format!("from block {} on", receipt.height)), "{text}, {}", receipt.height);
    assert!(text.contains("in table accounts"), "{text}");
    for node in [0, 1, 3] {
        assert_eq!(network.status(node).await.diverged, None);
    }
    // It takes part again: without one of the others, its attestation is needed.
    network.stop(3);
    let receipt = network.run(&network.client(2), "UPDATE accounts SET n = n + 1 WHERE id = 0").await;
    assert!(network.status(2).await.certified_height >= receipt.height);
    network.start(3, NodeOptions::default());
    network.check_agreement().await;
    network.stop_all();
}
