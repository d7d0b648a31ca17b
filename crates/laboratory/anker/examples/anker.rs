//! `entente bench anker` without the rest of the program, which takes minutes to build:
//! `cargo run --release -p anker --example anker -- --quick`.

use anker::{AnkerArguments, anker_table, bench};
use clap::Parser;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: AnkerArguments,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse().bench;
    let records = bench(&arguments, &mut |text| eprintln!("{text}"))?;
    println!("{}", anker_table(&records));
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&records)? + "\n")?;
    }
    Ok(())
}
