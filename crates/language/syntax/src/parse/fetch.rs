//! `FETCH FIRST (expression) ROWS ONLY`, `… WITH TIES`, and OFFSET behind them: sqlparser reads a number alone, and OFFSET in front.

use crate::parse::tokens::word_at;
use sqlparser::ast::{Expr, Fetch, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, Query};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::ops::Range;

/// What stands in front of how many rows are wanted together with those that are equal to the last one.
const TIES_MARK: &str = "with ties";

/// `FETCH FIRST expression ROWS ONLY` becomes `LIMIT (expression)`, and `… ROWS WITH TIES` becomes `LIMIT "with ties"(expression)`, where
/// sqlparser would not read it.
pub(super) fn spell_fetch(tokens: &mut Vec<TokenWithSpan>) {
    let mut spelt: Vec<(Range<usize>, Vec<Token>)> = Vec::new();
    for Clause { begin, end, ties } in clauses(tokens) {
        let number = &tokens[begin + 2..end];
        let is_number = match number {
            [] => true,
            [one] => matches!(one.token, Token::Number(..) | Token::Placeholder(_)),
            _ => false,
        };
        let behind = end + if ties { 3 } else { 2 };
        if is_number && !word_at(tokens, behind, "offset") {
            continue;
        }
        let mark = Word { value: TIES_MARK.to_string(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        let mut limit = vec![Token::make_keyword("LIMIT")];
        limit.extend(ties.then_some(Token::Word(mark)));
        limit.push(Token::LParen);
        limit.extend(number.is_empty().then(|| Token::Number("1".into(), false)));
        spelt.push((begin..begin + 2, limit));
        spelt.push((end..behind, vec![Token::RParen]));
    }
    if spelt.is_empty() {
        return;
    }
    // A clause may stand inside of another one's number.
    spelt.sort_by_key(|(place, _)| place.start);
    let mut written = Vec::with_capacity(tokens.len() + 2 * spelt.len());
    let mut copied = 0;
    for (place, instead) in spelt {
        written.extend_from_slice(&tokens[copied..place.start]);
        let span = tokens[place.start].span;
        written.extend(instead.into_iter().map(|token| TokenWithSpan { token, span }));
        copied = place.end;
    }
    written.extend_from_slice(&tokens[copied..]);
    *tokens = written;
}

/// A FETCH: where it begins, where its number ends, and whether it is `WITH TIES`.
struct Clause {
    begin: usize,
    end: usize,
    ties: bool,
}

/// All of them, each looked for once. That of a cursor says no `ROWS ONLY`.
fn clauses(tokens: &[TokenWithSpan]) -> Vec<Clause> {
    let mut found = Vec::new();
    // The FETCH whose number is being read, in each parenthesis that is open.
    let mut open: Vec<Option<usize>> = vec![None];
    let mut at = 1;
    while at < tokens.len() {
        let begun = open.last().copied().flatten();
        match tokens[at].token {
            Token::LParen => open.push(None),
            Token::RParen => {
                let _ = open.pop();
            }
            Token::SemiColon => open.clear(),
            _ if word_at(tokens, at, "fetch")
                && (word_at(tokens, at + 1, "first") || word_at(tokens, at + 1, "next")) =>
            {
                let _ = open.pop();
                open.push(Some(at));
                at += 1;
            }
            _ if begun.is_some() && (word_at(tokens, at, "row") || word_at(tokens, at, "rows")) => {
                let ties = word_at(tokens, at + 1, "with") && word_at(tokens, at + 2, "ties");
                let ends = ties || word_at(tokens, at + 1, "only");
                found.extend(begun.filter(|_| ends).map(|begin| Clause { begin, end: at, ties }));
                let _ = open.pop();
                open.push(None);
            }
            _ => {}
        }
        if open.is_empty() {
            open.push(None);
        }
        at += 1;
    }
    found
}

/// How many rows a LIMIT asks for together with those that are equal to the last one, where it has been made of `WITH TIES`.
pub fn limit_with_ties(limit: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = limit else { return None };
    let [part] = function.name.0.as_slice() else { return None };
    let is_mark = part.as_ident().is_some_and(|name| name.quote_style.is_some() && name.value == TIES_MARK);
    match &function.args {
        FunctionArguments::List(list) if is_mark => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(count))] => Some(count),
            _ => None,
        },
        _ => None,
    }
}

/// Writes a query with `FETCH … WITH TIES` again, where that has been made a LIMIT.
pub fn write_ties(query: &mut Query) {
    let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause else { return };
    let Some(count) = limit.as_ref().and_then(limit_with_ties).cloned() else { return };
    let quantity = Some(match count {
        nested @ Expr::Nested(_) => nested,
        count => Expr::Nested(Box::new(count)),
    });
    *limit = None;
    if offset.is_none() {
        query.limit_clause = None;
    }
    query.fetch = Some(Fetch { with_ties: true, percent: false, quantity });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokenize;

    fn spelt(sql: &str) -> String {
        let mut tokens = tokenize(sql).expect("tokens");
        spell_fetch(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn clauses_are_spelt_again_where_sqlparser_does_not_read_them() {
        for as_it_was in
            ["SELECT a FETCH FIRST 3 ROWS ONLY", "SELECT a OFFSET 1 ROWS FETCH NEXT $1 ROW WITH TIES"]
        {
            assert_eq!(spelt(as_it_was), as_it_was);
        }
        assert_eq!(spelt("SELECT a FETCH FIRST (1 + 1) ROWS ONLY"), "SELECT a LIMIT ( ( 1 + 1 ) )");
        assert_eq!(
            spelt("SELECT a FETCH FIRST ROW WITH TIES OFFSET 2"),
            "SELECT a LIMIT \"with ties\" ( 1 ) OFFSET 2"
        );
        let nested = "SELECT a FETCH FIRST (SELECT b FETCH NEXT (2) ROWS ONLY) ROWS ONLY";
        assert_eq!(spelt(nested), "SELECT a LIMIT ( ( SELECT b LIMIT ( ( 2 ) ) ) )");
        for no_clause in
            ["SELECT a FETCH FIRST (2) ROWS", "SELECT (a FETCH FIRST 1 ) ROWS ONLY", "FETCH FIRST rows only"]
        {
            assert!(!spelt(no_clause).contains("LIMIT"), "{no_clause}");
        }
    }

    /// A look from each FETCH to the end of the text would take a minute.
    #[test]
    fn many_that_have_no_end_are_looked_at_once() {
        let many = "fetch first ".repeat(20_000);
        assert!(!spelt(&format!("SELECT {many}")).contains("LIMIT"));
    }
}
