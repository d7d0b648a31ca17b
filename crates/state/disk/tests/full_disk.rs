//! A disk without room: blocks wait, nothing is lost, and the store goes on by itself when there is room again.

mod chain;
mod one_table;

use chain::{expected, header, live};
use disk::{Disk, DiskOptions, RowsIn};
use proofs::state::TreeShape;
use state::{Reopened, StateTree, Store, Stores, content_digest};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCKS: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn block(store: &dyn Store, height: u64) {
    chain::block(store, height, height == BLOCKS + 20);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Takes all the room but this many bytes.
fn take_room(folder: &Path, left: u64) {
    let mut taken = 4u64 << 20;
    let free = (1..).map(|number: u32| folder.join(format!("ballast-{number}")));
    let ballast = free.into_iter().find(|ballast| !ballast.exists()).expect("there are many numbers");
    let mut file = std::fs::File::create(&ballast).expect("there is a name for it");
    let mut length = 0;
    while taken >= 512 {
        match file.write_all(&vec![7; taken as usize]) {
            Ok(()) => length += taken,
            Err(_) => taken /= 2,
        }
    }
    // What was written of the last piece counts too.
    let length = file.metadata().map_or(length, |file| file.len());
    file.set_len(length.saturating_sub(left)).expect("a file can be cut");
}

fn give_room_back(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            std::fs::remove_file(path).expect("it is there");
        }
    }
}

#[test]
fn blocks_wait_for_room_and_nothing_is_lost() {
    if !test_machine::required("unshare") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for rows_in in ["disk", "memory"] {
        let mut inside = Command::new("unshare");
        inside.args(["-rm"]).arg(std::env::current_exe().expect("this program"));
        inside.args(["--exact", "on_a_small_disk", "--ignored", "--nocapture"]);
        let output = inside.env("SMALL_DISK", folder.path()).env("ROWS_IN", rows_in).output();
        let output = output.expect("it starts");
        let told = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "rows in {rows_in}: {}", String::from_utf8_lossy(&told));
        assert!(String::from_utf8_lossy(&told).contains("1 passed"), "{}", String::from_utf8_lossy(&told));
    }
}

/// In a mount namespace of its own, with 12 MiB.
#[test]
#[ignore = "the test above runs it where it may mount a small disk"]
fn on_a_small_disk() {
    let folder = std::env::var("SMALL_DISK").expect("the test above says where");
    let folder = Path::new(&folder);
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12m", "none"]).arg(folder).status();
    assert!(mounted.expect("mount starts").success());
    std::thread::spawn(|| {
        std::thread::sleep(2 * PATIENCE);
        eprintln!("it waits for ever");
        std::process::exit(1);
    });
    let rows_in = match std::env::var("ROWS_IN").as_deref() {
        Ok("memory") => RowsIn::Memory,
        _ => RowsIn::Disk,
    };
    let open = || Disk::open(&folder.join("state"), DiskOptions { rows_in, memory_bytes: 300_000 });
    let stores = open().expect("there is room");
    let store = stores.create(one_table::catalog()).expect("there is room");
    (1..=60).for_each(|height| block(store.as_ref(), height));
    store.durable_point().expect("there is room");
    take_room(folder, 60_000);
    let height = AtomicU64::new(60);
    std::thread::scope(|scope| {
        let going_on = scope.spawn(|| {
            for next in 61..=BLOCKS {
                block(store.as_ref(), next);
                height.store(next, Ordering::Release);
            }
            store.durable_point().expect("there is room again")
        });
        wait_until("the disk is full", || store.statistics().waits_for_room);
        if rows_in == RowsIn::Disk {
            let stands = || {
                // Merging gives room back.
                take_room(folder, 0);
                let before = height.load(Ordering::Acquire);
                std::thread::sleep(Duration::from_millis(700));
                height.load(Ordering::Acquire) == before
            };
            wait_until("blocks wait", stands);
            assert!(height.load(Ordering::Acquire) < BLOCKS, "not all of them can");
        }
        give_room_back(folder);
        assert_eq!(going_on.join().expect("nothing fails"), Some(BLOCKS));
    });
    assert!(!store.statistics().waits_for_room);
    let digest = |height| content_digest(&expected(height)).expect("a map can be read");
    assert_eq!(content_digest(store.snapshot().as_ref()).expect("it can be read"), digest(BLOCKS));
    // And now it ends while the disk is full.
    take_room(folder, 30_000);
    block(store.as_ref(), BLOCKS + 1);
    drop((store, stores));
    let stores = open().expect("nothing is written");
    let newest = stores.left().expect("it can be read")[0].header.height;
    assert_eq!(newest, BLOCKS, "what was durable");
    give_room_back(folder);
    let Reopened { state, .. } = stores.reopen(newest).expect("there is room").expect("it was left");
    assert_eq!(content_digest(state.snapshot().as_ref()).expect("it can be read"), digest(BLOCKS));
    let (height, live) = (BLOCKS + 20, live(BLOCKS + 20).content());
    (BLOCKS + 1..=height).for_each(|height| block(state.as_ref(), height));
    let then = state.snapshot();
    (height + 1..=BLOCKS + 40).for_each(|height| block(state.as_ref(), height));
    let kept = state.keep_checkpoint(&header(height), then, live.clone(), TreeShape::Groups);
    let kept = kept.expect("there is room").expect("the store is open");
    let full = StateTree::new(&expected(height), &live, TreeShape::Groups).expect("a map can be read");
    assert_eq!(kept.tree().root(), full.root());
    drop((kept, state));
    let unmounted = Command::new("umount").arg("-l").arg(folder).status();
    assert!(unmounted.expect("umount starts").success());
}
