//! Four nodes in one process that agree on their whole state at checkpoints, and find in themselves what was changed behind
//! their backs: in memory, in checkpoints, in blocks.

mod network;

use network::{PATIENCE, TestNetwork};
use node::{Faults, NodeOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::CheckpointCertificate;

impl TestNetwork {
    fn certificate(&self, node: usize) -> Option<CheckpointCertificate> {
        self.nodes[node].as_ref().expect("it runs").checkpoint_certificate()
    }

    /// Waits for a certified checkpoint of this height or a later one.
    async fn certified_from(&self, node: usize, height: u64) -> CheckpointCertificate {
        let start = Instant::now();
        loop {
            match self.certificate(node) {
                Some(certificate) if certificate.statement.height >= height => return certificate,
                found => assert!(start.elapsed() < PATIENCE, "node {node}: {height}; {found:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn metric(&self, node: usize, line: &str) -> u64 {
        let text = self.nodes[node].as_ref().expect("it runs").database().metrics();
        let found = text.lines().find_map(|one| one.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or(0)
    }
}

async fn with_rows(checkpoint_blocks: u32, faults: &Arc<Faults>) -> TestNetwork {
    with_rows_in(checkpoint_blocks, faults, &[]).await
}

/// `stores`: what `node.toml` of nodes says of theirs.
async fn with_rows_in(checkpoint_blocks: u32, faults: &Arc<Faults>, stores: &[(usize, &str)]) -> TestNetwork {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = checkpoint_blocks);
    stores.iter().for_each(|(node, lines)| network.keep_state(*node, lines));
    for node in 0..4 {
        let faults = (node == 2).then(|| faults.clone());
        network.start(node, NodeOptions { faults, ..NodeOptions::default() });
    }
    let client = network.client(0);
    network.run(&client, "CREATE TABLE accounts (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    network.run(&client, "CREATE TABLE others (id bigint PRIMARY KEY, n bigint NOT NULL)").await;
    let rows = "SELECT number, 0 FROM generate_series(0, 999) AS number";
    network.run(&client, &format!("INSERT INTO accounts {rows}; INSERT INTO others {rows}")).await;
    network
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_attested_and_blocks_carry_their_certificates() {
    let mut network = with_rows(6, &Arc::default()).await;
    let rules = types::CertificateRules::new(&network.network.charter);
    for node in 0..4 {
        let certificate = network.certified_from(node, 6).await;
        rules.check_certificate(&certificate).expect("a quorum's signatures");
    }
    // A restarted node knows at once what it has, and goes on.
    network.stop(3);
    let before = network.certified_from(0, 12).await.statement;
    network.start(3, NodeOptions::default());
    network.certified_from(3, 6).await;
    let newest = network.certified_from(0, before.height + 6).await.statement;
    assert_eq!(network.certified_from(3, newest.height).await.statement.height % 6, 0);
    network.check_agreement().await;
    // CHECKPOINT makes one where the charter does not.
    let receipt = network.run(&network.client(1), "CHECKPOINT").await;
    for node in 0..4 {
        network.certified_from(node, receipt.height).await;
    }
    let folder = network.network.folders[0].join("ledger");
    let ledger_name = network.network.charter.ledger();
    network.stop(0);
    let (ledger, _) = ledger::Ledger::open(folder, ledger_name).expect("it is stopped");
    let carried: Vec<u64> = ledger
        .blocks_from(1)
        .filter_map(|record| record.expect("good").block.attested.checkpoint)
        .map(|certificate| certificate.statement.height)
        .collect();
    assert!(
        carried.contains(&before.height)
            && carried.iter().all(|height| *height % 6 == 0 || *height == receipt.height),
        "{carried:?}"
    );
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_a_row_that_nobody_reads_is_found_at_the_next_checkpoint_and_healed() {
    let faults = Arc::new(Faults::default());
    let network = with_rows(10, &faults).await;
    let before = network.certified_from(2, 10).await.statement.height;
    faults.flip_in("others");
    let told = network.wait(2, "it reports", |status| status.diverged.is_some()).await;
    assert!(faults.has_struck());
    assert!(told.height <= before + 21, "{} is not within an interval of {before}", told.height);
    let healed = |status: &client::Status| {
        status.not_serving.is_none()
            && status.diverged.as_ref().is_some_and(|text| text.contains("table others"))
    };
    let status = network.wait(2, "it heals and says where", healed).await;
    network.certified_from(2, before + 10).await;
    network.certified_from(2, status.height).await;
    assert_eq!(network.metric(2, "entente_attest_diverged_total "), 1);
    for node in [0, 1, 3] {
        assert_eq!(network.status(node).await.diverged, None);
    }
    // Its state is right: it can change the row as everybody does.
    network.run(&network.client(2), "UPDATE others SET n = n + 1 WHERE id = 0").await;
    network.check_agreement().await;
    network.stop_all();
}

/// Flips a bit in the middle of a file, behind everybody's back.
fn flip_in_the_middle_of(path: &Path) {
    let mut bytes = std::fs::read(path).expect("it is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    // In place: whoever has it open must see it.
    let mut file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
    file.seek(SeekFrom::Start(middle as u64)).expect("it has so many bytes");
    file.write_all(&bytes[middle..=middle]).expect("written");
}

fn newest_file(folder: &Path, extension: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).max()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_a_checkpoint_is_found_and_the_next_one_takes_its_place() {
    let network = with_rows(30, &Arc::default()).await;
    network.certified_from(2, 30).await;
    let folder = network.network.folders[2].join("checkpoints");
    flip_in_the_middle_of(&newest_file(&folder, "state").expect("a checkpoint"));
    let height = network.status(2).await.height;
    let found =
        |_: &client::Status| network.metric(2, "entente_scrub_found_total{what=\"checkpoint\"} ") == 1;
    let status = network.wait(2, "it is found", found).await;
    assert!(status.height <= height + 31, "{} is not within an interval of {height}", status.height);
    let newer = network.certified_from(2, status.height + 1).await.statement;
    assert_eq!(network.certified_from(0, newer.height).await.statement.height % 30, 0);
    assert_eq!(network.status(2).await.not_serving, None);
    network.check_agreement().await;
    network.stop_all();
}

/// The largest file of the rows of the newest state.
fn file_of_rows(folder: &Path) -> PathBuf {
    let entries = |folder: &Path| {
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path())
    };
    let is_store =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("store-"));
    let store = entries(&folder.join("state")).filter(is_store).max().expect("a state");
    let size = |path: &PathBuf| path.metadata().map_or(0, |file| file.len());
    entries(&store.join("tables")).max_by_key(size).expect("rows")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_a_file_of_the_state_is_found_and_the_state_made_again_wherever_rows_are_read() {
    let stores = [(1, "store = \"disk\"\nmemory_megabytes = 16"), (2, "store = \"memory\"")];
    let mut network = with_rows_in(10, &Arc::default(), &stores).await;
    for (node, _) in stores {
        network.certified_from(node, 10).await;
        let folder = network.network.folders[node].clone();
        let damaged = file_of_rows(&folder);
        flip_in_the_middle_of(&damaged);
        let found =
            |_: &client::Status| network.metric(node, "entente_scrub_found_total{what=\"state\"} ") == 1;
        network.wait(node, "it is found", found).await;
        let healed = |status: &client::Status| status.not_serving.is_none() && status.diverged.is_some();
        let status = network.wait(node, "it heals", healed).await;
        let told = status.diverged.expect("just seen");
        assert!(told.contains(&damaged.display().to_string()), "it names the file: {told}");
        network.certified_from(node, status.height + 1).await;
        network.run(&network.client(node), "UPDATE others SET n = n + 1 WHERE id < 500").await;
        network.check_agreement().await;
        assert_eq!(network.metric(node, "entente_scrub_found_total{what=\"state\"} "), 1, "once");
        assert!(!folder.join("state/damaged").exists(), "what is there is whole");
        // And what it has now is what the next process takes up.
        network.stop(node);
        network.start(node, NodeOptions::default());
        network.check_agreement().await;
        assert_eq!(network.status(node).await.diverged, None);
    }
    network.stop_all();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_a_block_is_found_and_the_block_fetched_again() {
    let mut network = with_rows(30, &Arc::default()).await;
    let client = network.client(0);
    let receipt = network.run(&client, "UPDATE accounts SET n = n + 1").await;
    network.certified_from(2, receipt.height).await;
    let folder = network.network.folders[2].join("ledger");
    flip_in_the_middle_of(&newest_file(&folder, "log").expect("blocks"));
    let height = network.status(2).await.height;
    let found = |_: &client::Status| network.metric(2, "entente_scrub_found_total{what=\"block\"} ") == 1;
    let status = network.wait(2, "it is found", found).await;
    assert!(status.height <= height + 31, "{} is not within an interval of {height}", status.height);
    let healed = |status: &client::Status| {
        status.diverged.is_some() && status.not_serving.is_none() && status.certified_height >= height
    };
    let status = network.wait(2, "it heals", healed).await;
    assert!(status.diverged.is_some_and(|text| text.contains("is damaged in")));
    network.run(&network.client(2), "UPDATE accounts SET n = n + 1 WHERE id = 3").await;
    network.check_agreement().await;
    let ledger = network.network.charter.ledger();
    network.stop(2);
    let files = ledger::LedgerFiles::open(&folder, ledger).expect("a ledger");
    assert!(files.records().all(|record| record.is_ok()), "every block is as it was written");
    network.stop_all();
}
