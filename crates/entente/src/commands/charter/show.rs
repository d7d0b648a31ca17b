use super::explain::explained;
use crate::CommandError;
use clap::Args;
use node::founding::{read_card, read_draft, read_signature, read_unchecked};
use std::io::Write;
use std::path::PathBuf;
use types::Charter;

/// Explain a charter in words: who its members are, what they agree to, and who has signed.
///
/// Example: entente charter show draft.toml --card bank_b.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ShowArguments {
    /// The charter or a draft of it
    charter: PathBuf,
    /// A member's card, to see whether the charter says what the card says; can be given again
    #[arg(long)]
    card: Vec<PathBuf>,
    /// A signature, to see whether it is one over this charter; can be given again
    #[arg(long)]
    signature: Vec<PathBuf>,
    /// Another charter or draft, signed or not, or altered: show in what they differ
    #[arg(long, value_name = "CHARTER")]
    against: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ShowArguments) -> Result<(), CommandError> {
    let mut charter = read_draft(&arguments.charter)?;
    for path in &arguments.signature {
        let named = |error| format!("{}: {error}", path.display());
        charter.add_signature(&read_signature(path)?).map_err(named)?;
    }
    for path in &arguments.card {
        let named = |error| format!("{}: {error}", path.display());
        read_card(path)?.position_in(&charter).map_err(named)?;
    }
    let text = match &arguments.against {
        Some(path) => differences(&charter, &read_unchecked(path)?),
        None => {
            let agree =
                arguments.card.iter().map(|path| format!("The charter says what {} says.\n", path.display()));
            explained(&charter)? + &agree.collect::<String>()
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // Whoever reads the beginning only has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(CommandError::from),
    }
}

fn differences(charter: &Charter, other: &Charter) -> String {
    let differences = charter.differences(other);
    if differences.is_empty() {
        return "Both say the same, and are the same ledger.\n".to_string();
    }
    differences.iter().map(|one| one.named("this has", "the other") + "\n").collect()
}
