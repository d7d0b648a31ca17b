//! Expressions over a table's row as PostgreSQL writes them down: with every operation in parentheses and every literal with its
//! type, or, for people, without what goes without saying.

use crate::expression::{Binder, Source, bind_data_type};
use crate::routines::Routines;
use crate::scope::VariableScope;
use crate::table::TablePlan;
use sqlparser::ast::{
    self, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator,
};
use syntax::names::name_of;
use syntax::parse::parse_expression;
use types::{DataType, SqlError};
use values::functions::names_configuration;
use values::quote_ident;

/// How much of it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parentheses {
    /// Around every operation.
    All,
    /// Where people need them.
    Few,
}

/// The SQL of an expression over a table's row.
///
/// # Errors
/// It cannot be read.
pub fn written_sql(
    sql: &str,
    plan: &TablePlan,
    routines: &Routines,
    parentheses: Parentheses,
) -> Result<String, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    Ok(Writer { plan, routines, few: parentheses == Parentheses::Few }.part(&expr, Around::Nothing))
}

/// The same of a part of an index's key, which stands in parentheses unless it is a call.
///
/// # Errors
/// It cannot be read.
pub fn written_key(
    sql: &str,
    plan: &TablePlan,
    routines: &Routines,
    parentheses: Parentheses,
) -> Result<String, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    let text = Writer { plan, routines, few: parentheses == Parentheses::Few }.part(&expr, Around::Nothing);
    let call = matches!(
        bare(&expr),
        Expr::Function(_)
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Extract { .. }
            | Expr::Position { .. }
    );
    Ok(if call { text } else { format!("({text})") })
}

/// What an operation stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    /// The arguments of a call, and the parts of CASE.
    Argument,
    And,
    Or,
    Not,
    /// `+` or `-`; the flag: on its left side.
    Sum(bool),
    /// `*`, `/` or `%`; likewise.
    Product(bool),
    Operation,
}

/// What kind of operation it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Not,
    Sum,
    Product,
    /// `= ANY`
    OfArray,
    Other,
}

impl Operation {
    fn of(operator: &str) -> Operation {
        match operator {
            "+" | "-" => Operation::Sum,
            "*" | "/" | "%" => Operation::Product,
            _ => Operation::Other,
        }
    }

    /// What its sides stand in.
    fn around(self, on_the_left: bool) -> Around {
        match self {
            Operation::Sum => Around::Sum(on_the_left),
            Operation::Product => Around::Product(on_the_left),
            _ => Around::Operation,
        }
    }

    /// Whether people read it without parentheses there.
    fn is_clear_in(self, around: Around) -> bool {
        match around {
            Around::Nothing => true,
            _ if self == Operation::OfArray => false,
            Around::Argument => true,
            Around::And => self != Operation::Or,
            Around::Or => true,
            Around::Not => !matches!(self, Operation::And | Operation::Or | Operation::Not),
            Around::Sum(is_left) => self == Operation::Product || (self == Operation::Sum && is_left),
            Around::Product(is_left) => self == Operation::Product && is_left,
            Around::Operation => false,
        }
    }
}

struct Writer<'a> {
    plan: &'a TablePlan,
    routines: &'a Routines,
    few: bool,
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

impl Writer<'_> {
    /// An operation in the parentheses that it needs.
    fn closed(&self, text: String, around: Around, operation: Operation) -> String {
        if self.few && operation.is_clear_in(around) { text } else { format!("({text})") }
    }

    fn part(&self, expr: &Expr, around: Around) -> String {
        match expr {
            Expr::Nested(inner) => self.part(inner, around),
            Expr::Identifier(ident) => quote_ident(&name_of(ident).unwrap_or_default()),
            Expr::CompoundIdentifier(path) => {
                let last = path.last().and_then(|ident| name_of(ident).ok());
                quote_ident(&last.unwrap_or_default())
            }
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                let mut parts = Vec::new();
                self.logic(op, left, &mut parts);
                self.logic(op, right, &mut parts);
                let operation = if *op == BinaryOperator::And { Operation::And } else { Operation::Or };
                self.closed(parts.join(&format!(" {op} ")), around, operation)
            }
            Expr::BinaryOp { left, op, right } => {
                let op = if *op == BinaryOperator::NotEq { "<>".to_string() } else { op.to_string() };
                self.between(left, &op, right, around)
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                self.closed(format!("NOT {}", self.part(expr, Around::Not)), around, Operation::Not)
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match bare(expr) {
                Expr::Value(value) => format!("'-{value}'::{}", self.type_of(expr)),
                _ => {
                    self.closed(format!("- {}", self.part(expr, Around::Operation)), around, Operation::Other)
                }
            },
            Expr::IsNull(operand) => self.tested(operand, "IS NULL", around),
            Expr::IsNotNull(operand) => self.tested(operand, "IS NOT NULL", around),
            Expr::IsTrue(operand) => self.tested(operand, "IS TRUE", around),
            Expr::IsNotTrue(operand) => self.tested(operand, "IS NOT TRUE", around),
            Expr::IsFalse(operand) => self.tested(operand, "IS FALSE", around),
            Expr::IsNotFalse(operand) => self.tested(operand, "IS NOT FALSE", around),
            Expr::IsDistinctFrom(left, right) => self.between(left, "IS DISTINCT FROM", right, around),
            Expr::IsNotDistinctFrom(left, right) => self.not_distinct(left, right, around),
            Expr::Between { expr, negated, low, high } => self.within(expr, *negated, low, high, around),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated, around),
            Expr::Like { negated, expr, pattern, escape_char: None, .. } => {
                self.between(expr, if *negated { "!~~" } else { "~~" }, pattern, around)
            }
            Expr::ILike { negated, expr, pattern, escape_char: None, .. } => {
                self.between(expr, if *negated { "!~~*" } else { "~~*" }, pattern, around)
            }
            Expr::Value(value) => self.literal(value, None),
            Expr::Cast { expr, data_type, .. } => self.cast(expr, data_type),
            Expr::Function(function) => self.call(function),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            other => self.form(other),
        }
    }

    /// Calls that the grammar has forms of their own for.
    fn form(&self, expr: &Expr) -> String {
        let called = |name: &str, arguments: &[&Expr]| {
            let arguments = arguments.iter().map(|argument| self.as_text(argument, Around::Argument));
            format!("{name}({})", arguments.collect::<Vec<_>>().join(", "))
        };
        match expr {
            Expr::Substring { expr, substring_from, substring_for, special: true, shorthand } => {
                let name = if *shorthand { "substr" } else { "\"substring\"" };
                let rest = [substring_from.as_deref(), substring_for.as_deref()];
                let arguments: Vec<&Expr> = [Some(expr.as_ref())].into_iter().chain(rest).flatten().collect();
                called(name, &arguments)
            }
            Expr::Ceil { expr, .. } => called("ceil", &[expr]),
            Expr::Floor { expr, .. } => called("floor", &[expr]),
            other => other.to_string(),
        }
    }

    /// What AND and OR join is written beside one another, however it is grouped.
    fn logic(&self, operator: &BinaryOperator, operand: &Expr, parts: &mut Vec<String>) {
        match bare(operand) {
            Expr::BinaryOp { left, op, right } if op == operator => {
                self.logic(operator, left, parts);
                self.logic(operator, right, parts);
            }
            other => {
                let around = if *operator == BinaryOperator::And { Around::And } else { Around::Or };
                parts.push(self.part(other, around));
            }
        }
    }

    fn between(&self, left: &Expr, operator: &str, right: &Expr, around: Around) -> String {
        let operation = Operation::of(operator);
        let one = self.operand(left, right, operation.around(true));
        let other = self.operand(right, left, operation.around(false));
        self.closed(format!("{one} {operator} {other}"), around, operation)
    }

    /// An operand beside another one, whose type a literal gets.
    fn operand(&self, operand: &Expr, beside: &Expr, around: Around) -> String {
        match bare(operand) {
            Expr::Value(value) => self.literal(value, Some(self.type_of(beside))),
            other => self.as_text(other, around),
        }
    }

    /// A value of type varchar is compared and given to functions as text.
    fn as_text(&self, expr: &Expr, around: Around) -> String {
        let text = self.part(expr, around);
        if !self.is_varchar(expr) {
            return text;
        }
        if self.few { format!("{text}::text") } else { format!("({text})::text") }
    }

    fn is_varchar(&self, expr: &Expr) -> bool {
        matches!(bare(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            && self.type_of(expr).starts_with("character varying")
    }

    fn tested(&self, operand: &Expr, test: &str, around: Around) -> String {
        let text = format!("{} {test}", self.part(operand, Around::Operation));
        self.closed(text, around, Operation::Other)
    }

    /// As PostgreSQL shows it, which has no word for it of its own.
    fn not_distinct(&self, left: &Expr, right: &Expr, around: Around) -> String {
        let inside = self.between(left, "IS DISTINCT FROM", right, Around::Not);
        self.closed(format!("NOT {inside}"), around, Operation::Not)
    }

    fn within(&self, expr: &Expr, negated: bool, low: &Expr, high: &Expr, around: Around) -> String {
        let (first, second, joint) = if negated { ("<", ">", "OR") } else { (">=", "<=", "AND") };
        let (inside, operation) =
            if negated { (Around::Or, Operation::Or) } else { (Around::And, Operation::And) };
        let first = self.between(expr, first, low, inside);
        let second = self.between(expr, second, high, inside);
        self.closed(format!("{first} {joint} {second}"), around, operation)
    }

    fn in_list(&self, expr: &Expr, list: &[Expr], negated: bool, around: Around) -> String {
        let (operator, each) = if negated { ("<>", "ALL") } else { ("=", "ANY") };
        if let [only] = list {
            return self.between(expr, operator, only, around);
        }
        let values = list.iter().map(|value| match (bare(value), self.is_varchar(expr)) {
            (Expr::Value(value), true) => self.literal(value, Some("character varying".to_string())),
            _ => self.operand(value, expr, Around::Argument),
        });
        let values: Vec<String> = values.collect();
        let array = format!("ARRAY[{}]", values.join(", "));
        let array = match (self.is_varchar(expr), self.few) {
            (true, false) => format!("({array})::text[]"),
            (true, true) => format!("{array}::text[]"),
            (false, _) => array,
        };
        let operand = self.as_text(expr, Around::Operation);
        self.closed(format!("{operand} {operator} {each} ({array})"), around, Operation::OfArray)
    }

    fn literal(&self, value: &ast::ValueWithSpan, beside: Option<String>) -> String {
        match &value.value {
            ast::Value::SingleQuotedString(text) => {
                let data_type = beside.filter(|known| known != "unknown");
                let data_type = match data_type.as_deref() {
                    None => "text",
                    Some("character varying") => "character varying",
                    Some(known) if known.starts_with("character varying") => "text",
                    Some(known) if known.starts_with("character") => "bpchar",
                    Some(known) => known,
                };
                format!("'{}'::{data_type}", text.replace('\'', "''"))
            }
            ast::Value::Number(text, _) => match beside.as_deref() {
                Some("double precision" | "real") => self.converted(text, "double precision"),
                Some(known) if known.starts_with("numeric") && !text.contains('.') => {
                    self.converted(text, "numeric")
                }
                _ => text.clone(),
            },
            ast::Value::Boolean(value) => value.to_string(),
            ast::Value::Null => "NULL".to_string(),
            other => other.to_string(),
        }
    }

    fn converted(&self, number: &str, data_type: &str) -> String {
        if self.few { format!("{number}::{data_type}") } else { format!("({number})::{data_type}") }
    }

    fn cast(&self, expr: &Expr, data_type: &ast::DataType) -> String {
        let bound = bind_data_type(self.routines.types(), data_type);
        let shown = bound.map_or_else(|_| data_type.to_string(), |known| self.shown(known));
        match bare(expr) {
            Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) => format!("'{}'::{shown}", text.replace('\'', "''")),
                _ => format!("({value})::{shown}"),
            },
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) if self.few => {
                format!("{}::{shown}", self.part(expr, Around::Operation))
            }
            Expr::Function(_) if self.few => format!("{}::{shown}", self.part(expr, Around::Operation)),
            _ => {
                let text = self.part(expr, Around::Operation);
                if text.starts_with('(') { format!("{text}::{shown}") } else { format!("({text})::{shown}") }
            }
        }
    }

    fn call(&self, function: &ast::Function) -> String {
        let name = function.name.0.last().map(ToString::to_string).unwrap_or_default().to_lowercase();
        let FunctionArguments::List(list) = &function.args else { return function.to_string() };
        let keyword = matches!(name.as_str(), "coalesce" | "greatest" | "least" | "nullif");
        let shown = list.args.iter().enumerate().map(|(place, argument)| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => {
                let configuration = place == 0 && names_configuration(&name, list.args.len());
                match (bare(argument), text_of(bare(argument)).filter(|_| configuration)) {
                    (_, Some(text)) => format!("'{}'::regconfig", text.replace('\'', "''")),
                    (Expr::Value(value), None) if keyword => self.literal(value, self.type_beside(list)),
                    (other, None) if keyword => self.part(other, Around::Argument),
                    (other, None) => self.as_text(other, Around::Argument),
                }
            }
            other => other.to_string(),
        });
        let shown: Vec<String> = shown.collect();
        let name = if keyword { name.to_uppercase() } else { name };
        format!("{name}({})", shown.join(", "))
    }

    /// The type that a literal has beside the other arguments of COALESCE and its kind.
    fn type_beside(&self, list: &ast::FunctionArgumentList) -> Option<String> {
        let known = list.args.iter().find_map(|other| match other {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(other)) if !matches!(bare(other), Expr::Value(_)) => {
                Some(self.type_of(other))
            }
            _ => None,
        });
        known.map(|known| match known.starts_with("character varying") {
            true => "character varying".to_string(),
            false => known,
        })
    }

    fn case(&self, operand: Option<&Expr>, conditions: &[ast::CaseWhen], otherwise: Option<&Expr>) -> String {
        let mut text = "\nCASE".to_string();
        if let Some(operand) = operand {
            text += &format!(" {}", self.part(operand, Around::Operation));
        }
        for branch in conditions {
            let condition = self.part(&branch.condition, Around::Argument);
            text += &format!("\n    WHEN {condition} THEN {}", self.part(&branch.result, Around::Argument));
        }
        let first = || conditions.first().map_or("text".to_string(), |one| self.type_of(&one.result));
        let otherwise = match otherwise {
            Some(otherwise) => self.part(otherwise, Around::Argument),
            None => format!("NULL::{}", first()),
        };
        format!("{text}\n    ELSE {otherwise}\nEND")
    }

    /// The type of an expression, as SQL calls it.
    fn type_of(&self, expr: &Expr) -> String {
        let scope = VariableScope::for_procedure(None).with_routines(self.routines);
        let binder = Binder::new(&scope, Source::Table { table: self.plan, name: &self.plan.name });
        binder.bind(expr).map_or_else(|_| "text".to_string(), |bound| self.shown(bound.data_type()))
    }

    fn shown(&self, data_type: DataType) -> String {
        self.routines.types().name_of(data_type)
    }
}

/// The text that a literal is, with a cast or without.
fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::Cast { expr, .. } => text_of(bare(expr)),
        _ => None,
    }
}
