//! The schema `information_schema`, as far as drivers and tools ask for it.

use super::batch::{Cell, NamedRow, batch};
use super::objects::{DATABASE, INFORMATION_SCHEMA, Objects, PG_CATALOG, ROLE, Relation, action_name};
use super::triggers;
use datafusion::arrow::datatypes::{DataType as Arrow, Field, Schema};
use datafusion::catalog::{MemTable, MemorySchemaProvider, SchemaProvider};
use datafusion::error::Result;
use std::sync::Arc;
use types::{Catalog, DataType, ParameterMode, object_name, schema_of};

type Columns<'a> = &'a [(&'a str, Arrow)];

const TEXT: Arrow = Arrow::Utf8;
const NUMBER: Arrow = Arrow::Int32;

/// The schema, describing `objects` and the parameters in `catalog`.
pub(super) fn schema(objects: &Objects, catalog: &Catalog) -> Result<Arc<dyn SchemaProvider>> {
    let schema = MemorySchemaProvider::new();
    let tables: [(&str, Columns<'_>, Vec<NamedRow>); 11] = [
        (
            "schemata",
            &[("catalog_name", TEXT), ("schema_name", TEXT), ("schema_owner", TEXT)],
            schemata(objects),
        ),
        (
            "tables",
            &[
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("table_type", TEXT),
                ("is_insertable_into", TEXT),
            ],
            tables(objects),
        ),
        (
            "columns",
            &[
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("column_name", TEXT),
                ("ordinal_position", NUMBER),
                ("column_default", TEXT),
                ("is_nullable", TEXT),
                ("data_type", TEXT),
                ("character_maximum_length", NUMBER),
                ("numeric_precision", NUMBER),
                ("numeric_scale", NUMBER),
                ("udt_schema", TEXT),
                ("udt_name", TEXT),
                ("is_identity", TEXT),
                ("is_generated", TEXT),
                ("is_updatable", TEXT),
            ],
            columns(objects),
        ),
        (
            "table_constraints",
            &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("constraint_type", TEXT),
                ("is_deferrable", TEXT),
                ("initially_deferred", TEXT),
            ],
            constraints(objects),
        ),
        (
            "key_column_usage",
            &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("column_name", TEXT),
                ("ordinal_position", NUMBER),
                ("position_in_unique_constraint", NUMBER),
            ],
            key_columns(objects),
        ),
        (
            "referential_constraints",
            &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("unique_constraint_catalog", TEXT),
                ("unique_constraint_schema", TEXT),
                ("unique_constraint_name", TEXT),
                ("match_option", TEXT),
                ("update_rule", TEXT),
                ("delete_rule", TEXT),
            ],
            references(objects),
        ),
        (
            "constraint_column_usage",
            &[
                ("table_catalog", TEXT),
                ("table_schema", TEXT),
                ("table_name", TEXT),
                ("column_name", TEXT),
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
            ],
            used_columns(objects),
        ),
        (
            "check_constraints",
            &[
                ("constraint_catalog", TEXT),
                ("constraint_schema", TEXT),
                ("constraint_name", TEXT),
                ("check_clause", TEXT),
            ],
            checks(objects),
        ),
        (
            "triggers",
            &[
                ("trigger_catalog", TEXT),
                ("trigger_schema", TEXT),
                ("trigger_name", TEXT),
                ("event_manipulation", TEXT),
                ("event_object_catalog", TEXT),
                ("event_object_schema", TEXT),
                ("event_object_table", TEXT),
                ("action_order", NUMBER),
                ("action_condition", TEXT),
                ("action_statement", TEXT),
                ("action_orientation", TEXT),
                ("action_timing", TEXT),
                ("action_reference_old_table", TEXT),
                ("action_reference_new_table", TEXT),
            ],
            triggers::information_rows(objects),
        ),
        (
            "routines",
            &[
                ("specific_catalog", TEXT),
                ("specific_schema", TEXT),
                ("specific_name", TEXT),
                ("routine_catalog", TEXT),
                ("routine_schema", TEXT),
                ("routine_name", TEXT),
                ("routine_type", TEXT),
                ("data_type", TEXT),
                ("routine_body", TEXT),
                ("routine_definition", TEXT),
                ("external_language", TEXT),
            ],
            routines(objects),
        ),
        (
            "parameters",
            &[
                ("specific_catalog", TEXT),
                ("specific_schema", TEXT),
                ("specific_name", TEXT),
                ("ordinal_position", NUMBER),
                ("parameter_mode", TEXT),
                ("parameter_name", TEXT),
                ("data_type", TEXT),
            ],
            parameters(catalog),
        ),
    ];
    for (name, columns, rows) in tables {
        let fields = columns.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), true));
        let table_schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let rows = batch(&table_schema, &rows)?;
        schema
            .register_table(name.to_string(), Arc::new(MemTable::try_new(table_schema, vec![vec![rows]])?))?;
    }
    Ok(Arc::new(schema))
}

fn schemata(objects: &Objects) -> Vec<NamedRow> {
    let row = |(name, _): &(String, i32)| {
        vec![
            ("catalog_name", DATABASE.into()),
            ("schema_name", Cell::from(name.clone())),
            ("schema_owner", ROLE.into()),
        ]
    };
    objects.schemas.iter().map(row).collect()
}

fn of(relation: &Relation) -> NamedRow {
    vec![
        ("table_catalog", DATABASE.into()),
        ("table_schema", relation.schema_name.clone().into()),
        ("table_name", relation.name.clone().into()),
    ]
}

fn listed(objects: &Objects) -> impl Iterator<Item = &Relation> {
    let is_hidden = |schema: i32| [PG_CATALOG, INFORMATION_SCHEMA].contains(&schema);
    objects.relations.iter().filter(move |relation| !is_hidden(relation.schema) && relation.kind != "c")
}

fn yes_or_no(yes: bool) -> Cell {
    if yes { "YES".into() } else { "NO".into() }
}

fn tables(objects: &Objects) -> Vec<NamedRow> {
    listed(objects)
        .map(|relation| {
            let base = relation.kind == "r";
            let mut row = of(relation);
            row.push(("table_type", if base { "BASE TABLE".into() } else { "VIEW".into() }));
            row.push(("is_insertable_into", yes_or_no(base)));
            row
        })
        .collect()
}

/// Name and internal name of a type by its object identifier.
fn type_names(oid: i32) -> (String, &'static str) {
    match oid {
        1043 => ("character varying".to_string(), "varchar"),
        // Every array has the same name.
        _ => match u32::try_from(oid).ok().and_then(DataType::from_oid) {
            Some(array @ DataType::Array(_)) => ("ARRAY".to_string(), array.internal_name()),
            Some(DataType::Composite(_)) => ("USER-DEFINED".to_string(), "record"),
            Some(data_type) => (data_type.to_string(), data_type.internal_name()),
            None => ("text".to_string(), "text"),
        },
    }
}

fn columns(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for (number, attribute) in relation.attributes.iter().enumerate() {
            let (name, internal) = type_names(attribute.type_oid);
            let is_type = |known: &&Relation| known.row_type != 0 && known.row_type == attribute.type_oid;
            let composite = objects.relations.iter().find(is_type).map(|known| known.name.clone());
            let internal = composite.unwrap_or_else(|| internal.to_string());
            let modifier = attribute.modifier - 4;
            let known = |value: Option<i32>| value.map_or(Cell::Null, Cell::from);
            let numeric = attribute.type_oid == 1700 && modifier >= 0;
            let (precision, scale) = match attribute.type_oid {
                20 => (Some(64), Some(0)),
                21 => (Some(16), Some(0)),
                700 => (Some(24), None),
                23 => (Some(32), Some(0)),
                701 => (Some(53), None),
                _ if numeric => (Some(modifier >> 16), Some(((modifier & 0x7ff) ^ 0x400) - 0x400)),
                _ => (None, None),
            };
            let mut row = of(relation);
            row.extend([
                ("column_name", Cell::from(attribute.name.clone())),
                ("ordinal_position", Cell::from(number as i32 + 1)),
                ("column_default", attribute.default.clone().map_or(Cell::Null, Cell::from)),
                ("is_nullable", yes_or_no(!attribute.not_null)),
                ("data_type", name.into()),
                (
                    "character_maximum_length",
                    known((matches!(attribute.type_oid, 1042 | 1043) && modifier >= 0).then_some(modifier)),
                ),
                ("numeric_precision", known(precision)),
                ("numeric_scale", known(scale)),
                ("udt_schema", "pg_catalog".into()),
                ("udt_name", internal.into()),
                ("is_identity", "NO".into()),
                ("is_generated", "NEVER".into()),
                ("is_updatable", yes_or_no(relation.kind == "r")),
            ]);
            rows.push(row);
        }
    }
    rows
}

fn constraint_of(relation: &Relation, name: &str) -> NamedRow {
    vec![
        ("constraint_catalog", DATABASE.into()),
        ("constraint_schema", relation.schema_name.clone().into()),
        ("constraint_name", name.into()),
    ]
}

fn constraints(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for constraint in &relation.constraints {
            let mut row = constraint_of(relation, &constraint.name);
            row.extend(of(relation));
            let kind = match constraint.kind {
                "p" => "PRIMARY KEY",
                "u" => "UNIQUE",
                "f" => "FOREIGN KEY",
                _ => "CHECK",
            };
            row.push(("constraint_type", kind.into()));
            row.push(("is_deferrable", "NO".into()));
            row.push(("initially_deferred", "NO".into()));
            rows.push(row);
        }
    }
    rows
}

fn key_columns(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for constraint in relation.constraints.iter().filter(|constraint| constraint.kind != "c") {
            for (number, column) in constraint.columns.iter().enumerate() {
                let Some(attribute) = relation.attributes.get(*column as usize - 1) else { continue };
                let mut row = constraint_of(relation, &constraint.name);
                row.extend(of(relation));
                row.push(("column_name", attribute.name.clone().into()));
                row.push(("ordinal_position", (number as i32 + 1).into()));
                // Of the constraint that is referenced, whose columns have the same order there.
                let referenced = constraint.references.is_some();
                let position = if referenced { Cell::from(number as i32 + 1) } else { Cell::Null };
                row.push(("position_in_unique_constraint", position));
                rows.push(row);
            }
        }
    }
    rows
}

fn references(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for constraint in &relation.constraints {
            let Some(references) = &constraint.references else { continue };
            let mut row = constraint_of(relation, &constraint.name);
            row.extend([
                ("unique_constraint_catalog", Cell::from(DATABASE)),
                ("unique_constraint_schema", references.schema.clone().into()),
                ("unique_constraint_name", references.constraint.clone().into()),
                ("match_option", "NONE".into()),
                ("update_rule", action_name(references.on_update).into()),
                ("delete_rule", action_name(references.on_delete).into()),
            ]);
            rows.push(row);
        }
    }
    rows
}

/// The columns that a constraint is about: of a FOREIGN KEY those that are referenced.
fn used_columns(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for constraint in &relation.constraints {
            let (table, columns) = match &constraint.references {
                Some(references) => {
                    let table = objects.relations.iter().find(|known| known.name == references.table);
                    (table.unwrap_or(relation), &references.columns)
                }
                None => (relation, &constraint.columns),
            };
            for column in columns {
                let Some(attribute) = table.attributes.get(*column as usize - 1) else { continue };
                let mut row = of(table);
                row.push(("column_name", attribute.name.clone().into()));
                row.extend(constraint_of(relation, &constraint.name));
                rows.push(row);
            }
        }
    }
    rows
}

fn checks(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for constraint in relation.constraints.iter().filter(|constraint| constraint.kind == "c") {
            let mut row = constraint_of(relation, &constraint.name);
            let clause = constraint.definition.strip_prefix("CHECK ").unwrap_or(&constraint.definition);
            row.push(("check_clause", clause.into()));
            rows.push(row);
        }
    }
    rows
}

fn routine_of(schema: &str, name: &str) -> NamedRow {
    vec![
        ("specific_catalog", DATABASE.into()),
        ("specific_schema", schema.into()),
        ("specific_name", name.into()),
    ]
}

fn routines(objects: &Objects) -> Vec<NamedRow> {
    let row = |routine: &super::objects::Routine| {
        let mut row = routine_of(&routine.schema, &routine.name);
        row.extend([
            ("routine_catalog", Cell::from(DATABASE)),
            ("routine_schema", routine.schema.clone().into()),
            ("routine_name", routine.name.clone().into()),
            (
                "routine_type",
                match routine.kind {
                    "f" => "FUNCTION".into(),
                    "p" => "PROCEDURE".into(),
                    _ => Cell::Null,
                },
            ),
            ("data_type", Cell::Null),
            ("routine_body", "EXTERNAL".into()),
            ("routine_definition", routine.body.clone().into()),
            ("external_language", "PLPGSQL".into()),
        ]);
        row
    };
    objects.routines.iter().map(row).collect()
}

fn parameters(catalog: &Catalog) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for procedure in catalog.procedures.values() {
        for (number, parameter) in procedure.parameters.iter().enumerate() {
            let mode = match parameter.mode {
                ParameterMode::In | ParameterMode::Variadic => "IN",
                ParameterMode::Out => "OUT",
                ParameterMode::InOut => "INOUT",
            };
            let named = !parameter.name.is_empty();
            let data_type = match parameter.data_type {
                DataType::Text(Some(_)) => "character varying".to_string(),
                DataType::Array(_) => "ARRAY".to_string(),
                DataType::Composite(_) => "USER-DEFINED".to_string(),
                other => other.family().to_string(),
            };
            let mut row = routine_of(schema_of(&procedure.name), object_name(&procedure.name));
            row.extend([
                ("ordinal_position", Cell::from(number as i32 + 1)),
                ("parameter_mode", mode.into()),
                ("parameter_name", if named { parameter.name.clone().into() } else { Cell::Null }),
                ("data_type", data_type.into()),
            ]);
            rows.push(row);
        }
    }
    rows
}
