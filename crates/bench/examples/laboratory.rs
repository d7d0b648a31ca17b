//! `entente bench protocols` and `entente bench ablation` without the rest of the binary:
//! `cargo run --release -p bench --example laboratory -- protocols --quick --json out.json`.

use bench::{LaboratoryArguments, LaboratoryCommand, laboratory};
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
}

fn main() -> ExitCode {
    let (command, arguments) = match Arguments::parse().command {
        Command::Protocols(arguments) => (LaboratoryCommand::Protocols, arguments),
        Command::Ablation(arguments) => (LaboratoryCommand::Ablation, arguments),
    };
    match laboratory(command, &arguments, &mut |text| eprintln!("{text}")) {
        Ok(measurements) => {
            println!("{} points in {}", measurements.len(), arguments.out.join("report.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
