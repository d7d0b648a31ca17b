//! Functions and operators of PostgreSQL's extension pg_trgm: how alike texts are, by the three characters that stand together in them.
//!
//! Letters and digits, and what is a small letter, are those of full text search: Unicode 14, as PostgreSQL 15 has them with `C.UTF-8`.

use crate::functions::entry::Argument::{self, From};
use crate::functions::entry::Gives::{ArrayOf, Is};
use crate::functions::entry::{Computed, Function, code};
use crate::text_search::{is_alphabetic, small_letter};
use crate::work;
use DataType::{Boolean, Real, Unknown};
use std::sync::Arc;
use types::text_search::checksum;
use types::{Array, DataType, ElementType, ExecutionVersion, SqlError, Value};

const TEXT: DataType = DataType::Text(None);
const LITERAL_OR_TEXT: Argument = From(&[TEXT, DataType::Char(None), Unknown], TEXT);

/// From where on texts count as alike, as PostgreSQL begins with.
const SIMILARITY_LEAST: f64 = 0.3;
const WORD_SIMILARITY_LEAST: f64 = 0.6;
const STRICT_WORD_SIMILARITY_LEAST: f64 = 0.5;

const fn new(names: &'static [&'static str], gives: DataType, code: fn(&[Value]) -> Computed) -> Function {
    Function::new(names, &[LITERAL_OR_TEXT, LITERAL_OR_TEXT], Is(gives), code).since(ExecutionVersion::V16)
}

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        &["show_trgm"],
        &[LITERAL_OR_TEXT],
        ArrayOf(TEXT),
        code!(
            [Value::Text(text)] => shown(text),
        ),
    )
    .since(ExecutionVersion::V16),
    Function::new(&["show_limit"], &[], Is(Real), |_| Ok(Value::Real(SIMILARITY_LEAST as f32)))
        .stable()
        .never_fails()
        .since(ExecutionVersion::V16),
    new(
        &["similarity"],
        Real,
        code!(
            [Value::Text(left), Value::Text(right)] => similarity(left, right).map(Value::Real),
        ),
    ),
    new(
        &["<->", "similarity_dist"],
        Real,
        code!(
            [Value::Text(left), Value::Text(right)] => similarity(left, right).map(distance),
        ),
    )
    .shown_as("similaritydist"),
    new(
        &["%", "similarity_op"],
        Boolean,
        code!(
            [Value::Text(left), Value::Text(right)] => {
                similarity(left, right).map(|found| Value::Boolean(f64::from(found) >= SIMILARITY_LEAST))
            },
        ),
    )
    .stable()
    .shown_as("similarityop"),
    new(
        &["word_similarity"],
        Real,
        code!(
            [Value::Text(word), Value::Text(text)] => of_words(word, text, false).map(Value::Real),
        ),
    ),
    new(
        &["<%", "word_similarity_op"],
        Boolean,
        code!(
            [Value::Text(word), Value::Text(text)] => alike(word, text, false),
        ),
    )
    .stable()
    .shown_as("wordsimilarityop"),
    new(
        &["%>", "word_similarity_commutator_op"],
        Boolean,
        code!(
            [Value::Text(text), Value::Text(word)] => alike(word, text, false),
        ),
    )
    .stable()
    .shown_as("wordsimilarityop"),
    new(
        &["<<->", "word_similarity_dist_op"],
        Real,
        code!(
            [Value::Text(word), Value::Text(text)] => of_words(word, text, false).map(distance),
        ),
    )
    .shown_as("wordsimilaritydist"),
    new(
        &["<->>", "word_similarity_dist_commutator_op"],
        Real,
        code!(
            [Value::Text(text), Value::Text(word)] => of_words(word, text, false).map(distance),
        ),
    )
    .shown_as("wordsimilaritydist"),
    new(
        &["strict_word_similarity"],
        Real,
        code!(
            [Value::Text(word), Value::Text(text)] => of_words(word, text, true).map(Value::Real),
        ),
    ),
    new(
        &["<<%", "strict_word_similarity_op"],
        Boolean,
        code!(
            [Value::Text(word), Value::Text(text)] => alike(word, text, true),
        ),
    )
    .stable()
    .shown_as("strictwordsimilarityop"),
    new(
        &["%>>", "strict_word_similarity_commutator_op"],
        Boolean,
        code!(
            [Value::Text(text), Value::Text(word)] => alike(word, text, true),
        ),
    )
    .stable()
    .shown_as("strictwordsimilarityop"),
    new(
        &["<<<->", "strict_word_similarity_dist_op"],
        Real,
        code!(
            [Value::Text(word), Value::Text(text)] => of_words(word, text, true).map(distance),
        ),
    )
    .shown_as("strictwordsimilaritydist"),
    new(
        &["<->>>", "strict_word_similarity_dist_commutator_op"],
        Real,
        code!(
            [Value::Text(text), Value::Text(word)] => of_words(word, text, true).map(distance),
        ),
    )
    .shown_as("strictwordsimilaritydist"),
];

/// Three characters as PostgreSQL keeps them: their bytes where these are three, else three bytes of a checksum.
type Trigram = [u8; 3];

/// A trigram, and whether a word begins or ends with it.
#[derive(Clone, Copy)]
struct Place {
    trigram: Trigram,
    begins: bool,
    ends: bool,
}

fn kept(characters: &[char]) -> Trigram {
    let text: String = characters.iter().collect();
    let bytes = text.as_bytes();
    <Trigram>::try_from(bytes).unwrap_or_else(|_| {
        let [first, second, third, _] = checksum(bytes).to_le_bytes();
        [first, second, third]
    })
}

/// PostgreSQL compares signed bytes.
fn rank(trigram: Trigram) -> [u8; 3] {
    trigram.map(|byte| byte ^ 0x80)
}

/// All trigrams of a text, in their order: of each word in small letters, with two spaces in front of it and one behind.
fn places(text: &str) -> Vec<Place> {
    let is_of_word = |character: char| character.is_ascii_digit() || is_alphabetic(character);
    let mut places = Vec::new();
    for word in text.split(|character| !is_of_word(character)).filter(|word| !word.is_empty()) {
        let mut characters = vec![' ', ' '];
        characters.extend(word.chars().map(small_letter));
        characters.push(' ');
        let first = places.len();
        places.extend(characters.windows(3).map(|three| Place {
            trigram: kept(three),
            begins: false,
            ends: false,
        }));
        places[first].begins = true;
        if let Some(last) = places.last_mut() {
            last.ends = true;
        }
    }
    places
}

/// The trigrams of a text in PostgreSQL's order, each once.
fn trigrams(text: &str) -> Result<Vec<Trigram>, SqlError> {
    /// Each is made, and finds its place among the others.
    const UNITS_PER_BYTE: u64 = 32;
    work::spend((text.len() as u64).saturating_mul(UNITS_PER_BYTE))?;
    let mut trigrams: Vec<Trigram> = places(text).iter().map(|place| place.trigram).collect();
    trigrams.sort_unstable_by_key(|trigram| rank(*trigram));
    trigrams.dedup();
    Ok(trigrams)
}

fn shown(text: &str) -> Computed {
    let one = |trigram: Trigram| match std::str::from_utf8(&trigram) {
        Ok(characters) if trigram.is_ascii() && is_shown(characters) => Value::text(characters),
        _ => {
            let [first, second, third] = trigram;
            Value::text(format!("0x{:06x}", u32::from_be_bytes([0, first, second, third])))
        }
    };
    let values = trigrams(text)?.into_iter().map(one).collect();
    Ok(Value::Array(Arc::new(Array::new(ElementType::TEXT, values)?)))
}

/// Whether a trigram is written as it is: where each of its characters may be in one.
fn is_shown(characters: &str) -> bool {
    characters.chars().all(|character| character == ' ' || character.is_ascii_alphanumeric())
}

/// The share of `count` in what both have together.
fn share(count: usize, left: usize, right: usize) -> f32 {
    count as f32 / (left + right - count) as f32
}

fn similarity(left: &str, right: &str) -> Result<f32, SqlError> {
    let (left, right) = (trigrams(left)?, trigrams(right)?);
    if left.is_empty() || right.is_empty() {
        return Ok(0.0);
    }
    let has = |trigram: &&Trigram| right.binary_search_by_key(&rank(**trigram), |one| rank(*one)).is_ok();
    Ok(share(left.iter().filter(has).count(), left.len(), right.len()))
}

fn distance(similarity: f32) -> Value {
    Value::Real((1.0 - f64::from(similarity)) as f32)
}

fn alike(word: &str, text: &str, is_strict: bool) -> Computed {
    let least = if is_strict { STRICT_WORD_SIMILARITY_LEAST } else { WORD_SIMILARITY_LEAST };
    Ok(Value::Boolean(f64::from(of_words(word, text, is_strict)?) >= least))
}

/// The greatest similarity of a word with a part of a text, as PostgreSQL looks for it: where it is strict, the part consists of whole
/// words.
fn of_words(word: &str, text: &str, is_strict: bool) -> Result<f32, SqlError> {
    let wanted = trigrams(word)?;
    let known = trigrams(text)?;
    let places = places(text);
    let is_wanted: Vec<bool> = known
        .iter()
        .map(|trigram| wanted.binary_search_by_key(&rank(*trigram), |one| rank(*one)).is_ok())
        .collect();
    let number = |place: &Place| {
        known.binary_search_by_key(&rank(place.trigram), |one| rank(*one)).unwrap_or_default()
    };
    let numbers: Vec<usize> = places.iter().map(number).collect();
    let mut window = Window {
        wanted: wanted.len(),
        is_wanted: &is_wanted,
        numbers: &numbers,
        places: &places,
        is_strict,
        // A part that is strict begins with the text, another one with the first trigram that is wanted.
        lower: is_strict.then_some(0),
        last: vec![None; known.len()],
        count: 0,
        different: 0,
    };
    let mut greatest = 0.0_f32;
    for at in 0..numbers.len() {
        if let Some(found) = window.extended(at)? {
            greatest = greatest.max(found);
        }
    }
    Ok(greatest)
}

/// A part of a text that is looked at.
struct Window<'a> {
    /// How many trigrams the word has.
    wanted: usize,
    /// Of each trigram of the text, whether the word has it.
    is_wanted: &'a [bool],
    /// At each place of the text, which trigram stands there.
    numbers: &'a [usize],
    places: &'a [Place],
    is_strict: bool,
    /// Where it begins.
    lower: Option<usize>,
    /// Where each trigram stands last in it.
    last: Vec<Option<usize>>,
    /// How many different trigrams it has of the word, and how many of all.
    count: usize,
    different: usize,
}

impl Window<'_> {
    /// Goes on to a place. The similarity where a part may end there.
    ///
    /// # Errors
    /// `57014` where it takes too many steps.
    fn extended(&mut self, at: usize) -> Result<Option<f32>, SqlError> {
        let number = self.numbers[at];
        if self.lower.is_some() || self.is_wanted[number] {
            if self.last[number].is_none() {
                self.different += 1;
                self.count += usize::from(self.is_wanted[number]);
            }
            self.last[number] = Some(at);
        }
        let may_end = if self.is_strict { self.places[at].ends } else { self.is_wanted[number] };
        if !may_end {
            return Ok(None);
        }
        let first = match self.lower {
            Some(lower) => lower,
            None => {
                self.lower = Some(at);
                self.different = 1;
                at
            }
        };
        self.shortened(first, at).map(Some)
    }

    /// Lets the part begin later where it is more alike then.
    fn shortened(&mut self, first: usize, at: usize) -> Result<f32, SqlError> {
        work::spend((at - first) as u64)?;
        let mut greatest = share(self.count, self.wanted, self.different);
        let (mut count, mut different, mut lower) = (self.count, self.different, first);
        for start in first..=at {
            if !self.is_strict || self.places[start].begins {
                let found = share(count, self.wanted, different);
                if found > greatest {
                    greatest = found;
                    (self.count, self.different, lower) = (count, different, start);
                }
            }
            let number = self.numbers[start];
            if self.last[number] == Some(start) {
                different -= 1;
                count -= usize::from(self.is_wanted[number]);
            }
        }
        for start in first..lower {
            let number = self.numbers[start];
            if self.last[number] == Some(start) {
                self.last[number] = None;
            }
        }
        self.lower = Some(lower);
        Ok(greatest)
    }
}
