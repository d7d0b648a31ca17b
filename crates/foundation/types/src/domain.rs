//! Domains: types whose values are those of another type that keep conditions.

use crate::{Check, DataType, SqlError, TypeId, Value};
use borsh::{BorshDeserialize, BorshSerialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a domain is.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Domain {
    /// The type that its values are of.
    pub base: DataType,
    /// NULL is no value of it.
    pub not_null: bool,
    /// The expression of DEFAULT, as SQL.
    pub default: Option<String>,
    /// Its CHECKs over `VALUE`, in the order of their names.
    pub checks: Vec<Check>,
}

/// Holds values against the conditions of a domain. Who binds expressions makes it.
pub trait DomainCheck: Send + Sync {
    /// Whether a value of the type that the domain is of is one of the domain.
    ///
    /// # Errors
    /// `23514`, `23502`, and what evaluating the conditions raises.
    fn check(&self, value: &Value) -> Result<(), SqlError>;
}

/// Those of the domains of a catalog. They follow from its types.
#[derive(Clone, Default)]
pub(crate) struct DomainChecks(pub(crate) Arc<BTreeMap<TypeId, Arc<dyn DomainCheck>>>);

impl fmt::Debug for DomainChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl PartialEq for DomainChecks {
    fn eq(&self, other: &DomainChecks) -> bool {
        self.0.keys().eq(other.0.keys())
    }
}

impl Eq for DomainChecks {}
