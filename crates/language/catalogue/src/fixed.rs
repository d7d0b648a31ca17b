//! Rows of `pg_catalog` that are the same on every ledger, and those of its roles: types with the functions that read and
//! write them, languages, collations, operator classes, the database.

use crate::cell::{Cell, NamedRow};
use crate::objects::{DATABASE_OID, Objects, PG_CATALOG, PLPGSQL, PUBLIC, ROLE, ROLE_OID, SCHEMAS};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use types::{DATABASE, IndexMethod, RangeType};

/// PostgreSQL's types as far as there are values of them, and the functions that `pg_type` names. A line per type:
/// object identifier, name, length, by value, kind, category, preferred, element, array, the functions input, output,
/// receive, send, of modifiers in and out, alignment, storage, collation, and the name in SQL. A line per function: object
/// identifier, name, result, number of arguments, arguments.
const TYPES: &str = include_str!("types.txt");
/// A line per category: its letter, and the words.
const KEYWORDS: &str = include_str!("keywords.txt");

/// Object identifiers of the ledger's roles, which are numbered by name.
const FIRST_ROLE_OID: i32 = 1_300_000_000;
/// `btree`, as in every PostgreSQL.
pub(crate) const BTREE: i32 = 403;
/// `gin`, likewise.
const GIN: i32 = 2742;
const INTERNAL: i32 = 12;
const SQL: i32 = 14;
/// The operator class of a type has this number and that of the type.
const FIRST_OPERATOR_CLASS: i32 = 10_000;

fn number(word: &str) -> Cell {
    word.parse().map_or(Cell::Null, Cell::Integer)
}

fn flag(word: &str) -> Cell {
    Cell::Boolean(word == "true")
}

/// The schema of a type: those of extensions are where PostgreSQL makes them unless somebody says otherwise.
fn schema_of(oid: &str) -> i32 {
    const OF_EXTENSIONS: std::ops::Range<i32> = 15_100..15_104;
    match oid.parse() {
        Ok(oid) if OF_EXTENSIONS.contains(&oid) => PUBLIC,
        _ => PG_CATALOG,
    }
}

/// The words of the lines of one kind.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let matching = TYPES.lines().filter_map(move |line| line.strip_prefix(kind)?.strip_prefix(' '));
    matching.map(|line| line.splitn(19, ' ').collect())
}

/// The names of the types in SQL, by object identifier.
pub(crate) fn type_names() -> impl Iterator<Item = (i32, &'static str)> {
    lines("type").filter_map(|words| Some((words.first()?.parse().ok()?, *words.get(18)?)))
}

/// How PostgreSQL stores values of a type, as `typstorage` and `attstorage` say it. `length`: of one of the ledger's own types.
pub(crate) fn storage(type_oid: i32, length: i16) -> &'static str {
    static KNOWN: LazyLock<BTreeMap<i32, &'static str>> = LazyLock::new(|| {
        lines("type").filter_map(|words| Some((words.first()?.parse().ok()?, *words.get(16)?))).collect()
    });
    KNOWN.get(&type_oid).copied().unwrap_or(if length > 0 { "p" } else { "x" })
}

/// PostgreSQL's types.
pub(crate) fn types() -> Vec<NamedRow> {
    let row = |words: Vec<&'static str>| {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let is_array = word(5) == "A";
        vec![
            ("oid", number(word(0))),
            ("typname", word(1).into()),
            ("typnamespace", schema_of(word(0)).into()),
            ("typowner", ROLE_OID.into()),
            ("typlen", number(word(2))),
            ("typbyval", flag(word(3))),
            ("typtype", word(4).into()),
            ("typcategory", word(5).into()),
            ("typispreferred", flag(word(6))),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typelem", number(word(7))),
            ("typarray", number(word(8))),
            ("typsubscript", if is_array { 6179.into() } else { 0.into() }),
            ("typinput", number(word(9))),
            ("typoutput", number(word(10))),
            ("typreceive", number(word(11))),
            ("typsend", number(word(12))),
            ("typmodin", number(word(13))),
            ("typmodout", number(word(14))),
            ("typalign", word(15).into()),
            ("typstorage", word(16).into()),
            ("typtypmod", Cell::Integer(-1)),
            ("typcollation", number(word(17))),
        ]
    };
    lines("type").map(row).collect()
}

/// The functions that read and write values of PostgreSQL's types.
pub(crate) fn functions() -> Vec<NamedRow> {
    let row = |words: Vec<&'static str>| {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let arguments = words.iter().skip(4).filter_map(|word| word.parse().ok()).collect();
        vec![
            ("oid", number(word(0))),
            ("proname", word(1).into()),
            ("pronamespace", PG_CATALOG.into()),
            ("proowner", ROLE_OID.into()),
            ("prolang", INTERNAL.into()),
            ("procost", 1.into()),
            ("prosupport", "-".into()),
            ("prokind", "f".into()),
            ("proisstrict", true.into()),
            ("provolatile", "i".into()),
            ("proparallel", "s".into()),
            ("prorettype", number(word(2))),
            ("pronargs", number(word(3))),
            ("proargtypes", Cell::Integers(arguments)),
            ("prosrc", word(1).into()),
        ]
    };
    lines("function").map(row).collect()
}

/// The words of SQL.
pub(crate) fn keywords() -> Vec<NamedRow> {
    let mut rows = Vec::new();
    for line in KEYWORDS.lines() {
        let Some((category, words)) = line.split_once(' ') else { continue };
        let description = match category {
            "U" => "unreserved",
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            _ => "reserved",
        };
        rows.extend(words.split(' ').map(|word| {
            vec![
                ("word", Cell::from(word)),
                ("catcode", category.into()),
                ("catdesc", description.into()),
                ("barelabel", true.into()),
                ("baredesc", "can be bare label".into()),
            ]
        }));
    }
    rows
}

pub(crate) fn languages() -> Vec<NamedRow> {
    let row = |(oid, name, trusted): (i32, &str, bool)| {
        vec![
            ("oid", oid.into()),
            ("lanname", name.into()),
            ("lanowner", ROLE_OID.into()),
            ("lanispl", (oid == PLPGSQL).into()),
            ("lanpltrusted", trusted.into()),
        ]
    };
    [(INTERNAL, "internal", false), (SQL, "sql", true), (PLPGSQL, "plpgsql", true)].map(row).into()
}

/// Object identifier of a routine's language.
pub(crate) fn language(name: &str) -> i32 {
    match name {
        "sql" => SQL,
        "internal" => INTERNAL,
        _ => PLPGSQL,
    }
}

/// Object identifier of what an index has of a row.
pub(crate) fn access_method(method: IndexMethod) -> i32 {
    match method {
        IndexMethod::Ordered => BTREE,
        IndexMethod::Inverted => GIN,
    }
}

pub(crate) fn access_methods() -> Vec<NamedRow> {
    let row = |(oid, name, kind): (i32, &str, &str)| {
        vec![("oid", oid.into()), ("amname", name.into()), ("amtype", kind.into())]
    };
    [(2, "heap", "t"), (BTREE, "btree", "i"), (GIN, "gin", "i")].map(row).into()
}

pub(crate) fn collations() -> Vec<NamedRow> {
    let row = |(oid, name, provider): (i32, &str, &str)| {
        let locale: Cell = if provider == "d" { Cell::Null } else { name.into() };
        vec![
            ("oid", oid.into()),
            ("collname", name.into()),
            ("collnamespace", PG_CATALOG.into()),
            ("collowner", ROLE_OID.into()),
            ("collprovider", provider.into()),
            ("collisdeterministic", true.into()),
            ("collencoding", Cell::Integer(-1)),
            ("collcollate", locale.clone()),
            ("collctype", locale),
        ]
    };
    [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")].map(row).into()
}

/// The operator class by which indexes order a type: of its name, and the default of the type.
pub(crate) fn operator_classes() -> Vec<NamedRow> {
    let classes = types().into_iter().filter_map(|row| {
        let (Some((_, Cell::Integer(oid))), Some((_, Cell::Text(name)))) = (row.first(), row.get(1)) else {
            return None;
        };
        // PostgreSQL has one for all types of texts.
        let ordered = !name.starts_with('_') && !name.starts_with("reg") && !name.starts_with("any");
        let class = match name.as_str() {
            "varchar" => "text_ops".to_string(),
            of_multiranges if of_multiranges.contains("multi") => "multirange_ops".to_string(),
            of_ranges if of_ranges.ends_with("range") => "range_ops".to_string(),
            other => format!("{other}_ops"),
        };
        ordered.then(|| {
            vec![
                ("oid", operator_class(*oid as i32).into()),
                ("opcmethod", BTREE.into()),
                ("opcname", class.into()),
                ("opcnamespace", PG_CATALOG.into()),
                ("opcowner", ROLE_OID.into()),
                ("opcintype", Cell::Integer(*oid)),
                ("opcdefault", true.into()),
            ]
        })
    });
    classes.collect()
}

/// The types of ranges.
pub(crate) fn ranges() -> Vec<NamedRow> {
    let row = |range: RangeType| {
        let element = range.element().oid() as i32;
        vec![
            ("rngtypid", (range.range().0 as i32).into()),
            ("rngsubtype", element.into()),
            ("rngmultitypid", (range.multirange().0 as i32).into()),
            ("rngcollation", 0.into()),
            ("rngsubopc", operator_class(element).into()),
            ("rngcanonical", 0.into()),
            ("rngsubdiff", 0.into()),
        ]
    };
    RangeType::ALL.map(row).into()
}

/// Object identifier of the operator class of a type.
pub(crate) fn operator_class(type_oid: i32) -> i32 {
    // No number of ours is as small.
    if type_oid < 10_000 { FIRST_OPERATOR_CLASS + type_oid } else { 0 }
}

pub(crate) fn tablespaces() -> Vec<NamedRow> {
    let row = |(oid, name): (i32, &str)| {
        vec![("oid", oid.into()), ("spcname", name.into()), ("spcowner", ROLE_OID.into())]
    };
    [(1663, "pg_default"), (1664, "pg_global")].map(row).into()
}

/// The ledger, and its schemas, which can be connected to as databases.
pub(crate) fn databases(objects: &Objects) -> Vec<NamedRow> {
    let is_own = |name: &str| !SCHEMAS.iter().any(|(known, _)| *known == name);
    let own = objects.schemas.iter().filter(|(name, _)| is_own(name));
    let own = own.map(|(name, oid)| database(*oid, name));
    std::iter::once(database(DATABASE_OID, DATABASE)).chain(own).collect()
}

fn database(oid: i32, name: &str) -> NamedRow {
    vec![
        ("oid", oid.into()),
        ("datname", name.to_string().into()),
        ("datdba", ROLE_OID.into()),
        ("encoding", 6.into()),
        ("datlocprovider", "c".into()),
        ("datcollate", "C".into()),
        ("datctype", "C.UTF-8".into()),
        ("datallowconn", true.into()),
        ("datconnlimit", Cell::Integer(-1)),
        ("dattablespace", 1663.into()),
    ]
}

/// Names and object identifiers of the roles: the administrator's first.
pub(crate) fn role_oids(objects: &Objects) -> impl Iterator<Item = (i32, &str, bool)> {
    let roles = (0..).zip(&objects.roles);
    let roles = roles.map(|(number, (name, login))| (FIRST_ROLE_OID + number, name.as_str(), *login));
    [(ROLE_OID, ROLE, true)].into_iter().chain(roles)
}

/// Roles as `pg_authid` (`with_replication`: what the view calls the same) and `pg_roles` show them.
pub(crate) fn roles(objects: &Objects, password: Cell) -> Vec<NamedRow> {
    let row = |(oid, name, login): (i32, &str, bool)| {
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
            ("rolpassword", password.clone()),
            ("rolbypassrls", all.into()),
        ]
    };
    role_oids(objects).map(row).collect()
}

/// `pg_user`: roles that may connect.
pub(crate) fn users(objects: &Objects) -> Vec<NamedRow> {
    let row = |(oid, name, _): (i32, &str, bool)| {
        vec![
            ("usename", name.into()),
            ("usesysid", oid.into()),
            ("usecreatedb", false.into()),
            ("usesuper", (oid == ROLE_OID).into()),
            ("passwd", "********".into()),
        ]
    };
    role_oids(objects).filter(|(.., login)| *login).map(row).collect()
}

/// Who is a member of which role.
pub(crate) fn members(objects: &Objects) -> Vec<NamedRow> {
    let oid = |role: &str| role_oids(objects).find(|(_, name, _)| *name == role).map(|(oid, ..)| oid);
    let row = |(role, member): &(String, String)| {
        Some(vec![
            ("roleid", oid(role)?.into()),
            ("member", oid(member)?.into()),
            ("grantor", ROLE_OID.into()),
        ])
    };
    objects.members.iter().filter_map(row).collect()
}
