//! What COMMENT ON says of objects.

use borsh::{BorshDeserialize, BorshSerialize};

/// What a comment is about, by its names in the catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, BorshSerialize, BorshDeserialize)]
pub enum Commented {
    /// A table, a view, a sequence or an index.
    Relation(String),
    /// A column of a table or view: both names.
    Column(String, String),
    /// A function, procedure or aggregate.
    Routine(String),
    /// A composite type.
    Type(String),
    /// A schema.
    Schema(String),
    /// A constraint of a table: the table and its name.
    Constraint(String, String),
    /// A trigger of a table: the table and its name.
    Trigger(String, String),
}

impl Commented {
    /// The same of an object whose name in the catalog is another one now.
    #[must_use]
    pub fn moved(self, moved: &dyn Fn(&str) -> Option<String>) -> Commented {
        let follow = |name: String| moved(&name).unwrap_or(name);
        match self {
            Commented::Relation(name) => Commented::Relation(follow(name)),
            Commented::Column(relation, column) => Commented::Column(follow(relation), column),
            Commented::Routine(name) => Commented::Routine(follow(name)),
            Commented::Type(name) => Commented::Type(follow(name)),
            Commented::Schema(name) => Commented::Schema(name),
            Commented::Constraint(table, name) => Commented::Constraint(follow(table), name),
            Commented::Trigger(table, name) => Commented::Trigger(follow(table), name),
        }
    }
}
