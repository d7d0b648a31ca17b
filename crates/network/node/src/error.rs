use crypto::Digest;
use std::path::PathBuf;
use types::{CharterError, FoundingError, IdentityError};

/// Why a node cannot start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The ordering service has ended, which nobody told it to.
    #[error(
        "the ordering service has failed: the log says why (a full disk?); mend it and start the node again, it fetches \
         what it missed"
    )]
    OrderingEnded,
    /// A file of the node's folder cannot be read or written.
    #[error("cannot {action} {path}: {error}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
    /// `node.toml` is not one.
    #[error(
        "{path} is no node configuration as `entente keys` writes it: {reason}; correct the file; if a newer version of \
         Entente wrote it, install that version"
    )]
    Config {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The charter cannot be used.
    #[error("{path}: {error}{}", advice(error))]
    Charter {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: CharterError,
    },
    /// A card, a draft or a signature.
    #[error("{path}: {error}")]
    Founding {
        /// Which file.
        path: PathBuf,
        /// Why it is refused.
        error: FoundingError,
    },
    /// The charter in a node's folder is not the one that its organisation has signed.
    #[error(
        "{path} is not the charter that this organisation has signed: {differences}; install the one that was signed"
    )]
    Altered {
        /// Which file.
        path: PathBuf,
        /// Field by field.
        differences: String,
    },
    /// A folder with keys, and without a charter.
    #[error(
        "{folder} has keys and no charter yet: when all founders have signed it, run `entente charter install --dir {folder}` \
         with the charter"
    )]
    NotInstalled {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder that was restored, with keys for which nobody vouches.
    #[error(
        "{folder} was restored from a backup, and the root key does not vouch for its new keys yet: run `entente accept-membership \
         --replace-key --dir {folder} --charter {folder}/charter.toml --position {position}` if root.key is in it; else do so where \
         the root key is, and bring card.toml and credentials.toml from there (docs/backup.md)"
    )]
    NotVouchedFor {
        /// The folder.
        folder: PathBuf,
        /// The organisation's position.
        position: u16,
    },
    /// A folder without a member card.
    #[error("{folder} has no card.toml and keys of a node: expected a folder that `entente keys` has made")]
    NoCard {
        /// The folder.
        folder: PathBuf,
    },
    /// A folder without a root key.
    #[error(
        "{folder} has no root.key: run this where the root key is, in a folder with the key and card.toml (`entente root-key`)"
    )]
    NoRootKey {
        /// The folder.
        folder: PathBuf,
    },
    /// A node's folder in which nobody has signed.
    #[error(
        "{folder} has no credentials.toml: sign the charter first (`entente charter sign`); if the root key is elsewhere, bring \
         that file from there"
    )]
    NoCredentials {
        /// The folder.
        folder: PathBuf,
    },
    /// A root key that has signed another card.
    #[error(
        "{path} is another card that this root key has signed: one organisation has one card in a network; where the node's \
         keys are lost, `--replace` signs the new one; for another network make another root key"
    )]
    OtherCard {
        /// The card that was signed.
        path: PathBuf,
    },
    /// Another charter where one is already.
    #[error("{path} is the charter of ledger {expected}, not of {found}; nothing was changed. {differences}")]
    OtherCharter {
        /// The charter that is there.
        path: PathBuf,
        /// Its digest.
        expected: Digest,
        /// That of the one that came.
        found: Digest,
        /// Field by field.
        differences: String,
    },
    /// Another draft than the one that was signed.
    #[error(
        "{path} is the charter of ledger {found}; this organisation has signed ledger {signed}. {differences}. Nothing was \
         changed. To sign this one too: `entente charter sign --replace`; the signature over the other stays good for whoever has it"
    )]
    SignedBefore {
        /// The charter that came.
        path: PathBuf,
        /// Digest of the one that was signed.
        signed: Digest,
        /// Digest of the one that came.
        found: Digest,
        /// Field by field.
        differences: String,
    },
    /// Certificate and key for TLS.
    #[error("{certificate} and {key}: {error}")]
    Certificates {
        /// `tls_certificate` of `node.toml`.
        certificate: PathBuf,
        /// `tls_key` of `node.toml`.
        key: PathBuf,
        /// What is wrong with them.
        error: gateway::CertificateError,
    },
    /// A key file holds no key.
    #[error("{path}: {reason}")]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The session identity does not fit.
    #[error("{path}: {error}")]
    Identity {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: IdentityError,
    },
    /// The session identity is another network's.
    #[error(
        "{path} signs for ledger {found}, the charter is ledger {expected}: a folder belongs to one ledger; take the charter that \
         was installed in it, or a folder that `entente keys` has made for the other"
    )]
    OtherLedger {
        /// Which file.
        path: PathBuf,
        /// Digest of the charter.
        expected: Digest,
        /// Ledger of the identity.
        found: Digest,
    },
    /// The folder to initialise is not empty.
    #[error("{0} exists and is not empty; choose another folder, or remove it")]
    FolderNotEmpty(PathBuf),
    /// Options of a new network make no sense.
    #[error("{0}")]
    Options(String),
    /// An oracle of `node.toml` that cannot be.
    #[error("node.toml: the oracle {name} cannot be: {reason}")]
    Oracle {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The charter's address of another organisation's endorser.
    #[error("the gateway {gateway} of the charter cannot be asked for endorsements: {reason}")]
    Endorser {
        /// The address.
        gateway: String,
        /// Why not.
        reason: String,
    },
    /// The ledger's files.
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    /// The ordering service.
    #[error(transparent)]
    Ordering(#[from] ordering::OrderingError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A schema with members cannot go on; others do.
    #[error(transparent)]
    Schema(#[from] engine::SchemaError),
    /// Another process with this node's key.
    #[error(
        "a process with this node's key runs already: it answers at {gateway}, where the charter says that this node is. Two nodes \
         with one key count as a member that lies, so nothing was started. Stop the other one first; who moves a node stops it, moves \
         its whole folder, and starts it there"
    )]
    RunsElsewhere {
        /// Where it answers.
        gateway: String,
    },
    /// The store of the state.
    #[error(transparent)]
    Store(#[from] state::StoreError),
    /// The gateway.
    #[error(transparent)]
    Gateway(#[from] gateway::GatewayError),
    /// A certificate that does not prove its block.
    #[error(
        "the block at height {height} has no valid certificate: {reason}; the data folder or a member is not to be \
         trusted"
    )]
    Certificate {
        /// Which block.
        height: u64,
        /// What is wrong.
        reason: String,
    },
    /// Replay gives another state than was recorded.
    #[error(
        "replay of block {height} gives state {found}, the ledger recorded {expected}: the ledger or this program was \
         changed; restore the folder `ledger` from a copy"
    )]
    Diverged {
        /// The first height that differs.
        height: u64,
        /// Recorded state digest.
        expected: Digest,
        /// Replayed state digest.
        found: Digest,
    },
    /// Neither a checkpoint nor all blocks are there.
    #[error(
        "no checkpoint in this folder can be used, and the ledger has transactions from height {first} on only, because this node \
         joined from a certified checkpoint, or has pruned or redacted what came before: move the folder `ledger` away (never `ordering`) and \
         start the node: it joins again"
    )]
    NoState {
        /// Height of the first block with transactions.
        first: u64,
    },
    /// This node's outcomes are not those of a quorum, whatever it starts from.
    #[error(
        "the blocks from height {height} on come to other outcomes here than at a quorum of organisations, also when all \
         blocks are executed again ({found}): this program or the ledger was changed, or the ledger halts for all"
    )]
    NotHealed {
        /// The first height.
        height: u64,
        /// What was found.
        found: String,
    },
    /// A state that is not the one that a quorum has attested.
    #[error("the state behind block {height}: expected the root {expected}, found {found}")]
    State {
        /// The height of the checkpoint.
        height: u64,
        /// What a quorum has attested.
        expected: Digest,
        /// What the state has.
        found: Digest,
    },
    /// What a block came to in a schema with members is not what a quorum of these has attested.
    #[error(
        "its outcome at block {height} is not the one that a quorum of its members has attested, whose certificate stands in block \
         {block}"
    )]
    SchemaDiffers {
        /// Height of the block.
        height: u64,
        /// Height of the block with the certificate.
        block: u64,
    },
    /// Blocks are missing between ledger and ordering.
    #[error(
        "the ledger ends at height {ledger}, ordering delivers height {delivered} and no longer has the blocks between; \
         restore the folder `ledger` from a copy"
    )]
    Gap {
        /// Tip of the ledger.
        ledger: u64,
        /// Height that came.
        delivered: u64,
    },
    /// A thread could not be started.
    #[error("cannot start the thread {name}: {error}")]
    Thread {
        /// Which.
        name: &'static str,
        /// What the operating system says.
        error: std::io::Error,
    },
}

/// What to do about a charter's file; of other errors they say it themselves.
fn advice(error: &CharterError) -> &'static str {
    match error {
        CharterError::Malformed(_) => {
            "; take the charter as its members have signed it; if a newer version of Entente wrote it, install that version"
        }
        _ => "",
    }
}

impl NodeError {
    /// That of the store of the state, if this is one.
    pub fn store_failure(&self) -> Option<&state::StoreError> {
        match self {
            NodeError::Store(failure) | NodeError::Engine(engine::EngineError::Store(failure)) => {
                Some(failure)
            }
            _ => None,
        }
    }
}
