//! ALTER TYPE: labels that an enum gets, other names of labels and of types, other schemas.

use crate::ddl::any_type::{find_type, rename_type};
use crate::ddl::new_catalog::NewCatalog;
use crate::ddl::renumber::renumber;
use crate::ddl::rows::Rows;
use crate::ddl::unreadable::unreadable;
use crate::ddl::views::check_views;
use std::collections::BTreeSet;
use std::sync::Arc;
use syntax::parse::alter_type::{AlterType, LabelPlace, TypeChange};
use types::{
    Catalog, Composite, CompositeType, CompositeTypes, DataType, EnumPlace, EnumValue, ExecutionVersion, Row,
    SqlError, SqlState, Table, TypeId, TypeKind, Value, catalog_name, limits, object_name, schema_of,
};

/// The labels of CREATE TYPE … AS ENUM.
///
/// # Errors
/// One that is too long or there twice; too many.
pub(super) fn check_labels(labels: &[String]) -> Result<(), SqlError> {
    let mut known = BTreeSet::new();
    for label in labels {
        check_label(label)?;
        if !known.insert(label) {
            let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
            return Err(SqlError::new(SqlState::UNIQUE_VIOLATION, message)
                .detail(format!("The label \"{label}\" is there twice.")));
        }
    }
    check_count(labels.len())
}

/// The values of an enum that is made.
pub(super) fn first_values(type_id: TypeId, labels: &[String]) -> Vec<Arc<EnumValue>> {
    let value = |(number, label): (u16, &String)| {
        Arc::new(EnumValue { type_id, place: EnumPlace::nth(number), label: label.as_str().into() })
    };
    (0..).zip(labels).map(value).collect()
}

fn check_count(count: usize) -> Result<(), SqlError> {
    if count <= limits::ENUM_LABELS_MAX {
        return Ok(());
    }
    let message = format!("an enum has at most {} labels (ENUM_LABELS_MAX)", limits::ENUM_LABELS_MAX);
    Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message))
}

fn check_label(label: &str) -> Result<(), SqlError> {
    if label.len() > limits::NAME_BYTES_MAX {
        return Err(SqlError::new(SqlState(*b"42602"), format!("invalid enum label \"{label}\""))
            .detail("Labels must be 63 bytes or less."));
    }
    Ok(())
}

/// ALTER TYPE.
///
/// # Errors
/// A type, a label or a schema that is not there; names that are taken.
pub(super) fn alter_type(
    catalog: &mut NewCatalog,
    alter: &AlterType,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let known = find_type(catalog, &alter.name)?;
    match &alter.change {
        TypeChange::AddValue { if_not_exists, label, place } => {
            let values = values_of(&known)?;
            check_label(label)?;
            if values.iter().any(|value| *value.label == **label) {
                return if *if_not_exists { Ok(()) } else { Err(label_exists(label)) };
            }
            check_count(values.len() + 1)?;
            let at = match place {
                None => values.len(),
                Some(LabelPlace::Before(other)) => position(values, other)?,
                Some(LabelPlace::After(other)) => position(values, other)? + 1,
            };
            let after = at.checked_sub(1).and_then(|at| values.get(at)).map(|value| &value.place);
            let place = EnumPlace::between(after, values.get(at).map(|value| &value.place))?;
            let mut values = values.to_vec();
            let value = EnumValue { type_id: known.id, place, label: label.as_str().into() };
            values.insert(at, Arc::new(value));
            put(catalog, &known, values);
            Ok(())
        }
        TypeChange::RenameValue { from, to } => rename_value(catalog, &known, from, to, rows),
        TypeChange::Rename(to) => {
            rename_type(catalog, &known.name, &catalog_name(schema_of(&known.name), to))
        }
        TypeChange::SetSchema(schema) => {
            rename_type(catalog, &known.name, &catalog_name(schema, object_name(&known.name)))
        }
    }
}

fn values_of(known: &CompositeType) -> Result<&[Arc<EnumValue>], SqlError> {
    known.enum_values().ok_or_else(|| {
        let message = format!("{} is not an enum", object_name(&known.name));
        SqlError::new(SqlState(*b"42809"), message)
    })
}

fn label_exists(label: &str) -> SqlError {
    SqlError::new(SqlState(*b"42710"), format!("enum label \"{label}\" already exists"))
}

fn position(values: &[Arc<EnumValue>], label: &str) -> Result<usize, SqlError> {
    values.iter().position(|value| *value.label == *label).ok_or_else(|| {
        let message = format!("\"{label}\" is not an existing enum label");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

fn put(catalog: &mut Catalog, known: &CompositeType, values: Vec<Arc<EnumValue>>) {
    let changed = CompositeType { kind: TypeKind::Enum(values), ..known.clone() };
    catalog.types.insert(known.name.clone(), Arc::new(changed));
}

/// RENAME VALUE: values have their labels with them, so the rows that have this one are made anew. Their keys and the entries
/// of indexes stay what they are.
fn rename_value(
    catalog: &mut NewCatalog,
    known: &CompositeType,
    from: &str,
    to: &str,
    rows: &mut Rows<'_, '_>,
) -> Result<(), SqlError> {
    let values = values_of(known)?;
    check_label(to)?;
    let at = position(values, from)?;
    if values.iter().any(|value| *value.label == *to) {
        return Err(label_exists(to));
    }
    let mut values = values.to_vec();
    let renamed = Arc::new(EnumValue { label: to.into(), ..EnumValue::clone(&values[at]) });
    values[at] = renamed.clone();
    // Version 7 looked at tables and views alone.
    let looks_further = catalog.rules >= ExecutionVersion::V8;
    let unreadable_before = if looks_further { unreadable(catalog)? } else { BTreeSet::new() };
    let types = CompositeTypes::new(catalog).with_rules(catalog.rules);
    let mut without = BTreeSet::new();
    let mut holds = |table: &Table| {
        table.columns.iter().any(|column| contains(&types, column.data_type, known.id, &mut without))
    };
    let tables: Vec<Arc<Table>> = catalog.tables.values().filter(|table| holds(table)).cloned().collect();
    put(catalog, known, values);
    for table in tables {
        let new = renumber(catalog, &table)?;
        rows.rewrite(table.id, new.id, &mut |key, row| {
            let row = row.iter().map(|value| relabelled(value, &renamed));
            Ok((key.clone(), Row::from(row.collect::<Result<Vec<Value>, _>>()?)))
        })?;
        catalog.tables.insert(new.name.clone(), Arc::new(new));
    }
    let named = |user: &str| {
        let what = format_args!("renaming the value '{from}', which {user} names");
        SqlError::unsupported(what).hint("Drop what names it, and create it again with the new name.")
    };
    let by_tables_or_views = |_| named("a default, a CHECK or a view");
    catalog.bound().map_err(by_tables_or_views)?;
    if looks_further && let Some(user) = unreadable(catalog)?.difference(&unreadable_before).next() {
        return Err(named(user));
    }
    check_views(catalog).map_err(by_tables_or_views)
}

/// Whether values of a type can have values of the type with this number in them. `without`: composite types that have been looked
/// at and have none, so that each is looked at once.
fn contains(types: &CompositeTypes, data_type: DataType, id: TypeId, without: &mut BTreeSet<TypeId>) -> bool {
    match data_type.element().unwrap_or(data_type) {
        DataType::Enum(found) => found == id,
        // Version 7 left the rows of such columns as they were.
        domain @ DataType::Domain(_) if types.rules() >= ExecutionVersion::V8 => {
            let base = types.base_of(domain);
            base != domain && contains(types, base, id, without)
        }
        composite => {
            let Some(known) = types.of(composite).filter(|known| !without.contains(&known.id)) else {
                return false;
            };
            let has = known.fields.iter().any(|field| contains(types, field.data_type, id, without));
            if !has {
                without.insert(known.id);
            }
            has
        }
    }
}

/// The value with the new label in the place of the old one, wherever it stands in it.
fn relabelled(value: &Value, renamed: &Arc<EnumValue>) -> Result<Value, SqlError> {
    Ok(match value {
        Value::Enum(value) if value.type_id == renamed.type_id && value.place == renamed.place => {
            Value::Enum(renamed.clone())
        }
        Value::Array(array) => {
            let values = array.values().iter().map(|value| relabelled(value, renamed));
            Value::Array(Arc::new(array.with_values(array.element(), values.collect::<Result<_, _>>()?)?))
        }
        Value::Composite(row) => {
            let values = row.values().iter().map(|value| relabelled(value, renamed));
            Value::Composite(Arc::new(Composite::new(row.type_id(), values.collect::<Result<_, _>>()?)?))
        }
        other => other.clone(),
    })
}
