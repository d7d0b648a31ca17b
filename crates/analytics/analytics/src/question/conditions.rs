//! Conditions: where they are asked, and what follows from those with OR.

use crate::question::relation::{Joined, Relation};
use plan::expression::{Expression, Kind};
use plan::statement::JoinKind;
use types::DataType;

/// Adds a condition without queries in it: to the member that has all columns that it looks at, else to those between members.
pub(super) fn add(joined: &mut Joined, condition: Expression) {
    for condition in factored(condition) {
        if let Some(left) = pushed_into_members(joined, condition) {
            joined.conditions.push(left);
        }
    }
}

/// Says of each member what the conditions between members imply for it alone. They stay.
pub(super) fn imply(joined: &mut Joined) {
    let Joined { members, conditions, .. } = joined;
    for condition in conditions.iter() {
        let Kind::Or(branches) = &condition.kind else { continue };
        for member in members.iter_mut() {
            if let Some(implied) = implied(branches, member) {
                push(member, implied);
            }
        }
    }
}

/// The condition, where no member has all of its columns.
fn pushed_into_members(joined: &mut Joined, condition: Expression) -> Option<Expression> {
    let member = joined.members.iter_mut().find(|member| member.has_all_of(&condition));
    match member {
        Some(member) => push(member, condition),
        None => Some(condition),
    }
}

/// Asks a relation about its own columns; gives the condition back where the relation cannot be asked.
fn push(relation: &mut Relation, condition: Expression) -> Option<Expression> {
    match relation {
        Relation::Table(table) => {
            table.conditions.push(condition);
            None
        }
        Relation::Joined(joined) => {
            add(joined, condition);
            None
        }
        Relation::Outer(outer) => match outer.kind {
            JoinKind::Left if outer.left.has_all_of(&condition) => push(&mut outer.left, condition),
            JoinKind::Right if outer.right.has_all_of(&condition) => push(&mut outer.right, condition),
            _ => Some(condition),
        },
        Relation::Groups(_) => Some(condition),
        Relation::Computed(computed) => match computed.input.has_all_of(&condition) {
            true => push(&mut computed.input, condition),
            false => Some(condition),
        },
    }
}

/// Conditions that must all be true for this one to be true. What all branches of an OR ask stands alone.
fn factored(condition: Expression) -> Vec<Expression> {
    let condition = match condition.kind {
        Kind::And(_) => return condition.into_conjuncts().into_iter().flat_map(factored).collect(),
        Kind::Or(branches) => branches,
        _ => return vec![condition],
    };
    let mut branches: Vec<Vec<Expression>> = condition.into_iter().map(Expression::into_conjuncts).collect();
    let Some(first) = branches.first() else { return Vec::new() };
    let common: Vec<Expression> =
        first.iter().filter(|asked| branches.iter().all(|branch| branch.contains(asked))).cloned().collect();
    branches.iter_mut().for_each(|branch| branch.retain(|asked| !common.contains(asked)));
    let mut asked: Vec<Expression> = common.into_iter().flat_map(factored).collect();
    if branches.iter().all(|branch| !branch.is_empty()) {
        asked.push(any_of(branches.into_iter().map(all_of).collect()));
    }
    asked
}

/// What must be true of the columns of a relation for one of the branches to be true.
fn implied(branches: &[Expression], relation: &Relation) -> Option<Expression> {
    let of_relation = |branch: &Expression| {
        let mut asked = branch.clone().into_conjuncts();
        asked.retain(|condition| relation.has_all_of(condition));
        (!asked.is_empty()).then(|| all_of(asked))
    };
    branches.iter().map(of_relation).collect::<Option<Vec<_>>>().map(any_of)
}

fn all_of(mut conditions: Vec<Expression>) -> Expression {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => truth(Kind::And(conditions)),
    }
}

fn any_of(mut conditions: Vec<Expression>) -> Expression {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => truth(Kind::Or(conditions)),
    }
}

fn truth(kind: Kind) -> Expression {
    Expression { kind, data_type: DataType::Boolean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;
    use values::Comparison;

    fn equal(column: usize, value: i32) -> Expression {
        let sides = [
            Expression::column(column, DataType::Integer),
            Expression::constant(Value::Integer(value), DataType::Integer),
        ];
        truth(Kind::Compare(Comparison::Equal, Box::new(sides)))
    }

    #[test]
    fn what_all_branches_ask_stands_alone() {
        let either =
            any_of(vec![all_of(vec![equal(0, 1), equal(1, 1)]), all_of(vec![equal(0, 1), equal(1, 2)])]);
        assert_eq!(factored(either), [equal(0, 1), any_of(vec![equal(1, 1), equal(1, 2)])]);
        // One branch asks nothing more: then the others say nothing.
        let either = any_of(vec![equal(0, 1), all_of(vec![equal(0, 1), equal(1, 2)])]);
        assert_eq!(factored(either), [equal(0, 1)]);
        let either = any_of(vec![equal(0, 1), equal(1, 2)]);
        assert_eq!(factored(either.clone()), [either]);
    }
}
