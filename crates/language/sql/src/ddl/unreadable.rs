//! What names a type, or a label of one, without having a column, a field or a parameter of it: it cannot be read any more once the
//! type or the label is gone.

use crate::ddl::domains::check_domain;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::triggers::condition_of;
use std::collections::BTreeSet;
use types::SqlError;

/// Conditions of triggers, defaults of parameters, and domains that cannot be read, as errors call them.
///
/// # Errors
/// A table's default or CHECK that cannot be read.
pub(super) fn unreadable(catalog: &NewCatalog) -> Result<BTreeSet<String>, SqlError> {
    let tables = catalog.bound()?;
    let routines = tables.routines();
    let mut found = BTreeSet::new();
    for known in catalog.types.values() {
        if known.as_domain().is_some_and(|domain| check_domain(routines, domain).is_err()) {
            found.insert(format!("domain {}", known.name));
        }
    }
    for table in catalog.tables.values() {
        for trigger in catalog.triggers_of(table.id) {
            if condition_of(&tables, table, trigger).is_err() {
                found.insert(format!("trigger {} on table {}", trigger.name, table.name));
            }
        }
    }
    for procedure in catalog.procedures.values() {
        let mut defaults = procedure.parameters.iter().filter(|parameter| parameter.default.is_some());
        if defaults.any(|parameter| routines.default_of(parameter).is_err()) {
            let kind = if procedure.function.is_some() { "function" } else { "procedure" };
            found.insert(format!("{kind} {}", procedure.key()));
        }
    }
    Ok(found)
}
