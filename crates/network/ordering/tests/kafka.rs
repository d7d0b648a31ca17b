//! A topic of real brokers, and four nodes over loopback TCP.

mod support;

use bytes::Bytes;
use ordering::kafka::{self, KafkaConfig, KafkaSettings, RecordedBlocks, create_topic};
use ordering::simulation::{AnyBytes, node_key};
use ordering::{CertificateVerifier, Delivery, MempoolLimits, OrderingError, SubmitError};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use servers::KafkaServers;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{NODES, Node, PATIENCE, assert_same_chain, count, network, submit};
use types::{Charter, Charters};

/// What a node has recorded, for the others.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<Vec<Delivery>>>);

impl RecordedBlocks for Recorded {
    fn block(&self, height: u64) -> Option<Delivery> {
        self.0.lock().expect("no panic").get((height as usize).checked_sub(1)?).cloned()
    }
}

/// One broker, and what nodes find in it.
struct Brokers {
    servers: KafkaServers,
    settings: KafkaSettings,
}

impl Brokers {
    fn start() -> Brokers {
        let servers = KafkaServers::start(1, &[]).unwrap_or_else(|error| panic!("{error}"));
        let settings =
            KafkaSettings { replicas_min: 1, ..KafkaSettings::new(&servers.addresses(), "ledger") };
        Brokers { servers, settings }
    }

    /// The settings with another topic.
    fn topic(&self, topic: &str) -> KafkaSettings {
        KafkaSettings { topic: topic.to_string(), ..self.settings.clone() }
    }

    fn create(&self, charter: &Charter, topic: &str, changes: &[(&str, &str)]) -> KafkaSettings {
        let settings = self.topic(topic);
        create_topic(&settings, 1, charter.block.bytes_max, changes)
            .unwrap_or_else(|error| panic!("{error}"));
        settings
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new().set("bootstrap.servers", &self.settings.brokers).create().expect("a client")
    }

    fn delete(&self, topic: &str) {
        let deleted = futures::executor::block_on(self.admin().delete_topics(&[topic], &AdminOptions::new()));
        assert!(deleted.expect("the broker answers").iter().all(Result::is_ok));
    }

    /// Deletes the records before an offset.
    fn truncate(&self, topic: &str, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Offset(offset)).expect("an offset");
        let deleted = futures::executor::block_on(self.admin().delete_records(&list, &AdminOptions::new()));
        deleted.expect("the broker answers");
    }
}

/// Four nodes, their folders and what they have recorded.
struct Members {
    charter: Arc<Charter>,
    addresses: Vec<SocketAddr>,
    folder: tempfile::TempDir,
    recorded: Vec<Recorded>,
}

impl Members {
    fn new() -> Members {
        let (charter, addresses) = network("kafka");
        let recorded = vec![Recorded::default(); NODES].iter().map(|_| Recorded::default()).collect();
        Members { charter, addresses, folder: tempfile::tempdir().expect("a folder"), recorded }
    }

    fn config(&self, organisation: usize, settings: &KafkaSettings, ledger: &[Delivery]) -> KafkaConfig {
        *self.recorded[organisation].0.lock().expect("no panic") = ledger.to_vec();
        let last = ledger.last().map(|last| (last.block.header.clone(), last.certificate.clone()));
        KafkaConfig {
            charters: Charters::new(self.charter.clone()),
            node_key: node_key(organisation),
            storage: self.folder.path().join(organisation.to_string()),
            listen: self.addresses[organisation],
            last,
            settings: settings.clone(),
            recorded: Arc::new(self.recorded[organisation].clone()),
            mempool: MempoolLimits::default(),
            worker_threads: 1,
        }
    }

    fn start(&self, organisation: usize, settings: &KafkaSettings, ledger: Vec<Delivery>) -> Node {
        let config = self.config(organisation, settings, &ledger);
        let service = kafka::start(config, Arc::new(AnyBytes)).unwrap_or_else(|error| panic!("{error}"));
        Node { services: service.services(), ledger }
    }

    fn start_all(&self, settings: &KafkaSettings) -> Vec<Node> {
        (0..NODES).map(|organisation| self.start(organisation, settings, Vec::new())).collect()
    }

    fn refused(&self, settings: &KafkaSettings, ledger: &[Delivery]) -> String {
        match kafka::start(self.config(0, settings, ledger), Arc::new(AnyBytes)) {
            Ok(_) => panic!("expected an error"),
            Err(error @ (OrderingError::Topic { .. } | OrderingError::Settings(_))) => error.to_string(),
            Err(error) => panic!("found {error}"),
        }
    }

    /// Says what a node has.
    fn record(&self, organisation: usize, node: &Node) {
        *self.recorded[organisation].0.lock().expect("no panic") = node.ledger.clone();
    }
}

/// Stops a node and gives its ledger.
fn stop(node: Node) -> Vec<Delivery> {
    node.services.ordering.stop();
    node.ledger
}

#[test]
fn four_nodes_cut_the_same_blocks_and_go_on_where_their_ledgers_end() {
    let (mut brokers, members) = (Brokers::start(), Members::new());
    let settings = brokers.create(&members.charter, "ledger", &[]);
    let mut nodes = members.start_all(&settings);
    for (number, node) in nodes.iter().enumerate() {
        submit(node, number * 100, number * 100 + 100);
    }
    // Two clients give the same one to two nodes.
    submit(&nodes[0], 1_000, 1_001);
    submit(&nodes[1], 1_000, 1_001);
    for node in &mut nodes {
        node.follow(|ledger| count(ledger) >= 401);
    }
    // A node that was away, with the broker down meanwhile.
    let before = stop(nodes.pop().expect("four"));
    submit(&nodes[0], 2_000, 2_300);
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 701));
    brokers.servers.kill(0);
    submit(&nodes[1], 3_000, 3_100);
    std::thread::sleep(Duration::from_millis(500));
    brokers.servers.start_again(0).unwrap_or_else(|error| panic!("{error}"));
    nodes.push(members.start(3, &settings, before));
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 801));
    let length = nodes.iter().map(|node| node.ledger.len()).max().expect("four");
    nodes.iter_mut().for_each(|node| node.follow(|ledger| ledger.len() >= length));
    assert_same_chain(&nodes, &members.charter);
    let verifier = CertificateVerifier::new(Charters::new(members.charter.clone())).expect("good keys");
    let ids: std::collections::BTreeSet<Bytes> =
        nodes[0].ledger.iter().flat_map(|delivery| delivery.block.transactions.clone()).collect();
    assert_eq!(ids.len(), 801);
    // A block that one node has lost another one has.
    for (number, node) in nodes.iter().enumerate() {
        members.record(number, node);
    }
    let healed = nodes[2].services.ordering.read(2).expect("the others have it");
    verifier.verify_block(&healed.block, &healed.certificate).expect("a certificate");
    assert_eq!(healed, nodes[0].ledger[1]);
    assert!(nodes[0].services.ordering.status().connected_peers > 0);
    assert!(nodes[0].services.ordering.metrics().contains("entente_kafka_records_read_total"));
    // Each organisation's transactions stand under its name where its record finished the block.
    let proposers: std::collections::BTreeSet<u16> =
        nodes[0].ledger.iter().map(|delivery| delivery.block.header.proposer).collect();
    assert!(proposers.len() > 1, "{proposers:?}");
    for node in nodes {
        node.services.ordering.stop();
        while node.services.ordering.deliveries().try_recv().is_ok() {}
        assert!(node.services.ordering.deliveries().recv().is_err(), "the channel ends with the service");
    }
}

#[test]
fn a_topic_that_is_not_as_it_has_to_be_is_refused_by_name() {
    let (brokers, members) = (Brokers::start(), Members::new());
    let wrong = [
        ("cleanup.policy", "compact"),
        ("message.timestamp.type", "CreateTime"),
        ("retention.ms", "3600000"),
        ("retention.bytes", "1000000000"),
        ("unclean.leader.election.enable", "true"),
        ("max.message.bytes", "1000000"),
    ];
    for (name, value) in wrong {
        let settings = brokers.create(&members.charter, &format!("wrong.{name}"), &[(name, value)]);
        let error = members.refused(&settings, &[]);
        assert!(error.contains(name) && error.contains(value) && error.contains("expected"), "{error}");
    }
    let settings = brokers.create(&members.charter, "one-replica", &[]);
    let error = members.refused(&KafkaSettings { replicas_min: 3, ..settings.clone() }, &[]);
    assert!(error.contains("at least 3 replicas, found 1"), "{error}");
    let error = members.refused(&brokers.topic("nowhere"), &[]);
    assert!(error.contains("found none") && error.contains("kafka-topics.sh"), "{error}");
    for brokers in ["", "localhost", "localhost:x", "one:1,,two:2"] {
        let error = members.refused(&KafkaSettings { brokers: brokers.to_string(), ..settings.clone() }, &[]);
        assert!(error.contains("host:port"), "{error}");
    }
    let error = members.refused(&KafkaSettings { topic: "a topic".to_string(), ..settings }, &[]);
    assert!(error.contains("kafka.topic"), "{error}");
}

#[test]
fn a_topic_of_another_ledger_made_anew_or_that_has_lost_records_is_refused() {
    let (brokers, members) = (Brokers::start(), Members::new());
    let settings = brokers.create(&members.charter, "ledger", &[]);
    let mut nodes = members.start_all(&settings);
    submit(&nodes[0], 0, 50);
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 50 && ledger.len() >= 3));
    let ledger = nodes.into_iter().map(stop).collect::<Vec<_>>().remove(0);

    // Another ledger's.
    let mut others = Members::new();
    let mut charter = (*others.charter).clone();
    charter.nonce += 1;
    others.charter = Arc::new(charter);
    let error = others.refused(&settings, &[]);
    let named = members.charter.ledger().to_string();
    assert!(error.contains(&named) && error.contains("a topic of its own"), "{error}");

    // Another one of the same ledger: it ends too early, and then has something else where the ledger's last record was.
    brokers.delete("ledger");
    std::thread::sleep(Duration::from_secs(2));
    brokers.create(&members.charter, "ledger", &[]);
    let error = members.refused(&settings, &ledger);
    assert!(
        error.contains("of which this node's ledger has blocks") && error.contains("made anew"),
        "{error}"
    );
    let fresh = Members::new();
    let mut nodes = vec![members.start(1, &settings, Vec::new())];
    while nodes[0].ledger.len() < 2 * ledger.len() + 20 {
        let (from, more) = (nodes[0].ledger.len() * 10, nodes[0].ledger.len() + 1);
        submit(&nodes[0], from, from + 10);
        nodes[0].follow(|ledger| ledger.len() >= more);
    }
    nodes.into_iter().for_each(|node| drop(stop(node)));
    let error = members.refused(&settings, &ledger);
    assert!(error.contains("last record of block") && error.contains("made anew"), "{error}");
    drop(fresh);
}

#[test]
fn a_node_that_the_topic_has_no_records_for_gets_the_blocks_from_others() {
    let (brokers, members) = (Brokers::start(), Members::new());
    let settings = brokers.create(&members.charter, "ledger", &[]);
    let mut nodes: Vec<Node> =
        (0..3).map(|organisation| members.start(organisation, &settings, Vec::new())).collect();
    for round in 0..20 {
        submit(&nodes[round % 3], round * 10, round * 10 + 10);
        nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= round * 10 + 10));
    }
    let height = nodes[0].ledger.len();
    let offset = nodes[0].services.ordering.status().view as i64;
    nodes.iter_mut().for_each(|node| node.follow(|ledger| ledger.len() >= height + 2));
    for (organisation, node) in nodes.iter().enumerate() {
        members.record(organisation, node);
    }
    brokers.truncate("ledger", offset);
    let mut late = members.start(3, &settings, Vec::new());
    late.follow(|ledger| count(ledger) >= 200);
    submit(&late, 500, 510);
    late.follow(|ledger| count(ledger) >= 210);
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 210));
    nodes.push(late);
    assert_same_chain(&nodes, &members.charter);
    nodes.into_iter().for_each(|node| drop(stop(node)));
}

#[test]
fn a_node_waits_for_brokers_that_are_down_keeps_what_it_has_taken_and_refuses_more() {
    let (mut brokers, members) = (Brokers::start(), Members::new());
    let settings = brokers.create(&members.charter, "ledger", &[]);
    brokers.servers.kill(0);
    let mut config = members.config(0, &settings, &[]);
    config.mempool = MempoolLimits { transactions_max: 100, bytes_max: 1_000_000 };
    let service = kafka::start(config, Arc::new(AnyBytes)).expect("it waits");
    let mut node = Node { services: service.services(), ledger: Vec::new() };
    let trouble = node.services.ordering.trouble().expect("it says so");
    assert!(trouble.contains("do not answer"), "{trouble}");
    submit(&node, 0, 100);
    let more = node.services.ordering.submit(vec![Bytes::from_static(b"one more")]);
    assert!(matches!(more[..], [Err(SubmitError::Full { .. })]), "{more:?}");
    brokers.servers.start_again(0).unwrap_or_else(|error| panic!("{error}"));
    node.follow(|ledger| count(ledger) >= 100);
    let deadline = Instant::now() + PATIENCE;
    while node.services.ordering.trouble().is_some() {
        assert!(Instant::now() < deadline, "it says that all is well");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Down again while it runs: what was taken stays.
    brokers.servers.kill(0);
    submit(&node, 200, 260);
    std::thread::sleep(Duration::from_secs(3));
    brokers.servers.start_again(0).unwrap_or_else(|error| panic!("{error}"));
    node.follow(|ledger| count(ledger) >= 160);
    assert_eq!(node.transactions(), 160);
    stop(node);
}

#[test]
fn a_node_that_skips_blocks_is_given_those_behind_them() {
    let (brokers, members) = (Brokers::start(), Members::new());
    let settings = brokers.create(&members.charter, "ledger", &[]);
    let mut nodes: Vec<Node> =
        (0..3).map(|organisation| members.start(organisation, &settings, Vec::new())).collect();
    submit(&nodes[0], 0, 100);
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 100 && ledger.len() >= 12));
    let anchor = nodes[0].ledger[7].clone();
    let late = members.start(3, &settings, Vec::new());
    let wrong = nodes[0].ledger[8].certificate.slice(1..);
    assert!(late.services.ordering.skip_to(&anchor.block.header, &wrong).is_err());
    late.services.ordering.skip_to(&anchor.block.header, &anchor.certificate).expect("it proves the block");
    let (deadline, mut next) = (Instant::now() + PATIENCE, 9);
    while next <= nodes[0].ledger.len() as u64 {
        let delivery = late.services.ordering.deliveries().recv_deadline(deadline).expect("those behind it");
        if delivery.block.header.height == next {
            assert_eq!(delivery, nodes[0].ledger[next as usize - 1]);
            next += 1;
        }
        late.services.ordering.acknowledge(delivery.block.header.height);
    }
    let storage = Path::new("3");
    assert!(members.folder.path().join(storage).exists());
}
