//! What a backup has, what is found in one that is not whole, and what a target that fails leaves.
#![allow(missing_docs)]

mod support;

use backup::{BackupError, Keys, Place, RestoreOptions, back_up};
use crypto::sha256;
use ledger::Ledger;
use node::founding::{KeysOptions, Restored, make_keys};
use node::{NodeError, NodeFolder};
use std::collections::BTreeSet;
use support::{MEMBER, Remote, World, options};
use targets::failing::Fault;

fn refused<T>(result: Result<T, BackupError>) -> String {
    match result {
        Ok(_) => panic!("expected an error"),
        Err(error) => error.to_string(),
    }
}

/// A backup with two generations of blocks and of the state.
fn two_backups(world: &World, remote: &Remote) {
    world.grow(5);
    world.give_state(0);
    back_up(&world.node(), &remote.place).expect("the first");
    world.grow(10);
    world.give_state(1);
    back_up(&world.node(), &remote.place).expect("the second");
}

#[test]
fn a_backup_comes_back_and_only_what_is_new_is_written() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    assert!(refused(back_up(&world.node(), &remote.place)).contains("nothing to back up"), "no block");
    world.grow(3);
    let made = back_up(&world.node(), &remote.place).expect("the first");
    assert_eq!((made.number, made.first_height, made.height, made.new_blocks), (1, 1, 3, 3));
    assert_eq!(made.state, None);
    let again = back_up(&world.node(), &remote.place).expect("nothing is new");
    assert_eq!((again.number, again.new_blocks, again.written), (1, 0, 0));
    world.grow(5);
    world.give_state(0);
    let made = back_up(&world.node(), &remote.place).expect("the second");
    assert_eq!((made.number, made.height, made.new_blocks, made.state), (2, 5, 2, Some(4)));

    let before: BTreeSet<String> = remote.names().into_iter().collect();
    world.grow(10);
    world.give_state(1);
    let made = back_up(&world.node(), &remote.place).expect("the third");
    assert_eq!((made.number, made.height, made.new_blocks, made.state), (3, 10, 5, Some(10)));
    let after: BTreeSet<String> = remote.names().into_iter().collect();
    let bytes = |name: &String| remote.get(name).len() as u64;
    assert_eq!(made.written, after.difference(&before).map(bytes).sum::<u64>(), "only what is new");
    let all: u64 = after.iter().filter(|name| name.ends_with(".pack")).map(bytes).sum();
    let new: u64 = after.difference(&before).filter(|name| name.ends_with(".pack")).map(bytes).sum();
    assert!(new * 2 < all, "groups that did not change are not written again: {new} of {all} bytes");
    let gone: Vec<&String> = before.difference(&after).collect();
    assert_eq!(gone, ["manifests/00000000000000000001.json"], "the two newest can be restored");

    let checked = remote.check().expect("it is whole");
    assert_eq!((checked.manifest.height, checked.transactions, checked.strangers.len()), (10, 10, 0));
    let folder = world.path("restored");
    let with_root = RestoreOptions { root: Some(world.path("vault")), ..options() };
    let restored = remote.restore(&folder, &with_root).expect("it is whole");
    assert_eq!(restored.state, Some(10));
    let opened = NodeFolder::open(&folder).expect("the root key has vouched for its keys");
    let old = NodeFolder::open(&world.node()).expect("a folder");
    assert_eq!((opened.organisation, opened.config), (MEMBER, old.config));
    assert_ne!(opened.node_key.public_key(), old.node_key.public_key());
    let says = Restored::read(&folder).expect("reads").expect("it was restored");
    assert_eq!((says.replaces, says.height), (old.node_key.public_key().to_string(), 10));
    let options = audit::Options::default();
    let report = audit::audit(world.charter(), folder.join("ledger"), options, &mut |_| ()).expect("keys");
    assert!(report.error.is_none() && report.checked.height == 10, "{report:?}");
}

#[test]
fn what_is_secret_is_in_no_backup() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    let passwords = world.node().join("passwords");
    std::fs::write(&passwords, "auditor SCRAM-SHA-256$4096:secret").expect("written");
    two_backups(&world, &remote);
    let read = |name: &str| std::fs::read_to_string(world.node().join(name)).expect("there");
    let of_session = read("session.toml");
    let secret = of_session.lines().find(|line| line.starts_with("secret")).expect("a key").to_string();
    let secret = secret.split('"').nth(1).expect("a value").to_string();
    let secrets =
        [read("node.key"), read("tls.key"), read("client.key"), secret, "SCRAM-SHA-256$".to_string()];
    for name in remote.names() {
        let content = remote.get(&name);
        for secret in &secrets {
            let secret = secret.trim().as_bytes();
            assert!(!secret.is_empty() && !content.windows(secret.len()).any(|at| at == secret), "{name}");
        }
    }
}

#[test]
fn a_piece_that_is_missing_cut_off_changed_or_anothers_is_named_and_nothing_is_restored() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    two_backups(&world, &remote);
    let (other_world, other) = (World::new(2), Remote::new(Fault::Refused));
    two_backups(&other_world, &other);
    let newest = "manifests/00000000000000000002.json";
    let manifest = String::from_utf8(remote.get(newest)).expect("text");
    let is_needed = |name: &String| name == newest || manifest.contains(name.as_str());
    let names: Vec<String> = remote.names().into_iter().filter(is_needed).collect();
    assert!(names.len() >= 6, "{names:?}");
    let of_kind = |name: &str| {
        let end = name.rsplit('.').next().expect("an end").to_string();
        other.names().into_iter().rfind(|known| known.ends_with(&end)).expect("the same kind")
    };
    for name in &names {
        let content = remote.get(name);
        let mut flipped = content.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 4;
        let mut long = content.clone();
        long.push(0);
        let changed = [
            ("cut off", content[..content.len() - 1].to_vec()),
            ("empty", Vec::new()),
            ("flipped", flipped),
            ("longer", long),
            ("another ledger's", other.get(&of_kind(name))),
        ];
        for (what, bytes) in changed {
            remote.put(name, bytes);
            let found = remote.check().err().unwrap_or_else(|| panic!("{name}: {what}"));
            let is_named = found.contains(name.as_str())
                || name.as_str() == newest && what.starts_with("another") && found.contains("missing");
            assert!(is_named, "{name}: {what}: {found}");
            let restored = remote.restore(&world.path("none"), &options()).err();
            assert_eq!(restored.as_ref(), Some(&found), "{name}: {what}");
        }
        remote.remove(name);
        match remote.check() {
            // Without the newest manifest the backup before is the newest.
            Ok(checked) => assert_eq!((name.as_str(), checked.manifest.height), (newest, 5)),
            Err(found) => assert!(found.contains(&format!("{name} is missing")), "{found}"),
        }
        remote.put(name, content);
    }
    remote.put("blocks/left.blocks", vec![1]);
    remote.put("state/00000000000000000003-0123456789abcdef.pack", vec![1]);
    let strangers = remote.check().expect("it is whole").strangers;
    assert_eq!(strangers, ["blocks/left.blocks", "state/00000000000000000003-0123456789abcdef.pack"]);
}

/// Writes a manifest whose digest is right, as somebody would who wants to go unnoticed.
fn forge(remote: &Remote, change: impl FnOnce(&mut serde_json::Value)) {
    let name = "manifests/00000000000000000002.json";
    let text = String::from_utf8(remote.get(name)).expect("text");
    let (_, json) = text.split_once('\n').expect("two lines");
    let mut manifest: serde_json::Value = serde_json::from_str(json).expect("JSON");
    change(&mut manifest);
    let json = serde_json::to_string_pretty(&manifest).expect("JSON");
    remote.put(name, format!("entente backup 1 {}\n{json}\n", sha256(&[json.as_bytes()])).into_bytes());
}

#[test]
fn somebody_who_forges_a_backup_convinces_nobody() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    two_backups(&world, &remote);
    let original = remote.get("manifests/00000000000000000002.json");
    let says = |change: &dyn Fn(&mut serde_json::Value)| {
        forge(&remote, change);
        let found = remote.check().err().expect("it is forged");
        remote.put("manifests/00000000000000000002.json", original.clone());
        found
    };
    let hole = says(&|manifest| drop(manifest["blocks"].as_array_mut().expect("a list").remove(0)));
    assert!(hole.contains("hole") && hole.contains("expected height 1, found 6"), "{hole}");
    let short = says(&|manifest| manifest["height"] = 12.into());
    assert!(short.contains("expected height 11"), "{short}");
    let outside = says(&|manifest| manifest["blocks"][0]["file"]["name"] = "../node.key".into());
    assert!(outside.contains("../node.key is missing"), "{outside}");

    // A record's bytes with right digests all around: the certificate does not fit any more.
    let forged = says(&|manifest| {
        let file = &mut manifest["blocks"][1]["file"];
        let mut content = remote.get(file["name"].as_str().expect("a name"));
        let at = content.len() - 1;
        content[at] ^= 1;
        let name = "blocks/00000000000000000006-00000000000000000010-forged.blocks";
        remote.put(name, content.clone());
        file["name"] = name.into();
        file["sha256"] = sha256(&[&content]).to_string().into();
    });
    assert!(forged.contains("forged.blocks"), "{forged}");
    // A state that another height's quorum has signed.
    let state = says(&|manifest| manifest["state"]["height"] = 4.into());
    assert!(state.contains("expected the state of height 4"), "{state}");
    let charter = says(&|manifest| {
        let other = World::new(2).charter().to_toml();
        manifest["charter"] = other.into();
    });
    assert!(charter.contains("expected the charter of ledger"), "{charter}");
    remote.check().expect("what was not forged is right");
}

#[test]
fn a_target_that_fails_at_any_write_keeps_the_backup_before_and_the_next_one_completes() {
    let world = World::new(1);
    world.grow(5);
    world.give_state(0);
    for fault in [Fault::Refused, Fault::NoRoom, Fault::Torn, Fault::AnswerLost] {
        let before = Remote::new(fault);
        back_up(&world.node(), &before.place).expect("the first");
        let before: Vec<(String, Vec<u8>)> =
            before.names().into_iter().map(|name| (name.clone(), before.get(&name))).collect();
        let grown = World::new(1);
        grown.grow(10);
        grown.give_state(1);
        for begins_empty in [true, false] {
            let mut writes = 0;
            loop {
                let remote = Remote::new(fault);
                if !begins_empty {
                    before.iter().for_each(|(name, content)| remote.put(name, content.clone()));
                }
                remote.store.fail_after(writes);
                let failed = back_up(&grown.node(), &remote.place).is_err();
                remote.store.heal();
                match remote.check() {
                    Ok(checked) if failed && fault != Fault::AnswerLost => {
                        assert!(!begins_empty && checked.manifest.height == 5, "{writes} writes")
                    }
                    Ok(checked) => assert!([5, 10].contains(&checked.manifest.height), "{writes} writes"),
                    Err(error) => assert!(begins_empty && error.contains("has no backup"), "{error}"),
                }
                back_up(&grown.node(), &remote.place).expect("the target has healed");
                let checked = remote.check().expect("it is whole");
                assert_eq!((checked.manifest.height, checked.strangers.len()), (10, 0));
                if !failed {
                    break;
                }
                writes += 1;
            }
            assert!(writes >= 3, "a backup is several writes, this one {writes}");
        }
    }
}

#[test]
fn what_a_run_that_fell_has_written_is_not_written_again() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    world.grow(10);
    world.give_state(1);
    // Blocks, the rows of the state; not its index.
    remote.store.fail_after(2);
    back_up(&world.node(), &remote.place).expect_err("it fails");
    let left: BTreeSet<String> = remote.names().into_iter().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    remote.store.heal();
    let made = back_up(&world.node(), &remote.place).expect("the target has healed");
    let there: u64 = left.iter().map(|name| remote.get(name).len() as u64).sum();
    assert!(made.written < there / 2, "{} of {} bytes", made.written, made.bytes);
}

#[test]
fn pieces_that_are_lost_are_written_again_and_small_ones_are_put_together() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    for height in 1..=10 {
        world.grow(height);
        back_up(&world.node(), &remote.place).expect("one block more");
    }
    let blocks = |remote: &Remote| {
        remote.names().into_iter().filter(|name| name.ends_with(".blocks")).collect::<Vec<_>>()
    };
    assert_eq!(blocks(&remote).len(), 10);
    let lost = blocks(&remote)[3].clone();
    remote.remove(&lost);
    assert!(remote.check().err().expect("a hole").contains(&format!("{lost} is missing")));
    let made = back_up(&world.node(), &remote.place).expect("the node has the block");
    assert_eq!((made.height, made.new_blocks), (10, 0));
    assert_eq!(
        remote.check().expect("it is whole").manifest.blocks.len(),
        4,
        "everything behind the hole is one piece"
    );
}

#[test]
fn keys_that_have_voted_folders_that_are_used_and_strange_targets_are_refused() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    assert!(remote.check().err().expect("nothing is there").contains("has no backup"));
    two_backups(&world, &remote);
    let keys = |name: &str, organisation: &str| {
        let listen = [7503, 7603, 7703].map(|port| ([127, 0, 0, 1], port).into());
        let root = world.charter().organisations[MEMBER].root_key;
        let made =
            KeysOptions { root_key: Some(root), ..KeysOptions::new("signed", organisation, listen, 1) };
        make_keys(&world.path(name), &made).expect("an empty folder");
        RestoreOptions { keys: Keys::Of(world.path(name)), ..options() }
    };
    let (fresh, renamed) = (keys("fresh", "org4"), keys("renamed", "org5"));
    let none = world.path("none");

    // The card and the key of the node that is lost.
    let mut used = fresh.clone();
    used.keys = Keys::Of(world.node());
    let error = remote.restore(&none, &used).err().expect("they are used");
    assert!(error.contains("may have voted"), "{error}");
    let error = remote.restore(&none, &RestoreOptions { number: Some(7), ..options() }).err().expect("none");
    assert!(error.contains("number 7; there are 1, 2"), "{error}");
    let other = Some(World::new(2).charter().as_ref().clone());
    let error =
        remote.restore(&none, &RestoreOptions { charter: other, ..options() }).err().expect("another");
    assert!(error.contains("is a backup of the ledger"), "{error}");
    let wrong_root = RestoreOptions { root: Some(world.path("renamed")), ..options() };
    let error = remote.restore(&none, &wrong_root).err().expect("no root key");
    assert!(error.contains("root.key"), "{error}");

    // Keys for other addresses, for which the root key will vouch somewhere else.
    let folder = world.path("elsewhere");
    let restored = remote.restore(&folder, &fresh).expect("they are new");
    let owner = restored.owner.expect("it has keys");
    assert_eq!((owner.organisation.address.as_str(), owner.is_vouched_for), ("127.0.0.1:7503", false));
    assert!(matches!(NodeFolder::open(&folder), Err(NodeError::NotVouchedFor { position: 3, .. })));
    let again = backup::restore(&remote.place, &folder, &fresh, &mut |_| ()).err().expect("it is used");
    assert!(matches!(again, BackupError::Node(NodeError::FolderNotEmpty(_))), "{again}");
    let owner = remote.restore(&world.path("org5"), &renamed).expect("they are new").owner.expect("keys");
    assert_eq!((owner.member.is_none(), owner.position), (true, 4));
    let copy = world.path("copy");
    let nobodys = RestoreOptions { keys: Keys::Nobodys, ..options() };
    assert!(remote.restore(&copy, &nobodys).expect("it is whole").owner.is_none());
    assert!(!copy.join("node.key").exists() && copy.join("charter.toml").exists());
}

#[test]
fn a_ledger_that_begins_behind_a_checkpoint_is_backed_up_from_there_and_holes_are_refused() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    world.grow(3);
    back_up(&world.node(), &remote.place).expect("the first");
    let source = world.source.ledger();
    let outcome = source.outcome_header(5).expect("reads").expect("there");
    let (block, certificate) = source.block(5).expect("reads").expect("there");
    let statement = types::CheckpointRoot {
        ledger: outcome.ledger,
        height: 5,
        outcome: outcome.digest(),
        state_root: crypto::Digest([3; 32]),
    };
    let anchor = ledger::Anchor {
        header: block.header,
        certificate: certificate.to_vec(),
        outcome,
        checkpoint: world.source.certificate(statement),
        handovers: Vec::new(),
    };
    let (joined, _) = Ledger::open(world.node().join("ledger"), world.charter().ledger()).expect("opens");
    joined.begin_behind(anchor).expect("above the tip");
    drop(joined);
    world.grow(9);
    let error = refused(back_up(&world.node(), &remote.place));
    assert!(error.contains("up to height 3") && error.contains("begins at height 6"), "{error}");
    assert_eq!(remote.check().expect("nothing is lost").manifest.height, 3);

    let fresh = Remote::new(Fault::Refused);
    let made = back_up(&world.node(), &fresh.place).expect("from there on");
    assert_eq!((made.first_height, made.height), (6, 9));
    let folder = world.path("behind");
    fresh.restore(&folder, &RestoreOptions { root: Some(world.path("vault")), ..options() }).expect("whole");
    let (restored, _) = Ledger::open(folder.join("ledger"), world.charter().ledger()).expect("opens");
    assert_eq!((restored.first_height(), restored.tip().map(|(height, _)| height)), (6, Some(9)));
}

#[test]
fn two_nodes_do_not_share_a_target_and_ledgers_that_go_apart_are_noticed() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    world.grow(5);
    back_up(&world.node(), &remote.place).expect("the first");
    let other = World::new(2);
    other.grow(7);
    let error = refused(back_up(&other.node(), &remote.place));
    assert!(error.contains("is a backup of the ledger"), "{error}");
    forge_first(&remote, |manifest| manifest["position"] = 1.into());
    let error = refused(back_up(&world.node(), &remote.place));
    assert!(error.contains("is a backup of the node of"), "{error}");
    forge_first(&remote, |manifest| {
        manifest["position"] = MEMBER.into();
        manifest["blocks"][0]["header"] = "0".repeat(64).into();
    });
    world.grow(6);
    let error = refused(back_up(&world.node(), &remote.place));
    assert!(error.contains("block 5") && error.contains("nothing was written"), "{error}");
}

fn forge_first(remote: &Remote, change: impl FnOnce(&mut serde_json::Value)) {
    let name = "manifests/00000000000000000001.json";
    let content = remote.get(name);
    remote.put("manifests/00000000000000000002.json", content);
    forge(remote, change);
    remote.put(name, remote.get("manifests/00000000000000000002.json"));
    remote.remove("manifests/00000000000000000002.json");
}

#[test]
fn a_target_in_the_folder_of_the_node_is_refused() {
    let world = World::new(1);
    world.grow(3);
    for inside in [world.node(), world.node().join("backups/here")] {
        let target = targets::Target::open(&inside.display().to_string()).expect("a folder");
        let error = back_up(&world.node(), &Place::new(target).expect("a place")).expect_err("refused");
        assert!(matches!(error, BackupError::InsideOfNode { .. }), "{error}");
        assert!(!inside.join("blocks").exists(), "nothing is written");
    }
}

impl World {
    /// The node has ended its file of blocks, and has the blocks up to this height in another.
    fn grow_in_another_file(&self, to: u64) {
        self.ledger().begin_file().expect("ends it");
        self.grow(to);
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(self.node().join("ledger"), self.charter().ledger()).expect("opens").0
    }

    fn prune(&self, below: u64) {
        let ledger = self.ledger();
        while ledger.prune(below).expect("prunes").is_some() {}
        assert_eq!(ledger.payloads_from(), below);
    }
}

#[test]
fn what_a_backup_has_of_blocks_stays_when_their_node_prunes_them() {
    let (world, remote) = (World::new(1), Remote::new(Fault::Refused));
    world.grow(5);
    back_up(&world.node(), &remote.place).expect("with all transactions");
    world.grow_in_another_file(7);
    world.grow_in_another_file(10);
    world.give_state(1);
    world.prune(8);
    let made = back_up(&world.node(), &remote.place).expect("with those of blocks up to 5, and from 8 on");
    assert_eq!((made.height, made.new_blocks), (10, 5));
    let checked = remote.check().expect("it is whole");
    assert_eq!((checked.manifest.height, checked.transactions), (10, 8));
    let folder = world.path("restored");
    let with_root = RestoreOptions { root: Some(world.path("vault")), ..options() };
    remote.restore(&folder, &with_root).expect("it is whole");
    let report = audit::audit(world.charter(), folder.join("ledger"), audit::Options::default(), &mut |_| ())
        .expect("keys");
    assert!(report.error.is_none(), "{report:?}");
    assert_eq!((report.checked.height, report.checked.pruned_blocks, report.checked.pruned_to), (10, 2, 7));
    let (ledger, _) = Ledger::open(folder.join("ledger"), world.charter().ledger()).expect("opens");
    for (height, is_there) in [(1, true), (5, true), (6, false), (7, false), (8, true), (10, true)] {
        assert_eq!(ledger.read(height).is_ok(), is_there, "block {height}");
    }
    // What the target has lost the node cannot give it again.
    let lost = remote.names().into_iter().find(|name| name.starts_with("blocks/")).expect("a piece");
    remote.remove(&lost);
    let error = refused(back_up(&world.node(), &remote.place));
    assert!(error.contains(&lost), "{error}");
}
