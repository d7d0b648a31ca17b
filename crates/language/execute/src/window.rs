//! Window functions, run.

use crate::aggregate::Accumulator;
use crate::sorting::compare_by;
use plan::expression::{Environment, Expression};
use plan::window::{Bound, Frame, FrameUnits, WindowCall, WindowFunction};
use std::cmp::Ordering;
use types::{SqlError, SqlState, Value};
use values::broken;

/// The function's value for every row, in the order of the rows, and how many steps that took.
///
/// # Errors
/// What evaluation raises; more steps than `steps_max`.
pub(super) fn window_values(
    call: &WindowCall,
    rows: &[Vec<Value>],
    environment: &Environment<'_>,
    steps_max: u64,
) -> Result<(Vec<Value>, u64), SqlError> {
    let mut keyed = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let environment = Environment { row, ..*environment };
        let keys = |expressions: &mut dyn Iterator<Item = &Expression>| {
            expressions.map(|expression| expression.evaluate(&environment)).collect::<Result<Vec<_>, _>>()
        };
        let partition = keys(&mut call.partition.iter())?;
        let order = keys(&mut call.order.iter().map(|key| &key.expression))?;
        keyed.push((partition, order, index));
    }
    // Rows that are equal stay in the order in which they came.
    keyed.sort_by(|left, right| {
        compare_partitions(&left.0, &right.0).then_with(|| compare_by(&call.order, &left.1, &right.1))
    });
    let frame = resolved(&call.frame, environment)?;
    let mut values = vec![Value::Null; rows.len()];
    let mut steps = 0;
    for partition in keyed.chunk_by(|left, right| compare_partitions(&left.0, &right.0).is_eq()) {
        let run = Partition::new(call, partition, rows, environment, &frame);
        run.fill(&mut values, &mut steps, steps_max)?;
    }
    Ok((values, steps))
}

fn compare_partitions(left: &[Value], right: &[Value]) -> Ordering {
    let pairs = left.iter().zip(right);
    pairs.map(|(left, right)| left.sort_compare(right)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A frame whose offsets are numbers: rows from the current one, before it negative; `None` is without bound.
struct ResolvedFrame {
    units: FrameUnits,
    start: Option<i64>,
    end: Option<i64>,
}

fn resolved(frame: &Frame, environment: &Environment<'_>) -> Result<ResolvedFrame, SqlError> {
    let offset = |bound: &Bound, which: &str| {
        let (expression, before) = match bound {
            Bound::First | Bound::Last => return Ok(None),
            Bound::Current => return Ok(Some(0)),
            Bound::Before(offset) => (offset, true),
            Bound::After(offset) => (offset, false),
        };
        let offset = expression.evaluate(environment)?;
        let Some(offset) = offset.as_integer() else {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        };
        if offset < 0 {
            let message = format!("frame {which} offset must not be negative");
            return Err(SqlError::new(SqlState(*b"22013"), message));
        }
        Ok(Some(if before { -offset } else { offset }))
    };
    Ok(ResolvedFrame {
        units: frame.units,
        start: offset(&frame.start, "starting")?,
        end: offset(&frame.end, "ending")?,
    })
}

/// The partition, order keys and index of a row.
type Keyed = (Vec<Value>, Vec<Value>, usize);

/// One partition while its rows are looked at.
struct Partition<'a> {
    call: &'a WindowCall,
    /// In the window's order.
    keyed: &'a [Keyed],
    rows: &'a [Vec<Value>],
    environment: &'a Environment<'a>,
    frame: &'a ResolvedFrame,
    /// By position: the first of the rows that are equal in ORDER BY, and the one behind the last.
    peers: Vec<(usize, usize)>,
}

impl<'a> Partition<'a> {
    fn new(
        call: &'a WindowCall,
        keyed: &'a [Keyed],
        rows: &'a [Vec<Value>],
        environment: &'a Environment<'a>,
        frame: &'a ResolvedFrame,
    ) -> Partition<'a> {
        let mut peers = Vec::with_capacity(keyed.len());
        for group in keyed.chunk_by(|left, right| compare_by(&call.order, &left.1, &right.1).is_eq()) {
            let start = peers.len();
            peers.extend(std::iter::repeat_n((start, start + group.len()), group.len()));
        }
        Partition { call, keyed, rows, environment, frame, peers }
    }

    fn row(&self, position: usize) -> Environment<'_> {
        Environment { row: &self.rows[self.keyed[position].2], ..*self.environment }
    }

    /// The value of an expression for the row at this position.
    fn at(&self, expression: &Expression, position: usize) -> Result<Value, SqlError> {
        expression.evaluate(&self.row(position))
    }

    /// First position and the one behind the last of the frame of the row at this position.
    fn frame_of(&self, position: usize) -> (usize, usize) {
        let length = self.keyed.len();
        let (first_peer, after_peers) = self.peers[position];
        let moved = |offset: i64| {
            let moved = (position as i64).saturating_add(offset);
            usize::try_from(moved).unwrap_or(0).min(length)
        };
        let (start, end) = match self.frame.units {
            FrameUnits::Range => {
                (self.frame.start.map_or(0, |_| first_peer), self.frame.end.map_or(length, |_| after_peers))
            }
            FrameUnits::Rows => (
                self.frame.start.map_or(0, moved),
                // Behind the last row; a frame that ends before the first row is empty.
                self.frame.end.map_or(length, |offset| {
                    let behind = (position as i64).saturating_add(offset).saturating_add(1);
                    usize::try_from(behind).unwrap_or(0).min(length)
                }),
            ),
        };
        (start, end.max(start))
    }

    fn fill(&self, values: &mut [Value], steps: &mut u64, steps_max: u64) -> Result<(), SqlError> {
        let mut group = 0;
        let length = self.keyed.len();
        let mut running: Option<Running<'_>> = None;
        for position in 0..length {
            let (first_peer, after_peers) = self.peers[position];
            group += usize::from(first_peer == position);
            let value = match &self.call.function {
                WindowFunction::RowNumber => Value::BigInt(position as i64 + 1),
                WindowFunction::Rank => Value::BigInt(first_peer as i64 + 1),
                WindowFunction::DenseRank => Value::BigInt(group as i64),
                WindowFunction::PercentRank if length == 1 => Value::Double(0.0),
                WindowFunction::PercentRank => Value::Double(first_peer as f64 / (length - 1) as f64),
                WindowFunction::CumulativeShare => Value::Double(after_peers as f64 / length as f64),
                WindowFunction::Buckets(buckets) => self.bucket(buckets, position)?,
                WindowFunction::Shifted { value, offset, default, back } => {
                    match self.at(offset, position)?.as_integer() {
                        None => Value::Null,
                        Some(offset) => {
                            let other = position as i64 + if *back { -offset } else { offset };
                            match usize::try_from(other).ok().filter(|other| *other < length) {
                                Some(other) => self.at(value, other)?,
                                None => self.at(default, position)?,
                            }
                        }
                    }
                }
                WindowFunction::First(value) => match self.frame_of(position) {
                    (start, end) if start < end => self.at(value, start)?,
                    _ => Value::Null,
                },
                WindowFunction::Last(value) => match self.frame_of(position) {
                    (start, end) if start < end => self.at(value, end - 1)?,
                    _ => Value::Null,
                },
                WindowFunction::Nth(value, number) => self.nth(value, number, position)?,
                WindowFunction::Aggregate(aggregate) => {
                    let (start, end) = self.frame_of(position);
                    let mut state = match running.take() {
                        Some(state) if state.start == start && state.end <= end => state,
                        _ => Running { accumulator: Accumulator::new(aggregate), start, end: start },
                    };
                    while state.end < end {
                        state.accumulator.add(&self.row(state.end))?;
                        state.end += 1;
                        *steps += 1;
                    }
                    let value = state.accumulator.result(self.environment)?;
                    running = Some(state);
                    value
                }
            };
            *steps += 1;
            if *steps > steps_max {
                // Whoever counts the steps says so.
                return Ok(());
            }
            *values.get_mut(self.keyed[position].2).ok_or_else(|| broken("a window's row"))? = value;
        }
        Ok(())
    }

    /// The rows in buckets of sizes as equal as can be, the larger ones first.
    fn bucket(&self, buckets: &Expression, position: usize) -> Result<Value, SqlError> {
        // As PostgreSQL does, the number of the partition's first row counts.
        let Some(buckets) = self.at(buckets, 0)?.as_integer() else { return Ok(Value::Null) };
        let Some(buckets) = usize::try_from(buckets).ok().filter(|buckets| *buckets > 0) else {
            let message = "argument of ntile must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22014"), message));
        };
        let (size, larger) = (self.keyed.len() / buckets, self.keyed.len() % buckets);
        let in_larger = larger * (size + 1);
        let bucket = if position < in_larger {
            position / (size + 1)
        } else {
            larger + (position - in_larger) / size.max(1)
        };
        Ok(Value::Integer(bucket as i32 + 1))
    }

    fn nth(&self, value: &Expression, number: &Expression, position: usize) -> Result<Value, SqlError> {
        let Some(number) = self.at(number, position)?.as_integer() else { return Ok(Value::Null) };
        let Some(index) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) else {
            let message = "argument of nth_value must be greater than zero";
            return Err(SqlError::new(SqlState(*b"22016"), message));
        };
        let (start, end) = self.frame_of(position);
        match start.checked_add(index).filter(|position| *position < end) {
            Some(position) => self.at(value, position),
            None => Ok(Value::Null),
        }
    }
}

/// An aggregate of the rows of a frame so far.
struct Running<'a> {
    accumulator: Accumulator<'a>,
    start: usize,
    end: usize,
}
