//! `SELECT entente.approve(…)` and its kind: calls that decide on proposals or amend the charter. They change the catalog, so
//! they are statements of their own and not functions that a query can call.

use crate::parse::errors::{located, unexpected};
use crypto::Signature;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{
    CharterChange, ExecutionVersion, Organisation, Redaction, SqlError, SqlState, TransactionId, limits,
};

/// What is called, with what.
#[derive(Clone, Debug)]
pub struct GovernanceCall {
    /// The function's name without the schema.
    pub function: &'static str,
    /// What it asks for.
    pub request: GovernanceRequest,
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub enum GovernanceRequest {
    /// To agree to the proposal with this number.
    Approve(u64),
    /// Not to agree to it.
    Reject(u64),
    /// To take it back.
    Withdraw(u64),
    /// To amend the charter.
    Amend(Box<CharterChange>),
    /// To take a transaction's content out of the ledger.
    Redact(Redaction),
}

/// The functions, each with its arguments as messages show them.
const FUNCTIONS: [(&str, &str); 9] = [
    ("approve", "proposal bigint"),
    ("reject", "proposal bigint"),
    ("withdraw", "proposal bigint"),
    (
        "add_organisation",
        "name text, root_key text, node_key text, address text, gateway text, acceptance text",
    ),
    ("remove_organisation", "name text"),
    ("replace_node_key", "name text, node_key text [, expires bigint]"),
    ("set_address", "name text, address text, gateway text"),
    ("set_charter", "parameter text, value text"),
    (REDACT, "transaction text, reason text"),
];

/// The function that there is from execution version 14 on.
const REDACT: &str = "redact";

/// The function that a statement with these tokens, without white space, calls: `SELECT entente.approve(…`. `version`: of the
/// ledger.
pub fn governance_function<'t>(
    tokens: impl IntoIterator<Item = &'t Token>,
    version: ExecutionVersion,
) -> Option<(&'static str, &'static str)> {
    let mut tokens = tokens.into_iter();
    let is_word = |token: Option<&Token>, expected: &str| match token {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.eq_ignore_ascii_case(expected),
        Some(Token::Word(word)) => word.value == expected,
        _ => false,
    };
    if !is_word(tokens.next(), "select")
        || !is_word(tokens.next(), "entente")
        || tokens.next() != Some(&Token::Period)
    {
        return None;
    }
    let name = tokens.next();
    let mut known =
        FUNCTIONS.into_iter().filter(|(function, _)| *function != REDACT || version >= ExecutionVersion::V14);
    let found = known.find(|(function, _)| is_word(name, function))?;
    (tokens.next() == Some(&Token::LParen)).then_some(found)
}

/// Whether `entente` has a function of this name that changes the ledger.
pub fn is_governance_function(name: &str) -> bool {
    FUNCTIONS.iter().any(|(function, _)| function.eq_ignore_ascii_case(name))
}

/// An argument: a literal.
#[derive(Clone, Debug, PartialEq)]
enum Argument {
    Number(u64),
    Text(String),
    Null,
}

/// Reads a statement for which [`governance_function`] has given this.
///
/// # Errors
/// `42601` with the position; `0A000` for arguments that are no literals, `42883` for too few, too many or others; `22023`
/// for what is no key or signature.
pub fn parse_governance(
    (function, signature): (&'static str, &'static str),
    tokens: &[TokenWithSpan],
    sql: &str,
) -> Result<GovernanceCall, SqlError> {
    let mut arguments = Vec::new();
    // SELECT, entente, the period, the name and the parenthesis stand before them.
    let mut rest = tokens.iter().skip(5).filter(|token| token.token != Token::EOF).peekable();
    let end = || SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input");
    if rest.next_if(|token| token.token == Token::RParen).is_none() {
        loop {
            let token = rest.next().ok_or_else(end)?;
            arguments.push(match &token.token {
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => {
                    Argument::Text(text.clone())
                }
                Token::DollarQuotedString(text) => Argument::Text(text.value.clone()),
                Token::Number(text, _) => Argument::Number(text.parse().map_err(|_| {
                    let message = format!("expected a whole number, found {text}");
                    located(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message), sql, token.span.start)
                })?),
                Token::Word(word)
                    if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("null") =>
                {
                    Argument::Null
                }
                _ => {
                    let error = SqlError::unsupported(format_args!(
                        "an argument of entente.{function} that is no literal"
                    ));
                    let error =
                        error.hint("Write numbers and texts; parameters and expressions are not taken.");
                    return Err(located(error, sql, token.span.start));
                }
            });
            match rest.next().map(|token| (&token.token, token)) {
                Some((Token::Comma, _)) => {}
                Some((Token::RParen, _)) => break,
                Some((_, token)) => return Err(unexpected(token, sql)),
                None => return Err(end()),
            }
        }
    }
    if let Some(token) = rest.next() {
        return Err(unexpected(token, sql));
    }
    let request = request(function, &arguments).unwrap_or_else(|| {
        let message = format!("function entente.{function} takes ({signature})");
        Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint("Write the arguments in this order."))
    })?;
    Ok(GovernanceCall { function, request })
}

/// What the arguments ask for; `None` where they are not those of the function.
fn request(function: &str, arguments: &[Argument]) -> Option<Result<GovernanceRequest, SqlError>> {
    use Argument::{Null, Number, Text};
    let amend = |change| Ok(GovernanceRequest::Amend(Box::new(change)));
    Some(match (function, arguments) {
        ("approve", [Number(number)]) => Ok(GovernanceRequest::Approve(*number)),
        ("reject", [Number(number)]) => Ok(GovernanceRequest::Reject(*number)),
        ("withdraw", [Number(number)]) => Ok(GovernanceRequest::Withdraw(*number)),
        (
            "add_organisation",
            [Text(name), Text(root), Text(node), Text(address), Text(gateway), Text(acceptance)],
        ) => key("root_key", root).and_then(|root_key| {
            let node_key = key("node_key", node)?;
            let acceptance: Signature = acceptance.trim().parse().map_err(|error| {
                let message =
                    format!("expected the signature that `entente accept-membership` prints: {error}");
                SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
            let organisation = Organisation {
                name: name.clone(),
                root_key,
                node_key,
                address: address.clone(),
                gateway: gateway.clone(),
                removed: false,
                node_key_expires: None,
            };
            amend(CharterChange::AddOrganisation { organisation, acceptance })
        }),
        (REDACT, [Text(transaction), Text(reason)]) => redaction(transaction, reason),
        ("remove_organisation", [Text(name)]) => {
            amend(CharterChange::RemoveOrganisation { name: name.clone() })
        }
        ("replace_node_key", [Text(name), Text(node), expires @ ..]) => {
            let expires = match expires {
                [] | [Null] => None,
                [Number(height)] => Some(*height),
                _ => return None,
            };
            key("node_key", node).and_then(|node_key| {
                amend(CharterChange::ReplaceNodeKey { name: name.clone(), node_key, expires })
            })
        }
        ("set_address", [Text(name), Text(address), Text(gateway)]) => amend(CharterChange::SetAddress {
            name: name.clone(),
            address: address.clone(),
            gateway: gateway.clone(),
        }),
        ("set_charter", [Text(parameter), value]) => {
            let value = match value {
                Text(text) => text.clone(),
                Number(number) => number.to_string(),
                Null => String::new(),
            };
            amend(CharterChange::SetParameter { parameter: parameter.clone(), value })
        }
        _ => return None,
    })
}

/// What is to be redacted, and why.
fn redaction(transaction: &str, reason: &str) -> Result<GovernanceRequest, SqlError> {
    let wrong = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let id = transaction.trim().parse().map_err(|_| {
        wrong(format!("expected a transaction's id, 64 hexadecimal digits, found `{transaction}`"))
            .hint("entente.transactions has the ids.")
    })?;
    let (reason, most) = (reason.trim(), limits::REDACTION_REASON_BYTES_MAX);
    if reason.is_empty() || reason.len() > most {
        let message = format!(
            "expected a reason of 1 to {most} bytes (REDACTION_REASON_BYTES_MAX), found {} bytes",
            reason.len()
        );
        return Err(
            wrong(message).hint("It stays for ever: name the law or the case, and nothing of the content.")
        );
    }
    Ok(GovernanceRequest::Redact(Redaction { transaction: TransactionId(id), reason: reason.to_string() }))
}

fn key(what: &str, text: &str) -> Result<crypto::PublicKey, SqlError> {
    text.trim().parse().map_err(|error| {
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("{what} is no public key: {error}"))
            .hint("Keys are written as in a charter.")
    })
}
