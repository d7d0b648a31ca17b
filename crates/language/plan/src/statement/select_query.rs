//! One SELECT: its clauses bound over the row that FROM gives, and over the rows of its grouping.

use crate::aggregate::Aggregate;
use crate::condition::conjunction;
use crate::expression::{Binder, Expression, Kind, Relations, Source};
use crate::scope::VariableScope;
use crate::statement::Access;
use crate::statement::bind::bind_where;
use crate::statement::from::{bind_from, plan_from};
use crate::statement::output::{Wildcards, bind_items, check_list};
use crate::statement::query::{Level, QueryScope};
use crate::statement::relation::Relation;
use crate::statement::select::{BoundSelect, Distinctness, From, Grouping, Scanned, SortKey};
use crate::statement::set_functions::with_set_function;
use crate::table::TablePlan;
use sqlparser::ast::{
    Distinct, Expr, Fetch, GroupByExpr, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, Spanned, Value as Literal,
};
use std::collections::BTreeSet;
use syntax::names::name_of;
use types::{DataType, OutputColumn, SqlError, SqlState, limits};

pub(super) fn bind_select(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
    select: &Select,
) -> Result<BoundSelect, SqlError> {
    refuse_select_forms(scope.variables, select, query)?;
    let changed = with_set_function(scope, select)?;
    let select = changed.as_ref().unwrap_or(select);
    let variables = scope.variables;
    let (item, names) = bind_from(scope, level, &select.from)?;
    let binder = scope.binder(level, Source::Relations(&names)).with_windows(&select.named_window);
    let conditions = bind_where(&binder, select.selection.as_ref())?;
    binder.in_clause(None).no_windows_in(None);
    let (mut projection, columns) =
        bind_items(&binder, Wildcards::Relations(&names), variables, &select.projection)?;
    let output = Outputs { projection: &projection, columns: &columns };
    let mut keys = bind_group_keys(&binder, variables, select, &output)?;
    binder.no_windows_in(Some("HAVING"));
    let mut having = match &select.having {
        Some(having) => Some(binder.in_clause(None).bind_condition(having, "HAVING")?),
        None => None,
    };
    binder.no_windows_in(None);
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
    let mut windows = binder.take_windows();
    let on = match &distinct {
        Distinctness::On(expressions) => expressions.as_slice(),
        _ => &[],
    };
    let looked_at: Vec<&Expression> =
        expressions_of(&projection, &keys, &aggregates, having.as_ref(), &order)
            .chain(on)
            .chain(windows.iter().flat_map(|window| window.expressions()))
            .collect();
    let has_subqueries = looked_at
        .iter()
        .chain(&conditions.iter().collect::<Vec<_>>())
        .any(|expression| expression.runs_anything());
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
        for direct in aggregates.iter().flat_map(|aggregate| &aggregate.direct) {
            regroup.apply(&mut direct.clone()).map_err(|error| {
                error.detail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
            })?;
        }
        projection.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        having.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        order.iter_mut().try_for_each(|key| regroup.apply(&mut key.expression))?;
        if let Distinctness::On(expressions) = &mut distinct {
            expressions.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        }
        let in_windows = windows.iter_mut().flat_map(|window| window.expressions_mut());
        in_windows.into_iter().try_for_each(|expression| regroup.apply(expression))?;
    }
    if !windows.is_empty() {
        let width = if grouped { keys.len() + aggregates.len() } else { names.width() };
        let on = match &mut distinct {
            Distinctness::On(expressions) => expressions.as_mut_slice(),
            _ => &mut [],
        };
        let ordered = order.iter_mut().map(|key| &mut key.expression);
        projection.iter_mut().chain(ordered).chain(on).for_each(|value| place_windows(value, width));
    }
    let (source, filter) = match item {
        None => (From::Nothing, conjunction(conditions)),
        Some(item) => match plan_from(item, conditions, used) {
            (Relation::Table(mut scanned), left_over) if left_over.is_empty() && !has_subqueries => {
                let Scanned { table, access, .. } = &mut scanned;
                let plain = !grouped && windows.is_empty() && distinct == Distinctness::All;
                if plain
                    && !order.is_empty()
                    && let Some(backwards) = read_in_order(table, access, &order)
                {
                    if let Access::Index(access) = access {
                        access.in_order = true;
                    }
                    reverse = backwards;
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
        windows,
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

fn refuse_select_forms(scope: &VariableScope, select: &Select, query: &Query) -> Result<(), SqlError> {
    let refused = |what: &str| Err(scope.located(SqlError::unsupported(what), query.span()));
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT INTO").hint("Use CREATE TABLE and INSERT."));
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
pub(super) struct Outputs<'q> {
    pub projection: &'q [Expression],
    pub columns: &'q [OutputColumn],
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

pub(super) fn bind_order(
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

pub(super) fn bind_limit(
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
    let aggregated = aggregates.iter().flat_map(|aggregate| aggregate.expressions());
    projection
        .iter()
        .chain(keys)
        .chain(aggregated)
        .chain(having)
        .chain(order.iter().map(|key| &key.expression))
}

/// The values of window functions are the columns behind so many others.
fn place_windows(expression: &mut Expression, width: usize) {
    match expression.kind {
        Kind::Window(number) => expression.kind = Kind::Column((width + usize::from(number)) as u16),
        _ => expression.operands_mut().into_iter().for_each(|operand| place_windows(operand, width)),
    }
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

/// Where the rows can be read in the wanted order: whether backwards.
fn read_in_order(table: &TablePlan, access: &Access, order: &[SortKey]) -> Option<bool> {
    if matches!(access, Access::Key(_)) {
        return Some(false);
    }
    let (columns, fixed) = access.order(table);
    let (fixed, varying) = columns.split_at(fixed);
    let mut rest = varying.iter();
    let mut backwards = None;
    for key in order {
        let Kind::Column(ordinal) = key.expression.kind else { return None };
        if fixed.contains(&ordinal) {
            continue;
        }
        match rest.next() {
            Some(next) if *next == ordinal && backwards.is_none_or(|known| known == key.descending) => {
                // An index has NULLs last, and first where it is read backwards.
                if !table.columns[usize::from(ordinal)].not_null && key.nulls_first != key.descending {
                    return None;
                }
                backwards = Some(key.descending);
            }
            // All columns of the key have gone before: no two rows are equal in them.
            None if !table.key.is_empty() => break,
            _ => return None,
        }
    }
    let backwards = backwards.unwrap_or(false);
    let Access::Index(access) = access else { return Some(backwards) };
    let named = fixed.len() + (varying.len() - rest.len());
    let all_named = named >= access.index.columns.len();
    // Rows that are equal in the wanted order come by their primary key, which stands last in an entry.
    let ties = backwards && (rest.next().is_some() || table.key.is_empty());
    let cut = access.index.columns.iter().map(|ordinal| table.columns[usize::from(*ordinal)].data_type);
    let cut = cut.map(entry_bytes_max).fold(0, usize::saturating_add) > limits::INDEX_BYTES_MAX;
    (all_named && !ties && !cut).then_some(backwards)
}

/// Bytes that a value of this type takes in an entry of an index at most.
fn entry_bytes_max(data_type: DataType) -> usize {
    match data_type {
        // A byte below 2 takes two.
        DataType::Text(Some(characters)) | DataType::Char(Some(characters)) => {
            (characters as usize).saturating_mul(4).saturating_add(2)
        }
        DataType::Text(None)
        | DataType::Char(None)
        | DataType::Bytea
        | DataType::Array(_)
        | DataType::Composite(_)
        | DataType::Record
        | DataType::Unknown => usize::MAX,
        _ => 32,
    }
}
