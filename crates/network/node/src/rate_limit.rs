//! How many transactions a client may submit per second, so that one cannot take a node away from the others.

use crypto::PublicKey;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::time::Duration;
use types::Principal;

/// Clients that are counted at once. What each has submitted is forgotten after a second, so that this many within one
/// second are meant.
const CLIENTS_MAX: usize = 100_000;
/// What a transaction costs.
const MICROS: u64 = 1_000_000;

/// Who is counted: a key, and for sessions, which share their node's key, the role.
type ClientName = (PublicKey, u16, String);

/// A token bucket per client: room for the transactions of one second, filled again at the same rate.
pub(crate) struct RateLimit {
    per_second: u64,
    clients: Mutex<FxHashMap<ClientName, Bucket>>,
}

struct Bucket {
    /// Millionths of a transaction that are left, as of `at`.
    left: u64,
    at: Duration,
}

impl RateLimit {
    /// At least one transaction per second.
    pub(crate) fn new(per_second: u32) -> RateLimit {
        RateLimit { per_second: u64::from(per_second.max(1)), clients: Mutex::default() }
    }

    /// Transactions per second of one client.
    pub(crate) fn per_second(&self) -> u64 {
        self.per_second
    }

    /// Counts a transaction; false where the client has submitted too many. `now`: since any moment in the past. To be
    /// asked once the signature is verified, so that nobody can use up what belongs to another.
    pub(crate) fn admit(&self, key: PublicKey, principal: &Principal, now: Duration) -> bool {
        let full = self.per_second * MICROS;
        let filled = |bucket: &Bucket| {
            let micros = now.saturating_sub(bucket.at).as_micros().min(u128::from(MICROS)) as u64;
            (bucket.left + micros * self.per_second).min(full)
        };
        let name = (key, principal.organisation, principal.role.clone());
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&name) {
            clients.retain(|_, bucket| filled(bucket) < full);
            if clients.len() >= CLIENTS_MAX {
                return false;
            }
        }
        let bucket = clients.entry(name).or_insert(Bucket { left: full, at: now });
        *bucket = Bucket { left: filled(bucket), at: now.max(bucket.at) };
        let admitted = bucket.left >= MICROS;
        if admitted {
            bucket.left -= MICROS;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crypto::SecretKey;

    fn key(number: u8) -> PublicKey {
        SecretKey::from_bytes([number; 32]).public_key()
    }

    fn admitted(limit: &RateLimit, who: &Principal, at_ms: u64, submitted: usize) -> usize {
        let now = Duration::from_millis(at_ms);
        (0..submitted).filter(|_| limit.admit(key(1), who, now)).count()
    }

    #[test]
    fn a_client_has_a_seconds_worth_and_then_the_rate() {
        let (limit, who) = (RateLimit::new(50), Principal::default());
        assert_eq!(admitted(&limit, &who, 5_000, 80), 50);
        assert_eq!(admitted(&limit, &who, 5_000, 10), 0);
        assert_eq!(admitted(&limit, &who, 5_100, 10), 5);
        assert_eq!(admitted(&limit, &who, 5_110, 10), 0, "half a transaction is none");
        assert_eq!(admitted(&limit, &who, 5_120, 10), 1);
        assert_eq!(admitted(&limit, &who, 90_000, 80), 50, "no more than a second's worth is saved");
        assert_eq!(admitted(&limit, &who, 80_000, 80), 0, "a clock that goes back gives nothing");
    }

    #[test]
    fn clients_and_roles_are_counted_by_themselves() {
        let limit = RateLimit::new(2);
        let role = |role: &str| Principal::new(0, role);
        assert_eq!(admitted(&limit, &role("a"), 0, 5), 2);
        assert_eq!(admitted(&limit, &role("b"), 0, 5), 2);
        assert!(limit.admit(key(2), &role("a"), Duration::ZERO));
    }

    #[test]
    fn who_is_counted_is_bounded() {
        let limit = RateLimit::new(1);
        let role = |number: usize| Principal::new(0, number.to_string());
        let at = Duration::from_secs;
        assert!((0..CLIENTS_MAX).all(|number| limit.admit(key(1), &role(number), at(1))));
        assert!(!limit.admit(key(1), &role(CLIENTS_MAX), at(1)));
        assert!(limit.admit(key(1), &role(CLIENTS_MAX), at(2)), "the others have been quiet for a second");
        assert_eq!(limit.clients.lock().len(), 1);
    }
}
