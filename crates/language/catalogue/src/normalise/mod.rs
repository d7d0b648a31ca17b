//! What queries about the catalogue write and our SQL does not have, in words that it has: schemas before names, operators
//! and collations with a schema, the types `name`, `"char"`, `regclass` and their kind, vectors whose subscripts
//! begin at 0, and what a session is asked about itself.

mod build;
mod types;

use self::build::{array, call, cast, literal, number, plus, texts};
use self::types::{finder, object_type_name, plain_type, type_name};
use crate::SessionFacts;
use crate::relations::RELATIONS;
use ::types::{DATABASE, SqlError, SqlState};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Ident, ObjectName, ObjectNamePart, OrderBy, OrderByExpr, OrderByKind,
    OrderByOptions, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement,
    Subscript, TableAlias, TableFactor, TypedString, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Columns that are `int2vector` or `oidvector` in PostgreSQL: their subscripts begin at 0.
const VECTORS: &[&str] =
    &["indkey", "indclass", "indcollation", "indoption", "proargtypes", "tgattr", "partattrs", "stxkeys"];

/// Rewrites a statement.
///
/// # Errors
/// `42704` a setting that is not known.
pub(crate) fn normalise(statement: &mut Statement, facts: &SessionFacts) -> Result<(), SqlError> {
    match VisitMut::visit(statement, &mut Normaliser { facts, known: Vec::new(), levels: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Normaliser<'a> {
    facts: &'a SessionFacts,
    /// What relations are called in the queries around, and their object identifiers.
    known: Vec<(String, i32)>,
    /// How many of them there were before each of these queries.
    levels: Vec<usize>,
}

/// Finds relations of FROM with the names that they have there.
struct Named<'a>(&'a mut Vec<(String, i32)>);

impl Visitor for Named<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Some(plain) = last(name)
            && let Some(relation) = RELATIONS.iter().find(|relation| relation.name == plain.value)
        {
            let known_as = alias.as_ref().map_or(&plain.value, |alias| &alias.name.value);
            self.0.push((known_as.clone(), relation.oid));
        }
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Normaliser<'_> {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        self.levels.push(self.known.len());
        let _ = Visit::visit(&select.from, &mut Named(&mut self.known));
        for item in &mut select.projection {
            match item {
                // The name that a column has without AS comes from what is written, not from what becomes of it.
                SelectItem::UnnamedExpr(expr)
                    if is_object_column(expr)
                        || (!matches!(expr, Expr::CompoundIdentifier(_) | Expr::Value(_))
                            && !is_column(expr)) =>
                {
                    let name = sql::output_name(expr);
                    if name != "?column?" {
                        let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
                        *item = SelectItem::ExprWithAlias { expr, alias };
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    without_schema(name);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<SqlError> {
        self.known.truncate(self.levels.pop().unwrap_or(0));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if query.order_by.is_none()
            && let SetExpr::Select(select) = query.body.as_ref()
        {
            query.order_by = newest_first(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        // Nobody else changes the catalogue while it is read.
        query.locks.clear();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let Some(numbered) = numbered(factor) {
            *factor = numbered;
            return ControlFlow::Continue(());
        }
        match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let known_as = relation_name(name, args.is_some());
                if let (None, Some(known_as)) = (&alias, known_as) {
                    *alias =
                        Some(TableAlias { explicit: true, name: known_as, columns: Vec::new(), at: None });
                }
            }
            TableFactor::Function { name, .. } => without_schema(name),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        // `x::regclass::oid` is the object, and `x::regclass::text` its name, whatever x is.
        if let Expr::Cast { expr: inner, data_type, .. } = expr
            && let Expr::Cast { expr: operand, data_type: object_type, .. } = strip_parentheses(inner)
            && let Some(object_type) = object_type_name(object_type)
        {
            let found = call(finder(object_type), vec![cast(operand.as_ref().clone(), DataType::Text)]);
            match type_name(data_type).as_deref() {
                Some("oid" | "int4" | "integer" | "int8" | "bigint") => {
                    *expr = cast(found, data_type.clone())
                }
                Some("text" | "varchar" | "character varying" | "name") => {
                    *expr = call(&format!("entente_{object_type}_name"), vec![found]);
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.replacement(expr) {
            Ok(Some(replacement)) => *expr = replacement,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Normaliser<'_> {
    fn replacement(&self, expr: &mut Expr) -> Result<Option<Expr>, SqlError> {
        Ok(match expr {
            Expr::CompoundIdentifier(parts) => {
                // `catalog.schema.relation.column` and `schema.relation.column`
                while parts.len() > 2 && is_schema_or_database(&parts[0]) {
                    parts.remove(0);
                }
                match parts.as_slice() {
                    [relation, column] if column.value == "tableoid" => {
                        let mut known = self.known.iter().rev();
                        known
                            .find(|(name, _)| *name == relation.value)
                            .map(|(_, number)| object_number(*number))
                    }
                    _ => None,
                }
            }
            Expr::Identifier(name) if name.value == "tableoid" => {
                self.known.last().map(|(_, number)| object_number(*number))
            }
            Expr::Identifier(name) if name.quote_style.is_none() && is_session_word(&name.value) => {
                self.answer(&name.value, &[])?
            }
            Expr::Function(function) => self.function(function)?,
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: operand, data_type, .. } => {
                if let Some(object_type) = object_type_name(data_type) {
                    return Ok(Some(match is_text(operand) {
                        true => call(finder(object_type), vec![operand.as_ref().clone()]),
                        false => {
                            let name = format!("entente_{object_type}_name");
                            call(&name, vec![operand.as_ref().clone()])
                        }
                    }));
                }
                plain_type(data_type);
                match (&*data_type, operand.as_ref()) {
                    // `to_regclass(x)::text`
                    (DataType::Text, Expr::Function(function)) => {
                        let name = last(&function.name).and_then(|name| name.value.strip_prefix("to_"));
                        let known = name.filter(|name| name.starts_with("reg"));
                        known.map(|known| {
                            call(&format!("entente_{known}_name"), vec![operand.as_ref().clone()])
                        })
                    }
                    _ => None,
                }
            }
            Expr::TypedString(TypedString { value, data_type, .. }) => {
                if let Some(object_type) = object_type_name(data_type) {
                    return Ok(Some(call(finder(object_type), vec![Expr::Value(value.clone())])));
                }
                plain_type(data_type);
                None
            }
            Expr::Collate { expr: operand, collation } => {
                let collation = last(collation).map_or("", |name| name.value.as_str());
                matches!(collation, "default" | "C" | "POSIX" | "ucs_basic").then(|| operand.as_ref().clone())
            }
            Expr::BinaryOp { op, .. } => {
                plain_operator(op);
                None
            }
            Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => {
                plain_operator(compare_op);
                None
            }
            Expr::CompoundFieldAccess { root, access_chain } if vector(root).is_some() => {
                if let Some(AccessExpr::Subscript(Subscript::Index { index })) = access_chain.first_mut() {
                    *index = plus(index.clone(), 1);
                }
                None
            }
            Expr::CompoundFieldAccess { root, access_chain } if is_of_type_name(root) => {
                letter(root, access_chain)
            }
            _ => None,
        })
    }

    fn function(&self, function: &mut Function) -> Result<Option<Expr>, SqlError> {
        if let [schema, proof] = function.name.0.as_mut_slice()
            && let (Some(schema), ObjectNamePart::Identifier(proof)) = (schema.as_ident(), proof)
            && schema.value.eq_ignore_ascii_case("entente")
            && proof.value.eq_ignore_ascii_case("proof")
        {
            let arguments = arguments(&function.args);
            if arguments.len() > 1 {
                // A table and its key, of whatever types: as texts in one text.
                let texts = arguments.into_iter().map(|argument| cast(argument, DataType::Text)).collect();
                let array = cast(array(texts), DataType::Text);
                return Ok(Some(call("entente_row_proof", vec![array])));
            }
            proof.value = "entente_proof".to_string();
        }
        without_schema(&mut function.name);
        let Some(name) = last(&function.name).map(|name| name.value.to_ascii_lowercase()) else {
            return Ok(None);
        };
        let arguments = arguments(&function.args);
        if let Some(answer) = self.answer(&name, &arguments)? {
            return Ok(Some(answer));
        }
        let text = |argument: &Expr| cast(argument.clone(), DataType::Text);
        Ok(match (name.as_str(), arguments.as_slice()) {
            // Subscripts of a vector begin at 0.
            ("generate_subscripts", [array, ..]) => {
                let length = call("cardinality", vec![array.clone()]);
                Some(match vector(array) {
                    Some(_) => call("generate_series", vec![number(0), plus(length, -1)]),
                    None => call("generate_series", vec![number(1), length]),
                })
            }
            // Objects are given by name or number, and the user may be left out.
            (name, given) if name.starts_with("has_") && name.ends_with("_privilege") => {
                let all = if name == "has_column_privilege" { 4 } else { 3 };
                let mut given: Vec<Expr> = given.iter().map(text).collect();
                if given.len() + 1 == all {
                    given.insert(0, literal(&self.facts.user));
                }
                Some(call(name, given))
            }
            ("pg_has_role", [role, privileges]) => {
                let given = vec![literal(&self.facts.user), text(role), text(privileges)];
                Some(call("pg_has_role", given))
            }
            ("pg_has_role", [member, role, privileges]) => {
                Some(call("pg_has_role", vec![text(member), text(role), text(privileges)]))
            }
            // The ledger's own function of this name does not know the schema of temporary tables.
            ("current_schemas", [implicit]) => Some(call("entente_schemas", vec![implicit.clone()])),
            ("pg_get_viewdef", [view, ..]) => Some(call("entente_viewdef", vec![text(view)])),
            ("pg_database_size" | "pg_tablespace_size" | "row_security_active", [object]) => {
                Some(call(&name, vec![text(object)]))
            }
            _ => None,
        })
    }

    /// What a session is asked about itself.
    fn answer(&self, name: &str, arguments: &[Expr]) -> Result<Option<Expr>, SqlError> {
        let setting = |argument: &Expr| match argument {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        Ok(Some(match (name.to_ascii_lowercase().as_str(), arguments) {
            ("version", []) => literal(&format!(
                "PostgreSQL {}, a database that several organisations run together",
                self.facts.server_version
            )),
            ("current_user" | "session_user" | "user" | "current_role", []) => literal(&self.facts.user),
            ("current_database" | "current_catalog", []) => literal(DATABASE),
            ("current_schema", []) => match self.facts.search_path.first() {
                Some(schema) => literal(schema),
                None => cast(Expr::value(Value::Null), DataType::Text),
            },
            ("pg_backend_pid", []) => number(i64::from(self.facts.process)),
            ("pg_listening_channels", []) => call("unnest", vec![texts(&self.facts.listening)]),
            // What waits for a session is its own.
            ("pg_notification_queue_usage", []) => cast(number(0), DataType::DoublePrecision),
            ("current_setting", [name, more @ ..]) => {
                let Some(name) = setting(name) else { return Ok(None) };
                let says_false =
                    more.first().is_some_and(|missing| missing.to_string().eq_ignore_ascii_case("false"));
                match self.facts.setting(&name) {
                    Some(known) => literal(&known.shown),
                    None if !more.is_empty() && !says_false => cast(Expr::value(Value::Null), DataType::Text),
                    None => {
                        let message = format!("unrecognized configuration parameter \"{name}\"");
                        return Err(SqlError::new(SqlState(*b"42704"), message));
                    }
                }
            }
            // Whoever asks sets it, and has to know what.
            ("set_config", [name, value, _]) => {
                let text = |given: &Expr| cast(given.clone(), DataType::Text);
                array(vec![text(name), text(value)])
            }
            _ => return Ok(None),
        }))
    }
}

/// The order of rows of the history that nobody has asked another order of: the newest first, which are read first, too.
fn newest_first(select: &Select) -> Option<OrderBy> {
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, args: None, .. } = &from.relation else { return None };
    let [schema, relation] = name.0.as_slice() else { return None };
    let plain = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
        && select.distinct.is_none()
        && select.having.is_none()
        && from.joins.is_empty();
    let columns: &[&str] = match relation.as_ident()?.value.as_str() {
        "blocks" => &["height"],
        "transactions" => &["height", "index"],
        _ => return None,
    };
    // A function may be an aggregate.
    let has_functions = |item: &SelectItem| {
        let found = sqlparser::ast::visit_expressions(item, |expr| match expr {
            Expr::Function(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    };
    if !plain || schema.as_ident()?.value != "entente" || select.projection.iter().any(has_functions) {
        return None;
    }
    let by = |column: &&str| OrderByExpr {
        expr: Expr::Identifier(Ident::new(*column)),
        options: OrderByOptions { asc: Some(false), nulls_first: None },
        with_fill: None,
    };
    let kind = OrderByKind::Expressions(columns.iter().map(by).collect());
    Some(OrderBy { kind, interpolate: None })
}

/// `f(x) WITH ORDINALITY` of a function of the catalogue as a query that numbers its rows.
fn numbered(factor: &mut TableFactor) -> Option<TableFactor> {
    let (name, args, alias) = match factor {
        TableFactor::Function { name, args, with_ordinality: true, alias, .. } => (name, args, alias),
        TableFactor::Table { name, args: Some(args), with_ordinality: true, alias, .. } => {
            (name, &mut args.args, alias)
        }
        _ => return None,
    };
    without_schema(name);
    if !last(name)?.value.starts_with("pg_") {
        return None;
    }
    const QUERY: &str = "SELECT f.*, row_number() OVER () AS ordinality FROM f() AS f";
    let mut query = match Parser::parse_sql(&PostgreSqlDialect {}, QUERY).ok()?.pop()? {
        Statement::Query(query) => query,
        _ => return None,
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let called = match &mut select.from.first_mut()?.relation {
        TableFactor::Table { name, args: Some(args), .. } => Some((name, &mut args.args)),
        TableFactor::Function { name, args, .. } => Some((name, args)),
        _ => None,
    };
    let (called, arguments) = called?;
    *called = name.clone();
    arguments.append(args);
    Some(TableFactor::Derived { lateral: true, subquery: query, alias: alias.take(), sample: None })
}

/// The number of an object.
fn object_number(object: i32) -> Expr {
    cast(number(i64::from(object)), types::oid())
}

fn strip_parentheses(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => strip_parentheses(inner),
        other => other,
    }
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident)
}

fn is_schema_or_database(name: &Ident) -> bool {
    ["pg_catalog", "information_schema", DATABASE].iter().any(|known| name.value.eq_ignore_ascii_case(known))
}

/// Whether it asks about the session without parentheses; any other name is that of a column.
fn is_session_word(name: &str) -> bool {
    const WORDS: [&str; 6] =
        ["current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"];
    WORDS.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Whether it can be a column, other than a word that asks about the session.
fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if !name.value.eq_ignore_ascii_case("current_schema"))
}

/// Whether it is the column that every relation has besides its own.
fn is_object_column(expr: &Expr) -> bool {
    column_name(expr).is_some_and(|name| name.value == "tableoid")
}

/// The name without `pg_catalog` and `information_schema`.
fn without_schema(name: &mut ObjectName) {
    while name.0.len() > 1 && name.0[0].as_ident().is_some_and(is_schema_or_database) {
        name.0.remove(0);
    }
}

/// Makes the name of a relation that by which it is found; gives the one under which its columns are known.
fn relation_name(name: &mut ObjectName, is_function: bool) -> Option<Ident> {
    let is = |part: &ObjectNamePart, known: &str| {
        part.as_ident().is_some_and(|part| part.value.eq_ignore_ascii_case(known))
    };
    if name.0.len() == 3 && is(&name.0[0], DATABASE) {
        name.0.remove(0);
    }
    if is_function || name.0.len() != 2 {
        without_schema(name);
        return None;
    }
    for schema in ["information_schema", "entente"] {
        if is(&name.0[0], schema) {
            let plain = last(name)?.clone();
            let lower =
                plain.quote_style.map_or_else(|| plain.value.to_ascii_lowercase(), |_| plain.value.clone());
            let quoted = |value: String, span| Ident { value, quote_style: Some('"'), span };
            let span = name.0[0].as_ident().map_or(plain.span, |schema| schema.span);
            *name = ObjectName::from(vec![quoted(schema.to_string(), span), quoted(lower, plain.span)]);
            return Some(plain);
        }
    }
    without_schema(name);
    None
}

/// `OPERATOR(pg_catalog.~)` as the operator that it is.
fn plain_operator(op: &mut BinaryOperator) {
    let BinaryOperator::PGCustomBinaryOperator(parts) = op else { return };
    *op = match parts.last().map(String::as_str) {
        Some("~") => BinaryOperator::PGRegexMatch,
        Some("~*") => BinaryOperator::PGRegexIMatch,
        Some("!~") => BinaryOperator::PGRegexNotMatch,
        Some("!~*") => BinaryOperator::PGRegexNotIMatch,
        Some("~~") => BinaryOperator::PGLikeMatch,
        Some("!~~") => BinaryOperator::PGNotLikeMatch,
        Some("~~*") => BinaryOperator::PGILikeMatch,
        Some("!~~*") => BinaryOperator::PGNotILikeMatch,
        Some("=") => BinaryOperator::Eq,
        Some("<>" | "!=") => BinaryOperator::NotEq,
        Some("<") => BinaryOperator::Lt,
        Some("<=") => BinaryOperator::LtEq,
        Some(">") => BinaryOperator::Gt,
        Some(">=") => BinaryOperator::GtEq,
        Some("||") => BinaryOperator::StringConcat,
        Some("+") => BinaryOperator::Plus,
        Some("-") => BinaryOperator::Minus,
        Some("@>") => BinaryOperator::AtArrow,
        Some("<@") => BinaryOperator::ArrowAt,
        Some("&&") => BinaryOperator::PGOverlap,
        _ => return,
    };
}

/// The column that it is.
fn column_name(expr: &Expr) -> Option<&Ident> {
    match strip_parentheses(expr) {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// The column that it is, where that is a vector in PostgreSQL.
pub(crate) fn vector(expr: &Expr) -> Option<&Ident> {
    column_name(expr).filter(|name| VECTORS.contains(&name.value.as_str()))
}

/// A vector as PostgreSQL writes it: its elements with spaces between them.
pub(crate) fn vector_text(vector: &Expr) -> Expr {
    call("array_to_string", vec![vector.clone(), literal(" ")])
}

/// Whether an operand of `::regclass` is a name rather than a number: what is written, put together or given as a
/// parameter, and the columns that are names.
fn is_text(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_text(inner),
        Expr::Value(value) => !matches!(&value.value, Value::Number(..)),
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::StringConcat,
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_))
        }
        Expr::Function(function) => last(&function.name).is_some_and(|name| {
            ["quote_ident", "format", "concat", "pg_get_serial_sequence", "coalesce", "replace"]
                .contains(&name.value.as_str())
        }),
        Expr::Identifier(name) => is_name_column(&name.value),
        Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|name| is_name_column(&name.value)),
        _ => false,
    }
}

fn is_name_column(name: &str) -> bool {
    type_of_column(name).is_some_and(|known| known.family() == ::types::DataType::Text(None))
}

/// Whether it is a column of type `name`.
fn is_of_type_name(expr: &Expr) -> bool {
    column_name(expr).and_then(|name| type_of_column(&name.value)) == Some(::types::DataType::NAME)
}

/// A letter of a name, counted from 0.
fn letter(name: &Expr, access_chain: &[AccessExpr]) -> Option<Expr> {
    match access_chain {
        [AccessExpr::Subscript(Subscript::Index { index })] => {
            Some(call("substr", vec![name.clone(), plus(index.clone(), 1), number(1)]))
        }
        _ => None,
    }
}

/// The type that the first relation has that has such a column.
fn type_of_column(name: &str) -> Option<::types::DataType> {
    let mut columns = RELATIONS.iter().flat_map(|relation| &relation.columns);
    columns.find(|column| column.name == name).map(|column| column.data_type)
}

fn arguments(arguments: &FunctionArguments) -> Vec<Expr> {
    let FunctionArguments::List(list) = arguments else { return Vec::new() };
    let plain = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    plain.collect()
}
