//! The relations of `pg_catalog` that describe a ledger's own objects.

use crate::cell::{Cell, NamedRow};
use crate::comments;
use crate::defined_types;
use crate::dependencies;
use crate::extensions;
use crate::fixed;
use crate::inheritance;
use crate::lists;
use crate::objects::{Attribute, INFORMATION_SCHEMA, Objects, PG_CATALOG, ROLE_OID, References, Relation};
use crate::privileges::{self, access_list, readable};
use crate::relations::{SystemRelation, described};
use crate::row_security;
use crate::triggers;
use types::{Deferral, ReferentialAction, Securable, UserAggregate};

/// The rows of a relation of `pg_catalog`.
pub(crate) fn rows(name: &str, objects: &Objects) -> Vec<NamedRow> {
    match name {
        "pg_namespace" => namespaces(objects),
        "pg_class" => classes(objects),
        "pg_attribute" => attributes(objects),
        "pg_attrdef" => defaults(objects),
        "pg_type" => [fixed::types(), row_types(objects), defined_types::type_rows(&objects.types)].concat(),
        "pg_enum" => defined_types::labels(&objects.types),
        "pg_constraint" => constraints(objects),
        "pg_index" => indexes(objects),
        "pg_indexes" => lists::index_list(objects),
        "pg_trigger" => triggers::system_rows(objects),
        "pg_inherits" => inheritance::inheritance(objects),
        "pg_partitioned_table" => inheritance::partitioned(objects),
        "pg_policy" => row_security::system_rows(objects),
        "pg_policies" => row_security::list(objects),
        "pg_proc" => [fixed::functions(), procedures(objects)].concat(),
        "pg_aggregate" => aggregates(objects),
        "pg_depend" => [dependencies::dependencies(objects), extensions::members(objects)].concat(),
        "pg_init_privs" => privileges::first(),
        "pg_extension" => extensions::rows(objects),
        "pg_sequence" => lists::sequences(objects),
        "pg_sequences" => lists::sequence_list(objects),
        "pg_rewrite" => dependencies::rules(objects),
        "pg_tables" => lists::table_list(objects),
        "pg_views" => lists::view_list(objects),
        "pg_matviews" => lists::materialized_list(objects),
        "pg_description" => comments::comments(objects),
        "pg_language" => fixed::languages(),
        "pg_am" => fixed::access_methods(),
        "pg_collation" => fixed::collations(),
        "pg_opclass" => fixed::operator_classes(),
        "pg_range" => fixed::ranges(),
        "pg_tablespace" => fixed::tablespaces(),
        "pg_database" => fixed::databases(objects),
        "pg_authid" => fixed::roles(objects, Cell::Null),
        "pg_roles" => fixed::roles(objects, "********".into()),
        "pg_user" => fixed::users(objects),
        "pg_auth_members" => fixed::members(objects),
        "entente_definition" => dependencies::definitions(objects),
        "entente_keyword" => fixed::keywords(),
        "entente_privilege" => privileges::rows(objects),
        _ => Vec::new(),
    }
}

fn namespaces(objects: &Objects) -> Vec<NamedRow> {
    let row = |(name, oid): &(String, i32)| {
        vec![
            ("oid", Cell::from(*oid)),
            ("nspname", Cell::from(name.clone())),
            ("nspowner", Cell::from(ROLE_OID)),
            ("nspacl", access_list(objects, &Securable::Schema(name.clone()))),
        ]
    };
    objects.schemas.iter().map(row).collect()
}

fn relation_row(objects: &Objects, relation: &Relation) -> NamedRow {
    // PostgreSQL checks them by triggers, and psql asks for them where there are triggers.
    let refers = |known: &Relation| {
        let mut references = known.constraints.iter().filter_map(|constraint| constraint.references.as_ref());
        references.any(|references| references.oid == relation.oid || known.oid == relation.oid)
    };
    let in_foreign_key = objects.relations.iter().any(refers);
    vec![
        ("oid", relation.oid.into()),
        ("relname", relation.name.clone().into()),
        ("relnamespace", relation.schema.into()),
        ("reltype", relation.row_type.into()),
        ("relowner", ROLE_OID.into()),
        ("relam", if matches!(relation.kind, "r" | "m") { 2.into() } else { 0.into() }),
        ("relfilenode", relation.oid.into()),
        ("reltuples", Cell::Integer(-1)),
        ("relhasindex", (!relation.indexes.is_empty()).into()),
        ("relpersistence", relation.persistence().into()),
        ("relkind", relation.kind.into()),
        ("relnatts", (relation.attributes.len() as i32).into()),
        ("relchecks", (relation.constraints.iter().filter(|c| c.kind == "c").count() as i32).into()),
        ("relrowsecurity", relation.row_security.enabled.into()),
        ("relforcerowsecurity", relation.row_security.forced.into()),
        ("relhastriggers", (!relation.triggers.is_empty() || in_foreign_key).into()),
        ("relispopulated", relation.is_populated.into()),
        ("relreplident", "d".into()),
        ("relhasrules", relation.query.is_some().into()),
        ("reloptions", options(relation)),
    ]
}

/// `WITH (…)` of a table or view; NULL where nothing is said.
fn options(relation: &Relation) -> Cell {
    let policy = relation.policy.as_ref().map(|policy| format!("endorsement_policy={policy}"));
    let check_option = relation.check_option.map(|option| format!("check_option={}", option.name()));
    policy.or(check_option).map_or(Cell::Null, |option| Cell::Texts(vec![option]))
}

fn schema_of(relation: &SystemRelation) -> i32 {
    if relation.is_information() { INFORMATION_SCHEMA } else { PG_CATALOG }
}

fn classes(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        let mut row = relation_row(objects, relation);
        row.extend(relation.partitions.class_cells());
        row.push(("relacl", access_list(objects, &Securable::Relation(relation.catalog_name()))));
        rows.push(row);
        for index in &relation.indexes {
            rows.push(vec![
                ("oid", index.oid.into()),
                ("relname", index.name.clone().into()),
                ("relnamespace", relation.schema.into()),
                ("relowner", ROLE_OID.into()),
                ("relam", fixed::access_method(index.method).into()),
                ("relfilenode", index.oid.into()),
                ("relpersistence", relation.persistence().into()),
                ("relkind", "i".into()),
                ("relnatts", (index.parts.len() as i32).into()),
                ("relispopulated", true.into()),
                ("relreplident", "n".into()),
            ]);
        }
    }
    rows.extend(described().map(|relation| {
        vec![
            ("oid", relation.oid.into()),
            ("relname", relation.plain_name().into()),
            ("relnamespace", schema_of(relation).into()),
            ("relowner", ROLE_OID.into()),
            ("relam", if relation.kind == "r" { 2.into() } else { 0.into() }),
            ("relfilenode", relation.oid.into()),
            ("reltuples", Cell::Integer(-1)),
            ("relpersistence", "p".into()),
            ("relkind", relation.kind.into()),
            ("relnatts", (relation.columns.len() as i32).into()),
            ("relispopulated", true.into()),
            ("relreplident", "n".into()),
            ("relacl", readable()),
        ]
    }));
    rows
}

fn attributes(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        let name = relation.catalog_name();
        for (number, attribute) in relation.attributes.iter().enumerate() {
            rows.push(vec![
                ("attrelid", relation.oid.into()),
                ("attname", attribute.name.clone().into()),
                ("atttypid", attribute.type_oid.into()),
                ("attstattarget", Cell::Integer(-1)),
                ("attlen", i32::from(attribute.length).into()),
                ("attnum", (number as i32 + 1).into()),
                ("attcacheoff", Cell::Integer(-1)),
                ("atttypmod", attribute.modifier.into()),
                ("attbyval", (attribute.length > 0).into()),
                ("attalign", if attribute.length == 8 { "d".into() } else { "i".into() }),
                ("attstorage", fixed::storage(attribute.type_oid, attribute.length).into()),
                ("attcompression", "".into()),
                ("attnotnull", attribute.not_null.into()),
                ("atthasdef", attribute.default.is_some().into()),
                ("attidentity", attribute.identity.into()),
                ("attgenerated", if attribute.generated { "s".into() } else { "".into() }),
                ("attislocal", true.into()),
                ("attndims", i32::from(attribute.is_array).into()),
                ("attcollation", attribute.collation().into()),
                ("attacl", access_list(objects, &Securable::column(&name, &attribute.name))),
            ]);
        }
        for index in &relation.indexes {
            for (number, part) in index.parts.iter().enumerate() {
                let attribute = &part.attribute;
                rows.push(vec![
                    ("attrelid", index.oid.into()),
                    ("attname", attribute.name.clone().into()),
                    ("atttypid", attribute.type_oid.into()),
                    ("attstattarget", Cell::Integer(-1)),
                    ("attlen", i32::from(attribute.length).into()),
                    ("attnum", (number as i32 + 1).into()),
                    ("atttypmod", attribute.modifier.into()),
                    ("attidentity", "".into()),
                    ("attgenerated", "".into()),
                    ("attislocal", true.into()),
                    ("attcollation", attribute.collation().into()),
                ]);
            }
        }
    }
    for relation in described() {
        rows.extend((1..).zip(&relation.columns).map(|(number, column)| {
            let attribute = Attribute::new(column.name, column.data_type);
            vec![
                ("attrelid", relation.oid.into()),
                ("attname", column.name.into()),
                ("atttypid", attribute.type_oid.into()),
                ("attstattarget", Cell::Integer(-1)),
                ("attlen", i32::from(attribute.length).into()),
                ("attnum", Cell::Integer(number)),
                ("atttypmod", Cell::Integer(-1)),
                ("attnotnull", column.not_null.into()),
                ("attislocal", true.into()),
                ("attndims", i32::from(attribute.is_array).into()),
            ]
        }));
    }
    rows
}

/// The types of the rows of relations, those of CREATE TYPE among them, and of arrays of them.
fn row_types(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in objects.relations.iter().filter(|relation| relation.row_type != 0) {
        let common = |oid: i32, name: String| {
            vec![
                ("oid", oid.into()),
                ("typname", name.into()),
                ("typnamespace", relation.schema.into()),
                ("typowner", ROLE_OID.into()),
                ("typlen", Cell::Integer(-1)),
                ("typbyval", false.into()),
                ("typispreferred", false.into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typalign", "d".into()),
                ("typstorage", "x".into()),
                ("typnotnull", false.into()),
                ("typbasetype", 0.into()),
                ("typtypmod", Cell::Integer(-1)),
                ("typndims", 0.into()),
                ("typcollation", 0.into()),
            ]
        };
        let mut row = common(relation.row_type, relation.name.clone());
        row.extend([
            ("typtype", "c".into()),
            ("typcategory", "C".into()),
            ("typrelid", relation.oid.into()),
            ("typelem", 0.into()),
            ("typarray", (relation.row_type + 1).into()),
        ]);
        rows.push(row);
        let mut row = common(relation.row_type + 1, format!("_{}", relation.name));
        row.extend([
            ("typtype", "b".into()),
            ("typcategory", "A".into()),
            ("typrelid", 0.into()),
            ("typelem", relation.row_type.into()),
            ("typarray", 0.into()),
        ]);
        rows.push(row);
    }
    rows
}

/// Columns with a DEFAULT: the relation, the number from 1, and the text.
pub(crate) fn columns_with_defaults(objects: &Objects) -> impl Iterator<Item = (&Relation, i32, &String)> {
    objects.relations.iter().flat_map(|relation| {
        let columns = (1..).zip(&relation.attributes);
        columns.filter_map(move |(number, column)| Some((relation, number, column.default.as_ref()?)))
    })
}

/// Object identifier of the default of this number.
pub(crate) fn default(number: usize) -> i32 {
    200_000_000 + number as i32
}

fn defaults(objects: &Objects) -> Vec<NamedRow> {
    let row = |(number, (relation, column, text)): (usize, (&Relation, i32, &String))| {
        vec![
            ("oid", default(number).into()),
            ("adrelid", relation.oid.into()),
            ("adnum", column.into()),
            ("adbin", text.clone().into()),
        ]
    };
    columns_with_defaults(objects).enumerate().map(row).collect()
}

fn constraints(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        for constraint in &relation.constraints {
            let columns = constraint.columns.clone();
            let references = constraint.references.as_ref();
            let action = |of: fn(&References) -> ReferentialAction| match references.map(of) {
                None => " ",
                Some(ReferentialAction::NoAction) => "a",
                Some(ReferentialAction::Restrict) => "r",
                Some(ReferentialAction::Cascade) => "c",
                Some(ReferentialAction::SetNull) => "n",
                Some(ReferentialAction::SetDefault) => "d",
            };
            rows.push(vec![
                ("oid", constraint.oid.into()),
                ("conname", constraint.name.clone().into()),
                ("connamespace", relation.schema.into()),
                ("contype", constraint.kind.into()),
                ("condeferrable", constraint.deferral.is_deferrable().into()),
                ("condeferred", (constraint.deferral == Deferral::InitiallyDeferred).into()),
                ("convalidated", constraint.valid.into()),
                ("conrelid", relation.oid.into()),
                ("conindid", constraint.index.into()),
                ("confrelid", references.map_or(0, |references| references.oid).into()),
                ("confupdtype", action(|references| references.on_update).into()),
                ("confdeltype", action(|references| references.on_delete).into()),
                (
                    "confmatchtype",
                    match references {
                        None => " ".into(),
                        Some(references) if references.match_full => "f".into(),
                        Some(_) => "s".into(),
                    },
                ),
                (
                    "confdelsetcols",
                    match references.map(|references| references.set_on_delete.as_slice()) {
                        None | Some([]) => Cell::Null,
                        Some(columns) => Cell::Integers(columns.to_vec()),
                    },
                ),
                ("conislocal", true.into()),
                ("connoinherit", (constraint.kind != "c").into()),
                ("conkey", Cell::Integers(columns)),
                ("confkey", references.map_or(Cell::Null, |found| Cell::Integers(found.columns.clone()))),
                ("conbin", Cell::Null),
            ]);
        }
    }
    rows.extend(defined_types::constraints(&objects.types));
    rows
}

fn indexes(objects: &Objects) -> Vec<NamedRow> {
    let with_index = objects
        .relations
        .iter()
        .flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)));
    let row = |(relation, index): (&Relation, &crate::objects::Index)| {
        let (keys, _) = index.parts.split_at(index.keys);
        let (classes, collations) = keys
            .iter()
            .map(|part| &part.attribute)
            .map(|column| (i64::from(fixed::operator_class(column.type_oid)), i64::from(column.collation())))
            .unzip();
        vec![
            ("indexrelid", index.oid.into()),
            ("indrelid", relation.oid.into()),
            ("indnatts", (index.parts.len() as i32).into()),
            ("indnkeyatts", (index.keys as i32).into()),
            ("indnullsnotdistinct", index.nulls_not_distinct.into()),
            ("indisunique", index.unique.into()),
            ("indisprimary", index.primary.into()),
            ("indimmediate", index.immediate.into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indkey", Cell::Integers(index.parts.iter().map(|part| part.column).collect())),
            ("indcollation", Cell::Integers(collations)),
            ("indclass", Cell::Integers(classes)),
            ("indoption", Cell::Integers(keys.iter().map(|part| part.option).collect())),
            ("indexprs", index.expressions.clone().into()),
            ("indpred", index.predicate.clone().into()),
        ]
    };
    with_index.map(row).collect()
}

fn procedures(objects: &Objects) -> Vec<NamedRow> {
    let row = |routine: &crate::routines::Routine| {
        // As in PostgreSQL, what goes without saying is NULL.
        let only_inputs = routine.modes.iter().all(|mode| mode == "i");
        let unnamed = routine.names.iter().all(String::is_empty);
        vec![
            ("oid", routine.oid.into()),
            ("proname", routine.name.clone().into()),
            ("pronamespace", routine.schema_oid.into()),
            ("proowner", ROLE_OID.into()),
            ("prolang", fixed::language(routine.language).into()),
            ("procost", 100.into()),
            ("prosupport", "-".into()),
            ("prokind", routine.kind.into()),
            ("provolatile", routine.volatility.into()),
            ("proretset", routine.returns_set.into()),
            ("proisstrict", routine.is_strict.into()),
            ("proparallel", "u".into()),
            ("pronargs", (routine.input_types.len() as i32).into()),
            ("prorettype", (routine.result_type as i32).into()),
            ("proargtypes", Cell::Integers(routine.input_types.clone())),
            (
                "proallargtypes",
                if only_inputs { Cell::Null } else { Cell::Integers(routine.all_types.clone()) },
            ),
            ("proargmodes", if only_inputs { Cell::Null } else { Cell::Texts(routine.modes.clone()) }),
            ("proargnames", if unnamed { Cell::Null } else { Cell::Texts(routine.names.clone()) }),
            ("pronargdefaults", (routine.defaults.len() as i32).into()),
            ("proacl", access_list(objects, &Securable::Routine(routine.key.clone()))),
            ("prosrc", routine.body.clone().into()),
        ]
    };
    objects.routines.iter().map(row).collect()
}

fn aggregates(objects: &Objects) -> Vec<NamedRow> {
    // 0 for a function of the system.
    let function = |name: Option<&String>| {
        let routine = objects.routines.iter().find(|routine| Some(&routine.key) == name);
        routine.map_or(0, |routine| routine.oid)
    };
    let row = |(oid, aggregate): &(i32, UserAggregate)| {
        vec![
            ("aggfnoid", (*oid).into()),
            ("aggkind", "n".into()),
            ("aggtransfn", function(Some(&aggregate.transition)).into()),
            ("aggfinalfn", function(aggregate.result.as_ref()).into()),
            ("aggfinalextra", aggregate.result_takes_arguments.into()),
            ("aggfinalmodify", "r".into()),
            ("aggmfinalmodify", "r".into()),
            ("aggtranstype", (aggregate.state.oid() as i32).into()),
            ("agginitval", aggregate.initial.clone().into()),
        ]
    };
    objects.aggregates.iter().map(row).collect()
}
