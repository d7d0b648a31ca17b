//! Nodes of one organisation that share its schemas out (crate `sparse`), over the network.
//!
//! The organisation's member of the ledger is the validator. Its `node.toml` names holders, each with its schemas; a holder's
//! folder has a `holder.toml` instead of a `node.toml`. Each knows the other's certificate, so nobody else can ask or answer.
//!
//! ```text
//!  validator: engine ─▶ sparse::SharedStores, Splitter ─▶ TcpLink ══TLS══▶ HolderNode ─▶ sparse::Holder ─▶ its own store
//! ```

mod folder;
mod link;
mod place;
mod serving;
mod tls;

pub use folder::{HolderFolder, HolderOptions};
pub use place::{Placed, place, placement};
pub use serving::HolderNode;

use crate::NodeError;
use crate::folder::NodeConfig;
use gateway::HolderStatus;
use link::TcpLink;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sparse::{KnownHolder, KnownHolders, Link, Placement, SharedStores, Splitter};
use state::{StoreError, Stores};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use types::{Charter, PUBLIC_SCHEMA};

/// A holder, as the validator's `node.toml` names it: `[[holders]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HolderConfig {
    /// What it is called.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its certificate, as hexadecimal digits.
    pub certificate: String,
    /// The schemas that it holds.
    pub schemas: Vec<String>,
}

/// The holders of a validator, and what runs at them.
pub(crate) struct Holders {
    pub(crate) stores: Arc<SharedStores>,
    pub(crate) splitter: Arc<Splitter>,
    links: Vec<Arc<TcpLink>>,
    names: Vec<HolderConfig>,
}

impl Holders {
    /// The holders that `node.toml` names; `None`: there are none.
    ///
    /// # Errors
    /// What of `node.toml` cannot be.
    pub(crate) fn open(
        folder: &Path,
        charter: &Charter,
        config: &NodeConfig,
        local: &Arc<dyn Stores>,
    ) -> Result<Option<Arc<Holders>>, NodeError> {
        let file = KnownFile(folder.join("holders.known"));
        let known = file.read()?;
        // Who has given up its holders may have states that need them.
        if config.holders.is_empty() && known.is_empty() {
            return Ok(None);
        }
        check(config).map_err(|reason| NodeError::Config { path: folder.join("node.toml"), reason })?;
        let link = |holder: &HolderConfig| TcpLink::new(holder, &tls::Own::read(folder)?).map(Arc::new);
        let links = config.holders.iter().map(link).collect::<Result<Vec<_>, _>>()?;
        let placement =
            Placement::of_schemas(config.holders.iter().map(|holder| holder.schemas.clone()).collect());
        let to = links.iter().map(|link| link.clone() as Arc<dyn Link>).collect();
        let known = Arc::new(Known { file, holders: Mutex::new(known) });
        let stores = Arc::new(SharedStores::new(local.clone(), charter.ledger(), placement, to, known));
        let splitter = Arc::new(Splitter::new(stores.clone()));
        let names = config.holders.clone();
        Ok(Some(Arc::new(Holders { stores, splitter, links, names })))
    }

    /// Nobody waits for holders any more.
    pub(crate) fn stop(&self) {
        self.links.iter().for_each(|link| link.stop());
    }

    /// As `GET /status` shows them.
    pub(crate) fn status(&self) -> Vec<HolderStatus> {
        let rows = self.stores.rows_by_holder();
        let status = |(number, holder): (usize, &HolderConfig)| HolderStatus {
            name: holder.name.clone(),
            address: holder.address.to_string(),
            schemas: holder.schemas.clone(),
            rows: rows.get(number).copied(),
        };
        self.names.iter().enumerate().map(status).collect()
    }

    /// What runs where and how much has gone there, for metrics.
    pub(crate) fn metrics(&self) -> String {
        let (there, here) = self.splitter.counts();
        let mut text = format!(
            "# HELP entente_split_transactions Transactions of blocks that were split, by where they ran.\n\
             # TYPE entente_split_transactions counter\n\
             entente_split_transactions_total{{at=\"holder\"}} {there}\n\
             entente_split_transactions_total{{at=\"validator\"}} {here}\n\
             # HELP entente_holder_bytes Bytes between this node and a holder.\n\
             # TYPE entente_holder_bytes counter\n"
        );
        for (link, holder) in self.links.iter().zip(&self.names) {
            let (sent, received) = link.bytes();
            let name = &holder.name;
            text += &format!(
                "entente_holder_bytes_total{{holder=\"{name}\",way=\"sent\"}} {sent}\n\
                 entente_holder_bytes_total{{holder=\"{name}\",way=\"received\"}} {received}\n"
            );
        }
        text
    }
}

/// `holders.known` in the validator's folder: a line for each holder that has had rows, with its name and the first block behind which
/// it had some.
struct KnownFile(PathBuf);

impl KnownFile {
    /// # Errors
    /// The file cannot be read, or has something else in it.
    fn read(&self) -> Result<Vec<KnownHolder>, NodeError> {
        let path = || self.0.clone();
        let text = match std::fs::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| NodeError::File { action: "read", path: path(), error })?,
        };
        let holder = |line: &str| {
            let (name, since) = line.split_once(' ')?;
            Some(KnownHolder { name: name.to_string(), since: since.parse().ok()? })
        };
        let wrong = |line: &str| NodeError::Config {
            path: path(),
            reason: format!("expected a name and a height, found `{line}`; remove the folder state/ with it"),
        };
        text.lines().map(|line| holder(line).ok_or_else(|| wrong(line))).collect()
    }
}

/// What the file says, kept in memory.
struct Known {
    file: KnownFile,
    holders: Mutex<Vec<KnownHolder>>,
}

impl KnownHolders for Known {
    fn known(&self) -> Vec<KnownHolder> {
        self.holders.lock().clone()
    }

    fn remember(&self, known: &[KnownHolder]) -> Result<(), StoreError> {
        let line = |KnownHolder { name, since }: &KnownHolder| format!("{name} {since}\n");
        let (path, text) = (&self.file.0, known.iter().map(line).collect::<String>());
        let unfinished = path.with_extension("unfinished");
        let written = std::fs::File::create(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let written = written.and_then(|()| std::fs::rename(&unfinished, path));
        // The name is on the disk when the folder is.
        let written = written.and_then(|()| std::fs::File::open(path.parent().unwrap_or(path))?.sync_all());
        written.map_err(|error| StoreError::write(path.display(), error))?;
        *self.holders.lock() = known.to_vec();
        Ok(())
    }
}

/// Whether a holder can be called so, in files and in metrics.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!(
            "expected a holder's name of letters, digits and - _ ., found `{name}`; call its folder so"
        )),
    }
}

/// Whether a validator's `node.toml` can be.
pub(crate) fn check(config: &NodeConfig) -> Result<(), String> {
    config.holders.iter().try_for_each(|holder| check_name(&holder.name))?;
    let mut held: Vec<&str> = Vec::new();
    for holder in &config.holders {
        if holder.schemas.iter().any(|schema| schema == PUBLIC_SCHEMA) {
            return Err(format!(
                "holders: {} cannot hold the schema {PUBLIC_SCHEMA}, which stays with the validator; name others",
                holder.name
            ));
        }
        for schema in &holder.schemas {
            if held.contains(&schema.as_str()) {
                return Err(format!("holders: expected one node that holds the schema {schema}, found two"));
            }
            held.push(schema);
        }
    }
    let mut names: Vec<&str> = config.holders.iter().map(|holder| holder.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("holders: expected names that differ, found {} twice", twice[0]));
    }
    if config.row_history_megabytes.is_some_and(|megabytes| megabytes > 0) {
        let reason = "row_history_megabytes: which transaction has changed a row at a holder, the validator does not know; leave it \
                      out where there are holders";
        return Err(reason.to_string());
    }
    if config.database.is_some() {
        let reason = "database: tables in the organisation's own database and schemas at holders do not go together yet; keep one";
        return Err(reason.to_string());
    }
    Ok(())
}
