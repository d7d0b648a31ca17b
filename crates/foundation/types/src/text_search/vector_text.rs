//! Documents as texts: `'cat':3 'fat':2,4A`.

use super::word::{Dialect, Words};
use super::{Position, TsVector, Weight};
use crate::SqlError;
use std::fmt::Write;

/// Reads a document as PostgreSQL's input function does.
///
/// # Errors
/// `42601` where it is none, `54000` where it is too long.
pub(crate) fn parse_tsvector(text: &str) -> Result<TsVector, SqlError> {
    let mut words = Words::new(text, Dialect::Vector);
    let mut lexemes: Vec<(String, Vec<Position>)> = Vec::new();
    while let Some(word) = words.next_word()? {
        lexemes.push(word);
    }
    TsVector::new(lexemes)
}

/// Writes a document as PostgreSQL does.
pub(crate) fn format_vector(vector: &TsVector) -> String {
    let mut text = String::with_capacity(vector.bytes().len());
    for lexeme in vector.lexemes() {
        if !text.is_empty() {
            text.push(' ');
        }
        push_quoted(&mut text, lexeme.text);
        for (place, position) in lexeme.positions.iter().enumerate() {
            text.push(if place == 0 { ':' } else { ',' });
            // Writing to a string never fails.
            let _ = write!(text, "{}", position.place());
            if position.weight() != Weight::D {
                text.push(position.weight().letter());
            }
        }
    }
    text
}

/// Bytes of that text.
pub(crate) fn vector_text_bytes(vector: &TsVector) -> usize {
    let of_position = |position: Position| {
        let digits = position.place().checked_ilog10().unwrap_or(0) as usize + 1;
        1 + digits + usize::from(position.weight() != Weight::D)
    };
    let of_lexemes = vector.lexemes().map(|lexeme| {
        1 + quoted_bytes(lexeme.text) + lexeme.positions.iter().map(of_position).sum::<usize>()
    });
    of_lexemes.sum::<usize>().saturating_sub(1)
}

/// A word in quotes, with quotes and backslashes twice.
pub(super) fn push_quoted(text: &mut String, word: &str) {
    text.push('\'');
    for letter in word.chars() {
        if matches!(letter, '\'' | '\\') {
            text.push(letter);
        }
        text.push(letter);
    }
    text.push('\'');
}

/// Bytes of that.
pub(super) fn quoted_bytes(word: &str) -> usize {
    2 + word.len() + word.bytes().filter(|byte| matches!(byte, b'\'' | b'\\')).count()
}
