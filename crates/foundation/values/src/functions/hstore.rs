//! Functions and operators of PostgreSQL's extension hstore.

use crate::functions::entry::Argument::{self, From, OneOf};
use crate::functions::entry::Gives::{ArrayOf, Is};
use crate::functions::entry::{Computed, Function, code};
use DataType::{Boolean, Hstore, Json, Jsonb, Unknown};
use std::slice::from_ref;
use std::sync::Arc;
use types::{
    Array, DataType, Dimension, ElementType, ExecutionVersion, SqlError, SqlState, Value, format_value,
};

const TEXT: DataType = DataType::Text(None);
const V16: ExecutionVersion = ExecutionVersion::V16;

/// A literal is one, too.
const STORE: Argument = From(&[Hstore, Unknown], Hstore);
/// Where a literal may be something else.
const KNOWN: Argument = OneOf(&[Hstore]);
const KEY: Argument = From(&[TEXT, DataType::Char(None), Unknown], TEXT);
const KEYS: Argument =
    From(&[DataType::Array(ElementType::TEXT), Unknown], DataType::Array(ElementType::TEXT));
const KNOWN_KEYS: Argument = From(&[DataType::Array(ElementType::TEXT)], DataType::Array(ElementType::TEXT));

const fn new(
    names: &'static [&'static str],
    list: &'static [Argument],
    gives: DataType,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, list, Is(gives), code).since(V16)
}

const fn texts(
    names: &'static [&'static str],
    list: &'static [Argument],
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, list, ArrayOf(TEXT), code).since(V16)
}

pub(super) static FUNCTIONS: &[Function] = &[
    new(&["->"], &[KNOWN, KEY], TEXT, code!(
        [Value::Hstore(store), Value::Text(key)] => Ok(value_of(store.get(key).flatten())),
    ))
    .shown_as("fetchval")
    .never_fails(),
    new(&["fetchval"], &[STORE, KEY], TEXT, code!(
        [Value::Hstore(store), Value::Text(key)] => Ok(value_of(store.get(key).flatten())),
    ))
    .never_fails(),
    texts(&["->"], &[KNOWN, KNOWN_KEYS], code!(
        [Value::Hstore(store), Value::Array(keys)] => values_of(store, keys),
    ))
    .shown_as("slicearray"),
    texts(&["slice_array"], &[STORE, KEYS], code!(
        [Value::Hstore(store), Value::Array(keys)] => values_of(store, keys),
    )),
    new(&["slice"], &[STORE, KEYS], Hstore, code!(
        [Value::Hstore(store), Value::Array(keys)] => {
            let pairs: Vec<Pair<'_>> = store.pairs().collect();
            let known = keys_of(keys).filter_map(|key| Some((key, find(&pairs, key)?)));
            types::Hstore::new(known).map(Value::Hstore)
        },
    )),
    new(&["?"], &[KNOWN, KEY], Boolean, code!(
        [Value::Hstore(store), Value::Text(key)] => Ok(Value::Boolean(store.get(key).is_some())),
    ))
    .shown_as("exist")
    .never_fails(),
    new(&["exist", "isexists"], &[STORE, KEY], Boolean, code!(
        [Value::Hstore(store), Value::Text(key)] => Ok(Value::Boolean(store.get(key).is_some())),
    ))
    .never_fails(),
    new(&["defined", "isdefined"], &[STORE, KEY], Boolean, code!(
        [Value::Hstore(store), Value::Text(key)] => Ok(Value::Boolean(store.get(key).flatten().is_some())),
    ))
    .never_fails(),
    new(&["?|"], &[KNOWN, KEYS], Boolean, |values| has_keys(values, false)).shown_as("existsany"),
    new(&["exists_any"], &[STORE, KEYS], Boolean, |values| has_keys(values, false)),
    new(&["?&"], &[KNOWN, KEYS], Boolean, |values| has_keys(values, true)).shown_as("existsall"),
    new(&["exists_all"], &[STORE, KEYS], Boolean, |values| has_keys(values, true)),
    new(&["@>", "hs_contains"], &[STORE, STORE], Boolean, code!(
        [Value::Hstore(whole), Value::Hstore(part)] => Ok(Value::Boolean(contains(whole, part))),
    ))
    .when(|types| types.contains(&Hstore))
    .shown_as("hscontains")
    .never_fails(),
    new(&["<@", "hs_contained"], &[STORE, STORE], Boolean, code!(
        [Value::Hstore(part), Value::Hstore(whole)] => Ok(Value::Boolean(contains(whole, part))),
    ))
    .when(|types| types.contains(&Hstore))
    .shown_as("hscontained")
    .never_fails(),
    new(&["||", "hs_concat"], &[STORE, STORE], Hstore, code!(
        [Value::Hstore(left), Value::Hstore(right)] => joined(left, right),
    ))
    .when(|types| types.contains(&Hstore))
    .shown_as("hsconcat"),
    // PostgreSQL takes a literal behind an operator for what stands in front of it, and that of a call for a text.
    new(&["-"], &[STORE, STORE], Hstore, without).when(|types| types.contains(&Hstore)).shown_as("delete"),
    new(&["-", "delete"], &[KNOWN, KNOWN_KEYS], Hstore, without).shown_as("delete"),
    new(&["-"], &[KNOWN, From(&[TEXT, DataType::Char(None)], TEXT)], Hstore, without).shown_as("delete"),
    new(&["delete"], &[STORE, KEY], Hstore, without),
    new(&["delete"], &[STORE, KNOWN], Hstore, without),
    texts(&["akeys"], &[STORE], code!(
        [Value::Hstore(store)] => array(store.pairs().map(|(key, _)| Value::text(key))),
    )),
    texts(&["avals"], &[STORE], code!(
        [Value::Hstore(store)] => array(store.pairs().map(|(_, value)| value_of(value))),
    )),
    texts(&["hstore_to_array"], &[STORE], code!(
        [Value::Hstore(store)] => {
            array(store.pairs().flat_map(|(key, value)| [Value::text(key), value_of(value)]))
        },
    )),
    texts(&["hstore_to_matrix"], &[STORE], code!(
        [Value::Hstore(store)] => {
            let values: Vec<Value> =
                store.pairs().flat_map(|(key, value)| [Value::text(key), value_of(value)]).collect();
            let dimensions = [Dimension::of(values.len() / 2), Dimension::of(2)];
            Ok(Value::Array(Arc::new(Array::shaped(ElementType::TEXT, &dimensions, values)?)))
        },
    )),
    new(&["hstore_to_json"], &[STORE], Json, code!(
        [Value::Hstore(store)] => store.to_json(false).map(|json| Value::Json(json.into())),
    )),
    new(&["hstore_to_json_loose"], &[STORE], Json, code!(
        [Value::Hstore(store)] => store.to_json(true).map(|json| Value::Json(json.into())),
    )),
    new(&["hstore_to_jsonb"], &[STORE], Jsonb, code!(
        [Value::Hstore(store)] => types::Jsonb::parse(&store.to_json(false)?).map(Value::Jsonb),
    )),
    new(&["hstore_to_jsonb_loose"], &[STORE], Jsonb, code!(
        [Value::Hstore(store)] => types::Jsonb::parse(&store.to_json(true)?).map(Value::Jsonb),
    )),
    new(&["hstore", "tconvert"], &[KEY, KEY], Hstore, |values| match values {
        [Value::Text(key), value] => types::Hstore::of_sorted([(&**key, text_of(value))]).map(Value::Hstore),
        _ => Ok(Value::Null),
    })
    .when(|types| types.iter().all(|one| one.element().is_none()))
    .sees_null(),
    new(&["hstore"], &[KEYS, KEYS], Hstore, |values| match values {
        [Value::Array(keys), Value::Array(values)] => {
            if keys.values().len() != values.values().len() {
                return Err(SqlError::new(SqlState(*b"2202E"), "arrays must have same bounds"));
            }
            types::Hstore::of_values(keys.values().iter().zip(values.values())).map(Value::Hstore)
        }
        [Value::Array(keys), _] => {
            types::Hstore::of_values(keys.values().iter().map(|key| (key, &Value::Null))).map(Value::Hstore)
        }
        _ => Ok(Value::Null),
    })
    .sees_null(),
    new(&["hstore"], &[KNOWN_KEYS], Hstore, code!(
        [Value::Array(pairs)] => types::Hstore::of_array(pairs).map(Value::Hstore),
    )),
];

pub(super) static FORMS: &[&[Function]] = &[from_ref(&HSTORE_ASSIGN), from_ref(&HSTORE_OF_ROW)];

/// The value with another one for a key: `store['key'] = value`. It may be NULL so far, and the value may be NULL.
pub static HSTORE_ASSIGN: Function = Function::form(&["[] ="], |values| match values {
    [store, Value::Text(key), value] => {
        let pair = types::Hstore::of_sorted([(&**key, text_of(value))])?;
        match store {
            Value::Hstore(store) => joined(store, &pair),
            _ => Ok(Value::Hstore(pair)),
        }
    }
    _ => {
        let message = "hstore subscript in assignment must not be null";
        Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
    }
})
.since(V16)
.sees_null();

/// `hstore(record)`: the names of the fields, and the row.
pub static HSTORE_OF_ROW: Function = Function::form(&["hstore"], |values| match values {
    [Value::Array(names), row] => {
        let fields = match row {
            Value::Composite(row) => row.values(),
            _ => &[],
        };
        let written: Vec<Option<String>> = fields.iter().map(format_value).collect();
        let pairs = names.values().iter().enumerate().filter_map(|(place, name)| {
            Some((text_of(name)?, written.get(place).and_then(Option::as_deref)))
        });
        types::Hstore::new(pairs).map(Value::Hstore)
    }
    _ => Ok(Value::Null),
})
.since(V16)
.stable()
.sees_null()
.shown_as("hstore");

type Pair<'a> = (&'a str, Option<&'a str>);

/// The value of a key among pairs in order.
fn find<'a>(pairs: &[Pair<'a>], key: &str) -> Option<Option<&'a str>> {
    let place = pairs.binary_search_by(|(known, _)| {
        known.len().cmp(&key.len()).then_with(|| known.as_bytes().cmp(key.as_bytes()))
    });
    place.ok().map(|place| pairs[place].1)
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn value_of(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::text)
}

/// The keys in an array that are not NULL.
fn keys_of(keys: &Array) -> impl Iterator<Item = &str> {
    keys.values().iter().filter_map(text_of)
}

fn array(values: impl Iterator<Item = Value>) -> Computed {
    Ok(Value::Array(Arc::new(Array::new(ElementType::TEXT, values.collect())?)))
}

fn values_of(store: &types::Hstore, keys: &Array) -> Computed {
    let pairs: Vec<Pair<'_>> = store.pairs().collect();
    array(keys.values().iter().map(|key| value_of(text_of(key).and_then(|key| find(&pairs, key)).flatten())))
}

fn has_keys(values: &[Value], all: bool) -> Computed {
    let [Value::Hstore(store), Value::Array(keys)] = values else {
        return Err(crate::functions::entry::misplaced(values));
    };
    let pairs: Vec<Pair<'_>> = store.pairs().collect();
    let mut has = keys_of(keys).map(|key| find(&pairs, key).is_some());
    Ok(Value::Boolean(if all { has.all(|has| has) } else { has.any(|has| has) }))
}

fn contains(whole: &types::Hstore, part: &types::Hstore) -> bool {
    let pairs: Vec<Pair<'_>> = whole.pairs().collect();
    part.pairs().all(|(key, value)| find(&pairs, key) == Some(value))
}

/// The first one without a key, some keys, or the pairs that another one has, too.
fn without(values: &[Value]) -> Computed {
    let [Value::Hstore(store), other] = values else {
        return Err(crate::functions::entry::misplaced(values));
    };
    let rest = match other {
        Value::Hstore(other) => {
            let others: Vec<Pair<'_>> = other.pairs().collect();
            types::Hstore::of_sorted(store.pairs().filter(|(key, value)| find(&others, key) != Some(*value)))
        }
        Value::Array(keys) => {
            let mut keys: Vec<&str> = keys_of(keys).collect();
            keys.sort_unstable();
            types::Hstore::of_sorted(store.pairs().filter(|(key, _)| keys.binary_search(key).is_err()))
        }
        key => types::Hstore::of_sorted(store.pairs().filter(|(known, _)| text_of(key) != Some(*known))),
    };
    rest.map(Value::Hstore)
}

/// Both; the values of the second one count.
fn joined(left: &types::Hstore, right: &types::Hstore) -> Computed {
    types::Hstore::new(right.pairs().chain(left.pairs())).map(Value::Hstore)
}
