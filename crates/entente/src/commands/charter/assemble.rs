use super::{ledger_line, missing_line};
use crate::CommandError;
use clap::Args;
use node::founding;
use std::path::PathBuf;

/// Put signatures into a charter, and say whose are missing.
///
/// Example: entente charter assemble draft.toml --signature bank_a.signature.toml --signature bank_b.signature.toml
///            --out charter.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AssembleArguments {
    /// The draft, or a charter that has some signatures already
    charter: PathBuf,
    /// A member's signature; once for each
    #[arg(long, required = true)]
    signature: Vec<PathBuf>,
    /// File to write; if it exists, it must be the same charter, and keeps the signatures that it has
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &AssembleArguments) -> Result<(), CommandError> {
    let charter = founding::assemble(&arguments.charter, &arguments.signature, &arguments.out)?;
    println!("{}", ledger_line(&charter));
    println!("{}", missing_line(&charter));
    let out = arguments.out.display();
    match charter.missing_signatures().is_empty() {
        true => {
            println!("Send {out} to every member. Each puts it into its node's folder and starts the node:");
            println!("  entente charter install --dir FOLDER {out}");
            println!("  entente node --dir FOLDER");
        }
        false => println!("Add them to {out} when they have come; no node starts before that"),
    }
    Ok(())
}
