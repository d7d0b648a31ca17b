//! Raft over loopback TCP.

mod support;

use bytes::Bytes;
use ordering::raft::{self, RaftConfig};
use ordering::simulation::{AnyBytes, node_key};
use ordering::{CertificateVerifier, Delivery, MempoolLimits, OrderingError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{NODES, Node, PATIENCE, assert_same_chain, count, network, submit};
use types::{Charter, Charters};

fn config(
    (charter, addresses): (&Arc<Charter>, &[SocketAddr]),
    organisation: usize,
    folder: &Path,
    ledger: &[Delivery],
) -> RaftConfig {
    RaftConfig {
        charters: Charters::new(charter.clone()),
        node_key: node_key(organisation),
        storage: folder.join(organisation.to_string()),
        listen: addresses[organisation],
        last: ledger.last().map(|delivery| delivery.block.header.clone()),
        joined: false,
        keeps_from: None,
        mempool: MempoolLimits::default(),
        worker_threads: 1,
    }
}

fn start(config: RaftConfig, ledger: Vec<Delivery>) -> Node {
    Node { services: raft::start(config, Arc::new(AnyBytes)).expect("the node starts").services(), ledger }
}

fn refused(config: RaftConfig) -> OrderingError {
    match raft::start(config, Arc::new(AnyBytes)) {
        Ok(_) => panic!("expected an error"),
        Err(error) => error,
    }
}

/// Stops a node and gives its ledger.
fn stop(node: Node) -> Vec<Delivery> {
    node.services.ordering.stop();
    node.ledger
}

/// Who has offered the last block.
fn leader(node: &Node) -> usize {
    node.ledger.last().expect("a block").block.header.proposer.into()
}

#[test]
fn the_others_go_on_without_their_leader_and_it_catches_up_when_it_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("raft");
    let of = |organisation, ledger: &[Delivery]| {
        config((&charter, &addresses), organisation, folder.path(), ledger)
    };
    let mut nodes: Vec<Option<Node>> =
        (0..NODES).map(|organisation| Some(start(of(organisation, &[]), Vec::new()))).collect();
    let mut ordered = 0;
    for round in 0..3 {
        for node in nodes.iter().flatten() {
            submit(node, ordered, ordered + 100);
            ordered += 100;
        }
        for node in nodes.iter_mut().flatten() {
            node.follow(|ledger| count(ledger) >= ordered);
        }
        let leads = leader(nodes[0].as_ref().expect("all run"));
        let ledger = stop(nodes[leads].take().expect("it runs"));
        let other = nodes.iter().position(Option::is_some).expect("three run");
        submit(nodes[other].as_ref().expect("it runs"), ordered, ordered + 50);
        ordered += 50;
        for node in nodes.iter_mut().flatten() {
            node.follow(|ledger| count(ledger) >= ordered);
            assert_ne!(leader(node), leads, "round {round}");
        }
        nodes[leads] = Some(start(of(leads, &ledger), ledger));
        let back = nodes[leads].as_mut().expect("it runs");
        back.follow(|ledger| count(ledger) >= ordered);
        assert_eq!(back.transactions(), ordered, "each transaction once");
    }
    let nodes: Vec<Node> = nodes.into_iter().flatten().collect();
    assert_same_chain(&nodes, &charter);
    let deadline = Instant::now() + PATIENCE;
    while nodes[0].services.ordering.status().connected_peers < 3 {
        assert!(Instant::now() < deadline, "{:?}", nodes[0].services.ordering.status());
        std::thread::sleep(Duration::from_millis(20));
    }

    // A ledger that lost its tail is healed from the log.
    let healed = nodes[3].services.ordering.read(2).expect("a stored block");
    assert_eq!(healed.block, nodes[0].ledger[1].block);
    let verifier = CertificateVerifier::new(Charters::new(charter)).expect("good keys");
    verifier.verify(&healed.block.header, &healed.certificate).expect("a certificate");
    assert_eq!(nodes[3].services.ordering.read(0), None);
    assert_eq!(nodes[3].services.ordering.read(1_000_000), None);
    for node in &nodes {
        node.services.ordering.stop();
        while node.services.ordering.deliveries().try_recv().is_ok() {}
        assert!(node.services.ordering.deliveries().recv().is_err(), "the channel ends with the service");
    }
}

/// A node that has the state behind a block from elsewhere is given what comes after it, and votes.
#[test]
fn a_node_that_skips_blocks_is_given_those_behind_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("raft");
    let of = |organisation| config((&charter, &addresses), organisation, folder.path(), &[]);
    let mut nodes: Vec<Node> = (0..3).map(|organisation| start(of(organisation), Vec::new())).collect();
    for round in 0..40 {
        submit(&nodes[round % 3], round * 10, round * 10 + 10);
        nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= round * 10 + 10));
    }
    let anchor = nodes[0].ledger[29].clone();
    let (header, height) = (&anchor.block.header, anchor.block.header.height);
    let late = start(of(3), Vec::new());
    let wrong = nodes[0].ledger[28].certificate.clone();
    assert!(late.services.ordering.skip_to(header, &wrong).is_err());
    late.services.ordering.skip_to(header, &anchor.certificate).expect("it proves the block");
    let deadline = Instant::now() + PATIENCE;
    let mut next = height + 1;
    while next <= nodes[0].ledger.len() as u64 {
        let delivery =
            late.services.ordering.deliveries().recv_deadline(deadline).expect("the blocks behind it");
        // Some of those in front may have been on their way.
        if delivery.block.header.height == next {
            assert_eq!(delivery.block, nodes[0].ledger[next as usize - 1].block);
            next += 1;
        }
        late.services.ordering.acknowledge(delivery.block.header.height);
    }
    // With one of the others away, its vote is needed.
    stop(nodes.remove(2));
    late.services.ordering.submit(vec![Bytes::from_static(b"by the late node")]);
    nodes[0].follow(|ledger| count(ledger) > 400);
    while late.services.messages.told().is_empty() {
        assert!(Instant::now() < deadline, "nothing is heard");
        nodes[0].services.messages.tell(3, Bytes::from_static(b"for the fourth"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(late.services.messages.told().recv(), Ok((0, Bytes::from_static(b"for the fourth"))));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy")),
        }
    }
}

/// The files of a node's log, the longest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(std::fs::metadata(path).map_or(0, |metadata| metadata.len())));
    found
}

#[test]
fn a_folder_that_is_not_as_this_node_has_left_it_is_refused_or_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("raft");
    let of = |organisation, ledger: &[Delivery]| {
        config((&charter, &addresses), organisation, folder.path(), ledger)
    };
    let mut nodes: Vec<Node> =
        (0..NODES).map(|organisation| start(of(organisation, &[]), Vec::new())).collect();
    submit(&nodes[0], 0, 100);
    // Some blocks more, so that the last node's own log has them, also where it was connected last.
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 100 && ledger.len() >= 9));
    let own = folder.path().join("3");
    let before = stop(nodes.pop().expect("four"));
    copy(&own, &folder.path().join("early"));
    let mut node = start(of(3, &before), before);
    submit(&nodes[0], 100, 400);
    node.follow(|ledger| count(ledger) >= 400 && ledger.len() > 16);
    let ledger = stop(node);
    copy(&own, &folder.path().join("late"));
    let restore = |name: &str| {
        std::fs::remove_dir_all(&own).expect("it was there");
        copy(&folder.path().join(name), &own);
    };

    // Torn: a write that nobody was told of reached the disk in part. The others have what is missing.
    let longest = files(&own).into_iter().next().expect("a log");
    let bytes = std::fs::read(&longest).expect("a log");
    std::fs::write(&longest, [&bytes[..], &[0x55; 777]].concat()).expect("it can be written");
    submit(&nodes[0], 400, 450);
    let mut node = start(of(3, &ledger), ledger.clone());
    node.follow(|ledger| count(ledger) >= 450);
    assert_eq!(node.ledger[..ledger.len()], ledger[..]);
    stop(node);

    // Rolled back: it might vote for another leader than it has voted for.
    restore("early");
    let error = refused(of(3, &ledger)).to_string();
    assert!(error.contains("rolled back"), "{error}");

    // Of another member.
    restore("late");
    std::fs::rename(folder.path().join("2"), folder.path().join("2 of before")).expect("it is there");
    std::fs::rename(&own, folder.path().join("2")).expect("it is there");
    stop(nodes.pop().expect("three"));
    let error = refused(of(2, &ledger));
    assert!(matches!(error, OrderingError::OtherNode { .. }), "{error}");

    // Lost.
    let error = refused(of(3, &ledger));
    assert!(matches!(error, OrderingError::VotesLost { .. }), "{error}");

    let (bft, _) = network("bft");
    let error = refused(config((&bft, &addresses), 3, folder.path(), &[]));
    assert!(matches!(error, OrderingError::OtherService { .. }), "{error}");
}
