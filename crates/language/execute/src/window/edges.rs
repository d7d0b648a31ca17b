//! Where the frame of a row begins and ends in its partition. Both go forward only, from row to row.

use crate::window::frame::Edge;
use crate::window::in_range::{Side, in_range};
use crate::window::partition::{Finder, Partition, PartitionRows, Reached};
use plan::window::{Exclusion, FrameUnits};
use types::{SqlError, Value};
use values::broken;

/// Rows of a frame, in their order, by the positions of the first and behind the last of each part.
pub(super) type Segments = [(usize, usize); 3];

impl<R: PartitionRows> Partition<'_, R> {
    /// First position and the one behind the last of the frame of the row at this position.
    pub(super) fn frame_of(&mut self, position: usize, steps: &mut u64) -> Result<(usize, usize), SqlError> {
        let frame = self.frame;
        let (first_peer, after_peers) = self.peers;
        let length = self.rows.count();
        let moved = |offset: i64| {
            let moved = (position as i64).saturating_add(offset);
            usize::try_from(moved).unwrap_or(0).min(length)
        };
        let start = match (&frame.start, frame.units) {
            (Edge::Open, _) => 0,
            (Edge::Away(offset), FrameUnits::Rows) => moved(*offset),
            (Edge::Away(0), _) => first_peer,
            (Edge::Away(groups), _) => {
                // In front of the group that is the first.
                let groups = (self.group as i64 - 1).saturating_add(*groups);
                self.behind_groups(Finder::Start, groups, steps)?
            }
            (Edge::Offset { offset, before }, _) => {
                self.behind_values(Finder::Start, position, (offset, *before), steps)?
            }
        };
        let end = match (&frame.end, frame.units) {
            (Edge::Open, _) => length,
            // Behind the last row; a frame that ends before the first row is empty.
            (Edge::Away(offset), FrameUnits::Rows) => moved(offset.saturating_add(1)),
            (Edge::Away(0), _) => after_peers,
            (Edge::Away(groups), _) => {
                let groups = (self.group as i64).saturating_add(*groups);
                self.behind_groups(Finder::End, groups, steps)?
            }
            (Edge::Offset { offset, before }, _) => {
                self.behind_values(Finder::End, position, (offset, *before), steps)?
            }
        };
        Ok((start, end.max(start)))
    }

    /// The same without what the frame excludes.
    pub(super) fn segments_of(&mut self, position: usize, steps: &mut u64) -> Result<Segments, SqlError> {
        let (start, end) = self.frame_of(position, steps)?;
        let itself = (position, position + 1);
        let (excluded, kept) = match self.frame.exclusion {
            None => return Ok([(start, end), (end, end), (end, end)]),
            Some(Exclusion::CurrentRow) => (itself, (position, position)),
            Some(Exclusion::Group) => (self.peers, (position, position)),
            Some(Exclusion::Ties) => (self.peers, itself),
        };
        let within = |(first, behind): (usize, usize)| {
            let first = first.clamp(start, end);
            (first, behind.clamp(first, end))
        };
        Ok([within((start, excluded.0)), within(kept), within((excluded.1.max(start), end))])
    }

    fn reached(&mut self, finder: Finder) -> &mut Reached {
        match finder {
            Finder::Start => &mut self.start,
            Finder::End | Finder::Peers => &mut self.end,
        }
    }

    /// The position behind so many groups of rows.
    fn behind_groups(&mut self, finder: Finder, groups: i64, steps: &mut u64) -> Result<usize, SqlError> {
        let wanted = usize::try_from(groups).unwrap_or(0);
        let length = self.rows.count();
        let mut reached = *self.reached(finder);
        while reached.position < length && reached.groups < wanted {
            let next = self.rows.after_peers(finder, reached.position)?;
            *steps += (next - reached.position) as u64;
            reached = Reached { position: next, groups: reached.groups + 1 };
        }
        *self.reached(finder) = reached;
        Ok(reached.position)
    }

    /// The position of the first row whose value is not in front of this edge of the frame.
    fn behind_values(
        &mut self,
        finder: Finder,
        position: usize,
        (offset, before): (&Value, bool),
        steps: &mut u64,
    ) -> Result<usize, SqlError> {
        let [order] = self.call.order.as_slice() else {
            return Err(broken("a frame of values without one order"));
        };
        let (descending, nulls_first) = (order.descending, order.nulls_first);
        let is_end = matches!(finder, Finder::End);
        let side = Side { earlier: before != descending, below: is_end != descending };
        let current = self.rows.key(Finder::Peers, position)?.clone();
        let length = self.rows.count();
        let mut reached = *self.reached(finder);
        while reached.position < length {
            let value = self.rows.key(finder, reached.position)?;
            let is_in_front = match (value.is_null(), current.is_null()) {
                (false, false) => in_range(value, &current, offset, side)? == is_end,
                // Where one of both is NULL, the order alone decides.
                (is_null, _) if is_end && nulls_first => is_null,
                (_, is_null) if is_end => is_null,
                (value, current) if nulls_first => value && !current,
                (value, current) => !value && current,
            };
            if !is_in_front {
                break;
            }
            reached.position += 1;
            *steps += 1;
        }
        *self.reached(finder) = reached;
        Ok(reached.position)
    }
}
