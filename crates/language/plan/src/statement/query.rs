//! Queries inside of one another: scopes, WITH, set operations, VALUES, and what a query needs of the one around it.

use crate::condition::conjunction;
use crate::expression::{Binder, Expression, Kind, NamedRelation, Relations, Source};
use crate::invariant::broken;
use crate::scope::VariableScope;
use crate::statement::from::plan_from;
use crate::statement::output::check_list;
use crate::statement::relation::{Relation, SetOperation};
use crate::statement::select::{BoundSelect, Distinctness, From};
use crate::statement::select_query::{Outputs, bind_limit, bind_order, bind_select};
use crate::statement::with::refuse_change;
use crate::tables::Tables;
use crate::view::ViewPlan;
use sqlparser::ast::{self, Cte, Query, SetExpr, SetOperator, SetQuantifier, Spanned};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::names::name_of;
use types::{DataType, OutputColumn, SearchPath, SqlError, SqlState, common_type};

/// Queries that one statement may consist of, each use of a WITH query counted.
const QUERIES_MAX: usize = 256;

/// What the names in a query stand for besides columns.
#[derive(Clone, Copy)]
pub struct QueryScope<'a> {
    /// Tables.
    pub tables: &'a Tables,
    /// Variables and parameters.
    pub variables: &'a VariableScope,
    /// WITH queries, the innermost first.
    common: Option<&'a CommonTable<'a>>,
    /// Queries bound so far.
    queries: &'a Cell<usize>,
    /// Numbers of the WITH queries whose rows were named that are kept while the statement runs.
    kept: &'a RefCell<Vec<usize>>,
}

/// A WITH query.
pub(super) struct CommonTable<'a> {
    name: String,
    columns: Vec<String>,
    source: CommonSource<'a>,
    /// Those before it.
    scope: QueryScope<'a>,
}

/// Where the rows of a WITH query come from.
#[derive(Clone, Copy)]
pub(super) enum CommonSource<'a> {
    /// A query, bound where it is used, every time. The flag: it may name itself.
    Query(&'a Query, bool),
    /// They are kept while the statement runs, under this number: those that a recursive query has found last, inside of
    /// it, and those that a change of rows returns. Their columns; none where it returns none.
    Kept(usize, Option<&'a [OutputColumn]>),
}

/// One query among nested ones: what it needs of the query around it.
pub struct Level<'a> {
    /// Binds the expressions of the query around it, at its place; `None`: there is none.
    pub parent: Option<&'a Binder<'a>>,
    /// Over the columns of the query around it, by number of the argument.
    arguments: RefCell<Vec<Expression>>,
}

impl<'a> Level<'a> {
    fn new(parent: Option<&'a Binder<'a>>) -> Level<'a> {
        Level { parent, arguments: RefCell::default() }
    }

    /// How many arguments this query and those around it have.
    pub fn handed(&self) -> Vec<usize> {
        let mut counts = vec![self.arguments.borrow().len()];
        let mut next = self.parent;
        while let Some((_, level)) = next.and_then(|binder| binder.enclosing()) {
            counts.push(level.arguments.borrow().len());
            next = level.parent;
        }
        counts
    }

    /// Forgets the arguments that came behind these.
    pub fn forget_since(&self, counts: &[usize]) {
        let Some((count, mut rest)) = counts.split_first() else { return };
        self.arguments.borrow_mut().truncate(*count);
        let mut next = self.parent;
        while let (Some((_, level)), Some((count, others))) =
            (next.and_then(|binder| binder.enclosing()), rest.split_first())
        {
            level.arguments.borrow_mut().truncate(*count);
            (next, rest) = (level.parent, others);
        }
    }

    /// The argument with this value.
    pub fn argument(&self, value: Expression) -> Expression {
        let mut arguments = self.arguments.borrow_mut();
        let data_type = value.data_type;
        let number = arguments.iter().position(|known| *known == value).unwrap_or_else(|| {
            arguments.push(value);
            arguments.len() - 1
        });
        Expression { kind: Kind::Argument(number as u16), data_type }
    }
}

impl<'a> QueryScope<'a> {
    /// What stands beside this one in a statement.
    pub(super) fn beside<R>(
        self,
        bind: impl FnOnce(QueryScope<'a>, &Level<'_>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        bind(self, &Level::new(None))
    }

    /// A number that no other query of the statement has.
    pub(super) fn next_number(self) -> usize {
        self.queries.set(self.queries.get() + 1);
        self.queries.get()
    }

    /// Numbers of the WITH queries whose rows were named since this was asked last.
    pub(super) fn take_kept(self) -> Vec<usize> {
        self.kept.take()
    }

    /// A binder for the expressions of a query.
    pub fn binder<'b>(self, level: &'b Level<'b>, source: Source<'b>) -> Binder<'b>
    where
        'a: 'b,
    {
        Binder::new(self.variables, source).in_query(self, level)
    }

    /// The WITH query of this name.
    pub(super) fn common(self, name: &str) -> Option<&'a CommonTable<'a>> {
        let mut next = self.common;
        while let Some(common) = next {
            if common.name == name {
                return Some(common);
            }
            next = common.scope.common;
        }
        None
    }
}

impl<'a> CommonTable<'a> {
    /// A query of WITH, after those that `scope` knows.
    pub fn new(cte: &'a Cte, recursive: bool, scope: QueryScope<'a>) -> Result<CommonTable<'a>, SqlError> {
        let Cte { alias, query, from: None, materialized: _, closing_paren_token: _ } = cte else {
            return Err(SqlError::unsupported("this form of WITH"));
        };
        let name = name_of(&alias.name)?;
        let columns = alias.columns.iter().map(|column| name_of(&column.name)).collect::<Result<_, _>>()?;
        Ok(CommonTable { name, columns, source: CommonSource::Query(query, recursive), scope })
    }

    /// The same, whose rows are kept.
    pub fn kept<'k>(&self, number: usize, columns: Option<&'k [OutputColumn]>) -> CommonTable<'k>
    where
        'a: 'k,
    {
        let (name, scope) = (self.name.clone(), self.scope);
        CommonTable { name, columns: Vec::new(), source: CommonSource::Kept(number, columns), scope }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is bound behind it, and knows it.
    pub fn behind(&'a self) -> QueryScope<'a> {
        QueryScope { common: Some(self), ..self.scope }
    }

    /// The number and the columns of rows that are kept; `None`: the query is bound for each use.
    ///
    /// # Errors
    /// `0A000` where it returns none.
    pub fn kept_rows(&self) -> Result<Option<(usize, &'a [OutputColumn])>, SqlError> {
        match self.source {
            CommonSource::Query(..) => Ok(None),
            CommonSource::Kept(number, Some(columns)) => {
                self.scope.kept.borrow_mut().push(number);
                Ok(Some((number, columns)))
            }
            CommonSource::Kept(_, None) => {
                let message = format!("WITH query \"{}\" does not have a RETURNING clause", self.name);
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    /// Binds the query for one use.
    ///
    /// # Errors
    /// As [`bind_query`].
    pub fn bind(&self) -> Result<BoundSelect, SqlError> {
        let CommonSource::Query(query, recursive) = self.source else {
            return Err(broken("a WITH query whose rows are kept"));
        };
        let mut select = match self.bind_recursive(query, recursive)? {
            Some(select) => select,
            None => bind_nested(self.scope, query, None)?.0,
        };
        select.columns = self.renamed(&select.columns)?;
        Ok(select)
    }

    /// Its columns, with the names that WITH gives them.
    ///
    /// # Errors
    /// `42P10` where there are more names.
    pub fn renamed(&self, columns: &[OutputColumn]) -> Result<Arc<[OutputColumn]>, SqlError> {
        if self.columns.len() > columns.len() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                self.name,
                columns.len(),
                self.columns.len()
            );
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        let mut columns = columns.to_vec();
        for (column, name) in columns.iter_mut().zip(&self.columns) {
            column.name.clone_from(name);
        }
        Ok(columns.into())
    }

    /// `first UNION [ALL] then`, where the second side names the query itself; `None` where it is none of these.
    fn bind_recursive(&self, query: &Query, recursive: bool) -> Result<Option<BoundSelect>, SqlError> {
        let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            query.body.as_ref()
        else {
            return Ok(None);
        };
        let all = match set_quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Ok(None),
        };
        if !recursive || has_order_or_limit(query) || query.with.is_some() {
            return Ok(None);
        }
        let level = Level::new(None);
        let first = bind_side(self.scope, &level, left)?;
        let mut columns = first.columns.to_vec();
        for (column, name) in columns.iter_mut().zip(&self.columns) {
            column.name.clone_from(name);
        }
        let number = self.scope.queries.get();
        let itself = self.kept(number, Some(&columns));
        let then = bind_side(itself.behind(), &level, right)?;
        if then.columns.len() != first.columns.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        let types: Vec<DataType> = first.columns.iter().map(|column| column.data_type).collect();
        let then = close_literals(self.scope.variables, then, &types)?;
        for (position, (column, expected)) in then.columns.iter().zip(&types).enumerate() {
            if common_type([column.data_type, *expected]).map(|common| common.family())
                != Some(expected.family())
            {
                let message = format!(
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    self.name,
                    position + 1,
                    expected.family(),
                    column.data_type.family()
                );
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                    .hint("Cast the output of the non-recursive term to the correct type."));
            }
        }
        let sides = Box::new([first, with_types(then, &types)]);
        Ok(Some(all_of(columns.into(), Relation::Recursive { number, all, sides })))
    }
}

/// The columns of a relation, as they are.
fn all_of(columns: Arc<[OutputColumn]>, relation: Relation) -> BoundSelect {
    let column = |(ordinal, column): (usize, &OutputColumn)| Expression::column(ordinal, column.data_type);
    let projection = columns.iter().enumerate().map(column).collect();
    outputs_of(relation, projection, columns)
}

/// These outputs over the rows of a relation.
fn outputs_of(relation: Relation, projection: Vec<Expression>, columns: Arc<[OutputColumn]>) -> BoundSelect {
    BoundSelect {
        source: From::Relation(Box::new(relation)),
        filter: None,
        grouping: None,
        windows: Vec::new(),
        projection,
        columns,
        distinct: Distinctness::All,
        order: Vec::new(),
        reverse: false,
        limit: None,
        offset: None,
        has_subqueries: false,
        literals: Vec::new(),
    }
}

/// Binds a query that stands alone.
///
/// # Errors
/// As [`crate::statement::bind_statement`].
pub fn bind_query(tables: &Tables, scope: &VariableScope, query: &Query) -> Result<BoundSelect, SqlError> {
    in_statement(tables, scope, |scope, _| bind_nested(scope, query, None)).map(|(select, _)| select)
}

/// Binds the query of a view for one use.
///
/// # Errors
/// As [`crate::statement::bind_statement`]: nothing, as long as nothing is altered under the view.
pub(super) fn bind_view(scope: QueryScope<'_>, view: &ViewPlan) -> Result<BoundSelect, SqlError> {
    // Its text has the names of the catalog.
    let tables = scope.tables.with_search_path(&SearchPath::default());
    let variables = VariableScope::for_procedure(None).with_routines(tables.routines());
    let inside = QueryScope { tables: &tables, variables: &variables, common: None, ..scope };
    let (mut select, _) = bind_nested(inside, &view.query, None)?;
    variables.called().iter().for_each(|called| scope.variables.note_call(called));
    let types: Vec<DataType> = view.columns.iter().map(|column| column.data_type).collect();
    select = with_types(select, &types);
    select.columns = view.columns.clone().into();
    Ok(select)
}

/// Binds an expression that stands alone: it may hold queries, but names no columns.
///
/// # Errors
/// As [`Binder::bind`].
pub fn bind_expression(
    tables: &Tables,
    scope: &VariableScope,
    expression: &ast::Expr,
) -> Result<Expression, SqlError> {
    in_statement(tables, scope, |query, level| query.binder(level, Source::Nothing).bind(expression))
}

/// The query with columns of these types, its open literals included.
///
/// # Errors
/// A literal that is no value of its type.
pub fn close_types(select: BoundSelect, types: &[DataType]) -> Result<BoundSelect, SqlError> {
    let scope = VariableScope::default();
    Ok(with_types(close_literals(&scope, select, types)?, types))
}

/// Binds something that may hold queries.
///
/// # Errors
/// Those of `bind`.
pub(super) fn in_statement<R>(
    tables: &Tables,
    variables: &VariableScope,
    bind: impl FnOnce(QueryScope<'_>, &Level<'_>) -> Result<R, SqlError>,
) -> Result<R, SqlError> {
    let (queries, kept) = Default::default();
    let scope = QueryScope { tables, variables, common: None, queries: &queries, kept: &kept };
    bind(scope, &Level::new(None))
}

/// The query that finds what an UPDATE or DELETE changes: these outputs over FROM under these conditions.
pub(super) fn finding(
    item: crate::statement::from::Item,
    conditions: Vec<Expression>,
    projection: Vec<Expression>,
) -> BoundSelect {
    let mut used: BTreeSet<u16> = BTreeSet::new();
    for expression in &projection {
        expression.any(&mut |inner| {
            if let Kind::Column(ordinal) = inner.kind {
                used.insert(ordinal);
            }
            false
        });
    }
    let has_subqueries = projection.iter().chain(&conditions).any(Expression::runs_anything);
    let (relation, left_over) = plan_from(item, conditions, used);
    let columns: Vec<OutputColumn> = projection
        .iter()
        .map(|value| OutputColumn { name: String::new(), data_type: value.data_type })
        .collect();
    let filter = conjunction(left_over);
    BoundSelect { filter, has_subqueries, ..outputs_of(relation, projection, columns.into()) }
}

/// Binds a query inside of another one. Gives it with what it is to be handed of the rows around it.
///
/// # Errors
/// As [`crate::statement::bind_statement`].
pub fn bind_nested(
    scope: QueryScope<'_>,
    query: &Query,
    parent: Option<&Binder<'_>>,
) -> Result<(BoundSelect, Vec<Expression>), SqlError> {
    scope.queries.set(scope.queries.get() + 1);
    if scope.queries.get() > QUERIES_MAX {
        let message = format!("a statement consists of more than {QUERIES_MAX} queries (QUERIES_MAX)");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let level = Level::new(parent);
    let select = with_common(scope, &level, query, query.with.as_ref().map_or(&[], |with| &with.cte_tables))?;
    Ok((select, level.arguments.into_inner()))
}

/// Makes the WITH queries known one after the other, then binds the query.
fn with_common(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
    rest: &[Cte],
) -> Result<BoundSelect, SqlError> {
    let Some((next, rest)) = rest.split_first() else { return bind_body(scope, level, query) };
    let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
    refuse_change(scope, next)?;
    let common = CommonTable::new(next, recursive, scope)?;
    with_common(common.behind(), level, query, rest)
}

pub(super) fn bind_body(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
) -> Result<BoundSelect, SqlError> {
    refuse_query_forms(scope.variables, query)?;
    match query.body.as_ref() {
        SetExpr::Select(select) => bind_select(scope, level, query, select),
        SetExpr::Query(inner) => {
            let (select, arguments) = bind_nested_in(scope, level, inner)?;
            match has_order_or_limit(query) {
                false if arguments.is_empty() => Ok(select),
                _ => around(scope, query, relation_of(select, arguments)),
            }
        }
        SetExpr::SetOperation { op, set_quantifier, left, right } => {
            let (columns, relation) = bind_set(scope, level, *op, *set_quantifier, left, right)?;
            around(scope, query, (columns, relation))
        }
        SetExpr::Values(values) => {
            let bound = bind_values(scope, level, values)?;
            around(scope, query, bound)
        }
        SetExpr::Table(_) => Err(scope.variables.located(SqlError::unsupported("TABLE"), query.span())),
        _ => Err(scope.variables.located(SqlError::unsupported("this form of query"), query.span())),
    }
}

fn has_order_or_limit(query: &Query) -> bool {
    query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some()
}

/// Binds a query at the same place as this level: what it needs from around, this one needs.
fn bind_nested_in(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
) -> Result<(BoundSelect, Vec<Expression>), SqlError> {
    let nothing = Relations::default();
    let binder = scope.binder(level, Source::Relations(&nothing));
    bind_nested(scope, query, Some(&binder))
}

/// The output columns of a relation, and the relation.
type Rows = (Arc<[OutputColumn]>, Relation);

fn relation_of(select: BoundSelect, arguments: Vec<Expression>) -> Rows {
    let columns = select.columns.clone();
    (columns, Relation::Query { query: Arc::new(select), arguments: Some(arguments), filter: None })
}

/// All columns of a relation, in the order and within the limits that a query sets.
fn around(scope: QueryScope<'_>, query: &Query, (columns, relation): Rows) -> Result<BoundSelect, SqlError> {
    let projection: Vec<Expression> = columns
        .iter()
        .enumerate()
        .map(|(ordinal, column)| Expression::column(ordinal, column.data_type))
        .collect();
    let named = columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
    let names = Relations {
        relations: vec![NamedRelation {
            name: String::new(),
            table: None,
            schema: None,
            columns: named,
            first: 0,
            hidden: Vec::new(),
            keyed: false,
            may_be_missing: false,
            row_type: None,
            records: Vec::new(),
        }],
        merged: Vec::new(),
        joins: Vec::new(),
    };
    let binder = Binder::new(scope.variables, Source::Relations(&names));
    let output = Outputs { projection: &projection, columns: &columns };
    let order = bind_order(&binder, scope.variables, query.order_by.as_ref(), &output, false)?;
    let (limit, offset) = bind_limit(scope.variables, query.limit_clause.as_ref(), query.fetch.as_ref())?;
    Ok(BoundSelect { order, limit, offset, ..outputs_of(relation, projection, columns) })
}

fn bind_values(scope: QueryScope<'_>, level: &Level<'_>, values: &ast::Values) -> Result<Rows, SqlError> {
    let nothing = Relations::default();
    let binder = scope.binder(level, Source::Relations(&nothing));
    binder.in_clause(Some("VALUES"));
    let mut rows: Vec<Vec<Expression>> = Vec::with_capacity(values.rows.len());
    for row in &values.rows {
        check_list(row.content.len().saturating_sub(1))?;
        let row = row.content.iter().map(|value| binder.bind(value)).collect::<Result<Vec<_>, _>>()?;
        if rows.first().is_some_and(|first| first.len() != row.len()) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        rows.push(row);
    }
    let width = rows.first().map_or(0, Vec::len);
    let mut columns = Vec::with_capacity(width);
    for position in 0..width {
        let types = rows.iter().map(|row| row[position].data_type);
        let data_type = common_type(types.clone()).ok_or_else(|| cannot_match("VALUES", types))?;
        for row in &mut rows {
            let null = Expression::constant(types::Value::Null, data_type);
            let value = std::mem::replace(&mut row[position], null);
            row[position] = binder.cast_to(value, data_type)?;
        }
        columns.push(OutputColumn { name: format!("column{}", position + 1), data_type });
    }
    Ok((columns.into(), Relation::Values(rows)))
}

fn cannot_match(what: &str, types: impl Iterator<Item = DataType>) -> SqlError {
    let mut families: Vec<String> = Vec::new();
    for data_type in types.filter(|data_type| *data_type != DataType::Unknown) {
        let family = data_type.family().to_string();
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let message = format!("{what} types {} cannot be matched", families.join(" and "));
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

fn bind_set(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    operator: SetOperator,
    quantifier: SetQuantifier,
    left: &SetExpr,
    right: &SetExpr,
) -> Result<Rows, SqlError> {
    let (operation, name) = match operator {
        SetOperator::Union => (SetOperation::Union, "UNION"),
        SetOperator::Intersect => (SetOperation::Intersect, "INTERSECT"),
        SetOperator::Except | SetOperator::Minus => (SetOperation::Except, "EXCEPT"),
    };
    let all = match quantifier {
        SetQuantifier::All => true,
        SetQuantifier::None | SetQuantifier::Distinct => false,
        _ => return Err(SqlError::unsupported(format_args!("{name} BY NAME"))),
    };
    let sides = [bind_side(scope, level, left)?, bind_side(scope, level, right)?];
    if sides[0].columns.len() != sides[1].columns.len() {
        let message = format!("each {name} query must have the same number of columns");
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    let sides = sides.map(open_literals);
    let mut columns = Vec::with_capacity(sides[0].columns.len());
    for (left, right) in sides[0].columns.iter().zip(sides[1].columns.iter()) {
        let types = [left.data_type, right.data_type];
        let data_type = common_type(types).ok_or_else(|| cannot_match(name, types.into_iter()))?;
        columns.push(OutputColumn { name: left.name.clone(), data_type });
    }
    let types: Vec<DataType> = columns.iter().map(|column| column.data_type).collect();
    let [left, right] = sides;
    let (left, right) =
        (close_literals(scope.variables, left, &types)?, close_literals(scope.variables, right, &types)?);
    let sides = Box::new([with_types(left, &types), with_types(right, &types)]);
    Ok((columns.into(), Relation::Set { operation, all, sides }))
}

/// A side of a set operation. It shares the level: its arguments are those of the whole.
fn bind_side(scope: QueryScope<'_>, level: &Level<'_>, side: &SetExpr) -> Result<BoundSelect, SqlError> {
    scope.queries.set(scope.queries.get() + 1);
    if scope.queries.get() > QUERIES_MAX {
        let message = format!("a statement consists of more than {QUERIES_MAX} queries (QUERIES_MAX)");
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message));
    }
    let query = Query {
        with: None,
        body: Box::new(side.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    };
    bind_body(scope, level, &query)
}

/// A literal in the output of a query takes the type of whatever its column meets, as long as nothing has looked at it.
fn open_literals(mut select: BoundSelect) -> BoundSelect {
    let mut columns = select.columns.to_vec();
    for (column, _) in columns.iter_mut().zip(&select.literals).filter(|(_, literal)| **literal) {
        column.data_type = DataType::Unknown;
    }
    select.columns = columns.into();
    select
}

/// Gives the literals that are still open these types.
///
/// # Errors
/// A literal that is no value of its type.
pub(super) fn close_literals(
    scope: &VariableScope,
    select: BoundSelect,
    types: &[DataType],
) -> Result<BoundSelect, SqlError> {
    let mut select = open_literals(select);
    let binder = Binder::new(scope, Source::Nothing);
    let mut columns = select.columns.to_vec();
    for ((column, value), data_type) in columns.iter_mut().zip(&mut select.projection).zip(types) {
        if column.data_type == DataType::Unknown {
            let literal = Expression { data_type: DataType::Unknown, ..value.clone() };
            *value = binder.cast_to(literal, *data_type)?;
            column.data_type = *data_type;
        }
    }
    select.columns = columns.into();
    Ok(select)
}

/// The query with columns of these types.
pub(super) fn with_types(select: BoundSelect, types: &[DataType]) -> BoundSelect {
    if select.columns.iter().zip(types).all(|(column, data_type)| column.data_type == *data_type) {
        return select;
    }
    let cast = |(ordinal, (column, data_type)): (usize, (&OutputColumn, &DataType))| {
        let value = Expression::column(ordinal, column.data_type);
        match column.data_type == *data_type {
            true => value,
            false => Expression { kind: Kind::Cast(Box::new(value)), data_type: *data_type },
        }
    };
    let projection: Vec<Expression> = select.columns.iter().zip(types).enumerate().map(cast).collect();
    let columns: Vec<OutputColumn> = select
        .columns
        .iter()
        .zip(types)
        .map(|(column, data_type)| OutputColumn { name: column.name.clone(), data_type: *data_type })
        .collect();
    let relation = Relation::Query { query: Arc::new(select), arguments: None, filter: None };
    outputs_of(relation, projection, columns.into())
}

fn refuse_query_forms(scope: &VariableScope, query: &Query) -> Result<(), SqlError> {
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE")
            .hint("Leave it out: every transaction is serializable."));
    }
    let plain = query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    match plain {
        true => Ok(()),
        false => Err(scope.located(SqlError::unsupported("this form of SELECT"), query.span())),
    }
}
