//! Binding of SELECT.

use super::Access;
use super::bind::{Wildcards, bind_items, bind_where, check_list};
use super::from::{bind_from, plan_from};
use super::relation::{Relation, SetOperation};
use super::select::{BoundSelect, Distinctness, From, Grouping, Scanned, SortKey};
use crate::aggregate::Aggregate;
use crate::expression::{Binder, Expression, Kind, NamedRelation, Relations, Source};
use crate::predicate::conjunction;
use crate::scope::{VariableScope, name_of};
use crate::table::{TablePlan, Tables};
use sqlparser::ast::{
    self, Cte, Distinct, Expr, Fetch, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Spanned, Value as Literal,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{DataType, OutputColumn, SqlError, SqlState, common_type};

/// Queries that one statement may consist of, each use of a WITH query counted.
const QUERIES_MAX: usize = 256;

/// What the names in a query stand for besides columns.
#[derive(Clone, Copy)]
pub(crate) struct QueryScope<'a> {
    /// Tables.
    pub tables: &'a Tables,
    /// Variables and parameters.
    pub variables: &'a VariableScope,
    /// WITH queries, the innermost first.
    common: Option<&'a CommonTable<'a>>,
    /// Queries bound so far.
    queries: &'a Cell<usize>,
}

/// A WITH query: bound where it is used, every time.
pub(super) struct CommonTable<'a> {
    name: String,
    columns: Vec<String>,
    query: &'a Query,
    /// It may name itself.
    recursive: bool,
    /// Inside of it: its number, and the columns of the rows that it has found.
    working: Option<(usize, &'a [OutputColumn])>,
    /// Those before it.
    scope: QueryScope<'a>,
}

/// One query among nested ones: what it needs of the query around it.
pub(crate) struct Level<'a> {
    /// Binds the expressions of the query around it, at its place; `None`: there is none.
    pub parent: Option<&'a Binder<'a>>,
    /// Over the columns of the query around it, by number of the argument.
    arguments: RefCell<Vec<Expression>>,
}

impl<'a> Level<'a> {
    fn new(parent: Option<&'a Binder<'a>>) -> Level<'a> {
        Level { parent, arguments: RefCell::default() }
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

impl CommonTable<'_> {
    /// Inside of a recursive query: its number, and the columns of the rows that it has found.
    pub fn working(&self) -> Option<(usize, &[OutputColumn])> {
        self.working
    }

    /// Binds the query for one use.
    ///
    /// # Errors
    /// As [`bind_query`].
    pub fn bind(&self) -> Result<BoundSelect, SqlError> {
        let mut select = match self.bind_recursive()? {
            Some(select) => select,
            None => bind_nested(self.scope, self.query, None)?.0,
        };
        if self.columns.len() > select.columns.len() {
            let message = format!(
                "WITH query \"{}\" has {} columns available but {} columns specified",
                self.name,
                select.columns.len(),
                self.columns.len()
            );
            return Err(SqlError::new(SqlState(*b"42P10"), message));
        }
        let mut columns = select.columns.to_vec();
        for (column, name) in columns.iter_mut().zip(&self.columns) {
            column.name.clone_from(name);
        }
        select.columns = columns.into();
        Ok(select)
    }

    /// `first UNION [ALL] then`, where the second side names the query itself; `None` where it is none of these.
    fn bind_recursive(&self) -> Result<Option<BoundSelect>, SqlError> {
        let SetExpr::SetOperation { op: SetOperator::Union, set_quantifier, left, right } =
            self.query.body.as_ref()
        else {
            return Ok(None);
        };
        let all = match set_quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Ok(None),
        };
        if !self.recursive || has_order_or_limit(self.query) || self.query.with.is_some() {
            return Ok(None);
        }
        let level = Level::new(None);
        let first = bind_side(self.scope, &level, left)?;
        let mut columns = first.columns.to_vec();
        for (column, name) in columns.iter_mut().zip(&self.columns) {
            column.name.clone_from(name);
        }
        let number = self.scope.queries.get();
        let itself = CommonTable {
            name: self.name.clone(),
            columns: Vec::new(),
            query: self.query,
            recursive: false,
            working: Some((number, &columns)),
            scope: self.scope,
        };
        let then = bind_side(QueryScope { common: Some(&itself), ..self.scope }, &level, right)?;
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
/// As [`super::bind_statement`].
pub(super) fn bind_query(
    tables: &Tables,
    scope: &VariableScope,
    query: &Query,
) -> Result<BoundSelect, SqlError> {
    in_statement(tables, scope, |scope, _| bind_nested(scope, query, None)).map(|(select, _)| select)
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
    let queries = Cell::new(0);
    bind(QueryScope { tables, variables, common: None, queries: &queries }, &Level::new(None))
}

/// The query that finds what an UPDATE or DELETE changes: these outputs over FROM under these conditions.
pub(super) fn finding(
    item: super::from::Item,
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
    let has_subqueries = projection.iter().chain(&conditions).any(Expression::has_subquery);
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
/// As [`super::bind_statement`].
pub(crate) fn bind_nested(
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
    let Cte { alias, query: inner, from: None, materialized: _, closing_paren_token: _ } = next else {
        return Err(SqlError::unsupported("this form of WITH"));
    };
    let name = name_of(&alias.name)?;
    let columns = alias.columns.iter().map(|column| name_of(&column.name)).collect::<Result<_, _>>()?;
    let common = CommonTable { name, columns, query: inner, recursive, working: None, scope };
    with_common(QueryScope { common: Some(&common), ..scope }, level, query, rest)
}

fn bind_body(scope: QueryScope<'_>, level: &Level<'_>, query: &Query) -> Result<BoundSelect, SqlError> {
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
            columns: named,
            first: 0,
            hidden: Vec::new(),
        }],
        merged: Vec::new(),
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
pub(crate) fn with_types(select: BoundSelect, types: &[DataType]) -> BoundSelect {
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

fn bind_select(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
    select: &Select,
) -> Result<BoundSelect, SqlError> {
    refuse_select_forms(scope.variables, select, query)?;
    let variables = scope.variables;
    let (item, names) = bind_from(scope, level, &select.from)?;
    let binder = scope.binder(level, Source::Relations(&names));
    let conditions = bind_where(&binder, select.selection.as_ref())?;
    binder.in_clause(None);
    let (mut projection, columns) =
        bind_items(&binder, Wildcards::Relations(&names), variables, &select.projection)?;
    let output = Outputs { projection: &projection, columns: &columns };
    let mut keys = bind_group_keys(&binder, variables, select, &output)?;
    let mut having = match &select.having {
        Some(having) => Some(binder.in_clause(None).bind_condition(having, "HAVING")?),
        None => None,
    };
    let mut distinct = match &select.distinct {
        None | Some(Distinct::All) => Distinctness::All,
        Some(Distinct::Distinct) => Distinctness::Distinct,
        Some(Distinct::On(expressions)) => {
            Distinctness::On(bind_distinct_on(&binder, variables, expressions, &output)?)
        }
    };
    let listed_only = distinct == Distinctness::Distinct;
    let mut order = bind_order(&binder, variables, query.order_by.as_ref(), &output, listed_only)?;
    if let Distinctness::On(expressions) = &distinct {
        check_distinct_on(expressions, &order)?;
    }
    let (limit, offset) = bind_limit(variables, query.limit_clause.as_ref(), query.fetch.as_ref())?;
    let aggregates = binder.take_aggregates();
    let on = match &distinct {
        Distinctness::On(expressions) => expressions.as_slice(),
        _ => &[],
    };
    let looked_at: Vec<&Expression> =
        expressions_of(&projection, &keys, &aggregates, having.as_ref(), &order).chain(on).collect();
    let has_subqueries = looked_at
        .iter()
        .chain(&conditions.iter().collect::<Vec<_>>())
        .any(|expression| expression.has_subquery());
    let mut used: BTreeSet<u16> = BTreeSet::new();
    for expression in &looked_at {
        expression.any(&mut |inner| {
            if let Kind::Column(ordinal) = inner.kind {
                used.insert(ordinal);
            }
            false
        });
    }
    let grouped = !aggregates.is_empty() || !keys.is_empty() || having.is_some();
    let mut reverse = false;
    if grouped {
        let regroup = Regroup { keys: &keys, names: &names };
        projection.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        having.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        order.iter_mut().try_for_each(|key| regroup.apply(&mut key.expression))?;
        if let Distinctness::On(expressions) = &mut distinct {
            expressions.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        }
    }
    let (source, filter) = match item {
        None => (From::Nothing, conjunction(conditions)),
        Some(item) => match plan_from(item, conditions, used) {
            (Relation::Table(scanned), left_over) if left_over.is_empty() && !has_subqueries => {
                let Scanned { table, access, .. } = &scanned;
                if !grouped && distinct == Distinctness::All && follows_key(table, access, &order) {
                    reverse = order.first().is_some_and(|_| reads_backwards(table, access, &order));
                    order.clear();
                }
                (From::Table(scanned), None)
            }
            (relation, left_over) => (From::Relation(Box::new(relation)), conjunction(left_over)),
        },
    };
    let grouping = grouped.then(|| Grouping { keys: std::mem::take(&mut keys), aggregates, having });
    let columns = columns.into();
    Ok(BoundSelect {
        source,
        filter,
        grouping,
        projection,
        columns,
        distinct,
        order,
        reverse,
        limit,
        offset,
        has_subqueries,
        literals: literals_of(&select.projection),
    })
}

/// Which outputs are literals without a type. None where `*` stands among them.
fn literals_of(items: &[SelectItem]) -> Vec<bool> {
    fn is_literal(expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => is_literal(inner),
            Expr::Value(value) => matches!(value.value, Literal::SingleQuotedString(_) | Literal::Null),
            _ => false,
        }
    }
    let literal = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(is_literal(expr)),
        _ => None,
    };
    items.iter().map(literal).collect::<Option<Vec<bool>>>().unwrap_or_default()
}

fn bind_distinct_on(
    binder: &Binder<'_>,
    scope: &VariableScope,
    expressions: &[Expr],
    output: &Outputs<'_>,
) -> Result<Vec<Expression>, SqlError> {
    let bind = |expr: &Expr| match (integer_literal(expr), expr) {
        (Some(position), _) => {
            let index = output
                .at(position, "SELECT DISTINCT ON")
                .map_err(|error| scope.located(error, expr.span()))?;
            Ok(output.projection[index].clone())
        }
        (None, Expr::Identifier(name)) => match output.named(&name_of(name)?, "DISTINCT ON")? {
            Some(index) => Ok(output.projection[index].clone()),
            None => binder.in_clause(None).bind_known(expr),
        },
        _ => binder.in_clause(None).bind_known(expr),
    };
    expressions.iter().map(bind).collect()
}

/// The order begins with what is to be distinct.
fn check_distinct_on(expressions: &[Expression], order: &[SortKey]) -> Result<(), SqlError> {
    let mut leading = order.iter().take_while(|key| expressions.contains(&key.expression)).count();
    leading = leading.min(order.len());
    let covered =
        expressions.iter().all(|expression| order[..leading].iter().any(|key| key.expression == *expression));
    if leading == order.len() || covered {
        return Ok(());
    }
    let message = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
    Err(SqlError::new(SqlState(*b"42P10"), message))
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

fn refuse_select_forms(scope: &VariableScope, select: &Select, query: &Query) -> Result<(), SqlError> {
    let refused = |what: &str| Err(scope.located(SqlError::unsupported(what), query.span()));
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO").hint("Use CREATE TABLE and INSERT."));
    }
    if !select.named_window.is_empty() {
        return refused("WINDOW");
    }
    let plain = select.top.is_none()
        && select.exclude.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none();
    if plain { Ok(()) } else { refused("this form of SELECT") }
}

/// The output list, which GROUP BY and ORDER BY may refer to.
struct Outputs<'q> {
    projection: &'q [Expression],
    columns: &'q [OutputColumn],
}

impl Outputs<'_> {
    /// The output of this position, from 1.
    fn at(&self, position: &str, clause: &str) -> Result<usize, SqlError> {
        let index = position.parse::<usize>().ok().and_then(|position| position.checked_sub(1));
        index.filter(|index| *index < self.projection.len()).ok_or_else(|| {
            let message = format!("{clause} position {position} is not in select list");
            SqlError::new(SqlState(*b"42P10"), message)
        })
    }

    /// The output of this name; an error where different ones have it.
    fn named(&self, name: &str, clause: &str) -> Result<Option<usize>, SqlError> {
        let mut found: Option<usize> = None;
        for (index, column) in self.columns.iter().enumerate() {
            if column.name != name {
                continue;
            }
            match found {
                Some(first) if self.projection[first] != self.projection[index] => {
                    let message = format!("{clause} \"{name}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                }
                Some(_) => {}
                None => found = Some(index),
            }
        }
        Ok(found)
    }
}

fn integer_literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, false) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits)
            }
            _ => None,
        },
        _ => None,
    }
}

fn bind_group_keys(
    binder: &Binder<'_>,
    scope: &VariableScope,
    select: &Select,
    output: &Outputs<'_>,
) -> Result<Vec<Expression>, SqlError> {
    let exprs = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) if modifiers.is_empty() => exprs,
        _ => return Err(SqlError::unsupported("this form of GROUP BY")),
    };
    let mut keys = Vec::with_capacity(exprs.len());
    for expr in exprs {
        check_list(keys.len())?;
        let key = match (integer_literal(expr), expr) {
            (Some(position), _) => {
                let index =
                    output.at(position, "GROUP BY").map_err(|error| scope.located(error, expr.span()))?;
                output.projection[index].clone()
            }
            (None, Expr::Identifier(name)) => {
                match binder.in_clause(Some("GROUP BY")).bind_known(expr) {
                    Ok(key) => key,
                    // PostgreSQL looks at the table's columns first, then at the output.
                    Err(error) if error.state == SqlState::UNDEFINED_COLUMN => {
                        match output.named(&name_of(name)?, "GROUP BY")? {
                            Some(index) => output.projection[index].clone(),
                            None => return Err(error),
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => binder.in_clause(Some("GROUP BY")).bind_known(expr)?,
        };
        if key.any(&mut |expression| matches!(expression.kind, Kind::Aggregate(_))) {
            let message = "aggregate functions are not allowed in GROUP BY";
            return Err(scope.located(SqlError::new(SqlState::GROUPING_ERROR, message), expr.span()));
        }
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    binder.in_clause(None);
    Ok(keys)
}

fn bind_order(
    binder: &Binder<'_>,
    scope: &VariableScope,
    order: Option<&OrderBy>,
    output: &Outputs<'_>,
    distinct: bool,
) -> Result<Vec<SortKey>, SqlError> {
    let Some(order) = order else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(exprs) = &order.kind else {
        return Err(SqlError::unsupported("ORDER BY ALL"));
    };
    if order.interpolate.is_some() {
        return Err(SqlError::unsupported("INTERPOLATE"));
    }
    let mut keys = Vec::with_capacity(exprs.len());
    for OrderByExpr { expr, options, with_fill } in exprs {
        check_list(keys.len())?;
        if with_fill.is_some() {
            return Err(SqlError::unsupported("WITH FILL"));
        }
        let position = match (integer_literal(expr), expr) {
            (Some(position), _) => {
                Some(output.at(position, "ORDER BY").map_err(|error| scope.located(error, expr.span()))?)
            }
            (None, Expr::Identifier(name)) => output.named(&name_of(name)?, "ORDER BY")?,
            _ => None,
        };
        let expression = match position {
            Some(position) => output.projection[position].clone(),
            None => binder.in_clause(None).bind_known(expr)?,
        };
        let position = position.or_else(|| output.projection.iter().position(|known| *known == expression));
        if distinct && position.is_none() {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            return Err(scope.located(SqlError::new(SqlState(*b"42P10"), message), expr.span()));
        }
        let descending = options.asc == Some(false);
        let nulls_first = options.nulls_first.unwrap_or(descending);
        keys.push(SortKey { output: position, expression, descending, nulls_first });
    }
    Ok(keys)
}

fn bind_limit(
    scope: &VariableScope,
    clause: Option<&LimitClause>,
    fetch: Option<&Fetch>,
) -> Result<(Option<Expression>, Option<Expression>), SqlError> {
    let binder = Binder::new(scope, Source::Nothing);
    let count = |expr: &Expr, clause: &'static str| {
        let bound = binder.in_clause(Some(clause)).bind(expr)?;
        let found = bound.data_type;
        binder.assign_to_column(bound, clause, DataType::BigInt).map_err(|error| {
            let error = match error.state {
                SqlState::DATATYPE_MISMATCH => {
                    let message =
                        format!("argument of {clause} must be type bigint, not type {}", found.family());
                    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
                }
                _ => error,
            };
            scope.located(error, expr.span())
        })
    };
    let (limit, offset) = match clause {
        None => (None, None),
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => (
            limit.as_ref().map(|limit| count(limit, "LIMIT")).transpose()?,
            offset.as_ref().map(|offset| count(&offset.value, "OFFSET")).transpose()?,
        ),
        Some(_) => return Err(SqlError::unsupported("this form of LIMIT")),
    };
    match fetch {
        None => Ok((limit, offset)),
        Some(Fetch { with_ties: false, percent: false, quantity }) if limit.is_none() => {
            let limit = match quantity {
                Some(quantity) => count(quantity, "LIMIT")?,
                None => Expression::constant(types::Value::BigInt(1), DataType::BigInt),
            };
            Ok((Some(limit), offset))
        }
        Some(_) => Err(SqlError::unsupported("this form of FETCH")),
    }
}

/// The expressions over the rows of FROM.
fn expressions_of<'e>(
    projection: &'e [Expression],
    keys: &'e [Expression],
    aggregates: &'e [Aggregate],
    having: Option<&'e Expression>,
    order: &'e [SortKey],
) -> impl Iterator<Item = &'e Expression> {
    let aggregated = aggregates.iter().flat_map(|aggregate| [&aggregate.argument, &aggregate.filter]);
    projection
        .iter()
        .chain(keys)
        .chain(aggregated.flatten())
        .chain(having)
        .chain(order.iter().map(|key| &key.expression))
}

/// From the table's rows to the rows of the grouping.
struct Regroup<'b> {
    keys: &'b [Expression],
    names: &'b Relations,
}

impl Regroup<'_> {
    fn apply(&self, expression: &mut Expression) -> Result<(), SqlError> {
        if let Some(position) = self.keys.iter().position(|key| key == expression) {
            expression.kind = Kind::Column(position as u16);
            return Ok(());
        }
        match &mut expression.kind {
            Kind::Subquery(subquery) => {
                for argument in &mut subquery.arguments {
                    self.apply(argument).map_err(|error| in_subquery(error, argument, self.names))?;
                }
                subquery.operands.iter_mut().try_for_each(|operand| self.apply(operand))
            }
            Kind::Aggregate(number) => {
                expression.kind = Kind::Column(self.keys.len() as u16 + *number);
                Ok(())
            }
            Kind::Column(ordinal) => Err(self.ungrouped(*ordinal)),
            _ => expression.operands_mut().into_iter().try_for_each(|operand| self.apply(operand)),
        }
    }

    fn ungrouped(&self, ordinal: u16) -> SqlError {
        let name = self.names.name_of(ordinal).unwrap_or_default();
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        SqlError::new(SqlState::GROUPING_ERROR, message)
    }
}

fn in_subquery(error: SqlError, argument: &Expression, names: &Relations) -> SqlError {
    match argument.kind {
        Kind::Column(ordinal) if error.state == SqlState::GROUPING_ERROR => {
            let name = names.name_of(ordinal).unwrap_or_default();
            let message = format!("subquery uses ungrouped column \"{name}\" from outer query");
            SqlError::new(SqlState::GROUPING_ERROR, message)
        }
        _ => error,
    }
}

/// True where the rows come in the wanted order already, forwards or backwards.
fn follows_key(table: &TablePlan, access: &Access, order: &[SortKey]) -> bool {
    if matches!(access, Access::Key(_)) || order.is_empty() {
        return true;
    }
    let fixed = &table.key[..access.fixed_key_columns()];
    let mut rest = table.key[access.fixed_key_columns()..].iter();
    let mut direction = None;
    for key in order {
        let Kind::Column(ordinal) = key.expression.kind else { return false };
        if fixed.contains(&ordinal) {
            continue;
        }
        match rest.next() {
            Some(next) if *next == ordinal && direction.is_none_or(|known| known == key.descending) => {
                direction = Some(key.descending);
            }
            // All columns of the key have gone before: no two rows are equal in them.
            None if !table.key.is_empty() => return true,
            _ => return false,
        }
    }
    true
}

/// For an order that follows the key: whether backwards.
fn reads_backwards(table: &TablePlan, access: &Access, order: &[SortKey]) -> bool {
    let fixed = &table.key[..access.fixed_key_columns()];
    let varying =
        |key: &&SortKey| !matches!(key.expression.kind, Kind::Column(ordinal) if fixed.contains(&ordinal));
    order.iter().find(varying).is_some_and(|key| key.descending)
}
