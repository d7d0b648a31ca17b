//! Makes a ledger of Smallbank calls as a network of four would have written it, to measure `entente verify` with.
//!
//! ```text
//! cargo run --release -p bench --example signed_ledger -- FOLDER [TRANSACTIONS [PER BLOCK]]
//! entente verify --replay FOLDER
//! ```

use bench::{SignedLedger, SignedLedgerOptions};
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("expected a folder")?);
    let transactions: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let per_block: u32 = arguments.next().map_or(Ok(2_000), |text| text.parse())?;
    let workload = workloads::workload("smallbank", 100_000, 0.0)?;
    let mut ledger = SignedLedger::create(&folder, SignedLedgerOptions::default(), |_| ())?;
    ledger.set_up(workload.as_ref())?;
    let rest = (transactions % u64::from(per_block)) as u32;
    let blocks = (0..transactions / u64::from(per_block)).map(|_| per_block);
    ledger.run(workload.as_ref(), blocks.chain((rest > 0).then_some(rest)), 1)?;
    ledger.finish()?;
    println!("{transactions} calls in blocks of {per_block}: {}", folder.display());
    Ok(())
}
