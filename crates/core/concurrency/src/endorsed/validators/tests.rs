use super::*;
use crate::endorsed::validation::in_order;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use state::{KeyRange, Read, RowId, Scan};
use std::ops::Bound;
use types::{ColumnSet, EndorsedWrite, Key, RowWrite, TableId, Value};

const TABLE: TableId = TableId(1);

fn key(number: u8) -> Key {
    Key::from_bytes(&[number])
}

fn row(number: u8) -> RowId {
    RowId { table: TABLE, key: key(number) }
}

/// What a transaction does; everything is on column 0 unless it says otherwise.
#[derive(Clone, Default)]
struct Does {
    reads: Vec<(u8, usize)>,
    scans: Vec<(u8, u8)>,
    writes: Vec<(u8, usize)>,
    creates: Vec<u8>,
}

fn effects(does: &Does) -> Effects {
    let read =
        |(number, column): &(u8, usize)| Read { row: row(*number), columns: ColumnSet::column(*column) };
    let scan = |(first, last): &(u8, u8)| Scan {
        table: TABLE,
        range: KeyRange { start: Bound::Included(key(*first)), end: Bound::Included(key(*last)) },
        columns: ColumnSet::column(0) | ColumnSet::EXISTS,
        predicate_columns: ColumnSet::column(0),
        predicate: None,
        result: Vec::new(),
    };
    let write = |number: u8, write: RowWrite| {
        state::write_command(&EndorsedWrite { table: TABLE, key: key(number), guard: None, write })
    };
    let assign = |(number, column): &(u8, usize)| {
        write(*number, RowWrite::Assign(vec![(*column as u16, Value::BigInt(1))]))
    };
    let create = |number: &u8| write(*number, RowWrite::Put([Value::BigInt(1)].into_iter().collect()));
    Effects {
        reads: does.reads.iter().map(read).collect(),
        scans: does.scans.iter().map(scan).collect(),
        commands: does.writes.iter().map(assign).chain(does.creates.iter().map(create)).collect(),
        result: Ok(vec![]),
        steps: 1,
        catalog: None,
    }
}

fn proposed(does: &Does, snapshot: u64) -> Proposed {
    Proposed { effects: Arc::new(effects(does)), snapshot, runs_again: false }
}

/// Takes what is ready and finishes it in any order, as validators of any speed would; also the numbers of those that
/// were not looked at.
fn judge_in_any_order(validators: &mut Validators, rng: &mut StdRng) -> Vec<Number> {
    let (mut taken, mut fated): (Vec<Task>, Vec<Number>) = Default::default();
    loop {
        let open = validators.waiting.get_mut().batches.iter().any(|batch| batch.open > 0);
        if !open {
            return fated;
        }
        taken.extend(validators.waiting.get_mut().take(rng.random_range(0..4)));
        taken.shuffle(rng);
        if rng.random_bool(0.7)
            && let Some(task) = taken.pop()
        {
            if let Ready::Fated(number) = task.ready {
                fated.push(number);
            }
            let verdicts = validators.perform(std::slice::from_ref(&task));
            validators.waiting.get_mut().finish(task.ready.number(), verdicts[0]);
        }
    }
}

fn fresh() -> RecentWrites {
    RecentWrites::new(256)
}

#[test]
fn the_paper_s_two_blocks_end_as_in_its_tables() {
    // SmartFabric, Tables 1 and 2: k1, k4 and k6 exist; everything was simulated before block 1.
    let does = |reads: &[u8], scans: &[(u8, u8)], writes: &[u8], creates: &[u8]| Does {
        reads: reads.iter().map(|number| (*number, 0)).collect(),
        scans: scans.to_vec(),
        writes: writes.iter().map(|number| (*number, 0)).collect(),
        creates: creates.to_vec(),
    };
    let blocks = [
        vec![
            does(&[6], &[], &[1], &[]),
            does(&[1], &[], &[6], &[]),
            does(&[], &[], &[6], &[]),
            does(&[], &[], &[], &[5]),
        ],
        vec![does(&[], &[(2, 5)], &[7], &[]), does(&[4], &[], &[4], &[])],
    ];
    for seed in 0..50 {
        let mut validators = Validators::new(fresh());
        for (height, block) in (1u64..).zip(&blocks) {
            let proposals = block.iter().map(|does| proposed(does, 0)).collect();
            validators.offer(height, Search::of_block(0), proposals);
        }
        let first = validators.waiting.get_mut().take(9);
        let numbers: Vec<Number> = first.iter().map(|task| task.ready.number()).collect();
        assert_eq!(numbers, [0, 3], "T1 and T4 wait for nobody");
        assert_eq!(validators.perform(&first), [true, true]);
        numbers.into_iter().for_each(|number| validators.waiting.get_mut().finish(number, true));
        let fated = judge_in_any_order(&mut validators, &mut StdRng::seed_from_u64(seed));
        assert!(fated.contains(&1) && fated.contains(&4), "T2 (rw) and T5 (pr): {fated:?}");
        assert_eq!(validators.next_batch().expect("block 1"), [true, false, true, true]);
        assert_eq!(validators.next_batch().expect("block 2"), [false, true]);
        assert!(validators.next_batch().is_none());
    }
}

fn random_does(rng: &mut StdRng, keys: u8, scans: bool) -> Does {
    let place = |rng: &mut StdRng| (rng.random_range(0..keys), rng.random_range(0..2));
    let mut does = Does::default();
    for _ in 0..rng.random_range(0..3) {
        does.reads.push(place(rng));
    }
    for _ in 0..rng.random_range(0..3) {
        does.writes.push(place(rng));
    }
    if scans && rng.random_bool(0.3) {
        let first = rng.random_range(0..keys);
        does.scans.push((first, first + rng.random_range(0..3)));
    }
    if rng.random_bool(0.1) {
        does.creates.push(place(rng).0);
    }
    does
}

#[test]
fn every_schedule_comes_to_the_verdicts_of_one_after_the_other() {
    let (mut stale, mut holding, mut not_looked_at) = (0, 0, 0);
    for seed in 0..4_000 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (keys, scans) = (rng.random_range(2..10), rng.random_bool(0.5));
        let again = rng.random_bool(0.3);
        let mut recent = fresh();
        let mut validators = Validators::new(fresh());
        let mut expected = Vec::new();
        let mut oldest = 0;
        for height in 4..rng.random_range(6..10) {
            oldest = if rng.random_bool(0.1) { height - 1 } else { oldest };
            let batch: Vec<Proposed> = (0..rng.random_range(0..12))
                .map(|_| Proposed {
                    runs_again: again && rng.random_bool(0.8),
                    ..proposed(&random_does(&mut rng, keys, scans), height - rng.random_range(0..4))
                })
                .collect();
            let search = Search::of_each(oldest, batch.iter().map(|one| &*one.effects));
            expected.push(in_order(&mut recent, height, search, &batch));
            validators.offer(height, search, batch);
            if rng.random_bool(0.3) {
                not_looked_at += judge_in_any_order(&mut validators, &mut rng).len();
            }
        }
        not_looked_at += judge_in_any_order(&mut validators, &mut rng).len();
        for (height, expected) in (4..).zip(expected) {
            assert_eq!(
                validators.next_batch().as_ref(),
                Some(&expected),
                "seed {seed}, block {height}: {again}"
            );
            holding += expected.iter().filter(|holds| **holds).count();
            stale += expected.iter().filter(|holds| !**holds).count();
        }
        assert!(validators.waiting.get_mut().graph.is_empty(), "seed {seed}: nobody is remembered");
    }
    assert!(stale > 10_000 && holding > 10_000, "{stale}, {holding}");
    assert!(not_looked_at > 5_000, "{not_looked_at}");
}

#[test]
fn who_scans_when_too_much_has_been_scanned_waits_for_everybody() {
    // 65,000 inserts that 40 scans are held against: more than twice what a batch may search through.
    let rows = 65_000u32;
    let wide = |number: u32| Key::from_bytes(&number.to_be_bytes());
    let insert = |number: u32| {
        let write = RowWrite::Put([Value::BigInt(1)].into_iter().collect());
        let command =
            state::write_command(&EndorsedWrite { table: TABLE, key: wide(number), guard: None, write });
        Effects { commands: vec![command], ..effects(&Does::default()) }
    };
    let scan = || {
        let mut scanning = effects(&Does { scans: vec![(0, 0)], ..Does::default() });
        scanning.scans[0].range = KeyRange::ALL;
        scanning
    };
    let batch: Vec<Arc<Effects>> =
        (0..rows).map(insert).chain((0..40).map(|_| scan())).map(Arc::new).collect();
    let propose = || {
        let one =
            |effects: &Arc<Effects>| Proposed { effects: effects.clone(), snapshot: 4, runs_again: false };
        batch.iter().map(one).collect::<Vec<Proposed>>()
    };
    let mut validators = Validators::new(fresh());
    let search = Search::of_each(0, batch.iter().map(|effects| &**effects));
    validators.offer(5, search, propose());
    let verdicts = validators.next_batch().expect("a batch");
    assert_eq!(verdicts, in_order(&mut fresh(), 5, search, &propose()));
    assert_eq!(verdicts.iter().filter(|holds| !**holds).count(), 40, "all scans are stale");
}
