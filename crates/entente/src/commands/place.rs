use crate::CommandError;
use crate::store::StoreArguments;
use clap::Args;
use node::{place, placement};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Show which of an organisation's nodes holds which schemas, or let another node hold some.
///
/// The node that is the ledger's member, the validator, orders and records everything, and holds what nobody else holds.
/// Another node holds the rows of its schemas and executes what touches these alone. Both begin with that at their next
/// start; rows that exist move then.
///
/// Example: entente place --dir clearing/org1 --at clearing/org1-trade --schemas trade,stock
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PlaceArguments {
    /// The validator's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// The folder of the node that holds the schemas; it is made where there is none
    #[arg(long, requires = "schemas")]
    at: Option<PathBuf>,
    /// All schemas that it holds from then on; an empty text: none
    #[arg(long, value_delimiter = ',', requires = "at")]
    schemas: Option<Vec<String>>,
    /// Where it listens for the validator [default: on the same machine, behind the last port in use]
    #[arg(long, requires = "at")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn run(arguments: &PlaceArguments) -> Result<(), CommandError> {
    if let (Some(at), Some(schemas)) = (&arguments.at, &arguments.schemas) {
        let schemas: Vec<String> = schemas.iter().filter(|schema| !schema.is_empty()).cloned().collect();
        let placed = place(&arguments.dir, at, &schemas, (arguments.listen, arguments.store.choice()))?;
        let (name, address) = (&placed.name, placed.address);
        match placed.is_new {
            true => println!("{name} is a new node of this organisation, at {address}"),
            false => println!("{name} is known, at {address}"),
        }
        println!("Start both, in any order; what is there moves then:");
        println!("  entente node --dir {}", at.display());
        println!("  entente node --dir {}", arguments.dir.display());
        println!();
    }
    let holders = placement(&arguments.dir)?;
    for holder in &holders {
        let schemas =
            if holder.schemas.is_empty() { "(none)".to_string() } else { holder.schemas.join(", ") };
        println!("{} at {}: {schemas}", holder.name, holder.address);
    }
    println!("the validator: {}", if holders.is_empty() { "everything" } else { "everything else" });
    Ok(())
}
