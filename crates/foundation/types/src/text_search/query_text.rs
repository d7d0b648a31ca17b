//! Queries as texts: `'cat' & ( 'fat':*A <-> 'rat' )`.

use super::vector_text::{push_quoted, quoted_bytes};
use super::word::{Dialect, Words, is_operator, is_space};
use super::{LEXEME_BYTES_MAX, QueryItem, QuerySyntax, TsQuery, Weight, Weights};
use crate::{SqlError, SqlState};
use std::fmt::Write;
use std::sync::Arc;

/// What a word of the text means: adds one whole part to the items, or nothing, and says which.
pub type ReadOperand<'a> =
    dyn FnMut(&mut Vec<Option<QueryItem>>, &str, Weights, bool) -> Result<(), SqlError> + 'a;

/// How many operators may wait for their right side between two parentheses, as in PostgreSQL.
const WAITING_MAX: usize = 32;
/// The farthest distance of a phrase.
const DISTANCE_MAX: u16 = 16_384;

/// Reads a query as PostgreSQL's input function does.
///
/// # Errors
/// `42601` where it is none, `54000` where it is too long, `22023` for a distance that cannot be.
pub(crate) fn parse_tsquery(text: &str) -> Result<TsQuery, SqlError> {
    let mut as_written =
        |items: &mut Vec<Option<QueryItem>>, word: &str, weights: Weights, is_prefix: bool| {
            items.push(Some(QueryItem::Operand { text: Arc::from(word), weights, is_prefix }));
            Ok(())
        };
    parse_query(text, QuerySyntax::Operators, &mut as_written)
}

/// Reads a query whose words `read` turns into items, each operator behind what it joins; `None` is a word that is not looked for, such as
/// `the`. Words without which a phrase has gaps make it longer.
///
/// # Errors
/// As the input function; those of `read`.
pub fn parse_query(text: &str, syntax: QuerySyntax, read: &mut ReadOperand<'_>) -> Result<TsQuery, SqlError> {
    let mut items: Vec<Option<QueryItem>> = Vec::new();
    match syntax {
        QuerySyntax::Plain if text.is_empty() => {}
        QuerySyntax::Plain => read(&mut items, text, Weights::default(), false)?,
        QuerySyntax::Operators | QuerySyntax::Web => {
            let dialect = if syntax == QuerySyntax::Web { Dialect::Web } else { Dialect::Query };
            let words = Words::new(text, dialect);
            Reader { words, syntax, is_first: true, waits_for_operand: true, open: 0 }
                .read(&mut items, read)?;
        }
    }
    let is_too_long = |item: &Option<QueryItem>| matches!(item, Some(QueryItem::Operand { text, .. }) if text.len() > LEXEME_BYTES_MAX);
    if items.iter().any(is_too_long) {
        let message = format!("word is too long in tsquery: \"{text}\"");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_short_detail());
    }
    TsQuery::new(without_stop_words(items))?
        .ok_or_else(|| SqlError::new(SqlState::SYNTAX_ERROR, format!("syntax error in tsquery: \"{text}\"")))
}

enum Token {
    Operand(String, Weights, bool),
    /// Words that are not looked for stand here.
    Nothing,
    Operator(QueryItem),
    Open,
    Close,
    End,
}

struct Reader<'a> {
    words: Words<'a>,
    syntax: QuerySyntax,
    /// Nothing has been read yet.
    is_first: bool,
    waits_for_operand: bool,
    /// Parentheses that are open.
    open: usize,
}

fn priority(item: &QueryItem) -> u8 {
    match item {
        QueryItem::Operand { .. } => 5,
        QueryItem::Not => 4,
        QueryItem::Phrase(_) => 3,
        QueryItem::And => 2,
        QueryItem::Or => 1,
    }
}

/// Puts operators behind what they join that bind at least as strongly as what comes. `!` is read from the right.
fn settle(items: &mut Vec<Option<QueryItem>>, waiting: &mut Vec<QueryItem>, first: usize, next: &QueryItem) {
    while waiting.len() > first {
        let Some(last) = waiting.last().map(priority) else { return };
        let binds_more = match next {
            QueryItem::Not => priority(next) >= last,
            other => priority(other) > last,
        };
        if binds_more {
            return;
        }
        items.push(waiting.pop());
    }
}

impl Reader<'_> {
    fn read(
        mut self,
        items: &mut Vec<Option<QueryItem>>,
        read: &mut ReadOperand<'_>,
    ) -> Result<(), SqlError> {
        let mut waiting: Vec<QueryItem> = Vec::new();
        // Where operators of each open parenthesis begin.
        let mut starts = vec![0];
        loop {
            let start = starts.last().copied().unwrap_or(0);
            match self.next()? {
                Token::Operand(word, weights, is_prefix) => read(items, &word, weights, is_prefix)?,
                Token::Nothing => items.push(None),
                Token::Operator(operator) => {
                    settle(items, &mut waiting, start, &operator);
                    if waiting.len() - start >= WAITING_MAX {
                        let message = "tsquery stack too small";
                        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).hint(format!(
                            "At most {WAITING_MAX} operators wait for their right side. Use parentheses."
                        )));
                    }
                    waiting.push(operator);
                }
                Token::Open => starts.push(waiting.len()),
                Token::Close => {
                    settle(items, &mut waiting, start, &QueryItem::Or);
                    starts.pop();
                }
                Token::End => {
                    settle(items, &mut waiting, 0, &QueryItem::Or);
                    return Ok(());
                }
            }
        }
    }

    fn next(&mut self) -> Result<Token, SqlError> {
        self.words.rest = self.words.rest.trim_start_matches(is_space);
        match (self.waits_for_operand, self.syntax) {
            (true, QuerySyntax::Web) => self.next_web_operand(),
            (true, _) => self.next_operand(),
            (false, QuerySyntax::Web) => Ok(self.next_web_operator()),
            (false, _) => self.next_operator(),
        }
    }

    fn next_operand(&mut self) -> Result<Token, SqlError> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.words.peek() {
            Some('!') => {
                self.words.skip();
                return Ok(Token::Operator(QueryItem::Not));
            }
            Some('(') => {
                self.words.skip();
                self.open += 1;
                return Ok(Token::Open);
            }
            Some(':') => return Err(self.words.unexpected()),
            _ => {}
        }
        match self.words.next_word()? {
            Some((word, _)) => {
                self.waits_for_operand = false;
                let (weights, is_prefix) = self.modifiers();
                Ok(Token::Operand(word, weights, is_prefix))
            }
            None if is_first => Ok(Token::End),
            None => {
                let message = format!("no operand in tsquery: \"{}\"", self.words.whole());
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
        }
    }

    /// `:*AB`
    fn modifiers(&mut self) -> (Weights, bool) {
        let (mut weights, mut is_prefix) = (Weights::default(), false);
        if self.words.peek() == Some(':') {
            self.words.skip();
            while let Some(letter) = self.words.peek() {
                match Weight::of_letter(letter) {
                    Some(weight) => weights = weights.with(weight),
                    None if letter == '*' => is_prefix = true,
                    None => break,
                }
                self.words.skip();
            }
        }
        (weights, is_prefix)
    }

    fn next_operator(&mut self) -> Result<Token, SqlError> {
        let operator = match self.words.peek() {
            Some('&') => QueryItem::And,
            Some('|') => QueryItem::Or,
            Some(')') if self.open > 0 => {
                self.words.skip();
                self.open -= 1;
                return Ok(Token::Close);
            }
            None if self.open == 0 => return Ok(Token::End),
            _ => match self.phrase()? {
                Some(distance) => {
                    self.waits_for_operand = true;
                    return Ok(Token::Operator(QueryItem::Phrase(distance)));
                }
                None => return Err(self.words.unexpected()),
            },
        };
        self.words.skip();
        self.waits_for_operand = true;
        Ok(Token::Operator(operator))
    }

    /// `<->` or `<2>`, behind which something must follow.
    fn phrase(&mut self) -> Result<Option<u16>, SqlError> {
        let Some(rest) = self.words.rest.strip_prefix('<') else { return Ok(None) };
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (distance, rest) = match rest.strip_prefix('-') {
            Some(rest) => (1, rest),
            None if digits == 0 => return Ok(None),
            None => {
                let distance = rest[..digits].parse().ok().filter(|distance| *distance <= DISTANCE_MAX);
                (distance.ok_or_else(distance_out_of_range)?, &rest[digits..])
            }
        };
        match rest.strip_prefix('>') {
            Some(rest) if !rest.is_empty() => {
                self.words.rest = rest;
                Ok(Some(distance))
            }
            _ => Ok(None),
        }
    }

    fn next_web_operand(&mut self) -> Result<Token, SqlError> {
        // Operators of the other syntax are no words.
        let rest = self.words.rest.trim_start_matches(|letter| is_space(letter) || is_operator(letter));
        let is_first = std::mem::replace(&mut self.is_first, false) && rest.len() == self.words.rest.len();
        self.words.rest = rest;
        match self.words.peek() {
            Some('-') => {
                self.words.skip();
                Ok(Token::Operator(QueryItem::Not))
            }
            Some('"') => {
                self.words.skip();
                let (quoted, rest) = self.words.rest.split_once('"').unwrap_or((self.words.rest, ""));
                self.words.rest = rest;
                self.waits_for_operand = false;
                Ok(Token::Operand(quoted.to_string(), Weights::default(), false))
            }
            _ => match self.words.next_word()? {
                Some((word, _)) => {
                    self.waits_for_operand = false;
                    Ok(Token::Operand(word, Weights::default(), false))
                }
                None if is_first => Ok(Token::End),
                None => {
                    self.waits_for_operand = false;
                    Ok(Token::Nothing)
                }
            },
        }
    }

    fn next_web_operator(&mut self) -> Token {
        loop {
            self.words.rest = self.words.rest.trim_start_matches(is_space);
            match self.words.peek() {
                None => return Token::End,
                Some(_) if self.accepts_or() => {
                    self.waits_for_operand = true;
                    return Token::Operator(QueryItem::Or);
                }
                Some(letter) if is_operator(letter) => {
                    self.words.skip();
                }
                Some(_) => {
                    self.waits_for_operand = true;
                    return Token::Operator(QueryItem::And);
                }
            }
        }
    }

    /// `or` between words, and not the beginning of one.
    fn accepts_or(&mut self) -> bool {
        let Some((word, rest)) = self.words.rest.split_at_checked(2) else { return false };
        if !word.eq_ignore_ascii_case("or") {
            return false;
        }
        let Some(next) = rest.chars().next() else { return false };
        if matches!(next, '-' | '_') || next.is_ascii_alphanumeric() || !next.is_ascii() {
            return false;
        }
        // Something has to follow, if not at once.
        let mut behind = rest.chars();
        behind.next();
        if behind.as_str().trim_start_matches(is_space).is_empty() {
            return false;
        }
        self.words.rest = rest;
        true
    }
}

/// The error of a distance that cannot be.
#[cold]
pub fn distance_out_of_range() -> SqlError {
    let message = format!(
        "distance in phrase operator must be an integer value between zero and {DISTANCE_MAX} inclusive"
    );
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// What is left of a part, and by how much a phrase around it is longer on its left and on its right.
struct Left {
    is_there: bool,
    before: u16,
    behind: u16,
}

/// Leaves out words that are not looked for, and operators that have nothing to join then. Phrases are longer by the places of the words.
fn without_stop_words(items: Vec<Option<QueryItem>>) -> Vec<QueryItem> {
    let mut kept = Vec::with_capacity(items.len());
    let mut parts: Vec<Left> = Vec::new();
    for item in items {
        let arity = item.as_ref().map_or(0, QueryItem::arity);
        let right = if arity > 0 { parts.pop() } else { None };
        let left = if arity > 1 { parts.pop() } else { None };
        let part = match (item, left, right) {
            (None, ..) => Left { is_there: false, before: 0, behind: 0 },
            (Some(item), None, Some(only)) => {
                if only.is_there {
                    kept.push(item);
                }
                only
            }
            (Some(item), Some(left), Some(right)) => joined(&mut kept, item, &left, &right),
            (Some(item), ..) => {
                kept.push(item);
                Left { is_there: true, before: 0, behind: 0 }
            }
        };
        parts.push(part);
    }
    kept
}

fn joined(kept: &mut Vec<QueryItem>, operator: QueryItem, left: &Left, right: &Left) -> Left {
    let sum = |numbers: [u16; 3]| numbers.into_iter().fold(0, u16::saturating_add);
    let own = match operator {
        QueryItem::Phrase(distance) => Some(distance),
        _ => None,
    };
    match (left.is_there, right.is_there) {
        (true, true) => {
            kept.push(match own {
                Some(distance) => QueryItem::Phrase(sum([distance, left.behind, right.before])),
                None => operator,
            });
            let (before, behind) = if own.is_some() { (left.before, right.behind) } else { (0, 0) };
            Left { is_there: true, before, behind }
        }
        (false, false) => {
            let width = match own {
                Some(distance) => sum([left.before, distance, right.before]),
                None => left.before.max(right.before),
            };
            Left { is_there: false, before: width, behind: width }
        }
        (false, true) => {
            let before = own.map_or(right.before, |distance| sum([left.before, distance, right.before]));
            Left { is_there: true, before, behind: right.behind }
        }
        (true, false) => {
            let behind = own.map_or(left.behind, |distance| sum([left.behind, distance, right.behind]));
            Left { is_there: true, before: left.before, behind }
        }
    }
}

enum Written<'a> {
    Text(&'a str),
    /// The operator of a phrase of this distance.
    Distance(u16),
    /// The part that ends with this item, below an operator of this priority, and whether it is the right side of a phrase.
    Part(usize, u8, bool),
}

/// Writes a query as PostgreSQL does.
pub(crate) fn format_query(query: &TsQuery) -> String {
    let (items, sizes) = (query.items(), query.sizes());
    let mut text = String::new();
    let mut next: Vec<Written<'_>> = Vec::new();
    next.extend(items.len().checked_sub(1).map(|last| Written::Part(last, 0, false)));
    while let Some(written) = next.pop() {
        let (at, above, is_right_of_phrase) = match written {
            Written::Text(written) => {
                text.push_str(written);
                continue;
            }
            Written::Distance(distance) => {
                // Writing to a string never fails.
                let _ = match distance {
                    1 => text.write_str(" <-> "),
                    _ => write!(text, " <{distance}> "),
                };
                continue;
            }
            Written::Part(at, above, is_right_of_phrase) => (at, above, is_right_of_phrase),
        };
        let (item, own) = (&items[at], priority(&items[at]));
        let is_phrase = matches!(item, QueryItem::Phrase(_));
        let has_parentheses = own < above || (is_phrase && is_right_of_phrase);
        if let QueryItem::Operand { text: word, weights, is_prefix } = item {
            push_operand(&mut text, word, *weights, *is_prefix);
            continue;
        }
        if has_parentheses {
            text.push_str("( ");
            next.push(Written::Text(" )"));
        }
        if *item == QueryItem::Not {
            text.push('!');
            next.push(Written::Part(at - 1, own, false));
            continue;
        }
        next.push(Written::Part(at - 1, own, is_phrase));
        next.push(match item {
            QueryItem::And => Written::Text(" & "),
            QueryItem::Phrase(distance) => Written::Distance(*distance),
            _ => Written::Text(" | "),
        });
        next.push(Written::Part(at - 1 - sizes[at - 1], own, false));
    }
    text
}

fn push_operand(text: &mut String, word: &str, weights: Weights, is_prefix: bool) {
    push_quoted(text, word);
    if !weights.is_any() || is_prefix {
        text.push(':');
        if is_prefix {
            text.push('*');
        }
        let named = Weight::ALL.into_iter().rev().filter(|weight| weights.has(*weight) && !weights.is_any());
        text.extend(named.map(Weight::letter));
    }
}

/// Bytes of that text at most.
pub(crate) fn query_text_bytes(query: &TsQuery) -> usize {
    let of_item = |item: &QueryItem| match item {
        QueryItem::Operand { text, .. } => quoted_bytes(text) + 6,
        // With parentheses.
        QueryItem::Phrase(_) => 13,
        _ => 7,
    };
    query.items().iter().map(of_item).sum()
}
