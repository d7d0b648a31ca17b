//! Work that may hold its thread, beside a runtime whose threads nobody may hold.

use commonware_runtime::Spawner;

/// Runs `work` where it may hold its thread. A runtime that ends in the meantime never answers, like a cancellation.
pub(crate) async fn off_the_reactor<E: Spawner, T: Send + 'static>(
    context: &E,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match context.child("computation").shared(true).spawn(|_| async move { work() }).await {
        Ok(result) => result,
        Err(_) => std::future::pending().await,
    }
}
