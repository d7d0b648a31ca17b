//! What statements say of the endorsement of tables and routines.

use sqlparser::ast::{self, Expr};
use syntax::names::name_of;
use types::{Policy, SqlError, SqlState};

/// A policy in its canonical text.
pub(super) fn bind_policy(text: &str) -> Result<Option<String>, SqlError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let policy = Policy::parse(text).map_err(|error| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("the endorsement policy cannot be: {error}"))
    })?;
    Ok(Some(policy.to_string()))
}

/// What `endorsement_policy` says among a table's options; an empty text means none.
pub(super) fn table_endorsement(options: &[ast::SqlOption]) -> Result<Option<String>, SqlError> {
    let mut endorsement = None;
    for option in options {
        let ast::SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::unsupported("an option of a table but endorsement_policy"));
        };
        match (name_of(key)?.as_str(), value) {
            ("endorsement_policy", Expr::Value(value)) => {
                let ast::Value::SingleQuotedString(text) = &value.value else {
                    return Err(SqlError::unsupported("an endorsement_policy that is no text"));
                };
                endorsement = bind_policy(text)?;
            }
            // How PostgreSQL stores the rows and plans queries, not what they give.
            ("fillfactor" | "parallel_workers" | "toast_tuple_target", _) => {}
            (other, _) if other.starts_with("autovacuum_") => {}
            (other, _) => {
                return Err(SqlError::unsupported(format_args!("the option {other} of a table"))
                    .hint("endorsement_policy = 'policy' says who must endorse what writes to it."));
            }
        }
    }
    Ok(endorsement)
}
