//! `pg_description`: what COMMENT has said of objects.

use crate::cell::NamedRow;
use crate::objects::{Objects, Relation};
use types::{Commented, PUBLIC_SCHEMA, catalog_name};

/// Object identifiers of the relations of `pg_catalog` that list the objects.
const TYPES: i32 = 1247;
const ROUTINES: i32 = 1255;
const RELATIONS: i32 = 1259;
const CONSTRAINTS: i32 = 2606;
const SCHEMAS: i32 = 2615;
const TRIGGERS: i32 = 2620;

/// One row per comment.
pub(crate) fn comments(objects: &Objects) -> Vec<NamedRow> {
    let row = |(commented, text): &(Commented, String)| {
        let (list, object, part) = place(objects, commented)?;
        Some(vec![
            ("objoid", object.into()),
            ("classoid", list.into()),
            ("objsubid", part.into()),
            ("description", text.clone().into()),
        ])
    };
    let mut rows: Vec<NamedRow> = objects.comments.iter().filter_map(row).collect();
    let is_public = |(known, _): &(Commented, String)| *known == Commented::Schema(PUBLIC_SCHEMA.to_string());
    if !objects.comments.iter().any(is_public) {
        // As in every PostgreSQL.
        let public = (Commented::Schema(PUBLIC_SCHEMA.to_string()), "standard public schema".to_string());
        rows.extend(row(&public));
    }
    rows
}

/// The list that the object stands in, its object identifier, and the number of the column or 0.
fn place(objects: &Objects, commented: &Commented) -> Option<(i32, i32, i32)> {
    let relation = |name: &str| objects.relations.iter().find(|known| known.catalog_name() == name);
    Some(match commented {
        Commented::Relation(name) => match relation(name) {
            Some(found) => (RELATIONS, found.oid, 0),
            None => (RELATIONS, index(objects, name)?, 0),
        },
        Commented::Column(table, column) => {
            let found = relation(table)?;
            let position = found.attributes.iter().position(|attribute| attribute.name == *column)?;
            (RELATIONS, found.oid, position as i32 + 1)
        }
        Commented::Routine(key) => {
            (ROUTINES, objects.routines.iter().find(|routine| routine.key == *key)?.oid, 0)
        }
        Commented::Type(name) => {
            let defined = objects.types.iter().find(|known| known.catalog_name() == *name);
            (TYPES, defined.map_or_else(|| Some(relation(name)?.row_type), |known| Some(known.oid))?, 0)
        }
        Commented::Schema(name) => (SCHEMAS, objects.schemas.iter().find(|(known, _)| known == name)?.1, 0),
        Commented::Constraint(table, name) => {
            let found = relation(table)?.constraints.iter().find(|known| known.name == *name)?;
            (CONSTRAINTS, found.oid, 0)
        }
        Commented::Trigger(table, name) => {
            let found = relation(table)?.triggers.iter().find(|known| known.name() == name)?;
            (TRIGGERS, found.oid, 0)
        }
    })
}

fn index(objects: &Objects, name: &str) -> Option<i32> {
    let of_relation = |relation: &Relation| {
        let mut indexes = relation.indexes.iter();
        let found = indexes.find(|index| catalog_name(&relation.schema_name, &index.name) == name);
        found.map(|index| index.oid)
    };
    objects.relations.iter().find_map(of_relation)
}
