//! How long questions take of a large table.

use crate::world::{apply, image, store, table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::Store;
use std::collections::BTreeSet;
use std::time::Instant;
use types::{DataType, Row, Value};

const ROWS: i64 = 1_000_000;
const CHANGES: usize = 10_000;

fn row(number: i64, value: i64) -> Option<Row> {
    Some((0..8).map(|column| Value::BigInt(if column == 0 { number } else { value + column })).collect())
}

fn changed(store: &dyn Store, random: &mut StdRng) {
    let mut numbers = BTreeSet::new();
    while numbers.len() < CHANGES {
        numbers.insert(random.random_range(0..ROWS));
    }
    apply(store, numbers.into_iter().map(|number| image(1, number, row(number, random.random()))).collect());
}

#[test]
#[ignore = "it measures: run it alone, in release"]
#[allow(clippy::print_stdout)]
fn a_million_rows_and_ten_thousand_changes() {
    let made = [table(1, &[DataType::BigInt; 8])];
    let (store, mut random) = (store(&made), StdRng::seed_from_u64(1));
    for start in (0..ROWS).step_by(100_000) {
        apply(
            store.as_ref(),
            (start..start + 100_000).map(|number| image(1, number, row(number, 0))).collect(),
        );
    }
    let ordinals: Vec<usize> = (0..8).collect();
    let ask = |what: &str| {
        let (snapshot, begin) = (store.snapshot(), Instant::now());
        let batches = snapshot.columns(&made[0], &ordinals).unwrap().expect("there are columns");
        println!("{what}: {:.3} ms", begin.elapsed().as_secs_f64() * 1e3);
        assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), ROWS as usize);
        batches
    };
    drop(ask("all rows are read"));
    drop(ask("nothing has changed"));
    for round in 1..=3 {
        changed(store.as_ref(), &mut random);
        drop(ask(&format!("{CHANGES} changes, nothing is lent, round {round}")));
    }
    for round in 1..=3 {
        let lent = ask("the same snapshot");
        changed(store.as_ref(), &mut random);
        drop(ask(&format!("{CHANGES} changes, everything is lent, round {round}")));
        drop(lent);
    }
}
