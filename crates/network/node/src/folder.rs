use crate::NodeError;
use crate::files::{Readers, read, remove, replace, write_secret};
use crate::founding::{CARD_FILE, NODE_KEY_FILE, differs_from_signed, not_vouched_for};
use crate::holders::HolderConfig;
use crate::kafka::KafkaConfig;
use crate::own_database::OwnDatabaseConfig;
use crate::pruning::Keeps;
use crate::store_choice::{StoreChoice, StoreKind};
use crypto::SecretKey;
use gateway::{Authentication, PlainHttp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml_edit::DocumentMut;
use types::{AnswerAt, Charter, ExecutionModel, Identity, Pipeline};

/// `node.toml`: where a node listens and how many threads it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Where it listens for the other organisations' nodes.
    pub listen: SocketAddr,
    /// Where it listens for Postgres clients.
    pub postgres: SocketAddr,
    /// Where it listens for HTTP.
    pub http: SocketAddr,
    /// What Postgres clients must show: `trust` believes those on the same machine, `scram-sha-256` nobody.
    #[serde(default, with = "as_text", skip_serializing_if = "is_default")]
    pub authentication: Authentication,
    /// Certificate chain in PEM for clients of Postgres and HTTP, the node's own first; from this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// Its private key in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Who may ask over HTTP in plain text: `everybody`, `loopback` for programs on the same machine, or `nobody`; `everybody` where
    /// nothing is said. TLS is answered in any case.
    #[serde(default, skip_serializing_if = "is_default")]
    pub plain_http: PlainHttp,
    /// Sessions of Postgres clients at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_max: Option<usize>,
    /// Transactions that one client may submit per second; as many as it likes where nothing is said. Sessions of
    /// Postgres clients are counted by role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_transactions_per_second: Option<u32>,
    /// Which lines go to the log, as `RUST_LOG` says it, which counts instead where it is set; `warn` where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_filter: Option<String>,
    /// Threads of the deterministic core.
    pub threads: usize,
    /// Where the rows of the state are: `memory` or `disk`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub store: StoreKind,
    /// How much memory a store on the disk may use, in units of 1,048,576 bytes; 256 where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_megabytes: Option<u64>,
    /// How many of the newest heights can be read with AS OF HEIGHT; 16 where nothing is said. Each costs memory for the rows
    /// that the block behind it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_heights: Option<usize>,
    /// How much the history of rows may have on the disk, in units of 1,048,576 bytes; 4096 where nothing is said, 0: none is
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_history_megabytes: Option<u64>,
    /// Of how many of the newest blocks transactions and receipts are kept; those of all where neither this nor `payload_days` says
    /// anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_blocks: Option<u64>,
    /// For how many days transactions and receipts of blocks are kept, by the time in the blocks. Where both are said, what either
    /// says is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_days: Option<u32>,
    /// How much memory the queries of all clients have together, with their results, in units of 1,048,576 bytes; 1024 where
    /// nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_memory_megabytes: Option<u64>,
    /// How much the temporary files of all queries may have on the disk together, for rows that do not fit into memory, in units of
    /// 1,048,576 bytes; 4096 where nothing is said, 0: all rows must fit into memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_disk_megabytes: Option<u64>,
    /// How much memory copies of tables in columns may have, which analytical queries read, in units of 1,048,576 bytes; 0: there are
    /// none. Where nothing is said, 1024, or an eighth of what the process may have where that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_memory_megabytes: Option<u64>,
    /// How much of the files of blocks and checkpoints is read again per second, to find damage, in units of 1,048,576 bytes;
    /// 0: nothing. Where nothing is said, so much that everything is read within a checkpoint interval, and 50 at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub_megabytes_per_second: Option<u64>,
    /// Where traces of this node's transactions go: the address of a collector that speaks OTLP over HTTP; nowhere where nothing is
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_endpoint: Option<String>,
    /// How validation is scheduled, where transactions are executed before they are ordered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pipeline: Pipeline,
    /// When clients are answered who do not say when: `attested`, once a quorum of organisations has come to the same
    /// outcome, or `recorded`, once the block is final and on this node's disk.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answer_at: AnswerAt,
    /// How a node that is behind gets to the newest block: from a `checkpoint` of other nodes, certified by a quorum, and the
    /// blocks behind it, or by a `replay` of all blocks, whose history it then has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub join: Join,
    /// So many blocks behind a node joins from a checkpoint; 1,000 where nothing is said. One without any block always does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_behind_blocks: Option<u64>,
    /// Where contracts ask when they are endorsed, by name: `http://…`, `https://…` or the path of a file, from this folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub oracles: BTreeMap<String, String>,
    /// Which schemas with members this node holds, of those that its organisation is a member of; all where nothing is said. For
    /// schemas that none of its nodes holds, the organisation is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Vec<String>>,
    /// Where the topic is that orders, where the charter says `ordering = "kafka"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kafka: Option<KafkaConfig>,
    /// Where the organisation keeps tables in a database of its own; nowhere where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<OwnDatabaseConfig>,
    /// Other nodes of the organisation that hold schemas for this one, which all members have; none where nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<HolderConfig>,
}

/// How a node that is behind gets to the newest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// From a certified checkpoint of other nodes, where there is one.
    #[default]
    Checkpoint,
    /// By executing every block.
    Replay,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An [`Authentication`] by its name.
mod as_text {
    use gateway::Authentication;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &Authentication, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(value.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Authentication, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A node's folder, read and checked whole.
///
/// ```text
///  charter.toml    the ledger's configuration, the same for every member
///  node.toml       NodeConfig
///  node.key        secret key that votes are signed with
///  session.toml    identity that signs for psql users
///  client.toml     identity of a client that signs for itself
///  passwords       what verifies the passwords of psql users, one per line
///  tls.crt tls.key certificate for clients of Postgres and HTTP, and its key
///  root.key        the organisation's root key (kept elsewhere in production)
///  ledger/         blocks, certificates, receipts
///  checkpoints/    which states there are at checkpoints, and their certificates
///  state/          the files of the newest state, and of checkpoints
///  history/        what became of rows; made again from blocks as far as checkpoints allow
///  database.password  of the organisation's own database
///  holders.crt holders.key  what other nodes of the organisation know this one by, where they hold schemas
///  outbox/         what the organisation's own database does not have yet
///  joining/        pieces of a checkpoint of other nodes, while the node joins
///  ordering/       this node's votes; never lost, copied or rolled back
///  ordering.other_voter  somebody else has voted with this node's key
///  exporting/ backing-up/  what exports and backups link while they read
///  temporary/      rows of queries that do not fit into memory, in files without names
///  card.toml and others  from the founding (`founding`), restored.toml from a backup; no node needs them any more
/// ```
pub struct NodeFolder {
    /// The folder.
    pub path: PathBuf,
    /// The founding charter.
    pub charter: Charter,
    /// Position of this node's organisation in the charter, or in an amended one.
    pub organisation: usize,
    /// The configuration.
    pub config: NodeConfig,
    /// Signs votes.
    pub node_key: SecretKey,
    /// Signs for psql users.
    pub session: Identity,
}

/// The file for the password of the organisation's own database.
const DATABASE_PASSWORD: &str = "database.password";

impl NodeConfig {
    /// Listens on these for nodes, for Postgres clients and for HTTP; everything else as where nothing is said.
    pub(crate) fn new([listen, postgres, http]: [SocketAddr; 3], threads: usize) -> NodeConfig {
        NodeConfig {
            listen,
            postgres,
            http,
            authentication: Authentication::default(),
            tls_certificate: Some("tls.crt".into()),
            tls_key: Some("tls.key".into()),
            plain_http: PlainHttp::Loopback,
            connections_max: None,
            log_filter: None,
            threads,
            store: StoreKind::default(),
            memory_megabytes: None,
            history_heights: None,
            row_history_megabytes: None,
            payload_blocks: None,
            payload_days: None,
            client_transactions_per_second: None,
            query_memory_megabytes: None,
            query_disk_megabytes: None,
            column_memory_megabytes: None,
            scrub_megabytes_per_second: None,
            trace_endpoint: None,
            pipeline: Pipeline::default(),
            answer_at: AnswerAt::default(),
            join: Join::default(),
            join_behind_blocks: None,
            oracles: BTreeMap::new(),
            schemas: None,
            kafka: None,
            database: None,
            holders: Vec::new(),
        }
    }
}

impl NodeFolder {
    /// Reads and checks everything that starting the node needs.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn open(path: &Path) -> Result<NodeFolder, NodeError> {
        let charter = open_charter(path)?;
        let config = open_config(path)?;
        check_pruning(path, &charter, &config)?;
        let node_key = open_node_key(path)?;
        let session = open_session(path, &charter)?;
        // Of a node whose key the founding charter does not name, the session's credential says whose it is.
        let organisation = usize::from(session.organisation());
        let named = charter.member(&node_key.public_key());
        if named.is_some_and(|named| named != organisation) {
            let reason = format!(
                "node key {} is that of another organisation than session.toml",
                node_key.public_key()
            );
            return Err(NodeError::Key { path: path.join(NODE_KEY_FILE), reason });
        }
        Ok(NodeFolder { path: path.to_path_buf(), charter, organisation, config, node_key, session })
    }

    /// Writes into `node.toml` where the rows of the state are from the next start on. Everything else in there stays, comments
    /// too.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn choose_store(&self, choice: StoreChoice) -> Result<(), NodeError> {
        let path = self.path.join("node.toml");
        let mut document: DocumentMut = read(&path)?.parse().map_err(|error: toml_edit::TomlError| {
            NodeError::Config { path: path.clone(), reason: error.to_string() }
        })?;
        document["store"] = toml_edit::value(choice.kind.name());
        match choice.memory_megabytes {
            Some(megabytes) => document["memory_megabytes"] = toml_edit::value(megabytes as i64),
            None => drop(document.remove("memory_megabytes")),
        }
        replace(&path, &document.to_string(), Readers::All)
    }

    /// Writes into `node.toml` where tables are kept in a database of the organisation's own from the next start on; `None`: nowhere.
    /// Everything else in there stays. A password goes into a file that its owner alone can read.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn choose_database(
        &self,
        config: Option<OwnDatabaseConfig>,
        password: Option<&str>,
    ) -> Result<(), NodeError> {
        let path = self.path.join("node.toml");
        let wrong = |reason: String| NodeError::Config { path: path.clone(), reason };
        let mut document: DocumentMut =
            read(&path)?.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        let secret = self.path.join(DATABASE_PASSWORD);
        document.remove("database");
        remove(&secret)?;
        if let Some(mut config) = config {
            if let Some(password) = password {
                write_secret(&secret, password)?;
                config.password_file = Some(DATABASE_PASSWORD.into());
            }
            let text = toml::to_string(&config).expect("plain fields");
            let table: DocumentMut =
                text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
            document["database"] = toml_edit::Item::Table(table.as_table().clone());
        }
        replace(&path, &document.to_string(), Readers::All)
    }

    /// Writes into `node.toml` where the topic is that orders, from the next start on. Everything else in there stays.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn choose_kafka(&self, config: &KafkaConfig) -> Result<(), NodeError> {
        let path = self.path.join("node.toml");
        let wrong = |reason: String| NodeError::Config { path: path.clone(), reason };
        let mut document: DocumentMut =
            read(&path)?.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        let text = toml::to_string(config).expect("plain fields");
        let table: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        document["kafka"] = toml_edit::Item::Table(table.as_table().clone());
        replace(&path, &document.to_string(), Readers::All)
    }

    /// Writes into `node.toml` for how long transactions and receipts of blocks are kept, from the next start on: what either says;
    /// for ever, where neither says anything. Everything else in there stays.
    ///
    /// # Errors
    /// The settings make no sense, or the file cannot be written.
    pub fn choose_pruning(&self, blocks: Option<u64>, days: Option<u32>) -> Result<(), NodeError> {
        let path = self.path.join("node.toml");
        let wrong = |reason: String| NodeError::Config { path: path.clone(), reason };
        let config = NodeConfig { payload_blocks: blocks, payload_days: days, ..self.config.clone() };
        check_pruning(&self.path, &self.charter, &config)?;
        let mut document: DocumentMut =
            read(&path)?.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        for (name, value) in [("payload_blocks", blocks), ("payload_days", days.map(u64::from))] {
            document.remove(name);
            if let Some(value) = value {
                document[name] = toml_edit::value(i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
        replace(&path, &document.to_string(), Readers::All)
    }

    /// Writes into `node.toml` which other nodes of the organisation hold schemas from the next start on. Everything else in there
    /// stays.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn choose_holders(&self, holders: &[HolderConfig]) -> Result<(), NodeError> {
        let path = self.path.join("node.toml");
        let wrong = |reason: String| NodeError::Config { path: path.clone(), reason };
        let mut document: DocumentMut =
            read(&path)?.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
        document.remove("holders");
        if !holders.is_empty() {
            let mut tables = toml_edit::ArrayOfTables::new();
            for holder in holders {
                let text = toml::to_string(holder).expect("plain fields");
                let table: DocumentMut =
                    text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
                tables.push(table.as_table().clone());
            }
            document["holders"] = toml_edit::Item::ArrayOfTables(tables);
        }
        replace(&path, &document.to_string(), Readers::All)
    }

    /// The password of the organisation's own database, where `node.toml` names a file with it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn database_password(&self) -> Result<Option<String>, NodeError> {
        let file = self.config.database.as_ref().and_then(|database| database.password_file.as_ref());
        let Some(file) = file else { return Ok(None) };
        Ok(Some(read(&self.path.join(file))?.trim_end_matches(['\n', '\r']).to_string()))
    }

    /// Name of this node's organisation, if the founding charter has it.
    pub fn organisation_name(&self) -> &str {
        self.charter.organisations.get(self.organisation).map_or("a later member", |own| &own.name)
    }
}

/// What `node.toml` says.
pub(crate) fn open_config(folder: &Path) -> Result<NodeConfig, NodeError> {
    let path = folder.join("node.toml");
    toml::from_str(&read(&path)?).map_err(|error| NodeError::Config { path, reason: error.to_string() })
}

/// Refuses to prune what will be needed.
fn check_pruning(folder: &Path, charter: &Charter, config: &NodeConfig) -> Result<(), NodeError> {
    let wrong = |reason| Err(NodeError::Config { path: folder.join("node.toml"), reason });
    if let Err(reason) = Keeps::check(config) {
        return wrong(reason);
    }
    let prunes = config.payload_blocks.is_some() || config.payload_days.is_some();
    match prunes && charter.execution == ExecutionModel::WhateverThenAgree {
        true => wrong(
            "payload_blocks and payload_days: where databases execute scripts (whatever-then-agree) all blocks are kept, because a \
             database that is lost is made again from them"
                .to_string(),
        ),
        false => Ok(()),
    }
}

/// The key that signs votes.
pub(crate) fn open_node_key(folder: &Path) -> Result<SecretKey, NodeError> {
    let path = folder.join(NODE_KEY_FILE);
    SecretKey::from_hex(&read(&path)?).map_err(|error| NodeError::Key { path, reason: error.to_string() })
}

/// The identity that signs for psql users, which is for the charter's ledger.
pub(crate) fn open_session(folder: &Path, charter: &Charter) -> Result<Identity, NodeError> {
    let path = folder.join("session.toml");
    if !path.exists() && folder.join(CARD_FILE).exists() {
        let not_installed = || NodeError::NotInstalled { folder: folder.to_path_buf() };
        return Err(not_vouched_for(folder).unwrap_or_else(not_installed));
    }
    let session = Identity::from_toml(&read(&path)?)
        .map_err(|error| NodeError::Identity { path: path.clone(), error })?;
    match session.ledger() == charter.ledger() {
        true => Ok(session),
        false => {
            let (expected, found) = (charter.ledger(), session.ledger());
            Err(NodeError::OtherLedger { path, expected, found })
        }
    }
}

/// The charter in a node's folder, which all founders have signed.
pub(crate) fn open_charter(folder: &Path) -> Result<Charter, NodeError> {
    let path = folder.join("charter.toml");
    if !path.exists() && folder.join(CARD_FILE).exists() {
        return Err(NodeError::NotInstalled { folder: folder.to_path_buf() });
    }
    Charter::from_toml(&read(&path)?)
        .map_err(|error| differs_from_signed(folder, &path).unwrap_or(NodeError::Charter { path, error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Network, NetworkOptions};

    fn options() -> NetworkOptions {
        NetworkOptions {
            organisations: 4,
            port_base: 7000,
            threads: 1,
            pipeline: Pipeline::Serial,
            store: StoreChoice::default(),
            charter: Charter::with_defaults("test", 1),
        }
    }

    #[test]
    fn a_new_network_can_be_opened_and_mistakes_are_named() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let network = Network::create(place.path(), &options()).expect("an empty folder");
        for (member, folder) in network.folders.iter().enumerate() {
            let opened = NodeFolder::open(folder).expect("what create wrote");
            assert_eq!(opened.organisation, member);
            assert_eq!(opened.charter, network.charter);
            let mut files: Vec<String> = folder
                .read_dir()
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            files.sort();
            let expected = ["charter.toml", "client.toml", "node.key", "node.toml"];
            assert_eq!(files, [&expected[..], &["root.key", "session.toml", "tls.crt", "tls.key"]].concat());
        }
        let again = Network::create(place.path(), &options());
        assert!(matches!(again, Err(NodeError::FolderNotEmpty(_))));

        let folder = &network.folders[1];
        std::fs::copy(network.folders[2].join("node.toml"), folder.join("node.key")).expect("copied");
        let error = NodeFolder::open(folder).err().expect("no key").to_string();
        assert!(error.contains("node.key"), "{error}");

        std::fs::copy(network.folders[2].join("node.key"), folder.join("node.key")).expect("copied");
        let error = NodeFolder::open(folder).err().expect("another member's key").to_string();
        assert!(error.contains("another organisation"), "{error}");
        std::fs::write(folder.join("node.key"), SecretKey::generate().to_hex()).expect("written");
        let opened = NodeFolder::open(folder).expect("a key that an amendment may name");
        assert_eq!(opened.organisation, 1);
    }

    #[test]
    fn a_folder_that_a_newer_program_has_written_is_named_with_what_to_do() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let network = Network::create(place.path(), &options()).expect("an empty folder");
        let folder = &network.folders[0];
        let says = |file: &str, change: &dyn Fn(&str) -> String| {
            let (path, text) = (folder.join(file), read(&folder.join(file)).expect("written"));
            std::fs::write(&path, change(&text)).expect("written");
            let error = NodeFolder::open(folder).err().expect("it does not know that").to_string();
            std::fs::write(&path, text).expect("written");
            assert!(error.contains(file), "{error}");
            error
        };
        for file in ["node.toml", "charter.toml"] {
            let error = says(file, &|text| format!("columns = \"lazy\"\n{text}"));
            assert!(error.contains("unknown field `columns`, expected one of"), "{error}");
            assert!(
                error.contains("if a newer version of Entente wrote it, install that version"),
                "{error}"
            );
        }
        // The rules that a ledger was founded with, as its members have signed them.
        let mut newer = network.charter.clone();
        newer.execution_version = types::ExecutionVersion::NEWEST.number() + 1;
        for member in 0..4 {
            let root = read(&network.folders[member].join("root.key")).expect("written");
            newer.sign(member, &SecretKey::from_hex(&root).expect("a key"));
        }
        let error = says("charter.toml", &|_| newer.to_toml());
        let known = types::ExecutionVersion::NEWEST;
        let expected = format!(
            "execution version {} is needed, this program knows versions 1 to {known}",
            known.number() + 1
        );
        assert!(error.contains(&expected), "{error}");
        assert!(error.contains("install a newer version of Entente"), "{error}");
        NodeFolder::open(folder).expect("as it was");
    }

    #[test]
    fn three_organisations_are_too_few() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let few = NetworkOptions { organisations: 3, ..options() };
        let error = Network::create(place.path(), &few).err().expect("too few").to_string();
        assert!(error.contains("at least 4 organisations"), "{error}");
    }
}
