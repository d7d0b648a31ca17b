//! The objects of the catalogue with their object identifiers and definitions: what `pg_class`, `pg_constraint` and
//! the functions that print definitions agree on.
//!
//! Object identifiers are computed from the numbers that the ledger gives, so they are the same on every node: a table
//! has `20000 + 4 × number`, the index of its primary key, that constraint and its row type the three numbers after it.
//! Other indexes and constraints have numbers of their own, and the same places behind them.

use crate::defined_types::DefinedType;
use crate::indexes::{index, index_of_key};
use crate::partitions::{PartitionFacts, temporary_views, view_identifier, view_numbers};
use crate::relations::{RELATIONS, SystemRelation};
use crate::routines::Routine;
use crate::row_security::organisations;
use crate::triggers::{self, TriggerObject};
use crate::wire::{type_length, type_modifier};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{
    Catalog, CheckOption, Commented, CompositeType, CompositeTypes, Counter, DataType, Deferral, ForeignKey,
    Generated, IndexMethod, PUBLIC_SCHEMA, ReferentialAction, Roles, RowSecurity, Sequence, Table, TableId,
    UserAggregate, View, object_name, schema_of,
};
use values::quote_ident;

/// The role that owns everything.
pub(crate) const ROLE: &str = "entente";
/// Object identifier of [`ROLE`].
pub(crate) const ROLE_OID: i32 = 10;
/// Object identifier of the database.
pub(crate) const DATABASE_OID: i32 = 16_384;
/// Schemas with their object identifiers.
pub(crate) const SCHEMAS: &[(&str, i32)] = &[
    ("pg_catalog", PG_CATALOG),
    ("public", PUBLIC),
    ("information_schema", INFORMATION_SCHEMA),
    ("entente", ENTENTE),
];
/// Object identifier of the schema of the session's temporary tables. There is one where it has any.
pub(crate) const TEMPORARY: i32 = 16_100;

/// Object identifier of a schema of the ledger: 0 where there is none.
pub(crate) fn schema_identifier(catalog: &Catalog, schema: &str) -> i32 {
    if schema == PUBLIC_SCHEMA {
        return PUBLIC;
    }
    let position = catalog.schemas.keys().position(|known| known == schema);
    position.map_or(0, |number| 1_300_000_000 + number as i32)
}

/// `pg_catalog`, as in every PostgreSQL.
pub(crate) const PG_CATALOG: i32 = 11;
/// `public`, as in every PostgreSQL.
pub(crate) const PUBLIC: i32 = 2200;
/// `information_schema`.
pub(crate) const INFORMATION_SCHEMA: i32 = 13_000;
/// `entente`: the history of the ledger.
pub(crate) const ENTENTE: i32 = 16_000;
/// Language of the procedures.
pub(crate) const PLPGSQL: i32 = 13_500;

/// Sequences of the ledger that have object identifiers.
const SEQUENCES: usize = 40_000_000;

/// What the definition of a constraint ends with that not all rows have been held against.
const NOT_VALID: &str = " NOT VALID";

/// A column as `pg_attribute` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) type_oid: i32,
    pub(crate) length: i16,
    pub(crate) is_array: bool,
    pub(crate) modifier: i32,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    /// `a` GENERATED ALWAYS AS IDENTITY, `d` BY DEFAULT, or nothing.
    pub(crate) identity: &'static str,
    /// Its default is what its values are generated from.
    pub(crate) generated: bool,
}

/// The name of the sequence that a default draws from, as the ledger or PostgreSQL writes it: a schema, where there is one, and the name in
/// it.
pub(crate) fn drawn_from(default: &str) -> Option<Vec<String>> {
    let rest = default.strip_prefix("nextval('")?;
    let name = rest.strip_suffix("')").or_else(|| rest.strip_suffix("'::regclass)"))?;
    if name.contains('\'') {
        return None;
    }
    let (mut parts, mut is_quoted) = (vec![String::new()], false);
    for character in name.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            character => parts.last_mut().into_iter().for_each(|part| part.push(character)),
        }
    }
    Some(parts)
}

/// A default as PostgreSQL shows it: what draws from a sequence names it as an object, in quotes only where it needs them.
fn shown_default(default: &str) -> String {
    let Some(parts) = drawn_from(default) else { return default.to_string() };
    let parts: Vec<String> = parts.iter().map(|part| quote_ident(part)).collect();
    format!("nextval('{}'::regclass)", parts.join("."))
}

impl Attribute {
    pub(crate) fn new(name: &str, data_type: DataType) -> Attribute {
        Attribute {
            name: name.to_string(),
            type_oid: data_type.oid() as i32,
            length: type_length(data_type),
            is_array: matches!(data_type, DataType::Array(_)),
            modifier: type_modifier(data_type),
            not_null: false,
            default: None,
            identity: "",
            generated: false,
        }
    }

    /// Object identifier of the collation that its texts compare by.
    pub(crate) fn collation(&self) -> i32 {
        // text, varchar, char, and arrays of them
        if matches!(self.type_oid, 25 | 1043 | 1042 | 1009 | 1015 | 1014) { 100 } else { 0 }
    }
}

/// A constraint as `pg_constraint` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    pub(crate) oid: i32,
    pub(crate) name: String,
    /// `p`, `u`, `f` or `c`.
    pub(crate) kind: &'static str,
    pub(crate) columns: Vec<i64>,
    pub(crate) definition: String,
    /// The index that it has or references.
    pub(crate) index: i32,
    /// What a FOREIGN KEY references.
    pub(crate) references: Option<References>,
    /// When it is held.
    pub(crate) deferral: Deferral,
    /// All rows keep it.
    pub(crate) valid: bool,
}

/// What a FOREIGN KEY references.
#[derive(Clone, Debug)]
pub(crate) struct References {
    pub(crate) oid: i32,
    /// The schema of the table.
    pub(crate) schema: String,
    /// Name of the constraint, or of the index, that makes the columns a key.
    pub(crate) constraint: String,
    pub(crate) columns: Vec<i64>,
    pub(crate) on_update: ReferentialAction,
    pub(crate) on_delete: ReferentialAction,
    /// MATCH FULL
    pub(crate) match_full: bool,
    /// The columns that ON DELETE sets, where they are not all.
    pub(crate) set_on_delete: Vec<i64>,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) oid: i32,
    pub(crate) name: String,
    /// Those of its key, then those of INCLUDE.
    pub(crate) parts: Vec<IndexPart>,
    /// How many of them are of its key.
    pub(crate) keys: usize,
    pub(crate) definition: String,
    /// The same for people.
    pub(crate) pretty_definition: String,
    pub(crate) expressions: Option<String>,
    pub(crate) predicate: Option<String>,
    pub(crate) nulls_not_distinct: bool,
    pub(crate) unique: bool,
    pub(crate) primary: bool,
    /// USING
    pub(crate) method: IndexMethod,
    /// It is held with each row, or at the end of each statement, whatever SET CONSTRAINTS says.
    pub(crate) immediate: bool,
}

/// A part of an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexPart {
    /// Number of the column, or 0.
    pub(crate) column: i64,
    pub(crate) attribute: Attribute,
    pub(crate) text: String,
    pub(crate) pretty_text: String,
    /// 1: DESC, 2: NULLS FIRST.
    pub(crate) option: i64,
}

/// A table as `pg_class` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) oid: i32,
    pub(crate) schema: i32,
    pub(crate) schema_name: String,
    pub(crate) name: String,
    /// `r` for tables, `v` for what cannot be written, `m` for materialized views, `S` for sequences, `c` for composite types.
    pub(crate) kind: &'static str,
    /// The query of a view or materialized view.
    pub(crate) query: Option<String>,
    /// False for a materialized view that nothing has filled.
    pub(crate) is_populated: bool,
    /// What a view asks of rows that are written through it.
    pub(crate) check_option: Option<CheckOption>,
    /// Who must endorse what writes to a table.
    pub(crate) policy: Option<String>,
    /// Which rows of a table a role sees.
    pub(crate) row_security: RowSecurity,
    /// Relations that a view reads, by their names in the catalog.
    pub(crate) reads: BTreeSet<String>,
    /// How a sequence counts, if it does.
    pub(crate) counter: Option<Counter>,
    /// What CACHE says of a sequence.
    pub(crate) cache: i64,
    /// The column that a sequence belongs to, by the table's object identifier and from 1.
    pub(crate) owner: Option<(i32, i32)>,
    /// Object identifier of the type of its rows; 0 where it has none.
    pub(crate) row_type: i32,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) triggers: Vec<TriggerObject>,
    /// What partitions make of it.
    pub(crate) partitions: PartitionFacts,
}

impl Relation {
    /// A table of the ledger.
    pub(crate) fn of_table(table: &Table, catalog: &Catalog) -> Relation {
        let oid = table.id.object_identifier();
        let attributes = table
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let identity = match catalog.identity(table.id, number) {
                    Some(Generated::Always) => "a",
                    Some(Generated::ByDefault) => "d",
                    None => "",
                };
                Attribute {
                    not_null: column.not_null || table.primary_key.iter().any(|c| usize::from(*c) == number),
                    // What an identity column takes is no default in PostgreSQL's catalogue.
                    default: column.default.as_deref().filter(|_| identity.is_empty()).map(shown_default),
                    identity,
                    generated: column.generated,
                    ..Attribute::new(&column.name, column.data_type)
                }
            })
            .collect();
        let mut constraints = Vec::new();
        let mut indexes = Vec::new();
        if !table.primary_key.is_empty() {
            let name = &table.primary_key_name;
            indexes.push(index_of_key(table, catalog, oid + 1));
            let definition = format!("PRIMARY KEY ({})", names(table, &table.primary_key));
            constraints.push(constraint(oid + 2, name, "p", &table.primary_key, definition, oid + 1));
        }
        for own in catalog.indexes_of(table.id) {
            let oid = object_identifier(20_000, 4, own.number) + 1;
            indexes.push(index(table, catalog, oid, own));
            if own.constraint {
                let (kind, what) = if own.primary { ("p", "PRIMARY KEY") } else { ("u", "UNIQUE") };
                let nulls = if own.details.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
                let (columns, clause) = (names(table, &own.columns), own.deferral.clause());
                let definition = format!("{what}{nulls} ({columns}){clause}");
                let shown = constraint(oid + 1, &own.name, kind, &own.columns, definition, oid);
                constraints.push(Constraint { deferral: own.deferral, ..shown });
            }
        }
        for foreign_key in catalog.foreign_keys_of(table.id) {
            constraints.extend(foreign_key_constraint(table, foreign_key, catalog));
        }
        for (number, check) in table.checks.iter().enumerate() {
            let oid = object_identifier(100_000_000, 1_000, table.id.0) + number as i32;
            let condition = without_parentheses(&check.condition);
            let definition = format!("CHECK ({condition}){}", if check.valid { "" } else { NOT_VALID });
            let columns = used_columns(table, &check.condition);
            let shown = constraint(oid, &check.name, "c", &columns, definition, 0);
            constraints.push(Constraint { valid: check.valid, ..shown });
        }
        let partitions = PartitionFacts::of_table(table, catalog);
        let materialized = table.materialized.as_deref();
        Relation {
            oid,
            schema: schema_identifier(catalog, schema_of(&table.name)),
            schema_name: schema_of(&table.name).to_string(),
            name: table.object_name().to_string(),
            kind: if materialized.is_some() { "m" } else { partitions.kind() },
            query: materialized.map(|one| one.view.query.clone()),
            is_populated: materialized.is_none_or(|one| one.is_populated),
            check_option: None,
            policy: table.endorsement.clone(),
            row_security: table.row_security.clone(),
            reads: materialized.map_or_else(BTreeSet::new, |one| one.view.relations.clone()),
            counter: None,
            cache: 1,
            owner: None,
            row_type: row_type(catalog, &table.name),
            attributes,
            constraints,
            indexes,
            triggers: triggers::of_table(table, catalog),
            partitions,
        }
    }

    /// A partition of a table, which is the view of this number by name.
    fn of_partition(
        number: usize,
        view: &View,
        (table, partitions): (&Table, PartitionFacts),
        catalog: &Catalog,
    ) -> Relation {
        let shown = Relation::of_view(number, view, catalog);
        let attributes = Relation::of_table(table, catalog).attributes;
        let (kind, query, reads) = (partitions.kind(), None, BTreeSet::new());
        Relation { kind, query, reads, attributes, partitions, ..shown }
    }

    /// A view of the ledger, the one of this number by name.
    pub(crate) fn of_view(number: usize, view: &View, catalog: &Catalog) -> Relation {
        let attributes = view.columns.iter().map(|column| Attribute::new(&column.name, column.data_type));
        Relation {
            oid: view_identifier(number),
            schema: schema_identifier(catalog, schema_of(&view.name)),
            schema_name: schema_of(&view.name).to_string(),
            name: object_name(&view.name).to_string(),
            kind: "v",
            query: Some(view.query.clone()),
            is_populated: true,
            check_option: view.check_option,
            policy: None,
            row_security: RowSecurity::default(),
            reads: view.relations.clone(),
            counter: None,
            cache: 1,
            owner: None,
            row_type: row_type(catalog, &view.name),
            attributes: attributes.collect(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: triggers::of_view(number, view, catalog),
            partitions: PartitionFacts::default(),
        }
    }

    /// A composite type of the ledger.
    pub(crate) fn of_type(known: &CompositeType, catalog: &Catalog) -> Relation {
        let attributes = known.fields.iter().map(|field| Attribute::new(&field.name, field.data_type));
        Relation {
            oid: object_identifier(1_400_000_000, 1, known.id.0),
            schema: schema_identifier(catalog, schema_of(&known.name)),
            schema_name: schema_of(&known.name).to_string(),
            name: object_name(&known.name).to_string(),
            kind: "c",
            query: None,
            is_populated: true,
            check_option: None,
            policy: None,
            row_security: RowSecurity::default(),
            reads: BTreeSet::new(),
            counter: None,
            cache: 1,
            owner: None,
            row_type: known.data_type().oid() as i32,
            attributes: attributes.collect(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
            partitions: PartitionFacts::default(),
        }
    }
}

impl Relation {
    /// A sequence of the ledger, the one of this number by name.
    pub(crate) fn of_sequence(number: usize, sequence: &Sequence, catalog: &Catalog) -> Relation {
        let columns = [
            ("last_value", DataType::BigInt),
            ("log_cnt", DataType::BigInt),
            ("is_called", DataType::Boolean),
        ];
        let attribute = |(name, data_type)| Attribute { not_null: true, ..Attribute::new(name, data_type) };
        let owner = sequence.owner.as_ref();
        Relation {
            oid: 1_250_000_000 + number as i32,
            schema: schema_identifier(catalog, schema_of(&sequence.name)),
            schema_name: schema_of(&sequence.name).to_string(),
            name: object_name(&sequence.name).to_string(),
            kind: "S",
            query: None,
            is_populated: true,
            check_option: None,
            policy: None,
            row_security: RowSecurity::default(),
            reads: BTreeSet::new(),
            counter: sequence.counter.clone(),
            cache: sequence.cache,
            owner: owner.map(|owner| (owner.table.object_identifier(), i32::from(owner.column) + 1)),
            row_type: 0,
            attributes: columns.map(attribute).into(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
            partitions: PartitionFacts::default(),
        }
    }

    /// A relation of the history.
    pub(crate) fn of_history(relation: &SystemRelation) -> Relation {
        let attributes = relation.columns.iter().map(|column| Attribute::new(column.name, column.data_type));
        Relation {
            oid: relation.oid,
            schema: ENTENTE,
            schema_name: "entente".to_string(),
            name: relation.plain_name().to_string(),
            kind: "v",
            query: None,
            is_populated: true,
            check_option: None,
            policy: None,
            row_security: RowSecurity::default(),
            reads: BTreeSet::new(),
            counter: None,
            cache: 1,
            owner: None,
            row_type: 0,
            attributes: attributes.collect(),
            constraints: Vec::new(),
            indexes: Vec::new(),
            triggers: Vec::new(),
            partitions: PartitionFacts::default(),
        }
    }

    /// Whether it is a temporary table of the session, or belongs to one.
    pub(crate) fn is_temporary(&self) -> bool {
        self.schema == TEMPORARY
    }

    /// As `relpersistence` says it.
    pub(crate) fn persistence(&self) -> &'static str {
        if self.is_temporary() { "t" } else { "p" }
    }

    /// In the schema of the session's temporary tables, which has this name.
    fn in_temporary(mut self, schema: &str) -> Relation {
        self.schema = TEMPORARY;
        self.schema_name = schema.to_string();
        // The numbers of these types are too large for the catalogue's columns.
        self.row_type = 0;
        // Those of temporary tables reference temporary tables.
        for references in self.constraints.iter_mut().filter_map(|known| known.references.as_mut()) {
            references.schema = schema.to_string();
        }
        self
    }

    /// Whether it is the ledger's own, and no view of its history.
    pub(crate) fn is_ledgers(&self) -> bool {
        self.schema != ENTENTE
    }

    /// How a sequence counts; one whose values are drawn from the place of their transaction goes up by one at least.
    pub(crate) fn counting(&self) -> Counter {
        self.counter.clone().unwrap_or(Counter {
            table: TableId(0),
            data_type: DataType::BigInt,
            start: 1,
            increment: 1,
            smallest: 1,
            largest: i64::MAX,
            cycles: false,
        })
    }

    /// Its name in the catalog.
    pub(crate) fn catalog_name(&self) -> String {
        match self.schema_name.as_str() {
            PUBLIC_SCHEMA => self.name.clone(),
            _ if self.is_temporary() => self.name.clone(),
            schema => format!("{schema}.{}", self.name),
        }
    }

    /// Its name as definitions show it.
    pub(crate) fn shown_name(&self) -> String {
        shown_name(&self.catalog_name())
    }
}

/// A name in the catalog as definitions show it: with its schema where that is another one than `public`.
pub(crate) fn shown_name(name: &str) -> String {
    match schema_of(name) {
        PUBLIC_SCHEMA => quote_ident(name),
        schema => format!("{}.{}", quote_ident(schema), quote_ident(object_name(name))),
    }
}

/// The columns that a condition names.
fn used_columns(table: &Table, condition: &str) -> Vec<u16> {
    let mut tokens = Vec::new();
    if Tokenizer::new(&PostgreSqlDialect {}, condition).tokenize_with_location_into_buf(&mut tokens).is_err()
    {
        return Vec::new();
    }
    let names = |column: &str| {
        tokens.iter().any(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase() == column,
            Token::Word(word) => word.value == column,
            _ => false,
        })
    };
    (0..).zip(&table.columns).filter(|(_, column)| names(&column.name)).map(|(number, _)| number).collect()
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
    let names = columns.iter().map(|column| quote_ident(&table.columns[usize::from(*column)].name));
    names.collect::<Vec<_>>().join(", ")
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
        deferral: Deferral::Never,
        valid: true,
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
    if foreign_key.match_full {
        definition += " MATCH FULL";
    }
    for (event, action) in [("UPDATE", foreign_key.on_update), ("DELETE", foreign_key.on_delete)] {
        let action = match action {
            ReferentialAction::NoAction => continue,
            other => action_name(other),
        };
        definition += &format!(" ON {event} {action}");
    }
    if !foreign_key.set_on_delete.is_empty() {
        definition += &format!(" ({})", names(table, &foreign_key.set_on_delete));
    }
    definition += foreign_key.deferral.clause();
    definition += if foreign_key.valid { "" } else { NOT_VALID };
    let index = catalog.indexes_of(parent.id).iter().find(|index| Some(index.number) == foreign_key.index);
    let key = match index {
        Some(index) => (object_identifier(20_000, 4, index.number) + 1, index.name.clone()),
        None => (parent.id.object_identifier() + 1, parent.primary_key_name.clone()),
    };
    let oid = object_identifier(20_000, 4, foreign_key.number) + 2;
    let references = References {
        oid: parent.id.object_identifier(),
        schema: schema_of(&parent.name).to_string(),
        constraint: key.1,
        columns: numbers(&foreign_key.referenced),
        on_update: foreign_key.on_update,
        on_delete: foreign_key.on_delete,
        match_full: foreign_key.match_full,
        set_on_delete: numbers(&foreign_key.set_on_delete),
    };
    let constraint = constraint(oid, &foreign_key.name, "f", &foreign_key.columns, definition, key.0);
    let (deferral, valid) = (foreign_key.deferral, foreign_key.valid);
    Some(Constraint { references: Some(references), deferral, valid, ..constraint })
}

/// As SQL writes it.
pub(crate) fn action_name(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    }
}

/// Numbers of tables are never used twice; after some hundred million tables the identifiers start again.
pub(crate) fn object_identifier(first: i32, step: i32, number: u32) -> i32 {
    first + (i64::from(number) * i64::from(step) % 1_000_000_000) as i32
}

/// A condition without parentheses around all of it, which `CHECK (…)` adds.
pub(crate) fn without_parentheses(condition: &str) -> &str {
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

/// Everything that the catalogue shows of a ledger.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    /// Schemas with their object identifiers.
    pub(crate) schemas: Vec<(String, i32)>,
    pub(crate) relations: Vec<Relation>,
    /// Types that are no relations.
    pub(crate) types: Vec<DefinedType>,
    pub(crate) routines: Vec<Routine>,
    /// Aggregates with their object identifiers.
    pub(crate) aggregates: Vec<(i32, UserAggregate)>,
    /// Names, and whether somebody may connect as them.
    pub(crate) roles: Vec<(String, bool)>,
    /// Roles and their members.
    pub(crate) members: Vec<(String, String)>,
    /// What roles may do.
    pub(crate) grants: Roles,
    /// What COMMENT has said.
    pub(crate) comments: Vec<(Commented, String)>,
}

impl Objects {
    /// The objects of a catalog, and the relations of the ledger's history, as the session with this process number sees them: its
    /// temporary tables may be in the catalog.
    pub(crate) fn new(catalog: &Catalog, process: i32) -> Objects {
        let temporary = format!("pg_temp_{process}");
        let relations = relations(catalog, &temporary);
        let roles = catalog.roles.by_name.iter().map(|(name, role)| (name.clone(), role.login));
        let organisations = organisations(catalog).into_iter().map(|name| (name.to_string(), true));
        let roles = roles.chain(organisations).collect();
        let defined = catalog.types.values().filter_map(|known| DefinedType::of(known, catalog)).collect();
        let types = CompositeTypes::new(catalog);
        let procedures = catalog.procedures.values().enumerate();
        let mut routines: Vec<Routine> =
            procedures.map(|(number, procedure)| Routine::of_procedure(number, procedure, &types)).collect();
        let first = routines.len();
        let mut aggregates = Vec::new();
        for (number, aggregate) in catalog.aggregates.values().enumerate() {
            let routine = Routine::of_aggregate(first + number, aggregate, &types);
            aggregates.push((routine.oid, UserAggregate::clone(aggregate)));
            routines.push(routine);
        }
        for routine in &mut routines {
            routine.schema_oid = schema_identifier(catalog, &routine.schema);
        }
        let of_system = SCHEMAS.iter().map(|(name, oid)| (name.to_string(), *oid));
        let own = catalog.schemas.keys().map(|name| (name.clone(), schema_identifier(catalog, name)));
        let has_temporary = relations.iter().any(Relation::is_temporary);
        let of_session = has_temporary.then_some((temporary, TEMPORARY));
        let schemas = of_system.chain(own).chain(of_session).collect();
        let members = catalog.roles.by_name.iter().flat_map(|(member, role)| {
            role.member_of.iter().map(move |known| (known.clone(), member.clone()))
        });
        Objects {
            schemas,
            relations,
            types: defined,
            routines,
            aggregates,
            roles,
            members: members.collect(),
            grants: catalog.roles.clone(),
            comments: catalog.comments.iter().map(|(of, text)| (of.clone(), text.clone())).collect(),
        }
    }
}

/// The relations of a catalog, and those of the history; `temporary`: the name of the schema of temporary tables.
fn relations(catalog: &Catalog, temporary: &str) -> Vec<Relation> {
    let placed = |relation: Relation, is_temporary: bool| match is_temporary {
        true => relation.in_temporary(temporary),
        false => relation,
    };
    let of_table = |table: &Arc<Table>| placed(Relation::of_table(table, catalog), table.id.is_temporary());
    let mut relations: Vec<Relation> = catalog.tables.values().map(of_table).collect();
    let (ours, numbers) = (temporary_views(catalog), view_numbers(catalog));
    let of_view = |(view, number): (&Arc<View>, usize)| {
        let relation = match PartitionFacts::of_partition(&view.name, catalog) {
            Some(partition) => Relation::of_partition(number, view, partition, catalog),
            None => Relation::of_view(number, view, catalog),
        };
        placed(relation, ours.contains(&view.name))
    };
    relations.extend(catalog.views.values().zip(numbers).map(of_view));
    let composites = catalog.types.values().filter(|known| known.is_composite());
    relations.extend(composites.map(|known| Relation::of_type(known, catalog)));
    let is_temporary =
        |sequence: &Sequence| sequence.owner.as_ref().is_some_and(|owner| owner.table.is_temporary());
    let numbers = places(catalog.sequences.values().map(|sequence| is_temporary(sequence)), SEQUENCES);
    relations.extend(catalog.sequences.values().zip(numbers).map(|(sequence, number)| {
        placed(Relation::of_sequence(number, sequence, catalog), is_temporary(sequence))
    }));
    relations.extend(RELATIONS.iter().filter(|known| known.is_history()).map(Relation::of_history));
    relations
}

/// Numbers of objects whose object identifiers follow from their places by name: temporary ones come behind `most` others, so
/// that these have the same numbers in every session.
pub(crate) fn places(are_temporary: impl Iterator<Item = bool>, most: usize) -> Vec<usize> {
    let (mut next, mut next_temporary) = (0, most);
    let number = |is_temporary| {
        let next = if is_temporary { &mut next_temporary } else { &mut next };
        *next += 1;
        *next - 1
    };
    are_temporary.map(number).collect()
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
    fn a_sequence_is_named_as_an_object() {
        for (default, shown) in [
            ("nextval('\"ships_id_seq\"')", "nextval('ships_id_seq'::regclass)"),
            ("nextval('\"app\".\"Ships.seq\"')", "nextval('app.\"Ships.seq\"'::regclass)"),
            ("nextval('tickets')", "nextval('tickets'::regclass)"),
            ("nextval('a') + nextval('b')", "nextval('a') + nextval('b')"),
            ("42", "42"),
        ] {
            assert_eq!(shown_default(default), shown);
        }
    }
}
