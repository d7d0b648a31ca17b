use super::ledger_line;
use crate::CommandError;
use crate::model::{ExecutionArguments, ServiceArguments};
use clap::Args;
use node::founding::read_card;
use std::path::PathBuf;
use types::Charter;

/// Write a charter for the organisations of these cards, which nobody has signed yet.
///
/// The members stand in the order of the cards. Other parameters than those here can be changed in the file, as long as nobody
/// has signed it.
///
/// Example: entente charter draft --name clearing --card a.toml --card b.toml --card c.toml --card d.toml --out draft.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DraftArguments {
    /// Name of the network, as the cards have it
    #[arg(long)]
    name: String,
    /// A member's card; once for each member
    #[arg(long, required = true)]
    card: Vec<PathBuf>,
    /// File to write; must not exist
    #[arg(long)]
    out: PathBuf,
    /// Whose consent changes of schema, contracts, members and the charter need: majority of the organisations, any one of
    /// them, or an expression like "bank_a AND 2 of (bank_b, bank_c, bank_d)"
    #[arg(long, default_value = "majority")]
    governance: String,
    #[command(flatten)]
    ordering: ServiceArguments,
    #[command(flatten)]
    execution: ExecutionArguments,
}

pub(crate) fn run(arguments: &DraftArguments) -> Result<(), CommandError> {
    let cards = arguments.card.iter().map(|path| read_card(path)).collect::<Result<Vec<_>, _>>()?;
    let mut charter = Charter::with_defaults(&arguments.name, u64::from_be_bytes(crypto::random_bytes()));
    arguments.ordering.apply(&mut charter, cards.len())?;
    charter.governance.clone_from(&arguments.governance);
    arguments.execution.apply(&mut charter)?;
    let charter = charter.of_cards(&cards)?;
    let out = &arguments.out;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(out);
    let written = file.and_then(|mut file| {
        use std::io::Write;
        file.write_all(charter.to_toml().as_bytes())
    });
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{} exists; give --out another file: another draft is another ledger", out.display())
        }
        _ => format!("cannot write {}: {error}", out.display()),
    })?;
    println!("{}", ledger_line(&charter));
    println!("Send {} to every member. Each reads it and signs it:", out.display());
    println!("  entente charter show {}", out.display());
    println!("  entente charter sign --dir FOLDER {}", out.display());
    Ok(())
}
