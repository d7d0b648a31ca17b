//! CREATE VIEW and DROP VIEW, and what views depend on.
//!
//! A view is kept as text and bound where it is used. So that what it gives stays the same whatever becomes of the tables,
//! every `*` is written out when the view is made, and what it depends on is noted by name.
//!
//! What would make a view's text mean something else is refused: a new column whose name the view uses unqualified,
//! or a new name of a column that it uses.

use crate::ddl::names::{Qualify, rename_in_query, written};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::{check_type_free, relation_exists};
use crate::ddl::view_columns::{bind_again, gives, with_names};
use crate::ddl::view_options::{check_option_of, check_updatable};
use plan::scope::VariableScope;
use plan::statement::{BoundSelect, bind_query, changes_rows};
use plan::tables::Tables;
use plan::view::Noted;
use sqlparser::ast::{
    self, CreateTableOptions, Expr, Ident, SelectItem, SelectItemQualifiedWildcardKind, Spanned, VisitMut,
    VisitorMut,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use syntax::parse::{parse_query, put_only, take_only, tokenize, write_ties, written_query};
use types::{
    Catalog, CheckOption, ColumnSet, ExecutionVersion, RowSecurity, SearchPath, SqlError, SqlState, Table,
    View, limits, object_name,
};

/// Views that may stand on one another: binding and running them takes a part of the stack each.
const VIEWS_DEEP_MAX: usize = 16;

/// A view as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct ViewDraft {
    or_replace: bool,
    pub(super) name: String,
    /// Where names without a schema are looked for.
    pub(super) search_path: SearchPath,
    /// Names that the first columns get.
    columns: Vec<String>,
    query: Box<ast::Query>,
    /// WITH CHECK OPTION.
    check_option: Option<CheckOption>,
    /// It is a materialized view.
    is_materialized: bool,
}

impl ViewDraft {
    /// A materialized view, which has nothing but a query.
    pub(super) fn materialized(name: &str, columns: &[String], query: &ast::Query) -> ViewDraft {
        ViewDraft {
            or_replace: false,
            name: name.to_string(),
            search_path: SearchPath::default(),
            columns: columns.to_vec(),
            query: Box::new(query.clone()),
            check_option: None,
            is_materialized: true,
        }
    }
}

/// What depends on something that is dropped or altered: `cannot drop … because other objects depend on it`.
pub(super) fn depends(what: &str, dependent: &str, depends_on: &str) -> SqlError {
    SqlError::new(SqlState(*b"2BP01"), format!("cannot drop {what} because other objects depend on it"))
        .detail(format!("{dependent} depends on {depends_on}"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

/// CREATE VIEW.
///
/// # Errors
/// Forms that are not supported.
pub(super) fn bind_create_view(
    create: &ast::CreateView,
    version: ExecutionVersion,
) -> Result<ViewDraft, SqlError> {
    let has_options = !matches!(create.options, CreateTableOptions::None);
    let refused = [
        (create.materialized, "CREATE MATERIALIZED VIEW"),
        (create.temporary, "CREATE TEMPORARY VIEW"),
        (has_options && version < ExecutionVersion::V10, "an option of CREATE VIEW"),
        (
            create.or_alter
                || create.secure
                || create.if_not_exists
                || create.comment.is_some()
                || create.with_no_schema_binding
                || create.copy_grants
                || create.to.is_some()
                || create.params.is_some()
                || !create.cluster_by.is_empty()
                || create.columns.iter().any(|column| column.data_type.is_some() || column.options.is_some()),
            "this form of CREATE VIEW",
        ),
    ];
    if let Some((_, what)) = refused.into_iter().find(|(found, _)| *found) {
        return Err(SqlError::unsupported(what));
    }
    let columns = create.columns.iter().map(|column| name_of(&column.name)).collect::<Result<_, _>>()?;
    Ok(ViewDraft {
        or_replace: create.or_replace,
        name: table_name(&create.name)?,
        search_path: SearchPath::default(),
        columns,
        query: create.query.clone(),
        check_option: check_option_of(&create.options)?,
        is_materialized: false,
    })
}

/// Adds a view to the catalog, or puts it in the place of one.
///
/// # Errors
/// A name that is taken; what is wrong in the query; columns that are not those of the view that it replaces.
pub(super) fn create_view(catalog: &mut NewCatalog, draft: &ViewDraft) -> Result<(), SqlError> {
    let name = &draft.name;
    let is_partition = catalog.partition(name).is_some();
    let known = catalog.views.get(name).filter(|_| draft.or_replace && !is_partition).cloned();
    if known.is_none() && relation_exists(catalog, name) {
        let is_other = draft.or_replace && (is_partition || !catalog.views.contains_key(name));
        let (state, message) = match is_other {
            true => (SqlState(*b"42809"), format!("\"{}\" is not a view", object_name(name))),
            false => {
                (SqlState::DUPLICATE_TABLE, format!("relation \"{}\" already exists", object_name(name)))
            }
        };
        return Err(SqlError::new(state, message));
    }
    check_type_free(catalog, name)?;
    if known.is_none() && catalog.views.len() >= limits::TABLES_MAX {
        let message = format!("a ledger has at most {} views (TABLES_MAX)", limits::TABLES_MAX);
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    let mut view = define(catalog, draft)?;
    if let Some(known) = known {
        check_replacement(&known, &view)?;
        view.triggers.clone_from(&known.triggers);
    }
    catalog.views.insert(name.clone(), Arc::new(view));
    check_depth(catalog, name)?;
    check_updatable(catalog, name)
}

/// The view that a statement describes, bound on this catalog.
///
/// # Errors
/// What is wrong with its query or its columns.
pub(super) fn define(catalog: &NewCatalog, draft: &ViewDraft) -> Result<View, SqlError> {
    let stored = catalog.bound()?;
    let tables = stored.with_search_path(&draft.search_path);
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines()).noting();
    if changes_rows(&draft.query, tables.version()) {
        let message = "views must not contain data-modifying statements in WITH";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let mut columns = bind_query(&tables, &scope, &draft.query)?.columns.to_vec();
    if draft.columns.len() > columns.len() {
        let message = match draft.is_materialized {
            true => "too many column names were specified",
            false => "CREATE VIEW specifies more column names than columns",
        };
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let found = columns.clone();
    for (column, name) in columns.iter_mut().zip(&draft.columns) {
        column.name.clone_from(name);
    }
    let mut names = BTreeSet::new();
    for column in &columns {
        if !names.insert(column.name.as_str()) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
    }
    let noted = scope.noted();
    let mut query = draft.query.as_ref().clone();
    if !draft.search_path.is_default() {
        let qualify =
            Qualify { catalog, path: &draft.search_path, version: tables.version(), places: &noted.places };
        rename_in_query(&mut query, &qualify);
    }
    let query = written_out(query, &noted, tables.version());
    // What is stored must say the same as what was given.
    let named = match stored.version() >= ExecutionVersion::V11 {
        true => with_names(&stored, &query, &found, &columns),
        false => None,
    };
    if named.is_none() && !gives(&stored, &query, &found) {
        return Err(SqlError::unsupported("this form of query in a view")
            .hint("Name every output column once, with AS where two have the same name."));
    }
    let functions: BTreeSet<String> = scope.called().iter().map(|called| called.name.to_string()).collect();
    Ok(View {
        name: draft.name.clone(),
        columns,
        query: named.unwrap_or(query),
        functions,
        relations: noted.relations,
        check_option: draft.check_option,
        triggers: BTreeMap::new(),
    })
}

/// The query as text, with the columns in the place of every `*`.
fn written_out(mut query: ast::Query, noted: &Noted, version: ExecutionVersion) -> String {
    struct Expand<'n>(&'n Noted);
    impl VisitorMut for Expand<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
            write_ties(query);
            ControlFlow::Continue(())
        }

        fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
            let expand = |item: SelectItem| {
                let span = match &item {
                    SelectItem::Wildcard(options) => options.wildcard_token.0.span,
                    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                        name.span()
                    }
                    _ => return vec![item],
                };
                let Some((_, paths)) = self.0.wildcards.iter().find(|(at, _)| *at == span) else {
                    return vec![item];
                };
                let path = |path: &Vec<String>| {
                    let mut names: Vec<Ident> =
                        path.iter().map(|name| Ident::with_quote('"', name.as_str())).collect();
                    SelectItem::UnnamedExpr(match names.len() {
                        1 => Expr::Identifier(names.remove(0)),
                        _ => Expr::CompoundIdentifier(names),
                    })
                };
                paths.iter().map(path).collect()
            };
            select.projection = std::mem::take(&mut select.projection).into_iter().flat_map(expand).collect();
            ControlFlow::Continue(())
        }
    }
    let _ = query.visit(&mut Expand(noted));
    written_query(&query, version)
}

/// Whether a view can stand where another one stands: whoever uses that finds its columns again.
fn check_replacement(known: &View, new: &View) -> Result<(), SqlError> {
    let refused = |message: String| Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if new.columns.len() < known.columns.len() {
        return refused("cannot drop columns from view".to_string());
    }
    for (known, new) in known.columns.iter().zip(&new.columns) {
        if known.name != new.name {
            let message = format!("cannot change name of view column \"{}\" to \"{}\"", known.name, new.name);
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
                .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if known.data_type != new.data_type {
            return refused(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                known.name, known.data_type, new.data_type
            ));
        }
    }
    Ok(())
}

/// Refuses a view that stands on itself, and views that stand on too many others.
pub(super) fn check_depth(catalog: &Catalog, name: &str) -> Result<(), SqlError> {
    /// The views on the longest way down from a relation.
    fn depth<'c>(catalog: &'c Catalog, name: &'c str, known: &mut BTreeMap<&'c str, usize>) -> usize {
        if let Some(known) = known.get(name) {
            return *known;
        }
        let Some(view) = query_of(catalog, name) else { return 0 };
        let below = view.relations.iter().map(|below| depth(catalog, below, known)).max();
        let depth = 1 + below.unwrap_or(0);
        known.insert(name, depth);
        depth
    }
    let mut waiting: Vec<&str> = vec![name];
    let mut below: BTreeSet<&str> = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        let Some(view) = query_of(catalog, next) else { continue };
        if view.relations.contains(name) {
            let message = format!("infinite recursion detected in rules for relation \"{name}\"");
            return Err(SqlError::new(SqlState(*b"42P17"), message));
        }
        waiting.extend(view.relations.iter().map(String::as_str).filter(|relation| below.insert(*relation)));
    }
    let mut known = BTreeMap::new();
    if catalog.queries().any(|view| depth(catalog, &view.name, &mut known) > VIEWS_DEEP_MAX) {
        let message = format!("views stand more than {VIEWS_DEEP_MAX} deep on one another (VIEWS_DEEP_MAX)");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    Ok(())
}

/// DROP VIEW.
///
/// # Errors
/// One that is not there or no view; others that stand on it, without CASCADE.
pub(super) fn drop_views(
    catalog: &mut NewCatalog,
    if_exists: bool,
    cascade: bool,
    names: &[String],
) -> Result<(), SqlError> {
    for name in names {
        let is_partition = catalog.partition(name).is_some();
        if catalog.views.contains_key(name) && !is_partition {
            continue;
        }
        if relation_exists(catalog, name) {
            let error =
                SqlError::new(SqlState(*b"42809"), format!("\"{}\" is not a view", object_name(name)));
            if catalog.materialized_view(name).is_some() {
                return Err(error.hint("Use DROP MATERIALIZED VIEW to remove a materialized view."));
            }
            return Err(match is_partition || catalog.tables.contains_key(name) {
                true => error.hint("Use DROP TABLE to remove a table."),
                false => error,
            });
        }
        if !if_exists {
            let message = format!("view \"{}\" does not exist", object_name(name));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    }
    for name in names {
        drop_dependents(catalog, &format!("view {name}"), cascade, names, &|view| {
            view.relations.contains(name)
        })?;
    }
    names.iter().for_each(|name| drop(catalog.views.remove(name)));
    Ok(())
}

/// Drops the views that need what is dropped, and those that stand on them; refuses where there are any without CASCADE.
/// `what`: what is dropped; `dropped`: names of relations that go with it.
pub(super) fn drop_dependents(
    catalog: &mut Catalog,
    what: &str,
    cascade: bool,
    dropped: &[String],
    needs: &dyn Fn(&View) -> bool,
) -> Result<(), SqlError> {
    let found = catalog.queries().filter(|view| needs(view) && !dropped.contains(&view.name));
    let found: Vec<View> = found.cloned().collect();
    if let Some(first) = found.first().filter(|_| !cascade) {
        return Err(depends(what, &described(catalog, &first.name), what));
    }
    for view in found {
        if catalog.views.remove(&view.name).is_none()
            && let Some(table) = catalog.tables.remove(&view.name)
        {
            catalog.indexes.remove(&table.id);
        }
        drop_dependents(catalog, "", true, dropped, &|other| other.relations.contains(&view.name))?;
    }
    Ok(())
}

/// A view or materialized view, as messages call it.
pub(super) fn described(catalog: &Catalog, name: &str) -> String {
    match catalog.views.contains_key(name) {
        true => format!("view {name}"),
        false => format!("materialized view {name}"),
    }
}

/// The query of a view or materialized view.
fn query_of<'c>(catalog: &'c Catalog, name: &str) -> Option<&'c View> {
    let view = catalog.views.get(name).map(Arc::as_ref);
    view.or_else(|| catalog.materialized_view(name).map(|(_, materialized)| &materialized.view))
}

/// The views and materialized views that read a relation directly.
fn readers<'c>(catalog: &'c Catalog, relation: &'c str) -> impl Iterator<Item = &'c View> {
    catalog.queries().filter(move |view| view.relations.contains(relation))
}

/// What the query of a view gives on these tables.
fn bind_view(tables: &Tables, view: &View) -> Result<BoundSelect, SqlError> {
    bind_again(tables, &parse_query(&view.query, tables.version())?)
}

fn gives_the_same(select: &BoundSelect, view: &View) -> bool {
    let types = view.columns.iter().map(|column| column.data_type);
    select.columns.iter().map(|column| column.data_type).eq(types)
}

/// The catalog without policies: what these look at is nothing that views do.
fn without_policies(catalog: &NewCatalog) -> NewCatalog {
    let mut known = catalog.clone();
    for table in known.tables.values_mut().filter(|table| table.row_security.enabled) {
        Arc::make_mut(table).row_security = RowSecurity::default();
    }
    known
}

/// The catalog as views see it, with another table in the place of the one of that name.
fn with_table(known: &NewCatalog, other: &Table) -> NewCatalog {
    let mut changed = known.clone();
    // Their ordinals are those of the table as it is; views need neither.
    changed.indexes.clear();
    changed.foreign_keys.clear();
    let other = Table { row_security: RowSecurity::default(), partitioning: None, ..other.clone() };
    changed.tables.insert(other.name.clone(), Arc::new(other));
    changed
}

/// Drops the views that are nothing without the primary key of a table, because it decides on columns that they do not group by;
/// refuses where there are any without CASCADE. Before version 13 there were none.
pub(super) fn drop_needing_primary_key(
    catalog: &mut NewCatalog,
    table: &Table,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    if catalog.rules < ExecutionVersion::V13 || readers(catalog, &table.name).next().is_none() {
        return Ok(());
    }
    let without = Table { primary_key: Vec::new(), ..table.clone() };
    let after = with_table(&without_policies(catalog), &without).bound()?;
    let needing = readers(catalog, &table.name).filter(|view| bind_view(&after, view).is_err());
    let needing: Vec<String> = needing.map(|view| view.name.clone()).collect();
    drop_dependents(catalog, what, cascade, &[], &|view| needing.contains(&view.name))
}

/// Names of the views that use a column of a table. `without`: the table without the column, or with another one in its
/// place.
///
/// # Errors
/// None as long as the views can be bound.
pub(super) fn using_column(
    catalog: &NewCatalog,
    table: &Table,
    ordinal: usize,
    without: &Table,
) -> Result<Vec<String>, SqlError> {
    let readers: Vec<&View> = readers(catalog, &table.name).collect();
    if readers.is_empty() {
        return Ok(Vec::new());
    }
    let known = without_policies(catalog);
    let (before, after) = (known.bound()?, with_table(&known, without).bound()?);
    let mut users = Vec::new();
    for view in readers {
        let mut looks = false;
        bind_view(&before, view)?.visit_tables(&mut |scanned| {
            looks |= scanned.table.id == table.id && scanned.columns.contains(ColumnSet::column(ordinal));
        });
        if looks || !bind_view(&after, view).is_ok_and(|select| gives_the_same(&select, view)) {
            users.push(view.name.clone());
        }
    }
    Ok(users)
}

/// Refuses a new name of a column where a view that reads the table might take it for another column.
pub(super) fn refuse_name(catalog: &Catalog, relation: &str, column: &str) -> Result<(), SqlError> {
    for view in readers(catalog, relation) {
        let tokens = tokenize(&view.query)?;
        let mut before = &Token::EOF;
        for token in tokens.iter().map(|token| &token.token) {
            if let Token::Word(word) = token {
                let named = name_of(&word.clone().into_ident(Span::empty())).is_ok_and(|name| name == column);
                let is_alone = !matches!(before, Token::Period)
                    && !matches!(before, Token::Word(word) if word.keyword == Keyword::AS);
                if (named && is_alone) || word.keyword == Keyword::NATURAL {
                    let what = format_args!(
                        "a new column \"{column}\" of \"{relation}\" that the view \"{}\" might take for another one",
                        view.name
                    );
                    return Err(SqlError::unsupported(what)
                        .hint("Drop the view, and create it again with qualified names."));
                }
            }
            before = token;
        }
    }
    Ok(())
}

/// Holds the views that read a relation against what it is now.
pub(super) fn check_all(catalog: &NewCatalog, relation: &str) -> Result<(), SqlError> {
    let mut tables = None;
    for view in readers(catalog, relation) {
        let tables = match &tables {
            Some(tables) => tables,
            None => tables.insert(catalog.bound()?),
        };
        if !bind_view(tables, view).is_ok_and(|select| gives_the_same(&select, view)) {
            let what = format_args!("a change of \"{relation}\" that changes the view \"{}\"", view.name);
            return Err(SqlError::unsupported(what).hint("Drop the view, and create it again."));
        }
    }
    Ok(())
}

/// Holds all views against what types are now.
///
/// # Errors
/// What is wrong with the first one that is another one now.
pub(super) fn check_views(catalog: &NewCatalog) -> Result<(), SqlError> {
    let tables = catalog.bound()?;
    for view in catalog.queries() {
        bind_view(&tables, view)?;
    }
    Ok(())
}

/// Lets views read a relation under its new name. In their queries it keeps the old one as its alias.
///
/// # Errors
/// `0A000` where a WITH query of a view has the name.
pub(super) fn rename_relation(catalog: &mut NewCatalog, from: &str, to: &str) -> Result<(), SqlError> {
    struct Rename<'n> {
        from: &'n str,
        to: &'n str,
        version: ExecutionVersion,
    }
    impl VisitorMut for Rename<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
            let common = query.with.iter().flat_map(|with| &with.cte_tables);
            let mut names = common.filter_map(|common| name_of(&common.alias.name).ok());
            match names.any(|name| name == object_name(self.from) || name == object_name(self.to)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<()> {
            let only = self.version >= ExecutionVersion::V14 && take_only(factor);
            if let ast::TableFactor::Table { name, alias, args: None, .. } = factor
                && SearchPath::default()
                    .find(&table_name(name).unwrap_or_default(), |found| found == self.from)
                    .is_some()
            {
                *name = written(self.to);
                alias.get_or_insert_with(|| ast::TableAlias {
                    explicit: true,
                    name: Ident::with_quote('"', object_name(self.from)),
                    columns: Vec::new(),
                    at: None,
                });
            }
            if only {
                put_only(factor);
            }
            ControlFlow::Continue(())
        }
    }
    let names: Vec<String> = readers(catalog, from).map(|view| view.name.clone()).collect();
    for name in names {
        let rules = catalog.rules;
        let Some(view) = catalog.queries_mut().find(|view| view.name == name) else { continue };
        let mut query = parse_query(&view.query, rules)?;
        if query.visit(&mut Rename { from, to, version: rules }).is_break() {
            let what =
                format_args!("renaming a table whose name is that of a WITH query of the view \"{name}\"");
            return Err(SqlError::unsupported(what).hint("Drop the view, and create it again."));
        }
        view.query = written_query(&query, rules);
        view.relations.remove(from);
        view.relations.insert(to.to_string());
    }
    check_all(catalog, to)
}
