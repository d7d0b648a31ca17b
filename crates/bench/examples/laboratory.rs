//! `entente bench protocols`, `ablation` and `endorse` without the rest of the binary:
//! `cargo run --release -p bench --example laboratory -- protocols --quick --json out.json`.

use bench::{EndorseArguments, LaboratoryArguments, LaboratoryCommand, endorse, laboratory};
use clap::{Parser, Subcommand};
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
    Endorse(EndorseArguments),
}

fn main() -> ExitCode {
    let said = match Arguments::parse().command {
        Command::Protocols(arguments) => compare(LaboratoryCommand::Protocols, &arguments),
        Command::Ablation(arguments) => compare(LaboratoryCommand::Ablation, &arguments),
        Command::Endorse(arguments) => endorse(&arguments, &mut |text| eprintln!("{text}"))
            .map(|records| format!("{} points", records.len()))
            .map_err(|error| error.to_string()),
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

fn compare(command: LaboratoryCommand, arguments: &LaboratoryArguments) -> Result<String, String> {
    let measurements =
        laboratory(command, arguments, &mut |text| eprintln!("{text}")).map_err(|error| error.to_string())?;
    Ok(format!("{} points in {}", measurements.len(), arguments.out.join("report.html").display()))
}
