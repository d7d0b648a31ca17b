//! Advisory locks: `pg_advisory_lock` and its kind.
//!
//! ```text
//!  of a session       rows say who holds what until when, and stay when the transaction has ended (`types::AdvisoryHolder`)
//!  of a transaction   nothing stays: transactions come one after the other anyway, whoever asks for the same key is in conflict,
//!                     and only what a session holds keeps a transaction from having it
//! ```
//!
//! Nobody waits here. Who cannot have a lock is told so, and its gateway tries again later. Which session it is says the script, under its
//! client's signature; so only the organisation that has taken a lock gives it back or renews it. Time is that of the block.

use crate::execution::Execution;
use plan::advisory::AdvisoryFunction;
use state::{Command, CommandKind, KeyRange, RowChange, RowFunction, RowId};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{
    AdvisoryHolder, AdvisoryKey, AdvisoryLease, AdvisoryMode, AdvisoryOwner, ColumnSet, HeldAdvisoryLock,
    Key, Notice, Row, Severity, SqlError, SqlState, TableId, Value, advisory_key_of, advisory_lock_is_held,
    advisory_row, advisory_value, encode, limits,
};
use values::broken;

const TABLE: TableId = TableId::ADVISORY_LOCKS;
/// What a lock that is looked at, taken or given back costs.
const STEPS: u64 = 4;
/// `01000`, a warning.
const WARNING: SqlState = SqlState(*b"01000");

/// Leaves this row, or none.
struct Leave(Option<Row>);

impl RowFunction for Leave {
    fn apply(&self, row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(match (&self.0, row) {
            (Some(left), _) => RowChange::Put(left.clone()),
            (None, Some(_)) => RowChange::Delete,
            (None, None) => RowChange::Unmatched,
        })
    }
}

/// Changes nothing: who writes a row is in conflict with who reads it.
struct Untouched;

impl RowFunction for Untouched {
    fn apply(&self, _row: Option<&Row>) -> Result<RowChange, SqlError> {
        Ok(RowChange::Unmatched)
    }
}

impl Execution<'_> {
    /// Runs one of these functions.
    ///
    /// # Errors
    /// `55P03` for a lock that another session holds; `54000` for too many; `0A000` where there is no session, or no transaction of the
    /// whole ledger; `25006` where it must only read.
    pub(crate) fn advisory_value(
        &mut self,
        function: AdvisoryFunction,
        arguments: &[Value],
    ) -> Result<Value, SqlError> {
        self.check_may_lock(function)?;
        self.charge(STEPS)?;
        let key = || match arguments {
            [Value::BigInt(number)] => Ok(AdvisoryKey::One(*number)),
            [Value::Integer(first), Value::Integer(second)] => Ok(AdvisoryKey::Two(*first, *second)),
            _ => Err(broken("an advisory lock without a key")),
        };
        let void = || Value::text("");
        self.beside_statement(|execution| {
            Ok(match function {
                AdvisoryFunction::Lock(mode) => match execution.lock_for_session(key()?, mode)? {
                    true => void(),
                    false => return Err(advisory_lock_is_held(key()?)),
                },
                AdvisoryFunction::Try(mode) => Value::Boolean(execution.lock_for_session(key()?, mode)?),
                AdvisoryFunction::Unlock(mode) => Value::Boolean(execution.unlock(key()?, mode)?),
                AdvisoryFunction::UnlockAll => {
                    if let Some(owner) = execution.advisory_owner() {
                        execution.drop_advisory_session(owner)?;
                    }
                    void()
                }
                AdvisoryFunction::LockTransaction(mode) => match execution.lock_here(key()?, mode)? {
                    true => void(),
                    false => return Err(advisory_lock_is_held(key()?)),
                },
                AdvisoryFunction::TryTransaction(mode) => Value::Boolean(execution.lock_here(key()?, mode)?),
                AdvisoryFunction::Renew => execution.renew_locks()?,
                AdvisoryFunction::Held => Value::Integer(execution.locks_held()?),
                AdvisoryFunction::Shown => execution.shown_locks()?,
            })
        })
    }

    fn check_may_lock(&self, function: AdvisoryFunction) -> Result<(), SqlError> {
        let name = || function.name().trim_start_matches("pg_catalog.");
        if !function.is_transaction() {
            return Ok(());
        }
        if self.is_local() {
            let what = format!("{}() in a statement about temporary tables", name());
            return Err(SqlError::unsupported(what).hint(
                "Only a transaction of the ledger has a place in its order. Lock in a statement of its own.",
            ));
        }
        if self.assets.signers.is_some() {
            return Err(SqlError::unsupported(format!("{}() in a schema with members", name()))
                .hint("All organisations know who holds advisory locks. Lock in a transaction of a schema that all hold."));
        }
        let is_of_transaction =
            matches!(function, AdvisoryFunction::LockTransaction(_) | AdvisoryFunction::TryTransaction(_));
        if self.on.read_only && !is_of_transaction {
            return Err(SqlError::not_in_read_only(&format!("{}()", name())));
        }
        Ok(())
    }

    /// The session that the script is of.
    fn advisory_owner(&self) -> Option<AdvisoryOwner> {
        let session = self.on.advisory?;
        Some(AdvisoryOwner { organisation: self.on.signed_by.organisation, session: session.id })
    }

    fn needed_owner(&self) -> Result<AdvisoryOwner, SqlError> {
        self.advisory_owner().ok_or_else(|| {
            SqlError::unsupported("an advisory lock of a session in a statement that does not name it")
                .hint("SELECT pg_advisory_lock(…), or its kind, in a statement that a session sends; or lock for the transaction: pg_advisory_xact_lock(…).")
        })
    }

    fn now_ms(&self) -> u64 {
        self.on.context.timestamp_ms
    }

    // ---- what functions do ----

    /// The session has the lock once more; false: another session has it.
    fn lock_for_session(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> Result<bool, SqlError> {
        let owner = self.needed_owner()?;
        if self.is_kept_from(key, mode)? {
            return Ok(false);
        }
        let mut lease = match self.lease_of(owner)? {
            Some(lease) => lease,
            None => self.enrol(owner)?,
        };
        let mut holders = self.holders_of(key)?;
        if !holders.iter().any(|holder| holder.owner == owner) {
            check_count(
                holders.len(),
                limits::ADVISORY_HOLDERS_MAX,
                "an advisory lock is held by",
                "sessions (ADVISORY_HOLDERS_MAX)",
            )?;
            holders.push(AdvisoryHolder::new(owner));
        }
        for holder in holders.iter_mut().filter(|holder| holder.owner == owner) {
            let count = holder.count(mode);
            *count = count
                .checked_add(1)
                .ok_or_else(|| too_many("an advisory lock is held", u32::MAX, "times"))?;
        }
        if let Err(place) = lease.keys.binary_search(&key) {
            check_count(
                lease.keys.len(),
                limits::ADVISORY_LOCKS_MAX,
                "a session holds",
                "advisory locks (ADVISORY_LOCKS_MAX)",
            )?;
            lease.keys.insert(place, key);
        }
        lease.expires_at_ms = lease.expires_at_ms.max(self.lease_end());
        self.leave_lock(key, &holders)?;
        self.leave(owner.row_key(), Some(advisory_row(&lease)))?;
        Ok(true)
    }

    /// The session gives a lock back; false, with a warning, where it does not have it.
    fn unlock(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> Result<bool, SqlError> {
        let owner = self.advisory_owner();
        let lease = owner.map(|owner| self.lease_of(owner)).transpose()?.flatten();
        let (Some(owner), Some(mut lease)) = (owner, lease) else { return Ok(self.warn_of_no_lock(mode)) };
        let mut holders = self.holders_of(key)?;
        let own = holders.iter_mut().find(|holder| holder.owner == owner);
        let Some(own) = own.filter(|own| own.times(mode) > 0) else {
            return Ok(self.warn_of_no_lock(mode));
        };
        *own.count(mode) -= 1;
        let given_back = own.is_nothing();
        holders.retain(|holder| !holder.is_nothing());
        self.leave_lock(key, &holders)?;
        if given_back {
            lease.keys.retain(|known| *known != key);
            match lease.keys.is_empty() {
                true => self.drop_advisory_session(owner)?,
                false => self.leave(owner.row_key(), Some(advisory_row(&lease)))?,
            }
        }
        Ok(true)
    }

    fn warn_of_no_lock(&mut self, mode: AdvisoryMode) -> bool {
        let report = SqlError::new(WARNING, format!("you don't own a lock of type {}", mode.name()));
        self.say(Notice { severity: Severity::Warning, report });
        false
    }

    /// The transaction has the lock; false: a session has it.
    fn lock_here(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> Result<bool, SqlError> {
        if self.is_kept_from(key, mode)? {
            return Ok(false);
        }
        if mode == AdvisoryMode::Exclusive && !self.on.read_only {
            let command = Command {
                row: RowId { table: TABLE, key: key.row_key() },
                function: Arc::new(Untouched),
                kind: CommandKind::Update { known: Vec::new() },
                uses: ColumnSet::EXISTS,
                writes: ColumnSet::ALL,
                guard: None,
                can_fail: false,
                addition: None,
            };
            self.apply(command)?;
        }
        Ok(true)
    }

    /// The session's locks stay for another while. False: they have run out; NULL: it has none.
    fn renew_locks(&mut self) -> Result<Value, SqlError> {
        let owner = self.needed_owner()?;
        let Some(lease) = self.read_lease(owner)? else { return Ok(Value::Null) };
        if !lease.holds_at(self.now_ms()) {
            self.drop_advisory_session(owner)?;
            return Ok(Value::Boolean(false));
        }
        let expires_at_ms = lease.expires_at_ms.max(self.lease_end());
        self.leave(owner.row_key(), Some(advisory_row(&AdvisoryLease { expires_at_ms, ..lease })))?;
        Ok(Value::Boolean(true))
    }

    fn locks_held(&mut self) -> Result<i32, SqlError> {
        let owner = self.needed_owner()?;
        Ok(self.lease_of(owner)?.map_or(0, |lease| lease.keys.len() as i32))
    }

    /// All locks that sessions hold, encoded.
    fn shown_locks(&mut self) -> Result<Value, SqlError> {
        if self.on.registers {
            return Err(SqlError::unsupported("a list of advisory locks in a transaction"));
        }
        let mut rows = Vec::new();
        let scanned = self.on.snapshot.scan(TABLE, &KeyRange::ALL, false, &mut |key, row| {
            rows.extend(advisory_key_of(key).map(|lock| (lock, row.clone())));
            ControlFlow::Continue(())
        });
        self.read(scanned)?;
        self.charge(rows.len() as u64)?;
        let mut held = Vec::new();
        for (key, row) in rows {
            for holder in advisory_value::<Vec<AdvisoryHolder>>(&row)? {
                if let Some(lease) = self.lease_of(holder.owner)? {
                    held.push(HeldAdvisoryLock { key, holder, expires_at_ms: lease.expires_at_ms });
                }
            }
        }
        Ok(Value::Bytea(encode(&held).into()))
    }

    // ---- rows ----

    /// Whether another session keeps this one from having a lock. Those that have run out lose all of theirs.
    fn is_kept_from(&mut self, key: AdvisoryKey, mode: AdvisoryMode) -> Result<bool, SqlError> {
        let owner = self.advisory_owner();
        let mut ended = Vec::new();
        for holder in self.holders_of(key)? {
            match self.lease_of(holder.owner)? {
                Some(_) if Some(holder.owner) != owner && holder.keeps_from(mode) => return Ok(true),
                Some(_) => {}
                None => ended.push(holder.owner),
            }
        }
        if self.on.read_only {
            return Ok(false);
        }
        for owner in ended {
            // Whoever renews them has to see it: endorsers may have judged the renewal before the locks ran out.
            self.drop_advisory_session(owner)?;
        }
        Ok(false)
    }

    /// A session takes its first lock: others of its organisation that have run out go.
    fn enrol(&mut self, owner: AdvisoryOwner) -> Result<AdvisoryLease, SqlError> {
        // What it held before it ran out is not its any more.
        self.drop_advisory_session(owner)?;
        for session in self.sessions_of(owner)? {
            let other = AdvisoryOwner { session, ..owner };
            self.charge(1)?;
            if self.lease_of(other)?.is_none() {
                self.drop_advisory_session(other)?;
            }
        }
        let mut sessions = self.sessions_of(owner)?;
        check_count(
            sessions.len(),
            limits::ADVISORY_SESSIONS_MAX,
            "an organisation has",
            "sessions that hold advisory locks (ADVISORY_SESSIONS_MAX)",
        )?;
        sessions.push(owner.session);
        self.leave(owner.organisation_key(), Some(advisory_row(&sessions)))?;
        Ok(AdvisoryLease { expires_at_ms: 0, keys: Vec::new() })
    }

    /// A session holds nothing any more.
    fn drop_advisory_session(&mut self, owner: AdvisoryOwner) -> Result<(), SqlError> {
        let Some(lease) = self.read_lease(owner)? else { return Ok(()) };
        self.charge(STEPS * lease.keys.len() as u64)?;
        for key in lease.keys {
            let mut holders = self.holders_of(key)?;
            holders.retain(|holder| holder.owner != owner);
            self.leave_lock(key, &holders)?;
        }
        self.leave(owner.row_key(), None)?;
        let mut sessions = self.sessions_of(owner)?;
        sessions.retain(|session| *session != owner.session);
        let row = (!sessions.is_empty()).then(|| advisory_row(&sessions));
        self.leave(owner.organisation_key(), row)
    }

    fn lease_end(&self) -> u64 {
        let lease_ms = self.on.advisory.map_or(0, |session| session.lease_ms);
        self.now_ms().saturating_add(u64::from(lease_ms))
    }

    fn holders_of(&mut self, key: AdvisoryKey) -> Result<Vec<AdvisoryHolder>, SqlError> {
        Ok(self.advisory_row_of(&key.row_key())?.unwrap_or_default())
    }

    fn sessions_of(&mut self, owner: AdvisoryOwner) -> Result<Vec<[u8; 16]>, SqlError> {
        Ok(self.advisory_row_of(&owner.organisation_key())?.unwrap_or_default())
    }

    fn read_lease(&mut self, owner: AdvisoryOwner) -> Result<Option<AdvisoryLease>, SqlError> {
        self.advisory_row_of(&owner.row_key())
    }

    /// The same where it has not run out.
    fn lease_of(&mut self, owner: AdvisoryOwner) -> Result<Option<AdvisoryLease>, SqlError> {
        let now_ms = self.now_ms();
        Ok(self.read_lease(owner)?.filter(|lease| lease.holds_at(now_ms)))
    }

    fn advisory_row_of<T: borsh::BorshDeserialize>(&mut self, key: &Key) -> Result<Option<T>, SqlError> {
        self.register_read(TABLE, key, ColumnSet::ALL);
        self.current(TABLE, key)?.as_ref().map(advisory_value).transpose()
    }

    fn leave_lock(&mut self, key: AdvisoryKey, holders: &Vec<AdvisoryHolder>) -> Result<(), SqlError> {
        let row = (!holders.is_empty()).then(|| advisory_row(holders));
        self.leave(key.row_key(), row)
    }

    fn leave(&mut self, key: Key, row: Option<Row>) -> Result<(), SqlError> {
        self.register_read(TABLE, &key, ColumnSet::EXISTS);
        let kind = match (self.current(TABLE, &key)?, &row) {
            (None, None) => return Ok(()),
            (None, Some(row)) => CommandKind::Insert(row.clone()),
            (Some(_), Some(row)) => CommandKind::Update { known: vec![(0, row[0].clone())] },
            (Some(_), None) => CommandKind::Delete,
        };
        let command = Command {
            row: RowId { table: TABLE, key },
            function: Arc::new(Leave(row)),
            kind,
            uses: ColumnSet::EXISTS,
            writes: ColumnSet::ALL,
            guard: None,
            can_fail: false,
            addition: None,
        };
        self.apply(command).map(drop)
    }
}

/// # Errors
/// `54000` where there are as many already as there may be.
fn check_count(found: usize, most: usize, what: &str, of: &str) -> Result<(), SqlError> {
    if found < most { Ok(()) } else { Err(too_many(what, most, of)) }
}

fn too_many(what: &str, most: impl std::fmt::Display, of: &str) -> SqlError {
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("{what} at most {most} {of}"))
        .hint("Give back those that are not needed: pg_advisory_unlock, pg_advisory_unlock_all.")
}
