//! `entente chainify`: an organisation keeps its database.

use super::own_database::own_address;
use super::sql::connect;
use crate::CommandError;
use bench::grouped;
use chainify::{Address, PlannedTable};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use futures::SinkExt;
use node::{NodeFolder, OwnDatabaseConfig};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, SimpleQueryMessage};
use types::ExecutionModel;

/// Characters of a line on the screen.
const TABLE_WIDTH: u16 = 120;
/// Rows of one COPY into the ledger, in bytes.
const COPY_BYTES: usize = 256 * 1024;
/// How long a statement that needs others' consent may take.
const CONSENT_WITHIN: Duration = Duration::from_secs(3600);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Keep your database: tables of the ledger stand in your own PostgreSQL or MariaDB, too.
///
/// Your applications go on reading there with SQL; everybody writes through the ledger. The node writes what a quorum
/// has certified, watches the tables, and puts right what somebody else has changed. Takes effect when the node starts.
///
/// Example: entente chainify --database postgres://app:secret@db.example/shop --tables orders,parts --plan
/// Example: entente chainify --database postgres://app:secret@db.example/shop --tables orders,parts --network clearing/org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChainifyArguments {
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE, or mariadb:// or mysql://; options: ?socket=PATH, ?tls=on|off, ?ca=FILE
    #[arg(long, required_unless_present = "stop")]
    database: Option<String>,
    /// Tables, as `orders`, `sales.orders` or `sales.*`; none where the ledger's databases execute scripts: it has all of them
    #[arg(long, value_delimiter = ',')]
    tables: Vec<String>,
    /// The folder of your node in the network, as `entente init` wrote it
    #[arg(long, value_name = "FOLDER", alias = "dir", required_unless_present = "plan")]
    network: Option<PathBuf>,
    /// Say table by table what fits and what to change, and change nothing
    #[arg(long)]
    plan: bool,
    /// Make the ledger's tables from those of the database, with their rows; the node must be running
    #[arg(long, conflicts_with = "plan")]
    load: bool,
    /// Where rows in the database differ from the ledger's, the ledger's count
    #[arg(long)]
    take_ledger_rows: bool,
    /// Seconds from one comparison of all rows to the next; 0: at the start only [default: 60]
    #[arg(long)]
    scan_seconds: Option<u64>,
    /// Connections that run scripts, where the ledger's databases execute them [default: 16]
    #[arg(long)]
    connections: Option<usize>,
    /// The database belongs to you alone again: triggers go, rows stay; the node must be stopped
    #[arg(long, conflicts_with_all = ["database", "plan", "load"])]
    stop: bool,
}

pub(crate) fn run(arguments: &ChainifyArguments) -> Result<(), CommandError> {
    if arguments.stop {
        return stop(&folder(arguments)?);
    }
    let address: Address = arguments.database.as_deref().unwrap_or_default().parse()?;
    let is_named = |table: &&String| !table.ends_with(".*");
    let named: Vec<String> = arguments.tables.iter().filter(is_named).cloned().collect();
    let planned = chainify::plan(&address, &named)?;
    if arguments.plan {
        return show(&planned);
    }
    let folder = folder(arguments)?;
    let executes = folder.charter.execution == ExecutionModel::WhateverThenAgree;
    if executes != arguments.tables.is_empty() && !(executes && arguments.load) {
        return Err(match executes {
            true => "--tables: the databases of this ledger execute its scripts, and have all its tables; leave it out".into(),
            false => "--tables is missing: which tables of the ledger is the database to have?".into(),
        });
    }
    if arguments.load && executes {
        println!(
            "once its rows are the ledger's, rename or drop a table: the node makes it anew, with the ledger's constraints"
        );
    }
    let is_unfit = |table: &&PlannedTable| !table.findings.is_empty() && (table.is_there() || arguments.load);
    if let Some(table) = planned.iter().find(is_unfit) {
        show(&planned)?;
        return Err(format!("table {} does not fit yet; nothing was changed", table.name).into());
    }
    if arguments.load {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        for table in &planned {
            runtime.block_on(load(&folder, &address, table))?;
        }
    }
    let known = folder.config.database.clone();
    let config = OwnDatabaseConfig {
        url: address.to_string(),
        password_file: None,
        tables: if executes { Vec::new() } else { arguments.tables.clone() },
        scan_seconds: arguments.scan_seconds.or(known.as_ref().and_then(|known| known.scan_seconds)),
        take_ledger_rows: arguments.take_ledger_rows,
        waiting_megabytes: known.as_ref().and_then(|known| known.waiting_megabytes),
        connections: arguments.connections.or(known.and_then(|known| known.connections)),
    };
    folder.choose_database(Some(config), address.password.as_deref())?;
    if executes {
        let organisation = folder.organisation_name();
        println!(
            "{organisation} executes scripts in {address} from its next start on; `entente status` and /status say how it goes"
        );
        return Ok(());
    }
    println!(
        "{} keeps {} in {address} from its next start on; `entente status` and /status say how far the database is",
        folder.organisation_name(),
        arguments.tables.join(", ")
    );
    Ok(())
}

/// The database belongs to its organisation alone again.
fn stop(folder: &NodeFolder) -> Result<(), CommandError> {
    let Some(address) = own_address(folder)? else {
        return Err("this node keeps no tables in a database".into());
    };
    let forgotten = chainify::forget(&address);
    let tables = forgotten.map_err(|error| format!("{error}; stop the node, and run this again"))?;
    folder.choose_database(None, None)?;
    println!("{} in {address} may be written by everybody again; the rows stay", tables.join(", "));
    Ok(())
}

fn folder(arguments: &ChainifyArguments) -> Result<NodeFolder, CommandError> {
    let path = arguments.network.as_ref().ok_or("--network FOLDER is missing: the folder of your node")?;
    Ok(NodeFolder::open(path)?)
}

/// What fits, what has to change, and how the ledger's table is made.
fn show(planned: &[PlannedTable]) -> Result<(), CommandError> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(TABLE_WIDTH);
    table.set_header(["table", "rows, about", "what to change"]);
    for planned in planned {
        let findings: Vec<&str> = planned.findings.iter().map(|finding| finding.0.as_str()).collect();
        let said = if findings.is_empty() { "nothing: it fits".to_string() } else { findings.join("\n") };
        table.add_row([planned.name.clone(), grouped(planned.rows), said]);
    }
    println!("{table}");
    for create in planned.iter().filter_map(|planned| planned.create.as_ref()) {
        println!("{create};");
    }
    Ok(())
}

/// Makes a table of the ledger from one of the database.
async fn load(folder: &NodeFolder, address: &Address, table: &PlannedTable) -> Result<(), CommandError> {
    let Some(create) = &table.create else {
        let findings: Vec<&str> = table.findings.iter().map(|finding| finding.0.as_str()).collect();
        return Err(format!("table {} cannot be loaded: {}", table.name, findings.join("; ")).into());
    };
    let name = table.ledger_name();
    let client = connect(&folder.config.postgres.to_string()).await?;
    match client.simple_query(&format!("SELECT 1 FROM {name} LIMIT 1")).await {
        Ok(rows) if rows.iter().any(|row| matches!(row, SimpleQueryMessage::Row(_))) => {
            return Err(format!(
                "the ledger's table {name} has rows: run this without --load, and the node compares them with yours; or DELETE FROM \
                 {name} first, where an earlier --load has ended in the middle"
            )
            .into());
        }
        // An earlier one has made it.
        Ok(_) => {}
        Err(_) => {
            client.batch_execute(create).await.map_err(|error| explained("CREATE TABLE", &name, &error))?
        }
    }
    wait_for(&client, &name).await?;
    let start = Instant::now();
    // The database is read on a thread of its own; a bounded queue keeps the two together.
    let (lines, mut read) = tokio::sync::mpsc::channel::<String>(4);
    let (of_database, planned) = (address.clone(), table.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        let count = planned.copy(&of_database, &mut |line| {
            text.push_str(line);
            if text.len() >= COPY_BYTES {
                // Nobody listens any more only where the ledger has refused rows, which is said there.
                let _ = lines.blocking_send(std::mem::take(&mut text));
            }
        })?;
        let _ = lines.blocking_send(text);
        Ok::<u64, chainify::DatabaseError>(count)
    });
    let wrong = |error: tokio_postgres::Error| explained("COPY", &name, &error);
    let mut sink = std::pin::pin!(client.copy_in(&format!("COPY {name} FROM STDIN")).await.map_err(wrong)?);
    while let Some(text) = read.recv().await {
        sink.send(bytes::Bytes::from(text)).await.map_err(wrong)?;
    }
    // Where the database could not be read to its end nothing is finished.
    let count = reading.await??;
    sink.finish().await.map_err(wrong)?;
    println!("{name}: {} rows are the ledger's, {:.1} s", grouped(count), start.elapsed().as_secs_f64());
    Ok(())
}

fn explained(what: &str, name: &str, error: &tokio_postgres::Error) -> CommandError {
    let said = error.as_db_error().map_or(error.to_string(), |error| error.message().to_string());
    format!("{what} {name}: {said}").into()
}

/// A schema change may wait for the consent of others.
async fn wait_for(client: &Client, name: &str) -> Result<(), CommandError> {
    let start = Instant::now();
    let mut said = false;
    while client.simple_query(&format!("SELECT 1 FROM {name} LIMIT 0")).await.is_err() {
        if !said {
            println!(
                "CREATE TABLE {name} waits for the others' consent (entente proposals); the rows follow"
            );
            said = true;
        }
        if start.elapsed() > CONSENT_WITHIN {
            return Err(format!(
                "nobody has consented to CREATE TABLE {name} within an hour; run this again"
            )
            .into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}
