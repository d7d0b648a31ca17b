//! What is written through views: WITH CHECK OPTION and INSTEAD OF triggers, which version 10 knows, and how version 9 refuses them.

mod support;

use support::{Database, prepared, shown};
use types::{ExecutionVersion, SqlError};

const TABLES: &[&str] = &[
    "CREATE TABLE t (a integer PRIMARY KEY, d date, s text)",
    "CREATE VIEW v AS SELECT a, d, s FROM t WHERE a > 0",
    "CREATE VIEW counted AS SELECT count(*) AS n FROM t",
    "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
];

#[test]
fn version_9_refuses_what_version_10_knows() {
    let cases = [
        (
            "CREATE VIEW w AS SELECT a FROM t WHERE a > 1 WITH CHECK OPTION",
            "0A000 WITH CHECK OPTION is not supported",
            "CREATE VIEW",
        ),
        (
            "CREATE VIEW w WITH (check_option = local) AS SELECT a FROM t",
            "0A000 an option of CREATE VIEW is not supported",
            "CREATE VIEW",
        ),
        ("ALTER VIEW v SET (check_option = local)", "42601", "ALTER VIEW"),
        ("ALTER VIEW v RESET (check_option)", "42601", "ALTER VIEW"),
        (
            "CREATE TRIGGER i INSTEAD OF INSERT ON v FOR EACH ROW EXECUTE FUNCTION f()",
            "0A000 an INSTEAD OF trigger is not supported",
            "CREATE TRIGGER",
        ),
        (
            "CREATE TRIGGER i INSTEAD OF INSERT ON v FOR EACH STATEMENT EXECUTE FUNCTION f()",
            "0A000 an INSTEAD OF trigger is not supported",
            "0A000 INSTEAD OF triggers must be FOR EACH ROW",
        ),
        (
            "DROP TRIGGER i ON v",
            "42809 \"v\" is not a table",
            "42704 trigger \"i\" for table \"v\" does not exist",
        ),
    ];
    for (sql, version_9, version_10) in cases {
        let found = shown(prepared(ExecutionVersion::V9, TABLES).run(sql));
        assert!(found.starts_with(version_9), "{sql}: {found}");
        assert_eq!(shown(prepared(ExecutionVersion::V10, TABLES).run(sql)), version_10, "{sql}");
        let mut over = prepared(ExecutionVersion::V9, TABLES);
        over.go_over_to(ExecutionVersion::V10);
        assert_eq!(shown(over.run(sql)), version_10, "{sql}, gone over");
    }
}

fn error(database: &mut Database, sql: &str) -> SqlError {
    database.run(sql).expect_err(sql)
}

#[test]
fn a_row_that_the_view_would_not_show_is_said_with_its_values() {
    let mut database = prepared(ExecutionVersion::V10, TABLES);
    database.run("CREATE VIEW w AS SELECT s, a FROM v WHERE a < 9 WITH CHECK OPTION").expect("a view");
    let found = error(&mut database, "INSERT INTO w VALUES ('x', 9)");
    assert_eq!(found.state.to_string(), "44000");
    assert_eq!(found.message, "new row violates check option for view \"w\"");
    assert_eq!(found.detail.as_deref(), Some("Failing row contains (9, null, x)."));
    let found =
        error(&mut database, "CREATE VIEW x AS SELECT n FROM counted LIMIT 1 WITH LOCAL CHECK OPTION");
    assert_eq!(found.message, "WITH CHECK OPTION is supported only on automatically updatable views");
    let hint = "Views containing LIMIT or OFFSET are not automatically updatable.";
    assert_eq!(found.hint.as_deref(), Some(hint));
    let found = error(&mut database, "CREATE VIEW x WITH (check_option = 1) AS SELECT a FROM t");
    assert_eq!(found.message, "invalid value for enum option \"check_option\": 1");
    assert_eq!(found.detail.as_deref(), Some("Valid values are \"local\" and \"cascaded\"."));
    let found = error(
        &mut database,
        "CREATE VIEW x AS SELECT a FROM t WHERE a <= (SELECT count(*) FROM t) WITH CHECK OPTION",
    );
    let message = "CHECK OPTION where the condition of the view queries its table again is not supported";
    assert_eq!(found.message, message);
}

#[test]
fn the_condition_of_a_view_means_the_same_in_every_session() {
    let mut database = prepared(ExecutionVersion::V10, TABLES);
    database
        .run("CREATE VIEW early AS SELECT a, d FROM t WHERE d < '2026-02-01' WITH CHECK OPTION")
        .expect("a view");
    database
        .run("CREATE VIEW plain AS SELECT a, d FROM t WHERE d < '03/02/2026' WITH CHECK OPTION")
        .expect("a view");
    database
        .run("SET DateStyle TO 'ISO, DMY'; INSERT INTO early VALUES (1, '31/01/2026')")
        .expect("in January");
    let late = "SET DateStyle TO 'ISO, DMY'; INSERT INTO early VALUES (2, '01/02/2026')";
    assert_eq!(error(&mut database, late).message, "new row violates check option for view \"early\"");
    // The second of March, whatever the session calls it.
    let middle = "SET DateStyle TO 'ISO, DMY'; INSERT INTO plain VALUES (3, '15/02/2026')";
    assert_eq!(shown(database.run(middle)), "INSERT 0 1");
}

#[test]
fn policies_of_the_table_come_before_the_view() {
    let mut database = prepared(
        ExecutionVersion::V10,
        &[
            "CREATE TABLE doc (id integer PRIMARY KEY, owner text, level integer)",
            "CREATE VIEW low AS SELECT id, owner, level FROM doc WHERE level < 5 WITH CHECK OPTION",
            "CREATE ROLE ann LOGIN",
            "GRANT ALL ON doc, low TO ann",
            "ALTER TABLE doc ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY own ON doc USING (owner = current_user)",
        ],
    );
    for (sql, expected) in [
        ("INSERT INTO low VALUES (1, 'ann', 1)", None),
        (
            "INSERT INTO low VALUES (2, 'bob', 9)",
            Some("new row violates row-level security policy for table \"doc\""),
        ),
        ("INSERT INTO low VALUES (2, 'ann', 9)", Some("new row violates check option for view \"low\"")),
        ("UPDATE low SET level = 5", Some("new row violates check option for view \"low\"")),
        ("UPDATE low SET level = 4", None),
    ] {
        let found = database.act("ann", sql).err();
        assert_eq!(found.as_ref().map(|error| error.message.as_str()), expected, "{sql}");
        // It may be one that policies hide.
        assert_eq!(found.and_then(|error| error.detail), None, "{sql}");
    }
}

/// A view of two tables whose trigger writes both.
fn joined() -> Database {
    prepared(
        ExecutionVersion::V10,
        &[
            "CREATE TABLE one (id integer PRIMARY KEY, x integer)",
            "CREATE TABLE two (id integer PRIMARY KEY, y integer)",
            "INSERT INTO one VALUES (1, 10), (2, 20); INSERT INTO two VALUES (1, 100), (2, 200)",
            "CREATE VIEW both AS SELECT one.id, x, y FROM one JOIN two ON one.id = two.id",
            "CREATE FUNCTION write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
                IF TG_OP <> 'INSERT' THEN
                    DELETE FROM one WHERE id = OLD.id; DELETE FROM two WHERE id = OLD.id;
                END IF;
                IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
                INSERT INTO one VALUES (NEW.id, NEW.x); INSERT INTO two VALUES (NEW.id, NEW.y);
                RETURN NEW; END $$",
            "CREATE TRIGGER w INSTEAD OF INSERT OR UPDATE OR DELETE ON both FOR EACH ROW EXECUTE FUNCTION write()",
        ],
    )
}

#[test]
fn who_changes_a_view_with_triggers_needs_privileges_on_the_view_alone() {
    let mut database = joined();
    database.run("CREATE ROLE ann LOGIN").expect("a role");
    for (sql, privileges) in [
        ("INSERT INTO both VALUES (3, 30, 300)", "INSERT"),
        ("UPDATE both SET x = x + 1 WHERE id = 3", "UPDATE, SELECT"),
        ("DELETE FROM both WHERE id = 3", "DELETE, SELECT"),
    ] {
        let error = database.act("ann", sql).expect_err(sql);
        assert_eq!(error.message, "permission denied for view both", "{sql}");
        database.run(&format!("GRANT {privileges} ON both TO ann")).expect("granted");
        database.act("ann", sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        database.run(&format!("REVOKE {privileges} ON both FROM ann")).expect("revoked");
    }
    assert_eq!(database.rows("SELECT * FROM both ORDER BY id"), [["1", "10", "100"], ["2", "20", "200"]]);
}

#[test]
fn functions_change_views_with_triggers_too() {
    let mut database = joined();
    let sql = "CREATE FUNCTION shift(n integer) RETURNS integer LANGUAGE plpgsql AS $$ DECLARE found integer; total integer := 0; BEGIN
            FOR i IN 1..n LOOP
                UPDATE both SET id = both.id + 10, y = y + 1 WHERE id = i RETURNING y INTO found;
                total := total + found;
            END LOOP;
            INSERT INTO both SELECT id + 100, x, y FROM both;
            RETURN total; END $$";
    database.run(sql).expect("a function");
    assert_eq!(database.rows("SELECT shift(2)"), [["302"]]);
    let rows = database.rows("SELECT * FROM both ORDER BY id");
    assert_eq!(rows, [["11", "10", "101"], ["12", "20", "201"], ["111", "10", "101"], ["112", "20", "201"]]);
}

#[test]
fn triggers_of_views_follow_names_and_go_with_their_functions() {
    let mut database = joined();
    database.run("ALTER FUNCTION write RENAME TO put").expect("another name");
    database.run("CREATE SCHEMA s").expect("a schema");
    database.run("ALTER FUNCTION put SET SCHEMA s").expect("another schema");
    assert_eq!(shown(database.run("INSERT INTO both VALUES (3, 30, 300)")), "INSERT 0 1");
    let error = error(&mut database, "DROP FUNCTION s.put()");
    let detail = "trigger w on view both depends on function s.put()";
    assert_eq!(error.detail.as_deref(), Some(detail));
    database.run("DROP FUNCTION s.put() CASCADE").expect("with the trigger");
    let message = "cannot insert into view \"both\"";
    assert_eq!(
        database.run("INSERT INTO both VALUES (4, 40, 400)").expect_err("no trigger").message,
        message
    );
}
