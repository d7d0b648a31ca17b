use super::sources::{InFork, Newest, Place, SnapshotColumn, Snapshots, Versioned};
use super::{Answer, Question};
use crate::AnkerError;
use crate::clock::{Active, Looks};
use crate::engine::Engine;
use crate::system::{Isolation, Storage};
use std::collections::BTreeMap;
use std::time::Duration;
use virtual_memory::{Forked, MemoryError};

/// Seconds that a forked process may take for its answer.
pub const FORK_SECONDS_MAX: u64 = 60;

/// A question of a state that stays as it was when it was asked, however much is committed before it is answered.
#[derive(Debug)]
pub struct Asked<'e> {
    engine: &'e Engine,
    question: Question,
    active: Active<'e>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Snapshots of columns; those that were not asked for yet are made when they are touched.
    Snapshots(BTreeMap<Place, SnapshotColumn>),
    /// A copy of the process, which is already at it.
    Forked(Forked),
    /// The newest columns, with or without their versions.
    InPlace,
}

impl Engine {
    /// Asks of the newest state. Columns are named to the engine, so that their snapshots are made before somebody writes them.
    ///
    /// # Errors
    /// A table or column that does not exist, or a process that cannot be forked.
    pub fn ask(&self, question: &Question) -> Result<Asked<'_>, AnkerError> {
        self.ask_of(question, true)
    }

    /// The same without naming columns: a snapshot of one is made when the question first touches it, and takes over the version
    /// chains, which say what was different when it was asked.
    ///
    /// # Errors
    /// As [`Engine::ask`].
    pub fn ask_without_naming(&self, question: &Question) -> Result<Asked<'_>, AnkerError> {
        self.ask_of(question, false)
    }

    fn ask_of(&self, question: &Question, named: bool) -> Result<Asked<'_>, AnkerError> {
        question.check(self)?;
        // Nobody commits from here to the end: the state is that of one time.
        let commits = self.commits.lock();
        let active = self.clock.begin(Looks::Question);
        let way = match self.system.storage {
            Storage::See => Way::InPlace,
            Storage::Fork => {
                let rows = active.rows;
                // An error ends the forked process by a panic, and the parent hears of that.
                let compute = |child: &_, words: &mut [i64]| {
                    let evaluated = question.evaluate(&InFork::new(self, rows, child), words);
                    assert!(evaluated.is_ok(), "memory can be protected");
                };
                Way::Forked(Forked::start(vec![0; question.words()], compute)?)
            }
            Storage::Columns | Storage::Copy | Storage::Rewire => {
                let places = if named { question.columns(self) } else { Vec::new() };
                let slot = |(table, column): Place| {
                    let slot = self.tables[table].columns[column].request(active.rows[table] as usize);
                    ((table, column), SnapshotColumn::Declared(slot))
                };
                Way::Snapshots(places.into_iter().map(slot).collect())
            }
        };
        drop(commits);
        Ok(Asked { engine: self, question: question.clone(), active, way })
    }
}

impl Asked<'_> {
    /// The time whose state is asked of.
    pub fn at(&self) -> u64 {
        self.active.at
    }

    /// Makes the snapshots that the answer needs and nobody has made yet. [`Asked::answer`] does so, too; this is to measure it.
    ///
    /// # Errors
    /// The system gives no memory or no mapping.
    pub fn materialise(&mut self) -> Result<(), AnkerError> {
        let Way::Snapshots(columns) = &mut self.way else { return Ok(()) };
        let oldest = || self.engine.clock.oldest();
        for place in self.question.columns(self.engine) {
            let (table, number) = place;
            let column = &self.engine.tables[table].columns[number];
            match columns.get(&place) {
                Some(SnapshotColumn::Declared(slot)) => {
                    column.materialise(slot, oldest);
                    slot.frozen().transpose()?;
                }
                Some(SnapshotColumn::Touched(..)) => {}
                None => {
                    let frozen = column.touch(self.active.rows[table] as usize, oldest)?;
                    let overlay = column.versions.overlay(self.active.at);
                    columns.insert(place, SnapshotColumn::Touched(frozen, overlay));
                }
            }
        }
        Ok(())
    }

    /// Answers.
    ///
    /// # Errors
    /// The system gives no memory or no mapping; a forked process that has ended, or takes more than [`FORK_SECONDS_MAX`].
    pub fn answer(mut self) -> Result<Answer, AnkerError> {
        self.materialise()?;
        let Asked { engine, question, active, way } = self;
        let rows = active.rows;
        let mut words = vec![0; question.words()];
        let evaluated: Result<(), MemoryError> = match way {
            Way::Forked(forked) => {
                words = forked.wait(Duration::from_secs(FORK_SECONDS_MAX))?;
                Ok(())
            }
            Way::Snapshots(columns) => {
                question.evaluate(&Snapshots { engine, rows, columns: &columns }, &mut words)
            }
            Way::InPlace if engine.system.isolation == Isolation::ReadUncommitted => {
                question.evaluate(&Newest { engine, rows }, &mut words)
            }
            Way::InPlace => question.evaluate(&Versioned { engine, rows, begin: active.at }, &mut words),
        };
        evaluated?;
        Ok(question.answer(active.at, &words))
    }
}
