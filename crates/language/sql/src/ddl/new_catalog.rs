//! The catalog that a list of changes makes, with the rules that it is bound with.

use plan::domains::routines_of;
use plan::routines::Routines;
use plan::tables::Tables;
use std::ops::{Deref, DerefMut};
use types::{Catalog, ExecutionVersion, Notice, Severity, SqlError};

/// The catalog that a list of changes makes, and the rules that what stands in it is bound with.
#[derive(Clone)]
pub(crate) struct NewCatalog {
    pub(super) catalog: Catalog,
    pub(super) rules: ExecutionVersion,
    /// What the client is told of the change at hand.
    pub(super) notices: Vec<Notice>,
    /// How many warnings the client has been told of all changes.
    pub(super) warnings: usize,
}

/// Warnings of all changes of a script.
pub(super) const WARNINGS_TOGETHER_MAX: usize = 100;

impl NewCatalog {
    /// Its tables, bound.
    ///
    /// # Errors
    /// What is wrong in a default or a check.
    pub(super) fn bound(&self) -> Result<Tables, SqlError> {
        Tables::new(&self.catalog, self.rules)
    }

    /// Tells the client of something, unless it has been told a lot.
    pub(super) fn warn(&mut self, report: SqlError) {
        if self.warnings < WARNINGS_TOGETHER_MAX {
            self.notices.push(Notice { severity: Severity::Warning, report });
            self.warnings += 1;
        }
    }

    /// Its functions and procedures.
    pub(super) fn routines(&self) -> Routines {
        routines_of(&self.catalog, self.rules)
    }
}

impl Deref for NewCatalog {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        &self.catalog
    }
}

impl DerefMut for NewCatalog {
    fn deref_mut(&mut self) -> &mut Catalog {
        &mut self.catalog
    }
}
