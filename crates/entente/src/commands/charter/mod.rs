//! How cards become a charter that all founders have signed: one file per step.

mod assemble;
mod draft;
mod explain;
mod install;
mod show;
mod sign;

use crate::CommandError;
use clap::Subcommand;
use types::{Charter, fingerprint};

/// Found a network: draft a charter from cards, explain it, sign it, put it together, install it.
///
/// docs/founding.md goes through all of it.
#[derive(Subcommand)]
pub(crate) enum CharterCommand {
    Draft(draft::DraftArguments),
    Show(show::ShowArguments),
    Sign(sign::SignArguments),
    Assemble(assemble::AssembleArguments),
    Install(install::InstallArguments),
}

pub(crate) fn run(command: &CharterCommand) -> Result<(), CommandError> {
    match command {
        CharterCommand::Draft(arguments) => draft::run(arguments),
        CharterCommand::Show(arguments) => show::run(arguments),
        CharterCommand::Sign(arguments) => sign::run(arguments),
        CharterCommand::Assemble(arguments) => assemble::run(arguments),
        CharterCommand::Install(arguments) => install::run(arguments),
    }
}

/// What people compare over the phone.
fn ledger_line(charter: &Charter) -> String {
    format!("ledger {}", fingerprint(&charter.ledger().0))
}

/// Who has not signed yet, as a line.
fn missing_line(charter: &Charter) -> String {
    match charter.missing_signatures().as_slice() {
        [] => "signed by all members".to_string(),
        missing => format!("missing signatures: {}", missing.join(", ")),
    }
}
