//! CREATE, ALTER and DROP ROLE, and owners, which sqlparser reads in other databases' forms.

use crate::parse::errors::{expect_end, located, unexpected};
use crate::parse::grant::{Grant, GrantStatement, Objects, parse_grant, routine};
use crate::parse::words::{accept, expect_word, list, name, next_word, relation};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use types::{ExecutionVersion, SqlError, SqlState};

/// A statement about roles or privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleStatement {
    /// CREATE ROLE, USER and GROUP.
    Create {
        /// Its name.
        name: String,
        /// Whether somebody may connect as it.
        login: bool,
        /// IN ROLE.
        member_of: Vec<String>,
    },
    /// ALTER ROLE.
    Alter {
        /// Its name.
        name: String,
        /// Whether somebody may connect as it, where that changes.
        login: Option<bool>,
    },
    /// DROP ROLE.
    Drop {
        /// IF EXISTS.
        if_exists: bool,
        /// The roles.
        names: Vec<String>,
    },
    /// GRANT and REVOKE of privileges.
    Privileges(Box<GrantStatement>),
    /// ALTER … OWNER TO.
    Owner {
        /// What gets another owner; `None`: something on which there are no privileges.
        objects: Option<Objects>,
        /// The owner; `None`: the role that connects, or the administrator.
        role: Option<String>,
        /// The command's tag.
        tag: &'static str,
    },
    /// GRANT and REVOKE of memberships.
    Memberships {
        /// REVOKE.
        revoke: bool,
        /// The groups.
        groups: Vec<String>,
        /// Who becomes a member.
        members: Vec<String>,
    },
}

/// Whether the statement's first words say that it is one of these.
pub fn is_about_roles(first: Keyword, second: Keyword) -> bool {
    match first {
        Keyword::GRANT | Keyword::REVOKE => true,
        Keyword::CREATE | Keyword::ALTER | Keyword::DROP => is_role(second),
        _ => false,
    }
}

fn is_role(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ROLE | Keyword::USER | Keyword::GROUP)
}

/// The name of every organisation's administrator, who may do everything and is no role of the ledger.
pub const ADMINISTRATOR: &str = "entente";

/// Whether the statement's last words are `OWNER TO role`. Before version 8 `RENAME owner TO name` was taken for that, too.
pub fn changes_owner(tokens: &[TokenWithSpan], version: ExecutionVersion) -> bool {
    let is_word = |from_end: usize, expected: &str| {
        let token = tokens.len().checked_sub(from_end).and_then(|at| tokens.get(at));
        matches!(token.map(|token| &token.token), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
    };
    let end = usize::from(tokens.last().is_some_and(|token| token.token == Token::EOF));
    let renames = is_word(end + 4, "rename") || is_word(end + 4, "column") && is_word(end + 5, "rename");
    is_word(tokens.len(), "alter")
        && is_word(end + 3, "owner")
        && is_word(end + 2, "to")
        && !(renames && version >= ExecutionVersion::V8)
}

/// `ALTER kind name OWNER TO role`
fn owner(parser: &mut Parser<'_>, sql: &str, version: ExecutionVersion) -> Result<RoleStatement, SqlError> {
    let token = parser.peek_token();
    let mut kind = next_word(parser, sql)?;
    if version >= ExecutionVersion::V11 && kind == "materialized" && accept(parser, "view") {
        kind.push_str(" view");
    }
    let tag = match kind.as_str() {
        "materialized view" => "ALTER MATERIALIZED VIEW",
        "table" => "ALTER TABLE",
        "view" => "ALTER VIEW",
        "sequence" => "ALTER SEQUENCE",
        "function" => "ALTER FUNCTION",
        "procedure" => "ALTER PROCEDURE",
        "routine" => "ALTER ROUTINE",
        "aggregate" => "ALTER AGGREGATE",
        "type" => "ALTER TYPE",
        "domain" if version >= ExecutionVersion::V8 => "ALTER DOMAIN",
        "schema" => "ALTER SCHEMA",
        other => {
            let what = format_args!("an owner of a {other}");
            return Err(located(SqlError::unsupported(what), sql, token.span.start));
        }
    };
    let objects = match kind.as_str() {
        "table" | "view" | "materialized view" | "sequence" => {
            accept(parser, "only");
            Some(Objects::Relations(vec![relation(parser, sql)?]))
        }
        "schema" => Some(Objects::Schemas(vec![name(parser, sql)?])),
        // Whether it is there nobody asked.
        "type" if version < ExecutionVersion::V8 => {
            relation(parser, sql)?;
            None
        }
        "type" | "domain" => Some(Objects::Type(kind == "domain", relation(parser, sql)?)),
        _ => Some(Objects::Routines(vec![routine(parser, sql)?])),
    };
    expect_word(parser, "owner", sql)?;
    expect_word(parser, "to", sql)?;
    let itself = ["current_user", "session_user", "current_role"].iter().any(|word| accept(parser, word));
    let role = if itself { None } else { Some(name(parser, sql)?).filter(|role| role != ADMINISTRATOR) };
    Ok(RoleStatement::Owner { objects, role, tag })
}

/// Reads the whole statement.
///
/// # Errors
/// `42601` with the position; `0A000` names what is not supported.
pub fn parse_role(
    parser: &mut Parser<'_>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<RoleStatement, SqlError> {
    let statement = match next_word(parser, sql)?.as_str() {
        "create" => create(parser, sql)?,
        "alter" => {
            let kind = parser.peek_token().token;
            match matches!(&kind, Token::Word(word) if is_role(word.keyword)) {
                true => alter(parser, sql)?,
                false => owner(parser, sql, version)?,
            }
        }
        "drop" => drop_roles(parser, sql)?,
        first => match parse_grant(parser, sql, first == "revoke", version)? {
            Grant::Privileges(statement) => RoleStatement::Privileges(Box::new(statement)),
            Grant::Memberships { groups, members } => {
                RoleStatement::Memberships { revoke: first == "revoke", groups, members }
            }
        },
    };
    expect_end(parser, sql)?;
    Ok(statement)
}

fn create(parser: &mut Parser<'_>, sql: &str) -> Result<RoleStatement, SqlError> {
    let kind = next_word(parser, sql)?;
    let name = name(parser, sql)?;
    // CREATE USER is CREATE ROLE … LOGIN.
    let (mut login, mut member_of) = (kind == "user", Vec::new());
    accept(parser, "with");
    while parser.peek_token().token != Token::EOF {
        match role_option(parser, sql)? {
            RoleOption::Login(option) => login = option,
            RoleOption::MemberOf(groups) => member_of.extend(groups),
            RoleOption::Nothing => {}
        }
    }
    Ok(RoleStatement::Create { name, login, member_of })
}

fn alter(parser: &mut Parser<'_>, sql: &str) -> Result<RoleStatement, SqlError> {
    next_word(parser, sql)?;
    let name = name(parser, sql)?;
    let mut login = None;
    accept(parser, "with");
    while parser.peek_token().token != Token::EOF {
        match role_option(parser, sql)? {
            RoleOption::Login(option) => login = Some(option),
            RoleOption::MemberOf(_) => {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "syntax error at or near \"IN\""));
            }
            RoleOption::Nothing => {}
        }
    }
    Ok(RoleStatement::Alter { name, login })
}

enum RoleOption {
    Login(bool),
    MemberOf(Vec<String>),
    Nothing,
}

fn role_option(parser: &mut Parser<'_>, sql: &str) -> Result<RoleOption, SqlError> {
    let token = parser.peek_token();
    let option = next_word(parser, sql)?;
    let refused = |what: &str, hint: &str| {
        Err(located(
            SqlError::unsupported(format_args!("{what} of a role")).hint(hint),
            sql,
            token.span.start,
        ))
    };
    match option.as_str() {
        "login" => Ok(RoleOption::Login(true)),
        "nologin" => Ok(RoleOption::Login(false)),
        "in" => {
            if !accept(parser, "group") {
                expect_word(parser, "role", sql)?;
            }
            list(parser, sql, name).map(RoleOption::MemberOf)
        }
        // What roles are like anyway.
        "inherit" | "nosuperuser" | "nocreatedb" | "nocreaterole" | "noreplication" | "nobypassrls" => {
            Ok(RoleOption::Nothing)
        }
        "password" | "encrypted" => refused(
            "a password on the ledger",
            "Send the statement alone, so that the gateway keeps the password to itself, or use `entente password`.",
        ),
        "superuser" | "createrole" => refused(
            &option.to_ascii_uppercase(),
            "The administrator, who connects under the organisation's name, makes roles and schema.",
        ),
        "noinherit" | "createdb" | "replication" | "bypassrls" | "connection" | "valid" | "role"
        | "admin" | "user" | "sysid" => refused(&option.to_ascii_uppercase(), "Leave it out."),
        _ => Err(unexpected(&token, sql)),
    }
}

fn drop_roles(parser: &mut Parser<'_>, sql: &str) -> Result<RoleStatement, SqlError> {
    next_word(parser, sql)?;
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    Ok(RoleStatement::Drop { if_exists, names: list(parser, sql, name)? })
}
