//! Rewired areas keep what their snapshots have, use pages again, and say so when the kernel refuses. In one test, because the
//! kernel counts the mappings of the whole process.

use std::time::Instant;
use virtual_memory::{MemoryError, NUMBERS_MAX, PAGE_NUMBERS, Rewired, RewiredSnapshot, mappings_max};

/// Pages of a column of 40 MB.
const PAGES: usize = 10_240;

/// A permutation of 0 to 10,239 in which neighbours are not neighbours: 7,919 is prime.
fn scattered() -> impl Iterator<Item = usize> {
    (0..PAGES).map(|page| page * 7_919 % PAGES)
}

/// A column of which every page was written while a snapshot had it, so that every page is a mapping; and a snapshot of that.
fn modified() -> Result<(Rewired, RewiredSnapshot), MemoryError> {
    let column = Rewired::new(PAGES * PAGE_NUMBERS)?;
    let first = column.snapshot(PAGES * PAGE_NUMBERS)?;
    for page in scattered() {
        column.write(page * PAGE_NUMBERS, page as i64 + 1)?;
    }
    drop(first);
    let snapshot = column.snapshot(PAGES * PAGE_NUMBERS)?;
    Ok((column, snapshot))
}

fn check_pages_are_copied_once_and_used_again() {
    let column = Rewired::new(5 * PAGE_NUMBERS + 3).expect("memory");
    let last = 5 * PAGE_NUMBERS + 2;
    column.write(last, 5).expect("writable");
    let before = column.snapshot(last + 1).expect("a snapshot");
    column.write(last, 6).expect("writable");
    column.write(0, 7).expect("writable");
    let after = column.snapshot(last + 1).expect("a snapshot");
    assert_eq!(column.mappings(), 3);
    column.write(last, 8).expect("writable");
    assert_eq!((before.numbers()[last], before.numbers()[0]), (5, 0));
    assert_eq!((after.numbers()[last], after.numbers()[0]), (6, 7));
    assert_eq!((column.get(last), column.get(0)), (8, 7));
    drop((before, after));
    // Whatever is written into pages that were used before, no snapshot sees it.
    for round in 0..100 {
        let snapshot = column.snapshot(last + 1).expect("a snapshot");
        for page in 0..5 {
            column.write(page * PAGE_NUMBERS, round).expect("writable");
        }
        assert!((0..5).all(|page| snapshot.numbers()[page * PAGE_NUMBERS]
            == if round == 0 { if page == 0 { 7 } else { 0 } } else { round - 1 }));
    }
}

#[test]
fn two_modified_columns_fit_under_the_stock_limit_and_five_are_refused() {
    check_pages_are_copied_once_and_used_again();
    assert!(matches!(Rewired::new(0), Err(MemoryError::Size { found: 0 })));
    assert!(matches!(Rewired::new(NUMBERS_MAX + 1), Err(MemoryError::Size { .. })));
    let limit = mappings_max().expect("Linux says it");
    if !(50_000..=100_000).contains(&limit) {
        println!(
            "skipped: vm.max_map_count is {limit} here, and the test is made for the stock limit of 65530"
        );
        return;
    }
    let began = Instant::now();
    let mut columns = Vec::new();
    let refused = loop {
        match modified() {
            Ok(column) => columns.push(column),
            Err(error) => break error,
        }
        assert!(columns.len() < 5, "five columns of 40 MB and their snapshots need {} mappings", 10 * PAGES);
    };
    assert!(columns.len() >= 2, "{refused}");
    assert!(
        matches!(refused, MemoryError::Mappings { mapped, limit: said } if said == limit && mapped + 16 >= limit)
    );
    assert!(refused.to_string().contains("vm.max_map_count"), "{refused}");
    for (column, snapshot) in &columns {
        assert!(column.mappings() > PAGES * 9 / 10);
        for page in 0..PAGES {
            assert_eq!(column.get(page * PAGE_NUMBERS), page as i64 + 1);
            assert_eq!(snapshot.numbers()[page * PAGE_NUMBERS], page as i64 + 1);
        }
    }
    // A column whose writes are refused keeps its numbers, and can be written again once there is room.
    let (last, last_snapshot) = columns.pop().expect("there are two");
    drop(last_snapshot);
    let fresh: Vec<Rewired> = (0..3).map(|_| Rewired::new(PAGES * PAGE_NUMBERS).expect("memory")).collect();
    let held: Vec<_> =
        fresh.iter().map(|column| column.snapshot(PAGES * PAGE_NUMBERS).expect("one mapping")).collect();
    let writes = || {
        fresh.iter().zip(0_i64..).flat_map(|(column, own)| {
            scattered().map(move |page| (column, page, own * PAGES as i64 + page as i64 + 1))
        })
    };
    let written = writes()
        .take_while(|(column, page, value)| column.write(page * PAGE_NUMBERS, *value).is_ok())
        .count();
    assert!(written < 3 * PAGES, "the kernel refuses before all is written");
    for (at, (column, page, value)) in writes().enumerate() {
        assert_eq!(column.get(page * PAGE_NUMBERS), if at < written { value } else { 0 });
    }
    drop((last, columns));
    for (column, page, value) in writes() {
        column.write(page * PAGE_NUMBERS, value).expect("there is room again");
    }
    assert!(held.iter().all(|snapshot| snapshot.numbers().iter().all(|number| *number == 0)));
    assert!(began.elapsed().as_secs() < 120);
}
