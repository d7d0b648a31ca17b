//! A function is one entry in one file: nothing else in the workspace knows it by its name, and the documentation
//! lists it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use values::functions::all;

/// Where names stand besides the table, by crate of SQL: where the grammar has a form of its own for a call, and where one
/// call is made of another. A function that is new needs none of these places.
const FORMS: &[(&str, &[&str])] = &[
    // What shapes of queries the catalogue knows.
    (
        "catalogue",
        &["array_to_string", "cardinality", "concat", "format", "quote_ident", "replace", "substr"],
    ),
    // Operators of arrays, and of patterns.
    ("plan", &["array_append", "array_cat", "array_prepend", "SIMILAR TO"]),
    // Functions whose elements must have an equality.
    ("plan", &["array_position", "array_positions", "array_remove", "array_replace"]),
    // Calls with a syntax of their own, with arguments of any types, or that look at the block's time.
    (
        "plan",
        &["btrim", "ceil", "extract", "floor", "ltrim", "overlay", "rtrim", "strpos", "substr", "substring"],
    ),
    (
        "plan",
        &[
            "age",
            "concat",
            "concat_ws",
            "format",
            "lpad",
            "make_interval",
            "quote_literal",
            "rpad",
            "timezone",
        ],
    ),
    // What makes JSON of values of any types, and the functions of its operators.
    (
        "plan",
        &[
            "array_to_json",
            "json_build_array",
            "json_build_object",
            "jsonb_build_array",
            "jsonb_build_object",
            "row_to_json",
            "to_json",
            "to_jsonb",
        ],
    ),
    (
        "plan",
        &[
            "json_object_agg",
            "jsonb_concat",
            "jsonb_contained",
            "jsonb_contains",
            "jsonb_delete",
            "jsonb_object_agg",
        ],
    ),
    // Functions of sets that are made of them, and a loop over slices that asks an array for its bounds.
    ("plan", &["akeys", "array_lower", "array_upper", "avals", "hstore_to_jsonb", "regexp_split_to_array"]),
    // A row may become an hstore.
    ("plan", &["hstore"]),
    // Words that mean something else: a support function of aggregates, sides of a join, CREATE OR REPLACE, DELETE.
    ("plan", &["div", "left", "right"]),
    ("portable", &["delete"]),
    ("syntax", &["delete", "replace"]),
    // Names of extensions.
    ("catalogue", &["hstore"]),
    ("sql", &["hstore", "unaccent"]),
    // The name of a type.
    ("catalogue", &["text"]),
    ("plan", &["text"]),
    ("sql", &["text"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The literals of a source file, without its comments and tests.
fn literals(source: &str) -> BTreeSet<&str> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

/// Words, not the symbols of operators, which stand in the grammar.
fn names() -> BTreeSet<&'static str> {
    let names = all().flat_map(|function| function.names().iter().copied());
    names.filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic())).collect()
}

#[test]
fn the_table_alone_knows_functions_by_their_names() {
    let language = crates().join("language");
    let mut files = Vec::new();
    for member in std::fs::read_dir(&language).expect("the crates of SQL").flatten() {
        sources(&member.path().join("src"), &mut files);
    }
    assert!(files.len() > 100, "the crates of SQL have moved");
    // `array` and `any` are words of many trades.
    let names: BTreeSet<&str> =
        names().into_iter().filter(|name| !["ARRAY", "ANY", "ALL"].contains(name)).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let path = file.strip_prefix(&language).expect("a file of SQL");
        let member = path.iter().next().expect("a crate").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(file).expect("a source");
        let known: Vec<String> =
            literals(&text).intersection(&names).map(|name| (*name).to_string()).collect();
        if !known.is_empty() {
            found.entry(member).or_default().extend(known);
        }
    }
    let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (member, names) in FORMS {
        let names = names.iter().map(|name| (*name).to_string());
        expected.entry((*member).to_string()).or_default().extend(names);
    }
    assert_eq!(found, expected, "a function is an entry of crates/foundation/values/src/functions alone");
}

#[test]
fn the_documentation_lists_every_function() {
    let page = std::fs::read_to_string(crates().join("../docs/sql.md")).expect("docs/sql.md");
    let section = page.split("## Functions and operators").nth(1).expect("a section of functions");
    let section = section.split("\n## ").next().unwrap_or_default();
    let spans: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    let mut listed: BTreeSet<&str> = spans.iter().copied().collect();
    for span in &spans {
        listed.extend(span.split(|c: char| c.is_whitespace() || "(),…[]".contains(c)));
    }
    let all_names: BTreeSet<&str> = all()
        .flat_map(|function| function.names().iter().copied())
        .filter(|name| !name.starts_with('['))
        .collect();
    let missing: Vec<&&str> = all_names.iter().filter(|name| !listed.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/sql.md does not list {missing:?}");

    // Up to the special forms and the aggregates, what looks like a function is one.
    const OTHERS: [&str; 9] =
        ["bytea", "each", "mod", "regexp_split_to_table", "skeys", "svals", "trim", "now()", "VARIADIC"];
    let scalar = section.split("- `CASE`").next().unwrap_or_default();
    for span in scalar.split('`').skip(1).step_by(2) {
        let is_word = !span.is_empty()
            && span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(
            !is_word || all_names.contains(span) || OTHERS.contains(&span),
            "docs/sql.md lists {span}, which is no function"
        );
    }
}
