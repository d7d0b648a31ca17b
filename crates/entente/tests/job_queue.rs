//! A job queue on a network of real processes: ten workers at four organisations' nodes lose and duplicate nothing.
//!
//! ```sh
//! cargo build --release && JOBS=2000 ENTENTE_PROGRAM=$PWD/target/release/entente cargo test -p entente --test job_queue -- --nocapture
//! ```
//!
//! says how many jobs a second are done in each way.

mod support;

use std::time::{Duration, Instant};
use support::{TestNetwork, error, rows, wait_for_rows};
use tokio_postgres::Client;

const WORKERS: usize = 10;

const TABLES: &str = "\
    CREATE TABLE job (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'waiting', worker integer);
    CREATE TABLE done (job integer PRIMARY KEY, worker integer NOT NULL)";

/// A queue in transaction blocks, as applications and their libraries have it.
const NEXT: &str = "SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";

/// The same in one statement, which takes what is free at its place in the order.
const TAKE: &str = "\
    WITH next AS (SELECT id FROM job WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) \
    UPDATE job SET state = 'taken', worker = $1 FROM next WHERE job.id = next.id RETURNING job.id";

fn jobs() -> i64 {
    std::env::var("JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(120)
}

/// What a worker has done, and how often a block of it ended with 40001.
#[derive(Default)]
struct Work {
    done: i64,
    conflicts: i64,
}

/// Does one job in a block; `None` where none is free. An error is that of the block.
async fn do_next(session: &Client, worker: i32) -> Result<Option<i32>, tokio_postgres::Error> {
    session.batch_execute("BEGIN").await?;
    let Some(job) = session.query_opt(NEXT, &[]).await? else {
        session.batch_execute("COMMIT").await?;
        return Ok(None);
    };
    let job: i32 = job.get(0);
    session.execute("INSERT INTO done VALUES ($1, $2)", &[&job, &worker]).await?;
    session.execute("UPDATE job SET state = 'done', worker = $2 WHERE id = $1", &[&job, &worker]).await?;
    session.batch_execute("COMMIT").await?;
    Ok(Some(job))
}

/// Works in blocks until nothing has been free three times.
async fn in_blocks(session: Client, worker: i32) -> Work {
    let (mut work, mut idle) = (Work::default(), 0);
    while idle < 3 {
        match do_next(&session, worker).await {
            Ok(Some(_)) => {
                work.done += 1;
                idle = 0;
            }
            // Others may give their jobs back.
            Ok(None) => {
                idle += 1;
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            Err(error) => {
                let code = error.code().map(|code| code.code().to_string());
                assert_eq!(code.as_deref(), Some("40001"), "{error:?}");
                work.conflicts += 1;
                session.batch_execute("ROLLBACK").await.expect("a session");
            }
        }
    }
    work
}

/// Works by single statements: nobody has to try again.
async fn by_statements(session: Client, worker: i32) -> Work {
    let mut work = Work::default();
    while let Some(job) = session.query_opt(TAKE, &[&worker]).await.expect("no statement fails") {
        let job: i32 = job.get(0);
        session
            .execute("INSERT INTO done VALUES ($1, $2)", &[&job, &worker])
            .await
            .expect("it is the only one");
        work.done += 1;
    }
    work
}

/// Fills the queue, lets workers empty it whose nodes are these, and checks that each job was done once. How often they had to try again.
async fn empty_queue(network: &TestNetwork, nodes: &[usize], with_blocks: bool) -> i64 {
    let (ada, jobs) = (network.session(nodes[0]).await, jobs());
    let fill = format!(
        "DELETE FROM done; DELETE FROM job; INSERT INTO job (id) SELECT g FROM generate_series(1, {jobs}) AS s (g)"
    );
    ada.batch_execute(&fill).await.expect("a queue");
    network.wait_until_level_with(nodes[0], nodes).await;
    let (start, mut workers) = (Instant::now(), Vec::new());
    for worker in 0..WORKERS {
        let session = network.session(nodes[worker % nodes.len()]).await;
        workers.push(tokio::spawn(async move {
            match with_blocks {
                true => in_blocks(session, worker as i32).await,
                false => by_statements(session, worker as i32).await,
            }
        }));
    }
    let mut all = Work::default();
    for worker in workers {
        let work = worker.await.expect("no panic");
        all.done += work.done;
        all.conflicts += work.conflicts;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{WORKERS} workers at {} nodes, {}: {:.0} jobs a second, {} of {} blocks ended with 40001",
        nodes.len(),
        if with_blocks { "in blocks" } else { "by statements" },
        all.done as f64 / seconds,
        all.conflicts,
        all.done + all.conflicts,
    );
    assert_eq!(all.done, jobs);
    let jobs = jobs.to_string();
    wait_for_rows(&ada, "SELECT count(*), count(DISTINCT job) FROM done", &[&[&jobs, &jobs]]).await;
    assert_eq!(rows(&ada, "SELECT count(*) FROM job WHERE state = 'waiting'").await, [["0"]]);
    all.conflicts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_loses_and_duplicates_nothing() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    network.session(0).await.batch_execute(TABLES).await.expect("tables");
    network.wait_until_level_with(0, &[1, 2, 3]).await;
    // Workers of one organisation keep out of one another's way.
    assert_eq!(empty_queue(&network, &[1], true).await, 0);
    // Those of several find out at COMMIT.
    empty_queue(&network, &[0, 1, 2, 3], true).await;
    // No statement has to be tried again, wherever it comes from.
    assert_eq!(empty_queue(&network, &[0, 1, 2, 3], false).await, 0);
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_a_session_has_locked_is_skipped_and_refused_at_its_node() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (ada, bob) = (network.session(0).await, network.session(0).await);
    ada.batch_execute(TABLES).await.expect("tables");
    ada.batch_execute("INSERT INTO job (id) SELECT g FROM generate_series(1, 4) AS s (g)")
        .await
        .expect("jobs");
    ada.batch_execute(
        "BEGIN; SELECT id FROM job WHERE id = 2 FOR UPDATE; UPDATE job SET worker = 7 WHERE id = 3",
    )
    .await
    .expect("locked");
    let others = "SELECT id FROM job ORDER BY id FOR UPDATE SKIP LOCKED";
    // Outside of a block, and in one.
    assert_eq!(rows(&bob, others).await, [["1"], ["4"]]);
    bob.batch_execute("BEGIN").await.expect("a block");
    assert_eq!(rows(&bob, others).await, [["1"], ["4"]]);
    let nowait = "SELECT id FROM job WHERE id = 2 FOR SHARE NOWAIT";
    let refused = error(&bob, nowait).await;
    assert_eq!(
        (refused.0.as_str(), refused.1.trim()),
        ("55P03", "could not obtain lock on row in relation \"job\"")
    );
    bob.batch_execute("ROLLBACK").await.expect("a session");
    assert_eq!(error(&bob, nowait).await.0, "55P03");
    ada.batch_execute("COMMIT").await.expect("nobody has changed it");
    assert_eq!(rows(&bob, nowait).await, [["2"]]);
    assert_eq!(rows(&bob, others).await.len(), 4);
    // A session that goes has locked nothing.
    ada.batch_execute("BEGIN; SELECT id FROM job FOR UPDATE").await.expect("locked");
    assert_eq!(rows(&bob, others).await.len(), 0);
    drop(ada);
    wait_for_rows(&bob, "SELECT id FROM job WHERE id < 3 FOR UPDATE SKIP LOCKED", &[&["1"], &["2"]]).await;
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// Reads, and writes what it has computed from that: only who waits for others has no conflict.
async fn count(session: Client) -> i64 {
    let mut conflicts = 0;
    for _ in 0..10 {
        loop {
            session.batch_execute("BEGIN").await.expect("no block is open");
            let lock = "SELECT n FROM counter WHERE id = 1 FOR UPDATE";
            let n: i64 = session.query_one(lock, &[]).await.expect("it waits").get(0);
            let write = "UPDATE counter SET n = $1 WHERE id = 1";
            session.execute(write, &[&(n + 1)]).await.expect("its own");
            match session.batch_execute("COMMIT").await {
                Ok(()) => break,
                Err(error) => assert_eq!(error.code().expect("an answer").code(), "40001"),
            }
            conflicts += 1;
        }
    }
    conflicts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_node_wait_for_a_row_with_which_a_block_begins() {
    let mut network = TestNetwork::create(|_| ());
    network.start_all().await;
    let (ada, bob) = (network.session(0).await, network.session(0).await);
    let table =
        "CREATE TABLE counter (id integer PRIMARY KEY, n bigint NOT NULL); INSERT INTO counter VALUES (1, 0)";
    ada.batch_execute(table).await.expect("a table");
    let mut counting = Vec::new();
    for _ in 0..6 {
        counting.push(tokio::spawn(count(network.session(0).await)));
    }
    let mut conflicts = 0;
    for one in counting {
        conflicts += one.await.expect("no panic");
    }
    assert_eq!(conflicts, 0, "they wait for one another");
    assert_eq!(rows(&ada, "SELECT n FROM counter WHERE id = 1").await, [["60"]]);

    // As long as it takes, and no longer than the client wants.
    let lock = "SELECT n FROM counter WHERE id = 1 FOR UPDATE";
    ada.batch_execute("BEGIN").await.expect("a block");
    assert_eq!(rows(&ada, lock).await, [["60"]]);
    bob.batch_execute("SET lock_timeout = '200ms'; BEGIN").await.expect("a block");
    let timeout = error(&bob, lock).await;
    let timeout = (timeout.0.as_str(), timeout.1.trim());
    assert_eq!(timeout, ("55P03", "canceling statement due to lock timeout"));
    bob.batch_execute("ROLLBACK; SET lock_timeout = 0; SET statement_timeout = '300ms'; BEGIN")
        .await
        .expect("a block");
    assert_eq!(error(&bob, lock).await.0, "57014");
    bob.batch_execute("ROLLBACK; SET statement_timeout = 0; BEGIN").await.expect("a block");
    let cancel = bob.cancel_token();
    let cancelling = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel_query(tokio_postgres::NoTls).await.expect("it is asked");
    };
    let ((), cancelled) = tokio::join!(cancelling, error(&bob, lock));
    assert_eq!(cancelled.0, "57014");
    bob.batch_execute("ROLLBACK; BEGIN").await.expect("a block");
    let start = Instant::now();
    let leaving = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ada.batch_execute("ROLLBACK").await.expect("a session");
    };
    let ((), found) = tokio::join!(leaving, rows(&bob, lock));
    assert_eq!(found, [["60"]]);
    assert!(start.elapsed() >= Duration::from_millis(300), "it has waited");
    bob.batch_execute("COMMIT").await.expect("it has read");
    network.assert_agreement(&[0, 1, 2, 3]).await;
}

/// A ledger that older rules execute skips nothing until its members have amended it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_rules_skip_nothing() {
    let mut network = TestNetwork::create(|charter| charter.found_with_version(14));
    network.start_all().await;
    let (ada, bob) = (network.session(0).await, network.session(0).await);
    ada.batch_execute(TABLES).await.expect("tables");
    ada.batch_execute("INSERT INTO job (id) VALUES (1), (2)").await.expect("jobs");
    let lock = "BEGIN; SELECT id FROM job WHERE id = 1 FOR UPDATE";
    ada.batch_execute(lock).await.expect("locked");
    assert_eq!(rows(&bob, NEXT).await, [["1"]]);
    bob.batch_execute("BEGIN").await.expect("a block");
    assert_eq!(rows(&bob, NEXT).await, [["1"]]);
    bob.batch_execute("UPDATE job SET worker = 1 WHERE id = 1; COMMIT").await.expect("it comes first");
    ada.batch_execute("ROLLBACK; SELECT entente.set_charter('execution_version', '15')")
        .await
        .expect("amended");
    let start = Instant::now();
    loop {
        ada.batch_execute(lock).await.expect("locked");
        let found = rows(&bob, NEXT).await;
        ada.batch_execute("ROLLBACK").await.expect("a session");
        if found == [["2"]] {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the network does not go over");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    network.assert_agreement(&[0, 1, 2, 3]).await;
}
