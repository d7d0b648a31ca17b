//! What a library is for executions: the routines and triggers that they call.

use crate::library::Library;
use execute::{Analysis, CallResult, Execution, Programs};
use plan::polymorphic::{Actual, Callee};
use plan::statement::StatementOutput;
use plan::tables::Tables;
use plan::trigger::TriggerPlan;
use std::sync::Arc;
use types::session_format::{SessionFormat, session_format, within_format};
use types::{Catalog, DataType, ExecutionVersion, ScriptSettings, SearchPath, SqlError, TableId, Value};

impl Programs for Library {
    fn version(&self) -> ExecutionVersion {
        Library::version(self)
    }

    fn catalog(&self) -> &Arc<Catalog> {
        Library::catalog(self)
    }

    fn tables(&self) -> &Tables {
        Library::tables(self)
    }

    fn triggers_of(&self, table: TableId) -> &[Arc<TriggerPlan>] {
        self.triggers.of(table)
    }

    fn call(
        &self,
        execution: &mut Execution<'_>,
        name: &str,
        actual: Actual,
        arguments: Vec<Value>,
    ) -> Result<CallResult, SqlError> {
        let routine = self.routine(name, actual)?;
        // A routine does the same whoever calls it.
        within_format(SessionFormat::default(), || plpgsql::call(&routine, name, execution, arguments))
    }

    fn fire(
        &self,
        execution: &mut Execution<'_>,
        trigger: &TriggerPlan,
        inputs: Vec<Value>,
    ) -> Result<CallResult, SqlError> {
        let body = self.triggers.body(trigger)?;
        within_format(SessionFormat::default(), || {
            plpgsql::call(body, &trigger.function.name, execution, inputs)
        })
    }

    fn run_text(
        &self,
        execution: &mut Execution<'_>,
        search_path: &SearchPath,
        sql: &str,
        (values, types): (Vec<Value>, &[DataType]),
    ) -> Result<StatementOutput, SqlError> {
        let settings = ScriptSettings {
            search_path: search_path.clone(),
            format: session_format(),
            ..ScriptSettings::default()
        };
        self.script(&settings.in_front_of(sql), types)?.run_inside(execution, values)
    }

    fn footprint_of_call(
        &self,
        analysis: &mut Analysis<'_>,
        name: &str,
        actual: Actual,
        arguments: Vec<Option<Value>>,
    ) -> Result<(), SqlError> {
        match self.routine(name, actual) {
            Ok(routine) => {
                within_format(SessionFormat::default(), || plpgsql::footprint(&routine, analysis, arguments))
            }
            Err(_) => Ok(()),
        }
    }

    fn footprint_of_trigger(
        &self,
        analysis: &mut Analysis<'_>,
        trigger: &TriggerPlan,
        inputs: Vec<Option<Value>>,
    ) -> Result<(), SqlError> {
        let Ok(body) = self.triggers.body(trigger) else { return Ok(()) };
        analysis.count_instruction()?;
        within_format(SessionFormat::default(), || plpgsql::footprint(body, analysis, inputs))
    }

    fn with_a_policy(&self, called: &[Callee]) -> Result<Option<String>, SqlError> {
        let involved = self.find_involved(called)?;
        Ok(involved.iter().find(|involved| involved.policy.is_some()).map(|found| found.procedure.clone()))
    }
}
