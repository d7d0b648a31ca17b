//! Four nodes over loopback TCP, each with its folder and its port, as on four machines.

use bytes::Bytes;
use ordering::bft::{self, BftConfig};
use ordering::simulation::{AnyBytes, charter, node_key};
use ordering::{CertificateError, CertificateVerifier, Delivery, MempoolLimits, Ordering, OrderingError};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::Charter;

const NODES: usize = 4;
const PATIENCE: Duration = Duration::from_secs(120);

/// A node with the ledger that its consumer keeps: every block once, in order.
struct Node {
    ordering: Arc<dyn Ordering>,
    ledger: Vec<Delivery>,
}

fn network() -> (Arc<Charter>, Vec<SocketAddr>) {
    let sockets: Vec<_> =
        (0..NODES).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().expect("bound")).collect();
    let mut charter = charter(1, NODES);
    charter.block.idle_ms = 300;
    for (organisation, address) in charter.organisations.iter_mut().zip(&addresses) {
        organisation.address = address.to_string();
    }
    (Arc::new(charter), addresses)
}

fn config(
    charter: &Arc<Charter>,
    addresses: &[SocketAddr],
    organisation: usize,
    folder: &Path,
    start: u64,
) -> BftConfig {
    BftConfig {
        charter: charter.clone(),
        organisation,
        node_key: node_key(organisation),
        storage: folder.join(organisation.to_string()),
        listen: addresses[organisation],
        start,
        mempool: MempoolLimits::default(),
        worker_threads: 1,
    }
}

fn start(config: BftConfig, ledger: Vec<Delivery>) -> Node {
    Node { ordering: bft::start(config, Arc::new(AnyBytes)).expect("the node starts"), ledger }
}

impl Node {
    /// Takes what is delivered until `enough` or the patience is over; acknowledges as it goes.
    fn follow(&mut self, enough: impl Fn(&[Delivery]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !enough(&self.ledger) {
            let delivery = self.ordering.deliveries().recv_deadline(deadline).unwrap_or_else(|error| {
                let (blocks, status) = (self.ledger.len(), self.ordering.status());
                panic!("{error} after {blocks} blocks with {} transactions: {status:?}", self.transactions())
            });
            let (height, next) = (delivery.block.header.height, self.ledger.len() as u64 + 1);
            assert!(height <= next, "height {height} follows {}", next - 1);
            if height == next {
                self.ledger.push(delivery);
            }
            self.ordering.acknowledge(height);
        }
    }

    fn transactions(&self) -> usize {
        count(&self.ledger)
    }
}

fn count(ledger: &[Delivery]) -> usize {
    ledger.iter().map(|delivery| delivery.block.transactions.len()).sum()
}

fn submit(node: &Node, from: usize, to: usize) {
    let transactions = (from..to).map(|number| Bytes::from(format!("transaction {number}"))).collect();
    for answer in node.ordering.submit(transactions) {
        answer.expect("there is room");
    }
}

fn assert_same_chain(nodes: &[Node], charter: &Charter) {
    let verifier = CertificateVerifier::new(charter).expect("good keys");
    for node in nodes {
        for (position, delivery) in node.ledger.iter().enumerate() {
            let header = &delivery.block.header;
            verifier.verify(header, &delivery.certificate).expect("a certificate");
            let previous = match position {
                0 => charter.ledger(),
                _ => node.ledger[position - 1].block.header.digest(),
            };
            assert_eq!(header.previous, previous);
            assert_eq!(delivery.block.check_content(), Ok(()));
            if let Some(other) = nodes[0].ledger.get(position) {
                assert_eq!(other.block, delivery.block, "height {}", header.height);
            }
        }
    }
    for (position, delivery) in nodes[0].ledger.iter().enumerate().skip(1) {
        let other = &nodes[0].ledger[position - 1];
        let header = &delivery.block.header;
        assert!(matches!(
            verifier.verify(header, &other.certificate),
            Err(CertificateError::OtherBlock { .. } | CertificateError::BrokenChain { .. })
        ));
        let mut cut = delivery.certificate.to_vec();
        let last = cut.len() - 1;
        cut[last] ^= 1;
        assert!(verifier.verify(header, &cut).is_err(), "a changed signature");
        assert!(verifier.verify(header, &cut[..last]).is_err(), "a certificate that is cut off");
    }
}

#[test]
fn four_nodes_agree_and_one_that_is_stopped_and_restarted_catches_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network();
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
    while nodes[0].ordering.status().connected_peers < 3 {
        assert!(Instant::now() < deadline, "{:?}", nodes[0].ordering.status());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(nodes[0].ordering.metrics().contains("finalized_height"));

    // One node stops; the other three go on.
    let stopped = nodes.remove(3);
    stopped.ordering.stop();
    let Node { ordering, ledger } = stopped;
    drop(ordering);
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
    let healed = nodes[3].ordering.read(2).expect("a stored block");
    assert_eq!(healed.block, nodes[0].ledger[1].block);
    let verifier = CertificateVerifier::new(&charter).expect("good keys");
    verifier.verify(&healed.block.header, &healed.certificate).expect("a certificate");
    assert_eq!(nodes[3].ordering.read(0), None);
    assert_eq!(nodes[3].ordering.read(1_000_000), None);
    for node in &nodes {
        node.ordering.stop();
        while node.ordering.deliveries().try_recv().is_ok() {}
        assert!(node.ordering.deliveries().recv().is_err(), "the channel ends with the service");
    }
}

#[test]
fn what_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let (charter, addresses) = network();
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

    let error = refused(BftConfig { node_key: node_key(2), ..good(0) });
    assert!(matches!(error, OrderingError::WrongKey { .. }), "{error}");
    let error = refused(BftConfig { organisation: 4, ..good(0) });
    assert!(matches!(error, OrderingError::NoSuchOrganisation { .. }), "{error}");
    let error = refused(good(7));
    assert!(matches!(error, OrderingError::VotesLost { height: 7, .. }), "{error}");
    let mut solo = (*charter).clone();
    solo.ordering = "solo".to_string();
    let error = refused(BftConfig { charter: Arc::new(solo), ..good(0) });
    assert!(matches!(error, OrderingError::OtherService { .. }), "{error}");
    let mut nowhere = (*charter).clone();
    nowhere.organisations[2].address = "nowhere".to_string();
    let error = refused(BftConfig { charter: Arc::new(nowhere), ..good(0) });
    assert!(matches!(error, OrderingError::Member { .. }), "{error}");

    // The folder is now claimed, so another member cannot vote from it.
    let claimed =
        BftConfig { storage: folder.path().join("1"), ..config(&charter, &addresses, 0, folder.path(), 0) };
    let node = start(good(0), Vec::new());
    node.ordering.stop();
    let error = refused(claimed);
    assert!(matches!(error, OrderingError::OtherNode { .. }), "{error}");
}
