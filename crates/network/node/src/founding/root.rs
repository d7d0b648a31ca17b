//! A root key on a machine that has nothing else.

use super::{CARD_FILE, ROOT_KEY_FILE, named};
use crate::NodeError;
use crate::files::{Readers, create, is_empty, read, replace, write_secret};
use crypto::{PublicKey, SecretKey};
use std::path::Path;
use types::MemberCard;

/// Makes a root key in a folder of its own.
///
/// # Errors
/// The folder is not empty, or a file cannot be written.
pub fn make_root(folder: &Path) -> Result<PublicKey, NodeError> {
    is_empty(folder)?;
    create(folder)?;
    let root = SecretKey::generate();
    write_secret(&folder.join(ROOT_KEY_FILE), &root.to_hex())?;
    Ok(root.public_key())
}

/// Signs a card with the root key in a folder, and keeps the card there. The node's folder needs it too. Another card of the same
/// organisation in the same network is signed only if it is to take the first one's place, because the node's keys were lost.
///
/// # Errors
/// The card was altered, names another root key, or is not the one that was signed before.
pub fn sign_card(folder: &Path, card_path: &Path, replaces: bool) -> Result<MemberCard, NodeError> {
    let root = read_root(folder)?;
    let card = MemberCard::from_unsigned(&read(card_path)?).map_err(named(card_path))?;
    is_key(card_path, "the card", "root key", card.root_key, &root)?;
    let card = card.signed_by_root(&root);
    let own = folder.join(CARD_FILE);
    if own.exists() {
        let before = MemberCard::from_toml(&read(&own)?).map_err(named(&own))?;
        let is_other = (&before.network, &before.name) != (&card.network, &card.name);
        if before != card && (is_other || !replaces) {
            return Err(NodeError::OtherCard { path: own });
        }
    }
    replace(&own, &card.to_toml(), Readers::All)?;
    Ok(card)
}

/// The root key in a folder.
pub(super) fn read_root(folder: &Path) -> Result<SecretKey, NodeError> {
    let path = folder.join(ROOT_KEY_FILE);
    if !path.exists() {
        return Err(NodeError::NoRootKey { folder: folder.to_path_buf() });
    }
    read_key(&path)
}

pub(super) fn read_key(path: &Path) -> Result<SecretKey, NodeError> {
    SecretKey::from_hex(&read(path)?)
        .map_err(|error| NodeError::Key { path: path.to_path_buf(), reason: error.to_string() })
}

/// Whether a key is the one that a file names.
pub(super) fn is_key(
    path: &Path,
    file: &str,
    what: &str,
    expected: PublicKey,
    key: &SecretKey,
) -> Result<(), NodeError> {
    let found = key.public_key();
    if expected == found {
        return Ok(());
    }
    let reason = format!(
        "{file} names the {what} {expected}, the secret one is that of {found}: expected a card and keys that belong together"
    );
    Err(NodeError::Key { path: path.to_path_buf(), reason })
}
