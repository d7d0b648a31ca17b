//! One SELECT: its clauses bound over the row that FROM gives, and over the rows of its grouping.

use crate::aggregate::Aggregate;
use crate::expression::{Binder, Expression, Relations, Source};
use crate::logical::LogicalPlan;
use crate::scope::VariableScope;
use crate::statement::bound_query::BoundQuery;
use crate::statement::conditions::bind_where;
use crate::statement::decided::Decided;
use crate::statement::from::bind_from;
use crate::statement::grouping::{Regroup, place_windows};
use crate::statement::level::Level;
use crate::statement::locking::{Reworked, refuse_locks};
use crate::statement::output::{Wildcards, bind_items};
use crate::statement::query_scope::QueryScope;
use crate::statement::select::{Distinctness, SortKey};
use crate::statement::select_clauses::{
    Outputs, bind_distinct_on, bind_group_keys, bind_limit, bind_order, check_distinct_on,
};
use crate::statement::set_functions::with_set_function;
use crate::window::WindowCall;
use sqlparser::ast::{Distinct, Expr, Query, Select, SelectItem, Spanned, Value as Literal};
use types::{OutputColumn, SqlError};

/// Binds a SELECT.
pub(super) fn bind_select(
    scope: QueryScope<'_>,
    level: &Level<'_>,
    query: &Query,
    select: &Select,
) -> Result<BoundQuery, SqlError> {
    refuse_select_forms(scope.variables, select, query)?;
    let changed = with_set_function(scope, select)?;
    let select = changed.as_ref().unwrap_or(select);
    let (source, names) = bind_from(scope, level, &select.from)?;
    let binder = scope.binder(level, Source::Relations(&names)).with_windows(&select.named_window);
    let conditions = bind_where(&binder, select.selection.as_ref())?;
    let mut clauses = bind_clauses(&binder, &names, scope.variables, query, select)?;
    let limits = bind_limit(scope.variables, query)?;
    if !query.locks.is_empty() {
        refuse_locks(query, &clauses.reworked(changed.is_some()))?;
    }
    let origins = names.origins(&clauses.outputs);
    clauses.place(&names)?;
    let source = source.unwrap_or(LogicalPlan::OneRow).filtered(conditions);
    let plan = clauses.over(source).within(limits);
    Ok(BoundQuery { plan, literals: literals_of(&select.projection), origins, lock: None })
}

/// What a SELECT does with the rows that FROM and WHERE give.
struct Clauses {
    /// GROUP BY.
    keys: Vec<Expression>,
    aggregates: Vec<Aggregate>,
    having: Option<Expression>,
    windows: Vec<WindowCall>,
    outputs: Vec<Expression>,
    columns: Vec<OutputColumn>,
    distinct: Distinctness,
    order: Vec<SortKey>,
}

/// Binds the clauses over the row that FROM gives.
fn bind_clauses(
    binder: &Binder<'_>,
    names: &Relations,
    variables: &VariableScope,
    query: &Query,
    select: &Select,
) -> Result<Clauses, SqlError> {
    binder.in_clause(None).no_windows_in(None);
    let (outputs, columns) = bind_items(binder, Wildcards::Relations(names), variables, &select.projection)?;
    let listed = Outputs { projection: &outputs, columns: &columns };
    let keys = bind_group_keys(binder, variables, select, &listed)?;
    binder.no_windows_in(Some("HAVING"));
    let having = match &select.having {
        Some(having) => Some(binder.in_clause(None).bind_condition(having, "HAVING")?),
        None => None,
    };
    binder.no_windows_in(None);
    let distinct = match &select.distinct {
        None | Some(Distinct::All) => Distinctness::All,
        Some(Distinct::Distinct) => Distinctness::Distinct,
        Some(Distinct::On(expressions)) => {
            Distinctness::On(bind_distinct_on(binder, variables, expressions, &listed)?)
        }
    };
    let listed_only = distinct == Distinctness::Distinct;
    let told_apart = match &distinct {
        Distinctness::All => &[][..],
        Distinctness::Distinct => &outputs,
        Distinctness::On(expressions) => expressions,
    };
    told_apart.iter().try_for_each(|value| binder.check_sortable(value, "equality"))?;
    let order = bind_order(binder, variables, query.order_by.as_ref(), &listed, listed_only)?;
    if let Distinctness::On(expressions) = &distinct {
        check_distinct_on(expressions, &order)?;
    }
    let (aggregates, windows) = (binder.take_aggregates(), binder.take_windows());
    Ok(Clauses { keys, aggregates, having, windows, outputs, columns, distinct, order })
}

impl Clauses {
    /// What is done with the rows of FROM.
    fn reworked(&self, has_set_functions: bool) -> Reworked {
        Reworked {
            is_distinct: self.distinct != Distinctness::All,
            has_groups: !self.keys.is_empty(),
            has_having: self.having.is_some(),
            has_aggregates: !self.aggregates.is_empty(),
            has_windows: !self.windows.is_empty(),
            has_set_functions,
        }
    }

    fn is_grouped(&self) -> bool {
        !self.aggregates.is_empty() || !self.keys.is_empty() || self.having.is_some()
    }

    /// Says of the rows of the grouping and of the values of window functions what was said of the rows of FROM.
    fn place(&mut self, names: &Relations) -> Result<(), SqlError> {
        let width = match self.is_grouped() {
            true => {
                self.regroup(names)?;
                self.keys.len() + self.aggregates.len()
            }
            false => names.width(),
        };
        if !self.windows.is_empty() {
            let on = match &mut self.distinct {
                Distinctness::On(expressions) => expressions.as_mut_slice(),
                _ => &mut [],
            };
            let ordered = self.order.iter_mut().map(|key| &mut key.expression);
            self.outputs.iter_mut().chain(ordered).chain(on).for_each(|value| place_windows(value, width));
        }
        Ok(())
    }

    /// The columns beside the keys that these decide on, as the clauses look at them.
    fn decided(&self, names: &Relations) -> Vec<Expression> {
        let mut decided = Decided::by(&self.keys, names);
        self.aggregates
            .iter()
            .flat_map(|aggregate| &aggregate.direct)
            .for_each(|direct| decided.note(direct));
        self.outputs.iter().chain(&self.having).for_each(|expression| decided.note(expression));
        self.order.iter().for_each(|key| decided.note(&key.expression));
        if let Distinctness::On(expressions) = &self.distinct {
            expressions.iter().for_each(|expression| decided.note(expression));
        }
        let in_windows = self.windows.iter().flat_map(WindowCall::expressions);
        in_windows.for_each(|expression| decided.note(expression));
        decided.into_keys()
    }

    fn regroup(&mut self, names: &Relations) -> Result<(), SqlError> {
        let decided = self.decided(names);
        self.keys.extend(decided);
        let regroup = Regroup { keys: &self.keys, names };
        for direct in self.aggregates.iter().flat_map(|aggregate| &aggregate.direct) {
            regroup.apply(&mut direct.clone()).map_err(|error| {
                error.detail("Direct arguments of an ordered-set aggregate must use only grouped columns.")
            })?;
        }
        self.outputs.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        self.having.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        self.order.iter_mut().try_for_each(|key| regroup.apply(&mut key.expression))?;
        if let Distinctness::On(expressions) = &mut self.distinct {
            expressions.iter_mut().try_for_each(|expression| regroup.apply(expression))?;
        }
        let in_windows = self.windows.iter_mut().flat_map(|window| window.expressions_mut());
        in_windows.into_iter().try_for_each(|expression| regroup.apply(expression))
    }

    /// The block over these rows.
    fn over(self, mut plan: LogicalPlan) -> LogicalPlan {
        if self.is_grouped() {
            let Clauses { keys, aggregates, .. } = self;
            plan = LogicalPlan::Aggregate { input: Box::new(plan), keys, aggregates };
        }
        plan = plan.filtered(self.having.into_iter().collect());
        if !self.windows.is_empty() {
            plan = LogicalPlan::Window { input: Box::new(plan), calls: self.windows };
        }
        plan = plan.sorted(self.order);
        let columns = self.columns.into();
        match self.distinct {
            Distinctness::All => plan.projected(self.outputs, columns),
            Distinctness::Distinct => {
                let input = Box::new(plan.projected(self.outputs, columns));
                LogicalPlan::Distinct { input, on: None }
            }
            Distinctness::On(on) => {
                LogicalPlan::Distinct { input: Box::new(plan), on: Some(on) }.projected(self.outputs, columns)
            }
        }
    }
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
