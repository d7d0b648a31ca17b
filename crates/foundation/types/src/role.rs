//! Roles of the organisations' users, and what they may do with tables and routines.
//!
//! An organisation's administrator, who connects under its name, may do everything and has no entry here. A role belongs to
//! the organisation whose administrator has made it: no other organisation's may change it.

use crate::{AccessList, Catalog, Given, Granted, Grantee, PUBLIC_SCHEMA, Privileges};
use borsh::{BorshDeserialize, BorshSerialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a privilege is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub enum Securable {
    /// A table or view, by name.
    Relation(String),
    /// A function, procedure or aggregate, by name.
    Routine(String),
    /// A schema, by name.
    Schema(String),
    /// A column, by the names of its table or view and its own.
    Column(String, String),
}

impl Securable {
    /// The column of a table or view.
    pub fn column(relation: &str, column: &str) -> Securable {
        Securable::Column(relation.to_string(), column.to_string())
    }
}

/// A user of an organisation's gateways, or a group of them.
#[derive(Clone, PartialEq, Eq, Debug, BorshSerialize, BorshDeserialize)]
pub struct Role {
    /// Position of its organisation in the charter.
    pub organisation: u16,
    /// Whether somebody may connect as it.
    pub login: bool,
    /// Roles whose privileges it has as well.
    pub member_of: BTreeSet<String>,
}

/// All roles of a ledger, and what was granted.
#[derive(Clone, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Roles {
    /// By name.
    pub by_name: BTreeMap<String, Role>,
    /// What was granted on what. A routine without an entry may be called by everybody, as in PostgreSQL.
    pub grants: BTreeMap<Securable, AccessList>,
}

impl Roles {
    /// What a new object lets whom do.
    pub fn initial(object: &Securable) -> AccessList {
        match object {
            Securable::Routine(_) => AccessList::of(Grantee::Public, Privileges::EXECUTE),
            Securable::Schema(name) if name == PUBLIC_SCHEMA => {
                AccessList::of(Grantee::Public, Privileges::USAGE)
            }
            Securable::Relation(_) | Securable::Schema(_) | Securable::Column(..) => AccessList::default(),
        }
    }

    /// What was granted on this.
    pub fn granted(&self, object: &Securable) -> Cow<'_, AccessList> {
        match self.grants.get(object) {
            Some(granted) => Cow::Borrowed(granted),
            None => Cow::Owned(Roles::initial(object)),
        }
    }

    /// The role and all roles that it is a member of, directly or through others.
    pub fn memberships<'a>(&'a self, role: &'a str) -> BTreeSet<&'a str> {
        let (mut found, mut waiting) = (BTreeSet::new(), vec![role]);
        while let Some(name) = waiting.pop() {
            if found.insert(name)
                && let Some(role) = self.by_name.get(name)
            {
                waiting.extend(role.member_of.iter().map(String::as_str));
            }
        }
        found
    }

    /// What a role may do with this; nothing where there is no such role any more. No role is called `public`: that stands for
    /// whoever it is, who may do what is granted to PUBLIC.
    pub fn privileges(&self, role: &str, object: &Securable) -> Privileges {
        self.held(role, object).privileges
    }

    /// The same, and what the role may grant to others.
    pub fn held(&self, role: &str, object: &Securable) -> Granted {
        if role != "public" && !self.by_name.contains_key(role) {
            return Granted::default();
        }
        self.granted(object).together(self.memberships(role))
    }

    /// What was granted on columns of this table or view.
    pub fn columns_of<'r>(&'r self, relation: &'r str) -> impl Iterator<Item = (&'r str, &'r AccessList)> {
        let all = self.grants.range(Securable::column(relation, "")..);
        all.map_while(move |(object, granted)| match object {
            Securable::Column(known, column) if known == relation => Some((column.as_str(), granted)),
            _ => None,
        })
    }

    /// What a role may do with at least one column of this table or view.
    pub fn privileges_on_columns(&self, role: &str, relation: &str) -> Privileges {
        if role != "public" && !self.by_name.contains_key(role) {
            return Privileges::NONE;
        }
        let memberships = self.memberships(role);
        let held = |granted: &AccessList| granted.together(memberships.iter().copied()).privileges;
        self.columns_of(relation).fold(Privileges::NONE, |all, (_, granted)| all | held(granted))
    }

    /// What administrators grant on this object.
    pub fn grant(&mut self, object: Securable, grantee: Grantee, privileges: Privileges) {
        self.list_mut(object).give(Given::by_administrators(grantee), Granted::plain(privileges));
    }

    /// Takes back what administrators have granted on this object.
    pub fn revoke(&mut self, object: Securable, grantee: &Grantee, privileges: Privileges) {
        let given = Given::by_administrators(grantee.clone());
        self.list_mut(object).take(&given, Granted::plain(privileges));
    }

    /// What was granted on this object, to be changed.
    pub fn list_mut(&mut self, object: Securable) -> &mut AccessList {
        let initial = Roles::initial(&object);
        self.grants.entry(object).or_insert(initial)
    }

    /// What was granted on one object counts for another from now on; on a table or view, what was granted on its columns, too.
    pub fn rename(&mut self, before: &Securable, after: Securable) {
        if let (Securable::Relation(from), Securable::Relation(to)) = (before, &after) {
            let columns: Vec<String> = self.columns_of(from).map(|(column, _)| column.to_string()).collect();
            for column in columns {
                self.rename(&Securable::column(from, &column), Securable::column(to, &column));
            }
        }
        if let Some(grants) = self.grants.remove(before) {
            self.grants.insert(after, grants);
        }
    }

    /// Without what was granted on objects that `catalog` does not have any more.
    #[must_use]
    pub fn without_dropped(mut self, catalog: &Catalog) -> Roles {
        self.grants.retain(|object, _| match object {
            Securable::Relation(name) => {
                catalog.tables.contains_key(name)
                    || catalog.views.contains_key(name)
                    || catalog.sequences.contains_key(name)
            }
            Securable::Column(relation, column) => has_column(catalog, relation, column),
            Securable::Routine(name) => catalog.has_routine(name),
            Securable::Schema(name) => catalog.has_schema(name),
        });
        self
    }
}

/// Whether a table or view has a column of this name.
fn has_column(catalog: &Catalog, relation: &str, column: &str) -> bool {
    let of_view =
        || catalog.views.get(relation).map(|view| view.columns.iter().any(|one| one.name == column));
    match catalog.tables.get(relation) {
        Some(table) => table.ordinal(column).is_some(),
        None => of_view().unwrap_or_default(),
    }
}

/// Who executes a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Principal {
    /// Position of the organisation in the charter.
    pub organisation: u16,
    /// The role; empty: the organisation's administrator.
    pub role: String,
    /// Who has signed, in a schema with members from execution version 6 on; elsewhere nobody asks.
    pub signers: Option<Arc<Signers>>,
}

/// Who has signed a transaction's part in a schema with members: its client, and the stakeholders who agree to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Signers {
    /// Names of organisations, and keys in hexadecimal.
    pub who: Vec<String>,
    /// Names of the schema's members.
    pub members: Vec<String>,
}

impl Signers {
    /// Members of the schema that have not signed.
    pub fn missing_members(&self) -> Vec<&str> {
        let missing = self.members.iter().filter(|member| !self.who.contains(member));
        missing.map(String::as_str).collect()
    }
}

impl Principal {
    /// An organisation's role; empty: its administrator.
    pub fn new(organisation: u16, role: impl Into<String>) -> Principal {
        Principal { organisation, role: role.into(), signers: None }
    }

    /// Whether everything is allowed.
    pub fn is_administrator(&self) -> bool {
        self.role.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode_exactly, encode};

    fn roles() -> Roles {
        let role = |member_of: &[&str]| Role {
            organisation: 0,
            login: true,
            member_of: member_of.iter().map(|name| name.to_string()).collect(),
        };
        let by_name = [
            ("clerk", role(&["reader"])),
            ("reader", role(&["all"])),
            ("all", role(&["reader"])),
            ("x", role(&[])),
        ];
        let by_name = by_name.into_iter().map(|(name, role)| (name.to_string(), role)).collect();
        Roles { by_name, grants: BTreeMap::new() }
    }

    #[test]
    fn privileges_come_from_the_role_its_groups_and_everybody() {
        let (mut roles, table) = (roles(), Securable::Relation("t".into()));
        roles.grant(table.clone(), Grantee::Role("clerk".into()), Privileges::INSERT);
        // Groups that are members of one another end somewhere.
        roles.grant(table.clone(), Grantee::Role("all".into()), Privileges::SELECT);
        assert_eq!(roles.privileges("clerk", &table), Privileges::INSERT | Privileges::SELECT);
        assert_eq!(roles.privileges("reader", &table), Privileges::SELECT);
        assert_eq!(roles.privileges("x", &table), Privileges::NONE);
        roles.grant(table.clone(), Grantee::Public, Privileges::DELETE);
        assert_eq!(roles.privileges("x", &table), Privileges::DELETE);
        assert_eq!(roles.privileges("nobody", &table), Privileges::NONE);
        assert!(roles.privileges("clerk", &table).contains(Privileges::SELECT | Privileges::DELETE));
        roles.revoke(table.clone(), &Grantee::Public, Privileges::OF_TABLES);
        assert_eq!(roles.privileges("x", &table), Privileges::NONE);
        roles.rename(&table, Securable::Relation("u".into()));
        assert_eq!(roles.privileges("clerk", &table), Privileges::NONE);
        roles.rename(&Securable::Relation("u".into()), table.clone());
        assert_eq!(roles.privileges("reader", &table), Privileges::SELECT);
        assert_eq!(decode_exactly::<Roles>(&encode(&roles)).expect("canonical"), roles);
    }

    #[test]
    fn everybody_may_call_a_routine_until_that_is_taken_back() {
        let (mut roles, routine) = (roles(), Securable::Routine("pay".into()));
        assert_eq!(roles.privileges("x", &routine), Privileges::EXECUTE);
        roles.revoke(routine.clone(), &Grantee::Public, Privileges::EXECUTE);
        roles.grant(routine.clone(), Grantee::Role("reader".into()), Privileges::EXECUTE);
        assert_eq!(roles.privileges("x", &routine), Privileges::NONE);
        assert_eq!(roles.privileges("clerk", &routine), Privileges::EXECUTE);
        assert!(roles.without_dropped(&Catalog::default()).grants.is_empty());
    }

    #[test]
    fn everybody_may_use_public_and_nobody_another_schema() {
        let (mut roles, public) = (roles(), Securable::Schema("public".into()));
        let other = Securable::Schema("s".into());
        assert_eq!(roles.privileges("x", &public), Privileges::USAGE);
        assert_eq!(roles.privileges("x", &other), Privileges::NONE);
        roles.revoke(public.clone(), &Grantee::Public, Privileges::OF_SCHEMAS);
        roles.grant(other.clone(), Grantee::Public, Privileges::USAGE);
        assert_eq!(roles.privileges("x", &public), Privileges::NONE);
        assert_eq!(roles.privileges("x", &other), Privileges::USAGE);
        let kept = roles.without_dropped(&Catalog::default());
        assert_eq!(kept.grants.keys().collect::<Vec<_>>(), [&public]);
    }

    #[test]
    fn privileges_on_columns_follow_their_table() {
        let (mut roles, reader) = (roles(), Grantee::Role("reader".into()));
        for column in ["a", "b"] {
            roles.grant(Securable::column("t", column), reader.clone(), Privileges::SELECT);
        }
        roles.grant(Securable::column("tt", "a"), reader, Privileges::UPDATE);
        assert_eq!(roles.privileges("clerk", &Securable::column("t", "a")), Privileges::SELECT);
        assert_eq!(roles.privileges_on_columns("clerk", "t"), Privileges::SELECT);
        assert_eq!(roles.privileges_on_columns("x", "t"), Privileges::NONE);
        assert_eq!(roles.privileges_on_columns("gone", "t"), Privileges::NONE);
        assert_eq!(roles.privileges("clerk", &Securable::Relation("t".into())), Privileges::NONE);
        roles.rename(&Securable::Relation("t".into()), Securable::Relation("u".into()));
        assert_eq!(roles.columns_of("u").map(|(column, _)| column).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(roles.columns_of("t").count(), 0);
        assert_eq!(decode_exactly::<Roles>(&encode(&roles)).expect("canonical"), roles);
        assert!(roles.without_dropped(&Catalog::default()).grants.is_empty());
    }
}
