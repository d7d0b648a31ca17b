//! SCRAM-SHA-256 (RFC 5802, RFC 7677), as Postgres clients speak it.

use super::connection::{Connection, ReadError};
use super::message::{Malformed, decode_sasl};
use crate::Access;
use pgwire::messages::startup::Authentication;
use types::{SqlError, SqlState};

/// `28P01` the password is wrong, or there is none.
const INVALID_PASSWORD: SqlState = SqlState(*b"28P01");

/// Why a client is not let in.
pub(super) enum Refusal {
    /// It has gone.
    Closed,
    /// It is told.
    Problem(SqlError),
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Refusal {
        match error {
            ReadError::Closed => Refusal::Closed,
            ReadError::Malformed(Malformed::Violation(what) | Malformed::Encoding { message: what, .. }) => {
                Refusal::Problem(SqlError::new(SqlState::PROTOCOL_VIOLATION, what))
            }
        }
    }
}

fn malformed(what: impl std::fmt::Display) -> Refusal {
    let message = format!("malformed SCRAM message: {what}");
    Refusal::Problem(SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
}

/// Lets the client prove that it knows `user`'s password. A user who has none cannot be told from one whose password is
/// another.
pub(super) async fn authenticate(
    connection: &mut Connection,
    access: &Access,
    user: &str,
    encrypted: bool,
) -> Result<(), Refusal> {
    let scram = access.scram(encrypted);
    let mut mechanisms = vec!["SCRAM-SHA-256".to_string()];
    if scram.supports_channel_binding() {
        mechanisms.insert(0, "SCRAM-SHA-256-PLUS".to_string());
    }
    connection.put(&Authentication::SASL(mechanisms.clone()));
    connection.flush().await.map_err(|_| Refusal::Closed)?;

    let (mechanism, first) =
        decode_sasl(connection.read_authentication().await?).map_err(ReadError::Malformed)?;
    if !mechanisms.contains(&mechanism) {
        return Err(malformed(format!("expected one of {mechanisms:?}, found {mechanism:?}")));
    }
    // The binding is what tells the two mechanisms apart (RFC 5802, section 6).
    if first.starts_with(b"p=") != mechanism.ends_with("-PLUS") {
        return Err(malformed("the channel binding does not fit the mechanism"));
    }
    let secret = access.passwords.verifier(user).secret();
    let (answer, waiting) = scram.on_client_first_message_with_secret(&first, secret).map_err(malformed)?;
    connection.put(&Authentication::SASLContinue(answer.into()));
    connection.flush().await.map_err(|_| Refusal::Closed)?;

    let last = connection.read_authentication().await?;
    match waiting.on_client_final_message(&last) {
        Ok(answer) => {
            connection.put(&Authentication::SASLFinal(answer.into()));
            Ok(())
        }
        Err(pgwire::error::PgWireError::InvalidPassword(_)) => {
            let message = format!("password authentication failed for user \"{user}\"");
            Err(Refusal::Problem(SqlError::new(INVALID_PASSWORD, message)))
        }
        Err(error) => Err(malformed(error)),
    }
}
