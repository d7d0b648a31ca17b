//! `SET CONSTRAINTS`: which constraints it means, and what it does to the checks that wait.

use crate::deferred::Modes;
use crate::execution::Execution;
use std::collections::BTreeMap;
use types::{Catalog, Deferral, SearchPath, SqlError, SqlState};

/// Tables whose constraints are looked through for a step.
const TABLES_PER_STEP: u64 = 16;

impl Execution<'_> {
    /// SET CONSTRAINTS: of all constraints that can be deferred, or of those with these names. Where they are immediate from now
    /// on, the checks of them that wait are made.
    ///
    /// # Errors
    /// `42704`, `42809`; what the checks end with.
    pub fn set_constraints(
        &mut self,
        names: Option<&[String]>,
        deferred: bool,
        search_path: &SearchPath,
    ) -> Result<(), SqlError> {
        // All constraints are looked through, for each name.
        let catalog = self.on.programs.catalog();
        let looks = names.map_or(0, <[String]>::len) + usize::from(!deferred);
        self.charge(1 + (looks * catalog.tables.len()) as u64 / TABLES_PER_STEP)?;
        let mut modes = self.deferred.modes().clone();
        match names {
            None => modes = Modes { all: Some(deferred), named: BTreeMap::new() },
            Some(names) => {
                for name in names {
                    let found = constraints_named(catalog, name, deferred, search_path)?;
                    self.charge(1 + found.len() as u64)?;
                    modes.named.extend(found.into_iter().map(|number| (number, deferred)));
                }
            }
        }
        self.set_modes(modes)?;
        if deferred { Ok(()) } else { self.settle_immediate(&deferrals(catalog)) }
    }
}

/// When the constraints of a catalog are held that can be deferred.
fn deferrals(catalog: &Catalog) -> BTreeMap<u32, Deferral> {
    let foreign_keys = catalog.foreign_keys.values().flatten().map(|known| (known.number, known.deferral));
    let indexes = catalog.indexes.values().flatten().map(|known| (known.number, known.deferral));
    foreign_keys.chain(indexes).filter(|(_, deferral)| deferral.is_deferrable()).collect()
}

/// The numbers of the constraints of a name: of those in the first schema of the search path that has any.
fn constraints_named(
    catalog: &Catalog,
    name: &str,
    deferred: bool,
    search_path: &SearchPath,
) -> Result<Vec<u32>, SqlError> {
    let in_schema = |schema: &str, object: &str| {
        let (mut found, mut others) = (Vec::new(), false);
        for table in catalog.tables.values().filter(|table| types::schema_of(&table.name) == schema) {
            others |= table.checks.iter().any(|check| check.name == object);
            others |= !table.primary_key.is_empty() && table.primary_key_name == object;
            let foreign_keys = catalog.foreign_keys_of(table.id).iter();
            let foreign_keys = foreign_keys.map(|known| (&known.name, known.number, known.deferral));
            let indexes = catalog.indexes_of(table.id).iter().filter(|known| known.constraint);
            let indexes = indexes.map(|known| (&known.name, known.number, known.deferral));
            for (_, number, deferral) in foreign_keys.chain(indexes).filter(|(name, ..)| *name == object) {
                match deferral.is_deferrable() {
                    true => found.push(number),
                    false => others = true,
                }
            }
        }
        (found, others)
    };
    let (schemas, object) = match name.split_once('.') {
        Some((schema, object)) => {
            catalog.check_schema(schema)?;
            (vec![schema.to_string()], object)
        }
        None => (search_path.schemas().to_vec(), name),
    };
    for schema in schemas {
        let (found, others) = in_schema(&schema, object);
        if others && deferred {
            let message = format!("constraint \"{object}\" is not deferrable");
            return Err(SqlError::new(SqlState(*b"42809"), message));
        }
        if others || !found.is_empty() {
            return Ok(found);
        }
    }
    let message = format!("constraint \"{object}\" does not exist");
    Err(SqlError::new(SqlState(*b"42704"), message))
}
