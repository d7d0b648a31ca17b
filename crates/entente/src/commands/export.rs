use crate::CommandError;
use bench::grouped;
use clap::Args;
use lakehouse::{Continuous, Exported, Exporter, NodeState, Target};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often a node's folder is looked at for a newer checkpoint.
const LOOK: Duration = Duration::from_millis(500);
/// Pauses behind an attempt that has failed.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Write a node's tables into a lakehouse: Parquet files with a Delta Lake log, at the newest certified checkpoint.
///
/// Spark, DuckDB, Trino and others read them there. `entente verify --export` proves every row.
/// The node may be running. Only what has changed since the last export is written; older versions stay.
/// Keys of object stores come from the environment, as AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION.
///
/// Example: entente export --dir clearing/org1 --to /srv/lake
/// Example: entente export --dir clearing/org1 --to s3://lake/clearing --follow
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExportArguments {
    /// The node's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Where to: a folder, or the address of an object store
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Go on with each checkpoint that is certified, until the command is stopped
    #[arg(long)]
    follow: bool,
    /// Only this table, as `accounts` or `sales.orders`; may be given several times [default: all]
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// Go on with a target that another node's folder has written, which does not export any more
    #[arg(long)]
    take_over: bool,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(export(arguments))
}

async fn export(arguments: &ExportArguments) -> Result<(), CommandError> {
    if let Some(holder) = node::placement(&arguments.dir)?.iter().find(|holder| !holder.schemas.is_empty()) {
        return Err(format!(
            "the rows of {} stand at the node {}, and an export reads one folder: export from a node that holds everything",
            holder.schemas.join(", "),
            holder.name
        )
        .into());
    }
    let state = NodeState::open(&arguments.dir)?;
    let target = Target::open(&arguments.to)?;
    let (charter, writer) = (state.charter().clone(), state.writer().to_string());
    let mut exporter = Exporter::new(target, charter, writer, arguments.tables.clone());
    if arguments.take_over {
        exporter.take_over().await?;
    }
    let mut continuous = Continuous::new(state, exporter);
    if arguments.follow {
        return follow(&mut continuous).await;
    }
    let start = Instant::now();
    match (continuous.step().await?, continuous.reached()) {
        (Some(exported), _) => print(&exported, start.elapsed()),
        (None, Some(height)) => println!("nothing is newer than height {}, which is there", grouped(height)),
        (None, None) => {
            let what = "no checkpoint of this node is certified yet; CHECKPOINT makes one, which a quorum attests in a moment";
            return Err(what.into());
        }
    }
    Ok(())
}

/// What may pass is tried again and again: the network goes on meanwhile, and the export catches up.
async fn follow(continuous: &mut Continuous) -> Result<(), CommandError> {
    let mut pause = PAUSE_MIN;
    loop {
        let start = Instant::now();
        match continuous.step().await {
            Ok(exported) => {
                exported.iter().for_each(|exported| print(exported, start.elapsed()));
                pause = PAUSE_MIN;
                tokio::time::sleep(LOOK).await;
            }
            Err(error) if error.may_pass() => {
                eprintln!("entente: {error}; tried again in {} s", pause.as_secs());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn print(exported: &Exported, took: Duration) {
    println!(
        "height {}: {} of {} tables have changed; {} rows in {} files written, {} KB, {} files stay; {:.1} s",
        grouped(exported.height),
        exported.changed,
        exported.tables,
        grouped(exported.rows),
        exported.files,
        grouped(exported.bytes / 1024),
        exported.kept_files,
        took.as_secs_f64()
    );
}
