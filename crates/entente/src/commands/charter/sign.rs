use super::ledger_line;
use crate::CommandError;
use clap::Args;
use node::founding;
use std::path::PathBuf;

/// Sign a draft of the charter with this organisation's root key, if it says what this organisation's card says.
///
/// Example: entente charter sign --dir node draft.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SignArguments {
    /// The draft
    charter: PathBuf,
    /// Folder with the root key and the card
    #[arg(long)]
    dir: PathBuf,
    /// Another member's card that the draft must agree with, too; can be given again
    #[arg(long)]
    card: Vec<PathBuf>,
    /// Sign although this organisation has signed another draft; that signature stays good for whoever has it
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(arguments: &SignArguments) -> Result<(), CommandError> {
    let signed = founding::sign(&arguments.dir, &arguments.charter, &arguments.card, arguments.replace)?;
    println!("{}", ledger_line(&signed.charter));
    println!("{} has signed. Send this to whoever puts the charter together:", signed.name);
    println!("  {}", signed.signature.display());
    if !signed.is_node {
        println!(
            "Bring {}/credentials.toml into the node's folder; it holds no secret",
            arguments.dir.display()
        );
    }
    Ok(())
}
