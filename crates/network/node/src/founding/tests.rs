//! The ceremony in folders that share nothing, and everything that can be wrong with what goes from one to the other.

use super::*;
use crate::NodeFolder;
use crypto::SecretKey;
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;
use types::{CharterError, MemberCard};

const NAMES: [&str; 4] = ["bank_a", "bank_b", "bank_c", "bank_d"];

fn options(network: &str, name: &str, place: u16) -> KeysOptions {
    let listen = [7000, 7100, 7200].map(|port| SocketAddr::from(([127, 0, 0, 1], port + place)));
    KeysOptions::new(network, name, listen, 1)
}

/// A folder per member, and what was made of their cards.
struct Ceremony {
    place: TempDir,
    cards: Vec<MemberCard>,
}

impl Ceremony {
    fn begin() -> Ceremony {
        let place = tempfile::tempdir().expect("a temporary folder");
        let make = |(position, name): (usize, &&str)| {
            make_keys(&place.path().join(name), &options("clearing", name, position as u16)).expect("keys")
        };
        let cards = NAMES.iter().enumerate().map(make).collect();
        Ceremony { place, cards }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A draft in a file.
    fn draft(&self, nonce: u64) -> PathBuf {
        let charter = Charter::with_defaults("clearing", nonce).of_cards(&self.cards).expect("good cards");
        let path = self.path(&format!("draft{nonce}.toml"));
        std::fs::write(&path, charter.to_toml()).expect("written");
        path
    }

    /// The signatures of these over a draft.
    fn sign(&self, draft: &Path, names: &[&str]) -> Vec<PathBuf> {
        let sign = |name: &&str| sign(&self.path(name), draft, &[], true).expect("it agrees").signature;
        names.iter().map(sign).collect()
    }

    /// What all have signed, in a file.
    fn charter(&self) -> PathBuf {
        let draft = self.draft(1);
        let signatures = self.sign(&draft, &NAMES);
        let out = self.path("charter.toml");
        assemble(&draft, &signatures, &out).expect("they fit");
        out
    }
}

fn error<T>(result: Result<T, NodeError>) -> String {
    result.err().expect("it must be refused").to_string()
}

/// Every file below a folder with its content.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), std::fs::read(path).expect("a file")))
        .collect();
    found.sort();
    found
}

#[test]
fn four_folders_become_nodes_of_one_ledger_with_cards_and_signatures_alone() {
    let ceremony = Ceremony::begin();
    let folder = ceremony.path("bank_b");
    assert!(error(NodeFolder::open(&folder)).contains("has keys and no charter yet"));
    let draft = ceremony.draft(1);
    let out = ceremony.path("charter.toml");
    let first = ceremony.sign(&draft, &["bank_c", "bank_a"]);
    let some = assemble(&draft, &first, &out).expect("two of four");
    assert_eq!(some.missing_signatures(), ["bank_b", "bank_d"]);
    let before = contents(&folder);
    let refused = error(install(&folder, &out));
    assert!(refused.contains("missing: bank_b, bank_d"), "{refused}");
    assert_eq!(contents(&folder), before);
    // Whoever copies it by hand is told the same.
    std::fs::copy(&out, folder.join("charter.toml")).expect("copied");
    let refused = error(NodeFolder::open(&folder));
    assert!(refused.contains("missing: bank_b, bank_d"), "{refused}");

    let rest = ceremony.sign(&draft, &["bank_b", "bank_d"]);
    let all = assemble(&draft, &rest, &out).expect("those that were there are kept");
    assert_eq!(all.missing_signatures(), <[&str; 0]>::default());
    std::fs::copy(&out, folder.join("charter.toml")).expect("copied");
    assert!(error(NodeFolder::open(&folder)).contains("entente charter install"));
    for (position, name) in NAMES.iter().enumerate() {
        let folder = ceremony.path(name);
        assert!(!install(&folder, &out).expect("its own charter").before);
        let opened = NodeFolder::open(&folder).expect("a node's folder");
        assert_eq!((opened.organisation, &opened.charter), (position, &all));
        let session =
            opened.session.sign(types::Payload::Script { sql: String::new(), parameters: vec![] }, 9);
        assert!(session.credential.verify(
            &all.organisations[position].root_key,
            &all.ledger(),
            &session.transaction.client
        ));
        assert!(install(&folder, &out).expect("the same again").before);
        for secret in
            ["root.key", "node.key", "session.key", "client.key", "session.toml", "client.toml", "tls.key"]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = folder.join(secret).metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{secret} is for its owner only");
        }
    }
}

#[test]
fn a_root_key_can_stay_where_nothing_else_is() {
    let mut ceremony = Ceremony::begin();
    let (vault, node) = (ceremony.path("vault"), ceremony.path("bank_e"));
    let root = make_root(&vault).expect("an empty folder");
    let offline = KeysOptions { root_key: Some(root), ..options("clearing", "bank_e", 4) };
    make_keys(&node, &offline).expect("an empty folder");
    assert!(!node.join("root.key").exists());
    assert!(error(read_card(&node.join("card.toml"))).contains("not signed by its root key yet"));
    let stranger = make_root(&ceremony.path("other"))
        .and_then(|_| sign_card(&ceremony.path("other"), &node.join("card.toml"), false));
    assert!(error(stranger).contains("belong together"));
    let card = sign_card(&vault, &node.join("card.toml"), false).expect("its own card");
    ceremony.cards.push(card);
    let draft = ceremony.draft(1);
    assert!(error(sign(&node, &draft, &[], false)).contains("has no root.key"));
    let signed = sign(&vault, &draft, &[], false).expect("its own card");
    assert!(!signed.is_node);
    let mut signatures = ceremony.sign(&draft, &NAMES);
    signatures.push(signed.signature);
    let out = ceremony.path("charter.toml");
    assemble(&draft, &signatures, &out).expect("five of five");
    // The card and the credentials come back; the key stays.
    assert!(error(install(&node, &out)).contains("not signed by its root key yet"));
    std::fs::copy(vault.join("card.toml"), node.join("card.toml")).expect("copied");
    assert!(error(install(&node, &out)).contains("has no credentials.toml"));
    std::fs::copy(vault.join("credentials.toml"), node.join("credentials.toml")).expect("copied");
    install(&node, &out).expect("all is there");
    assert_eq!(NodeFolder::open(&node).expect("a node's folder").organisation, 4);
    // One card for one network.
    let again = ceremony.path("again");
    make_keys(&again, &KeysOptions { root_key: Some(root), ..options("clearing", "bank_e", 5) })
        .expect("empty");
    assert!(error(sign_card(&vault, &again.join("card.toml"), false)).contains("another card"));
}

#[test]
fn a_draft_that_differs_from_the_own_card_is_not_signed() {
    let ceremony = Ceremony::begin();
    let draft = ceremony.draft(1);
    let folder = ceremony.path("bank_b");
    let before = contents(&folder);
    let change = |from: &str, to: &str| {
        let text = std::fs::read_to_string(&draft).expect("written").replacen(from, to, 1);
        let path = ceremony.path("changed.toml");
        std::fs::write(&path, text).expect("written");
        path
    };
    let refused = error(sign(&folder, &change("127.0.0.1:7001", "127.0.0.9:7001"), &[], false));
    assert!(
        refused.contains("bank_b.address: the card has \"127.0.0.1:7001\", the draft \"127.0.0.9:7001\"")
    );
    let other = SecretKey::from_bytes([9; 32]).public_key().to_string();
    let refused = error(sign(&folder, &change(&ceremony.cards[1].node_key.to_string(), &other), &[], false));
    assert!(refused.contains("bank_b.node_key"), "{refused}");
    // A change at another member is seen by whoever has that member's card.
    let path = change(&ceremony.cards[2].root_key.to_string(), &other);
    let refused = error(sign(&folder, &path, &[ceremony.path("bank_c").join("card.toml")], false));
    assert!(refused.contains("bank_c.root_key"), "{refused}");
    let refused = error(sign(&folder, &folder.join("card.toml"), &[], false));
    assert!(refused.contains("expected the charter"), "{refused}");
    assert_eq!(contents(&folder), before, "nothing was signed");
    // Without its card in there it signs nothing, either.
    let few = Ceremony { cards: ceremony.cards[2..].to_vec(), place: tempfile::tempdir().expect("a folder") };
    let mut parameters = Charter::with_defaults("clearing", 1);
    parameters.ordering = "solo".to_string();
    let without = few.path("without.toml");
    std::fs::write(&without, parameters.of_cards(&few.cards).expect("two").to_toml()).expect("written");
    assert!(error(sign(&folder, &without, &[], false)).contains("no member bank_b"));
}

#[test]
fn keys_and_cards_of_other_folders_are_refused() {
    let ceremony = Ceremony::begin();
    let draft = ceremony.draft(1);
    let [a, b] = ["bank_a", "bank_b"].map(|name| ceremony.path(name));
    let card = std::fs::read(a.join("card.toml")).expect("written");
    std::fs::copy(b.join("card.toml"), a.join("card.toml")).expect("copied");
    assert!(error(sign(&a, &draft, &[], false)).contains("belong together"));
    std::fs::write(a.join("card.toml"), card).expect("written");
    let key = std::fs::read(a.join("node.key")).expect("written");
    std::fs::copy(b.join("node.key"), a.join("node.key")).expect("copied");
    assert!(error(sign(&a, &draft, &[], false)).contains("node key"));
    std::fs::write(a.join("node.key"), key).expect("written");
    // A card for another network.
    let other = ceremony.path("other");
    make_keys(&other, &options("other", "bank_a", 9)).expect("an empty folder");
    let refused = error(sign(&other, &draft, &[], false));
    assert!(refused.contains("for the network `other`, expected one for `clearing`"), "{refused}");
    assert!(error(make_keys(&other, &options("clearing", "bank_a", 9))).contains("not empty"));
    // Credentials of another member.
    let charter = ceremony.charter();
    std::fs::copy(b.join("credentials.toml"), a.join("credentials.toml")).expect("copied");
    let before = contents(&a);
    assert!(error(install(&a, &charter)).contains("those of bank_b"));
    assert_eq!(contents(&a), before, "nothing was changed");
    // No keys at all.
    assert!(error(install(&ceremony.path("nowhere"), &charter)).contains("entente keys"));
    assert!(error(sign(&ceremony.path("nowhere"), &draft, &[], false)).contains("entente keys"));
}

#[test]
fn another_draft_is_signed_only_on_request_and_its_signatures_do_not_mix() {
    let ceremony = Ceremony::begin();
    let [older, newer] = [1, 2].map(|nonce| ceremony.draft(nonce));
    let signed = ceremony.sign(&older, &NAMES);
    let kept = ceremony.path("older");
    std::fs::create_dir(&kept).expect("created");
    let keep = |path: &PathBuf| {
        let copy = kept.join(path.file_name().expect("a file"));
        std::fs::copy(path, &copy).expect("copied");
        copy
    };
    let old: Vec<PathBuf> = signed.iter().map(keep).collect();
    let refused = error(sign(&ceremony.path("bank_a"), &newer, &[], false));
    assert!(refused.contains("nonce: signed was 1, this has 2"), "{refused}");
    assert!(refused.contains("--replace"), "{refused}");
    let new = ceremony.sign(&newer, &NAMES);

    let out = ceremony.path("charter.toml");
    let refused = error(assemble(&newer, &[old[0].clone(), new[1].clone()], &out));
    let [one, two] = [&older, &newer].map(|path| read_draft(path).expect("good").ledger().to_string());
    assert!(
        refused.contains("bank_a has signed another draft")
            && refused.contains(&one)
            && refused.contains(&two)
    );
    assert!(!out.exists(), "nothing was written");
    assemble(&older, &old, &out).expect("all over one draft");
    let before = std::fs::read(&out).expect("written");
    let refused = error(assemble(&newer, &new, &out));
    assert!(refused.contains("nonce: there is 1, the new one has 2"), "{refused}");
    assert_eq!(std::fs::read(&out).expect("written"), before);
    // All have signed the newer one last, and that is the one that they install.
    let refused = error(install(&ceremony.path("bank_a"), &out));
    assert!(refused.contains("nonce: signed was 2, this has 1"), "{refused}");
    let second = ceremony.path("second.toml");
    assemble(&newer, &new, &second).expect("all over one draft");
    install(&ceremony.path("bank_a"), &second).expect("the one that was signed");
    let before = contents(&ceremony.path("bank_a"));
    for refused in [
        install(&ceremony.path("bank_a"), &out).map(drop),
        sign(&ceremony.path("bank_a"), &older, &[], true).map(drop),
    ] {
        let refused = error(refused);
        assert!(refused.contains("this folder has 2, the other 1"), "{refused}");
    }
    assert_eq!(contents(&ceremony.path("bank_a")), before);
}

#[test]
fn what_was_changed_in_an_installed_charter_is_named() {
    let ceremony = Ceremony::begin();
    let (folder, charter) = (ceremony.path("bank_c"), ceremony.charter());
    let changed = ceremony.path("changed.toml");
    let good = std::fs::read_to_string(&charter).expect("written");
    std::fs::write(&changed, good.replacen("127.0.0.1:7003", "127.0.0.1:7009", 1)).expect("written");
    let refused = error(install(&folder, &changed));
    let said = "bank_d.address: signed was \"127.0.0.1:7003\", there is \"127.0.0.1:7009\"";
    assert!(refused.contains(said), "{refused}");
    assert!(!folder.join("charter.toml").exists());
    install(&folder, &charter).expect("its own charter");
    let path = folder.join("charter.toml");
    std::fs::write(&path, good.replacen("fill_ms = 20", "fill_ms = 21", 1)).expect("written");
    let refused = error(NodeFolder::open(&folder));
    assert!(refused.contains("block.fill_ms: signed was 20, there is 21"), "{refused}");
    // A byte anywhere: refused, or white space that means nothing.
    let charter = Charter::from_toml(&good).expect("as it was");
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 0x01;
        std::fs::write(&path, bytes).expect("written");
        assert!(
            NodeFolder::open(&folder).is_ok_and(|opened| opened.charter == charter)
                || NodeFolder::open(&folder).is_err()
        );
        assert!(read_draft(&path).is_err(), "byte {at}");
    }
    // It is put right, as its error says.
    assert!(!install(&folder, &ceremony.path("charter.toml")).expect("the one that was signed").before);
    assert_eq!(std::fs::read_to_string(&path).expect("written"), good);
    NodeFolder::open(&folder).expect("as it was");
}

#[test]
fn any_changed_byte_of_credentials_or_of_the_own_card_is_refused() {
    let ceremony = Ceremony::begin();
    let charter = ceremony.charter();
    let folder = ceremony.path("bank_d");
    for file in ["credentials.toml", "card.toml"] {
        let path = folder.join(file);
        let good = std::fs::read(&path).expect("written");
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x01;
            std::fs::write(&path, bytes).expect("written");
            assert!(install(&folder, &charter).is_err(), "byte {at} of {file}");
        }
        std::fs::write(&path, good).expect("written");
    }
    assert!(!folder.join("charter.toml").exists());
    install(&folder, &charter).expect("as it was");
}

#[test]
fn an_installation_that_was_broken_off_is_done_again() {
    let ceremony = Ceremony::begin();
    let charter = ceremony.charter();
    let folder = ceremony.path("bank_a");
    // After each of the files that it writes.
    for missing in [&["charter.toml"][..], &["charter.toml", "client.toml"], &["client.toml", "session.toml"]]
    {
        install(&folder, &charter).expect("its own charter");
        for file in missing {
            std::fs::remove_file(folder.join(file)).expect("it was written");
        }
        install(&folder, &charter).expect("its own charter");
        NodeFolder::open(&folder).expect("a node's folder");
    }
}

#[test]
fn a_newcomer_signs_for_exactly_what_it_is_to_be() {
    let ceremony = Ceremony::begin();
    let path = ceremony.charter();
    let charter = read_draft(&path).expect("signed by all");
    let emma = ceremony.path("emma");
    make_keys(&emma, &options("clearing", "emma", 4)).expect("an empty folder");
    let refused = error(accept(&emma, &path, 3));
    assert!(refused.contains("4 or more, found 3"), "{refused}");
    let before = contents(&emma);
    assert!(error(accept(&ceremony.path("bank_a"), &path, 4)).contains("bank_a stands more than once"));
    assert_eq!(contents(&emma), before);
    let accepted = |position| {
        let (organisation, acceptance) = accept(&emma, &path, position).expect("a new member");
        let change = types::CharterChange::AddOrganisation { organisation, acceptance };
        charter.amended(&change).expect("a fifth member")
    };
    let key = SecretKey::from_hex(&read(&emma.join("node.key")).expect("written")).expect("a key");
    assert_eq!(accepted(4).member(&key.public_key()), Some(4));
    assert_eq!(NodeFolder::open(&emma).expect("a node's folder").organisation, 4);
    // Somebody else came in before it.
    accepted(5);
    assert_eq!(NodeFolder::open(&emma).expect("a node's folder").organisation, 5);
    // A card for another network, and a draft in the place of a charter.
    let other = ceremony.path("other");
    make_keys(&other, &options("other", "otto", 5)).expect("an empty folder");
    assert!(error(accept(&other, &path, 4)).contains("for the network `other`"));
    let unsigned = Charter { signatures: Vec::new(), ..charter };
    let refused = error(accept(&emma, &ceremony.draft(unsigned.nonce), 4));
    let missing = CharterError::NotSigned { missing: NAMES.join(", ") }.to_string();
    assert!(refused.contains(&missing), "{refused}");
}

#[test]
fn a_newcomers_root_key_can_stay_where_nothing_else_is() {
    let ceremony = Ceremony::begin();
    let charter = ceremony.charter();
    let (vault, node) = (ceremony.path("vault"), ceremony.path("emma"));
    let root = make_root(&vault).expect("an empty folder");
    make_keys(&node, &KeysOptions { root_key: Some(root), ..options("clearing", "emma", 4) }).expect("empty");
    sign_card(&vault, &node.join("card.toml"), false).expect("its own card");
    accept(&vault, &charter, 4).expect("a new member");
    for file in ["card.toml", "credentials.toml"] {
        std::fs::copy(vault.join(file), node.join(file)).expect("copied");
    }
    install(&node, &charter).expect("with the credentials");
    assert_eq!(NodeFolder::open(&node).expect("a node's folder").organisation, 4);
}

#[test]
fn the_root_key_vouches_for_new_keys_of_a_node_that_is_lost() {
    let ceremony = Ceremony::begin();
    let charter = ceremony.charter();
    let (vault, node) = (ceremony.path("vault"), ceremony.path("again"));
    std::fs::create_dir_all(&vault).expect("made");
    for file in ["root.key", "card.toml"] {
        std::fs::copy(ceremony.path("bank_d").join(file), vault.join(file)).expect("copied");
    }
    let root_key = Some(ceremony.cards[3].root_key);
    make_keys(&node, &KeysOptions { root_key, ..options("clearing", "bank_d", 7) }).expect("empty");
    let card = read_new_card(&node).expect("its keys were not used");
    // As a restored folder is.
    std::fs::copy(&charter, node.join("charter.toml")).expect("copied");
    let replaces = ceremony.cards[3].node_key.to_string();
    let restored = Restored { organisation: "bank_d".into(), position: 3, height: 9, replaces };
    restored.write(&node).expect("written");
    assert_eq!(Restored::read(&node).expect("reads"), Some(restored));
    assert!(error(NodeFolder::open(&node)).contains("does not vouch for its new keys yet"));

    assert!(error(sign_card(&vault, &node.join("card.toml"), false)).contains("another card"));
    sign_card(&vault, &node.join("card.toml"), true).expect("it takes the first one's place");
    assert!(error(renew(&vault, &charter, 2)).contains("position 2 in the charter that of bank_c"));
    assert!(error(renew(&vault, &charter, 7)).contains("bank_d has position 3"));
    assert_eq!(renew(&vault, &charter, 3).expect("its own").node_key, card.node_key);
    for file in ["card.toml", "credentials.toml"] {
        std::fs::copy(vault.join(file), node.join(file)).expect("copied");
    }
    // A founder's node does not take another key than its charter's.
    let (restored, aside) = (node.join(RESTORED), ceremony.path("aside"));
    std::fs::rename(&restored, &aside).expect("there");
    let refused = error(install(&node, &charter));
    assert!(refused.contains("bank_d.node_key"), "{refused}");
    std::fs::rename(&aside, &restored).expect("there");
    install(&node, &charter).expect("with the credentials");
    let opened = NodeFolder::open(&node).expect("a node's folder");
    assert_eq!((opened.organisation, opened.node_key.public_key()), (3, card.node_key));
    assert!(error(read_new_card(&node)).contains("may have voted"));

    // Another root key vouches for nobody else.
    let stranger = ceremony.path("stranger");
    make_keys(&stranger, &options("clearing", "bank_d", 8)).expect("empty");
    assert!(error(renew(&stranger, &charter, 3)).contains("only the root key in the charter"));
}

const RESTORED: &str = "restored.toml";
