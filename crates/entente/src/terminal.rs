//! What a person sees and does, and what collects logs: the log, in lines for people or in JSON; waiting for Ctrl-C.

use clap::ValueEnum;
use node::NodeConfig;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object per line, for programs.
    Json,
}

/// What is logged where nobody says anything. In JSON what a command itself says is an event too, so that every line is one.
fn usual(format: LogFormat) -> EnvFilter {
    let own = if format == LogFormat::Json { "warn,entente=info" } else { "warn" };
    EnvFilter::new(format!("{own},commonware=error,commonware_p2p=error,commonware_consensus=error"))
}

/// What shells say of a program that SIGPIPE has ended.
const UNREAD: i32 = 141;

/// Changes which lines are logged.
type Change = Box<dyn Fn(EnvFilter) + Send + Sync>;

static CHANGE: OnceLock<(LogFormat, Change)> = OnceLock::new();

/// Log lines go to standard error; `RUST_LOG` chooses them, errors and warnings of our own crates by default.
pub(crate) fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| usual(format));
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            // Files and journals show the codes of colours as they are.
            let log = log.with_ansi(std::io::stderr().is_terminal());
            let log = log.with_env_filter(filter).with_filter_reloading();
            let handle = log.reload_handle();
            // An error says that the log has ended, with the program.
            _ = CHANGE.set((format, Box::new(move |filter| _ = handle.reload(filter))));
            log.init();
        }
        LogFormat::Json => {
            let log = log.json().flatten_event(true).with_current_span(false).with_span_list(false);
            let log = log.with_env_filter(filter).with_filter_reloading();
            let handle = log.reload_handle();
            _ = CHANGE.set((format, Box::new(move |filter| _ = handle.reload(filter))));
            log.init();
        }
    }
}

/// Has the program end without a word when nobody reads what it prints any more, as in `entente … | head`: printing panics then.
pub(crate) fn end_with_readers() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        let is_unread = |message: &String| {
            message.starts_with("failed printing to std") && message.contains("Broken pipe")
        };
        if message.is_some_and(is_unread) {
            std::process::exit(UNREAD);
        }
        usual(panic);
    }));
}

/// Whether `log_filter` of `node.toml` chooses lines.
pub(crate) fn check_log(config: &NodeConfig) -> Result<(), String> {
    let Some(filter) = &config.log_filter else { return Ok(()) };
    match EnvFilter::try_new(filter) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "log_filter: expected what RUST_LOG may say (`warn`, `info,ordering=debug`), found {filter:?}: {error}"
        )),
    }
}

/// Lines are logged as `node.toml` says from now on; where `RUST_LOG` is set that counts.
pub(crate) fn follow_log(config: &NodeConfig) {
    if std::env::var_os(EnvFilter::DEFAULT_ENV).is_some() {
        return;
    }
    let Some((format, change)) = CHANGE.get() else { return };
    match config.log_filter.as_deref().map(EnvFilter::try_new) {
        None => change(usual(*format)),
        Some(Ok(filter)) => change(filter),
        // It has been checked.
        Some(Err(_)) => {}
    }
}

/// What somebody wants of a process that runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// SIGINT, SIGTERM: end.
    End,
    /// SIGHUP: read the settings again.
    Reload,
}

/// A channel that gets what is wanted, at each signal.
pub(crate) fn wishes() -> std::io::Result<Receiver<Wish>> {
    let (sender, receiver) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signals = {
        let _entered = runtime.enter();
        let of = |kind| signal(kind);
        [of(SignalKind::interrupt())?, of(SignalKind::terminate())?, of(SignalKind::hangup())?]
    };
    let waiting = async move {
        let [mut interrupt, mut terminate, mut hangup] = signals;
        loop {
            let wish = tokio::select! {
                _ = interrupt.recv() => Wish::End,
                _ = terminate.recv() => Wish::End,
                _ = hangup.recv() => Wish::Reload,
            };
            if sender.send(wish).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_string()).spawn(move || runtime.block_on(waiting))?;
    Ok(receiver)
}

/// A channel that gets a message at each Ctrl-C or termination signal.
pub(crate) fn interruptions() -> Result<Receiver<()>, ctrlc::Error> {
    let (sender, receiver) = channel();
    ctrlc::set_handler(move || {
        // An error says that nobody waits for interruptions any longer.
        let _ = sender.send(());
    })?;
    Ok(receiver)
}
