//! What a rule of the machine is.
//!
//! In PostgreSQL a rule may push the position onto a stack before it tries
//! something, and a failure pops it and goes on with the next rule of the state
//! which had pushed. A look at all its states shows that one remembered position
//! is enough: a state which pushes either has further rules which always end in
//! a token, so that what lies below on the stack is never used, or it has
//! further rules which only fail, so that it need not be remembered itself.
//! The first is [`Action::Try`] here, the second a plain [`Action::Go`].

use super::class::Classes;
use super::state::State;
use super::token::TokenKind;

/// What the current character must be for a rule to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test {
    /// Anything, the end of the text included.
    Any,
    /// The end of the text.
    End,
    /// One of these ASCII characters.
    OneOf(&'static [u8]),
    /// A character in at least one of these classes.
    Class(Classes),
    /// Anything, as long as the text lies within a script or a style of HTML.
    Ignored,
}

/// What a rule does when it applies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Takes the character and goes to the state.
    Go(State),
    /// As `Go`, but if that fails then the machine comes back to this character
    /// and goes on with the rule after this one.
    Try(State),
    /// Comes back to the last `Try`.
    Fail,
    /// As `Fail`, at the end of the text within a comment: no later comment can
    /// have an end either.
    FailUnclosed,
    /// Ends the tokens although text is left, as PostgreSQL does for a text which
    /// ends within quotes in a tag right behind an escaped character.
    Stop,
    /// Goes to the state without taking the character.
    Again(State),
    /// Ends a token before the character.
    Emit(TokenKind),
    /// Ends a token behind the character.
    Take(TokenKind),
    /// Ends a token before the character; the next one starts in the state.
    EmitThen(TokenKind, State),
    /// Ends a hyphenated word before the character; its parts follow.
    EmitCompound(TokenKind),
    /// Ends a tag's name or an attribute at a space, and goes to the state
    /// among the attributes.
    GoTag,
    /// Ends a tag behind the character.
    TakeTag,
    /// Ends a blank behind the sign with which the token began, for what
    /// follows is a version.
    EmitSign,
    /// Ends an electronic mail address behind the host which starts here, and
    /// fails if there is none.
    Email,
    /// Ends a URL behind the path which starts here, and fails if there is none.
    Url,
}

/// A rule: the first one of a state which applies is the one which counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) test: Test,
    pub(crate) action: Action,
}

/// A rule for some ASCII characters.
pub(crate) const fn one_of(characters: &'static [u8], action: Action) -> Rule {
    Rule { test: Test::OneOf(characters), action }
}

/// A rule for the characters of some classes.
pub(crate) const fn class(classes: Classes, action: Action) -> Rule {
    Rule { test: Test::Class(classes), action }
}

/// A rule for the end of the text.
pub(crate) const fn end(action: Action) -> Rule {
    Rule { test: Test::End, action }
}

/// A rule for all that is left, the end of the text included.
pub(crate) const fn any(action: Action) -> Rule {
    Rule { test: Test::Any, action }
}
