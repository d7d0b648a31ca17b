//! A network is upgraded node by node while clients write, and then goes over to the newest execution version.
//!
//! `ENTENTE_PROGRAM_BEFORE` names the program that the nodes run at first: a release before this one. Without it they are started
//! again one by one with the program that they had. `make upgrade` does it with release builds.

mod support;

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::load::{Load, variable};
use support::{ENTENTE, TestNetwork};
use tokio::task::JoinHandle;

/// What a network of the release before this one has.
const VERSION_BEFORE: u32 = 12;
/// How often it is looked whether receipts have come.
const LOOK: Duration = Duration::from_millis(5);

/// Looks how long no client gets a receipt.
struct Watch {
    ends: Arc<AtomicBool>,
    looking: JoinHandle<Duration>,
}

impl Watch {
    fn begin(receipts: impl Fn() -> usize + Send + 'static) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let looking = tokio::spawn(async move {
            let (mut known, mut since, mut longest) = (receipts(), Instant::now(), Duration::ZERO);
            while !ended.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
                longest = longest.max(since.elapsed());
                let now = receipts();
                if now > known {
                    (known, since) = (now, Instant::now());
                }
            }
            longest
        });
        Watch { ends, looking }
    }

    /// The longest time without a receipt.
    async fn end(self) -> Duration {
        self.ends.store(true, Ordering::Relaxed);
        self.looking.await.expect("it looks")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_is_upgraded_node_by_node_while_clients_write() {
    let mut network = TestNetwork::create(|charter| {
        charter.found_with_version(VERSION_BEFORE);
        charter.outcome_lag_blocks = 10;
        charter.checkpoint_blocks = 50;
    });
    let now = network.program.clone();
    let before = std::env::var_os("ENTENTE_PROGRAM_BEFORE").map_or_else(|| now.clone(), PathBuf::from);
    network.program = before;
    network.start_all().await;
    let receipts = variable("UPGRADE_RECEIPTS", 200) as usize;
    let load = Load::start(&network).await;
    load.wait_for(receipts, "the program before").await;
    let undisturbed = Watch::begin(load.counting());
    load.wait_for(receipts, "the program before").await;
    println!("no receipt for {:.2} s at most before the upgrade", undisturbed.end().await.as_secs_f64());
    network.program = now;
    for node in 0..4 {
        let watch = Watch::begin(load.counting());
        let height = network.client((node + 1) % 4).status().await.expect("it answers").height;
        // As an operator does it: the node ends in good order, and the new program is started in its folder.
        network.interrupt(node);
        network.start(node);
        network.wait_for_height(node, height + 1).await;
        load.wait_for(receipts, "one more node is upgraded").await;
        println!("node {node}: no receipt for {:.2} s at most", watch.end().await.as_secs_f64());
    }
    let watch = Watch::begin(load.counting());
    let governor = network.session(1).await;
    let newest = types::ExecutionVersion::NEWEST.number();
    for version in VERSION_BEFORE + 1..=newest {
        let amendment = format!("SELECT entente.set_charter('execution_version', '{version}')");
        governor.batch_execute(&amendment).await.expect("every node knows it");
        let height = network.client(1).status().await.expect("it answers").height;
        network.wait_for_height(1, height + 25).await;
    }
    load.wait_for(receipts, "the newest version").await;
    println!("over to version {newest}: no receipt for {:.2} s at most", watch.end().await.as_secs_f64());
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let told = load.finish(&mut network).await;
    println!("{} receipts, {} submissions asked again", told.receipts.len(), told.repeated);
    for node in 0..4 {
        let output =
            Command::new(ENTENTE).args(["verify", "--replay"]).arg(network.node_folder(node)).output();
        let output = output.expect("the program runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "node {node}: {}", String::from_utf8_lossy(&said));
    }
}
