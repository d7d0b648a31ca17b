//! The number that a table gets together with rows of another shape.

use crate::ddl::relations::take_number;
use crate::ddl::sequences::change_owners;
use std::collections::BTreeMap;
use types::{Catalog, SqlError, SqlState, Table, TableId};

/// The number that a table and its indexes get together with rows of another shape. Gives the table with it.
pub(super) fn renumber(catalog: &mut Catalog, table: &Table) -> Result<Table, SqlError> {
    let id = TableId(take_number(catalog)?);
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    if let Some(mut indexes) = catalog.indexes.remove(&table.id) {
        for index in &mut indexes {
            let number = take_number(catalog)?;
            numbers.insert(index.number, number);
            index.number = number;
        }
        catalog.indexes.insert(id, indexes);
    }
    if let Some(own) = catalog.foreign_keys.remove(&table.id) {
        catalog.foreign_keys.insert(id, own);
    }
    if let Some(triggers) = catalog.triggers.remove(&table.id) {
        catalog.triggers.insert(id, triggers);
    }
    for foreign_key in catalog.foreign_keys.values_mut().flatten() {
        if foreign_key.parent == table.id {
            foreign_key.parent = id;
            let renumbered = |number| {
                numbers.get(&number).copied().ok_or_else(|| {
                    SqlError::new(SqlState::INTERNAL_ERROR, "a FOREIGN KEY of an index that has gone")
                })
            };
            foreign_key.index = foreign_key.index.map(renumbered).transpose()?;
        }
    }
    change_owners(catalog, table.id, &|owner| owner.table = id);
    Ok(Table { id, ..table.clone() })
}
