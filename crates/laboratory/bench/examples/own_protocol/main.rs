//! The laboratory with a protocol of one's own beside the built-in ones:
//! `cargo run --release -p bench --example own_protocol -- --experiments crates/laboratory/bench/examples/own_protocol/experiments.toml`.

mod first_wins;

use bench::{LaboratoryArguments, LaboratoryCommand, laboratory};
use clap::Parser;
use first_wins::FirstWins;
use std::process::ExitCode;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    laboratory: LaboratoryArguments,
}

fn main() -> ExitCode {
    concurrency::register("first-wins", |_| Box::new(FirstWins::default()));
    let arguments = Arguments::parse().laboratory;
    match laboratory(LaboratoryCommand::Protocols, &arguments, &mut |text| eprintln!("{text}")) {
        Ok(measurements) => {
            println!("{} points in {}", measurements.len(), arguments.run.out.join("report.html").display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
