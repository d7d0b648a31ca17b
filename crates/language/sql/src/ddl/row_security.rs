//! CREATE, ALTER and DROP POLICY, ENABLE and FORCE ROW LEVEL SECURITY, and what becomes of policies when what they need is dropped or
//! altered.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::find_table;
use crate::ddl::views::depends;
use plan::expression::{Expression, Kind};
use plan::row_security::bind_policy;
use plan::scope::VariableScope;
use plan::tables::Tables;
use sqlparser::ast::{
    self, AlterPolicyOperation, CreatePolicyCommand, CreatePolicyType, Expr, Owner, Statement,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use syntax::names::{name_of, table_name};
use types::{Catalog, PolicyCommand, RowPolicy, RowSecurity, SqlError, SqlState, Table, as_given, limits};

/// A statement about a policy.
#[derive(Clone, Debug)]
pub(crate) struct PolicyStatement {
    /// The policy's table.
    pub(super) table: String,
    /// Its name.
    name: String,
    /// What becomes of it.
    change: PolicyChange,
}

#[derive(Clone, Debug)]
enum PolicyChange {
    Create { restrictive: bool, command: PolicyCommand, terms: Terms },
    Alter(Terms),
    Rename(String),
    Drop { if_exists: bool },
}

/// What a statement says of a policy.
#[derive(Clone, Debug)]
struct Terms {
    roles: Option<Vec<Whom>>,
    using: Option<String>,
    check: Option<String>,
}

/// Whom TO names.
#[derive(Clone, Debug)]
enum Whom {
    Named(String),
    /// `CURRENT_USER` and its kind: the administrator who makes the policy.
    Current,
}

/// A change of whether the policies of a table count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowSecurityChange {
    /// ENABLE and DISABLE.
    Enable(bool),
    /// FORCE and NO FORCE.
    Force(bool),
}

/// The statement, where it is about a policy.
///
/// # Errors
/// Names that cannot be.
pub(super) fn bind_policy_statement(statement: &Statement) -> Result<Option<PolicyStatement>, SqlError> {
    let (name, table, change) = match statement {
        Statement::CreatePolicy(create) => {
            let command = match create.command {
                None | Some(CreatePolicyCommand::All) => PolicyCommand::All,
                Some(CreatePolicyCommand::Select) => PolicyCommand::Select,
                Some(CreatePolicyCommand::Insert) => PolicyCommand::Insert,
                Some(CreatePolicyCommand::Update) => PolicyCommand::Update,
                Some(CreatePolicyCommand::Delete) => PolicyCommand::Delete,
            };
            let restrictive = matches!(create.policy_type, Some(CreatePolicyType::Restrictive));
            let terms = bind_terms(create.to.as_deref(), &create.using, &create.with_check)?;
            (&create.name, &create.table_name, PolicyChange::Create { restrictive, command, terms })
        }
        Statement::AlterPolicy(alter) => {
            let change = match &alter.operation {
                AlterPolicyOperation::Rename { new_name } => PolicyChange::Rename(name_of(new_name)?),
                AlterPolicyOperation::Apply { to, using, with_check } => {
                    PolicyChange::Alter(bind_terms(to.as_deref(), using, with_check)?)
                }
            };
            (&alter.name, &alter.table_name, change)
        }
        Statement::DropPolicy(drop) => {
            (&drop.name, &drop.table_name, PolicyChange::Drop { if_exists: drop.if_exists })
        }
        _ => return Ok(None),
    };
    Ok(Some(PolicyStatement { table: table_name(table)?, name: name_of(name)?, change }))
}

fn bind_terms(to: Option<&[Owner]>, using: &Option<Expr>, check: &Option<Expr>) -> Result<Terms, SqlError> {
    let whom = |owner: &Owner| match owner {
        Owner::Ident(ident) => name_of(ident).map(Whom::Named),
        Owner::CurrentRole | Owner::CurrentUser | Owner::SessionUser => Ok(Whom::Current),
    };
    let roles = to.map(|owners| owners.iter().map(whom).collect()).transpose()?;
    let text = |expr: &Option<ast::Expr>| expr.as_ref().map(Expr::to_string);
    Ok(Terms { roles, using: text(using), check: text(check) })
}

impl PolicyStatement {
    /// Whether the table may be missing.
    pub(super) fn is_if_exists(&self) -> bool {
        matches!(self.change, PolicyChange::Drop { if_exists: true })
    }

    /// The conditions in it.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let terms = match &mut self.change {
            PolicyChange::Create { terms, .. } | PolicyChange::Alter(terms) => Some(terms),
            PolicyChange::Rename(_) | PolicyChange::Drop { .. } => None,
        };
        terms.into_iter().flat_map(|terms| terms.using.iter_mut().chain(&mut terms.check))
    }

    /// Makes the change, asked for by the administrator of the organisation with this number. Gives the command's tag.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn apply(
        &self,
        catalog: &mut NewCatalog,
        organisation: u16,
    ) -> Result<&'static str, SqlError> {
        if self.is_if_exists() && catalog.columns_of(&self.table).is_none() {
            return Ok("DROP POLICY");
        }
        let mut table = find_table(catalog, &self.table)?;
        let known = table.row_security.policies.get(&self.name).cloned();
        let missing = || undefined(&table, &self.name);
        let (policy, tag) = match &self.change {
            PolicyChange::Create { restrictive, command, terms } => {
                refuse_place(catalog, &table)?;
                if known.is_some() {
                    return Err(already_there(&table, &self.name));
                }
                if table.row_security.policies.len() >= limits::POLICIES_MAX {
                    let message =
                        format!("a table has at most {} policies (POLICIES_MAX)", limits::POLICIES_MAX);
                    return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
                }
                let created =
                    RowPolicy { restrictive: *restrictive, command: *command, ..RowPolicy::default() };
                if *command == PolicyCommand::Insert && terms.using.is_some() {
                    return Err(misplaced("only WITH CHECK expression allowed for INSERT"));
                }
                if matches!(command, PolicyCommand::Select | PolicyCommand::Delete) && terms.check.is_some() {
                    return Err(misplaced("WITH CHECK cannot be applied to SELECT or DELETE"));
                }
                (Some((self.name.clone(), terms.applied(catalog, created, organisation)?)), "CREATE POLICY")
            }
            PolicyChange::Alter(terms) => {
                let known = known.ok_or_else(missing)?;
                if matches!(known.command, PolicyCommand::Select | PolicyCommand::Delete)
                    && terms.check.is_some()
                {
                    return Err(misplaced("only USING expression allowed for SELECT, DELETE"));
                }
                if known.command == PolicyCommand::Insert && terms.using.is_some() {
                    return Err(misplaced("only WITH CHECK expression allowed for INSERT"));
                }
                let altered = terms.applied(catalog, RowPolicy::clone(&known), organisation)?;
                (Some((self.name.clone(), altered)), "ALTER POLICY")
            }
            PolicyChange::Rename(to) => {
                let known = known.ok_or_else(missing)?;
                if table.row_security.policies.contains_key(to) {
                    return Err(already_there(&table, to));
                }
                (Some((to.clone(), RowPolicy::clone(&known))), "ALTER POLICY")
            }
            PolicyChange::Drop { if_exists } => {
                if known.is_none() && !if_exists {
                    return Err(missing());
                }
                (None, "DROP POLICY")
            }
        };
        if let Some((_, policy)) = &policy {
            let tables = catalog.bound()?;
            for text in policy.using.iter().chain(&policy.check) {
                condition_of(&tables, &table, text)?;
            }
        }
        let policies = &mut Arc::make_mut(&mut table).row_security.policies;
        policies.remove(&self.name);
        policies.extend(policy.map(|(name, policy)| (name, Arc::new(policy))));
        catalog.tables.insert(table.name.clone(), table);
        Ok(tag)
    }
}

impl Terms {
    /// The policy with what is said of it.
    fn applied(
        &self,
        catalog: &Catalog,
        policy: RowPolicy,
        organisation: u16,
    ) -> Result<RowPolicy, SqlError> {
        let roles = match &self.roles {
            Some(roles) => roles_of(catalog, roles, organisation)?,
            None => policy.roles,
        };
        let using = self.using.clone().or(policy.using);
        let check = self.check.clone().or(policy.check);
        Ok(RowPolicy { roles, using, check, ..policy })
    }
}

/// Names of whom TO names; none where PUBLIC is among them.
fn roles_of(catalog: &Catalog, whom: &[Whom], organisation: u16) -> Result<Vec<String>, SqlError> {
    let mut names = BTreeSet::new();
    for whom in whom {
        match whom {
            Whom::Named(name) if name == "public" => return Ok(Vec::new()),
            Whom::Named(name) => {
                if !catalog.roles.by_name.contains_key(name) && !catalog.governance.has_organisation(name) {
                    let message = format!("role \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                        .hint("TO names roles, and organisations for their administrators."));
                }
                names.insert(name.clone());
            }
            Whom::Current => {
                names.insert(catalog.governance.administrator_of(organisation));
            }
        }
    }
    Ok(names.into_iter().collect())
}

impl RowSecurityChange {
    /// Makes the change.
    ///
    /// # Errors
    /// `0A000` for a temporary table.
    pub(super) fn apply(self, catalog: &mut Catalog, table: &Table) -> Result<(), SqlError> {
        refuse_place(catalog, table)?;
        let mut new = table.clone();
        match self {
            RowSecurityChange::Enable(enabled) => new.row_security.enabled = enabled,
            RowSecurityChange::Force(forced) => new.row_security.forced = forced,
        }
        catalog.tables.insert(new.name.clone(), Arc::new(new));
        Ok(())
    }
}

/// Refuses row security where it cannot be.
fn refuse_place(catalog: &Catalog, table: &Table) -> Result<(), SqlError> {
    if table.materialized.is_some() {
        return Err(SqlError::new(
            SqlState(*b"42809"),
            format!("\"{}\" is not a table", table.object_name()),
        ));
    }
    if table.id.is_temporary() {
        return Err(SqlError::unsupported("row-level security of a temporary table")
            .hint("Nobody but its session sees it."));
    }
    if catalog.own_schema().is_some() {
        return Err(SqlError::unsupported("row-level security in a schema with members")
            .hint("Its members see all of it. Make a schema for those who may."));
    }
    Ok(())
}

fn misplaced(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

fn undefined(table: &Table, name: &str) -> SqlError {
    let message = format!("policy \"{name}\" for table \"{}\" does not exist", table.object_name());
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

fn already_there(table: &Table, name: &str) -> SqlError {
    let message = format!("policy \"{name}\" for table \"{}\" already exists", table.object_name());
    SqlError::new(SqlState(*b"42710"), message)
}

/// A condition of a policy of a table, bound.
fn condition_of(tables: &Tables, table: &Table, text: &str) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    bind_policy(&scope, tables.get(&table.name)?, text)
}

/// Names of a table's policies for one of whose conditions this is true; not of those that cannot be read any more.
fn policies_with(
    catalog: &NewCatalog,
    table: &Table,
    is_meant: &dyn Fn(&Expression) -> bool,
) -> Result<Vec<String>, SqlError> {
    if table.row_security.policies.is_empty() {
        return Ok(Vec::new());
    }
    let tables = catalog.bound()?;
    let uses = |policy: &RowPolicy| {
        let mut texts = policy.using.iter().chain(&policy.check);
        texts.any(|text| condition_of(&tables, table, text).is_ok_and(|condition| is_meant(&condition)))
    };
    let users = table.row_security.policies.iter().filter(|(_, policy)| uses(policy));
    Ok(users.map(|(name, _)| name.clone()).collect())
}

/// Names of the policies that look at a column.
///
/// # Errors
/// None as long as their conditions can be bound.
pub(super) fn policies_using_column(
    catalog: &NewCatalog,
    table: &Table,
    ordinal: usize,
) -> Result<Vec<String>, SqlError> {
    let is_it =
        |inner: &Expression| matches!(inner.kind, Kind::Column(column) if usize::from(column) == ordinal);
    policies_with(catalog, table, &|condition| condition.any(&mut |inner| is_it(inner)))
}

/// The table without the policies that look at a column which is dropped.
///
/// # Errors
/// `2BP01` where there are any, without CASCADE.
pub(super) fn without_policies_using_column(
    catalog: &NewCatalog,
    table: &Table,
    ordinal: usize,
    what: &str,
    cascade: bool,
) -> Result<RowSecurity, SqlError> {
    let users = policies_using_column(catalog, table, ordinal)?;
    refuse_users(table, &users, what, cascade)?;
    let mut security = table.row_security.clone();
    security.policies.retain(|name, _| !users.contains(name));
    Ok(security)
}

/// Drops the policies that call a function.
///
/// # Errors
/// `2BP01` where there are any, without CASCADE.
pub(super) fn drop_policies_calling(
    catalog: &mut NewCatalog,
    function: &str,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let tables: Vec<Arc<Table>> =
        catalog.tables.values().filter(|table| !table.row_security.policies.is_empty()).cloned().collect();
    for mut table in tables {
        let users = policies_with(catalog, &table, &|condition| {
            let mut calls = false;
            condition.visit_calls(&mut |call| calls |= *call.callee.name == *function);
            calls
        })?;
        refuse_users(&table, &users, what, cascade)?;
        if !users.is_empty() {
            Arc::make_mut(&mut table).row_security.policies.retain(|name, _| !users.contains(name));
            catalog.tables.insert(table.name.clone(), table);
        }
    }
    Ok(())
}

fn refuse_users(table: &Table, users: &[String], what: &str, cascade: bool) -> Result<(), SqlError> {
    match users.first().filter(|_| !cascade) {
        Some(policy) => Err(depends(what, &format!("policy {policy} on table {}", table.name), what)),
        None => Ok(()),
    }
}

/// Policies that name a role, as errors call them.
pub(super) fn policies_of_role(catalog: &Catalog, role: &str) -> Vec<String> {
    let of_table = |table: &Arc<Table>| {
        let table_name = as_given(&table.name).to_string();
        let names: Vec<String> = table.row_security.naming(role).map(str::to_string).collect();
        names.into_iter().map(move |policy| format!("target of policy {policy} on table {table_name}"))
    };
    catalog.tables.values().flat_map(of_table).collect()
}

/// Policies as errors call them, and the functions that their conditions call; `None`: a condition cannot be read.
type KnownPolicies = BTreeMap<String, Option<BTreeSet<String>>>;

/// All policies of a catalog.
fn known_policies(catalog: &NewCatalog) -> Result<KnownPolicies, SqlError> {
    let mut known = KnownPolicies::new();
    let with_policies = |table: &&Arc<Table>| !table.row_security.policies.is_empty();
    if !catalog.tables.values().any(|table| with_policies(&table)) {
        return Ok(known);
    }
    let tables = catalog.bound()?;
    for table in catalog.tables.values().filter(with_policies) {
        for (name, policy) in &table.row_security.policies {
            let mut called = Some(BTreeSet::new());
            for text in policy.using.iter().chain(&policy.check) {
                match (condition_of(&tables, table, text), &mut called) {
                    (Ok(condition), Some(called)) => {
                        condition.visit_calls(&mut |call| {
                            called.insert(call.callee.name.to_string());
                        });
                    }
                    _ => called = None,
                }
            }
            known.insert(format!("policy {name} on table {}", table.name), called);
        }
    }
    Ok(known)
}

/// The names in the catalog that a routine had and has, where the change gave it another one.
fn renamed_routine<'c>(before: &'c NewCatalog, after: &'c NewCatalog) -> Option<(&'c String, &'c String)> {
    let mut gone = before.procedures.keys().filter(|key| !after.procedures.contains_key(*key));
    let mut new = after.procedures.keys().filter(|key| !before.procedures.contains_key(*key));
    gone.next().zip(new.next())
}

/// Refuses a change behind which a policy cannot be read any more, or calls another function: nobody would notice.
///
/// # Errors
/// `0A000` names the policy.
pub(super) fn check_policies_after(
    before: &NewCatalog,
    after: &NewCatalog,
    makes_routine: bool,
) -> Result<(), SqlError> {
    let known = known_policies(after)?;
    if known.is_empty() {
        return Ok(());
    }
    let mut known_before = known_policies(before)?;
    if let Some((from, to)) = renamed_routine(before, after) {
        for called in known_before.values_mut().flatten() {
            if called.remove(from) {
                called.insert(to.clone());
            }
        }
    }
    for (policy, called) in known {
        let was = known_before.get(&policy);
        let is_broken = called.is_none() && was != Some(&None);
        let calls_others = makes_routine && was.is_some_and(|was| was.is_some() && *was != called);
        if is_broken || calls_others {
            let what = if is_broken { "could not be read" } else { "would call another function" };
            return Err(SqlError::unsupported(format_args!("a change behind which {policy} {what}"))
                .hint("DROP POLICY first, and create it again behind the change."));
        }
    }
    Ok(())
}
