//! A holder, as its validator has it.

use crate::link::{Link, LinkFailure};
use crate::messages::{
    Ask, FORMAT, Image, Point, Question, Refusal, Rows, Said, SentGroup, SentResult, SentRun,
};
use crypto::Digest;
use state::{KeyRange, ResumePoint, RowId, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::{Catalog, Row, TableId};

/// Rows that one question after them brings, at first and at most.
const SCANNED_ROWS: [u32; 2] = [32, 4_096];

/// A holder and the session with it.
pub(crate) struct Holding {
    link: Arc<dyn Link>,
    session: AtomicU64,
}

/// A state at a holder.
pub(crate) struct Remote {
    at: Arc<Holding>,
    session: u64,
    /// The number of the state in the session; 0: none, questions are about all of them.
    state: u64,
    /// Number of the last version that has changed anything there.
    pub(crate) version: AtomicU64,
}

impl Holding {
    pub(crate) fn new(link: Arc<dyn Link>) -> Holding {
        Holding { link, session: AtomicU64::new(0) }
    }

    /// The holder, for people.
    pub(crate) fn name(&self) -> &str {
        self.link.name()
    }

    /// A state with this number, which is to be opened there.
    pub(crate) fn state(self: &Arc<Self>, state: u64) -> Remote {
        let session = self.session.load(Ordering::Relaxed);
        Remote { at: self.clone(), session, state, version: AtomicU64::new(0) }
    }

    /// Begins a session, however long it takes to reach the holder.
    ///
    /// # Errors
    /// The node stops.
    pub(crate) fn begin_session(
        &self,
        number: u64,
        ledger: Digest,
        schemas: &[String],
    ) -> Result<(), StoreError> {
        self.session.store(number, Ordering::Relaxed);
        loop {
            let ask = Ask::Hello { format: FORMAT, ledger, schemas: schemas.to_vec() };
            let failure = match self.say(number, 0, ask) {
                Ok(Said::Done) => return Ok(()),
                Ok(Said::Refused(Refusal::Question(text) | Refusal::Store(text))) => LinkFailure(text),
                Ok(_) => LinkFailure("an answer that makes no sense".to_string()),
                Err(failure) => failure,
            };
            if !self.link.try_again(&failure) {
                return Err(self.lost(failure.0));
            }
        }
    }

    fn say(&self, session: u64, state: u64, ask: Ask) -> Result<Said, LinkFailure> {
        let question = Question { session, state, ask };
        let question = borsh::to_vec(&question).expect("writing to memory cannot fail");
        let answer = self.link.ask(&question)?;
        borsh::from_slice(&answer).map_err(|error| {
            LinkFailure(format!("an answer of {} bytes that is none: {error}", answer.len()))
        })
    }

    fn lost(&self, cause: impl std::fmt::Display) -> StoreError {
        StoreError::lost(format_args!("the rows at node {}", self.link.name()), cause)
    }
}

impl Remote {
    /// The holder, for people.
    pub(crate) fn name(&self) -> &str {
        self.at.name()
    }

    fn lost(&self, cause: impl std::fmt::Display) -> StoreError {
        self.at.lost(cause)
    }

    fn ask(&self, ask: Ask) -> Result<Said, StoreError> {
        match self.at.say(self.session, self.state, ask) {
            Ok(Said::Refused(Refusal::Session)) => Err(self.lost("it has started again")),
            Ok(Said::Refused(Refusal::Store(text) | Refusal::Question(text))) => Err(self.lost(text)),
            Ok(said) => Ok(said),
            Err(LinkFailure(text)) => Err(self.lost(text)),
        }
    }

    fn senseless(&self) -> StoreError {
        self.lost("it has answered another question than it was asked")
    }

    /// Has something done that has no answer.
    pub(crate) fn tell(&self, ask: Ask) -> Result<(), StoreError> {
        match self.ask(ask)? {
            Said::Done => Ok(()),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn left(&self) -> Result<Vec<ResumePoint>, StoreError> {
        match self.ask(Ask::Left)? {
            Said::Left(points) => Ok(points),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn reopen(&self, height: u64) -> Result<Option<ResumePoint>, StoreError> {
        match self.ask(Ask::Reopen(height))? {
            Said::Reopened(point) => Ok(point),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn execute(&self, run: SentRun) -> Result<Vec<SentResult>, StoreError> {
        match self.ask(Ask::Execute(run))? {
            Said::Executed(results) => Ok(results),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn apply(
        &self,
        version: u64,
        changes: Vec<Image>,
        catalog: Option<Arc<Catalog>>,
    ) -> Result<(), StoreError> {
        self.tell(Ask::Apply { version, changes, catalog })?;
        self.version.store(version, Ordering::Release);
        Ok(())
    }

    pub(crate) fn durable_point(&self) -> Result<Option<u64>, StoreError> {
        match self.ask(Ask::DurablePoint)? {
            Said::Durable(height) => Ok(height),
            _ => Err(self.senseless()),
        }
    }

    /// `ask`: one of those that keep a checkpoint or look for one.
    pub(crate) fn kept(&self, ask: Ask) -> Result<Option<Vec<SentGroup>>, StoreError> {
        match self.ask(ask)? {
            Said::Kept(groups) => Ok(groups),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn get(&self, at: Point, rows: &[&RowId]) -> Result<Vec<Option<Row>>, StoreError> {
        let asked = rows.iter().map(|row| (row.table, row.key.clone())).collect();
        match self.ask(Ask::Get { at, rows: asked })? {
            Said::Got(found) if found.len() == rows.len() => Ok(found),
            _ => Err(self.senseless()),
        }
    }

    pub(crate) fn rows(&self, table: TableId) -> Result<u64, StoreError> {
        match self.ask(Ask::Rows(table))? {
            Said::Rows(rows) => Ok(rows),
            _ => Err(self.senseless()),
        }
    }

    /// Ends a block there: [`Ask::EndBlock`]. Gives its rows, bytes of its files, of what has changed, and of what was written.
    pub(crate) fn end_block(&self, ask: Ask) -> Result<[u64; 4], StoreError> {
        match self.ask(ask)? {
            Said::Ended { rows, file_bytes, changed_bytes, written_bytes } => {
                Ok([rows, file_bytes, changed_bytes, written_bytes])
            }
            _ => Err(self.senseless()),
        }
    }

    /// Reads an interval piece by piece, until `visit` says that it has enough.
    pub(crate) fn scan(
        &self,
        at: Point,
        table: TableId,
        range: &KeyRange,
        reverse: bool,
        visit: &mut dyn FnMut(Rows) -> bool,
    ) -> Result<(), StoreError> {
        let [mut rows_max, most] = SCANNED_ROWS;
        let mut range = range.clone();
        loop {
            let rows = match self.ask(Ask::Scan { at, table, range: (&range).into(), reverse, rows_max })? {
                Said::Scanned(rows) => rows,
                _ => return Err(self.senseless()),
            };
            let Some((last, _)) = rows.last() else { return Ok(()) };
            let (last, found) = (last.clone(), rows.len());
            if !visit(rows) || found < rows_max as usize {
                return Ok(());
            }
            let behind = std::ops::Bound::Excluded(last);
            *if reverse { &mut range.end } else { &mut range.start } = behind;
            rows_max = (rows_max * 4).min(most);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if self.state > 0 {
            // A holder that does not hear it closes everything when the next session begins.
            let _ = self.at.say(self.session, self.state, Ask::Close);
        }
    }
}
