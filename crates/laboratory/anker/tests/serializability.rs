//! Whatever commits under full serializability could have run one after the other, in the order of commits: every value that was
//! read, and the state at the end. Precision locking aborts what it must.

mod support;

use anker::{AnkerError, Condition, Engine, System, Transaction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Mutex;
use support::{SHAPES, State};

const ROWS: usize = 12;

/// What a random transaction does. Values that it writes follow from what it has read.
#[derive(Clone, Debug)]
enum Operation {
    Read {
        row: usize,
        column: usize,
    },
    /// Sums amounts of rows whose kind or amount lies between two values.
    Sum {
        column: usize,
        from: i64,
        to: i64,
    },
    Write {
        row: usize,
        column: usize,
    },
    Insert {
        kind: i64,
    },
}

#[derive(Debug)]
struct Ran {
    at: u64,
    is_reader: bool,
    operations: Vec<Operation>,
    seen: Vec<i64>,
}

fn operations(random: &mut StdRng) -> Vec<Operation> {
    (0..random.random_range(1..6))
        .map(|_| {
            let (row, column) = (random.random_range(0..ROWS), random.random_range(1..4));
            match random.random_range(0..10) {
                0..3 => Operation::Read { row, column },
                3..5 => {
                    let from = random.random_range(0..8);
                    Operation::Sum {
                        column: random.random_range(1..3),
                        from,
                        to: from + random.random_range(0..3),
                    }
                }
                5..9 => Operation::Write { row, column },
                _ => Operation::Insert { kind: random.random_range(0..8) },
            }
        })
        .collect()
}

/// What is written: it depends on everything that was read before, and stays small, so that conditions on it are met.
fn written(seen: &[i64], row: usize) -> i64 {
    seen.iter().fold(row as i64, |value, one| (value * 3 + one + 1).rem_euclid(8))
}

fn condition(column: usize, from: i64, to: i64) -> [Condition; 1] {
    [Condition { column, from, to }]
}

fn execute(
    mut transaction: Transaction<'_>,
    operations: &[Operation],
) -> Result<(u64, bool, Vec<i64>), AnkerError> {
    let (mut seen, mut reader) = (Vec::new(), true);
    for operation in operations {
        match *operation {
            Operation::Read { row, column } => seen.push(transaction.read(0, row as u32, column)?),
            Operation::Sum { column, from, to } => {
                let mut sum = 0;
                transaction
                    .read_where(0, &condition(column, from, to), &[3], |_, values| sum += values[0] + 1)?;
                seen.push(sum);
            }
            Operation::Write { row, column } => {
                reader = false;
                transaction.write(0, row as u32, column, written(&seen, row))?;
            }
            Operation::Insert { kind } => {
                reader = false;
                transaction.insert(0, vec![0, kind, written(&seen, 1), 1], None)?;
            }
        }
        std::thread::yield_now();
    }
    Ok((transaction.commit()?, reader, seen))
}

fn initial() -> State {
    [(0..ROWS as i64).map(|row| vec![row, row % 8, row % 5, row]).collect(), Vec::new()]
}

/// Runs random transactions on threads; gives what committed, in its order, and the engine.
fn history(system: System, seed: u64) -> (Engine, Vec<Ran>, usize) {
    let mut engine = Engine::new(system, &SHAPES, 0).expect("a small engine");
    let rows = initial();
    engine.load(0, rows[0].iter().map(|row| (row.as_slice(), None))).expect("room");
    let (ran, conflicts) = (Mutex::new(Vec::new()), Mutex::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (engine, ran, conflicts) = (&engine, &ran, &conflicts);
            scope.spawn(move || {
                let mut random = StdRng::seed_from_u64(seed * 4 + thread);
                for _ in 0..60 {
                    let operations = operations(&mut random);
                    match execute(engine.begin(), &operations) {
                        Ok((at, is_reader, seen)) => {
                            ran.lock().expect("no panic").push(Ran { at, is_reader, operations, seen });
                        }
                        Err(AnkerError::Conflict) => *conflicts.lock().expect("no panic") += 1,
                        Err(error) => panic!("{error}"),
                    }
                    if system.snapshots_columns() && random.random_range(0..4) == 0 {
                        let asked = engine.ask(&support::questions()[2]).expect("it is asked");
                        asked.answer().expect("an answer");
                    }
                }
            });
        }
    });
    let mut ran = ran.into_inner().expect("no panic");
    // One that wrote nothing takes effect behind the commit that it began after.
    ran.sort_by_key(|one| (one.at, one.is_reader));
    (engine, ran, conflicts.into_inner().expect("no panic"))
}

/// The first thing that is not as if one ran after the other.
fn first_difference(engine: &Engine, ran: &[Ran]) -> Option<String> {
    let mut rows = initial()[0].clone();
    for one in ran {
        let (mut seen, mut own) = (Vec::new(), rows.clone());
        let before = rows.len();
        let mut inserted = Vec::new();
        for operation in &one.operations {
            match *operation {
                Operation::Read { row, column } => seen.push(own[row][column]),
                Operation::Sum { column, from, to } => {
                    let matching = own[..before].iter().filter(|row| (from..=to).contains(&row[column]));
                    seen.push(matching.map(|row| row[3] + 1).sum());
                }
                Operation::Write { row, column } => own[row][column] = written(&seen, row),
                Operation::Insert { kind } => inserted.push(vec![0, kind, written(&seen, 1), 1]),
            }
        }
        if seen != one.seen {
            return Some(format!("{one:?} would have seen {seen:?}"));
        }
        own.extend(inserted);
        rows = own;
    }
    let newest = |row, column| engine.newest(0, row, column).expect("it exists");
    let at_end: Vec<Vec<i64>> =
        (0..engine.rows(0)).map(|row| (0..4).map(|column| newest(row, column)).collect()).collect();
    (at_end != rows).then(|| format!("the end is {at_end:?}, and would have been {rows:?}"))
}

#[test]
fn random_histories_are_as_if_one_ran_after_the_other() {
    for system in &System::ALL[..5] {
        let (mut committed, mut conflicts) = (0, 0);
        for seed in 0..60 {
            let (engine, ran, given_up) = history(*system, seed);
            assert_eq!(first_difference(&engine, &ran), None, "{} with seed {seed}", system.name);
            committed += ran.len();
            conflicts += given_up;
        }
        assert!(committed > 2_000 && conflicts > 100, "{}: {committed}, {conflicts}", system.name);
    }
}

#[test]
fn without_validation_the_same_check_finds_what_is_not_serializable() {
    let snapshot = System::named("see-snapshot").expect("it exists");
    let differs = |seed| {
        let (engine, ran, _) = history(snapshot, seed);
        first_difference(&engine, &ran).is_some()
    };
    assert!((0..60).any(differs), "the check cannot fail");
}

/// Two transactions run side by side, then commit one after the other.
fn side_by_side(
    system: System,
    first: impl FnOnce(&mut Transaction<'_>) -> Result<(), AnkerError>,
    second: impl FnOnce(&mut Transaction<'_>) -> Result<(), AnkerError>,
) -> Result<u64, AnkerError> {
    let mut engine = Engine::new(system, &SHAPES, 0).expect("a small engine");
    let rows = initial();
    engine.load(0, rows[0].iter().map(|row| (row.as_slice(), None))).expect("room");
    let (mut one, mut two) = (engine.begin(), engine.begin());
    first(&mut one).expect("nobody has committed");
    second(&mut two).expect("nobody has committed");
    one.commit().expect("it is the first");
    two.commit()
}

#[test]
fn write_skew_and_phantoms_are_given_up_and_what_does_not_meet_commits() {
    for system in System::ALL {
        let validates = system.isolation == anker::Isolation::Serializable;
        let skew = side_by_side(
            system,
            |one| one.read(0, 1, 2).and_then(|value| one.write(0, 2, 2, value)),
            |two| two.read(0, 2, 2).and_then(|value| two.write(0, 1, 2, value)),
        );
        assert_eq!(skew.is_err(), validates, "{}", system.name);
        let phantom = |kind| {
            side_by_side(
                system,
                |one| one.insert(0, vec![50, 6, 1, 1], None),
                |two| {
                    two.read_where(0, &condition(1, kind, kind), &[2], |_, _| ())?;
                    two.write(0, 1, 2, 9)
                },
            )
        };
        assert_eq!(phantom(6).is_err(), validates, "{}", system.name);
        assert!(phantom(5).is_ok(), "{}", system.name);
        // The same row, another column; a row whose key is not among those read.
        let other = side_by_side(
            system,
            |one| one.write(0, 1, 3, 7),
            |two| {
                two.read(0, 1, 2)?;
                two.read_where(0, &condition(0, 4, 7), &[3], |_, _| ())?;
                two.write(0, 2, 2, 9)
            },
        );
        assert!(other.is_ok(), "{}", system.name);
        // Both write the same value: the first committer wins, but where nothing is versioned.
        let lost = side_by_side(system, |one| one.write(0, 1, 2, 7), |two| two.write(0, 1, 2, 8));
        assert_eq!(lost.is_err(), system.name != "see-uncommitted", "{}", system.name);
    }
}

#[test]
fn a_transaction_that_needs_an_old_version_is_given_up_at_once_where_snapshots_take_the_chains() {
    for system in &System::ALL[..6] {
        let mut engine = Engine::new(*system, &SHAPES, 0).expect("a small engine");
        let rows = initial();
        engine.load(0, rows[0].iter().map(|row| (row.as_slice(), None))).expect("room");
        let mut old = engine.begin();
        let mut writes = engine.begin();
        writes.write(0, 3, 2, 77).expect("it exists");
        writes.commit().expect("nobody else");
        let expected = if system.storage == anker::Storage::See { Ok(3) } else { Err(AnkerError::Conflict) };
        assert_eq!(old.read(0, 3, 2), expected, "{}", system.name);
        assert_eq!(engine.begin().read(0, 3, 2), Ok(77));
    }
}
