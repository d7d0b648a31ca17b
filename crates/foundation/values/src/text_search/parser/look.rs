//! The character before which the machine stands.

use super::class::Classes;
use super::rule::{Rule, Test};

/// What the machine sees at a position of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The character if it is one of ASCII.
    ascii: Option<u8>,
    classes: Classes,
    /// The length of the character in bytes; 0 at the end of the text.
    pub(crate) length: usize,
}

impl Look {
    /// What stands at a position, which must lie between two characters.
    pub(crate) fn at(text: &str, position: usize) -> Look {
        #[cfg(test)]
        count::add();
        let rest = text.get(position..).unwrap_or_default();
        match rest.chars().next() {
            None => Look { ascii: None, classes: Classes::NONE, length: 0 },
            Some(character) => Look {
                ascii: u8::try_from(character).ok().filter(u8::is_ascii),
                classes: Classes::of(character),
                length: character.len_utf8(),
            },
        }
    }

    /// Whether the character is this one of ASCII.
    pub(crate) fn is(self, character: u8) -> bool {
        self.ascii == Some(character)
    }

    /// Whether the character is in one of the classes.
    pub(crate) fn is_in(self, classes: Classes) -> bool {
        self.classes.meets(classes)
    }

    /// Whether the rule applies to the character; `ignoring` says whether the
    /// text is that of a script or a style.
    pub(crate) fn fits(self, rule: &Rule, ignoring: bool) -> bool {
        match rule.test {
            Test::Any => true,
            Test::End => self.length == 0,
            Test::OneOf(characters) => self.ascii.is_some_and(|own| characters.contains(&own)),
            Test::Class(classes) => self.is_in(classes),
            Test::Ignored => ignoring,
        }
    }
}

/// Counts the looks of a thread, for the tests which bound them: each rule
/// applied and each character read ahead costs one.
#[cfg(test)]
pub(crate) mod count {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn add() {
        LOOKS.set(LOOKS.get() + 1);
    }

    /// The number of looks since the last call.
    pub(crate) fn take() -> usize {
        LOOKS.replace(0)
    }
}
