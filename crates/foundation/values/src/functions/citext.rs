//! Functions and operators for which large and small letters are the same where their arguments are of PostgreSQL's extension citext. All
//! others take a `citext` as a text.

use crate::functions::entry::Argument::{self, From, To};
use crate::functions::entry::Gives::{ArrayOf, Is};
use crate::functions::entry::{Computed, Function, code, free};
use crate::functions::regular::{
    is_in, is_similar, matched_without_case, replaced_without_case, split_without_case,
};
use crate::functions::text::translate;
use DataType::{Boolean, Citext, Integer, Unknown};
use types::{DataType, ExecutionVersion, Value};

const TEXT: DataType = DataType::Text(None);
/// A literal beside another one is one, too.
const ONE: Argument = From(&[Citext, Unknown], Citext);
const PATTERN: Argument = From(&[Citext, TEXT, DataType::Char(None), Unknown], TEXT);

const fn new(
    names: &'static [&'static str],
    list: &'static [Argument],
    gives: DataType,
    code: fn(&[Value]) -> Computed,
) -> Function {
    Function::new(names, list, Is(gives), code).since(ExecutionVersion::V16)
}

/// Whether one of the first so many is of the type; the others are, too, or literals.
fn any_of(types: &[DataType], count: usize) -> bool {
    types.iter().take(count).any(|one| *one == Citext)
}

pub(super) static FUNCTIONS: &[Function] = &[
    new(
        &["~", "~*", "texticregexeq"],
        &[ONE, PATTERN],
        Boolean,
        code!(
            [Value::Citext(text), Value::Text(pattern)] => Ok(Value::Boolean(is_in(text, pattern, true)?)),
        ),
    )
    .when(leads)
    .costs(free)
    .shown_as("regular"),
    new(
        &["!~", "!~*", "texticregexne"],
        &[ONE, PATTERN],
        Boolean,
        code!(
            [Value::Citext(text), Value::Text(pattern)] => Ok(Value::Boolean(!is_in(text, pattern, true)?)),
        ),
    )
    .when(leads)
    .costs(free)
    .shown_as("regular"),
    // With its escape behind.
    new(
        &["SIMILAR TO"],
        &[ONE, PATTERN, To(TEXT)],
        Boolean,
        code!(
            [Value::Citext(text), Value::Text(pattern), rest @ ..] => is_similar(text, pattern, rest, true),
        ),
    )
    .when(leads)
    .optional(1)
    .costs(free)
    .shown_as("regular"),
    Function::new(
        &["regexp_match"],
        &[ONE, ONE, To(TEXT)],
        ArrayOf(TEXT),
        code!(
            [Value::Citext(text), Value::Citext(pattern), rest @ ..] => matched_without_case(text, pattern, rest),
        ),
    )
    .when(|types| any_of(types, 2))
    .optional(1)
    .costs(free)
    .shown_as("regular")
    .since(ExecutionVersion::V16),
    Function::new(
        &["regexp_split_to_array"],
        &[ONE, ONE, To(TEXT)],
        ArrayOf(TEXT),
        code!(
            [Value::Citext(text), Value::Citext(pattern), rest @ ..] => split_without_case(text, pattern, rest),
        ),
    )
    .when(|types| any_of(types, 2))
    .optional(1)
    .costs(free)
    .shown_as("regular")
    .since(ExecutionVersion::V16),
    new(
        &["regexp_replace"],
        &[ONE, ONE, To(TEXT), To(TEXT)],
        TEXT,
        code!(
            [Value::Citext(text), Value::Citext(pattern), Value::Text(replacement), rest @ ..] => {
                replaced_without_case(text, pattern, replacement, rest)
            },
        ),
    )
    .when(|types| any_of(types, 2) && types.get(3).is_none_or(|flags| !flags.is_integer()))
    .optional(1)
    .costs(free)
    .shown_as("regular"),
    new(
        &["replace"],
        &[ONE, ONE, ONE],
        TEXT,
        code!(
            [Value::Citext(text), Value::Citext(from), Value::Citext(to)] => {
                replaced_without_case(text, &literally(from), to, &[Value::text("g")])
            },
        ),
    )
    .when(|types| any_of(types, 3)),
    new(
        &["strpos"],
        &[ONE, ONE],
        Integer,
        code!(
            [Value::Citext(text), Value::Citext(part)] => {
                let text = text.to_ascii_lowercase();
                let found = text.find(&part.to_ascii_lowercase());
                Ok(Value::Integer(found.map_or(0, |at| text[..at].chars().count() + 1) as i32))
            },
        ),
    )
    .when(|types| any_of(types, 2))
    .never_fails()
    .shown_as("position"),
    new(
        &["split_part"],
        &[ONE, ONE, To(Integer)],
        TEXT,
        code!(
            [Value::Citext(text), Value::Citext(delimiter), Value::Integer(field)] => {
                match split_without_case(text, &literally(delimiter), &[])? {
                    Value::Array(parts) => Ok(parts.get(i64::from(*field))),
                    _ => Err(crate::broken("parts of a text that are no array")),
                }
            },
        ),
    )
    .when(|types| any_of(types, 2)),
    new(
        &["translate"],
        &[ONE, ONE, To(TEXT)],
        TEXT,
        code!(
            [Value::Citext(text), Value::Citext(from), Value::Text(to)] => {
                let small = translate(text, &from.to_ascii_lowercase(), to);
                Ok(Value::text(translate(&small, &from.to_ascii_uppercase(), to)))
            },
        ),
    )
    .when(|types| any_of(types, 2))
    .never_fails()
    .costs(|values| match values {
        [Value::Citext(text), Value::Citext(among), ..] => {
            (text.len() as u64).saturating_mul(2 + 2 * among.len() as u64)
        }
        _ => free(values),
    }),
];

/// Whether the left operand says that case does not count: it is one, or a literal in front of one.
fn leads(types: &[DataType]) -> bool {
    types[0] == Citext || types[..2] == [Unknown, Citext]
}

/// The pattern of a text that is looked for as it stands: with a backslash in front of what is neither a letter of ASCII, a digit nor `_`.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(2 * text.len());
    for character in text.chars() {
        if !(character.is_ascii_alphanumeric() || character == '_') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
