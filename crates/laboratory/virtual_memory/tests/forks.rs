//! Forked processes answer from the memory as it was, and are gone afterwards however they end.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use virtual_memory::{Area, Forked, MemoryError};

const LIMIT: Duration = Duration::from_secs(20);

/// Whether the system still knows the process as a child of this one.
fn is_there(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

#[test]
fn a_forked_process_answers_from_the_memory_as_it_was() {
    let area = Area::new(100_000).expect("memory");
    area.numbers().iter().zip(0..).for_each(|(number, value)| number.store(value, Relaxed));
    let forked = Forked::start(vec![0; 1_000], |child, answer| {
        std::thread::sleep(Duration::from_millis(100));
        let numbers = area.frozen(child).expect("protected");
        answer.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from);
        answer[999] = numbers.iter().sum();
    });
    let forked = forked.expect("it starts");
    area.numbers().iter().for_each(|number| number.store(-1, Relaxed));
    let process = forked.process().expect("it runs");
    let answer = forked.wait(LIMIT).expect("it answers");
    assert_eq!((answer[0], answer[998], answer[999]), (0, 998, 99_999 * 100_000 / 2));
    assert!(!is_there(process));
}

#[test]
fn a_process_that_is_late_or_dies_or_is_not_waited_for_is_reaped() {
    let began = Instant::now();
    let late = Forked::start(vec![0], |_, _| std::thread::sleep(LIMIT)).expect("it starts");
    let process = late.process().expect("it runs");
    let limit = Duration::from_millis(50);
    assert_eq!(late.wait(limit), Err(MemoryError::Late { milliseconds: 50 }));
    assert!(!is_there(process));

    let died = Forked::start(vec![0], |_, _| std::process::abort()).expect("it starts");
    let process = died.process().expect("it runs");
    assert!(matches!(died.wait(LIMIT), Err(MemoryError::Ended { how }) if how.contains("SIGABRT")));
    assert!(!is_there(process));

    let panicked = Forked::start(vec![0], |_, answer| answer[1] = 0).expect("it starts");
    assert!(matches!(panicked.wait(LIMIT), Err(MemoryError::Ended { how }) if how == "exit code 2"));

    let dropped = Forked::start(vec![0], |_, _| std::thread::sleep(LIMIT)).expect("it starts");
    let process = dropped.process().expect("it runs");
    drop(dropped);
    assert!(!is_there(process));
    assert!(began.elapsed() < LIMIT);
}

#[test]
fn a_process_that_writes_frozen_memory_ends_and_this_one_does_not() {
    let area = Area::new(10).expect("memory");
    let forked = Forked::start(vec![0], |child, _| {
        let _ = area.frozen(child);
        area.numbers()[3].store(7, Relaxed);
    });
    let ended = forked.expect("it starts").wait(LIMIT);
    assert!(matches!(ended, Err(MemoryError::Ended { how }) if how.contains("SIGSEGV")));
    assert_eq!(area.numbers()[3].load(Relaxed), 0);
}
