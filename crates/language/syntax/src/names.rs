//! Names as SQL writes them and PostgreSQL knows them.

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Location;
use types::{SqlError, SqlState, limits};

/// Characters from 1 of a line and column, both from 1.
pub fn position_in(source: &str, location: Location) -> Option<u32> {
    if location.line == 0 {
        return None;
    }
    let mut line_start = 0;
    for _ in 1..location.line {
        line_start += source[line_start..].find('\n')? + 1;
    }
    let characters = source[..line_start].chars().count() as u64 + location.column;
    u32::try_from(characters).ok()
}

/// A name as PostgreSQL knows it: in lower case unless it was quoted.
///
/// # Errors
/// `42601` where it is empty, `42622` where it is longer than [`limits::NAME_BYTES_MAX`].
pub fn name_of(ident: &Ident) -> Result<String, SqlError> {
    let name = match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    };
    if name.is_empty() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "zero-length delimited identifier"));
    }
    limits::check_name_length(&name)?;
    Ok(name)
}

/// The name that SQL gives a relation, routine or type: `t`, or `s.t` with its schema. Which one of the catalog that is, a
/// search path tells.
///
/// # Errors
/// `0A000` for a name with a dot in itself, and for what belongs to the system.
pub fn table_name(name: &ObjectName) -> Result<String, SqlError> {
    let parts: Vec<&Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    match parts.as_slice() {
        [object] if name.0.len() == 1 => plain_name(object),
        [schema, object] if name.0.len() == 2 => {
            let schema = plain_name(schema)?;
            if matches!(schema.as_str(), "pg_catalog" | "pg_temp") {
                return Err(SqlError::unsupported(format_args!("the qualified name {name}"))
                    .hint("Only queries through a gateway, outside of routines, read what the system has."));
            }
            Ok(format!("{schema}.{}", plain_name(object)?))
        }
        _ => Err(SqlError::unsupported(format_args!("the qualified name {name}"))
            .hint("A name has at most a schema in front: schema.name.")),
    }
}

/// A name of something that has a schema, or of a schema.
///
/// # Errors
/// As [`name_of`]; `0A000` for one with a dot.
pub fn plain_name(ident: &Ident) -> Result<String, SqlError> {
    let name = name_of(ident)?;
    if name.contains('.') {
        return Err(SqlError::unsupported(format_args!("a dot in the name \"{name}\""))
            .hint("A dot stands between schema and name: schema.name, or \"schema\".\"name\"."));
    }
    Ok(name)
}
