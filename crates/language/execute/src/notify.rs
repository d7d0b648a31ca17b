//! `NOTIFY` and `pg_notify`: noted by the transaction, undone with what is rolled back, said once it has committed.

use crate::execution::Execution;
use types::{Notification, SqlError, StatementResult, Value};
use values::broken;

/// Bytes of a notification that a step pays for.
const BYTES_PER_STEP: usize = 64;

impl Execution<'_> {
    /// Runs `pg_notify`.
    ///
    /// # Errors
    /// As [`Execution::notify`].
    pub(crate) fn notify_value(&mut self, arguments: &[Value]) -> Result<Value, SqlError> {
        let text = |value: &Value| match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Null => Ok("".into()),
            _ => Err(broken("a notification that is no text")),
        };
        let [channel, payload] = arguments else {
            return Err(broken("a notification without a channel and a payload"));
        };
        self.notify(&text(channel)?, &text(payload)?)?;
        Ok(Value::text(""))
    }

    /// The transaction says this on a channel once it has committed.
    ///
    /// # Errors
    /// `22023` for a channel without a name, or too long; `25006` where it must only read; `0A000` where no transaction of the whole
    /// ledger runs; `54000` where it says too much.
    pub fn notify(&mut self, channel: &str, payload: &str) -> Result<(), SqlError> {
        if self.on.read_only {
            return Err(SqlError::not_in_read_only("NOTIFY"));
        }
        if self.is_local() {
            return Err(SqlError::unsupported("NOTIFY in a statement about temporary tables")
                .hint("Only a transaction of the ledger has a place in its order. Notify in a statement of its own."));
        }
        if self.assets.signers.is_some() {
            return Err(SqlError::unsupported("NOTIFY in a schema with members").hint(
                "Every organisation would read it. Notify in a transaction of a schema that all hold.",
            ));
        }
        let notification = Notification::new(channel, payload)?;
        self.charge(1 + (notification.bytes() / BYTES_PER_STEP) as u64)?;
        self.notifications.add(notification)
    }

    /// What it has to say, for its receipt; it says it once.
    pub fn take_notifications(&mut self) -> Option<StatementResult> {
        self.notifications.take_result()
    }
}
