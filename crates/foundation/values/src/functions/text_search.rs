//! Functions and operators of full text search.

use crate::functions::entry::Argument::{self, From, OneOf, To};
use crate::functions::entry::Gives::{ArrayOf, Is};
use crate::functions::entry::{Computed, Function, code, free};
use crate::text_search::{
    HeadlineOptions, Together, edit, headline, json_texts, lexed, matches, query_of_text, rank,
    rank_by_covers, usual_weights, vector_of_text, vector_of_texts, weights, with_json_texts,
};
use DataType::{Boolean, Integer, Json, Jsonb, Real, TsQuery, TsVector, Unknown};
use std::sync::Arc;
use types::session_format::session_format;
use types::text_search::{Configuration, QueryItem, QuerySyntax, Weight, distance_out_of_range};
use types::{Array, DataType, ElementType, ExecutionVersion, SqlError, SqlState, Value};

const TEXT: DataType = DataType::Text(None);
const V15: ExecutionVersion = ExecutionVersion::V15;

const DOCUMENT: Argument = From(&[TsVector, Unknown], TsVector);
const QUERY: Argument = From(&[TsQuery, Unknown], TsQuery);
const LITERAL_OR_TEXT: Argument = From(&[TEXT, DataType::Char(None), Unknown], TEXT);
const CONFIGURATION: Argument = LITERAL_OR_TEXT;
const REALS: Argument = To(DataType::Array(ElementType::REAL));
const TEXTS: Argument = To(DataType::Array(ElementType::TEXT));

/// Charges for itself, while it works.
const fn new(
    names: &'static [&'static str],
    list: &'static [Argument],
    gives: DataType,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, list, Is(gives), code).costs(free).since(V15)
}

/// The same that goes over its arguments once.
const fn once(
    names: &'static [&'static str],
    list: &'static [Argument],
    gives: DataType,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, list, Is(gives), code).since(V15)
}

pub(super) static DOCUMENTS: &[Function] = &[
    new(&["to_tsvector"], &[CONFIGURATION, LITERAL_OR_TEXT], TsVector, code!(
        [Value::Text(name), Value::Text(text)] => document(Configuration::named(name)?, text),
    )),
    new(&["to_tsvector"], &[LITERAL_OR_TEXT], TsVector, code!(
        [Value::Text(text)] => document(usual(), text),
    ))
    .stable(),
    new(&["to_tsvector"], &[CONFIGURATION, OneOf(&[Json, Jsonb])], TsVector, code!(
        [Value::Text(name), json] => document_of_json(Configuration::named(name)?, json, None),
    )),
    new(&["to_tsvector"], &[OneOf(&[Json, Jsonb])], TsVector, code!(
        [json] => document_of_json(usual(), json, None),
    ))
    .stable(),
    new(&["json_to_tsvector"], &[CONFIGURATION, From(&[Json, Unknown], Json), To(Jsonb)], TsVector, code!(
        [Value::Text(name), json, kinds] => document_of_json(Configuration::named(name)?, json, Some(kinds)),
    )),
    new(&["json_to_tsvector"], &[From(&[Json, Unknown], Json), To(Jsonb)], TsVector, code!(
        [json, kinds] => document_of_json(usual(), json, Some(kinds)),
    ))
    .stable(),
    new(&["jsonb_to_tsvector"], &[CONFIGURATION, From(&[Jsonb, Unknown], Jsonb), To(Jsonb)], TsVector, code!(
        [Value::Text(name), json, kinds] => document_of_json(Configuration::named(name)?, json, Some(kinds)),
    )),
    new(&["jsonb_to_tsvector"], &[From(&[Jsonb, Unknown], Jsonb), To(Jsonb)], TsVector, code!(
        [json, kinds] => document_of_json(usual(), json, Some(kinds)),
    ))
    .stable(),
    // What a document consists of.
    once(&["strip"], &[DOCUMENT], TsVector, code!(
        [Value::TsVector(vector)] => edit::strip(vector).map(Value::TsVector),
    )),
    once(&["length"], &[OneOf(&[TsVector])], Integer, code!(
        [Value::TsVector(vector)] => Ok(Value::Integer(vector.lexemes().count() as i32)),
    ))
    .never_fails(),
    once(&["setweight"], &[DOCUMENT, LITERAL_OR_TEXT], TsVector, code!(
        [Value::TsVector(vector), Value::Text(letter)] => {
            edit::set_weight(vector, weight_named(letter)?, None).map(Value::TsVector)
        },
    )),
    once(&["setweight"], &[DOCUMENT, LITERAL_OR_TEXT, TEXTS], TsVector, code!(
        [Value::TsVector(vector), Value::Text(letter), Value::Array(lexemes)] => {
            edit::set_weight(vector, weight_named(letter)?, Some(&texts(lexemes))).map(Value::TsVector)
        },
    )),
    once(&["ts_delete"], &[DOCUMENT, LITERAL_OR_TEXT], TsVector, code!(
        [Value::TsVector(vector), Value::Text(lexeme)] => edit::delete(vector, &[lexeme]).map(Value::TsVector),
    )),
    once(&["ts_delete"], &[DOCUMENT, From(&[DataType::Array(ElementType::TEXT)], DataType::Array(ElementType::TEXT))], TsVector, code!(
        [Value::TsVector(vector), Value::Array(lexemes)] => edit::delete(vector, &texts(lexemes)).map(Value::TsVector),
    )),
    once(&["ts_filter"], &[DOCUMENT, TEXTS], TsVector, code!(
        [Value::TsVector(vector), Value::Array(letters)] => {
            edit::filter(vector, &weights_named(letters)?).map(Value::TsVector)
        },
    )),
    Function::new(&["tsvector_to_array"], &[DOCUMENT], ArrayOf(TEXT), code!(
        [Value::TsVector(vector)] => {
            let lexemes = vector.lexemes().map(|lexeme| Value::text(lexeme.text)).collect();
            Ok(Value::Array(Arc::new(Array::new(ElementType::TEXT, lexemes)?)))
        },
    ))
    .since(V15),
    once(&["array_to_tsvector"], &[TEXTS], TsVector, code!(
        [Value::Array(lexemes)] => edit::of_lexemes(lexemes.values()).map(Value::TsVector),
    )),
    once(&["||"], &[DOCUMENT, DOCUMENT], TsVector, code!(
        [Value::TsVector(first), Value::TsVector(second)] => edit::concatenate(first, second).map(Value::TsVector),
    ))
    .when(|types| types.contains(&TsVector)),
];

pub(super) static QUERIES: &[Function] = &[
    new(&["to_tsquery"], &[CONFIGURATION, LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(name), Value::Text(text)] => query(name, text, QuerySyntax::Operators, Together::InOrder),
    )),
    new(&["plainto_tsquery"], &[CONFIGURATION, LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(name), Value::Text(text)] => query(name, text, QuerySyntax::Plain, Together::Anywhere),
    )),
    new(&["phraseto_tsquery"], &[CONFIGURATION, LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(name), Value::Text(text)] => query(name, text, QuerySyntax::Plain, Together::InOrder),
    )),
    new(&["websearch_to_tsquery"], &[CONFIGURATION, LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(name), Value::Text(text)] => query(name, text, QuerySyntax::Web, Together::InOrder),
    )),
    new(&["to_tsquery"], &[LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(text)] => query(usual().name(), text, QuerySyntax::Operators, Together::InOrder),
    ))
    .stable(),
    new(&["plainto_tsquery"], &[LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(text)] => query(usual().name(), text, QuerySyntax::Plain, Together::Anywhere),
    ))
    .stable(),
    new(&["phraseto_tsquery"], &[LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(text)] => query(usual().name(), text, QuerySyntax::Plain, Together::InOrder),
    ))
    .stable(),
    new(&["websearch_to_tsquery"], &[LITERAL_OR_TEXT], TsQuery, code!(
        [Value::Text(text)] => query(usual().name(), text, QuerySyntax::Web, Together::InOrder),
    ))
    .stable(),
    once(&["numnode"], &[QUERY], Integer, code!(
        [Value::TsQuery(query)] => Ok(Value::Integer(query.items().len() as i32)),
    ))
    .never_fails(),
    once(&["querytree"], &[QUERY], TEXT, code!(
        [Value::TsQuery(query)] => edit::needed(query).map(Value::text),
    )),
    once(&["&&", "tsquery_and"], &[QUERY, QUERY], TsQuery, code!(
        [Value::TsQuery(left), Value::TsQuery(right)] => left.joined(right, QueryItem::And).map(Value::TsQuery),
    ))
    .when(|types| types.contains(&TsQuery)),
    once(&["||", "tsquery_or"], &[QUERY, QUERY], TsQuery, code!(
        [Value::TsQuery(left), Value::TsQuery(right)] => left.joined(right, QueryItem::Or).map(Value::TsQuery),
    ))
    .when(|types| types.contains(&TsQuery)),
    once(&["!!", "tsquery_not"], &[QUERY], TsQuery, code!(
        [Value::TsQuery(query)] => query.negated().map(Value::TsQuery),
    )),
    once(&["<->", "tsquery_phrase"], &[QUERY, QUERY], TsQuery, code!(
        [Value::TsQuery(left), Value::TsQuery(right)] => left.joined(right, QueryItem::Phrase(1)).map(Value::TsQuery),
    ))
    .shown_as("tsqueryphrase"),
    once(&["tsquery_phrase"], &[QUERY, QUERY, To(Integer)], TsQuery, code!(
        [Value::TsQuery(left), Value::TsQuery(right), Value::Integer(distance)] => {
            let distance = u16::try_from(*distance).ok().filter(|distance| *distance <= 16_384);
            let distance = distance.ok_or_else(distance_out_of_range)?;
            left.joined(right, QueryItem::Phrase(distance)).map(Value::TsQuery)
        },
    )),
    once(&["@>"], &[QUERY, QUERY], Boolean, code!(
        [Value::TsQuery(whole), Value::TsQuery(part)] => Ok(Value::Boolean(edit::holds_words(whole, part))),
    ))
    .when(|types| types.contains(&TsQuery))
    .never_fails(),
    once(&["<@"], &[QUERY, QUERY], Boolean, code!(
        [Value::TsQuery(part), Value::TsQuery(whole)] => Ok(Value::Boolean(edit::holds_words(whole, part))),
    ))
    .when(|types| types.contains(&TsQuery))
    .never_fails(),
    Function::new(&["get_current_ts_config"], &[], Is(TEXT), |_| Ok(Value::text(usual().name())))
        .stable()
        .never_fails()
        .since(V15),
    Function::new(&["ts_lexize"], &[LITERAL_OR_TEXT, LITERAL_OR_TEXT], ArrayOf(TEXT), code!(
        [Value::Text(dictionary), Value::Text(word)] => {
            let words = lexed(dictionary, word)?.into_iter().map(Value::text).collect();
            Ok(Value::Array(Arc::new(Array::new(ElementType::TEXT, words)?)))
        },
    ))
    .since(V15),
];

pub(super) static MATCHES: &[Function] = &[
    new(
        &["@@", "ts_match_vq"],
        &[DOCUMENT, QUERY],
        Boolean,
        code!(
            [Value::TsVector(vector), Value::TsQuery(query)] => matches(vector, query).map(Value::Boolean),
        ),
    )
    .when(|types| types[0] == TsVector),
    new(
        &["@@", "ts_match_qv"],
        &[QUERY, DOCUMENT],
        Boolean,
        code!(
            [Value::TsQuery(query), Value::TsVector(vector)] => matches(vector, query).map(Value::Boolean),
        ),
    )
    .when(|types| types[1] == TsVector || types == [TsQuery, Unknown]),
    new(
        &["@@", "ts_match_tq"],
        &[LITERAL_OR_TEXT, From(&[TsQuery], TsQuery)],
        Boolean,
        code!(
            [Value::Text(text), Value::TsQuery(query)] => {
                matches(&vector_of_text(usual(), text)?, query).map(Value::Boolean)
            },
        ),
    )
    .stable(),
    new(
        &["@@", "ts_match_tt"],
        &[LITERAL_OR_TEXT, LITERAL_OR_TEXT],
        Boolean,
        code!(
            [Value::Text(text), Value::Text(words)] => {
                let query = query_of_text(usual(), words, QuerySyntax::Plain, Together::Anywhere)?;
                matches(&vector_of_text(usual(), text)?, &query).map(Value::Boolean)
            },
        ),
    )
    .stable(),
];

/// A function that says how well a document matches, by weights and a method, both of which may be left out.
macro_rules! ranks {
    ($name:literal, $rank:ident) => {
        &[
            new(&[$name], &[DOCUMENT, QUERY], Real, code!(
                [Value::TsVector(vector), Value::TsQuery(query)] => real($rank(&usual_weights(), vector, query, 0)),
            )),
            new(&[$name], &[DOCUMENT, QUERY, To(Integer)], Real, code!(
                [Value::TsVector(vector), Value::TsQuery(query), Value::Integer(method)] => {
                    real($rank(&usual_weights(), vector, query, *method))
                },
            ))
            .when(|types| types[1] == TsQuery),
            new(&[$name], &[REALS, DOCUMENT, QUERY], Real, code!(
                [Value::Array(given), Value::TsVector(vector), Value::TsQuery(query)] => {
                    real($rank(&weights(given.values())?, vector, query, 0))
                },
            )),
            new(&[$name], &[REALS, DOCUMENT, QUERY, To(Integer)], Real, code!(
                [Value::Array(given), Value::TsVector(vector), Value::TsQuery(query), Value::Integer(method)] => {
                    real($rank(&weights(given.values())?, vector, query, *method))
                },
            )),
        ]
    };
}

pub(super) static RANKS: &[Function] = ranks!("ts_rank", rank);
pub(super) static RANKS_BY_COVERS: &[Function] = ranks!("ts_rank_cd", rank_by_covers);

/// `ts_headline` of one kind of document, with a configuration and options, both of which may be left out. `query`: what stands behind a
/// configuration where there are no options.
macro_rules! headlines {
    ($of:expr, $gives:expr, $query:expr) => {
        &[
            new(&["ts_headline"], &[CONFIGURATION, $of, $query], $gives, code!(
                [Value::Text(name), of, Value::TsQuery(query)] => shown(Configuration::named(name)?, of, query, ""),
            )),
            new(&["ts_headline"], &[$of, QUERY], $gives, code!(
                [of, Value::TsQuery(query)] => shown(usual(), of, query, ""),
            ))
            .stable(),
            new(&["ts_headline"], &[CONFIGURATION, $of, QUERY, LITERAL_OR_TEXT], $gives, code!(
                [Value::Text(name), of, Value::TsQuery(query), Value::Text(options)] => {
                    shown(Configuration::named(name)?, of, query, options)
                },
            )),
            new(&["ts_headline"], &[$of, QUERY, LITERAL_OR_TEXT], $gives, code!(
                [of, Value::TsQuery(query), Value::Text(options)] => shown(usual(), of, query, options),
            ))
            .stable(),
        ]
    };
}

// A text, a query and options may be literals, too.
pub(super) static HEADLINES: &[Function] = headlines!(LITERAL_OR_TEXT, TEXT, From(&[TsQuery], TsQuery));
pub(super) static HEADLINES_OF_JSON: &[Function] = headlines!(OneOf(&[Json]), Json, QUERY);
pub(super) static HEADLINES_OF_JSONB: &[Function] = headlines!(OneOf(&[Jsonb]), Jsonb, QUERY);

/// The headline of a text, or of each string of a JSON value.
fn shown(configuration: Configuration, of: &Value, query: &types::TsQuery, options: &str) -> Computed {
    let options = HeadlineOptions::parse(options)?;
    match of {
        Value::Text(text) => headline(configuration, text, query, &options).map(Value::text),
        json => with_json_texts(json, &mut |text| headline(configuration, text, query, &options)),
    }
}

/// Whether the first one of so many arguments of a function is the name of a configuration, which PostgreSQL shows as one.
pub fn names_configuration(function: &str, arguments: usize) -> bool {
    match function {
        "to_tsvector" | "to_tsquery" | "plainto_tsquery" | "phraseto_tsquery" | "websearch_to_tsquery" => {
            arguments == 2
        }
        "json_to_tsvector" | "jsonb_to_tsvector" => arguments == 3,
        "ts_headline" => arguments == 4,
        _ => false,
    }
}

/// What the session reads texts with.
fn usual() -> Configuration {
    session_format().text_search
}

fn document(configuration: Configuration, text: &str) -> Computed {
    vector_of_text(configuration, text).map(Value::TsVector)
}

fn document_of_json(configuration: Configuration, json: &Value, kinds: Option<&Value>) -> Computed {
    vector_of_texts(configuration, json_texts(json, kinds)?).map(Value::TsVector)
}

fn query(name: &str, text: &str, syntax: QuerySyntax, together: Together) -> Computed {
    query_of_text(Configuration::named(name)?, text, syntax, together).map(Value::TsQuery)
}

fn real(rank: Result<f32, SqlError>) -> Computed {
    rank.map(Value::Real)
}

fn texts(array: &Array) -> Vec<&str> {
    let mut texts = Vec::with_capacity(array.values().len());
    for value in array.values() {
        if let Value::Text(text) = value {
            texts.push(&**text);
        }
    }
    texts
}

/// The weight that the first letter of a text names, as a `"char"` would be.
fn weight_named(letter: &str) -> Result<Weight, SqlError> {
    let first = letter.chars().next();
    first.and_then(Weight::of_letter).ok_or_else(|| {
        let number = letter.bytes().next().unwrap_or(0).cast_signed();
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("unrecognized weight: {number}"))
    })
}

fn weights_named(letters: &Array) -> Result<Vec<Weight>, SqlError> {
    let weight = |value: &Value| {
        let Value::Text(letter) = value else {
            let message = "weight array may not contain nulls";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        let first = letter.chars().next();
        first.and_then(Weight::of_letter).ok_or_else(|| {
            let message = format!("unrecognized weight: \"{}\"", first.unwrap_or_default());
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })
    };
    letters.values().iter().map(weight).collect()
}
