//! `entente bench anker`: AnKerDB's tables and figures, with the paper's numbers beside ours.

use crate::CommandError;
use anker::{AnkerArguments, anker_table};

/// Runs the command.
pub(crate) fn run(arguments: &AnkerArguments) -> Result<(), CommandError> {
    let records = anker::bench(arguments, &mut |text| eprintln!("{text}"))?;
    println!("{}", anker_table(&records));
    let Some(path) = &arguments.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(&records)?;
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
