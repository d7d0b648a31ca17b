//! The conditions of domains, bound: who makes values of a domain holds them against these.

use crate::expression::{Binder, Environment, Expression, Kind, Source};
use crate::routines::Routines;
use crate::scope::VariableScope;
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{
    Catalog, CompositeType, DataType, Domain, DomainCheck, ExecutionVersion, SqlError, SqlState, TypeId,
    Value, object_name,
};

/// The conditions of a domain.
struct BoundDomain {
    /// Its name without the schema.
    name: String,
    not_null: bool,
    /// Names, and conditions over the value in the first slot.
    checks: Vec<(String, Expression)>,
}

impl DomainCheck for BoundDomain {
    fn check(&self, value: &Value) -> Result<(), SqlError> {
        if self.not_null && value.is_null() {
            let message = format!("domain {} does not allow null values", self.name);
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, message));
        }
        let frame = std::slice::from_ref(value);
        for (name, condition) in &self.checks {
            if condition.truth(&Environment::new(&[], frame, 0))? == Some(false) {
                let message = format!("value for domain {} violates check constraint \"{name}\"", self.name);
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

fn bind_domain(known: &CompositeType, domain: &Domain, routines: &Routines) -> Result<BoundDomain, SqlError> {
    let types = routines.types();
    let base = types.base_of(domain.base);
    // What the domains ask that it is of comes first, in its name.
    let mut all = vec![domain];
    while let Some(DataType::Domain(id)) = all.last().map(|last| last.base) {
        let Some(above) = types.get(id).and_then(|known| known.as_domain()) else { break };
        all.push(above);
    }
    let bind =
        |check: &types::Check| Ok((check.name.clone(), bind_domain_check(base, &check.condition, routines)?));
    let checks = all.iter().rev().flat_map(|domain| &domain.checks).map(bind);
    Ok(BoundDomain {
        name: object_name(&known.name).to_string(),
        not_null: all.iter().any(|domain| domain.not_null),
        checks: checks.collect::<Result<_, SqlError>>()?,
    })
}

/// The routines of a catalog beside its types, whose domains hold values against their conditions.
pub fn routines_of(catalog: &Catalog, version: ExecutionVersion) -> Routines {
    let routines = Routines::new(catalog, version);
    let domains = bind_domains(catalog, &routines);
    if domains.is_empty() { routines } else { routines.with_domain_checks(domains) }
}

fn bind_domains(catalog: &Catalog, routines: &Routines) -> BTreeMap<TypeId, Arc<dyn DomainCheck>> {
    let domains = catalog.types.values().filter_map(|known| Some((known, known.as_domain()?)));
    let bound = |(known, domain): (&Arc<CompositeType>, &Domain)| -> (TypeId, Arc<dyn DomainCheck>) {
        match bind_domain(known, domain, routines) {
            Ok(bound) => (known.id, Arc::new(bound)),
            Err(error) => (known.id, Arc::new(Unbound(error))),
        }
    };
    domains.map(bound).collect()
}
