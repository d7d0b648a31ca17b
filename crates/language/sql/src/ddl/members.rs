//! Schemas with members: who they are, and that nothing stands on both sides of their boundary.
//!
//! The ledger's catalog has the schema and its members, and nothing of what is in it. That is in a catalog of its own, which has
//! this schema alone, and which its members alone have. So nothing outside can refer to what is inside, and the other way round.

use crate::ddl::new_catalog::NewCatalog;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::schema_members::AlterSchemaMember;
use types::{
    Catalog, Charter, ExecutionModel, ExecutionVersion, SchemaMembers, SqlError, SqlState, limits, schema_of,
};

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The members of a schema that was just created by the organisation with this number.
///
/// # Errors
/// `22023` for members that cannot be, `42501` where its creator is none of them, `0A000` on ledgers that have no such schemas.
pub(super) fn set_members(
    catalog: &mut NewCatalog,
    schema: &str,
    names: &[String],
    organisation: u16,
    height: u64,
) -> Result<(), SqlError> {
    if catalog.rules < ExecutionVersion::V4 {
        return Err(SqlError::unsupported("CREATE SCHEMA … MEMBERS before execution version 4")
            .hint("SELECT entente.set_charter('execution_version', '4') takes the ledger there."));
    }
    if catalog.own_schema().is_some() {
        return Err(SqlError::unsupported("a schema in a schema with members"));
    }
    let charter = catalog.governance.charter_at(height).cloned();
    let charter = charter.ok_or_else(|| SqlError::unsupported("members on a ledger without a charter"))?;
    if charter.execution != ExecutionModel::OrderExecute {
        return Err(SqlError::unsupported(
            "schemas with members where transactions are not executed after ordering",
        )
        .hint("The charter's execution must be order-execute."));
    }
    if names.len() > limits::SCHEMA_MEMBERS_MAX {
        return Err(too_many(schema, names.len()));
    }
    let mut organisations = BTreeSet::new();
    for name in names {
        let position = member_position(&charter, name).ok_or_else(|| unknown_member(Some(&charter), name))?;
        if !organisations.insert(position) {
            return Err(invalid(format!(
                "organisation \"{name}\" is named twice as a member of schema \"{schema}\""
            )));
        }
    }
    if !organisations.contains(&organisation) {
        let message = format!("who creates schema \"{schema}\" must be one of its members");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
            .hint("Add your own organisation to MEMBERS, or let a member create the schema."));
    }
    // Numbers of tables are never used twice, so neither is this.
    let number = catalog.next_table;
    if number >= SchemaMembers::NUMBERS_MAX {
        let message = format!("a ledger has at most {} such schemas in its life", SchemaMembers::NUMBERS_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    catalog.next_table += 1;
    let organisations = organisations.into_iter().collect();
    let members = Arc::new(SchemaMembers { number, since: height, changed: height, organisations });
    if let Some(schema) = catalog.schemas.get_mut(schema) {
        schema.members = Some(members);
    }
    Ok(())
}

/// A member comes or leaves; who asks for it is one.
///
/// # Errors
/// `42501` for a stranger, `22023` for an organisation that cannot come or leave.
pub(super) fn change_member(
    catalog: &mut NewCatalog,
    change: &AlterSchemaMember,
    organisation: u16,
    height: u64,
) -> Result<(), SqlError> {
    let AlterSchemaMember { schema, adds, member } = change;
    catalog.check_schema(schema)?;
    let Some(members) = catalog.members_of(schema).cloned() else {
        return Err(invalid(format!(
            "schema \"{schema}\" has no members: everybody holds what stands in it"
        )));
    };
    if !members.has(organisation) {
        let message = format!("only a member of schema \"{schema}\" can change who its members are");
        return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
    }
    let charter = catalog.governance.charter_at(height).cloned();
    let position = charter.as_ref().and_then(|charter| member_position(charter, member));
    let position = position.ok_or_else(|| unknown_member(charter.as_ref(), member))?;
    let mut organisations: BTreeSet<u16> = members.organisations.iter().copied().collect();
    let changed = if *adds { organisations.insert(position) } else { organisations.remove(&position) };
    if !changed {
        let is = if *adds { "is a member already" } else { "is no member" };
        return Err(invalid(format!("organisation \"{member}\" {is} of schema \"{schema}\"")));
    }
    if organisations.is_empty() {
        return Err(invalid(format!("schema \"{schema}\" would have no member")).hint("DROP SCHEMA ends it."));
    }
    if organisations.len() > limits::SCHEMA_MEMBERS_MAX {
        return Err(too_many(schema, organisations.len()));
    }
    let organisations = organisations.into_iter().collect();
    if let Some(schema) = catalog.schemas.get_mut(schema) {
        let (number, since) = (members.number, members.since);
        let changed = SchemaMembers { number, since, changed: height, organisations };
        schema.members = Some(Arc::new(changed));
    }
    Ok(())
}

fn member_position(charter: &Charter, name: &str) -> Option<u16> {
    charter.members().find(|(_, known)| known.name == name).map(|(position, _)| position)
}

fn unknown_member(charter: Option<&Charter>, name: &str) -> SqlError {
    let known: Vec<&str> = charter
        .into_iter()
        .flat_map(|charter| charter.members().map(|(_, known)| known.name.as_str()))
        .collect();
    invalid(format!("organisation \"{name}\" is no member of this ledger"))
        .hint(format!("Its members are {}.", known.join(", ")))
}

fn too_many(schema: &str, found: usize) -> SqlError {
    let limit = limits::SCHEMA_MEMBERS_MAX;
    let message =
        format!("schema \"{schema}\" has {found} members, the limit is {limit} (SCHEMA_MEMBERS_MAX)");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Whether an organisation may drop a schema: of one that has members, these alone.
///
/// # Errors
/// `42501`.
pub(super) fn check_member(catalog: &Catalog, schema: &str, organisation: u16) -> Result<(), SqlError> {
    let members = catalog.schemas.get(schema).and_then(|schema| schema.members.as_ref());
    match members.filter(|members| !members.has(organisation)) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("only a member of schema \"{schema}\" can drop it"),
        )),
    }
}

/// Commitments name schemas.
///
/// # Errors
/// `0A000` for a schema that has members.
pub(super) fn refuse_renaming(catalog: &Catalog, schema: &str) -> Result<(), SqlError> {
    match catalog.schemas.get(schema).is_some_and(|schema| schema.members.is_some()) {
        true => Err(SqlError::unsupported("renaming a schema that has members")),
        false => Ok(()),
    }
}

/// What a change of a catalog leaves stands on one side of each boundary.
///
/// # Errors
/// `42501` for something in a schema with members in the ledger's catalog; `0A000` for what the catalog of such a schema cannot have.
pub(super) fn check_boundaries(before: &Catalog, after: &Catalog) -> Result<(), SqlError> {
    let names = || {
        let relations = after.tables.keys().chain(after.views.keys()).chain(after.sequences.keys());
        relations.chain(after.procedures.keys()).chain(after.aggregates.keys()).chain(after.types.keys())
    };
    if let Some(own) = before.own_schema() {
        let outside = names().find(|name| schema_of(name) != own);
        if let Some(outside) = outside {
            let message = format!("\"{outside}\" does not stand in schema \"{own}\"");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("A statement changes one schema with members, or what everybody sees."));
        }
        if after.schemas != before.schemas || after.roles != before.roles {
            return Err(SqlError::unsupported("schemas, roles and grants in a schema with members"));
        }
        let first = SchemaMembers::first_table_of(before.next_table);
        if after.next_table >= first + SchemaMembers::TABLES_EACH {
            let limit = SchemaMembers::TABLES_EACH;
            let message = format!("a schema with members has at most {limit} tables and indexes in its life");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if after.next_type >= first + SchemaMembers::TABLES_EACH {
            let limit = SchemaMembers::TABLES_EACH;
            let message =
                format!("a schema with members has at most {limit} types, tables and views in its life");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        return Ok(());
    }
    let has_members =
        |name: &str| after.schemas.get(schema_of(name)).is_some_and(|schema| schema.members.is_some());
    match names().find(|name| has_members(name)) {
        None => Ok(()),
        Some(name) => {
            let schema = schema_of(name);
            let message = format!("schema \"{schema}\" has members: others must not see what stands in it");
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message).hint(
                "Connect to a member's node, and send the statement alone or with others about this schema.",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Schema;

    #[test]
    fn types_of_a_schema_do_not_take_the_numbers_of_the_next_one() {
        let first = SchemaMembers::TABLES_FROM;
        let last = first + SchemaMembers::TABLES_EACH - 1;
        let schemas = std::iter::once(("deal".to_string(), Schema::default())).collect();
        let catalog = |next_type| Catalog { next_table: first + 7, next_type, ..Catalog::default() };
        let before = Catalog { schemas, ..catalog(last) };
        let after = |next_type| Catalog { schemas: before.schemas.clone(), ..catalog(next_type) };
        check_boundaries(&before, &after(last)).expect("the last number is free");
        let error = check_boundaries(&before, &after(last + 1)).expect_err("all numbers are taken");
        assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert_eq!(
            error.message,
            "a schema with members has at most 4096 types, tables and views in its life"
        );
        // Before version 7 they count from 0.
        check_boundaries(&after(3), &after(9)).expect("as ever");
    }
}
