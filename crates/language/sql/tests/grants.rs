//! What of GRANT and REVOKE the files of `slt/` do not show: warnings, what versions before say, rows that clients send, and limits.
//! `column_privileges.slt` and `grant_options.slt` have the rest.

mod support;

use support::{Database, prepared, shown};
use types::{ExecutionVersion, Grantee, Payload, Principal, Privileges, Securable, Value};

const BEFORE: [&str; 5] = [
    "CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL DEFAULT 0, c text)",
    "CREATE ROLE ann",
    "CREATE ROLE bob",
    "CREATE SCHEMA app",
    "CREATE TABLE app.t (a int PRIMARY KEY)",
];

/// The tag of a statement that a role runs and the warnings that come with it, or its error.
fn by(database: &mut Database, role: &str, sql: &str) -> String {
    database.principal = Principal::new(0, role);
    let result = database.gateway(sql);
    database.principal = Principal::default();
    let notices = result.iter().flatten().flat_map(|result| &result.notices);
    let told: Vec<String> =
        notices.map(|notice| format!("{} {}", notice.report.state, notice.report.message)).collect();
    [vec![shown(result)], told].concat().join("; ")
}

#[test]
fn what_cannot_be_granted_is_left_out_with_a_warning() {
    let mut database = prepared(ExecutionVersion::V10, &BEFORE);
    database.run("GRANT SELECT (a), UPDATE ON t TO ann WITH GRANT OPTION").expect("granted");
    database.run("GRANT INSERT ON t TO ann").expect("granted");
    let (no, not_all) =
        ("GRANT; 01007 no privileges were granted for", "GRANT; 01007 not all privileges were granted for");
    let revoked = "REVOKE; 01006 no privileges could be revoked for";
    for (sql, expected) in [
        ("GRANT SELECT (a), UPDATE ON t TO bob", "GRANT".to_string()),
        ("GRANT SELECT ON t TO bob", format!("{no} \"t\"")),
        ("GRANT INSERT ON t TO bob", format!("{no} \"t\"")),
        ("GRANT SELECT, UPDATE ON t TO bob", format!("{not_all} \"t\"")),
        ("GRANT ALL ON t TO bob", "GRANT".to_string()),
        ("GRANT ALL (a) ON t TO bob", "GRANT".to_string()),
        ("GRANT SELECT (b) ON t TO bob", format!("{no} column \"b\" of relation \"t\"")),
        ("GRANT SELECT (a, b) ON t TO bob", format!("{no} column \"b\" of relation \"t\"")),
        ("GRANT SELECT (a), INSERT (a) ON t TO bob", format!("{not_all} column \"a\" of relation \"t\"")),
        ("REVOKE DELETE ON t FROM bob", format!("{revoked} \"t\"")),
        ("REVOKE INSERT (a) ON t FROM bob", format!("{revoked} column \"a\" of relation \"t\"")),
        ("GRANT USAGE ON SCHEMA app TO bob", "42501 permission denied for schema app".to_string()),
        ("GRANT SELECT ON app.t TO bob", "42501 permission denied for schema app".to_string()),
    ] {
        assert_eq!(by(&mut database, "ann", sql), expected, "{sql}");
    }
    // What was granted is what is left.
    let list = database.library.catalog().roles.granted(&Securable::Relation("t".into())).into_owned();
    let bob = list.direct(&Grantee::Role("bob".into()));
    assert_eq!((bob.privileges, bob.options), (Privileges::UPDATE, Privileges::NONE));
    database.run("GRANT SELECT ON app.t TO ann WITH GRANT OPTION").expect("granted");
    assert_eq!(
        by(&mut database, "ann", "GRANT SELECT ON app.t TO bob"),
        "42501 permission denied for schema app"
    );
    database.run("GRANT USAGE ON SCHEMA app TO ann").expect("granted");
    assert_eq!(by(&mut database, "ann", "GRANT SELECT ON app.t TO bob"), "GRANT");
    // Warnings end somewhere.
    let many: Vec<String> = (0..120).map(|number| format!("x{number} int")).collect();
    database.run(&format!("CREATE TABLE wide ({})", many.join(", "))).expect("a table");
    database.run("GRANT INSERT ON wide TO ann").expect("granted");
    let told = by(&mut database, "ann", "REVOKE SELECT ON wide FROM bob");
    assert_eq!(told.matches("01006").count(), 100);
}

#[test]
fn version_9_refuses_what_version_10_knows() {
    let option = "0A000 WITH GRANT OPTION and WITH ADMIN OPTION is not supported";
    let cases = [
        ("GRANT SELECT (a) ON t TO ann", "0A000 a privilege on columns is not supported", "GRANT"),
        ("GRANT INSERT, SELECT (a, c) ON t TO ann", "0A000 a privilege on columns is not supported", "GRANT"),
        ("GRANT SELECT ON t TO ann WITH GRANT OPTION", option, "GRANT"),
        ("REVOKE GRANT OPTION FOR SELECT ON t FROM ann", "0A000 GRANT OPTION is not supported", "REVOKE"),
        ("GRANT SELECT ON t TO ann GRANTED BY CURRENT_USER", "42601", "GRANT"),
        ("GRANT REFERENCES ON t TO ann", "0A000 the privilege REFERENCES is not supported", "GRANT"),
        ("GRANT TRIGGER ON t TO ann", "0A000 the privilege TRIGGER is not supported", "GRANT"),
        ("GRANT ann TO bob WITH ADMIN OPTION", option, "0A000 WITH ADMIN OPTION is not supported"),
        (
            "GRANT CREATE ON SCHEMA app TO ann",
            "0A000 the privilege CREATE is not supported",
            "0A000 the privilege CREATE is not supported",
        ),
        (
            "GRANT REFERENCES ON SCHEMA app TO ann",
            "0A000 the privilege REFERENCES is not supported",
            "0LP01 invalid privilege type REFERENCES for schema",
        ),
    ];
    for (sql, version_9, version_10) in cases {
        let found = shown(prepared(ExecutionVersion::V9, &BEFORE).run(sql));
        assert!(found.starts_with(version_9), "{sql}: {found}");
        assert_eq!(shown(prepared(ExecutionVersion::V10, &BEFORE).run(sql)), version_10, "{sql}");
        let mut over = prepared(ExecutionVersion::V9, &BEFORE);
        over.go_over_to(ExecutionVersion::V10);
        assert_eq!(shown(over.run(sql)), version_10, "{sql}, gone over");
    }
    // What ALL is, and who may grant.
    for (version, all, refused) in [
        (ExecutionVersion::V9, Privileges::OF_TABLES_BEFORE_V10, "schema public"),
        (ExecutionVersion::V10, Privileges::OF_TABLES, "table t"),
    ] {
        let mut database = prepared(version, &BEFORE);
        let told = by(&mut database, "bob", "GRANT SELECT ON t TO ann");
        assert_eq!(told, format!("42501 permission denied for {refused}"));
        database.run("GRANT ALL ON t TO ann").expect("granted");
        let held = database.library.catalog().roles.privileges("ann", &Securable::Relation("t".into()));
        assert_eq!(held, all);
    }
    // A condition without columns reads nothing, which versions before did not tell.
    for (version, expected) in
        [(ExecutionVersion::V9, "42501 permission denied for table t"), (ExecutionVersion::V10, "UPDATE 0")]
    {
        let mut database = prepared(version, &BEFORE);
        database.run("GRANT UPDATE ON t TO ann").expect("granted");
        assert_eq!(by(&mut database, "ann", "UPDATE t SET b = 1 WHERE true"), expected);
    }
}

#[test]
fn clients_send_the_columns_that_they_may() {
    let mut database = prepared(ExecutionVersion::V10, &BEFORE);
    database.run("GRANT INSERT (a, c) ON t TO ann").expect("granted");
    let mut insert = |columns: &[&str]| {
        let payload = Payload::Insert {
            table: "t".into(),
            columns: columns.iter().map(|column| column.to_string()).collect(),
            rows: vec![columns.iter().map(|_| Value::Integer(1)).collect()],
        };
        database.principal = Principal::new(0, "ann");
        shown(database.execute(payload))
    };
    assert_eq!(insert(&["a", "b"]), "42501 permission denied for table t");
    assert_eq!(insert(&["b"]), "42501 permission denied for table t");
    assert_eq!(insert(&["a"]), "COPY 1");
}

#[test]
fn errors_show_no_row_of_which_roles_may_read_some_columns() {
    let mut database = prepared(ExecutionVersion::V10, &BEFORE);
    database.run("INSERT INTO t VALUES (1, 2, 'secret')").expect("a row");
    database.run("GRANT SELECT (a), UPDATE (b) ON t TO ann").expect("granted");
    let error = database.act("ann", "UPDATE t SET b = NULL WHERE a = 1").expect_err("NULL");
    assert_eq!((error.state.to_string().as_str(), error.detail), ("23502", None));
    database.run("REVOKE ALL ON t FROM ann").expect("revoked");
    let error = database.error("UPDATE t SET b = NULL WHERE a = 1");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (1, null, secret)."));
}

#[test]
fn roles_grant_only_so_much() {
    let mut database = prepared(ExecutionVersion::V10, &["CREATE TABLE t (a int)", "CREATE ROLE ann"]);
    database.run("GRANT SELECT ON t TO ann WITH GRANT OPTION").expect("granted");
    let roles: Vec<String> =
        (0..=types::limits::ROLE_GRANTS_MAX).map(|number| format!("r{number}")).collect();
    let script: Vec<String> = roles.iter().map(|role| format!("CREATE ROLE {role}")).collect();
    database.run(&script.join(";")).expect("roles");
    let grant = format!("GRANT SELECT ON t TO {}", roles.join(", "));
    let refused = "54000 roles have at most 1000 grants on an object (ROLE_GRANTS_MAX)";
    assert_eq!(by(&mut database, "ann", &grant), refused);
    let grant = format!("GRANT SELECT ON t TO {}", roles[1..].join(", "));
    assert_eq!(by(&mut database, "ann", &grant), "GRANT");
    assert_eq!(by(&mut database, "ann", &grant), "GRANT", "they have it");
    assert_eq!(by(&mut database, "ann", "GRANT SELECT ON t TO r0"), refused);
    database.run("GRANT SELECT ON t TO r0").expect("administrators may");
}

#[test]
fn routines_and_views_ask_for_the_columns_that_they_name() {
    let mut database = prepared(ExecutionVersion::V10, &BEFORE);
    for sql in [
        "INSERT INTO t VALUES (1, 2, 'x')",
        "CREATE FUNCTION get_a() RETURNS int LANGUAGE sql AS 'SELECT a FROM t'",
        "CREATE FUNCTION get_b() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT b FROM t); END $$",
        "CREATE FUNCTION trusted() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT b FROM t'",
        "CREATE VIEW v AS SELECT a, b FROM t",
        "CREATE PROCEDURE run(sql text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; END $$",
        "GRANT SELECT (a) ON t TO ann",
        "GRANT SELECT (b) ON v TO ann",
    ] {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    let denied = "42501 permission denied for";
    for (sql, expected) in [
        ("SELECT get_a()", "1".to_string()),
        ("SELECT get_b()", format!("{denied} table t")),
        ("SELECT trusted()", "2".to_string()),
        ("SELECT b FROM v", "2".to_string()),
        ("SELECT a FROM v", format!("{denied} view v")),
        ("CALL run('SELECT c FROM t')", format!("{denied} table t")),
        ("EXPLAIN SELECT c FROM t", format!("{denied} table t")),
        ("DO 'BEGIN PERFORM b FROM t; END'", format!("{denied} table t")),
        ("SELECT * FROM entente.history('t', 1)", format!("{denied} table t")),
    ] {
        let found = database.act("ann", sql);
        let found = found.map(|rows| rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(";"));
        let found = found.unwrap_or_else(|error| format!("{} {}", error.state, error.message));
        assert_eq!(found, expected, "{sql}");
    }
}

/// The detail of the error that a role gets.
fn detail(version: ExecutionVersion, before: &[&str], sql: &str) -> String {
    let mut database = prepared(version, &BEFORE);
    for script in before {
        database.run(script).unwrap_or_else(|error| panic!("{script}: {error:?}"));
    }
    database.principal = Principal::new(0, "ann");
    let error = database.gateway(sql).expect_err(sql);
    error.detail.unwrap_or_default()
}

#[test]
fn errors_show_a_role_no_key_and_no_row_that_it_may_not_read() {
    let cases: [(&[&str], &str, &str, &str); 5] = [
        (
            &[
                "CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES t)",
                "GRANT INSERT ON child TO ann",
                "GRANT SELECT (id) ON child TO ann",
            ],
            "INSERT INTO child VALUES (1, 7)",
            "Key (a)=(7) is not present in table \"t\".",
            "Key is not present in table \"t\".",
        ),
        (
            &[
                "INSERT INTO t VALUES (1)",
                "CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES t)",
                "INSERT INTO child VALUES (1, 1)",
                "GRANT DELETE ON t TO ann",
                "GRANT SELECT (c) ON t TO ann",
            ],
            "DELETE FROM t",
            "Key (a)=(1) is still referenced from table \"child\".",
            "Key is still referenced from table \"child\".",
        ),
        (
            &[
                "CREATE UNIQUE INDEX ON t ((b + 1))",
                "INSERT INTO t VALUES (1, 5)",
                "GRANT INSERT ON t TO ann",
                "GRANT SELECT (c) ON t TO ann",
            ],
            "INSERT INTO t VALUES (2, 5)",
            "Key ((b + 1))=(6) already exists.",
            "",
        ),
        (
            &[
                "INSERT INTO t VALUES (1, 5, 'secret')",
                "CREATE VIEW v AS SELECT a, b FROM t",
                "GRANT SELECT, UPDATE ON v TO ann",
            ],
            "UPDATE v SET b = NULL",
            "Failing row contains (1, null, secret).",
            "",
        ),
        (
            &[
                "CREATE TABLE p (a int, b int, CHECK (b > 0)) PARTITION BY LIST (a)",
                "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
                "INSERT INTO p VALUES (1, 7)",
                "GRANT UPDATE ON p1 TO ann",
                "GRANT SELECT (b) ON p1 TO ann",
            ],
            "UPDATE p1 SET b = 0",
            "Failing row contains (1, 0).",
            "",
        ),
    ];
    for (before, sql, version_10, version_11) in cases {
        assert_eq!(detail(ExecutionVersion::V10, before, sql), version_10, "{sql}");
        assert_eq!(detail(ExecutionVersion::V11, before, sql), version_11, "{sql}");
    }
    // A view that shows all of the table, or that roles have nothing to do with, hides nothing.
    let whole = [
        "INSERT INTO t VALUES (1, 5, 'x')",
        "CREATE VIEW v AS SELECT * FROM t",
        "GRANT SELECT, UPDATE ON v TO ann",
    ];
    let shown = detail(ExecutionVersion::V11, &whole, "UPDATE v SET b = NULL");
    assert_eq!(shown, "Failing row contains (1, null, x).");
    let mut database = prepared(ExecutionVersion::V11, &BEFORE);
    database.run("INSERT INTO t VALUES (1, 5, 'x'); CREATE VIEW v AS SELECT a, b FROM t").expect("made");
    let error = database.run("UPDATE v SET b = NULL").expect_err("NOT NULL");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (1, null, x)."));
}

#[test]
fn truncate_asks_for_the_table_that_it_names() {
    for (version, expected) in [
        (ExecutionVersion::V10, "TRUNCATE TABLE"),
        (ExecutionVersion::V11, "42501 permission denied for table t"),
    ] {
        let mut database = prepared(version, &BEFORE);
        database.run("GRANT TRUNCATE ON t TO ann; GRANT USAGE ON SCHEMA app TO ann").expect("granted");
        assert_eq!(by(&mut database, "ann", "TRUNCATE app.t"), expected);
        database.run("GRANT TRUNCATE ON app.t TO ann").expect("granted");
        assert_eq!(by(&mut database, "ann", "TRUNCATE app.t"), "TRUNCATE TABLE");
    }
}

#[test]
fn privileges_on_columns_follow_what_they_are_on() {
    let columns = |database: &Database, relation: &str| {
        let roles = &database.library.catalog().roles;
        roles.columns_of(relation).map(|(column, _)| column.to_string()).collect::<Vec<_>>()
    };
    let parted = [
        "CREATE TABLE p (a int, b int, c int) PARTITION BY LIST (a)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1)",
        "GRANT SELECT (b), UPDATE (c) ON p1 TO ann",
    ];
    for (version, moved, renamed, dropped) in [
        (ExecutionVersion::V10, &[][..], &["c"][..], &[][..]),
        (ExecutionVersion::V11, &["b"], &["c", "d"], &["d"]),
    ] {
        let mut database = prepared(version, &BEFORE);
        database
            .run("GRANT SELECT (b) ON t TO ann; ALTER TABLE t RENAME TO u; DROP TABLE app.t")
            .expect("renamed");
        database.run("ALTER TABLE u SET SCHEMA app").expect("moved");
        assert_eq!(columns(&database, "app.u"), moved, "{version}");
        assert!(columns(&database, "u").is_empty(), "{version}");
        parted.iter().for_each(|script| drop(database.run(script).expect("made")));
        database.run("ALTER TABLE p RENAME COLUMN b TO d").expect("renamed");
        assert_eq!(columns(&database, "p1"), renamed, "{version}");
        database.run("ALTER TABLE p DROP COLUMN c").expect("dropped");
        assert_eq!(columns(&database, "p1"), dropped, "{version}");
    }
}

#[test]
fn a_grant_that_changes_nothing_leaves_nothing() {
    for (version, entries) in [(ExecutionVersion::V10, 1), (ExecutionVersion::V11, 0)] {
        let mut database = prepared(version, &BEFORE);
        database.run("REVOKE SELECT ON t FROM bob").expect("there is none");
        assert_eq!(database.library.catalog().roles.grants.len(), entries, "{version}");
    }
}
