//! Compares all rows now and then, on a connection of its own, so that nobody waits for it.

use crate::address::Address;
use crate::bookkeeping;
use crate::compare::{RowAt, compare};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::session::{self, Session};
use crate::shared_table::SharedTable;
use crate::status::Status;
use crate::{DatabaseError, Kind};
use node::Agreed;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Rows that one comparison gives; those behind them are found by the next one.
const FOUND_MAX: usize = 100_000;
/// How often it is tried to see the database at a height whose state is kept.
const TRIES: usize = 50;
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// A comparison takes this part of the time at most: the next one comes later where rows are many or the database is busy.
const SHARE: u32 = 5;

/// Rows that the database had otherwise at some height.
pub(crate) struct Suspects {
    /// The table's position in the list of those that are kept.
    pub(crate) table: usize,
    pub(crate) rows: Vec<RowAt>,
}

/// What a scan needs.
pub(crate) struct Scan<'a> {
    pub(crate) address: &'a Address,
    pub(crate) agreed: &'a Agreed,
    pub(crate) tables: &'a [SharedTable],
    pub(crate) status: &'a Status,
    /// Nobody listens any more.
    pub(crate) ended: &'a AtomicBool,
    /// From the begin of one scan to that of the next; `None`: only when somebody asks.
    pub(crate) every: Option<Duration>,
}

impl Scan<'_> {
    /// Scans when it is time and when somebody asks, until nobody listens any more.
    pub(crate) fn run(&self, asked: &Receiver<()>, found: &SyncSender<Suspects>) {
        let mut next = Instant::now();
        loop {
            let wait = match self.every {
                Some(_) => next.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            match asked.recv_timeout(wait) {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if self.every.is_none() => continue,
                _ => {}
            }
            let start = Instant::now();
            next = start + self.every.unwrap_or_default();
            let outcome = self.once(found);
            next = next.max(start + start.elapsed() * SHARE);
            match outcome {
                Ok(Some(rows)) => self.status.scanned(rows, start.elapsed()),
                Ok(None) => return,
                // The writer meets it, too, and says so; a scan alone is no reason to stop.
                Err(error) => {
                    tracing::info!(%error, "the rows of the organisation's own database are not compared")
                }
            }
        }
    }

    /// Gives the number of rows; nothing where nobody listens any more.
    fn once(&self, found: &SyncSender<Suspects>) -> Result<Option<u64>, DatabaseError> {
        let mut session = session::connect(self.address)?;
        let dialect = Dialect::from(self.address.kind);
        for _ in 0..TRIES {
            begin(&mut *session, self.address.kind)?;
            let position = bookkeeping::position(&mut *session, dialect, false)?;
            let height = position.map_or(0, |position| position.height);
            let Some(agreed) = self.agreed.state(height) else {
                session.execute("ROLLBACK")?;
                if self.agreed.is_over() || self.ended.load(Ordering::Acquire) {
                    return Ok(None);
                }
                std::thread::sleep(TRY_AGAIN);
                continue;
            };
            let is_over = || self.agreed.is_over() || self.ended.load(Ordering::Acquire);
            let (mut rows, mut left) = (0, FOUND_MAX);
            for (position, table) in self.tables.iter().enumerate() {
                rows += compare(&mut *session, table, &*agreed, &is_over, &mut |_, rows| {
                    left = left.saturating_sub(rows.len());
                    let is_heard = found.send(Suspects { table: position, rows }).is_ok();
                    Ok(match left > 0 && is_heard && !is_over() {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    })
                })?;
            }
            let is_heard = !is_over();
            session.execute("ROLLBACK")?;
            return Ok(is_heard.then_some(rows));
        }
        let behind = "the database is too far behind to be compared with a state that is kept";
        Err(DatabaseError::new(ErrorKind::Away, behind))
    }
}

/// Begins to see the database as it is now.
fn begin(session: &mut dyn Session, kind: Kind) -> Result<(), DatabaseError> {
    match kind {
        Kind::Postgres => session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").map(drop),
        Kind::MariaDb => {
            session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            session.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").map(drop)
        }
    }
}
