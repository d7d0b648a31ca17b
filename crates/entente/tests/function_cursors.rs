//! Cursors that functions leave open for their client, on a network of real processes. Answers are those of PostgreSQL 15.

mod support;

use support::TestNetwork;
use support::answers::check;

const DEFINITIONS: &[(&str, &str)] = &[
    ("CREATE TABLE items (id integer PRIMARY KEY, name text)", ""),
    ("INSERT INTO items SELECT n, 'item ' || n FROM generate_series(1, 5) AS n", ""),
    ("CREATE TABLE taken (id integer)", ""),
    (
        "CREATE FUNCTION some_items(least integer) RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor;
         BEGIN OPEN c FOR SELECT * FROM items WHERE id >= least ORDER BY id; RETURN c; END $$",
        "",
    ),
    (
        "CREATE FUNCTION named(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
         BEGIN OPEN c FOR SELECT id FROM items ORDER BY id; RETURN c; END $$",
        "",
    ),
    (
        "CREATE PROCEDURE take_next(c refcursor) LANGUAGE plpgsql AS $$ DECLARE k integer;
         BEGIN FETCH c INTO k; INSERT INTO taken VALUES (k); END $$",
        "",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_moves_the_cursors_of_functions_as_their_client_did() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let mut session = network.session(0).await;
    check(&session, DEFINITIONS).await;
    check(
        &session,
        &[
            ("BEGIN", ""),
            ("SELECT some_items(2)", "<unnamed portal 1>"),
            ("FETCH 2 FROM \"<unnamed portal 1>\"", "2|item 2 3|item 3"),
            ("MOVE BACKWARD ALL IN \"<unnamed portal 1>\"", ""),
            ("FETCH ALL IN \"<unnamed portal 1>\"", "2|item 2 3|item 3 4|item 4 5|item 5"),
            ("SELECT named('c')", "c"),
            ("FETCH 2 FROM c", "1 2"),
            ("CALL take_next('c')", ""),
            ("FETCH c", "4"),
            ("SAVEPOINT s", ""),
            ("DECLARE c CURSOR FOR SELECT 1", "42P03 cursor \"c\" already exists"),
            ("ROLLBACK TO s", ""),
            ("CALL take_next('c')", ""),
            ("CLOSE \"<unnamed portal 1>\"", ""),
            ("COMMIT", ""),
            ("FETCH c", "34000 cursor \"c\" does not exist"),
            ("SELECT string_agg(id::text, ',' ORDER BY id) FROM taken", "3,5"),
            // A cursor ends with its transaction: a statement of its own is one.
            ("SELECT named('c')", "c"),
            ("FETCH c", "34000 cursor \"c\" does not exist"),
            ("BEGIN READ ONLY", ""),
            ("SELECT named('c')", "c"),
            ("FETCH ALL FROM c", "1 2 3 4 5"),
            ("COMMIT", ""),
        ],
    )
    .await;

    // As drivers do, with what they describe before.
    let block = session.transaction().await.expect("BEGIN");
    block.execute("SELECT some_items($1)", &[&4]).await.expect("opened");
    let fetch = block.prepare("FETCH FORWARD 1 FROM \"<unnamed portal 1>\"").await.expect("described");
    assert_eq!(fetch.columns().iter().map(|column| column.name()).collect::<Vec<_>>(), ["id", "name"]);
    for expected in [Some((4, "item 4")), Some((5, "item 5")), None] {
        let rows = block.query(&fetch, &[]).await.expect("fetched");
        let found = rows.first().map(|row| (row.get::<_, i32>(0), row.get::<_, &str>(1)));
        assert_eq!(found, expected);
    }
    block.execute("INSERT INTO taken VALUES (6)", &[]).await.expect("inserted");
    block.commit().await.expect("nothing has changed");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_change_before_the_place_of_their_block_are_a_conflict() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (session, other) = (network.session(0).await, network.session(1).await);
    check(&session, DEFINITIONS).await;
    check(
        &session,
        &[
            ("BEGIN", ""),
            ("SELECT named('c')", "c"),
            ("FETCH ALL FROM c", "1 2 3 4 5"),
            ("INSERT INTO taken VALUES (1)", ""),
        ],
    )
    .await;
    check(&other, &[("INSERT INTO items VALUES (6, 'item 6')", "")]).await;
    let conflict = "40001 could not serialize access due to concurrent update";
    check(&session, &[("COMMIT", conflict), ("SELECT count(*) FROM taken", "0")]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
