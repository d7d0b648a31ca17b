//! How a network comes to be. Each organisation makes its keys on its own machine; cards, a draft of the charter and
//! signatures go from one to the other; each puts the charter that all have signed into its folder.
//!
//! ```text
//!  make_keys ─▶ card.toml ──▶ Charter::of_cards ─▶ draft ──▶ sign ─▶ NAME.signature.toml ──▶ assemble ─▶ charter ──▶ install
//!                                                             └───▶ credentials.toml, stays in the organisation ────────▲
//! ```
//!
//! `entente init` ([`Network::create`]) does the same for all members at once. Whoever comes later makes keys in the same way and
//! accepts its membership ([`accept`]). Only [`make_keys`], [`sign`] and [`accept`] need the root key; with [`make_root`] and
//! [`sign_card`] it can stay on a machine that has nothing else.
//!
//! Whoever has lost a node makes new keys, and the root key vouches for them ([`renew`]); a folder that was restored from a backup
//! says so ([`Restored`]).
//!
//! What a folder has between keys and charter:
//!
//! ```text
//!  card.toml             the member card, to be mailed
//!  session.key client.key  become session.toml and client.toml with the charter
//!  signed.toml           the draft that this organisation has signed
//!  NAME.signature.toml   its signature, to be mailed
//!  credentials.toml      the root key's word for session.key and client.key on that ledger
//! ```

mod assemble;
mod install;
mod keys;
mod network;
mod restored;
mod root;
mod sign;
mod signed;
#[cfg(test)]
mod tests;

pub use assemble::assemble;
pub use install::{Installed, accept, install};
pub use keys::{KeysOptions, make_keys};
pub use network::{Network, NetworkOptions};
pub(crate) use restored::not_vouched_for;
pub use restored::{Restored, read_new_card, renew, renew_with};
pub use root::{make_root, sign_card};
pub use sign::{Signed, sign};
pub(crate) use signed::differs_from_signed;
pub use signed::read_unchecked;

use crate::NodeError;
use crate::files::read;
use std::path::Path;
use types::{Charter, CharterSignature, FoundingError, MemberCard};

/// The member card.
pub(crate) const CARD_FILE: &str = "card.toml";
const SIGNED_FILE: &str = "signed.toml";
const CREDENTIALS_FILE: &str = "credentials.toml";
pub(crate) const ROOT_KEY_FILE: &str = "root.key";
pub(crate) const NODE_KEY_FILE: &str = "node.key";

fn named(path: &Path) -> impl FnOnce(FoundingError) -> NodeError {
    move |error| NodeError::Founding { path: path.to_path_buf(), error }
}

/// Reads a member card and checks it whole.
///
/// # Errors
/// Names the file, and what was altered or is missing.
pub fn read_card(path: &Path) -> Result<MemberCard, NodeError> {
    MemberCard::from_toml(&read(path)?).map_err(named(path))
}

/// Reads a charter that need not be signed by all yet, and checks it whole.
///
/// # Errors
/// Names the file, and what was altered or cannot be.
pub fn read_draft(path: &Path) -> Result<Charter, NodeError> {
    Charter::from_draft(&read(path)?).map_err(named(path))
}

/// Reads a signature over a charter.
///
/// # Errors
/// Names the file, and what was altered.
pub fn read_signature(path: &Path) -> Result<CharterSignature, NodeError> {
    CharterSignature::from_toml(&read(path)?).map_err(named(path))
}
