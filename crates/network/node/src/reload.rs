//! Reads `node.toml` again while the node runs: what can change without a restart changes, the rest is named.

use crate::access;
use crate::folder::open_config;
use crate::live::Live;
use crate::local::query_bytes;
use crate::{NodeConfig, NodeError};
use gateway::{Certificate, SharedAccess};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use types::MemoryPool;

/// Settings that a running node takes up.
const TAKEN_UP: [&str; 10] = [
    "authentication",
    "tls_certificate",
    "tls_key",
    "plain_http",
    "connections_max",
    "client_transactions_per_second",
    "query_memory_megabytes",
    "column_memory_megabytes",
    "answer_at",
    "log_filter",
];

/// What came of reading the settings again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings that hold from now on.
    pub applied: Vec<String>,
    /// Settings that are others than those that the node started with, and hold from its next start on.
    pub at_restart: Vec<String>,
}

/// What a node needs for reading its settings again.
pub(crate) struct Reloading {
    pub(crate) folder: PathBuf,
    /// Of the node's key, which does not change while it runs.
    node_certificate: Certificate,
    /// As the node started with them.
    started: NodeConfig,
    /// What holds now.
    current: Mutex<NodeConfig>,
    pub(crate) access: SharedAccess,
    pub(crate) live: Arc<Live>,
    pub(crate) query_memory: Arc<MemoryPool>,
    /// Whether there are copies of tables in columns at all.
    pub(crate) has_columns: bool,
}

impl Reloading {
    pub(crate) fn new(
        (folder, config): (PathBuf, &NodeConfig),
        (access, node_certificate): (SharedAccess, Certificate),
        live: Arc<Live>,
        (query_memory, has_columns): (Arc<MemoryPool>, bool),
    ) -> Reloading {
        let (started, current) = (config.clone(), Mutex::new(config.clone()));
        Reloading { folder, node_certificate, started, current, access, live, query_memory, has_columns }
    }

    /// Reads the file, and what it names, and takes it up. `check`: what else must be right.
    ///
    /// # Errors
    /// What is wrong with the file, or with one that it names; nothing has changed then.
    pub(crate) fn reload(
        &self,
        check: impl FnOnce(&NodeConfig) -> Result<(), String>,
    ) -> Result<Reloaded, NodeError> {
        // One at a time.
        let mut current = self.current.lock();
        let config = open_config(&self.folder)?;
        check(&config).map_err(|reason| NodeError::Config { path: self.folder.join("node.toml"), reason })?;
        let access = access::open(&self.folder, &config, Some(&self.node_certificate))?;
        let mut reloaded = Reloaded::default();
        for name in differing(&current, &config) {
            if self.takes_up(&name) {
                reloaded.applied.push(name);
            }
        }
        reloaded.at_restart =
            differing(&self.started, &config).into_iter().filter(|name| !self.takes_up(name)).collect();
        if access.certificate != self.access.get().certificate
            && !reloaded.applied.iter().any(|name| name.starts_with("tls_"))
        {
            reloaded.applied.push("the certificate for clients".to_string());
        }
        self.access.set(access);
        self.live.change(&config);
        self.query_memory.set_most(query_bytes(config.query_memory_megabytes));
        *current = config;
        Ok(reloaded)
    }

    fn takes_up(&self, name: &str) -> bool {
        TAKEN_UP.contains(&name) && (self.has_columns || name != "column_memory_megabytes")
    }
}

/// The settings in which two files differ, in the order of their names.
fn differing(one: &NodeConfig, other: &NodeConfig) -> Vec<String> {
    let table = |config: &NodeConfig| toml::Table::try_from(config).expect("plain fields");
    let (one, other) = (table(one), table(other));
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    names.into_iter().filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_choice::StoreChoice;
    use crate::{Network, NetworkOptions};
    use crypto::SecretKey;
    use gateway::PlainHttp;
    use std::path::Path;
    use types::{AnswerAt, Charter, Pipeline};

    fn network(place: &Path) -> PathBuf {
        let options = NetworkOptions {
            organisations: 4,
            port_base: 7000,
            threads: 1,
            pipeline: Pipeline::Serial,
            store: StoreChoice::default(),
            charter: Charter::with_defaults("test", 1),
        };
        Network::create(place, &options).expect("an empty folder").folders[0].clone()
    }

    fn reloading(folder: &Path) -> Reloading {
        let config = open_config(folder).expect("as it was written");
        let key = SecretKey::from_bytes([7; 32]);
        let certificate = access::node_certificate(folder, &key).expect("a key");
        let access = access::open(folder, &config, Some(&certificate)).expect("as it was written");
        let memory = MemoryPool::new(query_bytes(config.query_memory_megabytes));
        let live = Live::of(&config);
        Reloading::new((folder.to_path_buf(), &config), (access.into(), certificate), live, (memory, true))
    }

    fn add(folder: &Path, lines: &str) {
        let path = folder.join("node.toml");
        let text = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(path, format!("{lines}\n{text}")).expect("written");
    }

    #[test]
    fn what_is_safe_changes_and_the_rest_waits_for_a_restart() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = network(place.path());
        let reloading = reloading(&folder);
        let good = |_: &NodeConfig| Ok(());
        assert_eq!(reloading.reload(good).expect("nothing is wrong"), Reloaded::default());
        add(
            &folder,
            "connections_max = 7\nclient_transactions_per_second = 5\nquery_memory_megabytes = 3\n\
             column_memory_megabytes = 2\nanswer_at = \"recorded\"\nhistory_heights = 9",
        );
        let path = folder.join("node.toml");
        let text = std::fs::read_to_string(&path).expect("it is there");
        let text = text.replace("plain_http = \"loopback\"", "plain_http = \"nobody\"");
        std::fs::write(&path, text).expect("written");
        let reloaded = reloading.reload(good).expect("nothing is wrong");
        let applied = [
            "answer_at",
            "client_transactions_per_second",
            "column_memory_megabytes",
            "connections_max",
            "plain_http",
            "query_memory_megabytes",
        ];
        assert_eq!(reloaded.applied, applied);
        assert_eq!(reloading.access.get().http.plain, PlainHttp::Nobody);
        assert_eq!(reloaded.at_restart, ["history_heights"]);
        assert_eq!(reloading.access.get().connections_max, 7);
        assert_eq!(reloading.live.rate_limit().map(|limit| limit.per_second()), Some(5));
        assert_eq!(reloading.live.answer_at(), AnswerAt::Recorded);
        assert_eq!(reloading.live.column_bytes.load(std::sync::atomic::Ordering::Relaxed), 2 << 20);
        assert_eq!(reloading.query_memory.most(), 3 << 20);
        let again = reloading.reload(good).expect("nothing is wrong");
        assert_eq!((again.applied.len(), again.at_restart), (0, vec!["history_heights".to_string()]));
    }

    #[test]
    fn a_file_that_is_wrong_changes_nothing_and_is_named() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = network(place.path());
        let reloading = reloading(&folder);
        add(&folder, "connections_max = 7");
        let error = reloading.reload(|_| Err("log_filter: no".to_string())).expect_err("refused").to_string();
        assert!(error.contains("node.toml") && error.contains("log_filter: no"), "{error}");
        add(&folder, "conections_max = 7");
        let error = reloading.reload(|_| Ok(())).expect_err("a mistake").to_string();
        assert!(error.contains("node.toml") && error.contains("conections_max"), "{error}");
        assert_ne!(reloading.access.get().connections_max, 7);
    }

    #[test]
    fn a_new_certificate_is_taken_up_and_one_of_another_key_is_not() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let folder = network(place.path());
        let reloading = reloading(&folder);
        let before = reloading.access.get().certificate.clone();
        let (certificate, key) = access::own_certificate("org1", &["localhost".to_string()]);
        std::fs::write(folder.join("tls.crt"), certificate).expect("written");
        let error = reloading.reload(|_| Ok(())).expect_err("the key is another").to_string();
        assert!(error.contains("tls.crt") && error.contains("tls.key"), "{error}");
        assert!(reloading.access.get().certificate == before);
        std::fs::write(folder.join("tls.key"), key).expect("written");
        let reloaded = reloading.reload(|_| Ok(())).expect("they belong together");
        assert_eq!(reloaded.applied, ["the certificate for clients"]);
        assert!(reloading.access.get().certificate != before);
    }
}
