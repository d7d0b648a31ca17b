//! Where, when and in whose name a transaction runs, and what it may ask of the world outside.

use crypto::Digest;
use std::sync::Arc;
use types::{EndorsedEffects, Principal, SqlError, SqlState, TransactionId};

/// Milliseconds from 1970-01-01 to 2000-01-01.
const EPOCH_DIFFERENCE_MS: i64 = 946_684_800_000;

/// Where and when a transaction runs.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Height of its block.
    pub height: u64,
    /// The block's time, milliseconds since 1970-01-01 00:00 UTC: `now()`.
    pub timestamp_ms: u64,
    /// Position of the transaction in its block.
    pub index: u32,
    /// What identifies the transaction.
    pub transaction: TransactionId,
    /// Logical steps that it may take.
    pub step_limit: u64,
}

impl Context {
    /// `now()`, in microseconds since 2000-01-01 00:00 UTC.
    pub fn now(&self) -> i64 {
        timestamp(self.timestamp_ms)
    }
}

/// What stands for the place of a transaction block, which has none before it is ordered.
#[derive(Clone, Copy, Debug)]
pub struct SessionPlace {
    /// `now()` outside of routines, in milliseconds since 1970-01-01 00:00 UTC.
    pub now_ms: u64,
    /// Position of the organisation whose client signs the block.
    pub organisation: u16,
    /// What its random values are drawn from: [`types::ClientId::session_seed`].
    pub seed: Digest,
}

/// Milliseconds since 1970 as microseconds since 2000.
pub fn timestamp(milliseconds: u64) -> i64 {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX / 2000);
    milliseconds.saturating_sub(EPOCH_DIFFERENCE_MS).saturating_mul(1000)
}

/// Values from outside that a contract may ask for by name: `entente.oracle('eur_usd')`.
pub trait Oracles: Send + Sync {
    /// What the oracle says.
    ///
    /// # Errors
    /// There is none of this name, or it does not answer.
    fn value(&self, name: &str) -> Result<String, SqlError>;
}

/// What oracles said when a transaction was endorsed: who executes it again asks nobody.
impl Oracles for EndorsedEffects {
    fn value(&self, name: &str) -> Result<String, SqlError> {
        let said = self.oracles.iter().find(|said| said.name == name);
        said.map(|said| said.value.clone()).ok_or_else(|| {
            let message = format!("the oracle \"{name}\" was not asked when the transaction was endorsed");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }
}

/// Who has signed the transaction, whatever rights it runs with meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignedBy {
    /// Position of the organisation in the charter.
    pub(crate) organisation: u16,
    /// `None`: its administrator.
    pub(crate) role: Option<Arc<str>>,
}

impl SignedBy {
    pub(crate) fn new(principal: &Principal, authority: Option<&Authority>) -> SignedBy {
        let role = authority.map(|authority| authority.role.clone());
        SignedBy { organisation: principal.organisation, role }
    }
}

/// In whose name something runs, where that may not do everything.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The role.
    pub(crate) role: Arc<str>,
}

impl Authority {
    /// Of this principal; `None` for an administrator.
    pub fn of(principal: &Principal) -> Option<Authority> {
        (!principal.is_administrator()).then(|| Authority { role: principal.role.as_str().into() })
    }
}
