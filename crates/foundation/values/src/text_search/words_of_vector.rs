//! The lexemes of a document, where they are looked for one after the other.

use super::matching::{Found, Operand, execute};
use crate::work;
use types::SqlError;
use types::text_search::{Lexeme, Position, Positions, TsQuery, TsVector, Weights};

/// Whether a document has what a query looks for.
///
/// # Errors
/// `57014` where that takes more work than there is left.
pub(crate) fn matches(vector: &TsVector, query: &TsQuery) -> Result<bool, SqlError> {
    let words = WordsOfVector::new(vector)?;
    execute(query, &mut |operand, wants_places| Ok(words.find(operand, wants_places)))
}

/// The lexemes in order.
pub(super) struct WordsOfVector<'a>(Vec<Lexeme<'a>>);

impl<'a> WordsOfVector<'a> {
    /// Those of a document.
    ///
    /// # Errors
    /// `57014` where that takes more work than there is left.
    pub fn new(vector: &'a TsVector) -> Result<WordsOfVector<'a>, SqlError> {
        work::spend(vector.bytes().len() as u64)?;
        Ok(WordsOfVector(vector.lexemes().collect()))
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Places of all of them; one whose place nobody knows has one.
    pub fn places(&self) -> usize {
        self.0.iter().map(|lexeme| lexeme.positions.len().max(1)).sum()
    }

    /// Those that a word of a query means.
    pub fn of(&self, operand: Operand<'_>) -> &[Lexeme<'a>] {
        let first = self.0.partition_point(|lexeme| lexeme.text < operand.text);
        let behind = &self.0[first..];
        let count = match operand.is_prefix {
            true => behind.partition_point(|lexeme| lexeme.text.starts_with(operand.text)),
            false => usize::from(behind.first().is_some_and(|lexeme| lexeme.text == operand.text)),
        };
        &behind[..count]
    }

    /// Whether a word of a query is there, and where.
    pub fn find(&self, operand: Operand<'_>, wants_places: bool) -> Found {
        let lexemes = self.of(operand);
        // As in PostgreSQL, what has no places counts whatever weight is looked for.
        if !wants_places {
            let is_there = |lexeme: &Lexeme<'_>| {
                lexeme.positions.is_empty()
                    || with_weights(lexeme.positions, operand.weights).next().is_some()
            };
            return if lexemes.iter().any(is_there) { Found::At(Vec::new()) } else { Found::No };
        }
        if lexemes.iter().any(|lexeme| lexeme.positions.is_empty()) {
            return Found::Somewhere;
        }
        let places = lexemes.iter().flat_map(|lexeme| with_weights(lexeme.positions, operand.weights));
        let mut places: Vec<u16> = places.map(Position::place).collect();
        places.sort_unstable();
        places.dedup();
        if places.is_empty() { Found::No } else { Found::At(places) }
    }
}

fn with_weights(positions: Positions<'_>, weights: Weights) -> impl Iterator<Item = Position> {
    positions.iter().filter(move |position| weights.has(position.weight()))
}
