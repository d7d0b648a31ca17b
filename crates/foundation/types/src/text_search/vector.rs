//! Documents: lexemes, and where they stand.

use super::{LEXEME_BYTES_MAX, POSITION_MAX, POSITIONS_MAX, VECTOR_BYTES_MAX, vector_text_bytes};
use crate::{SqlError, SqlState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How much a place in a document counts: `D` where nothing is said.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Weight {
    /// The least; it is not written.
    #[default]
    D,
    /// More than `D`
    C,
    /// More than `C`
    B,
    /// The most
    A,
}

impl Weight {
    /// All, the least first.
    pub const ALL: [Weight; 4] = [Weight::D, Weight::C, Weight::B, Weight::A];

    /// The weight with this letter, large or small.
    pub fn of_letter(letter: char) -> Option<Weight> {
        match letter {
            'a' | 'A' => Some(Weight::A),
            'b' | 'B' => Some(Weight::B),
            'c' | 'C' => Some(Weight::C),
            'd' | 'D' => Some(Weight::D),
            _ => None,
        }
    }

    /// Its letter.
    pub fn letter(self) -> char {
        match self {
            Weight::A => 'A',
            Weight::B => 'B',
            Weight::C => 'C',
            Weight::D => 'D',
        }
    }
}

/// Where a lexeme stands in a document, and how much that counts.
///
/// As on PostgreSQL's wire: the weight in the upper two bits, the place from 1 to [`POSITION_MAX`] in the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Position(u16);

impl Position {
    /// A place, which is cut to [`POSITION_MAX`], with a weight.
    pub fn new(place: u32, weight: Weight) -> Position {
        let place = u16::try_from(place).unwrap_or(POSITION_MAX).clamp(1, POSITION_MAX);
        Position(place | ((weight as u16) << 14))
    }

    /// The position of bits from the wire; `None` where the place is 0.
    pub fn of_bits(bits: u16) -> Option<Position> {
        (bits & POSITION_MAX != 0).then_some(Position(bits))
    }

    /// As on the wire.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The place, from 1.
    pub fn place(self) -> u16 {
        self.0 & POSITION_MAX
    }

    /// How much it counts.
    pub fn weight(self) -> Weight {
        Weight::ALL[usize::from(self.0 >> 14)]
    }
}

/// A word of a document as it is looked for, and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lexeme<'a> {
    /// The word.
    pub text: &'a str,
    /// Where it stands, in order; none where nobody knows.
    pub positions: Positions<'a>,
}

/// Where a lexeme stands, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Positions<'a>(&'a [u8]);

impl<'a> Positions<'a> {
    /// How many.
    pub fn len(self) -> usize {
        self.0.len() / 2
    }

    /// Whether nobody knows where the lexeme stands.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Position> + 'a {
        self.0.chunks_exact(2).map(|bytes| Position(u16::from_le_bytes([bytes[0], bytes[1]])))
    }
}

/// A value of type `tsvector`: lexemes in the order of their bytes, each once.
///
/// One piece of bytes that nothing changes, so that copying it costs a reference count. For each lexeme: the length of its text in two
/// bytes, the text, how many positions in two bytes, and these in two bytes each, the lower byte first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TsVector(Arc<[u8]>);

impl TsVector {
    /// The document with these lexemes. What stands there twice is joined; of a place with two weights the greater one counts.
    ///
    /// # Errors
    /// `54000` where a lexeme or all together are too long, `2200F` for an empty lexeme.
    pub fn new(lexemes: impl IntoIterator<Item = (String, Vec<Position>)>) -> Result<TsVector, SqlError> {
        let mut by_text: BTreeMap<String, Vec<Position>> = BTreeMap::new();
        for (text, positions) in lexemes {
            if text.is_empty() {
                let message = "lexeme array may not contain empty strings";
                return Err(SqlError::new(SqlState(*b"2200F"), message));
            }
            if text.len() > LEXEME_BYTES_MAX {
                let message =
                    format!("word is too long ({} bytes, max {LEXEME_BYTES_MAX} bytes)", text.len());
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
            by_text.entry(text).or_default().extend(positions);
        }
        let sorted = by_text.into_iter().map(|(text, positions)| (text, joined(positions)));
        TsVector::of_sorted(sorted)
    }

    /// The document with these lexemes, which are in order, with positions in order.
    ///
    /// # Errors
    /// `54000` where all together are too long.
    pub fn of_sorted<T: AsRef<str>>(
        lexemes: impl IntoIterator<Item = (T, Vec<Position>)>,
    ) -> Result<TsVector, SqlError> {
        let mut bytes = Vec::new();
        for (text, positions) in lexemes {
            let text = text.as_ref();
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend_from_slice(&(positions.len() as u16).to_le_bytes());
            positions.iter().for_each(|position| bytes.extend_from_slice(&position.bits().to_le_bytes()));
        }
        TsVector::of_bytes(bytes)
    }

    /// The document in these bytes, which an encoder of this module made or somebody has checked.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Result<TsVector, SqlError> {
        let vector = TsVector(Arc::from(bytes));
        vector.check_length()?;
        Ok(vector)
    }

    /// The bytes that it is stored in.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The lexemes in the order of their bytes.
    pub fn lexemes(&self) -> impl Iterator<Item = Lexeme<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (lexeme, behind) = split_lexeme(rest)?;
            rest = behind;
            Some(lexeme)
        })
    }

    /// Whether it has no lexeme.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of PostgreSQL's value, by which documents are ordered first: lexemes with positions begin at even places.
    pub(super) fn postgres_bytes(&self) -> usize {
        8 + 4 * self.lexemes().count() + self.postgres_content_bytes()
    }

    fn postgres_content_bytes(&self) -> usize {
        self.lexemes().fold(0, |bytes, lexeme| {
            let bytes = bytes + lexeme.text.len();
            match lexeme.positions.len() {
                0 => bytes,
                count => bytes.next_multiple_of(2) + 2 + 2 * count,
            }
        })
    }

    fn check_length(&self) -> Result<(), SqlError> {
        let bytes = self.postgres_content_bytes();
        if bytes > VECTOR_BYTES_MAX {
            let message =
                format!("string is too long for tsvector ({bytes} bytes, max {VECTOR_BYTES_MAX} bytes)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let (bytes, limit) = (vector_text_bytes(self), crate::text_bytes_max());
        if bytes > limit {
            let message =
                format!("the tsvector has {bytes} bytes as a text, the limit is {limit} (TEXT_BYTES_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(())
    }
}

/// Positions in order, each place once and with the greatest of its weights, as many as a lexeme may have. As in PostgreSQL, what comes
/// behind the last place that there is counts for nothing.
fn joined(mut positions: Vec<Position>) -> Vec<Position> {
    positions.sort_by_key(|position| position.place());
    let mut joined: Vec<Position> = Vec::with_capacity(positions.len());
    for position in positions {
        match joined.last_mut() {
            Some(last) if last.place() == position.place() => {
                if position.weight() > last.weight() {
                    *last = position;
                }
            }
            _ => {
                joined.push(position);
                let is_last = joined.len() >= POSITIONS_MAX || position.place() == POSITION_MAX;
                if is_last && joined.len() > 1 {
                    break;
                }
            }
        }
    }
    joined
}

/// The first lexeme and what is behind.
pub(super) fn split_lexeme(bytes: &[u8]) -> Option<(Lexeme<'_>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    let (positions, rest) = rest.split_at_checked(2 * usize::from(u16::from_le_bytes(*count)))?;
    let text = std::str::from_utf8(text).ok()?;
    Some((Lexeme { text, positions: Positions(positions) }, rest))
}
