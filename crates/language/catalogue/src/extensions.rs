//! Extensions, of which dumps make no objects one by one: what a ledger has besides PostgreSQL, and the types of PostgreSQL's
//! extensions.

use crate::cell::{Cell, NamedRow};
use crate::dependencies::CLASS;
use crate::objects::{ENTENTE, Objects, PG_CATALOG, PLPGSQL, PUBLIC, ROLE_OID};
use crate::relations::RELATIONS;
use types::DataType;

/// The object identifiers of `pg_language`, `pg_namespace`, `pg_type` and `pg_extension`.
const LANGUAGE: i32 = 2612;
const NAMESPACE: i32 = 2615;
const TYPE: i32 = 1247;
const EXTENSION: i32 = 3079;

/// Those below 16384 are of every database, and dumps do not make them.
const OWN: i32 = 15_990;
const OF_PLPGSQL: i32 = 13_559;

/// A type of one of PostgreSQL's extensions: its extension's object identifier, name and version.
const WITH_TYPES: [(DataType, i32, &str, &str); 2] =
    [(DataType::Hstore, 16_390, "hstore", "1.8"), (DataType::Citext, 16_391, "citext", "1.6")];

/// Whether a table or view has a column of the type, or of its arrays: then a dump has to make the extension.
fn is_used(objects: &Objects, data_type: DataType) -> bool {
    let of_type = [Some(data_type), data_type.array()].map(|known| known.map(|known| known.oid() as i32));
    let mut attributes = objects.relations.iter().flat_map(|relation| &relation.attributes);
    attributes.any(|attribute| of_type.contains(&Some(attribute.type_oid)))
}

/// The rows of `pg_extension`.
pub(crate) fn rows(objects: &Objects) -> Vec<NamedRow> {
    let row = |oid: i32, name: &'static str, schema: i32, version: &'static str| {
        vec![
            ("oid", Cell::from(oid)),
            ("extname", name.into()),
            ("extowner", ROLE_OID.into()),
            ("extnamespace", schema.into()),
            ("extrelocatable", (schema == PUBLIC).into()),
            ("extversion", version.into()),
        ]
    };
    let used = WITH_TYPES.iter().filter(|(data_type, ..)| is_used(objects, *data_type));
    let used = used.map(|(_, oid, name, version)| row(*oid, name, PUBLIC, version));
    let always = [row(OF_PLPGSQL, "plpgsql", PG_CATALOG, "1.0"), row(OWN, "entente", PG_CATALOG, "1.0")];
    always.into_iter().chain(used).collect()
}

/// What belongs to them, as `pg_depend` says it.
pub(crate) fn members(objects: &Objects) -> Vec<NamedRow> {
    let row = |kind: i32, object: i32, extension: i32| {
        vec![
            ("classid", Cell::from(kind)),
            ("objid", object.into()),
            ("refclassid", EXTENSION.into()),
            ("refobjid", extension.into()),
            ("deptype", "e".into()),
        ]
    };
    let mut rows = vec![row(LANGUAGE, PLPGSQL, OF_PLPGSQL), row(NAMESPACE, ENTENTE, OWN)];
    let history = RELATIONS.iter().filter(|relation| relation.is_history());
    rows.extend(history.map(|relation| row(CLASS, relation.oid, OWN)));
    for (data_type, oid, ..) in WITH_TYPES {
        let extension = if is_used(objects, data_type) { oid } else { OWN };
        rows.push(row(TYPE, data_type.oid() as i32, extension));
    }
    rows
}
