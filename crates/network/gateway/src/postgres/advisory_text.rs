//! Which statements are about advisory locks, as far as their words say it.

use super::script::{Kind, Lexeme, Statement};

/// Functions that give a session a lock, or take it back, without those that give back everything.
const OF_SESSION: [&str; 6] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_shared",
];

/// Functions that give a transaction a lock.
const OF_TRANSACTION: [&str; 4] = [
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared",
];

/// What gives back all locks of a session.
pub(super) const UNLOCK_ALL: &str = "pg_advisory_unlock_all";

/// Functions that keys are computed with: they look at nothing.
const OF_KEYS: [&str; 8] =
    ["abs", "ascii", "cast", "coalesce", "hashtext", "hashtextextended", "length", "mod"];

/// Words with which a statement would do more than to lock.
const OTHER_WORDS: [&str; 7] = ["into", "where", "with", "union", "for", "exists", "values"];

fn is_one_of(lexeme: &Lexeme<'_>, names: &[&str]) -> bool {
    let is_name = lexeme.kind == Kind::Word || lexeme.text.starts_with('"');
    is_name && names.contains(&lexeme.value().as_str())
}

/// Whether it is one of these functions, but for the one that gives back everything.
pub(super) fn is_lock_function(lexeme: &Lexeme<'_>) -> bool {
    is_one_of(lexeme, &OF_SESSION) || is_one_of(lexeme, &OF_TRANSACTION)
}

/// Whether a statement names a function about locks, also inside of the text of DO.
pub(super) fn names_a_lock(statement: &Statement<'_>) -> bool {
    let does = statement.lexemes.first().is_some_and(|first| first.is("do"));
    let said = |text: &str| OF_SESSION.iter().chain(&OF_TRANSACTION).any(|name| text.contains(name));
    statement.lexemes.iter().any(is_lock_function) || does && said(&statement.text.to_ascii_lowercase())
}

/// Whether it names what gives back all locks.
pub(super) fn names_unlock_all(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains(UNLOCK_ALL)
}

/// Whether a statement may wait for a lock.
pub(super) fn waits_for_a_lock(statement: &Statement<'_>) -> bool {
    let waits = [OF_SESSION[0], OF_SESSION[1], OF_TRANSACTION[0], OF_TRANSACTION[1]];
    statement.lexemes.iter().any(|lexeme| is_one_of(lexeme, &waits))
}

/// A statement that locks for the transaction block in which it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlockLock {
    /// The same for the session.
    pub(super) taken: String,
    /// What takes that back.
    pub(super) given_back: String,
}

/// The same statement with the function of a session, and what gives that back, where it takes one lock for the transaction and does nothing
/// else.
pub(super) fn lock_for_block(statement: &Statement<'_>) -> Option<BlockLock> {
    let mut calls = statement.lexemes.iter().filter(|lexeme| is_one_of(lexeme, &OF_TRANSACTION));
    let (call, more) = (calls.next()?, calls.next());
    if more.is_some() || !only_calls(statement, &OF_TRANSACTION) {
        return None;
    }
    let name = call.value();
    let with = |function: &str| {
        let start = call.start - statement.start;
        [&statement.text[..start], function, &statement.text[start + call.text.len()..]].concat()
    };
    let mode = if name.ends_with("_shared") { "_shared" } else { "" };
    let given_back = with(&format!("pg_advisory_unlock{mode}"));
    Some(BlockLock { taken: with(&name.replace("_xact", "")), given_back })
}

/// Whether a statement takes or gives back locks of the session and does nothing else: then it is no part of a transaction block.
pub(super) fn only_locks_for_session(statement: &Statement<'_>) -> bool {
    only_calls(statement, &OF_SESSION)
}

/// Whether a statement calls these functions, and does nothing else.
fn only_calls(statement: &Statement<'_>, functions: &[&str]) -> bool {
    let lexemes = statement.lexemes.as_slice();
    let is = |at: usize, word: &str| lexemes.get(at).is_some_and(|lexeme| lexeme.is(word));
    if !is(0, "select") || !lexemes.iter().any(|lexeme| is_one_of(lexeme, functions)) {
        return false;
    }
    (1..lexemes.len()).all(|at| {
        let lexeme = &lexemes[at];
        if lexeme.is("from") {
            // SELECT * FROM pg_try_advisory_lock(1)
            let function = if is(at + 1, "pg_catalog") { at + 3 } else { at + 1 };
            return at == 2
                && is(1, "*")
                && lexemes.get(function).is_some_and(|next| is_one_of(next, functions));
        }
        if lexeme.is("select") || OTHER_WORDS.iter().any(|word| lexeme.is(word)) {
            return false;
        }
        let is_name = lexeme.kind == Kind::Word || lexeme.text.starts_with('"');
        let calls = is_name && is(at + 1, "(");
        !calls || is_one_of(lexeme, functions) || is_one_of(lexeme, &OF_KEYS)
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::split;
    use super::*;

    fn told(sql: &str) -> (bool, bool, bool) {
        let statement = &split(sql)[0];
        (names_a_lock(statement), waits_for_a_lock(statement), only_locks_for_session(statement))
    }

    #[test]
    fn what_migration_tools_send_only_locks() {
        for (sql, waits) in [
            ("SELECT pg_advisory_lock(72707369)", true),
            ("select pg_catalog.pg_advisory_lock($1)", true),
            ("SELECT pg_try_advisory_lock(7241865325823964) AS \"lockObtained\"", false),
            ("SELECT pg_advisory_unlock(1, 2);", false),
            (
                "select PG_TRY_ADVISORY_LOCK_SHARED(hashtext('x')::bigint)::int, pg_advisory_lock(cast(-1 as int), 2) AS l",
                true,
            ),
            ("SELECT * FROM pg_try_advisory_lock(1) AS got", false),
            ("SELECT * FROM pg_catalog.pg_advisory_lock(1)", true),
            ("SELECT \"pg_advisory_lock_shared\"($1 + 1)", true),
        ] {
            assert_eq!(told(sql), (true, waits, true), "{sql}");
        }
    }

    #[test]
    fn a_lock_of_a_block_is_one_of_the_session_that_is_given_back() {
        let lock = |sql: &str| {
            lock_for_block(&split(&format!("BEGIN; {sql}"))[1]).map(|lock| (lock.taken, lock.given_back))
        };
        let some = |taken: &str, given_back: &str| Some((taken.to_string(), given_back.to_string()));
        assert_eq!(
            lock("SELECT pg_advisory_xact_lock($1, 2)"),
            some("SELECT pg_advisory_lock($1, 2)", "SELECT pg_advisory_unlock($1, 2)")
        );
        assert_eq!(
            lock("select * from pg_catalog.\"pg_try_advisory_xact_lock_shared\"(hashtext('é')) AS got"),
            some(
                "select * from pg_catalog.pg_try_advisory_lock_shared(hashtext('é')) AS got",
                "select * from pg_catalog.pg_advisory_unlock_shared(hashtext('é')) AS got"
            )
        );
        for sql in [
            "SELECT pg_advisory_lock(1)",
            "SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(2)",
            "SELECT pg_advisory_xact_lock(id) FROM job",
            "SELECT pg_try_advisory_xact_lock(1), spend(1)",
        ] {
            assert_eq!(lock(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_does_more_is_part_of_its_transaction() {
        for (sql, waits) in [
            ("SELECT pg_advisory_xact_lock(1)", true),
            ("SELECT pg_try_advisory_lock(id) FROM job", false),
            ("SELECT pg_advisory_lock((SELECT max(id) FROM job))", true),
            ("SELECT pg_try_advisory_lock(1), spend(2)", false),
            ("SELECT 1 WHERE pg_try_advisory_lock(1)", false),
            ("INSERT INTO t SELECT pg_try_advisory_lock(1)", false),
            ("SELECT pg_advisory_lock(1), pg_advisory_xact_lock(2)", true),
        ] {
            assert_eq!(told(sql), (true, waits, false), "{sql}");
        }
        assert_eq!(told("DO $$ BEGIN PERFORM pg_Advisory_Lock(1); END $$"), (true, false, false));
        for sql in [
            "SELECT 'pg_advisory_lock(1)'",
            "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_lock(1)'",
            "SELECT pg_advisory_unlock_all()",
            "SELECT 1",
        ] {
            assert_eq!(told(sql), (false, false, false), "{sql}");
        }
        assert!(names_unlock_all("SELECT PG_advisory_unlock_all()") && !names_unlock_all("DISCARD ALL"));
    }
}
