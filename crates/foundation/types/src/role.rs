//! Roles of the organisations' users, and what they may do with tables and routines.
//!
//! An organisation's administrator, who connects under its name, may do everything and has no entry here. A role belongs to
//! the organisation whose administrator has made it: no other organisation's may change it.

use crate::{Catalog, PUBLIC_SCHEMA};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

/// A set of privileges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct Privileges(u16);

impl Privileges {
    /// None.
    pub const NONE: Privileges = Privileges(0);
    /// To read rows.
    pub const SELECT: Privileges = Privileges(1);
    /// To add rows.
    pub const INSERT: Privileges = Privileges(1 << 1);
    /// To change rows.
    pub const UPDATE: Privileges = Privileges(1 << 2);
    /// To delete rows.
    pub const DELETE: Privileges = Privileges(1 << 3);
    /// To delete all rows at once.
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    /// To call a function or procedure.
    pub const EXECUTE: Privileges = Privileges(1 << 5);
    /// To find what is in a schema.
    pub const USAGE: Privileges = Privileges(1 << 6);
    /// What can be granted on a table.
    pub const OF_TABLES: Privileges = Privileges(0b1_1111);
    /// What can be granted on a sequence; drawing from it needs no privilege.
    pub const OF_SEQUENCES: Privileges = Privileges(0b101);
    /// What can be granted on a function or procedure.
    pub const OF_ROUTINES: Privileges = Privileges::EXECUTE;

    /// What can be granted on a schema.
    pub const OF_SCHEMAS: Privileges = Privileges::USAGE;

    /// Letters of PostgreSQL's access lists (`psql`'s `\dp`), and names, in its order.
    const NAMES: [(Privileges, char, &'static str); 7] = [
        (Privileges::INSERT, 'a', "INSERT"),
        (Privileges::SELECT, 'r', "SELECT"),
        (Privileges::UPDATE, 'w', "UPDATE"),
        (Privileges::DELETE, 'd', "DELETE"),
        (Privileges::TRUNCATE, 'D', "TRUNCATE"),
        (Privileges::EXECUTE, 'X', "EXECUTE"),
        (Privileges::USAGE, 'U', "USAGE"),
    ];

    /// Whether all of `others` are in it.
    pub fn contains(self, others: Privileges) -> bool {
        self.0 & others.0 == others.0
    }

    /// Those that are not in `others`.
    #[must_use]
    pub fn without(self, others: Privileges) -> Privileges {
        Privileges(self.0 & !others.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Privileges::NONE
    }

    /// The one with this name, in upper case.
    pub fn named(name: &str) -> Option<Privileges> {
        Privileges::NAMES.into_iter().find(|(.., known)| *known == name).map(|(one, ..)| one)
    }

    /// Their names, in upper case.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Privileges::NAMES.into_iter().filter(move |(one, ..)| self.contains(*one)).map(|(_, _, name)| name)
    }

    /// Their letters in PostgreSQL's access lists.
    pub fn letters(self) -> String {
        Privileges::NAMES
            .into_iter()
            .filter(|(one, ..)| self.contains(*one))
            .map(|(_, letter, _)| letter)
            .collect()
    }
}

impl BitOr for Privileges {
    type Output = Privileges;

    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

/// What a privilege is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub enum Securable {
    /// A table or view, by name.
    Relation(String),
    /// A function, procedure or aggregate, by name.
    Routine(String),
    /// A schema, by name.
    Schema(String),
}

/// Who has a privilege.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub enum Grantee {
    /// Every role.
    Public,
    /// One, and those who are members of it.
    Role(String),
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grantee::Public => f.write_str("PUBLIC"),
            Grantee::Role(name) => f.write_str(name),
        }
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
    pub grants: BTreeMap<Securable, BTreeMap<Grantee, Privileges>>,
}

impl Roles {
    /// What a new object lets whom do.
    pub fn initial(object: &Securable) -> BTreeMap<Grantee, Privileges> {
        match object {
            Securable::Relation(_) => BTreeMap::new(),
            Securable::Routine(_) => BTreeMap::from([(Grantee::Public, Privileges::EXECUTE)]),
            Securable::Schema(name) if name == PUBLIC_SCHEMA => {
                BTreeMap::from([(Grantee::Public, Privileges::USAGE)])
            }
            Securable::Schema(_) => BTreeMap::new(),
        }
    }

    /// What was granted on this.
    pub fn granted(&self, object: &Securable) -> BTreeMap<Grantee, Privileges> {
        self.grants.get(object).cloned().unwrap_or_else(|| Roles::initial(object))
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
        if role != "public" && !self.by_name.contains_key(role) {
            return Privileges::NONE;
        }
        let memberships = self.memberships(role);
        let counts = |grantee: &Grantee| match grantee {
            Grantee::Public => true,
            Grantee::Role(name) => memberships.contains(name.as_str()),
        };
        let granted = self.granted(object);
        granted
            .iter()
            .filter(|(grantee, _)| counts(grantee))
            .fold(Privileges::NONE, |all, (_, some)| all | *some)
    }

    /// Grants on this object.
    pub fn grant(&mut self, object: Securable, grantee: Grantee, privileges: Privileges) {
        let initial = Roles::initial(&object);
        let of_grantee = self.grants.entry(object).or_insert(initial).entry(grantee).or_default();
        *of_grantee = *of_grantee | privileges;
    }

    /// Takes back what was granted on this object.
    pub fn revoke(&mut self, object: Securable, grantee: &Grantee, privileges: Privileges) {
        let initial = Roles::initial(&object);
        let granted = self.grants.entry(object).or_insert(initial);
        if let Some(of_grantee) = granted.get_mut(grantee) {
            *of_grantee = of_grantee.without(privileges);
            if of_grantee.is_empty() {
                granted.remove(grantee);
            }
        }
    }

    /// What was granted on one object counts for another from now on.
    pub fn rename(&mut self, before: &Securable, after: Securable) {
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
            Securable::Routine(name) => catalog.has_routine(name),
            Securable::Schema(name) => catalog.has_schema(name),
        });
        self
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
    fn letters_are_postgresqls() {
        assert_eq!(Privileges::OF_TABLES.letters(), "arwdD");
        let names: Vec<&str> = (Privileges::SELECT | Privileges::UPDATE).names().collect();
        assert_eq!(names, ["SELECT", "UPDATE"]);
    }
}
