//! Binding of SELECT.

use super::Access;
use super::bind::{bind_items, bind_where, check_list, columns_of, single_table};
use super::select::{BoundSelect, Grouping, Scanned, SortKey};
use crate::aggregate::Aggregate;
use crate::expression::{Binder, Expression, Kind, Source};
use crate::predicate::{Condition, conjunction};
use crate::scope::{VariableScope, name_of};
use crate::table::{TablePlan, Tables};
use sqlparser::ast::{
    Distinct, Expr, Fetch, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, SetOperator, Spanned, Value as Literal,
};
use types::{ColumnSet, DataType, OutputColumn, SqlError, SqlState};

/// Binds a query.
///
/// # Errors
/// As [`super::bind_statement`].
pub(super) fn bind_query(
    tables: &Tables,
    scope: &VariableScope,
    query: &Query,
) -> Result<BoundSelect, SqlError> {
    let select = plain_select(scope, query)?;
    let source = match select.from.as_slice() {
        [] => None,
        [from] => Some(single_table(tables, scope, from)?),
        [_, second, ..] => {
            let error = SqlError::unsupported("a list of several tables in FROM")
                .hint("Read one table after the other in a procedure.");
            return Err(scope.located(error, second.span()));
        }
    };
    let table = source.as_ref().map(|(table, known_as)| (table.as_ref(), known_as.as_str()));
    let binder =
        Binder::new(scope, table.map_or(Source::Nothing, |(table, name)| Source::Table { table, name }));
    let conditions = bind_where(&binder, select.selection.as_ref())?;
    binder.in_clause(None);
    let (mut projection, columns) = bind_items(&binder, table, scope, &select.projection)?;
    let output = Outputs { items: &select.projection, projection: &projection, columns: &columns };
    let mut keys = bind_group_keys(&binder, scope, select, &output)?;
    let mut having = match &select.having {
        Some(having) => Some(binder.in_clause(None).bind_condition(having, "HAVING")?),
        None => None,
    };
    let distinct = match &select.distinct {
        None | Some(Distinct::All) => false,
        Some(Distinct::Distinct) => true,
        Some(Distinct::On(_)) => return Err(SqlError::unsupported("DISTINCT ON")),
    };
    let mut order = bind_order(&binder, scope, query.order_by.as_ref(), &output, distinct)?;
    let (limit, offset) = bind_limit(scope, query.limit_clause.as_ref(), query.fetch.as_ref())?;
    let aggregates = binder.take_aggregates();
    let used = used_columns(&projection, &keys, &aggregates, having.as_ref(), &order);
    let grouped = !aggregates.is_empty() || !keys.is_empty() || having.is_some();
    let mut reverse = false;
    if grouped {
        let regroup = Regroup { keys: &keys, table: table.map(|(table, _)| table) };
        projection.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        having.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        order.iter_mut().try_for_each(|key| regroup.apply(&mut key.expression))?;
    }
    let (source, filter) = match source {
        None => (None, conjunction(conditions)),
        Some((table, _)) => {
            let (access, rest) = Access::plan(table, conditions);
            if !grouped && !distinct && follows_key(table, &access, &order) {
                reverse = order.first().is_some_and(|_| reads_backwards(table, &access, &order));
                order.clear();
            }
            let filter_columns = columns_of(&rest);
            let columns = used | filter_columns | ColumnSet::EXISTS;
            let filter = Condition::all(rest);
            (Some(Scanned { table: table.clone(), access, filter, columns, filter_columns }), None)
        }
    };
    let grouping = grouped.then(|| Grouping { keys: std::mem::take(&mut keys), aggregates, having });
    let columns = columns.into();
    Ok(BoundSelect { source, filter, grouping, projection, columns, distinct, order, reverse, limit, offset })
}

/// The only SELECT of a query; everything else is refused by name.
fn plain_select<'q>(scope: &VariableScope, query: &'q Query) -> Result<&'q Select, SqlError> {
    let refused = |what: &str| Err(scope.located(SqlError::unsupported(what), query.span()));
    if query.with.is_some() {
        return refused("WITH");
    }
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE")
            .hint("Leave it out: every transaction is serializable."));
    }
    if query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty()
    {
        return refused("this form of SELECT");
    }
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner)
            if query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none() =>
        {
            return plain_select(scope, inner);
        }
        SetExpr::Query(_) => return refused("a query in parentheses"),
        SetExpr::SetOperation { op, .. } => {
            return refused(match op {
                SetOperator::Union => "UNION",
                SetOperator::Intersect => "INTERSECT",
                _ => "EXCEPT",
            });
        }
        SetExpr::Values(_) => return refused("VALUES outside of INSERT"),
        _ => return refused("this form of query"),
    };
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
    if plain { Ok(select) } else { refused("this form of SELECT") }
}

/// The output list, which GROUP BY and ORDER BY may refer to.
struct Outputs<'q> {
    items: &'q [SelectItem],
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
    debug_assert_eq!(output.items.is_empty(), output.projection.is_empty());
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

/// The table's columns that output, grouping and order look at.
fn used_columns(
    projection: &[Expression],
    keys: &[Expression],
    aggregates: &[Aggregate],
    having: Option<&Expression>,
    order: &[SortKey],
) -> ColumnSet {
    let aggregated = aggregates.iter().flat_map(|aggregate| [&aggregate.argument, &aggregate.filter]);
    let expressions = projection
        .iter()
        .chain(keys)
        .chain(aggregated.flatten())
        .chain(having)
        .chain(order.iter().map(|key| &key.expression));
    expressions.fold(ColumnSet::EMPTY, |set, expression| set | expression.columns())
}

/// From the table's rows to the rows of the grouping.
struct Regroup<'b> {
    keys: &'b [Expression],
    table: Option<&'b TablePlan>,
}

impl Regroup<'_> {
    fn apply(&self, expression: &mut Expression) -> Result<(), SqlError> {
        if let Some(position) = self.keys.iter().position(|key| key == expression) {
            expression.kind = Kind::Column(position as u16);
            return Ok(());
        }
        match expression.kind {
            Kind::Aggregate(number) => {
                expression.kind = Kind::Column(self.keys.len() as u16 + number);
                Ok(())
            }
            Kind::Column(ordinal) => Err(self.ungrouped(ordinal)),
            _ => expression.operands_mut().into_iter().try_for_each(|operand| self.apply(operand)),
        }
    }

    fn ungrouped(&self, ordinal: u16) -> SqlError {
        let name = self.table.map_or_else(String::new, |table| {
            format!("{}.{}", table.name, table.columns[usize::from(ordinal)].name)
        });
        let message = format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        );
        SqlError::new(SqlState::GROUPING_ERROR, message)
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
