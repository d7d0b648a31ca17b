//! A node's folder that was restored from a backup: it has a ledger and new keys, for which the organisation's root key vouches, and
//! whose node key takes the place of the one that was lost.

use super::install::write_member;
use super::root::{is_key, read_root};
use super::sign::{is_not_installed, own_card};
use super::{CARD_FILE, CREDENTIALS_FILE, NODE_KEY_FILE, named};
use crate::NodeError;
use crate::files::{Readers, read, replace, write};
use serde::{Deserialize, Serialize};
use std::path::Path;
use types::{Charter, Credentials, MemberCard, Organisation};

/// Says that a folder was restored.
pub(crate) const RESTORED_FILE: &str = "restored.toml";

/// From what a folder was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restored {
    /// Whose node it is.
    pub organisation: String,
    /// Its position in the charter.
    pub position: u16,
    /// Height of the last block of the backup.
    pub height: u64,
    /// The node key that the charter of that height has. Its votes are not in a backup, so that nobody may use it again.
    pub replaces: String,
}

impl Restored {
    /// Writes it into a folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), NodeError> {
        write(&folder.join(RESTORED_FILE), &toml::to_string(self).expect("plain fields"))
    }

    /// That of a folder; `None`: it was not restored.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Restored>, NodeError> {
        let path = folder.join(RESTORED_FILE);
        if !path.exists() {
            return Ok(None);
        }
        toml::from_str(&read(&path)?)
            .map(Some)
            .map_err(|error| NodeError::Config { path, reason: error.to_string() })
    }

    /// The position of a card's organisation, if its root key is the one that the founding charter has there. Its node key is
    /// another one.
    pub(super) fn position_of(&self, card: &MemberCard, charter: &Charter) -> Result<usize, NodeError> {
        is_of_member(card, charter, self.position)?;
        Ok(usize::from(self.position))
    }
}

/// Whether the organisation with this position may have this card: its name and root key stand in the founding charter, or it came
/// later.
fn is_of_member(card: &MemberCard, charter: &Charter, position: u16) -> Result<(), NodeError> {
    card.check_network(&charter.name).map_err(|error| NodeError::Options(error.to_string()))?;
    let founders = &charter.organisations;
    let Some(member) = founders.get(usize::from(position)) else {
        return match founders.iter().position(|member| member.name == card.name) {
            Some(found) => Err(NodeError::Options(format!(
                "--position: {} has position {found} in the charter, found {position}",
                card.name
            ))),
            None => Ok(()),
        };
    };
    if member.name != card.name {
        return Err(NodeError::Options(format!(
            "--position: the card is that of {}, and position {position} in the charter that of {}",
            card.name, member.name
        )));
    }
    if member.root_key != card.root_key {
        return Err(NodeError::Options(format!(
            "the card of {} names the root key {}, and the charter {}: only the root key in the charter can vouch for new keys; make \
             them with `entente keys --root-key {}`",
            card.name, card.root_key, member.root_key, member.root_key
        )));
    }
    Ok(())
}

/// Vouches, with the root key in a folder, for new keys of organisation number `position`, whose node's keys are lost. Gives what
/// the charter is to have from then on. If the folder is the node's, its identities are written.
///
/// # Errors
/// The card is not this organisation's, or the charter is another ledger's.
pub fn renew(folder: &Path, charter_path: &Path, position: u16) -> Result<Organisation, NodeError> {
    let (card, root) = own_card(folder)?;
    let charter = Charter::from_toml(&read(charter_path)?)
        .map_err(|error| NodeError::Charter { path: charter_path.to_path_buf(), error })?;
    is_of_member(&card, &charter, position)?;
    is_not_installed(folder, &charter)?;
    let credentials = Credentials::issue(&card, &root, charter.ledger(), position);
    if folder.join(NODE_KEY_FILE).exists() {
        write_member(folder, &charter, &card, &credentials)?;
    } else {
        replace(&folder.join(CREDENTIALS_FILE), &credentials.to_toml(), Readers::All)?;
    }
    Ok(card.organisation())
}

/// Does the same for the keys of a node's folder, whose card the root key need not have signed, with the root key in another
/// folder, which stays as it is.
///
/// # Errors
/// As [`renew`].
pub fn renew_with(
    folder: &Path,
    root_folder: &Path,
    charter: &Charter,
    position: u16,
) -> Result<Organisation, NodeError> {
    let (path, root) = (folder.join(CARD_FILE), read_root(root_folder)?);
    let card = MemberCard::from_unsigned(&read(&path)?).map_err(named(&path))?;
    is_of_member(&card, charter, position)?;
    is_key(&path, "the card", "root key", card.root_key, &root)?;
    let card = card.signed_by_root(&root);
    let credentials = Credentials::issue(&card, &root, charter.ledger(), position);
    replace(&path, &card.to_toml(), Readers::All)?;
    write_member(folder, charter, &card, &credentials)?;
    Ok(card.organisation())
}

/// The card in a folder that `entente keys` has made and that no charter was put into, signed by the root key or not.
///
/// # Errors
/// The folder is another one, or its keys were used already.
pub fn read_new_card(folder: &Path) -> Result<MemberCard, NodeError> {
    let (path, key) = (folder.join(CARD_FILE), folder.join(NODE_KEY_FILE));
    if !path.exists() || !key.exists() {
        return Err(NodeError::NoCard { folder: folder.to_path_buf() });
    }
    let used = ["charter.toml", "ordering", "ordering.claimed", "ledger"];
    if let Some(used) = used.into_iter().find(|file| folder.join(file).exists()) {
        return Err(NodeError::Options(format!(
            "{} has {used}: its node key may have voted; expected a folder as `entente keys` has made it",
            folder.display()
        )));
    }
    let card = MemberCard::from_unsigned(&read(&path)?).map_err(named(&path))?;
    is_key(&path, "the card", "node key", card.node_key, &super::root::read_key(&key)?)?;
    Ok(card)
}

/// Why a restored folder cannot be opened yet: nobody vouches for its keys.
pub(crate) fn not_vouched_for(folder: &Path) -> Option<NodeError> {
    let restored = Restored::read(folder).ok()??;
    Some(NodeError::NotVouchedFor { folder: folder.to_path_buf(), position: restored.position })
}
