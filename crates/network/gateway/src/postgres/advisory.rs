//! Advisory locks of a session: whose they are, keeping them, and giving them back.
//!
//! ```text
//!  SELECT pg_advisory_lock(7)       ─▶ lock_waiting ─▶ a transaction of its own, also inside of a block
//!  BEGIN; … pg_advisory_xact_lock(7) ─▶ the same, given back behind the block
//!  a task                           ─▶ renews what the session holds, three times in each lease
//!  DISCARD ALL, the end             ─▶ a transaction that gives all of it back
//! ```

use super::advisory_text::{BlockLock, names_a_lock};
use super::script::Statement;
use super::session::Session;
use super::statement::{Interest, ParsedStatement, blocking};
use crate::Database;
use catalogue::LockFacts;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;
use types::{
    AdvisoryMode, AdvisoryOwner, AdvisorySession, AnswerAt, Catalog, ExecutionVersion, HeldAdvisoryLock,
    Payload, RequestId, ScriptSettings, SqlError, SqlState, StatementResult, Value, decode_exactly,
};

/// `01000`, a warning.
const WARNING: SqlState = SqlState(*b"01000");

/// What a session and the task that renews its locks know of these.
struct Shared {
    database: Arc<dyn Database>,
    role: String,
    id: [u8; 16],
    lease_ms: AtomicU32,
    /// Keys that the session holds.
    held: AtomicU32,
    /// A transaction may have taken a lock, and nobody has waited for its end.
    is_uncertain: AtomicBool,
    /// Statements of the session that are on their way and may take or give back locks.
    changing: AtomicU32,
    /// Those that have ended.
    changed: AtomicU64,
    /// They have run out, and the client has not been told.
    lost: AtomicBool,
}

/// The advisory locks of one session; what it holds is given back when it is dropped.
pub(super) struct AdvisoryLocks {
    shared: Arc<Shared>,
    /// A statement has named a function about locks: from then on transactions say whose session they are of.
    is_used: bool,
    renewing: Option<tokio::task::AbortHandle>,
    /// What gives back the locks of the last transaction block.
    giving_back: Option<tokio::task::JoinHandle<()>>,
}

impl Shared {
    fn session(&self) -> AdvisorySession {
        AdvisorySession { id: self.id, lease_ms: self.lease_ms.load(Relaxed) }
    }

    /// A statement about the session's locks.
    fn script(&self, sql: &str) -> String {
        let advisory = Some(self.session());
        ScriptSettings { advisory, ..ScriptSettings::default() }.in_front_of(sql).into_owned()
    }

    /// Has a statement about the session's locks ordered, once under each request; the value that it gives.
    async fn order(
        &self,
        request: RequestId,
        sql: &str,
        parameters: Vec<Value>,
    ) -> Result<Option<Value>, SqlError> {
        let payload = Payload::Script { sql: self.script(sql), parameters };
        let executed = self.database.execute(&self.role, payload, request, AnswerAt::Recorded).await?;
        let first = executed.results.into_iter().next().and_then(|result| result.rows.into_iter().next());
        Ok(first.and_then(|row| row.into_iter().next()))
    }

    /// Gives something back, if the node takes it at last.
    async fn give_back(&self, sql: &str, parameters: &[Value]) {
        let request = RequestId(crypto::random_bytes());
        for _ in 0..GIVEN_BACK_TRIES {
            match self.order(request, sql, parameters.to_vec()).await {
                Ok(_) => return,
                Err(error) => tracing::debug!(%error, "an advisory lock is not given back yet"),
            }
            tokio::time::sleep(RENEWED_AGAIN).await;
        }
    }

    /// The value of a query about locks on the newest state.
    async fn ask(self: Arc<Shared>, sql: &'static str) -> Result<Option<Value>, SqlError> {
        let interest = Interest::default();
        let interrupt = interest.interrupt();
        let ask = move || {
            // Where the schema changes at this moment, it is asked anew.
            for _ in 0..ASKED_MAX {
                let query = self.database.prepare(&self.script(sql), &[])?.query;
                if let Some(result) = query.run(&self.role, &[], &interrupt)? {
                    return Ok(result.rows.into_iter().next().and_then(|row| row.into_iter().next()));
                }
            }
            Ok(None)
        };
        let asked = blocking(ask).await;
        drop(interest);
        asked
    }

    /// Finds out how many keys the session holds. Where nobody answers it is the safe side to go on with what is known.
    async fn look(self: &Arc<Shared>) {
        let asked = Arc::clone(self).ask("SELECT entente.advisory_locks_held()").await;
        if let Ok(Some(Value::Integer(held))) = asked {
            self.held.store(held.unsigned_abs(), Relaxed);
        }
    }

    /// Keeps the session's locks until it is aborted.
    async fn renew(self: Arc<Shared>) {
        let mut wait = self.lease() / RENEWALS_OF_A_LEASE;
        loop {
            tokio::time::sleep(wait).await;
            wait = self.lease() / RENEWALS_OF_A_LEASE;
            if self.held.load(Relaxed) == 0 {
                continue;
            }
            let (changing, changed) = (self.changing.load(Relaxed), self.changed.load(Relaxed));
            let request = RequestId(crypto::random_bytes());
            match self.order(request, "SELECT entente.renew_advisory_locks()", Vec::new()).await {
                Ok(Some(Value::Boolean(true))) => {}
                // It has none: a statement of the session gives them back at this moment, or others have taken them.
                Ok(_)
                    if changing > 0
                        || self.changing.load(Relaxed) > 0
                        || changed != self.changed.load(Relaxed) =>
                {
                    wait = RENEWED_AGAIN;
                }
                Ok(_) => {
                    tracing::warn!("the advisory locks of a session have run out before they were renewed");
                    self.held.store(0, Relaxed);
                    self.lost.store(true, Relaxed);
                }
                Err(error) => {
                    tracing::debug!(%error, "advisory locks are not renewed yet");
                    wait = RENEWED_AGAIN;
                }
            }
        }
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.lease_ms.load(Relaxed)))
    }

    fn has_any(&self) -> bool {
        self.held.load(Relaxed) > 0 || self.is_uncertain.load(Relaxed)
    }
}

/// Times that locks are renewed in each lease: two may fail.
const RENEWALS_OF_A_LEASE: u32 = 3;
/// When a renewal is tried again that has not come through.
const RENEWED_AGAIN: Duration = Duration::from_millis(500);
/// Times that locks are given back which a session leaves, if the node does not take it at once; after that they run out.
const GIVEN_BACK_TRIES: u32 = 5;
/// Times that a query is bound anew because the schema has changed.
const ASKED_MAX: u32 = 8;

impl AdvisoryLocks {
    /// Of a session that holds none.
    pub(super) fn new(database: Arc<dyn Database>, role: String) -> AdvisoryLocks {
        let shared = Shared {
            database,
            role,
            id: crypto::random_bytes(),
            lease_ms: AtomicU32::new(types::limits::ADVISORY_LEASE_MS_MIN),
            held: AtomicU32::new(0),
            is_uncertain: AtomicBool::new(false),
            changing: AtomicU32::new(0),
            changed: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        };
        AdvisoryLocks { shared: Arc::new(shared), is_used: false, renewing: None, giving_back: None }
    }
}

impl Drop for AdvisoryLocks {
    fn drop(&mut self) {
        if let Some(renewing) = self.renewing.take() {
            renewing.abort();
        }
        // Where the program ends, they run out.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = Arc::clone(&self.shared);
        if shared.has_any() {
            runtime.spawn(async move { shared.give_back("SELECT pg_advisory_unlock_all()", &[]).await });
        }
    }
}

impl Session {
    /// What says in transactions whose locks they take; `None` as long as the session has not to do with any.
    pub(super) fn advisory_session(&self) -> Option<AdvisorySession> {
        let lease_ms = self.settings.advisory_lease_ms();
        let is_known = self.advisory.is_used && self.version() >= ExecutionVersion::V14;
        is_known.then_some(AdvisorySession { id: self.advisory.shared.id, lease_ms })
    }

    /// A statement comes that may be about locks.
    pub(super) fn note_locks_named(&mut self, statement: &Statement<'_>) {
        self.use_locks(names_a_lock(statement));
    }

    /// The next statement is about locks.
    pub(super) fn use_locks(&mut self, are_named: bool) {
        self.advisory.is_used |= are_named;
    }

    /// Tells the client that it has lost its locks, if it has.
    pub(super) fn put_lost_locks(&mut self) {
        if self.advisory.shared.lost.swap(false, Relaxed) {
            let message = "the advisory locks of this session have run out, because they could not be renewed in time: others may have them";
            self.connection.put_warning(WARNING, message);
        }
    }

    /// Gives back all locks of the session, where it holds any: nothing is ordered otherwise.
    pub(super) async fn give_back_locks(&mut self) -> Result<(), SqlError> {
        if let Some(giving_back) = self.advisory.giving_back.take() {
            let ended = async {
                // One that has failed is over, too.
                let _ = giving_back.await;
                Ok(())
            };
            self.wait(ended, false).await?;
        }
        if !self.advisory.shared.has_any() {
            return Ok(());
        }
        let sql = self.advisory.shared.script("SELECT pg_advisory_unlock_all()");
        let changed = self.changing_locks();
        let given_back = self.write(Payload::Script { sql, parameters: Vec::new() }).await;
        drop(changed);
        given_back?;
        self.advisory.shared.held.store(0, Relaxed);
        self.advisory.shared.is_uncertain.store(false, Relaxed);
        Ok(())
    }

    /// What sessions hold, as `pg_locks` shows it.
    pub(super) async fn shown_locks(&self, catalog: &Catalog) -> Result<Vec<LockFacts>, SqlError> {
        let mut shown = Vec::new();
        for HeldAdvisoryLock { key, holder, .. } in self.locks_of_all().await? {
            let AdvisoryOwner { organisation, session } = holder.owner;
            let is_own = session == self.advisory.shared.id;
            let organisation = catalog.governance.administrator_of(organisation);
            let number = u128::from_be_bytes(session) >> 96;
            for mode in [AdvisoryMode::Exclusive, AdvisoryMode::Shared] {
                if holder.times(mode) > 0 {
                    let process = is_own.then_some(self.identity.process);
                    shown.push(LockFacts {
                        key,
                        mode,
                        holder: format!("{organisation}/{number:08x}"),
                        process,
                    });
                }
            }
        }
        Ok(shown)
    }

    /// What all sessions of the ledger hold, on the newest state.
    async fn locks_of_all(&self) -> Result<Vec<HeldAdvisoryLock>, SqlError> {
        if self.version() < ExecutionVersion::V14 {
            return Ok(Vec::new());
        }
        let asked = Arc::clone(&self.advisory.shared).ask("SELECT entente.advisory_locks()");
        Ok(match self.wait(asked, false).await? {
            Some(Value::Bytea(encoded)) => decode_exactly(&encoded).unwrap_or_default(),
            _ => Vec::new(),
        })
    }

    /// Takes a lock for the open block, which gives it back when it has ended: for the session until then, so that others wait. It is no
    /// statement of the block, whose snapshot is taken behind it.
    pub(super) async fn lock_for_block(
        &mut self,
        lock: &BlockLock,
        parameters: Vec<Value>,
        statement: &ParsedStatement,
    ) -> Result<StatementResult, SqlError> {
        let sql = self.script_settings().in_front_of(&lock.taken).into_owned();
        let payload = Payload::Script { sql, parameters: parameters.clone() };
        let results = self.write_waiting(payload, statement.locks.waits).await?;
        let mut result = results.into_iter().next_back().unwrap_or_default();
        let taken = result.rows.first().and_then(|row| row.first());
        if !matches!(taken, None | Some(Value::Null | Value::Boolean(false)))
            && let Some(block) = &mut self.block
        {
            block.locks.push((lock.given_back.clone(), parameters));
        }
        result.columns.clone_from(&statement.columns);
        Ok(result)
    }

    /// A block has ended: gives back what it has locked. Nobody waits for that: if the session takes the lock again meanwhile, it has it twice
    /// for a moment.
    pub(super) fn give_back_of_block(&mut self, locks: Vec<(String, Vec<Value>)>) {
        if locks.is_empty() {
            return;
        }
        let (shared, before) = (Arc::clone(&self.advisory.shared), self.advisory.giving_back.take());
        let changed = Changing::begin(&shared);
        self.advisory.giving_back = Some(tokio::spawn(async move {
            if let Some(before) = before {
                // One that has failed is over, too.
                let _ = before.await;
            }
            for (sql, parameters) in locks {
                shared.give_back(&sql, &parameters).await;
            }
            shared.look().await;
            drop(changed);
        }));
    }

    /// As long as what it gives is there, locks may change: who renews them knows it.
    pub(super) fn changing_locks(&self) -> Option<Changing> {
        self.advisory.is_used.then(|| Changing::begin(&self.advisory.shared))
    }

    /// A statement has ended that may have taken locks, or given some back.
    pub(super) async fn look_at_locks(&mut self, error: Option<&SqlError>) {
        if !self.advisory.is_used {
            return;
        }
        let shared = &self.advisory.shared;
        shared.lease_ms.store(self.settings.advisory_lease_ms(), Relaxed);
        if error.is_some_and(|error| error.state == SqlState::QUERY_CANCELED) {
            shared.is_uncertain.store(true, Relaxed);
        }
        shared.look().await;
        // Who holds nothing says nothing until the next statement that names a lock.
        self.advisory.is_used = shared.has_any();
        if self.advisory.renewing.is_none() && self.advisory.is_used {
            let renewing = tokio::spawn(Arc::clone(&self.advisory.shared).renew());
            self.advisory.renewing = Some(renewing.abort_handle());
        }
    }
}

/// A statement that may change locks is on its way.
pub(super) struct Changing(Arc<Shared>);

impl Changing {
    fn begin(shared: &Arc<Shared>) -> Changing {
        shared.changing.fetch_add(1, Relaxed);
        Changing(Arc::clone(shared))
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.0.changed.fetch_add(1, Relaxed);
        self.0.changing.fetch_sub(1, Relaxed);
    }
}
