//! Ports for networks of tests.

use std::fs::File;
use std::net::TcpListener;
use std::sync::Mutex;

/// Members of the largest network that a test starts.
const MEMBERS: u16 = 8;

/// What a member listens on, from the network's first port: for nodes, for Postgres clients, for HTTP.
const OFFSETS: [u16; 3] = [0, 100, 200];

/// 300 ports hold this many networks side by side.
const SIDE_BY_SIDE: u16 = 100 / MEMBERS;

/// Networks that find a place below the ports that the system gives to outgoing connections and to whoever asks for any port.
const PLACES: u16 = 66 * SIDE_BY_SIDE;

/// Held until the process ends: another process leaves these ports alone, also while nodes are being started again.
static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A first port such that the ports of a network of up to eight members (`base`, `base + 100`, `base + 200` and those behind) are
/// free now, and no other test takes them while this process runs.
///
/// # Panics
/// All of them are taken.
#[must_use]
pub fn free_port_base() -> u16 {
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Each process begins elsewhere, so that few look at the same places.
    let begin = u16::try_from(std::process::id() % u32::from(PLACES)).expect("PLACES is a u16");
    for place in (begin..PLACES).chain(0..begin) {
        let base = 10_000 + place / SIDE_BY_SIDE * 300 + place % SIDE_BY_SIDE * MEMBERS;
        if let Some(lock) = take(base) {
            taken.push(lock);
            return base;
        }
    }
    panic!("all ports from 10000 to 29799 are in use");
}

/// The lock on these ports, unless somebody has it or listens on one of them.
fn take(base: u16) -> Option<File> {
    let name = format!("entente-test-ports-{base}.lock");
    // A file of another user cannot be opened, and its ports are theirs.
    let lock = File::create(std::env::temp_dir().join(name)).ok()?;
    lock.try_lock().ok()?;
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let all = OFFSETS.iter().all(|offset| (0..MEMBERS).all(|member| is_free(base + offset + member)));
    all.then_some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_given_the_ports_of_another() {
        let mut bases: Vec<u16> = (0..30).map(|_| free_port_base()).collect();
        assert!(bases.iter().all(|base| take(*base).is_none()), "the lock is held: {bases:?}");
        bases.sort_unstable();
        for pair in bases.windows(2) {
            assert!(pair[1] - pair[0] >= MEMBERS, "{bases:?}");
        }
        // Linux gives ports from 32,768 on, unless somebody has set that otherwise.
        assert!(bases.iter().all(|base| *base >= 10_000 && base + 200 + MEMBERS <= 32_768), "{bases:?}");
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_left_alone() {
        let base = free_port_base();
        let lock = format!("entente-test-ports-{}.lock", base + 1);
        let listener = TcpListener::bind(("127.0.0.1", base + 103)).expect("free");
        assert!(take(base + 1).is_none(), "{}: {lock}", base + 103);
        drop(listener);
        let taken = take(base + 1);
        let _ = std::fs::remove_file(std::env::temp_dir().join(lock));
        assert!(taken.is_some(), "the listener was the reason");
    }
}
