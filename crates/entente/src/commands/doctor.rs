//! `entente doctor`, and `entente node --check`.

use super::own_database::own_address;
use crate::{CommandError, terminal};
use clap::Args;
use node::doctor::{self, Finding, Level};
use node::{HolderFolder, NodeFolder};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Say what is wrong with a node, and what to do: folder, keys, settings, charter, certificate, disk, ports, clock, other members.
///
/// The node may run or be stopped; nothing is changed. The exit code is 0 if there is no problem, 1 if there is one.
///
/// Example: entente doctor --dir clearing/org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct DoctorArguments {
    /// The node's folder
    #[arg(long)]
    dir: PathBuf,
    /// Print a list of {check, level, found, advice} as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, CommandError> {
    if HolderFolder::is_one(&arguments.dir) {
        let message = "this is the folder of a node that holds schemas: look at its validator's folder, and `entente place`";
        return Err(message.into());
    }
    let mut findings = doctor::examine(&arguments.dir)?;
    findings.extend(own_settings(&arguments.dir));
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        print(&findings);
    }
    Ok(code(&findings))
}

/// What `entente node --check` says: whether the node would start.
pub(super) fn check(dir: &Path) -> ExitCode {
    let mut findings = doctor::check(dir);
    findings.extend(own_settings(dir));
    print(&findings);
    code(&findings)
}

/// What of `node.toml` this program uses itself.
fn own_settings(dir: &Path) -> Option<Finding> {
    // What else is wrong with the folder has been said.
    let folder = NodeFolder::open(dir).ok()?;
    let wrong =
        own_address(&folder).err().or_else(|| terminal::check_log(&folder.config).err().map(Into::into))?;
    Some(Finding {
        check: "settings",
        level: Level::Problem,
        found: wrong.to_string(),
        advice: Some("correct node.toml".to_string()),
    })
}

fn print(findings: &[Finding]) {
    for Finding { check, level, found, advice } in findings {
        println!("{level:<8} {check}: {found}");
        if let Some(advice) = advice {
            println!("         ↳ {advice}");
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let shown = |count: usize, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    println!("{}, {}", shown(count(Level::Problem), "problem"), shown(count(Level::Warning), "warning"));
}

fn code(findings: &[Finding]) -> ExitCode {
    let is_bad = findings.iter().any(|finding| finding.level == Level::Problem);
    if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
