//! What the kernel refuses to rewire. One test, because it counts the mappings of the whole process.

use anker::{
    AnkerArguments, AnkerError, AnkerRecord, Engine, Parameter, Question, System, TableShape, anker_table,
    bench,
};
use clap::Parser;
use virtual_memory::{MemoryError, PAGE_NUMBERS, mappings_max};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bench: AnkerArguments,
}

/// Pages of a column of 40 MB, and columns of which not all pages can be mapped by themselves.
const PAGES: usize = 10_240;
const COLUMNS: usize = 7;
const WIDE: TableShape = TableShape {
    name: "wide",
    columns: &["a", "b", "c", "d", "e", "f", "g"],
    keys: 0,
    rows_max: PAGES * PAGE_NUMBERS,
};

#[test]
fn what_the_kernel_refuses_is_an_error_and_everything_stays_as_it_was() {
    let limit = mappings_max().expect("Linux says it");
    if limit != 65_530 {
        println!(
            "skipped: vm.max_map_count is {limit} here, and the test is made for the stock limit of 65530"
        );
        return;
    }
    transactions_that_cannot_be_rewired_change_nothing();
    five_modified_columns_are_refused_and_two_are_not();
}

/// Transactions write all pages of all columns while a question has them.
fn transactions_that_cannot_be_rewired_change_nothing() {
    let mut engine = Engine::new(System::named("rewire").expect("known"), &[WIDE], 0).expect("memory");
    engine.load(0, (0..WIDE.rows_max).map(|_| ([1_i64; COLUMNS], None))).expect("room");
    let mut asked = engine.ask(&Question::Whole { table: 0 }).expect("asked");
    asked.materialise().expect("one mapping for each column");
    let writes = |number: usize| {
        let mut transaction = engine.begin();
        for page in (number * 64..(number + 1) * 64).map(|page| page * 7_919 % PAGES) {
            for column in 0..COLUMNS {
                transaction.write(0, (page * PAGE_NUMBERS) as u32, column, 2)?;
            }
        }
        transaction.commit()
    };
    let (mut committed, refused) = (0..PAGES / 64)
        .map(writes)
        .enumerate()
        .find_map(|(number, result)| result.err().map(|error| (number, error)))
        .expect("71,680 mappings are more than 65,530");
    assert!(matches!(refused, AnkerError::Memory(MemoryError::Mappings { .. })), "{refused}");
    let sum = |committed: usize| (committed * 64 + WIDE.rows_max) as i64;
    for column in 0..COLUMNS {
        let newest = (0..PAGES).map(|page| engine.newest(0, page * PAGE_NUMBERS, column).expect("a row"));
        assert_eq!(newest.sum::<i64>(), (PAGES + committed * 64) as i64, "all of a transaction or nothing");
    }
    let checksum = |sum: i64| (0..COLUMNS).fold(0_i64, |all, _| all.wrapping_mul(31).wrapping_add(sum));
    assert_eq!(asked.answer().expect("an answer").groups[0], [WIDE.rows_max as i64, checksum(sum(0))]);
    // Nobody has a snapshot any more, so that pages are written where they are.
    while committed < PAGES / 64 {
        writes(committed).expect("it can be rewired again");
        committed += 1;
    }
    let newest = (0..PAGES).map(|page| engine.newest(0, page * PAGE_NUMBERS, 6).expect("a row"));
    assert_eq!(newest.sum::<i64>(), 2 * PAGES as i64);
}

fn five_modified_columns_are_refused_and_two_are_not() {
    let words = "anker --experiment table-2-1 --storage rewire --column-megabytes 40 --rounds 1";
    let arguments = Arguments::try_parse_from(words.split(' ')).expect("options");
    let records = bench(&arguments.bench, &mut |_| ()).expect("a refusal is no error");
    let is_full = |record: &&AnkerRecord| record.point["modified_pages"] == Parameter::Number(10_000);
    assert_eq!(records.iter().filter(is_full).count(), 5);
    for record in records.iter().filter(is_full) {
        let fits = matches!(record.point["columns"], Parameter::Number(1..=2));
        assert_eq!(record.value.is_some(), fits, "{record:?}");
        let says = record.refused.as_ref().is_some_and(|why| why.contains("vm.max_map_count allows 65530"));
        assert_eq!(says, !fits, "{record:?}");
    }
    assert!(anker_table(&records).contains("refused (8,460)"));
}
