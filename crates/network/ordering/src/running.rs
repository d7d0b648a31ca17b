//! A service that runs on a tokio runtime of its own, in a thread of its own: how it starts, says how it is doing, and stops.

use crate::OrderingError;
use commonware_runtime::{Metrics as _, Runner as _, tokio as runtime};
use crossbeam_channel::{RecvTimeoutError, Sender};
use parking_lot::Mutex;
use std::future::Future;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long opening the folder may take; another process that holds it would keep us waiting for ever.
const START_WAIT: Duration = Duration::from_secs(60);

/// The service's metrics as text.
type Metrics = Box<dyn Fn() -> String + Send + Sync>;

/// What the runtime's thread says before everything runs.
enum Said<T> {
    /// It has the folder, and is busy with it.
    Opening,
    Started(T, Metrics),
    Failed(String),
}

/// A thread with a runtime.
pub(crate) struct Running {
    /// Holds on to the runtime, so it goes when the service stops.
    metrics: Mutex<Option<Metrics>>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How the runtime's thread says that everything runs, or why not.
pub(crate) struct Ready<T>(Sender<Said<T>>);

impl<T> Ready<T> {
    /// What is stored takes long to open: whoever waits goes on waiting. To be said more often than every minute.
    pub(crate) fn opening(&self) {
        // Where there is no room it was just said.
        let _ = self.0.try_send(Said::Opening);
    }

    /// Everything runs. `false` where nobody waits for it any more.
    pub(crate) fn started(self, made: T, context: runtime::Context) -> bool {
        self.0.send(Said::Started(made, Box::new(move || context.encode()))).is_ok()
    }

    /// It does not start.
    pub(crate) fn failed(self, reason: String) {
        // Who has stopped waiting needs no reason.
        let _ = self.0.send(Said::Failed(reason));
    }
}

impl Running {
    /// Starts a thread with this name that runs `service` until it ends; returns what that has made once everything runs.
    ///
    /// # Errors
    /// It did not come that far.
    pub(crate) fn start<T, F>(
        name: &str,
        settings: runtime::Config,
        service: impl FnOnce(runtime::Context, Ready<T>, oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Result<(T, Running), OrderingError>
    where
        T: Send + 'static,
        F: Future<Output = ()>,
    {
        let (ready, started) = crossbeam_channel::bounded(1);
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime::Runner::new(settings).start(|context| service(context, Ready(ready), stopped));
        };
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(run);
        let thread = thread.map_err(|error| OrderingError::Ended(error.to_string()))?;
        let (made, metrics) = loop {
            match started.recv_timeout(START_WAIT) {
                Ok(Said::Opening) => {}
                Ok(Said::Started(made, metrics)) => break (made, metrics),
                Ok(Said::Failed(reason)) => return Err(OrderingError::Ended(reason)),
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!(
                        "its folder did not open within {START_WAIT:?}; does another process use it?"
                    );
                    return Err(OrderingError::Ended(what));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(OrderingError::Ended(panic_message(thread)));
                }
            }
        };
        let (metrics, stop, thread) = (Some(metrics), Some(stop), Some(thread));
        let (metrics, stop, thread) = (Mutex::new(metrics), Mutex::new(stop), Mutex::new(thread));
        Ok((made, Running { metrics, stop, thread }))
    }

    pub(crate) fn metrics(&self) -> String {
        self.metrics.lock().as_ref().map_or_else(String::new, |metrics| metrics())
    }

    /// Ends the service in good order and waits for its thread.
    pub(crate) fn stop(&self) {
        self.metrics.lock().take();
        if let Some(stop) = self.stop.lock().take() {
            // Fails only where the runtime has ended already.
            let _ = stop.send(());
        }
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the runtime of the ordering service panicked");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a thread that should run has ended with.
fn panic_message(thread: JoinHandle<()>) -> String {
    match thread.join() {
        Ok(()) => "its runtime returned".to_string(),
        Err(panic) => match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
            (Some(text), _) => text.clone(),
            (_, Some(text)) => text.to_string(),
            _ => "its runtime panicked".to_string(),
        },
    }
}
