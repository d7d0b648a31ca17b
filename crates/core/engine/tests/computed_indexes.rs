//! Indexes on expressions and of a part of the rows, and NULLS NOT DISTINCT, under every protocol that executes after ordering:
//! random transactions end as in a serial run without those that only find rows, and the entries are those of the rows.

mod support;

use rand::rngs::StdRng;
use sql::Library;
use state::{PlainState, Simulate};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::histories::{History, PROTOCOLS, after, invocation, library};
use support::without_indexes::{self, Histories};
use support::{histories, script};
use types::{Key, Row};

const HISTORIES: u64 = 100;

/// With what is unique, or fails on some rows: transactions end as these say.
const TABLES: [&str; 9] = [
    "CREATE TABLE j (id int PRIMARY KEY, owner text, active boolean, n int, UNIQUE NULLS NOT DISTINCT (n, owner))",
    "CREATE TABLE h (u text, v int)",
    "CREATE TABLE c (id int PRIMARY KEY, j int REFERENCES j ON DELETE CASCADE ON UPDATE CASCADE, code text)",
    "CREATE UNIQUE INDEX one_active ON j (owner) WHERE active",
    "CREATE UNIQUE INDEX j_parts ON j (lower(owner), (n % 3)) NULLS NOT DISTINCT WHERE n > 1",
    "CREATE INDEX j_fails ON j ((10 / (n - 4))) WHERE active",
    "CREATE UNIQUE INDEX h_u ON h (lower(u))",
    "CREATE UNIQUE INDEX c_one ON c (j) WHERE code = 'x'",
    "CREATE UNIQUE INDEX h_one ON h ((1)) WHERE v = 3",
];

/// That only find rows.
const INDEXES: [&str; 5] = [
    "CREATE INDEX j_n ON j (n) WHERE active",
    "CREATE INDEX j_sum ON j ((n + id))",
    "CREATE INDEX h_v ON h ((v % 2), u)",
    "CREATE INDEX c_code ON c (upper(code)) INCLUDE (j)",
    "CREATE INDEX c_some ON c (code, j) WHERE j IS NOT NULL AND id > 1",
];

fn statement(random: &mut StdRng) -> String {
    let templates = [
        "INSERT INTO j VALUES (#, @, true, #)",
        "INSERT INTO j VALUES (#, @, false, #), (#, @, true, #)",
        "INSERT INTO j VALUES (#, @, true, #) ON CONFLICT (owner) WHERE active DO UPDATE SET n = excluded.n",
        "INSERT INTO j VALUES (#, @, NULL, #) ON CONFLICT (lower(owner), (n % 3)) WHERE n > 2 DO UPDATE SET active = true RETURNING id",
        "INSERT INTO j VALUES (#, @, true, #) ON CONFLICT (n, owner) DO UPDATE SET id = excluded.id",
        "INSERT INTO j VALUES (#, @, true, #) ON CONFLICT DO NOTHING",
        "UPDATE j SET active = NOT active WHERE id = #",
        "UPDATE j SET active = NOT active WHERE owner = @",
        "UPDATE j SET active = true WHERE n + id = #",
        "UPDATE j SET n = n + 1 WHERE active AND n >= #",
        "UPDATE j SET n = n + 1 WHERE id = #",
        "UPDATE j SET owner = upper(@) WHERE id = #",
        "UPDATE j SET id = # WHERE id = #",
        "UPDATE j SET id = id + 1 WHERE n = #",
        "DELETE FROM j WHERE id = #",
        "DELETE FROM j WHERE active AND n = #",
        "DELETE FROM j WHERE n + id > # + #",
        "INSERT INTO h VALUES (@, #)",
        "INSERT INTO h VALUES (upper(@), #), (@, #)",
        "INSERT INTO h VALUES (@, #) ON CONFLICT (lower(u)) DO UPDATE SET v = h.v + excluded.v RETURNING u, v",
        "UPDATE h SET u = @ WHERE v = #",
        "UPDATE h SET v = v + 1 WHERE lower(u) = @",
        "UPDATE h SET v = # WHERE v % 2 = 1",
        "DELETE FROM h WHERE v % 2 = 0 AND u > @",
        "INSERT INTO c VALUES (#, #, @)",
        "INSERT INTO c VALUES (#, #, 'x') ON CONFLICT (j) WHERE code = 'x' DO UPDATE SET code = 'y'",
        "INSERT INTO c SELECT id + 4, id, owner FROM j WHERE active",
        "UPDATE c SET code = 'x' WHERE j = #",
        "UPDATE c SET j = # WHERE upper(code) = 'Y'",
        "DELETE FROM c WHERE code = @ AND j = # AND id > 2",
        "SELECT id, n FROM j WHERE active AND n > # ORDER BY id",
        "SELECT id FROM j WHERE active = true ORDER BY n, id LIMIT 2",
        "SELECT id, owner FROM j WHERE n + id = # ORDER BY 1",
        "SELECT count(*), sum(v) FROM h WHERE v % 2 = 1 AND u >= @",
        "SELECT u FROM h WHERE lower(u) = @",
        "SELECT id FROM c WHERE upper(code) = upper(@) ORDER BY id",
        "SELECT c.id, j.n FROM c JOIN j ON lower(j.owner) = c.code AND j.active ORDER BY 1, 2",
        "SELECT id FROM c WHERE code >= @ AND j > 0 AND id >= 2 ORDER BY id",
    ];
    without_indexes::statement(random, &templates, ["'x'", "'y'", "'Y'"])
}

/// The entries that an index has are those that it gets if it is made of the rows: which fails where two rows have the same key.
fn check_entries(state: &PlainState) {
    for (table, indexes) in &state.catalog.indexes {
        for index in indexes.iter().filter(|index| index.is_computed()) {
            let mut without = types::Catalog::clone(&state.catalog);
            without.indexes.get_mut(table).expect("it has some").retain(|one| one.number != index.number);
            let sql = TABLES.iter().chain(&INDEXES).find(|sql| sql.contains(&format!(" {} ON", index.name)));
            let library = Arc::new(Library::new(Arc::new(without)).expect("it compiles"));
            let payload = Arc::new(script(sql.expect("it was made so")));
            let made = invocation(&library, 100, 0, &payload).simulate(state).expect("memory can be read");
            assert!(made.result.is_ok(), "{sql:?}: {:?}", made.result);
            let row = |command: &state::Command| match &command.kind {
                state::CommandKind::Insert(row) => (command.row.key.clone(), row.clone()),
                _ => panic!("rows are made"),
            };
            let expected: BTreeMap<Key, Row> = made.commands.iter().map(row).collect();
            let found = state.tables.get(&index.computed_entries()).cloned().unwrap_or_default();
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "{}", index.name);
        }
    }
}

#[test]
fn random_transactions_keep_entries_and_end_as_in_a_serial_run() {
    let plain = library(&TABLES);
    let indexed = library(&[TABLES.as_slice(), &INDEXES].concat());
    let histories =
        Histories { count: HISTORIES, plain, indexed, statement: &statement, check: &check_entries };
    for (committed, aborted) in histories.run() {
        assert!(committed > 400 && aborted > 200, "{committed} committed, {aborted} aborted");
    }
}

#[test]
fn of_transactions_that_take_one_key_at_once_one_gets_it() {
    let indexed = library(&TABLES);
    let initial = after(
        &indexed,
        ["INSERT INTO j VALUES (1, 'x', false, 1), (2, 'x', false, 2), (3, 'x', false, 3)"]
            .map(|sql| Arc::new(script(sql))),
    );
    let activate = (1..=3).map(|id| Arc::new(script(&format!("UPDATE j SET active = true WHERE id = {id}"))));
    let insert =
        (10..=12).map(|id| Arc::new(script(&format!("INSERT INTO j VALUES ({id}, 'x', true, {id})"))));
    let history: History = vec![activate.chain(insert).collect()];
    for id in PROTOCOLS {
        let ran = histories::run(id, &indexed, &initial, &history);
        check_entries(&ran.state);
        let one_active =
            indexed.catalog().indexes.values().flatten().find(|index| index.name == "one_active");
        let entries = one_active.expect("it is there").computed_entries();
        assert_eq!(ran.state.tables.get(&entries).map(|rows| rows.len()), Some(1), "{id}");
    }
}
