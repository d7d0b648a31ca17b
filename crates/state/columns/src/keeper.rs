//! A thread that does something again and again until it is dropped.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread. Whoever drops this waits until the thread has ended.
pub(crate) struct Keeper {
    /// Dropped to say that the thread shall end.
    wanted: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Runs `round` with pauses of so long.
    pub(crate) fn start(every: Duration, round: impl Fn() + Send + 'static) -> io::Result<Keeper> {
        let (wanted, ended) = mpsc::channel();
        let thread = thread::Builder::new().name("columns".to_string()).spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                round();
            }
        })?;
        Ok(Keeper { wanted: Some(wanted), thread: Some(thread) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.wanted.take());
        if let Some(thread) = self.thread.take() {
            // A round that broke an invariant has said so; columns are made anew by whoever asks.
            let _ = thread.join();
        }
    }
}
