//! Up to which height blocks are in the ledger for good: a store does not come back above it, because what it holds could not be
//! compared with what the ledger says.

use parking_lot::{Condvar, Mutex};

/// The height that a ledger has told; before it does, nobody waits.
pub(crate) struct Gate {
    recorded: Mutex<Recorded>,
    changed: Condvar,
}

struct Recorded {
    height: u64,
    /// Nothing more is recorded for now.
    has_ended: bool,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            recorded: Mutex::new(Recorded { height: u64::MAX, has_ended: false }),
            changed: Condvar::new(),
        }
    }
}

impl Gate {
    /// Blocks up to here are recorded, and none above.
    pub(crate) fn recorded(&self, height: u64) {
        *self.recorded.lock() = Recorded { height, has_ended: false };
        self.changed.notify_all();
    }

    /// Nothing more is recorded before a height is told again: whoever waits for that gives up.
    pub(crate) fn end(&self) {
        self.recorded.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits until the block of this height is recorded, or until it is given up.
    pub(crate) fn wait_for(&self, height: u64, is_given_up: impl Fn() -> bool) -> bool {
        let mut recorded = self.recorded.lock();
        while recorded.height < height {
            if recorded.has_ended || is_given_up() {
                return false;
            }
            self.changed.wait(&mut recorded);
        }
        true
    }

    /// Whoever waits looks whether it is given up.
    pub(crate) fn wake(&self) {
        let _recorded = self.recorded.lock();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_waits_goes_on_when_the_block_is_recorded_or_given_up() {
        let (gate, given_up) = (Arc::new(Gate::default()), Arc::new(AtomicBool::new(false)));
        assert!(gate.wait_for(7, || false), "no ledger has told anything");
        gate.recorded(3);
        let waiting = |height| {
            let (gate, given_up) = (gate.clone(), given_up.clone());
            std::thread::spawn(move || gate.wait_for(height, || given_up.load(Ordering::Acquire)))
        };
        let (near, far) = (waiting(4), waiting(9));
        gate.recorded(4);
        assert!(near.join().expect("it ends"));
        given_up.store(true, Ordering::Release);
        gate.wake();
        assert!(!far.join().expect("it ends"));
        given_up.store(false, Ordering::Release);
        let far = waiting(9);
        gate.end();
        assert!(!far.join().expect("it ends"));
        assert!(gate.wait_for(4, || false), "what is recorded is recorded");
        gate.recorded(9);
        assert!(gate.wait_for(9, || false));
    }
}
