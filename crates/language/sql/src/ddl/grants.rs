//! GRANT and REVOKE of privileges, by PostgreSQL 15's rules: on objects and their columns, by administrators and by roles that may
//! pass on what they have. An administrator grants what in PostgreSQL an object's owner does.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::securables::{described, securables};
use std::collections::BTreeSet;
use syntax::parse::grant::GrantStatement;
use syntax::parse::role::ADMINISTRATOR;
use types::{
    AccessList, ExecutionVersion, Given, Granted, Grantee, PUBLIC_SCHEMA, Principal, Privileges, Securable,
    SqlError, SqlState, limits, object_name, schema_of,
};

/// `0LP01` a grant that cannot be.
const INVALID_GRANT_OPERATION: SqlState = SqlState(*b"0LP01");
/// `01007` less was granted than was asked for.
const PRIVILEGE_NOT_GRANTED: SqlState = SqlState(*b"01007");
/// `01006` less was revoked than was asked for.
const PRIVILEGE_NOT_REVOKED: SqlState = SqlState(*b"01006");
/// `2BP01` others have privileges by it.
const DEPENDENT_OBJECTS_STILL_EXIST: SqlState = SqlState(*b"2BP01");

/// Grants or revokes. Gives the command's tag.
///
/// # Errors
/// As PostgreSQL's: unknown objects, columns and roles; what the principal may not grant; privileges that depend on what is revoked.
pub(super) fn change_privileges(
    catalog: &mut NewCatalog,
    statement: &GrantStatement,
    by: &Principal,
) -> Result<&'static str, SqlError> {
    let (objects, all) = securables(catalog, &statement.objects)?;
    let named = statement.grantees.iter().filter_map(|grantee| match grantee {
        Grantee::Role(name) => Some(name),
        Grantee::Public => None,
    });
    if let Some(unknown) = named.into_iter().find(|name| !catalog.roles.by_name.contains_key(*name)) {
        return Err(undefined_role(unknown));
    }
    check_grantor(catalog, statement, by)?;
    check_schemas(catalog, &objects, by)?;
    let tag = if statement.revoke { "REVOKE" } else { "GRANT" };
    if catalog.rules < ExecutionVersion::V10 {
        change_before_v10(catalog, statement, &objects, all);
        return Ok(tag);
    }
    for object in objects {
        let columns = columns_of(catalog, statement, &object, all)?;
        let change = Change { statement, by, all };
        let privileges = statement.privileges.unwrap_or(all);
        if !privileges.is_empty() {
            change.make(catalog, object, privileges)?;
        }
        let change = Change { all: Privileges::OF_COLUMNS, ..change };
        for (column, privileges) in columns {
            change.make(catalog, column, privileges)?;
        }
    }
    Ok(tag)
}

/// Only administrators granted, and only on whole objects.
fn change_before_v10(
    catalog: &mut NewCatalog,
    statement: &GrantStatement,
    objects: &[Securable],
    all: Privileges,
) {
    let privileges = statement.privileges.unwrap_or(all);
    for grantee in &statement.grantees {
        for object in objects {
            match statement.revoke {
                true => catalog.roles.revoke(object.clone(), grantee, privileges),
                false => catalog.roles.grant(object.clone(), grantee.clone(), privileges),
            }
        }
    }
}

fn undefined_role(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}

/// GRANTED BY may only say who executes the statement.
fn check_grantor(catalog: &NewCatalog, statement: &GrantStatement, by: &Principal) -> Result<(), SqlError> {
    let Some(Some(name)) = &statement.granted_by else { return Ok(()) };
    let is_itself = match by.is_administrator() {
        true => name == ADMINISTRATOR || *name == catalog.governance.administrator_of(by.organisation),
        false => *name == by.role,
    };
    if is_itself {
        return Ok(());
    }
    if name != ADMINISTRATOR
        && !catalog.roles.by_name.contains_key(name)
        && !catalog.governance.has_organisation(name)
    {
        return Err(undefined_role(name));
    }
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "grantor must be current user"))
}

/// What the statement says of columns, in the order of the table. What is revoked on a table is revoked on all of its columns.
fn columns_of(
    catalog: &NewCatalog,
    statement: &GrantStatement,
    object: &Securable,
    all: Privileges,
) -> Result<Vec<(Securable, Privileges)>, SqlError> {
    let Securable::Relation(relation) = object else { return Ok(Vec::new()) };
    let names: Vec<&String> = match (catalog.tables.get(relation), catalog.views.get(relation)) {
        (Some(table), _) => table.columns.iter().map(|column| &column.name).collect(),
        (None, Some(view)) => view.columns.iter().map(|column| &column.name).collect(),
        (None, None) => return Ok(Vec::new()),
    };
    let of_table = match statement.revoke {
        true => statement.privileges.unwrap_or(all).within(Privileges::OF_COLUMNS),
        false => Privileges::NONE,
    };
    let mut said = vec![of_table; names.len()];
    for listed in &statement.columns {
        let privileges = listed.privileges.unwrap_or(Privileges::OF_COLUMNS);
        for column in &listed.columns {
            let Some(position) = names.iter().position(|name| *name == column) else {
                let message =
                    format!("column \"{column}\" of relation \"{}\" does not exist", object_name(relation));
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            };
            said[position] = said[position] | privileges;
        }
    }
    let said = names.into_iter().zip(said).filter(|(_, privileges)| !privileges.is_empty());
    Ok(said.map(|(name, privileges)| (Securable::column(relation, name), privileges)).collect())
}

/// A change of what was granted on an object.
#[derive(Clone, Copy)]
struct Change<'s> {
    statement: &'s GrantStatement,
    by: &'s Principal,
    /// All privileges that there are on it.
    all: Privileges,
}

impl Change<'_> {
    fn make(&self, catalog: &mut NewCatalog, object: Securable, wanted: Privileges) -> Result<(), SqlError> {
        let statement = self.statement;
        let (grantor, options) = self.grantor(catalog, &object, wanted);
        if options.is_empty() && !self.has_anything(catalog, &object) {
            return Err(denied(catalog, &object));
        }
        let privileges = wanted.within(options);
        self.warn(catalog, &object, wanted, privileges);
        let mut list = catalog.roles.granted(&object).into_owned();
        for grantee in &statement.grantees {
            if statement.revoke {
                self.revoke(catalog, &mut list, (&grantor, grantee), privileges)?;
            } else {
                self.grant(catalog, &mut list, (&grantor, grantee), privileges)?;
            }
        }
        // Where nothing changes, version 10 left a list without anything.
        if catalog.rules >= ExecutionVersion::V11 && list == *catalog.roles.granted(&object) {
            return Ok(());
        }
        match object {
            Securable::Column(..) if list.is_empty() => drop(catalog.roles.grants.remove(&object)),
            object => drop(catalog.roles.grants.insert(object, list)),
        }
        Ok(())
    }

    fn grant(
        &self,
        catalog: &NewCatalog,
        list: &mut AccessList,
        (grantor, grantee): (&Option<String>, &Grantee),
        privileges: Privileges,
    ) -> Result<(), SqlError> {
        let options = if self.statement.option { privileges } else { Privileges::NONE };
        if self.statement.option && *grantee == Grantee::Public {
            return Err(SqlError::new(INVALID_GRANT_OPERATION, "grant options can only be granted to roles"));
        }
        let given = Given { grantee: grantee.clone(), grantor: grantor.clone() };
        if grantor.is_some()
            && list.get(&given).is_empty()
            && list.given_by_roles() >= limits::ROLE_GRANTS_MAX
        {
            let message = format!(
                "roles have at most {} grants on an object (ROLE_GRANTS_MAX)",
                limits::ROLE_GRANTS_MAX
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("An administrator may grant it, or grant it to a group."));
        }
        if let Some(grantor) = grantor
            && self.statement.option
            && list.is_circular((grantor, grantee), options, &|role| memberships(catalog, role))
        {
            let message = "grant options cannot be granted back to your own grantor";
            return Err(SqlError::new(INVALID_GRANT_OPERATION, message));
        }
        if !privileges.is_empty() {
            list.give(given, Granted { privileges, options });
        }
        Ok(())
    }

    fn revoke(
        &self,
        catalog: &NewCatalog,
        list: &mut AccessList,
        (grantor, grantee): (&Option<String>, &Grantee),
        options: Privileges,
    ) -> Result<(), SqlError> {
        let privileges = if self.statement.option { Privileges::NONE } else { options };
        let given = Given { grantee: grantee.clone(), grantor: grantor.clone() };
        let (less, cascade) = (Granted { privileges, options }, self.statement.cascade);
        let taken = list.take_with_dependents(&given, less, cascade, &|role| memberships(catalog, role));
        taken.map_err(|_| {
            SqlError::new(DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist")
                .hint("Use CASCADE to revoke them too.")
        })
    }

    /// In whose name the principal grants, and what of the privileges: administrators everything; a role what it may grant, or the
    /// one that it is a member of and that may grant most.
    fn grantor(
        &self,
        catalog: &NewCatalog,
        object: &Securable,
        wanted: Privileges,
    ) -> (Option<String>, Privileges) {
        if self.by.is_administrator() {
            return (None, wanted);
        }
        let (list, of_table) = (catalog.roles.granted(object), list_of_table(catalog, object));
        let options = |role: &str| {
            let role = Grantee::Role(role.to_string());
            (list.direct(&role).options | of_table.direct(&role).options).within(wanted)
        };
        let own = &self.by.role;
        let mut best = (own.as_str(), options(own));
        for role in catalog.roles.memberships(own) {
            let found = options(role);
            if found.count() > best.1.count() {
                best = (role, found);
            }
        }
        (Some(best.0.to_string()), best.1)
    }

    /// Whether a role may do anything with it.
    fn has_anything(&self, catalog: &NewCatalog, object: &Securable) -> bool {
        let held = |object: &Securable| catalog.roles.held(&self.by.role, object) != Granted::default();
        let by_table = || match object {
            Securable::Column(relation, _) => held(&Securable::Relation(relation.clone())),
            _ => false,
        };
        self.by.is_administrator() || held(object) || by_table()
    }

    /// Says what of the privileges is not granted or revoked.
    fn warn(&self, catalog: &mut NewCatalog, object: &Securable, wanted: Privileges, given: Privileges) {
        let is_less = given != wanted && wanted != self.all;
        let amount = match () {
            () if given.is_empty() => "no",
            () if is_less => "not all",
            () => return,
        };
        let (state, done) = match self.statement.revoke {
            true => (PRIVILEGE_NOT_REVOKED, "could be revoked"),
            false => (PRIVILEGE_NOT_GRANTED, "were granted"),
        };
        let message = format!("{amount} privileges {done} for {}", called(catalog, object));
        catalog.warn(SqlError::new(state, message));
    }
}

fn memberships(catalog: &NewCatalog, role: &str) -> BTreeSet<String> {
    catalog.roles.memberships(role).into_iter().map(str::to_string).collect()
}

/// What was granted on the table of a column.
fn list_of_table(catalog: &NewCatalog, object: &Securable) -> AccessList {
    match object {
        Securable::Column(relation, _) => {
            catalog.roles.granted(&Securable::Relation(relation.clone())).into_owned()
        }
        _ => AccessList::default(),
    }
}

/// How warnings call it.
fn called(catalog: &NewCatalog, object: &Securable) -> String {
    match object {
        Securable::Column(relation, column) => {
            format!("column \"{column}\" of relation \"{}\"", object_name(relation))
        }
        Securable::Relation(name) | Securable::Schema(name) => format!("\"{}\"", object_name(name)),
        Securable::Routine(name) => {
            let shown = catalog.procedures.get(name).map_or(name, |routine| &routine.name);
            format!("\"{}\"", object_name(shown))
        }
    }
}

/// `42501` for a role that may grant nothing of it.
fn denied(catalog: &NewCatalog, object: &Securable) -> SqlError {
    let name = called(catalog, object);
    let what = match object {
        Securable::Column(..) => name,
        object => {
            let described = described(catalog, object);
            let kind = described.split(' ').next().unwrap_or_default();
            format!("{kind} {}", name.trim_matches('"'))
        }
    };
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied for {what}"))
        .hint("Whoever has a privilege WITH GRANT OPTION may grant it, and an administrator every one.")
}

/// Refuses a role that may not look for what it grants.
///
/// # Errors
/// `42501`
fn check_schemas(catalog: &NewCatalog, objects: &[Securable], by: &Principal) -> Result<(), SqlError> {
    let schemas: BTreeSet<&str> = objects
        .iter()
        .filter_map(|object| match object {
            Securable::Relation(name) | Securable::Routine(name) | Securable::Column(name, _) => {
                Some(schema_of(name))
            }
            Securable::Schema(_) => None,
        })
        .collect();
    for schema in schemas {
        let object = Securable::Schema(schema.to_string());
        let is_open = schema == PUBLIC_SCHEMA && !catalog.roles.grants.contains_key(&object);
        let may_use = || catalog.roles.privileges(&by.role, &object).contains(Privileges::USAGE);
        if !by.is_administrator() && !is_open && !may_use() {
            let message = format!("permission denied for schema {schema}");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                .hint(format!("An administrator may GRANT USAGE ON SCHEMA {schema} TO {}.", by.role)));
        }
    }
    Ok(())
}
