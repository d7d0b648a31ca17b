use crate::{CommandError, terminal};
use backup::{Made, Place, back_up};
use bench::grouped;
use clap::Args;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use targets::Target;

/// Back up a node's folder into a folder or a bucket, while the node runs or not. Only what is new is written.
///
/// A backup has blocks with their certificates, the charter, node.toml, and the newest certified state.
/// It has no keys, no passwords and no votes: `entente restore` makes new keys (docs/backup.md).
/// `entente verify --backup` checks it. Keys of object stores come from the environment, as AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY and AWS_REGION.
///
/// Example: entente backup --dir clearing/org1 --to /srv/backup/org1
/// Example: entente backup --dir clearing/org1 --to s3://backups/clearing/org1 --every 60
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BackupArguments {
    /// The node's folder, as `entente init` or `entente keys` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Where to: a folder, or the address of an object store
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Go on with a backup every so many seconds, until the command is stopped
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: Option<u64>,
}

pub(crate) fn run(arguments: &BackupArguments) -> Result<(), CommandError> {
    let place = Place::new(Target::open(&arguments.to)?)?;
    let Some(every) = arguments.every else { return once(arguments, &place).map_err(CommandError::from) };
    let interruptions = terminal::interruptions()?;
    loop {
        let begun = Instant::now();
        match once(arguments, &place) {
            Ok(()) => {}
            // The node goes on meanwhile, and the next backup catches up.
            Err(error) if error.may_pass() => eprintln!("entente: {error}; tried again in {every} s"),
            Err(error) => return Err(error.into()),
        }
        let rest = Duration::from_secs(every).saturating_sub(begun.elapsed());
        match interruptions.recv_timeout(rest) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn once(arguments: &BackupArguments, place: &Place) -> Result<(), backup::BackupError> {
    let start = Instant::now();
    let made = back_up(&arguments.dir, place)?;
    print(&made, start.elapsed());
    Ok(())
}

fn print(made: &Made, took: Duration) {
    let state = match made.state {
        Some(height) => format!("state of height {}", grouped(height)),
        None => "no state, none is certified yet".to_string(),
    };
    println!(
        "backup {}: heights {} to {}, {} of them new; {state}; {} KB written, {} KB in all; {:.1} s",
        made.number,
        grouped(made.first_height),
        grouped(made.height),
        grouped(made.new_blocks),
        grouped(made.written.div_ceil(1024)),
        grouped(made.bytes.div_ceil(1024)),
        took.as_secs_f64()
    );
    made.left_out.iter().for_each(|what| println!("not in it: {what}"));
}
