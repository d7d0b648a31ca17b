//! BFT over loopback TCP.

mod support;

use bytes::Bytes;
use ordering::bft::{self, BftConfig};
use ordering::simulation::{AnyBytes, node_key};
use ordering::{CertificateVerifier, Delivery, MempoolLimits, OrderingError};
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{NODES, Node, PATIENCE, assert_same_chain, count, network, submit};
use types::{AmendedCharter, Charter, CharterChange, Charters};

fn config(
    charter: &Arc<Charter>,
    addresses: &[SocketAddr],
    organisation: usize,
    folder: &Path,
    start: u64,
) -> BftConfig {
    BftConfig {
        charters: Charters::new(charter.clone()),
        node_key: node_key(organisation),
        storage: folder.join(organisation.to_string()),
        listen: addresses[organisation],
        start,
        keeps_from: None,
        mempool: MempoolLimits::default(),
        worker_threads: 1,
    }
}

fn start(config: BftConfig, ledger: Vec<Delivery>) -> Node {
    Node { services: bft::start(config, Arc::new(AnyBytes)).expect("the node starts").services(), ledger }
}

#[test]
fn four_nodes_agree_and_one_that_is_stopped_and_restarted_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("bft");
    let mut nodes: Vec<Node> = (0..NODES)
        .map(|organisation| start(config(&charter, &addresses, organisation, folder.path(), 0), Vec::new()))
        .collect();

    for (position, node) in nodes.iter().enumerate() {
        submit(node, position * 100, (position + 1) * 100);
    }
    for node in &mut nodes {
        node.follow(|ledger| count(ledger) >= 400);
    }
    let deadline = Instant::now() + PATIENCE;
    while nodes[0].services.ordering.status().connected_peers < 3 {
        assert!(Instant::now() < deadline, "{:?}", nodes[0].services.ordering.status());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(nodes[0].services.ordering.metrics().contains("finalized_height"));

    // One node stops; the other three go on.
    let stopped = nodes.remove(3);
    stopped.services.ordering.stop();
    let Node { services, ledger } = stopped;
    drop(services);
    submit(&nodes[0], 400, 500);
    for node in &mut nodes {
        node.follow(|ledger| count(ledger) >= 500);
    }

    // It comes back, catches up and takes part again.
    let height = ledger.len() as u64;
    nodes.push(start(config(&charter, &addresses, 3, folder.path(), height), ledger));
    submit(&nodes[3], 500, 600);
    for node in &mut nodes {
        node.follow(|ledger| count(ledger) >= 600);
        assert_eq!(node.transactions(), 600, "each transaction once");
    }
    assert_same_chain(&nodes, &charter);

    // A ledger that lost its tail is healed from the ordering's own storage.
    let healed = nodes[3].services.ordering.read(2).expect("a stored block");
    assert_eq!(healed.block, nodes[0].ledger[1].block);
    let verifier = CertificateVerifier::new(Charters::new(charter.clone())).expect("good keys");
    verifier.verify(&healed.block.header, &healed.certificate).expect("a certificate");
    assert_eq!(nodes[3].services.ordering.read(0), None);
    assert_eq!(nodes[3].services.ordering.read(1_000_000), None);
    for node in &nodes {
        node.services.ordering.stop();
        while node.services.ordering.deliveries().try_recv().is_ok() {}
        assert!(node.services.ordering.deliveries().recv().is_err(), "the channel ends with the service");
    }
}

/// Names of the folders with files of blocks and what proves them in a node's folder. Others come and go as it votes.
fn folders(node: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(node).expect("a folder").map(|entry| entry.expect("an entry"));
    let has_files = |path: &Path| std::fs::read_dir(path).is_ok_and(|mut files| files.next().is_some());
    let folders = entries.filter(|entry| entry.path().is_dir() && has_files(&entry.path()));
    let names = folders.map(|folder| folder.file_name().to_string_lossy().into_owned());
    let stored = ["bft-blocks", "bft-finalizations", "bft-stored"];
    names.filter(|name| stored.iter().any(|stored| name.starts_with(stored))).collect()
}

#[test]
fn a_node_that_is_to_forget_blocks_moves_what_it_keeps_and_back_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("bft");
    let mut nodes: Vec<Node> = (0..NODES)
        .map(|organisation| start(config(&charter, &addresses, organisation, folder.path(), 0), Vec::new()))
        .collect();
    submit(&nodes[0], 0, 100);
    nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= 100 && ledger.len() >= 6));
    nodes.iter().for_each(|node| node.services.ordering.stop());
    let ledger = nodes.swap_remove(0).ledger;
    drop(nodes);
    let own = folder.path().join("0");
    let before = folders(&own);
    assert!(before.contains("bft-blocks-value") && !before.iter().any(|name| name.contains("recent")));
    for keeps_from in [Some(1), Some(1), None] {
        let height = ledger.len() as u64;
        let config = BftConfig { keeps_from, ..config(&charter, &addresses, 0, folder.path(), height) };
        let node = start(config, ledger.clone());
        for (position, delivery) in ledger.iter().enumerate().take(5) {
            let read = node.services.ordering.read(position as u64 + 1).expect("a stored block");
            assert_eq!(read.block, delivery.block);
        }
        node.services.ordering.stop();
        let after = folders(&own);
        let new: Vec<&str> = after.difference(&before).map(String::as_str).collect();
        let gone: Vec<&str> = before.difference(&after).map(String::as_str).collect();
        let moved: &[&str] = &[
            "bft-blocks-recent-key",
            "bft-blocks-recent-metadata",
            "bft-blocks-recent-value",
            "bft-finalizations-recent-key",
            "bft-finalizations-recent-metadata",
            "bft-finalizations-recent-value",
            "bft-stored",
        ];
        assert_eq!(new, if keeps_from.is_some() { moved } else { &[] });
        // Both archives had five folders each.
        assert_eq!(gone.len(), if keeps_from.is_some() { 10 } else { 0 }, "{gone:?}");
    }
}

/// A node that has the state behind a block from elsewhere is given what comes after it, and votes.
#[test]
fn a_node_that_skips_blocks_is_given_those_behind_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("bft");
    let mut nodes: Vec<Node> = (0..3)
        .map(|organisation| start(config(&charter, &addresses, organisation, folder.path(), 0), Vec::new()))
        .collect();
    for round in 0..40 {
        submit(&nodes[round % 3], round * 10, round * 10 + 10);
        nodes.iter_mut().for_each(|node| node.follow(|ledger| count(ledger) >= round * 10 + 10));
    }
    let anchor = nodes[0].ledger[29].clone();
    let (header, height) = (&anchor.block.header, anchor.block.header.height);

    let late = start(config(&charter, &addresses, 3, folder.path(), 0), Vec::new());
    let wrong = nodes[0].ledger[28].certificate.clone();
    assert!(late.services.ordering.skip_to(header, &wrong).is_err());
    late.services.ordering.skip_to(header, &anchor.certificate).expect("it proves the block");
    let deadline = Instant::now() + PATIENCE;
    let mut next = height + 1;
    let mut transactions = 0;
    while next <= nodes[0].ledger.len() as u64 {
        let delivery =
            late.services.ordering.deliveries().recv_deadline(deadline).expect("the blocks behind it");
        // Some of those in front may have been on their way.
        if delivery.block.header.height == next {
            assert_eq!(delivery.block, nodes[0].ledger[next as usize - 1].block);
            transactions += delivery.block.transactions.len();
            next += 1;
        }
        late.services.ordering.acknowledge(delivery.block.header.height);
    }
    assert!(transactions > 0);
    assert_eq!(late.services.ordering.read(20), None, "nobody has fetched it");

    // It takes part: with one of the others away, its votes are needed.
    nodes.remove(2).services.ordering.stop();
    late.services.ordering.submit(vec![Bytes::from_static(b"by the late node")]);
    nodes[0].follow(|ledger| count(ledger) > 400);

    // What one node tells another, nobody else hears.
    while late.services.messages.told().is_empty() {
        assert!(Instant::now() < deadline, "nothing is heard");
        nodes[0].services.messages.tell(3, Bytes::from_static(b"for the fourth"));
        nodes[0].services.messages.tell(9, Bytes::from_static(b"for nobody"));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(late.services.messages.told().recv(), Ok((0, Bytes::from_static(b"for the fourth"))));
    assert!(nodes[1].services.messages.told().is_empty());
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network("bft");
    let refused = |config: BftConfig| match bft::start(config, Arc::new(AnyBytes)) {
        Ok(_) => panic!("expected an error"),
        Err(error) => error,
    };
    let good = |start| config(&charter, &addresses, 1, folder.path(), start);

    let taken = TcpListener::bind(addresses[1]).expect("still free");
    let error = refused(good(0));
    assert!(matches!(error, OrderingError::PortBusy(address) if address == addresses[1]), "{error}");
    assert!(error.to_string().contains(&addresses[1].port().to_string()), "{error}");
    assert!(!folder.path().join("1").exists(), "nothing was started");
    drop(taken);

    let error = refused(good(7));
    assert!(matches!(error, OrderingError::VotesLost { height: 7, .. }), "{error}");
    let mut solo = (*charter).clone();
    solo.ordering = "solo".to_string();
    let error = refused(BftConfig { charters: Charters::new(Arc::new(solo)), ..good(0) });
    assert!(matches!(error, OrderingError::OtherService { .. }), "{error}");
    let mut nowhere = (*charter).clone();
    nowhere.organisations[2].address = "nowhere".to_string();
    let error = refused(BftConfig { charters: Charters::new(Arc::new(nowhere)), ..good(0) });
    assert!(matches!(error, OrderingError::Member { .. }), "{error}");

    // The folder is now claimed, so another member cannot vote from it.
    let claimed =
        BftConfig { storage: folder.path().join("1"), ..config(&charter, &addresses, 0, folder.path(), 0) };
    let node = start(good(0), Vec::new());
    node.services.ordering.stop();
    let error = refused(claimed);
    assert!(matches!(error, OrderingError::OtherNode { .. }), "{error}");

    // It goes from a key to the one that replaces it, and not back.
    let change = CharterChange::ReplaceNodeKey {
        name: charter.organisations[1].name.clone(),
        node_key: node_key(8).public_key(),
        expires: None,
    };
    let amended =
        AmendedCharter { charter: charter.amended(&change).expect("a good key"), effective_height: 9 };
    let mut charters = Charters::new(charter.clone());
    charters.add(amended).expect("the next version");
    let with = |key| BftConfig { charters: charters.clone(), node_key: node_key(key), ..good(0) };
    let error = refused(with(7));
    assert!(matches!(error, OrderingError::OtherNode { .. }), "a stranger: {error}");
    start(with(8), Vec::new()).services.ordering.stop();
    let error = refused(with(1));
    assert!(matches!(error, OrderingError::OtherNode { .. }), "{error}");

    // Who has lost its votes must not begin anew with the same key, also if the ledger is gone too.
    std::fs::remove_dir_all(folder.path().join("1")).expect("it was there");
    for key in [8, 1] {
        let error = refused(with(key));
        assert!(matches!(error, OrderingError::VotesLost { height: 0, .. }), "{error}");
    }
}
