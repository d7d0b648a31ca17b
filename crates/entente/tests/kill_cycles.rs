//! `kill -9` of one to four of four nodes at random instants under load, again and again: every receipt that a client was
//! given stands in every node's ledger, as it was given, and every transaction has taken effect once. Where a Raft group orders,
//! every other cycle kills whoever leads; where a topic of Kafka does, the broker that leads it.
//!
//! `make test` runs a few cycles. Many, with another build of the program:
//!
//! ```sh
//! cargo build --release && KILL_CYCLES=200 KILL_SEED=7 ENTENTE_PROGRAM=$PWD/target/release/entente \
//!     cargo test -p entente --test kill_cycles -- --nocapture
//! ```

mod support;

use node::{KafkaConfig, NodeFolder};
use ordering::kafka::{self, KafkaSettings};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use servers::KafkaServers;
use std::time::Duration;
use support::load::{Load, variable};
use support::{TestNetwork, rows};

const NODES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receipt_survives_kills_at_random_instants() {
    run("bft").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receipt_survives_kills_of_raft_leaders() {
    run("raft").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receipt_survives_kills_of_kafka_brokers() {
    run("kafka").await;
}

/// Three brokers and the topic that orders.
struct Brokers {
    servers: KafkaServers,
    settings: KafkaSettings,
}

impl Brokers {
    fn start(network: &TestNetwork) -> Brokers {
        let servers = KafkaServers::start(3, &[]).unwrap_or_else(|error| panic!("{error}"));
        let config = KafkaConfig {
            brokers: servers.addresses(),
            topic: None,
            replicas_min: None,
            finite_retention: false,
        };
        for folder in &network.network.folders {
            NodeFolder::open(folder).expect("a folder").choose_kafka(&config).expect("written");
        }
        let charter = &network.network.charter;
        let settings = config.settings(&charter.ledger());
        kafka::create_topic(&settings, 3, charter.block.bytes_max, &[])
            .unwrap_or_else(|error| panic!("{error}"));
        Brokers { servers, settings }
    }

    /// Which one leads the topic.
    fn leader(&self) -> usize {
        let address = (0..20).find_map(|_| {
            let found = kafka::leader(&self.settings).ok();
            if found.is_none() {
                std::thread::sleep(Duration::from_millis(500));
            }
            found
        });
        let address = address.expect("somebody leads the topic");
        let of = |number: &usize| address.ends_with(&format!(":{}", self.servers.port(*number)));
        (0..self.servers.count()).find(of).expect("one of the three")
    }
}

/// Who has ordered the newest block of which a node says.
async fn leader(network: &TestNetwork, node: usize) -> usize {
    let session = network.session(node).await;
    let found = rows(&session, "SELECT proposer FROM entente.blocks ORDER BY height DESC LIMIT 1").await;
    let name = found.first().and_then(|row| row.first()).expect("a block");
    (0..NODES).find(|node| *name == format!("org{}", node + 1)).expect("a member")
}

async fn run(ordering: &str) {
    let (cycles, seed) = (variable("KILL_CYCLES", 4), variable("KILL_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let mut network = TestNetwork::create(|charter| {
        charter.checkpoint_blocks = 25;
        charter.ordering = ordering.to_string();
    });
    let mut brokers = (ordering == "kafka").then(|| Brokers::start(&network));
    network.start_all().await;
    let load = Load::start(&network).await;

    let (mut kills, mut leaders) = ([0; NODES + 1], 0);
    for cycle in 0..cycles {
        load.wait_for(100, &format!("seed {seed}, cycle {cycle}")).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
        let mut nodes: Vec<usize> = (0..NODES).collect();
        nodes.shuffle(&mut random);
        nodes.truncate(random.random_range(1..=NODES));
        if ordering == "raft" && cycle % 2 == 0 {
            nodes = vec![leader(&network, nodes[0]).await];
            leaders += 1;
        }
        let mut down = None;
        if let Some(brokers) = brokers.as_mut().filter(|_| cycle % 2 == 0) {
            nodes.clear();
            let leader = brokers.leader();
            brokers.servers.kill(leader);
            down = Some(leader);
            leaders += 1;
        }
        kills[nodes.len()] += 1;
        for &node in &nodes {
            network.kill(node);
            tokio::time::sleep(Duration::from_millis(random.random_range(0..60))).await;
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(0..1_000))).await;
        if let (Some(brokers), Some(broker)) = (&mut brokers, down) {
            brokers.servers.start_again(broker).unwrap_or_else(|error| panic!("{error}"));
            brokers.servers.wait(broker).unwrap_or_else(|error| panic!("{error}"));
        }
        nodes.iter().for_each(|&node| network.start(node));
        for &node in &nodes {
            network.wait_for_height(node, 1).await;
        }
        network.assert_agreement(&[0, 1, 2, 3]).await;
        if cycle % 20 == 19 {
            println!("{} cycles, {} receipts", cycle + 1, load.receipts());
        }
    }
    let told = load.finish(&mut network).await;
    println!(
        "{ordering}, seed {seed}: {cycles} cycles (of one to four nodes: {:?}; of leaders on purpose: {leaders}), {} receipts, \
         {} submissions repeated, none lost or contradicted",
        &kills[1..],
        told.receipts.len(),
        told.repeated
    );
}
