//! Dictionaries: what a word is looked for as.

use super::parser::{TokenKind, small_letter};
use rust_stemmers::{Algorithm, Stemmer};
use std::sync::LazyLock;
use types::text_search::Configuration;
use types::{SqlError, SqlState};

/// What a dictionary makes of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Lexed {
    /// It is looked for as this.
    Word(String),
    /// It says nothing and is not looked for.
    Stop,
}

/// Words of more bytes are no words of a language.
const STEMMED_BYTES_MAX: usize = 1_000;

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// English words that say nothing: those of the Snowball project, in order.
#[rustfmt::skip]
const STOP_WORDS: [&str; 127] = [
    "a", "about", "above", "after", "again", "against", "all", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "below", "between", "both", "but", "by", "can", "did", "do", "does", "doing",
    "don", "down", "during", "each", "few", "for", "from", "further", "had", "has", "have", "having", "he", "her",
    "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "in", "into", "is", "it", "its", "itself",
    "just", "me", "more", "most", "my", "myself", "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or",
    "other", "our", "ours", "ourselves", "out", "over", "own", "s", "same", "she", "should", "so", "some", "such", "t",
    "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these", "they", "this", "those",
    "through", "to", "too", "under", "until", "up", "very", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "whom", "why", "will", "with", "you", "your", "yours", "yourself", "yourselves",
];

/// What becomes of a word of a kind; `None` for what is no word: blanks, tags and their kind.
pub(super) fn lex(configuration: Configuration, kind: TokenKind, text: &str) -> Option<Lexed> {
    match kind {
        TokenKind::Blank | TokenKind::Tag | TokenKind::Protocol | TokenKind::Entity => None,
        TokenKind::AsciiWord
        | TokenKind::Word
        | TokenKind::HWordPart
        | TokenKind::HWordAsciiPart
        | TokenKind::AsciiHWord
        | TokenKind::HWord
            if configuration == Configuration::English =>
        {
            Some(stem(text))
        }
        _ => Some(Lexed::Word(in_small_letters(text))),
    }
}

/// A word in small letters.
fn in_small_letters(word: &str) -> String {
    word.chars().map(small_letter).collect()
}

/// The stem of an English word (Porter's second algorithm, as the Snowball project has it).
pub(super) fn stem(word: &str) -> Lexed {
    let small = in_small_letters(word);
    if small.is_empty() || STOP_WORDS.binary_search(&&*small).is_ok() {
        return Lexed::Stop;
    }
    if word.len() > STEMMED_BYTES_MAX {
        return Lexed::Word(small);
    }
    Lexed::Word(ENGLISH.stem(&small).into_owned())
}

/// What a dictionary of this name makes of a word: nothing of one that it does not look for.
///
/// # Errors
/// `42704`
pub(crate) fn lexed(dictionary: &str, word: &str) -> Result<Vec<String>, SqlError> {
    let lexed = match dictionary.strip_prefix("pg_catalog.").unwrap_or(dictionary) {
        "simple" => Lexed::Word(in_small_letters(word)),
        "english_stem" => stem(word),
        _ => {
            let shown: String = dictionary.chars().take(64).collect();
            let message = format!("text search dictionary \"{shown}\" does not exist");
            let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
            return Err(error.hint("There are simple and english_stem."));
        }
    };
    Ok(match lexed {
        Lexed::Word(word) => vec![word],
        Lexed::Stop => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_in_order() {
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(stem("The"), Lexed::Stop);
        assert_eq!(stem("Running"), Lexed::Word("run".to_string()));
        assert_eq!(stem(&"Running".repeat(200)), Lexed::Word("running".repeat(200)));
    }
}
