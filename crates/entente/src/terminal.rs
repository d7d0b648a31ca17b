//! What a person sees and does: the log, waiting for Ctrl-C.

use std::sync::mpsc::{Receiver, channel};
use tracing_subscriber::EnvFilter;

/// Log lines go to standard error; `RUST_LOG` chooses them, errors and warnings of our own crates by default.
pub(crate) fn start_log() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new("warn,commonware=error,commonware_p2p=error,commonware_consensus=error")
    });
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
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
