//! Roles and privileges: what a role may do is what was granted, by PostgreSQL 15's rules and with its messages.

mod support;

use support::Database;
use types::{Payload, Principal, SqlError, Value};

/// A ledger with tables, a view and routines; `clerk` and `reader` are the first organisation's, `stranger` the second's.
fn database() -> Database {
    let mut database = Database::with(&[
        "CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, note text)",
        "CREATE TABLE secret (id bigint PRIMARY KEY, word text)",
        "CREATE VIEW words AS SELECT word FROM secret",
        "CREATE PROCEDURE pay(a bigint, b bigint, n bigint) LANGUAGE plpgsql AS $$ BEGIN
            UPDATE account SET balance = balance - n WHERE id = a;
            UPDATE account SET balance = balance + n WHERE id = b; END $$",
        "CREATE PROCEDURE trusted_pay(a bigint, b bigint, n bigint) LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
            CALL pay(a, b, n); END $$",
        "CREATE FUNCTION total() RETURNS bigint LANGUAGE sql AS 'SELECT sum(balance)::bigint FROM account'",
        "CREATE PROCEDURE run(sql text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; END $$",
        "CREATE ROLE clerk LOGIN",
        "CREATE ROLE reader",
    ]);
    database.run("INSERT INTO account VALUES (1, 100, 'a'), (2, 100, 'b')").expect("rows");
    database.run("INSERT INTO secret VALUES (1, 'plugh')").expect("rows");
    database.principal = Principal::new(1, "");
    database.run("CREATE ROLE stranger LOGIN").expect("another organisation's");
    database.principal = Principal::default();
    database
}

fn clerk(database: &mut Database, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
    database.act("clerk", sql)
}

/// What is missing, as the message says it.
fn denied(database: &mut Database, sql: &str) -> String {
    let error = clerk(database, sql).expect_err(sql);
    assert_eq!(error.state.to_string(), "42501", "{sql}: {error:?}");
    error.message.strip_prefix("permission denied for ").expect("which").to_string()
}

#[test]
fn every_kind_of_use_needs_its_privilege() {
    for (sql, needed) in [
        ("SELECT balance FROM account", "SELECT"),
        ("SELECT 1 FROM account", "SELECT"),
        ("SELECT (SELECT max(balance) FROM account)", "SELECT"),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM account)", "SELECT"),
        ("WITH a AS (SELECT * FROM account) SELECT 1 FROM a", "SELECT"),
        ("SELECT 1 UNION ALL SELECT id FROM account", "SELECT"),
        ("INSERT INTO account VALUES (3, 1, 'c')", "INSERT"),
        ("INSERT INTO account VALUES (4, 1, 'c') RETURNING id", "INSERT, SELECT"),
        ("INSERT INTO account VALUES (1, 1, 'c') ON CONFLICT DO NOTHING", "INSERT"),
        (
            "INSERT INTO account VALUES (1, 1, 'c') ON CONFLICT (id) DO UPDATE SET note = 'd'",
            "INSERT, SELECT, UPDATE",
        ),
        ("UPDATE account SET note = 'x'", "UPDATE"),
        ("UPDATE account SET balance = -1, note = lower('Y')", "UPDATE"),
        ("UPDATE account SET note = 'x' WHERE id = 1", "SELECT, UPDATE"),
        ("UPDATE account SET balance = balance + 1", "SELECT, UPDATE"),
        ("DELETE FROM account WHERE id = 9", "SELECT, DELETE"),
        ("DELETE FROM account", "DELETE"),
        ("EXPLAIN SELECT * FROM account", "SELECT"),
        ("DO 'BEGIN PERFORM 1 FROM account; END'", "SELECT"),
        ("CALL pay(1, 2, 5)", "SELECT, UPDATE"),
        ("SELECT total()", "SELECT"),
        ("TRUNCATE account", "TRUNCATE"),
    ] {
        let mut database = database();
        assert_eq!(denied(&mut database, sql), "table account", "{sql}");
        let all: Vec<&str> = needed.split(", ").collect();
        for missing in &all {
            database.run("REVOKE ALL ON account FROM clerk").expect("revoked");
            for privilege in all.iter().filter(|privilege| *privilege != missing) {
                database.run(&format!("GRANT {privilege} ON account TO clerk")).expect("granted");
            }
            assert_eq!(denied(&mut database, sql), "table account", "{sql} without {missing}");
        }
        database.run(&format!("GRANT {needed} ON TABLE account TO clerk")).expect("granted");
        clerk(&mut database, sql).unwrap_or_else(|error| panic!("{sql} with {needed}: {error:?}"));
    }
}

#[test]
fn views_and_security_definer_need_no_more_than_themselves() {
    let mut database = database();
    assert_eq!(denied(&mut database, "SELECT * FROM words"), "view words");
    database.run("GRANT SELECT ON words TO clerk").expect("granted");
    assert_eq!(clerk(&mut database, "SELECT * FROM words"), Ok(vec![vec!["plugh".to_string()]]));
    assert_eq!(denied(&mut database, "SELECT * FROM words, secret"), "table secret");

    // The inner procedure runs with the administrator's rights, and nothing behind it does.
    clerk(&mut database, "CALL trusted_pay(1, 2, 5)").expect("everybody may call it");
    assert_eq!(database.rows("SELECT balance FROM account ORDER BY id"), [["95"], ["105"]]);
    assert_eq!(denied(&mut database, "CALL trusted_pay(1, 2, 5); SELECT * FROM secret"), "table secret");
    database
        .run("REVOKE EXECUTE ON PROCEDURE trusted_pay(bigint, bigint, bigint) FROM PUBLIC")
        .expect("revoked");
    assert_eq!(denied(&mut database, "CALL trusted_pay(1, 2, 5)"), "procedure trusted_pay");
    database.run("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC").expect("revoked");
    assert_eq!(denied(&mut database, "SELECT total()"), "function total");
    assert_eq!(denied(&mut database, "CALL pay(1, 2, 3)"), "procedure pay");
}

#[test]
fn temporary_tables_give_nothing_that_the_role_may_not_read() {
    let mut database = database();
    for sql in [
        "CREATE TEMPORARY TABLE copy AS SELECT * FROM secret",
        "SELECT * INTO TEMPORARY copy FROM secret",
        "CREATE TEMPORARY TABLE copy AS SELECT total() AS t FROM secret",
    ] {
        assert_eq!(denied(&mut database, sql), "table secret", "{sql}");
    }
    clerk(&mut database, "CREATE TEMPORARY TABLE own (id int PRIMARY KEY, n int)")
        .expect("it is the session's");
    assert_eq!(denied(&mut database, "INSERT INTO own SELECT id FROM secret"), "table secret");
    assert_eq!(denied(&mut database, "SELECT * FROM own, secret"), "table secret");
    assert_eq!(denied(&mut database, "UPDATE own SET n = (SELECT max(id) FROM secret)"), "table secret");
    for sql in ["INSERT INTO own VALUES (1)", "UPDATE own SET n = 2", "DELETE FROM own", "DROP TABLE own"] {
        clerk(&mut database, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
}

#[test]
fn what_is_bound_when_it_runs_is_held_against_the_role_then() {
    let mut database = database();
    assert_eq!(denied(&mut database, "CALL run('SELECT * FROM secret')"), "table secret");
    assert_eq!(denied(&mut database, "CALL run('UPDATE account SET note = NULL')"), "table account");
    clerk(&mut database, "CALL run('SELECT 1')").expect("nothing is needed");
}

#[test]
fn rows_that_a_client_sends_and_calls_need_privileges_too() {
    let mut database = database();
    let insert = || Payload::Insert {
        table: "account".into(),
        columns: vec!["id".into(), "balance".into()],
        rows: vec![vec![Value::BigInt(7), Value::BigInt(1)]],
    };
    let call = || Payload::Call { procedure: "pay".into(), arguments: [1, 2, 3].map(Value::BigInt).to_vec() };
    let run = |database: &mut Database, payload: Payload| {
        database.principal = Principal::new(0, "clerk");
        let result = database.execute(payload).map_err(|error| error.message);
        database.principal = Principal::default();
        result.map(drop)
    };
    for payload in [insert(), call()] {
        assert_eq!(run(&mut database, payload), Err("permission denied for table account".to_string()));
    }
    database.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC").expect("granted");
    for payload in [insert(), call()] {
        assert_eq!(run(&mut database, payload), Ok(()));
    }
}

#[test]
fn memberships_hand_privileges_on_until_they_end() {
    let mut database = database();
    database.run("GRANT SELECT ON account TO reader; GRANT reader TO clerk").expect("granted");
    clerk(&mut database, "SELECT * FROM account").expect("by the group");
    let error = database.error("GRANT clerk TO reader");
    assert_eq!(error.message, "role \"clerk\" is a member of role \"reader\"");
    assert_eq!(database.error("DROP ROLE reader").state.to_string(), "2BP01");
    database.run("REVOKE reader FROM clerk").expect("revoked");
    assert_eq!(denied(&mut database, "SELECT * FROM account"), "table account");
    database.run("REVOKE SELECT ON account FROM reader; DROP ROLE reader").expect("nothing depends on it");
    // A session of somebody who has been dropped meanwhile.
    database.run("GRANT SELECT ON account TO PUBLIC").expect("granted");
    clerk(&mut database, "SELECT * FROM account").expect("by PUBLIC");
    database.run("DROP ROLE clerk").expect("nothing depends on it");
    let error = clerk(&mut database, "SELECT * FROM account").expect_err("no role");
    assert!(error.hint.expect("a hint").contains("has been dropped"));
}

#[test]
fn privileges_follow_what_they_are_about() {
    let mut database = database();
    database.run("GRANT SELECT ON account TO clerk").expect("granted");
    database.run("ALTER TABLE account ADD COLUMN more integer DEFAULT 1").expect("altered");
    clerk(&mut database, "SELECT more FROM account").expect("the table is the same");
    database.run("ALTER TABLE account RENAME TO ledger").expect("nothing but bodies names it");
    clerk(&mut database, "SELECT more FROM ledger").expect("the table is the same");
    database.run("DROP TABLE ledger; CREATE TABLE ledger (id int PRIMARY KEY)").expect("another one");
    assert_eq!(denied(&mut database, "SELECT * FROM ledger"), "table ledger");
}

#[test]
fn only_administrators_change_the_schema_and_only_their_own_roles() {
    let mut database = database();
    for sql in [
        "CREATE TABLE t (id int)",
        "DROP TABLE account",
        "CREATE ROLE another",
        "ALTER TABLE account ADD COLUMN x int",
        "CREATE VIEW v AS SELECT 1 AS a",
    ] {
        assert_eq!(denied(&mut database, sql), "schema public", "{sql}");
    }
    assert_eq!(denied(&mut database, "GRANT SELECT ON secret TO clerk"), "table secret");
    for sql in [
        "DROP ROLE stranger",
        "ALTER ROLE stranger NOLOGIN",
        "GRANT reader TO stranger",
        "GRANT stranger TO clerk",
    ] {
        let error = database.error(sql);
        assert_eq!(
            error.message, "permission denied: role \"stranger\" belongs to another organisation",
            "{sql}"
        );
    }
    // What is there for everybody, everybody's administrators may open to everybody's roles.
    database.run("GRANT SELECT ON account TO stranger").expect("granted");
}

#[test]
fn mistakes_have_postgresqls_errors() {
    let mut database = database();
    for (sql, state, message) in [
        ("CREATE ROLE clerk", "42710", "role \"clerk\" already exists"),
        ("CREATE ROLE public", "42939", "role name \"public\" is reserved"),
        ("CREATE USER entente", "42939", "role name \"entente\" is reserved"),
        ("DROP ROLE nobody", "42704", "role \"nobody\" does not exist"),
        ("GRANT SELECT ON account TO nobody", "42704", "role \"nobody\" does not exist"),
        ("GRANT SELECT ON nothing TO clerk", "42P01", "relation \"nothing\" does not exist"),
        ("GRANT EXECUTE ON account TO clerk", "0LP01", "invalid privilege type EXECUTE for relation"),
        ("GRANT SELECT ON FUNCTION total TO clerk", "0LP01", "invalid privilege type SELECT for function"),
        (
            "GRANT EXECUTE ON FUNCTION nothing TO clerk",
            "42883",
            "could not find a function named \"nothing\"",
        ),
        ("GRANT WINGS ON account TO clerk", "42601", "unrecognized privilege type \"wings\""),
        ("GRANT SELECT ON account clerk", "42601", "syntax error at or near \"clerk\""),
        (
            "GRANT SELECT (id, nothing) ON account TO clerk",
            "42703",
            "column \"nothing\" of relation \"account\" does not exist",
        ),
        ("GRANT reader TO clerk WITH ADMIN OPTION", "0A000", "WITH ADMIN OPTION is not supported"),
        ("CREATE ROLE x SUPERUSER", "0A000", "SUPERUSER of a role is not supported"),
        ("CREATE ROLE x PASSWORD 'p'", "0A000", "a password on the ledger of a role is not supported"),
        ("GRANT USAGE ON SCHEMA nowhere TO clerk", "3F000", "schema \"nowhere\" does not exist"),
        ("CREATE ROLE x WINGS", "42601", "syntax error at or near \"WINGS\""),
    ] {
        let error = database.error(sql);
        assert_eq!((error.state.to_string().as_str(), error.message.as_str()), (state, message), "{sql}");
    }
    database.run("DROP ROLE IF EXISTS nobody; DROP USER IF EXISTS nobody").expect("not there");
}

#[test]
fn aggregates_of_the_ledger_need_execute() {
    let mut database = database();
    let create = "CREATE AGGREGATE tally (bigint) (SFUNC = int8pl, STYPE = bigint, INITCOND = '0')";
    database.run(create).expect("an aggregate");
    database.run("GRANT SELECT ON account TO clerk").expect("a privilege");
    let query = "SELECT tally(balance) FROM account";
    assert_eq!(clerk(&mut database, query), Ok(vec![vec!["200".to_string()]]));
    database.run("REVOKE EXECUTE ON FUNCTION tally(bigint) FROM PUBLIC").expect("a privilege less");
    let error = clerk(&mut database, query).expect_err("refused");
    assert_eq!(error.state.to_string(), "42501");
    assert_eq!(error.message, "permission denied for aggregate tally");
    database.run("GRANT EXECUTE ON FUNCTION tally(bigint) TO clerk").expect("a privilege more");
    assert!(clerk(&mut database, query).is_ok());
    let error = clerk(&mut database, create).expect_err("no administrator");
    assert_eq!(error.state.to_string(), "42501");
}

#[test]
fn what_is_in_a_schema_needs_usage_of_it() {
    let mut database = database();
    for sql in [
        "CREATE SCHEMA app",
        "CREATE TABLE app.item (id bigint PRIMARY KEY)",
        "CREATE FUNCTION app.counted() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM app.item'",
        "CREATE VIEW app.items AS SELECT * FROM app.item",
        "GRANT SELECT, INSERT ON app.item, app.items TO clerk",
    ] {
        database.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
    for sql in [
        "SELECT * FROM app.item",
        "SET search_path TO app;SELECT * FROM item",
        "INSERT INTO app.item VALUES (1)",
        "SELECT app.counted()",
        "SELECT * FROM app.items",
    ] {
        assert_eq!(denied(&mut database, sql), "schema app", "{sql}");
    }
    database.run("GRANT USAGE ON SCHEMA app TO clerk").expect("granted");
    clerk(&mut database, "INSERT INTO app.item VALUES (1)").expect("allowed");
    let found =
        clerk(&mut database, "SET search_path TO app;SELECT item.id, counted(), items.id FROM item, items");
    assert_eq!(found.expect("allowed"), [["1", "1", "1"]]);
    assert_eq!(denied(&mut database, "DELETE FROM app.item"), "table item");
    database.run("ALTER SCHEMA app RENAME TO program").expect("renamed");
    clerk(&mut database, "SELECT * FROM program.item").expect("grants go along");
    database.run("REVOKE ALL ON SCHEMA program FROM clerk").expect("revoked");
    assert_eq!(denied(&mut database, "SELECT * FROM program.items"), "schema program");

    database.run("CREATE SCHEMA AUTHORIZATION reader").expect("created");
    database.run("CREATE TABLE reader.own (a int)").expect("created");
    database.run("GRANT SELECT ON ALL TABLES IN SCHEMA reader TO PUBLIC").expect("granted");
    database.act("reader", "SELECT * FROM reader.own").expect("its schema");
    assert_eq!(denied(&mut database, "SELECT * FROM reader.own"), "schema reader");
    let error = database.run("DROP ROLE reader").expect_err("it has a schema");
    let detail = error.detail.unwrap_or_default();
    assert!(detail.contains("privileges for schema reader"), "{detail}");
    database.run("DROP SCHEMA reader CASCADE").expect("dropped");
    database.run("DROP ROLE reader").expect("dropped");

    database.run("REVOKE USAGE ON SCHEMA public FROM PUBLIC").expect("revoked");
    assert_eq!(denied(&mut database, "SELECT total()"), "schema public");
    for (sql, state) in [
        ("GRANT CREATE ON SCHEMA public TO clerk", "0A000"),
        ("GRANT SELECT ON SCHEMA public TO clerk", "0LP01"),
        ("GRANT USAGE ON SCHEMA nothing TO clerk", "3F000"),
        ("GRANT SELECT ON ALL TABLES IN SCHEMA nothing TO clerk", "3F000"),
        ("CREATE SCHEMA x AUTHORIZATION nobody", "42704"),
    ] {
        assert_eq!(database.run(sql).expect_err(sql).state.to_string(), state, "{sql}");
    }
}

#[test]
fn changes_of_views_and_of_sequences_need_privileges_on_these() {
    let mut database = database();
    for sql in [
        "CREATE VIEW notes AS SELECT id, note FROM account WHERE balance < 1000",
        "CREATE SEQUENCE numbers START WITH 1",
    ] {
        database.run(sql).expect(sql);
    }
    for (sql, object, grant) in [
        ("UPDATE notes SET note = 'x' WHERE id = 1", "view notes", "GRANT SELECT, UPDATE ON notes TO clerk"),
        ("DELETE FROM notes WHERE id = 2", "view notes", "GRANT DELETE ON notes TO clerk"),
        ("SELECT setval('numbers', 5)", "sequence numbers", "GRANT UPDATE ON SEQUENCE numbers TO clerk"),
    ] {
        assert_eq!(denied(&mut database, sql), object, "{sql}");
        database.run(grant).expect(grant);
        clerk(&mut database, sql).expect(sql);
    }
    assert_eq!(denied(&mut database, "SELECT note FROM account"), "table account");
    assert_eq!(clerk(&mut database, "SELECT nextval('numbers')").expect("everybody draws"), [["6"]]);
}

#[test]
fn an_owner_may_do_everything_that_can_be_granted() {
    let mut database = database();
    assert_eq!(denied(&mut database, "SELECT word FROM secret"), "table secret");
    database.run("ALTER TABLE secret OWNER TO clerk").expect("the role is there");
    clerk(&mut database, "INSERT INTO secret VALUES (2, 'xyzzy')").expect("it may");
    clerk(&mut database, "TRUNCATE secret").expect("it may");
    for (sql, state) in [
        ("ALTER TABLE secret OWNER TO nobody", "42704"),
        ("ALTER TABLE nowhere OWNER TO clerk", "42P01"),
        ("ALTER FUNCTION nothing(integer) OWNER TO clerk", "42883"),
    ] {
        assert_eq!(database.run(sql).expect_err(sql).state.to_string(), state, "{sql}");
    }
    database.run("ALTER FUNCTION total() OWNER TO CURRENT_USER").expect("an administrator");
}

#[test]
fn statements_know_who_executes_them() {
    let mut database = database();
    database.run("GRANT SELECT, INSERT, UPDATE ON account TO clerk").expect("granted");
    database.run("ALTER TABLE account ADD COLUMN who text; ALTER TABLE account ALTER COLUMN who SET DEFAULT current_user").expect("a default");
    database.run("CREATE FUNCTION asked() RETURNS text LANGUAGE sql AS 'SELECT current_user'").expect("one");
    database
        .run(
            "CREATE FUNCTION trusted() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS
             $$ BEGIN RETURN current_user || ' for ' || session_user; END $$",
        )
        .expect("one");
    database
        .run(
            "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.note := session_user; RETURN NEW; END $$;
             CREATE TRIGGER stamp BEFORE INSERT ON account FOR EACH ROW EXECUTE FUNCTION stamp()",
        )
        .expect("a trigger");
    clerk(&mut database, "INSERT INTO account (id, balance) VALUES (3, 0)").expect("granted");
    database.principal = Principal::new(1, "");
    database.run("INSERT INTO account (id, balance) VALUES (4, 0)").expect("granted");
    database.principal = Principal::default();
    let rows = database.rows("SELECT note, who FROM account WHERE id > 2 ORDER BY id");
    assert_eq!(rows, [["clerk", "clerk"], ["organisation 2", "organisation 2"]]);
    let ask = "SELECT current_user, user, session_user, asked(), trusted(), id FROM account WHERE note = current_user";
    let seen = clerk(&mut database, ask).expect("granted");
    assert_eq!(seen, [["clerk", "clerk", "clerk", "clerk", "organisation 1 for clerk", "3"]]);
    clerk(&mut database, "UPDATE account SET note = upper(current_user), balance = 5 WHERE id = 3")
        .expect("it may");
    assert_eq!(database.rows("SELECT note FROM account WHERE id = 3"), [["CLERK"]]);
}

#[test]
fn statements_know_where_names_are_looked_for() {
    let mut database = database();
    database.run("CREATE SCHEMA app").expect("a schema");
    for (sql, found) in [
        ("SELECT current_schema(), current_catalog, id FROM account WHERE id = 1", "public entente 1"),
        (
            "SET search_path TO gone, app, public; SELECT current_schema, current_schemas(true) WHERE true",
            "app {pg_catalog,app,public}",
        ),
        ("SELECT current_schemas(false), current_setting('TimeZone') WHERE true", "{public} UTC"),
        (
            "SELECT current_setting('SEARCH_PATH'), current_setting('none', true) IS NULL WHERE true",
            "public t",
        ),
        ("SET search_path TO gone; SELECT current_schema() IS NULL WHERE true", "t"),
    ] {
        let rows = database.rows(sql);
        assert_eq!(rows.iter().map(|row| row.join(" ")).collect::<Vec<_>>(), [found], "{sql}");
    }
    for (sql, error) in [
        (
            "SELECT current_setting('none') FROM account",
            "42704 unrecognized configuration parameter \"none\"",
        ),
        (
            "SELECT current_setting('app.user', true) FROM account",
            "0A000 the session's setting \"app.user\" in a statement is not supported",
        ),
        ("SELECT current_setting(note) FROM account", "42883 function current_setting(text) does not exist"),
    ] {
        let found = database.error(sql);
        assert_eq!(format!("{} {}", found.state, found.message), error, "{sql}");
    }
}
