//! The tokens which the parser finds.

/// The kind of a token of PostgreSQL 15's default parser.
///
/// The numbers are those of `ts_token_type('default')`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum TokenKind {
    /// A word of ASCII letters only.
    AsciiWord = 1,
    /// A word of letters, not all of them ASCII.
    Word = 2,
    /// A word of letters and digits.
    NumWord = 3,
    /// An electronic mail address.
    Email = 4,
    /// A host followed by a path; its host and its path follow as tokens.
    Url = 5,
    /// A host name, with its port if it has one.
    Host = 6,
    /// A number with an exponent.
    SFloat = 7,
    /// A version number: at least two dots between digits.
    Version = 8,
    /// A part of a hyphenated word, of letters and digits.
    HWordNumPart = 9,
    /// A part of a hyphenated word, of letters, not all of them ASCII.
    HWordPart = 10,
    /// A part of a hyphenated word, of ASCII letters only.
    HWordAsciiPart = 11,
    /// White space and symbols between other tokens.
    Blank = 12,
    /// A tag, a comment or a declaration of XML or HTML.
    Tag = 13,
    /// The head of a URL, as in `http://`.
    Protocol = 14,
    /// A hyphenated word of letters and digits; its parts follow as tokens.
    NumHWord = 15,
    /// A hyphenated word of ASCII letters only; its parts follow as tokens.
    AsciiHWord = 16,
    /// A hyphenated word of letters, not all of them ASCII; its parts follow.
    HWord = 17,
    /// The path of a URL.
    UrlPath = 18,
    /// A file or path name.
    File = 19,
    /// A number with a decimal point.
    Float = 20,
    /// An integer with a sign.
    Int = 21,
    /// An integer without a sign.
    UInt = 22,
    /// An entity of XML or HTML, as in `&amp;`.
    Entity = 23,
}

impl TokenKind {
    /// The alias of the kind in `ts_token_type('default')`.
    #[cfg(test)]
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::AsciiWord => "asciiword",
            TokenKind::Word => "word",
            TokenKind::NumWord => "numword",
            TokenKind::Email => "email",
            TokenKind::Url => "url",
            TokenKind::Host => "host",
            TokenKind::SFloat => "sfloat",
            TokenKind::Version => "version",
            TokenKind::HWordNumPart => "hword_numpart",
            TokenKind::HWordPart => "hword_part",
            TokenKind::HWordAsciiPart => "hword_asciipart",
            TokenKind::Blank => "blank",
            TokenKind::Tag => "tag",
            TokenKind::Protocol => "protocol",
            TokenKind::NumHWord => "numhword",
            TokenKind::AsciiHWord => "asciihword",
            TokenKind::HWord => "hword",
            TokenKind::UrlPath => "url_path",
            TokenKind::File => "file",
            TokenKind::Float => "float",
            TokenKind::Int => "int",
            TokenKind::UInt => "uint",
            TokenKind::Entity => "entity",
        }
    }
}

/// A piece of a text, with what PostgreSQL 15's default parser takes it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token<'a> {
    /// What the piece is.
    pub kind: TokenKind,
    /// The piece as it stands in the text.
    pub text: &'a str,
}
