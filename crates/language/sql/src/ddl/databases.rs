//! CREATE DATABASE and DROP DATABASE: a schema that stands for a database, so that the test runners of frameworks work.
//!
//! A ledger is one database. Whoever connects to one with the name of a schema finds this schema in the place of `public`
//! (`gateway`). So a database that is created is such a schema, where nobody else is asked about it.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::schemas::{create_schema, drop_schema};
use syntax::parse::database::DatabaseStatement;
use types::{Catalog, DATABASE, PUBLIC_SCHEMA, SqlError, SqlState};

/// Makes or drops one. Gives the command's tag. `height`: of the block.
///
/// # Errors
/// `0A000` where others are asked about changes of the schema; a name that is taken, or that none has.
pub(super) fn change_database(
    catalog: &mut NewCatalog,
    statement: &DatabaseStatement,
    height: u64,
) -> Result<&'static str, SqlError> {
    match statement {
        DatabaseStatement::Create { name, owner } => {
            check_governance(catalog, height, "CREATE DATABASE", "CREATE SCHEMA")?;
            if name == DATABASE || catalog.has_schema(name) {
                let message = format!("database \"{name}\" already exists");
                return Err(SqlError::new(SqlState(*b"42P04"), message));
            }
            create_schema(catalog, false, name, owner.as_deref())?;
            Ok("CREATE DATABASE")
        }
        DatabaseStatement::Drop { if_exists, name } => {
            check_governance(catalog, height, "DROP DATABASE", "DROP SCHEMA … CASCADE")?;
            if name == DATABASE {
                let message = "cannot drop the currently open database";
                return Err(SqlError::new(SqlState(*b"55006"), message));
            }
            match stands_for_database(catalog, name) {
                true => drop_schema(catalog, name, true)?,
                false if *if_exists => {}
                false => {
                    let message = format!("database \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState(*b"3D000"), message));
                }
            }
            Ok("DROP DATABASE")
        }
    }
}

/// Whether a schema stands for a database: not `public`, and none with members.
fn stands_for_database(catalog: &Catalog, name: &str) -> bool {
    name != PUBLIC_SCHEMA && catalog.schemas.get(name).is_some_and(|schema| schema.members.is_none())
}

/// Refuses the statement where changes of the schema need the consent of others.
fn check_governance(catalog: &Catalog, height: u64, what: &str, instead: &str) -> Result<(), SqlError> {
    let governance = catalog.governance.charter_at(height).map_or("any", |charter| &charter.governance);
    if governance == "any" {
        return Ok(());
    }
    let what = format_args!("{what} in a network whose members are asked about its schema");
    Err(SqlError::unsupported(what)
        .hint(format!("Use {instead}. A schema can be connected to as a database: its name comes first.")))
}
