//! The way from a validator to one of its holders, as this crate sees it.

/// Carries a question to a holder and its answer back. Several may be on their way at the same time.
pub trait Link: Send + Sync {
    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// Why there is none: nobody knows then whether the question has arrived.
    fn ask(&self, question: &[u8]) -> Result<Vec<u8>, LinkFailure>;

    /// The holder, for people.
    fn name(&self) -> &str;

    /// After a failure: whether to try again, after a while. `false`: the node stops.
    fn try_again(&self, failure: &LinkFailure) -> bool;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFailure(pub String);
