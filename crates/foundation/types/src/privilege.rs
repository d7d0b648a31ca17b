//! Privileges, and who can have them.

use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;
use std::ops::BitOr;

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
    /// To reference columns. Only administrators make tables, so nobody asks for it.
    pub const REFERENCES: Privileges = Privileges(1 << 7);
    /// To make triggers. Only administrators do, so nobody asks for it.
    pub const TRIGGER: Privileges = Privileges(1 << 8);
    /// To change rows in any way.
    pub const CHANGES: Privileges = Privileges(0b1_1110);
    /// What can be granted on a table.
    pub const OF_TABLES: Privileges = Privileges(0b1_1001_1111);
    /// The same before execution version 10.
    pub const OF_TABLES_BEFORE_V10: Privileges = Privileges(0b1_1111);
    /// What can be granted on a column.
    pub const OF_COLUMNS: Privileges = Privileges(0b1000_0111);
    /// What can be granted on a sequence; drawing from it needs no privilege.
    pub const OF_SEQUENCES: Privileges = Privileges(0b101);
    /// What can be granted on a function or procedure.
    pub const OF_ROUTINES: Privileges = Privileges::EXECUTE;

    /// What can be granted on a schema.
    pub const OF_SCHEMAS: Privileges = Privileges::USAGE;

    /// Letters of PostgreSQL's access lists (`psql`'s `\dp`), and names, in its order.
    const NAMES: [(Privileges, char, &'static str); 9] = [
        (Privileges::INSERT, 'a', "INSERT"),
        (Privileges::SELECT, 'r', "SELECT"),
        (Privileges::UPDATE, 'w', "UPDATE"),
        (Privileges::DELETE, 'd', "DELETE"),
        (Privileges::TRUNCATE, 'D', "TRUNCATE"),
        (Privileges::REFERENCES, 'x', "REFERENCES"),
        (Privileges::TRIGGER, 't', "TRIGGER"),
        (Privileges::EXECUTE, 'X', "EXECUTE"),
        (Privileges::USAGE, 'U', "USAGE"),
    ];

    /// Whether all of `others` are in it.
    pub fn contains(self, others: Privileges) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether some of `others` are in it.
    pub fn intersects(self, others: Privileges) -> bool {
        self.0 & others.0 != 0
    }

    /// Those that are in `others`, too.
    #[must_use]
    pub fn within(self, others: Privileges) -> Privileges {
        Privileges(self.0 & others.0)
    }

    /// How many they are.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn from_bits(bits: u16) -> Privileges {
        Privileges(bits)
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

    /// Their letters in PostgreSQL's access lists, those with a `*` behind them that may be granted to others.
    pub fn letters(self, options: Privileges) -> String {
        let mut letters = String::new();
        for (one, letter, _) in Privileges::NAMES {
            if self.contains(one) {
                letters.push(letter);
            }
            if options.contains(one) {
                letters.push('*');
            }
        }
        letters
    }
}

impl BitOr for Privileges {
    type Output = Privileges;

    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_postgresqls() {
        assert_eq!(Privileges::OF_TABLES.letters(Privileges::NONE), "arwdDxt");
        assert_eq!(Privileges::OF_COLUMNS.letters(Privileges::SELECT), "ar*wx");
        let names: Vec<&str> = (Privileges::SELECT | Privileges::UPDATE).names().collect();
        assert_eq!(names, ["SELECT", "UPDATE"]);
    }
}
