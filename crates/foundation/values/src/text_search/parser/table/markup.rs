//! The rules in entities, tags, declarations and comments.

use super::super::class::Classes;
use super::super::rule::Action::{Fail, FailUnclosed, Go, GoTag, Stop, Take, TakeTag};
use super::super::rule::{Rule, any, class, end, one_of};
use super::super::state::State;
use super::super::token::TokenKind;

pub(super) const ENTITY_FIRST: &[Rule] = &[
    one_of(b"#", Go(State::EntityNumberFirst)),
    class(Classes::ASCII_LETTER, Go(State::EntityName)),
    one_of(b":_", Go(State::EntityName)),
    any(Fail),
];

pub(super) const ENTITY_NAME: &[Rule] = &[
    class(Classes::ALPHANUMERIC, Go(State::EntityName)),
    one_of(b":_.-", Go(State::EntityName)),
    one_of(b";", Take(TokenKind::Entity)),
    any(Fail),
];

pub(super) const ENTITY_NUMBER_FIRST: &[Rule] = &[
    one_of(b"xX", Go(State::EntityHexadecimalFirst)),
    class(Classes::DIGIT, Go(State::EntityNumber)),
    any(Fail),
];

pub(super) const ENTITY_NUMBER: &[Rule] =
    &[class(Classes::DIGIT, Go(State::EntityNumber)), one_of(b";", Take(TokenKind::Entity)), any(Fail)];

pub(super) const ENTITY_HEXADECIMAL_FIRST: &[Rule] =
    &[class(Classes::HEXADECIMAL, Go(State::EntityHexadecimal)), any(Fail)];

pub(super) const ENTITY_HEXADECIMAL: &[Rule] = &[
    class(Classes::HEXADECIMAL, Go(State::EntityHexadecimal)),
    one_of(b";", Take(TokenKind::Entity)),
    any(Fail),
];

pub(super) const TAG_FIRST: &[Rule] = &[
    one_of(b"/", Go(State::TagCloseFirst)),
    one_of(b"!", Go(State::DeclarationFirst)),
    one_of(b"?", Go(State::XmlDeclaration)),
    class(Classes::ASCII_LETTER, Go(State::TagName)),
    one_of(b":_", Go(State::TagName)),
    any(Fail),
];

pub(super) const TAG_CLOSE_FIRST: &[Rule] = &[class(Classes::ASCII_LETTER, Go(State::TagName)), any(Fail)];

pub(super) const TAG_NAME: &[Rule] = &[
    one_of(b"/", Go(State::TagSelfClose)),
    one_of(b">", TakeTag),
    class(Classes::SPACE, GoTag),
    class(Classes::ALPHANUMERIC, Go(State::TagName)),
    one_of(b":_.-", Go(State::TagName)),
    any(Fail),
];

// Such a tag never opens a script or a style.
pub(super) const TAG_SELF_CLOSE: &[Rule] = &[one_of(b">", Take(TokenKind::Tag)), any(Fail)];

pub(super) const TAG_BODY: &[Rule] = &[
    one_of(b">", TakeTag),
    one_of(b"'", Go(State::TagSingleQuote)),
    one_of(b"\"", Go(State::TagDoubleQuote)),
    class(Classes::ASCII_LETTER, Go(State::TagBody)),
    class(Classes::DIGIT, Go(State::TagBody)),
    one_of(b"=-_#/:.&?%~", Go(State::TagBody)),
    class(Classes::SPACE, GoTag),
    any(Fail),
];

// A backslash escapes the next character. Behind that one PostgreSQL skips its
// rules for another backslash, which then escapes nothing, and for the end of
// the text, where it gives up.
pub(super) const TAG_SINGLE_QUOTE: &[Rule] = &[
    end(Fail),
    one_of(b"\\", Go(State::TagSingleQuoteEscape)),
    one_of(b"'", Go(State::TagBody)),
    any(Go(State::TagSingleQuote)),
];

pub(super) const TAG_SINGLE_QUOTE_ESCAPE: &[Rule] = &[end(Fail), any(Go(State::TagSingleQuoteEscaped))];

pub(super) const TAG_SINGLE_QUOTE_ESCAPED: &[Rule] =
    &[one_of(b"'", Go(State::TagBody)), end(Stop), any(Go(State::TagSingleQuote))];

pub(super) const TAG_DOUBLE_QUOTE: &[Rule] = &[
    end(Fail),
    one_of(b"\\", Go(State::TagDoubleQuoteEscape)),
    one_of(b"\"", Go(State::TagBody)),
    any(Go(State::TagDoubleQuote)),
];

pub(super) const TAG_DOUBLE_QUOTE_ESCAPE: &[Rule] = &[end(Fail), any(Go(State::TagDoubleQuoteEscaped))];

pub(super) const TAG_DOUBLE_QUOTE_ESCAPED: &[Rule] =
    &[one_of(b"\"", Go(State::TagBody)), end(Stop), any(Go(State::TagDoubleQuote))];

// After `<?` an x is enough for PostgreSQL.
pub(super) const XML_DECLARATION: &[Rule] = &[one_of(b"x", Go(State::TagBody)), any(Fail)];

// After `<!` a d is taken for a document type.
pub(super) const DECLARATION_FIRST: &[Rule] =
    &[one_of(b"-", Go(State::CommentSecondDash)), one_of(b"Dd", Go(State::TagBody)), any(Fail)];

pub(super) const COMMENT_SECOND_DASH: &[Rule] = &[one_of(b"-", Go(State::Comment)), any(Fail)];

pub(super) const COMMENT: &[Rule] =
    &[end(FailUnclosed), one_of(b"-", Go(State::CommentDash)), any(Go(State::Comment))];

pub(super) const COMMENT_DASH: &[Rule] =
    &[end(FailUnclosed), one_of(b"-", Go(State::CommentDashes)), any(Go(State::Comment))];

pub(super) const COMMENT_DASHES: &[Rule] = &[
    end(FailUnclosed),
    one_of(b"-", Go(State::CommentDashes)),
    one_of(b">", Take(TokenKind::Tag)),
    any(Go(State::Comment)),
];
