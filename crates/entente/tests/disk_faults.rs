//! Disks that run full and disks that do not flush, at random instants under load: the node stops and says so, the others
//! go on, and once the disk is well again the node starts and catches up. Every receipt that a client was given stands in
//! every node's ledger, as it was given.
//!
//! `make test` runs a few cycles; `DISK_CYCLES` and `DISK_SEED` ask for others. The faults come from a library that stands
//! between the node and the operating system (`support/disk_faults.c`), so everything that a node writes meets them.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::load::{Load, variable};
use support::{TestNetwork, preloaded};

/// Waits until the node says that it does not serve, or has ended.
async fn wait_for_stop(network: &mut TestNetwork, node: usize, what: &str) {
    let start = Instant::now();
    loop {
        if network.has_ended(node) {
            return;
        }
        let status = tokio::time::timeout(Duration::from_secs(5), network.client(node).status()).await;
        if let Ok(Ok(status)) = status
            && let Some(why) = status.not_serving
        {
            assert!(!why.is_empty());
            return;
        }
        assert!(
            start.elapsed() < Duration::from_secs(90),
            "{what}: the node goes on:\n{}",
            network.log(node)
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_receipt_survives_full_disks_and_failing_flushes() {
    if !test_machine::required("cc") {
        return;
    }
    let (cycles, seed) = (variable("DISK_CYCLES", 4), variable("DISK_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let mut network = TestNetwork::create(|charter| {
        charter.checkpoint_blocks = 25;
    });
    let library = preloaded(network.folder(), "disk_faults");
    let fault = |node: usize, network: &TestNetwork| network.folder().join(format!("fault{node}"));
    let faults: Vec<PathBuf> = (0..4).map(|node| fault(node, &network)).collect();
    let start = |network: &mut TestNetwork, node: usize| {
        network.start_with(node, &[("LD_PRELOAD", &library), ("DISK_FAULT", &faults[node])]);
    };
    (0..4).for_each(|node| start(&mut network, node));
    for node in 0..4 {
        network.wait_for_height(node, 1).await;
    }
    let load = Load::start(&network).await;
    for cycle in 0..cycles {
        let (node, how) = (random.random_range(0..4), if cycle % 2 == 0 { "w" } else { "f" });
        let what = format!("seed {seed}, cycle {cycle}, node {node}, fault {how}");
        load.wait_for(100, &what).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await;
        std::fs::write(&faults[node], how).expect("a file");
        wait_for_stop(&mut network, node, &what).await;
        load.wait_for(100, &format!("{what}: the others")).await;
        network.kill(node);
        std::fs::remove_file(&faults[node]).expect("it was there");
        start(&mut network, node);
        network.wait_for_height(node, 1).await;
        network.assert_agreement(&[0, 1, 2, 3]).await;
    }
    let told = load.finish(&mut network).await;
    println!(
        "seed {seed}: {cycles} cycles, {} receipts, {} submissions repeated, none lost or contradicted",
        told.receipts.len(),
        told.repeated
    );
}
