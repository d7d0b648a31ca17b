//! Constraints of tables that exist: ALTER TABLE … ADD and DROP CONSTRAINT, and the names of CHECKs.

use crate::ddl::alter_constraint::hold_check;
use crate::ddl::foreign_keys::{ForeignKeyDraft, bind_foreign_key, refuse_needed, remove_foreign_keys};
use crate::ddl::index_drafts::{IndexDraft, bind_unique};
use crate::ddl::indexes::remove_index;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::primary_key::{KeyDraft, drop_primary_key};
use crate::ddl::relations::{constraint_exists, generated_name};
use crate::ddl::rows::Rows;
use crate::ddl::views::drop_needing_primary_key;
use plan::routines::Routines;
use plan::table::TablePlan;
use sqlparser::ast::TableConstraint;
use std::sync::Arc;
use syntax::names::name_of;
use types::{Catalog, Check, Column, ExecutionVersion, SqlError, SqlState, Table};

/// A constraint that is added to a table.
#[derive(Clone, Debug)]
pub(crate) enum NewConstraint {
    /// PRIMARY KEY
    PrimaryKey(KeyDraft),
    /// CHECK, with its name if it has one, and whether it is NOT VALID.
    Check(Option<String>, String, bool),
    /// UNIQUE
    Unique(IndexDraft),
    /// FOREIGN KEY
    ForeignKey(ForeignKeyDraft),
}

/// Binds a constraint that is added.
///
/// # Errors
/// What is wrong with it.
pub(super) fn bind_new_constraint(
    constraint: &TableConstraint,
    not_valid: bool,
    rules: ExecutionVersion,
) -> Result<NewConstraint, SqlError> {
    let unmarked = |what: &str| {
        let message = format!("{what} constraints cannot be marked NOT VALID");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    };
    Ok(match constraint {
        TableConstraint::Unique(_) if not_valid => return unmarked("UNIQUE"),
        TableConstraint::PrimaryKey(_) if not_valid => return unmarked("PRIMARY KEY"),
        TableConstraint::Unique(unique) => NewConstraint::Unique(bind_unique(unique, rules)?),
        TableConstraint::ForeignKey(foreign_key) => {
            let draft = bind_foreign_key(foreign_key, None, rules)?;
            NewConstraint::ForeignKey(ForeignKeyDraft { not_valid, ..draft })
        }
        TableConstraint::Check(check) if check.enforced != Some(false) => {
            let name = check.name.as_ref().map(name_of).transpose()?;
            NewConstraint::Check(name, check.expr.to_string(), not_valid)
        }
        TableConstraint::PrimaryKey(key) => NewConstraint::PrimaryKey(KeyDraft::bind(key, rules)?),
        other => return Err(SqlError::unsupported(format_args!("the constraint {other}"))),
    })
}

/// ALTER TABLE … ADD CHECK, which every row must keep; with NOT VALID every row that is written from now on.
pub(super) fn add_check(
    catalog: &mut NewCatalog,
    table: &Arc<Table>,
    name: Option<&str>,
    (condition, not_valid): (&str, bool),
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let mut new = Table::clone(table);
    let routines = catalog.routines();
    match name {
        None => name_checks(&mut new, &[condition.to_string()], &routines)?,
        Some(name) if constraint_exists(catalog, table, name) => {
            let message =
                format!("constraint \"{name}\" for relation \"{}\" already exists", table.object_name());
            return Err(SqlError::new(SqlState(*b"42710"), message));
        }
        Some(name) => {
            let (name, condition) = (name.to_string(), condition.to_string());
            new.checks.push(Check { name, condition, valid: true });
            new.checks.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    let plan = TablePlan::stored(&new, catalog, &routines)?;
    // The new one stands by the rules of now.
    plan::bind_tables::bind_check(&plan, condition, &routines)?;
    let has = |table: &Table, name: &str| table.checks.iter().any(|known| known.name == name);
    let added = new.checks.iter().position(|check| has(&new, &check.name) && !has(table, &check.name));
    if let Some(added) = added {
        match not_valid {
            true => new.checks[added].valid = false,
            false => hold_check(catalog, &new, &new.checks[added].name, rows)?,
        }
    }
    catalog.tables.insert(new.name.clone(), Arc::new(new));
    Ok(())
}

pub(super) fn drop_constraint(
    catalog: &mut NewCatalog,
    table: &Arc<Table>,
    name: &str,
    if_exists: bool,
    cascade: bool,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if table.checks.iter().any(|check| check.name == name) {
        let mut new = Table::clone(table);
        new.checks.retain(|check| check.name != name);
        catalog.tables.insert(new.name.clone(), Arc::new(new));
        return Ok(());
    }
    if catalog.foreign_keys_of(table.id).iter().any(|foreign_key| foreign_key.name == name) {
        remove_foreign_keys(catalog, |child, foreign_key| child == table.id && foreign_key.name == name);
        return Ok(());
    }
    let indexes = catalog.indexes_of(table.id);
    if let Some(index) = indexes.iter().find(|index| index.constraint && index.name == name).cloned() {
        if cascade {
            remove_foreign_keys(catalog, |_, foreign_key| foreign_key.index == Some(index.number));
        }
        let what = format!("constraint {name} on table {}", table.name);
        refuse_needed(catalog, &index, &what, &format!("index {name}"))?;
        remove_index(catalog, table.id, &index);
        return Ok(());
    }
    if !table.primary_key.is_empty() && table.primary_key_name == name {
        let what = format!("constraint {name} on table {}", table.name);
        drop_needing_primary_key(catalog, table, &what, cascade)?;
        return drop_primary_key(catalog, table, cascade, rows).map(drop);
    }
    if if_exists {
        return Ok(());
    }
    let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", table.object_name());
    Err(SqlError::new(SqlState(*b"42704"), message))
}

/// Gives the CHECKs without a name PostgreSQL's: with the column where they look at one only.
pub(super) fn name_checks(
    table: &mut Table,
    unnamed: &[String],
    routines: &Routines,
) -> Result<(), SqlError> {
    let bare = Table { checks: Vec::new(), ..table.clone() };
    let bare = TablePlan::stored(&bare, &Catalog::default(), routines)?;
    for condition in unnamed {
        let bound = plan::bind_tables::bind_check(&bare, condition, routines)?;
        let columns: Vec<&Column> = (0..table.columns.len())
            .filter(|ordinal| {
                bound.any(&mut |expression| {
                    matches!(expression.kind, plan::expression::Kind::Column(column) if usize::from(column) == *ordinal)
                })
            })
            .map(|ordinal| &table.columns[ordinal])
            .collect();
        let column = match columns.as_slice() {
            [only] => only.name.clone(),
            _ => String::new(),
        };
        let candidates = (0..).map(|number| {
            let label = if number == 0 { "check".to_string() } else { format!("check{number}") };
            generated_name(table.object_name(), &column, &label)
        });
        let free = |name: &String| !table.checks.iter().any(|known| known.name == *name);
        let Some(name) = candidates.into_iter().find(free) else { continue };
        table.checks.push(Check { name, condition: condition.clone(), valid: true });
    }
    table.checks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}
