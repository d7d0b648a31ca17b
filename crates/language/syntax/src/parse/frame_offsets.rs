//! `RANGE '1 day'::interval PRECEDING`: sqlparser takes a literal in this place for an interval, and reads nothing behind it.

use crate::parse::tokens::word_at;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Puts offsets of frames that begin with a literal in parentheses.
pub(super) fn enclose_offsets(tokens: &mut Vec<TokenWithSpan>) {
    // Where parentheses open, and in front of what they close.
    let enclosed: Vec<(usize, usize)> =
        (1..tokens.len()).filter_map(|at| Some((at, offset_end(tokens, at)?))).collect();
    if enclosed.is_empty() {
        return;
    }
    let mut written = Vec::with_capacity(tokens.len() + 2 * enclosed.len());
    let mut copied = 0;
    for (begin, end) in enclosed {
        let parenthesis = |token| TokenWithSpan { token, span: tokens[begin].span };
        written.extend_from_slice(&tokens[copied..begin]);
        written.push(parenthesis(Token::LParen));
        written.extend_from_slice(&tokens[begin..end]);
        written.push(parenthesis(Token::RParen));
        copied = end;
    }
    written.extend_from_slice(&tokens[copied..]);
    *tokens = written;
}

/// The end of an offset that begins there with a literal.
fn offset_end(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let begins =
        ["rows", "range", "groups", "between", "and"].iter().any(|word| word_at(tokens, at - 1, word));
    if !begins || !matches!(tokens[at].token, Token::SingleQuotedString(_)) {
        return None;
    }
    let mut depth = 0_usize;
    for end in at + 1..tokens.len() {
        match &tokens[end].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return None,
            Token::RParen => depth -= 1,
            _ if depth > 0 => {}
            Token::Comma | Token::SemiColon => return None,
            _ if word_at(tokens, end, "and") => return None,
            _ if word_at(tokens, end, "preceding") || word_at(tokens, end, "following") => return Some(end),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::parse::parse_query;
    use types::ExecutionVersion;

    #[test]
    fn offsets_that_begin_with_a_literal_are_read_and_written() {
        for (sql, written) in [
            ("RANGE '1 day' PRECEDING", "RANGE ('1 day') PRECEDING"),
            (
                "RANGE BETWEEN '1'::INTERVAL PRECEDING AND '2' FOLLOWING",
                "RANGE BETWEEN ('1'::INTERVAL) PRECEDING AND ('2') FOLLOWING",
            ),
            ("RANGE INTERVAL '1 day' PRECEDING", "RANGE INTERVAL '1 day' PRECEDING"),
        ] {
            let query = |frame: &str| format!("SELECT sum(a) OVER (ORDER BY a {frame}) FROM t");
            let read = parse_query(&query(sql), ExecutionVersion::V14).expect(sql);
            assert_eq!(read.to_string(), query(written));
        }
        let sql = "SELECT a FROM t WHERE a BETWEEN 'x' AND 'y'";
        assert_eq!(parse_query(sql, ExecutionVersion::V14).expect(sql).to_string(), sql);
    }
}
