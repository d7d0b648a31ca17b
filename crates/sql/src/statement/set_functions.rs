//! Functions that give many rows in the output of a query: `SELECT f(x) FROM t` is `SELECT y FROM t, LATERAL f(x) AS r (y)`.

use super::query::QueryScope;
use super::row_function::gives_rows;
use crate::aggregate::{AggregateFunction, OrderedSet};
use crate::expression::output_name;
use crate::routines::CallForm;
use sqlparser::ast::{
    Expr, Function, FunctionArguments, GroupByExpr, Ident, Query, Select, SelectItem, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;
use types::{SqlError, SqlState};

/// Names that no table and no column has.
const RELATION: &str = "?rows?";
const COLUMN: &str = "?value?";

/// The query with such a function in FROM; `None` where its output has none.
///
/// # Errors
/// `0A000` where there are several, or the rows that it is called for are not those of FROM.
pub(super) fn with_set_function(scope: QueryScope<'_>, select: &Select) -> Result<Option<Select>, SqlError> {
    let expressions = || {
        select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        })
    };
    // The common query is not copied.
    if !expressions().any(may_call) {
        return Ok(None);
    }
    let mut found = Finder {
        scope,
        depth: 0,
        call: None,
        several: false,
        grouped: false,
        gives_rows: false,
        within: None,
    };
    let mut changed = select.clone();
    for item in &mut changed.projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => output_name(expr),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => continue,
        };
        let before = found.call.is_some();
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = VisitMut::visit(expr, &mut found);
        }
        if before == found.call.is_some() {
            continue;
        }
        if let SelectItem::UnnamedExpr(expr) = item {
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
    let Some(call) = found.call else { return Ok(None) };
    let plain_groups = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if let Some(message) = found.within {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .hint("You might be able to move the set-returning function into a LATERAL FROM item."));
    }
    let what = match () {
        () if found.several => "more than one function that gives many rows in a query's output",
        () if found.grouped || !plain_groups || select.having.is_some() => {
            "a function that gives many rows beside aggregates and window functions"
        }
        () if expressions().count() < select.projection.len() => "a function that gives many rows beside *",
        () => "",
    };
    if !what.is_empty() {
        return Err(SqlError::unsupported(what).hint("Call it in FROM."));
    }
    let FunctionArguments::List(list) = call.args else { return Ok(None) };
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', RELATION),
        columns: match found.gives_rows {
            true => Vec::new(),
            false => vec![TableAliasColumnDef { name: Ident::with_quote('"', COLUMN), data_type: None }],
        },
        at: None,
    };
    let relation = TableFactor::Function {
        lateral: true,
        name: call.name,
        args: list.args,
        with_ordinality: false,
        alias: Some(alias),
    };
    changed.from.push(TableWithJoins { relation, joins: Vec::new() });
    Ok(Some(changed))
}

/// Whether any function is called, however deep.
fn may_call(expr: &Expr) -> bool {
    sqlparser::ast::visit_expressions(expr, |inner| match inner {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// Takes the function out of an expression, and puts its value in its place.
struct Finder<'a> {
    scope: QueryScope<'a>,
    /// Queries inside, whose functions are their own.
    depth: usize,
    call: Option<Function>,
    several: bool,
    grouped: bool,
    /// The values of the function are rows.
    gives_rows: bool,
    /// Where it stands and must not.
    within: Option<&'static str>,
}

impl Finder<'_> {
    fn is_set(&self, function: &Function) -> bool {
        let known = super::table_name(&function.name).ok();
        let known = known.and_then(|name| self.scope.tables.routines().get(&name));
        match known.and_then(|routine| routine.definition.function.as_ref()) {
            Some(function) => function.is_set,
            None => gives_rows(&function.name),
        }
    }

    /// Whether its values are rows.
    fn is_of_rows(&self, name: &str) -> bool {
        let known = self.scope.tables.routines().get(name);
        known.is_some_and(|routine| routine.form() != CallForm::Value)
    }

    fn calls_one(&self, expr: &Expr) -> bool {
        sqlparser::ast::visit_expressions(expr, |inner| match inner {
            Expr::Function(function) if self.is_set(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    }
}

impl VisitorMut for Finder<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let refusal = match &*expr {
            Expr::Case { .. } => Some("set-returning functions are not allowed in CASE"),
            Expr::Function(function) => {
                let name = function.name.to_string().to_ascii_lowercase();
                if name == "coalesce" {
                    Some("set-returning functions are not allowed in COALESCE")
                } else if function.over.is_none() && AggregateFunction::named(&name).is_some() {
                    Some("aggregate function calls cannot contain set-returning function calls")
                } else {
                    None
                }
            }
            _ => None,
        };
        if refusal.is_some() && self.calls_one(expr) {
            self.within = self.within.or(refusal);
        }
        let Expr::Function(function) = &*expr else { return ControlFlow::Continue(()) };
        let name = function.name.to_string().to_ascii_lowercase();
        self.grouped |= function.over.is_some()
            || AggregateFunction::named(&name).is_some()
            || (OrderedSet::named(&name).is_some() && !function.within_group.is_empty());
        if self.is_set(function) {
            self.several |= self.call.is_some();
            self.call = Some(function.clone());
            let part = |name| Ident::with_quote('"', name);
            self.gives_rows = self.is_of_rows(&name);
            *expr = match self.gives_rows {
                true => Expr::Identifier(part(RELATION)),
                false => Expr::CompoundIdentifier(vec![part(RELATION), part(COLUMN)]),
            };
        }
        ControlFlow::Continue(())
    }
}
