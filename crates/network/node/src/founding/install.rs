use super::restored::Restored;
use super::root::{is_key, read_key};
use super::sign::{is_not_installed, own_card};
use super::signed::{differs_from_signed, read_signed, shown};
use super::{CARD_FILE, CREDENTIALS_FILE, NODE_KEY_FILE, named, read_card, read_draft};
use crate::NodeError;
use crate::files::{Readers, read, replace};
use crypto::{Digest, Signature};
use std::path::{Path, PathBuf};
use types::{
    Charter, CharterError, Credentials, FoundingError, Identity, MemberCard, Organisation, accept_membership,
};

/// What came of putting a charter into a node's folder.
pub struct Installed {
    /// The charter.
    pub charter: Charter,
    /// It was there before, and nothing was done.
    pub before: bool,
}

/// Secret keys, and the identities that become of them with the charter.
const KEYS: [(&str, &str); 2] = [("session.key", "session.toml"), ("client.key", "client.toml")];

/// Puts the charter that all founders have signed into the folder of a node that [`super::make_keys`] has made.
///
/// # Errors
/// Who has not signed, what differs from the card or from what was signed, or another charter that is there; nothing is changed
/// then.
pub fn install(folder: &Path, charter_path: &Path) -> Result<Installed, NodeError> {
    let charter = read_draft(charter_path)
        .map_err(|error| differs_from_signed(folder, charter_path).unwrap_or(error))?;
    charter.check().map_err(|error| NodeError::Charter { path: charter_path.to_path_buf(), error })?;
    is_not_installed(folder, &charter)?;
    if is_complete(folder) {
        return Ok(Installed { charter, before: true });
    }
    let card = node_card(folder)?;
    if let Some(signed) = read_signed(folder)?
        && signed.ledger() != charter.ledger()
    {
        let differences = shown(&signed.differences(&charter), "signed was", "this has");
        let (path, signed, found) = (charter_path.to_path_buf(), signed.ledger(), charter.ledger());
        return Err(NodeError::SignedBefore { path, signed, found, differences });
    }
    let credentials = read_credentials(folder, &card, &charter)?;
    // Whoever comes later does not stand in the founding charter, and its card is held against the ledger by the members.
    if charter.organisations.iter().any(|organisation| organisation.name == card.name) {
        // The node key of a restored folder takes the place of the charter's.
        let position = match Restored::read(folder)? {
            Some(restored) => restored.position_of(&card, &charter)?,
            None => card.position_in(&charter).map_err(named(charter_path))?,
        };
        if position != usize::from(credentials.organisation) {
            let reason =
                format!("they are for position {}, the charter has {position}", credentials.organisation);
            let organisation = card.name;
            return Err(named(charter_path)(FoundingError::Credentials { organisation, reason }));
        }
    }
    write_member(folder, &charter, &card, &credentials)?;
    Ok(Installed { charter, before: false })
}

/// Whether a folder has everything that a charter brings.
fn is_complete(folder: &Path) -> bool {
    let charter = read(&folder.join("charter.toml"));
    charter.is_ok_and(|text| Charter::from_toml(&text).is_ok())
        && KEYS.iter().all(|(_, file)| folder.join(file).exists())
}

/// Accepts, with the root key in a folder, the membership in a ledger that exists, as organisation number `position`. Gives what is
/// to become a member, and its root key's signature for that. If the folder is the node's, the charter is put into it.
///
/// # Errors
/// The card is for another network, the charter is not signed by all, or has the organisation already.
pub fn accept(
    folder: &Path,
    charter_path: &Path,
    position: u16,
) -> Result<(Organisation, Signature), NodeError> {
    let (card, root) = own_card(folder)?;
    let charter = Charter::from_toml(&read(charter_path)?)
        .map_err(|error| NodeError::Charter { path: charter_path.to_path_buf(), error })?;
    let refused = |error: FoundingError| NodeError::Founding { path: charter_path.to_path_buf(), error };
    card.check_network(&charter.name).map_err(refused)?;
    if charter.organisations.iter().any(|member| member.name == card.name) {
        let (what, found) = ("the name", card.name);
        return Err(refused(FoundingError::Charter(CharterError::Repeated { what, found })));
    }
    if usize::from(position) < charter.organisations.len() {
        return Err(NodeError::Options(format!(
            "--position: expected how many organisations the ledger has had before, {} or more, found {position}: SELECT count(*) \
             FROM entente.organisations",
            charter.organisations.len()
        )));
    }
    is_not_installed(folder, &charter)?;
    let ledger = charter.ledger();
    let credentials = Credentials::issue(&card, &root, ledger, position);
    let acceptance = accept_membership(&ledger, &card.organisation(), &root);
    if folder.join(NODE_KEY_FILE).exists() {
        write_member(folder, &charter, &card, &credentials)?;
    } else {
        replace(&folder.join(CREDENTIALS_FILE), &credentials.to_toml(), Readers::All)?;
    }
    Ok((card.organisation(), acceptance))
}

/// The card of a node's folder, which belongs to the keys in it.
fn node_card(folder: &Path) -> Result<MemberCard, NodeError> {
    let (path, key) = (folder.join(CARD_FILE), folder.join(NODE_KEY_FILE));
    if !path.exists() || !key.exists() {
        return Err(NodeError::NoCard { folder: folder.to_path_buf() });
    }
    let card = read_card(&path)?;
    is_key(&path, "the card", "node key", card.node_key, &read_key(&key)?)?;
    Ok(card)
}

/// The credentials in a folder, which are for its card and this charter.
fn read_credentials(folder: &Path, card: &MemberCard, charter: &Charter) -> Result<Credentials, NodeError> {
    let path = folder.join(CREDENTIALS_FILE);
    if !path.exists() {
        return Err(NodeError::NoCredentials { folder: folder.to_path_buf() });
    }
    let credentials = Credentials::from_toml(&read(&path)?).map_err(named(&path))?;
    credentials.of(card, &charter.ledger()).map_err(named(&path))?;
    Ok(credentials)
}

/// Makes identities of the folder's keys, and writes them and then the charter. The keys stay, so that it can be done again after it
/// was broken off, or for another position.
pub(super) fn write_member(
    folder: &Path,
    charter: &Charter,
    card: &MemberCard,
    credentials: &Credentials,
) -> Result<(), NodeError> {
    let ledger = charter.ledger();
    let credentials = credentials.of(card, &ledger).map_err(named(&folder.join(CREDENTIALS_FILE)))?;
    let expected = [card.session_key, card.client_key];
    for (((key, file), credential), expected) in KEYS.into_iter().zip(credentials).zip(expected) {
        let (key, file): (PathBuf, PathBuf) = (folder.join(key), folder.join(file));
        let secret = read_key(&key)?;
        is_key(&key, "the card", "key", expected, &secret)?;
        replace(&file, &Identity::new(ledger, secret, credential).to_toml(), Readers::Owner)?;
    }
    write_charter(folder, charter)
}

/// The last file that a node's folder gets.
pub(super) fn write_charter(folder: &Path, charter: &Charter) -> Result<(), NodeError> {
    replace(&folder.join("charter.toml"), &charter.to_toml(), Readers::All)
}

/// Writes the identities of an organisation whose keys stand in no file.
pub(super) fn write_identities(
    folder: &Path,
    ledger: Digest,
    keys: super::keys::MemberKeys,
    credentials: [types::Credential; 2],
) -> Result<Identity, NodeError> {
    let [session, client] = credentials;
    let session = Identity::new(ledger, keys.session, session);
    let client = Identity::new(ledger, keys.client, client);
    for ((_, file), identity) in KEYS.into_iter().zip([&session, &client]) {
        crate::files::write_secret(&folder.join(file), &identity.to_toml())?;
    }
    Ok(client)
}
