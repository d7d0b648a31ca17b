//! The history of rows is what running the transactions one after the other gives, under every protocol.

mod support;

use engine::RowChanged;
use std::collections::BTreeMap;
use support::{Chain, charter, script};
use types::{Outcome, Payload, Value, format_value};

fn noting(protocol: &str) -> Chain {
    let mut charter = charter();
    charter.protocol = protocol.to_string();
    let mut chain = Chain::new(charter);
    let engine = std::mem::replace(
        &mut chain.engine,
        engine::Engine::new(chain.charter.clone(), &memory::Memory).expect("an engine"),
    );
    chain.engine = engine.noting_row_history();
    chain
}

fn text(change: &RowChanged) -> String {
    let values = change.value.as_deref().unwrap_or_default();
    let values: Vec<String> =
        values.iter().map(|value| format_value(value).unwrap_or_else(|| "NULL".into())).collect();
    let operation = match (change.existed, &change.value) {
        (_, None) => "-",
        (true, _) => "=",
        (false, _) => "+",
    };
    format!("{} {operation} {}", change.index, values.join(" "))
}

/// The changes of a block with these payloads.
fn changes(chain: &mut Chain, payloads: Vec<Payload>) -> (Vec<RowChanged>, Vec<Outcome>) {
    let executed = chain.execute(payloads);
    let changes = executed.row_history.expect("it is noted").changes().expect("memory can be read");
    (changes, executed.receipts.into_iter().map(|receipt| receipt.outcome).collect())
}

#[test]
fn every_change_of_a_row_has_its_transaction_and_its_values() {
    for protocol in concurrency::IDS {
        let mut chain = noting(protocol);
        let (made, _) = changes(
            &mut chain,
            vec![script("CREATE TABLE t (id bigint PRIMARY KEY, n bigint UNIQUE, name text)")],
        );
        assert!(made.is_empty(), "{protocol}: {made:?}");
        let insert = "INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two')";
        let (inserted, _) = changes(&mut chain, vec![script(insert)]);
        assert_eq!(
            inserted.iter().map(text).collect::<Vec<_>>(),
            ["0 + 1 10 one", "0 + 2 20 two"],
            "{protocol}"
        );

        // Many changes of one row in one block, by transactions that commit and by some that do not.
        let mut payloads: Vec<Payload> =
            (0..20).map(|_| script("UPDATE t SET n = n + 1000 WHERE id = 1")).collect();
        payloads.push(script("INSERT INTO t VALUES (1, 0, 'again')"));
        payloads.push(script("UPDATE t SET name = 'x' WHERE id = 9"));
        payloads.push(script("DELETE FROM t WHERE id = 2"));
        payloads
            .push(script("INSERT INTO t VALUES (3, 30, 'three'); UPDATE t SET name = 'drei' WHERE id = 3"));
        payloads.push(script("INSERT INTO t VALUES (4, 40, 'four'); DELETE FROM t WHERE id = 4"));
        let (found, outcomes) = changes(&mut chain, payloads);
        let committed = |index: u32| matches!(outcomes[index as usize], Outcome::Committed(_));
        let of = |id: i64| {
            let key = types::Key::encode(&[types::Value::BigInt(id)]).expect("a key");
            let mine = found.iter().filter(|change| change.row.key == key);
            mine.map(text).collect::<Vec<String>>()
        };
        assert!(found.iter().all(|change| committed(change.index)), "{protocol}: {found:?}");
        let additions = (0..20).filter(|index| committed(*index)).count();
        assert_eq!(of(1).len(), additions, "{protocol}");
        for (number, change) in of(1).iter().enumerate() {
            let values = change.split_once(' ').expect("an index").1;
            assert_eq!(values, format!("= 1 {} one", 10 + 1000 * (number + 1)), "{protocol}");
        }
        assert_eq!(of(2), ["22 - "], "{protocol}");
        assert_eq!(of(3), ["23 + 3 30 drei"], "{protocol}");
        assert!(of(4).is_empty() && of(9).is_empty(), "{protocol}");

        // Whatever it says last of a row is how the row is.
        let mut last: BTreeMap<_, Option<types::Row>> = BTreeMap::new();
        for change in inserted.iter().chain(&found) {
            last.insert(change.row.clone(), change.value.clone());
        }
        let snapshot = chain.engine.state().snapshot();
        for (row, value) in last {
            assert_eq!(snapshot.get(row.table, &row.key), Ok(value), "{protocol}");
        }
    }
}

#[test]
fn schema_changes_leave_what_they_fill_and_not_what_they_copy() {
    let mut chain = noting("serial");
    changes(&mut chain, vec![script("CREATE TABLE t (id bigint PRIMARY KEY)")]);
    changes(&mut chain, vec![script("INSERT INTO t VALUES (1), (2)")]);
    let (copied, _) = changes(&mut chain, vec![script("ALTER TABLE t ADD COLUMN n int DEFAULT 7")]);
    assert!(copied.is_empty(), "{copied:?}");
    let (filled, _) = changes(&mut chain, vec![script("CREATE TABLE u AS SELECT id + 1 AS id FROM t")]);
    let filled: Vec<String> = filled.iter().map(text).collect();
    assert_eq!(filled, ["0 + 2", "0 + 3"]);
    let (updated, _) = changes(&mut chain, vec![script("UPDATE t SET n = 8 WHERE id = 1")]);
    assert_eq!(updated.iter().map(text).collect::<Vec<_>>(), ["0 = 1 8"]);
}

#[test]
fn who_does_not_note_it_has_none() {
    let mut chain = Chain::new(charter());
    let executed = chain.execute(vec![script("CREATE TABLE t (id bigint PRIMARY KEY)")]);
    assert!(executed.row_history.is_none());
}

#[test]
fn a_block_gives_the_last_after_image_of_every_row_by_table_and_key() {
    for protocol in concurrency::IDS {
        let mut charter = charter();
        charter.protocol = protocol.to_string();
        charter.block.batch_transactions = 3;
        let mut chain = Chain::new(charter);
        chain.script("CREATE TABLE t (id bigint PRIMARY KEY, n bigint)");
        assert!(chain.execute(vec![script("SELECT 1")]).changes.is_empty(), "{protocol}: nothing is written");
        // Over many batches, the last of which write what the first have written.
        let mut payloads: Vec<Payload> =
            (1..=9).rev().map(|id| script(&format!("INSERT INTO t VALUES ({id}, 0)"))).collect();
        payloads.extend((1..=8).map(|id| script(&format!("UPDATE t SET n = {id} WHERE id = {id}"))));
        payloads.push(script("DELETE FROM t WHERE id = 9"));
        let changes = chain.execute(payloads).changes;
        let value = |row: &[Value]| row.iter().filter_map(format_value).collect::<Vec<_>>().join(" ");
        let found: Vec<Option<String>> =
            changes.iter().map(|image| image.value.as_deref().map(value)).collect();
        let expected = (1..=8).map(|id| Some(format!("{id} {id}"))).chain([None]).collect::<Vec<_>>();
        assert_eq!(found, expected, "{protocol}");
    }
}
