use crate::CommandError;
use crate::store::Kind;
use clap::Args;
use node::{MEMORY_MEGABYTES, StoreChoice, StoreKind, convert_store};
use std::path::PathBuf;

/// Change where a stopped node keeps the rows of its state: in memory, or on the disk.
///
/// A node also does this by itself when node.toml says something else at its next start.
/// This command does it beforehand, and says whether there is room.
///
/// Example: entente convert-store --dir clearing/org1 --store disk --memory-megabytes 512
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ConvertStoreArguments {
    /// The node's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Where the rows of the state are from now on
    #[arg(long, value_enum)]
    store: Kind,
    /// Memory that a store on the disk may use, in units of 1,048,576 bytes [default: 256]
    #[arg(long, value_name = "MEGABYTES")]
    memory_megabytes: Option<u64>,
}

pub(crate) fn run(arguments: &ConvertStoreArguments) -> Result<(), CommandError> {
    let kind = arguments.store.into();
    let choice = StoreChoice { kind, memory_megabytes: arguments.memory_megabytes };
    let converted = convert_store(&arguments.dir, choice)?;
    for refused in &converted.refused {
        println!("left out: {refused}");
    }
    match converted.state {
        Some((height, statistics)) => println!(
            "the state of height {height}: {} rows, {} MB of files",
            statistics.rows,
            statistics.file_bytes >> 20
        ),
        None => println!("no state can be taken up: the node makes one from its ledger or from other nodes"),
    }
    let memory = match kind {
        StoreKind::Memory => String::new(),
        StoreKind::Disk => {
            format!(" with {} MB of memory", arguments.memory_megabytes.unwrap_or(MEMORY_MEGABYTES))
        }
    };
    println!(
        "node.toml says store = \"{}\"{memory}; start the node: entente node --dir {}",
        kind.name(),
        arguments.dir.display()
    );
    Ok(())
}
