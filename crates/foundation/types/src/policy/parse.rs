//! From text to a term in normal form.

use super::{Name, PolicyError, Term, excerpt, too_many_levels, too_many_mentions};
use crate::limits;
use std::collections::BTreeSet;

/// What a text says.
///
/// # Errors
/// Where it is no policy, and what to do.
pub(super) fn term(text: &str) -> Result<Term, PolicyError> {
    let mut parser = Parser::new(text)?;
    let term = parser.any()?;
    match parser.token {
        Token::End => Ok(term),
        _ => Err(parser.after_operand("`AND`, `OR` or the end", None)),
    }
}

/// Whether a name needs no quotes.
pub(super) fn is_bare_word(name: &str) -> bool {
    is_word(name) && Keyword::of(name).is_none()
}

fn is_word(text: &str) -> bool {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let continues = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.as_bytes().first().is_some_and(begins) && text.bytes().all(continues)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    And,
    Or,
    Of,
    All,
    Any,
}

impl Keyword {
    fn of(word: &str) -> Option<Keyword> {
        let keywords = [
            ("and", Keyword::And),
            ("or", Keyword::Or),
            ("of", Keyword::Of),
            ("all", Keyword::All),
            ("any", Keyword::Any),
        ];
        keywords.into_iter().find(|(text, _)| word.eq_ignore_ascii_case(text)).map(|(_, keyword)| keyword)
    }
}

enum Token {
    Name(String),
    Keyword(Keyword),
    /// Digits alone.
    Number,
    Open,
    Close,
    Comma,
    /// Anything else up to the next space, parenthesis, comma or quote.
    Other,
    End,
}

pub(super) const OPERAND: &str = "an organisation, `(`, or a number and `OF`";

/// Recursive descent with one token in hand. Parentheses are the only recursion, and they are counted.
struct Parser<'a> {
    text: &'a str,
    token: Token,
    /// Where the token begins and ends.
    start: usize,
    end: usize,
    /// Parentheses that are open.
    open: usize,
    mentions: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Parser<'a>, PolicyError> {
        let mut parser = Parser { text, token: Token::End, start: 0, end: 0, open: 0, mentions: 0 };
        parser.advance()?;
        Ok(parser)
    }

    fn any(&mut self) -> Result<Term, PolicyError> {
        let mut operands = vec![(self.start, self.all()?)];
        while self.is_at(Keyword::Or) {
            self.advance()?;
            operands.push((self.start, self.all()?));
        }
        join("OR", 1, operands)
    }

    fn all(&mut self) -> Result<Term, PolicyError> {
        let mut operands = vec![(self.start, self.operand()?)];
        while self.is_at(Keyword::And) {
            self.advance()?;
            operands.push((self.start, self.operand()?));
        }
        join("AND", operands.len(), operands)
    }

    fn operand(&mut self) -> Result<Term, PolicyError> {
        match &mut self.token {
            Token::Name(name) => {
                let name = std::mem::take(name);
                self.mentions += 1;
                if self.mentions > limits::POLICY_MENTIONS_MAX {
                    return Err(too_many_mentions());
                }
                self.advance()?;
                Ok(Term::Organisation(name))
            }
            Token::Open => self.parentheses(),
            Token::Number | Token::Keyword(Keyword::All | Keyword::Any) => self.threshold(),
            _ => Err(self.no_operand()),
        }
    }

    fn parentheses(&mut self) -> Result<Term, PolicyError> {
        let opened_at = self.start;
        self.open()?;
        let term = self.any()?;
        match self.token {
            Token::Close => self.close().map(|()| term),
            _ => Err(self.after_operand("`AND`, `OR` or `)`", Some(opened_at))),
        }
    }

    /// `number OF (…)`, `ALL OF (…)`, `ANY OF (…)`.
    fn threshold(&mut self) -> Result<Term, PolicyError> {
        let (start, count, shown) = (self.start, self.found(), excerpt(self.found()));
        self.advance()?;
        if !self.is_at(Keyword::Of) {
            let advice =
                format!("write `{shown} of (a, b, c)`; an organisation of that name is written \"{shown}\"");
            return Err(self.unexpected("`OF`", advice));
        }
        self.advance()?;
        if !matches!(self.token, Token::Open) {
            let advice = format!("write what `OF` counts in parentheses: `{shown} of (a, b, c)`");
            return Err(self.unexpected("`(`", advice));
        }
        let operands = self.list()?;
        let needed = match Keyword::of(count) {
            Some(Keyword::All) => operands.len(),
            Some(_) => 1,
            // Digits that are too many for a number are more than there are operands.
            None => count.parse().unwrap_or(usize::MAX),
        };
        if needed == 0 || needed > operands.len() {
            return Err(PolicyError::Threshold { position: start, found: shown, operands: operands.len() });
        }
        join("OF", needed, operands)
    }

    fn list(&mut self) -> Result<Vec<(usize, Term)>, PolicyError> {
        let opened_at = self.start;
        self.open()?;
        let mut operands = vec![(self.start, self.any()?)];
        while matches!(self.token, Token::Comma) {
            self.advance()?;
            operands.push((self.start, self.any()?));
        }
        match self.token {
            Token::Close => self.close().map(|()| operands),
            _ => Err(self.after_operand("`AND`, `OR`, `,` or `)`", Some(opened_at))),
        }
    }

    fn open(&mut self) -> Result<(), PolicyError> {
        self.open += 1;
        if self.open > limits::NESTING_MAX {
            return Err(too_many_levels());
        }
        self.advance()
    }

    fn close(&mut self) -> Result<(), PolicyError> {
        self.open -= 1;
        self.advance()
    }

    fn is_at(&self, keyword: Keyword) -> bool {
        matches!(self.token, Token::Keyword(found) if found == keyword)
    }

    /// The token as it is written.
    fn found(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// Takes the next token in hand.
    fn advance(&mut self) -> Result<(), PolicyError> {
        let is_space = |character: char| character.is_ascii_whitespace();
        let rest = self.text[self.end..].trim_start_matches(is_space);
        self.start = self.text.len() - rest.len();
        let ends_run = |character: char| is_space(character) || "(),\"".contains(character);
        let run = &rest[..rest.find(ends_run).unwrap_or(rest.len())];
        self.end = self.start + run.len().max(rest.len().min(1));
        self.token = match rest.as_bytes().first() {
            None => Token::End,
            Some(b'(') => Token::Open,
            Some(b')') => Token::Close,
            Some(b',') => Token::Comma,
            Some(b'"') => return self.quoted_name(),
            Some(_) if run.bytes().all(|byte| byte.is_ascii_digit()) => Token::Number,
            Some(_) if !is_word(run) => Token::Other,
            Some(_) => match Keyword::of(run) {
                Some(keyword) => Token::Keyword(keyword),
                None => Token::Name(self.name(run.to_string())?),
            },
        };
        Ok(())
    }

    fn quoted_name(&mut self) -> Result<(), PolicyError> {
        let mut name = String::new();
        let mut rest = &self.text[self.start + 1..];
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                self.end = self.text.len();
                let advice =
                    format!("close the quote of byte {}; a quote in a name is written twice", self.start);
                return Err(self.unexpected_end("`\"` at the end of a name", advice));
            };
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(after) => {
                    name.push('"');
                    rest = after;
                }
                None => {
                    self.end = self.text.len() - after.len();
                    self.token = Token::Name(self.name(name)?);
                    return Ok(());
                }
            }
        }
    }

    fn name(&self, name: String) -> Result<String, PolicyError> {
        match name.len() {
            1..=limits::NAME_BYTES_MAX => Ok(name),
            found => Err(PolicyError::Name { position: self.start, found }),
        }
    }

    #[cold]
    fn no_operand(&self) -> PolicyError {
        let found = self.found();
        let advice = match self.token {
            Token::Keyword(_) => {
                format!("name what `{found}` is about; an organisation of that name is written \"{found}\"")
            }
            Token::Other => format!(
                "a name that does not begin with a letter or `_`, or has other characters than letters, digits, \
                 `_`, `-` and `.`, is written in double quotes: {}",
                excerpt(&Name(found).to_string())
            ),
            _ => "name an organisation, or several: `2 of (a, b AND c)`".to_string(),
        };
        self.unexpected(OPERAND, advice)
    }

    /// What comes after a complete operand neither goes on with it nor ends what it is in.
    #[cold]
    fn after_operand(&self, expected: &'static str, opened_at: Option<usize>) -> PolicyError {
        let advice = match (&self.token, opened_at) {
            (Token::End, Some(opened_at)) => format!("close the parenthesis of byte {opened_at}"),
            (Token::Close, _) => "leave it out, or open a parenthesis before".to_string(),
            (Token::Comma, _) => "write a number before a list: `2 of (a, b, c)`".to_string(),
            (Token::Keyword(Keyword::Of), _) => {
                "write a number, `ALL` or `ANY` before `OF`: `2 of (a, b, c)`".to_string()
            }
            _ => {
                "join operands with `AND` or `OR`, and write a name with spaces in double quotes".to_string()
            }
        };
        self.unexpected(expected, advice)
    }

    fn unexpected(&self, expected: &'static str, advice: String) -> PolicyError {
        if matches!(self.token, Token::End) {
            return self.unexpected_end(expected, advice);
        }
        let found = format!("`{}`", excerpt(self.found()));
        PolicyError::Syntax { position: self.start, expected, found, advice }
    }

    fn unexpected_end(&self, expected: &'static str, advice: String) -> PolicyError {
        PolicyError::Syntax { position: self.text.len(), expected, found: "the end".to_string(), advice }
    }
}

/// At least `needed` of these, each with the byte where it begins, in normal form.
fn join(
    operator: &'static str,
    needed: usize,
    mut operands: Vec<(usize, Term)>,
) -> Result<Term, PolicyError> {
    if operands.len() == 1 {
        return Ok(operands.remove(0).1);
    }
    let is_and = needed == operands.len();
    let flatten = |term: Term| match (is_and, needed) {
        (true, _) => term.into_operands_of_and(),
        (false, 1) => term.into_operands_of_or(),
        (false, _) => vec![term],
    };
    let mut seen = BTreeSet::new();
    let mut flat = Vec::new();
    for (position, term) in operands {
        for operand in flatten(term) {
            if !seen.insert(operand.sorted()) {
                let operand = excerpt(&operand.to_string());
                return Err(PolicyError::Repeated { position, operator, operand });
            }
            flat.push(operand);
        }
    }
    let needed = if is_and { flat.len() } else { needed };
    let term = Term::AtLeast { needed, operands: flat };
    // Before anything recurses into it.
    if term.levels() > limits::NESTING_MAX { Err(too_many_levels()) } else { Ok(term) }
}
