//! Views as targets of INSERT, UPDATE and DELETE: those that show rows of one table, each once, as PostgreSQL defines them, and those
//! whose INSTEAD OF triggers do it, which are the table then.
//!
//! What a statement says of the columns of the view is bound over these, and then said of the table: every column of the view
//! is a value over the columns of the table, and its WHERE one more condition.

use crate::command::{DeletePlan, UpdatePlan};
use crate::condition::{Condition, conjunction};
use crate::expression::{Binder, Catalogued, Expression, Kind, NamedRelation, Relations, Source, columns_of};
use crate::logical::LogicalPlan;
use crate::row_check::{RowCheck, ViewCheck};
use crate::row_security::{restrict_delete, restrict_update};
use crate::scope::VariableScope;
use crate::statement::Access;
use crate::statement::assignments::bind_assignments;
use crate::statement::change::{BoundDelete, BoundUpdate, Returning};
use crate::statement::conditions::bind_where;
use crate::statement::from::{bind_from_base, bind_from_view};
use crate::statement::level::{Level, in_statement};
use crate::statement::only::{nothing_of, single_relation};
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
use syntax::parse::subscripts::is_subscript;
use types::session_format::{SessionFormat, session_format, within_format};
use types::{
    CheckOption, ColumnSet, DataType, ExecutionVersion, OutputColumn, Privileges, SearchPath, SqlError,
    SqlState, TriggerEvent, object_name, schema_of,
};

/// What is to be done with a view's rows.
#[derive(Clone, Copy)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    fn event(self) -> TriggerEvent {
        match self {
            Change::Insert => TriggerEvent::Insert,
            Change::Update => TriggerEvent::Update,
            Change::Delete => TriggerEvent::Delete,
        }
    }

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

/// The error of a change of rows that follow from a query.
fn unchangeable(table: &TablePlan) -> SqlError {
    let message = format!("cannot change materialized view \"{}\"", table.name);
    SqlError::new(SqlState(*b"42809"), message)
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
    /// What views with CHECK OPTION ask of new rows, the innermost first.
    checks: Vec<ViewCheck>,
    /// It is a partition: its columns have the table's defaults.
    pub is_partition: bool,
    /// The partitions among the views that it goes through, and what each has.
    pub partitions: Vec<(Expression, String)>,
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
            return match tables.get(&called) {
                Ok(table) if table.materialized.is_some() => Err(unchangeable(table)),
                _ => Ok(None),
            };
        }
        let definition = match tables.version() >= ExecutionVersion::V10 {
            true => SessionFormat::default(),
            // Its literals were read as those of the statement.
            false => session_format(),
        };
        let mut target =
            within_format(definition, || ViewTarget::of(tables, scope, &called, (change, false)))?;
        if tables.view(&called).is_some_and(|view| view.is_granted) && !target.shows_whole_rows() {
            target.table = Arc::new(target.table.without_details());
        }
        Ok(Some(target))
    }

    /// `cascades`: a view above has CASCADED CHECK OPTION.
    fn of(
        tables: &Tables,
        scope: &VariableScope,
        name: &str,
        (change, cascades): (Change, bool),
    ) -> Result<ViewTarget, SqlError> {
        let single = "Views that do not select from a single table or view are not automatically updatable.";
        let not_single = || change.refused(name, single);
        let view = tables.view(name).ok_or_else(not_single)?;
        if let Some(target) = view.instead_at(change.event()) {
            return Ok(ViewTarget::whole(target));
        }
        let cascades = cascades || view.check_option == Some(CheckOption::Cascaded);
        if let Some(part) = part_in_the_way(&view.query) {
            return Err(
                change.refused(name, &format!("Views containing {part} are not automatically updatable."))
            );
        }
        let SetExpr::Select(select) = view.query.body.as_ref() else { return Err(not_single()) };
        let (relation, only) = single_relation(select, tables.version()).ok_or_else(not_single)?;
        let TableFactor::Table { name: inner, alias, args: None, .. } = relation.as_ref() else {
            return Err(not_single());
        };
        // Its text has the names of the catalog.
        let tables = &tables.with_search_path(&SearchPath::default());
        let inner = tables.find(&table_name(inner)?);
        let below = match tables.view(&inner) {
            Some(_) => ViewTarget::of(tables, scope, &inner, (change, cascades))?,
            None => match tables.get(&inner)? {
                table if table.materialized.is_some() => return Err(not_single()),
                table => ViewTarget::whole(table),
            },
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
        conditions.splice(..0, nothing_of(tables, &inner, only));
        let mut partitions = below.partitions;
        if view.is_partition
            && let Some(condition) = conjunction(conditions.clone())
        {
            partitions.push((condition, object_name(name).to_string()));
        }
        let mut checks = below.checks;
        if (cascades || view.check_option.is_some()) && !conditions.is_empty() && !view.is_partition {
            let view = object_name(name).to_string();
            checks.push(ViewCheck { view, conditions: conditions.clone() });
        }
        conditions.extend(below.conditions);
        Ok(ViewTarget {
            table: below.table,
            name: name.to_string(),
            columns: view.columns.clone(),
            values,
            conditions,
            checks,
            is_partition: view.is_partition,
            partitions,
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
            checks: Vec::new(),
            is_partition: false,
            partitions: Vec::new(),
        }
    }

    /// Whether each column of the table is one of the view.
    fn shows_whole_rows(&self) -> bool {
        let shows = |ordinal: usize| {
            self.values
                .iter()
                .any(|value| matches!(value.kind, Kind::Column(of) if usize::from(of) == ordinal))
        };
        (0..self.table.columns.len()).all(shows)
    }

    /// Whether it asks anything of rows that are written through it.
    pub fn asks_of_rows(&self) -> bool {
        !self.checks.is_empty() || !self.partitions.is_empty()
    }

    /// What a new row has to keep: what policies ask, that partitions have it, and what views with CHECK OPTION ask.
    ///
    /// # Errors
    /// `0A000` where the condition of such a view queries the table itself: rows of the same statement go before, a query would see them,
    /// and PostgreSQL's does not.
    pub fn row_check(&self, of_policies: Option<Arc<RowCheck>>) -> Result<Option<Arc<RowCheck>>, SqlError> {
        let mut sees_itself = false;
        for condition in self.checks.iter().flat_map(|check| &check.conditions) {
            condition.any(&mut |inner| {
                if let Kind::Subquery(subquery) = &inner.kind {
                    subquery
                        .query
                        .visit_tables(&mut |scanned| sees_itself |= scanned.table.id == self.table.id);
                }
                false
            });
        }
        if sees_itself {
            let what = "CHECK OPTION where the condition of the view queries its table again";
            return Err(SqlError::unsupported(what).hint("Refuse the row in a trigger of the table."));
        }
        let within = RowCheck::within(of_policies, &self.partitions);
        Ok(RowCheck::with_views(within, self.checks.clone()))
    }

    /// What a partition of this name is: the table whose rows it has, and what is asked of them. `None`: it is none.
    ///
    /// # Errors
    /// None of a partition that a schema change has made.
    pub fn partition(
        tables: &Tables,
        scope: &VariableScope,
        name: &str,
    ) -> Result<Option<ViewTarget>, SqlError> {
        match tables.view(name).is_some_and(|view| view.is_partition) {
            true => ViewTarget::of(tables, scope, name, (Change::Insert, false)).map(Some),
            false => Ok(None),
        }
    }

    /// What is true of the rows that it shows.
    pub fn filter(&self) -> (Option<Condition>, ColumnSet) {
        (Condition::all(self.conditions.clone()), columns_of(&self.conditions))
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
            catalogued: Some(Catalogued {
                relation: name.to_string(),
                columns: self.columns.iter().map(|column| column.name.clone()).collect(),
                primary_key: Vec::new(),
            }),
            name: known_as,
            columns,
            first: 0,
            hidden: Vec::new(),
            may_be_missing: false,
            row_type: None,
            keyed: false,
            records: Vec::new(),
            origins: Vec::new(),
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
        let Some((ast::ObjectNamePart::Identifier(ident), rest)) = column.0.split_first() else {
            return Err(SqlError::unsupported(format_args!("the target {column} in a view")));
        };
        if !rest.is_empty() && !rest.iter().filter_map(|part| part.as_ident()).any(is_subscript) {
            return Err(SqlError::unsupported(format_args!("the target {column} in a view")));
        }
        let name = name_of(ident)?;
        let position = self.columns.iter().position(|column| column.name == name).ok_or_else(|| {
            let message =
                format!("column \"{name}\" of relation \"{}\" does not exist", object_name(&self.name));
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        match self.values[position].kind {
            Kind::Column(ordinal) => {
                let base = self.table.columns[usize::from(ordinal)].name.clone();
                let base = Ident { span: ident.span, ..Ident::with_quote('"', base) };
                let parts =
                    std::iter::once(ast::ObjectNamePart::Identifier(base)).chain(rest.iter().cloned());
                Ok(ObjectName(parts.collect()))
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
        let origins = names.origins(&projection);
        let projection = self.over_table(0, projection);
        let uses = columns_of(&projection);
        Ok(Some(Returning { projection, columns: columns.into(), origins, uses, beside: 0 }))
    }

    /// Notes what a change of the view needs, and what it fires.
    pub fn note(&self, tables: &Tables, scope: &VariableScope, privileges: Privileges) {
        scope.note_use(&self.name, privileges);
        scope.note_fired(tables.fired_by(&self.table));
    }

    /// The view, with the other relations beside it: the rows, their names, what names a row of the table (its key, or all of a view's
    /// columns), and where the columns of the view stand, which are none of the row.
    fn beside(
        &self,
        query: QueryScope<'_>,
        level: &Level<'_>,
        alias: Option<&TableAlias>,
        others: &[TableWithJoins],
    ) -> Result<(LogicalPlan, Relations, Vec<Expression>, usize), SqlError> {
        let view = self.names(&self.name, alias)?.relations.remove(0);
        let target = (view.name.as_str(), &self.table);
        let (item, mut names, found) = match self.table.id.is_view() {
            true => {
                let (item, names) = bind_from_view(query, level, target, others)?;
                let columns = (0..).zip(&self.table.columns);
                let columns = columns.map(|(ordinal, column)| Expression::column(ordinal, column.data_type));
                (item, names, columns.collect())
            }
            false => {
                let (item, names, key) = bind_from_base(query, level, target, others)?;
                (item, names, vec![key])
            }
        };
        let first = names.width();
        names.relations[0] = NamedRelation { first, ..view };
        Ok((item, names, found, first))
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
        self.note(tables, scope, changed_and_read(scope, Privileges::UPDATE));
        self.note_assigned(scope, &update.assignments);
        let list = self.base_assignments(&update.assignments, Change::Update)?;
        outer.beside(|query, level| {
            let (mut item, names, mut projection, first) = self.beside(query, level, alias, others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let assignments = bind_assignments(&self.table, &binder, &list)?;
            let mut conditions = self.over_table(first, bind_where(&binder, update.selection.as_ref())?);
            conditions.extend(self.conditions.iter().cloned());
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
            let row_check = RowCheck::within(row_check, &self.partitions);
            let access = Access::Found(Box::new(finding(item, conditions, projection)));
            let plan = UpdatePlan::new(self.table.clone(), Vec::new(), slots);
            let plan = Arc::new(plan.checking(self.row_check(row_check)?));
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
        self.note(tables, scope, changed_and_read(scope, Privileges::DELETE));
        let others = delete.using.as_deref().unwrap_or_default();
        outer.beside(|query, level| {
            let (mut item, names, mut projection, first) = self.beside(query, level, alias, others)?;
            let binder = query.binder(level, Source::Relations(&names));
            let mut conditions = self.over_table(first, bind_where(&binder, delete.selection.as_ref())?);
            conditions.extend(self.conditions.iter().cloned());
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

/// Why a view, whatever stands below it, cannot be changed as if it were a table; `None` where it can.
///
/// # Errors
/// What its CHECK OPTION cannot ask.
pub fn why_not_updatable(tables: &Tables, view: &str) -> Result<Option<String>, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    match ViewTarget::of(tables, &scope, view, (Change::Update, false)) {
        Ok(target) if target.values.iter().any(|value| matches!(value.kind, Kind::Column(_))) => {
            target.row_check(None).map(|_| None)
        }
        Ok(_) => {
            Ok(Some("Views that have no updatable columns are not automatically updatable.".to_string()))
        }
        // What is wrong with one that it reads is said when it is changed.
        Err(error) if error.message.ends_with(&format!("view \"{}\"", object_name(view))) => Ok(error.detail),
        Err(_) => Ok(None),
    }
}

/// What a change of a view needs. From version 10 on that it reads is noted of the columns that it looks at.
fn changed_and_read(scope: &VariableScope, change: Privileges) -> Privileges {
    match scope.version() >= ExecutionVersion::V10 {
        true => change,
        false => change | Privileges::SELECT,
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
