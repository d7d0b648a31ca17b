//! Joins by what must be equal.

use crate::expression::{Lowering, same_type};
use crate::reason::OnRows;
use crate::relation::{Relations, Rows, note};
use datafusion_common::{JoinType, NullEquality};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use plan::expression::{Expression, Kind};
use plan::logical::Join;
use plan::statement::JoinKind;
use std::collections::BTreeSet;
use std::sync::Arc;
use values::Comparison;

/// A join whose columns begin at `first`. The smaller side is kept in a hash table; of two that are as large, the right one, which is
/// mostly the one whose key is looked up.
pub(crate) fn lower(
    relations: &Relations<'_>,
    join: &Join,
    first: usize,
    lifted: &mut Vec<Expression>,
) -> Result<Rows, OnRows> {
    let middle = first + join.left.width();
    let mut asked = Vec::new();
    let left = relations.lower(&join.left, first, lifted)?;
    let right = relations.lower(&join.right, middle, &mut asked)?;
    // What looks at nothing of this join's left side is asked further up.
    let (own, outer): (Vec<_>, Vec<_>) =
        asked.into_iter().partition(|condition| columns(condition).range(..first).next().is_none());
    if !outer.is_empty() && join.kind != JoinKind::Inner {
        return Err(OnRows::because("an outer join that looks further to its left"));
    }
    lifted.extend(outer);
    let mut equal = join.equal.clone();
    let mut others = Vec::new();
    for condition in own.into_iter().chain(join.on.iter().cloned()) {
        match equal_sides(&condition, middle) {
            Some(sides) => equal.push(sides),
            None => others.push(condition),
        }
    }
    if equal.is_empty() {
        return Err(OnRows::because("a join without anything that must be equal"));
    }
    if !others.is_empty() && join.kind != JoinKind::Inner {
        return Err(OnRows::because("an outer join with further conditions"));
    }
    let joined = hash_join(relations, join.kind, left, right, &equal)?;
    relations.filtered(joined, &others)
}

fn hash_join(
    relations: &Relations<'_>,
    kind: JoinKind,
    left: Rows,
    right: Rows,
    equal: &[(Expression, Expression)],
) -> Result<Rows, OnRows> {
    let given = (relations.wanted.frame, relations.wanted.now);
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

/// The sides of an equality, where one looks only at columns before `middle` and the other only behind it.
fn equal_sides(condition: &Expression, middle: usize) -> Option<(Expression, Expression)> {
    let Kind::Compare(Comparison::Equal, sides) = &condition.kind else { return None };
    let [a, b] = sides.as_ref();
    let is_left = |side: &Expression| columns(side).last().is_some_and(|column| *column < middle);
    let is_right = |side: &Expression| columns(side).first().is_some_and(|column| *column >= middle);
    if is_left(a) && is_right(b) {
        Some((a.clone(), b.clone()))
    } else if is_left(b) && is_right(a) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

fn columns(expression: &Expression) -> BTreeSet<usize> {
    let mut columns = BTreeSet::new();
    note(expression, &mut columns);
    columns
}
