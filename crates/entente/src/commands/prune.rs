use crate::CommandError;
use bench::grouped;
use clap::Args;
use node::{NodeFolder, PAYLOAD_BLOCKS_MIN, prune_folder};
use std::path::PathBuf;

/// Give up the transactions and receipts of old blocks; headers, certificates and digests stay for ever.
///
/// With --payload-blocks or --payload-days it writes them into node.toml, from which the node prunes by itself while it runs.
/// Then the command prunes at once what can be, for which the node must be stopped. Keep at least one node that keeps all.
///
/// Example: entente prune --dir clearing/org1 --payload-days 90
/// Example: entente prune --dir clearing/org1 --dry-run
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PruneArguments {
    /// The node's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Keep the transactions and receipts of so many of the newest blocks, 1000 at least
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u64).range(PAYLOAD_BLOCKS_MIN..))]
    payload_blocks: Option<u64>,
    /// Keep those of so many days; with --payload-blocks what either says is kept
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
    payload_days: Option<u32>,
    /// Say only what would be pruned; node.toml stays as it is
    #[arg(long, conflicts_with_all = ["payload_blocks", "payload_days"])]
    dry_run: bool,
}

pub(crate) fn run(arguments: &PruneArguments) -> Result<(), CommandError> {
    let PruneArguments { dir, payload_blocks, payload_days, dry_run } = arguments;
    if payload_blocks.is_some() || payload_days.is_some() {
        NodeFolder::open(dir)?.choose_pruning(*payload_blocks, *payload_days)?;
        println!(
            "wrote {} into {}: from its next start on the node prunes by itself",
            settings(*payload_blocks, *payload_days),
            dir.join("node.toml").display()
        );
    }
    let folder = prune_folder(dir, *dry_run)?;
    let pruned = folder.pruned;
    match (pruned.blocks, dry_run) {
        (0, _) => println!(
            "nothing to prune: blocks from height {} on are needed, and files of blocks go as a whole",
            grouped(folder.first_needed)
        ),
        (blocks, true) => println!(
            "would prune {} blocks, whose files have {} now",
            grouped(blocks),
            megabytes(pruned.bytes_before)
        ),
        (blocks, false) => println!(
            "pruned {} blocks: {} of files are {} now",
            grouped(blocks),
            megabytes(pruned.bytes_before),
            megabytes(pruned.bytes_now)
        ),
    }
    println!(
        "transactions and receipts are here from height {} on, of {} blocks; the files of blocks have {}",
        grouped(folder.payloads_from),
        grouped(folder.height),
        megabytes(folder.ledger_bytes)
    );
    Ok(())
}

/// As node.toml has them.
fn settings(blocks: Option<u64>, days: Option<u32>) -> String {
    let blocks = blocks.map(|blocks| format!("payload_blocks = {blocks}"));
    let days = days.map(|days| format!("payload_days = {days}"));
    blocks.into_iter().chain(days).collect::<Vec<_>>().join(" and ")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
