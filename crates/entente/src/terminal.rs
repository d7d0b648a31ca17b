//! What a person sees: the log, numbers, waiting for Ctrl-C.

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

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(super::grouped(0), "0");
        assert_eq!(super::grouped(999), "999");
        assert_eq!(super::grouped(1_000), "1,000");
        assert_eq!(super::grouped(1_234_567), "1,234,567");
    }
}
