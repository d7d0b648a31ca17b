//! Networks that an earlier program has recorded open, verify and continue: `tests/recorded/README.md`.
#![allow(missing_docs)]

#[path = "recorded/script.rs"]
mod script;
mod support;

use script::{Runner, answers};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{ENTENTE, TestNetwork};
use types::{Charter, ExecutionModel};

/// A recorded network: the name of its folder, its first port (which its charter names), and its charter.
struct Recording {
    name: &'static str,
    port_base: u16,
    charter: fn(&mut Charter),
}

/// The nodes' folders in one file.
const PACKED: &str = "nodes.zst";

const ORDERED: Recording = Recording { name: "ordered", port_base: 9_400, charter: quick };
const ENDORSED: Recording = Recording { name: "endorsed", port_base: 9_410, charter: endorsing };
const MISTAKES: Recording = Recording { name: "mistakes", port_base: 9_420, charter: quick };
const FOURTH: Recording = Recording { name: "fourth", port_base: 9_440, charter: fourth };
const FIFTH: Recording = Recording { name: "fifth", port_base: 9_450, charter: fifth };
const SIXTH: Recording = Recording { name: "sixth", port_base: 9_460, charter: sixth };
const SEVENTH: Recording = Recording { name: "seventh", port_base: 9_470, charter: seventh };
const EIGHTH: Recording = Recording { name: "eighth", port_base: 9_480, charter: eighth };
const NINTH: Recording = Recording { name: "ninth", port_base: 9_490, charter: ninth };
const TENTH: Recording = Recording { name: "tenth", port_base: 9_500, charter: tenth };
const ELEVENTH: Recording = Recording { name: "eleventh", port_base: 9_510, charter: eleventh };
const TWELFTH: Recording = Recording { name: "twelfth", port_base: 9_520, charter: twelfth };
const THIRTEENTH: Recording = Recording { name: "thirteenth", port_base: 9_530, charter: thirteenth };
const FOURTEENTH: Recording = Recording { name: "fourteenth", port_base: 9_540, charter: fourteenth };
const FIFTEENTH: Recording = Recording { name: "fifteenth", port_base: 9_550, charter: fifteenth };
const SECOND: Recording = Recording { name: "second", port_base: 9_430, charter: second };

/// Amendments hold 20 blocks after they are decided.
fn quick(charter: &mut Charter) {
    charter.name = "recorded".to_string();
    charter.found_with_version(1);
    charter.outcome_lag_blocks = 10;
    charter.block.idle_ms = 200;
}

/// Of execution version 2.
fn second(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(2);
    charter.checkpoint_blocks = 30;
}

/// Of execution version 4.
fn fourth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(4);
}

/// Of execution version 5.
fn fifth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(5);
}

/// Of execution version 6.
fn sixth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(6);
}

/// Of execution version 7.
fn seventh(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(7);
}

/// Of execution version 8.
fn eighth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(8);
}

/// Of execution version 9.
fn ninth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(9);
}

/// Of execution version 10.
fn tenth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(10);
}

/// Of execution version 11.
fn eleventh(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(11);
}

/// Of execution version 12.
fn twelfth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(12);
}

/// Of execution version 13.
fn thirteenth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(13);
}

/// Of execution version 14.
fn fourteenth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(14);
}

/// Of execution version 15.
fn fifteenth(charter: &mut Charter) {
    quick(charter);
    charter.found_with_version(15);
}

fn endorsing(charter: &mut Charter) {
    quick(charter);
    charter.execution = ExecutionModel::ExecuteOrderValidate;
    charter.protocol = "xox".into();
    charter.endorsement.policy = "2 of (org1, org2, org3, org4)".into();
}

impl Recording {
    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(self.name)
    }

    fn file(&self, name: &str) -> String {
        let path = self.folder().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Who holds this file has the ports that the charter names. Clients connect 100 and 200 above the nodes, so that networks
    /// whose first ports lie hundreds apart take turns.
    fn lock_file(&self) -> PathBuf {
        std::env::temp_dir().join(format!("entente-recorded-{}.lock", self.port_base % 100))
    }

    /// Its charter names ports, which one test at a time can have.
    fn ports(&self) -> File {
        let path = self.lock_file();
        let file = File::create(path).expect("a file for the lock");
        file.lock().expect("locked");
        file
    }

    /// The folders of its nodes, where a test may change them.
    fn unpack(&self) -> TestNetwork {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let packed = std::fs::read(self.folder().join(PACKED)).expect("it was recorded");
        let packed = zstd::decode_all(packed.as_slice()).expect("whole");
        let files: Vec<(String, Vec<u8>)> = types::decode_exactly(&packed).expect("packed by this file");
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder around it")).expect("a folder");
            std::fs::write(path, content).expect("written");
        }
        TestNetwork::of(folder, self.port_base)
    }

    /// Makes one file of the nodes' folders: they have much in common.
    fn pack(&self, folder: &Path) {
        let mut files = Vec::new();
        for node in 1..=4 {
            read_folder(folder, &format!("org{node}"), &mut files);
        }
        files.retain(|(name, _)| !name.ends_with("node.log"));
        files.sort_unstable();
        let packed = zstd::encode_all(types::encode(&files).as_slice(), 19).expect("compressed");
        std::fs::write(self.folder().join(PACKED), packed).expect("written");
    }

    /// Does what the script says on a new network and keeps its folders.
    async fn record(&self) {
        let _ports = self.ports();
        let mut network = TestNetwork::create_at(self.port_base, self.charter);
        network.start_all().await;
        let mut runner = Runner::new(&network);
        runner.run(&self.file("script.sql")).await;
        let height = runner.height();
        // The newest outcomes are certified in blocks.
        network.wait_for_height(0, height + 5).await;
        let mut found = Vec::<String>::new();
        // Blocks with outcomes of schemas may still come, and one node has them before another.
        for _ in 0..20 {
            found.clear();
            for node in 0..4 {
                found.push(answers_at(&network, node, height, &self.file("queries.sql")).await);
            }
            if found.iter().all(|answers| *answers == found[0]) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
        for answers in &found {
            let differs = answers.lines().zip(found[0].lines()).find(|(one, first)| one != first);
            assert!(*answers == found[0], "the nodes answer differently: {differs:#?}");
        }
        if self.folder().join("proofs.sql").exists() {
            let proofs = answers(&network.session(0).await, &self.file("proofs.sql")).await;
            std::fs::write(self.folder().join("proofs.txt"), proofs).expect("written");
        }
        (0..4).for_each(|node| network.interrupt(node));
        self.pack(network.folder());
        std::fs::write(self.folder().join("answers.txt"), &found[0]).expect("written");
    }
}

/// The files below a folder, by their names from `base` on.
fn read_folder(base: &Path, name: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(base.join(name)).expect("a folder") {
        let path = entry.expect("an entry").path();
        let own = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let name = format!("{name}/{own}");
        match path.is_dir() {
            true => read_folder(base, &name, files),
            false => files.push((name, std::fs::read(&path).expect("it can be read"))),
        }
    }
}

/// What a node answers that has executed the block of this height: the queries read the newest state, which later empty
/// blocks do not change.
async fn answers_at(network: &TestNetwork, node: usize, height: u64, queries: &str) -> String {
    let session = network.session(node).await;
    let seen = format!("SET entente.min_height = {height}");
    session.batch_execute(&seen).await.expect("it can be set");
    format!("height {height}\n\n{}", answers(&session, queries).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the networks anew: tests/recorded/README.md"]
async fn record() {
    ORDERED.record().await;
    ENDORSED.record().await;
    MISTAKES.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_second() {
    SECOND.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_fourth() {
    FOURTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_fifth() {
    FIFTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_sixth() {
    SIXTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_seventh() {
    SEVENTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_eighth() {
    EIGHTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_ninth() {
    NINTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_tenth() {
    TENTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_eleventh() {
    ELEVENTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_twelfth() {
    TWELFTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_thirteenth() {
    THIRTEENTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_fourteenth() {
    FOURTEENTH.record().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "records the network anew: tests/recorded/README.md"]
async fn record_fifteenth() {
    FIFTEENTH.record().await;
}

/// What `entente verify --replay` says of a node's folder.
fn assert_right(folder: &Path) {
    let output = Command::new(ENTENTE).args(["verify", "--replay"]).arg(folder).output();
    let output = output.expect("the program runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{}: {said}", folder.display());
    assert!(said.contains("are right, and so is what they came to"), "{said}");
}

/// The nodes start on copies of what was recorded, answer as they did, go on, and all of it can be verified.
async fn assert_goes_on(recording: &Recording) {
    let _ports = recording.ports();
    let mut network = recording.unpack();
    (0..4).for_each(|node| assert_right(&network.node_folder(node)));
    // One executes every block again; a short ledger has no checkpoint.
    let checkpoints = network.node_folder(1).join("checkpoints");
    if checkpoints.exists() {
        std::fs::remove_dir_all(checkpoints).expect("it was recorded");
    }
    network.start_all().await;
    let expected = recording.file("answers.txt");
    let first = expected.lines().next().and_then(|line| line.strip_prefix("height "));
    let height: u64 = first.expect("a height").parse().expect("a number");
    for node in 0..4 {
        let found = answers_at(&network, node, height, &recording.file("queries.sql")).await;
        let differs = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
        assert!(found == expected, "node {node}, found and expected: {differs:#?}");
    }
    let mut runner = Runner::new(&network);
    runner.run(&recording.file("more.sql")).await;
    let height = runner.height();
    network.kill(2);
    network.start(2);
    for node in 0..4 {
        network.wait_for_height(node, height).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
    (0..4).for_each(|node| network.interrupt(node));
    (0..4).for_each(|node| assert_right(&network.node_folder(node)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_opens_verifies_and_goes_on() {
    assert_goes_on(&ORDERED).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_keeps_its_wrong_answers_until_it_goes_over_to_the_next_version() {
    assert_goes_on(&MISTAKES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_of_version_2_goes_over_to_version_3() {
    assert_goes_on(&SECOND).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_with_members_of_schemas_goes_over_to_version_5() {
    assert_goes_on(&FOURTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_whose_schemas_know_no_stakeholders_goes_over_to_version_6() {
    assert_goes_on(&FIFTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_that_refuses_what_applications_bring_goes_over_to_version_7() {
    assert_goes_on(&SIXTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_with_types_that_applications_bring_goes_over_to_version_8() {
    assert_goes_on(&SEVENTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_with_policies_and_indexes_of_expressions_goes_over_to_version_9() {
    assert_goes_on(&EIGHTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_of_sessions_with_zones_and_domains_in_routines_goes_over_to_version_10() {
    assert_goes_on(&NINTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_of_addresses_ranges_and_partitions_goes_over_to_version_11() {
    assert_goes_on(&TENTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_of_materialized_views_and_parts_of_columns_goes_over_to_version_12() {
    assert_goes_on(&ELEVENTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_that_refuses_what_frameworks_send_goes_over_to_version_13() {
    assert_goes_on(&TWELFTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_that_refuses_long_values_goes_over_to_version_14() {
    assert_goes_on(&THIRTEENTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_whose_skip_locked_skips_nothing_goes_over_to_version_15() {
    assert_goes_on(&FOURTEENTH).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_whose_arrays_have_one_dimension_goes_over_to_version_16() {
    assert_goes_on(&FIFTEENTH).await;
}

/// Byte for byte what the program gave that recorded them, which had no groups in trees.
#[test]
fn networks_that_share_a_port_take_turns() {
    let recordings = [
        ORDERED, ENDORSED, MISTAKES, SECOND, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH, ELEVENTH,
        TWELFTH, THIRTEENTH, FOURTEENTH, FIFTEENTH,
    ];
    let ports = |recording: &Recording| -> Vec<u16> {
        let base = recording.port_base;
        [0, 100, 200].into_iter().flat_map(|above| base + above..base + above + 4).collect()
    };
    let pairs = recordings
        .iter()
        .enumerate()
        .flat_map(|(at, one)| recordings[at + 1..].iter().map(move |other| (one, other)));
    let shared = pairs.filter(|(one, other)| ports(one).iter().any(|port| ports(other).contains(port)));
    let shared: Vec<_> = shared.collect();
    assert!(!shared.is_empty(), "the clients of `ordered` connect where the nodes of `tenth` listen");
    for (one, other) in shared {
        assert_eq!(one.lock_file(), other.lock_file(), "{} and {} run at once", one.name, other.name);
    }
}

#[test]
fn recorded_proofs_of_rows_are_read_and_verified() {
    let network = SECOND.unpack();
    let charter = std::fs::read_to_string(network.node_folder(0).join("charter.toml")).expect("recorded");
    let founding = Charter::from_toml(&charter).expect("a good charter");
    assert_eq!(founding.to_toml(), charter);
    let text = SECOND.file("proofs.txt");
    let proofs = text.lines().filter_map(|line| line.strip_prefix("    "));
    let mut rows = Vec::new();
    for escaped in proofs {
        let json = escaped.replace("\\\"", "\"");
        let proof = proofs::RowProof::from_json(&json).expect("a proof");
        assert_eq!(proof.to_json(), json);
        assert_eq!(proofs::RowProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
        rows.push(proof.verify(&founding).expect("it was right").is_some());
    }
    assert_eq!(rows, [true, false, false, false, true, false]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_network_that_endorses_opens_verifies_and_goes_on() {
    assert_goes_on(&ENDORSED).await;
}
