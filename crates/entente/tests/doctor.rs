//! `entente doctor` beside nodes that run: all is well; a member is gone, or has another key; a second process on one folder, or a copy
//! of it; settings that are read again.

mod support;

use crypto::SecretKey;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::{ENTENTE, TestNetwork, preloaded};

/// What a command prints, and its exit code.
fn run(arguments: &[&str], folder: &Path) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(ENTENTE).args(arguments).arg("--dir").arg(folder).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).to_string())
}

/// The doctor's findings, and its exit code.
fn examined(folder: &Path) -> (Option<i32>, Vec<Value>) {
    let (code, said) = run(&["doctor", "--json"], folder);
    let findings = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    (code, findings)
}

fn with<'a>(findings: &'a [Value], check: &str, level: &str, words: &str) -> &'a Value {
    let is_it = |finding: &&Value| {
        finding["check"] == check
            && finding["level"] == level
            && finding["found"].as_str().is_some_and(|found| found.contains(words))
    };
    findings
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {level} of {check} with {words:?}: {findings:#?}"))
}

/// Waits until a node's log has these words.
fn wait_for_log(network: &TestNetwork, node: usize, words: &str) {
    let begin = Instant::now();
    while !network.log(node).contains(words) {
        assert!(begin.elapsed() < Duration::from_secs(30), "no {words:?} in {}", network.log(node));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_what_is_wrong_with_a_network() {
    let mut network = TestNetwork::create(|_| {});
    for node in 0..4 {
        // Every network of `entente init` is warned of it.
        std::fs::remove_file(network.node_folder(node).join("root.key")).expect("it is there");
    }
    let (code, said) = run(&["node", "--check"], &network.node_folder(0));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the node is stopped") && said.contains("0 problems"), "{said}");
    network.start_all().await;
    let begin = Instant::now();
    while network
        .client(0)
        .status()
        .await
        .is_ok_and(|status| status.members.iter().filter(|one| one.connected).count() < 3)
    {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", network.log(0));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    all_is_well(&network);
    a_second_process_is_refused(&network);
    settings_are_read_again(&network);
    a_copy_of_the_folder_is_refused(&network);
    members_that_are_away_or_others_are_named(&mut network);
    a_clock_that_is_an_hour_off_is_named(&mut network);
}

fn all_is_well(network: &TestNetwork) {
    let (code, findings) = examined(&network.node_folder(0));
    assert_eq!(code, Some(0), "{findings:#?}");
    for member in ["org2", "org3", "org4"] {
        with(&findings, "members", "ok", &format!("{member} at 127.0.0.1"));
        with(&findings, "encryption", "ok", &format!("{member}: 127.0.0.1"));
    }
    with(&findings, "node", "ok", "serves at height");
    with(&findings, "clock", "ok", "from those of org2, org3, org4");
    with(&findings, "one key", "ok", "no other process");
    with(&findings, "ports", "ok", "are this node's");
    let advised = |finding: &&Value| finding["level"] != "ok";
    assert!(findings.iter().filter(advised).all(|finding| finding["advice"].is_string()), "{findings:#?}");
}

fn a_second_process_is_refused(network: &TestNetwork) {
    let process = std::fs::read_to_string(network.node_folder(0).join("ledger/LOCK")).expect("it runs");
    let (code, said) = run(&["node"], &network.node_folder(0));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("is in use by process {}; stop that process", process.trim())), "{said}");
    // A check beside the node is no second start.
    assert_eq!(run(&["node", "--check"], &network.node_folder(0)).0, Some(0));
}

fn settings_are_read_again(network: &TestNetwork) {
    let (path, process) = (network.node_folder(0).join("node.toml"), network.process(0));
    let hang_up = || {
        let sent = Command::new("kill").args(["-HUP", &process.to_string()]).status().expect("kill runs");
        assert!(sent.success());
    };
    let before = std::fs::read_to_string(&path).expect("it is there");
    std::fs::write(
        &path,
        format!("connections_max = 9\nlog_filter = \"info\"\nhistory_heights = 20\n{before}"),
    )
    .expect("written");
    hang_up();
    wait_for_log(network, 0, "connections_max, log_filter from now on");
    wait_for_log(network, 0, "needs a restart: history_heights");
    std::fs::write(&path, format!("conections_max = 9\n{before}")).expect("written");
    hang_up();
    wait_for_log(network, 0, "the settings are as before");
    wait_for_log(network, 0, "unknown field `conections_max`");
    std::fs::write(&path, format!("log_filter = \"ordering=loud\"\n{before}")).expect("written");
    hang_up();
    wait_for_log(network, 0, "log_filter: expected what RUST_LOG may say");
    assert_eq!(run(&["node", "--check"], &network.node_folder(0)).0, Some(1));
    std::fs::write(&path, before).expect("written");
    hang_up();
}

/// As somebody makes who restores a node's folder on another machine while the node runs.
fn a_copy_of_the_folder_is_refused(network: &TestNetwork) {
    let (folder, copy) = (network.node_folder(0), network.folder().join("copy"));
    copy_of(&folder, &copy);
    let toml = std::fs::read_to_string(copy.join("node.toml")).expect("copied");
    let moved = [0, 100, 200].iter().fold(toml, |toml, offset| {
        let port = network.port_base + offset;
        toml.replace(&format!(":{port}\""), &format!(":{}\"", port + 7))
    });
    std::fs::write(copy.join("node.toml"), moved).expect("written");
    let (code, said) = run(&["node"], &copy);
    assert_eq!(code, Some(1), "{said}");
    let gateway = format!("127.0.0.1:{}", network.port_base + 200);
    assert!(
        said.contains(&format!(
            "a process with this node's key runs already: it answers at https://{gateway}"
        )),
        "{said}"
    );
    let (code, findings) = examined(&copy);
    assert_eq!(code, Some(1));
    with(&findings, "one key", "problem", "it runs from another folder");
}

/// What a copy of a node's folder has, without what it does not need here.
fn copy_of(folder: &Path, copy: &Path) {
    std::fs::create_dir(copy).expect("created");
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        match from.is_dir() {
            true => copy_of(&from, &to),
            // The node may take a file away meanwhile.
            false => _ = std::fs::copy(&from, &to),
        }
    }
}

fn members_that_are_away_or_others_are_named(network: &mut TestNetwork) {
    // The last one is stopped; what is said of its own folder needs no node.
    network.interrupt(3);
    let (code, findings) = examined(&network.node_folder(3));
    assert_eq!(code, Some(0), "{findings:#?}");
    with(&findings, "members", "ok", "org1 at 127.0.0.1");
    with(&findings, "members", "ok", "answers and has proved its node key");
    with(&findings, "ports", "ok", "are free");
    let begin = Instant::now();
    let (code, findings) = loop {
        let (code, findings) = examined(&network.node_folder(0));
        let noticed =
            findings.iter().any(|finding| finding["level"] == "warning" && finding["check"] == "members");
        if noticed {
            break (code, findings);
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{findings:#?}");
    };
    assert_eq!(code, Some(0), "{findings:#?}");
    with(&findings, "members", "warning", "org4: nobody answers at 127.0.0.1");
    // Somebody else at its address.
    let folder = network.node_folder(3);
    std::fs::write(folder.join("node.key"), SecretKey::generate().to_hex()).expect("written");
    std::fs::rename(folder.join("ordering"), folder.join("ordering.before")).expect("moved");
    std::fs::remove_file(folder.join("ordering.claimed")).expect("it is there");
    network.start(3);
    wait_for_log(network, 3, " at height ");
    let (code, findings) = examined(&network.node_folder(0));
    assert_eq!(code, Some(1), "{findings:#?}");
    let found = with(&findings, "members", "problem", "org4: whoever answers at https://127.0.0.1");
    assert!(found["found"].as_str().is_some_and(|found| found.contains("has the node key")), "{found}");
    with(&findings, "encryption", "problem", "which is that of no member");
    with(&findings, "members", "problem", "org4: somebody answers at 127.0.0.1");
}

fn a_clock_that_is_an_hour_off_is_named(network: &mut TestNetwork) {
    if !test_machine::required("cc") {
        return;
    }
    let clock = preloaded(network.folder(), "clock");
    network.interrupt(2);
    let started = network.log(2).matches(" at height ").count();
    network.start_with(2, &[("LD_PRELOAD", &clock)]);
    let begin = Instant::now();
    while network.log(2).matches(" at height ").count() == started {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", network.log(2));
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, findings) = examined(&network.node_folder(2));
    assert_eq!(code, Some(1), "{findings:#?}");
    about_an_hour(with(&findings, "clock", "problem", " s ahead of those of org1, org2"));
    let (_, findings) = examined(&network.node_folder(0));
    about_an_hour(with(&findings, "clock", "warning", " s ahead of this node's"));
}

/// That so much is said. Asking takes time, so it is not known to the second.
fn about_an_hour(finding: &Value) {
    let found = finding["found"].as_str().unwrap_or_default();
    let seconds = found.split(' ').find_map(|word| word.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| (3_590..=3_610).contains(&seconds)), "{found}");
}
