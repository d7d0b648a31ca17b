//! The states of the machine.

/// Where the machine stands within a token: what it has read so far and what
/// may follow. They are the states of PostgreSQL 15's default parser, less
/// those which its stack alone needs and those of the path of a URL, which
/// [`super::address`] reads in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Before a token.
    Base,

    // Words and blanks.
    AsciiWord,
    Word,
    NumberWord,
    Space,

    // Numbers. A state named `…First` stands before what makes the number
    // longer than a shorter number which is already complete.
    UnsignedInteger,
    SignedIntegerFirst,
    SignedInteger,
    UnsignedDecimalFirst,
    UnsignedDecimal,
    SignedDecimalFirst,
    SignedDecimal,
    /// After a second dot in a number with a sign, which no number may have:
    /// if a digit follows, then it is a version after a lone sign.
    SignedVersionFirst,
    VersionFirst,
    Version,
    MantissaFirst,
    MantissaSign,
    Mantissa,

    // Entities.
    EntityFirst,
    EntityName,
    EntityNumberFirst,
    EntityNumber,
    EntityHexadecimalFirst,
    EntityHexadecimal,

    // Tags, declarations and comments.
    TagFirst,
    TagCloseFirst,
    TagName,
    /// After a slash at the end of a tag's name.
    TagSelfClose,
    /// After a tag's name: among its attributes.
    TagBody,
    TagSingleQuote,
    TagSingleQuoteEscape,
    TagSingleQuoteEscaped,
    TagDoubleQuote,
    TagDoubleQuoteEscape,
    TagDoubleQuoteEscaped,
    XmlDeclaration,
    DeclarationFirst,
    CommentSecondDash,
    Comment,
    CommentDash,
    CommentDashes,

    // Protocols, hosts, electronic mail addresses and URLs.
    ProtocolFirst,
    ProtocolSecond,
    /// After a dot in what may become a host.
    HostDomainFirst,
    /// After the first letter of a domain, which needs at least two.
    HostDomainSecond,
    /// In a domain of letters only, with which a host may end.
    HostDomain,
    /// After a hyphen or an underscore in what may become a host.
    HostPartFirst,
    /// In a part of a host with which it can not end.
    HostPart,
    PortFirst,
    Port,
    /// After the `@` of what may become an electronic mail address.
    EmailHost,
    /// After the slash behind a host.
    UrlPath,

    // Files and paths.
    FileFirst,
    FileTilde,
    /// After a dot at the start of a token.
    PathDotFirst,
    /// After a dot at the start of a path's part.
    PathDot,
    /// After two dots at the start of a path's part.
    PathDots,
    File,
    FileDot,

    // Hyphenated words as a whole.
    CompoundAsciiFirst,
    CompoundAscii,
    CompoundWordFirst,
    CompoundWord,
    CompoundNumberFirst,
    CompoundNumber,
    /// In digits after a hyphen: only a letter behind them makes them a part.
    CompoundDigits,

    // The parts of a hyphenated word which has been returned as a whole.
    Parts,
    PartsHyphen,
    PartAscii,
    PartWord,
    PartNumber,
    PartDigits,
}
