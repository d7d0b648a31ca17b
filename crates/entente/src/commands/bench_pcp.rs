//! `entente bench pcp`: TNG's private transactions and their atomic commit, with the thesis's numbers beside ours.

use crate::CommandError;
use pcp::{PcpArguments, pcp_table};

/// Runs the command.
pub(crate) fn run(arguments: &PcpArguments) -> Result<(), CommandError> {
    let records = pcp::bench(arguments, &mut |text| eprintln!("{text}"))?;
    println!("{}", pcp_table(&records));
    let Some(path) = &arguments.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(&records)?;
    std::fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
