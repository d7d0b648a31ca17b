//! What keeps an organisation from attesting what somebody has made its database do.

use std::sync::atomic::{AtomicU8, Ordering};

/// What a test switches off, to see that something goes wrong then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Defence {
    /// The first old row of each key that a block changes is the state's.
    OldRows = 1,
    /// The triggers are those that the node has made.
    Triggers = 2,
    /// The database stands behind the block before.
    Height = 4,
}

/// Those that are switched off; no configuration leads here.
#[derive(Default)]
pub(super) struct Undefended(AtomicU8);

impl Undefended {
    #[cfg(test)]
    pub(super) fn switch_off(&self, defence: Defence) {
        self.0.fetch_or(defence as u8, Ordering::Relaxed);
    }

    pub(super) fn lacks(&self, defence: Defence) -> bool {
        self.0.load(Ordering::Relaxed) & defence as u8 != 0
    }
}
