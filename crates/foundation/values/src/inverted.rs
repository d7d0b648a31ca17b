//! Parts of values, by which inverted indexes find rows: lexemes of documents, elements of arrays, keys and scalars of `jsonb`.
//!
//! A row that matches has one of some parts ([`needed`]); whether a row that has one matches, the condition says.

use crate::functions::{CONTAINS, Function, OVERLAPS};
use std::cmp::Reverse;
use types::text_search::{QueryItem, TsQuery};
use types::{JsonNode, JsonView, Value};

/// The parts of a value, in order, each once.
pub fn parts(value: &Value) -> Vec<Value> {
    let mut parts: Vec<Value> = match value {
        Value::TsVector(vector) => return vector.lexemes().map(|lexeme| Value::text(lexeme.text)).collect(),
        Value::Array(array) => array.values().iter().filter(|value| !value.is_null()).cloned().collect(),
        Value::Jsonb(json) => {
            let mut tokens = Vec::new();
            push_tokens(json.node(), &mut tokens);
            tokens.into_iter().map(Value::text).collect()
        }
        Value::Hstore(store) => store
            .pairs()
            .flat_map(|(key, value)| [key_token(key), pair_token(key, value)])
            .map(Value::text)
            .collect(),
        _ => Vec::new(),
    };
    parts.sort_by(Value::sort_compare);
    parts.dedup_by(|one, other| one.compare(other).is_some_and(std::cmp::Ordering::is_eq));
    parts
}

/// What is asked of a value that an inverted index has the parts of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// `vector @@ query`
    Matches,
    /// `value @> other`
    Contains,
    /// `array && other`
    Overlaps,
    /// `json ? key`, and `json ?| keys`; of an hstore as well
    HasAnyKey,
    /// `json ?& keys`
    HasAllKeys,
}

/// A part, or what parts begin with.
#[derive(Clone, PartialEq, Debug)]
pub struct Needed {
    /// The part.
    pub part: Value,
    /// Parts that begin so count, too.
    pub is_prefix: bool,
}

/// What a call of a function asks of one of its two operands: of the first one, or the second one.
pub fn search_of(function: &'static Function) -> Option<(Search, usize)> {
    if *function == CONTAINS {
        return Some((Search::Contains, 0));
    }
    if *function == OVERLAPS {
        return Some((Search::Overlaps, 0));
    }
    let names = function.names();
    let found = [
        ("ts_match_vq", Search::Matches, 0),
        ("ts_match_qv", Search::Matches, 1),
        ("jsonb_contains", Search::Contains, 0),
        ("jsonb_contained", Search::Contains, 1),
        ("hs_contains", Search::Contains, 0),
        ("hs_contained", Search::Contains, 1),
        ("?", Search::HasAnyKey, 0),
        ("?|", Search::HasAnyKey, 0),
        ("?&", Search::HasAllKeys, 0),
    ];
    let (_, search, place) = found.into_iter().find(|(name, ..)| names.contains(name))?;
    Some((search, place))
}

/// Parts of which a value that is found has at least one; `None`: it may have none of all parts that there are. Nothing is found by none at
/// all.
pub fn needed(search: Search, operand: &Value) -> Option<Vec<Needed>> {
    let whole = |part: &Value| Needed { part: part.clone(), is_prefix: false };
    let text = |text: String| Needed { part: Value::text(text), is_prefix: false };
    match (search, operand) {
        (_, Value::Null) => Some(Vec::new()),
        (Search::Matches, Value::TsQuery(query)) => needed_words(query),
        (Search::Contains, Value::Array(array)) => {
            // NULL is in no array.
            if array.values().iter().any(Value::is_null) {
                return Some(Vec::new());
            }
            array.values().first().map(|first| vec![whole(first)])
        }
        (Search::Overlaps, Value::Array(_)) => Some(parts(operand).iter().map(whole).collect()),
        (Search::Contains, Value::Jsonb(json)) => {
            let mut tokens = Vec::new();
            push_tokens(json.node(), &mut tokens);
            // The longest one is the rarest.
            tokens.into_iter().max_by_key(String::len).map(|token| vec![text(token)])
        }
        (Search::Contains, Value::Hstore(store)) => {
            let tokens = store.pairs().map(|(key, value)| pair_token(key, value));
            tokens.max_by_key(String::len).map(|token| vec![text(token)])
        }
        (Search::HasAnyKey, Value::Text(key)) => Some(vec![text(key_token(key))]),
        (Search::HasAnyKey | Search::HasAllKeys, Value::Array(keys)) => {
            let key = |value: &Value| match value {
                Value::Text(key) => Some(key_token(key)),
                _ => None,
            };
            let tokens = keys.values().iter().filter_map(key);
            match search {
                Search::HasAllKeys => tokens.max_by_key(String::len).map(|token| vec![text(token)]),
                _ => Some(tokens.map(text).collect()),
            }
        }
        _ => None,
    }
}

/// The fewest words of which a document that is found has one: of those that it needs together, the rarest.
fn needed_words(query: &TsQuery) -> Option<Vec<Needed>> {
    if query.is_empty() {
        return Some(Vec::new());
    }
    let mut stack: Vec<Option<Vec<Needed>>> = Vec::new();
    for item in query.items() {
        let needed = match item {
            QueryItem::Operand { text, is_prefix, .. } => {
                Some(vec![Needed { part: Value::text(text.clone()), is_prefix: *is_prefix }])
            }
            QueryItem::Not => {
                stack.pop();
                None
            }
            QueryItem::And | QueryItem::Phrase(_) => {
                let (right, left) = (stack.pop().flatten(), stack.pop().flatten());
                match (left, right) {
                    (Some(left), Some(right)) => Some(rarer(left, right)),
                    (left, right) => left.or(right),
                }
            }
            QueryItem::Or => match (stack.pop().flatten(), stack.pop().flatten()) {
                (Some(right), Some(left)) => Some([left, right].concat()),
                _ => None,
            },
        };
        stack.push(needed);
    }
    stack.pop().flatten()
}

/// Without statistics, few words are rarer than many, whole ones than beginnings, and long ones than short ones.
fn rarer(left: Vec<Needed>, right: Vec<Needed>) -> Vec<Needed> {
    let commonness = |needed: &[Needed]| {
        let length = |one: &Needed| match &one.part {
            Value::Text(text) => text.len(),
            _ => 0,
        };
        let shortest = needed.iter().map(length).min().unwrap_or(0);
        (needed.len(), needed.iter().filter(|one| one.is_prefix).count(), Reverse(shortest))
    };
    if commonness(&right) < commonness(&left) { right } else { left }
}

/// As PostgreSQL's `jsonb_ops`: a key and a string of an array may be asked for alike. A value is nested at most
/// [`types::limits::JSON_NESTING_MAX`] deep.
fn push_tokens(node: JsonNode<'_>, tokens: &mut Vec<String>) {
    match node.view() {
        JsonView::Null => tokens.push("vnull".to_string()),
        JsonView::Boolean(truth) => tokens.push(format!("v{truth}")),
        JsonView::Number(digits) => tokens.push(number_token(digits)),
        // A scalar contains, and is contained, alone and in an array.
        JsonView::String(text) => tokens.push(key_token(text)),
        JsonView::Array(elements) => elements.for_each(|element| push_tokens(element, tokens)),
        JsonView::Object(members) => {
            for (key, value) in members {
                tokens.push(key_token(key));
                match value.view() {
                    JsonView::String(text) => tokens.push(format!("s{text}")),
                    _ => push_tokens(value, tokens),
                }
            }
        }
    }
}

/// A key of an hstore and its value. How long the key is tells where the value begins.
fn pair_token(key: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("p{}:{key}{value}", key.len()),
        None => format!("n{key}"),
    }
}

fn key_token(key: &str) -> String {
    format!("k{key}")
}

/// The same for `1`, `1.0` and `1.00`, which are equal.
fn number_token(digits: &str) -> String {
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    format!("n{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{DataType, parse_value};

    fn of(data_type: DataType, text: &str) -> Value {
        parse_value(text, data_type).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn shown(needed: Option<Vec<Needed>>) -> String {
        let one = |needed: &Needed| match (&needed.part, needed.is_prefix) {
            (Value::Text(text), true) => format!("{text}*"),
            (Value::Text(text), false) => text.to_string(),
            (other, _) => format!("{other:?}"),
        };
        needed.map_or("anything".to_string(), |needed| needed.iter().map(one).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_query_needs_the_fewest_and_rarest_words() {
        for (query, expected) in [
            ("cat", "cat"),
            ("cat & elephant", "elephant"),
            ("cat & ele:*", "cat"),
            ("cat | dog", "cat dog"),
            ("(cat | dog) & fish", "fish"),
            ("(cat | dog) & !fish", "cat dog"),
            ("cat | !dog", "anything"),
            ("!cat", "anything"),
            ("!!cat", "anything"),
            ("a <-> lion", "lion"),
            ("", ""),
        ] {
            let operand = of(DataType::TsQuery, query);
            assert_eq!(shown(needed(Search::Matches, &operand)), expected, "{query}");
        }
        assert_eq!(shown(needed(Search::Matches, &Value::Null)), "");
    }

    #[test]
    fn what_contains_a_value_has_the_part_that_is_needed() {
        let values = [
            r#"{"a": 1, "b": ["x", {"c": null}]}"#,
            r#"{"a": 1.0}"#,
            r#"["x"]"#,
            r#""x""#,
            "{}",
            "[]",
            r#"{"b": "x"}"#,
            r#"[[1]]"#,
            r#"{"a": {"a": true}}"#,
            "1",
            "null",
            r#"{"b": []}"#,
        ];
        let values: Vec<Value> = values.iter().map(|text| of(DataType::Jsonb, text)).collect();
        let version = types::ExecutionVersion::NEWEST;
        let found = crate::functions::resolve("jsonb_contains", &[DataType::Jsonb, DataType::Jsonb], version);
        let contains = found.expect("it is there").expect("it is there").function;
        let mut count = 0;
        for (whole, part) in values.iter().flat_map(|whole| values.iter().map(move |part| (whole, part))) {
            let truth =
                contains.call(&[whole.clone(), part.clone()], DataType::Boolean).expect("it compares");
            if truth != Value::Boolean(true) {
                continue;
            }
            count += 1;
            if let Some(needed) = needed(Search::Contains, part) {
                let has = |needed: &Needed| parts(whole).contains(&needed.part);
                assert!(needed.iter().any(has), "{whole:?} contains {part:?}");
            }
        }
        assert!(count > 20, "{count}");
    }

    #[test]
    fn arrays_have_their_elements() {
        let numbers = DataType::Integer.array().expect("it has arrays");
        assert_eq!(parts(&of(numbers, "{3,1,NULL,3}")), [Value::Integer(1), Value::Integer(3)]);
        assert_eq!(needed(Search::Contains, &of(numbers, "{}")), None);
        assert_eq!(needed(Search::Contains, &of(numbers, "{1,NULL}")), Some(Vec::new()));
        assert_eq!(needed(Search::Overlaps, &of(numbers, "{}")), Some(Vec::new()));
        assert_eq!(needed(Search::Overlaps, &of(numbers, "{2,1}")).map(|needed| needed.len()), Some(2));
    }
}
