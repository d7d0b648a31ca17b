//! Backups of a node's folder into a folder or a bucket, while the node runs, and folders made of them.
//!
//! - [`back_up`]: writes what is new into a [`targets::Target`]: blocks, the charter, `node.toml`, the newest certified state.
//! - [`check`]: whether everything is there, is what was written, and is what the ledger's members have signed.
//! - [`restore`]: does the same, and makes a folder of it, with new keys.
//!
//! ```text
//!  node's folder ──▶ pieces, named by heights and digest ──▶ manifest with the next number, written last
//!   no lock, no word    they never change                      whoever falls before leaves the backup before
//!   with the node
//! ```
//!
//! # What is where in a target
//!
//! | file | content |
//! | --- | --- |
//! | `manifests/NUMBER.json` | a [`Manifest`]: which pieces make the backup, with their digests; the highest number counts |
//! | `blocks/FIRST-LAST-DIGEST.blocks` | records of blocks, as a file of the folder `ledger` has them ([`ledger::BlockFile`]) |
//! | `blocks/HEIGHT-DIGEST.anchor` | where the ledger begins, of a node that has joined from a checkpoint ([`ledger::Anchor`]) |
//! | `state/HEIGHT-DIGEST.index` | a certificate, everything of the state but its rows, and where these are |
//! | `state/HEIGHT-DIGEST.pack` | rows of groups of the state's tree; those that stay the same stay where they are |
//!
//! Heights and numbers have 20 digits. A name has the first 16 digits of the content's SHA-256, the manifest all of them.
//!
//! # What never is in a backup
//!
//! Keys, passwords and votes. A node that forgets its votes could vote twice, and votes of a backup are old ones. So a restored
//! node has another key, which votes for nothing before the charter names it ([`node::founding::Restored`]).

mod back_up;
mod blocks;
mod check;
mod error;
mod manifest;
mod node_folder;
mod places;
mod restore;
mod state_pieces;

pub use back_up::{Made, back_up};
pub use check::{Checked, check};
pub use error::BackupError;
pub use manifest::{BlocksPiece, Manifest, PieceFile, StatePieces};
pub use places::Place;
pub use restore::{Keys, Owner, Restoration, RestoreOptions, restore};
