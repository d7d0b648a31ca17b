//! Functions about assets in schemas with members that run in the execution of their statement: what a transaction moves from one schema to
//! another, and who has signed it.

use sqlparser::ast;
use sqlparser::tokenizer::{Token, Word};
use syntax::parse::tokenize;
use types::{Value, object_name};

/// A call of one of them stands under its name; no function of the ledger has it, because nobody can make the schema `entente`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AssetFunction {
    /// `entente.hand_over(schema, what)`: it leaves this schema for that one.
    HandOver,
    /// `entente.take_over(schema, what)`: it comes from that one.
    TakeOver,
    /// `entente.signers()`: organisations and keys, as texts.
    Signers,
    /// `entente.offer(statements)`, `entente.offered(offer)`, `entente.sign(offer)` and `entente.submit(offer)`: the node of a session
    /// answers them, where nothing else stands in the statement.
    Offer(OfferFunction),
}

/// A function about a transaction that others are to agree to before it is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfferFunction {
    /// Makes an offer of statements.
    Offer,
    /// Shows what an offer does, and who has signed it.
    Offered,
    /// Agrees to an offer.
    Sign,
    /// Has it ordered and executed.
    Submit,
}

impl AssetFunction {
    const ALL: [AssetFunction; 7] = [
        AssetFunction::HandOver,
        AssetFunction::TakeOver,
        AssetFunction::Signers,
        AssetFunction::Offer(OfferFunction::Offer),
        AssetFunction::Offer(OfferFunction::Offered),
        AssetFunction::Offer(OfferFunction::Sign),
        AssetFunction::Offer(OfferFunction::Submit),
    ];

    /// Its name, with the schema.
    pub fn name(self) -> &'static str {
        match self {
            AssetFunction::HandOver => "entente.hand_over",
            AssetFunction::TakeOver => "entente.take_over",
            AssetFunction::Signers => "entente.signers",
            AssetFunction::Offer(OfferFunction::Offer) => "entente.offer",
            AssetFunction::Offer(OfferFunction::Offered) => "entente.offered",
            AssetFunction::Offer(OfferFunction::Sign) => "entente.sign",
            AssetFunction::Offer(OfferFunction::Submit) => "entente.submit",
        }
    }

    /// The function of this name.
    pub fn named(name: &str) -> Option<AssetFunction> {
        AssetFunction::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The function that a call in SQL names.
    pub fn called(function: &ast::Function) -> Option<AssetFunction> {
        AssetFunction::named(&function.name.to_string().to_ascii_lowercase())
    }

    /// Whether a statement that calls it does more than to read.
    pub fn is_transaction(self) -> bool {
        self != AssetFunction::Signers
    }
}

impl OfferFunction {
    /// The function of this name in the schema `entente`.
    pub fn named(name: &str) -> Option<OfferFunction> {
        match AssetFunction::named(&format!("entente.{name}")) {
            Some(AssetFunction::Offer(function)) => Some(function),
            _ => None,
        }
    }
}

/// Whether `entente` has such a function of this name, in small letters.
pub fn is_asset_function(name: &str) -> bool {
    AssetFunction::named(&format!("entente.{name}")).is_some()
}

/// A call of a function about offers that is all of a statement.
#[derive(Clone, PartialEq, Debug)]
pub struct OfferCall {
    /// The function.
    pub function: OfferFunction,
    /// Its argument.
    pub argument: Value,
    /// The name of the column in which the answer comes.
    pub column: String,
}

/// The call of a function about offers that is all of a statement, as in `SELECT entente.sign($1) AS offer`.
pub fn offer_call(sql: &str, parameters: &[Value]) -> Option<OfferCall> {
    let tokens = tokenize(sql).ok()?;
    let is_written = |token: &&Token| !matches!(token, Token::Whitespace(_));
    let mut tokens = tokens.iter().map(|token| &token.token).filter(is_written);
    tokens
        .by_ref()
        .take(2)
        .zip(["select", "entente"])
        .all(|(token, word)| is_word(token, word))
        .then_some(())?;
    (tokens.next()? == &Token::Period).then_some(())?;
    let Token::Word(name) = tokens.next()? else { return None };
    let function = OfferFunction::named(&name.value.to_ascii_lowercase())?;
    (tokens.next()? == &Token::LParen).then_some(())?;
    let argument = match tokens.next()? {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Value::text(text.as_str()),
        Token::DollarQuotedString(text) => Value::text(text.value.as_str()),
        Token::Placeholder(number) => {
            let number: usize = number.strip_prefix('$')?.parse().ok()?;
            parameters.get(number.checked_sub(1)?)?.clone()
        }
        _ => return None,
    };
    (tokens.next()? == &Token::RParen).then_some(())?;
    let is_end = |token: &&Token| matches!(token, Token::SemiColon | Token::EOF);
    let mut rest: Vec<&Token> = tokens.collect();
    rest.truncate(rest.iter().rposition(|token| !is_end(token)).map_or(0, |last| last + 1));
    let column = match rest.as_slice() {
        [] => object_name(AssetFunction::Offer(function).name()).to_string(),
        [Token::Word(name)] => named(name),
        [word, Token::Word(name)] if is_word(word, "as") => named(name),
        _ => return None,
    };
    Some(OfferCall { function, argument, column })
}

fn named(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_ascii_lowercase(),
    }
}

fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_about_an_offer_is_all_of_its_statement() {
        let call = |sql: &str| offer_call(sql, &[Value::text("x")]);
        let of = |function, argument: &str, column: &str| {
            let (argument, column) = (Value::text(argument), column.to_string());
            Some(OfferCall { function, argument, column })
        };
        let text = |text: &str| of(OfferFunction::Sign, text, "sign");
        assert_eq!(call("SELECT entente.sign('a')"), text("a"));
        assert_eq!(call("select Entente.SIGN ( $$b$$ ) ;"), text("b"));
        assert_eq!(call("SELECT entente.sign($1)"), text("x"));
        assert_eq!(call("SELECT entente.sign('a') AS Offer;"), of(OfferFunction::Sign, "a", "offer"));
        assert_eq!(call("SELECT entente.sign('a') \"My\""), of(OfferFunction::Sign, "a", "My"));
        let offer = of(OfferFunction::Offer, "CALL a.f(1); CALL b.g(1)", "offer");
        assert_eq!(call("SELECT entente.offer($q$CALL a.f(1); CALL b.g(1)$q$)"), offer);
        for other in [
            "SELECT entente.sign($2)",
            "SELECT entente.sign(a)",
            "SELECT entente.sign('a') FROM t",
            "SELECT entente.sign('a'), 1",
            "SELECT entente.approve(1)",
            "SELECT entente.hand_over('a', 1)",
            "SELECT entente.sign('a'); SELECT 1",
            "SELECT entente.sign('a'",
            "",
        ] {
            assert_eq!(call(other), None, "{other}");
        }
    }
}
