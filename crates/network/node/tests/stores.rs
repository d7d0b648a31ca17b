//! A network whose nodes keep the state in different stores: they agree byte for byte, also after they were killed, and where one
//! goes over to another store.

mod network;

use network::TestNetwork;
use node::NodeOptions;

const DISK: &str = "store = \"disk\"\nmemory_megabytes = 16";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_different_stores_agree_and_may_change_over() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 5);
    [2, 3].into_iter().for_each(|node| network.keep_state(node, DISK));
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network
        .run(&client, "CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, n bigint NOT NULL)")
        .await;
    network.run(&client, "CREATE INDEX account_n ON account (n)").await;
    for round in 0..4 {
        let insert = format!(
            "INSERT INTO account SELECT number, repeat('x', 200), 0 \
             FROM generate_series({}, {}) AS number",
            round * 5_000,
            round * 5_000 + 4_999
        );
        network.run(&network.client(round), &insert).await;
        network.run(&network.client(round), "UPDATE account SET n = n + id WHERE id % 3 = 0").await;
        network.run(&network.client(round), "DELETE FROM account WHERE id % 7 = 6").await;
    }
    network.check_agreement().await;
    // From disk to memory and the other way round, from a checkpoint.
    network.stop(3);
    network.keep_state(3, "store = \"memory\"");
    network.start(3, NodeOptions::default());
    network.stop(0);
    network.keep_state(0, DISK);
    network.start(0, NodeOptions::default());
    network.run(&network.client(2), "ALTER TABLE account ADD COLUMN note text DEFAULT 'none'").await;
    network.run(&network.client(0), "UPDATE account SET note = 'some' WHERE n > 1000").await;
    network.run(&network.client(1), "CREATE TABLE other (id bigint PRIMARY KEY)").await;
    network.run(&network.client(1), "DROP TABLE other").await;
    network.check_agreement().await;
    network.stop_all();
}
