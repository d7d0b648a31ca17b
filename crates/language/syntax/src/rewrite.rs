//! What PostgreSQL reads and sqlparser does not, rewritten token by token where that is small and exact.

use crate::parse::errors::located;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};
use types::SqlError;

/// All of it. White space is gone already.
///
/// # Errors
/// `0A000` for an operator that a rewritten text uses as its mark.
pub fn rewrite(tokens: &mut Vec<TokenWithSpan>, sql: &str) -> Result<(), SqlError> {
    name_sort_operators(tokens);
    mark_variadic(tokens, sql)?;
    select_tables(tokens);
    name_joins(tokens);
    nest_joins(tokens);
    name_records(tokens);
    name_all_fields(tokens);
    spell_null_tests(tokens);
    name_sequences(tokens);
    order_identity_options(tokens);
    mark_past(tokens);
    Ok(())
}

/// What stands in front of the height of a table that is read as it was.
pub const PAST_MARK: &str = "as of height";

/// `t AS OF HEIGHT n` becomes `t("as of height", n)`, which is a table of FROM for sqlparser as well. The height is a number, a
/// parameter or an expression in parentheses. These three words can follow one another nowhere else.
fn mark_past(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: &Token, name: &str| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name));
    let mut at = 0;
    while at + 3 < tokens.len() {
        let words = ["as", "of", "height"].iter().zip(&tokens[at..]);
        if !words.into_iter().all(|(name, token)| is(&token.token, name)) {
            at += 1;
            continue;
        }
        let height = at + 3;
        let end = match &tokens[height].token {
            Token::Number(..) | Token::Placeholder(_) => height,
            Token::LParen => {
                let mut open = 0_usize;
                let close = tokens[height..].iter().position(|token| {
                    match token.token {
                        Token::LParen => open += 1,
                        Token::RParen => open -= 1,
                        _ => {}
                    }
                    open == 0
                });
                match close {
                    Some(close) => height + close,
                    None => return,
                }
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let (span, close) = (tokens[at].span, tokens[end].span);
        tokens.insert(end + 1, TokenWithSpan { token: Token::RParen, span: close });
        let mark = Word { value: PAST_MARK.to_string(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        for (place, token) in [Token::LParen, Token::Word(mark), Token::Comma].into_iter().enumerate() {
            tokens[at + place] = TokenWithSpan { token, span };
        }
        at = end;
    }
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// `ORDER BY x USING <` is `ORDER BY x ASC`, and `USING >` is `DESC`; sqlparser knows the latter of both forms only. No other
/// operator sorts, and nowhere else does one follow USING.
fn name_sort_operators(tokens: &mut Vec<TokenWithSpan>) {
    let mut named = false;
    for at in 1..tokens.len() {
        let uses = keyword(&tokens[at - 1].token) == Keyword::USING;
        let direction = match &tokens[at].token {
            Token::Lt if uses => "ASC",
            Token::Gt if uses => "DESC",
            _ => continue,
        };
        tokens[at - 1].token = Token::make_keyword(direction);
        tokens[at].token = Token::Whitespace(Whitespace::Space);
        named = true;
    }
    if named {
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    }
}

/// `AS IDENTITY (START 1 INCREMENT 2)` is `AS IDENTITY (INCREMENT 2 START 1)`: sqlparser reads the options in one order only.
fn order_identity_options(tokens: &mut [TokenWithSpan]) {
    let place = |words: &[TokenWithSpan], at: usize| {
        let word = |at: usize| match words.get(at).map(|token| &token.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            _ => String::new(),
        };
        let order = ["INCREMENT", "MINVALUE", "MAXVALUE", "START", "CACHE", "CYCLE"];
        let found = |word: String| order.iter().position(|known| *known == word);
        match word(at).as_str() {
            "NO" => found(word(at + 1)),
            _ if at > 0 && word(at - 1) == "NO" => None,
            _ => found(word(at)),
        }
    };
    let mut start = 1;
    while start < tokens.len() {
        let opens = tokens[start].token == Token::LParen
            && matches!(&tokens[start - 1].token, Token::Word(word) if word.value.eq_ignore_ascii_case("identity"));
        start += 1;
        if !opens {
            continue;
        }
        let length = tokens[start..].iter().take_while(|token| token.token != Token::RParen).count();
        let options = &mut tokens[start..start + length];
        // Every token with the place of the option that it belongs to.
        let mut placed: Vec<(usize, TokenWithSpan)> = Vec::with_capacity(length);
        for at in 0..length {
            let last = placed.last().map_or(0, |(place, _)| *place);
            placed.push((place(options, at).unwrap_or(last), options[at].clone()));
        }
        placed.sort_by_key(|(place, _)| *place);
        for (option, (_, token)) in options.iter_mut().zip(placed) {
            *option = token;
        }
        start += length;
    }
}

/// `nextval('s'::regclass)`, as PostgreSQL's dumps write it, is `nextval('s')`: the name of a sequence is a text here.
fn name_sequences(tokens: &mut Vec<TokenWithSpan>) {
    let is_word = |token: &Token, words: &[&str]| matches!(token, Token::Word(word) if words.iter().any(|known| word.value.eq_ignore_ascii_case(known)));
    let (mut at, mut named) = (2, false);
    while at + 2 < tokens.len() {
        let drawn = is_word(&tokens[at - 2].token, &["nextval", "currval", "setval"])
            && tokens[at - 1].token == Token::LParen
            && matches!(tokens[at].token, Token::SingleQuotedString(_))
            && tokens[at + 1].token == Token::DoubleColon
            && is_word(&tokens[at + 2].token, &["regclass"]);
        if drawn {
            for token in &mut tokens[at + 1..at + 3] {
                token.token = Token::Whitespace(Whitespace::Space);
            }
            named = true;
        }
        at += 1;
    }
    if named {
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    }
}

/// `x ISNULL` is `x IS NULL`, and `x NOTNULL` is `x IS NOT NULL`. Neither word can be the name of a column.
fn spell_null_tests(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let words: &[&str] = match &tokens[at].token {
            Token::Word(word) if word.quote_style.is_some() => &[],
            Token::Word(word) if word.value.eq_ignore_ascii_case("isnull") => &["IS", "NULL"],
            Token::Word(word) if word.value.eq_ignore_ascii_case("notnull") => &["IS", "NOT", "NULL"],
            _ => &[],
        };
        let is_name = tokens[at - 1].token == Token::Period
            || matches!(tokens.get(at + 1).map(|next| &next.token), Some(Token::LParen | Token::Period));
        if !words.is_empty() && !is_name {
            let span = tokens[at].span;
            let spelt = words.iter().map(|word| TokenWithSpan { token: Token::make_keyword(word), span });
            tokens.splice(at..=at, spelt);
        }
        at += 1;
    }
}

/// `TABLE x` is `SELECT * FROM x`; sqlparser reads it without telling whether the name was quoted. A query can stand where these
/// tokens are in front of it, and nothing else that begins with TABLE can.
fn select_tables(tokens: &mut Vec<TokenWithSpan>) {
    let begins_query = |before: Option<&TokenWithSpan>| match before.map(|token| &token.token) {
        None | Some(Token::SemiColon | Token::LParen | Token::RParen) => true,
        Some(word) => matches!(
            keyword(word),
            Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::ALL
                | Keyword::DISTINCT
                | Keyword::AS
                // A cursor's query, and that of a loop.
                | Keyword::FOR
                | Keyword::IN
        ),
    };
    let mut at = 0;
    while at < tokens.len() {
        let named = matches!(tokens.get(at + 1).map(|token| &token.token), Some(Token::Word(_)));
        let before = |distance: usize| at.checked_sub(distance).map(|before| &tokens[before]);
        // INSERT INTO x TABLE y
        let inserted = before(2).is_some_and(|before| keyword(&before.token) == Keyword::INTO);
        let is_table = keyword(&tokens[at].token) == Keyword::TABLE;
        if is_table && named && (inserted || begins_query(before(1))) {
            let span = tokens[at].span;
            let select = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            let select = select.map(|token| TokenWithSpan { token, span });
            tokens.splice(at..=at, select);
            at += 2;
        }
        at += 1;
    }
}

/// What stands in front of the name of a join among the columns of its USING.
pub const JOIN_NAME: &str = "join name";

/// `USING (a, b) AS x`, which sqlparser does not read, becomes `USING (a, b, "join name".x)`.
fn name_joins(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 1 < tokens.len() {
        at += 1;
        if keyword(&tokens[at - 1].token) != Keyword::USING || tokens[at].token != Token::LParen {
            continue;
        }
        let is_column = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Comma);
        let length = tokens[at + 1..].iter().take_while(|token| is_column(token)).count();
        let end = at + 1 + length;
        let [close, keyword_as, name, ..] = &tokens[end..] else { continue };
        let is_named = close.token == Token::RParen
            && length > 0
            && keyword(&keyword_as.token) == Keyword::AS
            && matches!(name.token, Token::Word(_));
        if !is_named {
            continue;
        }
        let (close, name) = (close.clone(), name.clone());
        let marked = |token| TokenWithSpan { token, span: name.span };
        let mark = Word { value: JOIN_NAME.to_string(), quote_style: Some('"'), keyword: Keyword::NoKeyword };
        let named = [Token::Comma, Token::Word(mark), Token::Period].map(marked);
        tokens.splice(end..end + 3, named.into_iter().chain([name.clone(), close]));
    }
}

/// `FROM f() AS (a integer, b text)` is `FROM f() AS f (a integer, b text)`; sqlparser reads the latter only. Behind a closing
/// parenthesis and AS, a name and another word in parentheses are nothing else.
fn name_records(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 2;
    while at + 2 < tokens.len() {
        let is_list = tokens[at].token == Token::LParen
            && keyword(&tokens[at - 1].token) == Keyword::AS
            && tokens[at - 2].token == Token::RParen
            && matches!(&tokens[at + 1].token, Token::Word(word) if word.quote_style.is_some()
            || !matches!(
                word.keyword,
                Keyword::SELECT
                    | Keyword::VALUES
                    | Keyword::WITH
                    | Keyword::TABLE
                    | Keyword::INSERT
                    | Keyword::UPDATE
                    | Keyword::DELETE
            ))
            && matches!(tokens[at + 2].token, Token::Word(_));
        if is_list && let Some(name) = called_before(&tokens[..at - 1]) {
            let span = tokens[at].span;
            tokens.insert(at, TokenWithSpan { token: name, span });
            at += 1;
        }
        at += 1;
    }
}

/// `(row).*` is the field `*` of a row; sqlparser does not read it in PostgreSQL's dialect. Nothing else has this star behind a
/// parenthesis or a subscript and a point.
fn name_all_fields(tokens: &mut [TokenWithSpan]) {
    for at in 2..tokens.len() {
        let behind = matches!(tokens[at - 2].token, Token::RParen | Token::RBracket);
        if tokens[at].token == Token::Mul && tokens[at - 1].token == Token::Period && behind {
            let (value, quote_style) = ("*".to_string(), Some('"'));
            tokens[at].token = Token::Word(Word { value, quote_style, keyword: Keyword::NoKeyword });
        }
    }
}

/// The name in front of the parentheses that end these tokens.
fn called_before(tokens: &[TokenWithSpan]) -> Option<Token> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 1 => {
                return match tokens.get(at.checked_sub(1)?).map(|token| &token.token) {
                    Some(name @ Token::Word(_)) => Some(name.clone()),
                    _ => None,
                };
            }
            Token::LParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A join that waits for its ON or USING.
struct Waiting {
    /// Where its right side begins.
    right: usize,
    /// A join has begun inside of the right side.
    nests: bool,
}

/// `a JOIN b JOIN c ON x ON y` is `a JOIN (b JOIN c ON x) ON y`; sqlparser reads the latter only.
fn nest_joins(tokens: &mut Vec<TokenWithSpan>) {
    // Joins that wait, per open parenthesis.
    let mut open: Vec<Vec<Waiting>> = vec![Vec::new()];
    let mut parentheses: Vec<(usize, Token)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => open.push(Vec::new()),
            Token::RParen if open.len() > 1 => drop(open.pop()),
            _ => {}
        }
        let waiting = open.last_mut().expect("the outermost one is never taken");
        match &token.token {
            Token::LParen | Token::RParen => {}
            Token::SemiColon | Token::Comma => waiting.clear(),
            word => match keyword(word) {
                Keyword::JOIN => {
                    waiting.iter_mut().for_each(|join| join.nests = true);
                    let kind = at.checked_sub(1).map(|before| keyword(&tokens[before].token));
                    if !matches!(kind, Some(Keyword::CROSS | Keyword::NATURAL)) && !is_natural(&tokens[..at])
                    {
                        waiting.push(Waiting { right: at + 1, nests: false });
                    }
                }
                Keyword::ON | Keyword::USING => {
                    if let Some(Waiting { right, nests: true }) = waiting.pop() {
                        parentheses.push((right, Token::LParen));
                        parentheses.push((at, Token::RParen));
                    }
                }
                Keyword::SELECT | Keyword::WHERE | Keyword::GROUP | Keyword::UNION => waiting.clear(),
                _ => {}
            },
        }
    }
    if parentheses.is_empty() {
        return;
    }
    // In the order of the text; of those at one place what closes comes first, and the outermost opens first.
    parentheses.sort_by_key(|(at, token)| (*at, *token == Token::LParen));
    for (at, token) in parentheses.into_iter().rev() {
        let span = tokens[at].span;
        tokens.insert(at, TokenWithSpan { token, span });
    }
}

/// Whether the words in front of a JOIN say NATURAL: `NATURAL LEFT OUTER JOIN`.
fn is_natural(before: &[TokenWithSpan]) -> bool {
    let kinds = [Keyword::LEFT, Keyword::RIGHT, Keyword::FULL, Keyword::INNER, Keyword::OUTER];
    let mut words = before.iter().rev().map(|token| keyword(&token.token));
    words.find(|word| !kinds.contains(word)) == Some(Keyword::NATURAL)
}

/// `f(VARIADIC array)` becomes `f(@-@(array))`: sqlparser does not know the word, and there are no paths here, of which that operator gives the
/// length.
fn mark_variadic(tokens: &mut Vec<TokenWithSpan>, sql: &str) -> Result<(), SqlError> {
    if let Some(token) = tokens.iter().find(|token| token.token == Token::AtDashAt) {
        return Err(located(SqlError::unsupported("the operator @-@"), sql, token.span.start));
    }
    let is_mark = |tokens: &[TokenWithSpan], at: usize| {
        let word = matches!(&tokens[at].token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("variadic"));
        word && at > 0 && matches!(tokens[at - 1].token, Token::LParen | Token::Comma)
    };
    let mut at = 0;
    // In the list of parameters of a CREATE the word is another one.
    let (mut begins, mut creates) = (true, false);
    while at < tokens.len() {
        if begins {
            creates = matches!(&tokens[at].token, Token::Word(word) if word.keyword == Keyword::CREATE);
        }
        begins = tokens[at].token == Token::SemiColon;
        if creates || !is_mark(tokens, at) {
            at += 1;
            continue;
        }
        let mut depth = 0_usize;
        let end = tokens[at + 1..].iter().position(|token| {
            match token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket if depth == 0 => return true,
                Token::RParen | Token::RBracket => depth -= 1,
                _ => {}
            }
            false
        });
        let Some(end) = end.map(|end| at + 1 + end) else { break };
        let close = TokenWithSpan { token: Token::RParen, span: tokens[end].span };
        let open = TokenWithSpan { token: Token::LParen, span: tokens[at].span };
        tokens[at].token = Token::AtDashAt;
        tokens.insert(end, close);
        tokens.insert(at + 1, open);
        at += 2;
    }
    Ok(())
}
