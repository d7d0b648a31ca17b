//! A network whose nodes keep the state in different stores: they agree byte for byte, also after they were killed, and where one
//! goes over to another store.

mod network;

use network::TestNetwork;
use node::{ConvertedStore, NodeOptions, StoreChoice, StoreKind, convert_store};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const DISK: &str = "store = \"disk\"\nmemory_megabytes = 16";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_different_stores_agree_and_may_change_over() {
    let mut network = TestNetwork::create(|charter| charter.checkpoint_blocks = 5);
    [2, 3].into_iter().for_each(|node| network.keep_state(node, DISK));
    (0..4).for_each(|node| network.start(node, NodeOptions::default()));
    let client = network.client(0);
    network
        .run(&client, "CREATE TABLE account (id bigint PRIMARY KEY, owner text NOT NULL, n bigint NOT NULL)")
        .await;
    network.run(&client, "CREATE INDEX account_n ON account (n)").await;
    for round in 0..4 {
        let insert = format!(
            "INSERT INTO account SELECT number, repeat('x', 200), 0 \
             FROM generate_series({}, {}) AS number",
            round * 5_000,
            round * 5_000 + 4_999
        );
        network.run(&network.client(round), &insert).await;
        network.run(&network.client(round), "UPDATE account SET n = n + id WHERE id % 3 = 0").await;
        network.run(&network.client(round), "DELETE FROM account WHERE id % 7 = 6").await;
    }
    network.check_agreement().await;
    // From disk to memory and the other way round, by the command, or by the next start.
    let in_memory = StoreChoice::default();
    let on_disk = StoreChoice { kind: StoreKind::Disk, memory_megabytes: Some(16) };
    let running = convert_store(&network.network.folders[3], in_memory).expect_err("its node runs");
    assert!(running.to_string().contains("is in use by process"), "{running}");
    for (node, choice) in [(3, in_memory), (0, on_disk)] {
        network.stop(node);
        let folder = network.network.folders[node].clone();
        let file = folder.join("node.toml");
        let commented =
            std::fs::read_to_string(&file).expect("written") + "# Ask Ada before you change this.\n";
        std::fs::write(&file, &commented).expect("writes");
        let ConvertedStore { state, refused } = convert_store(&folder, choice).expect("it is stopped");
        let (height, statistics) = state.expect("a state was left");
        assert!(refused.is_empty(), "{refused:?}");
        assert!(statistics.rows > 10_000 && statistics.durable_height == height, "{statistics:?}");
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.contains("# Ask Ada") && text.contains(&format!("store = \"{}\"", choice.kind.name())));
        assert_eq!(text.contains("memory_megabytes"), choice.memory_megabytes.is_some(), "{text}");
        network.start(node, NodeOptions::default());
        let report = network.nodes[node].as_ref().expect("it runs").report().clone();
        assert_eq!(report.checkpoint, height, "it goes on where the command left it: {report:?}");
    }
    network.stop(1);
    network.keep_state(1, DISK);
    network.start(1, NodeOptions::default());
    network.run(&network.client(2), "ALTER TABLE account ADD COLUMN note text DEFAULT 'none'").await;
    network.run(&network.client(0), "UPDATE account SET note = 'some' WHERE n > 1000").await;
    network.run(&network.client(1), "CREATE TABLE other (id bigint PRIMARY KEY)").await;
    network.run(&network.client(1), "DROP TABLE other").await;
    network.check_agreement().await;
    // States that are all damaged cannot be converted. The node makes its own again.
    network.stop(2);
    let folder = network.network.folders[2].clone();
    let before = std::fs::read_to_string(folder.join("node.toml")).expect("written");
    damage_states(&folder.join("state"));
    let refused = convert_store(&folder, in_memory).expect_err("no state is whole").to_string();
    assert!(refused.contains("the store of the state cannot read"), "{refused}");
    assert_eq!(std::fs::read_to_string(folder.join("node.toml")).expect("written"), before);
    network.start(2, NodeOptions::default());
    network.check_agreement().await;
    network.stop_all();
}

/// Flips bytes among the rows of every state, in the middle of all its large files, of which several states may share some: which
/// of them has the rows that are live depends on when they were written.
fn damage_states(folder: &Path) {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let metadata = |path: &PathBuf| std::fs::metadata(path).expect("it is there");
    let mut damaged = BTreeSet::new();
    for state in entries(folder).into_iter().filter(|path| path.is_dir()) {
        let large = entries(&state.join("tables")).into_iter().filter(|path| metadata(path).len() > 64 << 10);
        for table in large {
            if damaged.insert(metadata(&table).ino()) {
                let mut bytes = std::fs::read(&table).expect("it is there");
                let (first, last) = (bytes.len() / 4, bytes.len() * 3 / 4);
                (first..last).step_by(1_000).for_each(|at| bytes[at] ^= 4);
                std::fs::write(&table, bytes).expect("it is written");
            }
        }
    }
    assert!(!damaged.is_empty());
}
