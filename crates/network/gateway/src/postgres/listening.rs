//! LISTEN and UNLISTEN, and telling a client what arrives on its channels.

use super::connection::Connection;
use super::session::Session;
use crate::limits;
use crate::notifier::{ListenCommand, Told, TooMany};
use pgwire::messages::response::NotificationResponse;
use types::{ExecutionVersion, Notification, SqlError, SqlState};

impl Session {
    /// What has arrived on the session's channels. Its own notifications have its own process number, others have none.
    pub(super) fn put_notifications(&mut self) -> Result<(), TooMany> {
        for Told { transaction, notification } in self.listening.take()? {
            let is_own = self.notified_by == Some(transaction);
            let process = if is_own { self.identity.process } else { 0 };
            let Notification { channel, payload } = notification;
            self.connection.put(&NotificationResponse::new(
                process,
                channel.to_string(),
                payload.to_string(),
            ));
        }
        Ok(())
    }

    /// More waits for a client than it takes.
    pub(super) async fn end_deaf(connection: Connection) {
        let limit = limits::LISTENER_BYTES_MAX;
        let message =
            format!("terminating connection because more than {limit} bytes of notifications wait for it");
        let error = SqlError::new(SqlState::CONFIGURATION_LIMIT_EXCEEDED, message)
            .detail("What was notified in the meantime is lost for this session.")
            .hint("Read what arrives, end transaction blocks soon, and connect again: the rows say what has changed.");
        connection.close_with(&error).await;
    }

    /// LISTEN and UNLISTEN: where a transaction is open, once it commits.
    pub(super) fn listen(&mut self, command: &ListenCommand) -> Result<&'static str, SqlError> {
        let tag = match command {
            ListenCommand::Listen(_) if self.version() < ExecutionVersion::V14 => {
                return Err(SqlError::unsupported("LISTEN before execution version 14")
                    .hint("Have the members amend execution_version of the charter, or ask for new rows."));
            }
            ListenCommand::Listen(_) => "LISTEN",
            ListenCommand::Unlisten(_) | ListenCommand::UnlistenAll => "UNLISTEN",
        };
        let (limit, waiting) =
            (limits::CHANNELS_MAX, self.block.as_ref().map_or(0, |block| block.listens.len()));
        let exceeded = |message: String, hint: &str| {
            Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint(hint))
        };
        if waiting >= limit {
            let message =
                format!("a transaction block has at most {limit} LISTEN and UNLISTEN (CHANNELS_MAX)");
            return exceeded(message, "COMMIT, and go on behind it.");
        }
        if tag == "LISTEN" && self.listening.channels().count() + waiting >= limit {
            let message = format!("a session listens on at most {limit} channels (CHANNELS_MAX)");
            return exceeded(message, "UNLISTEN others.");
        }
        match &mut self.block {
            Some(block) => block.listens.push(command.clone()),
            None => self.listening.apply(command),
        }
        Ok(tag)
    }
}
