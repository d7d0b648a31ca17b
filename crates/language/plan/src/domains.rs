//! The conditions of domains, bound: who makes values of a domain holds them against these.

use crate::expression::{Binder, Environment, Expression, Kind, Source, bind_type_or_domain};
use crate::routines::Routines;
use crate::scope::VariableScope;
use sqlparser::ast::{self, Expr};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::session_format::{SessionFormat, within_format};
use types::{
    Catalog, CompositeType, CompositeTypes, DataType, Domain, DomainCheck, ExecutionVersion, SqlError,
    SqlState, TypeId, Value, limits, object_name,
};
use values::{broken, work};

/// A condition of a domain.
struct BoundCheck {
    name: String,
    /// Over the value in the first slot.
    condition: Expression,
}

/// The conditions of a domain.
struct BoundDomain {
    /// Its name without the schema.
    name: String,
    not_null: bool,
    /// Those of the domains that it is of come first.
    checks: Vec<Arc<BoundCheck>>,
    /// How many conditions a value is held against: those of domains that conditions cast to count, too.
    conditions: usize,
    /// Whether an execution is charged for them, as it is from version 8 on.
    is_measured: bool,
}

/// What a condition costs beside what is evaluated in it, in units of [`work::spend`].
const UNITS_PER_CONDITION: u64 = 128;

impl DomainCheck for BoundDomain {
    fn check(&self, value: &Value) -> Result<(), SqlError> {
        if self.not_null && value.is_null() {
            let message = format!("domain {} does not allow null values", self.name);
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message));
        }
        if self.is_measured {
            work::spend(UNITS_PER_CONDITION * self.conditions as u64)?;
        }
        let frame = std::slice::from_ref(value);
        for check in &self.checks {
            let truth = || check.condition.truth(&Environment::new(&[], frame, 0));
            // It means the same whatever the session's format is.
            if within_format(SessionFormat::default(), truth)? == Some(false) {
                let (domain, name) = (&self.name, &check.name);
                let message = format!("value for domain {domain} violates check constraint \"{name}\"");
                return Err(SqlError::new(SqlState::CHECK_VIOLATION, message));
            }
        }
        Ok(())
    }
}

/// One whose conditions cannot be bound any more: no value is one of it.
struct Unbound(SqlError);

impl DomainCheck for Unbound {
    fn check(&self, _: &Value) -> Result<(), SqlError> {
        Err(self.0.clone())
    }
}

/// Binds a condition of a domain, over a value of the type that it is of.
///
/// # Errors
/// What is wrong with it; `0A000` for the time of the block and functions of the ledger.
pub fn bind_domain_check(base: DataType, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    let mut scope = VariableScope::for_procedure(None).with_routines(routines);
    scope.push_block(None);
    scope.declare("value", base)?;
    let binder = Binder::new(&scope, Source::Nothing);
    let condition = binder.bind_condition(&parse_expression(sql, routines.version())?, "CHECK")?;
    let is_query = |expression: &Expression| matches!(expression.kind, Kind::Subquery(_));
    if condition.any(&mut |expression| is_query(expression)) {
        let message = "cannot use subquery in check constraint";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if condition.any(&mut |expression| matches!(expression.kind, Kind::Now)) {
        return Err(SqlError::unsupported("now() in a CHECK constraint")
            .hint("A value that was right once would be wrong later."));
    }
    if condition.runs_anything() {
        return Err(SqlError::unsupported("a function of the ledger in a CHECK constraint")
            .hint("Write the condition out."));
    }
    Ok(condition)
}

/// The routines of a catalog beside its types, whose domains hold values against their conditions.
pub fn routines_of(catalog: &Catalog, version: ExecutionVersion) -> Routines {
    let routines = Routines::new(catalog, version);
    let mut domains = Domains::new(&routines);
    let ids: Vec<TypeId> = domains_of(catalog).map(|known| known.id).collect();
    let checks = ids.into_iter().map(|id| -> (TypeId, Arc<dyn DomainCheck>) {
        match domains.bound(id, 0) {
            Ok(bound) => (id, bound),
            Err(error) => (id, Arc::new(Unbound(error))),
        }
    });
    let checks: BTreeMap<TypeId, Arc<dyn DomainCheck>> = checks.collect();
    if checks.is_empty() { routines } else { routines.with_domain_checks(checks) }
}

fn domains_of(catalog: &Catalog) -> impl Iterator<Item = &Arc<CompositeType>> {
    catalog.types.values().filter(|known| known.as_domain().is_some())
}

/// Holds against the limits how many conditions there are for one value of each domain.
///
/// # Errors
/// `54001`
pub fn check_limits(catalog: &Catalog, version: ExecutionVersion) -> Result<(), SqlError> {
    let routines = Routines::new(catalog, version);
    let mut domains = Domains::new(&routines);
    for known in domains_of(catalog) {
        let conditions = match domains.bound(known.id, 0) {
            Ok(bound) => bound.conditions,
            Err(error) if error.state == SqlState::STATEMENT_TOO_COMPLEX => return Err(error),
            Err(_) => continue,
        };
        let deep = chain_of(routines.types(), known.id).len();
        let (what, limit) = match (conditions > limits::DOMAIN_CHECKS_MAX, deep > limits::DOMAIN_NESTING_MAX)
        {
            (true, _) => {
                let what = format!("{conditions} conditions for one value");
                (what, format!("{} (DOMAIN_CHECKS_MAX)", limits::DOMAIN_CHECKS_MAX))
            }
            (_, true) => (format!("{deep} domains in one another"), nesting_limit()),
            _ => continue,
        };
        return Err(too_complex(&known.name, &format!("has {what}, the limit is {limit}")));
    }
    Ok(())
}

fn nesting_limit() -> String {
    format!("{} (DOMAIN_NESTING_MAX)", limits::DOMAIN_NESTING_MAX)
}

fn too_complex(domain: &str, what: &str) -> SqlError {
    let message = format!("domain {} {what}", object_name(domain));
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
        .hint("Put conditions together with AND, or write them out where they cast to another domain.")
}

/// A domain and those that it is of, itself first.
fn chain_of(types: &CompositeTypes, id: TypeId) -> Vec<(&Arc<CompositeType>, &Domain)> {
    let mut chain = Vec::new();
    let mut next = DataType::Domain(id);
    while let DataType::Domain(id) = next {
        let Some(known) = types.get(id) else { break };
        let Some(domain) = known.as_domain() else { break };
        chain.push((known, domain));
        next = domain.base;
    }
    chain
}

/// The domains of a catalog while they are bound, each before those whose conditions cast to it.
struct Domains<'r> {
    routines: &'r Routines,
    known: BTreeMap<TypeId, Result<Arc<BoundDomain>, SqlError>>,
    /// Those that are being bound.
    waiting: BTreeSet<TypeId>,
}

impl<'r> Domains<'r> {
    fn new(routines: &'r Routines) -> Domains<'r> {
        Domains { routines, known: BTreeMap::new(), waiting: BTreeSet::new() }
    }

    /// A domain, bound. `depth`: how many wait for it.
    fn bound(&mut self, id: TypeId, depth: usize) -> Result<Arc<BoundDomain>, SqlError> {
        let routines = self.routines;
        let mut above: Option<Arc<BoundDomain>> = None;
        for (known, domain) in chain_of(routines.types(), id).into_iter().rev() {
            let found = match self.known.get(&known.id) {
                Some(found) => found.clone(),
                None => {
                    let found = self.bind(known, domain, above.as_deref(), depth);
                    self.known.insert(known.id, found.clone());
                    found
                }
            };
            above = Some(found?);
        }
        above.ok_or_else(|| broken("a domain that its catalog does not have"))
    }

    fn bind(
        &mut self,
        known: &CompositeType,
        domain: &Domain,
        above: Option<&BoundDomain>,
        depth: usize,
    ) -> Result<Arc<BoundDomain>, SqlError> {
        if depth >= limits::DOMAIN_NESTING_MAX || !self.waiting.insert(known.id) {
            let what =
                format!("stands in its own condition, or conditions cast deeper than {}", nesting_limit());
            return Err(too_complex(&known.name, &what));
        }
        let bound = self.bind_checks(domain, above, depth);
        self.waiting.remove(&known.id);
        let (checks, conditions) = bound?;
        Ok(Arc::new(BoundDomain {
            name: object_name(&known.name).to_string(),
            not_null: domain.not_null || above.is_some_and(|above| above.not_null),
            checks,
            conditions,
            is_measured: self.routines.version() >= ExecutionVersion::V8,
        }))
    }

    /// The conditions of a domain behind those of the one that it is of, and how many there are for a value.
    fn bind_checks(
        &mut self,
        domain: &Domain,
        above: Option<&BoundDomain>,
        depth: usize,
    ) -> Result<(Vec<Arc<BoundCheck>>, usize), SqlError> {
        let base = self.routines.types().base_of(domain.base);
        let mut checks = above.map_or_else(Vec::new, |above| above.checks.clone());
        let mut conditions = above.map_or(0, |above| above.conditions);
        for check in &domain.checks {
            let mut needed: BTreeMap<TypeId, Arc<dyn DomainCheck>> = BTreeMap::new();
            conditions = conditions.saturating_add(1);
            for id in self.cast_to(&check.condition)? {
                let bound = self.bound(id, depth + 1)?;
                conditions = conditions.saturating_add(bound.conditions);
                needed.insert(id, bound);
            }
            let routines = self.routines.clone().with_domain_checks(needed);
            let condition = bind_domain_check(base, &check.condition, &routines)?;
            checks.push(Arc::new(BoundCheck { name: check.name.clone(), condition }));
        }
        Ok((checks, conditions))
    }

    /// The domains that a condition casts to, as often as it does. Before version 8 no value got through such a cast.
    fn cast_to(&self, condition: &str) -> Result<Vec<TypeId>, SqlError> {
        let mut found = Vec::new();
        if self.routines.version() < ExecutionVersion::V8 {
            return Ok(found);
        }
        let expr = parse_expression(condition, self.routines.version())?;
        let _ = ast::visit_expressions(&expr, |inner| {
            let target = match inner {
                Expr::Cast { data_type, .. } => Some(data_type),
                Expr::TypedString(typed) => Some(&typed.data_type),
                _ => None,
            };
            let target = target.and_then(|target| bind_type_or_domain(self.routines.types(), target).ok());
            if let Some(DataType::Domain(id)) = target {
                found.push(id);
            }
            ControlFlow::<()>::Continue(())
        });
        Ok(found)
    }
}
