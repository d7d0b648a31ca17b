//! `FETCH FIRST (expression) ROWS ONLY`, `… WITH TIES`, and OFFSET behind them: sqlparser reads a number alone, and OFFSET in front.

use crate::parse::tokens::word_at;
use sqlparser::ast::{Expr, Fetch, FunctionArg, FunctionArgExpr, FunctionArguments, LimitClause, Query};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What stands in front of how many rows are wanted together with those that are equal to the last one.
const TIES_MARK: &str = "with ties";

/// `FETCH FIRST expression ROWS ONLY` becomes `LIMIT (expression)`, and `… ROWS WITH TIES` becomes `LIMIT "with ties"(expression)`, where
/// sqlparser would not read it.
pub(super) fn spell_fetch(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 2 < tokens.len() {
        if let Some((end, ties)) = clause_at(tokens, at) {
            let (start, span) = (at + 2, tokens[at].span);
            let is_number = matches!(
                tokens[start..end].iter().map(|token| &token.token).collect::<Vec<_>>().as_slice(),
                [] | [Token::Number(..) | Token::Placeholder(_)]
            );
            let behind = end + if ties { 3 } else { 2 };
            if !is_number || word_at(tokens, behind, "offset") {
                let mark = Word {
                    value: TIES_MARK.to_string(),
                    quote_style: Some('"'),
                    keyword: Keyword::NoKeyword,
                };
                let mut spelt = vec![Token::make_keyword("LIMIT")];
                spelt.extend(ties.then_some(Token::Word(mark)));
                spelt.push(Token::LParen);
                spelt.extend((start == end).then(|| Token::Number("1".into(), false)));
                let mut spelt: Vec<TokenWithSpan> =
                    spelt.into_iter().map(|token| TokenWithSpan { token, span }).collect();
                spelt.extend_from_slice(&tokens[start..end]);
                spelt.push(TokenWithSpan { token: Token::RParen, span: tokens[end].span });
                tokens.splice(at..behind, spelt);
            }
        }
        at += 1;
    }
}

/// Where the number of a FETCH that begins here ends, and whether it is `WITH TIES`. That of a cursor says no `ROWS ONLY`.
fn clause_at(tokens: &[TokenWithSpan], at: usize) -> Option<(usize, bool)> {
    let begins =
        word_at(tokens, at, "fetch") && (word_at(tokens, at + 1, "first") || word_at(tokens, at + 1, "next"));
    if !begins {
        return None;
    }
    let mut depth = 0_usize;
    for end in at + 2..tokens.len() {
        match tokens[end].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            Token::SemiColon => return None,
            _ if depth == 0 && (word_at(tokens, end, "row") || word_at(tokens, end, "rows")) => {
                let ties = word_at(tokens, end + 1, "with") && word_at(tokens, end + 2, "ties");
                return (ties || word_at(tokens, end + 1, "only")).then_some((end, ties));
            }
            _ => {}
        }
    }
    None
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
