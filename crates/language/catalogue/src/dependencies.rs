//! What belongs to what, and what functions print of objects.

use crate::cell::{Cell, NamedRow};
use crate::defined_types::check_definitions;
use crate::fixed;
use crate::objects::{Objects, Relation, drawn_from};
use crate::system::{columns_with_defaults, default};
use types::catalog_name;

/// The object identifiers of `pg_class`, `pg_attrdef` and `pg_rewrite`.
pub(crate) const CLASS: i32 = 1259;
const DEFAULT: i32 = 2604;
const RULE: i32 = 2618;

/// Which sequence belongs to which column, and which view reads which relation.
pub(crate) fn dependencies(objects: &Objects) -> Vec<NamedRow> {
    let row = |dependent: (i32, i32), on: (i32, i32), kind: &'static str| {
        vec![
            ("classid", dependent.0.into()),
            ("objid", dependent.1.into()),
            ("refclassid", CLASS.into()),
            ("refobjid", on.0.into()),
            ("refobjsubid", on.1.into()),
            ("deptype", Cell::from(kind)),
        ]
    };
    let mut rows = Vec::new();
    for relation in &objects.relations {
        if let Some(owner) = relation.owner {
            let table = objects.relations.iter().find(|known| known.oid == owner.0);
            let column = table.and_then(|table| table.attributes.get(owner.1 as usize - 1));
            let is_identity = column.is_some_and(|column| !column.identity.is_empty());
            rows.push(row((CLASS, relation.oid), owner, if is_identity { "i" } else { "a" }));
        }
        if relation.query.is_some() {
            rows.push(row((RULE, rule(relation)), (relation.oid, 0), "i"));
            let read =
                objects.relations.iter().filter(|known| relation.reads.contains(&known.catalog_name()));
            rows.extend(read.map(|known| row((RULE, rule(relation)), (known.oid, 0), "n")));
        }
    }
    for (number, (relation, column, text)) in columns_with_defaults(objects).enumerate() {
        rows.push(row((DEFAULT, default(number)), (relation.oid, column), "a"));
        let drawn = drawn_from(text).and_then(|name| {
            let name = match name.as_slice() {
                [schema, name] => catalog_name(schema, name),
                parts => parts.concat(),
            };
            objects.relations.iter().find(|known| known.kind == "S" && known.catalog_name() == name)
        });
        rows.extend(drawn.map(|sequence| row((DEFAULT, default(number)), (sequence.oid, 0), "n")));
    }
    rows
}

/// Object identifier of the rule of a view.
fn rule(relation: &Relation) -> i32 {
    relation.oid + 3
}

pub(crate) fn rules(objects: &Objects) -> Vec<NamedRow> {
    let views = objects.relations.iter().filter(|relation| relation.query.is_some());
    let row = |relation: &Relation| {
        vec![
            ("oid", rule(relation).into()),
            ("rulename", "_RETURN".into()),
            ("ev_class", relation.oid.into()),
            ("ev_type", "1".into()),
            ("ev_enabled", "O".into()),
            ("is_instead", true.into()),
        ]
    };
    views.map(row).collect()
}

/// What functions print of objects.
pub(crate) fn definitions(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    let mut add = |kind: &'static str, object: i32, part: i32, definition: &str| {
        rows.push(vec![
            ("kind", Cell::from(kind)),
            ("object", object.into()),
            ("part", part.into()),
            ("definition", definition.into()),
        ]);
    };
    for relation in &objects.relations {
        for index in &relation.indexes {
            add("index", index.oid, 0, &index.definition);
            add("pretty index", index.oid, 0, &index.pretty_definition);
            for (number, part) in (1..).zip(&index.parts) {
                add("index", index.oid, number, &part.text);
                add("pretty index", index.oid, number, &part.pretty_text);
            }
        }
        relation.constraints.iter().for_each(|known| add("constraint", known.oid, 0, &known.definition));
        for known in &relation.triggers {
            add("trigger", known.oid, 0, &known.qualified);
            add("trigger", known.oid, 1, &known.definition);
        }
        for (kind, definition) in relation.partitions.definitions() {
            add(kind, relation.oid, 0, definition);
        }
        if let Some(query) = &relation.query {
            add("view", relation.oid, 0, &format!(" {query};"));
            let name = relation.shown_name();
            let rule_text =
                format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {query};");
            add("rule", rule(relation), 0, &rule_text);
        }
        if relation.row_type != 0 {
            let name = relation.shown_name();
            add("type", relation.row_type, 0, &name);
            add("type", relation.row_type + 1, 0, &format!("{name}[]"));
        }
    }
    for routine in &objects.routines {
        add("arguments", routine.oid, 0, &routine.arguments);
        add("identity", routine.oid, 0, &routine.identity);
        if let Some(result) = &routine.result {
            add("result", routine.oid, 0, result);
        }
        if routine.kind != "a" {
            add("routine", routine.oid, 0, &routine.definition);
        }
        routine.defaults.iter().for_each(|(part, default)| add("default", routine.oid, *part, default));
    }
    for known in &objects.types {
        let name = known.shown_name();
        add("type", known.oid, 0, &name);
        add("type", known.oid + 1, 0, &format!("{name}[]"));
        check_definitions(known).for_each(|(oid, definition)| add("constraint", oid, 0, definition));
    }
    fixed::type_names().for_each(|(oid, name)| add("type", oid, 0, name));
    rows
}
