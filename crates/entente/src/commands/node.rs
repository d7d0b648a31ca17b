use crate::{CommandError, terminal};
use analytics::DataFusion;
use chainify::{Address, OwnDatabase, OwnDatabaseOptions};
use clap::Args;
use node::{KeepOwnDatabase, Node, NodeFolder, NodeOptions};
use sql::RunFragments;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Run one organisation's node from its folder.
///
/// Example: entente node --dir clearing/org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NodeArguments {
    /// The node's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Stop when standard input ends, so that nodes end with the program that started them
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

pub(crate) fn run(arguments: &NodeArguments) -> Result<(), CommandError> {
    let folder = NodeFolder::open(&arguments.dir)?;
    keep_memory_in_small_pages();
    let (name, config) = (folder.organisation_name().to_string(), folder.config.clone());
    let interruptions = terminal::interruptions()?;
    allow_many_connections();
    let fragments = Some(Arc::new(DataFusion::default()) as Arc<dyn RunFragments>);
    let own_database = own_database(&folder)?;
    let node = Node::start_with(folder, NodeOptions { fragments, own_database, ..NodeOptions::default() })?;
    let report = node.report();
    println!(
        "{name} at height {}: checkpoint {}, {} blocks replayed in {:.1} s; Postgres {}, HTTP {}",
        report.height,
        report.checkpoint,
        report.replayed,
        report.time.as_secs_f64(),
        config.postgres,
        config.http
    );
    for repair in &report.repairs {
        println!("repaired: {repair}");
    }
    if arguments.stop_with_input {
        std::thread::spawn(|| {
            let mut input = std::io::stdin();
            while matches!(input.read(&mut [0; 64]), Ok(read) if read > 0) {}
            // Whoever started us is gone; nothing is lost, the next start recovers.
            std::process::exit(0);
        });
    }
    let mut told = None;
    while interruptions.recv_timeout(Duration::from_millis(200)).is_err() {
        let reason = node.not_serving();
        if reason != told {
            if let Some(reason) = &reason {
                eprintln!("entente: this node does not serve: {reason}");
            }
            told = reason;
        }
    }
    node.stop();
    match told {
        Some(reason) => Err(reason.into()),
        None => Ok(()),
    }
}

/// What keeps tables in the organisation's own database, where `node.toml` names one.
fn own_database(folder: &NodeFolder) -> Result<Option<Arc<dyn KeepOwnDatabase>>, CommandError> {
    let Some(config) = &folder.config.database else { return Ok(None) };
    let mut address: Address = config.url.parse()?;
    if let Some(password) = folder.database_password()? {
        address.password = Some(password);
    }
    let options = OwnDatabaseOptions {
        address,
        tables: config.tables.clone(),
        scan_seconds: config.scan_seconds,
        takes_ledger_rows: config.take_ledger_rows,
    };
    Ok(Some(Arc::new(OwnDatabase::new(options))))
}

/// A session is an open file, and many systems allow 1,024 to a program that asks for no more.
fn allow_many_connections() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::info!(%error, "the number of connections is limited by `ulimit -n`");
    }
}

/// The allocator asks for pages of 2 MB, of which a node's scattered rows and its queues leave much unused: 350 MB
/// resident instead of 220 in the demo, for 3 % of speed. A node lives beside others, so it goes without.
fn keep_memory_in_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_thp_disable(true) {
        tracing::info!(%error, "large memory pages stay on: this node needs about half as much memory again");
    }
}
