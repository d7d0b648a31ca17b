//! A node alone with its own database of either kind, and connections to both.

use chainify::{Address, Kind, OwnDatabase, OwnDatabaseOptions, ScriptDatabase, ScriptDatabaseOptions};
use gateway::OwnDatabaseStatus;
use mysql::prelude::Queryable;
use node::{
    KeepOwnDatabase, Network, NetworkOptions, Node, NodeFolder, NodeOptions, OwnExecution, StoreChoice,
};
use postgres::{Client, NoTls, SimpleQueryMessage};
use servers::{MariaDbServer, PostgresServer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use types::{Charter, ExecutionModel, Pipeline};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server of either kind.
pub enum Server {
    Postgres(PostgresServer),
    MariaDb(MariaDbServer),
}

impl Server {
    pub fn start(kind: Kind) -> Server {
        match kind {
            Kind::Postgres => Server::Postgres(
                PostgresServer::start(&["fsync=off"], true).unwrap_or_else(|error| panic!("{error}")),
            ),
            Kind::MariaDb => Server::MariaDb(
                MariaDbServer::start(
                    &["innodb-flush-log-at-trx-commit=2", "innodb-buffer-pool-size=256M"],
                    true,
                )
                .unwrap_or_else(|error| panic!("{error}")),
            ),
        }
    }

    /// The address of a database that is made anew.
    pub fn database(&self, name: &str) -> Address {
        let address = |text: String| text.parse::<Address>().expect("an address");
        match self {
            Server::Postgres(server) => {
                let (socket, port) = (server.socket_folder(), server.port());
                let url = |database| {
                    format!("postgres://postgres@localhost:{port}/{database}?socket={}", socket.display())
                };
                let mut connection = Own::connect(&address(url("postgres")));
                connection.run(&format!("CREATE DATABASE {name}"));
                address(url(name))
            }
            Server::MariaDb(server) => {
                let url = |database| {
                    format!("mariadb://root@localhost/{database}?socket={}", server.socket().display())
                };
                let mut connection = Own::connect(&address(url("mysql")));
                connection.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"));
                address(url(name))
            }
        }
    }

    pub fn kill(&mut self) {
        match self {
            Server::Postgres(server) => server.kill(),
            Server::MariaDb(server) => server.kill(),
        }
    }

    pub fn start_again(&mut self) {
        let started = match self {
            Server::Postgres(server) => server.start_again(),
            Server::MariaDb(server) => server.start_again(),
        };
        started.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A connection of the organisation's applications to their own database.
pub enum Own {
    Postgres(Box<Client>),
    MariaDb(Box<mysql::Conn>),
}

impl Own {
    pub fn connect(address: &Address) -> Own {
        match address.kind {
            Kind::Postgres => {
                let mut config = postgres::Config::new();
                config.user(&address.user).dbname(&address.database).port(address.port);
                config.host_path(address.socket.as_ref().expect("a socket"));
                Own::Postgres(Box::new(config.connect(NoTls).expect("it answers")))
            }
            Kind::MariaDb => {
                let socket = address.socket.as_ref().expect("a socket").display().to_string();
                let options = mysql::OptsBuilder::new()
                    .prefer_socket(false)
                    .socket(Some(socket))
                    .user(Some(&address.user))
                    .db_name(Some(&address.database))
                    .init(vec!["SET NAMES utf8mb4", "SET time_zone='+00:00'"]);
                Own::MariaDb(Box::new(mysql::Conn::new(mysql::Opts::from(options)).expect("it answers")))
            }
        }
    }

    pub fn try_run(&mut self, sql: &str) -> Result<(), String> {
        match self {
            Own::Postgres(client) => client.batch_execute(sql).map_err(|error| {
                error.as_db_error().map_or(error.to_string(), |error| error.message().to_string())
            }),
            Own::MariaDb(connection) => connection.query_drop(sql).map_err(|error| error.to_string()),
        }
    }

    pub fn run(&mut self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Rows with their values as text.
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        match self {
            Own::Postgres(client) => text_rows(client, sql),
            Own::MariaDb(connection) => {
                let rows: Vec<mysql::Row> =
                    connection.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
                let text = |value| match value {
                    mysql::Value::NULL => None,
                    mysql::Value::Bytes(bytes) => Some(String::from_utf8(bytes).expect("text")),
                    other => Some(other.as_sql(true)),
                };
                rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect()
            }
        }
    }

    /// The first value of the first row.
    pub fn value(&mut self, sql: &str) -> String {
        self.rows(sql).first().and_then(|row| row[0].clone()).unwrap_or_default()
    }
}

pub fn text_rows(client: &mut Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| row.get(column).map(str::to_string)).collect())
        }
        _ => None,
    });
    rows.collect()
}

/// A ledger of one organisation.
pub struct Alone {
    pub folder: PathBuf,
    port: u16,
    node: Option<Node>,
    own: Option<Arc<OwnDatabase>>,
    execution: Option<Arc<ScriptDatabase>>,
    _folder: TempDir,
}

impl Alone {
    pub fn new() -> Alone {
        Alone::with(|_| ())
    }

    /// One whose scripts databases execute.
    pub fn of_scripts() -> Alone {
        Alone::with(|charter| {
            charter.execution = ExecutionModel::WhateverThenAgree;
            charter.protocol = "serial".to_string();
        })
    }

    fn with(change: impl FnOnce(&mut Charter)) -> Alone {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut charter = Charter::with_defaults("test", rand::random());
        charter.governance = "any".to_string();
        charter.ordering = "solo".to_string();
        charter.block.idle_ms = 200;
        change(&mut charter);
        let port_base = test_machine::free_port_base();
        let options = NetworkOptions {
            organisations: 1,
            port_base,
            threads: 1,
            pipeline: Pipeline::Serial,
            store: StoreChoice::default(),
            charter,
        };
        let network = Network::create(folder.path(), &options).expect("an empty folder");
        let node_folder = network.folders[0].clone();
        Alone {
            folder: node_folder,
            port: port_base + 100,
            node: None,
            own: None,
            execution: None,
            _folder: folder,
        }
    }

    pub fn options(address: &Address, tables: &[&str]) -> OwnDatabaseOptions {
        OwnDatabaseOptions {
            address: address.clone(),
            tables: tables.iter().map(ToString::to_string).collect(),
            scan_seconds: Some(1),
            takes_ledger_rows: false,
        }
    }

    pub fn start(&mut self, options: Option<OwnDatabaseOptions>) {
        let folder = NodeFolder::open(&self.folder).expect("what create wrote");
        let own = options.map(|options| Arc::new(OwnDatabase::new(options)));
        self.own = own.clone();
        let own_database = own.map(|own| own as Arc<dyn KeepOwnDatabase>);
        let options = NodeOptions { own_database, ..NodeOptions::default() };
        self.node = Some(Node::start_with(folder, options).expect("it starts"));
    }

    /// Starts it with what executes its scripts: a database, or the node itself.
    pub fn start_executing(&mut self, address: Option<&Address>, (connections, as_sets): (usize, bool)) {
        let folder = NodeFolder::open(&self.folder).expect("what create wrote");
        let node = folder.node_key.public_key();
        let options = |address: &Address| ScriptDatabaseOptions {
            address: address.clone(),
            node,
            connections,
            as_sets,
            takes_ledger_rows: false,
        };
        self.execution = address.map(|address| Arc::new(ScriptDatabase::new(options(address))));
        let own_execution = self.execution.clone().map(|execution| execution as Arc<dyn OwnExecution>);
        let options = NodeOptions { own_execution, ..NodeOptions::default() };
        self.node = Some(Node::start_with(folder, options).expect("it starts"));
    }

    pub fn stop(&mut self) {
        self.node.take().expect("it runs").stop();
    }

    pub fn client(&self) -> Client {
        let url = format!("host=127.0.0.1 port={} user=org1 dbname=entente", self.port);
        Client::connect(&url, NoTls).expect("it answers")
    }

    pub fn status(&self) -> OwnDatabaseStatus {
        match &self.execution {
            Some(execution) => execution.status(),
            None => self.own.as_ref().expect("it has one").status(),
        }
    }

    /// The status that `wanted` accepts, once there is one.
    pub fn wait(&self, what: &str, wanted: impl Fn(&OwnDatabaseStatus) -> bool) -> OwnDatabaseStatus {
        let start = Instant::now();
        loop {
            let status = self.status();
            if wanted(&status) {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "no {what}: {status:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the database has everything that the ledger has now.
    pub fn wait_level(&self) {
        let mut client = self.client();
        let height: u64 = text_rows(&mut client, "SELECT max(height) FROM entente.blocks")[0][0]
            .as_deref()
            .and_then(|text| text.parse().ok())
            .expect("a height");
        self.wait("level copy", |status| status.height >= height && status.state == "following");
    }
}
