//! The rules in hyphenated words and in their parts.

use super::super::class::Classes;
use super::super::rule::Action::{Again, EmitCompound, EmitThen, Fail, Go, Try};
use super::super::rule::{Rule, any, class, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

pub(super) const COMPOUND_ASCII_FIRST: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::CompoundAscii)),
    class(Classes::LETTER, Go(State::CompoundWord)),
    class(Classes::DIGIT, Go(State::CompoundDigits)),
    any(Fail),
];

pub(super) const COMPOUND_ASCII: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::CompoundAscii)),
    class(Classes::WORD, Go(State::CompoundWord)),
    class(Classes::DIGIT, Go(State::CompoundNumber)),
    one_of(b"-", Try(State::CompoundAsciiFirst)),
    any(EmitCompound(TokenKind::AsciiHWord)),
];

pub(super) const COMPOUND_WORD_FIRST: &[Rule] = &[
    class(Classes::LETTER, Go(State::CompoundWord)),
    class(Classes::DIGIT, Go(State::CompoundDigits)),
    any(Fail),
];

pub(super) const COMPOUND_WORD: &[Rule] = &[
    class(Classes::WORD, Go(State::CompoundWord)),
    class(Classes::DIGIT, Go(State::CompoundNumber)),
    one_of(b"-", Try(State::CompoundWordFirst)),
    any(EmitCompound(TokenKind::HWord)),
];

pub(super) const COMPOUND_NUMBER_FIRST: &[Rule] = &[
    class(Classes::LETTER, Go(State::CompoundNumber)),
    class(Classes::DIGIT, Go(State::CompoundDigits)),
    any(Fail),
];

pub(super) const COMPOUND_NUMBER: &[Rule] = &[
    class(Classes::NUMBER_WORD, Go(State::CompoundNumber)),
    one_of(b"-", Try(State::CompoundNumberFirst)),
    any(EmitCompound(TokenKind::NumHWord)),
];

pub(super) const COMPOUND_DIGITS: &[Rule] = &[
    class(Classes::DIGIT, Go(State::CompoundDigits)),
    class(Classes::WORD, Go(State::CompoundNumber)),
    any(Fail),
];

// The parts do not end where the word as a whole ended: a hyphen with a digit
// behind it may follow.
pub(super) const PARTS: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::PartAscii)),
    class(Classes::LETTER, Go(State::PartWord)),
    class(Classes::DIGIT, Try(State::PartDigits)),
    one_of(b"-", Try(State::PartsHyphen)),
    any(Again(State::Base)),
];

pub(super) const PARTS_HYPHEN: &[Rule] =
    &[class(Classes::NUMBER_WORD, EmitThen(TokenKind::Blank, State::Parts)), any(Fail)];

pub(super) const PART_ASCII: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::PartAscii)),
    class(Classes::WORD, Go(State::PartWord)),
    class(Classes::DIGIT, Go(State::PartNumber)),
    any(EmitThen(TokenKind::HWordAsciiPart, State::Parts)),
];

pub(super) const PART_WORD: &[Rule] = &[
    class(Classes::WORD, Go(State::PartWord)),
    class(Classes::DIGIT, Go(State::PartNumber)),
    any(EmitThen(TokenKind::HWordPart, State::Parts)),
];

pub(super) const PART_NUMBER: &[Rule] = &[
    class(Classes::NUMBER_WORD, Go(State::PartNumber)),
    any(EmitThen(TokenKind::HWordNumPart, State::Parts)),
];

pub(super) const PART_DIGITS: &[Rule] =
    &[class(Classes::DIGIT, Go(State::PartDigits)), class(Classes::WORD, Go(State::PartNumber)), any(Fail)];
