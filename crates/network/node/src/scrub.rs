//! Reads the files of blocks, checkpoints and the state again, beside everything else, and compares them with their checksums:
//! what a disk or somebody has changed is found before it is needed. Rows are read as the store has them, in memory or on the
//! disk, and compared with the tree of the newest checkpoint that is certified.
//!
//! ```text
//!  checkpoints ──▶ damaged ──▶ removed: an older one is there, the next one takes its place
//!  state       ──▶ damaged files, or other rows than the newest certified checkpoint has ──▶ made again: Input::Damaged
//!  blocks      ──▶ damaged ──▶ taken back from there on, fetched from ordering and executed again: Heal::Blocks
//! ```

use crate::attesting::{Divergence, Heal, Input};
use crate::checkpoints::CheckpointParts;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use ledger::{Ledger, LedgerError, LedgerFiles};
use ordering::Ordering;
use state::KeptState;
use std::io::Read;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use types::Charter;

/// Bytes per second that are read at most where `node.toml` says nothing: a few hundredths of a core.
const RATE_MAX: u64 = 50 << 20;
/// Bytes per second that are read at least.
const RATE_MIN: u64 = 1 << 20;
/// Bytes that are read between two rests.
const PIECE_BYTES: usize = 256 << 10;
/// Bytes that reading a row counts for.
const ROW_BYTES: u64 = 100;
/// The least time from one round to the next.
const ROUND_MIN: Duration = Duration::from_millis(500);

/// What reading again needs.
#[derive(Clone)]
pub(crate) struct Scrub {
    pub(crate) charter: Arc<Charter>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ordering: Arc<dyn Ordering>,
    pub(crate) parts: CheckpointParts,
    /// Where blocks are asked to be taken back.
    pub(crate) heal: Sender<Heal>,
    /// What `node.toml` says.
    pub(crate) bytes_per_second: Option<u64>,
}

/// Reads again until it is stopped.
pub(crate) struct Scrubbing {
    stage: Scrub,
    /// It ends when this disconnects.
    stopped: Receiver<()>,
}

/// The node ends, or its files change.
struct Stopped;

/// Keeps to a rate.
struct Pace<'a> {
    stopped: &'a Receiver<()>,
    bytes_per_second: u64,
    began: Instant,
    read: u64,
}

impl Pace<'_> {
    /// So many bytes were read.
    fn rest(&mut self, bytes: u64) -> Result<(), Stopped> {
        self.read += bytes;
        let due = Duration::from_secs_f64(self.read as f64 / self.bytes_per_second as f64);
        sleep(self.stopped, due.saturating_sub(self.began.elapsed()))
    }
}

fn sleep(stopped: &Receiver<()>, time: Duration) -> Result<(), Stopped> {
    match stopped.recv_timeout(time) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        _ => Err(Stopped),
    }
}

impl Scrub {
    pub(crate) fn until(&self, stopped: Receiver<()>) -> Scrubbing {
        Scrubbing { stage: self.clone(), stopped }
    }
}

impl Scrubbing {
    /// Reads everything again and again, until it is stopped.
    pub(crate) fn run(&self) {
        // A block that nobody can give again is told once.
        let mut told = None;
        while self.round(&mut told).is_ok() {}
    }

    fn round(&self, told: &mut Option<u64>) -> Result<(), Stopped> {
        let (began, time) = (Instant::now(), self.interval().mul_f64(0.8).max(ROUND_MIN));
        let state = self.stage.parts.stores.newest().map(|store| store.statistics()).unwrap_or_default();
        let bytes = self.stage.ledger.bytes().unwrap_or(0)
            + self.stage.parts.store.bytes()
            + state.file_bytes
            + state.rows * ROW_BYTES;
        let needed = (bytes as f64 / time.as_secs_f64()) as u64;
        let bytes_per_second = self.stage.bytes_per_second.unwrap_or(needed.clamp(RATE_MIN, RATE_MAX));
        let mut pace = Pace { stopped: &self.stopped, bytes_per_second, began, read: 0 };
        for height in self.stage.parts.store.newest() {
            self.read_checkpoint(height, &mut pace)?;
        }
        self.read_state(&mut pace)?;
        self.read_blocks(&mut pace, told)?;
        sleep(&self.stopped, time.saturating_sub(began.elapsed()))
    }

    /// How long the last blocks from one checkpoint to the next have taken.
    fn interval(&self) -> Duration {
        // The charter says the longest distance; where much changes it is shorter.
        let longest = u64::from(self.stage.charter.checkpoint_blocks);
        let blocks = match self.stage.parts.store.newest().as_slice() {
            [newest, before, ..] => (newest - before).clamp(1, longest),
            _ => longest,
        };
        let idle = Duration::from_millis(blocks * u64::from(self.stage.charter.block.idle_ms));
        let newest = self.stage.ledger.tip().map_or(0, |(height, _)| height);
        let first = newest.saturating_sub(blocks).max(1);
        let time = |height| Some(self.stage.ledger.header(height).ok()??.timestamp_ms);
        match (time(first), time(newest)) {
            (Some(first_ms), Some(newest_ms)) if newest > first => {
                let one = (newest_ms.saturating_sub(first_ms)) / (newest - first);
                Duration::from_millis(one * blocks).min(idle)
            }
            _ => idle,
        }
    }

    fn read_checkpoint(&self, height: u64, pace: &mut Pace<'_>) -> Result<(), Stopped> {
        let damaged = |error: LedgerError| match error {
            // It has made room for a newer one meanwhile.
            LedgerError::NoCheckpoint { .. } => {}
            error => self.stage.parts.remove_damaged(height, &error.to_string()),
        };
        let mut reader = match self.stage.parts.store.read(height) {
            Ok(reader) => reader,
            Err(error) => {
                damaged(error);
                return Ok(());
            }
        };
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    self.stage.parts.metrics.scrubbed(read as u64);
                    pace.rest(read as u64)?;
                }
                Err(error) => {
                    self.stage.parts.remove_damaged(height, &error.to_string());
                    return Ok(());
                }
            }
        }
        if let Err(error) = reader.finish() {
            damaged(error);
        }
        Ok(())
    }

    /// Compares the files of the state with their checksums, and the rows of the newest certified checkpoint with its tree.
    fn read_state(&self, pace: &mut Pace<'_>) -> Result<(), Stopped> {
        let certified = self.stage.parts.published.certified();
        let Some(checkpoint) = certified.checkpoint() else { return Ok(()) };
        let found = match self.read_state_files(pace)? {
            None => self.read_rows(&checkpoint.kept, pace)?,
            found => found,
        };
        let Some(found) = found else { return Ok(()) };
        if !self.stage.parts.published.store_health().tell() {
            // Somebody has met it when reading.
            return Err(Stopped);
        }
        let height = checkpoint.kept.header().height;
        let text = format!("the state behind block {height}: {found}");
        tracing::error!(height, text, "the state is made again");
        self.stage.parts.metrics.scrub_found("state");
        if let Some(attest) = &self.stage.parts.attest {
            // It ends after the pipeline only.
            let _ = attest.send(Input::Damaged(checkpoint.certificate.statement.clone(), text));
        }
        // It is looked at again when the state was made again.
        Err(Stopped)
    }

    fn read_state_files(&self, pace: &mut Pace<'_>) -> Result<Option<String>, Stopped> {
        let mut goes_on = Ok(());
        let checked = self.stage.parts.stores.check_files(&mut |bytes| {
            self.stage.parts.metrics.scrubbed(bytes);
            goes_on = pace.rest(bytes);
            if goes_on.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        goes_on?;
        Ok(checked.err().map(|error| error.to_string()))
    }

    fn read_rows(&self, kept: &KeptState, pace: &mut Pace<'_>) -> Result<Option<String>, Stopped> {
        for (number, node) in kept.tree().nodes().iter().enumerate() {
            match kept.find_damage(number..number + 1) {
                Ok(None) => pace.rest(u64::from(node.rows()) * ROW_BYTES)?,
                Ok(Some(node)) => {
                    let table = kept.table_name(node.table());
                    return Ok(Some(format!("rows of {table} are not those that were certified")));
                }
                Err(error) => return Ok(Some(error.to_string())),
            }
        }
        Ok(None)
    }

    fn read_blocks(&self, pace: &mut Pace<'_>, told: &mut Option<u64>) -> Result<(), Stopped> {
        let files = match LedgerFiles::open(self.stage.ledger.folder(), self.stage.charter.ledger()) {
            Ok(files) => files,
            Err(error) => {
                tracing::error!(%error, "the ledger cannot be read again");
                return Ok(());
            }
        };
        for record in files.records() {
            match record {
                Ok(record) => {
                    self.stage.parts.metrics.scrubbed(record.bytes());
                    pace.rest(record.bytes())?;
                }
                Err(LedgerError::Damaged { height, path, what, .. }) => {
                    if *told != Some(height) {
                        *told = Some(height);
                        self.found(
                            height,
                            format!("block {height} is damaged in {}: {what}", path.display()),
                        );
                    }
                    return Ok(());
                }
                Err(error) => {
                    tracing::error!(%error, "the ledger cannot be read again");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A block is not what was written. Ordering has all blocks still, unless it is that of a network of one.
    fn found(&self, height: u64, text: String) {
        self.stage.parts.metrics.scrub_found("block");
        let newest = self.stage.ledger.tip().map_or(0, |(height, _)| height);
        let certified = self.stage.parts.published.certified();
        if (height..=newest).all(|height| self.stage.ordering.read(height).is_some()) {
            tracing::error!(height, text, "the block and those behind it are fetched again from ordering");
            certified.diverge(Some(Divergence { height, text: text.clone() }));
            self.stage.parts.published.suspend(text);
            // One that waits already does the same, or more.
            let _ = self.stage.heal.try_send(Heal::Blocks(height));
        } else {
            tracing::error!(
                height,
                text,
                "nobody here has the block; restore the folder `ledger` from a copy"
            );
            certified.report(text);
        }
    }
}
