//! Reads JSON as PostgreSQL does, with its errors.

use super::json_too_deep;
use super::number::CanonicalNumber;
use super::part::JsonPart;
use super::tree::Tree;
use crate::text::check_text_length;
use crate::{Numeric, SqlError, SqlState, limits};

/// Whether a text is a value of type `json`.
///
/// # Errors
/// `22P02` where it is not, `54000` and `54001` where it is too long or too deep.
pub fn check_json(text: &str) -> Result<(), SqlError> {
    let mut parser = Parser::new(text, false)?;
    parser.skip(0)?;
    parser.end()
}

/// The value that a text is, as `jsonb`.
///
/// # Errors
/// As [`super::Jsonb::parse`].
pub(super) fn parse_json(text: &str) -> Result<JsonPart<'static>, SqlError> {
    let mut parser = Parser::new(text, true)?;
    let tree = parser.build(0)?;
    parser.end()?;
    let mut bytes = Vec::with_capacity(tree.bytes());
    tree.write(&mut bytes);
    Ok(JsonPart::of_bytes(bytes))
}

/// What a text of type `json` is at its top. What stands in it is as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JsonText<'a> {
    /// Its members, in the order in which they are written; several may have one key.
    Object(Vec<(String, &'a str)>),
    /// Its elements.
    Array(Vec<&'a str>),
    /// Its characters.
    String(String),
    /// As it is written.
    Number(&'a str),
    /// `true` or `false`
    Boolean(bool),
    /// `null`
    Null,
}

/// Takes a text apart, at its top only.
///
/// # Errors
/// `22P02` and `22P05` where an escape stands for no character of a text; as [`check_json`].
pub fn split_json(text: &str) -> Result<JsonText<'_>, SqlError> {
    let mut parser = Parser::new(text, true)?;
    let split = match parser.token {
        Token::ObjectStart => {
            let mut members = Vec::new();
            parser.object(0, &mut |parser, key| {
                members.push((key, parser.slice()?));
                Ok(())
            })?;
            JsonText::Object(members)
        }
        Token::ArrayStart => {
            let mut elements = Vec::new();
            parser.array(0, &mut |parser| {
                elements.push(parser.slice()?);
                Ok(())
            })?;
            JsonText::Array(elements)
        }
        Token::String => JsonText::String(parser.take_string()?),
        Token::Number => {
            let digits = parser.token_text();
            parser.advance()?;
            JsonText::Number(digits)
        }
        token => {
            let scalar = match token {
                Token::True => JsonText::Boolean(true),
                Token::False => JsonText::Boolean(false),
                Token::Null => JsonText::Null,
                _ => return Err(parser.unexpected("JSON value")),
            };
            parser.advance()?;
            scalar
        }
    };
    parser.end()?;
    Ok(split)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// A text, and the token that is looked at.
struct Parser<'a> {
    text: &'a str,
    token: Token,
    /// Where the token begins and ends.
    start: usize,
    end: usize,
    /// Where the one before it ends.
    last_end: usize,
    /// Whether what strings stand for is wanted.
    unescapes: bool,
    /// What the token stands for, where it is a string.
    string: String,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, unescapes: bool) -> Result<Parser<'a>, SqlError> {
        check_text_length(text.len())?;
        let string = String::new();
        let mut parser = Parser { text, token: Token::End, start: 0, end: 0, last_end: 0, unescapes, string };
        parser.advance()?;
        Ok(parser)
    }

    fn token_text(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// The rest is nothing.
    fn end(&self) -> Result<(), SqlError> {
        if self.token == Token::End { Ok(()) } else { Err(self.unexpected("end of input")) }
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> SqlError {
        if self.token == Token::End {
            return invalid("The input string ended unexpectedly.");
        }
        invalid(&format!("Expected {expected}, but found \"{}\".", self.token_text()))
    }

    fn expect(&mut self, token: Token, expected: &str) -> Result<(), SqlError> {
        if self.token != token {
            return Err(self.unexpected(expected));
        }
        self.advance()
    }

    /// Goes over a value.
    fn skip(&mut self, depth: usize) -> Result<(), SqlError> {
        match self.token {
            Token::ObjectStart => self.object(depth, &mut |parser, _| parser.skip(depth + 1)),
            Token::ArrayStart => self.array(depth, &mut |parser| parser.skip(depth + 1)),
            Token::String | Token::Number | Token::True | Token::False | Token::Null => self.advance(),
            _ => Err(self.unexpected("JSON value")),
        }
    }

    /// Goes over a value that stands in another one; gives it as it is written.
    fn slice(&mut self) -> Result<&'a str, SqlError> {
        let start = self.start;
        self.skip(1)?;
        Ok(&self.text[start..self.last_end])
    }

    /// A value as `jsonb`.
    fn build(&mut self, depth: usize) -> Result<Tree<'a>, SqlError> {
        let tree = match self.token {
            Token::ObjectStart => {
                let mut members = Vec::new();
                self.object(depth, &mut |parser, key| {
                    members.push((key, parser.build(depth + 1)?));
                    Ok(())
                })?;
                return Tree::object(members);
            }
            Token::ArrayStart => {
                let mut elements = Vec::new();
                self.array(depth, &mut |parser| {
                    elements.push(parser.build(depth + 1)?);
                    Ok(())
                })?;
                return Tree::array(elements);
            }
            Token::String => Tree::Part(JsonPart::string(&self.string)),
            Token::Number => match CanonicalNumber::of(self.token_text()) {
                Some(number) => Tree::Number(number),
                None => Tree::Part(JsonPart::number(&Numeric::parse(self.token_text())?)),
            },
            Token::True => Tree::Part(JsonPart::boolean(true)),
            Token::False => Tree::Part(JsonPart::boolean(false)),
            Token::Null => Tree::Part(JsonPart::NULL),
            _ => return Err(self.unexpected("JSON value")),
        };
        self.advance()?;
        Ok(tree)
    }

    fn object(
        &mut self,
        depth: usize,
        member: &mut dyn FnMut(&mut Parser<'a>, String) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        check_depth(depth)?;
        self.advance()?;
        if self.token == Token::ObjectEnd {
            return self.advance();
        }
        if self.token != Token::String {
            return Err(self.unexpected("string or \"}\""));
        }
        loop {
            if self.token != Token::String {
                return Err(self.unexpected("string"));
            }
            let key = self.take_string()?;
            self.expect(Token::Colon, "\":\"")?;
            member(self, key)?;
            if self.token != Token::Comma {
                return self.expect(Token::ObjectEnd, "\",\" or \"}\"");
            }
            self.advance()?;
        }
    }

    fn array(
        &mut self,
        depth: usize,
        element: &mut dyn FnMut(&mut Parser<'a>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        check_depth(depth)?;
        self.advance()?;
        if self.token == Token::ArrayEnd {
            return self.advance();
        }
        loop {
            element(self)?;
            if self.token != Token::Comma {
                return self.expect(Token::ArrayEnd, "\",\" or \"]\"");
            }
            self.advance()?;
        }
    }

    /// What the string stands for that is looked at; looks at the next token.
    fn take_string(&mut self) -> Result<String, SqlError> {
        let string = std::mem::take(&mut self.string);
        self.advance()?;
        Ok(string)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Looks at the next token.
    fn advance(&mut self) -> Result<(), SqlError> {
        self.last_end = self.end;
        let spaces = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.start =
            self.end + self.text.as_bytes()[self.end..].iter().take_while(|byte| spaces(byte)).count();
        self.end = self.start + 1;
        self.token = match self.byte(self.start) {
            None => {
                self.end = self.start;
                Token::End
            }
            Some(b'{') => Token::ObjectStart,
            Some(b'}') => Token::ObjectEnd,
            Some(b'[') => Token::ArrayStart,
            Some(b']') => Token::ArrayEnd,
            Some(b',') => Token::Comma,
            Some(b':') => Token::Colon,
            Some(b'"') => return self.read_string(),
            Some(b'-' | b'0'..=b'9') => return self.read_number(),
            Some(_) => return self.read_word(),
        };
        Ok(())
    }

    #[cold]
    fn invalid_token(&self) -> SqlError {
        // An error in the middle of a character ends before it.
        let end = (self.end..=self.text.len()).find(|end| self.text.is_char_boundary(*end));
        let token = &self.text[self.start..end.unwrap_or(self.text.len())];
        invalid(&format!("Token \"{token}\" is invalid."))
    }

    fn read_word(&mut self) -> Result<(), SqlError> {
        self.end = self.start + self.word_bytes(self.start);
        self.token = match self.token_text() {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            word => {
                self.end += usize::from(word.is_empty());
                return Err(self.invalid_token());
            }
        };
        Ok(())
    }

    /// Bytes from here on that may be of a word.
    fn word_bytes(&self, from: usize) -> usize {
        let of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        self.text.as_bytes()[from..].iter().take_while(|byte| of_word(byte)).count()
    }

    fn digits(&self, from: usize) -> usize {
        self.text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    fn read_number(&mut self) -> Result<(), SqlError> {
        let mut at = self.start + usize::from(self.byte(self.start) == Some(b'-'));
        let whole = if self.byte(at) == Some(b'0') { 1 } else { self.digits(at) };
        at += whole;
        let mut valid = whole > 0;
        if self.byte(at) == Some(b'.') {
            let fraction = self.digits(at + 1);
            valid &= fraction > 0;
            at += 1 + fraction;
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            at += 1 + usize::from(matches!(self.byte(at + 1), Some(b'+' | b'-')));
            let exponent = self.digits(at);
            valid &= exponent > 0;
            at += exponent;
        }
        let garbage = self.word_bytes(at);
        self.end = at + garbage;
        if !valid || garbage > 0 {
            return Err(self.invalid_token());
        }
        self.token = Token::Number;
        Ok(())
    }

    fn read_string(&mut self) -> Result<(), SqlError> {
        let mut string = std::mem::take(&mut self.string);
        string.clear();
        let mut high: Option<u32> = None;
        let mut at = self.start + 1;
        loop {
            let Some(character) = self.text[at..].chars().next() else {
                self.end = self.text.len();
                return Err(self.invalid_token());
            };
            at += character.len_utf8();
            let read = match character {
                '"' => break,
                '\0'..='\u{1f}' => {
                    let code = u32::from(character);
                    return Err(invalid(&format!("Character with value 0x{code:02x} must be escaped.")));
                }
                '\\' => self.read_escape(&mut at, &mut high)?,
                other => Some(other),
            };
            if let (true, Some(read)) = (self.unescapes, read) {
                if high.is_some() {
                    return Err(no_low_surrogate());
                }
                string.push(read);
            }
        }
        if high.is_some() {
            return Err(no_low_surrogate());
        }
        self.end = at;
        self.string = string;
        self.token = Token::String;
        Ok(())
    }

    /// What follows a backslash; `None` where more has to come, or nobody wants to know.
    fn read_escape(&mut self, at: &mut usize, high: &mut Option<u32>) -> Result<Option<char>, SqlError> {
        let Some(escape) = self.text[*at..].chars().next() else {
            self.end = self.text.len();
            return Err(self.invalid_token());
        };
        *at += escape.len_utf8();
        if escape != 'u' {
            return escaped(escape).map(Some);
        }
        let code = self.code_unit(*at)?;
        *at += 4;
        if self.unescapes { code_point(code, high) } else { Ok(None) }
    }

    /// The number that four hexadecimal digits are.
    fn code_unit(&mut self, from: usize) -> Result<u32, SqlError> {
        let mut code = 0;
        for at in from..from + 4 {
            let Some(byte) = self.byte(at) else {
                self.end = self.text.len();
                return Err(self.invalid_token());
            };
            let digit = char::from(byte).to_digit(16).filter(|_| byte.is_ascii());
            let digit =
                digit.ok_or_else(|| invalid("\"\\u\" must be followed by four hexadecimal digits."))?;
            code = code * 16 + digit;
        }
        Ok(code)
    }
}

fn check_depth(depth: usize) -> Result<(), SqlError> {
    if depth >= limits::JSON_NESTING_MAX { Err(json_too_deep()) } else { Ok(()) }
}

/// What a backslash and this character stand for.
fn escaped(escape: char) -> Result<char, SqlError> {
    Ok(match escape {
        '"' | '\\' | '/' => escape,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ => return Err(invalid(&format!("Escape sequence \"\\{escape}\" is invalid."))),
    })
}

/// The character that a code unit of UTF-16 ends; `None` where another one must follow.
fn code_point(code: u32, high: &mut Option<u32>) -> Result<Option<char>, SqlError> {
    let code = match (code, high.take()) {
        (0xd800..=0xdbff, None) => {
            *high = Some(code);
            return Ok(None);
        }
        (0xd800..=0xdbff, Some(_)) => {
            return Err(invalid("Unicode high surrogate must not follow a high surrogate."));
        }
        (0xdc00..=0xdfff, Some(high)) => 0x10000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
        (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(no_low_surrogate()),
        (0, None) => {
            let message = "unsupported Unicode escape sequence";
            return Err(
                SqlError::new(SqlState(*b"22P05"), message).detail("\\u0000 cannot be converted to text.")
            );
        }
        (code, None) => code,
    };
    char::from_u32(code).map(Some).ok_or_else(no_low_surrogate)
}

#[cold]
fn no_low_surrogate() -> SqlError {
    invalid("Unicode low surrogate must follow a high surrogate.")
}

#[cold]
fn invalid(detail: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail)
}
