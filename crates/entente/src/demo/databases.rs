//! Databases of the organisations' own: installed, started, filled by their nodes, and compared row by row.

use super::prepare::connect;
use super::screen::Screen;
use crate::CommandError;
use chainify::{Address, AgreeConfig, AgreeRule};
use clap::ValueEnum;
use client::Client;
use crypto::{Digest, sha256};
use node::{Network, NodeFolder, OwnDatabaseConfig};
use serde::Serialize;
use servers::{MariaDbServer, PostgresServer};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio_postgres::{NoTls, SimpleQueryMessage};
use types::{ExecutionModel, Policy};

/// The name of each organisation's database.
const DATABASE: &str = "shop";
/// The tables of Smallbank, and the key that each has.
const TABLES: [&str; 3] = ["accounts", "checking", "savings"];
const KEY: &str = "customer_id";
/// The private table that says with whom an organisation has no business.
const BLOCKED: &str = "CREATE TABLE blocked (customer_id bigint PRIMARY KEY)";
/// How long a database may take to have what its node has.
const LEVEL_WITHIN: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Seconds between two comparisons of all rows: a newcomer who changes one does not want to wait.
const SCAN_SECONDS: u64 = 30;
/// Rows that are read from a node at once.
const PAGE: usize = 10_000;

/// Which kind of database an organisation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DatabaseKind {
    Postgres,
    Mariadb,
    None,
}

enum Server {
    Postgres(PostgresServer),
    MariaDb(MariaDbServer),
}

/// An organisation and its database.
struct OwnDatabase {
    organisation: String,
    server: Option<Server>,
    address: Option<Address>,
}

/// What came of comparing it; its keys are an interface.
#[derive(Serialize)]
pub(crate) struct CheckedDatabase {
    pub(crate) organisation: String,
    pub(crate) kind: String,
    pub(crate) rows_equal: bool,
    /// Certified blocks that it did not have when the load had just ended.
    pub(crate) writer_lag_blocks: u64,
    #[serde(skip)]
    pub(crate) rows: u64,
}

/// The databases of all organisations, in charter order. They are stopped when this is dropped.
pub(crate) struct Databases {
    all: Vec<OwnDatabase>,
    /// They execute scripts, and do not only have copies.
    executes: bool,
}

impl Databases {
    /// Starts one for each organisation that wants one, and tells its node. Must be called on a thread that lives as long as the
    /// databases.
    pub(crate) fn start(
        kinds: &[DatabaseKind],
        network: &Network,
        screen: &Screen,
    ) -> Result<Databases, CommandError> {
        let mut databases = Vec::new();
        let executes = network.charter.execution == ExecutionModel::WhateverThenAgree;
        for (position, folder) in network.folders.iter().enumerate().filter(|_| !kinds.is_empty()) {
            let kind = kinds.get(position).copied().unwrap_or(DatabaseKind::None);
            let organisation = network.charter.organisations[position].name.clone();
            let (server, address) = match kind {
                DatabaseKind::None => (None, None),
                DatabaseKind::Postgres => {
                    let server = PostgresServer::start(&[], true)?;
                    in_postgres(&server, "postgres", &format!("CREATE DATABASE {DATABASE}"))?;
                    let port = server.port();
                    let address = format!("postgres://postgres@127.0.0.1:{port}/{DATABASE}");
                    (Some(Server::Postgres(server)), Some(address))
                }
                DatabaseKind::Mariadb => {
                    let server = MariaDbServer::start(&[], true)?;
                    let port = server.port().unwrap_or_default();
                    server.create_database(DATABASE)?;
                    let address = format!("mariadb://root@127.0.0.1:{port}/{DATABASE}");
                    (Some(Server::MariaDb(server)), Some(address))
                }
            };
            if let Some(url) = &address {
                screen.say(format!("{organisation}'s own database: {url}"));
                let config = OwnDatabaseConfig {
                    url: url.clone(),
                    password_file: None,
                    tables: if executes { Vec::new() } else { vec!["public.*".to_string()] },
                    scan_seconds: (!executes).then_some(SCAN_SECONDS),
                    take_ledger_rows: false,
                    waiting_megabytes: None,
                    connections: None,
                };
                NodeFolder::open(folder)?.choose_database(Some(config), None)?;
            }
            let address = address.map(|url| url.parse()).transpose()?;
            databases.push(OwnDatabase { organisation, server, address });
        }
        Ok(Databases { all: databases, executes })
    }

    /// The organisations of a policy agree to changes of accounts unless a private table of theirs has the customer.
    pub(crate) fn agree(&self, network: &Network, policy: &str) -> Result<(), CommandError> {
        let policy: Policy = policy.parse()?;
        let names: Vec<&str> = self.all.iter().map(|own| own.organisation.as_str()).collect();
        policy.check(&names)?;
        let mentioned = policy.organisations();
        for (own, folder) in self.all.iter().zip(&network.folders) {
            if !mentioned.contains(own.organisation.as_str()) {
                continue;
            }
            match &own.server {
                None => {
                    let name = &own.organisation;
                    return Err(format!("--agreement: {name} has no database to ask; see --database").into());
                }
                Some(Server::Postgres(server)) => in_postgres(server, DATABASE, BLOCKED)?,
                Some(Server::MariaDb(server)) => server.execute(DATABASE, BLOCKED)?,
            }
            let rule = |table: &str| AgreeRule {
                table: table.to_string(),
                on: Vec::new(),
                query: "SELECT count(*) = 0 FROM blocked WHERE customer_id = :customer_id".to_string(),
                reason: Some("it has blocked this customer".to_string()),
            };
            let rules = ["checking", "savings"].map(rule).to_vec();
            AgreeConfig { rules, ..AgreeConfig::default() }.write(folder)?;
        }
        Ok(())
    }

    /// Takes all money from the first customer's checking account in an organisation's PostgreSQL, past the trigger: behind the
    /// ledger's back.
    pub(crate) fn change_a_row(&self, position: usize) -> Result<(), CommandError> {
        let statement = "SET entente.writer = 'on'; UPDATE checking SET balance = 0 WHERE customer_id = 1";
        match self.all.get(position).and_then(|own| own.server.as_ref()) {
            Some(Server::Postgres(server)) => in_postgres(server, DATABASE, statement),
            _ => Err(format!("organisation {} has no PostgreSQL", position + 1).into()),
        }
    }

    /// Waits until every database has what the ledger has at `height`, where nobody writes any more, and compares all rows of each
    /// with those of the first node.
    pub(crate) async fn check(
        &self,
        clients: &[Client],
        gateways: &[SocketAddr],
        height: u64,
    ) -> Result<Vec<CheckedDatabase>, CommandError> {
        let mut checked = Vec::new();
        let mut lags = Vec::new();
        for client in clients {
            let status = client.status().await?;
            lags.push(status.database.map_or(0, |database| database.lag_blocks));
        }
        let (expected, rows) = ledger_rows(gateways[0], height).await?;
        for (position, own) in self.all.iter().enumerate() {
            let (kind, found) = match &own.address {
                None => ("none", ledger_rows(gateways[position], height).await?.0),
                Some(address) => {
                    wait_until_level(&clients[position], height, &own.organisation).await?;
                    let address = address.clone();
                    let kind = address.kind.name();
                    let read = tokio::task::spawn_blocking(move || own_rows(&address)).await??;
                    (kind, read)
                }
            };
            checked.push(CheckedDatabase {
                organisation: own.organisation.clone(),
                kind: kind.to_string(),
                rows_equal: found == expected,
                writer_lag_blocks: lags[position],
                rows,
            });
        }
        Ok(checked)
    }

    /// What to try in the databases.
    pub(crate) fn invitation(&self, agrees: bool) -> String {
        let mut lines = Vec::new();
        for own in &self.all {
            let Some(server) = &own.server else { continue };
            lines.push(match server {
                Server::Postgres(server) => {
                    format!(
                        "  psql -h 127.0.0.1 -p {} -U postgres {DATABASE}    # {}",
                        server.port(),
                        own.organisation
                    )
                }
                Server::MariaDb(server) => {
                    let port = server.port().unwrap_or_default();
                    format!("  mariadb -h 127.0.0.1 -P {port} -u root {DATABASE}    # {}", own.organisation)
                }
            });
        }
        if lines.is_empty() {
            return String::new();
        }
        let (what, found) = match self.executes {
            true => (
                "execute the scripts in a database of their own",
                "The second one is found and put right when the next script comes to the row".to_string(),
            ),
            false => (
                "have all tables in a database of their own, too",
                format!("The second one is put right within {SCAN_SECONDS} seconds"),
            ),
        };
        lines.insert(0, format!("\nSome organisations {what}:"));
        lines.extend([
            "Write behind the ledger's back, for example in PostgreSQL:".to_string(),
            "  UPDATE checking SET balance = 0 WHERE customer_id = 1;    -- is refused".to_string(),
            "  SET entente.writer = 'on'; UPDATE checking SET balance = 0 WHERE customer_id = 1;    -- past the trigger"
                .to_string(),
            format!("{found}, and the row that was found is kept aside:"),
            "  SELECT * FROM entente.strange_rows;    (MariaDB: SET @entente_writer = 1; … entente_strange_rows)"
                .to_string(),
        ]);
        if self.executes {
            lines.push("The next script, in any of the psql sessions above:".to_string());
            lines.push("  UPDATE checking SET balance = balance + 1 WHERE customer_id = 1;".to_string());
        }
        if agrees {
            lines.push("An organisation that must agree blocks a customer, in its own database:".to_string());
            lines.push("  INSERT INTO blocked VALUES (2);".to_string());
            lines.push("Then nobody can change that account, in any of the psql sessions above:".to_string());
            lines.push("  UPDATE checking SET balance = balance + 1 WHERE customer_id = 2;".to_string());
        }
        lines.join("\n")
    }
}

fn in_postgres(server: &PostgresServer, database: &str, statement: &str) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(server.port()).user("postgres").dbname(database);
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute(statement).await?;
        Ok::<_, CommandError>(())
    })
}

async fn wait_until_level(client: &Client, height: u64, organisation: &str) -> Result<(), CommandError> {
    let start = Instant::now();
    loop {
        let database = client.status().await?.database;
        if database.as_ref().is_some_and(|database| database.height >= height) {
            return Ok(());
        }
        if start.elapsed() > LEVEL_WITHIN {
            let said = database.map_or("none is configured".to_string(), |database| {
                let problem = database.problem.unwrap_or_default();
                format!("it is at height {} of {height}, {}: {problem}", database.height, database.state)
            });
            return Err(format!("the database of {organisation} is not level: {said}").into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// A digest of all rows that an organisation's database has, read from there, and not from its node.
fn own_rows(address: &Address) -> Result<Vec<Digest>, CommandError> {
    let mut digests = Vec::new();
    for table in chainify::plan(address, &TABLES.map(str::to_string))? {
        let mut text = String::new();
        table.copy(address, &mut |line| text.push_str(line))?;
        digests.push(sha256(&[text.as_bytes()]));
    }
    Ok(digests)
}

/// The same of a node's rows, and how many there are.
async fn ledger_rows(gateway: SocketAddr, height: u64) -> Result<(Vec<Digest>, u64), CommandError> {
    let client = connect(gateway).await?;
    client.batch_execute(&format!("SET entente.min_height = {height}")).await?;
    let (mut digests, mut count) = (Vec::new(), 0);
    for table in TABLES {
        let (mut text, mut last) = (String::new(), None::<String>);
        loop {
            let behind = last.as_ref().map_or(String::new(), |last| format!(" WHERE {KEY} > {last}"));
            let page = format!("SELECT * FROM {table}{behind} ORDER BY {KEY} LIMIT {PAGE}");
            let mut rows = 0;
            for message in client.simple_query(&page).await? {
                let SimpleQueryMessage::Row(row) = message else { continue };
                let values: Vec<&str> =
                    (0..row.len()).map(|column| row.get(column).unwrap_or("\\N")).collect();
                text.push_str(&values.join("\t"));
                text.push('\n');
                last = row.get(KEY).map(str::to_string);
                rows += 1;
            }
            count += rows as u64;
            if rows < PAGE {
                break;
            }
        }
        digests.push(sha256(&[text.as_bytes()]));
    }
    Ok((digests, count))
}
