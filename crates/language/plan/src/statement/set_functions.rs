//! Functions that give many rows in the output of a query: `SELECT f(x) FROM t` is `SELECT y FROM t, LATERAL f(x) AS r (y)`.
//! Several of them run side by side, and one that ends before the others gives NULL.

use crate::aggregate::{AggregateFunction, OrderedSet};
use crate::expression::output_name;
use crate::routines::CallForm;
use crate::statement::bind_row_function::{gives_many_columns, gives_rows, takes_json};
use crate::statement::query_scope::QueryScope;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArguments, GroupByExpr, Ident, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Visit, VisitMut, Visitor,
    VisitorMut,
};
use std::ops::ControlFlow;
use syntax::parse::{ParsedStatement, parse_script};
use types::{ExecutionVersion, SqlError, SqlState};

/// Names that no table and no column has.
const RELATION: &str = "?rows?";
const COLUMN: &str = "?value?";

/// The query with such functions in FROM; `None` where its output has none.
///
/// # Errors
/// `0A000` where the rows that they are called for are not those of FROM.
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
    let mut found =
        Finder { scope, depth: 0, calls: Vec::new(), several: false, grouped: false, within: None };
    found.several = expressions().map(|expr| found.count(expr)).sum::<usize>() > 1;
    let mut changed = select.clone();
    for item in &mut changed.projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => output_name(expr),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => continue,
        };
        let before = found.calls.len();
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let _ = VisitMut::visit(expr, &mut found);
        }
        if before == found.calls.len() {
            continue;
        }
        if let SelectItem::UnnamedExpr(expr) = item {
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
    if found.calls.is_empty() {
        return Ok(None);
    }
    let plain_groups = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if let Some(message) = found.within {
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .hint("You might be able to move the set-returning function into a LATERAL FROM item."));
    }
    let what = match () {
        () if found.grouped || !plain_groups || select.having.is_some() => {
            "a function that gives many rows beside aggregates and window functions"
        }
        () if expressions().count() < select.projection.len() => "a function that gives many rows beside *",
        () => "",
    };
    if !what.is_empty() {
        return Err(SqlError::unsupported(what).hint("Call it in FROM."));
    }
    let relation = match found.calls.len() {
        1 => single(found.calls.remove(0)),
        _ => side_by_side(found.calls)?,
    };
    changed.from.push(TableWithJoins { relation, joins: Vec::new() });
    Ok(Some(changed))
}

/// A call as a relation.
fn single(call: Call) -> TableFactor {
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', RELATION),
        columns: match call.gives_rows {
            true => Vec::new(),
            false => {
                vec![TableAliasColumnDef { name: Ident::with_quote('"', &call.column), data_type: None }]
            }
        },
        at: None,
    };
    TableFactor::Function {
        lateral: true,
        name: call.function.name,
        args: arguments(call.function.args),
        with_ordinality: false,
        alias: Some(alias),
    }
}

fn arguments(arguments: FunctionArguments) -> Vec<FunctionArg> {
    match arguments {
        FunctionArguments::List(list) => list.args,
        FunctionArguments::None | FunctionArguments::Subquery(_) => Vec::new(),
    }
}

/// Calls as one relation: their rows of the same number beside one another.
fn side_by_side(calls: Vec<Call>) -> Result<TableFactor, SqlError> {
    let values = (1..).zip(&calls).map(|(number, call)| format!("r{number}.v AS \"{}\"", call.column));
    let values = values.collect::<Vec<String>>().join(", ");
    let mut from = String::new();
    let mut known = Vec::new();
    for (number, call) in (1..).zip(&calls) {
        let (value, alias) = if call.gives_rows { ("f", "f") } else { ("f.c", "f (c)") };
        let one =
            format!("(SELECT {value} AS v, row_number() OVER () AS n FROM f() AS {alias}) AS r{number}");
        from += &match number {
            1 => one,
            _ => format!(" FULL JOIN {one} ON coalesce({}) = r{number}.n", known.join(", ")),
        };
        known.push(format!("r{number}.n"));
    }
    let order = known.join(", ");
    let sql = format!(
        "SELECT 1 FROM LATERAL (SELECT {values} FROM {from} ORDER BY coalesce({order})) AS \"{RELATION}\""
    );
    let mut relation = match parse_script(&sql, ExecutionVersion::NEWEST)?.pop() {
        Some(ParsedStatement::Sql(statement)) => match *statement {
            Statement::Query(query) => match *query.body {
                SetExpr::Select(mut select) => select.from.pop().map(|from| from.relation),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    if let Some(relation) = &mut relation {
        let _ = VisitMut::visit(relation, &mut Filler { calls: calls.into_iter() });
    }
    relation.ok_or_else(|| SqlError::unsupported("functions that give many rows here"))
}

/// Puts the calls into the places that are held for them, in order.
struct Filler {
    calls: std::vec::IntoIter<Call>,
}

impl VisitorMut for Filler {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let call = match factor {
            TableFactor::Function { name, args, .. } => Some((name, args)),
            TableFactor::Table { name, args: Some(args), .. } => Some((name, &mut args.args)),
            _ => None,
        };
        if let Some((name, args)) = call
            && let Some(call) = self.calls.next()
        {
            *name = call.function.name;
            *args = arguments(call.function.args);
        }
        ControlFlow::Continue(())
    }
}

/// Whether any function is called, however deep.
fn may_call(expr: &Expr) -> bool {
    sqlparser::ast::visit_expressions(expr, |inner| match inner {
        Expr::Function(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// A call of a function that gives many rows.
struct Call {
    function: Function,
    /// Its values are rows.
    gives_rows: bool,
    /// Under which its value is known where it is no row, or one of several.
    column: String,
}

/// Takes the functions out of expressions, and puts their values in their places.
struct Finder<'a> {
    scope: QueryScope<'a>,
    /// Queries inside, whose functions are their own.
    depth: usize,
    calls: Vec<Call>,
    /// There is more than one.
    several: bool,
    grouped: bool,
    /// Where one stands and must not.
    within: Option<&'static str>,
}

impl Finder<'_> {
    fn is_set(&self, call: &Function) -> bool {
        let known = syntax::names::table_name(&call.name).ok();
        let known = known.and_then(|name| self.scope.tables.routines().get(&name));
        match known.and_then(|routine| routine.definition.function.as_ref()) {
            Some(function) => function.is_set || self.may_be_rows_of_json(call),
            None => gives_rows(&call.name, self.scope.variables.version()),
        }
    }

    /// Whether it is a call of a function that is built in and gives rows of JSON, unless its arguments are of other types.
    fn may_be_rows_of_json(&self, call: &Function) -> bool {
        let version = self.scope.variables.version();
        let count = match &call.args {
            FunctionArguments::List(list) => list.args.len(),
            FunctionArguments::None | FunctionArguments::Subquery(_) => 0,
        };
        gives_rows(&call.name, version) && takes_json(&call.name, version, count)
    }

    /// Whether its values are rows.
    fn is_of_rows(&self, name: &str, call: &Function) -> bool {
        let known = self.scope.tables.routines().get(name);
        match known {
            // In FROM the types of the arguments tell whose function it is; a value is found as a row is there.
            Some(_) if self.may_be_rows_of_json(call) => true,
            Some(routine) => routine.form() != CallForm::Value,
            None => gives_many_columns(name),
        }
    }

    /// How many calls there are in an expression, outside of its queries.
    fn count(&self, expr: &Expr) -> usize {
        let mut counter = Counter { finder: self, depth: 0, calls: 0 };
        let _ = Visit::visit(expr, &mut counter);
        counter.calls
    }

    fn calls_one(&self, expr: &Expr) -> bool {
        sqlparser::ast::visit_expressions(expr, |inner| match inner {
            Expr::Function(function) if self.is_set(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    }
}

struct Counter<'f, 'a> {
    finder: &'f Finder<'a>,
    depth: usize,
    calls: usize,
}

impl Visitor for Counter<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && self.depth == 0
            && self.finder.is_set(function)
        {
            self.calls += 1;
        }
        ControlFlow::Continue(())
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
                } else if function.over.is_none()
                    && AggregateFunction::named(&name, self.scope.variables.version()).is_some()
                {
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
            || AggregateFunction::named(&name, self.scope.variables.version()).is_some()
            || (OrderedSet::named(&name).is_some() && !function.within_group.is_empty());
        if self.is_set(function) {
            let part = |name: &str| Ident::with_quote('"', name);
            let gives_rows = self.is_of_rows(&name, function);
            let column = format!("{COLUMN}{}", self.calls.len());
            let is_alone = self.calls.is_empty() && !self.several;
            self.calls.push(Call { function: function.clone(), gives_rows, column: column.clone() });
            *expr = match gives_rows && is_alone {
                true => Expr::Identifier(part(RELATION)),
                false => Expr::CompoundIdentifier(vec![part(RELATION), part(&column)]),
            };
        }
        ControlFlow::Continue(())
    }
}
