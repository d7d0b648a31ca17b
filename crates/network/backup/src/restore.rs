//! A node's folder made of a backup, on a machine that has nothing else.
//!
//! ```text
//!  FOLDER.unfinished: blocks, each checked while it is copied ─▶ state ─▶ new keys ─▶ charter ─▶ renamed to FOLDER
//! ```
//!
//! Whoever falls before leaves no folder from which a node could start.

use crate::check::{Begun, Checked};
use crate::error::BackupError;
use crate::manifest::BlocksPiece;
use crate::places::Place;
use crate::state_pieces::{self, Index};
use audit::AuditProgress;
use bytes::Bytes;
use crypto::PublicKey;
use ledger::{BlockFile, Ledger};
use node::founding::{KeysOptions, Restored, make_keys, read_new_card, renew_with};
use node::{NodeConfig, NodeError, StateOfBackup, put_state};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, MemberCard, Organisation};

/// Files of a folder that `entente keys` has made.
const KEY_FILES: [&str; 8] =
    ["node.key", "session.key", "client.key", "card.toml", "tls.crt", "tls.key", "root.key", "node.toml"];

/// Which keys a restored folder gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// New ones, made there, for the addresses that the node had.
    New,
    /// Those of a folder that `entente keys` has made, with its `node.toml`. Under another name they are a new member's.
    Of(PathBuf),
    /// None: the folder is for `entente verify` alone.
    Nobodys,
}

/// How a folder is to be made of a backup.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// The backup's number; the newest where nothing is said.
    pub number: Option<u64>,
    /// The ledger's founding charter, where it is known: a backup of another one is refused.
    pub charter: Option<Charter>,
    /// Which keys it gets.
    pub keys: Keys,
    /// The folder with the organisation's root key, which vouches for the new keys; it may do so later.
    pub root: Option<PathBuf>,
    /// The node is to execute all blocks again, and has the history of all rows then, instead of beginning with the state that is in
    /// the backup.
    pub replays: bool,
}

/// A folder that was made of a backup.
pub struct Restoration {
    /// What was restored.
    pub checked: Checked,
    /// Height of the state that the node begins with; `None`: it executes all blocks.
    pub state: Option<u64>,
    /// Whose node it is, where it has keys.
    pub owner: Option<Owner>,
    /// Files that `node.toml` names and that no backup has.
    pub lacking: Vec<PathBuf>,
}

/// Whose node a folder is.
pub struct Owner {
    /// With its new node key and its addresses.
    pub organisation: Organisation,
    /// The member as the newest charter has it; `None`: it is a new member.
    pub member: Option<Organisation>,
    /// Its position in the charter, or the next one.
    pub position: u16,
    /// The root key has vouched for the keys already.
    pub is_vouched_for: bool,
}

/// Makes the folder, which must be empty or not exist, of a backup that is checked whole meanwhile.
///
/// # Errors
/// What is wrong with the backup, with the name of the piece, or with the keys; there is no folder then.
pub fn restore(
    place: &Place,
    folder: &Path,
    options: &RestoreOptions,
    progress: &mut dyn FnMut(&AuditProgress),
) -> Result<Restoration, BackupError> {
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(NodeError::FolderNotEmpty(folder.to_path_buf()).into());
    }
    if let Keys::Of(keys) = &options.keys {
        // Before anything is copied.
        read_new_card(keys)?;
    }
    let mut name = folder.file_name().unwrap_or_default().to_os_string();
    name.push(".unfinished");
    let unfinished = Unfinished(folder.with_file_name(name));
    unfinished.begin()?;
    let path = &unfinished.0;
    let begun = Begun::open(place, options.number, options.charter.as_ref())?;
    let (checked, index) = copy_blocks(place, path, begun, progress)?;
    let owner = match &options.keys {
        Keys::Nobodys => None,
        keys => Some(give_keys(path, keys, options.root.as_deref(), &checked)?),
    };
    write(&path.join("charter.toml"), checked.manifest.charter.as_bytes())?;
    let (mut state, mut lacking) = (None, Vec::new());
    if owner.is_some() {
        let config = read_config(&path.join("node.toml"))?;
        lacking = files_of(&config).into_iter().filter(|file| !path.join(file).exists()).collect();
        if let Some(index) = index.filter(|_| !options.replays) {
            state = Some(copy_state(place, path, &checked, (&config, index))?);
        }
    }
    unfinished.finish(folder)?;
    Ok(Restoration { checked, state, owner, lacking })
}

/// The folder before it is whole; removed where that does not come about.
struct Unfinished(PathBuf);

impl Unfinished {
    fn begin(&self) -> Result<(), BackupError> {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BackupError::file("remove", &self.0)(error));
            }
            _ => {}
        }
        let ledger = self.0.join("ledger");
        std::fs::create_dir_all(&ledger).map_err(BackupError::file("make", &ledger))
    }

    fn finish(self, folder: &Path) -> Result<(), BackupError> {
        flush(&self.0)?;
        std::fs::rename(&self.0, folder).map_err(BackupError::file("make", folder))?;
        let beside = folder.parent().filter(|beside| !beside.as_os_str().is_empty());
        flush(beside.unwrap_or(Path::new(".")))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next attempt; after `finish` nothing is there.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), BackupError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(BackupError::file("write", path))
}

fn flush(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(BackupError::file("flush", folder))
}

/// Copies the blocks and checks them; a ledger comes of it that a node can open.
fn copy_blocks(
    place: &Place,
    path: &Path,
    begun: Begun,
    progress: &mut dyn FnMut(&AuditProgress),
) -> Result<(Checked, Option<Index>), BackupError> {
    let (blocks, network) = (path.join("ledger"), begun.charter.ledger());
    if let Some(anchor) = begun.anchor.clone() {
        Ledger::open(&blocks, network)?.0.begin_behind(anchor)?;
    }
    let taking =
        |piece: &BlocksPiece, content: &Bytes| write(&blocks.join(BlockFile::name(piece.first)), content);
    let (checked, index) = begun.check(place, &taking, progress)?;
    let (ledger, _) = Ledger::open(&blocks, network)?;
    let tip = ledger.tip().map_or(0, |(height, _)| height);
    // The audit has read the same bytes.
    assert_eq!(tip, checked.manifest.height, "the ledger that was copied ends where the backup does");
    flush(&blocks)?;
    Ok((checked, index))
}

fn copy_state(
    place: &Place,
    path: &Path,
    checked: &Checked,
    (config, index): (&NodeConfig, Index),
) -> Result<u64, BackupError> {
    let groups = index.groups();
    let (height, charter) = (index.certificate.statement.height, Arc::new(checked.charter.clone()));
    let state = StateOfBackup { certificate: index.certificate, outline: index.outline };
    let pieces = checked.manifest.state.as_ref();
    put_state::<BackupError>(path, &charter, config, state, |assembly| match pieces {
        Some(pieces) => state_pieces::add_groups(place, pieces, &groups, assembly),
        None => Ok(()),
    })?;
    Ok(height)
}

fn read_config(path: &Path) -> Result<NodeConfig, BackupError> {
    let text = std::fs::read_to_string(path).map_err(BackupError::file("read", path))?;
    config_of(path, &text)
}

fn config_of(path: &Path, text: &str) -> Result<NodeConfig, BackupError> {
    let wrong =
        |error: toml::de::Error| NodeError::Config { path: path.to_path_buf(), reason: error.to_string() };
    Ok(toml::from_str(text).map_err(wrong)?)
}

/// Files that a node needs besides those that every folder has.
fn files_of(config: &NodeConfig) -> Vec<PathBuf> {
    let password = config.database.as_ref().and_then(|database| database.password_file.clone());
    let files = [config.tls_certificate.clone(), config.tls_key.clone(), password];
    files.into_iter().flatten().collect()
}

/// Puts keys into the folder that have never voted.
fn give_keys(path: &Path, keys: &Keys, root: Option<&Path>, checked: &Checked) -> Result<Owner, BackupError> {
    let newest = checked.charters.newest().charter.clone();
    let position = checked.manifest.position;
    let member = newest.organisations.get(usize::from(position));
    let member = member.ok_or_else(|| {
        BackupError::Options(format!(
            "the charter has no organisation with the position {position}, whose backup this is"
        ))
    })?;
    let made = path.join("new-keys");
    let from = match keys {
        Keys::Of(folder) => folder.clone(),
        _ => {
            make_keys(&made, &keys_for(member, checked)?)?;
            write(&made.join("node.toml"), checked.manifest.node.as_bytes())?;
            made.clone()
        }
    };
    let card = read_new_card(&from)?;
    has_not_voted(&card, checked)?;
    for file in KEY_FILES.into_iter().filter(|file| from.join(file).exists()) {
        let to = path.join(file);
        std::fs::copy(from.join(file), &to).map_err(BackupError::file("write", &to))?;
    }
    if made.exists() {
        std::fs::remove_dir_all(&made).map_err(BackupError::file("remove", &made))?;
    }
    if card.name != member.name {
        let (position, is_vouched_for) = (newest.organisations.len() as u16, false);
        return Ok(Owner { organisation: card.organisation(), member: None, position, is_vouched_for });
    }
    let replaces = member.node_key.to_string();
    let (organisation, height) = (member.name.clone(), checked.manifest.height);
    Restored { organisation, position, height, replaces }.write(path)?;
    let own_root = path.join("root.key").exists().then_some(path);
    let organisation = match root.or(own_root) {
        Some(root) => renew_with(path, root, &checked.charter, position)?,
        None => card.organisation(),
    };
    let is_vouched_for = path.join("session.toml").exists();
    Ok(Owner { organisation, member: Some(member.clone()), position, is_vouched_for })
}

/// For new keys of a member, at the addresses that it had.
fn keys_for(member: &Organisation, checked: &Checked) -> Result<KeysOptions, BackupError> {
    let config = config_of(Path::new("node.toml"), &checked.manifest.node)?;
    let listen = [config.listen, config.postgres, config.http];
    let host = member.address.rsplit_once(':').map_or("", |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
    Ok(KeysOptions {
        public: vec![host],
        root_key: Some(member.root_key),
        ..KeysOptions::new(&checked.charter.name, &member.name, listen, config.threads)
    })
}

/// A node key that any charter has named may have voted.
fn has_not_voted(card: &MemberCard, checked: &Checked) -> Result<(), BackupError> {
    let key: PublicKey = card.node_key;
    match checked.charters.reigns().iter().any(|reign| reign.charter.member(&key).is_some()) {
        false => Ok(()),
        true => Err(BackupError::Options(format!(
            "the node key {key} stands in a charter of this ledger and may have voted: its votes are in no backup, so that it must \
             not be used again; make new keys with `entente keys`"
        ))),
    }
}
