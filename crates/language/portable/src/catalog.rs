//! What tables can stand in every database.

use crate::bind::Binder;
use crate::constant::Constants;
use crate::data_type::check_column_type;
use crate::expression::Expression;
use crate::place::refuse_narrow;
use crate::refusal::refused;
use crate::table::default_value;
use std::collections::BTreeMap;
use syntax::parse::parse_expression;
use types::{
    Catalog, Check, DataType, ExecutionVersion, Grantee, PUBLIC_SCHEMA, Securable, SqlError, Table, limits,
    split_catalog_name,
};

/// Bytes of a name: with something in front of it, it is still one in every database.
const NAME_BYTES_MAX: usize = 60;
/// Characters of all texts in a key together: a key of MariaDB's has 3,072 bytes.
const KEY_CHARACTERS_MAX: u64 = 768;
/// Bytes of a value that is no text, at most.
const OTHER_BYTES: usize = 80;
/// Bytes of a row of MariaDB's, with room for what is not counted here.
const MARIADB_ROW_BYTES_MAX: usize = 65_000;
/// What names of bookkeeping tables begin with.
const RESERVED: &str = "entente";

/// Whether everything in a catalog means the same in every database.
///
/// # Errors
/// `0A000`: what does not, by name, and what to do instead.
pub fn check_catalog(catalog: &Catalog) -> Result<(), SqlError> {
    refuse_others(catalog)?;
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for table in catalog.tables.values() {
        check_table(table)?;
        refuse_beside(catalog, table)?;
        if let Some(other) = names.insert(outside_name(&table.name).to_lowercase(), &table.name) {
            return Err(refused(format_args!("table \"{}\" beside table \"{other}\"", table.name))
                .hint("MariaDB has no schemas, and takes capitals for small letters: both have one name there. Rename one."));
        }
    }
    Ok(())
}

/// The CHECK constraints of a table that all of its rows keep, by name.
///
/// # Errors
/// As [`check_catalog`].
pub fn table_checks(table: &Table) -> Result<Vec<(String, Expression)>, SqlError> {
    let bound = |check: &Check| {
        let condition = bind_check(table, check).map_err(|error| {
            let place = format!("In the CHECK constraint \"{}\" of table \"{}\".", check.name, table.name);
            SqlError { position: None, ..error }.detail(place)
        })?;
        Ok((check.name.clone(), condition))
    };
    table.checks.iter().filter(|check| check.valid).map(bound).collect()
}

fn bind_check(table: &Table, check: &Check) -> Result<Expression, SqlError> {
    let sql = &check.condition;
    let constants = Constants { sql, parameters: &[], now_ms: None };
    let expr = parse_expression(sql, ExecutionVersion::NEWEST)?;
    let condition = Binder::new(table, table.object_name(), constants).condition(&expr, "CHECK")?;
    refuse_narrow(&condition, None)?;
    Ok(condition)
}

/// The name that a table has where there are no schemas.
fn outside_name(name: &str) -> String {
    match split_catalog_name(name) {
        (PUBLIC_SCHEMA, object) => object.to_string(),
        (schema, object) => format!("{schema}_{object}"),
    }
}

/// Refuses everything but tables and their plain indexes.
fn refuse_others(catalog: &Catalog) -> Result<(), SqlError> {
    let error =
        |what: &str, name: &str, hint: &str| Err(refused(format_args!("{what} \"{name}\"")).hint(hint));
    let in_scripts = "Write its statements in scripts.";
    if let Some(table) = catalog.tables.values().find(|table| table.materialized.is_some()) {
        return error("materialized view", &table.name, "Use its query instead of it.");
    }
    let mut tables = catalog.tables.values();
    if let Some(table) = tables.find(|table| table.partitioning.is_some()) {
        return error("partitioned table", &table.name, "Keep its rows in one table.");
    }
    if let Some(name) = catalog.views.keys().next() {
        return error("view", name, "Use its query instead of it.");
    }
    if let Some(name) = catalog.sequences.keys().next() {
        return error("sequence", name, "Give numbers, or values of type uuid, as parameters.");
    }
    if let Some(procedure) = catalog.procedures.values().next() {
        let what = if procedure.function.is_some() { "function" } else { "procedure" };
        return error(what, &procedure.name, in_scripts);
    }
    if let Some(name) = catalog.aggregates.keys().next() {
        return error("aggregate", name, "Aggregate in queries.");
    }
    if let Some(name) = catalog.types.keys().next() {
        return error("type", name, "Use columns of their own.");
    }
    if let Some(name) = catalog.roles.by_name.keys().next() {
        return error("role", name, "Each organisation's administrator sends its scripts.");
    }
    if let Some((object, grants)) = catalog.roles.grants.iter().next() {
        let (Securable::Relation(name)
        | Securable::Routine(name)
        | Securable::Schema(name)
        | Securable::Column(name, _)) = object;
        let grantee = grants.iter().next().map_or(&Grantee::Public, |(given, _)| &given.grantee);
        return error(
            &format!("what {grantee} was granted on"),
            name,
            "Revoke it: there are no roles to grant it to.",
        );
    }
    Ok(())
}

/// Refuses what a catalog has about a table outside of it.
fn refuse_beside(catalog: &Catalog, table: &Table) -> Result<(), SqlError> {
    if let Some(trigger) = catalog.triggers_of(table.id).next() {
        return Err(refused(format_args!("trigger \"{}\" of table \"{}\"", trigger.name, table.name))
            .hint("Write its statements in scripts."));
    }
    if let Some(key) = catalog.foreign_keys_of(table.id).first() {
        return Err(refused(format_args!("foreign key \"{}\" of table \"{}\"", key.name, table.name))
            .hint("Check it where the script is made, or give up the constraint."));
    }
    if let Some(index) = catalog.indexes_of(table.id).iter().find(|index| index.is_computed()) {
        let what = "index on an expression or with a condition";
        return Err(refused(format_args!("{what} \"{}\" of table \"{}\"", index.name, table.name))
            .hint("Not every database has them. Index columns."));
    }
    if let Some(index) = catalog.indexes_of(table.id).iter().find(|index| index.unique) {
        let what = if index.constraint { "UNIQUE constraint" } else { "unique index" };
        return Err(refused(format_args!("{what} \"{}\" of table \"{}\"", index.name, table.name))
            .hint("The databases look at it at other times. Make its columns the primary key of a table."));
    }
    Ok(())
}

fn check_table(table: &Table) -> Result<(), SqlError> {
    check_name("table", &table.name, &outside_name(&table.name))?;
    let is_reserved = |name: &str| name.to_lowercase().starts_with(RESERVED);
    if is_reserved(&outside_name(&table.name)) || is_reserved(table.object_name()) {
        return Err(refused(format_args!("table \"{}\"", table.name)).hint(
            "Names that begin with entente are for the node's own tables in the databases. Rename it.",
        ));
    }
    if table.primary_key.is_empty() {
        return Err(refused(format_args!("table \"{}\" without a primary key", table.name))
            .hint("Declare one: the databases can tell rows apart by it."));
    }
    let mut names = BTreeMap::new();
    for (ordinal, column) in table.columns.iter().enumerate() {
        let place = format!("In column \"{}\" of table \"{}\".", column.name, table.name);
        check_name("column", &column.name, &column.name).map_err(|error| error.detail(place.clone()))?;
        check_column_type(column.data_type).map_err(|error| error.detail(place.clone()))?;
        default_value(table, ordinal, Some(0)).map_err(|error| error.detail(place.clone()))?;
        if let Some(other) = names.insert(column.name.to_lowercase(), &column.name) {
            return Err(refused(format_args!("column \"{}\" beside column \"{other}\"", column.name))
                .detail(place)
                .hint("MariaDB takes capitals in names of columns for small letters. Rename one."));
        }
    }
    if let Some(column) = table.columns.iter().find(|column| column.generated) {
        return Err(refused(format_args!(
            "generated column \"{}\" of table \"{}\"",
            column.name, table.name
        ))
        .hint("Give its value in scripts."));
    }
    if let Some(check) = table.checks.iter().find(|check| !check.valid) {
        return Err(refused(format_args!(
            "CHECK \"{}\" of table \"{}\", which is NOT VALID",
            check.name, table.name
        ))
        .hint("Correct the rows that do not keep it, and VALIDATE CONSTRAINT."));
    }
    if table.row_security.enabled {
        return Err(refused(format_args!("row-level security of table \"{}\"", table.name))
            .hint("The databases run scripts with all rights. Say in the scripts which rows they change."));
    }
    check_key(table)?;
    check_row(table)?;
    table_checks(table).map(drop)
}

/// Rows must fit wherever they are, however scripts fill them one by one: here into `ROW_BYTES_MAX`, on MariaDB into the 65,535
/// bytes that columns have whose texts are in the row.
fn check_row(table: &Table) -> Result<(), SqlError> {
    let (mut here, mut outside) = (0, 0);
    for column in &table.columns {
        match column.data_type {
            DataType::Text(Some(characters)) => {
                here += characters as usize * 4;
                outside += characters as usize * 4 + 2;
            }
            DataType::Text(None) | DataType::Bytea => here += limits::TEXT_BYTES_BEFORE,
            _ => {
                here += OTHER_BYTES;
                outside += OTHER_BYTES;
            }
        }
    }
    if here > limits::ROW_BYTES_BEFORE - OTHER_BYTES || outside > MARIADB_ROW_BYTES_MAX {
        return Err(refused(format_args!("table \"{}\" with rows of up to {here} bytes", table.name)).hint(format!(
            "Rows have at most {} bytes, and texts with a length {MARIADB_ROW_BYTES_MAX} of them: text and bytea count {}, each character \
             of varchar(n) 4. Give shorter lengths, or make two tables.",
            limits::ROW_BYTES_BEFORE,
            limits::TEXT_BYTES_BEFORE
        )));
    }
    Ok(())
}

fn check_key(table: &Table) -> Result<(), SqlError> {
    let mut characters = 0_u64;
    for ordinal in &table.primary_key {
        let column = &table.columns[usize::from(*ordinal)];
        let error = |hint: &str| {
            let what = format!("column \"{}\" of type {} in the primary key", column.name, column.data_type);
            Err(refused(what).detail(format!("In table \"{}\".", table.name)).hint(hint))
        };
        match column.data_type {
            DataType::Text(length) => characters += length.map_or(u64::MAX / 64, u64::from),
            DataType::Bytea => return error("Use uuid or varchar(n)."),
            _ => {}
        }
        if characters > KEY_CHARACTERS_MAX {
            return error("A key has texts of at most varchar(768), all together.");
        }
    }
    Ok(())
}

/// `outside`: the name in a database.
fn check_name(what: &str, name: &str, outside: &str) -> Result<(), SqlError> {
    if outside.len() > NAME_BYTES_MAX {
        let what = format!("the name \"{outside}\" of {what} \"{name}\" with {} bytes", outside.len());
        return Err(refused(what).hint(format!("Use a name of at most {NAME_BYTES_MAX} bytes.")));
    }
    if outside.ends_with(' ') || outside.chars().any(|character| character > '\u{ffff}' || character == '\0')
    {
        return Err(refused(format_args!("the name \"{name}\" of a {what}"))
            .hint("MariaDB has no names with a space at the end, and none with rare characters. Use letters, digits and _."));
    }
    Ok(())
}
