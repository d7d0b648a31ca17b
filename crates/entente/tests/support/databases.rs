//! Organisations of a test network with databases of their own: the first has PostgreSQL, the second MariaDB.

use super::TestNetwork;
use chainify::Address;
use node::{NodeFolder, OwnDatabaseConfig};
use servers::{MariaDbServer, PostgresServer};
use std::time::Duration;
use tokio_postgres::SimpleQueryMessage;

/// Their servers, which end with this value.
pub struct Servers {
    pub postgres: PostgresServer,
    mariadb: MariaDbServer,
}

impl Servers {
    pub fn start() -> Servers {
        let postgres = PostgresServer::start(&[], true).unwrap_or_else(|error| panic!("{error}"));
        let mariadb = MariaDbServer::start(&[], true).unwrap_or_else(|error| panic!("{error}"));
        mariadb.create_database("shop").unwrap_or_else(|error| panic!("{error}"));
        Servers { postgres, mariadb }
    }

    pub fn urls(&self) -> [String; 2] {
        [
            format!("postgres://postgres@127.0.0.1:{}/postgres", self.postgres.port()),
            format!("mariadb://root@127.0.0.1:{}/shop", self.mariadb.port().expect("a port")),
        ]
    }

    /// Runs statements in MariaDB's database.
    pub fn in_mariadb(&self, statements: &[&str]) {
        for sql in statements {
            self.mariadb.execute("shop", sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// Ends one of the two servers or of the two organisations' nodes, in turn, and starts it again after a while.
    pub async fn kill_in_turn(&mut self, kill: u64, network: &mut TestNetwork, pause: Duration) {
        match kill % 4 {
            0 => self.postgres.kill(),
            1 => self.mariadb.kill(),
            node => network.kill(node as usize - 2),
        }
        tokio::time::sleep(pause).await;
        match kill % 4 {
            0 => self.postgres.start_again().unwrap_or_else(|error| panic!("{error}")),
            1 => self.mariadb.start_again().unwrap_or_else(|error| panic!("{error}")),
            node => {
                network.start(node as usize - 2);
                network.wait_for_height(node as usize - 2, 1).await;
            }
        }
    }
}

/// Tells a node of its database; `change` adapts what is said.
pub fn choose(network: &TestNetwork, node: usize, url: &str, change: impl FnOnce(&mut OwnDatabaseConfig)) {
    let mut config = OwnDatabaseConfig {
        url: url.to_string(),
        password_file: None,
        tables: Vec::new(),
        scan_seconds: None,
        take_ledger_rows: false,
        waiting_megabytes: None,
        connections: None,
    };
    change(&mut config);
    let folder = NodeFolder::open(&network.node_folder(node)).expect("a folder");
    folder.choose_database(Some(config), None).expect("written");
}

/// All rows of tables in a database, as lines in the order of their keys.
pub fn rows(address: &str, tables: &[&str]) -> Vec<String> {
    // What reads them has a runtime of its own.
    tokio::task::block_in_place(|| {
        let address: Address = address.parse().expect("an address");
        let names: Vec<String> = tables.iter().map(ToString::to_string).collect();
        let planned = chainify::plan(&address, &names).expect("it answers");
        let read = |table: chainify::PlannedTable| {
            let mut text = String::new();
            table.copy(&address, &mut |line| text.push_str(line)).expect("read");
            text
        };
        planned.into_iter().map(read).collect()
    })
}

/// All rows of a table that a node has, as such lines.
pub async fn ledger_rows(network: &TestNetwork, node: usize, table: &str, key: &str) -> String {
    let session = network.session(node).await;
    let found = session.simple_query(&format!("SELECT * FROM {table} ORDER BY {key}")).await.expect("read");
    let line = |message| match message {
        SimpleQueryMessage::Row(row) => {
            let values: Vec<&str> = (0..row.len()).filter_map(|column| row.get(column)).collect();
            Some(values.join("\t") + "\n")
        }
        _ => None,
    };
    found.into_iter().filter_map(line).collect()
}
