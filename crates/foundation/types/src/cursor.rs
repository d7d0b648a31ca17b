//! Where a cursor stands in its rows, and where FETCH and MOVE take it.

use crate::{SqlError, SqlState};

/// Where FETCH and MOVE go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Movement {
    /// So many rows on; back where it is negative.
    By(i64),
    /// Behind the last row.
    ToEnd,
    /// In front of the first row.
    ToStart,
    /// To this row; counted from the end where it is negative.
    To(i64),
    /// So many rows on, of which only the last one counts.
    Relative(i64),
}

/// The rows that a movement has gone over and that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// How many.
    pub rows: usize,
    /// Position of the first one, from 1.
    pub first: usize,
    backwards: bool,
}

impl Moved {
    /// The positions of the rows, in the order in which they were met.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..self.rows)
            .map(move |number| if self.backwards { self.first - number } else { self.first + number })
    }
}

/// Where a cursor stands in its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPosition {
    /// 0 in front of the first row, one more than there are rows behind the last one.
    at: usize,
    rows: usize,
    scroll: bool,
}

impl CursorPosition {
    /// In front of so many rows. `scroll`: it may go back.
    pub fn in_front_of(rows: usize, scroll: bool) -> CursorPosition {
        CursorPosition { at: 0, rows, scroll }
    }

    /// The index of the row that it stands on.
    pub fn row(self) -> Option<usize> {
        self.at.checked_sub(1).filter(|index| *index < self.rows)
    }

    fn end(self) -> usize {
        self.rows + 1
    }

    /// Moves as PostgreSQL's `DoPortalRunFetch`, which decides what goes back.
    ///
    /// # Errors
    /// `55000` where it would go back and must not. It may have gone to the end before.
    pub fn go(&mut self, movement: Movement) -> Result<Moved, SqlError> {
        match movement {
            Movement::ToEnd => Ok(self.forward(usize::MAX)),
            Movement::ToStart => self.back(usize::MAX),
            Movement::By(0) | Movement::Relative(0) => self.stay(),
            Movement::By(count) if count > 0 => Ok(self.forward(size(count))),
            Movement::By(count) => self.back(size(count)),
            Movement::Relative(count) if count > 0 => {
                self.forward(size(count) - 1);
                Ok(self.forward(1))
            }
            Movement::Relative(count) => {
                self.back(size(count) - 1)?;
                self.back(1)
            }
            Movement::To(0) => {
                self.rewind()?;
                Ok(Moved::default())
            }
            Movement::To(count) if count > 0 => {
                let wanted = size(count);
                // From the start, where that is nearer.
                if wanted - 1 <= self.at / 2 {
                    self.rewind()?;
                } else if wanted <= self.at {
                    self.back(self.at - wanted + 1)?;
                }
                self.forward((wanted - 1).saturating_sub(self.at));
                Ok(self.forward(1))
            }
            Movement::To(count) => {
                self.forward(usize::MAX);
                self.back(size(count) - 1)?;
                self.back(1)
            }
        }
    }

    fn forward(&mut self, count: usize) -> Moved {
        let from = self.at;
        self.at = from.saturating_add(count).min(self.end());
        let last = self.at.min(self.rows);
        Moved { rows: last.saturating_sub(from), first: from + 1, backwards: false }
    }

    fn back(&mut self, count: usize) -> Result<Moved, SqlError> {
        if count == 0 {
            return Ok(Moved::default());
        }
        self.may_go_back()?;
        let from = self.at;
        self.at = from.saturating_sub(count);
        let rows = from.saturating_sub(self.at.max(1));
        Ok(Moved { rows, first: from.saturating_sub(1), backwards: true })
    }

    /// The row that it stands on once more.
    fn stay(self) -> Result<Moved, SqlError> {
        if self.row().is_none() {
            return Ok(Moved::default());
        }
        self.may_go_back()?;
        Ok(Moved { rows: 1, first: self.at, backwards: false })
    }

    fn rewind(&mut self) -> Result<(), SqlError> {
        if self.at > 0 {
            self.may_go_back()?;
        }
        self.at = 0;
        Ok(())
    }

    fn may_go_back(self) -> Result<(), SqlError> {
        if self.scroll {
            return Ok(());
        }
        Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
            .hint("Declare it with SCROLL option to enable backward scan."))
    }
}

/// How many rows a number that is not 0 says, whatever its sign.
fn size(count: i64) -> usize {
    usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(cursor: &mut CursorPosition, movement: Movement) -> Result<Vec<usize>, SqlState> {
        cursor.go(movement).map(|moved| moved.positions().collect()).map_err(|error| error.state)
    }

    #[test]
    fn movements_meet_the_rows_that_postgresql_meets() {
        // Each with what PostgreSQL 15 gives on a cursor over five rows.
        let mut five = CursorPosition::in_front_of(5, true);
        for (movement, expected) in [
            (Movement::By(0), vec![]),
            (Movement::By(2), vec![1, 2]),
            (Movement::By(-1), vec![1]),
            (Movement::By(0), vec![1]),
            (Movement::By(-1), vec![]),
            (Movement::By(0), vec![]),
            (Movement::To(4), vec![4]),
            (Movement::To(2), vec![2]),
            (Movement::Relative(2), vec![4]),
            (Movement::Relative(-3), vec![1]),
            (Movement::To(-1), vec![5]),
            (Movement::To(-5), vec![1]),
            (Movement::To(9), vec![]),
            (Movement::By(-2), vec![5, 4]),
            (Movement::ToEnd, vec![5]),
            (Movement::ToEnd, vec![]),
            (Movement::ToStart, vec![5, 4, 3, 2, 1]),
            (Movement::To(0), vec![]),
            (Movement::By(1), vec![1]),
        ] {
            assert_eq!(met(&mut five, movement), Ok(expected), "{movement:?}");
        }
    }

    #[test]
    fn large_numbers_end_at_the_ends() {
        let mut three = CursorPosition::in_front_of(3, true);
        for (movement, expected) in [
            (Movement::Relative(2), vec![2]),
            (Movement::Relative(-5), vec![]),
            (Movement::By(3), vec![1, 2, 3]),
            (Movement::By(1), vec![]),
            (Movement::To(7), vec![]),
            (Movement::By(i64::MIN), vec![3, 2, 1]),
            (Movement::By(i64::MAX), vec![1, 2, 3]),
            (Movement::To(i64::MIN), vec![]),
            (Movement::Relative(i64::MAX), vec![]),
        ] {
            assert_eq!(met(&mut three, movement), Ok(expected), "{movement:?}");
        }
        assert_eq!(three.row(), None);
    }

    #[test]
    fn what_must_not_go_back_does_not() {
        let mut five = CursorPosition::in_front_of(5, false);
        assert_eq!(met(&mut five, Movement::To(1)), Ok(vec![1]));
        assert_eq!(met(&mut five, Movement::By(2)), Ok(vec![2, 3]));
        assert_eq!(five.row(), Some(2));
        for movement in [
            Movement::By(-1),
            Movement::By(0),
            Movement::To(1),
            Movement::To(-1),
            Movement::ToStart,
            Movement::Relative(-1),
        ] {
            let refused = Err(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
            assert_eq!(met(&mut five, movement), refused, "{movement:?}");
        }
    }
}
