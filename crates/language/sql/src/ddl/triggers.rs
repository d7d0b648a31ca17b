//! CREATE, ALTER and DROP TRIGGER, and what becomes of triggers when what they need is dropped or altered.

use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::relations::{find_table, not_for_materialized_views};
use crate::ddl::trigger_owner::TriggerOwner;
use crate::ddl::views::depends;
use plan::expression::Kind;
use plan::scope::VariableScope;
use plan::table::TablePlan;
use plan::tables::Tables;
use plan::trigger::{INVALID_DEFINITION, TriggerPlan, arguments_value, bind_condition, triggered};
use plpgsql::{self, CompileOptions};
use sqlparser::ast::Expr;
use std::collections::BTreeMap;
use std::sync::Arc;
use syntax::parse::parse_expression;
use syntax::parse::trigger::{CreateTrigger, TriggerStatement};
use types::{
    Catalog, Commented, ExecutionVersion, FunctionResult, SqlError, SqlState, Table, Trigger, TriggerEvent,
    TriggerTime, limits,
};

/// `duplicate_object`
const DUPLICATE_OBJECT: SqlState = SqlState(*b"42710");
/// `wrong_object_type`
const WRONG_OBJECT: SqlState = SqlState(*b"42809");

/// A change of the triggers.
#[derive(Clone, Debug)]
pub(crate) enum TriggerChange {
    /// CREATE TRIGGER.
    Create(Box<TriggerDraft>),
    /// DROP TRIGGER.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// Its name.
        name: String,
        /// Its table.
        table: String,
    },
    /// ALTER TRIGGER … RENAME TO.
    Rename {
        /// Its name.
        name: String,
        /// Its table.
        table: String,
        /// The new name.
        to: String,
    },
}

/// A trigger as a statement describes it.
#[derive(Clone, Debug)]
pub(crate) struct TriggerDraft {
    or_replace: bool,
    pub(super) table: String,
    /// INSTEAD OF, which makes it one of a view.
    instead: bool,
    pub(super) trigger: Trigger,
    /// How often OLD TABLE and NEW TABLE are named.
    transition_tables: [usize; 2],
    /// WHEN, with positions in the statement's text.
    pub(super) condition: Option<Expr>,
    source: Arc<str>,
}

/// The change that a statement about triggers is.
///
/// # Errors
/// Arguments that are too long.
pub(super) fn bind_trigger(statement: &TriggerStatement) -> Result<TriggerChange, SqlError> {
    Ok(match statement {
        TriggerStatement::Drop { if_exists, name, table } => {
            TriggerChange::Drop { if_exists: *if_exists, name: name.clone(), table: table.clone() }
        }
        TriggerStatement::Rename { name, table, to } => {
            TriggerChange::Rename { name: name.clone(), table: table.clone(), to: to.clone() }
        }
        TriggerStatement::Create(create) => TriggerChange::Create(Box::new(draft(create)?)),
    })
}

fn draft(create: &CreateTrigger) -> Result<TriggerDraft, SqlError> {
    arguments_value(&create.arguments)?;
    let trigger = Trigger {
        name: create.name.clone(),
        function: create.function.clone(),
        arguments: create.arguments.clone(),
        time: create.time.unwrap_or(TriggerTime::Instead),
        events: create.events,
        columns: create.columns.clone(),
        per_row: create.per_row,
        condition: create.condition.as_ref().map(Expr::to_string),
        old_table: create.old_tables.first().cloned(),
        new_table: create.new_tables.first().cloned(),
        enabled: true,
    };
    Ok(TriggerDraft {
        or_replace: create.or_replace,
        table: create.table.clone(),
        instead: create.time.is_none(),
        trigger,
        transition_tables: [create.old_tables.len(), create.new_tables.len()],
        condition: create.condition.clone(),
        source: create.source.clone(),
    })
}

impl TriggerChange {
    /// Makes the change. Gives the command's tag.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn apply(&self, catalog: &mut NewCatalog) -> Result<&'static str, SqlError> {
        match self {
            TriggerChange::Create(draft) => {
                draft.create(catalog)?;
                Ok("CREATE TRIGGER")
            }
            TriggerChange::Drop { if_exists, name, table } => {
                if *if_exists && catalog.columns_of(table).is_none() {
                    return Ok("DROP TRIGGER");
                }
                let owner = TriggerOwner::find(catalog, table)?;
                match if_exists {
                    true => drop(owner.take(catalog, name)),
                    false => drop(owner.take(catalog, name).ok_or_else(|| owner.undefined(name))?),
                }
                Ok("DROP TRIGGER")
            }
            TriggerChange::Rename { name, table, to } => {
                let owner = TriggerOwner::find(catalog, table)?;
                let mut trigger = owner.take(catalog, name).ok_or_else(|| owner.undefined(name))?;
                Arc::make_mut(&mut trigger).name.clone_from(to);
                if owner.has(catalog, to) {
                    return Err(already_there(&owner, to));
                }
                owner.put(catalog, trigger);
                crate::ddl::comments::rename_comments(catalog, &|about| match about {
                    Commented::Trigger(of, known) if of == owner.name() && known == *name => {
                        Commented::Trigger(of, to.clone())
                    }
                    other => other,
                });
                Ok("ALTER TRIGGER")
            }
        }
    }
}

fn already_there(owner: &TriggerOwner, name: &str) -> SqlError {
    let message = format!("trigger \"{name}\" for relation \"{}\" already exists", owner.object_name());
    SqlError::new(DUPLICATE_OBJECT, message)
}

impl TriggerDraft {
    fn create(&self, catalog: &mut NewCatalog) -> Result<(), SqlError> {
        let trigger = &self.trigger;
        if catalog.views.contains_key(&self.table) && catalog.partition(&self.table).is_none() {
            if !self.instead
                || trigger.events.contains(TriggerEvent::Truncate)
                || catalog.rules < ExecutionVersion::V10
            {
                return Err(self.refused_on_view(catalog));
            }
            self.check_instead(catalog)?;
            return self.place(catalog, &TriggerOwner::View(self.table.clone()));
        }
        let table = find_table(catalog, &self.table)?;
        if table.materialized.is_some() {
            return Err(not_for_materialized_views(&format!(
                "relation \"{}\" cannot have triggers",
                table.object_name()
            )));
        }
        if self.instead {
            return Err(SqlError::new(WRONG_OBJECT, format!("\"{}\" is a table", table.object_name()))
                .detail("Tables cannot have INSTEAD OF triggers."));
        }
        if table.id.is_temporary() {
            return Err(SqlError::unsupported("a trigger on a temporary table")
                .hint("Do in the statements that change it what the trigger would do."));
        }
        if trigger.per_row && trigger.events.contains(TriggerEvent::Truncate) {
            let message = "TRUNCATE FOR EACH ROW triggers are not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.check_transition_tables()?;
        let tables = catalog.bound()?;
        let plan = tables.get(&table.name)?;
        if let Some(condition) = &self.condition {
            let source = Some(self.source.clone());
            let scope = VariableScope::for_procedure(source).with_routines(tables.routines());
            bind_condition(&scope, plan, trigger, condition)?;
        }
        self.check_function(catalog)?;
        let owner = TriggerOwner::Table(table.clone());
        self.check_free(catalog, &owner)?;
        for (position, column) in trigger.columns.iter().enumerate() {
            if table.ordinal(column).is_none() {
                let message =
                    format!("column \"{column}\" of relation \"{}\" does not exist", table.object_name());
                return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
            }
            if trigger.columns[..position].contains(column) {
                let message = format!("column \"{column}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
        }
        self.place(catalog, &owner)
    }

    /// Refuses a function that cannot be one of a trigger.
    fn check_function(&self, catalog: &Catalog) -> Result<(), SqlError> {
        let trigger = &self.trigger;
        let Some(function) = catalog.procedures.get(&trigger.function) else {
            let message = format!("function {}() does not exist", types::as_given(&trigger.function));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        };
        let result = function.function.as_ref().map(|function| &function.result);
        if result != Some(&FunctionResult::Trigger) {
            let message = format!("function {} must return type trigger", trigger.function);
            return Err(SqlError::new(INVALID_DEFINITION, message));
        }
        Ok(())
    }

    /// Refuses a name that is taken, and one trigger too many.
    fn check_free(&self, catalog: &Catalog, owner: &TriggerOwner) -> Result<(), SqlError> {
        if owner.has(catalog, &self.trigger.name) {
            return if self.or_replace { Ok(()) } else { Err(already_there(owner, &self.trigger.name)) };
        }
        if owner.triggers(catalog).is_some_and(|known| known.len() >= limits::TRIGGERS_MAX) {
            let message = format!("a table has at most {} triggers (TRIGGERS_MAX)", limits::TRIGGERS_MAX);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(())
    }

    fn place(&self, catalog: &mut NewCatalog, owner: &TriggerOwner) -> Result<(), SqlError> {
        owner.put(catalog, Arc::new(self.trigger.clone()));
        // With the trigger itself among those that its statements may fire.
        let tables = catalog.bound()?;
        check_triggers(catalog, &tables, &|table, other| {
            table.relation == owner.name() && other.name == self.trigger.name
        })
    }

    /// What an INSTEAD OF trigger of a view cannot have, then what no trigger can.
    fn check_instead(&self, catalog: &Catalog) -> Result<(), SqlError> {
        let trigger = &self.trigger;
        let unsupported = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        let has_tables = self.transition_tables != [0, 0];
        if !trigger.per_row {
            return unsupported("INSTEAD OF triggers must be FOR EACH ROW");
        }
        if self.condition.is_some() {
            return unsupported("INSTEAD OF triggers cannot have WHEN conditions");
        }
        if !trigger.columns.is_empty() {
            return unsupported("INSTEAD OF triggers cannot have column lists");
        }
        if has_tables {
            return Err(self.is_view("Triggers on views cannot have transition tables."));
        }
        self.check_function(catalog)?;
        self.check_free(catalog, &TriggerOwner::View(self.table.clone()))
    }

    fn is_view(&self, detail: &str) -> SqlError {
        SqlError::new(WRONG_OBJECT, format!("\"{}\" is a view", types::object_name(&self.table)))
            .detail(detail)
    }

    fn refused_on_view(&self, catalog: &NewCatalog) -> SqlError {
        if self.instead && catalog.rules < ExecutionVersion::V10 {
            return SqlError::unsupported("an INSTEAD OF trigger").hint(
                "Put the trigger on the table that the view reads, or change the rows in a procedure.",
            );
        }
        let what = match self.trigger.per_row {
            _ if self.trigger.events.contains(TriggerEvent::Truncate) => {
                "Views cannot have TRUNCATE triggers."
            }
            true => "Views cannot have row-level BEFORE or AFTER triggers.",
            false => {
                return SqlError::unsupported("a trigger on a view").hint(
                    "Put the trigger on the table that the view reads, or change the rows in a procedure.",
                );
            }
        };
        self.is_view(what)
    }

    fn check_transition_tables(&self) -> Result<(), SqlError> {
        let trigger = &self.trigger;
        let [olds, news] = self.transition_tables;
        if olds + news == 0 {
            return Ok(());
        }
        let invalid = |message: &str| Err(SqlError::new(INVALID_DEFINITION, message));
        let unsupported = |message: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        let has = |event| trigger.events.contains(event);
        if trigger.time != TriggerTime::After {
            return invalid("transition table name can only be specified for an AFTER trigger");
        }
        if has(TriggerEvent::Truncate) {
            return unsupported("TRUNCATE triggers with transition tables are not supported");
        }
        if trigger.events.iter().count() > 1 {
            return unsupported(
                "transition tables cannot be specified for triggers with more than one event",
            );
        }
        if !trigger.columns.is_empty() {
            return unsupported("transition tables cannot be specified for triggers with column lists");
        }
        if news > 0 && has(TriggerEvent::Delete) {
            return invalid("NEW TABLE can only be specified for an INSERT or UPDATE trigger");
        }
        if news > 1 {
            return invalid("NEW TABLE cannot be specified multiple times");
        }
        if olds > 0 && has(TriggerEvent::Insert) {
            return invalid("OLD TABLE can only be specified for a DELETE or UPDATE trigger");
        }
        if olds > 1 {
            return invalid("OLD TABLE cannot be specified multiple times");
        }
        if trigger.old_table == trigger.new_table {
            return invalid("OLD TABLE name and NEW TABLE name cannot be the same");
        }
        Ok(())
    }
}

/// Compiles the triggers that are meant, whatever table they are on.
///
/// A function that is called and not there is said when the trigger fires: it may be made later, and often is.
///
/// # Errors
/// What is wrong with a function for a table.
pub(super) fn check_triggers(
    catalog: &NewCatalog,
    tables: &Tables,
    meant: &dyn Fn(&TablePlan, &Trigger) -> bool,
) -> Result<(), SqlError> {
    for (table, triggers) in triggered(tables, catalog) {
        for trigger in triggers.values().filter(|trigger| meant(table, trigger)) {
            let Some(bound) = TriggerPlan::new(tables, catalog, table, trigger, 0) else { continue };
            let options = CompileOptions { version: tables.version(), ..CompileOptions::default() };
            match plpgsql::compile_trigger(tables, &bound.function, table, trigger, options) {
                Err(error) if error.state != SqlState::UNDEFINED_FUNCTION => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// ENABLE TRIGGER and DISABLE TRIGGER; `name`: the trigger, or all.
///
/// # Errors
/// `42704` where there is none of this name.
pub(super) fn enable_triggers(
    catalog: &mut Catalog,
    table: &Table,
    name: Option<&str>,
    enabled: bool,
) -> Result<(), SqlError> {
    let mut found = name.is_none();
    for trigger in catalog.triggers.get_mut(&table.id).into_iter().flat_map(BTreeMap::values_mut) {
        if name.is_none_or(|name| trigger.name == name) {
            Arc::make_mut(trigger).enabled = enabled;
            found = true;
        }
    }
    match (found, name) {
        (false, Some(name)) => Err(TriggerOwner::Table(Arc::new(table.clone())).undefined(name)),
        _ => Ok(()),
    }
}

/// Drops the triggers that call a function, or whose condition does; refuses where there are any without CASCADE.
pub(super) fn drop_calling(
    catalog: &mut NewCatalog,
    function: &str,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let owners = TriggerOwner::all(catalog);
    if owners.is_empty() {
        return Ok(());
    }
    let tables = catalog.bound()?;
    let mut users: Vec<(TriggerOwner, String)> = Vec::new();
    for owner in owners {
        for trigger in owner.triggers(catalog).into_iter().flat_map(BTreeMap::values) {
            let mut calls = trigger.function == function;
            if let TriggerOwner::Table(table) = &owner
                && let Ok(Some(condition)) = condition_of(&tables, table, trigger)
            {
                condition.visit_calls(&mut |call| calls |= *call.callee.name == *function);
            }
            if calls {
                users.push((owner.clone(), trigger.name.clone()));
            }
        }
    }
    drop_users(catalog, users, what, cascade)
}

fn drop_users(
    catalog: &mut Catalog,
    users: Vec<(TriggerOwner, String)>,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    if let Some((owner, trigger)) = users.first().filter(|_| !cascade) {
        return Err(depends(what, &format!("trigger {trigger} on {}", owner.described()), what));
    }
    users.iter().for_each(|(owner, trigger)| drop(owner.take(catalog, trigger)));
    Ok(())
}

/// The condition of a trigger, bound.
///
/// # Errors
/// What is wrong with it.
pub(super) fn condition_of(
    tables: &Tables,
    table: &Table,
    trigger: &Trigger,
) -> Result<Option<plan::expression::Expression>, SqlError> {
    let Some(condition) = &trigger.condition else { return Ok(None) };
    let plan: &TablePlan = tables.get(&table.name)?;
    let scope = VariableScope::for_procedure(None).with_routines(tables.routines());
    bind_condition(&scope, plan, trigger, &parse_expression(condition, tables.version())?).map(Some)
}

/// Names of the triggers that name a column: in UPDATE OF or in WHEN. What their functions do with it is found when they
/// fire, as in PostgreSQL.
///
/// # Errors
/// None as long as their conditions can be bound.
pub(super) fn using_column(
    catalog: &NewCatalog,
    table: &Table,
    ordinal: usize,
) -> Result<Vec<String>, SqlError> {
    let mut users = Vec::new();
    if !catalog.triggers.contains_key(&table.id) {
        return Ok(users);
    }
    let tables = catalog.bound()?;
    let width = table.columns.len();
    for trigger in catalog.triggers_of(table.id) {
        let mut uses = trigger.columns.contains(&table.columns[ordinal].name);
        if let Some(condition) = condition_of(&tables, table, trigger)? {
            uses |= condition.any(&mut |inner| {
                matches!(inner.kind, Kind::Column(column) if usize::from(column) % width == ordinal)
            });
        }
        if uses {
            users.push(trigger.name.clone());
        }
    }
    Ok(users)
}

/// Drops the triggers that name a column which is dropped; refuses where there are any without CASCADE.
pub(super) fn drop_using_column(
    catalog: &mut NewCatalog,
    table: &Table,
    ordinal: usize,
    what: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    let users = using_column(catalog, table, ordinal)?;
    let owner = TriggerOwner::Table(Arc::new(table.clone()));
    let users = users.into_iter().map(|trigger| (owner.clone(), trigger)).collect();
    drop_users(catalog, users, what, cascade)
}
