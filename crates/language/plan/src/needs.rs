//! What running something needs, as it was bound: privileges, and the routines that it calls.

use crate::polymorphic::Callee;
use types::{Privileges, Securable};

/// What running something needs, as it was bound.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    /// Privileges on tables and views.
    pub relations: Box<[(Securable, Privileges)]>,
    /// Routines that are called.
    pub called: Box<[Callee]>,
    /// Those, and the functions of triggers that may fire, which need no privilege.
    pub involved: Box<[Callee]>,
}
