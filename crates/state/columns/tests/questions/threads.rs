//! Questions while batches are applied.

use crate::world::{TYPES, apply, catalog, check, image, row, some_ordinals, stores_and_store, table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use state::Version;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

struct EndReaders<'a>(&'a AtomicBool);

impl Drop for EndReaders<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn every_answer_is_that_of_its_own_snapshot() {
    const KEYS: i64 = 9_000;
    let made = [table(1, &TYPES), table(2, &TYPES)];
    let ((stores, store), mut random) = (stores_and_store(&made), StdRng::seed_from_u64(1));
    let first = (0..KEYS).map(|number| image(1, number, Some(row(number, &TYPES, &mut random))));
    apply(store.as_ref(), first.collect());
    let (done, asked, answered) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let end = EndReaders(&done);
        scope.spawn(|| {
            while !done.load(Relaxed) {
                stores.keep_up();
                std::thread::yield_now();
            }
        });
        for seed in 0..2 {
            let (store, made, done, asked, answered) = (&store, &made, &done, &asked, &answered);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed);
                while !done.load(Relaxed) {
                    let snapshot = store.snapshot();
                    if random.random_bool(0.3) {
                        std::thread::yield_now();
                    }
                    let ordinals = some_ordinals(&mut random, TYPES.len());
                    let table = &made[usize::from(random.random_bool(0.4))];
                    asked.fetch_add(1, Relaxed);
                    answered.fetch_add(check(snapshot.as_ref(), table, &ordinals).into(), Relaxed);
                }
            });
        }
        for block in 0..5_000 {
            if block >= 200 && answered.load(Relaxed) >= 60 {
                break;
            }
            let mut images = Vec::new();
            for number in 0..random.random_range(1..60) {
                let (table, number) =
                    (random.random_range(1..=2), number * 149 + random.random_range(0..149));
                let row = random.random_bool(0.8).then(|| row(number, &TYPES, &mut random));
                images.push(image(table, number, row));
            }
            apply(store.as_ref(), images);
            if block % 40 == 39 {
                // Both are forgotten, and made anew.
                let version = Version::after_batch(store.version().height() + 1, 0);
                store.apply(version, &[], Some(catalog(&made))).unwrap();
            }
        }
        drop(end);
    });
    let (asked, answered) = (asked.load(Relaxed), answered.load(Relaxed));
    assert!(answered >= 20 && 2 * answered >= asked, "{answered} of {asked} questions were answered");
    for table in &made {
        assert!(check(store.snapshot().as_ref(), table, &(0..TYPES.len()).collect::<Vec<_>>()));
    }
}
