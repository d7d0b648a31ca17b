//! The order in which relations are joined: always the two next whose rows together are the fewest.

use crate::lower::estimate::Estimate;
use crate::question::columns_of;
use plan::expression::{Expression, Kind};
use std::collections::BTreeSet;
use values::Comparison;

/// In which order members are joined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// A member.
    Member(usize),
    /// Two of them.
    Join(Box<[Tree; 2]>),
}

/// A member or several that are joined already.
struct Part {
    tree: Tree,
    estimate: Estimate,
    columns: BTreeSet<usize>,
}

/// Chooses an order for members of which it is known what they have. Gives about how many rows there are in the end.
pub(crate) fn choose(members: &[(Estimate, BTreeSet<usize>)], conditions: &[Expression]) -> (Tree, f64) {
    let part = |(number, (estimate, columns)): (usize, &(Estimate, BTreeSet<usize>))| Part {
        tree: Tree::Member(number),
        estimate: estimate.clone(),
        columns: columns.clone(),
    };
    let mut parts: Vec<Part> = members.iter().enumerate().map(part).collect();
    while parts.len() > 1 {
        let (a, b, estimate) = next(&parts, conditions);
        // The later one first, so that the earlier one keeps its place.
        let right = parts.remove(b);
        let left = parts.remove(a);
        let columns = left.columns.union(&right.columns).copied().collect();
        parts.push(Part { tree: Tree::Join(Box::new([left.tree, right.tree])), estimate, columns });
    }
    match parts.pop() {
        Some(part) => (part.tree, part.estimate.rows),
        None => (Tree::Member(0), 0.0),
    }
}

/// The two parts to be joined next, the earlier first.
fn next(parts: &[Part], conditions: &[Expression]) -> (usize, usize, Estimate) {
    let mut best: Option<(bool, usize, usize, Estimate)> = None;
    for (b, right) in parts.iter().enumerate() {
        for (a, left) in parts[..b].iter().enumerate() {
            let equal: Vec<(&Expression, &Expression)> = conditions
                .iter()
                .filter_map(|condition| equal_sides(condition, &left.columns, &right.columns))
                .collect();
            let apart = equal.is_empty();
            let estimate = left.estimate.joined(&right.estimate, &equal);
            let is_better = best.as_ref().is_none_or(|(best_apart, _, _, best)| {
                (apart, estimate.rows)
                    .partial_cmp(&(*best_apart, best.rows))
                    .is_some_and(std::cmp::Ordering::is_lt)
            });
            if is_better {
                best = Some((apart, a, b, estimate));
            }
        }
    }
    let (_, a, b, estimate) = best.expect("there are two parts");
    (a, b, estimate)
}

/// The sides of an equality, where one looks only at columns of the left and the other only at columns of the right.
pub(crate) fn equal_sides<'e>(
    condition: &'e Expression,
    left: &BTreeSet<usize>,
    right: &BTreeSet<usize>,
) -> Option<(&'e Expression, &'e Expression)> {
    let Kind::Compare(Comparison::Equal, sides) = &condition.kind else { return None };
    let [a, b] = sides.as_ref();
    let is_of = |side: &Expression, columns: &BTreeSet<usize>| {
        let looked_at = columns_of(side);
        !looked_at.is_empty() && looked_at.is_subset(columns)
    };
    if is_of(a, left) && is_of(b, right) {
        Some((a, b))
    } else if is_of(b, left) && is_of(a, right) {
        Some((b, a))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use types::DataType;

    /// A member with two columns, the first of which is its key.
    fn member(first: usize, rows: f64) -> (Estimate, BTreeSet<usize>) {
        let unique = vec![(BTreeSet::from([first]), rows)];
        (Estimate { rows, unique, distinct: BTreeMap::new() }, BTreeSet::from([first, first + 1]))
    }

    fn equal(a: usize, b: usize) -> Expression {
        let sides = [a, b].map(|column| Expression::column(column, DataType::BigInt));
        let kind = Kind::Compare(Comparison::Equal, Box::new(sides));
        Expression { kind, data_type: DataType::Boolean }
    }

    #[test]
    fn relations_without_a_condition_between_them_wait() {
        // Part and supplier have nothing in common but the line items.
        let (part, supplier, mut items) = (member(0, 200.0), member(2, 100.0), member(4, 6_000.0));
        items.1.insert(6);
        let (tree, rows) = choose(&[part, supplier, items], &[equal(5, 0), equal(6, 2)]);
        let leaf = |number| Tree::Member(number);
        let Tree::Join(sides) = tree else { panic!("three are joined") };
        assert!(!sides.contains(&Tree::Join(Box::new([leaf(0), leaf(1)]))), "{sides:?}");
        assert_eq!(rows, 6_000.0);
    }

    #[test]
    fn few_rows_come_first() {
        let (names, few, facts) =
            (member(0, 1_000.0), (member(2, 1_000.0).0.scaled(0.01), member(2, 0.0).1), {
                let (estimate, mut columns) = member(4, 100_000.0);
                columns.insert(6);
                (estimate, columns)
            });
        let (tree, rows) = choose(&[names, few, facts], &[equal(5, 0), equal(6, 2)]);
        let first = Tree::Join(Box::new([Tree::Member(1), Tree::Member(2)]));
        assert_eq!(tree, Tree::Join(Box::new([Tree::Member(0), first])));
        assert_eq!(rows, 1_000.0);
    }
}
