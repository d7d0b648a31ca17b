//! The tables of a catalog, bound: what statements are bound against.

use crate::computed_index::ComputedIndex;
use crate::constraint::ForeignKeys;
use crate::polymorphic::Callee;
use crate::routines::Routines;
use crate::table::TablePlan;
use crate::view::ViewPlan;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{DataType, ExecutionVersion, Index, SearchPath, SqlError, SqlState, TableId, as_given};

/// The tables of a catalog, bound: what statements are bound against.
///
/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) by_name: Arc<rustc_hash::FxHashMap<String, Arc<TablePlan>>>,
    pub(crate) by_id: Arc<rustc_hash::FxHashMap<TableId, Arc<TablePlan>>>,
    pub(crate) foreign_keys: Arc<ForeignKeys>,
    pub(crate) views: Arc<rustc_hash::FxHashMap<String, Arc<ViewPlan>>>,
    pub(crate) routines: Routines,
}

impl Tables {
    /// The same, with names found in these schemas.
    pub fn with_search_path(&self, search_path: &SearchPath) -> Tables {
        Tables { routines: self.routines.with_search_path(search_path), ..self.clone() }
    }

    /// The name in the catalog of the relation that SQL calls by this name; where there is none, one that none has.
    pub fn find(&self, name: &str) -> String {
        if self.by_name.get(name).is_some_and(|table| table.id.is_temporary()) {
            // What is temporary comes first.
            return name.to_string();
        }
        self.routines.types().search_path().find_or_missing(name, |found| {
            self.by_name.contains_key(found)
                || self.views.contains_key(found)
                || self.routines.has_sequence(found)
        })
    }

    /// The view of this name in the catalog.
    pub fn view(&self, name: &str) -> Option<&Arc<ViewPlan>> {
        self.views.get(name)
    }

    /// Names and types of the columns of a table or view, or of the fields of a composite type, that SQL calls by this name.
    ///
    /// # Errors
    /// `42P01`
    pub fn columns_of(&self, name: &str) -> Result<Vec<(String, DataType)>, SqlError> {
        let found = self.find(name);
        let (called, name) = (name, found.as_str());
        if let Some(view) = self.view(name) {
            return Ok(view.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect());
        }
        if let (None, Some(known)) = (self.by_name.get(name), self.routines.types().find(called)) {
            let fields = known.fields.iter();
            return Ok(fields.map(|field| (field.name.clone(), field.data_type)).collect());
        }
        let columns = self.get(name)?.columns.iter();
        Ok(columns.map(|column| (column.name.clone(), column.data_type)).collect())
    }

    /// The rules that statements are bound with: code that differs between versions asks here.
    pub fn version(&self) -> ExecutionVersion {
        self.routines.version()
    }

    /// The functions and procedures beside them.
    pub fn routines(&self) -> &Routines {
        &self.routines
    }

    /// Functions of the triggers that may fire at a change of this table, or of one that the change cascades to.
    pub fn fired_by(&self, table: &Arc<TablePlan>) -> BTreeSet<Callee> {
        let mut functions = BTreeSet::new();
        let (mut waiting, mut seen) = (vec![table], BTreeSet::new());
        while let Some(table) = waiting.pop() {
            if seen.insert(table.id) {
                functions.extend(table.triggers.functions().map(Callee::named));
                waiting.extend(self.foreign_keys.of_parent(table.id).iter().map(|key| &key.child));
            }
        }
        functions
    }

    /// The FOREIGN KEY constraints.
    pub fn foreign_keys(&self) -> &ForeignKeys {
        &self.foreign_keys
    }

    /// The table and the unique index whose taken keys stand under this number.
    pub fn unique_index(&self, keys: TableId) -> Option<(&Arc<TablePlan>, &Arc<Index>)> {
        let find = |table| {
            let table: &Arc<TablePlan> = table;
            let index = table.indexes.iter().find(|index| index.unique && index.unique_entries() == keys)?;
            Some((table, index))
        };
        self.by_id.values().find_map(find)
    }

    /// The table and the computed index whose entries stand under this number.
    pub fn computed_index(&self, entries: TableId) -> Option<(&Arc<TablePlan>, &Arc<ComputedIndex>)> {
        let find = |table| {
            let table: &Arc<TablePlan> = table;
            let mut computed = table.computed.iter();
            Some((table, computed.find(|computed| computed.index.computed_entries() == entries)?))
        };
        self.by_id.values().find_map(find)
    }

    /// The table with this number.
    pub fn by_id(&self, id: TableId) -> Option<&Arc<TablePlan>> {
        self.by_id.get(&id)
    }

    /// Whether the table, or the partition, of this name in the catalog is partitioned.
    pub fn is_partitioned(&self, name: &str) -> bool {
        let mut partitioned = self.by_name.values().filter_map(|table| table.partitions.as_ref());
        partitioned.any(|partitions| partitions.levels.iter().any(|level| level.relation == name))
    }

    /// The table of this name in the catalog.
    ///
    /// # Errors
    /// `42P01`
    pub fn get(&self, name: &str) -> Result<&Arc<TablePlan>, SqlError> {
        self.by_name.get(name).ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", as_given(name));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        })
    }
}
