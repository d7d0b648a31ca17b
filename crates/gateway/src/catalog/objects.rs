//! The objects of the catalogue with their object identifiers and definitions: what `pg_class`, `pg_constraint` and
//! the functions that print definitions agree on.
//!
//! Object identifiers are computed from the numbers that the ledger gives, so they are the same on every node: a table
//! has `20000 + 4 × number`, the index of its primary key, that constraint and its row type the three numbers after it.
//! Other indexes and constraints have numbers of their own, and the same places behind them.

use super::triggers::{self, TriggerObject};
use crate::postgres::encode::{type_length, type_modifier};
use types::{
    Catalog, CompositeType, CompositeTypes, DataType, ForeignKey, Function, FunctionResult, Language,
    PUBLIC_SCHEMA, ParameterMode, Procedure, ReferentialAction, Table, UserAggregate, View, Volatility,
    object_name, schema_of,
};

/// Name of the database that every session is connected to, whatever it asked for.
pub(super) const DATABASE: &str = "entente";
/// The role that owns everything.
pub(super) const ROLE: &str = "entente";
/// Object identifier of [`ROLE`].
pub(super) const ROLE_OID: i32 = 10;
/// Object identifier of the database.
pub(super) const DATABASE_OID: i32 = 16_384;
/// Schemas with their object identifiers.
pub(super) const SCHEMAS: &[(&str, i32)] = &[
    ("pg_catalog", PG_CATALOG),
    ("public", PUBLIC),
    ("information_schema", INFORMATION_SCHEMA),
    ("entente", ENTENTE),
];
/// Object identifier of a schema of the ledger: 0 where there is none.
fn schema_identifier(catalog: &Catalog, schema: &str) -> i32 {
    if schema == PUBLIC_SCHEMA {
        return PUBLIC;
    }
    let position = catalog.schemas.keys().position(|known| known == schema);
    position.map_or(0, |number| 1_300_000_000 + number as i32)
}

/// `pg_catalog`, as in every PostgreSQL.
pub(super) const PG_CATALOG: i32 = 11;
/// `public`, as in every PostgreSQL.
pub(super) const PUBLIC: i32 = 2200;
/// `information_schema`.
pub(super) const INFORMATION_SCHEMA: i32 = 13_000;
/// `entente`: the history of the ledger.
pub(super) const ENTENTE: i32 = 16_000;
/// Language of the procedures.
pub(super) const PLPGSQL: i32 = 13_500;

/// A column as `pg_attribute` shows it.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) type_oid: i32,
    pub(super) length: i16,
    pub(super) modifier: i32,
    pub(super) not_null: bool,
    pub(super) default: Option<String>,
}

impl Attribute {
    pub(super) fn new(name: &str, data_type: DataType) -> Attribute {
        Attribute {
            name: name.to_string(),
            type_oid: data_type.oid() as i32,
            length: type_length(data_type),
            modifier: type_modifier(data_type),
            not_null: false,
            default: None,
        }
    }
}

/// A constraint as `pg_constraint` shows it.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) oid: i32,
    pub(super) name: String,
    /// `p`, `u`, `f` or `c`.
    pub(super) kind: &'static str,
    pub(super) columns: Vec<i64>,
    pub(super) definition: String,
    /// The index that it has or references.
    pub(super) index: i32,
    /// What a FOREIGN KEY references.
    pub(super) references: Option<References>,
}

/// What a FOREIGN KEY references.
#[derive(Clone, Debug)]
pub(super) struct References {
    pub(super) oid: i32,
    pub(super) table: String,
    /// The schema of the table.
    pub(super) schema: String,
    /// Name of the constraint, or of the index, that makes the columns a key.
    pub(super) constraint: String,
    pub(super) columns: Vec<i64>,
    pub(super) on_update: ReferentialAction,
    pub(super) on_delete: ReferentialAction,
}

/// An index.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) oid: i32,
    pub(super) name: String,
    pub(super) columns: Vec<i64>,
    pub(super) definition: String,
    pub(super) unique: bool,
    pub(super) primary: bool,
}

/// A table as `pg_class` shows it.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    pub(super) oid: i32,
    pub(super) schema: i32,
    pub(super) schema_name: String,
    pub(super) name: String,
    /// `r` for tables, `v` for what cannot be written, `c` for composite types.
    pub(super) kind: &'static str,
    /// Object identifier of the type of its rows; 0 where it has none.
    pub(super) row_type: i32,
    pub(super) attributes: Vec<Attribute>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) indexes: Vec<Index>,
    pub(super) triggers: Vec<TriggerObject>,
}

impl Relation {
    /// A table of the ledger.
    pub(super) fn of_table(table: &Table, catalog: &Catalog) -> Relation {
        let oid = table.id.object_identifier();
        let attributes = table
            .columns
            .iter()
            .map(|column| Attribute {
                not_null: column.not_null
                    || table.primary_key.iter().any(|c| table.columns[usize::from(*c)] == *column),
                default: column.default.clone(),
                ..Attribute::new(&column.name, column.data_type)
            })
            .collect();
        let mut constraints = Vec::new();
        let mut indexes = Vec::new();
        if !table.primary_key.is_empty() {
            let name = &table.primary_key_name;
            indexes.push(index(table, oid + 1, name, &table.primary_key, (true, true)));
            let definition = format!("PRIMARY KEY ({})", names(table, &table.primary_key));
            constraints.push(constraint(oid + 2, name, "p", &table.primary_key, definition, oid + 1));
        }
        for own in catalog.indexes_of(table.id) {
            let oid = object_identifier(20_000, 4, own.number) + 1;
            indexes.push(index(table, oid, &own.name, &own.columns, (own.unique, false)));
            if own.constraint {
                let definition = format!("UNIQUE ({})", names(table, &own.columns));
                constraints.push(constraint(oid + 1, &own.name, "u", &own.columns, definition, oid));
            }
        }
        for foreign_key in catalog.foreign_keys_of(table.id) {
            constraints.extend(foreign_key_constraint(table, foreign_key, catalog));
        }
        for (number, check) in table.checks.iter().enumerate() {
            let oid = object_identifier(100_000_000, 1_000, table.id.0) + number as i32;
            let definition = format!("CHECK ({})", without_parentheses(&check.condition));
            constraints.push(constraint(oid, &check.name, "c", &[], definition, 0));
        }
        Relation {
            oid,
            schema: schema_identifier(catalog, schema_of(&table.name)),
            schema_name: schema_of(&table.name).to_string(),
            name: table.object_name().to_string(),
            kind: "r",
            row_type: row_type(catalog, &table.name),
            attributes,
            constraints,
            indexes,
            triggers: triggers::of_table(table, catalog),
        }
    }

    /// A view of the ledger, the one of this number by name.
    pub(super) fn of_view(number: usize, view: &View, catalog: &Catalog) -> Relation {
        let attributes = view.columns.iter().map(|column| Attribute::new(&column.name, column.data_type));
        Relation {
            oid: 1_200_000_000 + 4 * number as i32,
            schema: schema_identifier(catalog, schema_of(&view.name)),
            schema_name: schema_of(&view.name).to_string(),
            name: object_name(&view.name).to_string(),
            kind: "v",
            row_type: row_type(catalog, &view.name),
            attributes: attributes.collect(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
        }
    }

    /// A composite type of the ledger.
    pub(super) fn of_type(known: &CompositeType, catalog: &Catalog) -> Relation {
        let attributes = known.fields.iter().map(|field| Attribute::new(&field.name, field.data_type));
        Relation {
            oid: object_identifier(1_400_000_000, 1, known.id.0),
            schema: schema_identifier(catalog, schema_of(&known.name)),
            schema_name: schema_of(&known.name).to_string(),
            name: object_name(&known.name).to_string(),
            kind: "c",
            row_type: known.data_type().oid() as i32,
            attributes: attributes.collect(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
        }
    }
}

/// A name in the catalog as definitions show it: with its schema where that is another one than `public`.
pub(super) fn shown_name(name: &str) -> String {
    match schema_of(name) {
        PUBLIC_SCHEMA => quoted(name),
        schema => format!("{}.{}", quoted(schema), quoted(object_name(name))),
    }
}

/// Object identifier of the type of a relation's rows.
fn row_type(catalog: &Catalog, relation: &str) -> i32 {
    catalog.row_types.get(relation).map_or(0, |id| DataType::Composite(*id).oid() as i32)
}

/// Numbers of columns as the catalogue counts them.
fn numbers(columns: &[u16]) -> Vec<i64> {
    columns.iter().map(|column| i64::from(*column) + 1).collect()
}

/// Names of columns, as SQL lists them.
fn names(table: &Table, columns: &[u16]) -> String {
    let names = columns.iter().map(|column| quoted(&table.columns[usize::from(*column)].name));
    names.collect::<Vec<_>>().join(", ")
}

fn index(table: &Table, oid: i32, name: &str, columns: &[u16], (unique, primary): (bool, bool)) -> Index {
    let definition = format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({})",
        if unique { "UNIQUE " } else { "" },
        quoted(name),
        quoted(schema_of(&table.name)),
        quoted(table.object_name()),
        names(table, columns)
    );
    Index { oid, name: name.to_string(), columns: numbers(columns), definition, unique, primary }
}

fn constraint(
    oid: i32,
    name: &str,
    kind: &'static str,
    columns: &[u16],
    definition: String,
    index: i32,
) -> Constraint {
    Constraint {
        oid,
        name: name.to_string(),
        kind,
        columns: numbers(columns),
        definition,
        index,
        references: None,
    }
}

/// `None` where the table that is referenced is not there.
fn foreign_key_constraint(table: &Table, foreign_key: &ForeignKey, catalog: &Catalog) -> Option<Constraint> {
    let parent = catalog.table(foreign_key.parent)?;
    let mut definition = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        names(table, &foreign_key.columns),
        shown_name(&parent.name),
        names(parent, &foreign_key.referenced)
    );
    for (event, action) in [("UPDATE", foreign_key.on_update), ("DELETE", foreign_key.on_delete)] {
        let action = match action {
            ReferentialAction::NoAction => continue,
            other => action_name(other),
        };
        definition += &format!(" ON {event} {action}");
    }
    let index = catalog.indexes_of(parent.id).iter().find(|index| Some(index.number) == foreign_key.index);
    let key = match index {
        Some(index) => (object_identifier(20_000, 4, index.number) + 1, index.name.clone()),
        None => (parent.id.object_identifier() + 1, parent.primary_key_name.clone()),
    };
    let oid = object_identifier(20_000, 4, foreign_key.number) + 2;
    let references = References {
        oid: parent.id.object_identifier(),
        table: parent.object_name().to_string(),
        schema: schema_of(&parent.name).to_string(),
        constraint: key.1,
        columns: numbers(&foreign_key.referenced),
        on_update: foreign_key.on_update,
        on_delete: foreign_key.on_delete,
    };
    let constraint = constraint(oid, &foreign_key.name, "f", &foreign_key.columns, definition, key.0);
    Some(Constraint { references: Some(references), ..constraint })
}

/// As SQL writes it.
pub(super) fn action_name(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

/// Numbers of tables are never used twice; after some hundred million tables the identifiers start again.
pub(super) fn object_identifier(first: i32, step: i32, number: u32) -> i32 {
    first + (i64::from(number) * i64::from(step) % 1_000_000_000) as i32
}

/// A condition without parentheses around all of it, which `CHECK (…)` adds.
pub(super) fn without_parentheses(condition: &str) -> &str {
    let trimmed = condition.trim();
    let Some(inner) = trimmed.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
        return trimmed;
    };
    let mut depth = 0_i32;
    for character in inner.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return trimmed;
        }
    }
    inner.trim()
}

/// A name as SQL needs it written.
pub(super) fn quoted(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '$');
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A procedure as `pg_proc` shows it.
#[derive(Clone, Debug)]
pub(super) struct Routine {
    pub(super) oid: i32,
    pub(super) name: String,
    /// Its schema.
    pub(super) schema: String,
    pub(super) schema_oid: i32,
    /// `f` a function, `p` a procedure, `a` an aggregate.
    pub(super) kind: &'static str,
    /// As `pg_get_function_result` shows it; `None` for a procedure.
    pub(super) result: Option<String>,
    /// Type of the result: `void` for a procedure, `record` for a row.
    pub(super) result_type: i64,
    pub(super) returns_set: bool,
    pub(super) is_strict: bool,
    /// `i`, `s` or `v`.
    pub(super) volatility: &'static str,
    pub(super) arguments: String,
    pub(super) definition: String,
    pub(super) body: String,
    /// Types of the arguments that go in.
    pub(super) input_types: Vec<i64>,
    /// Types, modes and names of all arguments.
    pub(super) all_types: Vec<i64>,
    pub(super) modes: Vec<String>,
    pub(super) names: Vec<String>,
}

/// Object identifier of the type of arguments that take every type.
const ANY: i64 = 2276;

impl Routine {
    fn of_aggregate(number: usize, aggregate: &UserAggregate, known: &CompositeTypes) -> Routine {
        let types = &aggregate.arguments;
        let shown = types.iter().map(|one| one.map_or("\"any\"".to_string(), |one| family_name(known, one)));
        let arguments = shown.collect::<Vec<String>>().join(", ");
        Routine {
            oid: 50_000_000 + number as i32,
            name: object_name(&aggregate.name).to_string(),
            schema: schema_of(&aggregate.name).to_string(),
            schema_oid: PUBLIC,
            kind: "a",
            result: Some(family_name(known, aggregate.data_type)),
            result_type: i64::from(aggregate.data_type.oid()),
            returns_set: false,
            is_strict: false,
            volatility: "i",
            arguments,
            definition: String::new(),
            body: "aggregate_dummy".to_string(),
            input_types: types
                .iter()
                .map(|known| known.map_or(ANY, |known| i64::from(known.oid())))
                .collect(),
            all_types: Vec::new(),
            modes: Vec::new(),
            names: Vec::new(),
        }
    }

    fn of_procedure(number: usize, procedure: &Procedure, types: &CompositeTypes) -> Routine {
        let mode = |mode: ParameterMode| match mode {
            ParameterMode::In if procedure.function.is_some() => ("", "i"),
            ParameterMode::In => ("IN", "i"),
            ParameterMode::Out => ("OUT", "o"),
            ParameterMode::InOut => ("INOUT", "b"),
            ParameterMode::Variadic => ("VARIADIC", "v"),
        };
        let parameters = &procedure.parameters;
        let shown: Vec<String> = parameters
            .iter()
            .map(|parameter| {
                let name =
                    if parameter.name.is_empty() { String::new() } else { quoted(&parameter.name) + " " };
                let mode = mode(parameter.mode).0;
                let space = if mode.is_empty() { "" } else { " " };
                let default = parameter.default.as_ref().map(|sql| format!(" DEFAULT {sql}"));
                let default = default.unwrap_or_default();
                format!("{mode}{space}{name}{}{default}", family_name(types, parameter.data_type))
            })
            .collect();
        let arguments = shown.join(", ");
        let (kind, result, result_type) = match &procedure.function {
            None => ("procedure", None, VOID),
            Some(function) => {
                let (result, result_type) = result_of(procedure, function, types);
                ("function", Some(result), result_type)
            }
        };
        let language = match procedure.language {
            Language::PlPgSql => "plpgsql",
            Language::Sql => "sql",
        };
        let returns = result.as_ref().map(|result| format!("\n RETURNS {result}")).unwrap_or_default();
        let (volatility, promise) = match procedure.function.as_ref().map(|function| function.volatility) {
            Some(Volatility::Immutable) => ("i", " IMMUTABLE"),
            Some(Volatility::Stable) => ("s", " STABLE"),
            Some(Volatility::Volatile) | None => ("v", ""),
        };
        let is_strict = procedure.function.as_ref().is_some_and(|function| function.is_strict);
        let options = if is_strict { format!("{promise} STRICT") } else { promise.to_string() };
        let options = if options.is_empty() { options } else { format!("\n{options}") };
        let definition = format!(
            "CREATE OR REPLACE {} public.{}({arguments}){returns}\n LANGUAGE {language}{options}\nAS ${kind}${}${kind}$\n",
            kind.to_uppercase(),
            shown_name(&procedure.name),
            procedure.body
        );
        let input = procedure.inputs();
        Routine {
            result,
            result_type,
            returns_set: procedure.function.as_ref().is_some_and(|function| function.is_set),
            is_strict,
            volatility,
            oid: routine_identifier(number),
            name: object_name(&procedure.name).to_string(),
            schema: schema_of(&procedure.name).to_string(),
            schema_oid: PUBLIC,
            kind: if procedure.function.is_some() { "f" } else { "p" },
            definition,
            body: procedure.body.clone(),
            input_types: input.map(|parameter| i64::from(parameter.data_type.oid())).collect(),
            all_types: parameters.iter().map(|parameter| i64::from(parameter.data_type.oid())).collect(),
            modes: parameters.iter().map(|parameter| mode(parameter.mode).1.to_string()).collect(),
            names: parameters.iter().map(|parameter| parameter.name.clone()).collect(),
            arguments,
        }
    }
}

/// The object identifier of the procedure or function of this number by name.
pub(super) fn routine_identifier(number: usize) -> i32 {
    50_000_000 + number as i32
}

/// Object identifiers of the types `void`, `record` and `trigger`.
const VOID: i64 = 2278;
const RECORD: i64 = 2249;
const TRIGGER: i64 = 2279;

/// A function's result as `pg_get_function_result` shows it, and its type.
fn result_of(procedure: &Procedure, function: &Function, types: &CompositeTypes) -> (String, i64) {
    let value = |data_type: DataType| (family_name(types, data_type), i64::from(data_type.oid()));
    let (name, result_type) = match &function.result {
        FunctionResult::Void => ("void".to_string(), VOID),
        FunctionResult::Value(data_type) => value(*data_type),
        FunctionResult::Outputs => match procedure.outputs().collect::<Vec<_>>().as_slice() {
            [only] => value(only.data_type),
            _ => ("record".to_string(), RECORD),
        },
        FunctionResult::Record => ("record".to_string(), RECORD),
        FunctionResult::Trigger => ("trigger".to_string(), TRIGGER),
    };
    match function.is_set {
        true => (format!("SETOF {name}"), result_type),
        false => (name, result_type),
    }
}

/// PostgreSQL leaves length, precision and scale out of the types of arguments.
fn family_name(types: &CompositeTypes, data_type: DataType) -> String {
    match data_type {
        DataType::Text(Some(_)) => "character varying".to_string(),
        other => types.name_of(other.family()),
    }
}

/// Everything that the catalogue shows of a ledger.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    /// Schemas with their object identifiers.
    pub(super) schemas: Vec<(String, i32)>,
    pub(super) relations: Vec<Relation>,
    pub(super) routines: Vec<Routine>,
    /// Names, and whether somebody may connect as them.
    pub(super) roles: Vec<(String, bool)>,
}

impl Objects {
    /// Tables and procedures of `catalog`, and `more` relations.
    pub(super) fn new(catalog: &Catalog, more: Vec<Relation>) -> Objects {
        let mut relations: Vec<Relation> =
            catalog.tables.values().map(|table| Relation::of_table(table, catalog)).collect();
        relations.extend(
            catalog.views.values().enumerate().map(|(number, view)| Relation::of_view(number, view, catalog)),
        );
        relations.extend(catalog.types.values().map(|known| Relation::of_type(known, catalog)));
        relations.extend(more);
        let roles = catalog.roles.by_name.iter().map(|(name, role)| (name.clone(), role.login)).collect();
        let types = CompositeTypes::new(catalog);
        let procedures = catalog.procedures.values().enumerate();
        let mut routines: Vec<Routine> =
            procedures.map(|(number, procedure)| Routine::of_procedure(number, procedure, &types)).collect();
        let first = routines.len();
        let aggregates = catalog.aggregates.values().enumerate();
        routines.extend(
            aggregates.map(|(number, aggregate)| Routine::of_aggregate(first + number, aggregate, &types)),
        );
        for routine in &mut routines {
            routine.schema_oid = schema_identifier(catalog, &routine.schema);
        }
        let of_system = SCHEMAS.iter().map(|(name, oid)| (name.to_string(), *oid));
        let own = catalog.schemas.keys().map(|name| (name.clone(), schema_identifier(catalog, name)));
        let schemas = of_system.chain(own).collect();
        Objects { schemas, relations, routines, roles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parentheses_around_the_whole_condition_are_dropped() {
        assert_eq!(without_parentheses("(a > 0)"), "a > 0");
        assert_eq!(without_parentheses("(a > 0) and (b > 0)"), "(a > 0) and (b > 0)");
        assert_eq!(without_parentheses("a > 0"), "a > 0");
    }

    #[test]
    fn names_are_quoted_where_sql_needs_it() {
        assert_eq!(quoted("plain_1"), "plain_1");
        assert_eq!(quoted("Mixed \"x\""), "\"Mixed \"\"x\"\"\"");
        assert_eq!(quoted("1a"), "\"1a\"");
    }
}
