//! One advisory lock, which sessions take, renew and give back.

use super::*;

/// Who has it, and how often.
#[derive(Default)]
pub struct FakeLock {
    holder: Mutex<Option<(String, u32)>>,
    /// Times that somebody has looked whether it would be held.
    pub looks: AtomicUsize,
}

impl FakeLock {
    /// Somebody at another node has it, or has it no more.
    pub fn held_elsewhere(&self, held: bool) {
        *self.holder.lock().unwrap() = held.then(|| ("elsewhere".to_string(), 1));
    }

    pub fn is_free(&self) -> bool {
        self.holder.lock().unwrap().is_none()
    }

    /// What a statement about the lock gives, and does, where it is one.
    pub(super) fn run(&self, sql: &str) -> Option<Result<StatementResult, SqlError>> {
        let (id, statement) = read(sql)?;
        let mut holder = self.holder.lock().unwrap();
        let own = holder.as_ref().filter(|(holder, _)| *holder == id).map_or(0, |(_, count)| *count);
        let is_free = own > 0 || holder.is_none();
        let mut notices = Vec::new();
        let value = match () {
            () if statement.contains("unlock_all") => {
                *holder = holder.take().filter(|(holder, _)| *holder != id);
                Value::text("")
            }
            () if statement.contains("unlock") => {
                *holder = holder.take().and_then(|(holder, count)| match holder == id {
                    true => (count > 1).then(|| (holder, count - 1)),
                    false => Some((holder, count)),
                });
                if own == 0 {
                    let report =
                        SqlError::new(SqlState(*b"01000"), "you don't own a lock of type ExclusiveLock");
                    notices.push(Notice { severity: Severity::Warning, report });
                }
                Value::Boolean(own > 0)
            }
            () if statement.contains("renew") && own > 0 => Value::Boolean(true),
            () if statement.contains("renew") => Value::Null,
            () if statement.contains("xact_lock") && is_free => Value::text(""),
            () if is_free => {
                *holder = Some((id, own + 1));
                if statement.contains("_try_") { Value::Boolean(true) } else { Value::text("") }
            }
            () if statement.contains("_try_") => Value::Boolean(false),
            () => return Some(Err(types::advisory_lock_is_held(types::AdvisoryKey::One(1)))),
        };
        let columns = vec![OutputColumn { name: "got".into(), data_type: value.data_type() }];
        Some(Ok(StatementResult { tag: "SELECT 1".into(), columns, rows: vec![vec![value]], notices }))
    }

    /// The same, without doing it.
    pub(super) fn look(&self, sql: &str) -> Option<Result<StatementResult, SqlError>> {
        read(sql)?;
        self.looks.fetch_add(1, Ordering::SeqCst);
        let before = self.holder.lock().unwrap().clone();
        let result = self.run(sql);
        *self.holder.lock().unwrap() = before;
        result
    }

    /// How a statement about the lock is bound.
    pub(super) fn prepared(&self, sql: &str) -> Option<(StatementKind, Vec<OutputColumn>, Plan)> {
        let (id, statement) = read(sql)?;
        let column = |data_type| vec![OutputColumn { name: "got".into(), data_type }];
        if statement.contains("locks_held") {
            let holder = self.holder.lock().unwrap();
            let held = holder.as_ref().is_some_and(|(holder, _)| *holder == id);
            let row = Plan::Row(vec![Value::Integer(i32::from(held))]);
            return Some((StatementKind::Read, column(DataType::Integer), row));
        }
        let is_void = !statement.contains("_try_") && !statement.contains("unlock(");
        let data_type = if is_void { DataType::Text(None) } else { DataType::Boolean };
        Some((StatementKind::Write, column(data_type), Plan::Write))
    }
}

/// A script without what says whose locks it takes.
pub(super) fn without_session(sql: &str) -> &str {
    match sql.split_once(';') {
        Some((first, rest)) if first.starts_with("SET entente.advisory_session") => rest,
        _ => sql,
    }
}

/// Whose statement it is, and what is behind the settings.
fn read(sql: &str) -> Option<(String, String)> {
    let lower = sql.to_lowercase();
    let statement = lower.rsplit(';').next().unwrap_or_default().to_string();
    let about_locks = statement.contains("advisory_") && statement.starts_with("select");
    let id = lower.split_once("advisory_session to '").map(|(_, rest)| rest[..32].to_string());
    about_locks.then(|| (id.unwrap_or_default(), statement))
}
