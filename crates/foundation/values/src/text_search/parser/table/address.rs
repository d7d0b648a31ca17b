//! The rules in protocols, hosts, electronic mail addresses and URLs.

use super::super::class::Classes;
use super::super::rule::Action::{Email, Emit, Fail, Go, Take, Try, Url};
use super::super::rule::{Rule, any, class, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

/// What a host is made of between its dots, hyphens and underscores.
const HOST: Classes = Classes::ASCII_LETTER.or(Classes::DIGIT);

pub(super) const PROTOCOL_FIRST: &[Rule] = &[one_of(b"/", Go(State::ProtocolSecond)), any(Fail)];

pub(super) const PROTOCOL_SECOND: &[Rule] = &[one_of(b"/", Take(TokenKind::Protocol)), any(Fail)];

pub(super) const HOST_DOMAIN_FIRST: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::HostDomainSecond)),
    class(Classes::DIGIT, Go(State::HostPart)),
    any(Fail),
];

pub(super) const HOST_DOMAIN_SECOND: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::HostDomain)),
    class(Classes::DIGIT, Go(State::HostPart)),
    one_of(b"-_", Go(State::HostPartFirst)),
    one_of(b".", Go(State::HostDomainFirst)),
    one_of(b"@", Go(State::EmailHost)),
    any(Fail),
];

// The only state in which a host without a port may end; a digit makes the
// domain one with which it can not.
pub(super) const HOST_DOMAIN: &[Rule] = &[
    class(Classes::ASCII_LETTER, Go(State::HostDomain)),
    class(Classes::DIGIT, Go(State::HostPart)),
    one_of(b":", Try(State::PortFirst)),
    one_of(b"-_", Try(State::HostPartFirst)),
    one_of(b".", Try(State::HostDomainFirst)),
    one_of(b"@", Try(State::EmailHost)),
    one_of(b"/", Try(State::UrlPath)),
    any(Emit(TokenKind::Host)),
];

pub(super) const HOST_PART_FIRST: &[Rule] = &[class(HOST, Go(State::HostPart)), any(Fail)];

pub(super) const HOST_PART: &[Rule] = &[
    class(HOST, Go(State::HostPart)),
    one_of(b"@", Go(State::EmailHost)),
    one_of(b".", Go(State::HostDomainFirst)),
    one_of(b"-_", Go(State::HostPartFirst)),
    any(Fail),
];

pub(super) const PORT_FIRST: &[Rule] = &[class(Classes::DIGIT, Go(State::Port)), any(Fail)];

pub(super) const PORT: &[Rule] =
    &[class(Classes::DIGIT, Go(State::Port)), one_of(b"/", Try(State::UrlPath)), any(Emit(TokenKind::Host))];

pub(super) const EMAIL_HOST: &[Rule] = &[any(Email)];

pub(super) const URL_PATH: &[Rule] = &[any(Url)];
