//! The tokens of a body, with positions, and the places where the parser of SQL reads on.

use crate::names::position_in;
use crate::parse::long_names::cut_long_names;
use crate::parse::parts::{parse_data_type_tokens, parse_embedded_statement, parse_expression_tokens};
use crate::parse::tokens::tokenize_by;
use sqlparser::ast as sql;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};
use types::{ExecutionVersion, SqlError, SqlState};

/// How the token list carries the two dots of an integer FOR loop, which sqlparser does not know.
const DOT_DOT: &str = "..";

/// The tokens of a body and how far they are read.
pub(super) struct Tokens<'b> {
    body: &'b str,
    /// The rules that SQL in it is read with.
    pub(super) version: ExecutionVersion,
    /// Without white space and comments.
    all: Vec<TokenWithSpan>,
    /// Index of the next token.
    pub(super) next: usize,
}

impl<'b> Tokens<'b> {
    /// Splits a body.
    ///
    /// # Errors
    /// 42601 for an unterminated string or comment, with the position; 54001 for too much nesting.
    pub(super) fn read(body: &'b str, version: ExecutionVersion) -> Result<Tokens<'b>, SqlError> {
        let mut all = separate(tokenize_by(body, version)?);
        if version >= ExecutionVersion::V14 {
            cut_long_names(&mut all);
        }
        Ok(Tokens { body, version, all, next: 0 })
    }

    /// Position behind the last character.
    fn end(&self) -> u32 {
        u32::try_from(self.body.chars().count() + 1).unwrap_or(u32::MAX)
    }

    /// Position of the token with this index; behind the body if there is none.
    pub(super) fn position_at(&self, index: usize) -> u32 {
        let position = self.all.get(index).and_then(|token| position_in(self.body, token.span.start));
        position.unwrap_or_else(|| self.end())
    }

    /// Position of the next token.
    pub(super) fn position(&self) -> u32 {
        self.position_at(self.next)
    }

    /// The token `ahead` of the next one.
    pub(super) fn peek(&self, ahead: usize) -> Option<&Token> {
        self.all.get(self.next + ahead).map(|token| &token.token)
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
        let previous = self.next.checked_sub(1).and_then(|index| self.all.get(index));
        matches!(previous.map(|token| &token.token),
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
        let message = match self.all.get(index).map(|token| &token.token) {
            Some(token) => format!("syntax error at or near \"{token}\""),
            None => "syntax error at end of input".to_string(),
        };
        SqlError::new(SqlState::SYNTAX_ERROR, message).at(self.position_at(index))
    }

    /// Index of the first token outside parentheses for which `ends` holds, as PostgreSQL finds the end of an
    /// expression: by its terminator alone. A semicolon ends every search.
    pub(super) fn find(
        &self,
        expected: &str,
        ends: impl Fn(&Tokens<'b>, usize) -> bool,
    ) -> Result<usize, SqlError> {
        let mut depth = 0_usize;
        let mut ahead = 0;
        loop {
            match self.peek(ahead) {
                None => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("missing \"{expected}\" at end of SQL expression"),
                    )
                    .at(self.end()));
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

    /// Reads an expression that is everything up to the token `end`.
    ///
    /// As everywhere in PL/pgSQL it may go on with FROM: it is the output of a query then.
    pub(super) fn expression(&mut self, end: usize) -> Result<sql::Expr, SqlError> {
        if self.has_from(end) {
            return self.parse(end, "expression", &[], None, parse_select_list);
        }
        self.parse(end, "expression", &[], None, parse_expression_tokens)
    }

    /// Whether FROM stands among the tokens up to `end`, outside of parentheses: PostgreSQL puts SELECT in front of an
    /// expression and runs that, so `count(*) = 0 FROM t` is one.
    fn has_from(&self, end: usize) -> bool {
        let mut depth = 0_i32;
        let mut before = Keyword::NoKeyword;
        self.all[self.next.min(end)..end].iter().any(|token| {
            let keyword = match &token.token {
                Token::LParen | Token::LBracket => {
                    depth += 1;
                    Keyword::NoKeyword
                }
                Token::RParen | Token::RBracket => {
                    depth -= 1;
                    Keyword::NoKeyword
                }
                Token::Word(word) => word.keyword,
                _ => Keyword::NoKeyword,
            };
            let before = std::mem::replace(&mut before, keyword);
            depth == 0 && keyword == Keyword::FROM && before != Keyword::DISTINCT
        })
    }

    /// Reads a type that is everything up to the token `end`.
    pub(super) fn data_type(&mut self, end: usize) -> Result<sql::DataType, SqlError> {
        self.parse(end, "data type", &[], None, |tokens, body, _| parse_data_type_tokens(tokens, body))
    }

    /// Reads a statement that is everything up to the token `end`, without the tokens of `left_out` (INTO and its
    /// targets, WHERE CURRENT OF).
    pub(super) fn statement(
        &mut self,
        end: usize,
        left_out: &[std::ops::Range<usize>],
    ) -> Result<sql::Statement, SqlError> {
        self.parse(end, "statement", left_out, None, parse_embedded_statement)
    }

    /// Reads a statement whose first word (PERFORM) stands for SELECT.
    pub(super) fn statement_as_select(&mut self, end: usize) -> Result<sql::Statement, SqlError> {
        self.parse(end, "expression", &[], Some(select_token()), parse_embedded_statement)
    }

    /// Hands the tokens up to `end` to the parser of SQL, which must read all of them.
    ///
    /// # Errors
    /// 42601 with the position, 54001 where it is nested too deeply.
    fn parse<T>(
        &mut self,
        end: usize,
        what: &str,
        left_out: &[std::ops::Range<usize>],
        first_token: Option<Token>,
        parse: impl FnOnce(Vec<TokenWithSpan>, &str, ExecutionVersion) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let start = self.next;
        if start >= end {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("missing {what}")).at(self.position()));
        }
        let chosen = (start..end).filter(|index| !left_out.iter().any(|range| range.contains(index)));
        let mut handed: Vec<TokenWithSpan> = chosen.map(|index| self.all[index].clone()).collect();
        if let (Some(token), Some(first)) = (first_token, handed.first_mut()) {
            first.token = token;
        }
        match parse(handed, self.body, self.version) {
            Ok(value) => {
                self.next = end;
                Ok(value)
            }
            Err(error) if error.message == "syntax error at end of input" => {
                // The end of these tokens is not that of the body.
                let at_end = self.syntax_error_at(end);
                Err(SqlError { detail: error.detail, hint: error.hint, ..at_end })
            }
            Err(error) if error.position.is_none() => Err(error.at(self.position_at(start))),
            Err(error) => Err(error),
        }
    }
}

fn select_token() -> Token {
    Token::Word(Word { value: "SELECT".to_string(), quote_style: None, keyword: Keyword::SELECT })
}

/// An expression with what it is read from, as the query that it is.
fn parse_select_list(
    mut tokens: Vec<TokenWithSpan>,
    body: &str,
    version: ExecutionVersion,
) -> Result<sql::Expr, SqlError> {
    let span = tokens.first().map_or(Span::empty(), |token| token.span);
    tokens.insert(0, TokenWithSpan { token: select_token(), span });
    match parse_embedded_statement(tokens, body, version)? {
        sql::Statement::Query(query) => Ok(sql::Expr::Subquery(query)),
        _ => Err(SqlError::unsupported("an expression that is no query")),
    }
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
        if let Token::Number(fraction, _) = &token
            && fraction.starts_with('.')
            && let [.., dots, TokenWithSpan { token: Token::Number(digits, _), span: whole }] =
                tokens.as_mut_slice()
            && matches!(&dots.token, Token::CustomBinaryOperator(text) if text == DOT_DOT)
            && whole.end == span.start
        {
            // `..2.5` came as a dot, `.2` and `.5`.
            digits.push_str(fraction);
            whole.end = span.end;
            continue;
        }
        match token {
            Token::Period if opens => open_range(&mut tokens, span),
            Token::Number(text, long) if opens && text.starts_with('.') => {
                let (dot, digits) = split_span(span, 1);
                open_range(&mut tokens, dot);
                tokens
                    .push(TokenWithSpan { token: Token::Number(text[1..].to_string(), long), span: digits });
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
