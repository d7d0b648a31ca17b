//! ALTER TABLE: what its parts are, and how they are made one after the other.

use crate::ddl::alter_constraint::{alter_constraint, validate_constraint};
use crate::ddl::columns::{
    ColumnChange, add_column, alter_column, bind_alter_column, drop_column, rename_column, rename_table,
    shown_as,
};
use crate::ddl::comments::rename_comments;
use crate::ddl::constraints::{NewConstraint, add_check, bind_new_constraint, drop_constraint};
use crate::ddl::endorsement::table_endorsement;
use crate::ddl::foreign_keys::create_foreign_key;
use crate::ddl::indexes::create_index;
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::partitions::{moved_name, rename_partition};
use crate::ddl::primary_key::add_primary_key;
use crate::ddl::relations::{find_table, not_for_materialized_views};
use crate::ddl::row_security::RowSecurityChange;
use crate::ddl::rows::Rows;
use crate::ddl::schemas::{move_table, schema_name};
use crate::ddl::tables::TableDraft;
use crate::ddl::triggers::enable_triggers;
use sqlparser::ast::{self, AlterTableOperation, Ident, RenameTableNameKind};
use std::sync::Arc;
use syntax::names::name_of;
use types::{
    Catalog, Commented, CompositeTypes, Deferral, ExecutionVersion, Securable, SqlError, SqlState, Table,
    catalog_name, object_name, schema_of,
};

/// One part of an ALTER TABLE.
#[derive(Clone, Debug)]
pub(crate) enum TableChange {
    /// SET (endorsement_policy = …): the policy, if any.
    SetEndorsement(Option<String>),
    /// ADD CONSTRAINT
    AddConstraint(Box<NewConstraint>),
    /// DROP CONSTRAINT
    DropConstraint {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The constraint.
        name: String,
    },
    /// ALTER CONSTRAINT: its name, and when it is held from now on.
    AlterConstraint(String, Deferral),
    /// VALIDATE CONSTRAINT
    ValidateConstraint(String),
    /// ADD COLUMN
    AddColumn {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The column with its constraints.
        definition: Box<ast::ColumnDef>,
    },
    /// DROP COLUMN
    DropColumn {
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// The column.
        name: String,
    },
    /// RENAME COLUMN
    RenameColumn {
        /// As it is.
        from: String,
        /// As it will be.
        to: String,
    },
    /// RENAME TO
    Rename(String),
    /// SET SCHEMA
    SetSchema(String),
    /// ENABLE TRIGGER and DISABLE TRIGGER
    EnableTriggers {
        /// The trigger; `None`: all.
        name: Option<String>,
        /// Whether it fires from now on.
        enabled: bool,
    },
    /// ENABLE, DISABLE, FORCE and NO FORCE ROW LEVEL SECURITY
    RowSecurity(RowSecurityChange),
    /// ALTER COLUMN
    AlterColumn {
        /// The column.
        name: String,
        /// What becomes of it.
        change: ColumnChange,
    },
}

impl TableChange {
    /// Whether it changes which columns there are, what they are called, or their types.
    pub(super) fn changes_columns(&self) -> bool {
        matches!(
            self,
            TableChange::AddColumn { .. }
                | TableChange::DropColumn { .. }
                | TableChange::RenameColumn { .. }
                | TableChange::AlterColumn { .. }
        )
    }
}

/// What of a table is altered; `None` where it is something that cannot be.
///
/// # Errors
/// What is wrong with it, as far as that can be told without the table.
pub(super) fn bind_alter_table(
    types: &CompositeTypes,
    alter: &ast::AlterTable,
) -> Result<Option<Vec<TableChange>>, SqlError> {
    if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
        return Ok(None);
    }
    let renames = |operation: &AlterTableOperation| {
        matches!(
            operation,
            AlterTableOperation::RenameTable { .. } | AlterTableOperation::RenameColumn { .. }
        )
    };
    if alter.operations.len() > 1 && alter.operations.iter().any(renames) {
        // What is renamed is renamed alone.
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"RENAME\""));
    }
    let mut changes = Vec::with_capacity(alter.operations.len());
    for operation in &alter.operations {
        let Some(change) = bind_operation(types, operation)? else { return Ok(None) };
        changes.push(change);
    }
    Ok(Some(changes))
}

fn bind_operation(
    types: &CompositeTypes,
    operation: &AlterTableOperation,
) -> Result<Option<TableChange>, SqlError> {
    let since_8 = types.rules() >= ExecutionVersion::V8;
    let cascades =
        |behavior: &Option<ast::DropBehavior>| matches!(behavior, Some(ast::DropBehavior::Cascade));
    Ok(Some(match operation {
        AlterTableOperation::SetOptionsParens { options } => {
            TableChange::SetEndorsement(table_endorsement(options)?)
        }
        AlterTableOperation::AddConstraint { constraint, not_valid } if since_8 || !not_valid => {
            TableChange::AddConstraint(Box::new(bind_new_constraint(constraint, *not_valid, types.rules())?))
        }
        AlterTableOperation::ValidateConstraint { name } if since_8 => {
            TableChange::ValidateConstraint(name_of(name)?)
        }
        AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
            let cascade = cascades(drop_behavior);
            TableChange::DropConstraint { if_exists: *if_exists, cascade, name: name_of(name)? }
        }
        AlterTableOperation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
            let definition = Box::new(column_def.clone());
            TableChange::AddColumn { if_not_exists: *if_not_exists, definition }
        }
        AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
            let [name] = column_names.as_slice() else { return Ok(None) };
            let cascade = cascades(drop_behavior);
            TableChange::DropColumn { if_exists: *if_exists, cascade, name: name_of(name)? }
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            TableChange::RenameColumn { from: name_of(old_column_name)?, to: name_of(new_column_name)? }
        }
        AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) } => {
            TableChange::Rename(schema_name(name)?)
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            let Some(change) = bind_alter_column(types, op)? else { return Ok(None) };
            TableChange::AlterColumn { name: name_of(column_name)?, change }
        }
        AlterTableOperation::EnableTrigger { name } => bind_enable(name, true)?,
        AlterTableOperation::DisableTrigger { name } => bind_enable(name, false)?,
        AlterTableOperation::EnableRowLevelSecurity if since_8 => {
            TableChange::RowSecurity(RowSecurityChange::Enable(true))
        }
        AlterTableOperation::DisableRowLevelSecurity if since_8 => {
            TableChange::RowSecurity(RowSecurityChange::Enable(false))
        }
        AlterTableOperation::ForceRowLevelSecurity if since_8 => {
            TableChange::RowSecurity(RowSecurityChange::Force(true))
        }
        AlterTableOperation::NoForceRowLevelSecurity if since_8 => {
            TableChange::RowSecurity(RowSecurityChange::Force(false))
        }
        AlterTableOperation::EnableAlwaysTrigger { .. }
        | AlterTableOperation::EnableReplicaTrigger { .. } => {
            return Err(SqlError::unsupported("ENABLE ALWAYS TRIGGER and ENABLE REPLICA TRIGGER")
                .hint("Use ENABLE TRIGGER: nothing is replicated otherwise than by running it."));
        }
        _ => return Ok(None),
    }))
}

/// The trigger of ENABLE TRIGGER: a name, or ALL or USER, which is all of them.
fn bind_enable(name: &Ident, enabled: bool) -> Result<TableChange, SqlError> {
    let all = name.quote_style.is_none() && matches!(name_of(name)?.as_str(), "all" | "user");
    let name = if all { None } else { Some(name_of(name)?) };
    Ok(TableChange::EnableTriggers { name, enabled })
}

/// Makes the changes of a table one after the other.
///
/// # Errors
/// The first that cannot be made.
pub(super) fn alter_table(
    catalog: &mut NewCatalog,
    if_exists: bool,
    name: &str,
    changes: &[TableChange],
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    if if_exists && catalog.columns_of(name).is_none() {
        return Ok(());
    }
    if catalog.partition(name).is_some() {
        return alter_partition_alone(catalog, name, changes);
    }
    check_materialized_view(catalog, name, changes)?;
    let mut name = name.to_string();
    for change in changes {
        let mut table = find_table(catalog, &name)?;
        match change {
            TableChange::SetEndorsement(policy) => {
                Arc::make_mut(&mut table).endorsement.clone_from(policy);
                catalog.tables.insert(name.clone(), table);
            }
            TableChange::AddConstraint(constraint) => match constraint.as_ref() {
                NewConstraint::PrimaryKey(draft) => add_primary_key(catalog, &table, draft, rows)?,
                NewConstraint::Unique(draft) => create_index(catalog, &table, draft, rows)?,
                NewConstraint::ForeignKey(draft) => create_foreign_key(catalog, &table, draft, rows)?,
                NewConstraint::Check(name, condition, not_valid) => {
                    add_check(catalog, &table, name.as_deref(), (condition, *not_valid), rows)?;
                }
            },
            TableChange::DropConstraint { if_exists, cascade, name } => {
                drop_constraint(catalog, &table, name, *if_exists, *cascade, rows)?;
            }
            TableChange::AlterConstraint(name, deferral) => {
                alter_constraint(catalog, &table, name, *deferral)?;
            }
            TableChange::ValidateConstraint(name) => validate_constraint(catalog, &table, name, rows)?,
            TableChange::AddColumn { if_not_exists, definition } => {
                let known = table.ordinal(&name_of(&definition.name)?).is_some();
                if !(known && *if_not_exists) {
                    add_column(catalog, TableDraft::of(&table), definition, rows)?;
                }
            }
            TableChange::DropColumn { if_exists, cascade, name } => {
                if table.ordinal(name).is_some() || !if_exists {
                    drop_column(catalog, &table, name, *cascade, rows)?;
                }
            }
            TableChange::RenameColumn { from, to } => rename_column_of(catalog, &table, from, to)?,
            TableChange::Rename(to) => {
                let to = catalog_name(schema_of(&table.name), to);
                rename_table(catalog, &table, &to)?;
                let (before, after) =
                    (Securable::Relation(table.name.clone()), Securable::Relation(to.clone()));
                catalog.roles.rename(&before, after);
                let moved = |name: &str| (*name == table.name).then(|| to.clone());
                rename_comments(catalog, &|about| about.moved(&moved));
                name = to;
            }
            TableChange::SetSchema(schema) => name = move_table(catalog, &table, schema)?,
            TableChange::EnableTriggers { name, enabled } => {
                enable_triggers(catalog, &table, name.as_deref(), *enabled)?;
            }
            TableChange::RowSecurity(change) => change.apply(catalog, &table)?,
            TableChange::AlterColumn { name, change } => alter_column(catalog, &table, name, change, rows)?,
        }
    }
    Ok(())
}

/// A column's new name, which its privileges and comments follow.
fn rename_column_of(catalog: &mut NewCatalog, table: &Table, from: &str, to: &str) -> Result<(), SqlError> {
    rename_column(catalog, table, from, to)?;
    let relations = shown_as(catalog, table);
    for relation in &relations {
        let before = Securable::column(relation, from);
        catalog.roles.rename(&before, Securable::column(relation, to));
    }
    rename_comments(catalog, &|about| match about {
        Commented::Column(relation, column) if relations.contains(&relation) && column == *from => {
            Commented::Column(relation, to.to_string())
        }
        other => other,
    });
    Ok(())
}

/// ALTER TABLE of a partition, which can get another name alone: all else is its table's.
fn alter_partition_alone(
    catalog: &mut NewCatalog,
    name: &str,
    changes: &[TableChange],
) -> Result<(), SqlError> {
    match changes {
        [TableChange::Rename(to)] => rename_partition(catalog, name, &moved_name(name, Some(to), None)),
        [TableChange::SetSchema(schema)] if schema_of(name) == schema => Ok(()),
        [TableChange::SetSchema(schema)] => {
            rename_partition(catalog, name, &moved_name(name, None, Some(schema)))
        }
        _ => find_table(catalog, name).map(drop),
    }
}

/// The changes of ALTER TABLE that materialized views take: other names.
///
/// # Errors
/// `42809`
fn check_materialized_view(catalog: &Catalog, name: &str, changes: &[TableChange]) -> Result<(), SqlError> {
    if catalog.materialized_view(name).is_none() {
        return Ok(());
    }
    match changes.iter().find_map(action) {
        None => Ok(()),
        Some(action) => {
            let name = object_name(name);
            Err(not_for_materialized_views(&format!(
                "ALTER action {action} cannot be performed on relation \"{name}\""
            )))
        }
    }
}

/// What a change is called that tables alone take.
fn action(change: &TableChange) -> Option<&'static str> {
    Some(match change {
        TableChange::Rename(_) | TableChange::SetSchema(_) | TableChange::RenameColumn { .. } => return None,
        TableChange::SetEndorsement(_) => "SET (endorsement_policy)",
        TableChange::AddConstraint(_) => "ADD CONSTRAINT",
        TableChange::DropConstraint { .. } => "DROP CONSTRAINT",
        TableChange::AlterConstraint(..) => "ALTER CONSTRAINT",
        TableChange::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        TableChange::AddColumn { .. } => "ADD COLUMN",
        TableChange::DropColumn { .. } => "DROP COLUMN",
        TableChange::AlterColumn { .. } => "ALTER COLUMN",
        TableChange::EnableTriggers { enabled: true, .. } => "ENABLE TRIGGER",
        TableChange::EnableTriggers { enabled: false, .. } => "DISABLE TRIGGER",
        TableChange::RowSecurity(_) => "ROW SECURITY",
    })
}
