//! Node keys that expire while the network runs, and are replaced before or after.
#![allow(missing_docs)]

mod network;

use network::{PATIENCE, TestNetwork};
use node::NodeOptions;
use std::time::{Duration, Instant};
use types::{Payload, SubmissionRefusal};

const CREATE: &str = "CREATE TABLE entries (id bigint PRIMARY KEY)";

async fn started() -> TestNetwork {
    let mut network = TestNetwork::create(|charter| {
        charter.block.idle_ms = 100;
        // Amendments hold 14 blocks after they are decided.
        charter.outcome_lag_blocks = 4;
    });
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    network.run(&network.client(0), CREATE).await;
    network
}

/// The node goes on with another key once that holds.
async fn replace_key(network: &mut TestNetwork, node: usize, expires: Option<u64>) {
    let replaced = network.replace_key(node, expires);
    network.run(&network.client(0), &replaced.statement).await;
    blocks(network, 20).await;
    network.stop(node);
    replaced.take();
    network.start(node, NodeOptions::default());
}

async fn blocks(network: &TestNetwork, blocks: u64) {
    let height = network.status(0).await.height + blocks;
    network
        .wait(0, "blocks come", |status| status.height >= height && status.certified_height >= height)
        .await;
}

/// Who has signed the newest outcome certificate of a node, once one of this height or above says what is expected.
async fn wait_for_signers(network: &TestNetwork, above: u64, until: impl Fn(&[u16]) -> bool) {
    let start = Instant::now();
    loop {
        let node = network.nodes[0].as_ref().expect("it runs");
        let height = network.status(0).await.certified_height;
        let certificate = node.outcome_certificate(height).filter(|one| one.statement.height > above);
        let signers: Vec<u16> =
            certificate.iter().flat_map(|one| one.signatures.iter().map(|(member, _)| *member)).collect();
        if !signers.is_empty() && until(&signers) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "height {height}: signed by {signers:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn wait_for_warnings(network: &TestNetwork, until: impl Fn(&[String]) -> bool) {
    network.wait(2, "it warns", |status| until(&status.warnings)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_replaced_after_it_has_expired_and_the_network_goes_on() {
    let mut network = started().await;
    let client = network.client(0);
    assert!(network.status(2).await.warnings.is_empty());

    // Its node goes on with the new key, which is to expire.
    let last = network.status(0).await.height + 200;
    replace_key(&mut network, 1, Some(last)).await;
    let expected = format!("the node key of org2 expires with height {last}, within a day");
    wait_for_warnings(&network, |warnings| warnings.len() == 1 && warnings[0].starts_with(&expected)).await;
    network.run(&client, "INSERT INTO entries VALUES (1)").await;
    let height = network.status(0).await.height;
    assert!(height < last, "{height}: the key should not have expired yet");
    wait_for_signers(&network, 0, |signers| signers.contains(&1)).await;

    // It has expired: nothing that it attests counts, and the network goes on without.
    network.wait(0, "it expires", |status| status.certified_height > last + 5).await;
    wait_for_warnings(&network, |warnings| warnings.len() == 1 && warnings[0].contains("org2 has expired"))
        .await;
    network.run(&client, "INSERT INTO entries VALUES (2)").await;
    network.run(&network.client(1), "INSERT INTO entries VALUES (3)").await;
    wait_for_signers(&network, last, |signers| signers == [0, 2, 3]).await;

    // It is replaced then.
    replace_key(&mut network, 1, None).await;
    let replaced = network.status(0).await.height;
    network.run(&client, "INSERT INTO entries VALUES (4)").await;
    wait_for_signers(&network, replaced, |signers| signers.contains(&1)).await;
    assert!(network.status(2).await.warnings.is_empty());
    network.check_agreement().await;
    // Its word is needed.
    network.stop(3);
    network.run(&client, "INSERT INTO entries VALUES (5)").await;
    network.start(3, NodeOptions::default());
    network.check_agreement().await;
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_all_keys_would_have_expired_they_count_and_can_be_replaced() {
    let mut network = started().await;
    let client = network.client(0);
    let last = network.status(0).await.height + 300;
    for node in 1..4 {
        replace_key(&mut network, node, Some(last)).await;
        network.run(&network.client(node), &format!("INSERT INTO entries VALUES ({node})")).await;
    }
    let height = network.status(0).await.height;
    assert!(height < last, "{height}: the keys should not have expired yet");
    network.wait(0, "they expire", |status| status.certified_height > last + 20).await;
    let too_few = |status: &client::Status| {
        status.warnings.len() == 3 && status.warnings.iter().all(|warning| warning.contains("too few others"))
    };
    network.wait(0, "it warns", too_few).await;
    network.run(&client, "INSERT INTO entries VALUES (10)").await;

    // Once two of them do not expire, the third has expired.
    for node in [1, 2] {
        let again = network.replace_key(node, None);
        let height = network.run(&client, &again.statement).await.height + 8;
        // A block names the amendment by then, and it does not hold yet. From then on the third key has expired and this one
        // is needed.
        network.wait(node, "it is named", |status| status.height >= height).await;
        network.stop(node);
        again.take();
        network.start(node, NodeOptions::default());
        blocks(&network, 20).await;
    }
    let height = network.status(0).await.height;
    network.run(&client, "INSERT INTO entries VALUES (11)").await;
    wait_for_signers(&network, height, |signers| signers == [0, 1, 2]).await;
    network.check_agreement().await;
    network.stop_all();
}

/// What is wrong is where it was submitted, not whose it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_no_member_sends_clients_to_others() {
    let mut network = started().await;
    let (node, _) = network.newcomer("emma");
    network.start(node, NodeOptions::default());
    let client = network.client_of(0, node);
    let payload =
        Payload::Script { sql: "INSERT INTO entries VALUES (1)".to_string(), parameters: Vec::new() };
    let signed = client.identity().sign(payload, 1_000);
    let mut replies = client.submit(std::slice::from_ref(&signed)).await.expect("submitted");
    let reply = replies.next().await.expect("a reply").expect("one for each");
    assert_eq!(reply.result, Err(SubmissionRefusal::NoMember { height: 1 }));
    network.client(0).execute(&signed).await.expect("the same bytes, at another node");
    network.stop_all();
}
