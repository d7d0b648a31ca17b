//! A network of one.

use bytes::Bytes;
use ordering::simulation::{AnyBytes, charter, node_key};
use ordering::solo::{self, Solo, SoloConfig};
use ordering::{CertificateError, MempoolLimits, Ordering, OrderingError, SubmitError, verify_certificate};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::{BlockHeader, Charter, Charters};

fn network() -> Arc<Charter> {
    let mut charter = charter(1, 1);
    charter.ordering = "solo".to_string();
    charter.block.transactions_max = 10;
    charter.block.idle_ms = 60_000;
    Arc::new(charter)
}

fn config(charter: &Arc<Charter>, last: Option<BlockHeader>) -> SoloConfig {
    SoloConfig {
        charters: Charters::new(charter.clone()),
        node_key: node_key(0),
        last,
        mempool: MempoolLimits::default(),
    }
}

fn start(charter: &Arc<Charter>, last: Option<BlockHeader>) -> Arc<Solo> {
    solo::start(config(charter, last), Arc::new(AnyBytes)).expect("the service starts")
}

fn submit(ordering: &dyn Ordering, from: usize, to: usize) -> Vec<Result<types::TransactionId, SubmitError>> {
    ordering.submit((from..to).map(|number| Bytes::from(format!("transaction {number}"))).collect())
}

#[test]
fn blocks_continue_where_the_ledger_ends() {
    let charter = network();
    let mut last: Option<BlockHeader> = None;
    for round in 0..2 {
        let ordering = start(&charter, last.clone());
        assert!(submit(&*ordering, round * 25, round * 25 + 25).iter().all(Result::is_ok));
        let mut transactions = 0;
        while transactions < 25 {
            let delivery = ordering.deliveries().recv_timeout(Duration::from_secs(20)).expect("a block");
            let header = &delivery.block.header;
            let (height, previous) = match &last {
                None => (1, charter.ledger()),
                Some(last) => (last.height + 1, last.digest()),
            };
            assert_eq!((header.height, header.previous), (height, previous));
            assert!(delivery.block.transactions.len() <= 10);
            assert_eq!(delivery.block.check_content(), Ok(()));
            assert_eq!(verify_certificate(&charter, header, &delivery.certificate), Ok(()));
            transactions += delivery.block.transactions.len();
            ordering.acknowledge(header.height);
            last = Some(header.clone());
        }
        assert_eq!(ordering.status().pending_transactions, 0);
        assert_eq!(ordering.status().final_height, last.as_ref().map_or(0, |last| last.height));
        ordering.stop();
        assert_eq!(submit(&*ordering, 0, 1), vec![Err(SubmitError::Stopped)]);
    }
    assert!(last.is_some_and(|last| last.height >= 6));
}

#[test]
fn a_full_queue_of_deliveries_holds_the_blocks_back_and_stop_still_works() {
    let ordering = start(&network(), None);
    submit(&*ordering, 0, 200);
    let began = Instant::now();
    while ordering.deliveries().len() < 4 && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    assert!(ordering.status().pending_transactions > 0, "nobody takes blocks, so transactions wait");
    ordering.stop();
}

#[test]
fn certificates_of_others_and_of_other_blocks_prove_nothing() {
    let charter = network();
    let ordering = start(&charter, None);
    submit(&*ordering, 0, 1);
    let delivery = ordering.deliveries().recv_timeout(Duration::from_secs(20)).expect("a block");
    let header = delivery.block.header;
    let verify =
        |charter: &Charter, header: &BlockHeader, bytes: &[u8]| verify_certificate(charter, header, bytes);

    let changed = BlockHeader { timestamp_ms: header.timestamp_ms + 1, ..header.clone() };
    assert!(matches!(
        verify(&charter, &changed, &delivery.certificate),
        Err(CertificateError::NoQuorum { .. })
    ));
    let other = BlockHeader { ledger: crypto::Digest::ZERO, ..header.clone() };
    assert!(matches!(
        verify(&charter, &other, &delivery.certificate),
        Err(CertificateError::OtherLedger { .. })
    ));
    for length in 0..delivery.certificate.len() {
        let cut = verify(&charter, &header, &delivery.certificate[..length]);
        assert!(matches!(cut, Err(CertificateError::Malformed { .. })), "{length} bytes");
    }
}

#[test]
fn what_cannot_start_says_why() {
    let refused = |config: SoloConfig| match solo::start(config, Arc::new(AnyBytes)) {
        Ok(_) => panic!("expected an error"),
        Err(error) => error,
    };
    let charter = network();
    let wrong = refused(SoloConfig { node_key: node_key(3), ..config(&charter, None) });
    assert!(matches!(wrong, OrderingError::WrongKey { .. }), "{wrong}");
    let mut bft = (*charter).clone();
    bft.ordering = "bft".to_string();
    let wrong = refused(config(&Arc::new(bft), None));
    assert!(matches!(wrong, OrderingError::OtherService { .. }), "{wrong}");
}
