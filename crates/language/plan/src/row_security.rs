//! Row security as statements ask it: what policies let a role see of a table, and what it may write
//! ([`RowCheck`]).
//!
//! Who runs a statement is known only then, so the conditions ask: they are true for whom policies do not count. What they ask is the same
//! for all rows of a statement, and computed once.
//!
//! ```text
//! rows that are there:  not bound or (acts as its roles and its USING, or … of the permissive policies)
//!                       and for each restrictive policy: not bound, or does not act as its roles, or its USING
//! rows that are written: the same of WITH CHECK, on the row as BEFORE triggers leave it
//! ```

use crate::expression::written::first_subquery;
use crate::expression::{Binder, Expression, Kind, Source, session_call};
use crate::logical::{LogicalPlan, Scan};
use crate::row_check::{PolicyCondition, RowCheck};
use crate::scope::VariableScope;
use crate::session_facts::SessionFunction;
use crate::table::TablePlan;
use crate::tables::Tables;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::session_format::{SessionFormat, within_format};
use types::{
    Array, DataType, ElementType, OutputColumn, PolicyCommand, RowPolicy, RowSecurity, SearchPath, SqlError,
    Value,
};
use values::broken;

/// Binds the condition of a policy over the table's row.
///
/// # Errors
/// What cannot stand there.
pub fn bind_policy(scope: &VariableScope, table: &TablePlan, sql: &str) -> Result<Expression, SqlError> {
    let expr = parse_expression(sql, scope.version())?;
    if let Some(span) = first_subquery(&expr) {
        let error = SqlError::unsupported("a query in a policy")
            .hint("Put the query into a function, and call the function in the policy.");
        return Err(scope.located(error, span));
    }
    let binder = Binder::new(scope, Source::Table { table, name: &table.name });
    let binder = binder.in_clause(Some("policy expressions"));
    within_format(SessionFormat::default(), || binder.bind_condition(&expr, "POLICY"))
}

/// The policies of a table, for one statement.
struct Policies<'s> {
    table: &'s TablePlan,
    security: &'s RowSecurity,
    scope: VariableScope,
}

impl Policies<'_> {
    /// The conditions on rows of the policies for a command. `text`: which of a policy's.
    fn conditions(
        &self,
        command: PolicyCommand,
        text: fn(&RowPolicy) -> Option<&String>,
    ) -> Result<Vec<PolicyCondition>, SqlError> {
        let is_free = || {
            let forced = Expression::constant(Value::Boolean(self.security.forced), DataType::Boolean);
            not(session_call(SessionFunction::IsBoundByPolicies, vec![forced]))
        };
        let (mut permitted, mut conditions) = (vec![is_free()], Vec::new());
        for (name, policy) in &self.security.policies {
            let Some(sql) = text(policy).filter(|_| policy.command.is_for(command)) else { continue };
            let condition = bind_policy(&self.scope, self.table, sql)?;
            let acts_as = match policy.roles.is_empty() {
                true => None,
                false => Some(acts_as(&policy.roles)?),
            };
            match policy.restrictive {
                true => {
                    let strange = acts_as.map(not);
                    let all = std::iter::once(is_free()).chain(strange).chain([condition]).collect();
                    conditions.push((any(all), Some(name.clone())));
                }
                false => permitted.push(match acts_as {
                    Some(acts_as) => all(vec![acts_as, condition]),
                    None => condition,
                }),
            }
        }
        conditions.insert(0, (any(permitted), None));
        Ok(conditions)
    }
}

/// What is made of the policies of a table; nothing where it has no row security.
fn with_policies<T: Default>(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    run: impl FnOnce(&Policies<'_>) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let Some(security) = table.row_security.as_deref() else { return Ok(T::default()) };
    // Their texts have the names of the catalog.
    let tables = tables.with_search_path(&SearchPath::default());
    let inside = VariableScope::for_procedure(None).with_routines(tables.routines());
    let policies = Policies { table, security, scope: inside };
    let result = run(&policies)?;
    // As the functions of triggers: no role needs a right for them, and what becomes a view does not depend on them.
    scope.note_fired(policies.scope.called());
    Ok(result)
}

/// What must be true of the rows of a table that a statement finds for these commands; nothing where the table has no row security.
///
/// # Errors
/// What is wrong with a policy.
fn conditions_of_found(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    commands: &[PolicyCommand],
) -> Result<Vec<Expression>, SqlError> {
    with_policies(tables, scope, table, |policies| {
        let mut found = Vec::new();
        for command in commands {
            let conditions = policies.conditions(*command, using)?;
            found.extend(conditions.into_iter().map(|(condition, _)| condition));
        }
        Ok(found)
    })
}

/// What the rows have to keep that a statement inserts or updates; `None` where the table has no row security. `is_read`: the statement
/// reads rows of the table too.
///
/// # Errors
/// What is wrong with a policy.
pub(crate) fn check_of_written(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    command: PolicyCommand,
    is_read: bool,
) -> Result<Option<Arc<RowCheck>>, SqlError> {
    with_policies(tables, scope, table, |policies| {
        let mut conditions =
            policies.conditions(command, |policy| policy.check.as_ref().or(policy.using.as_ref()))?;
        if is_read {
            conditions.extend(policies.conditions(PolicyCommand::Select, using)?);
        }
        Ok(Some(Arc::new(RowCheck::of_written(conditions))))
    })
}

/// What the row has to keep that ON CONFLICT has found and is to update; `None` where the table has no row security.
///
/// # Errors
/// What is wrong with a policy.
pub(crate) fn check_of_existing(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
) -> Result<Option<Arc<RowCheck>>, SqlError> {
    with_policies(tables, scope, table, |policies| {
        let mut conditions = policies.conditions(PolicyCommand::Update, using)?;
        conditions.extend(policies.conditions(PolicyCommand::Select, using)?);
        Ok(Some(Arc::new(RowCheck::of_existing(conditions))))
    })
}

/// The rows of a table that a role sees, in FROM; its columns begin at `first`. `is_locked`: they are asked for as by an UPDATE.
///
/// # Errors
/// What is wrong with a policy.
pub(crate) fn seen(
    tables: &Tables,
    scope: &VariableScope,
    (scan, first): (Scan, usize),
    is_locked: bool,
) -> Result<LogicalPlan, SqlError> {
    let commands = [PolicyCommand::Select, PolicyCommand::Update];
    let commands = if is_locked { &commands[..] } else { &commands[..1] };
    let conditions = conditions_of_found(tables, scope, &scan.table, commands)?;
    Ok(restricted(scan, first, conditions))
}

/// Whether what an UPDATE or DELETE says looks at rows of the table that it changes, which stands first: then these are read, too.
pub(crate) fn looks_at_target<'e>(
    table: &TablePlan,
    mut expressions: impl Iterator<Item = &'e Expression>,
) -> bool {
    let is_own = |inner: &Expression| matches!(inner.kind, Kind::Column(ordinal) if usize::from(ordinal) < table.columns.len());
    expressions.any(|expression| expression.any(&mut |inner| is_own(inner)))
}

/// Restricts the rows that an UPDATE finds in a source whose first table it changes. Gives what they have to keep afterwards. `is_read`: it
/// reads rows of the table too.
///
/// # Errors
/// What is wrong with a policy.
pub(crate) fn restrict_update(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    source: &mut LogicalPlan,
    is_read: bool,
) -> Result<Option<Arc<RowCheck>>, SqlError> {
    restrict_change(tables, scope, table, source, (PolicyCommand::Update, is_read))?;
    check_of_written(tables, scope, table, PolicyCommand::Update, is_read)
}

/// The same of a DELETE, which leaves nothing.
///
/// # Errors
/// What is wrong with a policy.
pub(crate) fn restrict_delete(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    source: &mut LogicalPlan,
    is_read: bool,
) -> Result<(), SqlError> {
    restrict_change(tables, scope, table, source, (PolicyCommand::Delete, is_read))
}

fn restrict_change(
    tables: &Tables,
    scope: &VariableScope,
    table: &TablePlan,
    source: &mut LogicalPlan,
    (command, is_read): (PolicyCommand, bool),
) -> Result<(), SqlError> {
    let commands = [command, PolicyCommand::Select];
    let commands = if is_read { &commands[..] } else { &commands[..1] };
    let conditions = conditions_of_found(tables, scope, table, commands)?;
    if conditions.is_empty() { Ok(()) } else { restrict_first(source, conditions) }
}

/// Restricts the first table of a source, which is the one that an UPDATE or DELETE changes.
fn restrict_first(source: &mut LogicalPlan, conditions: Vec<Expression>) -> Result<(), SqlError> {
    match source {
        LogicalPlan::Join(join) => restrict_first(&mut join.left, conditions),
        LogicalPlan::Scan(scan) => {
            *source = restricted(Scan::clone(scan), 0, conditions);
            Ok(())
        }
        _ => Err(broken("a change of what is no table")),
    }
}

/// The rows of a table for which these are true. What the statement asks itself comes behind them, so that its errors tell nothing of other
/// rows.
fn restricted(mut scan: Scan, first: usize, conditions: Vec<Expression>) -> LogicalPlan {
    // An AND goes on behind NULL.
    let is_true = |condition| truth(Kind::IsTruth(Some(true), true, Box::new(condition)));
    let mut conditions: Vec<Expression> = conditions.into_iter().map(is_true).collect();
    if !conditions.iter().any(|condition| condition.any(&mut runs_something)) {
        scan.conditions = conditions;
        scan.conditions.iter_mut().for_each(|condition| shift(condition, first));
        return LogicalPlan::from(scan);
    }
    // A table cannot run anything for each row, and runs what is the same for all rows before it looks who asks. A query of its own does
    // both in order, before anything else looks at the row.
    conditions.iter_mut().for_each(run_in_order);
    let scan = LogicalPlan::from(scan);
    let types = scan.types();
    let column = |data_type: &DataType| OutputColumn { name: String::new(), data_type: *data_type };
    let columns = types.iter().map(column).collect();
    let outputs = types.iter().enumerate().map(|(ordinal, of)| Expression::column(ordinal, *of)).collect();
    LogicalPlan::query(scan.filtered(conditions).projected(outputs, columns), Vec::new())
}

/// Lets calls run where they stand, and not before for all rows.
fn run_in_order(expression: &mut Expression) {
    if runs_something(expression)
        && let Kind::Call(call) = &mut expression.kind
    {
        call.is_volatile = true;
    }
    expression.operands_mut().into_iter().for_each(run_in_order);
}

/// Whether it is a query, or a call of anything but what asks who runs the statement.
fn runs_something(inner: &Expression) -> bool {
    match &inner.kind {
        Kind::Call(call) => SessionFunction::named(&call.callee.name).is_none(),
        Kind::Subquery(_) => true,
        _ => false,
    }
}

/// Lets an expression over a table's row look at a row in which the table's columns begin at `first`.
fn shift(expression: &mut Expression, first: usize) {
    if let Kind::Column(ordinal) = &mut expression.kind {
        *ordinal += first as u16;
        return;
    }
    expression.operands_mut().into_iter().for_each(|operand| shift(operand, first));
}

fn using(policy: &RowPolicy) -> Option<&String> {
    policy.using.as_ref()
}

fn acts_as(roles: &[String]) -> Result<Expression, SqlError> {
    let array = Array::new(ElementType::TEXT, roles.iter().map(|role| Value::text(role.as_str())).collect())?;
    let roles = Expression::constant(Value::Array(Arc::new(array)), DataType::Array(ElementType::TEXT));
    Ok(session_call(SessionFunction::ActsAs, vec![roles]))
}

fn truth(kind: Kind) -> Expression {
    Expression { kind, data_type: DataType::Boolean }
}

fn not(condition: Expression) -> Expression {
    truth(Kind::Not(Box::new(condition)))
}

fn all(conditions: Vec<Expression>) -> Expression {
    truth(Kind::And(conditions))
}

fn any(mut conditions: Vec<Expression>) -> Expression {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => truth(Kind::Or(conditions)),
    }
}
