//! Schemas, which relations, routines and types stand in, and how their names are found.
//!
//! Everything that has a schema stands in the catalog under one name: `t` in the schema `public`, `s.t` in another one. No
//! name has a dot in itself, so that this says everything, and sorts all of a schema together.

use crate::{Catalog, SqlError, SqlState, TableId};
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;
use std::sync::Arc;

/// The schema that every ledger has.
pub const PUBLIC_SCHEMA: &str = "public";

/// Name of the database that every session is connected to, whatever it asked for.
pub const DATABASE: &str = "entente";

/// A schema other than `public`.
///
/// ```text
/// encoding: 0 | 1 ‖ owner | 2 ‖ members        (the first two as before there were members)
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Schema {
    /// The role of AUTHORIZATION, which may use it.
    pub owner: Option<String>,
    /// Who alone holds its rows, where these are not everybody's.
    pub members: Option<Arc<SchemaMembers>>,
}

/// The members of a schema: the organisations that hold its rows. All others see commitments.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SchemaMembers {
    /// Tells it from all others of the ledger, also from an earlier one of its name.
    pub number: u32,
    /// Height of the block that has created it.
    pub since: u64,
    /// Height of the block in which a member has come or left last; that of its creation where nobody has.
    pub changed: u64,
    /// Positions in the charter, ascending.
    pub organisations: Vec<u16>,
}

impl SchemaMembers {
    /// So many members are enough to attest what all of them come to: ordering has fixed the input, so honest ones say the same,
    /// and one of so many is honest where fewer than half are not.
    pub fn quorum(&self) -> usize {
        self.organisations.len() / 2 + 1
    }

    /// Whether an organisation is one.
    pub fn has(&self, organisation: u16) -> bool {
        self.organisations.binary_search(&organisation).is_ok()
    }

    /// The first number of its tables and indexes, in its own catalog: at no member has anything of a schema the number of something
    /// else.
    pub fn first_table(&self) -> u32 {
        SchemaMembers::TABLES_FROM + self.number * SchemaMembers::TABLES_EACH
    }

    /// The same for whichever schema of this kind has a table of that number.
    pub fn first_table_of(number: u32) -> u32 {
        number - (number - SchemaMembers::TABLES_FROM) % SchemaMembers::TABLES_EACH
    }

    /// Whether a table, or what an index of it has, is this schema's.
    pub fn has_table(&self, table: TableId) -> bool {
        let number = table.number();
        let in_range =
            number >= self.first_table() && number - self.first_table() < SchemaMembers::TABLES_EACH;
        // The very last number is nobody's.
        in_range && table != TableId::ADVISORY_LOCKS
    }

    /// Whether a table stands in any schema with members.
    pub fn has_numbers_of(table: TableId) -> bool {
        (SchemaMembers::TABLES_FROM..TableId::NUMBERS_MAX).contains(&table.number())
    }

    /// Schemas with members that a ledger may have in its life.
    pub const NUMBERS_MAX: u32 = SchemaMembers::TABLES_FROM / SchemaMembers::TABLES_EACH;
    /// The number of the first table of the first such schema.
    pub const TABLES_FROM: u32 = TableId::NUMBERS_MAX / 2;
    /// Tables and indexes that such a schema may have in its life.
    pub const TABLES_EACH: u32 = 1 << 12;
}

impl BorshSerialize for Schema {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        match (&self.members, &self.owner) {
            (Some(members), _) => (2_u8, members.as_ref()).serialize(writer),
            (None, Some(owner)) => (1_u8, owner).serialize(writer),
            (None, None) => 0_u8.serialize(writer),
        }
    }
}

impl BorshDeserialize for Schema {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Schema> {
        match u8::deserialize_reader(reader)? {
            0 => Ok(Schema::default()),
            1 => Ok(Schema { owner: Some(String::deserialize_reader(reader)?), members: None }),
            2 => Ok(Schema {
                owner: None,
                members: Some(Arc::new(SchemaMembers::deserialize_reader(reader)?)),
            }),
            found => {
                let message = format!("expected a schema's kind, 0 to 2, found {found}");
                Err(borsh::io::Error::new(borsh::io::ErrorKind::InvalidData, message))
            }
        }
    }
}

/// The name under which the catalog has an object of a schema.
pub fn catalog_name(schema: &str, object: &str) -> String {
    match schema {
        PUBLIC_SCHEMA => object.to_string(),
        _ => format!("{schema}.{object}"),
    }
}

/// Schema and object of a name in the catalog.
pub fn split_catalog_name(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((PUBLIC_SCHEMA, name))
}

/// The schema of a name in the catalog.
pub fn schema_of(name: &str) -> &str {
    split_catalog_name(name).0
}

/// The name of an object without its schema, as most errors show it.
pub fn object_name(name: &str) -> &str {
    split_catalog_name(name).1
}

/// What stands in front of a name that nothing has: no object of a ledger is in that schema.
const MISSING: &str = "pg_catalog.";

/// A name that was looked for and not found as it was given.
pub fn as_given(name: &str) -> &str {
    name.strip_prefix(MISSING).unwrap_or(name)
}

/// A name in the catalog with its schema and in quotes where it needs them, as SQL can be given it whatever the search path.
pub fn quoted_catalog_name(name: &str) -> String {
    let (schema, object) = split_catalog_name(name);
    format!("{}.{}", quoted(schema), quoted(object))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The schemas in which names without one are looked for, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct SearchPath(Arc<[String]>);

impl Default for SearchPath {
    /// `public`: how the names are found that the catalog itself has in texts.
    fn default() -> SearchPath {
        SearchPath([PUBLIC_SCHEMA.to_string()].into())
    }
}

impl SearchPath {
    /// Schemas that one may have.
    pub const SCHEMAS_MAX: usize = 32;

    /// Of these schemas, whether they are there or not. None of what belongs to the system: that is found first anyway.
    ///
    /// # Errors
    /// `54000` for more than [`SearchPath::SCHEMAS_MAX`].
    pub fn new(schemas: impl IntoIterator<Item = String>) -> Result<SearchPath, SqlError> {
        let mut path: Vec<String> = Vec::new();
        for schema in schemas {
            if schema != "pg_catalog" && schema != "pg_temp" && !schema.is_empty() && !path.contains(&schema)
            {
                path.push(schema);
            }
        }
        if path.len() > SearchPath::SCHEMAS_MAX {
            let message =
                format!("a search path has at most {} schemas (SCHEMAS_MAX)", SearchPath::SCHEMAS_MAX);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(SearchPath(path.into()))
    }

    /// In order.
    pub fn schemas(&self) -> &[String] {
        &self.0
    }

    /// Whether names without a schema are the names in the catalog.
    pub fn is_default(&self) -> bool {
        matches!(self.schemas(), [only] if only == PUBLIC_SCHEMA)
    }

    /// The name in the catalog of what SQL calls `name`, with a schema in front or without; `None` where nothing is there.
    pub fn find(&self, name: &str, is_there: impl Fn(&str) -> bool) -> Option<String> {
        if let Some((schema, object)) = name.split_once('.') {
            let found = catalog_name(schema, object);
            return is_there(&found).then_some(found);
        }
        self.0.iter().map(|schema| catalog_name(schema, name)).find(|found| is_there(found))
    }

    /// As [`SearchPath::find`]; where nothing is there, a name that nothing has, by which what looks for it is told so.
    pub fn find_or_missing(&self, name: &str, is_there: impl Fn(&str) -> bool) -> String {
        if let Some(found) = self.find(name, &is_there) {
            return found;
        }
        match is_there(name) {
            // It is in `public`, where nobody looks.
            true => format!("{MISSING}{name}"),
            false => name.to_string(),
        }
    }

    /// The name in the catalog that a new object gets.
    ///
    /// # Errors
    /// `3F000` where there is no such schema, or none of the path.
    pub fn name_new(&self, catalog: &Catalog, name: &str) -> Result<String, SqlError> {
        if let Some((schema, object)) = name.split_once('.') {
            catalog.check_schema(schema)?;
            return Ok(catalog_name(schema, object));
        }
        let Some(schema) = self.current(catalog) else {
            return Err(SqlError::new(SqlState(*b"3F000"), "no schema has been selected to create in"));
        };
        Ok(catalog_name(schema, name))
    }

    /// The schemas of the path that are there.
    pub fn known(&self, catalog: &Catalog) -> Vec<String> {
        self.0.iter().filter(|schema| catalog.has_schema(schema)).cloned().collect()
    }

    /// The first schema of the path that is there: where new objects go.
    pub fn current(&self, catalog: &Catalog) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|schema| catalog.has_schema(schema))
    }
}

impl fmt::Display for SearchPath {
    /// As in `SET search_path TO …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("''");
        }
        let schemas: Vec<String> = self.0.iter().map(|schema| quoted(schema)).collect();
        f.write_str(&schemas.join(", "))
    }
}

impl Catalog {
    /// Whether there is a schema of this name.
    pub fn has_schema(&self, name: &str) -> bool {
        name == PUBLIC_SCHEMA || self.schemas.contains_key(name)
    }

    /// Refuses the name of a schema that is not there.
    ///
    /// # Errors
    /// `3F000`
    pub fn check_schema(&self, name: &str) -> Result<(), SqlError> {
        if self.has_schema(name) {
            return Ok(());
        }
        Err(SqlError::new(SqlState(*b"3F000"), format!("schema \"{name}\" does not exist")))
    }

    /// Whether a table, a view or a sequence has this name in the catalog.
    pub fn has_relation(&self, name: &str) -> bool {
        self.tables.contains_key(name) || self.views.contains_key(name) || self.sequences.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_without_members_are_encoded_as_before_there_were_any() {
        let schema = |owner: Option<&str>, members| Schema { owner: owner.map(str::to_string), members };
        assert_eq!(crate::encode(&schema(None, None)), crate::encode(&None::<String>));
        assert_eq!(crate::encode(&schema(Some("ada"), None)), crate::encode(&Some("ada".to_string())));
        let members = SchemaMembers { number: 3, since: 70, changed: 75, organisations: vec![0, 2, 5] };
        assert_eq!((members.quorum(), members.has(2), members.has(1)), (2, true, false));
        for schema in [schema(None, None), schema(Some("ada"), None), schema(None, Some(Arc::new(members)))] {
            let bytes = crate::encode(&schema);
            assert_eq!(crate::decode_exactly::<Schema>(&bytes).expect("it round-trips"), schema);
            assert!(
                (0..bytes.len()).all(|length| crate::decode_exactly::<Schema>(&bytes[..length]).is_err())
            );
        }
        assert!(crate::decode_exactly::<Schema>(&[3]).is_err());
    }

    #[test]
    fn tables_of_a_schema_have_numbers_that_nothing_else_has() {
        let members = |number| SchemaMembers { number, since: 1, changed: 1, organisations: vec![0] };
        let (one, next) = (members(6), members(7));
        let last = next.first_table() - 1;
        for table in [one.first_table(), last] {
            let rows = [0, TableId::FIRST_UNIQUE.0, TableId::FIRST_INDEX.0].map(|bit| TableId(bit | table));
            assert!(rows.iter().all(|rows| one.has_table(*rows) && !next.has_table(*rows)), "{table}");
            assert_eq!(SchemaMembers::first_table_of(table), one.first_table());
        }
        assert!(!one.has_table(TableId(1)) && !one.has_table(TableId::FIRST_TEMPORARY));
        let last = members(SchemaMembers::NUMBERS_MAX - 1);
        assert_eq!(last.first_table() + SchemaMembers::TABLES_EACH, TableId::NUMBERS_MAX);
        assert!(!last.has_table(TableId::ADVISORY_LOCKS), "they are of the ledger");
    }
    use crate::{decode_exactly, encode};

    fn path(schemas: &[&str]) -> SearchPath {
        SearchPath::new(schemas.iter().map(|schema| schema.to_string())).expect("a short path")
    }

    #[test]
    fn names_are_found_in_the_order_of_the_path() {
        let there = ["t", "s.t", "s.u", "r.v"];
        let find = |path: &SearchPath, name: &str| path.find(name, |found| there.contains(&found));
        let path_of_both = path(&["missing", "s", "public"]);
        assert_eq!(find(&path_of_both, "t").as_deref(), Some("s.t"));
        assert_eq!(find(&path_of_both, "public.t").as_deref(), Some("t"));
        assert_eq!(find(&path_of_both, "v"), None);
        assert_eq!(find(&path_of_both, "r.v").as_deref(), Some("r.v"));
        assert_eq!(find(&SearchPath::default(), "t").as_deref(), Some("t"));
        assert_eq!(find(&path(&[]), "t"), None);
        let missing = |path: &SearchPath, name| path.find_or_missing(name, |found| there.contains(&found));
        assert_eq!(missing(&path(&[]), "t"), "pg_catalog.t");
        assert_eq!(as_given(&missing(&path(&["r"]), "t")), "t");
        assert_eq!(missing(&path(&["r"]), "x"), "x");
    }

    #[test]
    fn new_names_go_to_the_first_schema_that_is_there() {
        let mut catalog = Catalog::default();
        catalog.schemas.insert("s".to_string(), Schema::default());
        assert_eq!(path(&["x", "s", "public"]).name_new(&catalog, "t").expect("there"), "s.t");
        assert_eq!(path(&["s"]).name_new(&catalog, "public.t").expect("there"), "t");
        let error = path(&["s"]).name_new(&catalog, "x.t").expect_err("no such schema");
        assert_eq!((error.state.0, error.message.as_str()), (*b"3F000", "schema \"x\" does not exist"));
        let error = path(&["x"]).name_new(&catalog, "t").expect_err("none is there");
        assert_eq!(error.message, "no schema has been selected to create in");
        assert_eq!(path(&["x", "s"]).current(&catalog), Some("s"));
    }

    #[test]
    fn paths_are_encoded_in_one_way_and_written_as_sql() {
        let written = path(&["a", "pg_catalog", "B \"c\"", "a"]);
        assert_eq!(written.to_string(), "\"a\", \"B \"\"c\"\"\"");
        assert_eq!(path(&[]).to_string(), "''");
        assert_eq!(decode_exactly::<SearchPath>(&encode(&written)).expect("canonical"), written);
        let bytes = encode(&written);
        for length in 0..bytes.len() {
            assert!(decode_exactly::<SearchPath>(&bytes[..length]).is_err());
        }
        assert!(SearchPath::new((0..33).map(|number| number.to_string())).is_err());
        assert!(SearchPath::default().is_default() && !path(&["public", "s"]).is_default());
    }

    #[test]
    fn names_in_the_catalog_have_their_schema_in_front() {
        assert_eq!(split_catalog_name(&catalog_name("s", "t")), ("s", "t"));
        assert_eq!(split_catalog_name(&catalog_name("public", "t")), ("public", "t"));
        assert_eq!((schema_of("s.t"), object_name("s.t"), object_name("t")), ("s", "t", "t"));
        assert_eq!(quoted_catalog_name("T"), "\"public\".\"T\"");
    }
}
