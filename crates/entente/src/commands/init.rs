use crate::CommandError;
use crate::model::{ModelArguments, show_topic};
use crate::store::StoreArguments;
use clap::Args;
use node::{Network, NetworkOptions};
use std::path::PathBuf;
use types::Charter;

/// Write keys, a signed charter and a folder per node for a new network on this machine.
///
/// Example: entente init --dir clearing --orgs 4 && entente node --dir clearing/org1
/// Example: entente init --dir alone --orgs 1 --governance any
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InitArguments {
    /// Folder to write into; must be empty or not exist
    #[arg(long)]
    dir: PathBuf,
    /// Organisations: four at least, or one by itself, to try things out
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=100))]
    orgs: u64,
    /// Name of the network
    #[arg(long, default_value = "entente")]
    name: String,
    /// Whose consent changes of schema, contracts, members and the charter need: majority of the organisations, any one of
    /// them, or an expression like "org1 AND 2 of (org2, org3, org4)"
    #[arg(long, default_value = "majority")]
    governance: String,
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// First port: nodes from here, Postgres 100 higher, HTTP 200 higher
    #[arg(long, default_value_t = 7000)]
    port_base: u16,
    /// Threads of each node's execution
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
}

pub(crate) fn run(arguments: &InitArguments) -> Result<(), CommandError> {
    let chosen = &arguments.model.ordering;
    if chosen.is_kafka() && chosen.brokers().is_none() {
        return Err(
            "--ordering kafka: expected --kafka-brokers host:port,… that every node reaches, found none"
                .into(),
        );
    }
    let mut charter = Charter::with_defaults(&arguments.name, u64::from_be_bytes(crypto::random_bytes()));
    arguments.model.apply(&mut charter, arguments.orgs as usize)?;
    charter.governance.clone_from(&arguments.governance);
    let options = NetworkOptions {
        organisations: arguments.orgs as usize,
        port_base: arguments.port_base,
        threads: arguments.threads as usize,
        pipeline: arguments.model.pipeline(),
        store: arguments.store.choice(),
        charter,
    };
    let network = Network::create(&arguments.dir, &options)?;
    println!("ledger {}", network.charter.ledger());
    println!(
        "Changes of schema, contracts, members and the charter need the consent of: {} (docs/governance.md)",
        network.charter.governance
    );
    if let Some(brokers) = chosen.brokers() {
        show_topic(&chosen.choose_topic(&network, brokers)?, &network.charter);
    }
    println!("Start each node with:");
    for folder in &network.folders {
        println!("  entente node --dir {}", folder.display());
    }
    Ok(())
}
