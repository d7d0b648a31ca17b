//! Policies of tables as `pg_policy` and `pg_policies` show them.

use crate::cell::{Cell, NamedRow};
use crate::fixed::role_oids;
use crate::objects::{Objects, Relation, object_identifier, without_parentheses};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{Catalog, PolicyCommand, RowPolicy};

/// A relation with one of its policies: the policy's object identifier, and its name.
type Shown<'o> = (&'o Relation, i32, &'o String, &'o Arc<RowPolicy>);

fn all(objects: &Objects) -> impl Iterator<Item = Shown<'_>> {
    objects.relations.iter().flat_map(|relation| {
        let first = object_identifier(1_400_000_000, 300, relation.oid as u32) + 1;
        let policies = (first..).zip(&relation.row_security.policies);
        policies.map(move |(oid, (name, policy))| (relation, oid, name, policy))
    })
}

/// Organisations that policies name, whose administrators have no entry among the roles.
pub(crate) fn organisations(catalog: &Catalog) -> BTreeSet<&str> {
    let policies = catalog.tables.values().flat_map(|table| table.row_security.policies.values());
    let named = policies.flat_map(|policy| policy.roles.iter().map(String::as_str));
    named.filter(|name| !catalog.roles.by_name.contains_key(*name)).collect()
}

fn condition(text: &Option<String>) -> Cell {
    text.as_ref().map_or(Cell::Null, |text| format!("({})", without_parentheses(text)).into())
}

/// The rows of `pg_policy`.
pub(crate) fn system_rows(objects: &Objects) -> Vec<NamedRow> {
    let role = |name: &String| role_oids(objects).find(|(_, known, _)| known == name).map(|(oid, ..)| oid);
    let row = |(relation, oid, name, policy): Shown<'_>| {
        let roles = match policy.roles.is_empty() {
            true => vec![0],
            false => policy.roles.iter().filter_map(role).map(i64::from).collect(),
        };
        let command = match policy.command {
            PolicyCommand::All => "*",
            PolicyCommand::Select => "r",
            PolicyCommand::Insert => "a",
            PolicyCommand::Update => "w",
            PolicyCommand::Delete => "d",
        };
        vec![
            ("oid", oid.into()),
            ("polname", name.clone().into()),
            ("polrelid", relation.oid.into()),
            ("polcmd", command.into()),
            ("polpermissive", (!policy.restrictive).into()),
            ("polroles", Cell::Integers(roles)),
            ("polqual", condition(&policy.using)),
            ("polwithcheck", condition(&policy.check)),
        ]
    };
    all(objects).map(row).collect()
}

/// The rows of `pg_policies`.
pub(crate) fn list(objects: &Objects) -> Vec<NamedRow> {
    let row = |(relation, _, name, policy): Shown<'_>| {
        let roles = match policy.roles.is_empty() {
            true => vec!["public".to_string()],
            false => policy.roles.clone(),
        };
        vec![
            ("schemaname", relation.schema_name.clone().into()),
            ("tablename", relation.name.clone().into()),
            ("policyname", name.clone().into()),
            ("permissive", if policy.restrictive { "RESTRICTIVE" } else { "PERMISSIVE" }.into()),
            ("roles", Cell::Texts(roles)),
            ("cmd", policy.command.name().into()),
            ("qual", condition(&policy.using)),
            ("with_check", condition(&policy.check)),
        ]
    };
    all(objects).map(row).collect()
}
