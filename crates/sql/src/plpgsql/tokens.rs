//! The tokens of a body, with positions, and the places where sqlparser reads on.

use sqlparser::ast as sql;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Word};
use types::{SqlError, SqlState};

/// How sqlparser's token list carries the two dots of an integer FOR loop, which it does not know.
const DOT_DOT: &str = "..";

/// The tokens of a body and how far they are read.
pub(super) struct Tokens {
    /// All of them, white space included: sqlparser wants it.
    all: Vec<TokenWithSpan>,
    /// Indexes in `all` of those that are neither white space nor comment.
    significant: Vec<usize>,
    /// Characters in front of each line.
    line_starts: Vec<u32>,
    /// Position behind the last character.
    end: u32,
    /// Index in `significant` of the next token.
    pub(super) next: usize,
}

impl Tokens {
    /// Splits a body.
    ///
    /// # Errors
    /// 42601 for an unterminated string or comment, with the position.
    pub(super) fn read(body: &str) -> Result<Tokens, SqlError> {
        let mut line_starts = vec![0];
        let mut characters = 0;
        for character in body.chars() {
            characters += 1;
            if character == '\n' {
                line_starts.push(characters);
            }
        }
        let mut tokens =
            Tokens { all: Vec::new(), significant: Vec::new(), line_starts, end: characters + 1, next: 0 };
        let dialect = PostgreSqlDialect {};
        let mut read = Vec::new();
        Tokenizer::new(&dialect, body).tokenize_with_location_into_buf(&mut read).map_err(|error| {
            SqlError::new(SqlState::SYNTAX_ERROR, error.message).at(tokens.position_of(error.location))
        })?;
        tokens.all = separate(read);
        tokens.significant = (0..tokens.all.len())
            .filter(|index| !matches!(tokens.all[*index].token, Token::Whitespace(_)))
            .collect();
        Ok(tokens)
    }

    fn position_of(&self, location: Location) -> u32 {
        let line = usize::try_from(location.line).unwrap_or(0);
        let column = u32::try_from(location.column).unwrap_or(1);
        match line.checked_sub(1).and_then(|line| self.line_starts.get(line)) {
            Some(start) => (start + column).min(self.end),
            None => self.end,
        }
    }

    /// Position of the `index`-th significant token; behind the body if there is none.
    pub(super) fn position_at(&self, index: usize) -> u32 {
        match self.significant.get(index) {
            Some(at) => self.position_of(self.all[*at].span.start),
            None => self.end,
        }
    }

    /// Position of the next token.
    pub(super) fn position(&self) -> u32 {
        self.position_at(self.next)
    }

    /// The token `ahead` of the next one.
    pub(super) fn peek(&self, ahead: usize) -> Option<&Token> {
        self.significant.get(self.next + ahead).map(|at| &self.all[*at].token)
    }

    /// The unquoted word `ahead` of the next token, upper-case.
    pub(super) fn peek_word(&self, ahead: usize) -> Option<String> {
        match self.peek(ahead) {
            Some(Token::Word(Word { value, quote_style: None, .. })) => Some(value.to_ascii_uppercase()),
            _ => None,
        }
    }

    /// True if the token `ahead` is this unquoted word.
    pub(super) fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek(ahead), Some(Token::Word(Word { value, quote_style: None, .. })) if value.eq_ignore_ascii_case(word))
    }

    /// True if the token `ahead` is the two dots of a FOR loop.
    pub(super) fn is_dot_dot(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), Some(Token::CustomBinaryOperator(text)) if text == DOT_DOT)
    }

    /// True if the token just read is this unquoted word.
    pub(super) fn previous_is_word(&self, word: &str) -> bool {
        let previous = self.next.checked_sub(1).and_then(|index| self.significant.get(index));
        matches!(previous.map(|at| &self.all[*at].token),
            Some(Token::Word(Word { value, quote_style: None, .. })) if value.eq_ignore_ascii_case(word))
    }

    /// Reads the word if it is next.
    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.next += usize::from(found);
        found
    }

    /// Reads the token if it is next.
    pub(super) fn accept(&mut self, token: &Token) -> bool {
        let found = self.peek(0) == Some(token);
        self.next += usize::from(found);
        found
    }

    /// Reads the word, which must be next.
    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), SqlError> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    /// Reads the token, which must be next.
    pub(super) fn expect(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("\"{token}\""))) }
    }

    /// The next token is not what it must be.
    pub(super) fn unexpected(&self, expected: &str) -> SqlError {
        self.syntax_error_at(self.next).detail(format!("Expected {expected}."))
    }

    fn syntax_error_at(&self, index: usize) -> SqlError {
        let message = match self.significant.get(index).map(|at| &self.all[*at].token) {
            Some(token) => format!("syntax error at or near \"{token}\""),
            None => "syntax error at end of input".to_string(),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.position_at(index))
    }

    /// Index of the first token outside parentheses for which `ends` holds, as PostgreSQL finds the end of an
    /// expression: by its terminator alone. A semicolon ends every search.
    pub(super) fn find(&self, expected: &str, ends: impl Fn(&Tokens, usize) -> bool) -> Result<usize, SqlError> {
        let mut depth = 0_usize;
        let mut ahead = 0;
        loop {
            match self.peek(ahead) {
                None => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("missing \"{expected}\" at end of SQL expression"),
                    )
                    .at(self.end));
                }
                Some(_) if depth == 0 && ends(self, ahead) => return Ok(self.next + ahead),
                Some(Token::LParen | Token::LBracket) => depth += 1,
                Some(Token::RParen | Token::RBracket) => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => {
                        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "mismatched parentheses")
                            .at(self.position_at(self.next + ahead)));
                    }
                },
                Some(Token::SemiColon) => {
                    let message = if depth > 0 {
                        "mismatched parentheses".to_string()
                    } else {
                        format!("missing \"{expected}\" at end of SQL expression")
                    };
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                        .at(self.position_at(self.next + ahead)));
                }
                Some(_) => {}
            }
            ahead += 1;
        }
    }

    /// Index of the comma or closing parenthesis that ends an element of a list in parentheses.
    pub(super) fn find_in_list(&self) -> Result<usize, SqlError> {
        self.find(")", |tokens, ahead| matches!(tokens.peek(ahead), Some(Token::Comma | Token::RParen)))
    }

    /// Hands the tokens up to the significant token `end` to sqlparser and demands that it reads all of them.
    ///
    /// # Errors
    /// 42601 with the position, 54001 where it is nested too deeply.
    pub(super) fn parse<T>(
        &mut self,
        end: usize,
        what: &str,
        parse: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
    ) -> Result<T, SqlError> {
        self.parse_without(end, None, None, what, parse)
    }

    /// As [`Tokens::parse`], leaving out a range of significant tokens (INTO and its targets) and replacing the
    /// first token by a word (SELECT for PERFORM).
    pub(super) fn parse_without<T>(
        &mut self,
        end: usize,
        left_out: Option<std::ops::Range<usize>>,
        first_word: Option<(&str, Keyword)>,
        what: &str,
        parse: impl FnOnce(&mut Parser) -> Result<T, ParserError>,
    ) -> Result<T, SqlError> {
        let start = self.next;
        if start >= end {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("missing {what}")).at(self.position()));
        }
        let left_out = left_out.unwrap_or(end..end);
        let chosen = (start..end).filter(|index| !left_out.contains(index));
        let mut handed = Vec::new();
        let mut origin = Vec::new();
        for index in chosen {
            // White space in front of a token goes with it.
            let from = if index == start { self.significant[index] } else { self.significant[index - 1] + 1 };
            handed.extend_from_slice(&self.all[from..=self.significant[index]]);
            origin.resize(handed.len(), index);
        }
        if let (Some((text, keyword)), Some(first)) = (first_word, handed.first_mut()) {
            first.token = Token::Word(Word { value: text.to_string(), quote_style: None, keyword });
        }
        let dialect = PostgreSqlDialect {};
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(handed);
        let parsed = parse(&mut parser);
        // The token at which reading stopped.
        let stopped = origin.get(parser.index()).copied().unwrap_or(end);
        match parsed {
            Ok(value) if parser.peek_token_ref().token == Token::EOF => {
                self.next = end;
                Ok(value)
            }
            Ok(_) => Err(self.syntax_error_at(stopped)),
            Err(ParserError::RecursionLimitExceeded) => Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                format!("{what} is nested too deeply"),
            )
            .hint("Compute it in several steps.")
            .at(self.position_at(start))),
            Err(ParserError::TokenizerError(message) | ParserError::ParserError(message)) => {
                let (message, location) = split_location(&message);
                let error = match location {
                    Some(location) => {
                        let position = self.position_of(location);
                        let index = (start..end).find(|index| self.position_at(*index) >= position);
                        self.syntax_error_at(index.unwrap_or(end))
                    }
                    None => self.syntax_error_at(stopped),
                };
                Err(error.detail(message))
            }
        }
    }

    /// Hands an expression that ends in front of the significant token `end` to sqlparser.
    pub(super) fn parse_expression(&mut self, end: usize) -> Result<sql::Expr, SqlError> {
        self.parse(end, "expression", |parser| parser.parse_expr())
    }
}

/// Takes `… at Line: 3, Column: 7` off sqlparser's message.
fn split_location(message: &str) -> (String, Option<Location>) {
    let Some((text, place)) = message.split_once(" at Line: ") else { return (message.to_string(), None) };
    let location = place.split_once(", Column: ").and_then(|(line, column)| {
        Some(Location { line: line.parse().ok()?, column: column.trim_end().parse().ok()? })
    });
    (text.to_string(), location.filter(|location| location.line > 0))
}

/// Makes PostgreSQL's tokens of sqlparser's where the two differ: `1..10` is three tokens, and an operator of more
/// than one character does not end in `+` or `-` unless it holds one of `~ ! @ # % ^ & | ? ` `.
fn separate(read: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut tokens: Vec<TokenWithSpan> = Vec::with_capacity(read.len());
    for TokenWithSpan { token, span } in read {
        let adjacent = tokens.last().filter(|last| last.span.end == span.start).map(|last| &last.token);
        let opens = match adjacent {
            Some(Token::Period) => true,
            Some(Token::Number(text, _)) => text.len() > 1 && text.ends_with('.'),
            _ => false,
        };
        match token {
            Token::Period if opens => open_range(&mut tokens, span),
            Token::Number(text, long) if opens && text.starts_with('.') => {
                let (dot, digits) = split_span(span, 1);
                open_range(&mut tokens, dot);
                tokens.push(TokenWithSpan { token: Token::Number(text[1..].to_string(), long), span: digits });
            }
            Token::CustomBinaryOperator(text) => separate_operator(&mut tokens, &text, span),
            token => tokens.push(TokenWithSpan { token, span }),
        }
    }
    tokens
}

/// Replaces the dot at the end of the list, and the one at `span` behind it, by two dots.
fn open_range(tokens: &mut Vec<TokenWithSpan>, span: Span) {
    let mut start = span.start;
    if let Some(last) = tokens.pop() {
        start = last.span.start;
        if let Token::Number(text, long) = last.token {
            let (number, dot) = split_span(last.span, text.len() as u64 - 1);
            start = dot.start;
            let digits = text[..text.len() - 1].to_string();
            tokens.push(TokenWithSpan { token: Token::Number(digits, long), span: number });
        }
    }
    let token = Token::CustomBinaryOperator(DOT_DOT.to_string());
    tokens.push(TokenWithSpan { token, span: Span::new(start, span.end) });
}

fn separate_operator(tokens: &mut Vec<TokenWithSpan>, text: &str, span: Span) {
    let keeps = text.contains(['~', '!', '@', '#', '%', '^', '&', '|', '?', '`']);
    let rest = if keeps { text } else { text.trim_end_matches(['+', '-']) };
    let first = match rest {
        "<" => Some(Token::Lt),
        ">" => Some(Token::Gt),
        "=" => Some(Token::Eq),
        "<=" => Some(Token::LtEq),
        ">=" => Some(Token::GtEq),
        "<>" => Some(Token::Neq),
        "*" => Some(Token::Mul),
        "/" => Some(Token::Div),
        "+" => Some(Token::Plus),
        "-" => Some(Token::Minus),
        _ => None,
    };
    let (Some(first), true) = (first, rest.len() < text.len()) else {
        let token = Token::CustomBinaryOperator(text.to_string());
        return tokens.push(TokenWithSpan { token, span });
    };
    let (mut head, mut tail) = split_span(span, rest.len() as u64);
    tokens.push(TokenWithSpan { token: first, span: head });
    for sign in text[rest.len()..].chars() {
        (head, tail) = split_span(tail, 1);
        let token = if sign == '+' { Token::Plus } else { Token::Minus };
        tokens.push(TokenWithSpan { token, span: head });
    }
}

/// The first `columns` columns of a span of one line, and the rest.
fn split_span(span: Span, columns: u64) -> (Span, Span) {
    let middle = Location { line: span.start.line, column: span.start.column + columns };
    (Span::new(span.start, middle), Span::new(middle, span.end))
}
