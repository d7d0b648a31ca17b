//! The rules in numbers and versions.

use super::super::class::Classes;
use super::super::rule::Action::{Emit, EmitSign, Fail, Go, Try};
use super::super::rule::{Rule, any, class, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

// What starts with a digit may become a host, an electronic mail address or a
// word too.
pub(super) const UNSIGNED_INTEGER: &[Rule] = &[
    class(Classes::DIGIT, Go(State::UnsignedInteger)),
    one_of(b".", Try(State::HostDomainFirst)),
    one_of(b".", Try(State::UnsignedDecimalFirst)),
    one_of(b"eE", Try(State::MantissaFirst)),
    one_of(b"-_", Try(State::HostPartFirst)),
    one_of(b"@", Try(State::EmailHost)),
    class(Classes::ASCII_LETTER, Try(State::HostPart)),
    class(Classes::WORD, Go(State::NumberWord)),
    one_of(b"/", Try(State::FileFirst)),
    any(Emit(TokenKind::UInt)),
];

pub(super) const SIGNED_INTEGER_FIRST: &[Rule] =
    &[class(Classes::DIGIT, Go(State::SignedInteger)), any(Fail)];

pub(super) const SIGNED_INTEGER: &[Rule] = &[
    class(Classes::DIGIT, Go(State::SignedInteger)),
    one_of(b".", Try(State::SignedDecimalFirst)),
    one_of(b"eE", Try(State::MantissaFirst)),
    any(Emit(TokenKind::Int)),
];

pub(super) const UNSIGNED_DECIMAL_FIRST: &[Rule] =
    &[class(Classes::DIGIT, Go(State::UnsignedDecimal)), any(Fail)];

pub(super) const UNSIGNED_DECIMAL: &[Rule] = &[
    class(Classes::DIGIT, Go(State::UnsignedDecimal)),
    one_of(b".", Try(State::VersionFirst)),
    one_of(b"eE", Try(State::MantissaFirst)),
    any(Emit(TokenKind::Float)),
];

pub(super) const SIGNED_DECIMAL_FIRST: &[Rule] =
    &[class(Classes::DIGIT, Go(State::SignedDecimal)), any(Fail)];

pub(super) const SIGNED_DECIMAL: &[Rule] = &[
    class(Classes::DIGIT, Go(State::SignedDecimal)),
    one_of(b".", Try(State::SignedVersionFirst)),
    one_of(b"eE", Try(State::MantissaFirst)),
    any(Emit(TokenKind::Float)),
];

pub(super) const SIGNED_VERSION_FIRST: &[Rule] = &[class(Classes::DIGIT, EmitSign), any(Fail)];

pub(super) const VERSION_FIRST: &[Rule] = &[class(Classes::DIGIT, Go(State::Version)), any(Fail)];

pub(super) const VERSION: &[Rule] = &[
    class(Classes::DIGIT, Go(State::Version)),
    one_of(b".", Try(State::VersionFirst)),
    any(Emit(TokenKind::Version)),
];

pub(super) const MANTISSA_FIRST: &[Rule] =
    &[class(Classes::DIGIT, Go(State::Mantissa)), one_of(b"+-", Go(State::MantissaSign)), any(Fail)];

pub(super) const MANTISSA_SIGN: &[Rule] = &[class(Classes::DIGIT, Go(State::Mantissa)), any(Fail)];

pub(super) const MANTISSA: &[Rule] =
    &[class(Classes::DIGIT, Go(State::Mantissa)), any(Emit(TokenKind::SFloat))];
