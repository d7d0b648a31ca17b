//! What stands beside the tables of an export, in `_entente/`.
//!
//! | file | content |
//! | --- | --- |
//! | `ledger.json` | whose tables these are, and who writes them: [`Owner`] |
//! | `checkpoints/{height}.json` | a checkpoint that was exported whole: [`Manifest`] |
//! | `checkpoints/{height}.proof` | its certificate and what proves its tables: [`proofs::TablesProof`] |
//! | `latest.json` | the newest of those manifests, written last |
//! | `writing.json` | what an export is writing, or has not finished: [`Writing`] |
//!
//! Heights have 20 digits.

use serde::{Deserialize, Serialize};
use types::CheckpointCertificate;

pub(crate) const OWNER: &str = "_entente/ledger.json";
pub(crate) const LATEST: &str = "_entente/latest.json";
pub(crate) const WRITING: &str = "_entente/writing.json";
pub(crate) const KIND: &str = "entente export 1";

pub(crate) fn manifest_path(height: u64) -> String {
    format!("_entente/checkpoints/{height:020}.json")
}

pub(crate) fn proof_path(height: u64) -> String {
    format!("_entente/checkpoints/{height:020}.proof")
}

/// Whose tables these are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    /// Digest of the founding charter.
    pub(crate) ledger: String,
    /// Which node's folder they are written from.
    pub(crate) writer: String,
}

/// An attempt to export a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Writing {
    pub(crate) kind: String,
    pub(crate) height: u64,
    /// What the names of its data files end with.
    pub(crate) attempt: String,
    /// Folders of the tables that it writes.
    pub(crate) folders: Vec<String>,
}

/// A checkpoint that was exported whole: which version of each Delta table it is. For readers; what proves it is beside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What this is.
    pub kind: String,
    /// Digest of the founding charter.
    pub ledger: String,
    /// Behind which block.
    pub height: u64,
    /// Digest of that block's outcome header.
    pub outcome: String,
    /// Root of the state.
    pub state_root: String,
    /// Signatures of a quorum under what these four say.
    pub signatures: Vec<ManifestSignature>,
    /// The tables, by name.
    pub tables: Vec<ManifestTable>,
}

/// A member's signature.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestSignature {
    /// Its position in the charter.
    pub organisation: u16,
    /// In hexadecimal digits.
    pub signature: String,
}

/// A table of an export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestTable {
    /// Its name in the ledger.
    pub name: String,
    /// Where its Delta table is, below the folder of the export.
    pub folder: String,
    /// Which version of that.
    pub version: u64,
    /// How many rows it has.
    pub rows: u64,
}

impl Manifest {
    pub(crate) fn new(certificate: &CheckpointCertificate, tables: Vec<ManifestTable>) -> Manifest {
        let statement = &certificate.statement;
        let signatures = certificate.signatures.iter().map(|(organisation, signature)| ManifestSignature {
            organisation: *organisation,
            signature: signature.to_string(),
        });
        Manifest {
            kind: KIND.to_string(),
            ledger: statement.ledger.to_string(),
            height: statement.height,
            outcome: statement.outcome.to_string(),
            state_root: statement.state_root.to_string(),
            signatures: signatures.collect(),
            tables,
        }
    }
}

/// As a file has it.
pub(crate) fn to_json(content: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(content).expect("text and numbers are JSON");
    text.push(b'\n');
    text
}
