//! CREATE, REFRESH, ALTER and DROP MATERIALIZED VIEW.
//!
//! A materialized view is a table that keeps the query whose rows it holds, as a view does. REFRESH gives the table another number
//! together with the rows that the query has now, so that whoever reads sees the rows of before or those of behind.

use crate::ddl::alter::{TableChange, alter_table};
use crate::ddl::create_as::columns_for;
use crate::ddl::indexes::check_unique;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::relation_exists;
use crate::ddl::renumber::renumber;
use crate::ddl::rows::Rows;
use crate::ddl::tables::{TableDraft, create_table, drop_tables};
use crate::ddl::views::{ViewDraft, check_depth, define};
use plan::scope::VariableScope;
use plan::statement::bind_query;
use std::sync::Arc;
use syntax::parse::materialized_view::{
    CreateMaterializedView, MaterializedViewChange, MaterializedViewStatement, RefreshMaterializedView,
};
use syntax::parse::parse_query;
use types::session_format::{SessionFormat, within_format};
use types::{Catalog, MaterializedView, SqlError, SqlState, Table, View, as_given, object_name, schema_of};

/// A statement about materialized views.
#[derive(Clone, Debug)]
pub(crate) enum MaterializedChange {
    /// CREATE.
    Create {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its query.
        draft: ViewDraft,
        /// False: WITH NO DATA.
        with_data: bool,
    },
    /// REFRESH.
    Refresh(RefreshMaterializedView),
    /// ALTER.
    Alter {
        /// IF EXISTS.
        if_exists: bool,
        /// The view.
        name: String,
        /// What becomes of it.
        change: TableChange,
    },
    /// DROP.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The views.
        names: Vec<String>,
    },
}

impl MaterializedChange {
    /// The change that a statement is.
    pub(super) fn bind(statement: &MaterializedViewStatement) -> MaterializedChange {
        match statement {
            MaterializedViewStatement::Create(create) => MaterializedChange::create(create),
            MaterializedViewStatement::Refresh(refresh) => MaterializedChange::Refresh(refresh.clone()),
            MaterializedViewStatement::Alter { if_exists, name, change } => {
                let change = match change.clone() {
                    MaterializedViewChange::Rename(to) => TableChange::Rename(to),
                    MaterializedViewChange::RenameColumn { from, to } => {
                        TableChange::RenameColumn { from, to }
                    }
                    MaterializedViewChange::SetSchema(schema) => TableChange::SetSchema(schema),
                };
                MaterializedChange::Alter { if_exists: *if_exists, name: name.clone(), change }
            }
            MaterializedViewStatement::Drop { if_exists, cascade, names } => {
                let (if_exists, cascade, names) = (*if_exists, *cascade, names.clone());
                MaterializedChange::Drop { if_exists, cascade, names }
            }
        }
    }

    fn create(create: &CreateMaterializedView) -> MaterializedChange {
        let draft = ViewDraft::materialized(&create.name, &create.columns, &create.query);
        let (if_not_exists, with_data) = (create.if_not_exists, create.with_data);
        MaterializedChange::Create { if_not_exists, draft, with_data }
    }

    /// Whether it runs a query, on the schema as it is before.
    pub(super) fn runs_a_query(&self) -> bool {
        match self {
            MaterializedChange::Create { with_data, .. } => *with_data,
            MaterializedChange::Refresh(refresh) => refresh.with_data,
            MaterializedChange::Alter { .. } | MaterializedChange::Drop { .. } => false,
        }
    }

    /// Makes it. Gives the command's tag. `before`: the catalog before the first change of the script.
    ///
    /// # Errors
    /// A name that is taken, or stands for nothing or something else; what is wrong with the query; rows that a unique index refuses.
    pub(super) fn make(
        &self,
        catalog: &mut NewCatalog,
        before: &Catalog,
        rows: &mut Rows<'_, '_>,
    ) -> Result<String, SqlError> {
        if self.runs_a_query() && catalog.catalog != *before {
            let what = "a query of a materialized view behind another schema change of the same script";
            return Err(SqlError::unsupported(what).hint("Send it in a script of its own."));
        }
        match self {
            MaterializedChange::Create { if_not_exists, draft, with_data } => {
                create(catalog, *if_not_exists, draft, *with_data, rows)
            }
            MaterializedChange::Refresh(options) => refresh(catalog, options, rows),
            MaterializedChange::Alter { if_exists, name, change } => {
                if !*if_exists || relation_exists(catalog, name) {
                    find(catalog, name).map_err(|error| as_relation(error, name))?;
                    alter_table(catalog, false, name, std::slice::from_ref(change), rows)?;
                }
                Ok("ALTER MATERIALIZED VIEW".to_string())
            }
            MaterializedChange::Drop { if_exists, cascade, names } => {
                for name in names.iter().filter(|name| !*if_exists || relation_exists(catalog, name)) {
                    find(catalog, name).map_err(|error| with_drop_hint(error, catalog, name))?;
                }
                drop_tables(catalog, *if_exists, *cascade, names)?;
                Ok("DROP MATERIALIZED VIEW".to_string())
            }
        }
    }
}

/// The materialized view of this name.
///
/// # Errors
/// `42P01`, `42809`
fn find(catalog: &Catalog, name: &str) -> Result<(Arc<Table>, MaterializedView), SqlError> {
    if let Some((table, materialized)) = catalog.materialized_view(name) {
        return Ok((table.clone(), materialized.clone()));
    }
    Err(match relation_exists(catalog, name) {
        true => {
            let message = format!("\"{}\" is not a materialized view", object_name(name));
            SqlError::new(SqlState(*b"42809"), message)
        }
        false => {
            let message = format!("materialized view \"{}\" does not exist", as_given(name));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
    })
}

/// Whoever does not drop a relation that is not there hears that it is none.
fn as_relation(error: SqlError, name: &str) -> SqlError {
    match error.state == SqlState::UNDEFINED_TABLE {
        true => SqlError { message: format!("relation \"{}\" does not exist", as_given(name)), ..error },
        false => error,
    }
}

fn with_drop_hint(error: SqlError, catalog: &Catalog, name: &str) -> SqlError {
    match (catalog.tables.contains_key(name), catalog.views.contains_key(name)) {
        (true, _) => error.hint("Use DROP TABLE to remove a table."),
        (_, true) => error.hint("Use DROP VIEW to remove a view."),
        _ => error,
    }
}

/// Refuses to drop a materialized view as a table.
///
/// # Errors
/// `42809`
pub(super) fn refuse_table_drop(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    if catalog.materialized_view(name).is_none() {
        return Ok(());
    }
    let error = SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a table", object_name(name)));
    Err(error.hint("Use DROP MATERIALIZED VIEW to remove a materialized view."))
}

fn create(
    catalog: &mut NewCatalog,
    if_not_exists: bool,
    draft: &ViewDraft,
    with_data: bool,
    rows: &mut Rows<'_, '_>,
) -> Result<String, SqlError> {
    let tag = || "CREATE MATERIALIZED VIEW".to_string();
    if if_not_exists && relation_exists(catalog, &draft.name) {
        return Ok(tag());
    }
    let view = define(catalog, draft)?;
    let mut table = TableDraft::empty(&draft.name, None);
    table.table.columns = columns_for(&view.columns)?;
    create_table(catalog, false, &table, rows)?;
    let id = catalog.tables[&draft.name].id;
    let count = if with_data { fill(&view, id, rows)? } else { 0 };
    set(catalog, &draft.name, MaterializedView { view, is_populated: with_data });
    check_depth(catalog, &draft.name)?;
    Ok(if with_data { format!("SELECT {count}") } else { tag() })
}

fn set(catalog: &mut NewCatalog, name: &str, materialized: MaterializedView) {
    if let Some(table) = catalog.tables.get_mut(name) {
        Arc::make_mut(table).materialized = Some(Arc::new(materialized));
    }
}

/// Puts the rows of the query into a table that has none. Gives how many there are. They are the same whatever formats a session has.
fn fill(view: &View, table: types::TableId, rows: &mut Rows<'_, '_>) -> Result<usize, SqlError> {
    within_format(SessionFormat::default(), || {
        let tables = rows.execution.programs().tables().clone();
        let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
        let query = parse_query(&view.query, tables.version())?;
        let select = bind_query(&tables, &scope, &query)?;
        rows.execution.authorise(&scope.needs())?;
        rows.fill(table, select)
    })
}

fn refresh(
    catalog: &mut NewCatalog,
    options: &RefreshMaterializedView,
    rows: &mut Rows<'_, '_>,
) -> Result<String, SqlError> {
    let (known, materialized) = find(catalog, &options.name).map_err(|error| match error.state {
        SqlState::UNDEFINED_TABLE => as_relation(error, &options.name),
        _ => SqlError { state: SqlState::FEATURE_NOT_SUPPORTED, ..error },
    })?;
    if options.concurrently {
        check_concurrently(catalog, &known, &materialized, options.with_data)?;
    }
    let table = renumber(catalog, &known)?;
    let id = table.id;
    catalog.tables.insert(table.name.clone(), Arc::new(table));
    rows.forget(known.id);
    if options.with_data {
        fill(&materialized.view, id, rows)?;
    }
    let is_populated = options.with_data;
    set(catalog, &options.name, MaterializedView { is_populated, ..materialized });
    let table = catalog.tables[&options.name].clone();
    for index in catalog.indexes_of(id).to_vec().iter().filter(|index| index.unique) {
        check_unique(catalog, &table, index, rows)?;
    }
    Ok("REFRESH MATERIALIZED VIEW".to_string())
}

/// CONCURRENTLY changes nothing here, because nobody waits for a REFRESH. What PostgreSQL asks for is asked for, so that a script means
/// the same.
fn check_concurrently(
    catalog: &Catalog,
    table: &Table,
    materialized: &MaterializedView,
    with_data: bool,
) -> Result<(), SqlError> {
    if !with_data {
        let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    if !materialized.is_populated {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let mut indexes = catalog.indexes_of(table.id).iter();
    if !indexes.any(|index| index.unique && !index.is_computed()) {
        let (schema, name) = (schema_of(&table.name), table.object_name());
        let message = format!("cannot refresh materialized view \"{schema}.{name}\" concurrently");
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message).hint(
            "Create a unique index with no WHERE clause on one or more columns of the materialized view.",
        ));
    }
    Ok(())
}
