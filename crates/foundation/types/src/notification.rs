//! What NOTIFY sends: part of the receipt of its transaction, so that every node delivers the same, in the ledger's order.

use crate::{DataType, OutputColumn, SqlError, SqlState, StatementResult, Value, limits};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Command tag of the last result of a transaction that notifies.
const NOTIFICATIONS_TAG: &str = "NOTIFICATIONS";

/// A message to all sessions that listen on a channel.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Notification {
    /// What is listened on.
    pub channel: Arc<str>,
    /// What it says; may be empty.
    pub payload: Arc<str>,
}

impl Notification {
    /// # Errors
    /// `22023` for a channel without a name, and where name or payload are longer than in PostgreSQL.
    pub fn new(channel: &str, payload: &str) -> Result<Notification, SqlError> {
        let wrong = |message: &str, detail: String| {
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).detail(detail))
        };
        if channel.is_empty() {
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "channel name cannot be empty"));
        }
        let (found, most) = (channel.len(), limits::NAME_BYTES_MAX);
        if found > most {
            return wrong("channel name too long", format!("It has {found} bytes, the limit is {most}."));
        }
        let (found, most) = (payload.len(), limits::NOTIFICATION_BYTES_MAX);
        if found > most {
            return wrong("payload string too long", format!("It has {found} bytes, the limit is {most}."));
        }
        Ok(Notification { channel: channel.into(), payload: payload.into() })
    }

    /// Bytes of what it says and where.
    pub fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len()
    }
}

/// What a transaction has to say once it has committed, in order, nothing twice.
#[derive(Debug, Default)]
pub struct Notifications {
    said: Vec<Notification>,
    known: BTreeSet<Notification>,
    bytes: usize,
}

impl Notifications {
    /// One more. The same again is said once, as in PostgreSQL.
    ///
    /// # Errors
    /// `54000` where a transaction says too much.
    pub fn add(&mut self, notification: Notification) -> Result<(), SqlError> {
        if self.known.contains(&notification) {
            return Ok(());
        }
        let bytes = self.bytes + notification.bytes();
        if self.said.len() >= limits::NOTIFICATIONS_MAX || bytes > limits::NOTIFICATIONS_BYTES_MAX {
            let message = format!(
                "a transaction sends at most {} notifications (NOTIFICATIONS_MAX) of {} bytes together (NOTIFICATIONS_BYTES_MAX)",
                limits::NOTIFICATIONS_MAX,
                limits::NOTIFICATIONS_BYTES_MAX
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Say what has changed once, and let whoever listens read the rows."));
        }
        self.bytes = bytes;
        self.known.insert(notification.clone());
        self.said.push(notification);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// Returns to when there were so many.
    pub fn truncate(&mut self, count: usize) {
        for undone in self.said.drain(count.min(self.said.len())..) {
            self.bytes -= undone.bytes();
            self.known.remove(&undone);
        }
    }

    /// Makes of them what the receipt says of them, behind what its statements gave; nothing where there are none. None are left.
    pub fn take_result(&mut self) -> Option<StatementResult> {
        let said = std::mem::take(self).said;
        if said.is_empty() {
            return None;
        }
        let column = |name: &str| OutputColumn { name: name.to_string(), data_type: DataType::Text(None) };
        let row = |said: Notification| vec![Value::Text(said.channel), Value::Text(said.payload)];
        Some(StatementResult {
            tag: NOTIFICATIONS_TAG.to_string(),
            columns: vec![column("channel"), column("payload")],
            rows: said.into_iter().map(row).collect(),
            notices: Vec::new(),
        })
    }

    /// Tells apart what the statements of a transaction gave, and what it says.
    pub fn split(results: &[StatementResult]) -> (&[StatementResult], Vec<Notification>) {
        let Some((last, before)) = results.split_last().filter(|(last, _)| last.tag == NOTIFICATIONS_TAG)
        else {
            return (results, Vec::new());
        };
        let said = |row: &Vec<Value>| match row.as_slice() {
            [Value::Text(channel), Value::Text(payload)] => {
                Some(Notification { channel: channel.clone(), payload: payload.clone() })
            }
            _ => None,
        };
        (before, last.rows.iter().filter_map(said).collect())
    }

    /// Takes that out of the results of a transaction: what stays is what its client has asked for.
    pub fn take_from(results: &mut Vec<StatementResult>) -> Option<StatementResult> {
        results.pop_if(|last| last.tag == NOTIFICATIONS_TAG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(channel: &str, payload: &str) -> Notification {
        Notification::new(channel, payload).expect("short")
    }

    #[test]
    fn what_is_said_twice_is_sent_once_and_what_is_undone_is_not() {
        let mut all = Notifications::default();
        assert!(all.take_result().is_none());
        for notification in [said("a", "1"), said("b", "1"), said("a", "1"), said("a", "")] {
            all.add(notification).expect("few");
        }
        assert_eq!(all.len(), 3);
        all.truncate(1);
        all.add(said("b", "1")).expect("it was undone");
        let mut results = vec![StatementResult::default(), all.take_result().expect("two")];
        assert_eq!(Notifications::split(&results), (&results[..1], vec![said("a", "1"), said("b", "1")]));
        assert!(Notifications::take_from(&mut results).is_some());
        assert_eq!(results, [StatementResult::default()]);
        assert_eq!(Notifications::split(&results), (&results[..], vec![]));
        assert!(Notifications::take_from(&mut results).is_none());
    }

    #[test]
    fn limits_are_those_of_postgresql() {
        let state = |channel: &str, payload: &str| {
            Notification::new(channel, payload).map_err(|error| (error.state, error.message))
        };
        let wrong = |message: &str| Err((SqlState::INVALID_PARAMETER_VALUE, message.to_string()));
        assert_eq!(state("", "x"), wrong("channel name cannot be empty"));
        assert_eq!(state(&"c".repeat(64), ""), wrong("channel name too long"));
        assert!(state(&"c".repeat(63), &"x".repeat(7_999)).is_ok());
        assert_eq!(state("c", &"x".repeat(8_000)), wrong("payload string too long"));
    }

    #[test]
    fn a_transaction_does_not_say_more_than_a_receipt_holds() {
        let mut all = Notifications::default();
        for number in 0..limits::NOTIFICATIONS_MAX {
            all.add(said("c", &number.to_string())).expect("as many as may be");
        }
        let state = |added: Result<(), SqlError>| added.map_err(|error| error.state);
        assert_eq!(state(all.add(said("c", "7"))), Ok(()), "it is known");
        assert_eq!(state(all.add(said("c", "one more"))), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
        let mut long = Notifications::default();
        let fits = limits::NOTIFICATIONS_BYTES_MAX / 7_000;
        for number in 0..fits {
            long.add(said("c", &format!("{number:0>6999}"))).expect("there is room");
        }
        assert_eq!(state(long.add(said("c", &"x".repeat(7_999)))), Err(SqlState::PROGRAM_LIMIT_EXCEEDED));
        long.truncate(0);
        assert_eq!(state(long.add(said("c", &"x".repeat(7_999)))), Ok(()));
    }
}
