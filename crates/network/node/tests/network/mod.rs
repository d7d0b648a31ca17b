//! A network of nodes in one process.
#![allow(missing_docs, dead_code)]

use client::Client;
use crypto::SecretKey;
use node::founding::{KeysOptions, accept, make_keys};
use node::{Network, NetworkOptions, Node, NodeFolder, NodeOptions, StoreChoice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use types::{Charter, Identity, Outcome, Payload, Pipeline, Receipt};

pub const PATIENCE: Duration = Duration::from_secs(90);

/// Another key for a node.
pub struct Replacement {
    /// What decides on it.
    pub statement: String,
    key: SecretKey,
    file: PathBuf,
}

impl Replacement {
    /// From its next start on the node has it.
    pub fn take(self) {
        std::fs::write(self.file, self.key.to_hex()).expect("writes");
    }
}

pub struct TestNetwork {
    pub network: Network,
    port_base: u16,
    pub nodes: Vec<Option<Node>>,
    _folder: TempDir,
}

impl TestNetwork {
    pub fn create(change: impl FnOnce(&mut Charter)) -> TestNetwork {
        TestNetwork::of(4, change)
    }

    pub fn of(organisations: usize, change: impl FnOnce(&mut Charter)) -> TestNetwork {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut charter = Charter::with_defaults("test", rand::random());
        charter.governance = "any".to_string();
        charter.block.idle_ms = 200;
        change(&mut charter);
        let port_base = test_machine::free_port_base();
        let options = NetworkOptions {
            organisations,
            port_base,
            threads: 1,
            pipeline: Pipeline::Serial,
            store: StoreChoice::default(),
            charter,
        };
        let network = Network::create(folder.path(), &options).expect("an empty folder");
        TestNetwork { network, port_base, nodes: (0..organisations).map(|_| None).collect(), _folder: folder }
    }

    /// What `node.toml` of a node says of its store, from its next start on.
    pub fn keep_state(&self, node: usize, lines: &str) {
        let file = self.network.folders[node].join("node.toml");
        let text = std::fs::read_to_string(&file).expect("written");
        let others =
            text.lines().filter(|line| !line.starts_with("store") && !line.starts_with("memory_megabytes"));
        let text = others.fold(lines.to_string(), |text, line| text + "\n" + line);
        std::fs::write(&file, text).expect("writes");
    }

    /// The folder of an organisation that is no member yet, and the statement that makes it one.
    pub fn newcomer(&mut self, name: &str) -> (usize, String) {
        let position = self.nodes.len();
        let port = |offset| SocketAddr::from(([127, 0, 0, 1], self.port_base + offset + position as u16));
        let listen = [0, 100, 200].map(port);
        let folder = self.network.folders[0].with_file_name(name);
        let charter = self.network.folders[0].join("charter.toml");
        let options = KeysOptions::new(&self.network.charter.name, name, listen, 1);
        make_keys(&folder, &options).expect("an empty folder");
        let (organisation, acceptance) = accept(&folder, &charter, position as u16).expect("a new member");
        let client = std::fs::read_to_string(folder.join("client.toml")).expect("written");
        self.network.clients.push(Identity::from_toml(&client).expect("an identity"));
        self.network.folders.push(folder);
        self.nodes.push(None);
        let types::Organisation { root_key, node_key, address, gateway, .. } = organisation;
        let add = format!(
            "SELECT entente.add_organisation('{name}', '{root_key}', '{node_key}', '{address}', '{gateway}', '{acceptance}')"
        );
        (position, add)
    }

    /// Another key for a node. `expires`: the last height that it signs for.
    pub fn replace_key(&self, node: usize, expires: Option<u64>) -> Replacement {
        let key = SecretKey::generate();
        let expires = expires.map_or_else(String::new, |height| format!(", {height}"));
        let (name, public) = (format!("org{}", node + 1), key.public_key());
        let statement = format!("SELECT entente.replace_node_key('{name}', '{public}'{expires})");
        Replacement { statement, key, file: self.network.folders[node].join("node.key") }
    }

    pub fn start(&mut self, node: usize, options: NodeOptions) {
        let folder = NodeFolder::open(&self.network.folders[node]).expect("what create wrote");
        // A node has runtimes of its own.
        let started = tokio::task::block_in_place(|| Node::start_with(folder, options));
        self.nodes[node] = Some(started.expect("it starts"));
    }

    pub fn stop(&mut self, node: usize) {
        let running = self.nodes[node].take().expect("it runs");
        tokio::task::block_in_place(|| running.stop());
    }

    pub fn client(&self, node: usize) -> Client {
        self.client_of(node, node)
    }

    /// Of this organisation, at whatever node.
    pub fn client_of(&self, organisation: usize, node: usize) -> Client {
        let url = format!("http://127.0.0.1:{}", self.port_base + 200 + node as u16);
        Client::new(&url, self.network.clients[organisation].clone()).expect("a client")
    }

    pub async fn status(&self, node: usize) -> client::Status {
        self.client(node).status().await.expect("it answers")
    }

    pub async fn wait(
        &self,
        node: usize,
        what: &str,
        until: impl Fn(&client::Status) -> bool,
    ) -> client::Status {
        let start = Instant::now();
        loop {
            let status = self.status(node).await;
            if until(&status) {
                return status;
            }
            let (height, certified) = (status.height, status.certified_height);
            let (why, told) = (status.not_serving, status.diverged);
            assert!(
                start.elapsed() < PATIENCE,
                "node {node}: {what}; height {height}, certified {certified}, {why:?}, {told:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn run(&self, client: &Client, sql: &str) -> Receipt {
        let height = client.status().await.expect("it answers").height;
        let payload = Payload::Script { sql: sql.to_string(), parameters: Vec::new() };
        let signed = client.identity().sign(payload, height + 1_000);
        let receipt = client.execute(&signed).await.expect("a receipt");
        assert!(matches!(receipt.outcome, Outcome::Committed(_)), "{sql}: {:?}", receipt.outcome);
        receipt
    }

    /// All nodes serve, and have the same state at the same height.
    pub async fn check_agreement(&self) {
        // Who heals from another's checkpoint no longer tells of the heights below it: it is compared above.
        self.wait_until_all_serve(self.status(0).await.height).await;
        let height = self.status(0).await.height;
        let statuses = self.wait_until_all_serve(height).await;
        let digest = |status: &client::Status| {
            let at = status.recent.iter().find(|at| at.height == height);
            at.map(|at| at.state_digest.clone())
        };
        let digests: Vec<_> = statuses.iter().map(digest).collect();
        assert!(digests[0].is_some() && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    }

    async fn wait_until_all_serve(&self, height: u64) -> Vec<client::Status> {
        let serves =
            |status: &client::Status| status.certified_height >= height && status.not_serving.is_none();
        let mut statuses = Vec::new();
        for node in 0..self.nodes.len() {
            statuses.push(self.wait(node, "it agrees with the others", serves).await);
        }
        statuses
    }

    pub fn stop_all(mut self) {
        let running: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].is_some()).collect();
        running.into_iter().for_each(|node| self.stop(node));
    }
}
