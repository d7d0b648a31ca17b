//! `ONLY table`: the rows of a table without those of what inherits from it. sqlparser takes the word for a name.

use crate::parse::tokens::word_at;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, TableFactor, TableFunctionArgs,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::borrow::Cow;

/// Words behind a table that is called `only`, which cannot be what ONLY is about.
const BEHIND_A_NAME: &str = "and as at between collate cross except fetch for from full group having ilike in inner intersect is \
    join left like limit natural not offset on or order returning right select set similar tablesample union using values where \
    window with";

/// `ONLY t` becomes `ONLY (t)`, which PostgreSQL reads, too, and sqlparser as the call of a function.
pub(super) fn enclose_only(tokens: &mut Vec<TokenWithSpan>) {
    if !(0..tokens.len()).any(|at| word_at(tokens, at, "only")) {
        return;
    }
    let mut enclosed = Vec::with_capacity(tokens.len() + 2);
    // Per open parenthesis: whether relations are listed there.
    let mut lists = vec![false];
    let mut at = 0;
    while at < tokens.len() {
        let listed = lists.last().copied().unwrap_or(false);
        let before = at.checked_sub(1).map(|before| &tokens[before].token);
        let begins = begins_relation(tokens, at, listed);
        match &tokens[at].token {
            Token::LParen => lists.push(begins),
            Token::RParen if lists.len() > 1 => drop(lists.pop()),
            Token::SemiColon => lists = vec![false],
            word => {
                let is_distinct = before.is_some_and(|before| keyword(before) == Keyword::DISTINCT);
                if let Some(lists_relations) = lists_relations(keyword(word)).filter(|_| !is_distinct)
                    && let Some(innermost) = lists.last_mut()
                {
                    *innermost = lists_relations;
                }
            }
        }
        let length = if begins && word_at(tokens, at, "only") { name_length(tokens, at + 1) } else { 0 };
        enclosed.push(tokens[at].clone());
        at += 1;
        if length > 0 {
            let span = tokens[at].span;
            enclosed.push(TokenWithSpan { token: Token::LParen, span });
            enclosed.extend(tokens[at..at + length].iter().map(quoted));
            enclosed.push(TokenWithSpan { token: Token::RParen, span });
            at += length;
        }
    }
    *tokens = enclosed;
}

/// Whether a relation is named from this token on. `listed`: they are listed around it.
fn begins_relation(tokens: &[TokenWithSpan], at: usize, listed: bool) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    let is_distinct = before > 0 && keyword(&tokens[before - 1].token) == Keyword::DISTINCT;
    match (&tokens[before].token, keyword(&tokens[before].token)) {
        (Token::Comma | Token::LParen, _) => listed,
        (_, Keyword::FROM) => !is_distinct,
        (_, Keyword::JOIN | Keyword::UPDATE | Keyword::USING) => true,
        _ => false,
    }
}

/// Whether relations are listed behind a word; `None` where it makes no difference.
fn lists_relations(keyword: Keyword) -> Option<bool> {
    match keyword {
        Keyword::FROM | Keyword::USING => Some(true),
        Keyword::SELECT
        | Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::ORDER
        | Keyword::WINDOW
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::FETCH
        | Keyword::SET
        | Keyword::RETURNING
        | Keyword::VALUES => Some(false),
        _ => None,
    }
}

/// How many tokens the name has that stands there; 0 where none does.
fn name_length(tokens: &[TokenWithSpan], at: usize) -> usize {
    let is_name = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => {
            let mut behind = BEHIND_A_NAME.split_whitespace();
            word.quote_style.is_some() || !behind.any(|known| word.value.eq_ignore_ascii_case(known))
        }
        _ => false,
    };
    let is_period = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Period);
    match is_name(at) {
        false => 0,
        true if is_period(at + 1) && is_name(at + 2) => 3,
        true => 1,
    }
}

/// A word as a name, whatever else it may mean in an expression.
fn quoted(token: &TokenWithSpan) -> TokenWithSpan {
    let mut token = token.clone();
    if let Token::Word(word) = &mut token.token
        && word.quote_style.is_none()
        && word.keyword != Keyword::NoKeyword
    {
        (word.value, word.quote_style) = (word.value.to_ascii_lowercase(), Some('"'));
        word.keyword = Keyword::NoKeyword;
    }
    token
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// The name in `ONLY (name)`.
fn name_in(name: &ObjectName, args: Option<&TableFunctionArgs>) -> Option<ObjectName> {
    let [part] = name.0.as_slice() else { return None };
    let is_only = part
        .as_ident()
        .is_some_and(|ident| ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("only"));
    let TableFunctionArgs { args, settings: None } = args? else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(table))] = args.as_slice() else { return None };
    let path: Vec<Ident> = match table {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(path) => path.clone(),
        _ => return None,
    };
    is_only.then(|| ObjectName(path.into_iter().map(ObjectNamePart::Identifier).collect()))
}

/// Makes `ONLY (t)` of FROM the table `t`, and says whether it was that.
pub fn take_only(factor: &mut TableFactor) -> bool {
    let TableFactor::Table { name, args, with_ordinality: false, .. } = factor else { return false };
    let Some(table) = name_in(name, args.as_ref()) else { return false };
    (*name, *args) = (table, None);
    true
}

/// Makes the table `t` of FROM `ONLY (t)`.
pub fn put_only(factor: &mut TableFactor) {
    let TableFactor::Table { name, args, .. } = factor else { return };
    let mut path: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident()).cloned().collect();
    let table = match path.len() {
        1 => Expr::Identifier(path.remove(0)),
        _ => Expr::CompoundIdentifier(path),
    };
    let table = FunctionArg::Unnamed(FunctionArgExpr::Expr(table));
    *name = ObjectName::from(vec![Ident::new("ONLY")]);
    *args = Some(TableFunctionArgs { args: vec![table], settings: None });
}

/// A relation of FROM without ONLY, and whether it says that.
pub fn without_only(factor: &TableFactor) -> (Cow<'_, TableFactor>, bool) {
    if let TableFactor::Table { name, args: args @ Some(_), .. } = factor
        && name_in(name, args.as_ref()).is_some()
    {
        let mut table = factor.clone();
        if take_only(&mut table) {
            return (Cow::Owned(table), true);
        }
    }
    (Cow::Borrowed(factor), false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{parse_query, tokenize};
    use sqlparser::ast::SetExpr;
    use types::ExecutionVersion;

    fn enclosed(sql: &str) -> String {
        let mut tokens = tokenize(sql).expect("tokens");
        enclose_only(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_is_enclosed_where_a_relation_is_named() {
        for (sql, wanted) in [
            ("SELECT a FROM ONLY t x", "SELECT a FROM ONLY ( t ) x"),
            ("SELECT a FROM u , ONLY s . \"T\" AS x", "SELECT a FROM u , ONLY ( s . \"T\" ) AS x"),
            (
                "SELECT a FROM ( ONLY t JOIN ONLY u ON a )",
                "SELECT a FROM ( ONLY ( t ) JOIN ONLY ( u ) ON a )",
            ),
            ("UPDATE ONLY t SET a = 1", "UPDATE ONLY ( t ) SET a = 1"),
            ("DELETE FROM ONLY t USING ONLY date", "DELETE FROM ONLY ( t ) USING ONLY ( \"date\" )"),
        ] {
            assert_eq!(enclosed(sql), wanted);
        }
    }

    #[test]
    fn what_is_called_only_keeps_its_name() {
        for sql in [
            "SELECT a , only b FROM t",
            "SELECT a FROM only",
            "SELECT a FROM only AS x",
            "SELECT a FROM only WHERE b",
            "SELECT a FROM ONLY ( t )",
            "SELECT a IS DISTINCT FROM only b",
            "SELECT a FROM t FETCH FIRST 1 ROWS ONLY",
            "UPDATE only SET a = 1",
            "UPDATE t SET a = 1 , only = 2",
            "ALTER TABLE ONLY t ADD b integer",
        ] {
            assert_eq!(enclosed(sql), sql);
        }
    }

    #[test]
    fn a_relation_is_taken_out_of_only_and_put_back() {
        let query = parse_query("SELECT a FROM ONLY s.t AS x", ExecutionVersion::NEWEST).expect("a query");
        let SetExpr::Select(select) = *query.body else { panic!("a SELECT") };
        let factor = &select.from[0].relation;
        let (table, only) = without_only(factor);
        assert_eq!((table.to_string().as_str(), only), ("s.t AS x", true));
        let mut again = table.into_owned();
        put_only(&mut again);
        assert_eq!(again.to_string(), "ONLY(s.t) AS x");
        assert!(take_only(&mut again));
        assert!(!take_only(&mut again));
    }
}
