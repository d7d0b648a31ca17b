//! A node's folder with a ledger that everybody's known keys have signed, and a target in memory.
#![allow(dead_code, missing_docs, reason = "each test file uses its part")]

use backup::{Keys, Place, RestoreOptions};
use bench::{SignedLedger, SignedLedgerOptions};
use crypto::SecretKey;
use futures::TryStreamExt;
use ledger::Ledger;
use node::founding::KeysOptions;
use node::{NodeError, NodeFolder, StateOfBackup, put_state};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use proofs::state::TreeShape;
use state::{CheckpointHeader, KeptState, PieceError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use targets::Target;
use targets::failing::{FailingStore, Fault};
use tempfile::TempDir;
use types::{Charter, CheckpointCertificate, CheckpointRoot, Credential, Identity, Payload};

/// Whose node it is.
pub const MEMBER: usize = 3;

fn known_key(kind: u8, member: usize) -> SecretKey {
    let mut bytes = [kind; 32];
    bytes[..8].copy_from_slice(&(member as u64).to_le_bytes());
    SecretKey::from_bytes(bytes)
}

pub struct World {
    pub source: SignedLedger,
    /// States behind some heights.
    states: Vec<(CheckpointCertificate, Arc<KeptState>)>,
    pub places: TempDir,
}

impl World {
    /// Ten blocks; the node has none of them yet.
    pub fn new(nonce: u64) -> World {
        let places = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        let options = SignedLedgerOptions { nonce, clients: 3, ..SignedLedgerOptions::default() };
        let source = SignedLedger::create(&places.path().join("source"), options, |_| ()).expect("empty");
        let mut world = World { source, states: Vec::new(), places };
        world.append("CREATE TABLE t (id bigint PRIMARY KEY, name text)");
        // Some groups of the state's tree, of which changes below touch the first.
        world.append(&format!(
            "INSERT INTO t SELECT n, '{nonce} row ' || n FROM generate_series(1, 3000) AS n"
        ));
        world.append("INSERT INTO t VALUES (-1, 'first')");
        world.append("INSERT INTO t VALUES (-2, 'second')");
        world.keep_state();
        world.append("UPDATE t SET name = 'changed' WHERE id = 10");
        (0..5).for_each(|n| world.append(&format!("INSERT INTO t VALUES ({}, 'more')", -10 - n)));
        world.keep_state();
        world.make_node();
        world
    }

    fn append(&mut self, sql: &str) {
        let payload = Payload::Script { sql: sql.to_string(), parameters: vec![] };
        let transactions = self.source.transactions(vec![payload]);
        let receipts = self.source.append(transactions, |_| ()).expect("appends");
        let outcome = &receipts[0].outcome;
        assert!(matches!(outcome, types::Outcome::Committed(_)), "{sql}: {outcome:?}");
    }

    fn keep_state(&mut self) {
        let engine = self.source.engine();
        let (header, state): (CheckpointHeader, _) = (engine.checkpoint_header(), engine.state());
        let (snapshot, live) = (state.snapshot(), engine.live().content());
        let shape = TreeShape::at(snapshot.catalog(), header.height);
        let kept = state.keep_checkpoint(&header, snapshot, live, shape).expect("memory").expect("a tree");
        let statement = CheckpointRoot {
            ledger: header.ledger,
            height: header.height,
            outcome: header.outcome,
            state_root: kept.tree().root(),
        };
        self.states.push((self.source.certificate(statement), Arc::new(kept)));
    }

    pub fn charter(&self) -> &Arc<Charter> {
        self.source.charter()
    }

    pub fn node(&self) -> PathBuf {
        self.places.path().join("node")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.places.path().join(name)
    }

    fn make_node(&self) {
        let (node, charter) = (self.node(), self.charter());
        let listen = [7003, 7103, 7203].map(|port| ([127, 0, 0, 1], port).into());
        let options = KeysOptions {
            root_key: Some(known_key(1, MEMBER).public_key()),
            ..KeysOptions::new(&charter.name, "org4", listen, 1)
        };
        node::founding::make_keys(&node, &options).expect("an empty folder");
        let write = |name: &str, text: String| std::fs::write(node.join(name), text).expect("written");
        write("node.key", known_key(2, MEMBER).to_hex());
        let session = known_key(4, MEMBER);
        let (root, ledger) = (known_key(1, MEMBER), charter.ledger());
        let credential = Credential::issue(&root, MEMBER as u16, &ledger, &session.public_key());
        write("session.toml", Identity::new(ledger, session, credential).to_toml());
        write("charter.toml", charter.to_toml());
        let vault = self.path("vault");
        std::fs::create_dir_all(&vault).expect("made");
        std::fs::write(vault.join("root.key"), root.to_hex()).expect("written");
    }

    /// The node has the blocks up to this height.
    pub fn grow(&self, to: u64) {
        let (ledger, _) = Ledger::open(self.node().join("ledger"), self.charter().ledger()).expect("opens");
        let next = ledger.tip().map_or(1, |(height, _)| height + 1);
        for record in self.source.ledger().blocks_from(next) {
            let record = record.expect("reads");
            if record.block.header.height > to {
                break;
            }
            ledger.append(&record).expect("it follows");
        }
        ledger.flush().expect("flushes");
    }

    /// The node has the state with this number, certified.
    pub fn give_state(&self, number: usize) {
        let (certificate, kept) = &self.states[number];
        let config = NodeFolder::open(&self.node()).expect("a folder").config;
        let state = StateOfBackup { certificate: certificate.clone(), outline: kept.outline() };
        let given = put_state::<Failed>(&self.node(), self.charter(), &config, state, |assembly| {
            for number in assembly.missing().collect::<Vec<_>>() {
                let piece = kept.piece(number).expect("memory").expect("a group");
                assembly.add(number, &piece)?;
            }
            Ok(())
        });
        given.map_err(|failed| failed.0).expect("the state fits");
    }
}

/// Why a state was not put into a folder.
struct Failed(String);

impl From<NodeError> for Failed {
    fn from(error: NodeError) -> Failed {
        Failed(error.to_string())
    }
}

impl From<PieceError> for Failed {
    fn from(error: PieceError) -> Failed {
        Failed(error.to_string())
    }
}

/// A target in memory that fails when it is told to.
pub struct Remote {
    pub store: Arc<FailingStore>,
    pub place: Place,
    runtime: tokio::runtime::Runtime,
}

impl Remote {
    pub fn new(fault: Fault) -> Remote {
        let store = Arc::new(FailingStore::new(fault));
        let place = Place::new(Target::in_store(store.clone(), "b").expect("a path")).expect("threads");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Remote { store, place, runtime }
    }

    pub fn names(&self) -> Vec<String> {
        let listed = self.store.inner.list(None).map_ok(|meta| meta.location.to_string());
        let mut names: Vec<String> = self.runtime.block_on(listed.try_collect()).expect("memory");
        names.sort();
        names.iter().map(|name| name.trim_start_matches("b/").to_string()).collect()
    }

    pub fn get(&self, name: &str) -> Vec<u8> {
        let key = Key::from(format!("b/{name}"));
        let got = async { self.store.inner.get(&key).await?.bytes().await };
        self.runtime.block_on(got).expect("it is there").to_vec()
    }

    pub fn put(&self, name: &str, content: Vec<u8>) {
        let key = Key::from(format!("b/{name}"));
        self.runtime.block_on(self.store.inner.put(&key, PutPayload::from(content))).expect("memory");
    }

    pub fn remove(&self, name: &str) {
        let key = Key::from(format!("b/{name}"));
        self.runtime.block_on(self.store.inner.delete(&key)).expect("memory");
    }

    pub fn check(&self) -> Result<backup::Checked, String> {
        backup::check(&self.place, None, None, &mut |_| ()).map_err(|error| error.to_string())
    }

    /// Restores into a folder, and says why it was refused; nothing is there then.
    pub fn restore(&self, folder: &Path, options: &RestoreOptions) -> Result<backup::Restoration, String> {
        let restored = backup::restore(&self.place, folder, options, &mut |_| ());
        let unfinished = folder.with_extension("unfinished");
        assert!(!unfinished.exists(), "nothing is left of an attempt");
        assert_eq!(restored.is_ok(), folder.exists());
        restored.map_err(|error| error.to_string())
    }
}

/// New keys, for which nobody vouches yet.
pub fn options() -> RestoreOptions {
    RestoreOptions { number: None, charter: None, keys: Keys::New, root: None, replays: false }
}
