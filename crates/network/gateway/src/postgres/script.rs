//! Splits a query string into statements and tells by their first words who answers them. Nothing is parsed here
//! beyond words, literals and comments; the database parses what it is given.

use super::advisory_text::is_lock_function;
use super::prepared_command::explains_execute;
use types::limits::NAME_BYTES_MAX;
use types::{Catalog, ExecutionVersion, SqlError, SqlState};

/// What a lexeme is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an identifier without quotes.
    Word,
    /// An identifier in double quotes, or a string literal, dollar-quoted ones included.
    Quoted,
    /// A number.
    Number,
    /// Anything else, one character each.
    Symbol,
}

/// A word, literal, number or symbol of a query string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme<'a> {
    /// What it is.
    pub(crate) kind: Kind,
    /// As it stands in the text, quotes included.
    pub(crate) text: &'a str,
    /// Where it starts, in bytes.
    pub(crate) start: usize,
}

impl Lexeme<'_> {
    /// Whether it is this keyword or symbol.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Symbol) && self.text.eq_ignore_ascii_case(word)
    }

    /// The identifier or text that it stands for: folded to lower case without quotes, unescaped with quotes.
    pub(crate) fn value(&self) -> String {
        let text = self.text;
        match (self.kind, text.chars().next()) {
            (Kind::Quoted, Some('"')) => inner(text, 1).replace("\"\"", "\""),
            (Kind::Quoted, Some('\'')) => inner(text, 1).replace("''", "'"),
            (Kind::Quoted, Some('e' | 'E')) => unescape(&inner(text, 2).replace("''", "'")),
            (Kind::Quoted, Some('$')) => {
                let tag = text[1..].find('$').map_or(0, |at| at + 2);
                text.get(tag..text.len().saturating_sub(tag)).unwrap_or_default().to_string()
            }
            (Kind::Quoted, _) => inner(text, 2).replace("''", "'"),
            _ => text.to_lowercase(),
        }
    }
}

fn inner(text: &str, open: usize) -> &str {
    text.get(open..text.len().saturating_sub(1)).unwrap_or_default()
}

fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => result.push(match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => '\\',
            }),
            other => result.push(other),
        }
    }
    result
}

/// Splits `sql` into lexemes; white space and comments are left out. What is not closed goes to the end.
pub(crate) fn lexemes(sql: &str) -> Vec<Lexeme<'_>> {
    let bytes = sql.as_bytes();
    let mut lexemes = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let next = bytes.get(at + 1).copied();
        let kind = match (bytes[at], next) {
            (byte, _) if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            (b'-', Some(b'-')) => {
                at = end_of_line(bytes, at);
                continue;
            }
            (b'/', Some(b'*')) => {
                at = end_of_comment(bytes, at);
                continue;
            }
            (b'\'', _) => {
                at = end_of_quotes(bytes, at, b'\'', false);
                Kind::Quoted
            }
            (b'"', _) => {
                at = end_of_quotes(bytes, at, b'"', false);
                Kind::Quoted
            }
            (b'e' | b'E', Some(b'\'')) => {
                at = end_of_quotes(bytes, at + 1, b'\'', true);
                Kind::Quoted
            }
            (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', Some(b'\'')) => {
                at = end_of_quotes(bytes, at + 1, b'\'', false);
                Kind::Quoted
            }
            (b'$', Some(byte)) if !byte.is_ascii_digit() => match end_of_dollars(bytes, at) {
                Some(end) => {
                    at = end;
                    Kind::Quoted
                }
                None => {
                    at += 1;
                    Kind::Symbol
                }
            },
            (byte, _) if is_word(byte) && !byte.is_ascii_digit() && byte != b'$' => {
                at = end_while(bytes, at, is_word);
                Kind::Word
            }
            (byte, _) if byte.is_ascii_digit() => {
                at = end_while(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'.');
                Kind::Number
            }
            _ => {
                at += 1;
                Kind::Symbol
            }
        };
        lexemes.push(Lexeme { kind, text: &sql[start..at], start });
    }
    lexemes
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn end_while(bytes: &[u8], start: usize, keep: impl Fn(u8) -> bool) -> usize {
    start + bytes[start..].iter().take_while(|byte| keep(**byte)).count()
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    end_while(bytes, start, |byte| byte != b'\n')
}

/// Comments nest.
fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// `start` is at the opening quote; a doubled quote stands for one, a backslash too where `escapes`.
fn end_of_quotes(bytes: &[u8], start: usize, quote: u8, escapes: bool) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `$tag$ … $tag$`, or nothing where `start` opens no such literal.
fn end_of_dollars(bytes: &[u8], start: usize) -> Option<usize> {
    let length = bytes[start + 1..].iter().position(|byte| *byte == b'$')?;
    let tag = &bytes[start..start + length + 2];
    if !tag[1..tag.len() - 1].iter().all(|byte| is_word(*byte)) {
        return None;
    }
    let body = &bytes[start + tag.len()..];
    let close = body.windows(tag.len()).position(|window| window == tag);
    Some(close.map_or(bytes.len(), |close| start + tag.len() + close + tag.len()))
}

/// One statement of a query string.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    /// Its text, without the semicolon.
    pub(crate) text: &'a str,
    /// Where it starts in the query string, in bytes.
    pub(crate) start: usize,
    /// Its lexemes, with positions in the query string.
    pub(crate) lexemes: Vec<Lexeme<'a>>,
}

impl Statement<'_> {
    /// Where it ends in the query string, in bytes.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is CREATE FUNCTION or CREATE PROCEDURE.
    pub(crate) fn creates_routine(&self) -> bool {
        let is = |at: usize, word: &str| self.lexemes.get(at).is_some_and(|lexeme| lexeme.is(word));
        let at = if is(1, "or") { 3 } else { 1 };
        is(0, "create") && (is(at, "function") || is(at, "procedure"))
    }

    /// The names that are longer than names may be.
    pub(crate) fn long_names(&self) -> impl Iterator<Item = String> {
        let is_name = |lexeme: &&Lexeme<'_>| lexeme.kind == Kind::Word || lexeme.text.starts_with('"');
        let may_be = move |lexeme: &&Lexeme<'_>| lexeme.text.len() > NAME_BYTES_MAX && is_name(lexeme);
        self.lexemes.iter().filter(may_be).map(Lexeme::value).filter(|name| name.len() > NAME_BYTES_MAX)
    }
}

/// Splits a query string at its semicolons; empty statements are left out.
pub(crate) fn split(sql: &str) -> Vec<Statement<'_>> {
    let all = lexemes(sql);
    all.split(|lexeme| lexeme.is(";"))
        .filter_map(|part| {
            let (first, last) = (part.first()?, part.last()?);
            let text = &sql[first.start..last.start + last.text.len()];
            Some(Statement { text, start: first.start, lexemes: part.to_vec() })
        })
        .collect()
}

/// Who answers a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The database, on a snapshot (`prepare` has the last word).
    Read,
    /// The database, as a transaction.
    Write,
    /// The catalogue.
    Catalogue,
    /// The session: SET, SHOW and the like.
    Session,
    /// COPY.
    Copy,
    /// DECLARE, FETCH, MOVE and CLOSE.
    Cursor,
    /// PREPARE.
    Prepare,
    /// EXECUTE, and EXPLAIN of it.
    Execute,
    /// A role's password, which is not for the ledger.
    Password,
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK, also to a savepoint.
    Rollback,
    /// What else is said about a transaction block: SAVEPOINT, RELEASE, SET TRANSACTION, LOCK for reading.
    Transaction,
    /// What the gateway refuses, with what it is called and what to do.
    Refused { what: &'static str, hint: &'static str },
}

impl Class {
    /// Whether such a statement ends a transaction block, or undoes a part of it: what is taken after an error.
    pub(crate) fn ends_block(self) -> bool {
        matches!(self, Class::Commit | Class::Rollback)
    }
}

/// How the names of functions begin that describe what the catalogue has.
const DESCRIBES: &str = "pg_get_";

/// Functions that ask about the session or the server and not about data.
const SESSION_FUNCTIONS: &[&str] = &[
    "version",
    "current_schema",
    "current_schemas",
    "current_database",
    "current_setting",
    "set_config",
    "pg_backend_pid",
    "pg_listening_channels",
    "pg_notification_queue_usage",
    "pg_is_in_recovery",
    "pg_postmaster_start_time",
    "pg_conf_load_time",
    "pg_advisory_unlock_all",
    "pg_encoding_to_char",
    "pg_client_encoding",
    "inet_server_addr",
    "inet_server_port",
    "inet_client_addr",
    "inet_client_port",
    "has_table_privilege",
    "has_column_privilege",
    "has_any_column_privilege",
    "has_schema_privilege",
    "has_database_privilege",
    "to_regclass",
    "to_regtype",
    "to_regproc",
    "to_regprocedure",
    "to_regnamespace",
    "to_regrole",
    "format_type",
    "obj_description",
    "col_description",
    "shobj_description",
    "pg_identify_object",
    "pg_my_temp_schema",
    "pg_is_other_temp_schema",
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_relation_size",
    "pg_total_relation_size",
    "pg_table_size",
    "pg_indexes_size",
    "pg_database_size",
    "pg_terminate_backend",
    "pg_cancel_backend",
    "txid_current_if_assigned",
];

/// Functions that draw from sequences or notify, which are the database's; so are those that lock.
const TRANSACTION_FUNCTIONS: &[&str] = &["nextval", "setval", "currval", "lastval", "pg_notify"];

/// Words that ask about the session without parentheses.
const SESSION_WORDS: &[&str] =
    &["current_user", "session_user", "user", "current_role", "current_catalog", "current_schema"];

/// Types whose values are names of objects.
const OBJECT_TYPES: &[&str] = &["regclass", "regproc", "regprocedure", "regtype", "regnamespace", "regrole"];

/// Says who answers `statement`. Tables of `catalog` come before those of the catalogue.
pub(crate) fn classify(statement: &Statement<'_>, catalog: &Catalog) -> Class {
    let lexemes = &statement.lexemes;
    let word =
        |index: usize| lexemes.get(index).map(|lexeme| lexeme.text.to_ascii_lowercase()).unwrap_or_default();
    match word(0).as_str() {
        "begin" => Class::Begin,
        "start" if word(1) == "transaction" => Class::Begin,
        "commit" | "end" if word(1) == "prepared" => in_one_phase("COMMIT PREPARED"),
        "commit" | "end" => Class::Commit,
        "rollback" if word(1) == "prepared" => in_one_phase("ROLLBACK PREPARED"),
        "rollback" | "abort" => Class::Rollback,
        "savepoint" | "release" => Class::Transaction,
        "set" if word(1) == "transaction" => Class::Transaction,
        "set" if word(1) == "constraints" && defers_constraints(catalog) => Class::Write,
        "prepare"
            if word(1) == "transaction" && lexemes.get(2).is_some_and(|name| name.kind == Kind::Quoted) =>
        {
            in_one_phase("PREPARE TRANSACTION")
        }
        "prepare" => Class::Prepare,
        "execute" => Class::Execute,
        "explain" if explains_execute(statement) => Class::Execute,
        "create" if takes_from_execute(lexemes) => {
            let hint = "Write its query out: CREATE TABLE … AS SELECT …";
            Class::Refused { what: "CREATE TABLE … AS EXECUTE", hint }
        }
        "declare" | "fetch" | "move" | "close" => Class::Cursor,
        "lock" if locks_for_reading(lexemes) => Class::Transaction,
        "lock" => Class::Refused {
            what: "LOCK in another mode than ACCESS SHARE",
            hint: "Leave it out: transaction blocks are serializable without.",
        },
        "set" | "show" | "reset" | "discard" | "deallocate" | "listen" | "unlisten" => Class::Session,
        "vacuum" | "analyze" | "analyse" => Class::Session,
        "select" if sleeps(lexemes) => Class::Session,
        "copy" => Class::Copy,
        "select" | "values" | "table" | "with" | "explain" | "(" => {
            if governs(lexemes) {
                Class::Write
            } else if is_catalogue(lexemes, catalog) {
                Class::Catalogue
            } else if lexemes.iter().any(|l| l.is("insert") || l.is("delete")) && word(0) == "with" {
                Class::Write
            } else {
                Class::Read
            }
        }
        "create" | "alter"
            if matches!(word(1).as_str(), "role" | "user" | "group")
                && lexemes.iter().any(|l| l.is("password")) =>
        {
            Class::Password
        }
        _ => Class::Write,
    }
}

/// Whether LOCK asks for no more than that the tables stay: `IN ACCESS SHARE MODE`.
fn locks_for_reading(lexemes: &[Lexeme<'_>]) -> bool {
    let is_mode = |words: &[Lexeme<'_>]| {
        words.iter().zip(["in", "access", "share", "mode"]).all(|(lexeme, word)| lexeme.is(word))
    };
    lexemes.windows(4).any(is_mode)
}

/// The function that waits.
pub(super) const SLEEP: &str = "pg_sleep";

/// Whether a statement does nothing but wait for a time that is written out.
fn sleeps(lexemes: &[Lexeme<'_>]) -> bool {
    let [select, rest @ ..] = lexemes else { return false };
    let rest = match rest {
        [all, from, rest @ ..] if all.is("*") && from.is("from") => rest,
        rest => rest,
    };
    let rest = match rest {
        [schema, period, rest @ ..] if schema.is("pg_catalog") && period.is(".") => rest,
        rest => rest,
    };
    let [name, open, time, close] = rest else { return false };
    let is_time = time.kind == Kind::Number || time.text.starts_with('\'');
    select.is("select") && name.is(SLEEP) && open.is("(") && is_time && close.is(")")
}

/// What asks for a second phase of a transaction.
fn in_one_phase(what: &'static str) -> Class {
    Class::Refused { what, hint: "COMMIT: what it says stands, there is no second phase." }
}

/// Whether it is CREATE TABLE … AS EXECUTE.
fn takes_from_execute(lexemes: &[Lexeme<'_>]) -> bool {
    let kinds = ["table", "temporary", "temp", "local", "global", "unlogged"];
    let creates = lexemes.get(1).is_some_and(|kind| kinds.iter().any(|word| kind.is(word)));
    let first = lexemes.iter().position(|lexeme| lexeme.is("as")).filter(|_| creates);
    first.and_then(|at| lexemes.get(at + 1)).is_some_and(|query| query.is("execute"))
}

/// Whether the ledger executes with a version that knows constraints which can be deferred.
fn defers_constraints(catalog: &Catalog) -> bool {
    let charter = catalog.governance.newest_charter();
    charter.is_none_or(|charter| charter.execution_version >= ExecutionVersion::V8.number())
}

/// Whether it is `SELECT entente.approve(…` or one of its kind.
fn governs(lexemes: &[Lexeme<'_>]) -> bool {
    let is = |index: usize, word: &str| lexemes.get(index).is_some_and(|lexeme| lexeme.is(word));
    let function = |lexeme: &Lexeme<'_>| catalogue::is_governance_function(&lexeme.value());
    is(0, "select") && is(1, "entente") && is(2, ".") && is(4, "(") && lexemes.get(3).is_some_and(function)
}

fn is_catalogue(lexemes: &[Lexeme<'_>], catalog: &Catalog) -> bool {
    let at = |index: usize| lexemes.get(index);
    let follows = |index: usize, symbol: &str| at(index + 1).is_some_and(|lexeme| lexeme.is(symbol));
    let qualified = |index: usize| index > 0 && at(index - 1).is_some_and(|lexeme| lexeme.is("."));
    let from = lexemes.iter().any(|lexeme| lexeme.is("from"));
    let draws = (0..lexemes.len())
        .any(|index| follows(index, "(") && TRANSACTION_FUNCTIONS.iter().any(|name| lexemes[index].is(name)));
    // Whoever draws from the sequence of a column asks the database for both.
    let asks_for_drawn = |name: &str| draws && name == "pg_get_serial_sequence";
    (0..lexemes.len()).any(|index| {
        let lexeme = &lexemes[index];
        let identifier = lexeme.kind == Kind::Word || lexeme.text.starts_with('"');
        if !identifier || qualified(index) {
            return false;
        }
        let name = lexeme.value();
        let name = name.as_str();
        if follows(index, ".") {
            // The history of a row, functions about assets and the values of sequences are the database's.
            let calls_one = |is_it: &dyn Fn(&Lexeme<'_>) -> bool| {
                at(index + 2).is_some_and(is_it) && at(index + 3).is_some_and(|lexeme| lexeme.is("("))
            };
            let calls =
                |functions: &[&str]| calls_one(&|lexeme| functions.iter().any(|name| lexeme.is(name)));
            let is_asset = |lexeme: &Lexeme<'_>| catalogue::is_asset_function(&lexeme.value());
            return match name {
                "entente" => !calls(&["history"]) && !calls_one(&is_asset),
                "pg_catalog" => {
                    !calls(TRANSACTION_FUNCTIONS)
                        && !calls_one(&is_lock_function)
                        && !calls_one(&|lexeme| asks_for_drawn(&lexeme.value()))
                }
                _ => name == "information_schema",
            };
        }
        if name.starts_with("pg_") && catalogue::is_relation(name) && !follows(index, "(") {
            let before = index.checked_sub(1).and_then(at);
            let is_table = before
                .is_some_and(|l| ["from", "join", ",", "(", "table", "only"].iter().any(|word| l.is(word)));
            return is_table && !catalog.tables.contains_key(name);
        }
        if name == "pg_show_all_settings" && follows(index, "(") {
            return true;
        }
        let is_about_session = SESSION_FUNCTIONS.contains(&name) || name.starts_with(DESCRIBES);
        let function = follows(index, "(") && is_about_session && !asks_for_drawn(name);
        let words = [SESSION_WORDS, OBJECT_TYPES];
        let word = lexeme.kind == Kind::Word && words.iter().any(|words| words.contains(&name));
        !from && (function || word)
    })
}

/// A syntax error at a lexeme, or behind the last one.
pub(crate) fn syntax_error(statement: &Statement<'_>, lexeme: Option<&Lexeme<'_>>) -> SqlError {
    let (message, at) = match lexeme {
        Some(lexeme) => {
            (format!("syntax error at or near \"{}\"", lexeme.text), lexeme.start - statement.start)
        }
        None => ("syntax error at end of input".to_string(), statement.text.len()),
    };
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(position(statement.text, at))
}

/// A position in bytes as PostgreSQL counts: in characters, from 1.
pub(crate) fn position(sql: &str, byte: usize) -> u32 {
    sql.char_indices().take_while(|(at, _)| *at < byte).count() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(sql: &str) -> Vec<Class> {
        split(sql).iter().map(|statement| classify(statement, &Catalog::default())).collect()
    }

    #[test]
    fn statements_split_at_semicolons_outside_of_literals_and_comments() {
        let sql = "select ';' ; ; /* ; /* ; */ ; */ insert into t values ($$ ; $$, $a$ $b$ ; $a$, E'\\'; ') -- ;\n; select \";\"";
        let texts: Vec<&str> = split(sql).iter().map(|statement| statement.text).collect();
        assert_eq!(
            texts,
            ["select ';'", "insert into t values ($$ ; $$, $a$ $b$ ; $a$, E'\\'; ')", "select \";\""]
        );
        for unclosed in
            ["select 'a", "select $$ a", "/* a", "select \"a", "select E'\\", "$", "$a", "$1", "é'"]
        {
            split(unclosed);
        }
        assert!(split(" ; -- nothing\n;").is_empty());
    }

    #[test]
    fn statements_are_told_apart_by_their_words() {
        assert_eq!(
            classes("select 1; SELECT x from t; with a as (select 1) select * from a"),
            [Class::Read; 3]
        );
        assert_eq!(classes("insert into t values (1); call p(1); create table t(a int)"), [Class::Write; 3]);
        assert_eq!(
            classes("select entente.approve(1); SELECT Entente.set_charter('governance', 'any')"),
            [Class::Write; 2]
        );
        assert_eq!(
            classes("select number from entente.proposals; select entente.approved(1)"),
            [Class::Catalogue; 2]
        );
        assert_eq!(
            classes(
                "select version(); select current_user; select * from pg_class c; select 1 from entente.blocks; \
                     select a from information_schema.tables; select \"pg_catalog\".now(); select current_schema; select 'a'::regclass"
            ),
            [Class::Catalogue; 8]
        );
        assert_eq!(
            classes(
                "select 'pg_catalog.x'; select pg_class from t; select version from t; \
                 select pg_catalog.setval('public.s', 3, true); select * from entente.history('t', 1)"
            ),
            [Class::Read; 5]
        );
        assert_eq!(
            classes(
                "select setval(pg_get_serial_sequence('t', 'id'), 1, false); \
                 select pg_catalog.setval(pg_catalog.pg_get_serial_sequence('t', 'id'), max(id)) from t"
            ),
            [Class::Read; 2]
        );
        assert_eq!(
            classes(
                "select pg_get_serial_sequence('t', 'id'); select pg_catalog.pg_get_serial_sequence('t', 'id')"
            ),
            [Class::Catalogue; 2]
        );
        assert_eq!(
            classes(
                "begin; start transaction; commit; end; rollback; abort; rollback to a; savepoint a; release a"
            ),
            [
                Class::Begin,
                Class::Begin,
                Class::Commit,
                Class::Commit,
                Class::Rollback,
                Class::Rollback,
                Class::Rollback,
                Class::Transaction,
                Class::Transaction
            ]
        );
    }

    #[test]
    fn what_is_prepared_and_executed_is_told_from_words_that_look_like_it() {
        assert_eq!(
            classes(
                "prepare a as select 1; prepare transaction as select 1; PREPARE transaction(int) AS select 1"
            ),
            [Class::Prepare; 3]
        );
        assert_eq!(
            classes(
                "execute a; explain execute a(1); explain (costs off) execute a; explain verbose execute a"
            ),
            [Class::Execute; 4]
        );
        assert_eq!(
            classes("explain select 1 as execute; create table a as select 1 as execute"),
            [Class::Read, Class::Write]
        );
        for sql in ["create table a as execute b", "CREATE TEMP TABLE a (b) AS EXECUTE c(1)"] {
            assert!(
                matches!(classes(sql)[0], Class::Refused { what: "CREATE TABLE … AS EXECUTE", .. }),
                "{sql}"
            );
        }
        let two_phases = "prepare transaction 'a'; commit prepared 'a'; rollback prepared 'a'";
        assert!(classes(two_phases).iter().all(|class| matches!(class, Class::Refused { .. })));
        assert_eq!(
            classes("SET a = 1; show all; copy t from stdin"),
            [Class::Session, Class::Session, Class::Copy]
        );
        let sleeps = "select pg_sleep(1); select pg_catalog.pg_sleep('0.5'); SELECT * FROM pg_sleep(0)";
        assert_eq!(classes(sleeps), [Class::Session; 3]);
        let others = "select pg_sleep(a) from t; select pg_sleep(1), 2; select pg_sleep(1 + 1)";
        assert_eq!(classes(others), [Class::Read; 3]);
    }

    #[test]
    fn values_of_literals_are_unquoted() {
        let values: Vec<String> =
            lexemes("Ab \"Ab\" 'it''s' E'a\\tb' $x$ y $x$").iter().map(Lexeme::value).collect();
        assert_eq!(values, ["ab", "Ab", "it's", "a\tb", " y "]);
        assert_eq!(position("sélect x", 8), 8);
    }
}
