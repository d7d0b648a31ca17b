//! Preparing and running queries about the catalogue.

use crate::SessionFacts;
use crate::history::History;
use crate::normalise::{normalise, vector, vector_text};
use crate::origin::ColumnFacts;
use crate::relations;
use crate::view::{Contents, View};
use parking_lot::Mutex;
use sql::{Context, Invocation, Library, Prepared, Reader, StatementKind};
use sqlparser::ast::{SelectItem, SetExpr, Statement};
use state::{PlainState, Simulate};
use std::sync::{Arc, LazyLock};
use types::{
    Catalog, DataType, OutputColumn, Payload, Principal, SqlError, SqlState, StatementResult, TransactionId,
    Value,
};

/// PostgreSQL's functions that know the catalogue.
const FUNCTIONS: &str = include_str!("functions.sql");
/// Logical steps of one query.
const STEPS_MAX: u64 = 50_000_000;
/// Rows that a query may return.
const ROWS_MAX: usize = 200_000;

/// What the functions read. Each of them is bound when it is made, which takes as long as there are relations.
const READ_BY_FUNCTIONS: &[&str] = &[
    "pg_attribute",
    "pg_auth_members",
    "pg_authid",
    "pg_class",
    "pg_depend",
    "pg_description",
    "pg_namespace",
    "pg_proc",
    "pg_settings",
    "entente_setting",
    "pg_shdescription",
    "pg_type",
    "entente_definition",
    "entente_keyword",
    "entente_privilege",
    "entente_receipt_proof",
    "entente_row_proof",
    "entente_search_path",
];

/// The relations and functions, which are the same on every ledger.
static LIBRARY: LazyLock<Result<Arc<Library>, SqlError>> = LazyLock::new(|| {
    let few = Arc::new(relations::tables(|name| READ_BY_FUNCTIONS.contains(&name)));
    let library = Arc::new(Library::new(few.clone())?);
    let context = Context {
        height: 0,
        timestamp_ms: 0,
        index: 0,
        transaction: TransactionId::default(),
        step_limit: STEPS_MAX,
    };
    let script = Payload::Script { sql: FUNCTIONS.to_string(), parameters: Vec::new() };
    let effects = Invocation::new(library, context, script).simulate(&PlainState::new(few))?;
    effects.result?;
    let made = effects.catalog.unwrap_or_default();
    let all = relations::tables(|_| true);
    let catalog = Catalog {
        tables: all.tables,
        indexes: all.indexes,
        next_table: all.next_table,
        ..Catalog::clone(&made)
    };
    Library::new(Arc::new(catalog)).map(Arc::new)
});

/// How many catalogs are kept as relations: the ledger's, and those of sessions that have changed the schema in an open transaction
/// block or have temporary tables.
const CONTENTS_MAX: usize = 8;

/// Answers queries about a ledger's catalogue and its history.
#[derive(Default)]
pub struct Catalogue {
    /// The one that was asked last stands at the end.
    recent: Mutex<Vec<Arc<Contents>>>,
}

/// A query that was bound.
pub struct Query {
    prepared: Prepared,
    type_numbers: Vec<(usize, u32)>,
    facts: SessionFacts,
}

impl Query {
    /// Types of its parameters.
    pub fn parameters(&self) -> &[DataType] {
        self.prepared.parameters()
    }

    /// Columns of its rows.
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.columns()
    }

    /// By column, which column of the catalogue it is.
    pub fn facts_of_columns(&self) -> Vec<Option<ColumnFacts>> {
        let origins = self.prepared.origins().iter();
        origins.map(|origin| origin.as_ref().and_then(ColumnFacts::of_catalogue)).collect()
    }

    /// Columns, from 0, of which clients are told another type than that of their values, and its number.
    pub fn type_numbers(&self) -> &[(usize, u32)] {
        &self.type_numbers
    }
}

impl Catalogue {
    /// Binds a query. `types` are the parameters' types as far as the client gave them. `ledger`: the catalog that the
    /// session knows now.
    ///
    /// # Errors
    /// What is wrong in it; `0A000` where it reads tables of the ledger as well.
    pub fn prepare(
        &self,
        ledger: &Catalog,
        sql: &str,
        facts: &SessionFacts,
        types: &[DataType],
    ) -> Result<Query, SqlError> {
        let library = LIBRARY.as_ref().map_err(Clone::clone)?;
        let mut statement = sql::parse_only_statement(sql)?;
        if !matches!(statement, Statement::Query(_) | Statement::Explain { .. }) {
            return Err(SqlError::unsupported("a catalogue query that is no SELECT"));
        }
        let type_numbers = tell_types(&mut statement);
        normalise(&mut statement, facts)?;
        let prepared = sql::prepare_query(library, (sql, facts.format), statement, types);
        let prepared = prepared.map_err(|error| explained(error, ledger))?;
        if prepared.kind() != StatementKind::Read {
            return Err(SqlError::unsupported("a catalogue query that is no SELECT"));
        }
        Ok(Query { prepared, type_numbers, facts: facts.clone() })
    }

    /// Runs a query. `reader`: its time, what ends it, and what memory it shares; the rest is the catalogue's own. `ledger` is
    /// the catalog that the session knows now: the ledger's newest, or that of its open block, with its temporary tables.
    ///
    /// # Errors
    /// What it ends with; `54000` where it takes too many steps or gives too many rows.
    pub fn run(
        &self,
        ledger: &Arc<Catalog>,
        history: &dyn History,
        query: &Query,
        parameters: &[Value],
        reader: &Reader,
    ) -> Result<StatementResult, SqlError> {
        let library = LIBRARY.as_ref().map_err(Clone::clone)?;
        let contents = self.contents(ledger, query.facts.process);
        let view = View { catalog: library.catalog(), contents: &contents, facts: &query.facts, history };
        let reader = Reader { principal: Principal::default(), step_limit: STEPS_MAX, ..reader.clone() };
        let results = query.prepared.query_as(&reader, &view, parameters)?;
        let result = results.into_iter().next_back().unwrap_or_default();
        if result.rows.len() > ROWS_MAX {
            let message = format!("a catalogue query returns at most {ROWS_MAX} rows");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).hint("use WHERE or LIMIT"));
        }
        Ok(result)
    }

    /// No session is shown what another one has not committed: what is kept is found by the catalog itself.
    fn contents(&self, catalog: &Arc<Catalog>, process: i32) -> Arc<Contents> {
        let find = |recent: &mut Vec<Arc<Contents>>| {
            let at = recent.iter().position(|contents| contents.shows(catalog))?;
            let found = recent.remove(at);
            recent.push(found.clone());
            Some(found)
        };
        if let Some(found) = find(&mut self.recent.lock()) {
            return found;
        }
        // Other sessions do not wait for this.
        let made = Arc::new(Contents::new(catalog.clone(), process));
        let mut recent = self.recent.lock();
        if let Some(found) = find(&mut recent) {
            return found;
        }
        recent.push(made.clone());
        let too_many = recent.len().saturating_sub(CONTENTS_MAX);
        recent.drain(..too_many);
        made
    }
}

/// The numbers of `int2vector` and `oidvector`, which clients read: here they are arrays.
const SHORT_VECTOR: u32 = 22;
const OBJECT_VECTOR: u32 = 30;

/// Makes output columns that are vectors the texts by which clients know those; gives the columns of which clients are told
/// another type, with its number.
fn tell_types(statement: &mut Statement) -> Vec<(usize, u32)> {
    let Statement::Query(query) = statement else { return Vec::new() };
    let SetExpr::Select(select) = query.body.as_mut() else { return Vec::new() };
    let mut found = Vec::new();
    for (position, item) in select.projection.iter_mut().enumerate() {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.clone())),
            // Nobody knows yet how many columns it is.
            _ => break,
        };
        if let Some(column) = vector(expr) {
            let is_short = matches!(column.value.as_str(), "indkey" | "indoption" | "tgattr");
            found.push((position, if is_short { SHORT_VECTOR } else { OBJECT_VECTOR }));
            let alias = alias.unwrap_or_else(|| column.clone());
            *item = SelectItem::ExprWithAlias { expr: vector_text(expr), alias };
        }
    }
    found
}

/// What is no relation of the catalogue may be a table of the ledger.
fn explained(error: SqlError, ledger: &Catalog) -> SqlError {
    let name = error.message.strip_prefix("relation \"").and_then(|rest| rest.split('"').next());
    match name.filter(|name| error.state == SqlState::UNDEFINED_TABLE && ledger.columns_of(name).is_some()) {
        Some(name) => SqlError::unsupported(format_args!(
            "a query that reads the table \"{name}\" together with the catalogue"
        ))
        .hint("Ask for them one after the other."),
        None => error,
    }
}
