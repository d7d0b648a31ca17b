//! Which node holds the rows of which table.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Catalog, TableId, schema_of};

/// The holder of a table or sequence, by its name.
type HolderOf = dyn Fn(&str) -> Option<usize> + Send + Sync;

/// Which holder has the rows of a table, by the table's name in the catalog. What no holder has, the validator has.
#[derive(Clone)]
pub struct Placement {
    of: Arc<HolderOf>,
    schemas: Arc<Vec<Vec<String>>>,
}

impl Placement {
    /// By schema: for each holder, in their order, the schemas that it holds.
    pub fn of_schemas(schemas: Vec<Vec<String>>) -> Placement {
        let of: BTreeMap<String, usize> = (schemas.iter().enumerate())
            .flat_map(|(holder, schemas)| schemas.iter().map(move |schema| (schema.clone(), holder)))
            .collect();
        let of = move |name: &str| of.get(schema_of(name)).copied();
        Placement { of: Arc::new(of), schemas: Arc::new(schemas) }
    }

    /// By a function of the name of a table or sequence, for `holders` holders.
    pub fn by(holders: usize, of: impl Fn(&str) -> Option<usize> + Send + Sync + 'static) -> Placement {
        Placement { of: Arc::new(of), schemas: Arc::new(vec![Vec::new(); holders]) }
    }

    /// How many holders there are.
    pub fn holders(&self) -> usize {
        self.schemas.len()
    }

    /// The schemas of a holder, as it must know them itself.
    pub(crate) fn schemas(&self, holder: usize) -> &[String] {
        &self.schemas[holder]
    }

    /// Where the rows of each table, sequence and index of a catalog stand.
    pub(crate) fn places(&self, catalog: &Catalog) -> Places {
        let mut of = FxHashMap::default();
        let mut put = |number: u32, name: &str| {
            if let Some(holder) = (self.of)(name) {
                of.insert(number, holder);
            }
        };
        for table in catalog.tables.values() {
            put(table.id.number(), &table.name);
            for index in catalog.indexes_of(table.id) {
                put(index.entries().number(), &table.name);
            }
        }
        for (name, sequence) in &catalog.sequences {
            if let Some(counter) = &sequence.counter {
                put(counter.table.number(), name);
            }
        }
        Places { of }
    }
}

/// Where the rows of a catalog's tables stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// By number of the table, sequence or index.
    of: FxHashMap<u32, usize>,
}

impl Places {
    /// The holder of a table's rows; `None`: the validator.
    pub(crate) fn of(&self, table: TableId) -> Option<usize> {
        self.of.get(&table.number()).copied()
    }

    /// What a holder holds.
    pub(crate) fn held_by(&self, holder: usize) -> impl Iterator<Item = u32> + '_ {
        self.of.iter().filter(move |(_, of)| **of == holder).map(|(number, _)| *number)
    }

    /// Whether anything stands at a holder.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_where_their_schemas_do() {
        let placement = Placement::of_schemas(vec![vec!["a".into(), "b".into()], vec!["c".into()]]);
        assert_eq!(placement.holders(), 2);
        let of = |name: &str| (placement.of)(name);
        assert_eq!((of("a.t"), of("b.t"), of("c.t")), (Some(0), Some(0), Some(1)));
        assert_eq!((of("t"), of("d.t"), of("public.a")), (None, None, None));
        assert!(placement.places(&Catalog::default()).is_empty());
    }
}
