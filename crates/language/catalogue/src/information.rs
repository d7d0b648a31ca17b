//! The schema `information_schema`, as far as drivers and tools ask for it.

use crate::cell::{Cell, NamedRow};
use crate::defined_types::DefinedType;
use crate::objects::{Attribute, INFORMATION_SCHEMA, Objects, PG_CATALOG, ROLE, Relation, action_name};
use crate::privileges;
use crate::triggers;
use types::{Catalog, DATABASE, DataType, Deferral, ParameterMode, TriggerEvent, object_name, schema_of};

/// The rows of a relation of this name, describing `objects` and the parameters in `catalog`.
pub(crate) fn rows(name: &str, objects: &Objects, catalog: &Catalog) -> Vec<NamedRow> {
    match name {
        "schemata" => schemata(objects),
        "tables" => tables(objects),
        "columns" => columns(objects),
        "table_constraints" => constraints(objects),
        "key_column_usage" => key_columns(objects),
        "referential_constraints" => references(objects),
        "constraint_column_usage" => used_columns(objects),
        "check_constraints" => checks(objects),
        "triggers" => triggers::information_rows(objects),
        "routines" => routines(objects),
        "parameters" => parameters(catalog),
        "views" => views(objects),
        "domains" => domains(objects),
        "sequences" => sequences(objects),
        "table_privileges" | "role_table_grants" => privileges::of_tables(objects, listed(objects)),
        "column_privileges" | "role_column_grants" => privileges::of_columns(objects, listed(objects)),
        "information_schema_catalog_name" => vec![vec![("catalog_name", DATABASE.into())]],
        _ => Vec::new(),
    }
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
    let is_table = |kind: &str| matches!(kind, "r" | "p" | "v");
    objects.relations.iter().filter(move |relation| !is_hidden(relation.schema) && is_table(relation.kind))
}

fn yes_or_no(yes: bool) -> Cell {
    if yes { "YES".into() } else { "NO".into() }
}

fn tables(objects: &Objects) -> Vec<NamedRow> {
    listed(objects)
        .map(|relation| {
            let base = relation.kind != "v";
            let kind = match base {
                false => "VIEW",
                true if relation.is_temporary() => "LOCAL TEMPORARY",
                true => "BASE TABLE",
            };
            let mut row = of(relation);
            row.push(("table_type", kind.into()));
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

/// The internal name of a type that is no relation, or of its arrays.
fn own_type_name(objects: &Objects, oid: i32) -> Option<String> {
    let (single, array) = (oid & !1, oid % 2 == 1);
    let known = objects.types.iter().find(|known| known.oid == single)?;
    Some(if array { format!("_{}", known.name) } else { known.name.clone() })
}

/// The domain of a column, and the type that is shown of it with its modifier: that of the domain where it is of one. Of a domain that
/// is of another one, PostgreSQL's view shows that other one.
fn shown_type<'o>(objects: &'o Objects, attribute: &Attribute) -> (Option<&'o DefinedType>, i32, i32) {
    let known = objects.types.iter().find(|known| known.oid == attribute.type_oid);
    match known.and_then(|known| known.domain.as_ref()) {
        Some(domain) => (known, domain.base, domain.modifier),
        None => (None, attribute.type_oid, attribute.modifier),
    }
}

fn columns(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in listed(objects) {
        for (number, attribute) in relation.attributes.iter().enumerate() {
            let (domain, shown, modifier) = shown_type(objects, attribute);
            let refuses_null =
                domain.and_then(|known| known.domain.as_ref()).is_some_and(|known| known.not_null);
            let (name, internal) = type_names(shown);
            let is_type = |known: &&Relation| known.row_type != 0 && known.row_type == attribute.type_oid;
            let composite = objects.relations.iter().find(is_type).map(|known| known.name.clone());
            let own = || own_type_name(objects, shown);
            let udt_schema = objects.types.iter().find(|known| known.oid == (shown & !1));
            let udt_schema = udt_schema.map_or("pg_catalog", |known| known.schema_name.as_str());
            let internal = composite.or_else(own).unwrap_or_else(|| internal.to_string());
            let modifier = modifier - 4;
            let known = |value: Option<i32>| value.map_or(Cell::Null, Cell::from);
            let numeric = shown == 1700 && modifier >= 0;
            let (precision, scale) = match shown {
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
                ("column_default", Cell::from(attribute.default.clone().filter(|_| !attribute.generated))),
                ("is_nullable", yes_or_no(!attribute.not_null && !refuses_null)),
                ("data_type", name.into()),
                (
                    "character_maximum_length",
                    known((matches!(shown, 1042 | 1043) && modifier >= 0).then_some(modifier)),
                ),
                ("numeric_precision", known(precision)),
                ("numeric_scale", known(scale)),
                ("udt_schema", udt_schema.into()),
                ("udt_name", internal.into()),
                ("is_identity", yes_or_no(!attribute.identity.is_empty())),
                (
                    "identity_generation",
                    match attribute.identity {
                        "a" => "ALWAYS".into(),
                        "d" => "BY DEFAULT".into(),
                        _ => Cell::Null,
                    },
                ),
                ("domain_catalog", domain.map_or(Cell::Null, |_| DATABASE.into())),
                ("domain_schema", Cell::from(domain.map(|known| known.schema_name.clone()))),
                ("domain_name", Cell::from(domain.map(|known| known.name.clone()))),
                ("dtd_identifier", (number as i32 + 1).to_string().into()),
                ("udt_catalog", DATABASE.into()),
                ("is_generated", if attribute.generated { "ALWAYS".into() } else { "NEVER".into() }),
                (
                    "generation_expression",
                    Cell::from(attribute.default.clone().filter(|_| attribute.generated)),
                ),
                ("is_updatable", yes_or_no(relation.kind != "v")),
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
            row.push(("is_deferrable", yes_or_no(constraint.deferral.is_deferrable())));
            let deferred = constraint.deferral == Deferral::InitiallyDeferred;
            row.push(("initially_deferred", yes_or_no(deferred)));
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
                ("match_option", if references.match_full { "FULL".into() } else { "NONE".into() }),
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
                    let table = objects.relations.iter().find(|known| known.oid == references.oid);
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
    let row = |routine: &crate::routines::Routine| {
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
                DataType::Composite(_) | DataType::Enum(_) | DataType::Domain(_) => {
                    "USER-DEFINED".to_string()
                }
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

fn domains(objects: &Objects) -> Vec<NamedRow> {
    let row = |known: &DefinedType| {
        let domain = known.domain.as_ref()?;
        let (name, internal) = type_names(domain.base);
        Some(vec![
            ("domain_catalog", DATABASE.into()),
            ("domain_schema", known.schema_name.clone().into()),
            ("domain_name", known.name.clone().into()),
            ("data_type", name.into()),
            ("domain_default", Cell::from(domain.default.clone())),
            ("udt_catalog", DATABASE.into()),
            ("udt_schema", "pg_catalog".into()),
            ("udt_name", internal.into()),
        ])
    };
    objects.types.iter().filter_map(row).collect()
}

fn views(objects: &Objects) -> Vec<NamedRow> {
    let views = listed(objects).filter(|relation| relation.kind == "v");
    let row = |relation: &Relation| {
        let mut row = of(relation);
        let option = relation.check_option.map_or_else(|| "NONE".to_string(), |it| it.name().to_uppercase());
        let instead = |event| yes_or_no(relation.triggers.iter().any(|known| known.is_instead_of(event)));
        row.extend([
            ("view_definition", Cell::from(relation.query.as_ref().map(|query| format!(" {query};")))),
            ("check_option", option.into()),
            ("is_updatable", "NO".into()),
            ("is_insertable_into", "NO".into()),
            ("is_trigger_updatable", instead(TriggerEvent::Update)),
            ("is_trigger_deletable", instead(TriggerEvent::Delete)),
            ("is_trigger_insertable_into", instead(TriggerEvent::Insert)),
        ]);
        row
    };
    views.map(row).collect()
}

/// Sequences that belong to no identity column, as in PostgreSQL.
fn sequences(objects: &Objects) -> Vec<NamedRow> {
    let is_identity = |owner: (i32, i32)| {
        let table = objects.relations.iter().find(|relation| relation.oid == owner.0);
        let column = table.and_then(|table| table.attributes.get(owner.1 as usize - 1));
        column.is_some_and(|column| !column.identity.is_empty())
    };
    let sequences = objects.relations.iter().filter(|relation| relation.kind == "S");
    let listed = sequences.filter(|relation| !relation.owner.is_some_and(is_identity));
    let row = |relation: &Relation| {
        let counting = relation.counting();
        let bits = match counting.data_type {
            DataType::SmallInt => 16,
            DataType::Integer => 32,
            _ => 64,
        };
        vec![
            ("sequence_catalog", DATABASE.into()),
            ("sequence_schema", relation.schema_name.clone().into()),
            ("sequence_name", relation.name.clone().into()),
            ("data_type", counting.data_type.to_string().into()),
            ("numeric_precision", bits.into()),
            ("numeric_precision_radix", 2.into()),
            ("numeric_scale", 0.into()),
            ("start_value", counting.start.to_string().into()),
            ("minimum_value", counting.smallest.to_string().into()),
            ("maximum_value", counting.largest.to_string().into()),
            ("increment", counting.increment.to_string().into()),
            ("cycle_option", if counting.cycles { "YES" } else { "NO" }.into()),
        ]
    };
    listed.map(row).collect()
}
