//! Kills and losses of power at random instants: what a store has called durable is there again, and what is there is the state
//! behind one block, never a mixture.
//!
//! ```text
//!  this test ──starts──▶ blocks for ever, on a store ──records──▶ log ──▶ a model of the disk (`drive.rs`)
//!      │  ──kills──────▶                                                      │ lost, torn, reordered
//!      └──────────── opens the folder as it is, or as it is after a loss of power ◀┘
//! ```
//!
//! `make test` runs 60 rounds. `KILLS=1000` asks for others, `KILLS_SEED` for other ones:
//!
//! ```sh
//! KILLS=1000 cargo test -p disk --test power_loss -- --nocapture
//! ```
//!
//! In each round the program goes on with what the round before has left, and is killed. In two of three rounds the power is lost
//! then. At three more instants of each round it is asked what a loss of power would have left.

#[path = "../chain/mod.rs"]
mod chain;
mod drive;
#[path = "../one_table/mod.rs"]
mod one_table;
mod records;

use chain::{block, expected, header, live};
use crypto::Digest;
use disk::{Disk, DiskOptions, RowsIn};
use drive::{Drive, Forgets, Taken};
use one_table::TABLE;
use proofs::state::TreeShape;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use records::Record;
use state::{LiveRequest, Reopened, Snapshot, StateTree, Store, StoreError, Stores, content_digest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Rounds, unless `KILLS` says otherwise.
const ROUNDS: u64 = 60;
/// After so many rounds it begins with an empty disk.
const ROUNDS_OF_A_DISK: u64 = 8;
/// Checkpoints that are kept.
const KEPT: usize = 2;
const SHAPE: TreeShape = TreeShape::Groups;

fn variable(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |value| value.parse().expect(name))
}

/// How much memory a store has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// For a block and more: durable points are ends of blocks.
    OfBlocks,
    /// For less than a block: rows on the disk are written within blocks too, and the store comes back at checkpoints only
    /// until the block has ended.
    Less,
}

fn options(rows_in: RowsIn, room: Room) -> DiskOptions {
    let memory_bytes = match room {
        Room::OfBlocks => 900_000,
        Room::Less => 300_000,
    };
    DiskOptions { rows_in, memory_bytes }
}

/// One line, in one piece.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).expect("somebody listens");
}

/// The program that is killed.
#[test]
#[ignore = "the tests below run it, and kill it"]
fn blocks_for_ever() {
    let folder = PathBuf::from(std::env::var("FOLDER").expect("the tests below say where"));
    let rows_in = if variable("IN_MEMORY", 0) == 1 { RowsIn::Memory } else { RowsIn::Disk };
    let room = if variable("LESS_ROOM", 0) == 1 { Room::Less } else { Room::OfBlocks };
    let mut random = StdRng::seed_from_u64(variable("SEED", 0));
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(60));
        eprintln!("nobody has killed it");
        std::process::exit(1);
    });
    say("\nopening");
    let stores = Disk::open(&folder.join("state"), options(rows_in, room)).expect("a folder");
    let left: Vec<u64> = heights(&stores).expect("the folder can be read");
    let (store, mut height) = match left.first() {
        Some(newest) => {
            let Reopened { state, .. } = stores.reopen(*newest).expect("it is whole").expect("it was left");
            (state, *newest)
        }
        None => (stores.create(one_table::catalog()).expect("there is room"), 0),
    };
    stores.recorded(height);
    stores.settle().expect("there is room");
    let kept = left
        .into_iter()
        .filter(|height| stores.kept_checkpoint(*height, SHAPE).is_ok_and(|kept| kept.is_some()));
    let mut kept: Vec<u64> = kept.collect();
    kept.sort_unstable();
    say("running");
    let (announce, announced) = std::sync::mpsc::sync_channel::<(u64, Arc<dyn Snapshot>)>(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (height, snapshot) in announced {
                keep(&stores, store.as_ref(), (height, snapshot), &mut kept);
            }
        });
        loop {
            height += 1;
            let is_checkpoint = random.random_bool(0.15);
            block(store.as_ref(), height, is_checkpoint);
            say(&format!("recorded {height}"));
            stores.recorded(height);
            if is_checkpoint {
                announce.send((height, store.snapshot())).expect("it is received");
            }
            if random.random_bool(0.2)
                && let Some(height) = store.durable_point().expect("there is room")
            {
                say(&format!("durable {height}"));
            }
        }
    });
}

fn keep(stores: &Disk, store: &dyn Store, (height, snapshot): (u64, Arc<dyn Snapshot>), kept: &mut Vec<u64>) {
    let live = live(height).content();
    let made = store.keep_checkpoint(&header(height), snapshot, live, SHAPE).expect("there is room");
    if made.is_some() {
        say(&format!("kept {height}"));
        kept.push(height);
        kept.drain(..kept.len().saturating_sub(KEPT));
        say(&format!("keeps {}", kept.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")));
        stores.keep_checkpoints(kept).expect("there is room");
    }
}

fn heights(stores: &Disk) -> Result<Vec<u64>, StoreError> {
    Ok(stores.left()?.into_iter().map(|point| point.header.height).collect())
}

/// What the program has said of its state.
#[derive(Clone, Default, Debug)]
struct Promises {
    /// It comes back there or above.
    durable: u64,
    /// And not above this height.
    recorded: u64,
    /// And, if somebody wants that, at these checkpoints.
    kept: BTreeSet<u64>,
}

impl Promises {
    fn hear(&mut self, text: &str) {
        for line in text.lines() {
            let (what, heights) = line.split_once(' ').unwrap_or((line, ""));
            let heights = || heights.split(' ').map(|height| height.parse::<u64>().expect("a height"));
            match what {
                "durable" => self.durable = self.durable.max(heights().max().expect("one")),
                "recorded" => self.recorded = self.recorded.max(heights().max().expect("one")),
                "kept" => self.kept.extend(heights()),
                "keeps" => {
                    let newest = heights().max().expect("some");
                    self.kept.retain(|kept| *kept >= newest || heights().any(|height| height == *kept));
                }
                _ => {}
            }
        }
    }
}

/// What is in a store behind a block.
struct Known {
    content: Digest,
    rows: u64,
    root: Digest,
    live: Vec<LiveRequest>,
}

impl Known {
    fn at(height: u64) -> Known {
        let (model, live) = (expected(height), live(height).content());
        Known {
            content: content_digest(&model).expect("a map can be read"),
            rows: model.tables.get(&TABLE).map_or(0, |rows| rows.len() as u64),
            root: StateTree::new(&model, &live, SHAPE).expect("a map can be read").root(),
            live: live.iter().collect(),
        }
    }
}

/// Opens what is in a folder, and says what is wrong; otherwise the newest height there.
fn check(
    folder: &Path,
    (rows_in, room): (RowsIn, Room),
    promises: &Promises,
    known: &mut BTreeMap<u64, Known>,
) -> Result<u64, String> {
    let failed = |error: StoreError| error.to_string();
    let digest = |rows: &dyn Snapshot| content_digest(rows).map_err(|error| error.to_string());
    let stores = Disk::open(&folder.join("state"), options(rows_in, room)).map_err(failed)?;
    let left = heights(&stores).map_err(failed)?;
    if folder.join("state/damaged").exists() {
        return Err("it looks damaged, and is read whole".to_string());
    }
    let newest = left.first().copied().unwrap_or(0);
    let lowest = match room {
        Room::OfBlocks => promises.durable,
        Room::Less => promises.kept.last().copied().unwrap_or(0),
    };
    if newest < lowest || newest > promises.recorded {
        return Err(format!("it comes back at {newest}, {left:?}"));
    }
    if let Some(lost) = promises.kept.iter().find(|height| !left.contains(height)) {
        return Err(format!("checkpoint {lost} is not among {left:?}"));
    }
    let mut newest_state = None;
    for height in left.into_iter().rev() {
        let known = known.entry(height).or_insert_with(|| Known::at(height));
        let wrong = |what: &str| Err(format!("height {height}: {what}"));
        let kept = stores.kept_checkpoint(height, SHAPE).map_err(failed)?;
        if kept.is_none() && promises.kept.contains(&height) {
            return wrong("the checkpoint has no tree");
        }
        if let Some(kept) = kept {
            if kept.tree().root() != known.root || *kept.header() != header(height) {
                return wrong("the checkpoint has another root");
            }
            if digest(kept.snapshot().as_ref())? != known.content {
                return wrong("the checkpoint has other rows");
            }
        }
        let Some(Reopened { point, state, live }) = stores.reopen(height).map_err(failed)? else {
            return wrong("it is not there any more");
        };
        if point.header != header(height) || digest(state.snapshot().as_ref())? != known.content {
            return wrong("it is a mixture");
        }
        if state.rows(TABLE) != known.rows || !live.content().iter().eq(known.live.iter().copied()) {
            return wrong("its rows are counted, or its ids are, at another height");
        }
        newest_state = Some(state);
    }
    // As a node that goes on there: what was removed in part goes.
    stores.settle().map_err(failed)?;
    stores.check_files(&mut |_| ControlFlow::Continue(())).map_err(failed)?;
    drop(newest_state);
    Ok(newest)
}

/// What has happened in all rounds.
#[derive(Default, Debug)]
struct Totals {
    kills: u64,
    power_losses: u64,
    taken: Taken,
    /// Of all power losses.
    took_something: u64,
    /// The model of the disk was compared with the disk.
    compared: u64,
    /// The program was killed between a change and its record.
    in_between: u64,
    flushes: u64,
    moves: u64,
    writes: u64,
    newest: u64,
}

/// At some time, behind a name that has gone over to another one, and behind something that was written: where there is much to
/// lose.
fn instants(records: &[Record], random: &mut StdRng) -> Vec<usize> {
    let behind = |is_it: fn(&Record) -> bool, random: &mut StdRng| {
        let places: Vec<usize> = (0..records.len()).filter(|at| is_it(&records[*at])).collect();
        (!places.is_empty()).then(|| places[random.random_range(0..places.len())] + 1)
    };
    let mut instants = vec![random.random_range(0..=records.len())];
    instants.extend(behind(|record| matches!(record, Record::Moved { .. }), random));
    instants.extend(behind(|record| matches!(record, Record::Written { .. }), random));
    instants
}

/// A disk that is used by one program after another.
struct Course<'a> {
    recorder: &'a Path,
    rows_in: RowsIn,
    room: Room,
    scratch: TempDir,
    drive: Drive,
    promises: Promises,
    known: BTreeMap<u64, Known>,
    totals: Totals,
    /// Number of the folder that has the disk.
    disk: u64,
}

impl Course<'_> {
    fn new(recorder: &Path, rows_in: RowsIn, forgets: Forgets) -> Course<'_> {
        // In memory where there is a place for that: flushes of real disks are slow, and no power is lost here.
        let in_memory = tempfile::tempdir_in("/dev/shm");
        let scratch = in_memory.or_else(|_| tempfile::tempdir()).expect("a folder");
        let mut course = Course {
            recorder,
            rows_in,
            room: Room::OfBlocks,
            scratch,
            drive: Drive::new(forgets),
            promises: Promises::default(),
            known: BTreeMap::new(),
            totals: Totals::default(),
            disk: 0,
        };
        course.insert(Drive::new(forgets));
        course
    }

    fn path(&self, name: &str) -> PathBuf {
        // As the system names it.
        self.scratch.path().canonicalize().expect("it is there").join(name)
    }

    fn folder(&self) -> PathBuf {
        self.path(&format!("disk-{}", self.disk))
    }

    /// Goes on with this disk.
    fn insert(&mut self, drive: Drive) {
        let _ = std::fs::remove_dir_all(self.folder());
        self.disk += 1;
        self.drive = drive;
        std::fs::create_dir(self.folder()).expect("there is room");
        self.drive.write_to(&self.folder());
    }

    /// Goes on with an empty disk.
    fn begin_again(&mut self, room: Room) {
        self.room = room;
        self.promises = Promises::default();
        self.insert(Drive::new(Forgets::Nothing));
    }

    /// Runs the program for a random time. Gives what it has recorded.
    fn run(&mut self, random: &mut StdRng) -> Vec<Record> {
        let wrong = self.drive.compare_with(&self.folder());
        assert!(wrong.is_empty(), "{wrong:?}");
        let log = self.path("log");
        let _ = std::fs::remove_file(&log);
        let mut program = Command::new(std::env::current_exe().expect("this program"));
        program.args(["--exact", "blocks_for_ever", "--ignored", "--nocapture"]);
        program.env("LD_PRELOAD", self.recorder).env("RECORDER_LOG", &log);
        program.env("RECORDER_FOLDER", self.folder()).env("FOLDER", self.folder());
        program.env("IN_MEMORY", if self.rows_in == RowsIn::Memory { "1" } else { "0" });
        program.env("LESS_ROOM", if self.room == Room::Less { "1" } else { "0" });
        program.env("SEED", random.random::<u64>().to_string());
        let mut program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut told = BufReader::new(program.stdout.take().expect("it is piped"));
        let wanted = if random.random_bool(0.8) { "running\n" } else { "opening\n" };
        let mut line = String::new();
        while line != wanted {
            line.clear();
            if told.read_line(&mut line).expect("it speaks") == 0 {
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(random.random_range(0..60_000)));
        let is_running = program.try_wait().expect("it can be asked").is_none();
        program.kill().expect("it can be killed");
        let (mut rest, mut errors) = (Vec::new(), String::new());
        told.read_to_end(&mut rest).expect("it has ended");
        program.stderr.take().expect("it is piped").read_to_string(&mut errors).expect("it has ended");
        program.wait().expect("it has ended");
        assert!(is_running, "it has ended by itself: {}{errors}", String::from_utf8_lossy(&rest));
        records::read(&std::fs::read(&log).expect("it has recorded"))
    }

    /// What a loss of power would leave now.
    fn lose_power(&mut self, random: &mut StdRng) -> Result<Drive, String> {
        let (after, taken) = self.drive.after_power_loss(random);
        self.totals.power_losses += 1;
        self.totals.took_something += u64::from(!taken.is_nothing());
        self.totals.taken.add(&taken);
        self.check(&after).map_err(|wrong| format!("{wrong}; taken away:\n{}", taken.told.join("\n")))?;
        Ok(after)
    }

    /// Whether a disk has what was promised.
    fn check(&mut self, drive: &Drive) -> Result<u64, String> {
        let folder = self.path("checked");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("there is room");
        drive.write_to(&folder);
        let newest = check(&folder, (self.rows_in, self.room), &self.promises, &mut self.known);
        self.totals.newest = self.totals.newest.max(*newest.as_ref().unwrap_or(&0));
        newest.map_err(|wrong| format!("{wrong}; promised: {:?}", self.promises))
    }

    /// Runs the program, and loses power at some instants of what it has done.
    fn round(&mut self, random: &mut StdRng) -> Result<(), String> {
        let records = self.run(random);
        self.totals.kills += 1;
        let mut instants = instants(&records, random);
        for (at, record) in records.iter().enumerate() {
            for _ in instants.extract_if(.., |instant| *instant == at) {
                self.lose_power(random)?;
            }
            self.drive.apply(record);
            match record {
                Record::Said { text } => self.promises.hear(text),
                Record::Flushed { .. } => self.totals.flushes += 1,
                Record::Moved { .. } => self.totals.moves += 1,
                Record::Written { .. } => self.totals.writes += 1,
                _ => {}
            }
        }
        self.drive.end();
        self.compare(matches!(records.last(), Some(Record::Begun)));
        if random.random_bool(2.0 / 3.0) {
            let after = self.lose_power(random)?;
            self.insert(after);
            return Ok(());
        }
        self.check(&self.drive.clone()).map(drop)
    }

    /// The model has all that is in the folder.
    fn compare(&mut self, is_in_between: bool) {
        if is_in_between {
            // Nobody knows whether the last change was made.
            self.totals.in_between += 1;
            self.drive = Drive::of_folder(&self.folder(), Forgets::Nothing);
        } else {
            self.totals.compared += 1;
        }
        let wrong = self.drive.compare_with(&self.folder());
        assert!(wrong.is_empty(), "the recorder has not seen all: {wrong:?}");
    }
}

/// The recorder, compiled.
fn recorder(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/power_loss/recorder.c");
    let library = folder.join("recorder.so");
    let mut compile = Command::new("cc");
    let compiled = compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.expect("cc starts").success());
    library
}

fn survives(rows_in: RowsIn, recorder: &Path, rounds: u64, seed: u64) -> Totals {
    let start = Instant::now();
    let mut random = StdRng::seed_from_u64(seed);
    let mut course = Course::new(recorder, rows_in, Forgets::Nothing);
    for round in 0..rounds {
        if round % ROUNDS_OF_A_DISK == 0 {
            let is_fourth = (round / ROUNDS_OF_A_DISK) % 4 == 3;
            course.begin_again(if is_fourth { Room::Less } else { Room::OfBlocks });
        }
        if let Err(wrong) = course.round(&mut random) {
            course.scratch.disable_cleanup(true);
            let folder = course.scratch.path().display();
            panic!("rows in {rows_in:?}, seed {seed}, round {round}, see {folder}: {wrong}");
        }
    }
    println!("rows in {rows_in:?}, in {:?}: {:?}", start.elapsed(), course.totals);
    course.totals
}

#[test]
fn a_durable_height_comes_back_and_never_a_mixture() {
    if !test_machine::required("cc") {
        return;
    }
    let (rounds, seed) = (variable("KILLS", ROUNDS), variable("KILLS_SEED", 1));
    let folder = tempfile::tempdir().expect("a folder");
    let recorder = recorder(folder.path());
    let mut all = Taken::default();
    for rows_in in [RowsIn::Disk, RowsIn::Memory] {
        let totals = survives(rows_in, &recorder, rounds.div_ceil(2), seed);
        assert!(totals.flushes > 0 && totals.moves > 0 && totals.writes > 0, "{totals:?}");
        if rounds >= ROUNDS {
            assert!(totals.compared > totals.in_between, "{totals:?}");
            assert!(2 * totals.took_something > totals.power_losses, "{totals:?}");
        }
        all.add(&totals.taken);
    }
    let Taken { lost, torn, scrambled, come, gone, moved, reordered, .. } = all;
    let is_each = [lost, torn, scrambled, come, gone, moved, reordered].iter().all(|count| *count > 0);
    assert!(is_each || rounds < ROUNDS, "{all:?}");
}

/// What the test above would see of a store, or of a recorder, that does not flush.
#[test]
fn a_disk_that_forgets_what_was_flushed_is_noticed() {
    if !test_machine::required("cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recorder = recorder(folder.path());
    for forgets in [Forgets::FlushesOfFiles, Forgets::FlushesOfFolders] {
        let mut random = StdRng::seed_from_u64(7);
        let is_noticed = (0..10).any(|_| {
            let mut course = Course::new(&recorder, RowsIn::Disk, forgets);
            course.round(&mut random).is_err()
        });
        assert!(is_noticed, "{forgets:?}");
    }
}
