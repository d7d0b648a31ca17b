//! Joins by what must be equal.

use crate::expression::{Lowering, same_type};
use crate::reason::OnRows;
use crate::rows::{Rows, columns_of, looks_left};
use datafusion_common::{JoinType, NullEquality};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use plan::expression::{Expression, Kind};
use plan::logical::Join;
use plan::statement::JoinKind;
use std::sync::Arc;
use types::Value;
use values::Comparison;

/// What must be true of a row of both sides.
pub(crate) struct Conditions {
    /// What must be equal, of the left side and of the right one; at least one.
    pub(crate) equal: Vec<(Expression, Expression)>,
    /// What else. Nothing with an outer join.
    pub(crate) others: Vec<Expression>,
    /// What looks further to the left is asked further up. Nothing with an outer join.
    pub(crate) outer: Vec<Expression>,
}

/// The conditions of a join whose columns begin at `first`, and those of its right side at `middle`. `asked`: what the tables of the
/// right side are asked that looks to their left.
pub(crate) fn conditions(
    join: &Join,
    asked: Vec<Expression>,
    first: usize,
    middle: usize,
) -> Result<Conditions, OnRows> {
    let (outer, own): (Vec<_>, Vec<_>) =
        asked.into_iter().partition(|condition| looks_left(condition, first));
    let (mut equal, mut others) = (join.equal.clone(), Vec::new());
    for condition in own.into_iter().chain(join.on.iter().cloned()) {
        match equal_sides(&condition, middle) {
            Some(sides) => equal.push(sides),
            None => others.push(condition),
        }
    }
    if equal.is_empty() {
        return Err(OnRows::because("a join without anything that must be equal"));
    }
    if join.kind != JoinKind::Inner && !(others.is_empty() && outer.is_empty()) {
        return Err(OnRows::because("an outer join with further conditions"));
    }
    Ok(Conditions { equal, others, outer })
}

/// The sides of an equality, where one looks only at columns before `middle` and the other only behind it.
fn equal_sides(condition: &Expression, middle: usize) -> Option<(Expression, Expression)> {
    let Kind::Compare(Comparison::Equal, sides) = &condition.kind else { return None };
    let [a, b] = sides.as_ref();
    let is_left = |side: &Expression| columns_of(side).last().is_some_and(|column| *column < middle);
    let is_right = |side: &Expression| columns_of(side).first().is_some_and(|column| *column >= middle);
    if is_left(a) && is_right(b) {
        Some((a.clone(), b.clone()))
    } else if is_left(b) && is_right(a) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

/// The rows of both sides in which these are equal. The smaller side is kept in a hash table; of two that are as large, the right
/// one, which is mostly the one whose key is looked up. `given`: parameters and time.
pub(crate) fn hash_join(
    kind: JoinKind,
    (left, right): (Rows, Rows),
    equal: &[(Expression, Expression)],
    given: (&[Value], i64),
) -> Result<Rows, OnRows> {
    let (of_left, of_right) = (Lowering::new(&left.fields, given), Lowering::new(&right.fields, given));
    let keys = equal.iter().map(|(a, b)| {
        let (a, b) = same_type(of_left.lower(a)?, of_right.lower(b)?)?;
        Ok((a.expression, b.expression))
    });
    let keys = keys.collect::<Result<Vec<_>, OnRows>>()?;
    let kind = match kind {
        JoinKind::Inner => JoinType::Inner,
        JoinKind::Left => JoinType::Left,
        JoinKind::Right => JoinType::Right,
        JoinKind::Full => JoinType::Full,
    };
    let about = left.about.max(right.about);
    let (build, probe, keys, kind) = match right.about <= left.about {
        true => (right, left, keys.into_iter().map(|(a, b)| (b, a)).collect(), kind.swap()),
        false => (left, right, keys, kind),
    };
    let join = HashJoinExec::try_new(
        build.operator,
        probe.operator,
        keys,
        None,
        &kind,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    )?;
    Ok(Rows { operator: Arc::new(join), fields: build.fields.and(probe.fields), about })
}
