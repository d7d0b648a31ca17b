//! `EXCLUDE CURRENT ROW` and its kind behind the frame of a window, which sqlparser does not read.

use crate::parse::tokens::word_at;
use sqlparser::ast::{Expr, Ident, OrderByExpr, WindowSpec};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// How the name of an exclusion is quoted among the keys of its window. No text has such quotes.
const MARK_QUOTE: char = '`';

/// Rows of its frame that do not count for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// The row itself.
    CurrentRow,
    /// The row and those that are equal to it in ORDER BY.
    Group,
    /// Those that are equal to it, and not the row itself.
    Ties,
}

impl Exclusion {
    const ALL: [Exclusion; 3] = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties];

    fn words(self) -> &'static str {
        match self {
            Exclusion::CurrentRow => "EXCLUDE CURRENT ROW",
            Exclusion::Group => "EXCLUDE GROUP",
            Exclusion::Ties => "EXCLUDE TIES",
        }
    }

    fn of_mark(ident: &Ident) -> Option<Exclusion> {
        let is_mark = ident.quote_style == Some(MARK_QUOTE);
        Exclusion::ALL.into_iter().find(|exclusion| is_mark && exclusion.words() == ident.value)
    }
}

/// `(ORDER BY a ROWS frame EXCLUDE TIES)` becomes ``(ORDER BY a, `EXCLUDE TIES` ROWS frame)``, and where it has no keys it is
/// partitioned by the mark. NO OTHERS goes, because it says nothing.
pub(super) fn mark_exclusions(tokens: &mut Vec<TokenWithSpan>) {
    // What stands instead of so many tokens at a place.
    let mut edits: Vec<(usize, usize, Vec<Token>)> = Vec::new();
    for at in 1..tokens.len() {
        let Some((exclusion, length)) = exclusion_at(tokens, at) else { continue };
        let Some(frame) = frame_before(tokens, at) else { continue };
        edits.push((at, length, Vec::new()));
        if let Some(exclusion) = exclusion {
            let (value, quote_style) = (exclusion.words().to_string(), Some(MARK_QUOTE));
            let mark = Token::Word(Word { value, quote_style, keyword: Keyword::NoKeyword });
            let mut marked = match frame.has_keys {
                true => vec![Token::Comma],
                false => vec![Token::make_keyword("PARTITION"), Token::make_keyword("BY")],
            };
            marked.push(mark);
            edits.push((frame.begin, 0, marked));
        }
    }
    if edits.is_empty() {
        return;
    }
    edits.sort_by_key(|(at, ..)| *at);
    let mut written = Vec::with_capacity(tokens.len() + edits.len());
    let mut copied = 0;
    for (at, length, instead) in edits {
        written.extend_from_slice(&tokens[copied..at]);
        let span = tokens[at].span;
        written.extend(instead.into_iter().map(|token| TokenWithSpan { token, span }));
        copied = at + length;
    }
    written.extend_from_slice(&tokens[copied..]);
    *tokens = written;
}

/// What is excluded by the words that stand there, and how many they are.
fn exclusion_at(tokens: &[TokenWithSpan], at: usize) -> Option<(Option<Exclusion>, usize)> {
    let is = |ahead: usize, word: &str| word_at(tokens, at + ahead, word);
    let ends_frame = ["row", "preceding", "following"].iter().any(|word| word_at(tokens, at - 1, word));
    if !ends_frame || !is(0, "exclude") {
        return None;
    }
    let found = match () {
        () if is(1, "current") && is(2, "row") => (Some(Exclusion::CurrentRow), 3),
        () if is(1, "no") && is(2, "others") => (None, 3),
        () if is(1, "group") => (Some(Exclusion::Group), 2),
        () if is(1, "ties") => (Some(Exclusion::Ties), 2),
        () => return None,
    };
    let closes = tokens.get(at + found.1).is_some_and(|token| token.token == Token::RParen);
    closes.then_some(found)
}

/// A frame.
struct Frame {
    /// Where it begins.
    begin: usize,
    /// Keys stand in front of it.
    has_keys: bool,
}

/// The frame that ends there.
fn frame_before(tokens: &[TokenWithSpan], end: usize) -> Option<Frame> {
    let (mut depth, mut begin, mut has_keys) = (0_usize, None, false);
    for at in (0..end).rev() {
        match &tokens[at].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => {
                return begin.filter(|begin| *begin > at).map(|begin| Frame { begin, has_keys });
            }
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ if begin.is_none() => {
                let is_unit = ["rows", "range", "groups"].iter().any(|word| word_at(tokens, at, word));
                begin = is_unit.then_some(at);
            }
            _ => has_keys |= word_at(tokens, at, "by"),
        }
    }
    None
}

/// What the frame of a window excludes, and the keys that the window is partitioned and sorted by.
pub fn exclusion(spec: &WindowSpec) -> (Option<Exclusion>, &[Expr], &[OrderByExpr]) {
    let (partition, order) = (spec.partition_by.as_slice(), spec.order_by.as_slice());
    let mark = |expr: &Expr| match expr {
        Expr::Identifier(ident) => Exclusion::of_mark(ident),
        _ => None,
    };
    if let [keys @ .., last] = order
        && let Some(exclusion) = mark(&last.expr)
    {
        return (Some(exclusion), partition, keys);
    }
    if let [keys @ .., last] = partition
        && let Some(exclusion) = mark(last)
    {
        return (Some(exclusion), keys, order);
    }
    (None, partition, order)
}

/// Lets a window write its exclusion where it stands in SQL. It is nothing but its text from then on.
pub(super) fn write_exclusion(spec: &mut WindowSpec) {
    let (Some(exclusion), partition, order) = exclusion(spec) else { return };
    let (partition_by, order_by) = (partition.to_vec(), order.to_vec());
    let plain = WindowSpec { partition_by, order_by, ..spec.clone() };
    let text = Ident::new(format!("{plain} {}", exclusion.words()));
    *spec = WindowSpec {
        window_name: Some(text),
        partition_by: Vec::new(),
        order_by: Vec::new(),
        window_frame: None,
    };
}

#[cfg(test)]
mod tests {
    use crate::parse::{parse_query, written_query};
    use types::ExecutionVersion;

    #[test]
    fn exclusions_are_read_and_written_where_they_stand() {
        for (sql, written) in [
            ("SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM t", None),
            ("SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND (1 + 1) FOLLOWING EXCLUDE TIES) FROM t", None),
            (
                "SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b GROUPS 1 PRECEDING EXCLUDE GROUP)",
                None,
            ),
            (
                "SELECT sum((SELECT max(b) OVER (ROWS 1 PRECEDING EXCLUDE TIES) FROM u)) OVER (w ROWS 1 PRECEDING EXCLUDE GROUP) FROM t WINDOW w AS (ORDER BY a)",
                None,
            ),
            (
                "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE NO OTHERS) FROM t",
                Some("SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING) FROM t"),
            ),
        ] {
            let query = parse_query(sql, ExecutionVersion::V14).expect(sql);
            assert_eq!(written_query(&query, ExecutionVersion::V14), written.unwrap_or(sql));
            assert_eq!(parse_query(sql, ExecutionVersion::V13).expect_err(sql).state.to_string(), "42601");
        }
    }

    #[test]
    fn what_is_no_frame_is_left_alone() {
        for sql in [
            "SELECT sum(a) OVER (ORDER BY a EXCLUDE TIES) FROM t",
            "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE ROWS) FROM t",
            "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE TIES GROUP) FROM t",
        ] {
            let error = parse_query(sql, ExecutionVersion::V14).expect_err(sql);
            assert_eq!(error.state.to_string(), "42601", "{sql}");
        }
    }
}
