//! Four nodes over loopback TCP, each with its folder and its port, as on four machines.

use bytes::Bytes;
use ordering::simulation::charter;
use ordering::{CertificateError, CertificateVerifier, Delivery, Services};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{Charter, Charters};

pub const NODES: usize = 4;
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A node with the ledger that its consumer keeps: every block once, in order.
pub struct Node {
    pub services: Services,
    pub ledger: Vec<Delivery>,
}

pub fn network(ordering: &str) -> (Arc<Charter>, Vec<SocketAddr>) {
    let first = test_machine::free_port_base();
    let addresses: Vec<_> =
        (first..).take(NODES).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
    let mut charter = charter(1, NODES);
    charter.block.idle_ms = 300;
    charter.ordering = ordering.to_string();
    for (organisation, address) in charter.organisations.iter_mut().zip(&addresses) {
        organisation.address = address.to_string();
    }
    (Arc::new(charter), addresses)
}

impl Node {
    /// Takes what is delivered until `enough` or the patience is over; acknowledges as it goes.
    pub fn follow(&mut self, enough: impl Fn(&[Delivery]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !enough(&self.ledger) {
            let delivery =
                self.services.ordering.deliveries().recv_deadline(deadline).unwrap_or_else(|error| {
                    let (blocks, status) = (self.ledger.len(), self.services.ordering.status());
                    panic!(
                        "{error} after {blocks} blocks with {} transactions: {status:?}",
                        self.transactions()
                    )
                });
            let (height, next) = (delivery.block.header.height, self.ledger.len() as u64 + 1);
            assert!(height <= next, "height {height} follows {}", next - 1);
            if height == next {
                self.ledger.push(delivery);
            }
            self.services.ordering.acknowledge(height);
        }
    }

    pub fn transactions(&self) -> usize {
        count(&self.ledger)
    }
}

pub fn count(ledger: &[Delivery]) -> usize {
    ledger.iter().map(|delivery| delivery.block.transactions.len()).sum()
}

pub fn submit(node: &Node, from: usize, to: usize) {
    let transactions = (from..to).map(|number| Bytes::from(format!("transaction {number}"))).collect();
    for answer in node.services.ordering.submit(transactions) {
        answer.expect("there is room");
    }
}

pub fn assert_same_chain(nodes: &[Node], charter: &Charter) {
    let verifier = CertificateVerifier::new(Charters::new(Arc::new(charter.clone()))).expect("good keys");
    for node in nodes {
        for (position, delivery) in node.ledger.iter().enumerate() {
            let header = &delivery.block.header;
            verifier.verify_block(&delivery.block, &delivery.certificate).expect("a certificate");
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
    if charter.ordering == "kafka" {
        // Headers alone say little of records; what does is tested with the rule.
        return;
    }
    for (position, delivery) in nodes[0].ledger.iter().enumerate().skip(1) {
        let other = &nodes[0].ledger[position - 1];
        let header = &delivery.block.header;
        assert!(matches!(
            verifier.verify(header, &other.certificate),
            Err(CertificateError::OtherBlock { .. }
                | CertificateError::BrokenChain { .. }
                | CertificateError::NotOffered { .. })
        ));
        let mut cut = delivery.certificate.to_vec();
        let last = cut.len() - 1;
        cut[last] ^= 1;
        assert!(verifier.verify(header, &cut).is_err(), "a changed signature");
        assert!(verifier.verify(header, &cut[..last]).is_err(), "a certificate that is cut off");
    }
}
