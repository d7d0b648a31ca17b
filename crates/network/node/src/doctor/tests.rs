//! A folder that is well, and the same made bad on purpose: every check can fail.

use super::{Finding, Level, check};
use crate::store_choice::StoreChoice;
use crate::{Network, NetworkOptions};
use crypto::SecretKey;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use types::{Charter, Pipeline};

/// Four folders, on ports that are free.
fn network() -> (TempDir, Vec<PathBuf>) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let options = NetworkOptions {
        organisations: 4,
        port_base: test_machine::free_port_base(),
        threads: 1,
        pipeline: Pipeline::Serial,
        store: StoreChoice::default(),
        charter: Charter::with_defaults("test", 1),
    };
    let network = Network::create(place.path(), &options).expect("an empty folder");
    // What every network of `entente init` is warned of.
    for folder in &network.folders {
        fs::rename(folder.join("root.key"), place.path().join(format!("{}.root.key", name(folder))))
            .expect("it is there");
    }
    (place, network.folders)
}

fn name(folder: &Path) -> String {
    folder.file_name().expect("a name").to_string_lossy().into_owned()
}

/// The worst that a check found.
fn worst(folder: &Path, of: &str) -> Finding {
    let findings = check(folder);
    let worst =
        findings.into_iter().filter(|finding| finding.check == of).max_by_key(|finding| finding.level);
    worst.unwrap_or_else(|| panic!("nothing about {of}"))
}

/// That a check finds a problem or a warning with these words, and says what to do.
fn says(folder: &Path, of: &str, level: Level, words: &str) {
    let findings = check(folder);
    let found = findings
        .iter()
        .find(|finding| finding.check == of && finding.level == level && finding.found.contains(words));
    let found = found.unwrap_or_else(|| panic!("no {level} of {of} with {words:?}: {findings:#?}"));
    assert!(found.advice.as_ref().is_some_and(|advice| !advice.is_empty()));
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).expect("written");
}

#[test]
fn a_new_folder_is_well_and_nothing_in_it_is_changed() {
    let (_place, folders) = network();
    let listed = || {
        let mut files: Vec<_> =
            fs::read_dir(&folders[0]).expect("a folder").flatten().map(|file| file.file_name()).collect();
        files.sort();
        files
    };
    let before = listed();
    let bad: Vec<Finding> = check(&folders[0])
        .into_iter()
        // The disk is the machine's, and so is its memory.
        .filter(|finding| {
            finding.level != Level::Ok && !["disk", "memory", "open files"].contains(&finding.check)
        })
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(listed(), before);
}

#[test]
fn what_is_wrong_with_files_is_named() {
    let (place, folders) = network();
    let folder = &folders[0];
    fs::set_permissions(folder.join("node.key"), PermissionsExt::from_mode(0o644)).expect("its owner");
    says(folder, "secrets", Level::Problem, "everybody on this machine can get at");
    fs::set_permissions(folder.join("node.key"), PermissionsExt::from_mode(0o640)).expect("its owner");
    says(folder, "secrets", Level::Warning, "the group of");
    fs::set_permissions(folder.join("node.key"), PermissionsExt::from_mode(0o600)).expect("its owner");
    assert_eq!(worst(folder, "secrets").level, Level::Ok);
    fs::copy(place.path().join(format!("{}.root.key", name(folder))), folder.join("root.key"))
        .expect("copied");
    fs::set_permissions(folder.join("root.key"), PermissionsExt::from_mode(0o600)).expect("its owner");
    says(folder, "secrets", Level::Warning, "root.key lies on the node's machine");

    fs::rename(folder.join("session.toml"), place.path().join("session.toml")).expect("moved");
    says(folder, "folder", Level::Problem, "lacks session.toml");
    fs::rename(place.path().join("session.toml"), folder.join("session.toml")).expect("moved");
    says(place.path(), "folder", Level::Problem, "is no node's folder");

    replace(&folder.join("node.toml"), "threads = 1", "threads = 1\ncolums = 3");
    says(folder, "settings", Level::Problem, "unknown field `colums`");
}

#[test]
fn keys_that_do_not_belong_together_are_named() {
    let (_place, folders) = network();
    let (folder, other) = (&folders[0], &folders[1]);
    let key = fs::read_to_string(folder.join("node.key")).expect("a key");
    fs::copy(other.join("node.key"), folder.join("node.key")).expect("copied");
    says(folder, "keys", Level::Problem, "that of another organisation than session.toml: it is org2's");
    fs::write(folder.join("node.key"), SecretKey::generate().to_hex()).expect("written");
    says(
        folder,
        "charter",
        Level::Warning,
        "is that of no member at height 1: this node follows without voting",
    );
    fs::write(folder.join("node.key"), "nothing").expect("written");
    says(folder, "keys", Level::Problem, "node.key");
    fs::write(folder.join("node.key"), &key).expect("written");

    // A credential of the wrong root key.
    replace(&folder.join("session.toml"), "organisation = 0", "organisation = 2");
    says(folder, "keys", Level::Problem, "session.toml is not signed by the root key of org3");
    replace(&folder.join("session.toml"), "organisation = 2", "organisation = 0");
    assert_eq!(worst(folder, "keys").level, Level::Ok);

    // Votes of another node.
    fs::create_dir(folder.join("ordering")).expect("created");
    fs::write(folder.join("ordering/owner"), "ledger x\nnode key y\n").expect("written");
    says(folder, "keys", Level::Problem, "belongs to ledger x, node key y");

    replace(&folder.join("charter.toml"), "idle_ms = 500", "idle_ms = 600");
    says(folder, "charter", Level::Problem, "charter.toml");
}

#[test]
fn a_certificate_of_another_key_and_ports_that_are_taken_are_named() {
    let (_place, folders) = network();
    let (folder, other) = (&folders[0], &folders[1]);
    fs::copy(other.join("tls.key"), folder.join("tls.key")).expect("copied");
    says(folder, "certificate", Level::Problem, "tls.key");
    fs::copy(other.join("tls.crt"), folder.join("tls.crt")).expect("copied");
    assert_eq!(worst(folder, "certificate").level, Level::Ok, "the two belong together");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("bound").to_string();
    let config = crate::folder::open_config(folder).expect("as it was written");
    replace(&folder.join("node.toml"), &config.postgres.to_string(), &taken);
    says(folder, "ports", Level::Problem, &format!("{taken} is in use by process {}", std::process::id()));
    replace(&folder.join("node.toml"), &config.http.to_string(), "192.0.2.1:7");
    says(folder, "addresses", Level::Warning, "the ports differ");
    drop(listener);
    says(folder, "ports", Level::Problem, "cannot listen on 192.0.2.1:7");
}

#[test]
fn a_folder_that_is_open_says_whose_it_is() {
    let (_place, folders) = network();
    let folder = &folders[0];
    let charter = crate::folder::open_charter(folder).expect("as it was written");
    let open = ledger::Ledger::open(folder.join("ledger"), charter.ledger()).expect("a new one");
    let finding = worst(folder, "folder");
    assert!(finding.found.contains(&format!("process {} runs it", std::process::id())), "{finding:?}");
    says(folder, "ports", Level::Problem, "nobody listens on");
    drop(open);
    assert!(worst(folder, "folder").found.contains("the node is stopped"));
    // The ledger of another network.
    let other = ledger::Ledger::open(folders[1].join("ledger"), crypto::Digest([9; 32])).expect("a new one");
    drop(other);
    says(&folders[1], "ledger", Level::Problem, "ledger");
}
