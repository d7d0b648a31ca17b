//! What a person sees and does, and what collects logs: the log, in lines for people or in JSON; waiting for Ctrl-C.

use clap::ValueEnum;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, channel};
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

/// Log lines go to standard error; `RUST_LOG` chooses them, errors and warnings of our own crates by default. In JSON what a command
/// itself says is an event too, so that every line is one.
pub(crate) fn start_log(format: LogFormat) {
    let own = if format == LogFormat::Json { "warn,entente=info" } else { "warn" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(format!("{own},commonware=error,commonware_p2p=error,commonware_consensus=error"))
    });
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        // Files and journals show the codes of colours as they are.
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => {
            log.json().flatten_event(true).with_current_span(false).with_span_list(false).init()
        }
    }
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
