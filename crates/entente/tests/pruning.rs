//! The folder of a node that stands is pruned, as its operator sees it. What a node does by itself while it runs: `node --test pruning`.

mod support;

use bytes::Bytes;
use crypto::{Digest, merkle_root};
use ledger::{BlockOutcome, BlockRecord, CheckpointStore, Ledger};
use std::io::Write;
use std::path::Path;
use support::{TestNetwork, refuses, says};
use types::{
    Attested, Block, BlockDigest, BlockHeader, Outcome, OutcomeHeader, Receipt, TransactionId,
    transactions_root,
};

const BLOCKS: u64 = 1_500;
const FILE_BLOCKS: u64 = 200;

/// A block that follows another one, and what it came to: nobody has signed any of it.
fn record(ledger: Digest, previous: Digest, height: u64) -> BlockRecord {
    let transactions = vec![Bytes::from(format!("{height} {}", "x".repeat(500)))];
    let header = BlockHeader {
        ledger,
        height,
        // A day passes in a hundred blocks.
        timestamp_ms: height * 864_000,
        previous,
        transactions_root: transactions_root(&transactions),
        transactions: 1,
        proposer: 0,
        certified_height: height.saturating_sub(2),
        attested: Attested::default().digest(),
        charters: ledger,
    };
    let transaction = TransactionId(crypto::sha256(&[&height.to_le_bytes()]));
    let receipts = vec![Receipt { transaction, height, index: 0, outcome: Outcome::Conflict }];
    let outcome = OutcomeHeader {
        ledger,
        height,
        block: header.digest(),
        previous,
        receipts_root: merkle_root(&[receipts[0].leaf()]),
        state_digest: ledger,
        charters: ledger,
    };
    BlockRecord {
        block: Block { header, attested: Attested::default(), transactions },
        certificate: Bytes::from_static(b"proof"),
        outcome: BlockOutcome { receipts, digest: BlockDigest::default(), header: outcome },
    }
}

/// Gives a node's folder blocks in files of 200, and two checkpoints.
fn fill(folder: &Path, name: Digest) {
    let (ledger, _) = Ledger::open(folder.join("ledger"), name).expect("opens");
    let mut previous = name;
    for height in 1..=BLOCKS {
        let record = record(name, previous, height);
        ledger.append(&record).expect("appends");
        previous = record.block.header.digest();
        if height % FILE_BLOCKS == 0 {
            ledger.begin_file().expect("ends the file");
        }
    }
    ledger.flush().expect("flushes");
    let checkpoints = CheckpointStore::open(folder.join("checkpoints"), name).expect("opens");
    for height in [BLOCKS - 200, BLOCKS - 100] {
        checkpoints.write(height, |writer| writer.write_all(b"state")).expect("there is room");
    }
}

#[test]
fn an_operator_prunes_the_folder_of_a_node_that_stands() {
    let network = TestNetwork::create(|charter| charter.expiry_blocks_max = 300);
    let (folder, name) = (&network.network.folders[0], network.network.charter.ledger());
    let node = folder.to_str().expect("a plain name");
    for (option, number) in [("--payload-blocks", "999"), ("--payload-days", "0")] {
        let refused = refuses(&["prune", "--dir", node, option, number]);
        assert!(refused.contains(option) && refused.contains(number), "{refused}");
    }
    let refused = refuses(&["prune", "--dir", node]);
    assert!(refused.contains("expected payload_blocks or payload_days, found neither"), "{refused}");
    // A node that has never run has nothing yet; from its start on it prunes by itself.
    let first = says(&["prune", "--dir", node, "--payload-days", "12"]);
    assert!(first.contains("nothing to prune"), "{first}");
    fill(folder, name);
    // Twelve days are 1,200 blocks, so blocks up to 300 are older: one file.
    let tried = says(&["prune", "--dir", node, "--dry-run"]);
    assert!(tried.contains("would prune 200 blocks"), "{tried}");
    assert!(tried.contains("are here from height 1 on, of 1,500 blocks"), "{tried}");
    let (ledger, _) = Ledger::open(folder.join("ledger"), name).expect("opens");
    let refused = refuses(&["prune", "--dir", node]);
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    drop(ledger);
    let done = says(&["prune", "--dir", node]);
    assert!(done.contains("pruned 200 blocks") && done.contains("are here from height 201 on"), "{done}");
    // What is said last holds: a thousand blocks, and no days.
    let done = says(&["prune", "--dir", node, "--payload-blocks", "1000"]);
    assert!(done.contains("pruned 200 blocks") && done.contains("are here from height 401 on"), "{done}");
    let settings = std::fs::read_to_string(folder.join("node.toml")).expect("there");
    assert!(settings.contains("payload_blocks = 1000") && !settings.contains("payload_days"), "{settings}");
    assert!(
        says(&["prune", "--dir", node]).contains("nothing to prune: blocks from height 501 on are needed")
    );
    let (ledger, _) = Ledger::open(folder.join("ledger"), name).expect("opens");
    assert_eq!((ledger.payloads_from(), ledger.tip().expect("blocks").0), (401, BLOCKS));
    assert_eq!(ledger.header(7).expect("reads").expect("it is there").height, 7);
}

#[test]
fn a_node_keeps_what_its_checkpoints_need_whatever_it_is_told() {
    let network = TestNetwork::create(|charter| charter.expiry_blocks_max = 1);
    let (folder, name) = (&network.network.folders[0], network.network.charter.ledger());
    let node = folder.to_str().expect("a plain name");
    fill(folder, name);
    let checkpoints = CheckpointStore::open(folder.join("checkpoints"), name).expect("opens");
    checkpoints.remove_after(BLOCKS - 200).expect("one is left");
    drop(checkpoints);
    let one = says(&["prune", "--dir", node, "--payload-days", "1"]);
    assert!(one.contains("blocks from height 1 on are needed"), "with one checkpoint: {one}");
    let checkpoints = CheckpointStore::open(folder.join("checkpoints"), name).expect("opens");
    checkpoints.write(BLOCKS - 150, |writer| writer.write_all(b"state")).expect("there is room");
    drop(checkpoints);
    // Those up to 1,300 stand behind the older checkpoint; the file with 1,201 to 1,400 is needed.
    let two = says(&["prune", "--dir", node]);
    assert!(two.contains("pruned 1,200 blocks") && two.contains("from height 1,201 on"), "{two}");
}
