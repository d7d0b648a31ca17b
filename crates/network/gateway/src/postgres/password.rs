//! Setting passwords by SQL: what verifies a password stays at this node, the rest of the statement is ordered.

use super::session::Session;
use crate::access::RolePassword;
use types::{Payload, SqlError, SqlState, StatementResult};

impl Session {
    /// CREATE ROLE and ALTER ROLE with a password, as `\password` of psql sends it too.
    pub(super) async fn set_password(&mut self, wanted: &RolePassword) -> Result<StatementResult, SqlError> {
        if self.block.is_some() {
            return Err(SqlError::unsupported("a password in a transaction block").hint("COMMIT first."));
        }
        self.check_may_write(if wanted.creates { "CREATE ROLE" } else { "ALTER ROLE" })?;
        let own = wanted.rest.is_none() && wanted.user == self.identity.user;
        if !self.identity.role.is_empty() && !own {
            let message = "permission denied: only an administrator sets the passwords of others";
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        let verifier = wanted
            .verifier()
            .map_err(|error| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error.to_string()))?;
        let tag = match &wanted.rest {
            Some(sql) => {
                let payload = Payload::Script { sql: sql.clone(), parameters: Vec::new() };
                self.write(payload).await?.pop().unwrap_or_default().tag
            }
            None => {
                self.database.role_of(&wanted.user)?;
                "ALTER ROLE".to_string()
            }
        };
        self.passwords.set(&wanted.user, verifier).map_err(|error| {
            let message = format!("the password was not kept: {error}");
            SqlError::new(SqlState::INTERNAL_ERROR, message).hint("Set it again with `entente password`.")
        })?;
        Ok(StatementResult { tag, ..StatementResult::default() })
    }
}
