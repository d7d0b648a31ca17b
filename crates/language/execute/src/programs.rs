//! What an execution calls and does not know how to run: compiled routines, and texts of SQL that are made while it runs.

use crate::execution::Execution;
use crate::footprint::Analysis;
use plan::polymorphic::{Actual, Callee};
use plan::statement::StatementOutput;
use plan::tables::Tables;
use plan::trigger::TriggerPlan;
use std::sync::Arc;
use types::{Catalog, DataType, ExecutionVersion, Language, SearchPath, SqlError, TableId, Value};

/// The compiled programs of a catalog, as executions use them.
///
/// Statements call routines, and routines run statements. Executions know this trait alone, so that they need not know what
/// language a routine is written in.
pub trait Programs: Sync {
    /// What was compiled.
    fn catalog(&self) -> &Arc<Catalog>;

    /// The rules that transactions are executed with: code that differs between versions asks here.
    fn version(&self) -> ExecutionVersion;

    /// Its tables, with their defaults, checks and keys.
    fn tables(&self) -> &Tables;

    /// The triggers that fire at changes of a table, in the order of their names.
    fn triggers_of(&self, table: TableId) -> &[Arc<TriggerPlan>];

    /// Calls a procedure or function with one value per parameter that takes one, of the parameters' types. `actual`: what
    /// its polymorphic types stand for.
    ///
    /// # Errors
    /// What it ends with.
    fn call(
        &self,
        execution: &mut Execution<'_>,
        name: &str,
        actual: Actual,
        arguments: Vec<Value>,
    ) -> Result<CallResult, SqlError>;

    /// Calls the function of a trigger with what the trigger gives it.
    ///
    /// # Errors
    /// What it ends with; what is wrong with it, where it does not compile.
    fn fire(
        &self,
        execution: &mut Execution<'_>,
        trigger: &TriggerPlan,
        inputs: Vec<Value>,
    ) -> Result<CallResult, SqlError>;

    /// Runs a text of SQL that a routine has made, and gives what its last statement gave. It is bound once as long as
    /// it stays the same; the steps are charged each time, since nobody can tell when a node binds it again.
    ///
    /// # Errors
    /// What is wrong in it; `0A000` for what a procedure cannot run.
    fn run_text(
        &self,
        execution: &mut Execution<'_>,
        search_path: &SearchPath,
        sql: &str,
        parameters: (Vec<Value>, &[DataType]),
    ) -> Result<StatementOutput, SqlError>;

    /// Adds what a call may touch to an analysis; what does not compile does not run. `arguments`: one per parameter that takes
    /// one, `None` where it depends on data.
    ///
    /// # Errors
    /// `0A000` for what cannot be known before it runs.
    fn footprint_of_call(
        &self,
        analysis: &mut Analysis<'_>,
        name: &str,
        actual: Actual,
        arguments: Vec<Option<Value>>,
    ) -> Result<(), SqlError>;

    /// The same of a trigger's function. `inputs`: what the trigger gives it.
    ///
    /// # Errors
    /// `0A000` for what cannot be known before it runs.
    fn footprint_of_trigger(
        &self,
        analysis: &mut Analysis<'_>,
        trigger: &TriggerPlan,
        inputs: Vec<Option<Value>>,
    ) -> Result<(), SqlError>;

    /// Of these procedures and functions and those that they call, one that has an endorsement policy of its own.
    ///
    /// # Errors
    /// `54000` where they are too many.
    fn with_a_policy(&self, called: &[Callee]) -> Result<Option<String>, SqlError>;
}

/// What a call gave.
#[derive(Debug, Default)]
pub struct CallResult {
    /// The OUT and INOUT values of a procedure; the columns of a function's row.
    pub values: Vec<Value>,
    /// The rows of a function that gives any number of them.
    pub rows: Option<Vec<Vec<Value>>>,
}

/// What PG_CONTEXT says of a procedure or function.
#[derive(Debug)]
pub struct Described {
    /// What it is written in.
    pub language: Language,
    /// Its name, with the types of its arguments in PL/pgSQL.
    pub signature: String,
    /// Where instructions come from, from this address on: the line of the statement, and what it is.
    pub lines: Box<[(u32, u32, &'static str)]>,
}

impl Described {
    /// Where the instruction at this address stands.
    pub fn place(&self, address: u32) -> String {
        let behind = self.lines.partition_point(|(start, ..)| *start <= address);
        let (line, what) = match behind.checked_sub(1).map(|index| self.lines[index]) {
            Some((_, line, what)) => (line, what),
            None => (1, ""),
        };
        match self.language {
            Language::PlPgSql => format!("PL/pgSQL function {} line {line} {what}", self.signature),
            Language::Sql => format!("SQL function \"{}\" statement {line}", self.signature),
        }
    }
}
