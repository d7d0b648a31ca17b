//! What triggers are on: a table, or a view whose rows they write instead.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::find_table;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{Catalog, ExecutionVersion, SqlError, SqlState, Table, Trigger, object_name};

/// A table or a view.
#[derive(Clone, Debug)]
pub(super) enum TriggerOwner {
    Table(Arc<Table>),
    /// By its name.
    View(String),
}

impl TriggerOwner {
    /// The one of this name. Versions before 10 knew of no triggers on views.
    ///
    /// # Errors
    /// `42P01` where there is none, `42809` where it can have none.
    pub fn find(catalog: &NewCatalog, name: &str) -> Result<TriggerOwner, SqlError> {
        match catalog.rules >= ExecutionVersion::V10 && catalog.views.contains_key(name) {
            true => Ok(TriggerOwner::View(name.to_string())),
            false => find_table(catalog, name).map(TriggerOwner::Table),
        }
    }

    /// All that have triggers.
    pub fn all(catalog: &Catalog) -> Vec<TriggerOwner> {
        let tables = catalog.tables.values().filter(|table| catalog.triggers.contains_key(&table.id));
        let views = catalog.views.values().filter(|view| !view.triggers.is_empty());
        let views = views.map(|view| TriggerOwner::View(view.name.clone()));
        tables.cloned().map(TriggerOwner::Table).chain(views).collect()
    }

    /// Its name in the catalog.
    pub fn name(&self) -> &str {
        match self {
            TriggerOwner::Table(table) => &table.name,
            TriggerOwner::View(name) => name,
        }
    }

    /// Its name without the schema.
    pub fn object_name(&self) -> &str {
        object_name(self.name())
    }

    /// As errors call it.
    pub fn described(&self) -> String {
        let kind = if matches!(self, TriggerOwner::Table(_)) { "table" } else { "view" };
        format!("{kind} {}", self.name())
    }

    /// Its triggers.
    pub fn triggers<'c>(&self, catalog: &'c Catalog) -> Option<&'c BTreeMap<String, Arc<Trigger>>> {
        match self {
            TriggerOwner::Table(table) => catalog.triggers.get(&table.id),
            TriggerOwner::View(name) => catalog.views.get(name).map(|view| &view.triggers),
        }
    }

    /// Whether it has the trigger of this name.
    pub fn has(&self, catalog: &Catalog, trigger: &str) -> bool {
        self.triggers(catalog).is_some_and(|triggers| triggers.contains_key(trigger))
    }

    /// Puts a trigger on it.
    pub fn put(&self, catalog: &mut Catalog, trigger: Arc<Trigger>) {
        let triggers = match self {
            TriggerOwner::Table(table) => Some(catalog.triggers.entry(table.id).or_default()),
            TriggerOwner::View(name) => {
                catalog.views.get_mut(name).map(|view| &mut Arc::make_mut(view).triggers)
            }
        };
        if let Some(triggers) = triggers {
            triggers.insert(trigger.name.clone(), trigger);
        }
    }

    /// Takes a trigger off it.
    pub fn take(&self, catalog: &mut Catalog, trigger: &str) -> Option<Arc<Trigger>> {
        match self {
            TriggerOwner::Table(table) => {
                let triggers = catalog.triggers.get_mut(&table.id)?;
                let taken = triggers.remove(trigger);
                if triggers.is_empty() {
                    catalog.triggers.remove(&table.id);
                }
                taken
            }
            TriggerOwner::View(name) => Arc::make_mut(catalog.views.get_mut(name)?).triggers.remove(trigger),
        }
    }

    /// The error where it has no trigger of this name.
    pub fn undefined(&self, trigger: &str) -> SqlError {
        let message = format!("trigger \"{trigger}\" for table \"{}\" does not exist", self.object_name());
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    }
}
