//! CREATE EXTENSION: functions of some extensions are built in, so that scripts which ask for them run as they are.

use sqlparser::ast::CreateExtension;
use types::{ExecutionVersion, SqlError, SqlState};

/// Extensions whose functions are there.
const BUILT_IN: [&str; 3] = ["plpgsql", "uuid-ossp", "pgcrypto"];

/// Those whose types and functions came with execution version 16.
const SINCE_16: [&str; 4] = ["hstore", "citext", "pg_trgm", "unaccent"];

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
pub(super) fn check_extension(create: &CreateExtension, rules: ExecutionVersion) -> Result<(), SqlError> {
    let name = create.name.value.as_str();
    let is_new = rules >= ExecutionVersion::V16;
    if BUILT_IN.contains(&name) || (is_new && SINCE_16.contains(&name)) {
        return Ok(());
    }
    if let Some((_, hint)) = ELSEWHERE.iter().find(|(known, _)| *known == name) {
        return Err(SqlError::unsupported(format_args!("the extension \"{name}\"")).hint(*hint));
    }
    let mut built_in = BUILT_IN.to_vec();
    if is_new {
        built_in.extend(SINCE_16);
    }
    Err(SqlError::new(SqlState(*b"58P01"), format!("extension \"{name}\" is not available"))
        .hint(format!("Functions of these are built in: {}.", built_in.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::ast::Statement;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    fn checked(name: &str, rules: ExecutionVersion) -> Result<(), SqlError> {
        let sql = format!("CREATE EXTENSION IF NOT EXISTS \"{name}\"");
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &sql).expect("a statement");
        let Some(Statement::CreateExtension(create)) = parsed.first() else { panic!("{sql}") };
        check_extension(create, rules)
    }

    #[test]
    fn earlier_versions_refuse_what_came_later_in_their_words() {
        for (name, message, hint) in [
            ("hstore", "the extension \"hstore\" is not supported", "Use a table of keys and values."),
            ("citext", "the extension \"citext\" is not supported", "Use text, and compare lower(…)."),
            ("pg_trgm", "the extension \"pg_trgm\" is not supported", "Use LIKE or a regular expression."),
            (
                "unaccent",
                "extension \"unaccent\" is not available",
                "Functions of these are built in: plpgsql, uuid-ossp, pgcrypto.",
            ),
        ] {
            let error = checked(name, ExecutionVersion::V15).expect_err(name);
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)));
            assert_eq!(checked(name, ExecutionVersion::V16), Ok(()));
        }
        let error = checked("btree_gist", ExecutionVersion::V16).expect_err("it is not there");
        assert_eq!(error.message, "extension \"btree_gist\" is not available");
    }
}
