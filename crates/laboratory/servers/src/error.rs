/// Why a server cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Not there and not installable.
    #[error("expected {what}, found none ({why}); install it: {how}")]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// Why it was not installed.
        why: String,
        /// How to do it by hand.
        how: &'static str,
    },
    /// It does not start.
    #[error("{server} does not start: {what}; its log says:\n{log}")]
    Start {
        /// Which server.
        server: &'static str,
        /// What failed.
        what: String,
        /// Last lines of the server's log.
        log: String,
    },
    /// A folder or a process.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: String,
        /// What the system says.
        error: std::io::Error,
    },
}

/// What the system said when something was tried.
pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
    let action = action.into();
    move |error| ServerError::System { action, error }
}
