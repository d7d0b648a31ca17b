//! Row security: which rows of a table a role sees and may write, as the table's policies say.
//!
//! PostgreSQL's rules (CREATE POLICY). Where policies count, a role sees and writes nothing that no permissive policy lets it, and nothing
//! that a restrictive policy keeps from it.

use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The statements that a policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PolicyCommand {
    /// All of them.
    #[default]
    All,
    /// SELECT, and whatever else reads rows.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl PolicyCommand {
    /// As SQL says it.
    pub fn name(self) -> &'static str {
        match self {
            PolicyCommand::All => "ALL",
            PolicyCommand::Select => "SELECT",
            PolicyCommand::Insert => "INSERT",
            PolicyCommand::Update => "UPDATE",
            PolicyCommand::Delete => "DELETE",
        }
    }

    /// Whether a policy for this is one for `command`.
    pub fn is_for(self, command: PolicyCommand) -> bool {
        self == PolicyCommand::All || self == command
    }
}

/// A policy of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RowPolicy {
    /// RESTRICTIVE: it keeps rows from a role that others let it have.
    pub restrictive: bool,
    /// What it is for.
    pub command: PolicyCommand,
    /// Names of roles, and of organisations for their administrators; none: PUBLIC, everybody.
    pub roles: Vec<String>,
    /// USING: what is true of the rows that are there, as SQL.
    pub using: Option<String>,
    /// WITH CHECK: what is true of rows that are written, as SQL; `None`: what `using` says.
    pub check: Option<String>,
}

/// The policies of a table, and for whom they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct RowSecurity {
    /// ENABLE ROW LEVEL SECURITY: they count for roles.
    pub enabled: bool,
    /// FORCE ROW LEVEL SECURITY: where they count, they do for administrators too.
    pub forced: bool,
    /// By name.
    pub policies: BTreeMap<String, Arc<RowPolicy>>,
}

impl RowSecurity {
    /// Whether the policies count for a role, or for an administrator.
    pub fn counts_for(&self, is_administrator: bool) -> bool {
        self.enabled && (self.forced || !is_administrator)
    }

    /// The conditions of all policies, to be changed.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let policies = self.policies.values_mut().map(Arc::make_mut);
        policies.flat_map(|policy| policy.using.iter_mut().chain(&mut policy.check))
    }

    /// Policies that name a role.
    pub fn naming<'s>(&'s self, role: &'s str) -> impl Iterator<Item = &'s str> {
        let names_it = move |policy: &RowPolicy| policy.roles.iter().any(|known| known == role);
        self.policies.iter().filter(move |(_, policy)| names_it(policy)).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Table, TableId, decode_exactly, encode};

    fn table(endorsement: Option<&str>, row_security: RowSecurity) -> Table {
        let (columns, primary_key, checks) = Default::default();
        let (name, primary_key_name) = ("t".to_string(), "t_pkey".to_string());
        let endorsement = endorsement.map(str::to_string);
        Table {
            id: TableId(7),
            name,
            columns,
            primary_key,
            primary_key_name,
            checks,
            endorsement,
            row_security,
            partitioning: None,
            materialized: None,
        }
    }

    fn security() -> RowSecurity {
        let policy = RowPolicy {
            restrictive: true,
            command: PolicyCommand::Update,
            roles: vec!["ann".to_string()],
            using: Some("a = 1".to_string()),
            check: None,
        };
        let policies = BTreeMap::from([("p".to_string(), Arc::new(policy))]);
        RowSecurity { enabled: true, forced: false, policies }
    }

    #[test]
    fn tables_without_row_security_are_encoded_as_before_there_was_any() {
        for (endorsement, end) in [(None, vec![0]), (Some("a"), vec![1, 1, 0, 0, 0, b'a'])] {
            let bytes = encode(&table(endorsement, RowSecurity::default()));
            assert!(bytes.ends_with(&end), "{bytes:?}");
        }
    }

    #[test]
    fn tables_come_back_with_their_policies() {
        for endorsement in [None, Some("a AND b")] {
            for row_security in
                [RowSecurity::default(), security(), RowSecurity { forced: true, ..security() }]
            {
                let table = table(endorsement, row_security);
                assert_eq!(decode_exactly::<Table>(&encode(&table)).expect("canonical"), table);
            }
        }
    }

    #[test]
    fn no_table_has_two_encodings() {
        let plain = encode(&table(None, RowSecurity::default()));
        let head = &plain[..plain.len() - 1];
        let none = encode(&RowSecurity::default());
        for tail in [[&[2][..], &none].concat(), vec![4], vec![2], vec![]] {
            assert!(decode_exactly::<Table>(&[head, &tail].concat()).is_err(), "{tail:?}");
        }
    }

    #[test]
    fn policies_are_found_by_the_roles_that_they_name() {
        let mut security = security();
        assert_eq!(security.naming("ann").collect::<Vec<_>>(), ["p"]);
        assert_eq!(security.naming("bob").count(), 0);
        security.texts_mut().for_each(|text| *text = text.replace('a', "b"));
        assert_eq!(security.policies["p"].using.as_deref(), Some("b = 1"));
        let counts = |forced| {
            let security = RowSecurity { forced, ..security.clone() };
            [true, false].map(|is_administrator| security.counts_for(is_administrator))
        };
        assert_eq!((counts(false), counts(true)), ([false, true], [true, true]));
        assert!(!RowSecurity { enabled: false, forced: true, ..security.clone() }.counts_for(false));
        assert!(PolicyCommand::All.is_for(PolicyCommand::Delete));
        assert!(!PolicyCommand::Update.is_for(PolicyCommand::Delete));
    }
}
