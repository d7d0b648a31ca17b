//! Names that are longer than names may be: PostgreSQL takes their first 63 bytes, and programs count on that where they make names of
//! names.

use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::limits::NAME_BYTES_MAX;

/// Cuts all names that are too long: as many whole characters stay as [`NAME_BYTES_MAX`] bytes hold.
pub(crate) fn cut_long_names(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Word(word) = &mut token.token
            && word.value.len() > NAME_BYTES_MAX
        {
            word.value.truncate(word.value.floor_char_boundary(NAME_BYTES_MAX));
        }
    }
}
