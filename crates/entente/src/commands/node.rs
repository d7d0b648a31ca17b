use super::doctor;
use super::own_database::use_database;
use crate::CommandError;
use crate::terminal::{self, LogFormat, Wish};
use analytics::DataFusion;
use clap::Args;
use node::{HolderFolder, HolderNode, Node, NodeConfig, NodeFolder, NodeOptions, Reloaded};
use sd_notify::NotifyState;
use sql::RunFragments;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Run one organisation's node from its folder.
///
/// Example: entente node --dir clearing/org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NodeArguments {
    /// The node's folder, as `entente keys` or `entente init` has made it
    #[arg(long)]
    dir: PathBuf,
    /// How log lines look: `text`, or `json` with one object per line. `RUST_LOG` chooses which there are, as in RUST_LOG=info
    #[arg(long, value_enum, default_value_t)]
    pub(crate) log: LogFormat,
    /// Check whether the node would start, and start nothing: exit code 0 or 1, as `entente doctor` without asking other nodes
    #[arg(long)]
    check: bool,
    /// Stop when standard input ends, so that nodes end with the program that started them
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

pub(crate) fn run(arguments: &NodeArguments) -> Result<ExitCode, CommandError> {
    let is_holder = HolderFolder::is_one(&arguments.dir);
    match (arguments.check, is_holder) {
        (true, false) => return Ok(doctor::check(&arguments.dir)),
        (true, true) => _ = HolderFolder::open(&arguments.dir)?,
        (false, true) => run_holder(arguments)?,
        (false, false) => run_node(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_node(arguments: &NodeArguments) -> Result<(), CommandError> {
    let folder = NodeFolder::open(&arguments.dir)?;
    keep_memory_in_small_pages();
    let (name, config) = (folder.organisation_name().to_string(), folder.config.clone());
    terminal::check_log(&config).map_err(|reason| format!("node.toml: {reason}"))?;
    terminal::follow_log(&config);
    let log = arguments.log;
    let up = Arc::new(AtomicBool::new(false));
    let wishes = wishes_of(Arc::clone(&up), log)?;
    allow_many_connections();
    let fragments = Some(Arc::new(DataFusion::default()) as Arc<dyn RunFragments>);
    let mut options = NodeOptions { fragments, ..NodeOptions::default() };
    use_database(&folder, &mut options)?;
    let node = Node::start_with(folder, options)?;
    up.store(true, Ordering::Release);
    say_up(&name, &node, &config, log);
    tell_systemd(&[NotifyState::Ready]);
    if arguments.stop_with_input {
        stop_with_input();
    }
    let (mut told, in_terminal) = (None, std::io::stdout().is_terminal());
    loop {
        match wishes.recv_timeout(Duration::from_millis(200)) {
            Ok(Wish::End) => break,
            // A terminal that closes says the same as somebody who wants the settings read again.
            Ok(Wish::Reload) if reload(&node, &arguments.dir, log).is_err() && in_terminal => break,
            Ok(Wish::Reload) => {}
            Err(_) => {}
        }
        let reason = node.not_serving();
        if reason != told {
            match (&reason, log) {
                (Some(reason), LogFormat::Text) => eprintln!("entente: this node does not serve: {reason}"),
                (Some(reason), LogFormat::Json) => tracing::warn!(reason, "this node does not serve"),
                (None, LogFormat::Text) => {}
                (None, LogFormat::Json) => tracing::info!("this node serves again"),
            }
            told = reason;
        }
    }
    tell_systemd(&[NotifyState::Stopping]);
    node.stop();
    match told {
        Some(reason) => Err(reason.into()),
        None => Ok(()),
    }
}

/// What a node has started with.
fn say_up(name: &str, node: &Node, config: &NodeConfig, log: LogFormat) {
    let report = node.report();
    let (seconds, NodeConfig { postgres, http, .. }) = (report.time.as_secs_f64(), config);
    let (height, checkpoint, replayed) = (report.height, report.checkpoint, report.replayed);
    match log {
        LogFormat::Text => println!(
            "{name} at height {height}: checkpoint {checkpoint}, {replayed} blocks replayed in {seconds:.1} s; \
             Postgres {postgres}, HTTP {http}"
        ),
        LogFormat::Json => tracing::info!(
            organisation = name,
            height,
            checkpoint,
            replayed,
            seconds,
            %postgres,
            %http,
            "the node is up"
        ),
    }
    for (schema, height) in &report.schemas {
        match log {
            LogFormat::Text => println!("schema {schema} goes on behind block {height}"),
            LogFormat::Json => {
                tracing::info!(schema = &**schema, height, "the schema goes on behind this block")
            }
        }
    }
    for repair in &report.repairs {
        match log {
            LogFormat::Text => println!("repaired: {repair}"),
            LogFormat::Json => tracing::warn!("repaired: {repair}"),
        }
    }
}

/// Says to systemd how far the node is, where systemd has started it and waits for that.
fn tell_systemd(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd does not hear how far this node is");
    }
}

/// A node that holds schemas for the organisation's validator.
fn run_holder(arguments: &NodeArguments) -> Result<(), CommandError> {
    let folder = HolderFolder::open(&arguments.dir)?;
    keep_memory_in_small_pages();
    let interruptions = terminal::interruptions()?;
    let holder = HolderNode::start(&folder)?;
    let (name, schemas) = (&folder.options.name, folder.options.schemas.join(", "));
    match arguments.log {
        LogFormat::Text => println!("{name} holds {schemas} at {}", holder.address()),
        LogFormat::Json => tracing::info!(name, schemas, address = %holder.address(), "the holder is up"),
    }
    tell_systemd(&[NotifyState::Ready]);
    if arguments.stop_with_input {
        stop_with_input();
    }
    // Nobody else ends it.
    let _ = interruptions.recv();
    tell_systemd(&[NotifyState::Stopping]);
    holder.stop();
    Ok(())
}

/// The process ends with the program that started it.
fn stop_with_input() {
    std::thread::spawn(|| {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(read) if read > 0) {}
        // Whoever started us is gone; nothing is lost, the next start recovers.
        std::process::exit(0);
    });
}

/// Reads the settings again, and says what came of it.
///
/// # Errors
/// Nobody can read that any more.
fn reload(node: &Node, dir: &Path, log: LogFormat) -> std::io::Result<()> {
    let mut read = None;
    let reloaded = node.reload(|config| {
        read = Some(config.clone());
        terminal::check_log(config)
    });
    let Reloaded { applied, at_restart } = match reloaded {
        Ok(reloaded) => reloaded,
        Err(error) if log == LogFormat::Json => {
            tracing::error!(%error, "the settings are as before");
            return Ok(());
        }
        Err(error) => return writeln!(std::io::stderr(), "entente: the settings are as before: {error}"),
    };
    if let Some(config) = &read {
        terminal::follow_log(config);
    }
    let shown = |names: &[String]| if names.is_empty() { "nothing".to_string() } else { names.join(", ") };
    let (applied, at_restart) = (shown(&applied), shown(&at_restart));
    if log == LogFormat::Json {
        tracing::info!(applied, at_restart, "settings read again");
        return Ok(());
    }
    let mut output = std::io::stdout().lock();
    writeln!(output, "settings read again from {}: {applied} from now on", dir.display())?;
    if at_restart != "nothing" {
        writeln!(output, "needs a restart: {at_restart}")?;
    }
    output.flush()
}

/// Interruptions once the node is `up`. Before that it may wait for a database: it ends at once, and nothing is lost, because the
/// next start recovers as this one did.
fn wishes_of(up: Arc<AtomicBool>, log: LogFormat) -> Result<Receiver<Wish>, CommandError> {
    let wishes = terminal::wishes()?;
    let (told, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(wish) = wishes.recv() {
            if !up.load(Ordering::Acquire) && wish == Wish::End {
                match log {
                    LogFormat::Text => eprintln!("entente: stopped before the node was up"),
                    LogFormat::Json => tracing::warn!("stopped before the node was up"),
                }
                std::process::exit(130);
            }
            // Whoever listened has ended.
            let _ = told.send(wish);
        }
    });
    Ok(heard)
}

/// A session is an open file, and many systems allow 1,024 to a program that asks for no more.
fn allow_many_connections() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
    if let Err(error) = raised {
        tracing::info!(%error, "the number of connections is limited by `ulimit -n`");
    }
}

/// The allocator asks for pages of 2 MB, of which a node's scattered rows and its queues leave much unused: 350 MB
/// resident instead of 220 in the demo, for 3 % of speed. A node lives beside others, so it goes without.
fn keep_memory_in_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_thp_disable(true) {
        tracing::info!(%error, "large memory pages stay on: this node needs about half as much memory again");
    }
}
