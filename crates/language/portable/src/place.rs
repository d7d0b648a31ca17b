//! Where arithmetic can stand. It is what a script's expressions can fail with, and the databases agree on whether they do only
//! where they agree on which rows, and on which parts of an expression, are looked at.

use crate::access::is_key_equality;
use crate::data_type::integer_rank;
use crate::expression::{Expression, Term};
use crate::refusal::{COMPUTE_BEFORE, refused};
use crate::statement::Access;
use types::{DataType, SqlError, Table};

fn has_arithmetic(expression: &Expression) -> bool {
    expression.any(&mut |part| matches!(part.term, Term::Arithmetic(..)))
}

fn is_narrow(part: &Expression) -> bool {
    matches!(part.term, Term::Arithmetic(..)) && integer_rank(part.data_type).is_some_and(|rank| rank < 2)
}

/// The type of arithmetic in it that is narrower than 64 bits.
fn narrow_inside(expression: &Expression) -> Option<DataType> {
    let mut found = None;
    expression.any(&mut |part| {
        found = is_narrow(part).then_some(part.data_type);
        found.is_some()
    });
    found
}

/// Refuses arithmetic of smallint and integer: MariaDB computes with 64 bits, and does not see that the result is out of range.
/// It sees that where the result is stored, whole, in a column of the same type (`column`).
///
/// # Errors
/// `0A000`
pub(crate) fn refuse_narrow(expression: &Expression, column: Option<DataType>) -> Result<(), SqlError> {
    let is_stored = is_narrow(expression) && column == Some(expression.data_type);
    let found = match is_stored {
        true => expression.parts().into_iter().find_map(narrow_inside),
        false => narrow_inside(expression),
    };
    let Some(data_type) = found else { return Ok(()) };
    let what = format!("arithmetic of {data_type} that is not the whole value of a column of that type");
    Err(refused(what).hint("MariaDB computes with 64 bits. Cast one side: x::bigint."))
}

/// The condition of a statement, the key in front of everything else where it has arithmetic.
///
/// # Errors
/// `0A000` for arithmetic in it, unless the whole key and that one comparison are all there is: databases look at rows, and at
/// the parts of a condition, in orders of their own.
pub(crate) fn settle_condition(condition: Expression, table: &Table) -> Result<Expression, SqlError> {
    if !has_arithmetic(&condition) {
        return Ok(condition);
    }
    let parts = match condition.term {
        Term::And(parts) => parts,
        _ => vec![condition],
    };
    let (mut keys, mut others): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| is_key_equality(table, part));
    let is_whole_key = table
        .primary_key
        .iter()
        .all(|ordinal| keys.iter().any(|key: &Expression| key.reads(usize::from(*ordinal))));
    let is_junction = |part: &Expression| matches!(part.term, Term::And(_) | Term::Or(_));
    let is_single = others.len() == 1 && !others.iter().any(|other| other.any(&mut |part| is_junction(part)));
    if !is_whole_key || table.primary_key.is_empty() || !is_single {
        return Err(refused("arithmetic in WHERE beside anything but the whole primary key").hint(format!(
            "The databases look at rows and conditions in orders of their own. Name one row by its key: WHERE id = 1 AND a - 1 >= b. \
             Else: {COMPUTE_BEFORE}"
        )));
    }
    keys.append(&mut others);
    Ok(Expression::boolean(Term::And(keys)))
}

/// Refuses arithmetic in the conditions of a value, unless the statement names its rows by their keys.
///
/// # Errors
/// `0A000`
pub(crate) fn refuse_decisions(value: &Expression, access: &Access) -> Result<(), SqlError> {
    let decides = |part: &Expression| part.data_type == DataType::Boolean && has_arithmetic(part);
    if *access != Access::Table || !value.any(&mut |part| decides(part)) {
        return Ok(());
    }
    Err(refused("arithmetic in a condition of a statement without the primary key").hint(format!(
        "The databases look at conditions in orders of their own. Name the rows by their keys in WHERE. Else: {COMPUTE_BEFORE}"
    )))
}
