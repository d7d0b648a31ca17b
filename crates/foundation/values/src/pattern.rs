//! LIKE and ILIKE.

use crate::work;
use types::{SqlError, SqlState};

/// How LIKE compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LikeForm {
    /// NOT LIKE.
    pub negated: bool,
    /// ILIKE.
    pub ignore_case: bool,
    /// What takes the meaning from `%`, `_` and itself.
    pub escape: Option<char>,
}

/// A pattern's element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character that stands for itself.
    Literal(char),
    /// The escape character with nothing after it: an error where text is left for it.
    DanglingEscape,
}

/// Whether `text` matches `pattern`, without looking at `form.negated`.
///
/// # Errors
/// `22025` where the pattern ends in its escape character; `57014` where it takes too many steps.
pub fn like(text: &str, pattern: &str, form: LikeForm) -> Result<bool, SqlError> {
    let fold = |character: char| if form.ignore_case { character.to_ascii_lowercase() } else { character };
    let mut elements = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        elements.push(if Some(character) == form.escape {
            characters.next().map_or(Element::DanglingEscape, |escaped| Element::Literal(fold(escaped)))
        } else {
            match character {
                '%' => Element::Any,
                '_' => Element::One,
                literal => Element::Literal(fold(literal)),
            }
        });
    }
    work::spend(units(text.len(), &elements))?;
    matches(&text.chars().map(fold).collect::<Vec<_>>(), &elements)
}

/// The work of matching a text of so many bytes: at each of its characters what stands behind a `%`, up to the next one, may
/// have to be looked at.
fn units(text: usize, pattern: &[Element]) -> u64 {
    const LOOKS_PER_UNIT: usize = 4;
    let parts = pattern.split(|element| *element == Element::Any).skip(1);
    let longest = parts.map(<[Element]>::len).max().unwrap_or(0).min(text);
    (text as u64).saturating_mul(1 + (longest / LOOKS_PER_UNIT) as u64).saturating_add(pattern.len() as u64)
}

/// Goes back to the last `%` only, which is enough: time is bounded by the product of both lengths.
fn matches(text: &[char], pattern: &[Element]) -> Result<bool, SqlError> {
    let (mut at, mut element) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(element) {
            Some(Element::Any) => {
                element += 1;
                retry = Some((at, element));
                continue;
            }
            Some(Element::One) => {}
            Some(Element::DanglingEscape) => {
                let message = "LIKE pattern must not end with escape character";
                return Err(SqlError::new(SqlState(*b"22025"), message));
            }
            Some(Element::Literal(literal)) if *literal == text[at] => {}
            _ => match retry {
                Some((start, after)) => {
                    at = start + 1;
                    element = after;
                    retry = Some((at, after));
                    continue;
                }
                None => return Ok(false),
            },
        }
        at += 1;
        element += 1;
    }
    Ok(pattern[element..].iter().all(|rest| *rest == Element::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_postgresql() {
        let form = LikeForm { negated: false, ignore_case: false, escape: Some('\\') };
        let check = |text: &str, pattern: &str| like(text, pattern, form).expect("a good pattern");
        assert!(check("abc", "a%") && check("abc", "_b_") && check("", "%") && check("abc", "%c"));
        assert!(!check("abc", "b") && !check("abc", "a_") && !check("", "_"));
        assert!(check("a%c", "a\\%c") && !check("abc", "a\\%c"));
        assert!(check("mississippi", "%iss%ppi") && !check("mississippi", "%iss%ppx"));
        assert!(like("ABC", "a%", LikeForm { ignore_case: true, ..form }).expect("a good pattern"));
        assert!(!check("abc", "abc\\") && like("abcd", "abc\\", form).is_err());
    }
}
