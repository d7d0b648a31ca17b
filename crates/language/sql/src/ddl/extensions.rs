//! CREATE EXTENSION: functions of some extensions are built in, so that scripts which ask for them run as they are.

use sqlparser::ast::CreateExtension;
use types::{SqlError, SqlState};

/// Extensions whose functions are there.
const BUILT_IN: [&str; 3] = ["plpgsql", "uuid-ossp", "pgcrypto"];

/// Extensions that PostgreSQL brings along, and what to do without them.
const ELSEWHERE: [(&str, &str); 5] = [
    ("citext", "Use text, and compare lower(…)."),
    ("hstore", "Use a table of keys and values."),
    ("pg_trgm", "Use LIKE or a regular expression."),
    ("postgis", "Keep coordinates in columns of their own."),
    ("dblink", "A contract cannot ask another database: every node must come to the same."),
];

/// Refuses an extension that is not built in.
///
/// # Errors
/// `0A000` for one that is known and not there, `58P01` for an unknown one, as in PostgreSQL.
pub(super) fn check_extension(create: &CreateExtension) -> Result<(), SqlError> {
    let name = create.name.value.as_str();
    if BUILT_IN.contains(&name) {
        return Ok(());
    }
    if let Some((_, hint)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        return Err(SqlError::unsupported(format_args!("the extension \"{name}\"")).hint(*hint));
    }
    Err(SqlError::new(SqlState(*b"58P01"), format!("extension \"{name}\" is not available"))
        .hint(format!("Functions of these are built in: {}.", BUILT_IN.join(", "))))
}
