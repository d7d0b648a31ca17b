//! Advisory locks that sessions hold: keys, owners, and the rows that say who holds what until when.
//!
//! ```text
//!  of a lock            key                        → holders, each with how often it holds the lock
//!  of a session         organisation, its number   → until when, and the keys of its locks
//!  of an organisation   organisation               → the numbers of its sessions
//! ```
//!
//! A holder counts as long as the row of its session is there and has not run out, by the time of the ledger. So one row is
//! written to renew all locks of a session.

use crate::{Key, Row, SqlError, SqlState, Value, decode_exactly, encode, limits};
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

const LOCK: u8 = 1;
const SESSION: u8 = 2;
const ORGANISATION: u8 = 3;

/// The beginning of the message of who cannot have a lock because a session holds it.
const HELD: &str = "could not obtain the advisory lock on ";

/// What is locked: a number, or a pair of numbers. They are different keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, BorshSerialize, BorshDeserialize)]
pub enum AdvisoryKey {
    /// `pg_advisory_lock(bigint)`
    One(i64),
    /// `pg_advisory_lock(integer, integer)`
    Two(i32, i32),
}

impl AdvisoryKey {
    /// As `pg_locks` shows it: `classid`, `objid` and `objsubid`.
    pub fn shown(self) -> (i32, i32, i16) {
        match self {
            AdvisoryKey::One(number) => ((number >> 32) as i32, number as i32, 1),
            AdvisoryKey::Two(first, second) => (first, second, 2),
        }
    }

    /// Where its row stands.
    pub fn row_key(self) -> Key {
        let (first, second, kind) = self.shown();
        let (first, second) = (first.to_be_bytes(), second.to_be_bytes());
        Key::from_bytes(&[&[LOCK, kind as u8], &first[..], &second[..]].concat())
    }
}

impl fmt::Display for AdvisoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdvisoryKey::One(number) => write!(f, "{number}"),
            AdvisoryKey::Two(first, second) => write!(f, "({first}, {second})"),
        }
    }
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdvisoryMode {
    /// By nobody else.
    Exclusive,
    /// By others too that hold it in this way.
    Shared,
}

impl AdvisoryMode {
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            AdvisoryMode::Exclusive => "ExclusiveLock",
            AdvisoryMode::Shared => "ShareLock",
        }
    }
}

/// What a gateway says of the session whose locks a script takes and gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdvisorySession {
    /// A random number that no other session has.
    pub id: [u8; 16],
    /// How long its locks stay without being renewed, in milliseconds.
    pub lease_ms: u32,
}

impl AdvisorySession {
    /// What [`fmt::Display`] shows; `None` for anything else.
    pub fn parse(text: &str) -> Option<AdvisorySession> {
        let (id, lease) = text.split_once(' ')?;
        let lease_ms: u32 = lease.parse().ok()?;
        let is_id = id.len() == 32 && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let id = u128::from_str_radix(id, 16).ok().filter(|_| is_id)?.to_be_bytes();
        let bounds = limits::ADVISORY_LEASE_MS_MIN..=limits::ADVISORY_LEASE_MS_MAX;
        bounds.contains(&lease_ms).then_some(AdvisorySession { id, lease_ms })
    }
}

impl fmt::Display for AdvisorySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x} {}", u128::from_be_bytes(self.id), self.lease_ms)
    }
}

/// A session that holds locks. Only what its organisation has signed changes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub struct AdvisoryOwner {
    /// Position of the organisation in the charter.
    pub organisation: u16,
    /// The number that its gateway has drawn.
    pub session: [u8; 16],
}

impl AdvisoryOwner {
    /// Where the row of the session stands.
    pub fn row_key(self) -> Key {
        Key::from_bytes(&[&[SESSION], &self.organisation.to_be_bytes()[..], &self.session].concat())
    }

    /// Where the row of its organisation stands.
    pub fn organisation_key(self) -> Key {
        Key::from_bytes(&[&[ORGANISATION], &self.organisation.to_be_bytes()[..]].concat())
    }
}

/// One that holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct AdvisoryHolder {
    /// Who.
    pub owner: AdvisoryOwner,
    /// How often it is to be given back that nobody else may have.
    pub exclusive: u32,
    /// The same of what others may have too.
    pub shared: u32,
}

impl AdvisoryHolder {
    /// Holds nothing yet.
    pub fn new(owner: AdvisoryOwner) -> AdvisoryHolder {
        AdvisoryHolder { owner, exclusive: 0, shared: 0 }
    }

    /// How often it is held in this way.
    pub fn count(&mut self, mode: AdvisoryMode) -> &mut u32 {
        match mode {
            AdvisoryMode::Exclusive => &mut self.exclusive,
            AdvisoryMode::Shared => &mut self.shared,
        }
    }

    /// The same, to be looked at.
    pub fn times(&self, mode: AdvisoryMode) -> u32 {
        match mode {
            AdvisoryMode::Exclusive => self.exclusive,
            AdvisoryMode::Shared => self.shared,
        }
    }

    /// Whether it holds nothing any more.
    pub fn is_nothing(&self) -> bool {
        self.exclusive == 0 && self.shared == 0
    }

    /// Whether it keeps others from having the lock in this way.
    pub fn keeps_from(&self, mode: AdvisoryMode) -> bool {
        self.exclusive > 0 || mode == AdvisoryMode::Exclusive
    }
}

/// What stands in the row of a session.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct AdvisoryLease {
    /// Until when its locks count, in milliseconds since 1970-01-01 00:00 UTC, by the time of blocks.
    pub expires_at_ms: u64,
    /// The keys of its locks, ascending.
    pub keys: Vec<AdvisoryKey>,
}

impl AdvisoryLease {
    /// Whether its locks count in a block of this time.
    pub fn holds_at(&self, now_ms: u64) -> bool {
        self.expires_at_ms > now_ms
    }
}

/// A lock as `pg_locks` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct HeldAdvisoryLock {
    /// What is locked.
    pub key: AdvisoryKey,
    /// By whom, and how.
    pub holder: AdvisoryHolder,
    /// Until when, if it is not renewed.
    pub expires_at_ms: u64,
}

/// The row that has this value.
pub fn advisory_row<T: BorshSerialize>(value: &T) -> Row {
    Row::from([Value::Bytea(encode(value).into())])
}

/// The value of such a row.
///
/// # Errors
/// `XX000` where it is none: no execution makes such a row.
pub fn advisory_value<T: BorshDeserialize>(row: &Row) -> Result<T, SqlError> {
    let value = match &row[..] {
        [Value::Bytea(bytes)] => decode_exactly(bytes).ok(),
        _ => None,
    };
    value.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a row of advisory locks is none"))
}

/// The key of the lock whose row stands there; `None` for other rows.
pub fn advisory_key_of(key: &Key) -> Option<AdvisoryKey> {
    let [LOCK, kind, first @ .., a, b, c, d] = key.as_bytes() else { return None };
    let first = i32::from_be_bytes(first.try_into().ok()?);
    let second = i32::from_be_bytes([*a, *b, *c, *d]);
    match kind {
        1 => Some(AdvisoryKey::One(i64::from(first) << 32 | i64::from(second as u32))),
        2 => Some(AdvisoryKey::Two(first, second)),
        _ => None,
    }
}

/// Whether a row of this key can be such a row: what others have signed is held against this.
pub fn is_advisory_row(key: &Key, row: &Row) -> bool {
    match key.as_bytes().first() {
        Some(&LOCK) => advisory_value::<Vec<AdvisoryHolder>>(row).is_ok() && advisory_key_of(key).is_some(),
        Some(&SESSION) => advisory_value::<AdvisoryLease>(row).is_ok(),
        Some(&ORGANISATION) => advisory_value::<Vec<[u8; 16]>>(row).is_ok(),
        _ => false,
    }
}

/// `55P03`: somebody wants to have a lock that a session holds.
pub fn advisory_lock_is_held(key: AdvisoryKey) -> SqlError {
    let message = format!("{HELD}{key}, which a session holds");
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message)
        .hint("pg_locks shows the sessions that hold locks. Try again, or ask with pg_try_advisory_lock.")
}

/// Whether an error says that: who waits tries again later.
pub fn says_lock_is_held(error: &SqlError) -> bool {
    error.state == SqlState::LOCK_NOT_AVAILABLE && error.message.starts_with(HELD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: AdvisoryOwner = AdvisoryOwner { organisation: 3, session: [0xab; 16] };

    #[test]
    fn keys_of_one_and_of_two_numbers_are_different_and_shown_as_in_postgresql() {
        let shown = [
            (AdvisoryKey::One(1), (0, 1, 1), "1"),
            (AdvisoryKey::One(-1), (-1, -1, 1), "-1"),
            (AdvisoryKey::One(7_241_865_325_823_964), (1_686_128, -1_432_676_900, 1), "7241865325823964"),
            (AdvisoryKey::Two(0, 1), (0, 1, 2), "(0, 1)"),
            (AdvisoryKey::Two(-1, i32::MIN), (-1, i32::MIN, 2), "(-1, -2147483648)"),
        ];
        for (key, parts, text) in shown {
            let (high, low, kind) = key.shown();
            assert_eq!((kind, key.to_string().as_str()), (parts.2, text));
            if let AdvisoryKey::One(number) = key {
                assert_eq!(i64::from(high) << 32 | i64::from(low as u32), number);
            } else {
                assert_eq!((high, low), (parts.0, parts.1));
            }
            assert_eq!(advisory_key_of(&key.row_key()), Some(key));
        }
        assert_eq!(advisory_key_of(&OWNER.row_key()), None);
        assert_eq!(advisory_key_of(&Key::from_bytes(&[LOCK, 1, 0, 0])), None);
    }

    #[test]
    fn what_says_the_session_is_read_again_and_nothing_else_is() {
        let session = AdvisorySession { id: OWNER.session, lease_ms: 60_000 };
        assert_eq!(session.to_string(), format!("{} 60000", "ab".repeat(16)));
        assert_eq!(AdvisorySession::parse(&session.to_string()), Some(session));
        for wrong in [
            String::new(),
            "ab".repeat(16),
            format!("{} 4999", "ab".repeat(16)),
            format!("{} 600001", "ab".repeat(16)),
            format!("{} 60000", "AB".repeat(16)),
            format!("{} 60000", "ab".repeat(15)),
            format!("+{} 60000", "ab".repeat(16)),
        ] {
            assert_eq!(AdvisorySession::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn rows_are_what_their_keys_say() {
        let holders = advisory_row(&vec![AdvisoryHolder { exclusive: 1, ..AdvisoryHolder::new(OWNER) }]);
        let lease = advisory_row(&AdvisoryLease { expires_at_ms: 7, keys: vec![AdvisoryKey::Two(1, 2)] });
        let sessions = advisory_row(&vec![OWNER.session]);
        let keys = [AdvisoryKey::One(7).row_key(), OWNER.row_key(), OWNER.organisation_key()];
        for (number, row) in [holders, lease, sessions].iter().enumerate() {
            for (other, key) in keys.iter().enumerate() {
                assert_eq!(is_advisory_row(key, row), number == other, "{number} {other}");
            }
        }
        assert!(!is_advisory_row(&Key::default(), &Row::default()));
        assert!(!is_advisory_row(&keys[0], &Row::from([Value::Integer(1)])));
    }

    #[test]
    fn only_the_error_of_a_lock_that_is_held_says_so() {
        assert!(says_lock_is_held(&advisory_lock_is_held(AdvisoryKey::One(1))));
        let other = SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout");
        assert!(!says_lock_is_held(&other));
    }
}
