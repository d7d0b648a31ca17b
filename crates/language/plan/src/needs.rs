//! What running something needs, as it was bound: privileges, and the routines that it calls.

use crate::polymorphic::Callee;
use types::{Privileges, Securable};

/// What is done with a table or view.
#[derive(Clone, Debug)]
pub struct RelationNeed {
    /// The table or view.
    pub relation: Securable,
    /// Privileges on it. Those of reading, inserting and updating may be had on columns instead.
    pub privileges: Privileges,
    /// The columns that are looked at or written, by name, and what is done with each; none: where such a privilege is needed, it
    /// is on any column.
    pub columns: Box<[(String, Privileges)]>,
}

/// What running something needs, as it was bound.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Privileges on tables and views, and on their columns.
    pub relations: Box<[RelationNeed]>,
    /// Routines that are called.
    pub called: Box<[Callee]>,
    /// Those, and the functions of triggers that may fire, which need no privilege.
    pub involved: Box<[Callee]>,
}
