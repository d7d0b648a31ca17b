use super::root::{is_key, read_key, read_root};
use super::signed::{read_signed, read_unchecked, shown};
use super::{CARD_FILE, CREDENTIALS_FILE, NODE_KEY_FILE, SIGNED_FILE, named, read_card, read_draft};
use crate::NodeError;
use crate::files::{Readers, read, replace};
use crypto::SecretKey;
use std::path::{Path, PathBuf};
use types::{Charter, CharterSignature, Credentials, Identity, MemberCard};

/// What came of signing.
pub struct Signed {
    /// The draft.
    pub charter: Charter,
    /// Who has signed.
    pub name: String,
    /// The file with the signature, for whoever puts the charter together.
    pub signature: PathBuf,
    /// Whether the folder is the node's, and not one for the root key alone.
    pub is_node: bool,
}

/// Signs a draft with the root key in a folder, if it says of this organisation, and of those whose cards are given, what the
/// cards say. Another draft than the one that was signed before is signed only if it is to take that one's place.
///
/// # Errors
/// What differs; nothing is signed then.
pub fn sign(folder: &Path, draft: &Path, others: &[PathBuf], replaces: bool) -> Result<Signed, NodeError> {
    let (card, root) = own_card(folder)?;
    let charter = read_draft(draft)?;
    let position = card.position_in(&charter).map_err(named(draft))?;
    for path in others {
        read_card(path)?.position_in(&charter).map_err(named(path))?;
    }
    is_not_installed(folder, &charter)?;
    if let Some(before) = read_signed(folder)?
        && before.ledger() != charter.ledger()
        && !replaces
    {
        let differences = shown(&before.differences(&charter), "signed was", "this has");
        let (signed, found) = (before.ledger(), charter.ledger());
        return Err(NodeError::SignedBefore { path: draft.to_path_buf(), signed, found, differences });
    }
    let signature = CharterSignature::new(&charter, &card.name, &root);
    let credentials = Credentials::issue(&card, &root, charter.ledger(), position as u16);
    let unsigned = Charter { signatures: Vec::new(), ..charter.clone() };
    let path = folder.join(format!("{}.signature.toml", card.name));
    replace(&folder.join(SIGNED_FILE), &unsigned.to_toml(), Readers::All)?;
    replace(&folder.join(CREDENTIALS_FILE), &credentials.to_toml(), Readers::All)?;
    replace(&path, &signature.to_toml(), Readers::All)?;
    let is_node = folder.join(NODE_KEY_FILE).exists();
    Ok(Signed { charter, name: card.name, signature: path, is_node })
}

/// The card and the root key of a folder, which belong together.
pub(super) fn own_card(folder: &Path) -> Result<(MemberCard, SecretKey), NodeError> {
    let path = folder.join(CARD_FILE);
    if !path.exists() {
        return Err(NodeError::NoCard { folder: folder.to_path_buf() });
    }
    let root = read_root(folder)?;
    let card = read_card(&path)?;
    is_key(&path, "the card", "root key", card.root_key, &root)?;
    let node = folder.join(NODE_KEY_FILE);
    if node.exists() {
        is_key(&path, "the card", "node key", card.node_key, &read_key(&node)?)?;
    }
    Ok((card, root))
}

/// Refuses where the folder belongs to another ledger: its session signs for that one, or its charter is another one. A charter
/// that was altered since it was installed may be put right.
pub(super) fn is_not_installed(folder: &Path, charter: &Charter) -> Result<(), NodeError> {
    let (path, session) = (folder.join("charter.toml"), folder.join("session.toml"));
    let found = charter.ledger();
    let (expected, differences) = if session.exists() {
        let expected = Identity::from_toml(&read(&session)?)
            .map_err(|error| NodeError::Identity { path: session, error })?
            .ledger();
        let installed = read_unchecked(&path).map(|installed| installed.differences(charter));
        (expected, installed.unwrap_or_default())
    } else if path.exists() {
        let installed = read_unchecked(&path)?;
        (installed.ledger(), installed.differences(charter))
    } else {
        return Ok(());
    };
    if expected == found {
        return Ok(());
    }
    let differences = shown(&differences, "this folder has", "the other");
    Err(NodeError::OtherCharter { path, expected, found, differences })
}
