//! The catalogue: queries about the schema, the server and the history of the ledger, answered by DataFusion.
//!
//! A context holds four schemas: `public` with the tables of the ledger (to be described, not read), `entente` with the
//! history, `pg_catalog` and `information_schema`. It is built for one version of the catalog and serves all sessions.

mod batch;
mod functions;
mod history;
mod information;
mod objects;
mod rewrite;
mod system;
mod triggers;
mod values;

pub(crate) use rewrite::SessionFacts;

use crate::Database;
use crate::limits;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, Session, TableProvider,
};
use datafusion::common::ParamValues;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion_pg_catalog::pg_catalog::PgCatalogStaticTables;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::setup_pg_catalog;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use futures::StreamExt;
use objects::{DATABASE, Objects};
use parking_lot::Mutex;
use sqlparser::ast::Statement;
use std::sync::Arc;
use types::{Catalog, DataType, OutputColumn, SqlError, SqlState, StatementResult, Value};

/// What does not depend on the version of the catalog; loading it takes a while.
struct Fixed {
    tables: Arc<PgCatalogStaticTables>,
    state: SessionState,
    parser: PostgresCompatibilityParser,
}

/// The catalogue at one version.
struct Snapshot {
    version: u64,
    context: SessionContext,
    fixed: Arc<Fixed>,
}

/// Answers queries about the catalogue.
pub(crate) struct Catalogue {
    database: Arc<dyn Database>,
    fixed: Mutex<Option<Arc<Fixed>>>,
    current: Mutex<Option<Arc<Snapshot>>>,
}

/// A query that was planned.
pub(crate) struct CatalogueQuery {
    parameters: Vec<DataType>,
    columns: Vec<OutputColumn>,
    plan: LogicalPlan,
    snapshot: Arc<Snapshot>,
}

impl CatalogueQuery {
    /// Types of its parameters.
    pub(crate) fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// Columns of its rows.
    pub(crate) fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }
}

impl Catalogue {
    /// A catalogue of `database`. Nothing is loaded before the first query.
    pub(crate) fn new(database: Arc<dyn Database>) -> Catalogue {
        Catalogue { database, fixed: Mutex::new(None), current: Mutex::new(None) }
    }

    /// Plans a query. `types` are the parameters' types as far as the client gave them.
    pub(crate) async fn prepare(
        &self,
        sql: &str,
        facts: &SessionFacts,
        types: &[DataType],
    ) -> Result<CatalogueQuery, SqlError> {
        let snapshot = self.snapshot().await?;
        let rewritten = rewrite::rewrite(&snapshot.fixed.parser, sql, facts)
            .map_err(|error| SqlError::new(SqlState::SYNTAX_ERROR, error.to_string()))?;
        if !matches!(rewritten.statement, Statement::Query(_) | Statement::Explain { .. }) {
            return Err(SqlError::unsupported("a catalogue query that is no SELECT"));
        }
        tracing::trace!(statement = %rewritten.statement, "catalogue query");
        let statement = DataFusionStatement::Statement(Box::new(rewritten.statement));
        let plan = snapshot.context.state().statement_to_plan(statement).await.map_err(sql_error)?;
        let parameters = parameters(&plan, types)?;
        let fields = plan.schema().fields();
        let column = |(index, field): (usize, &Arc<datafusion::arrow::datatypes::Field>)| OutputColumn {
            name: rewritten.names.get(index).cloned().flatten().unwrap_or_else(|| field.name().clone()),
            data_type: values::data_type(field.data_type()),
        };
        let columns = fields.iter().enumerate().map(column).collect();
        Ok(CatalogueQuery { parameters, columns, plan, snapshot })
    }

    /// Runs a planned query, within the limits of time, memory and rows.
    pub(crate) async fn run(
        &self,
        query: CatalogueQuery,
        parameters: Vec<Value>,
    ) -> Result<StatementResult, SqlError> {
        // On a task of its own, so that a session's task is not held up by it; dropping the guard aborts it.
        let mut running = tokio::task::JoinSet::new();
        running.spawn(tokio::time::timeout(limits::CATALOGUE_TIME_MAX, collect(query, parameters)));
        match running.join_next().await {
            Some(Ok(Ok(result))) => result,
            Some(Ok(Err(_))) => {
                let seconds = limits::CATALOGUE_TIME_MAX.as_secs();
                let message = format!("a catalogue query may take {seconds} seconds (CATALOGUE_TIME_MAX)");
                Err(SqlError::new(SqlState::QUERY_CANCELED, message)
                    .hint("filter on height or id, or use LIMIT"))
            }
            other => {
                tracing::error!(?other, "a catalogue query panicked");
                Err(SqlError::new(
                    SqlState::INTERNAL_ERROR,
                    "the catalogue query failed; the node's log says more",
                ))
            }
        }
    }

    /// The context for the current version of the catalog.
    async fn snapshot(&self) -> Result<Arc<Snapshot>, SqlError> {
        let catalog = self.database.catalog();
        if let Some(snapshot) =
            self.current.lock().as_ref().filter(|snapshot| snapshot.version == catalog.version)
        {
            return Ok(Arc::clone(snapshot));
        }
        let known = self.fixed.lock().clone();
        let database = Arc::clone(&self.database);
        let building = tokio::task::spawn_blocking(move || {
            let fixed = match known {
                Some(fixed) => fixed,
                None => Arc::new(Fixed::load()?),
            };
            build(&catalog, fixed, &database)
        });
        let snapshot = building.await.map_err(|error| DataFusionError::External(Box::new(error)));
        let snapshot = Arc::new(snapshot.and_then(|snapshot| snapshot).map_err(sql_error)?);
        *self.fixed.lock() = Some(Arc::clone(&snapshot.fixed));
        *self.current.lock() = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }
}

impl Fixed {
    fn load() -> Result<Fixed, DataFusionError> {
        let config = SessionConfig::new()
            .with_default_catalog_and_schema(DATABASE, "public")
            .with_create_default_catalog_and_schema(true)
            .with_information_schema(false)
            .with_target_partitions(1)
            .with_batch_size(1_024);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(limits::CATALOGUE_MEMORY_BYTES_MAX, 1.0)
            .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
            .build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        setup_pg_catalog(&context, DATABASE, EmptyContextProvider).map_err(|error| *error)?;
        let tables = Arc::new(PgCatalogStaticTables::try_new()?);
        // Functions and planners are kept, the tables that came with them are not: every snapshot brings its own.
        let empty: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
        let state = SessionStateBuilder::new_from_existing(context.state()).with_catalog_list(empty).build();
        Ok(Fixed { tables, state, parser: PostgresCompatibilityParser::new() })
    }
}

fn build(
    catalog: &Catalog,
    fixed: Arc<Fixed>,
    database: &Arc<dyn Database>,
) -> Result<Snapshot, DataFusionError> {
    let objects = Objects::new(catalog, history::relations());
    let list: Arc<dyn CatalogProviderList> = Arc::new(MemoryCatalogProviderList::new());
    let provider = Arc::new(MemoryCatalogProvider::new());
    list.register_catalog(DATABASE.to_string(), provider.clone());
    provider.register_schema("public", described(catalog)?)?;
    provider.register_schema("entente", history::schema(database)?)?;
    provider.register_schema("information_schema", information::schema(&objects, catalog)?)?;
    let system = system::SystemSchema::new(&objects, &fixed.tables, Arc::clone(&list))?;
    provider.register_schema("pg_catalog", Arc::new(system))?;
    let state = SessionStateBuilder::new_from_existing(fixed.state.clone()).with_catalog_list(list).build();
    let context = SessionContext::new_with_state(state);
    functions::register(&context, &objects);
    Ok(Snapshot { version: catalog.version, context, fixed })
}

/// The tables of the ledger as Arrow describes them.
fn described(catalog: &Catalog) -> Result<Arc<dyn SchemaProvider>, DataFusionError> {
    let schema = MemorySchemaProvider::new();
    for table in catalog.tables.values() {
        let fields = table.columns.iter().map(|c| values::arrow_field(&c.name, c.data_type, c.not_null));
        let described =
            Described { name: table.name.clone(), schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())) };
        schema.register_table(table.name.clone(), Arc::new(described))?;
    }
    Ok(Arc::new(schema))
}

/// A table of the ledger: it can be described here, its rows are the database's.
#[derive(Debug)]
struct Described {
    name: String,
    schema: SchemaRef,
}

#[async_trait]
impl TableProvider for Described {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::NotImplemented(format!(
            "a query that reads the table \"{}\" together with the catalogue; ask for them one after the other",
            self.name
        )))
    }
}

/// Types of the parameters `$1`, `$2`, … of a plan; text where neither the client nor the plan says.
fn parameters(plan: &LogicalPlan, given: &[DataType]) -> Result<Vec<DataType>, SqlError> {
    let found = plan.get_parameter_types().map_err(sql_error)?;
    let number = |name: &str| name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    let count = found.keys().filter_map(|name| number(name)).max().unwrap_or(0).max(given.len());
    if count > types::limits::ARGUMENTS_MAX {
        let limit = types::limits::ARGUMENTS_MAX;
        let message = format!("a statement has at most {limit} parameters (ARGUMENTS_MAX)");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let parameter = |index: usize| match given.get(index) {
        Some(given) if *given != DataType::Unknown => *given,
        _ => match found.get(&format!("${}", index + 1)) {
            Some(Some(arrow)) => values::data_type(arrow),
            _ => DataType::Text(None),
        },
    };
    Ok((0..count).map(parameter).collect())
}

async fn collect(query: CatalogueQuery, parameters: Vec<Value>) -> Result<StatementResult, SqlError> {
    let CatalogueQuery { columns, plan, snapshot, .. } = query;
    let plan = if parameters.is_empty() {
        plan
    } else {
        let values = ParamValues::from(parameters.iter().map(values::scalar).collect::<Vec<_>>());
        plan.with_param_values(values).map_err(sql_error)?
    };
    let frame = snapshot.context.execute_logical_plan(plan).await.map_err(sql_error)?;
    let mut stream = frame.execute_stream().await.map_err(sql_error)?;
    let mut rows: Vec<Vec<Value>> = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(sql_error)?;
        rows.extend(values::rows(&batch).map_err(|error| sql_error(error.into()))?);
        if rows.len() > limits::CATALOGUE_ROWS_MAX {
            let limit = limits::CATALOGUE_ROWS_MAX;
            let message = format!("a catalogue query returns at most {limit} rows (CATALOGUE_ROWS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("use WHERE or LIMIT"));
        }
    }
    Ok(StatementResult { tag: format!("SELECT {}", rows.len()), columns, rows, notices: Vec::new() })
}

/// An error of DataFusion as PostgreSQL would report it, as far as can be told.
fn sql_error(error: DataFusionError) -> SqlError {
    let error = error.find_root();
    let message = error.strip_backtrace();
    let lower = message.to_ascii_lowercase();
    let state = match error {
        DataFusionError::SQL(..) => SqlState::SYNTAX_ERROR,
        DataFusionError::SchemaError(..) => SqlState::UNDEFINED_COLUMN,
        DataFusionError::NotImplemented(_) => SqlState::FEATURE_NOT_SUPPORTED,
        DataFusionError::ResourcesExhausted(_) => SqlState::OUT_OF_MEMORY,
        DataFusionError::Plan(_) if lower.contains("table") && lower.contains("not found") => {
            SqlState::UNDEFINED_TABLE
        }
        DataFusionError::Plan(_) if lower.contains("function") => SqlState::UNDEFINED_FUNCTION,
        DataFusionError::Plan(_) => SqlState::FEATURE_NOT_SUPPORTED,
        DataFusionError::ArrowError(..) if lower.contains("divide by zero") => SqlState::DIVISION_BY_ZERO,
        DataFusionError::ArrowError(..) if lower.contains("cast") => SqlState::INVALID_TEXT_REPRESENTATION,
        DataFusionError::ArrowError(..) => SqlState::INVALID_PARAMETER_VALUE,
        DataFusionError::Execution(_) => SqlState::INVALID_PARAMETER_VALUE,
        _ => SqlState::INTERNAL_ERROR,
    };
    SqlError::new(state, message)
        .hint("queries about the catalogue run on DataFusion; see docs for what they can do")
}
