//! Partitions as clients name them that send rows.

use crate::row_check::RowCheck;
use crate::scope::VariableScope;
use crate::statement::view_target::ViewTarget;
use crate::table::TablePlan;
use crate::tables::Tables;
use std::sync::Arc;
use types::SqlError;

/// The table whose rows a relation of this name in the catalog has, and what rows have to keep that are written through the name.
///
/// # Errors
/// `42P01` where it is neither a table nor a partition.
pub fn find_rows(tables: &Tables, name: &str) -> Result<(Arc<TablePlan>, Option<Arc<RowCheck>>), SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    match ViewTarget::partition(tables, &scope, name)? {
        Some(partition) => {
            let check = RowCheck::within(None, &partition.partitions);
            Ok((partition.table, check))
        }
        None => tables.get(name).map(|table| (table.clone(), None)),
    }
}
