//! Whether conditions imply another one: what decides whether an index that has entries of some rows alone has those of all rows
//! that are asked for. Where it is not sure, it says no.

use crate::expression::{Expression, Kind};
use std::cmp::Ordering;
use types::Value;
use values::Comparison;

/// Whether `wanted` is true of every row of which all `conditions` are true.
pub(crate) fn is_implied(wanted: &Expression, conditions: &[Expression]) -> bool {
    match &plain(wanted).kind {
        Kind::And(parts) => parts.iter().all(|part| is_implied(part, conditions)),
        Kind::Or(parts) if parts.iter().any(|part| is_implied(part, conditions)) => true,
        Kind::Constant(Value::Boolean(true)) => true,
        _ => conditions.iter().any(|condition| implies(condition, wanted)),
    }
}

/// Whether one condition implies another one.
fn implies(condition: &Expression, wanted: &Expression) -> bool {
    let (condition, wanted) = (plain(condition), plain(wanted));
    if condition == wanted || denied(condition).is_some_and(|denies| denied(wanted) == Some(denies)) {
        return true;
    }
    match (&condition.kind, &wanted.kind) {
        (Kind::And(parts), _) => parts.iter().any(|part| implies(part, wanted)),
        (Kind::Or(parts), _) => parts.iter().all(|part| implies(part, wanted)),
        (_, Kind::And(parts)) => parts.iter().all(|part| implies(condition, part)),
        (_, Kind::Or(parts)) => parts.iter().any(|part| implies(condition, part)),
        (_, Kind::IsNull(false, operand)) => is_null_without(condition, operand),
        (Kind::InList(true, operands), _) => match operands.split_first() {
            Some((operand, list)) => {
                list.iter().all(|value| compared(operand, Comparison::Equal, value, wanted))
            }
            None => false,
        },
        (Kind::Compare(comparison, operands), _) => {
            let [left, right] = operands.as_ref();
            compared(left, *comparison, right, wanted) || compared(right, comparison.mirrored(), left, wanted)
        }
        _ => false,
    }
}

/// A condition without what says nothing: where `active = true` and `active IS TRUE` are true, `active` is.
fn plain(condition: &Expression) -> &Expression {
    match &condition.kind {
        Kind::Compare(Comparison::Equal, operands) => other_than(operands, true).map_or(condition, plain),
        Kind::IsTruth(Some(true), true, operand) => plain(operand),
        _ => condition,
    }
}

/// What is false where a condition is true: that of `NOT x`, `x = false` and `x IS FALSE`.
fn denied(condition: &Expression) -> Option<&Expression> {
    match &condition.kind {
        Kind::Not(operand) | Kind::IsTruth(Some(false), true, operand) => Some(equal_to(operand)),
        Kind::Compare(Comparison::Equal, operands) => other_than(operands, false).map(equal_to),
        _ => None,
    }
}

/// A condition without `= true`, which has the same value. `x IS TRUE` has not: it is false also where `x` is NULL.
fn equal_to(condition: &Expression) -> &Expression {
    match &condition.kind {
        Kind::Compare(Comparison::Equal, operands) => other_than(operands, true).map_or(condition, equal_to),
        _ => condition,
    }
}

/// The side that is compared with this constant.
fn other_than(operands: &[Expression; 2], truth: bool) -> Option<&Expression> {
    let [left, right] = operands;
    let is_it = |side: &Expression| side.as_constant() == Some(&Value::Boolean(truth));
    if is_it(right) { Some(left) } else { Some(right).filter(|_| is_it(left)) }
}

/// Whether a condition is not true where an operand is NULL, because it compares it.
fn is_null_without(condition: &Expression, operand: &Expression) -> bool {
    if condition == operand {
        return true;
    }
    match &condition.kind {
        Kind::Compare(_, operands) | Kind::Like(_, operands) => {
            operands.iter().any(|side| is_strict_in(side, operand))
        }
        Kind::InList(_, operands) => operands.first().is_some_and(|side| is_strict_in(side, operand)),
        Kind::Not(inner) => {
            is_strict_in(inner, operand)
                || matches!(inner.kind, Kind::Compare(..) | Kind::Like(..)) && is_null_without(inner, operand)
        }
        _ => false,
    }
}

/// Whether an expression is NULL where an operand is.
fn is_strict_in(expression: &Expression, operand: &Expression) -> bool {
    if expression == operand {
        return true;
    }
    match &expression.kind {
        Kind::Cast(inner) | Kind::Negate(inner) => is_strict_in(inner, operand),
        Kind::Arithmetic(_, sides) | Kind::Concatenate(sides) => {
            sides.iter().any(|side| is_strict_in(side, operand))
        }
        Kind::Function(function, arguments) if function.is_strict() => {
            arguments.iter().any(|argument| is_strict_in(argument, operand))
        }
        _ => false,
    }
}

/// Whether `operand comparison value` implies a comparison of the same operand with another constant.
fn compared(operand: &Expression, comparison: Comparison, value: &Expression, wanted: &Expression) -> bool {
    let Some(value) = value.as_constant().filter(|value| !value.is_null()) else { return false };
    if let Kind::InList(true, operands) = &wanted.kind {
        return comparison == Comparison::Equal
            && operands.first() == Some(operand)
            && operands[1..]
                .iter()
                .any(|one| one.as_constant().is_some_and(|one| order(value, one) == Some(Ordering::Equal)));
    }
    let Kind::Compare(asked, sides) = &wanted.kind else { return false };
    let [left, right] = sides.as_ref();
    let (asked, bound) = match (left == operand, right == operand) {
        (true, _) => (*asked, right),
        (_, true) => (asked.mirrored(), left),
        _ => return false,
    };
    let Some(bound) = bound.as_constant().filter(|bound| !bound.is_null()) else { return false };
    let Some(order) = order(value, bound) else { return false };
    follows(comparison, order, asked)
}

/// Whether `x comparison value` implies `x asked bound`, where `order` is that of value and bound.
fn follows(comparison: Comparison, order: Ordering, asked: Comparison) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    match (comparison, asked) {
        (Equal, Equal) | (NotEqual, NotEqual) => order.is_eq(),
        (Equal, NotEqual) => order.is_ne(),
        (Equal | LessOrEqual, Less) => order.is_lt(),
        (Equal | LessOrEqual | Less, LessOrEqual) | (Less, Less | NotEqual) => order.is_le(),
        (LessOrEqual, NotEqual) => order.is_lt(),
        (Equal | GreaterOrEqual, Greater) => order.is_gt(),
        (Equal | GreaterOrEqual | Greater, GreaterOrEqual) | (Greater, Greater | NotEqual) => order.is_ge(),
        (GreaterOrEqual, NotEqual) => order.is_gt(),
        _ => false,
    }
}

/// The order of two values that the same operand is compared with; `None` where they are of different types.
fn order(one: &Value, other: &Value) -> Option<Ordering> {
    let same = std::mem::discriminant(one) == std::mem::discriminant(other);
    if same { one.compare(other) } else { None }
}
