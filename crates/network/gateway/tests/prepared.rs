//! PREPARE, EXECUTE and DEALLOCATE against a gateway in front of a database in memory. Codes, messages and positions are those
//! of PostgreSQL 15.

mod fake;

use fake::{Fake, started};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Payload, SessionStep, Value};

/// What a query string gives: the values of its rows, `;` behind each statement, or the error with its position.
async fn run(client: &Client, sql: &str) -> String {
    match client.simple_query(sql).await {
        Ok(messages) => {
            let shown = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
                    Some(format!("{} ", values.collect::<Vec<_>>().join("|")))
                }
                SimpleQueryMessage::CommandComplete(_) => Some(";".to_string()),
                _ => None,
            };
            messages.iter().filter_map(shown).collect()
        }
        Err(error) => {
            let error = error.as_db_error().expect("an answer");
            let at = match error.position() {
                Some(ErrorPosition::Original(at)) => format!(" at {at}"),
                _ => String::new(),
            };
            let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{} {}{detail}{at}", error.code().code(), error.message())
        }
    }
}

async fn check(client: &Client, expected: &[(&str, &str)]) {
    for (sql, answer) in expected {
        assert_eq!(run(client, sql).await, *answer, "{sql}");
    }
}

fn payloads(fake: &Fake) -> Vec<Payload> {
    std::mem::take(&mut *fake.payloads.lock().expect("no panic"))
}

fn script(sql: &str, parameters: Vec<Value>) -> Payload {
    Payload::Script { sql: sql.to_string(), parameters }
}

fn step(sql: &str, parameters: Vec<Value>) -> SessionStep {
    SessionStep::Run { sql: sql.to_string(), parameters }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_prepared_executed_and_forgotten() {
    let (fake, client) = started().await;
    check(
        &client,
        &[
            ("PREPARE a (int, text) AS select $1, $2", ";"),
            ("EXECUTE a(1, 'x')", "1|x ;"),
            ("execute A (-2, null)", "-2|NULL ;"),
            // By the rules of assignment.
            ("EXECUTE a(2.5, 7)", "3|7 ;"),
            ("EXECUTE a('4', true)", "4|true ;"),
            ("PREPARE series AS select series 3", ";"),
            ("EXECUTE series; EXECUTE series", "1 2 3 ;1 2 3 ;"),
            ("PREPARE \"W w\" AS insert into t values ($1)", ";"),
            ("EXECUTE \"W w\"('y')", ";"),
            ("DEALLOCATE PREPARE a", ";"),
            ("EXECUTE a(1, 'x')", "26000 prepared statement \"a\" does not exist"),
            ("DEALLOCATE a", "26000 prepared statement \"a\" does not exist"),
            ("DEALLOCATE ALL", ";"),
            ("EXECUTE series", "26000 prepared statement \"series\" does not exist"),
            ("PREPARE series AS select series 1", ";"),
            ("DISCARD ALL", ";"),
            ("EXECUTE series", "26000 prepared statement \"series\" does not exist"),
        ],
    )
    .await;
    assert_eq!(payloads(&fake), [script("insert into t values ($1)", vec![Value::text("y")])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said_as_postgresql_says_it() {
    let (fake, client) = started().await;
    check(
        &client,
        &[
            ("PREPARE a(int) AS select $1", ";"),
            ("PREPARE a AS select 1", "42P05 prepared statement \"a\" already exists"),
            (
                "EXECUTE a",
                "42601 wrong number of parameters for prepared statement \"a\" (Expected 1 parameters but got 0.)",
            ),
            (
                "EXECUTE a(1, 2)",
                "42601 wrong number of parameters for prepared statement \"a\" (Expected 1 parameters but got 2.)",
            ),
            ("EXECUTE a('x')", "22P02 invalid input syntax for type integer: \"x\" at 11"),
            (
                "select 1; EXECUTE a(true)",
                "42804 parameter $1 of type boolean cannot be coerced to the expected type integer at 21",
            ),
            ("EXECUTE a((select 1))", "0A000 cannot use subquery in EXECUTE parameter at 11"),
            ("EXECUTE a(count(*))", "42803 aggregate functions are not allowed in EXECUTE parameters at 11"),
            ("EXECUTE a($1)", "42P02 there is no parameter $1"),
            (
                "EXECUTE a(writes())",
                "0A000 a function that writes in a parameter of EXECUTE is not supported",
            ),
            ("EXECUTE a(9999999999999)", "22003 integer out of range"),
            ("PREPARE b AS select missing", "42703 column \"missing\" does not exist at 21"),
            ("PREPARE b(int, nosuch) AS select $1", "42704 type \"nosuch\" does not exist at 16"),
            ("PREPARE b AS call p()", "42601 syntax error at or near \"call\" at 14"),
            ("PREPARE TRANSACTION 'x'", "0A000 PREPARE TRANSACTION is not supported"),
            ("CREATE TABLE t AS EXECUTE a(1)", "0A000 CREATE TABLE … AS EXECUTE is not supported"),
            ("EXECUTE a(1)", "1 ;"),
        ],
    )
    .await;
    // Where the statement itself fails the client has not sent the text that the error points into.
    check(&client, &[("PREPARE f AS insert into fail", ";")]).await;
    assert_eq!(
        run(&client, "EXECUTE f").await,
        "23514 new row violates check constraint (Failing row contains (1).)"
    );
    assert_eq!(payloads(&fake).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_sql_share_their_names() {
    let (_, client) = started().await;
    // What PREPARE has made is bound by messages, and the other way round.
    check(&client, &[("PREPARE a(int, text) AS select $1, $2", ";")]).await;
    let executing = client.prepare("EXECUTE a(1 + 1, 'x')").await.expect("prepared");
    assert!(executing.params().is_empty());
    let columns: Vec<&Type> = executing.columns().iter().map(|column| column.type_()).collect();
    assert_eq!(columns, [&Type::INT4, &Type::TEXT]);
    for _ in 0..2 {
        let row = client.query_one(&executing, &[]).await.expect("a row");
        assert_eq!((row.get::<_, i32>(0), row.get::<_, &str>(1)), (2, "x"));
    }
    // The driver calls its first statements s0, s1 …
    let known =
        run(&client, "SELECT name, from_sql, statement FROM pg_prepared_statements ORDER BY name").await;
    assert!(known.starts_with("a|t|PREPARE a(int, text) AS select $1, $2 s"), "{known}");
    let name =
        known.split(' ').find(|word| word.starts_with('s') && word.contains("|f|EXECUTE")).expect("it");
    let name = name.split('|').next().expect("a name").to_string();
    assert_eq!(
        run(&client, &format!("EXECUTE {name}")).await,
        "0A000 EXECUTE of a prepared EXECUTE is not supported"
    );
    let selecting = client.prepare_typed("select $1", &[Type::INT4]).await.expect("prepared");
    let known = run(
        &client,
        "SELECT name, parameter_types FROM pg_prepared_statements WHERE statement = 'select $1'",
    );
    let known = known.await;
    let (name, types) = known.split_once('|').expect("a row");
    assert_eq!(types, "{23} ;");
    assert_eq!(run(&client, &format!("EXECUTE {name}(7)")).await, "7 ;");
    assert_eq!(run(&client, &format!("PREPARE {name} AS select 1")).await[..5], *"42P05");
    assert_eq!(run(&client, &format!("DEALLOCATE {name}")).await, ";");
    let error = client.query_one(&selecting, &[&7_i32]).await.expect_err("it is gone");
    assert_eq!(error.code().map(|code| code.code()), Some("26000"));
    // Forgotten and prepared anew, it gives other rows than the driver was told of.
    check(&client, &[("DEALLOCATE a", ";"), ("PREPARE a(int, int) AS select $1, $2", ";")]).await;
    let error = client.query_one(&executing, &[]).await.expect_err("other columns");
    assert_eq!(error.code().map(|code| code.code()), Some("22P02"), "'x' is no integer");
    check(&client, &[("DEALLOCATE a", ";"), ("PREPARE a(int, text) AS insert into t values ($1, $2)", ";")])
        .await;
    let error = client.query_one(&executing, &[]).await.expect_err("no rows");
    assert_eq!(
        error.as_db_error().map(|error| error.message()),
        Some("cached plan must not change result type")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_block_values_are_part_of_the_step() {
    let (fake, client) = started().await;
    check(
        &client,
        &[
            ("BEGIN", ";"),
            ("PREPARE i(int) AS insert into t values ($1)", ";"),
            ("EXECUTE i(1)", ";"),
            ("EXECUTE i(1 + 1)", ";"),
            ("SAVEPOINT s", ";"),
            ("EXECUTE i(1, 2)", "42601 wrong number of parameters for prepared statement \"i\" (Expected 1 parameters but got 2.)"),
            ("EXECUTE i(3)", "25P02 current transaction is aborted, commands ignored until end of transaction block"),
            ("ROLLBACK TO s", ";"),
            ("EXECUTE i('3')", ";"),
            ("COMMIT", ";"),
        ],
    )
    .await;
    let number = |number| vec![Value::Integer(number)];
    let insert = "insert into t values ($1)";
    let sent = payloads(&fake);
    let [Payload::Session { steps, .. }] = sent.as_slice() else { panic!("one block: {sent:?}") };
    assert_eq!(
        *steps,
        [
            step(insert, number(1)),
            // What is not a literal is computed by every node, too.
            step("VALUES (1 + 1)", Vec::new()),
            step(insert, number(2)),
            SessionStep::Savepoint("s".to_string()),
            SessionStep::RollbackTo("s".to_string()),
            step(insert, number(3)),
        ]
    );
    // A block that is rolled back takes no prepared statement with it.
    check(&client, &[("BEGIN; PREPARE k AS select series 2; ROLLBACK", ";;;"), ("EXECUTE k", "1 2 ;")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_string_with_execute_is_one_transaction() {
    let (fake, client) = started().await;
    check(&client, &[("PREPARE i(int) AS insert into t values ($1); EXECUTE i(1); EXECUTE i(2)", ";;;")])
        .await;
    let insert = "insert into t values ($1)";
    let [Payload::Session { steps, .. }] = &payloads(&fake)[..] else { panic!("one transaction") };
    assert_eq!(*steps, [step(insert, vec![Value::Integer(1)]), step(insert, vec![Value::Integer(2)])]);
    // Nothing of it stands where a part fails, and the session is in no block afterwards.
    let failed = run(&client, "EXECUTE i(1); update t set a = 1; insert into fail; EXECUTE i(2)").await;
    assert_eq!(failed, "23514 new row violates check constraint");
    check(
        &client,
        &[
            ("EXECUTE i(5); SHOW search_path", ";\"$user\", public ;"),
            ("BEGIN; EXECUTE i(6); ROLLBACK", ";;;"),
        ],
    )
    .await;
    assert_eq!(payloads(&fake), [script(insert, vec![Value::Integer(5)])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_takes_a_prepared_statement() {
    let (_, client) = started().await;
    check(
        &client,
        &[
            ("PREPARE d(int) AS delete from t where id = $1", ";"),
            ("EXPLAIN EXECUTE d(1)", "plan of delete from t where id = $1 ;"),
            ("EXPLAIN (LOGICAL) EXECUTE d(1)", "plan of delete from t where id = $1 ;"),
            (
                "EXPLAIN EXECUTE d",
                "42601 wrong number of parameters for prepared statement \"d\" (Expected 1 parameters but got 0.)",
            ),
            ("EXPLAIN EXECUTE nothing", "26000 prepared statement \"nothing\" does not exist"),
        ],
    )
    .await;
    let row = client.query_one("EXPLAIN EXECUTE d(1)", &[]).await.expect("a plan");
    assert_eq!(row.columns()[0].name(), "QUERY PLAN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_not_too_many_prepared_statements() {
    let (_, client) = started().await;
    for number in 0..gateway::limits::PREPARED_STATEMENTS_MAX {
        assert_eq!(run(&client, &format!("PREPARE p{number} AS select 1")).await, ";");
    }
    assert_eq!(
        run(&client, "PREPARE more AS select 1").await,
        "54000 a session has at most 2000 prepared statements (PREPARED_STATEMENTS_MAX)"
    );
    assert_eq!(run(&client, "DEALLOCATE p0; PREPARE more AS select 1").await, ";;");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_refuses_it_names() {
    let (_, client) = started().await;
    for (sql, what) in [
        ("PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"),
        ("COMMIT PREPARED 'x'", "COMMIT PREPARED"),
        ("ROLLBACK PREPARED 'x'", "ROLLBACK PREPARED"),
        ("LOCK TABLE t", "LOCK in another mode than ACCESS SHARE"),
        ("LOCK t IN EXCLUSIVE MODE", "LOCK in another mode than ACCESS SHARE"),
        ("CREATE TEMPORARY TABLE t (a) AS EXECUTE p(1)", "CREATE TABLE … AS EXECUTE"),
    ] {
        assert_eq!(run(&client, sql).await, format!("0A000 {what} is not supported"), "{sql}");
    }
}
