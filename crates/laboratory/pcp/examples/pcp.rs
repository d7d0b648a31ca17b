//! `entente bench pcp` without the rest of the program, which takes minutes to build:
//! `cargo run --release -p pcp --example pcp -- --quick`.

use clap::Parser;
use pcp::{PcpArguments, bench, pcp_table};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: PcpArguments,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse().bench;
    let records = bench(&arguments, &mut |text| eprintln!("{text}"))?;
    println!("{}", pcp_table(&records));
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&records)? + "\n")?;
    }
    Ok(())
}
