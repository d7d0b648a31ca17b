//! Makes queries of psql and drivers into what DataFusion plans. Most is done by the parser of `datafusion-pg-catalog`;
//! here is what it leaves out:
//!
//! - Before it: the subquery by which psql reads a column's default becomes a function call (the parser would put NULL
//!   there), and `ARRAY(SELECT …)`, which DataFusion does not have, the empty array (roles have no members here). What it asks of
//!   a trigger's partitions and dependencies is NULL and false: there are none.
//! - After it: functions that ask about the session become literals, so that one context serves all sessions; columns
//!   without a name get PostgreSQL's name for them.

use super::functions::COLUMN_DEFAULT;
use super::objects::DATABASE;
use crate::postgres::settings::SERVER_VERSION;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, Query, SelectItem, SetExpr, Statement, TableFactor, Value, VisitMut, VisitorMut,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// What a query may ask about its session.
#[derive(Clone, Debug)]
pub(crate) struct SessionFacts {
    /// The user that it connected as.
    pub(crate) user: String,
    /// Its process number.
    pub(crate) process: i32,
    /// The schema that new objects of it go to.
    pub(crate) schema: Option<String>,
    /// Names and values of its settings.
    pub(crate) settings: Vec<(String, String)>,
}

/// A statement for DataFusion, with the names of its columns where they differ from DataFusion's.
pub(super) struct Rewritten {
    pub(super) statement: Statement,
    pub(super) names: Vec<Option<String>>,
}

/// Parses and rewrites one query.
pub(super) fn rewrite(
    parser: &PostgresCompatibilityParser,
    sql: &str,
    facts: &SessionFacts,
) -> Result<Rewritten, ParserError> {
    let one = |mut statements: Vec<Statement>| match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(ParserError::ParserError("expected one statement".to_string())),
    };
    let mut original = one(Parser::parse_sql(&PostgreSqlDialect {}, sql)?)?;
    let mut subqueries = Subqueries { replaced: false };
    // The parser knows this query of psql by its tokens and replaces all of it.
    if !sql.trim_start().starts_with("SELECT pol.polname") {
        let _ = original.visit(&mut subqueries);
    }
    let replaced = subqueries.replaced.then(|| original.to_string());
    let mut statement = one(parser.parse(replaced.as_deref().unwrap_or(sql))?)?;
    let given = name_columns(&mut statement);
    // The parser renames functions; what the client wrote gives the names.
    let asked = name_columns(&mut original);
    let names = if asked.len() == given.len() { asked } else { given };
    let _ = statement.visit(&mut SessionLiterals(facts));
    Ok(Rewritten { statement, names })
}

struct Subqueries {
    replaced: bool,
}

impl VisitorMut for Subqueries {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let replacement = match expr {
            Expr::Function(function) if matches!(function.args, FunctionArguments::Subquery(_)) => {
                last(&function.name).eq_ignore_ascii_case("array").then(|| call("make_array", Vec::new()))
            }
            Expr::Subquery(query) if reads(query, "pg_partition_ancestors") => {
                // NULL of type text.
                let empty = || Expr::value(Value::SingleQuotedString(String::new()));
                Some(call("nullif", vec![empty(), empty()]))
            }
            Expr::Subquery(query) => default_of(query),
            Expr::Exists { subquery, negated } if reads(subquery, "pg_depend") => {
                Some(Expr::value(Value::Boolean(*negated)))
            }
            _ => None,
        };
        if let Some(replacement) = replacement {
            *expr = replacement;
            self.replaced = true;
        }
        ControlFlow::Continue(())
    }
}

/// Whether FROM names this table or function.
fn reads(query: &Query, relation: &str) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    select.from.iter().any(|from| match &from.relation {
        TableFactor::Table { name, .. } | TableFactor::Function { name, .. } => last(name) == relation,
        _ => false,
    })
}

/// `(SELECT pg_get_expr(…) FROM pg_attrdef d WHERE d.adrelid = x AND d.adnum = y …)` as a function of `x` and `y`.
fn default_of(query: &Query) -> Option<Expr> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, .. } = &from.relation else { return None };
    if !from.joins.is_empty() || last(name) != "pg_attrdef" {
        return None;
    }
    let condition = select.selection.as_ref()?;
    let (relation, number) = (equal_to(condition, "adrelid")?, equal_to(condition, "adnum")?);
    Some(call(COLUMN_DEFAULT, vec![relation, number]))
}

/// What `condition` says that the column `name` is equal to.
fn equal_to(condition: &Expr, name: &str) -> Option<Expr> {
    let Expr::BinaryOp { left, op, right } = condition else { return None };
    match op {
        BinaryOperator::And => equal_to(left, name).or_else(|| equal_to(right, name)),
        BinaryOperator::Eq if column_name(left) == Some(name) => Some(right.as_ref().clone()),
        BinaryOperator::Eq if column_name(right) == Some(name) => Some(left.as_ref().clone()),
        _ => None,
    }
}

fn column_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.as_str()),
        _ => None,
    }
}

fn last(name: &ObjectName) -> &str {
    name.0.last().and_then(|part| part.as_ident()).map_or("", |name| name.value.as_str())
}

fn text(text: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(text.to_string()).with_empty_span())
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args =
        arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

struct SessionLiterals<'a>(&'a SessionFacts);

impl SessionLiterals<'_> {
    fn answer(&self, name: &str, arguments: &[Option<String>]) -> Option<Expr> {
        let facts = self.0;
        Some(match name {
            "version" => text(&format!(
                "PostgreSQL {SERVER_VERSION}, a database that several organisations run together"
            )),
            "current_user" | "session_user" | "user" | "current_role" => text(&facts.user),
            "current_database" | "current_catalog" => text(DATABASE),
            "current_schema" => match &facts.schema {
                Some(schema) => text(schema),
                None => Expr::Value(Value::Null.with_empty_span()),
            },
            "pg_backend_pid" => number(i64::from(facts.process)),
            "current_setting" => {
                let name = arguments.first()?.as_deref()?;
                let setting = facts.settings.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
                match setting {
                    Some((_, value)) => text(value),
                    None => Expr::Value(Value::Null.with_empty_span()),
                }
            }
            // The value is answered and not set: SET does that.
            "set_config" => text(arguments.get(1)?.as_deref()?),
            "inet_server_port" | "inet_client_port" => Expr::Value(Value::Null.with_empty_span()),
            "pg_postmaster_start_time" | "pg_conf_load_time" => call("now", Vec::new()),
            _ => return None,
        })
    }
}

fn number(number: i64) -> Expr {
    Expr::Value(Value::Number(number.to_string(), false).with_empty_span())
}

/// The texts that the arguments of a call are, where they are literals.
fn literal_arguments(arguments: &FunctionArguments) -> Vec<Option<String>> {
    let FunctionArguments::List(list) = arguments else { return Vec::new() };
    let literal = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    list.args.iter().map(literal).collect()
}

impl VisitorMut for SessionLiterals<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let answer = match expr {
            Expr::Function(function) => {
                let name = last(&function.name).to_ascii_lowercase();
                self.answer(&name, &literal_arguments(&function.args))
            }
            Expr::Identifier(name)
                if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("user") =>
            {
                Some(text(&self.0.user))
            }
            _ => None,
        };
        if let Some(answer) = answer {
            *expr = answer;
        }
        ControlFlow::Continue(())
    }
}

/// Gives columns without a name an alias, different for each, and returns PostgreSQL's names by position. Queries with
/// a wildcard keep DataFusion's names, which are the columns' own.
fn name_columns(statement: &mut Statement) -> Vec<Option<String>> {
    let Statement::Query(query) = statement else { return Vec::new() };
    let SetExpr::Select(select) = query.body.as_mut() else { return Vec::new() };
    let wildcard = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. }
        )
    };
    if select.projection.iter().any(wildcard) {
        return Vec::new();
    }
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::with_capacity(select.projection.len());
    for (position, item) in select.projection.iter_mut().enumerate() {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = figured_name(expr).unwrap_or_else(|| "?column?".to_string());
                let plain = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let duplicate = !taken.insert(name.clone());
                if !plain || duplicate {
                    let alias = if duplicate { format!("{name}_{position}") } else { name.clone() };
                    let expr = std::mem::replace(expr, number(0));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', alias) };
                }
                Some(name)
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = match alias.quote_style {
                    Some(_) => alias.value.clone(),
                    None => alias.value.to_lowercase(),
                };
                if !taken.insert(name.clone()) {
                    *alias = Ident::with_quote('"', format!("{name}_{position}"));
                }
                Some(name)
            }
            _ => None,
        };
        names.push(name);
    }
    names
}

/// PostgreSQL's name for a column that has none: `FigureColname` in its parser.
fn figured_name(expr: &Expr) -> Option<String> {
    let folded = |name: &Ident| match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    match expr {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(names) => names.last().map(folded),
        Expr::Function(function) => Some(match last(&function.name).to_lowercase().as_str() {
            "array_contains" => "?column?".to_string(),
            name => name.to_string(),
        }),
        Expr::Nested(inner) => figured_name(inner),
        Expr::Cast { expr, data_type, .. } => {
            let cast = data_type.to_string().to_lowercase();
            let cast = cast.rsplit('.').next().map(ToString::to_string);
            figured_name(expr).filter(|name| name != "?column?").or(cast)
        }
        Expr::Case { else_result, .. } => {
            let otherwise = else_result.as_deref().and_then(figured_name).filter(|name| name != "?column?");
            Some(otherwise.unwrap_or_else(|| "case".to_string()))
        }
        Expr::Exists { .. } => Some("exists".to_string()),
        Expr::Array(_) => Some("array".to_string()),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(expr) => figured_name(expr),
                SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str) -> (String, Vec<Option<String>>) {
        let facts = SessionFacts {
            user: "ada".into(),
            process: 7,
            schema: Some("public".to_string()),
            settings: vec![("search_path".into(), "public".into())],
        };
        let rewritten = rewrite(&PostgresCompatibilityParser::new(), sql, &facts).expect("a query");
        (rewritten.statement.to_string(), rewritten.names)
    }

    #[test]
    fn questions_about_the_session_become_literals_with_postgresqls_names() {
        let (sql, names) =
            rewritten("select current_user, pg_backend_pid(), current_setting('search_path') as s, 1");
        assert_eq!(
            sql,
            r#"SELECT 'ada' AS "session_user", 7 AS "pg_backend_pid", 'public' AS s, 1 AS "?column?""#
        );
        let names: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        assert_eq!(names, ["current_user", "pg_backend_pid", "s", "?column?"]);
    }

    #[test]
    fn the_default_of_a_column_becomes_a_function_call() {
        let (sql, _) = rewritten(
            "select a.attname, (select pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) from pg_catalog.pg_attrdef d \
             where d.adrelid = a.attrelid and d.adnum = a.attnum and a.atthasdef) from pg_catalog.pg_attribute a",
        );
        assert!(sql.contains("entente_column_default(a.attrelid, a.attnum)"), "{sql}");
    }
}
