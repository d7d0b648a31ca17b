//! The rules in file and path names.

use super::super::class::Classes;
use super::super::rule::Action::{Emit, Fail, Go, Try};
use super::super::rule::{Rule, any, class, end, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

/// What may start a name.
const NAME: Classes = Classes::ASCII_LETTER.or(Classes::DIGIT);

pub(super) const FILE_FIRST: &[Rule] = &[
    class(NAME, Go(State::File)),
    one_of(b".", Go(State::PathDot)),
    one_of(b"_", Go(State::File)),
    one_of(b"~", Go(State::FileTilde)),
    any(Fail),
];

pub(super) const FILE_TILDE: &[Rule] = &[
    class(NAME, Go(State::File)),
    one_of(b"_", Go(State::File)),
    one_of(b"/", Go(State::FileFirst)),
    any(Fail),
];

pub(super) const PATH_DOT_FIRST: &[Rule] =
    &[one_of(b".", Go(State::PathDots)), one_of(b"/", Go(State::FileFirst)), any(Fail)];

pub(super) const PATH_DOT: &[Rule] = &[
    class(NAME, Go(State::File)),
    one_of(b"_", Go(State::File)),
    one_of(b".", Go(State::PathDots)),
    one_of(b"/", Go(State::FileFirst)),
    any(Fail),
];

// Two dots are a path of their own only before the end, a slash or a space.
pub(super) const PATH_DOTS: &[Rule] = &[
    end(Emit(TokenKind::File)),
    one_of(b"/", Try(State::FileFirst)),
    one_of(b"/", Emit(TokenKind::File)),
    class(Classes::SPACE, Emit(TokenKind::File)),
    any(Fail),
];

pub(super) const FILE: &[Rule] = &[
    class(NAME, Go(State::File)),
    one_of(b".", Try(State::FileDot)),
    one_of(b"_-", Go(State::File)),
    one_of(b"/", Try(State::FileFirst)),
    any(Emit(TokenKind::File)),
];

pub(super) const FILE_DOT: &[Rule] =
    &[class(NAME, Go(State::File)), one_of(b"_", Go(State::File)), any(Fail)];
