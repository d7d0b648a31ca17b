//! The real psql against a gateway in front of a database in memory: its backslash commands, the history, the session.

mod fake;

use fake::{Fake, serve};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What psql prints for `commands`, each given with `-c`.
fn psql(port: u16, commands: &[&str]) -> String {
    psql_with("", port, commands)
}

/// The same with these `PGOPTIONS`.
fn psql_with(options: &str, port: u16, commands: &[&str]) -> String {
    let mut psql = Command::new("psql");
    psql.args([
        "-X",
        "-q",
        "-P",
        "pager=off",
        "-h",
        "127.0.0.1",
        "-U",
        "ada",
        "-p",
        &port.to_string(),
        "-d",
        "any",
    ]);
    psql.env("PGOPTIONS", options)
        .env("PGCONNECT_TIMEOUT", "10")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    commands.iter().for_each(|command| {
        psql.args(["-c", command]);
    });
    let output = psql.output().expect("psql runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

/// Runs each command and compares what psql prints, without regard to trailing spaces.
async fn check(cases: Vec<(&'static str, &'static str)>) {
    if !test_machine::required("psql") {
        return;
    }
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(fake).await;
    let commands: Vec<&'static str> = cases.iter().map(|(command, _)| *command).collect();
    let outputs: Vec<String> =
        tokio::task::spawn_blocking(move || commands.iter().map(|command| psql(port, &[command])).collect())
            .await
            .expect("no panic");
    for ((command, expected), output) in cases.iter().zip(outputs) {
        let plain = |text: &str| {
            text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(plain(&output), plain(expected), "{command}\n{output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_listed_and_described() {
    const TABLES: &str = r#"
          List of relations
 Schema |   Name   | Type  |  Owner
--------+----------+-------+---------
 public | Log      | table | entente
 public | accounts | table | entente
(2 rows)"#;
    check(vec![
        (r"\d", TABLES),
        (r"\dt", TABLES),
        (
            r"\d accounts",
            r#"
                                 Table "public.accounts"
 Column  |           Type           | Collation | Nullable |           Default
---------+--------------------------+-----------+----------+-----------------------------
 id      | bigint                   |           | not null |
 owner   | character varying(64)    |           | not null | 'nobody'::character varying
 balance | numeric(12,2)            |           |          | 0
 active  | boolean                  |           |          | true
 rate    | double precision         |           |          |
 number  | integer                  |           |          |
 note    | text                     |           |          |
 changed | timestamp with time zone |           |          | now()
Indexes:
    "accounts_pkey" PRIMARY KEY, btree (id)
Check constraints:
    "accounts_balance_check" CHECK (balance >= 0)"#,
        ),
        (
            r#"\d "Log""#,
            r#"
               Table "public.Log"
 Column | Type | Collation | Nullable | Default
--------+------+-----------+----------+---------
 line   | text |           |          |
Triggers:
    noted AFTER INSERT OR UPDATE OF line ON "Log" FOR EACH ROW WHEN (new.line <> '') EXECUTE FUNCTION note('it''s')
Disabled user triggers:
    summary AFTER DELETE ON "Log" REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note('it''s')"#,
        ),
        (r"\d missing", ""),
        (
            r"\di",
            r#"
                  List of relations
 Schema |     Name      | Type  |  Owner  |  Table
--------+---------------+-------+---------+----------
 public | accounts_pkey | index | entente | accounts
(1 row)"#,
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_session_alone_has_is_listed_and_described() {
    let (port, _) = serve(Arc::new(Fake::default())).await;
    let commands = [
        "CREATE TEMP TABLE t (a int)",
        "BEGIN; CREATE TABLE in_block (a int)",
        r"\d t",
        r"\d in_block",
        "COMMIT",
    ];
    let shown = tokio::task::spawn_blocking(move || psql(port, &commands)).await.expect("psql runs");
    // The number is that of the process.
    assert!(
        shown.contains(" Table \"pg_temp_") && shown.contains("\"t_pkey\" PRIMARY KEY, btree (a)"),
        "{shown}"
    );
    assert!(
        shown.contains(" Table \"public.in_block\"") && shown.contains("\"in_block_pkey\" PRIMARY KEY"),
        "{shown}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn procedures_schemas_databases_and_roles_are_listed() {
    check(vec![
        (
            r"\df",
            r#"
                                                        List of functions
 Schema |     Name     | Result data type |                              Argument data types                               | Type
--------+--------------+------------------+--------------------------------------------------------------------------------+------
 public | send_payment |                  | IN source bigint, IN target bigint, IN amount numeric, INOUT left_over numeric | proc
(1 row)"#,
        ),
        (
            r"\sf send_payment",
            r#"
CREATE OR REPLACE PROCEDURE public.send_payment(IN source bigint, IN target bigint, IN amount numeric, INOUT left_over numeric)
 LANGUAGE plpgsql
AS $procedure$
BEGIN
  UPDATE accounts SET balance = balance - amount WHERE id = source;
END
$procedure$"#,
        ),
        (
            r"\dn",
            r#"
  List of schemas
  Name   |  Owner
---------+---------
 entente | entente
 public  | entente
(2 rows)"#,
        ),
        (
            r"\l",
            r#"
                                          List of databases
  Name   |  Owner  | Encoding | Collate |  Ctype  | ICU Locale | Locale Provider | Access privileges
---------+---------+----------+---------+---------+------------+-----------------+-------------------
 entente | entente | UTF8     | C       | C.UTF-8 |            | libc            |
(1 row)"#,
        ),
        (
            r"\du",
            r#"
                       List of roles
 Role name |             Attributes             | Member of
-----------+------------------------------------+-----------
 entente   | Superuser, Create role, Bypass RLS | {}"#,
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_and_the_session_are_asked_with_sql() {
    check(vec![
        (
            "select height, proposer, transactions from entente.blocks order by height desc limit 2",
            r#"
 height | proposer | transactions
--------+----------+--------------
 150000 | org0     |            3
 149999 | org3     |            3
(2 rows)"#,
        ),
        (
            "select index, organisation, call, outcome, sqlstate from entente.transactions where height = 7",
            r#"
 index | organisation |          call           |  outcome  | sqlstate
-------+--------------+-------------------------+-----------+----------
     2 | org2         | send_payment(7, 2, 300) | aborted   | P0001
     1 | org1         | send_payment(7, 1, 300) | committed |
     0 | org0         | send_payment(7, 0, 300) | committed |
(3 rows)"#,
        ),
        (
            "select organisation, is_this_node, height from entente.nodes",
            r#"
 organisation | is_this_node | height
--------------+--------------+--------
 org0         | f            | 150000
 org1         | t            | 149999
 org2         | f            | 149998
 org3         | f            |
(4 rows)"#,
        ),
        (
            "select current_user, current_database(), current_setting('TimeZone')",
            r#"
 current_user | current_database | current_setting
--------------+------------------+-----------------
 ada          | entente          | UTC
(1 row)"#,
        ),
        (
            "select column_name, data_type, is_nullable from information_schema.columns where table_name = 'Log'",
            r#"
 column_name | data_type | is_nullable
-------------+-----------+-------------
 line        | text      | YES
(1 row)"#,
        ),
        (
            "select * from entente.nothing",
            r#"
ERROR:  relation "entente.nothing" does not exist
LINE 1: select * from entente.nothing
                      ^"#,
        ),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_the_start_are_set_or_refused() {
    const CASES: [(&str, &str, &str); 13] = [
        ("-c search_path=a,b", "SHOW search_path", "a,b"),
        ("--search-path=a", "SHOW search_path", "a"),
        (r"-csearch_path=a,\ b -c lock_timeout=5", "SHOW search_path", "a, b"),
        ("-c my.own=1", "SHOW my.own", "1"),
        ("-c TimeZone=asia/tokyo", "SHOW TimeZone", "Asia/Tokyo"),
        ("-c TimeZone=Nowhere", "SELECT 1", "FATAL:  invalid value for parameter \"TimeZone\": \"Nowhere\""),
        ("-c TimeZone=-3.5", "RESET TIME ZONE; SHOW TIME ZONE", "<-03:30>+03:30"),
        ("-c DateStyle=German", "SHOW DateStyle", "German, DMY"),
        (
            "-c IntervalStyle=nonsense",
            "SELECT 1",
            "FATAL:  invalid value for parameter \"IntervalStyle\": \"nonsense\"",
        ),
        ("-c nonsense=1", "SELECT 1", "FATAL:  unrecognized configuration parameter \"nonsense\""),
        ("-c search_path", "SELECT 1", "FATAL:  -c search_path requires a value"),
        ("-B 100", "SELECT 1", "FATAL:  invalid command-line argument for server process: -B"),
        (
            "-c lock_timeout=1 -c server_version=16",
            "SELECT 1",
            "FATAL:  parameter \"server_version\" cannot be changed",
        ),
    ];
    if !test_machine::required("psql") {
        return;
    }
    let (port, _) = serve(Arc::new(Fake::default())).await;
    let run = move || CASES.map(|(options, command, _)| psql_with(options, port, &[command]));
    let outputs = tokio::task::spawn_blocking(run).await.expect("no panic");
    for ((options, _, expected), output) in CASES.into_iter().zip(outputs) {
        assert!(output.contains(expected), "{options}: {output}");
    }
}
