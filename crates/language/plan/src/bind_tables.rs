//! Binding what a catalog has: the defaults and checks of its tables, and its constraints between them.

use crate::bind_indexes::bind_index;
use crate::bind_partitions::bind_partitions;
use crate::command::{DeletePlan, UpdatePlan};
use crate::condition::Condition;
use crate::constraint::{ForeignKeyPlan, ForeignKeys, constrained_columns};
use crate::domains::routines_of;
use crate::expression::written::first_subquery;
use crate::expression::{Binder, Expression, Kind, Source};
use crate::immutable::is_mutable;
use crate::routines::Routines;
use crate::scope::VariableScope;
use crate::statement::{Access, KeyPart};
use crate::table::{CheckPlan, ColumnPlan, Filled, TablePlan, stored_policy};
use crate::table_triggers::TableTriggers;
use crate::tables::Tables;
use crate::view::ViewPlan;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::parse_expression;
use types::{
    Catalog, Column, CompositeTypes, DataType, ExecutionVersion, ForeignKey, Generated, Securable, SqlError,
    SqlState, Table, TableId, Value,
};
use values::{Comparison, broken};

/// Binds the expression of DEFAULT for a column of this type.
pub fn bind_default(
    sql: &str,
    column: &str,
    data_type: DataType,
    routines: &Routines,
) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Default);
    let expression = binder.bind(&parse_expression(sql, routines.version())?)?;
    binder.assign_to_column(expression, column, data_type).map_err(|error| SqlError {
        message: error.message.replace("but expression is", "but default expression is"),
        ..error
    })
}

/// Binds the condition of a CHECK.
pub fn bind_check(plan: &TablePlan, sql: &str, routines: &Routines) -> Result<Expression, SqlError> {
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    let condition = binder.bind_condition(&parse_expression(sql, routines.version())?, "CHECK")?;
    if condition.any(&mut |expression| matches!(expression.kind, crate::expression::Kind::Now)) {
        return Err(SqlError::unsupported("now() in a CHECK constraint").hint(
            "A row that was right once would be wrong later. Check it in the procedure that writes it.",
        ));
    }
    if condition.runs_anything() {
        return Err(SqlError::unsupported("a function of the ledger in a CHECK constraint").hint(
            "A CHECK is judged on the row alone. Write the condition out, or check it in the procedure that writes the row.",
        ));
    }
    Ok(condition)
}

/// The DEFAULT of a domain, or of the one that it is of.
fn default_of(types: &CompositeTypes, data_type: DataType) -> Option<String> {
    let mut next = data_type;
    while let DataType::Domain(id) = next {
        let domain = types.get(id).and_then(|known| known.as_domain())?;
        if domain.default.is_some() {
            return domain.default.clone();
        }
        next = domain.base;
    }
    None
}

/// What domains ask of the columns that have them: conditions that are true, or raise the error of the domain.
fn domain_checks(table: &Table, rules: &[Routines]) -> Vec<CheckPlan> {
    let Some(routines) = rules.first() else { return Vec::new() };
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Nothing);
    let mut checks = Vec::new();
    for (ordinal, column) in table.columns.iter().enumerate() {
        let value = Expression::column(ordinal, routines.types().base_of(column.data_type));
        let checked = match column.data_type {
            DataType::Domain(_) => binder.checked(value, column.data_type),
            // Version 7 did not look into rows.
            inside
                if routines.version() >= ExecutionVersion::V8
                    && routines.types().has_domains_inside(inside, &|_| true) =>
            {
                binder.checked_inside(value)
            }
            _ => continue,
        };
        let is_null =
            Expression { kind: Kind::IsNull(true, Box::new(checked)), data_type: DataType::Boolean };
        let holds = Expression::constant(Value::Boolean(true), DataType::Boolean);
        let condition = Expression { kind: Kind::Or(vec![is_null, holds]), data_type: DataType::Boolean };
        // It raises the error itself, and no constraint of the table has such a name.
        checks.push(CheckPlan { name: format!("\0{ordinal}"), condition, valid: true });
    }
    checks
}

/// Binds the expression of a generated column.
///
/// # Errors
/// What is wrong with it; `42P17` where it looks at another generated column, or may have another value at another time.
pub fn bind_computed(
    plan: &TablePlan,
    table: &Table,
    column: &Column,
    sql: &str,
    routines: &Routines,
) -> Result<Expression, SqlError> {
    let expr = parse_expression(sql, routines.version())?;
    if first_subquery(&expr).is_some() {
        let message = "cannot use subquery in column generation expression";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let scope = VariableScope::for_procedure(None).with_routines(routines);
    let binder = Binder::new(&scope, Source::Table { table: plan, name: &plan.name });
    let bound = binder.in_clause(Some("column generation expressions")).bind(&expr)?;
    let invalid = |message| SqlError::new(SqlState(*b"42P17"), message);
    // Version 7 looked at the time alone.
    let is_mutable = match routines.version() < ExecutionVersion::V8 {
        true => bound.any(&mut |expression| matches!(expression.kind, Kind::Now)),
        false => is_mutable(&bound, &scope),
    };
    if is_mutable {
        return Err(invalid("generation expression is not immutable".to_string()));
    }
    if bound.runs_anything() {
        return Err(SqlError::unsupported("a function of the ledger in a generation expression")
            .hint("Write the expression out, or compute the value in a trigger."));
    }
    let other = |ordinal: u16| table.columns.get(usize::from(ordinal)).filter(|other| other.generated);
    let mut uses = None;
    bound.any(&mut |expression| {
        if let Kind::Column(ordinal) = expression.kind {
            uses = uses.or(other(ordinal));
        }
        uses.is_some()
    });
    if let Some(other) = uses {
        let message =
            format!("cannot use generated column \"{}\" in column generation expression", other.name);
        return Err(invalid(message).detail("A generated column cannot reference another generated column."));
    }
    let data_type = routines.types().base_of(column.data_type);
    binder.assign_to_column(bound, &column.name, data_type).map_err(|error| SqlError {
        message: error.message.replace("but expression is", "but default expression is"),
        ..error
    })
}

impl Tables {
    /// Binds every table with these rules.
    ///
    /// # Errors
    /// What is wrong in a default or a check.
    pub fn new(catalog: &Catalog, version: ExecutionVersion) -> Result<Tables, SqlError> {
        let routines = routines_of(catalog, version);
        let mut by_name = rustc_hash::FxHashMap::default();
        for table in catalog.tables.values() {
            let plan = TablePlan::stored(table, catalog, &routines)?;
            by_name.insert(table.name.clone(), Arc::new(plan));
        }
        let by_id = by_name.values().map(|plan| (plan.id, plan.clone())).collect();
        let foreign_keys = Arc::new(ForeignKeys::new(catalog, &by_id, &routines)?);
        let partitions = catalog.tables.values().filter_map(|table| table.partitioning.as_ref());
        let partitions: BTreeSet<&str> =
            partitions.flat_map(|one| one.partitions.keys().map(String::as_str)).collect();
        let mut views = rustc_hash::FxHashMap::default();
        for (place, view) in catalog.views.values().enumerate() {
            let is_partition = partitions.contains(view.name.as_str());
            let mut plan = ViewPlan::new(place, view, &routines)?;
            plan.is_partition = is_partition;
            plan.is_granted = version >= ExecutionVersion::V11 && is_granted(catalog, &view.name);
            views.insert(view.name.clone(), Arc::new(plan));
        }
        let (by_name, by_id, views) = (Arc::new(by_name), Arc::new(by_id), Arc::new(views));
        Ok(Tables { by_name, by_id, foreign_keys, views, routines })
    }
}

/// Whether roles have privileges on a view or its columns.
fn is_granted(catalog: &Catalog, view: &str) -> bool {
    let granted = catalog.roles.granted(&Securable::Relation(view.to_string()));
    granted.iter().next().is_some() || catalog.roles.columns_of(view).next().is_some()
}

/// Whether roles have privileges on some columns of a table, or of its partitions, which version 10 did not look at.
fn has_column_privileges(catalog: &Catalog, table: &Table, since_11: bool) -> bool {
    let partitions = table.partitioning.iter().filter(|_| since_11);
    let mut names = partitions.flat_map(|one| one.partitions.keys()).chain([&table.name]);
    names.any(|name| catalog.roles.columns_of(name).next().is_some())
}

impl TablePlan {
    /// Binds defaults and checks.
    ///
    /// # Errors
    /// What is wrong in one of them.
    pub fn new(table: &Table, catalog: &Catalog, routines: &Routines) -> Result<TablePlan, SqlError> {
        TablePlan::bound(table, catalog, std::slice::from_ref(routines))
    }

    /// The same of a table that the catalog has: what only older rules can read keeps the meaning that it has with them.
    ///
    /// # Errors
    /// As [`TablePlan::new`].
    pub fn stored(table: &Table, catalog: &Catalog, routines: &Routines) -> Result<TablePlan, SqlError> {
        TablePlan::bound(table, catalog, &routines.by_all_versions())
    }

    /// The same with the first of these rules that can bind each of them.
    fn bound(table: &Table, catalog: &Catalog, rules: &[Routines]) -> Result<TablePlan, SqlError> {
        let (constrained, holds_keys) = constrained_columns(catalog, table.id);
        let indexes = catalog.indexes_of(table.id).iter();
        let since_11 = rules.first().is_some_and(|routines| routines.version() >= ExecutionVersion::V11);
        let mut plan = TablePlan {
            id: table.id,
            name: table.object_name().to_string(),
            relation: table.name.clone(),
            columns: Vec::with_capacity(table.columns.len()),
            key: table.primary_key.clone(),
            key_name: table.primary_key_name.clone(),
            checks: Vec::new(),
            indexes: indexes.filter(|index| !index.is_computed()).cloned().map(Arc::new).collect(),
            computed: Vec::new(),
            constrained,
            holds_keys,
            endorsement: table.endorsement.as_deref().map(stored_policy).transpose()?,
            triggers: TableTriggers::new(catalog.triggers_of(table.id)),
            row_security: table.row_security.enabled.then(|| Arc::new(table.row_security.clone())),
            has_column_privileges: has_column_privileges(catalog, table, since_11),
            hides_keys: false,
            partitions: None,
            has_arrays_in_order: rules
                .first()
                .is_some_and(|routines| routines.version() < ExecutionVersion::V16),
            materialized: table.materialized.as_ref().map(|one| Filled(one.is_populated)),
        };
        plan.hides_keys = since_11 && (plan.row_security.is_some() || plan.has_column_privileges);
        for (ordinal, column) in table.columns.iter().enumerate() {
            let types = rules.first().map(|routines| routines.types().clone()).unwrap_or_default();
            let data_type = types.base_of(column.data_type);
            let default = column.default.clone().or_else(|| default_of(&types, column.data_type));
            let default = default.as_ref().filter(|_| !column.generated);
            let default = default
                .map(|sql| by_first(rules, &|routines| bind_default(sql, &column.name, data_type, routines)));
            plan.columns.push(ColumnPlan {
                name: column.name.clone(),
                data_type,
                not_null: column.not_null,
                default: default.transpose()?,
                is_generated: catalog.identity(table.id, ordinal) == Some(Generated::Always),
                computed: None,
            });
        }
        for (ordinal, column) in table.columns.iter().enumerate().filter(|(_, column)| column.generated) {
            let Some(sql) = &column.default else { continue };
            let computed = by_first(rules, &|routines| bind_computed(&plan, table, column, sql, routines))?;
            plan.columns[ordinal].computed = Some(computed);
        }
        for index in catalog.indexes_of(table.id).iter().filter(|index| index.is_computed()) {
            let index = Arc::new(index.clone());
            let bind = |routines: &Routines| bind_index(&plan, &index, routines);
            let computed = Arc::new(by_first(rules, &bind)?);
            plan.constrained |= computed.columns;
            plan.holds_keys = true;
            plan.computed.push(computed);
        }
        plan.checks = domain_checks(table, rules);
        if table.partitioning.is_some()
            && let Some((partitions, check)) = by_first(rules, &|routines| {
                bind_partitions(table, routines.types(), &|sql| bind_check(&plan, sql, routines))
            })?
        {
            plan.partitions = Some(Arc::new(partitions));
            plan.checks.extend(check);
        }
        for check in &table.checks {
            let condition = by_first(rules, &|routines| bind_check(&plan, &check.condition, routines))?;
            plan.checks.push(CheckPlan { name: check.name.clone(), condition, valid: check.valid });
        }
        Ok(plan)
    }
}

/// What a table has stored, bound with the first of these rules that can. What only older ones understand keeps the meaning
/// that it was stored with, so that a ledger can go over to newer ones whatever it has stored.
fn by_first<T>(rules: &[Routines], bind: &dyn Fn(&Routines) -> Result<T, SqlError>) -> Result<T, SqlError> {
    let (first, older) = rules.split_first().ok_or_else(|| broken("tables that no rules bind"))?;
    bind(first).or_else(|error| older.iter().find_map(|rules| bind(rules).ok()).ok_or(error))
}

impl ForeignKeys {
    /// Binds every constraint.
    ///
    /// # Errors
    /// What is wrong with one.
    pub fn new(
        catalog: &Catalog,
        tables: &FxHashMap<TableId, Arc<TablePlan>>,
        routines: &Routines,
    ) -> Result<ForeignKeys, SqlError> {
        let mut found = ForeignKeys::default();
        for (child, foreign_keys) in &catalog.foreign_keys {
            for foreign_key in foreign_keys {
                let (Some(child), Some(parent)) = (tables.get(child), tables.get(&foreign_key.parent)) else {
                    continue;
                };
                let plan = Arc::new(ForeignKeyPlan::new(foreign_key, child, parent, routines)?);
                found.by_child.entry(child.id).or_default().push(plan.clone());
                found.by_parent.entry(parent.id).or_default().push(plan);
            }
        }
        found.by_parent.values_mut().for_each(|plans| plans.sort_by_key(|plan| plan.number));
        Ok(found)
    }
}

impl ForeignKeyPlan {
    fn new(
        foreign_key: &ForeignKey,
        child: &Arc<TablePlan>,
        parent: &Arc<TablePlan>,
        routines: &Routines,
    ) -> Result<ForeignKeyPlan, SqlError> {
        let index = parent.indexes.iter().find(|index| Some(index.number) == foreign_key.index);
        let (keys, order) = match index {
            Some(index) => (index.unique_entries(), index.columns.as_slice()),
            None => (parent.id, parent.key.as_slice()),
        };
        let type_of = |table: &TablePlan, ordinal: u16| table.columns[usize::from(ordinal)].data_type;
        let part = |ordinal: &u16| {
            let place = foreign_key.referenced.iter().position(|referenced| referenced == ordinal);
            let place = place.unwrap_or_default();
            let value = Expression::slot(place, type_of(child, foreign_key.columns[place]).family());
            KeyPart { value, data_type: type_of(parent, *ordinal) }
        };
        let scope = VariableScope::for_procedure(None).with_routines(routines);
        let binder = Binder::new(&scope, Source::Table { table: child, name: &child.name });
        let mut conditions = Vec::new();
        let mut assignments = Vec::new();
        for (place, (ordinal, referenced)) in
            foreign_key.columns.iter().zip(&foreign_key.referenced).enumerate()
        {
            let data_type = type_of(child, *ordinal);
            let column = Expression::column(usize::from(*ordinal), data_type);
            let value = Expression::slot(place, type_of(parent, *referenced).family());
            conditions.push(binder.compare(Comparison::Equal, column, value.clone())?);
            let name = &child.columns[usize::from(*ordinal)].name;
            assignments.push((*ordinal, binder.assign_to_column(value, name, data_type)?));
        }
        let (access, rest) = Access::plan(child, conditions);
        let assign = Arc::new(UpdatePlan::new(child.clone(), Vec::new(), assignments.clone()));
        let set_on_delete = match foreign_key.set_on_delete.as_slice() {
            [] => assign.clone(),
            some => {
                assignments.retain(|(ordinal, _)| some.contains(ordinal));
                Arc::new(UpdatePlan::new(child.clone(), Vec::new(), assignments))
            }
        };
        let filter_columns = rest.iter().fold(access.columns(), |set, condition| set | condition.columns());
        Ok(ForeignKeyPlan {
            number: foreign_key.number,
            name: foreign_key.name.clone(),
            child: child.clone(),
            columns: foreign_key.columns.clone(),
            parent: parent.clone(),
            referenced: foreign_key.referenced.clone(),
            keys,
            key: order.iter().map(part).collect(),
            marks_nulls: index.is_some_and(|index| index.details.nulls_not_distinct),
            on_delete: foreign_key.on_delete,
            on_update: foreign_key.on_update,
            filter: Condition::all(rest),
            access,
            filter_columns,
            delete: Arc::new(DeletePlan::new(child.clone(), Vec::new())),
            assign,
            set_on_delete,
            deferral: foreign_key.deferral,
            match_full: foreign_key.match_full,
        })
    }
}
