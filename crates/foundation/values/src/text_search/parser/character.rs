//! What a character is: the only place where the parser asks for that.
//!
//! PostgreSQL 15 asks the C library (here as with the locale `C.UTF-8` of
//! glibc 2.36, which is at Unicode 14) and, for marks, its own tables (also at
//! Unicode 14).

use super::letters::{CAPITALS, LETTERS};
use super::mark::MARKS;

/// Whether the character is a letter.
///
/// For glibc that is what has the property `Alphabetic`, and also the decimal
/// digits beyond ASCII.
pub(crate) fn is_alphabetic(character: char) -> bool {
    if character.is_ascii() {
        return is_ascii_alphabetic(character);
    }
    is_in(LETTERS, character)
}

/// Whether the character is a letter of ASCII.
pub(crate) const fn is_ascii_alphabetic(character: char) -> bool {
    character.is_ascii_alphabetic()
}

/// Whether the character is a digit: only those of ASCII are.
pub(crate) const fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

/// Whether the character is a hexadecimal digit: only those of ASCII are.
pub(crate) const fn is_hexadecimal_digit(character: char) -> bool {
    character.is_ascii_hexdigit()
}

/// Whether the character is white space; for glibc a space which does not allow
/// a break is none, and neither is a control character beyond ASCII.
pub(crate) const fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t'..='\r'
            | ' '
            | '\u{1680}'
            | '\u{2000}'..='\u{2006}'
            | '\u{2008}'..='\u{200A}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{205F}'
            | '\u{3000}'
    )
}

/// Whether the character continues a word although it is no letter: those of no
/// width of their own, and the spacing vowel signs of some scripts. It matters
/// only for characters which are no letters.
pub(crate) fn is_mark(character: char) -> bool {
    if character.is_ascii() {
        return false;
    }
    is_in(MARKS, character)
}

/// Whether the character may stand in a URL: the printable ones of ASCII less
/// those which RFC 3986 excludes.
pub(crate) fn is_url(character: char) -> bool {
    character.is_ascii_graphic() && !matches!(character, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

/// The small letter of a letter; another character as it is.
pub(crate) fn small_letter(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let code = character as u32;
    let next = CAPITALS.partition_point(|&(_, last, ..)| last < code);
    let small = CAPITALS.get(next).and_then(|&(first, _, step, distance)| {
        let is_one = first <= code && (code - first).is_multiple_of(step);
        code.checked_add_signed(distance).filter(|_| is_one)
    });
    small.and_then(char::from_u32).unwrap_or(character)
}

/// Whether a character lies in one of these ranges, which are in order.
fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let code = character as u32;
    let next = ranges.partition_point(|&(_, last)| last < code);
    ranges.get(next).is_some_and(|&(first, _)| first <= code)
}
