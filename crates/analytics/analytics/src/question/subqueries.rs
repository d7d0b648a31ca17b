//! Queries inside of conditions, as relations.
//!
//! | condition | becomes |
//! | --- | --- |
//! | `EXISTS (…)`, `x IN (…)` | a partner that rows must have |
//! | `NOT EXISTS (…)`, `x NOT IN (…)` | a partner that rows must not have |
//! | `x < (SELECT max(…) FROM …)` | a constant |
//! | `x < (SELECT max(…) FROM … WHERE a = outer.b)` | a member with one row for each `a`, joined by `a = outer.b` |

use crate::question::conditions;
use crate::question::relation::{Joined, Partner, Relation, columns_of};
use crate::question::translation::{Seen, Translation, columns, finished};
use crate::reason::OnRows;
use plan::aggregate::{Aggregate, AggregateFunction};
use plan::expression::{Expression, Kind, Subquery, SubqueryForm};
use plan::logical::LogicalPlan;
use types::DataType;
use values::Comparison;

impl Translation<'_> {
    /// Adds a condition over numbered columns, which may have queries in it.
    pub(super) fn ask_one(&mut self, joined: &mut Joined, mut condition: Expression) -> Result<(), OnRows> {
        if let Some((subquery, wanted)) = partner_asked(&condition) {
            let partner = partner(self, subquery, wanted)?;
            joined.partners.push(partner);
            return Ok(());
        }
        self.resolve_alone(&mut condition)?;
        if condition.runs_anything() {
            if !is_null_for_null(&condition) {
                return Err(OnRows::because("a query inside of a condition of this form"));
            }
            resolve_with_groups(self, joined, &mut condition)?;
        }
        conditions::add(joined, condition);
        Ok(())
    }

    /// Puts in the values of queries that look at nothing around them.
    pub(super) fn resolve_alone(&self, expression: &mut Expression) -> Result<(), OnRows> {
        if let Kind::Subquery(subquery) = &expression.kind
            && subquery.form == SubqueryForm::Scalar
            && subquery.arguments.is_empty()
        {
            let (groups, output) = value_of_groups(&subquery.logical)?;
            let value = (self.scalars)(groups, output)?;
            *expression = Expression::constant(value, expression.data_type);
            return Ok(());
        }
        expression.operands_mut().into_iter().try_for_each(|operand| self.resolve_alone(operand))
    }
}

/// The query of EXISTS and IN, and whether a partner is wanted.
fn partner_asked(condition: &Expression) -> Option<(&Subquery, bool)> {
    let (inner, wanted) = match &condition.kind {
        Kind::Not(inner) => (inner.as_ref(), false),
        _ => (condition, true),
    };
    let Kind::Subquery(subquery) = &inner.kind else { return None };
    match subquery.form {
        SubqueryForm::Exists | SubqueryForm::Any(Comparison::Equal) => Some((subquery, wanted)),
        SubqueryForm::All(Comparison::NotEqual) if wanted => Some((subquery, false)),
        _ => None,
    }
}

fn partner(translation: &mut Translation<'_>, subquery: &Subquery, wanted: bool) -> Result<Partner, OnRows> {
    let start = translation.next();
    let plan = subquery.logical.as_ref();
    let is_exists = subquery.form == SubqueryForm::Exists;
    let mut inner =
        translation.block(if is_exists { without_distinct(plan) } else { plan }, &subquery.arguments)?;
    if is_exists && has_row_always(plan) {
        return Err(OnRows::because("EXISTS of a query that always has a row"));
    }
    let mut on = lifted(&mut inner.joined, start);
    let (mut null_may_match, is_correlated) = (false, !on.is_empty());
    let compared = subquery.operands.iter().zip(&inner.outputs).zip(&subquery.compared_as);
    for ((operand, output), compared_as) in compared {
        let output = match compared_as {
            Some(data_type) => cast(output.clone(), *data_type),
            None => output.clone(),
        };
        null_may_match |= !translation.is_never_null(operand) || !translation.is_never_null(&output);
        on.push(equal(operand.clone(), output));
    }
    null_may_match &= !wanted;
    if null_may_match && (is_correlated || subquery.operands.len() != 1) {
        return Err(OnRows::because("NOT IN of values that may be NULL"));
    }
    Ok(Partner { relation: finished(inner.joined), on, wanted, null_may_match })
}

/// Puts in columns of groups for queries that give one value for each value of columns around them.
fn resolve_with_groups(
    translation: &mut Translation<'_>,
    joined: &mut Joined,
    expression: &mut Expression,
) -> Result<(), OnRows> {
    if let Kind::Subquery(subquery) = &expression.kind {
        if subquery.form != SubqueryForm::Scalar {
            return Err(OnRows::because("a query inside of a condition of this form"));
        }
        *expression = value_by_key(translation, joined, subquery)?;
        return Ok(());
    }
    for operand in expression.operands_mut() {
        resolve_with_groups(translation, joined, operand)?;
    }
    Ok(())
}

fn value_by_key(
    translation: &mut Translation<'_>,
    joined: &mut Joined,
    subquery: &Subquery,
) -> Result<Expression, OnRows> {
    let start = translation.next();
    let (groups, output) = value_of_groups(&subquery.logical)?;
    let LogicalPlan::Aggregate { input, aggregates, .. } = groups else { return Err(no_groups()) };
    if aggregates.iter().any(|aggregate| aggregate.function == AggregateFunction::Count) {
        return Err(OnRows::because("count in a query that looks at the rows around it"));
    }
    let (mut inner, row) = translation.below_outputs(input, &subquery.arguments)?;
    let (mut keys, mut around) = (Vec::new(), Vec::new());
    for condition in lifted(&mut inner, start) {
        let (own, outer) = sides_of(&condition, start).ok_or_else(|| {
            OnRows::because("a query that compares with the rows around it by more than equality")
        })?;
        keys.push(own);
        around.push(outer);
    }
    let seen = Seen { row: &row, arguments: &subquery.arguments };
    let mut aggregates = aggregates.clone();
    for expression in aggregates.iter_mut().flat_map(Aggregate::expressions_mut) {
        *expression = translation.mapped(expression, seen)?;
    }
    let groups = translation.grouped(inner, keys, aggregates)?;
    let key_types = groups.keys.iter().map(Expression::data_type);
    let keys = columns(groups.first, key_types);
    let values = columns(
        groups.first + groups.keys.len(),
        groups.aggregates.iter().map(|aggregate| aggregate.data_type),
    );
    let seen = Seen { row: &values, arguments: &subquery.arguments };
    let value = translation.mapped(output, seen)?;
    translation.looked_up.insert(groups.first);
    joined.members.push(Relation::Groups(Box::new(groups)));
    for (key, outer) in keys.into_iter().zip(around) {
        conditions::add(joined, equal(outer, key));
    }
    Ok(value)
}

/// The groups and the output of a query that gives one row, whatever there is.
fn value_of_groups(plan: &LogicalPlan) -> Result<(&LogicalPlan, &Expression), OnRows> {
    let LogicalPlan::Project { input, outputs, .. } = plan else { return Err(no_groups()) };
    match (input.as_ref(), outputs.as_slice()) {
        (groups @ LogicalPlan::Aggregate { keys, .. }, [output]) if keys.is_empty() => Ok((groups, output)),
        _ => Err(no_groups()),
    }
}

fn no_groups() -> OnRows {
    OnRows::because("a query inside of an expression that gives no aggregate of all rows")
}

/// Takes out the conditions that look at columns from before `start`: those of rows around the query.
fn lifted(joined: &mut Joined, start: usize) -> Vec<Expression> {
    let looks_around =
        |condition: &mut Expression| columns_of(condition).first().is_some_and(|column| *column < start);
    joined.conditions.extract_if(.., looks_around).collect()
}

/// The own side and the outer side of an equality.
fn sides_of(condition: &Expression, start: usize) -> Option<(Expression, Expression)> {
    let Kind::Compare(Comparison::Equal, sides) = &condition.kind else { return None };
    let [a, b] = sides.as_ref();
    let is_own = |side: &Expression| columns_of(side).first().is_some_and(|column| *column >= start);
    let is_outer = |side: &Expression| columns_of(side).last().is_some_and(|column| *column < start);
    match (is_own(a) && is_outer(b), is_own(b) && is_outer(a)) {
        (true, _) => Some((a.clone(), b.clone())),
        (_, true) => Some((b.clone(), a.clone())),
        _ => None,
    }
}

/// Whether a condition is not true where a query inside of it gives NULL: nothing but comparisons and arithmetic stand above it.
fn is_null_for_null(condition: &Expression) -> bool {
    fn is_strict(expression: &Expression) -> bool {
        !expression.runs_anything()
            || match &expression.kind {
                Kind::Subquery(_) => true,
                Kind::Arithmetic(_, sides) => sides.iter().all(is_strict),
                Kind::Cast(inner) | Kind::Negate(inner) => is_strict(inner),
                _ => false,
            }
    }
    matches!(&condition.kind, Kind::Compare(_, sides) if sides.iter().all(is_strict))
}

/// EXISTS asks for a row, not for which.
fn without_distinct(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Distinct { input, on: None } => without_distinct(input),
        other => other,
    }
}

fn has_row_always(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate { keys, .. } => keys.is_empty(),
        LogicalPlan::Project { input, .. }
        | LogicalPlan::Distinct { input, .. }
        | LogicalPlan::Sort { input, .. } => has_row_always(input),
        _ => false,
    }
}

fn equal(left: Expression, right: Expression) -> Expression {
    let kind = Kind::Compare(Comparison::Equal, Box::new([left, right]));
    Expression { kind, data_type: DataType::Boolean }
}

fn cast(inner: Expression, data_type: DataType) -> Expression {
    Expression { kind: Kind::Cast(Box::new(inner)), data_type }
}
