//! The triggers of a catalog with their functions, compiled for the table that each is on.
//!
//! What `NEW` and `OLD` are is known only from the table, so that a function is compiled once for every trigger that calls
//! it. A trigger whose function does not compile any more says so when it fires, as a procedure does when it is called.

use plan::polymorphic::Callee;
use plan::tables::Tables;
use plan::trigger::{TriggerPlan, triggered};
use plpgsql::{self, CompileOptions, CompiledProcedure};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use types::{Catalog, SqlError, TableId};

/// All triggers of a catalog that fire, compiled.
#[derive(Debug, Default)]
pub(crate) struct Triggers {
    by_table: FxHashMap<TableId, Vec<Arc<TriggerPlan>>>,
    /// The function of each trigger, by the trigger's number.
    bodies: Vec<Result<CompiledProcedure, SqlError>>,
}

impl Triggers {
    /// Compiles them.
    pub fn new(tables: &Tables, catalog: &Catalog, options: CompileOptions) -> Triggers {
        let mut compiled = Triggers::default();
        for (table, triggers) in triggered(tables, catalog) {
            let mut plans = Vec::new();
            for trigger in triggers.values().filter(|trigger| trigger.enabled) {
                let number = compiled.bodies.len();
                let Some(plan) = TriggerPlan::new(tables, catalog, table, trigger, number) else { continue };
                let body = plpgsql::compile_trigger(tables, &plan.function, table, trigger, options);
                compiled.bodies.push(body);
                plans.push(Arc::new(plan));
            }
            compiled.by_table.insert(table.id, plans);
        }
        compiled
    }

    /// Those of a table, in the order of their names.
    pub fn of(&self, table: TableId) -> &[Arc<TriggerPlan>] {
        self.by_table.get(&table).map_or(&[], Vec::as_slice)
    }

    /// A trigger's function for its table.
    ///
    /// # Errors
    /// What is wrong with it, where it does not compile.
    pub fn body(&self, trigger: &TriggerPlan) -> Result<&CompiledProcedure, SqlError> {
        self.bodies[trigger.number].as_ref().map_err(Clone::clone)
    }

    /// Visits the procedures and functions that a trigger function calls, on whatever table.
    pub fn visit_calls(&self, function: &str, visit: &mut dyn FnMut(&Callee)) {
        // Whoever asks collects them in an order of its own.
        for trigger in self.by_table.values().flatten().filter(|trigger| trigger.function.name == function) {
            if let Ok(body) = &self.bodies[trigger.number] {
                body.calls().iter().for_each(&mut *visit);
            }
            trigger.called_by_condition.iter().for_each(&mut *visit);
        }
    }
}
