//! `entente bench protocols`, `ablation` and `endorse` without the rest of the binary:
//! `cargo run --release -p bench --example laboratory -- protocols --quick --json out.json`.

use bench::{
    ExperimentArguments, LaboratoryArguments, LaboratoryCommand, LaboratoryError, endorse, laboratory,
};
use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// That of the binary, so that both measure the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Protocols × workloads × skew, block size, threads
    Protocols(LaboratoryArguments),
    /// Harmony with and without its optimisations
    Ablation(LaboratoryArguments),
    /// Execute–order–validate
    Endorse(ExperimentArguments),
}

fn main() -> ExitCode {
    let said = match Arguments::parse().command {
        Command::Protocols(arguments) => compare(LaboratoryCommand::Protocols, &arguments),
        Command::Ablation(arguments) => compare(LaboratoryCommand::Ablation, &arguments),
        Command::Endorse(arguments) => endorse(&arguments, &mut |text| eprintln!("{text}"))
            .map(|measurements| said(measurements.len(), &arguments.out)),
    };
    match said {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(command: LaboratoryCommand, arguments: &LaboratoryArguments) -> Result<String, LaboratoryError> {
    let measurements = laboratory(command, arguments, &mut |text| eprintln!("{text}"))?;
    Ok(said(measurements.len(), &arguments.run.out))
}

fn said(points: usize, folder: &Path) -> String {
    format!("{points} points in {}", folder.join("report.html").display())
}
