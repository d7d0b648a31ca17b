//! Assignments to parts of one column: how many a statement may have.

mod support;

use support::{prepared, shown};
use types::ExecutionVersion;

const TABLES: [&str; 4] = [
    "CREATE TYPE pair AS (a integer, b integer)",
    "CREATE TYPE nested AS (x pair, y integer)",
    "CREATE TABLE t (k integer PRIMARY KEY, c nested, n integer[], p pair[], j jsonb)",
    "INSERT INTO t VALUES (1, ROW(ROW(1, 2), 3), '{1,2}', '{\"(1,2)\"}', '{}')",
];

/// An UPDATE with an assignment so many times.
fn update(assignment: &str, times: usize) -> String {
    format!("UPDATE t SET {}", vec![assignment; times].join(", "))
}

/// What a database of a version says to the script, on a thread with the stack that threads of nodes have.
fn said(version: ExecutionVersion, script: String) -> String {
    let run = move || shown(prepared(version, &TABLES).run(&script));
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).expect("a thread");
    thread.join().expect("no overflow")
}

#[test]
fn so_many_parts_of_one_column_are_assigned_and_not_one_more() {
    for assignment in ["n[1] = 1", "c.y = 1", "j['a'] = '1'", "n[1:2] = '{1,2}'", "j['a']['b']['c'] = '1'"] {
        assert_eq!(said(ExecutionVersion::V12, update(assignment, 256)), "UPDATE 1", "{assignment}");
        for times in [257, 8_000] {
            let found = said(ExecutionVersion::V12, update(assignment, times));
            assert!(found.starts_with("54001 more than 256 parts of the column"), "{assignment}: {found}");
        }
    }
    // A version before answers what its nodes could answer.
    assert_eq!(said(ExecutionVersion::V11, update("c.y = 1", 500)), "UPDATE 1");
    let found = said(ExecutionVersion::V11, update("c.y = 1", 8_000));
    assert!(found.starts_with("54001 more than 1900 parts of the column"), "{found}");
}

#[test]
fn parts_of_parts_do_not_multiply_without_end() {
    for assignment in ["p[1].a = 1", "c.x.a = 1"] {
        assert_eq!(said(ExecutionVersion::V12, update(assignment, 10)), "UPDATE 1", "{assignment}");
        let found = said(ExecutionVersion::V12, update(assignment, 40));
        assert!(found.starts_with("54001 assignments inside of one column"), "{assignment}: {found}");
    }
    let found = said(ExecutionVersion::V11, update("c.x.a = 1", 60));
    assert!(found.starts_with("54001 assignments inside of one column"), "{found}");
}
