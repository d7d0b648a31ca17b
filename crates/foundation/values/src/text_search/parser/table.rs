//! The rules of every state.

mod address;
mod compound;
mod file;
mod markup;
mod number;
mod word;

use super::rule::Rule;
use super::state::State;

/// The rules of a state, in the order in which they are tried. The last rule of
/// every state applies always.
pub(crate) fn rules(state: State) -> &'static [Rule] {
    match state {
        State::Base => word::BASE,
        State::AsciiWord => word::ASCII_WORD,
        State::Word => word::WORD,
        State::NumberWord => word::NUMBER_WORD,
        State::Space => word::SPACE,
        State::UnsignedInteger => number::UNSIGNED_INTEGER,
        State::SignedIntegerFirst => number::SIGNED_INTEGER_FIRST,
        State::SignedInteger => number::SIGNED_INTEGER,
        State::UnsignedDecimalFirst => number::UNSIGNED_DECIMAL_FIRST,
        State::UnsignedDecimal => number::UNSIGNED_DECIMAL,
        State::SignedDecimalFirst => number::SIGNED_DECIMAL_FIRST,
        State::SignedDecimal => number::SIGNED_DECIMAL,
        State::SignedVersionFirst => number::SIGNED_VERSION_FIRST,
        State::VersionFirst => number::VERSION_FIRST,
        State::Version => number::VERSION,
        State::MantissaFirst => number::MANTISSA_FIRST,
        State::MantissaSign => number::MANTISSA_SIGN,
        State::Mantissa => number::MANTISSA,
        State::EntityFirst => markup::ENTITY_FIRST,
        State::EntityName => markup::ENTITY_NAME,
        State::EntityNumberFirst => markup::ENTITY_NUMBER_FIRST,
        State::EntityNumber => markup::ENTITY_NUMBER,
        State::EntityHexadecimalFirst => markup::ENTITY_HEXADECIMAL_FIRST,
        State::EntityHexadecimal => markup::ENTITY_HEXADECIMAL,
        State::TagFirst => markup::TAG_FIRST,
        State::TagCloseFirst => markup::TAG_CLOSE_FIRST,
        State::TagName => markup::TAG_NAME,
        State::TagSelfClose => markup::TAG_SELF_CLOSE,
        State::TagBody => markup::TAG_BODY,
        State::TagSingleQuote => markup::TAG_SINGLE_QUOTE,
        State::TagSingleQuoteEscape => markup::TAG_SINGLE_QUOTE_ESCAPE,
        State::TagSingleQuoteEscaped => markup::TAG_SINGLE_QUOTE_ESCAPED,
        State::TagDoubleQuote => markup::TAG_DOUBLE_QUOTE,
        State::TagDoubleQuoteEscape => markup::TAG_DOUBLE_QUOTE_ESCAPE,
        State::TagDoubleQuoteEscaped => markup::TAG_DOUBLE_QUOTE_ESCAPED,
        State::XmlDeclaration => markup::XML_DECLARATION,
        State::DeclarationFirst => markup::DECLARATION_FIRST,
        State::CommentSecondDash => markup::COMMENT_SECOND_DASH,
        State::Comment => markup::COMMENT,
        State::CommentDash => markup::COMMENT_DASH,
        State::CommentDashes => markup::COMMENT_DASHES,
        State::ProtocolFirst => address::PROTOCOL_FIRST,
        State::ProtocolSecond => address::PROTOCOL_SECOND,
        State::HostDomainFirst => address::HOST_DOMAIN_FIRST,
        State::HostDomainSecond => address::HOST_DOMAIN_SECOND,
        State::HostDomain => address::HOST_DOMAIN,
        State::HostPartFirst => address::HOST_PART_FIRST,
        State::HostPart => address::HOST_PART,
        State::PortFirst => address::PORT_FIRST,
        State::Port => address::PORT,
        State::EmailHost => address::EMAIL_HOST,
        State::UrlPath => address::URL_PATH,
        State::FileFirst => file::FILE_FIRST,
        State::FileTilde => file::FILE_TILDE,
        State::PathDotFirst => file::PATH_DOT_FIRST,
        State::PathDot => file::PATH_DOT,
        State::PathDots => file::PATH_DOTS,
        State::File => file::FILE,
        State::FileDot => file::FILE_DOT,
        State::CompoundAsciiFirst => compound::COMPOUND_ASCII_FIRST,
        State::CompoundAscii => compound::COMPOUND_ASCII,
        State::CompoundWordFirst => compound::COMPOUND_WORD_FIRST,
        State::CompoundWord => compound::COMPOUND_WORD,
        State::CompoundNumberFirst => compound::COMPOUND_NUMBER_FIRST,
        State::CompoundNumber => compound::COMPOUND_NUMBER,
        State::CompoundDigits => compound::COMPOUND_DIGITS,
        State::Parts => compound::PARTS,
        State::PartsHyphen => compound::PARTS_HYPHEN,
        State::PartAscii => compound::PART_ASCII,
        State::PartWord => compound::PART_WORD,
        State::PartNumber => compound::PART_NUMBER,
        State::PartDigits => compound::PART_DIGITS,
    }
}
