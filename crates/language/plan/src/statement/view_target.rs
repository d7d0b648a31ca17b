//! Views as targets of INSERT, UPDATE and DELETE: those that show rows of one table, each once, as PostgreSQL defines them.
//!
//! What a statement says of the columns of the view is bound over these, and then said of the table: every column of the view
//! is a value over the columns of the table, and its WHERE one more condition.

use crate::command::{DeletePlan, UpdatePlan};
use crate::expression::{Binder, Expression, Kind, NamedRelation, Relations, Source, columns_of};
use crate::logical::LogicalPlan;
use crate::row_security::{restrict_delete, restrict_update};
use crate::scope::VariableScope;
use crate::statement::Access;
use crate::statement::assignments::bind_assignments;
use crate::statement::change::{BoundDelete, BoundUpdate, Returning};
use crate::statement::conditions::bind_where;
use crate::statement::from::bind_from_base;
use crate::statement::level::{Level, in_statement};
use crate::statement::output::{Wildcards, bind_items, bind_returning_beside};
use crate::statement::query::finding;
use crate::statement::query_scope::QueryScope;
use crate::table::TablePlan;
use crate::tables::Tables;
use sqlparser::ast::{
    self, Distinct, GroupByExpr, Ident, ObjectName, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins,
};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{
    ColumnSet, DataType, OutputColumn, Privileges, SearchPath, SqlError, SqlState, object_name, schema_of,
};

/// What is to be done with a view's rows.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    fn refused(self, view: &str, detail: &str) -> SqlError {
        let (verb, form) = match self {
            Change::Insert => ("insert into", "Insert into"),
            Change::Update => ("update", "Update"),
            Change::Delete => ("delete from", "Delete from"),
        };
        SqlError::new(SqlState(*b"55000"), format!("cannot {verb} view \"{}\"", object_name(view)))
            .detail(detail.to_string())
            .hint(format!("{form} the tables that it reads."))
    }
}

/// A view that can be changed.
pub(super) struct ViewTarget {
    /// The table whose rows it shows.
    pub table: Arc<TablePlan>,
    /// Its name.
    pub name: String,
    pub columns: Vec<OutputColumn>,
    /// Of each column, over those of the table.
    pub values: Vec<Expression>,
    /// What is true of the rows that it shows.
    conditions: Vec<Expression>,
}

impl ViewTarget {
    /// The view of this name; `None` where it is none.
    ///
    /// # Errors
    /// `55000` where its rows are not those of one table.
    pub fn find(
        tables: &Tables,
        scope: &VariableScope,
        name: &ObjectName,
        change: Change,
    ) -> Result<Option<ViewTarget>, SqlError> {
        let called = table_name(name)?;
        if scope.transition_table(&called).is_some() {
            return Ok(None);
        }
        let called = tables.find(&called);
        if tables.view(&called).is_none() {
            return Ok(None);
        }
        ViewTarget::of(tables, scope, &called, change).map(Some)
    }

    fn of(
        tables: &Tables,
        scope: &VariableScope,
        name: &str,
        change: Change,
    ) -> Result<ViewTarget, SqlError> {
        let not_single = || {
            change.refused(
                name,
                "Views that do not select from a single table or view are not automatically updatable.",
            )
        };
        let view = tables.view(name).ok_or_else(not_single)?;
        if let Some(part) = part_in_the_way(&view.query) {
            return Err(
                change.refused(name, &format!("Views containing {part} are not automatically updatable."))
            );
        }
        let SetExpr::Select(select) = view.query.body.as_ref() else { return Err(not_single()) };
        let [from] = select.from.as_slice() else { return Err(not_single()) };
        let TableFactor::Table { name: inner, alias, args: None, .. } = &from.relation else {
            return Err(not_single());
        };
        if !from.joins.is_empty() {
            return Err(not_single());
        }
        // Its text has the names of the catalog.
        let tables = &tables.with_search_path(&SearchPath::default());
        let inner = tables.find(&table_name(inner)?);
        let below = match tables.view(&inner) {
            Some(_) => ViewTarget::of(tables, scope, &inner, change)?,
            None => ViewTarget::whole(tables.get(&inner)?),
        };
        let names = below.names(&inner, alias.as_ref())?;
        let variables = VariableScope::for_procedure(None).with_routines(tables.routines());
        let (values, conditions) = in_statement(tables, &variables, |query, level| {
            let binder = query.binder(level, Source::Relations(&names));
            let conditions = bind_where(&binder, select.selection.as_ref())?;
            binder.in_clause(None).no_windows_in(None);
            let (values, _) =
                bind_items(&binder, Wildcards::Relations(&names), &variables, &select.projection)?;
            if !binder.take_aggregates().is_empty() {
                let detail = "Views that return aggregate functions are not automatically updatable.";
                return Err(change.refused(name, detail));
            }
            Ok((values, conditions))
        })?;
        if values.iter().any(|value| value.any(&mut |inner| matches!(inner.kind, Kind::Window(_)))) {
            let detail = "Views that return window functions are not automatically updatable.";
            return Err(change.refused(name, detail));
        }
        variables.called().iter().for_each(|called| scope.note_call(called));
        let values = below.over_table(0, values);
        let mut conditions = below.over_table(0, conditions);
        conditions.extend(below.conditions);
        Ok(ViewTarget {
            table: below.table,
            name: name.to_string(),
            columns: view.columns.clone(),
            values,
            conditions,
        })
    }

    /// A table as a view of itself.
    fn whole(table: &Arc<TablePlan>) -> ViewTarget {
        let column = |(ordinal, column): (usize, &crate::table::ColumnPlan)| {
            let shown = OutputColumn { name: column.name.clone(), data_type: column.data_type };
            (shown, Expression::column(ordinal, column.data_type))
        };
        let (columns, values) = table.columns.iter().enumerate().map(column).unzip();
        ViewTarget {
            table: table.clone(),
            name: table.relation.clone(),
            columns,
            values,
            conditions: Vec::new(),
        }
    }

    /// The names of its columns.
    fn names(&self, name: &str, alias: Option<&TableAlias>) -> Result<Relations, SqlError> {
        let mut columns: Vec<(String, DataType)> =
            self.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
        let mut known_as = object_name(name).to_string();
        if let Some(alias) = alias {
            known_as = name_of(&alias.name)?;
            for (column, renamed) in columns.iter_mut().zip(&alias.columns) {
                column.0 = name_of(&renamed.name)?;
            }
        }
        let relation = NamedRelation {
            table: (known_as != object_name(name)).then(|| object_name(name).to_string()),
            schema: alias.is_none().then(|| schema_of(name).to_string()),
            name: known_as,
            columns,
            first: 0,
            hidden: Vec::new(),
            may_be_missing: false,
            row_type: None,
            keyed: false,
            records: Vec::new(),
        };
        Ok(Relations { relations: vec![relation], merged: Vec::new(), joins: Vec::new() })
    }

    /// What is said of the columns of the view, which stand from `first` on, said of those of the table.
    fn over_table(&self, first: usize, mut expressions: Vec<Expression>) -> Vec<Expression> {
        fn put_in(expression: &mut Expression, first: usize, values: &[Expression]) {
            if let Kind::Column(ordinal) = expression.kind {
                if let Some(position) = usize::from(ordinal).checked_sub(first) {
                    *expression = values[position].clone();
                }
                return;
            }
            expression.operands_mut().into_iter().for_each(|operand| put_in(operand, first, values));
        }
        expressions.iter_mut().for_each(|expression| put_in(expression, first, &self.values));
        expressions
    }

    /// The name in the table of a column that is assigned.
    ///
    /// # Errors
    /// `42703` where the view has no such column, `0A000` where it is none of the table.
    pub fn base_name(&self, column: &ObjectName, change: Change) -> Result<ObjectName, SqlError> {
        let [ast::ObjectNamePart::Identifier(ident)] = column.0.as_slice() else {
            return Err(SqlError::unsupported(format_args!("the target {column} in a view")));
        };
        let name = name_of(ident)?;
        let position = self.columns.iter().position(|column| column.name == name).ok_or_else(|| {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", object_name(&self.name));
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        match self.values[position].kind {
            Kind::Column(ordinal) => {
                let base = self.table.columns[usize::from(ordinal)].name.clone();
                Ok(ObjectName::from(vec![Ident { span: ident.span, ..Ident::with_quote('"', base) }]))
            }
            _ => {
                let verb = if matches!(change, Change::Insert) { "insert into" } else { "update" };
                let message =
                    format!("cannot {verb} column \"{name}\" of view \"{}\"", object_name(&self.name));
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(
                    "View columns that are not columns of their base relation are not updatable.".to_string(),
                ))
            }
        }
    }

    /// The columns of an INSERT, by their names in the table.
    ///
    /// # Errors
    /// As [`ViewTarget::base_name`].
    pub fn insert_columns(&self, insert: &ast::Insert) -> Result<Vec<ObjectName>, SqlError> {
        if !insert.columns.is_empty() {
            return insert.columns.iter().map(|column| self.base_name(column, Change::Insert)).collect();
        }
        let given = match insert.source.as_deref().map(|query| query.body.as_ref()) {
            Some(SetExpr::Values(values)) => values.rows.first().map_or(0, |row| row.content.len()),
            Some(_) => self.columns.len(),
            None => 0,
        };
        let named =
            |column: &OutputColumn| ObjectName::from(vec![Ident::with_quote('"', column.name.clone())]);
        // One value too many is refused as for a table.
        self.columns.iter().take(given).map(|column| self.base_name(&named(column), Change::Insert)).collect()
    }

    /// RETURNING, over the row of the table.
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn returning(
        &self,
        scope: &VariableScope,
        alias: Option<&TableAlias>,
        returning: Option<&[SelectItem]>,
    ) -> Result<Option<Returning>, SqlError> {
        let Some(items) = returning else { return Ok(None) };
        let names = self.names(&self.name, alias)?;
        let binder = Binder::new(scope, Source::Relations(&names));
        binder.in_clause(Some("RETURNING"));
        let (projection, columns) = bind_items(&binder, Wildcards::Relations(&names), scope, items)?;
        let projection = self.over_table(0, projection);
        let uses = columns_of(&projection);
        Ok(Some(Returning { projection, columns: columns.into(), uses, beside: 0 }))
    }

    /// Notes what a change of the view needs, and what it fires.
    pub fn note(&self, tables: &Tables, scope: &VariableScope, privileges: Privileges) {
        scope.note_use(&self.name, privileges);
        scope.note_fired(tables.fired_by(&self.table));
    }

    /// The view, with the other relations beside it: the rows, their names, the key of the table's row, and where the columns of the
    /// view stand, which are none of the row.
    fn beside(
        &self,
        query: QueryScope<'_>,
        level: &Level<'_>,
        alias: Option<&TableAlias>,
        others: &[TableWithJoins],
    ) -> Result<(LogicalPlan, Relations, Expression, usize), SqlError> {
        let view = self.names(&self.name, alias)?.relations.remove(0);
        let (item, mut names, key) = bind_from_base(query, level, (&view.name, &self.table), others)?;
        let first = names.width();
        names.relations[0] = NamedRelation { first, ..view };
        Ok((item, names, key, first))
    }

    /// An UPDATE of the view.
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn bind_update(
        &self,
        outer: QueryScope<'_>,
        update: &ast::Update,
        others: &[TableWithJoins],
    ) -> Result<BoundUpdate, SqlError> {
        let (tables, scope) = (outer.tables, outer.variables);
        let alias = only_table(&update.table)?;
        self.note(tables, scope, Privileges::UPDATE | Privileges::SELECT);
        let list = self.base_assignments(&update.assignments, Change::Update)?;
        outer.beside(|query, level| {
            let (mut item, names, key, first) = self.beside(query, level, alias, others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let assignments = bind_assignments(&self.table, &binder, &list)?;
            let mut conditions = self.over_table(first, bind_where(&binder, update.selection.as_ref())?);
            conditions.extend(self.conditions.iter().cloned());
            let mut projection = vec![key];
            let (ordinals, values): (Vec<u16>, Vec<Expression>) = assignments.into_iter().unzip();
            let mut slots = Vec::with_capacity(ordinals.len());
            for (ordinal, value) in ordinals.into_iter().zip(self.over_table(first, values)) {
                slots.push((ordinal, Expression::slot(projection.len(), value.data_type)));
                projection.push(value);
            }
            let items = update.returning.as_deref();
            let over_table = |expressions| self.over_table(first, expressions);
            let returning = bind_returning_beside(
                &self.table,
                &binder,
                &names,
                scope,
                items,
                over_table,
                &mut projection,
            )?;
            let row_check = restrict_update(tables, scope, &self.table, &mut item, true)?;
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = UpdatePlan::new(self.table.clone(), Vec::new(), slots);
            let plan = Arc::new(plan.checking(row_check));
            Ok(BoundUpdate { plan, access, filter: None, filter_columns: ColumnSet::EMPTY, returning })
        })
    }

    /// A DELETE from the view.
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn bind_delete(
        &self,
        outer: QueryScope<'_>,
        from: &TableWithJoins,
        delete: &ast::Delete,
    ) -> Result<BoundDelete, SqlError> {
        let (tables, scope) = (outer.tables, outer.variables);
        let alias = only_table(from)?;
        self.note(tables, scope, Privileges::DELETE | Privileges::SELECT);
        let others = delete.using.as_deref().unwrap_or_default();
        outer.beside(|query, level| {
            let (mut item, names, key, first) = self.beside(query, level, alias, others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let mut conditions = self.over_table(first, bind_where(&binder, delete.selection.as_ref())?);
            conditions.extend(self.conditions.iter().cloned());
            let mut projection = vec![key];
            let items = delete.returning.as_deref();
            let over_table = |expressions| self.over_table(first, expressions);
            let returning = bind_returning_beside(
                &self.table,
                &binder,
                &names,
                scope,
                items,
                over_table,
                &mut projection,
            )?;
            restrict_delete(tables, scope, &self.table, &mut item, true)?;
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = Arc::new(DeletePlan::new(self.table.clone(), Vec::new()));
            let (filter, filter_columns) = (None, ColumnSet::EMPTY);
            Ok(BoundDelete { plan, access, filter, filter_columns, returning, truncation: None })
        })
    }
}

/// What of a query makes its rows others than those of a table.
fn part_in_the_way(query: &Query) -> Option<&'static str> {
    if query.with.is_some() {
        return Some("WITH");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Some("LIMIT or OFFSET");
    }
    match query.body.as_ref() {
        SetExpr::SetOperation { .. } => Some("UNION, INTERSECT, or EXCEPT"),
        SetExpr::Select(select) => part_of_select(select),
        _ => None,
    }
}

fn part_of_select(select: &Select) -> Option<&'static str> {
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, more) => !keys.is_empty() || !more.is_empty(),
    };
    if matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_))) {
        return Some("DISTINCT");
    }
    if grouped {
        return Some("GROUP BY");
    }
    select.having.is_some().then_some("HAVING")
}

/// The alias of the view, which stands alone.
fn only_table(from: &TableWithJoins) -> Result<Option<&TableAlias>, SqlError> {
    if !from.joins.is_empty() {
        return Err(SqlError::unsupported("JOIN here").hint("Use it in a SELECT."));
    }
    match &from.relation {
        TableFactor::Table { alias, .. } => Ok(alias.as_ref()),
        _ => Err(SqlError::unsupported("this target")),
    }
}
