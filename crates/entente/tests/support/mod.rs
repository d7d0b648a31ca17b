//! Networks of real processes on loopback, on free ports, in temporary folders, stopped at the end of the test.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod answers;
pub mod apart;
pub mod databases;
pub mod in_between;
pub mod load;
pub mod programs;

use client::Client;
use node::founding::{KeysOptions, accept, make_keys};
use node::{Network, NetworkOptions, StoreChoice};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::NoTls;
use types::{Charter, Identity, Pipeline};

pub use test_machine::free_port_base;

/// The program under test.
pub const ENTENTE: &str = env!("CARGO_BIN_EXE_entente");

/// Runs a command of it to the end.
pub fn entente(arguments: &[&str]) -> Output {
    Command::new(ENTENTE).args(arguments).output().expect("the program starts")
}

/// What a command says that does what it should.
pub fn says(arguments: &[&str]) -> String {
    let output = entente(arguments);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// What a command says that refuses.
pub fn refuses(arguments: &[&str]) -> String {
    let output = entente(arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// The program that networks run; another build of it where `ENTENTE_PROGRAM` names one.
fn program() -> PathBuf {
    std::env::var_os("ENTENTE_PROGRAM").map_or_else(|| PathBuf::from(ENTENTE), PathBuf::from)
}

/// Compiles `NAME.c` of this folder into a library that stands between a program and the system (`LD_PRELOAD`). Needs `cc`.
pub fn preloaded(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/support/{name}.c"));
    let library = folder.join(format!("{name}.so"));
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compile.status().expect("cc runs").success());
    library
}

/// Listens on a port that [`free_port_base`] found free. A program that another test starts at that moment still holds
/// what this process listened on until the program's own code begins, so that a free port may look taken for an instant.
pub fn take_port(port: u16) -> TcpListener {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < deadline, "port {port}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Four organisations, their folders, and the processes that run now.
pub struct TestNetwork {
    pub network: Network,
    pub port_base: u16,
    /// What nodes are started with from now on.
    pub program: PathBuf,
    processes: Vec<Option<Child>>,
    folder: TempDir,
}

impl TestNetwork {
    /// Writes folders for four organisations; `change` adapts the charter. Starts nothing.
    pub fn create(change: impl FnOnce(&mut Charter)) -> TestNetwork {
        TestNetwork::create_at(free_port_base(), change)
    }

    /// As [`TestNetwork::create`], on these ports.
    pub fn create_at(port_base: u16, change: impl FnOnce(&mut Charter)) -> TestNetwork {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut charter = Charter::with_defaults("test", rand::random());
        charter.governance = "any".to_string();
        charter.block.idle_ms = 300;
        change(&mut charter);
        let options = NetworkOptions {
            organisations: 4,
            port_base,
            threads: 1,
            pipeline: Pipeline::Serial,
            store: StoreChoice::default(),
            charter,
        };
        let network = Network::create(folder.path(), &options).expect("an empty folder");
        TestNetwork {
            network,
            port_base,
            program: program(),
            processes: (0..4).map(|_| None).collect(),
            folder,
        }
    }

    /// The network whose nodes have the folders `org1`, `org2`, … in a folder. Starts nothing.
    pub fn of(folder: TempDir, port_base: u16) -> TestNetwork {
        let named = |node: u32| folder.path().join(format!("org{node}"));
        let folders: Vec<PathBuf> = (1..).map(named).take_while(|folder| folder.exists()).collect();
        let read = |node: &Path, file: &str| std::fs::read_to_string(node.join(file)).expect("it is there");
        let charter = Charter::from_toml(&read(&folders[0], "charter.toml")).expect("a good charter");
        let client = |node: &PathBuf| Identity::from_toml(&read(node, "client.toml")).expect("an identity");
        let clients = folders.iter().map(client).collect();
        let processes = folders.iter().map(|_| None).collect();
        let network = Network { charter, folders, clients };
        TestNetwork { network, port_base, program: program(), processes, folder }
    }

    /// Starts every node and waits until all serve.
    pub async fn start_all(&mut self) {
        let nodes = 0..self.processes.len();
        nodes.clone().for_each(|node| self.start(node));
        for node in nodes {
            self.wait_for_height(node, 1).await;
        }
    }

    pub fn start(&mut self, node: usize) {
        self.start_with(node, &[]);
    }

    /// Starts a node with these variables in its environment.
    pub fn start_with(&mut self, node: usize, environment: &[(&str, &Path)]) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.node_folder(node).join("node.log"))
            .expect("a log file");
        let child = Command::new(&self.program)
            .args(["node", "--stop-with-input", "--dir"])
            .arg(self.node_folder(node))
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        self.processes[node] = Some(child);
    }

    /// The node of an organisation that is no member yet, and the statement that makes it one. Starts nothing.
    pub fn newcomer(&mut self, name: &str) -> (usize, String) {
        let (folder, position) = (self.folder().join(name), self.processes.len());
        let listen = [0, 100, 200]
            .map(|offset| SocketAddr::from(([127, 0, 0, 1], self.port_base + offset + position as u16)));
        make_keys(&folder, &KeysOptions::new(&self.network.charter.name, name, listen, 1))
            .expect("an empty folder");
        let charter = self.node_folder(0).join("charter.toml");
        let (member, acceptance) = accept(&folder, &charter, position as u16).expect("a new member");
        let text = std::fs::read_to_string(folder.join("client.toml")).expect("written");
        let node = self.admit(folder, Identity::from_toml(&text).expect("an identity"));
        let add = format!(
            "SELECT entente.add_organisation('{name}', '{}', '{}', '{}', '{}', '{acceptance}')",
            member.root_key, member.node_key, member.address, member.gateway
        );
        (node, add)
    }

    /// One more node, with its folder and a client of its organisation. Starts nothing.
    pub fn admit(&mut self, folder: PathBuf, client: Identity) -> usize {
        self.network.folders.push(folder);
        self.network.clients.push(client);
        self.processes.push(None);
        self.processes.len() - 1
    }

    /// `kill -9`.
    pub fn kill(&mut self, node: usize) {
        let mut child = self.processes[node].take().expect("the node runs");
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
    }

    /// As an operator stops a node: it ends in good order.
    pub fn interrupt(&mut self, node: usize) {
        let mut child = self.processes[node].take().expect("the node runs");
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "it can be interrupted");
        // Waiting closes its input, at whose end it would end at once.
        let input = child.stdin.take();
        child.wait().expect("it has ended");
        drop(input);
    }

    /// Memory that the node's process occupies.
    pub fn resident_megabytes(&self, node: usize) -> u64 {
        let id = self.process(node);
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the system tells");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it says how much");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of kilobytes") / 1024
    }

    /// The number of a node's process.
    pub fn process(&self, node: usize) -> u32 {
        self.processes[node].as_ref().expect("the node runs").id()
    }

    /// Whether the node has ended by itself.
    pub fn has_ended(&mut self, node: usize) -> bool {
        let child = self.processes[node].as_mut().expect("the node was started");
        !matches!(child.try_wait(), Ok(None))
    }

    /// The folder of the network.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn node_folder(&self, node: usize) -> PathBuf {
        self.network.folders[node].clone()
    }

    pub fn log(&self, node: usize) -> String {
        std::fs::read_to_string(self.node_folder(node).join("node.log")).unwrap_or_default()
    }

    /// Has a node answer HTTP on another port than the charter says: somebody else can stand there.
    pub fn answers_at(&self, node: usize, port: u16) {
        let path = self.node_folder(node).join("node.toml");
        let config = std::fs::read_to_string(&path).expect("written by init");
        let before = self.port_base + 200 + node as u16;
        std::fs::write(&path, config.replace(&format!(":{before}\""), &format!(":{port}\"")))
            .expect("written");
    }

    /// The secret key of a node.
    pub fn node_key(&self, node: usize) -> crypto::SecretKey {
        let text = std::fs::read_to_string(self.node_folder(node).join("node.key")).expect("written by init");
        crypto::SecretKey::from_hex(&text).expect("a key")
    }

    /// A client of this node's organisation.
    pub fn client(&self, node: usize) -> Client {
        let url = format!("http://127.0.0.1:{}", self.port_base + 200 + node as u16);
        Client::new(&url, self.network.clients[node].clone()).expect("a client")
    }

    pub async fn wait_for_height(&self, node: usize, height: u64) -> client::Status {
        let start = Instant::now();
        loop {
            if let Ok(status) = self.client(node).status().await
                && status.height >= height
                && status.not_serving.is_none()
            {
                return status;
            }
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(90), "node {node} not at {height}:\n{}", self.log(node));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// These nodes have executed what `source` has: statements are bound to what a node knows.
    pub async fn wait_until_level_with(&self, source: usize, nodes: &[usize]) {
        let height = self.client(source).status().await.expect("it answers").height;
        for node in nodes {
            self.wait_for_height(*node, height).await;
        }
    }

    /// A session of any driver.
    pub async fn session(&self, node: usize) -> tokio_postgres::Client {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port_base + 100 + node as u16).user("entente").dbname("entente");
        let (client, connection) = config.connect(NoTls).await.expect("the node answers");
        tokio::spawn(connection);
        client
    }

    /// What a query of proofs of rows gives at a checkpoint that this session asks for.
    pub async fn row_proofs(&self, session: &tokio_postgres::Client, query: &str) -> tokio_postgres::Row {
        session.batch_execute("CHECKPOINT").await.expect("asked for");
        let start = Instant::now();
        loop {
            match session.query_one(query, &[]).await {
                Ok(found) => return found,
                Err(error) => {
                    let code = error.code().map(|code| code.code().to_string());
                    assert_eq!(code.as_deref(), Some("55000"), "{error:?}");
                    assert!(start.elapsed() < Duration::from_secs(90), "{error:?}");
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until all these nodes have passed a common height and asserts that their digests there are equal.
    pub async fn assert_agreement(&self, nodes: &[usize]) {
        let mut heights = Vec::new();
        for node in nodes {
            heights.push(self.client(*node).status().await.expect("it answers").height);
        }
        let target = heights.into_iter().max().expect("some node");
        let mut statuses = Vec::new();
        for node in nodes {
            statuses.push(self.wait_for_height(*node, target).await);
        }
        let digest = |status: &client::Status| {
            let at = status.recent.iter().find(|at| at.height == target);
            at.map(|at| at.state_digest.clone()).expect("a recent height")
        };
        let digests: Vec<String> = statuses.iter().map(digest).collect();
        assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "height {target}: {digests:?}");
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        for child in self.processes.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The values of a query's rows, as text.
pub async fn rows(session: &tokio_postgres::Client, sql: &str) -> Vec<Vec<String>> {
    let messages = session.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let row = |message: &tokio_postgres::SimpleQueryMessage| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_string()).collect())
        }
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

/// Waits until a query's rows are these.
pub async fn wait_for_rows(session: &tokio_postgres::Client, sql: &str, expected: &[&[&str]]) {
    let start = Instant::now();
    loop {
        let found = match session.simple_query(sql).await {
            Ok(_) => rows(session, sql).await,
            Err(_) => Vec::new(),
        };
        if found == expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{sql}: expected {expected:?}, found {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The SQLSTATE and the text of what a statement ends with.
pub async fn error(session: &tokio_postgres::Client, sql: &str) -> (String, String) {
    let error = session.batch_execute(sql).await.expect_err(sql);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{sql}: the connection broke"));
    let text = format!("{} {}", error.message(), error.hint().unwrap_or_default());
    (error.code().code().to_string(), text)
}
