//! Expressions in words, for EXPLAIN.

use crate::expression::{Expression, Kind};
use types::{Value, format_value};
use values::LikeForm;

/// What ordinals and slots are called.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// Columns of the row at hand.
    pub column: &'a dyn Fn(u16) -> String,
    /// Variables.
    pub variable: &'a dyn Fn(u16) -> String,
}

impl Expression {
    /// The expression as SQL. Casts that an assignment makes are left out.
    pub fn describe(&self, names: Names<'_>) -> String {
        let text = |operand: &Expression| operand.describe(names);
        let joined = |operands: &[Expression], separator: &str| {
            operands.iter().map(text).collect::<Vec<_>>().join(separator)
        };
        let not = |negated: bool| if negated { "NOT " } else { "" };
        let between = |operands: &[Expression; 2], operator: &str| {
            format!("({} {operator} {})", text(&operands[0]), text(&operands[1]))
        };
        match &self.kind {
            Kind::Constant(value) => literal(value),
            Kind::Column(ordinal) => (names.column)(*ordinal),
            Kind::Slot(slot) => (names.variable)(*slot),
            Kind::Argument(_) | Kind::Left(_) => "a column of another relation".to_string(),
            Kind::State(_) => "the state of an aggregate".to_string(),
            Kind::Subquery(subquery) => match joined(&subquery.operands, ", ") {
                operands if operands.is_empty() => "(SELECT …)".to_string(),
                operands => format!("({operands} compared with SELECT …)"),
            },
            Kind::Call(call) => format!("{}({})", call.callee.name, joined(&call.arguments, ", ")),
            Kind::Now => "now()".to_string(),
            Kind::Assign(operand) => text(operand),
            Kind::Cast(operand) => format!("{}::{}", text(operand), self.data_type),
            Kind::Arithmetic(operator, operands) => between(operands, &operator.to_string()),
            Kind::Negate(operand) => format!("-{}", text(operand)),
            Kind::Concatenate(operands) => between(operands, "||"),
            Kind::Compare(comparison, operands) => between(operands, comparison.symbol()),
            Kind::Distinct(distinct, operands) => {
                between(operands, if *distinct { "IS DISTINCT FROM" } else { "IS NOT DISTINCT FROM" })
            }
            Kind::And(operands) => format!("({})", joined(operands, " AND ")),
            Kind::Or(operands) => format!("({})", joined(operands, " OR ")),
            Kind::Not(operand) => format!("NOT {}", text(operand)),
            Kind::IsNull(expected, operand) => format!("{} IS {}NULL", text(operand), not(!expected)),
            Kind::IsTruth(truth, expected, operand) => {
                let truth = match truth {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("{} IS {}{truth}", text(operand), not(!expected))
            }
            Kind::InList(expected, operands) => match operands.split_first() {
                Some((operand, list)) => {
                    format!("{} {}IN ({})", text(operand), not(!expected), joined(list, ", "))
                }
                None => String::new(),
            },
            Kind::Like(LikeForm { negated, ignore_case, .. }, operands) => {
                let operator = if *ignore_case { "ILIKE" } else { "LIKE" };
                between(operands, &format!("{}{operator}", not(*negated)))
            }
            Kind::Case(branches, otherwise) => {
                let branches = branches.iter();
                let branches = branches
                    .map(|(condition, result)| format!("WHEN {} THEN {} ", text(condition), text(result)));
                format!("CASE {}ELSE {} END", branches.collect::<String>(), text(otherwise))
            }
            Kind::Coalesce(operands) => format!("coalesce({})", joined(operands, ", ")),
            Kind::Extreme(largest, operands) => {
                format!("{}({})", if *largest { "greatest" } else { "least" }, joined(operands, ", "))
            }
            Kind::Format(operands) => format!("format({})", joined(operands, ", ")),
            Kind::Function(function, arguments) => {
                format!("{}({})", function.shown(), joined(arguments, ", "))
            }
            Kind::Row(operation, operands) => {
                operation.describe(&operands.iter().map(text).collect::<Vec<_>>(), self.data_type)
            }
            Kind::Aggregate(number) => format!("aggregate {}", number + 1),
            Kind::Window(number) => format!("window function {}", number + 1),
        }
    }
}

fn literal(value: &Value) -> String {
    match (value, format_value(value)) {
        (_, None) => "NULL".to_string(),
        (
            Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) | Value::Numeric(_) | Value::Boolean(_),
            Some(text),
        ) => text,
        (_, Some(text)) => format!("'{}'", text.replace('\'', "''")),
    }
}
