//! When constraints are held: DEFERRABLE and INITIALLY DEFERRED.

use sqlparser::ast::{ConstraintCharacteristics, DeferrableInitial};
use syntax::parse::deferrals::deferral;
use types::{Deferral, ExecutionVersion, SqlError};

/// When a constraint is held that has these words behind it.
///
/// # Errors
/// `0A000` before execution version 8, and for ENFORCED; `42601` for words that say the contrary of one another.
pub(super) fn bind_deferral(
    characteristics: Option<&ConstraintCharacteristics>,
    rules: ExecutionVersion,
) -> Result<Deferral, SqlError> {
    let Some(words) = characteristics else { return Ok(Deferral::Never) };
    if rules < ExecutionVersion::V8 {
        return Err(SqlError::unsupported("DEFERRABLE"));
    }
    if let Some(enforced) = words.enforced {
        return Err(SqlError::unsupported(if enforced { "ENFORCED" } else { "NOT ENFORCED" }));
    }
    deferral(words.deferrable, words.initially.map(|initially| initially == DeferrableInitial::Deferred))
}
