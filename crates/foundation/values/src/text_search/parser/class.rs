//! The classes of characters which the rules of the machine ask for.

use super::character;

/// A set of classes: those of a character, or those which a rule accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes(u8);

impl Classes {
    /// No class: those of the end of the text.
    pub(crate) const NONE: Classes = Classes(0);
    /// A letter of ASCII.
    pub(crate) const ASCII_LETTER: Classes = Classes(1);
    /// A letter, also one of ASCII.
    pub(crate) const LETTER: Classes = Classes(2);
    /// A digit.
    pub(crate) const DIGIT: Classes = Classes(4);
    /// A hexadecimal digit.
    pub(crate) const HEXADECIMAL: Classes = Classes(8);
    /// White space.
    pub(crate) const SPACE: Classes = Classes(16);
    /// No letter, but it does not end a word either.
    pub(crate) const MARK: Classes = Classes(32);
    /// A letter or a digit.
    pub(crate) const ALPHANUMERIC: Classes = Self::LETTER.or(Self::DIGIT);
    /// What continues a word of letters.
    pub(crate) const WORD: Classes = Self::LETTER.or(Self::MARK);
    /// What continues a word of letters and digits.
    pub(crate) const NUMBER_WORD: Classes = Self::ALPHANUMERIC.or(Self::MARK);

    /// The classes of both.
    pub(crate) const fn or(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    /// Whether the two have a class in common.
    pub(crate) const fn meets(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// The classes of a character.
    pub(crate) fn of(character: char) -> Classes {
        match ASCII.get(character as usize) {
            Some(&classes) => classes,
            None => Self::beyond_ascii(character),
        }
    }

    const fn of_ascii(character: char) -> Classes {
        Classes::NONE
            .with(character::is_ascii_alphabetic(character), Self::LETTER.or(Self::ASCII_LETTER))
            .with(character::is_digit(character), Self::DIGIT)
            .with(character::is_hexadecimal_digit(character), Self::HEXADECIMAL)
            .with(character::is_space(character), Self::SPACE)
    }

    fn beyond_ascii(character: char) -> Classes {
        // PostgreSQL never asks for marks without asking for letters first.
        if character::is_alphabetic(character) {
            return Self::LETTER;
        }
        Classes::NONE
            .with(character::is_space(character), Self::SPACE)
            .with(character::is_mark(character), Self::MARK)
    }

    const fn with(self, holds: bool, classes: Classes) -> Classes {
        if holds { self.or(classes) } else { self }
    }
}

/// The classes of the characters of ASCII, worked out beforehand since most
/// texts consist of them.
const ASCII: [Classes; 128] = {
    let mut table = [Classes::NONE; 128];
    let mut code = 0;
    while code < table.len() {
        table[code] = Classes::of_ascii(code as u8 as char);
        code += 1;
    }
    table
};
