//! Roles and privileges in the catalog. PostgreSQL 15's rules and messages, but for who may change what: the administrators of
//! the organisations, each its own roles.

use crate::ddl::grants::change_privileges;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::row_security::policies_of_role;
use crate::ddl::securables::{all_privileges, described, securables};
use syntax::parse::role::{ADMINISTRATOR, RoleStatement};
use types::{Catalog, ExecutionVersion, Grantee, Principal, Role, Roles, SqlError, SqlState, limits};

/// `0LP01` a grant that cannot be.
const INVALID_GRANT_OPERATION: SqlState = SqlState(*b"0LP01");
/// `2BP01` something else needs it.
const DEPENDENT_OBJECTS_STILL_EXIST: SqlState = SqlState(*b"2BP01");

fn undefined(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

/// The role, which must be the organisation's own.
fn own<'r>(roles: &'r mut Roles, name: &str, organisation: u16) -> Result<&'r mut Role, SqlError> {
    let role = roles.by_name.get_mut(name).ok_or_else(|| undefined(name))?;
    if role.organisation == organisation {
        return Ok(role);
    }
    let message = format!("permission denied: role \"{name}\" belongs to another organisation");
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        .hint("Only the administrator of the organisation that has made a role can change it."))
}

/// Makes the change that the principal asks for: a role grants what it may, and an administrator does everything. Gives the command's tag.
///
/// # Errors
/// As PostgreSQL's, and `42501` where another organisation's role would change.
pub(super) fn change_roles(
    catalog: &mut NewCatalog,
    statement: &RoleStatement,
    principal: &Principal,
) -> Result<&'static str, SqlError> {
    let organisation = principal.organisation;
    match statement {
        RoleStatement::Create { name, login, member_of } => {
            create_role(catalog, name, *login, member_of, organisation)?;
            Ok("CREATE ROLE")
        }
        RoleStatement::Alter { name, login } => {
            let role = own(&mut catalog.roles, name, organisation)?;
            role.login = login.unwrap_or(role.login);
            Ok("ALTER ROLE")
        }
        RoleStatement::Drop { if_exists, names } => {
            for name in names {
                if *if_exists && !catalog.roles.by_name.contains_key(name) {
                    continue;
                }
                drop_role(catalog, name, organisation)?;
            }
            Ok("DROP ROLE")
        }
        RoleStatement::Memberships { revoke, groups, members } => {
            change_memberships(catalog, *revoke, groups, members, organisation)?;
            Ok(if *revoke { "REVOKE ROLE" } else { "GRANT ROLE" })
        }
        RoleStatement::Owner { objects, role, tag } => {
            if let Some(role) = role
                && !catalog.roles.by_name.contains_key(role)
            {
                return Err(undefined(role));
            }
            let objects = match objects {
                Some(objects) => securables(catalog, objects)?.0,
                None => Vec::new(),
            };
            // Nobody owns anything: who is named here gets what an owner has, all that can be granted.
            for (object, role) in objects.into_iter().zip(role.iter().cycle()) {
                let all = all_privileges(catalog, &object);
                catalog.roles.grant(object, Grantee::Role(role.clone()), all);
            }
            Ok(tag)
        }
        RoleStatement::Privileges(statement) => change_privileges(catalog, statement, principal),
    }
}

fn create_role(
    catalog: &mut NewCatalog,
    name: &str,
    login: bool,
    member_of: &[String],
    organisation: u16,
) -> Result<(), SqlError> {
    let reserved = matches!(name, "public" | "none" | ADMINISTRATOR) || name.starts_with("pg_");
    if reserved {
        let message = format!("role name \"{name}\" is reserved");
        return Err(SqlError::new(SqlState(*b"42939"), message));
    }
    // Who asks for `current_user`, and policies that name an organisation, take it for the administrator of that one.
    if catalog.rules >= ExecutionVersion::V8 && catalog.governance.has_organisation(name) {
        let message = format!("role name \"{name}\" is reserved");
        return Err(SqlError::new(SqlState(*b"42939"), message)
            .detail("It is the name of an organisation, under which its administrator connects."));
    }
    if catalog.roles.by_name.contains_key(name) {
        let message = format!("role \"{name}\" already exists");
        return Err(SqlError::new(SqlState(*b"42710"), message));
    }
    if catalog.roles.by_name.len() >= limits::ROLES_MAX {
        let message = format!("a ledger has at most {} roles (ROLES_MAX)", limits::ROLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    for group in member_of {
        own(&mut catalog.roles, group, organisation)?;
    }
    let member_of = member_of.iter().cloned().collect();
    catalog.roles.by_name.insert(name.to_string(), Role { organisation, login, member_of });
    Ok(())
}

fn change_memberships(
    catalog: &mut Catalog,
    revoke: bool,
    groups: &[String],
    members: &[String],
    organisation: u16,
) -> Result<(), SqlError> {
    for (group, member) in groups.iter().flat_map(|group| members.iter().map(move |member| (group, member))) {
        own(&mut catalog.roles, group, organisation)?;
        if !revoke && catalog.roles.memberships(group).contains(member.as_str()) {
            let message = format!("role \"{group}\" is a member of role \"{member}\"");
            return Err(SqlError::new(INVALID_GRANT_OPERATION, message));
        }
        let role = own(&mut catalog.roles, member, organisation)?;
        if revoke {
            role.member_of.remove(group);
        } else {
            role.member_of.insert(group.clone());
        }
    }
    Ok(())
}

fn drop_role(catalog: &mut Catalog, name: &str, organisation: u16) -> Result<(), SqlError> {
    own(&mut catalog.roles, name, organisation)?;
    let granted: Vec<String> = catalog
        .roles
        .grants
        .iter()
        .filter(|(_, grants)| grants.names(name))
        .map(|(object, _)| described(catalog, object))
        .collect();
    let mut detail: Vec<String> = granted.iter().map(|object| format!("privileges for {object}")).collect();
    detail.extend(policies_of_role(catalog, name));
    if !detail.is_empty() {
        let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
        return Err(SqlError::new(DEPENDENT_OBJECTS_STILL_EXIST, message).detail(detail.join("\n")));
    }
    catalog.roles.by_name.remove(name);
    for role in catalog.roles.by_name.values_mut() {
        role.member_of.remove(name);
    }
    Ok(())
}
