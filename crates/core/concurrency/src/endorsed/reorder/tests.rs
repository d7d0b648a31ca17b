use super::*;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::collections::HashSet;

fn transaction(reads: &[u32], writes: &[u32]) -> KeySets {
    let ascending = |keys: &[u32]| {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        keys
    };
    KeySets { reads: ascending(reads), writes: ascending(writes) }
}

/// How many are valid in this order: nobody valid before them wrote what they read.
fn valid_count<'a>(in_order: impl IntoIterator<Item = &'a KeySets>) -> usize {
    let mut written = HashSet::new();
    let mut count = 0;
    for one in in_order {
        if one.reads.iter().all(|key| !written.contains(key)) {
            written.extend(one.writes.iter().copied());
            count += 1;
        }
    }
    count
}

fn valid_count_reordered(batch: &[KeySets]) -> usize {
    valid_count(reorder(batch).order.iter().map(|number| &batch[*number as usize]))
}

/// Whether `parent` writes what `child` reads, so that `child` has to come first.
fn leads(batch: &[KeySets], parent: usize, child: usize) -> bool {
    parent != child && batch[parent].writes.iter().any(|key| batch[child].reads.contains(key))
}

/// Table 3 of the paper, with the steps of section 5.1: cycles 0-3, 0-3-1 and 2-4; 0 goes before 3, and 2 before 4.
#[test]
fn the_worked_example_gives_the_schedule_of_the_paper() {
    let batch = [
        transaction(&[0, 1], &[2]),
        transaction(&[3, 4, 5], &[0]),
        transaction(&[6, 7], &[3, 9]),
        transaction(&[2, 8], &[1, 4]),
        transaction(&[9], &[5, 6, 8]),
        transaction(&[], &[7]),
    ];
    let expected = Reordering { order: vec![5, 1, 3, 4], dropped: vec![0, 2], cycles: 3, capped: false };
    assert_eq!(reorder(&batch), expected);
}

/// Tables 1 and 2 of the paper.
#[test]
fn who_is_behind_a_writer_of_what_it_reads_is_put_before_it() {
    let batch = [
        transaction(&[], &[1]),
        transaction(&[1, 2], &[2]),
        transaction(&[1, 3], &[3]),
        transaction(&[1, 3], &[4]),
    ];
    assert_eq!(valid_count(&batch), 1);
    assert_eq!(valid_count_reordered(&batch), 4);
    assert_eq!(reorder(&batch).order, [3, 2, 1, 0]);
}

/// Appendix B.1: writers of 512 keys, then readers of them; in sequence i the last i - 1 have been moved to the
/// front.
#[test]
fn readers_behind_writers_are_all_saved() {
    let writers = (0..512).map(|key| transaction(&[], &[key]));
    let readers = (0..512).map(|key| transaction(&[key], &[]));
    let first: Vec<KeySets> = writers.chain(readers).collect();
    for moved in [0, 1, 100, 511, 512] {
        let mut batch = first.clone();
        batch.rotate_right(moved);
        assert_eq!(valid_count(&batch), 512 + moved);
        assert_eq!(valid_count_reordered(&batch), 1_024);
    }
}

/// Appendix B.2: groups of t transactions that hold a cycle of t and one of t - 1 transactions.
#[test]
fn of_a_long_cycle_one_transaction_is_dropped() {
    for size in [2_u32, 4, 8, 16, 32, 64, 128, 256, 512] {
        let batch: Vec<KeySets> = (0..1_024)
            .map(|number| {
                let (group, place) = (number / size * size, number % size);
                let written = if place + 1 == size { 0 } else { place };
                transaction(&[group + place.saturating_sub(1)], &[group + written])
            })
            .collect();
        let groups = 1_024 / size as usize;
        let reordering = reorder(&batch);
        assert_eq!(valid_count(&batch), 512, "groups of {size}");
        assert_eq!(valid_count_reordered(&batch), 1_024 - groups, "groups of {size}");
        let cycles = if size == 2 { groups } else { 2 * groups };
        assert_eq!((reordering.cycles, reordering.capped), (cycles, false), "groups of {size}");
    }
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(reorder(&[]), Reordering::default());
    let untouched = [KeySets::default(), KeySets::default()];
    assert_eq!(reorder(&untouched), Reordering { order: vec![1, 0], ..Reordering::default() });
}

#[test]
fn who_writes_the_same_without_reading_is_no_conflict() {
    let batch = vec![transaction(&[], &[7]); 100];
    let reordering = reorder(&batch);
    assert_eq!((reordering.order.len(), reordering.dropped.len()), (100, 0));
}

#[test]
fn reading_what_one_writes_oneself_is_no_cycle() {
    let batch: Vec<KeySets> = (0..100).map(|key| transaction(&[key], &[key])).collect();
    assert!(reorder(&batch).dropped.is_empty());
}

#[test]
fn of_updates_of_one_key_one_stays_and_all_who_only_read_it() {
    let mut batch = vec![transaction(&[3], &[3]); 5];
    batch.extend(vec![transaction(&[3], &[]); 5]);
    let reordering = reorder(&batch);
    assert_eq!(reordering.dropped, [0, 1, 2, 3]);
    assert_eq!(reordering.order.last(), Some(&4));
    assert_eq!(valid_count_reordered(&batch), 6);
}

#[test]
fn a_clique_is_thinned_by_degree() {
    let reordering = reorder(&vec![transaction(&[0], &[0]); 200]);
    assert!(reordering.capped);
    assert_eq!(reordering.order, [199]);
    assert_eq!(reordering.dropped, (0..199).collect::<Vec<_>>());
}

/// A ring of joints with two ways from each to the next: few edges, and two to the power of the joints as many
/// cycles.
#[test]
fn more_cycles_than_are_counted_are_given_up() {
    let ring = |joints: u32| -> Vec<KeySets> {
        let joint = |number: u32| number % joints * 3;
        let three = |number| {
            let ways = [joint(number) + 1, joint(number) + 2];
            [
                transaction(&[joint(number)], &ways),
                transaction(&ways[..1], &[joint(number + 1)]),
                transaction(&ways[1..], &[joint(number + 1)]),
            ]
        };
        (0..joints).flat_map(three).collect()
    };
    let counted = reorder(&ring(10));
    assert_eq!((counted.dropped.as_slice(), counted.cycles, counted.capped), ([0].as_slice(), 1_024, false));
    let given_up = reorder(&ring(11));
    assert_eq!((given_up.dropped.as_slice(), given_up.cycles, given_up.capped), ([0].as_slice(), 0, true));
    assert_eq!(valid_count_reordered(&ring(11)), 32);
}

/// A path that is followed both ways has a cycle per pair of neighbours, but finding them one by one reads too many
/// rows.
#[test]
fn a_search_that_takes_too_long_is_given_up() {
    let batch: Vec<KeySets> =
        (0..1_000).map(|number| transaction(&[number, number + 1], &[number, number + 1])).collect();
    let reordering = reorder(&batch);
    assert!(reordering.capped);
    assert_eq!(valid_count_reordered(&batch), 500);
}

/// The algorithm as the paper has it, written down without any care for time.
fn as_in_the_paper(batch: &[KeySets]) -> Reordering {
    let mut cycles = Vec::new();
    for start in 0..batch.len() {
        cycles_from(batch, &mut vec![start], &mut cycles);
    }
    let counted = cycles.len();
    let mut kept: Vec<usize> = (0..batch.len()).collect();
    while !cycles.is_empty() {
        let count = |number: usize| cycles.iter().filter(|cycle| cycle.contains(&number)).count();
        let most = kept.iter().copied().map(count).max().expect("a cycle has members");
        let most = kept.iter().copied().find(|number| count(*number) == most).expect("it was found");
        kept.retain(|number| *number != most);
        cycles.retain(|cycle| !cycle.contains(&most));
    }
    let mut order: Vec<usize> = Vec::new();
    let mut cursor = kept.first().copied();
    while let Some(number) = cursor {
        let unscheduled = || kept.iter().copied().filter(|other| !order.contains(other));
        if order.contains(&number) {
            cursor = unscheduled().next();
        } else if let Some(parent) = unscheduled().find(|other| leads(batch, *other, number)) {
            cursor = Some(parent);
        } else {
            let child = unscheduled().find(|other| leads(batch, number, *other));
            order.push(number);
            cursor = child.or(cursor);
        }
    }
    let order = order.iter().rev().map(|number| *number as u32).collect();
    let dropped =
        (0..batch.len()).filter(|number| !kept.contains(number)).map(|number| number as u32).collect();
    Reordering { order, dropped, cycles: counted, capped: false }
}

/// Adds the cycles that begin with a path and have no smaller number than its first.
fn cycles_from(batch: &[KeySets], path: &mut Vec<usize>, cycles: &mut Vec<Vec<usize>>) {
    let last = path[path.len() - 1];
    if leads(batch, last, path[0]) {
        cycles.push(path.clone());
    }
    for next in path[0] + 1..batch.len() {
        if leads(batch, last, next) && !path.contains(&next) {
            path.push(next);
            cycles_from(batch, path, cycles);
            path.pop();
        }
    }
}

/// Who lies on a cycle.
fn on_cycles(batch: &[KeySets]) -> Vec<bool> {
    let count = batch.len();
    let row = |from| (0..count).map(|to| leads(batch, from, to)).collect();
    let mut reaches: Vec<Vec<bool>> = (0..count).map(row).collect();
    for middle in 0..count {
        for from in 0..count {
            for to in 0..count {
                reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
            }
        }
    }
    (0..count).map(|number| reaches[number][number]).collect()
}

fn batches(transactions: usize, keys: u32, keys_each: usize) -> impl Strategy<Value = Vec<KeySets>> {
    let some_keys =
        move || btree_set(0..keys, 0..=keys_each).prop_map(|keys| keys.into_iter().collect::<Vec<_>>());
    let one = (some_keys(), some_keys()).prop_map(|(reads, writes)| KeySets { reads, writes });
    vec(one, 0..=transactions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Six transactions have at most 409 cycles, so that nothing is capped.
    #[test]
    fn small_batches_come_out_as_in_the_paper(batch in batches(6, 8, 3)) {
        prop_assert_eq!(reorder(&batch), as_in_the_paper(&batch));
    }

    #[test]
    fn sparse_batches_come_out_as_in_the_paper(batch in batches(12, 30, 2)) {
        let reordering = reorder(&batch);
        prop_assume!(!reordering.capped);
        prop_assert_eq!(reordering, as_in_the_paper(&batch));
    }

    #[test]
    fn everybody_is_kept_or_dropped_and_who_is_kept_is_valid(
        batch in prop_oneof![batches(90, 12, 3), batches(90, 60, 3), batches(150, 200, 4)],
    ) {
        let Reordering { order, dropped, .. } = reorder(&batch);
        let mut all = [order.as_slice(), dropped.as_slice()].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..batch.len() as u32).collect::<Vec<_>>());
        prop_assert!(dropped.is_sorted());
        prop_assert_eq!(valid_count(order.iter().map(|number| &batch[*number as usize])), order.len());
    }

    #[test]
    fn who_is_on_no_cycle_is_never_dropped(
        batch in prop_oneof![batches(60, 12, 2), batches(60, 60, 3)],
    ) {
        let on_cycles = on_cycles(&batch);
        let Reordering { dropped, cycles, capped, .. } = reorder(&batch);
        prop_assert!(dropped.iter().all(|number| on_cycles[*number as usize]));
        prop_assert_eq!(on_cycles.contains(&true), !dropped.is_empty());
        prop_assert!(capped || (cycles == 0) == dropped.is_empty());
    }

    /// So it depends neither on how keys are numbered nor on chance.
    #[test]
    fn the_same_batch_with_other_names_for_its_keys_comes_out_the_same(batch in batches(90, 40, 3)) {
        let renamed = |keys: &[u32]| keys.iter().map(|key| 1_000 - 7 * key).collect::<Vec<_>>();
        let again: Vec<KeySets> =
            batch.iter().map(|one| transaction(&renamed(&one.reads), &renamed(&one.writes))).collect();
        prop_assert_eq!(reorder(&batch), reorder(&again));
    }
}
