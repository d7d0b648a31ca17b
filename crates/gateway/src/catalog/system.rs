//! The schema `pg_catalog`: the tables of `datafusion-pg-catalog`, with those that describe a ledger's own objects
//! replaced by ours, which know keys, defaults, checks and procedures.

use super::batch::{Cell, NamedRow, batch, extended};
use super::objects::{
    DATABASE, DATABASE_OID, Objects, PG_CATALOG, PLPGSQL, ROLE, ROLE_OID, References, Relation,
};
use super::triggers;
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{CatalogProviderList, MemTable, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{PG_CATALOG_TABLES, PgCatalogSchemaProvider, PgCatalogStaticTables};
use std::collections::HashMap;
use std::sync::Arc;
use types::ReferentialAction;

type Provider = PgCatalogSchemaProvider<Arc<dyn CatalogProviderList>, EmptyContextProvider>;

/// The schema `pg_catalog`.
#[derive(Debug)]
pub(super) struct SystemSchema {
    base: Provider,
    own: HashMap<String, Arc<dyn TableProvider>>,
}

impl SystemSchema {
    /// Describes `objects`; `fixed` are the tables that are the same in every PostgreSQL.
    pub(super) fn new(
        objects: &Objects,
        fixed: &Arc<PgCatalogStaticTables>,
        catalogs: Arc<dyn CatalogProviderList>,
    ) -> Result<SystemSchema> {
        let base = PgCatalogSchemaProvider::try_new(catalogs, Arc::clone(fixed), EmptyContextProvider)?;
        let mut own: HashMap<String, Arc<dyn TableProvider>> = HashMap::new();
        for (name, more, rows) in tables(objects) {
            let base_schema = base_schema(&base, name)?;
            let schema = extended(&base_schema, &more);
            let rows = batch(&schema, &rows)?;
            let mut batches = vec![rows];
            if KEEP.contains(&name) {
                batches.extend(fixed_rows(fixed, name).iter().filter_map(|batch| widened(batch, &schema)));
            }
            own.insert(name.to_string(), Arc::new(MemTable::try_new(schema, vec![batches])?));
        }
        Ok(SystemSchema { base, own })
    }
}

/// Tables to which our rows are added instead of replacing what is there.
const KEEP: &[&str] = &["pg_proc", "pg_language", "pg_type"];

fn fixed_rows<'a>(fixed: &'a PgCatalogStaticTables, name: &str) -> &'a [RecordBatch] {
    match name {
        "pg_proc" => fixed.pg_proc.data(),
        "pg_language" => fixed.pg_language.data(),
        "pg_type" => fixed.pg_type.data(),
        _ => &[],
    }
}

/// The batch under the nullable schema, if that has the same columns.
fn widened(batch: &RecordBatch, schema: &datafusion::arrow::datatypes::SchemaRef) -> Option<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec()).ok()
}

fn base_schema(base: &Provider, name: &str) -> Result<Arc<Schema>> {
    let table = base.build_table_by_name(name)?;
    table
        .map(|table| table.schema())
        .ok_or_else(|| DataFusionError::Internal(format!("no system table {name}")))
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        self.base.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.own.get(name) {
            Some(table) => Ok(Some(Arc::clone(table))),
            None => self.base.table(name).await,
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.own.contains_key(name) || self.base.table_exist(name)
    }
}

type SystemTable = (&'static str, Vec<(&'static str, DataType)>, Vec<NamedRow>);

/// Object identifiers of the ledger's roles, which are numbered by name.
const FIRST_ROLE_OID: i32 = 1_300_000_000;

/// Our tables: name, columns that the base lacks, rows.
fn tables(objects: &Objects) -> Vec<SystemTable> {
    vec![
        ("pg_namespace", Vec::new(), namespaces(objects)),
        ("pg_class", vec![("reloptions", texts()), ("relacl", texts())], classes(objects)),
        ("pg_attribute", Vec::new(), attributes(objects)),
        ("pg_attrdef", Vec::new(), defaults(objects)),
        ("pg_type", Vec::new(), row_types(objects)),
        ("pg_constraint", Vec::new(), constraints(objects)),
        ("pg_index", Vec::new(), indexes(objects)),
        ("pg_trigger", Vec::new(), triggers::system_rows(objects)),
        ("pg_proc", Vec::new(), procedures(objects)),
        ("pg_language", Vec::new(), languages()),
        ("pg_database", Vec::new(), databases()),
        ("pg_roles", Vec::new(), roles(objects)),
        ("pg_tables", Vec::new(), table_list(objects)),
    ]
}

/// The type of arrays of text.
fn texts() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
}

fn namespaces(objects: &Objects) -> Vec<NamedRow> {
    let row = |(name, oid): &(String, i32)| {
        vec![
            ("oid", Cell::from(*oid)),
            ("nspname", Cell::from(name.clone())),
            ("nspowner", Cell::from(ROLE_OID)),
        ]
    };
    objects.schemas.iter().map(row).collect()
}

fn relation_row(relation: &Relation) -> NamedRow {
    vec![
        ("oid", relation.oid.into()),
        ("relname", relation.name.clone().into()),
        ("relnamespace", relation.schema.into()),
        ("reltype", relation.row_type.into()),
        ("relowner", ROLE_OID.into()),
        ("relam", if relation.kind == "r" { 2.into() } else { 0.into() }),
        ("relfilenode", relation.oid.into()),
        ("reltuples", Cell::Integer(-1)),
        ("relhasindex", (!relation.indexes.is_empty()).into()),
        ("relpersistence", "p".into()),
        ("relkind", relation.kind.into()),
        ("relnatts", (relation.attributes.len() as i32).into()),
        ("relchecks", (relation.constraints.iter().filter(|c| c.kind == "c").count() as i32).into()),
        ("relhastriggers", (!relation.triggers.is_empty()).into()),
        ("relispopulated", true.into()),
        ("relreplident", "d".into()),
    ]
}

fn classes(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        rows.push(relation_row(relation));
        for index in &relation.indexes {
            rows.push(vec![
                ("oid", index.oid.into()),
                ("relname", index.name.clone().into()),
                ("relnamespace", relation.schema.into()),
                ("relowner", ROLE_OID.into()),
                ("relam", 403.into()),
                ("relfilenode", index.oid.into()),
                ("relpersistence", "p".into()),
                ("relkind", "i".into()),
                ("relnatts", (index.columns.len() as i32).into()),
                ("relispopulated", true.into()),
                ("relreplident", "n".into()),
            ]);
        }
    }
    for (number, name) in PG_CATALOG_TABLES.iter().enumerate() {
        let relation = Relation {
            oid: 12_000 + number as i32,
            schema: PG_CATALOG,
            schema_name: "pg_catalog".to_string(),
            name: (*name).to_string(),
            kind: "r",
            row_type: 0,
            attributes: Vec::new(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
        };
        rows.push(relation_row(&relation));
    }
    rows
}

fn attributes(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
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
                ("attstorage", if attribute.length > 0 { "p".into() } else { "x".into() }),
                ("attcompression", "".into()),
                ("attnotnull", attribute.not_null.into()),
                ("atthasdef", attribute.default.is_some().into()),
                ("attidentity", "".into()),
                ("attgenerated", "".into()),
                ("attislocal", true.into()),
            ]);
        }
        for index in &relation.indexes {
            for (number, column) in index.columns.iter().enumerate() {
                let Some(attribute) = relation.attributes.get(*column as usize - 1) else { continue };
                rows.push(vec![
                    ("attrelid", index.oid.into()),
                    ("attname", attribute.name.clone().into()),
                    ("atttypid", attribute.type_oid.into()),
                    ("attlen", i32::from(attribute.length).into()),
                    ("attnum", (number as i32 + 1).into()),
                    ("atttypmod", attribute.modifier.into()),
                    ("attidentity", "".into()),
                    ("attgenerated", "".into()),
                ]);
            }
        }
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

fn defaults(objects: &Objects) -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        for (number, attribute) in relation.attributes.iter().enumerate() {
            let Some(default) = &attribute.default else { continue };
            rows.push(vec![
                ("oid", (200_000_000 + rows.len() as i32).into()),
                ("adrelid", relation.oid.into()),
                ("adnum", (number as i32 + 1).into()),
                ("adbin", default.clone().into()),
            ]);
        }
    }
    rows
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
                ("convalidated", true.into()),
                ("conrelid", relation.oid.into()),
                ("conindid", constraint.index.into()),
                ("confrelid", references.map_or(0, |references| references.oid).into()),
                ("confupdtype", action(|references| references.on_update).into()),
                ("confdeltype", action(|references| references.on_delete).into()),
                ("confmatchtype", if references.is_some() { "s".into() } else { " ".into() }),
                ("conislocal", true.into()),
                ("connoinherit", (constraint.kind != "c").into()),
                ("conkey", Cell::Integers(columns)),
                ("confkey", references.map_or(Cell::Null, |found| Cell::Integers(found.columns.clone()))),
                ("conbin", Cell::Null),
            ]);
        }
    }
    rows
}

fn indexes(objects: &Objects) -> Vec<NamedRow> {
    let with_index = objects
        .relations
        .iter()
        .flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)));
    let row = |(relation, index): (&Relation, &super::objects::Index)| {
        let zeros = vec![0; index.columns.len()];
        vec![
            ("indexrelid", index.oid.into()),
            ("indrelid", relation.oid.into()),
            ("indnatts", (index.columns.len() as i32).into()),
            ("indnkeyatts", (index.columns.len() as i32).into()),
            ("indisunique", index.unique.into()),
            ("indisprimary", index.primary.into()),
            ("indimmediate", true.into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indkey", Cell::Integers(index.columns.clone())),
            ("indcollation", Cell::Integers(zeros.clone())),
            ("indclass", Cell::Integers(zeros.clone())),
            ("indoption", Cell::Integers(zeros)),
            ("indexprs", Cell::Null),
            ("indpred", Cell::Null),
        ]
    };
    with_index.map(row).collect()
}

fn procedures(objects: &Objects) -> Vec<NamedRow> {
    let row = |routine: &super::objects::Routine| {
        vec![
            ("oid", routine.oid.into()),
            ("proname", routine.name.clone().into()),
            ("pronamespace", routine.schema_oid.into()),
            ("proowner", ROLE_OID.into()),
            ("prolang", PLPGSQL.into()),
            ("procost", 100.into()),
            ("prokind", routine.kind.into()),
            ("provolatile", routine.volatility.into()),
            ("proretset", routine.returns_set.into()),
            ("proisstrict", routine.is_strict.into()),
            ("proparallel", "u".into()),
            ("pronargs", (routine.input_types.len() as i32).into()),
            ("prorettype", (routine.result_type as i32).into()),
            ("proargtypes", Cell::Integers(routine.input_types.clone())),
            ("proallargtypes", Cell::Integers(routine.all_types.clone())),
            ("proargmodes", Cell::Texts(routine.modes.clone())),
            ("proargnames", Cell::Texts(routine.names.clone())),
            ("prosrc", routine.body.clone().into()),
        ]
    };
    objects.routines.iter().map(row).collect()
}

fn languages() -> Vec<NamedRow> {
    vec![vec![
        ("oid", PLPGSQL.into()),
        ("lanname", "plpgsql".into()),
        ("lanowner", ROLE_OID.into()),
        ("lanispl", true.into()),
        ("lanpltrusted", true.into()),
    ]]
}

fn databases() -> Vec<NamedRow> {
    vec![vec![
        ("oid", DATABASE_OID.into()),
        ("datname", DATABASE.into()),
        ("datdba", ROLE_OID.into()),
        ("encoding", 6.into()),
        ("datlocprovider", "c".into()),
        ("datcollate", "C".into()),
        ("datctype", "C.UTF-8".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", Cell::Integer(-1)),
        ("dattablespace", 1663.into()),
        ("daticulocale", Cell::Null),
    ]]
}

/// The administrator, and the roles of the ledger.
fn roles(objects: &Objects) -> Vec<NamedRow> {
    let row = |oid: i32, name: &str, login: bool| {
        let all = oid == ROLE_OID;
        vec![
            ("oid", oid.into()),
            ("rolname", name.into()),
            ("rolsuper", all.into()),
            ("rolinherit", true.into()),
            ("rolcreaterole", all.into()),
            ("rolcreatedb", false.into()),
            ("rolcanlogin", login.into()),
            ("rolreplication", false.into()),
            ("rolconnlimit", Cell::Integer(-1)),
            ("rolpassword", "********".into()),
            ("rolbypassrls", all.into()),
        ]
    };
    let others =
        (0..).zip(&objects.roles).map(|(number, (name, login))| row(FIRST_ROLE_OID + number, name, *login));
    [row(ROLE_OID, ROLE, true)].into_iter().chain(others).collect()
}

fn table_list(objects: &Objects) -> Vec<NamedRow> {
    let tables = objects.relations.iter().filter(|relation| relation.kind == "r");
    tables
        .map(|relation| {
            vec![
                ("schemaname", relation.schema_name.clone().into()),
                ("tablename", relation.name.clone().into()),
                ("tableowner", ROLE.into()),
                ("hasindexes", (!relation.indexes.is_empty()).into()),
            ]
        })
        .collect()
}
