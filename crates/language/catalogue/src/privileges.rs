//! Who may do what, as PostgreSQL's access lists, its functions and `information_schema` show it.

use crate::cell::{Cell, NamedRow};
use crate::dependencies::CLASS;
use crate::objects::{Objects, ROLE, Relation};
use crate::relations::{SystemRelation, described};
use std::collections::BTreeSet;
use types::{AccessList, DATABASE, Granted, Grantee, PUBLIC_SCHEMA, Privileges, Securable};
use values::quote_ident;

/// What was granted, as `relacl`, `attacl`, `proacl` and `nspacl` show it; NULL where nothing was. As in PostgreSQL, that of `public` is
/// always shown.
pub(crate) fn access_list(objects: &Objects, object: &Securable) -> Cell {
    let is_public = matches!(object, Securable::Schema(name) if name == PUBLIC_SCHEMA);
    if !is_public && !objects.grants.grants.contains_key(object) {
        return Cell::Null;
    }
    let granted = objects.grants.granted(object);
    let is_sequence =
        |name: &str| objects.relations.iter().any(|known| known.kind == "S" && known.catalog_name() == name);
    // As PostgreSQL's `acldefault` has it.
    let of_owner = match object {
        Securable::Relation(name) if is_sequence(name) => Some("rwU"),
        Securable::Relation(_) => Some("arwdDxt"),
        Securable::Routine(_) => Some("X"),
        Securable::Schema(_) => Some("UC"),
        // What the owner may do with the table, it may do with its columns.
        Securable::Column(..) => None,
    };
    let item =
        |who: &str, what: Granted, by: &str| format!("{who}={}/{by}", what.privileges.letters(what.options));
    let owner = of_owner.map(|all| format!("{ROLE}={all}/{ROLE}"));
    let others = granted.iter().map(|(given, what)| {
        let who = match &given.grantee {
            Grantee::Public => String::new(),
            Grantee::Role(name) => quote_ident(name),
        };
        let by = given.grantor.as_ref().map_or(ROLE.to_string(), |grantor| quote_ident(grantor));
        item(&who, what, &by)
    });
    Cell::Texts(owner.into_iter().chain(others).collect())
}

/// What everybody may do with PostgreSQL's own relations from the beginning: the rows of `pg_init_privs`.
pub(crate) fn first() -> Vec<NamedRow> {
    let row = |relation: &SystemRelation| {
        vec![
            ("objoid", Cell::from(relation.oid)),
            ("classoid", CLASS.into()),
            ("privtype", "i".into()),
            ("initprivs", readable()),
        ]
    };
    described().map(row).collect()
}

/// The access list of a relation that everybody may read.
pub(crate) fn readable() -> Cell {
    Cell::Texts(vec![format!("=r/{ROLE}")])
}

/// What roles may do, by relation, column and routine, for the functions that ask. Attribute 0 is the whole object.
pub(crate) fn rows(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for (role, _) in &objects.roles {
        let mut add = |(kind, object, attribute): (&str, i32, i32), held: Granted| {
            let plain = held.privileges.names().map(str::to_string);
            let options = held.options.names().map(|name| format!("{name} WITH GRANT OPTION"));
            rows.extend(plain.chain(options).map(|privilege| {
                vec![
                    ("role", role.clone().into()),
                    ("kind", kind.into()),
                    ("object", object.into()),
                    ("attribute", attribute.into()),
                    ("privilege", privilege.into()),
                ]
            }));
        };
        for relation in &objects.relations {
            if !relation.is_ledgers() {
                // Everybody may read the history.
                add(("relation", relation.oid, 0), Granted::plain(Privileges::SELECT));
                continue;
            }
            if relation.is_temporary() {
                // A session may do everything with its own.
                let all = Privileges::OF_TABLES;
                add(("relation", relation.oid, 0), Granted { privileges: all, options: all });
                continue;
            }
            let name = relation.catalog_name();
            add(("relation", relation.oid, 0), objects.grants.held(role, &Securable::Relation(name.clone())));
            if objects.grants.columns_of(&name).next().is_none() {
                continue;
            }
            for (number, attribute) in (1..).zip(&relation.attributes) {
                let column = Securable::column(&name, &attribute.name);
                add(("relation", relation.oid, number), objects.grants.held(role, &column));
            }
        }
        for routine in &objects.routines {
            let held = objects.grants.held(role, &Securable::Routine(routine.key.clone()));
            add(("routine", routine.oid, 0), held);
        }
    }
    rows
}

/// A privilege that somebody has: grantor, grantee, which, and whether it may be granted to others.
type Item = (String, String, &'static str, bool);

/// What a list says of some privileges, and what the owner may do.
fn items(granted: Option<&AccessList>, among: Privileges) -> BTreeSet<Item> {
    let owner = among.names().map(|name| (ROLE.to_string(), ROLE.to_string(), name, true));
    let others = granted.into_iter().flat_map(AccessList::iter).flat_map(|(given, what)| {
        let (by, who) = (given.grantor.as_deref().unwrap_or(ROLE).to_string(), given.grantee.to_string());
        let held = what.privileges.within(among);
        held.names().map(move |name| {
            let may_grant = Privileges::named(name).is_some_and(|one| what.options.contains(one));
            (by.clone(), who.clone(), name, may_grant)
        })
    });
    owner.chain(others).collect()
}

fn row(relation: &Relation, (grantor, grantee, privilege, grantable): Item) -> NamedRow {
    vec![
        ("grantor", grantor.into()),
        ("grantee", grantee.into()),
        ("table_catalog", DATABASE.into()),
        ("table_schema", relation.schema_name.clone().into()),
        ("table_name", relation.name.clone().into()),
        ("privilege_type", privilege.into()),
        ("is_grantable", if grantable { "YES".into() } else { "NO".into() }),
    ]
}

/// `table_privileges` of these relations, and `role_table_grants`: as an administrator sees them.
pub(crate) fn of_tables<'o>(objects: &Objects, listed: impl Iterator<Item = &'o Relation>) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed {
        let granted = objects.grants.grants.get(&Securable::Relation(relation.catalog_name()));
        for item in items(granted, Privileges::OF_TABLES) {
            let privilege = item.2;
            let mut shown = row(relation, item);
            shown.push(("with_hierarchy", if privilege == "SELECT" { "YES".into() } else { "NO".into() }));
            rows.push(shown);
        }
    }
    rows
}

/// `column_privileges` of these relations, and `role_column_grants`: they have what was granted on the tables, too.
pub(crate) fn of_columns<'o>(objects: &Objects, listed: impl Iterator<Item = &'o Relation>) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed {
        let name = relation.catalog_name();
        let grants = &objects.grants.grants;
        let of_table = items(grants.get(&Securable::Relation(name.clone())), Privileges::OF_COLUMNS);
        for attribute in &relation.attributes {
            let column = grants.get(&Securable::column(&name, &attribute.name));
            let all = of_table.iter().cloned().chain(items(column, Privileges::OF_COLUMNS));
            for item in all.collect::<BTreeSet<_>>() {
                let mut shown = row(relation, item);
                shown.push(("column_name", attribute.name.clone().into()));
                rows.push(shown);
            }
        }
    }
    rows
}
