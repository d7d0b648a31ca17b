//! The rules before a token, and in words and blanks.

use super::super::class::Classes;
use super::super::rule::Action::{Emit, Go, Try};
use super::super::rule::{Rule, Test, any, class, end, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

pub(super) const BASE: &[Rule] = &[
    one_of(b"<", Try(State::TagFirst)),
    Rule { test: Test::Ignored, action: Go(State::Space) },
    class(Classes::ASCII_LETTER, Go(State::AsciiWord)),
    class(Classes::LETTER, Go(State::Word)),
    class(Classes::DIGIT, Go(State::UnsignedInteger)),
    one_of(b"-+", Try(State::SignedIntegerFirst)),
    one_of(b"&", Try(State::EntityFirst)),
    one_of(b"~", Try(State::FileTilde)),
    one_of(b"/", Try(State::FileFirst)),
    one_of(b".", Try(State::PathDotFirst)),
    any(Go(State::Space)),
];

// A dot, a hyphen or a digit has two rules here: the longer reading comes first,
// and the shorter one if that fails.
pub(super) const ASCII_WORD: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::AsciiWord)),
    one_of(b".", Try(State::HostDomainFirst)),
    one_of(b".", Try(State::FileDot)),
    one_of(b"-", Try(State::HostPartFirst)),
    one_of(b"-", Try(State::CompoundAsciiFirst)),
    one_of(b"_", Try(State::HostPartFirst)),
    one_of(b"@", Try(State::EmailHost)),
    one_of(b":", Try(State::ProtocolFirst)),
    one_of(b"/", Try(State::FileFirst)),
    class(Classes::DIGIT, Try(State::HostPart)),
    class(Classes::DIGIT, Go(State::NumberWord)),
    class(Classes::WORD, Go(State::Word)),
    any(Emit(TokenKind::AsciiWord)),
];

pub(super) const WORD: &[Rule] = &[
    class(Classes::WORD, Go(State::Word)),
    class(Classes::DIGIT, Go(State::NumberWord)),
    one_of(b"-", Try(State::CompoundWordFirst)),
    any(Emit(TokenKind::Word)),
];

pub(super) const NUMBER_WORD: &[Rule] = &[
    class(Classes::NUMBER_WORD, Go(State::NumberWord)),
    one_of(b"@", Try(State::EmailHost)),
    one_of(b"/", Try(State::FileFirst)),
    one_of(b".", Try(State::FileDot)),
    one_of(b"-", Try(State::CompoundNumberFirst)),
    any(Emit(TokenKind::NumWord)),
];

// A blank ends before what may start a token which is no word, so that a sign
// belongs to its number; within a script or a style only a tag ends it.
pub(super) const SPACE: &[Rule] = &[
    end(Emit(TokenKind::Blank)),
    one_of(b"<", Emit(TokenKind::Blank)),
    Rule { test: Test::Ignored, action: Go(State::Space) },
    one_of(b"-+&/", Emit(TokenKind::Blank)),
    class(Classes::ALPHANUMERIC, Emit(TokenKind::Blank)),
    any(Go(State::Space)),
];
