//! Materialized views under every protocol: a REFRESH among transfers sees what one place in the block sees, and never a mixture, on any
//! number of threads.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use support::histories::PROTOCOLS;
use support::{Chain, charter, script};
use types::{Outcome, Payload};

const ACCOUNTS: i64 = 12;
const BLOCKS: usize = 40;

const SCHEMA: [&str; 6] = [
    "CREATE TABLE account (id bigint PRIMARY KEY, owner text, amount bigint NOT NULL)",
    "CREATE TABLE seen (number bigint PRIMARY KEY, total numeric, owners bigint)",
    "CREATE MATERIALIZED VIEW by_owner AS SELECT owner, sum(amount) AS total, count(*) AS accounts FROM account GROUP BY owner",
    "CREATE UNIQUE INDEX by_owner_once ON by_owner (owner)",
    "CREATE MATERIALIZED VIEW rich AS SELECT owner, total FROM by_owner WHERE total > 250",
    "CREATE PROCEDURE look(which bigint) LANGUAGE sql AS
        'INSERT INTO seen SELECT which, sum(total), count(*) FROM by_owner ON CONFLICT (number) DO NOTHING'",
];

fn payload(random: &mut StdRng, number: &mut u64) -> Payload {
    let (from, to) = (random.random_range(0..ACCOUNTS), random.random_range(0..ACCOUNTS));
    let cents = random.random_range(1..40);
    *number += 1;
    let choices = [
        format!(
            "UPDATE account SET amount = amount + CASE id WHEN {from} THEN -{cents} ELSE {cents} END WHERE id IN ({from}, {to}) AND {from} <> {to}"
        ),
        format!("CALL look({number})"),
        "REFRESH MATERIALIZED VIEW by_owner".to_string(),
        "REFRESH MATERIALIZED VIEW CONCURRENTLY by_owner; REFRESH MATERIALIZED VIEW rich".to_string(),
        format!("UPDATE account SET owner = 'owner {}' WHERE id = {from}", to % 4),
    ];
    let weights = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4];
    script(&choices[*weights.choose(random).expect("there are some")])
}

/// What a ledger comes to: the digests of its blocks, and its rows.
fn run(protocol: &str, threads: usize) -> (Vec<crypto::Digest>, Chain) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(|| {
        let mut chain = Chain::new(types::Charter { protocol: protocol.to_string(), ..charter() });
        for statement in SCHEMA {
            assert!(matches!(chain.script(statement), Outcome::Committed(_)), "{statement}");
        }
        let filled = format!(
            "INSERT INTO account SELECT n, 'owner ' || n % 4, 100 FROM generate_series(0, {}) AS g (n)",
            ACCOUNTS - 1
        );
        chain.script(&filled);
        chain.script("REFRESH MATERIALIZED VIEW by_owner");
        let (mut random, mut number) = (StdRng::seed_from_u64(11), 0);
        let mut digests = Vec::new();
        for _ in 0..BLOCKS {
            let payloads = (0..15).map(|_| payload(&mut random, &mut number)).collect();
            let executed = chain.execute(payloads);
            digests.push(executed.outcome.digest());
        }
        (digests, chain)
    })
}

#[test]
fn a_refresh_sees_one_place_of_the_block_on_any_number_of_threads() {
    for protocol in PROTOCOLS {
        let (digests, mut chain) = run(protocol, 1);
        assert_eq!(run(protocol, 4).0, digests, "{protocol}");
        let all = (100 * ACCOUNTS).to_string();
        let seen = chain.select("SELECT total, owners FROM seen");
        assert!(seen.len() > 50, "{protocol}: {}", seen.len());
        assert!(seen.iter().all(|row| row[0] == all), "{protocol}: {seen:?}");
        // One more of each, and they are what their queries say.
        chain.script("REFRESH MATERIALIZED VIEW by_owner");
        chain.script("REFRESH MATERIALIZED VIEW rich");
        let query = "SELECT owner, sum(amount), count(*) FROM account GROUP BY owner ORDER BY owner";
        assert_eq!(chain.select("SELECT * FROM by_owner ORDER BY owner"), chain.select(query), "{protocol}");
        let query =
            "SELECT owner, sum(amount) FROM account GROUP BY owner HAVING sum(amount) > 250 ORDER BY owner";
        assert_eq!(chain.select("SELECT * FROM rich ORDER BY owner"), chain.select(query), "{protocol}");
        let by_index = "SELECT total FROM by_owner WHERE owner = 'owner 1'";
        let query = "SELECT sum(amount) FROM account WHERE owner = 'owner 1'";
        assert_eq!(chain.select(by_index), chain.select(query), "{protocol}");
    }
}

#[test]
fn a_refresh_that_a_unique_index_refuses_changes_nothing() {
    let mut chain = Chain::new(charter());
    for statement in [
        "CREATE TABLE t (a bigint PRIMARY KEY, b bigint)",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "CREATE MATERIALIZED VIEW v AS SELECT b FROM t",
        "CREATE UNIQUE INDEX v_once ON v (b)",
        "INSERT INTO t VALUES (3, 1)",
    ] {
        assert!(matches!(chain.script(statement), Outcome::Committed(_)), "{statement}");
    }
    let refused = chain.script("REFRESH MATERIALIZED VIEW v");
    let Outcome::Aborted(error) = &refused else { panic!("{refused:?}") };
    assert_eq!(error.state.to_string(), "23505");
    assert_eq!(chain.select("SELECT b FROM v ORDER BY b"), [["1"], ["2"]]);
}
