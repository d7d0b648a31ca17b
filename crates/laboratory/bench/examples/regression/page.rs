//! `docs/compatibility.md`: what of PostgreSQL's own tests is answered alike, and what is not, with its reason.

use crate::report::{Finding, table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What stands in a reason, whether it is to stay so, and why or what to do.
const MEANINGS: [(&str, Stays, &str); 21] = [
    (
        "INHERITS",
        Stays::Yes,
        "Tables do not inherit from one another. Use a partitioned table, or a column that tells the kinds apart.",
    ),
    ("RETURN cannot have", Stays::No, "Another SQLSTATE."),
    (
        "COMMIT in a procedure",
        Stays::Yes,
        "A call is one transaction of the ledger, and is in its block whole or not at all. Make several calls.",
    ),
    (
        "ROLLBACK in a procedure",
        Stays::Yes,
        "A call is one transaction of the ledger, and is in its block whole or not at all. Make several calls.",
    ),
    (
        "in a procedure",
        Stays::Yes,
        "Definitions and settings are statements of their own, because members consent to them.",
    ),
    ("pg_sleep", Stays::Yes, "A contract does not wait: every node executes it again at another time."),
    ("pg_backend_pid", Stays::Yes, "There is no process per session."),
    ("TEXT_BYTES_MAX", Stays::Yes, "A value has at most 1 MiB, because a transaction has at most 4 MiB."),
    ("CREATE RULE", Stays::Yes, "Use a view with INSTEAD OF triggers, or a trigger."),
    ("gives many rows, in an expression", Stays::No, "Call it in FROM."),
    ("PARTITION", Stays::No, "Some forms of partitions are missing: docs/sql.md."),
    ("of type record", Stays::No, "Use a composite type."),
    ("VARIADIC in an aggregate", Stays::No, "Pass an array."),
    ("anycompatible", Stays::No, "Use anyelement and its kind, or write one function per type."),
    ("in a CHECK constraint", Stays::No, "Use a domain, a trigger, or the condition itself."),
    ("the domain", Stays::No, "Domains are not fields of composite types and not elements of arrays."),
    ("DEFERRABLE", Stays::No, "Constraints of temporary tables are checked at once."),
    (
        "current transaction is aborted",
        Stays::No,
        "A statement before it ended with an error that PostgreSQL does not give.",
    ),
    ("relation", Stays::No, "Often a temporary table: routines do not see those of sessions."),
    ("other values", Stays::No, "The answers differ."),
    ("number of rows", Stays::No, "The answers differ."),
];

/// Whether a difference is meant to stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Yes,
    No,
}

/// The page, of the findings of several runs. `counted` says which program was asked, and when.
pub fn page(runs: &[Vec<Finding>], counted: &str) -> String {
    let mut page = String::from(HEAD);
    let _ = writeln!(page, "\nCounted {counted}.");
    for findings in runs {
        let _ = write!(page, "\n{}", table(findings));
    }
    let all: Vec<&Finding> = runs.iter().flatten().collect();
    let reasons = by_reason(&all);
    for (stays, title) in [(Stays::Yes, "What stays different, and why"), (Stays::No, "What is missing")] {
        let _ = write!(
            page,
            "\n## {title}\n\n| statements | reason | what to do | where |\n| ---: | --- | --- | --- |\n"
        );
        for (reason, places) in &reasons {
            let (of_reason, meaning) = meaning_of(reason);
            if of_reason == stays {
                let shown = reason.replace('|', "\\|");
                let _ =
                    writeln!(page, "| {} | {shown} | {meaning} | {} |", places.len(), places_shown(places));
            }
        }
    }
    page
}

const HEAD: &str = "\
# Answers of PostgreSQL's own tests

Each statement of these files of PostgreSQL 15's regression tests was run on PostgreSQL and on a network of four organisations. Two answers
are the same if they have the same columns and rows, the same number of changed rows, or errors with the same SQLSTATE. `EXPLAIN`, `SET`,
`RESET`, `SHOW`, `VACUUM`, `ANALYZE` and psql's own commands are not counted. A statement that needs what an earlier one could not create counts
under the earlier one's reason.

This page is generated; [sql.md](sql.md#postgresqls-regression-files) has the commands that count and write it.

The own tests of drivers and object-relational mappers have [a page of their own](compatibility-suites.md).
";

fn meaning_of(reason: &str) -> (Stays, &'static str) {
    let found = MEANINGS.iter().find(|(part, ..)| reason.contains(part));
    found.map_or((Stays::No, ""), |(_, stays, meaning)| (*stays, *meaning))
}

/// The places of each reason, the most frequent reason first.
fn by_reason<'a>(findings: &[&'a Finding]) -> Vec<(&'a str, Vec<(&'a str, usize)>)> {
    let mut reasons: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for finding in findings {
        if let Some(reason) = &finding.reason {
            reasons.entry(reason).or_default().push((&finding.file, finding.line));
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, places)| (std::cmp::Reverse(places.len()), *reason));
    reasons
}

/// `file 1, 2; file 3`
fn places_shown(places: &[(&str, usize)]) -> String {
    let mut text = String::new();
    let mut last = "";
    for (file, line) in places {
        match (*file == last, last.is_empty()) {
            (true, _) => text.push_str(", "),
            (false, true) => text.extend([file, " "]),
            (false, false) => text.extend(["; ", file, " "]),
        }
        last = file;
        let _ = write!(text, "{line}");
    }
    text
}
