//! Queries find the same rows with inverted indexes and without, whatever has happened to the rows.

mod support;

use proptest::prelude::*;
use support::{Database, texts};

const TABLE: &str = "CREATE TABLE notes (id integer PRIMARY KEY, words tsvector, tags text[], facts jsonb)";
const INDEXES: &str = "CREATE INDEX ON notes USING gin (words); CREATE INDEX ON notes USING gin (tags); \
    CREATE INDEX ON notes USING gin (facts); CREATE INDEX ON notes USING gin (to_tsvector('english', facts)) WHERE id % 2 = 0";

fn word() -> impl Strategy<Value = String> {
    // Long words have the same entry where their first bytes are the same.
    let long = (0..3_u8).prop_map(|last| format!("{}{last}", "l".repeat(600)));
    prop_oneof![8 => "(a|ab|abc|b|c|cat|ü)", 1 => long]
}

fn words() -> impl Strategy<Value = Option<String>> {
    let some = prop::collection::vec((word(), 0..4_u8), 0..5).prop_map(|words| {
        let word = |(word, place): (String, u8)| if place == 0 { word } else { format!("{word}:{place}") };
        Some(words.into_iter().map(word).collect::<Vec<_>>().join(" "))
    });
    prop_oneof![9 => some, 1 => Just(None)]
}

fn tags() -> impl Strategy<Value = Option<String>> {
    let one = prop_oneof![6 => word(), 1 => Just("NULL".to_string())];
    let some = prop::collection::vec(one, 0..4).prop_map(|tags| Some(format!("{{{}}}", tags.join(","))));
    prop_oneof![9 => some, 1 => Just(None)]
}

fn facts() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        word().prop_map(|word| format!("\"{word}\"")),
        prop::sample::select(vec!["1", "1.0", "true", "null"]).prop_map(String::from)
    ];
    scalar.prop_recursive(3, 8, 3, |inner| {
        let member = (word(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\": {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(|all| format!("[{}]", all.join(", "))),
            prop::collection::vec(member, 0..3).prop_map(|all| format!("{{{}}}", all.join(", "))),
        ]
    })
}

fn search() -> impl Strategy<Value = String> {
    let leaf =
        (word(), any::<bool>()).prop_map(|(word, prefix)| if prefix { format!("{word}:*") } else { word });
    leaf.prop_recursive(3, 6, 2, |part| {
        let operator = prop::sample::select(vec!["&", "|", "<->"]);
        prop_oneof![
            part.clone().prop_map(|part| format!("!({part})")),
            (part.clone(), operator, part)
                .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
        ]
    })
}

fn quoted(text: Option<String>) -> String {
    text.map_or("NULL".to_string(), |text| format!("'{text}'"))
}

/// A change of a few rows.
fn change() -> impl Strategy<Value = String> {
    let row = (0..9_u8, words(), tags(), facts());
    prop_oneof![
        4 => row.prop_map(|(id, words, tags, facts)| format!(
            "INSERT INTO notes VALUES ({id}, {}, {}, '{facts}') ON CONFLICT (id) DO UPDATE SET words = excluded.words, facts = excluded.facts",
            quoted(words), quoted(tags)
        )),
        1 => (0..9_u8).prop_map(|id| format!("DELETE FROM notes WHERE id = {id}")),
        1 => (0..9_u8, 0..9_u8).prop_map(|(from, to)| format!(
            "UPDATE notes SET id = {to} WHERE id = {from} AND NOT EXISTS (SELECT FROM notes WHERE id = {to})"
        )),
        1 => (search(), words()).prop_map(|(search, words)| format!("UPDATE notes SET words = {} WHERE words @@ '{search}'", quoted(words))),
        1 => tags().prop_map(|tags| format!("DELETE FROM notes WHERE tags @> {}", quoted(tags))),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => search().prop_map(|search| format!("words @@ '{search}'")),
        1 => search().prop_map(|search| format!("id % 2 = 0 AND to_tsvector('english', facts) @@ '{search}'")),
        1 => search().prop_map(|search| format!("words @@ (SELECT '{search}'::tsquery)")),
        1 => tags().prop_map(|tags| format!("tags @> {}", quoted(tags))),
        1 => tags().prop_map(|tags| format!("tags && {}", quoted(tags))),
        2 => facts().prop_map(|facts| format!("facts @> '{facts}'")),
        1 => word().prop_map(|word| format!("facts ? '{word}'")),
        1 => (word(), word()).prop_map(|(one, other)| format!("facts ?| '{{{one},{other}}}'")),
        1 => (word(), word()).prop_map(|(one, other)| format!("facts ?& '{{{one},{other}}}'")),
    ]
}

fn found(database: &mut Database, condition: &str) -> Vec<Vec<String>> {
    let results = database.run(&format!("SELECT id FROM notes WHERE {condition} ORDER BY id"));
    let results = results.unwrap_or_else(|error| panic!("{condition}: {error}"));
    texts(results.last().expect("a result"))
}

proptest! {
    #[test]
    fn rows_are_found_alike(
        before in prop::collection::vec(change(), 0..8),
        after in prop::collection::vec(change(), 1..16),
        conditions in prop::collection::vec(condition(), 8),
    ) {
        let (mut plain, mut indexed) = (Database::default(), Database::default());
        for database in [&mut plain, &mut indexed] {
            database.run(TABLE).expect("created");
        }
        for change in &before {
            prop_assert_eq!(plain.run(change).is_ok(), indexed.run(change).is_ok());
        }
        // Of some rows the entries are made later than the rows.
        indexed.run(INDEXES).expect("created");
        for change in &after {
            let (one, other) = (plain.run(change), indexed.run(change));
            prop_assert_eq!(one.is_ok(), other.is_ok(), "{}: {:?} {:?}", change, one.err(), other.err());
        }
        for condition in &conditions {
            prop_assert_eq!(found(&mut plain, condition), found(&mut indexed, condition), "{}", condition);
        }
    }
}

#[test]
fn an_inverted_index_serves_a_query() {
    let mut database = Database::default();
    database.run(TABLE).expect("created");
    database.run(INDEXES).expect("created");
    let mut explained = |condition: &str| {
        let results =
            database.run(&format!("EXPLAIN SELECT id FROM notes WHERE {condition}")).expect("explained");
        texts(results.last().expect("a result")).concat().join("\n")
    };
    for (condition, index) in [
        ("words @@ 'cat'", "parts in the index notes_words_idx"),
        ("to_tsquery('english', 'cats') @@ words", "parts in the index notes_words_idx"),
        ("tags @> '{a}'", "parts in the index notes_tags_idx"),
        ("facts @> '{\"a\": 1}'", "parts in the index notes_facts_idx"),
        ("id % 2 = 0 AND to_tsvector('english', facts) @@ 'cat'", "parts in the index notes_to_tsvector_idx"),
    ] {
        let explained = explained(condition);
        assert!(explained.contains(index), "{condition}: {explained}");
    }
    for condition in [
        "words @@ words::text::tsquery",
        "to_tsvector('english', facts) @@ 'cat'",
        "id = 1 AND words @@ 'cat'",
        "tags <@ '{a}'",
    ] {
        let explained = explained(condition);
        assert!(!explained.contains("parts in"), "{condition}: {explained}");
    }
}
