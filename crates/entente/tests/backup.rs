//! A node of a network under load is backed up, with kills in the middle, lost, and made again from the backup with other keys; the
//! old ones never vote again.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::load::Load;
use support::{ENTENTE, TestNetwork, entente, says, text};

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status().expect("cp runs");
    assert!(copied.success(), "{} can be copied", from.display());
}

/// Backups that are killed at moments that come ever later. Whatever there is afterwards is whole.
fn backups_with_kills(node: &Path, target: &Path) {
    let (mut killed, mut whole) = (0, 0);
    for attempt in 0..8 {
        let mut child = Command::new(ENTENTE)
            .args(["backup", "--dir", text(node), "--to", text(target)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(Duration::from_millis(20 + 20 * attempt));
        // It may have come to its end.
        let _ = child.kill();
        killed += u32::from(!child.wait().expect("it has ended").success());
        let manifests = target.join("manifests").read_dir().map_or(0, |entries| {
            entries
                .filter(|entry| entry.as_ref().is_ok_and(|one| text(&one.path()).ends_with("json")))
                .count()
        });
        if manifests > 0 {
            says(&["verify", "--backup", text(target)]);
            whole += 1;
        }
    }
    println!("{killed} of 8 backups were killed, {whole} times a backup was there and whole");
    assert!(killed > 0, "at least the first ones are killed");
}

/// The node goes on in this folder.
fn move_to(network: &mut TestNetwork, node: usize, folder: &Path) {
    network.network.folders[node] = folder.to_path_buf();
}

/// With two of four nodes, and one whose key is no member's, nothing is decided.
async fn nothing_is_decided(network: &TestNetwork) {
    // What was on its way.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let before = network.client(0).status().await.expect("it answers").height;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = network.client(0).status().await.expect("it answers").height;
    assert_eq!(before, after, "the old key votes for nothing");
}

/// Restores into `folder`; gives the statement with which a member proposes the new key.
fn restore(target: &Path, vault: &Path, folder: &Path) -> String {
    let told = says(&["restore", "--from", text(target), "--dir", text(folder), "--root-key", text(vault)]);
    println!("{told}");
    let statement =
        told.lines().find(|line| line.contains("entente.replace_node_key")).expect("it says what to propose");
    statement.trim().to_string()
}

/// Whoever copies the lost node's key into the folder is told why that cannot be.
fn the_old_key_is_refused(folder: &Path, old_key: &str) {
    let key = folder.join("node.key");
    let new_key = std::fs::read_to_string(&key).expect("it has one");
    std::fs::write(&key, old_key).expect("written");
    let output = entente(&["node", "--stop-with-input", "--dir", text(folder)]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("votes"), "{error}");
    std::fs::write(&key, new_key).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_node_comes_back_from_a_backup_under_another_key_and_the_old_one_never_votes_again() {
    let start = Instant::now();
    let mut network = TestNetwork::create(|charter| {
        // Changes take effect 20 blocks after they are decided.
        charter.outcome_lag_blocks = 10;
        charter.block.idle_ms = 100;
        charter.checkpoint_blocks = 20;
    });
    network.start_all().await;
    let mut load = Load::start(&network).await;
    load.wait_for(200, "before the first backup").await;
    let places: PathBuf = network.folder().join("elsewhere");
    let (target, vault, zombie) = (places.join("backup"), places.join("vault"), places.join("zombie"));
    std::fs::create_dir_all(&vault).expect("made");
    let lost = network.node_folder(3);
    std::fs::copy(lost.join("root.key"), vault.join("root.key")).expect("copied");
    backups_with_kills(&lost, &target);

    let mut regular = Command::new(ENTENTE)
        .args(["backup", "--dir", text(&lost), "--to", text(&target), "--every", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    load.wait_for(1_500, "while backups are made").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    regular.kill().expect("it goes on until it is stopped");
    regular.wait().expect("it has ended");
    println!("{}", says(&["backup", "--dir", text(&lost), "--to", text(&target)]));
    println!("{}", says(&["verify", "--backup", text(&target)]));

    // The machine is gone. Somebody has an old copy of its disk.
    load.wait_for(100, "behind the last backup").await;
    network.kill(3);
    copy(&lost, &zombie);
    let old_key = std::fs::read_to_string(lost.join("node.key")).expect("it has one");
    std::fs::remove_dir_all(&lost).expect("removed");
    load.wait_for(100, "three nodes go on").await;

    let restored = places.join("restored");
    let statement = restore(&target, &vault, &restored);
    the_old_key_is_refused(&restored, &old_key);
    move_to(&mut network, 3, &restored);
    network.start_with(3, &[("RUST_LOG", Path::new("info"))]);
    network.wait_for_height(3, 1).await;
    let log = network.log(3);
    assert!(log.contains("follows without voting") && log.contains("not fetched"), "{log}");
    network.session(0).await.simple_query(&statement).await.expect("governance is `any`");
    network.wait_until_level_with(0, &[3]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
    let height = network.client(0).status().await.expect("it answers").height + 30;
    for node in 0..4 {
        network.wait_for_height(node, height).await;
    }
    network.kill(2);
    load.wait_for(100, "the new key votes").await;

    // The old machine comes back in the place of the new one.
    network.kill(3);
    move_to(&mut network, 3, &zombie);
    network.start(3);
    nothing_is_decided(&network).await;
    network.kill(3);
    move_to(&mut network, 3, &restored);
    network.start(3);
    network.start(2);
    load.wait_for(100, "all are back").await;
    load.settle().await;
    println!("{}", says(&["backup", "--dir", text(&restored), "--to", text(&target)]));
    let told = load.finish(&mut network).await;
    says(&["verify", "--replay", text(&restored)]);
    println!("{} receipts, {:.0} s", told.receipts.len(), start.elapsed().as_secs_f64());
}
