//! Why an expression is refused.

use sqlparser::ast::Expr;
use types::{DataType, SqlError, SqlState};

pub(super) fn no_operator(form: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {form}")).hint(
        "No operator matches the given name and argument types. You might need to add explicit type casts.",
    )
}

#[cold]
pub(super) fn no_function(name: &str, types: &[DataType]) -> SqlError {
    let types: Vec<String> = types.iter().map(|data_type| data_type.family().to_string()).collect();
    let message = format!("function {name}({}) does not exist", types.join(", "));
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

pub(super) fn unsupported_expression(expr: &Expr) -> SqlError {
    match expr {
        Expr::Subquery(_)
        | Expr::InSubquery { .. }
        | Expr::Exists { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. } => SqlError::unsupported("a subquery in an expression")
            .hint("Read it into a variable first, with SELECT … INTO in a procedure."),
        Expr::RLike { .. } => SqlError::unsupported("RLIKE").hint("Use ~."),
        Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_) => SqlError::unsupported("GROUPING SETS"),
        Expr::IsNormalized { .. } => SqlError::unsupported("IS NORMALIZED"),
        Expr::Like { .. } | Expr::ILike { .. } => SqlError::unsupported("LIKE ANY"),
        other => SqlError::unsupported(format_args!("the expression {}", shortened(&other.to_string()))),
    }
}

/// The beginning of a construct, for errors.
pub fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

/// The error of an operator that several would do for.
pub(super) fn not_unique(form: &str) -> SqlError {
    SqlError::new(SqlState(*b"42725"), format!("operator is not unique: {form}"))
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

/// The error of what sorts (`ordering`) or groups (`equality`) by a value that has no such operator.
pub fn no_sort_operator(data_type: DataType, operator: &str) -> SqlError {
    let message = format!("could not identify an {operator} operator for type {}", data_type.family());
    let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message);
    match operator {
        "ordering" => error.hint("Use an explicit ordering operator or modify the query."),
        _ => error,
    }
}
