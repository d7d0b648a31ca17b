//! One partition while its rows are looked at.

use crate::aggregate::Accumulator;
use crate::window::frame::ResolvedFrame;
use plan::expression::{Environment, Expression, Memory};
use plan::window::{WindowCall, WindowFunction};
use types::{SqlError, SqlState, Value};
use values::broken;

/// The rows of a partition in the window's order, by their positions.
pub(super) trait PartitionRows {
    /// How many there are.
    fn count(&self) -> usize;

    /// The values of the row at a position. Rows of one role are mostly asked for one behind the other.
    fn row(&mut self, role: Role, position: usize) -> Result<&[Value], SqlError>;

    /// What the row at a position is sorted by, where that is one value.
    fn key(&mut self, finder: Finder, position: usize) -> Result<&Value, SqlError>;

    /// The position behind the last of the rows that are equal to the one at `first` in ORDER BY, which is the first of them.
    fn after_peers(&mut self, finder: Finder, first: usize) -> Result<usize, SqlError>;

    /// Takes the function's value for the row at a position: one after the other.
    fn take(&mut self, position: usize, value: Value) -> Result<(), SqlError>;
}

/// What a row is looked at for.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// Its own value is being computed.
    Current,
    /// The value of another one is.
    Other,
}

/// What rows are compared for. Each goes on where it was.
#[derive(Clone, Copy)]
pub(super) enum Finder {
    /// Those that are equal to the current one.
    Peers,
    /// Where its frame begins.
    Start,
    /// Where its frame ends.
    End,
}

/// How far an edge of the frame has come.
#[derive(Clone, Copy, Default)]
pub(super) struct Reached {
    /// The position of a row.
    pub position: usize,
    /// So many groups of equal rows are in front of it.
    pub groups: usize,
}

/// A partition while its rows are looked at.
pub(super) struct Partition<'a, R> {
    pub call: &'a WindowCall,
    pub rows: R,
    pub environment: &'a Environment<'a>,
    pub frame: &'a ResolvedFrame,
    pub steps_max: u64,
    /// Where what aggregates hold is given back as soon as their frame is left.
    pub memory: Option<&'a Memory>,
    /// Of the rows that are equal in ORDER BY to the current one: the first, and the one behind the last.
    pub peers: (usize, usize),
    /// So many groups of equal rows have been begun.
    pub group: usize,
    /// How far the beginning of the frame has come.
    pub start: Reached,
    /// How far its end has.
    pub end: Reached,
}

impl<'a, R: PartitionRows> Partition<'a, R> {
    /// Computes the values of all rows, and counts the steps that this takes.
    pub fn fill(&mut self, steps: &mut u64) -> Result<(), SqlError> {
        let mut running = None;
        let needs_peers = self.needs_peers();
        for position in 0..self.rows.count() {
            if needs_peers && position == self.peers.1 {
                self.peers = (position, self.rows.after_peers(Finder::Peers, position)?);
                self.group += 1;
            }
            let value = self.value(position, &mut running, steps)?;
            *steps += 1;
            if *steps > self.steps_max {
                // Whoever counts the steps says so.
                return Ok(());
            }
            self.rows.take(position, value)?;
        }
        self.leave(running);
        Ok(())
    }

    fn needs_peers(&self) -> bool {
        match &self.call.function {
            WindowFunction::RowNumber | WindowFunction::Buckets(_) | WindowFunction::Shifted { .. } => false,
            WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumulativeShare => true,
            WindowFunction::First(_)
            | WindowFunction::Last(_)
            | WindowFunction::Nth(..)
            | WindowFunction::Aggregate(_) => self.frame.asks_for_peers(),
        }
    }

    fn value(
        &mut self,
        position: usize,
        running: &mut Option<Running<'a>>,
        steps: &mut u64,
    ) -> Result<Value, SqlError> {
        let (length, (first_peer, after_peers)) = (self.rows.count(), self.peers);
        let call = self.call;
        Ok(match &call.function {
            WindowFunction::RowNumber => Value::BigInt(position as i64 + 1),
            WindowFunction::Rank => Value::BigInt(first_peer as i64 + 1),
            WindowFunction::DenseRank => Value::BigInt(self.group as i64),
            WindowFunction::PercentRank if length == 1 => Value::Double(0.0),
            WindowFunction::PercentRank => Value::Double(first_peer as f64 / (length - 1) as f64),
            WindowFunction::CumulativeShare => Value::Double(after_peers as f64 / length as f64),
            WindowFunction::Buckets(buckets) => self.bucket(buckets, position)?,
            WindowFunction::Shifted { value, offset, default, back } => {
                match self.at(Role::Current, offset, position)?.as_integer() {
                    None => Value::Null,
                    Some(offset) => {
                        let other = position as i64 + if *back { -offset } else { offset };
                        match usize::try_from(other).ok().filter(|other| *other < length) {
                            Some(other) => self.at(Role::Other, value, other)?,
                            None => self.at(Role::Current, default, position)?,
                        }
                    }
                }
            }
            WindowFunction::First(value) => {
                let mut parts = self.segments_of(position, steps)?.into_iter();
                match parts.find(|(start, end)| start < end) {
                    Some((start, _)) => self.at(Role::Other, value, start)?,
                    None => Value::Null,
                }
            }
            WindowFunction::Last(value) => {
                let mut parts = self.segments_of(position, steps)?.into_iter().rev();
                match parts.find(|(start, end)| start < end) {
                    Some((_, end)) => self.at(Role::Other, value, end - 1)?,
                    None => Value::Null,
                }
            }
            WindowFunction::Nth(value, number) => self.nth((value, number), position, steps)?,
            WindowFunction::Aggregate(_) => self.aggregate(position, running, steps)?,
        })
    }

    /// The value of an expression for the row at this position.
    fn at(&mut self, role: Role, expression: &Expression, position: usize) -> Result<Value, SqlError> {
        let row = self.rows.row(role, position)?;
        expression.evaluate(&Environment { row, ..*self.environment })
    }

    fn aggregate(
        &mut self,
        position: usize,
        running: &mut Option<Running<'a>>,
        steps: &mut u64,
    ) -> Result<Value, SqlError> {
        let parts = self.segments_of(position, steps)?;
        let (start, end) = parts[0];
        let goes_on = self.frame.exclusion.is_none()
            && running.as_ref().is_some_and(|state| state.start == start && state.end <= end);
        if !goes_on {
            self.leave(running.take());
        }
        let WindowFunction::Aggregate(aggregate) = &self.call.function else {
            return Err(broken("a window function that is no aggregate"));
        };
        let state = running.get_or_insert_with(|| Running {
            accumulator: Accumulator::new(aggregate),
            start,
            end: start,
            held: 0,
        });
        let more = (state.end.min(end)..end).chain(parts[1].0..parts[1].1).chain(parts[2].0..parts[2].1);
        for other in more {
            let row = self.rows.row(Role::Other, other)?;
            let before = self.memory.map_or(0, Memory::held);
            state.accumulator.add(&Environment { row, ..*self.environment })?;
            state.held += self.memory.map_or(0, Memory::held).saturating_sub(before);
            state.end = other + 1;
            *steps += 1;
        }
        state.accumulator.result(self.environment)
    }

    /// What an aggregate holds is gone with it.
    fn leave(&self, running: Option<Running<'_>>) {
        if let (Some(memory), Some(running)) = (self.memory, running) {
            memory.release(running.held);
        }
    }

    /// The rows in buckets of sizes as equal as can be, the larger ones first.
    fn bucket(&mut self, buckets: &Expression, position: usize) -> Result<Value, SqlError> {
        // As PostgreSQL does, the number of the partition's first row counts.
        let Some(buckets) = self.at(Role::Other, buckets, 0)?.as_integer() else { return Ok(Value::Null) };
        let Some(buckets) = usize::try_from(buckets).ok().filter(|buckets| *buckets > 0) else {
            let message = "argument of ntile must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22014"), message));
        };
        let (size, larger) = (self.rows.count() / buckets, self.rows.count() % buckets);
        let in_larger = larger * (size + 1);
        let bucket = if position < in_larger {
            position / (size + 1)
        } else {
            larger + (position - in_larger) / size.max(1)
        };
        Ok(Value::Integer(bucket as i32 + 1))
    }

    fn nth(
        &mut self,
        (value, number): (&Expression, &Expression),
        position: usize,
        steps: &mut u64,
    ) -> Result<Value, SqlError> {
        let Some(number) = self.at(Role::Current, number, position)?.as_integer() else {
            return Ok(Value::Null);
        };
        let Some(index) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
            let message = "argument of nth_value must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22016"), message));
        };
        let mut index = index;
        for (start, end) in self.segments_of(position, steps)? {
            if index < end - start {
                return self.at(Role::Other, value, start + index);
            }
            index -= end - start;
        }
        Ok(Value::Null)
    }
}

/// An aggregate of the rows of a frame so far.
struct Running<'a> {
    accumulator: Accumulator<'a>,
    start: usize,
    end: usize,
    /// What was counted for it.
    held: u64,
}
