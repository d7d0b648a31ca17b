//! `unaccent` of PostgreSQL's extension of that name: texts without accents.

use crate::functions::entry::Argument::{self, From};
use crate::functions::entry::Gives::Is;
use crate::functions::entry::{Computed, Function, code};
use crate::functions::unaccent_rules::RULES;
use crate::length::check_length;
use crate::text_search::lexed;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use types::{DataType, ExecutionVersion, Value};

const TEXT: DataType = DataType::Text(None);
const LITERAL_OR_TEXT: Argument = From(&[TEXT, DataType::Char(None), DataType::Unknown], TEXT);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        &["unaccent"],
        &[LITERAL_OR_TEXT],
        Is(TEXT),
        code!(
            [Value::Text(text)] => without_accents(text),
        ),
    )
    .stable()
    .since(ExecutionVersion::V16),
    // With the name of a dictionary.
    Function::new(
        &["unaccent"],
        &[LITERAL_OR_TEXT, LITERAL_OR_TEXT],
        Is(TEXT),
        code!(
            [Value::Text(dictionary), Value::Text(text)] => match &**dictionary {
                "unaccent" | "public.unaccent" => without_accents(text),
                // As in PostgreSQL, what another dictionary says.
                other => {
                    let words = lexed(other, text)?;
                    Ok(words.into_iter().next().map_or_else(|| Value::text(text.clone()), Value::text))
                }
            },
        ),
    )
    .stable()
    .since(ExecutionVersion::V16),
];

/// What comes in the place of a character.
static BY_CHARACTER: LazyLock<BTreeMap<char, &'static str>> = LazyLock::new(|| {
    RULES.iter().flat_map(|(to, from)| from.chars().map(move |character| (character, *to))).collect()
});

fn without_accents(text: &str) -> Computed {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match BY_CHARACTER.get(&character).filter(|_| !character.is_ascii()) {
            Some(other) => plain.push_str(other),
            None => plain.push(character),
        }
    }
    check_length(plain.len())?;
    Ok(Value::text(plain))
}
