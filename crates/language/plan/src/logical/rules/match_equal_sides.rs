//! `match_equal_sides`: a join matches its sides by what must be equal, because comparing every row with every row costs
//! their product.
//!
//! Where the right side itself looks at columns of the left one, it is read for every row of the left one, and nothing is
//! left to match.

use crate::expression::{Expression, Kind};
use crate::logical::LogicalPlan;
use crate::logical::block::{looks_among, source_mut};
use std::ops::Range;
use values::Comparison;

pub(super) fn apply(block: &mut LogicalPlan) {
    match_sides(source_mut(block), 0);
}

fn match_sides(relation: &mut LogicalPlan, first: usize) {
    match relation {
        LogicalPlan::Filter { input, .. } => match_sides(input, first),
        LogicalPlan::Join(join) => {
            let left = first..first + join.left.width();
            match_sides(&mut join.left, left.start);
            match_sides(&mut join.right, left.end);
            join.right.visit_in_source(&mut |expression| join.dependent |= looks_among(expression, &left));
            if join.dependent {
                return;
            }
            let (mut equal, mut others) = (Vec::new(), Vec::new());
            for condition in std::mem::take(&mut join.on) {
                match equal_sides(condition, &left) {
                    Ok(sides) => equal.push(sides),
                    Err(condition) => others.push(condition),
                }
            }
            (join.equal, join.on) = (equal, others);
        }
        _ => {}
    }
}

/// The sides of an equality between the columns of `left` and those behind them; the condition where it is none.
fn equal_sides(condition: Expression, left: &Range<usize>) -> Result<(Expression, Expression), Expression> {
    let Kind::Compare(Comparison::Equal, operands) = &condition.kind else { return Err(condition) };
    let [a, b] = operands.as_ref();
    if a.runs_anything() || b.runs_anything() {
        return Err(condition);
    }
    let on_left = |side: &Expression| looks_only_at(side, |column| left.contains(&column));
    let on_right = |side: &Expression| looks_only_at(side, |column| column >= left.end);
    let in_order = on_left(a) && on_right(b);
    let mirrored = on_left(b) && on_right(a);
    if !in_order && !mirrored {
        return Err(condition);
    }
    let data_type = condition.data_type;
    match condition.kind {
        Kind::Compare(_, operands) => {
            let [a, b] = *operands;
            Ok(if in_order { (a, b) } else { (b, a) })
        }
        kind => Err(Expression { kind, data_type }),
    }
}

/// Whether it looks at columns, and only at such.
fn looks_only_at(side: &Expression, is_one: impl Fn(usize) -> bool) -> bool {
    let mut some = false;
    let other = side.any(&mut |inner| match inner.kind {
        Kind::Column(ordinal) => {
            some = true;
            !is_one(usize::from(ordinal))
        }
        _ => false,
    });
    some && !other
}
