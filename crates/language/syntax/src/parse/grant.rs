//! GRANT and REVOKE, which sqlparser reads in other databases' forms.

use crate::parse::errors::{located, unexpected};
use crate::parse::routine::parse_parameters;
use crate::parse::tokens::is_word;
use crate::parse::words::{accept, expect_word, in_parentheses, list, name, next_word, relation};
use sqlparser::ast::DataType;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use types::{ExecutionVersion, Grantee, Privileges, SqlError, SqlState};

/// What GRANT or REVOKE is about.
pub enum Grant {
    /// Privileges.
    Privileges(GrantStatement),
    /// Memberships.
    Memberships {
        /// The groups.
        groups: Vec<String>,
        /// Who becomes a member.
        members: Vec<String>,
    },
}

/// GRANT and REVOKE of privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantStatement {
    /// REVOKE.
    pub revoke: bool,
    /// WITH GRANT OPTION, and GRANT OPTION FOR.
    pub option: bool,
    /// What is granted on the objects; `None`: ALL.
    pub privileges: Option<Privileges>,
    /// What is granted on their columns.
    pub columns: Vec<ColumnPrivileges>,
    /// On what.
    pub objects: Objects,
    /// To or from whom.
    pub grantees: Vec<Grantee>,
    /// GRANTED BY; the inner `None`: whoever executes the statement.
    pub granted_by: Option<Option<String>>,
    /// CASCADE.
    pub cascade: bool,
}

/// Privileges on columns, as in `SELECT (a, b)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPrivileges {
    /// Which; `None`: ALL.
    pub privileges: Option<Privileges>,
    /// Names of the columns.
    pub columns: Vec<String>,
}

/// What privileges are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// Tables and views.
    Tables(Vec<String>),
    /// All of these schemas.
    AllTables(Vec<String>),
    /// Sequences.
    Sequences(Vec<String>),
    /// All of these schemas.
    AllSequences(Vec<String>),
    /// Tables, views and sequences.
    Relations(Vec<String>),
    /// Functions and procedures.
    Routines(Vec<NamedRoutine>),
    /// All of these schemas.
    AllRoutines(Vec<String>),
    /// Schemas.
    Schemas(Vec<String>),
    /// A type; the flag: a domain.
    Type(bool, String),
}

/// A routine, and the types of its arguments where they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRoutine {
    /// Its name.
    pub name: String,
    /// The types of what goes in.
    pub types: Option<Vec<DataType>>,
}

/// One of the words that say what is granted, with the columns behind it.
struct Item {
    name: String,
    columns: Option<Vec<String>>,
}

/// `GRANT … ON … TO …` and `GRANT group TO member`, behind the first word; REVOKE the same with FROM.
///
/// # Errors
/// `42601` with the position, `0LP01` for a privilege that there is not on such an object; `0A000` names what is not supported.
pub fn parse_grant(
    parser: &mut Parser<'_>,
    sql: &str,
    revoke: bool,
    version: ExecutionVersion,
) -> Result<Grant, SqlError> {
    let start = parser.peek_token().span.start;
    let to = if revoke { "from" } else { "to" };
    let mut option = false;
    if revoke && version >= ExecutionVersion::V10 && is_option_for(parser) {
        (0..3).for_each(|_| drop(parser.next_token()));
        option = true;
    }
    let items = items(parser, sql, version)?;
    if accept(parser, "on") {
        let objects = objects(parser, sql)?;
        let (privileges, columns) = privileges_of(&items, &objects, version)?;
        expect_word(parser, to, sql)?;
        let grantees = list(parser, sql, grantee)?;
        option |= with_option(parser, sql, (revoke, true), version)?;
        let granted_by = granted_by(parser, sql, version)?;
        let cascade = revoke && cascades(parser);
        let statement =
            GrantStatement { revoke, option, privileges, columns, objects, grantees, granted_by, cascade };
        return Ok(Grant::Privileges(statement));
    }
    if option || items.iter().any(|item| item.columns.is_some()) {
        return Err(unexpected(&parser.peek_token(), sql));
    }
    if revoke && items.len() == 1 && items[0].name == "grant" && version < ExecutionVersion::V10 {
        return Err(located(SqlError::unsupported("GRANT OPTION"), sql, start));
    }
    expect_word(parser, to, sql)?;
    let members = list(parser, sql, name)?;
    with_option(parser, sql, (revoke, false), version)?;
    let start = parser.peek_token().span.start;
    if version >= ExecutionVersion::V11 && granted_by(parser, sql, version)?.is_some() {
        return Err(located(SqlError::unsupported("GRANTED BY of a membership"), sql, start));
    }
    if revoke {
        cascades(parser);
    }
    let groups = items.into_iter().map(|item| item.name).collect();
    Ok(Grant::Memberships { groups, members })
}

/// Whether GRANT OPTION FOR stands here.
fn is_option_for(parser: &Parser<'_>) -> bool {
    let is = |at: usize, word: &str| is_word(&parser.peek_nth_token(at).token, word);
    is(0, "grant") && is(1, "option") && is(2, "for")
}

/// What is granted: privileges, some of them with columns, or groups.
fn items(parser: &mut Parser<'_>, sql: &str, version: ExecutionVersion) -> Result<Vec<Item>, SqlError> {
    let mut items = Vec::new();
    loop {
        let name = name(parser, sql)?;
        // ALL PRIVILEGES are two words, and stand alone.
        let all = items.is_empty() && name == "all";
        let alone = all && (accept(parser, "privileges") || version >= ExecutionVersion::V10);
        let start = parser.peek_token().span.start;
        let mut columns = None;
        if parser.peek_token().token == Token::LParen {
            if version < ExecutionVersion::V10 {
                let error = SqlError::unsupported("a privilege on columns")
                    .hint("Grant it on the table, or on a view.");
                return Err(located(error, sql, start));
            }
            columns = Some(in_parentheses(parser, sql, crate::parse::words::name)?);
        }
        items.push(Item { name, columns });
        if alone || !parser.consume_token(&Token::Comma) {
            return Ok(items);
        }
    }
}

/// Whether WITH GRANT OPTION stands at the end of GRANT.
fn with_option(
    parser: &mut Parser<'_>,
    sql: &str,
    (revoke, of_privileges): (bool, bool),
    version: ExecutionVersion,
) -> Result<bool, SqlError> {
    let may_stand = version >= ExecutionVersion::V10 && of_privileges;
    let token = parser.peek_token();
    if may_stand && revoke || !accept(parser, "with") {
        return Ok(false);
    }
    if may_stand {
        ["grant", "option"].iter().try_for_each(|word| expect_word(parser, word, sql))?;
        return Ok(true);
    }
    let error = match version >= ExecutionVersion::V10 {
        true => {
            SqlError::unsupported("WITH ADMIN OPTION").hint("Administrators make members of their roles.")
        }
        false => SqlError::unsupported("WITH GRANT OPTION and WITH ADMIN OPTION")
            .hint("Administrators grant; what a role has, it cannot pass on."),
    };
    Err(located(error, sql, token.span.start))
}

/// Whether CASCADE stands at the end of REVOKE. RESTRICT is what happens without.
fn cascades(parser: &mut Parser<'_>) -> bool {
    !accept(parser, "restrict") && accept(parser, "cascade")
}

fn granted_by(
    parser: &mut Parser<'_>,
    sql: &str,
    version: ExecutionVersion,
) -> Result<Option<Option<String>>, SqlError> {
    if version < ExecutionVersion::V10 || !accept(parser, "granted") {
        return Ok(None);
    }
    expect_word(parser, "by", sql)?;
    let itself = ["current_user", "session_user", "current_role"].iter().any(|word| accept(parser, word));
    Ok(Some(if itself { None } else { Some(name(parser, sql)?) }))
}

fn grantee(parser: &mut Parser<'_>, sql: &str) -> Result<Grantee, SqlError> {
    accept(parser, "group");
    if accept(parser, "public") {
        return Ok(Grantee::Public);
    }
    name(parser, sql).map(Grantee::Role)
}

/// The privileges on the objects (`None`: ALL), and those on columns.
fn privileges_of(
    items: &[Item],
    objects: &Objects,
    version: ExecutionVersion,
) -> Result<(Option<Privileges>, Vec<ColumnPrivileges>), SqlError> {
    let kind = Kind::of(objects, version);
    let (mut privileges, mut columns) = (Some(Privileges::NONE), Vec::new());
    for item in items {
        let is_all = items.len() == 1 && item.name == "all";
        let Some(named) = &item.columns else {
            privileges = match is_all {
                true => None,
                false => Some(privileges.unwrap_or_default() | privilege(&item.name, &kind, version)?),
            };
            continue;
        };
        if kind.name != "relation" {
            let message = "column privileges are only valid for relations";
            return Err(SqlError::new(INVALID_GRANT_OPERATION, message));
        }
        let one = match is_all {
            true => None,
            false => Some(privilege(&item.name, &Kind::OF_COLUMNS, version)?),
        };
        columns.push(ColumnPrivileges { privileges: one, columns: named.clone() });
    }
    Ok((privileges, columns))
}

/// `0LP01` a grant that cannot be.
const INVALID_GRANT_OPERATION: SqlState = SqlState(*b"0LP01");

/// A kind of object, and what can be granted on it.
struct Kind {
    allowed: Privileges,
    name: &'static str,
}

impl Kind {
    const OF_COLUMNS: Kind = Kind { allowed: Privileges::OF_COLUMNS, name: "column" };

    fn of(objects: &Objects, version: ExecutionVersion) -> Kind {
        let (allowed, name) = match objects {
            Objects::Tables(_) | Objects::Relations(_) | Objects::AllTables(_) => match version {
                version if version < ExecutionVersion::V10 => (Privileges::OF_TABLES_BEFORE_V10, "relation"),
                _ => (Privileges::OF_TABLES, "relation"),
            },
            Objects::Sequences(_) | Objects::AllSequences(_) => (Privileges::OF_SEQUENCES, "sequence"),
            Objects::Routines(_) | Objects::AllRoutines(_) => (Privileges::OF_ROUTINES, "function"),
            Objects::Schemas(_) => (Privileges::OF_SCHEMAS, "schema"),
            Objects::Type(..) => (Privileges::NONE, "type"),
        };
        Kind { allowed, name }
    }
}

/// The privilege of this name.
fn privilege(name: &str, kind: &Kind, version: ExecutionVersion) -> Result<Privileges, SqlError> {
    let upper = name.to_ascii_uppercase();
    if upper == "USAGE" && kind.name == "sequence" {
        // Everybody may draw.
        return Ok(Privileges::NONE);
    }
    let is_new = matches!(upper.as_str(), "REFERENCES" | "TRIGGER");
    let is_known = !is_new || version >= ExecutionVersion::V10;
    if let Some(one) = Privileges::named(&upper).filter(|_| is_known) {
        return if kind.allowed.contains(one) { Ok(one) } else { Err(invalid_privilege(&upper, kind)) };
    }
    match upper.as_str() {
        "REFERENCES" | "TRIGGER" | "CREATE" | "CONNECT" | "TEMPORARY" | "TEMP" => {
            Err(SqlError::unsupported(format_args!("the privilege {upper}"))
                .hint("Schema changes are the administrator's."))
        }
        _ => Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("unrecognized privilege type \"{name}\""))),
    }
}

fn invalid_privilege(privilege: &str, kind: &Kind) -> SqlError {
    let message = format!("invalid privilege type {privilege} for {}", kind.name);
    SqlError::new(INVALID_GRANT_OPERATION, message)
}

fn objects(parser: &mut Parser<'_>, sql: &str) -> Result<Objects, SqlError> {
    if accept(parser, "all") {
        let token = parser.peek_token();
        let objects: fn(Vec<String>) -> Objects = match next_word(parser, sql)?.as_str() {
            "tables" => Objects::AllTables,
            "sequences" => Objects::AllSequences,
            "functions" | "procedures" | "routines" => Objects::AllRoutines,
            _ => return Err(unexpected(&token, sql)),
        };
        expect_word(parser, "in", sql)?;
        expect_word(parser, "schema", sql)?;
        let schemas = list(parser, sql, name)?;
        return Ok(objects(schemas));
    }
    let token = parser.peek_token();
    for kind in ["function", "procedure", "routine"] {
        if accept(parser, kind) {
            return list(parser, sql, routine).map(Objects::Routines);
        }
    }
    if accept(parser, "schema") {
        return list(parser, sql, name).map(Objects::Schemas);
    }
    if accept(parser, "sequence") {
        return list(parser, sql, relation).map(Objects::Sequences);
    }
    for kind in ["database", "language", "type", "domain", "tablespace", "parameter"] {
        if accept(parser, kind) {
            let what = format!("a privilege on a {kind}");
            return Err(located(SqlError::unsupported(what), sql, token.span.start));
        }
    }
    accept(parser, "table");
    list(parser, sql, relation).map(Objects::Tables)
}

/// A name, and the types of its arguments or not.
pub fn routine(parser: &mut Parser<'_>, sql: &str) -> Result<NamedRoutine, SqlError> {
    let name = relation(parser, sql)?;
    if parser.peek_token().token != Token::LParen {
        return Ok(NamedRoutine { name, types: None });
    }
    let parameters = parse_parameters(parser, sql)?.into_iter();
    let inputs = parameters.filter(|parameter| parameter.mode.is_input());
    Ok(NamedRoutine { name, types: Some(inputs.map(|parameter| parameter.data_type).collect()) })
}
