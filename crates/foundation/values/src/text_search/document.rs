//! Documents and queries of texts.

use super::dictionary::{Lexed, lex};
use super::parser::tokens;
use crate::work;
use std::sync::Arc;
use types::SqlError;
use types::text_search::{
    Configuration, LEXEME_BYTES_MAX, POSITION_MAX, Position, QueryItem, QuerySyntax, TsQuery, TsVector,
    Weight, Weights, parse_query,
};

/// Units of work for each byte of a text that is split into words, which are stemmed.
pub(super) const UNITS_PER_BYTE: u64 = 64;

/// Words of a text as they are looked for, and at which places they stand, from 1. Words that say nothing have a place, too.
pub(super) struct Words {
    configuration: Configuration,
    /// The last place that a word had.
    place: u32,
    pub found: Vec<(String, u32)>,
}

impl Words {
    pub fn new(configuration: Configuration) -> Words {
        Words { configuration, place: 0, found: Vec::new() }
    }

    /// Those of one text more.
    ///
    /// # Errors
    /// `57014` where that takes more work than there is left.
    pub fn read(&mut self, text: &str) -> Result<(), SqlError> {
        work::spend((text.len() as u64).saturating_mul(UNITS_PER_BYTE))?;
        for token in tokens(text) {
            // As in PostgreSQL, no word is as long.
            if token.text.len() > LEXEME_BYTES_MAX {
                continue;
            }
            let Some(lexed) = lex(self.configuration, token.kind, token.text) else { continue };
            self.place = self.place.saturating_add(1);
            // Small letters may have more bytes.
            if let Lexed::Word(word) = lexed
                && word.len() <= LEXEME_BYTES_MAX
            {
                self.found.push((word, self.place.min(POSITION_MAX.into())));
            }
        }
        Ok(())
    }

    /// Those of one text more, of which nothing is next to what was read before.
    fn read_apart(&mut self, text: &str) -> Result<(), SqlError> {
        let before = self.found.len();
        self.read(text)?;
        if self.found.len() > before {
            self.place += 1;
        }
        Ok(())
    }

    fn into_vector(self) -> Result<TsVector, SqlError> {
        /// One less than a document may have, as in PostgreSQL.
        const KEPT: usize = types::text_search::POSITIONS_MAX - 1;
        let mut found = self.found;
        found.sort_unstable();
        let mut lexemes: Vec<(String, Vec<Position>)> = Vec::new();
        for (word, place) in found {
            let position = Position::new(place, Weight::D);
            match lexemes.last_mut() {
                Some((last, positions)) if *last == word => {
                    let is_new = positions.last() != Some(&position);
                    if is_new && positions.len() < KEPT {
                        positions.push(position);
                    }
                }
                _ => lexemes.push((word, vec![position])),
            }
        }
        TsVector::of_sorted(lexemes)
    }
}

/// The document that a text is.
///
/// # Errors
/// `54000` where it is too long, `57014` where that takes more work than there is left.
pub(crate) fn vector_of_text(configuration: Configuration, text: &str) -> Result<TsVector, SqlError> {
    let mut words = Words::new(configuration);
    words.read(text)?;
    words.into_vector()
}

/// The document that these texts are together; nothing in one of them is next to something in another.
///
/// # Errors
/// As [`vector_of_text`].
pub(crate) fn vector_of_texts<'t>(
    configuration: Configuration,
    texts: impl IntoIterator<Item = std::borrow::Cow<'t, str>>,
) -> Result<TsVector, SqlError> {
    let mut words = Words::new(configuration);
    for text in texts {
        words.read_apart(&text)?;
    }
    words.into_vector()
}

/// How words of a query that become several are joined, and those of a plain one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Together {
    /// All of them, anywhere.
    Anywhere,
    /// One behind the other.
    InOrder,
}

/// What a text says is looked for.
///
/// # Errors
/// `42601` where it is no query, `54000` where it is too long, `57014` where that takes more work than there is left.
pub(crate) fn query_of_text(
    configuration: Configuration,
    text: &str,
    syntax: QuerySyntax,
    together: Together,
) -> Result<TsQuery, SqlError> {
    let joint = match together {
        Together::Anywhere => QueryItem::And,
        Together::InOrder => QueryItem::Phrase(1),
    };
    let mut read = |items: &mut Vec<Option<QueryItem>>, text: &str, weights: Weights, is_prefix: bool| {
        let mut words = Words::new(configuration);
        words.read(text)?;
        if words.found.is_empty() {
            items.push(None);
            return Ok(());
        }
        // Words that say nothing keep their places between others.
        let (mut count, mut last) = (0, 0);
        for (word, place) in words.found {
            let gap = if last > 0 { place.saturating_sub(last + 1) } else { 0 };
            for _ in 0..gap {
                push_joined(items, None, &mut count, &joint);
            }
            last = place;
            let operand = QueryItem::Operand { text: Arc::from(word), weights, is_prefix };
            push_joined(items, Some(operand), &mut count, &joint);
        }
        Ok(())
    };
    parse_query(text, syntax, &mut read)
}

fn push_joined(
    items: &mut Vec<Option<QueryItem>>,
    item: Option<QueryItem>,
    count: &mut usize,
    joint: &QueryItem,
) {
    items.push(item);
    if *count > 0 {
        items.push(Some(joint.clone()));
    }
    *count += 1;
}
