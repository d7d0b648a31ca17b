//! `SELECT … FOR UPDATE` and its kind, held against PostgreSQL's rules. They ask for the right to UPDATE, and say which rows a query locks for
//! the other transaction blocks of its gateway. No result depends on the lock: a transaction that has read a row takes effect only if nobody
//! has changed it meanwhile.

use crate::row_locking::{RowLocking, WhenHeld};
use crate::statement::only::relation_of;
use crate::statement::query_scope::QueryScope;
use sqlparser::ast::{LockClause, NonBlock, Query, SetExpr, Spanned, TableFactor, TableWithJoins};
use syntax::names::{name_of, table_name};
use syntax::parse::lock_strength;
use types::{ExecutionVersion, Privileges, RowLockMode, SqlError, SqlState};

/// What a query does with its rows that keeps them from being those of tables.
pub(super) struct Reworked {
    pub(super) is_distinct: bool,
    pub(super) has_groups: bool,
    pub(super) has_having: bool,
    pub(super) has_aggregates: bool,
    pub(super) has_windows: bool,
    pub(super) has_set_functions: bool,
}

/// Notes which rows a query asks to lock.
///
/// # Errors
/// `0A000` where they are no rows of tables, `42P01` for a relation that FROM does not have, `42601` for one with a schema.
pub(super) fn note_locks(scope: QueryScope<'_>, query: &Query) -> Result<(), SqlError> {
    for lock in &query.locks {
        if scope.variables.version() < ExecutionVersion::V8 {
            return Err(SqlError::unsupported("FOR UPDATE and FOR SHARE")
                .hint("Leave it out: every transaction is serializable."));
        }
        let (strength, of) = lock_strength(lock);
        let locking = RowLocking { mode: lock_mode(strength), when_held: when_held(lock) };
        let mut clause = Clause { hidden: Vec::new(), scope, strength, locking, only: None, is_found: false };
        if let Some(name) = &of {
            let [part] = name.0.as_slice() else {
                let message = format!("{} must specify unqualified relation names", clause.strength);
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            };
            let ident = part.as_ident().ok_or_else(|| SqlError::unsupported("this name of a relation"))?;
            clause.only = Some(name_of(ident)?);
        }
        clause.note_body(&query.body)?;
        if let Some(name) = clause.only.filter(|_| !clause.is_found) {
            let message =
                format!("relation \"{name}\" in {} clause not found in FROM clause", clause.strength);
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    }
    Ok(())
}

fn lock_mode(strength: &str) -> RowLockMode {
    match strength {
        "FOR KEY SHARE" => RowLockMode::KeyShare,
        "FOR SHARE" => RowLockMode::Share,
        "FOR NO KEY UPDATE" => RowLockMode::NoKeyUpdate,
        _ => RowLockMode::Update,
    }
}

fn when_held(lock: &LockClause) -> WhenHeld {
    match lock.nonblock {
        None => WhenHeld::GoOn,
        Some(NonBlock::SkipLocked) => WhenHeld::Skip,
        Some(NonBlock::Nowait) => WhenHeld::Fail,
    }
}

/// Refuses to lock the rows of a query that makes others of them.
///
/// # Errors
/// `0A000`
pub(super) fn refuse_locks(query: &Query, reworked: &Reworked) -> Result<(), SqlError> {
    let Some(lock) = query.locks.first() else { return Ok(()) };
    let with = match () {
        () if reworked.is_distinct => "DISTINCT clause",
        () if reworked.has_groups => "GROUP BY clause",
        () if reworked.has_having => "HAVING clause",
        () if reworked.has_aggregates => "aggregate functions",
        () if reworked.has_windows => "window functions",
        () if reworked.has_set_functions => "set-returning functions in the target list",
        () => return Ok(()),
    };
    let message = format!("{} is not allowed with {with}", lock_strength(lock).0);
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// One FOR UPDATE.
struct Clause<'a> {
    /// WITH queries of derived tables, whose rows are none of tables.
    hidden: Vec<String>,
    scope: QueryScope<'a>,
    strength: &'static str,
    locking: RowLocking,
    /// What OF names.
    only: Option<String>,
    is_found: bool,
}

impl Clause<'_> {
    fn note_body(&mut self, body: &SetExpr) -> Result<(), SqlError> {
        match body {
            SetExpr::Select(select) => select.from.iter().try_for_each(|tables| self.note_joined(tables)),
            SetExpr::Query(inner) => self.note_body(&inner.body),
            SetExpr::Values(_) => self.cannot("VALUES"),
            SetExpr::SetOperation { .. } => {
                let message = format!("{} is not allowed with UNION/INTERSECT/EXCEPT", self.strength);
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            _ => Ok(()),
        }
    }

    fn note_joined(&mut self, tables: &TableWithJoins) -> Result<(), SqlError> {
        self.note_factor(&tables.relation)?;
        tables.joins.iter().try_for_each(|join| self.note_factor(&join.relation))
    }

    fn note_factor(&mut self, factor: &TableFactor) -> Result<(), SqlError> {
        match relation_of(factor, self.scope.variables.version()).0.as_ref() {
            TableFactor::Table { name, alias, args: None, .. } => {
                let called = table_name(name)?;
                let common = match name.0.as_slice() {
                    [part] => part.as_ident().map(name_of).transpose()?,
                    _ => None,
                };
                let is_common = common
                    .is_some_and(|name| self.hidden.contains(&name) || self.scope.common(&name).is_some());
                let known_as = match alias {
                    Some(alias) => name_of(&alias.name)?,
                    None => types::object_name(&called).to_string(),
                };
                if !self.asks_for(Some(&known_as)) {
                    return Ok(());
                }
                if is_common {
                    return self.cannot("a WITH query");
                }
                if self.scope.variables.transition_table(&called).is_none() {
                    let found = self.scope.tables.find(&called);
                    self.scope.variables.note_use(&found, Privileges::UPDATE);
                    self.scope.variables.note_locked(name.span(), self.locking);
                    if self.scope.tables.get(&found).map_or(true, |table| !table.id.is_temporary()) {
                        self.scope.variables.note_lock(self.strength);
                    }
                }
                Ok(())
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let known_as = alias.as_ref().map(|alias| name_of(&alias.name)).transpose()?;
                if !self.asks_for(known_as.as_deref()) {
                    return Ok(());
                }
                // All that it reads.
                let (only, known) = (self.only.take(), self.hidden.len());
                for common in subquery.with.iter().flat_map(|with| &with.cte_tables) {
                    self.hidden.push(name_of(&common.alias.name)?);
                }
                let noted = self.note_body(&subquery.body);
                self.hidden.truncate(known);
                self.only = only;
                noted
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.note_joined(table_with_joins),
            TableFactor::NestedJoin { alias: Some(alias), .. } => {
                self.refuse_named(&name_of(&alias.name)?, "a join")
            }
            TableFactor::Table { alias: Some(alias), .. }
            | TableFactor::Function { alias: Some(alias), .. }
            | TableFactor::UNNEST { alias: Some(alias), .. } => {
                self.refuse_named(&name_of(&alias.name)?, "a function")
            }
            _ => Ok(()),
        }
    }

    /// Whether the clause is about what is known by this name.
    fn asks_for(&mut self, name: Option<&str>) -> bool {
        match (&self.only, name) {
            (None, _) => true,
            (Some(only), Some(name)) if only == name => {
                self.is_found = true;
                true
            }
            _ => false,
        }
    }

    /// What has no rows of its own is left out, unless it is named.
    fn refuse_named(&mut self, name: &str, what: &str) -> Result<(), SqlError> {
        let is_named = self.only.is_some() && self.asks_for(Some(name));
        if is_named { self.cannot(what) } else { Ok(()) }
    }

    /// Without OF it is left out.
    fn cannot(&self, what: &str) -> Result<(), SqlError> {
        if self.only.is_none() && what == "a WITH query" {
            return Ok(());
        }
        let message = format!("{} cannot be applied to {what}", self.strength);
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}
