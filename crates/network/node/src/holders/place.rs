//! `entente place`: which of an organisation's nodes holds which schemas.

use super::HolderConfig;
use super::folder::{HolderFolder, HolderOptions};
use super::tls::Own;
use crate::folder::NodeFolder;
use crate::store_choice::StoreChoice;
use crate::{NodeConfig, NodeError};
use std::net::SocketAddr;
use std::path::Path;
use types::PUBLIC_SCHEMA;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The holder's name.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it holds from its next start on.
    pub schemas: Vec<String>,
    /// Its folder is new.
    pub is_new: bool,
}

/// The holders of the validator in this folder.
///
/// # Errors
/// The folder is none.
pub fn placement(validator: &Path) -> Result<Vec<HolderConfig>, NodeError> {
    Ok(NodeFolder::open(validator)?.config.holders)
}

/// Lets the holder in a folder, which is made where there is none, hold these schemas from the next start of both nodes on. Whoever
/// has held them holds them no more.
///
/// # Errors
/// One of the folders is none, or cannot be written; the address is another node's; the schema stays with the validator.
pub fn place(
    validator: &Path,
    holder: &Path,
    schemas: &[String],
    (listen, store): (Option<SocketAddr>, StoreChoice),
) -> Result<Placed, NodeError> {
    let folder = NodeFolder::open(validator)?;
    if schemas.iter().any(|schema| schema == PUBLIC_SCHEMA) {
        return Err(NodeError::Options(format!(
            "the schema {PUBLIC_SCHEMA} stays with the validator; name others, or give its tables a schema of their own"
        )));
    }
    store.check()?;
    let is_new = !HolderFolder::is_one(holder);
    let mut config = folder.config.clone();
    let mut of = match is_new {
        false => HolderFolder::open(holder)?,
        true => {
            if holder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
                return Err(NodeError::FolderNotEmpty(holder.to_path_buf()));
            }
            let name = holder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let listen = listen.unwrap_or_else(|| next_address(&config));
            let (schemas, threads) = (Vec::new(), config.threads);
            let (store, memory_megabytes) = (store.kind, store.memory_megabytes);
            let validator = String::new();
            let options =
                HolderOptions { name, listen, schemas, validator, threads, store, memory_megabytes };
            HolderFolder { path: holder.to_path_buf(), charter: folder.charter.clone(), options }
        }
    };
    if of.charter.ledger() != folder.charter.ledger() {
        let (expected, found) = (folder.charter.ledger(), of.charter.ledger());
        return Err(NodeError::OtherLedger { path: holder.join("charter.toml"), expected, found });
    }
    if !is_new && let Some(listen) = listen {
        of.options.listen = listen;
    }
    super::check_name(&of.options.name).map_err(NodeError::Options)?;
    let taken = |other: &&HolderConfig| other.address == of.options.listen && other.name != of.options.name;
    if let Some(other) = config.holders.iter().find(taken) {
        return Err(NodeError::Options(format!(
            "{} is where the holder {} listens; choose another address with --listen",
            other.address, other.name
        )));
    }
    of.options.schemas = schemas.to_vec();
    of.options.schemas.sort();
    of.options.schemas.dedup();
    for other in &config.holders {
        if other.name != of.options.name
            && other.schemas.iter().any(|schema| of.options.schemas.contains(schema))
        {
            return Err(NodeError::Options(format!(
                "the holder {} holds one of these schemas: let it hold others first, then place this one, then start the nodes",
                other.name
            )));
        }
    }
    of.options.validator = Own::ensure(validator, folder.organisation_name())?;
    let certificate = of.write()?;
    let HolderOptions { name, listen: address, schemas, .. } = of.options;
    let holder = HolderConfig { name: name.clone(), address, certificate, schemas: schemas.clone() };
    match config.holders.iter_mut().find(|other| other.name == name) {
        Some(known) => *known = holder,
        None => config.holders.push(holder),
    }
    folder.choose_holders(&config.holders)?;
    Ok(Placed { name, address, schemas, is_new })
}

/// Behind the last of the validator's ports and of the holders'.
fn next_address(config: &NodeConfig) -> SocketAddr {
    let last = config.holders.iter().map(|holder| holder.address.port()).max();
    let port = last.unwrap_or_else(|| config.http.port().saturating_add(100)).saturating_add(1);
    SocketAddr::new(config.http.ip(), port)
}
