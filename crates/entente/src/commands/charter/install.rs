use super::ledger_line;
use crate::CommandError;
use crate::model::show_topic;
use clap::Args;
use node::{NodeFolder, founding};
use std::path::PathBuf;

/// Put the charter that all founders have signed into the folder of this organisation's node.
///
/// Example: entente charter install --dir node charter.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InstallArguments {
    /// The charter
    charter: PathBuf,
    /// The node's folder, as `entente keys` has made it
    #[arg(long)]
    dir: PathBuf,
}

pub(crate) fn run(arguments: &InstallArguments) -> Result<(), CommandError> {
    let installed = founding::install(&arguments.dir, &arguments.charter)?;
    println!("{}", ledger_line(&installed.charter));
    if installed.before {
        println!("It was there before; nothing was changed.");
    }
    let folder = NodeFolder::open(&arguments.dir)?;
    match &folder.config.kafka {
        Some(topic) => show_topic(topic, &folder.charter),
        None if folder.charter.ordering == "kafka" => {
            println!("A topic orders: say in node.toml where it is, [kafka] with brokers (docs/ordering.md)");
        }
        None => {}
    }
    println!("Start the node with:");
    println!("  entente node --dir {}", arguments.dir.display());
    Ok(())
}
