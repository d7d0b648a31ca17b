//! A logical plan in words, for `EXPLAIN (LOGICAL)`: as it is bound, which rules change it, and as it is run.

use crate::expression::{Expression, Kind, Names, Subquery};
use crate::logical::rules::{RULES, rewrite};
use crate::logical::{Join, LogicalPlan, Scan};
use crate::statement::{AccessPath, JoinKind, KeyPart, SetOperation, SortKey};
use std::sync::Arc;
use types::ColumnSet;

/// The lines of `EXPLAIN (LOGICAL)`.
pub fn explain(mut plan: LogicalPlan) -> Vec<String> {
    let mut lines = Lines { lines: Vec::new(), depth: 0, as_run: false, shown: Vec::new() };
    lines.section("Logical plan, as bound", &plan);
    let mut changed = Vec::new();
    for rule in &RULES {
        let before = plan.clone();
        rule.rewrite(&mut plan);
        if plan != before {
            changed.push(rule);
        }
    }
    lines.line("Rules that change it");
    lines.depth += 1;
    changed.iter().for_each(|rule| lines.line(format!("{}: {}", rule.name, rule.purpose)));
    lines.depth -= 1;
    lines.as_run = true;
    lines.section("Logical plan, as run", &plan);
    lines.lines
}

/// The lines so far.
struct Lines {
    lines: Vec<String>,
    depth: usize,
    /// Queries in expressions are shown as they are run, and not as they are bound.
    as_run: bool,
    /// Queries in expressions that the section has shown. Several nodes may have one, and one inside of it as well: shown
    /// each time, their lines would double with every level.
    shown: Vec<Arc<LogicalPlan>>,
}

impl Lines {
    fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("{}{}", "  ".repeat(self.depth), text.as_ref()));
    }

    fn section(&mut self, title: &str, plan: &LogicalPlan) {
        self.line(title);
        self.shown.clear();
        self.depth += 1;
        self.node(plan, &[]);
        self.depth -= 1;
    }

    /// A node and what stands below it. `row`: names of the row of all relations, inside of a source.
    fn node(&mut self, node: &LogicalPlan, row: &[String]) {
        let depth = self.depth;
        match node {
            // They look at the row of the whole source, which they are part of.
            LogicalPlan::Join(_) | LogicalPlan::Scan(_) | LogicalPlan::Query(_) => {
                let own = if row.is_empty() { columns_of(node) } else { row.to_vec() };
                self.line(in_source(node, &own));
                self.depth += 1;
                self.subqueries(node);
                match node {
                    LogicalPlan::Join(join) => {
                        self.node(&join.left, &own);
                        self.node(&join.right, &own);
                    }
                    LogicalPlan::Query(query) => self.node(&query.plan, &[]),
                    _ => {}
                }
            }
            LogicalPlan::Filter { input, .. } if !row.is_empty() => {
                self.line(over_input(node, row));
                self.depth += 1;
                self.subqueries(node);
                self.node(input, row);
            }
            LogicalPlan::Set { sides, .. } | LogicalPlan::Recursive { sides, .. } => {
                self.line(over_input(node, &[]));
                self.depth += 1;
                sides.iter().for_each(|side| self.node(side, &[]));
            }
            _ => {
                let below = node.input().map_or_else(|| row.to_vec(), columns_of);
                self.line(over_input(node, &below));
                self.depth += 1;
                self.subqueries(node);
                if let Some(input) = node.input() {
                    self.node(input, &[]);
                }
            }
        }
        self.depth = depth;
    }

    /// The queries in the expressions of a node, each once.
    fn subqueries(&mut self, node: &LogicalPlan) {
        let mut found: Vec<&Subquery> = Vec::new();
        node.visit_expressions(&mut |expression| find_subqueries(expression, &mut found));
        for subquery in found {
            if self.shown.iter().any(|known| Arc::ptr_eq(known, &subquery.logical)) {
                self.line("Subquery, as above");
                continue;
            }
            self.shown.push(subquery.logical.clone());
            self.line("Subquery");
            self.depth += 1;
            let mut plan = subquery.logical.as_ref().clone();
            if self.as_run {
                rewrite(&mut plan);
            }
            self.node(&plan, &[]);
            self.depth -= 1;
        }
    }
}

fn find_subqueries<'e>(expression: &'e Expression, found: &mut Vec<&'e Subquery>) {
    if let Kind::Subquery(subquery) = &expression.kind
        && !found.iter().any(|known| Arc::ptr_eq(&known.logical, &subquery.logical))
    {
        found.push(subquery);
    }
    expression.operands().into_iter().for_each(|operand| find_subqueries(operand, found));
}

/// What the columns of a node's rows are called.
fn columns_of(node: &LogicalPlan) -> Vec<String> {
    match node {
        LogicalPlan::Scan(scan) => {
            let key = scan.keyed.then(|| "key".to_string());
            scan.table.columns.iter().map(|column| column.name.clone()).chain(key).collect()
        }
        LogicalPlan::Query(query) => columns_of(&query.plan),
        LogicalPlan::Join(join) => [columns_of(&join.left), columns_of(&join.right)].concat(),
        LogicalPlan::Filter { input, .. }
        | LogicalPlan::Sort { input, .. }
        | LogicalPlan::Distinct { input, .. }
        | LogicalPlan::Limit { input, .. } => columns_of(input),
        LogicalPlan::Project { columns, .. } => columns.iter().map(|column| column.name.clone()).collect(),
        LogicalPlan::Aggregate { input, keys, aggregates } => {
            let below = columns_of(input);
            let key = |key: &Expression| match key.kind {
                Kind::Column(ordinal) => below.get(usize::from(ordinal)).cloned().unwrap_or_default(),
                _ => "key".to_string(),
            };
            keys.iter().map(key).chain(aggregates.iter().map(|_| "aggregate".to_string())).collect()
        }
        LogicalPlan::Window { input, calls } => {
            let values = calls.iter().map(|_| "window".to_string());
            columns_of(input).into_iter().chain(values).collect()
        }
        LogicalPlan::Set { sides, .. } | LogicalPlan::Recursive { sides, .. } => columns_of(&sides[0]),
        LogicalPlan::OneRow
        | LogicalPlan::Values { .. }
        | LogicalPlan::Function { .. }
        | LogicalPlan::Call { .. }
        | LogicalPlan::Kept { .. } => vec!["column".to_string(); node.width()],
    }
}

/// An expression over a row with these names: a column has its name and its ordinal.
fn text(expression: &Expression, row: &[String]) -> String {
    let column = |ordinal: u16| {
        let name = row.get(usize::from(ordinal)).map_or("column", String::as_str);
        format!("{name}#{ordinal}")
    };
    let variable = |slot: u16| format!("${}", slot + 1);
    expression.describe(Names { column: &column, variable: &variable })
}

fn list<'e>(expressions: impl IntoIterator<Item = &'e Expression>, row: &[String], between: &str) -> String {
    expressions.into_iter().map(|expression| text(expression, row)).collect::<Vec<_>>().join(between)
}

/// What stands before and behind something that may be missing.
fn part(before: &str, text: String) -> String {
    if text.is_empty() { text } else { format!("{before}{text}") }
}

/// The line of a relation in a source.
fn in_source(node: &LogicalPlan, row: &[String]) -> String {
    match node {
        LogicalPlan::Scan(scan) => scan_line(scan, row),
        LogicalPlan::Query(query) => {
            let handed = part(", handed ", list(&query.arguments, row, ", "));
            format!("Query{handed}{}", part(" where ", list(&query.conditions, row, " AND ")))
        }
        LogicalPlan::Join(join) => join_line(join, row),
        _ => String::new(),
    }
}

fn scan_line(scan: &Scan, row: &[String]) -> String {
    let table = &scan.table;
    let named = |ordinals: &[u16], parts: &[KeyPart]| {
        let one = |(ordinal, part): (&u16, &KeyPart)| {
            format!("{} = {}", table.columns[usize::from(*ordinal)].name, text(&part.value, row))
        };
        ordinals.iter().zip(parts).map(one).collect::<Vec<_>>().join(", ")
    };
    let path = match &scan.path {
        None => String::new(),
        Some(AccessPath::Key(parts)) => format!(" by key ({})", named(&table.key, parts)),
        Some(AccessPath::Range(interval)) if interval.is_whole() => " as a whole".to_string(),
        Some(AccessPath::Range(_)) => " by a range of the key".to_string(),
        Some(AccessPath::Index(access)) => format!(" by {}", access.shown()),
    };
    let past = if scan.past.is_some() { " as it was" } else { "" };
    let looked_at = match scan.columns {
        ColumnSet::ALL => String::new(),
        set => format!(", looked at: {}", crate::statement::columns(table, set)),
    };
    let backwards = if scan.backwards { ", backwards" } else { "" };
    let conditions = part(" where ", list(&scan.conditions, row, " AND "));
    format!("Scan {}{past}{path}{conditions}{looked_at}{backwards}", table.name)
}

fn join_line(join: &Join, row: &[String]) -> String {
    let kind = match join.kind {
        JoinKind::Inner => "Join",
        JoinKind::Left => "Left join",
        JoinKind::Right => "Right join",
        JoinKind::Full => "Full join",
    };
    let one =
        |(left, right): &(Expression, Expression)| format!("{} = {}", text(left, row), text(right, row));
    let equal = part(" matching ", join.equal.iter().map(one).collect::<Vec<_>>().join(", "));
    let on = part(" on ", list(&join.on, row, " AND "));
    let dependent = if join.dependent { ", the right side for every row of the left one" } else { "" };
    format!("{kind}{equal}{on}{dependent}")
}

/// The line of any other node. `row`: what the columns of its input are called.
fn over_input(node: &LogicalPlan, row: &[String]) -> String {
    let all = |all: &bool| if *all { " all" } else { "" };
    match node {
        LogicalPlan::OneRow => "One row".to_string(),
        LogicalPlan::Values { rows, .. } => format!("Rows that are given: {}", rows.len()),
        LogicalPlan::Function { function, arguments, .. } => {
            format!("{}{}", function.explanation(), part(" of ", list(arguments, row, ", ")))
        }
        LogicalPlan::Call { call, .. } => {
            format!("Rows of {}({})", call.callee.name, list(&call.arguments, row, ", "))
        }
        LogicalPlan::Kept { number, .. } => format!("Rows that are kept under number {number}"),
        LogicalPlan::Filter { conditions, .. } => format!("Filter {}", list(conditions, row, " AND ")),
        LogicalPlan::Aggregate { keys, aggregates, .. } => {
            let one =
                |expressions: String| if expressions.is_empty() { "rows".to_string() } else { expressions };
            let of = aggregates.iter().map(|aggregate| one(list(aggregate.expressions(), row, ", ")));
            let of = part(" of ", of.collect::<Vec<_>>().join("; "));
            format!("Aggregate{of}{}", part(" by ", list(keys, row, ", ")))
        }
        LogicalPlan::Window { calls, .. } => {
            let of = calls.iter().map(|call| list(call.expressions(), row, ", "));
            format!("Window over ({})", of.collect::<Vec<_>>().join("), ("))
        }
        LogicalPlan::Sort { keys, .. } => {
            let key = |key: &SortKey| {
                let descending = if key.descending { " DESC" } else { "" };
                format!("{}{descending}", text(&key.expression, row))
            };
            format!("Sort by {}", keys.iter().map(key).collect::<Vec<_>>().join(", "))
        }
        LogicalPlan::Distinct { on: None, .. } => "Distinct".to_string(),
        LogicalPlan::Distinct { on: Some(on), .. } => format!("Distinct on {}", list(on, row, ", ")),
        LogicalPlan::Project { outputs, columns, .. } => {
            let one = |(output, column): (&Expression, &types::OutputColumn)| {
                format!("{} as {}", text(output, row), column.name)
            };
            format!("Project {}", outputs.iter().zip(columns.iter()).map(one).collect::<Vec<_>>().join(", "))
        }
        LogicalPlan::Limit { limit, offset, ties, .. } => {
            let (limit, offset) = (list(limit, row, ""), list(offset, row, ""));
            let ties = if *ties { " with ties" } else { "" };
            format!("Limit{}{ties}{}", part(" ", limit), part(" offset ", offset))
        }
        LogicalPlan::Set { operation, all: every, .. } => {
            let name = match operation {
                SetOperation::Union => "Union",
                SetOperation::Intersect => "Intersect",
                SetOperation::Except => "Except",
            };
            format!("{name}{}", all(every))
        }
        LogicalPlan::Recursive { number, all: every, .. } => {
            format!("Recursive{}, rows kept under number {number}", all(every))
        }
        LogicalPlan::Scan(_) | LogicalPlan::Query(_) | LogicalPlan::Join(_) => String::new(),
    }
}
