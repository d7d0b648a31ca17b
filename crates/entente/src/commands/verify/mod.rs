mod backed_up;
mod exported;
mod folder;
mod proof;
mod replay;
mod schemas;

use crate::CommandError;
use audit::{AuditProgress, HeldParts, Options, Replay, Report};
use bench::grouped;
use clap::Args;
use folder::LedgerFolder;
pub(super) use folder::read_charter;
use indicatif::{ProgressBar, ProgressStyle};
use node::{FolderParts, ReplayedSchema, SchemaReplay};
use schemas::{Held, SchemasRecord};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::Charter;

/// Check a ledger, a receipt, a row, an export, or a backup, offline: from the charter alone, without believing anybody.
///
/// A ledger's folder is a node's folder, or its `ledger` with `charter.toml` in it or beside it. The node may be running.
/// Of schemas with members the folder's parts are checked, too, and with --replay what they came to. Of pruned blocks headers,
/// certificates and digests are checked, and of redacted transactions hash and place.
///
/// Example: entente verify --replay node1
/// Example: entente verify --receipt receipt.json --charter charter.toml
/// Example: entente verify --row row.json --key 7 --charter charter.toml
/// Example: entente verify --export /srv/lake --charter charter.toml
/// Example: entente verify --backup /srv/backup/org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct VerifyArguments {
    /// The ledger's folder
    #[arg(required_unless_present_any = ["receipt", "row", "export", "backup"])]
    ledger_dir: Option<PathBuf>,
    /// Execute every block as well and compare what it comes to
    #[arg(long)]
    replay: bool,
    /// The charter; by default the one in the folder
    #[arg(long, value_name = "FILE")]
    charter: Option<PathBuf>,
    /// Check this proof of a receipt, as JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ledger_dir", "replay"], requires = "charter")]
    receipt: Option<PathBuf>,
    /// Check this proof of a row, or that there is none, as JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ledger_dir", "replay", "receipt"], requires = "charter")]
    row: Option<PathBuf>,
    /// The values of the primary key that the proof must be about, one after the other; --key=-x for one that begins with a
    /// hyphen and is no number
    #[arg(long, value_name = "VALUE", requires = "row", num_args = 1.., allow_negative_numbers = true)]
    key: Vec<String>,
    /// Check the tables that `entente export` has written there: a folder, or the address of an object store
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["ledger_dir", "replay", "receipt", "row"], requires = "charter")]
    export: Option<String>,
    /// Of which checkpoint; the newest one by default
    #[arg(long, requires = "export")]
    height: Option<u64>,
    /// Check the backup that `entente backup` has written there: a folder, or the address of an object store
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["ledger_dir", "replay", "receipt", "row", "export"])]
    backup: Option<String>,
    /// Number of the backup; the newest one by default
    #[arg(long, requires = "backup")]
    number: Option<u64>,
    /// Where to write what was found
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Threads; as many as the machine has by default
    #[arg(long)]
    threads: Option<usize>,
}

/// What is written for programs.
#[derive(Serialize)]
struct Record {
    transactions: u64,
    /// Blocks without transactions and receipts, of which what is certified was checked, and the last of them.
    pruned_blocks: u64,
    pruned_transactions: u64,
    pruned_to: u64,
    /// Transactions whose content is gone by consent, and the block of the last of them.
    redacted: u64,
    redacted_to: u64,
    /// Blocks that could not be executed again because of them.
    unexecuted_blocks: u64,
    seconds: f64,
    valid: bool,
    first_error: Option<String>,
    first_height: u64,
    height: u64,
    certified_height: u64,
    bytes: u64,
    torn_bytes: u64,
    replayed: bool,
    schemas: SchemasRecord,
}

pub(crate) fn run(arguments: &VerifyArguments) -> Result<(), CommandError> {
    if let (Some(file), Some(charter)) = (&arguments.receipt, &arguments.charter) {
        return proof::verify_receipt(file, &folder::read_charter(charter)?);
    }
    if let (Some(file), Some(charter)) = (&arguments.row, &arguments.charter) {
        return proof::verify_row(file, &arguments.key, &folder::read_charter(charter)?);
    }
    if let (Some(target), Some(charter)) = (&arguments.export, &arguments.charter) {
        return exported::verify(target, arguments.height, &folder::read_charter(charter)?);
    }
    if let Some(target) = &arguments.backup {
        let charter = arguments.charter.as_deref().map(read_charter).transpose()?;
        return backed_up::verify(target, arguments.number, charter.as_ref());
    }
    let Some(path) = &arguments.ledger_dir else { return Err("expected a ledger's folder".into()) };
    let LedgerFolder { charter, blocks } = LedgerFolder::find(path, arguments.charter.as_deref())?;
    let start = Instant::now();
    let held = schemas::held(path)?;
    let (report, replayed) = check((&Arc::new(charter), &blocks), held.as_ref(), arguments)?;
    let held = held.as_deref();
    let seconds = start.elapsed().as_secs_f64();
    let damage = held.and_then(schemas::first_damage);
    let error = report.error.as_ref().map(ToString::to_string).or(damage);
    let record = Record {
        transactions: report.checked.transactions,
        pruned_blocks: report.checked.pruned_blocks,
        pruned_transactions: report.checked.pruned_transactions,
        pruned_to: report.checked.pruned_to,
        redacted: report.checked.redacted,
        redacted_to: report.checked.redacted_to,
        unexecuted_blocks: report.checked.unexecuted_blocks,
        seconds,
        valid: error.is_none(),
        first_error: error.clone(),
        first_height: report.first_height,
        height: report.checked.height,
        certified_height: report.certified_height,
        bytes: report.checked.bytes,
        torn_bytes: report.torn.as_ref().map_or(0, |torn| torn.bytes),
        replayed: arguments.replay,
        schemas: SchemasRecord::new(&report.schemas, held, &replayed),
    };
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&record)?;
        std::fs::write(path, text + "\n")
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    print(&report, &record);
    schemas::print(&report.schemas, held, &replayed);
    match error {
        None => Ok(()),
        Some(error) => Err(error.into()),
    }
}

/// Checks a ledger, and executes it if that was asked for, with the schemas of which there are parts.
fn check(
    (charter, blocks): (&Arc<Charter>, &Path),
    held: Option<&Arc<FolderParts>>,
    arguments: &VerifyArguments,
) -> Result<(Report, Vec<ReplayedSchema>), CommandError> {
    let mut replay = match arguments.replay {
        true => {
            let schemas = held.map(|held| SchemaReplay::new(held.clone()));
            let folder = blocks.canonicalize()?.parent().map(Path::to_path_buf);
            Some(replay::EngineReplay::new(charter.clone(), folder, schemas)?)
        }
        false => None,
    };
    let parts = held.map(|held| Arc::new(Held(held.clone())) as Arc<dyn HeldParts>);
    let mut options = Options { parts, ..Options::default() };
    if let Some(threads) = arguments.threads {
        options.threads = threads.max(1);
        rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build_global()?;
    }
    options.replay = replay.as_mut().map(|replay| replay as &mut dyn Replay);
    let report = with_bar(|progress| audit::audit(charter, blocks, options, progress))?;
    Ok((report, replay.map(|replay| replay.schemas()).unwrap_or_default()))
}

/// Shows how far an audit is.
pub(super) fn with_bar<T, E>(
    work: impl FnOnce(&mut dyn FnMut(&AuditProgress)) -> Result<T, E>,
) -> Result<T, CommandError>
where
    CommandError: From<E>,
{
    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template(
        "{wide_bar} {bytes}/{total_bytes}  {msg}  {elapsed} of {duration}",
    )?);
    bar.enable_steady_tick(Duration::from_millis(200));
    let done = work(&mut |progress: &AuditProgress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes);
        let (height, transactions) = (grouped(progress.height), grouped(progress.transactions));
        bar.set_message(format!("height {height}, {transactions} transactions"));
    });
    bar.finish_and_clear();
    Ok(done?)
}

fn print(report: &Report, record: &Record) {
    let rate = grouped((record.transactions as f64 / record.seconds.max(1e-6)) as u64);
    if record.first_height > 1 {
        println!(
            "verified from height {} on, anchored in the certified checkpoint of height {}: blocks in front of it are not in \
             this folder",
            grouped(record.first_height),
            grouped(record.first_height - 1)
        );
    }
    if record.pruned_blocks > 0 {
        println!(
            "{} blocks up to height {} are pruned: their headers, certificates and digests are right; their {} transactions are \
             not in this folder",
            grouped(record.pruned_blocks),
            grouped(record.pruned_to),
            grouped(record.pruned_transactions)
        );
    }
    if record.redacted > 0 {
        println!(
            "{} transactions up to height {} are redacted: their hashes and places are those that are certified{}",
            grouped(record.redacted),
            grouped(record.redacted_to),
            if record.replayed { ", and the members have agreed to each" } else { "" },
        );
    }
    if record.unexecuted_blocks > 0 {
        println!(
            "{} blocks could not be executed again because of them: what they came to was taken from a certified checkpoint behind \
             them",
            grouped(record.unexecuted_blocks)
        );
    }
    println!(
        "{} transactions up to height {} are right{}: {:.1} s, {rate} per second",
        grouped(record.transactions),
        grouped(record.height),
        if record.replayed { ", and so is what they came to" } else { "" },
        record.seconds,
    );
    let uncertified = record.height - record.certified_height;
    println!(
        "outcomes are certified up to height {}; {} above are not certified yet",
        grouped(record.certified_height),
        grouped(uncertified)
    );
    if let Some(torn) = &report.torn {
        println!(
            "{} bytes at the end of {} are no whole record: torn by a crash, or being written",
            grouped(torn.bytes),
            torn.path.display()
        );
    }
}
