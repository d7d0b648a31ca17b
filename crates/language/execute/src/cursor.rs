//! The cursors of a transaction.
//!
//! A cursor's rows are computed when it is opened, on the state of that moment, and registered as read like those of any
//! query. So what the transaction writes later does not change them, and moving about in them reads nothing.

use plan::expression::{Memory, rows_space};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{OutputColumn, SqlError, SqlState, Value};

/// Cursors that are open at a time.
const CURSORS_MAX: usize = 256;

/// The open cursors of a transaction, by name.
#[derive(Default)]
pub struct Cursors {
    open: BTreeMap<String, Cursor>,
    /// Cursors opened without a name.
    unnamed: u64,
    /// Cursors opened.
    opened: u64,
}

/// What a cursor is opened with.
pub struct CursorRows {
    /// The columns of its rows.
    pub columns: Arc<[OutputColumn]>,
    /// The rows; behind their columns may stand a primary key.
    pub rows: Vec<Vec<Value>>,
    /// The table whose rows they are, if it is one.
    pub table: Option<Box<str>>,
    /// False: it only goes forward.
    pub scroll: bool,
    /// A loop runs over it.
    pub pinned: bool,
}

struct Cursor {
    content: CursorRows,
    /// 0 in front of the first row, one more than there are rows behind the last one.
    position: usize,
    /// How many had been opened before.
    number: u64,
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// How many.
    pub rows: usize,
    /// Position of the first one, from 1.
    pub first: usize,
    backwards: bool,
}

impl Moved {
    /// The positions of the rows, in the order in which they were met.
    #[cfg(test)]
    fn positions(self) -> Vec<usize> {
        let at = |number: usize| if self.backwards { self.first - number } else { self.first + number };
        (0..self.rows).map(at).collect()
    }
}

impl Cursors {
    /// Opens a cursor; `None`: under a name that no other one has. Gives its name.
    ///
    /// # Errors
    /// `42P03` where one of this name is open, `54000` where there are too many of them or of their rows.
    pub fn open(
        &mut self,
        name: Option<&str>,
        content: CursorRows,
        memory: &Memory,
    ) -> Result<String, SqlError> {
        self.check_name(name)?;
        let name = name.map_or_else(|| self.unnamed(), str::to_string);
        if self.open.len() >= CURSORS_MAX {
            let message = format!("a transaction has at most {CURSORS_MAX} open cursors (CURSORS_MAX)");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        memory.keep(rows_space(&content.rows))?;
        self.open.insert(name.clone(), Cursor { content, position: 0, number: self.opened });
        self.opened += 1;
        Ok(name)
    }

    /// Refuses the name of an open cursor.
    ///
    /// # Errors
    /// `42P03`
    pub fn check_name(&self, name: Option<&str>) -> Result<(), SqlError> {
        match name.filter(|name| self.open.contains_key(*name)) {
            Some(name) => {
                let message = format!("cursor \"{name}\" already in use");
                Err(SqlError::new(SqlState(*b"42P03"), message))
            }
            None => Ok(()),
        }
    }

    fn unnamed(&mut self) -> String {
        loop {
            self.unnamed += 1;
            let name = format!("<unnamed portal {}>", self.unnamed);
            if !self.open.contains_key(&name) {
                return name;
            }
        }
    }

    /// Closes a cursor.
    ///
    /// # Errors
    /// `34000` where there is none, `24000` where a loop runs over it.
    pub fn close(&mut self, name: &str, memory: &Memory) -> Result<(), SqlError> {
        if self.get(name)?.content.pinned {
            let message = format!("cannot drop pinned portal \"{name}\"");
            return Err(SqlError::new(SqlState(*b"24000"), message));
        }
        self.forget(name, memory);
        Ok(())
    }

    /// The loop over a cursor has ended.
    pub fn forget(&mut self, name: &str, memory: &Memory) {
        if let Some(cursor) = self.open.remove(name) {
            memory.give_back(rows_space(&cursor.content.rows));
        }
    }

    /// So many cursors have been opened so far.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Closes those that were opened when there had been more than so many.
    pub fn close_since(&mut self, opened: u64, memory: &Memory) {
        let late: Vec<String> = self
            .open
            .iter()
            .filter(|(_, cursor)| cursor.number >= opened)
            .map(|(name, _)| name.clone())
            .collect();
        late.iter().for_each(|name| self.forget(name, memory));
    }

    fn get(&mut self, name: &str) -> Result<&mut Cursor, SqlError> {
        self.open
            .get_mut(name)
            .ok_or_else(|| SqlError::new(SqlState(*b"34000"), format!("cursor \"{name}\" does not exist")))
    }

    /// The columns of a cursor's rows.
    ///
    /// # Errors
    /// `34000`
    pub fn columns(&mut self, name: &str) -> Result<Arc<[OutputColumn]>, SqlError> {
        Ok(self.get(name)?.content.columns.clone())
    }

    /// Moves a cursor.
    ///
    /// # Errors
    /// `34000` where there is none, `55000` where it would go back and must not.
    pub fn go(&mut self, name: &str, movement: Movement) -> Result<Moved, SqlError> {
        self.get(name)?.go(movement)
    }

    /// The values of a row that a movement has met.
    ///
    /// # Errors
    /// `34000`
    pub fn row(&mut self, name: &str, position: usize) -> Result<Vec<Value>, SqlError> {
        let content = &self.get(name)?.content;
        let row = position.checked_sub(1).and_then(|index| content.rows.get(index));
        Ok(row.map_or_else(Vec::new, |row| row[..content.columns.len()].to_vec()))
    }

    /// The primary key of the row that a cursor stands on.
    ///
    /// # Errors
    /// `34000` where there is none, `24000` where it stands on no row of this table.
    pub fn key(&mut self, name: &str, table: &str) -> Result<Vec<Value>, SqlError> {
        let cursor = self.get(name)?;
        let invalid = |message: String| Err(SqlError::new(SqlState(*b"24000"), message));
        if cursor.content.table.as_deref() != Some(table) {
            return invalid(format!("cursor \"{name}\" is not a simply updatable scan of table \"{table}\""));
        }
        match cursor.position.checked_sub(1).and_then(|index| cursor.content.rows.get(index)) {
            Some(row) => Ok(row[cursor.content.columns.len()..].to_vec()),
            None => invalid(format!("cursor \"{name}\" is not positioned on a row")),
        }
    }
}

impl Cursor {
    fn end(&self) -> usize {
        self.content.rows.len() + 1
    }

    /// As PostgreSQL's `DoPortalRunFetch`, which decides what goes back.
    fn go(&mut self, movement: Movement) -> Result<Moved, SqlError> {
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
                if wanted - 1 <= self.position / 2 {
                    self.rewind()?;
                } else if wanted <= self.position {
                    self.back(self.position - wanted + 1)?;
                }
                self.forward((wanted - 1).saturating_sub(self.position));
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
        let from = self.position;
        self.position = from.saturating_add(count).min(self.end());
        let last = self.position.min(self.content.rows.len());
        Moved { rows: last.saturating_sub(from), first: from + 1, backwards: false }
    }

    fn back(&mut self, count: usize) -> Result<Moved, SqlError> {
        if count == 0 {
            return Ok(Moved::default());
        }
        self.may_go_back()?;
        let from = self.position;
        self.position = from.saturating_sub(count);
        let rows = from.saturating_sub(self.position.max(1));
        Ok(Moved { rows, first: from.saturating_sub(1), backwards: true })
    }

    /// The row that it stands on once more.
    fn stay(&mut self) -> Result<Moved, SqlError> {
        let on_row = (1..self.end()).contains(&self.position);
        if !on_row {
            return Ok(Moved::default());
        }
        self.may_go_back()?;
        Ok(Moved { rows: 1, first: self.position, backwards: false })
    }

    fn rewind(&mut self) -> Result<(), SqlError> {
        if self.position > 0 {
            self.may_go_back()?;
        }
        self.position = 0;
        Ok(())
    }

    fn may_go_back(&self) -> Result<(), SqlError> {
        if self.content.scroll {
            return Ok(());
        }
        Err(SqlError::new(SqlState(*b"55000"), "cursor can only scan forward")
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
    use plan::expression::KeptMemory;

    fn memory() -> Memory {
        Memory::new(1_000, KeptMemory::default())
    }

    fn opened(scroll: bool) -> Cursors {
        let rows = (1..=5).map(|number| vec![Value::Integer(number)]).collect();
        let column = OutputColumn { name: "n".to_string(), data_type: types::DataType::Integer };
        let content = CursorRows { columns: [column].into(), rows, table: None, scroll, pinned: false };
        let mut cursors = Cursors::default();
        assert_eq!(cursors.open(None, content, &memory()).as_deref(), Ok("<unnamed portal 1>"));
        cursors
    }

    const NONE: [usize; 0] = [];

    #[test]
    fn movements_meet_the_rows_that_postgresql_meets() {
        let mut cursors = opened(true);
        let mut go =
            |movement| cursors.go("<unnamed portal 1>", movement).expect("an open cursor").positions();
        assert_eq!(go(Movement::By(2)), [1, 2]);
        assert_eq!(go(Movement::By(-1)), [1]);
        assert_eq!(go(Movement::By(0)), [1]);
        assert_eq!(go(Movement::By(-1)), NONE);
        assert_eq!(go(Movement::By(0)), NONE);
        assert_eq!(go(Movement::To(4)), [4]);
        assert_eq!(go(Movement::To(2)), [2]);
        assert_eq!(go(Movement::Relative(2)), [4]);
        assert_eq!(go(Movement::Relative(-3)), [1]);
        assert_eq!(go(Movement::To(-1)), [5]);
        assert_eq!(go(Movement::To(-5)), [1]);
        assert_eq!(go(Movement::To(9)), NONE);
        assert_eq!(go(Movement::By(-2)), [5, 4]);
        assert_eq!(go(Movement::ToEnd), [5]);
        assert_eq!(go(Movement::ToEnd), NONE);
        assert_eq!(go(Movement::ToStart), [5, 4, 3, 2, 1]);
        assert_eq!(go(Movement::To(0)), NONE);
        assert_eq!(go(Movement::By(1)), [1]);
    }

    #[test]
    fn what_must_not_go_back_does_not() {
        let mut cursors = opened(false);
        let mut go = |movement| cursors.go("<unnamed portal 1>", movement).map(Moved::positions);
        assert_eq!(go(Movement::To(1)), Ok(vec![1]));
        assert_eq!(go(Movement::By(2)), Ok(vec![2, 3]));
        for movement in
            [Movement::By(-1), Movement::By(0), Movement::To(1), Movement::To(-1), Movement::ToStart]
        {
            assert!(go(movement).is_err(), "{movement:?}");
        }
    }

    #[test]
    fn names_are_taken_while_a_cursor_is_open() {
        let (mut cursors, memory) = (opened(true), memory());
        let empty =
            || CursorRows { columns: [].into(), rows: Vec::new(), table: None, scroll: true, pinned: true };
        assert_eq!(cursors.open(Some("c"), empty(), &memory).as_deref(), Ok("c"));
        assert!(cursors.open(Some("c"), empty(), &memory).is_err());
        assert!(cursors.close("c", &memory).is_err());
        let before = cursors.opened();
        assert_eq!(cursors.open(None, empty(), &memory).as_deref(), Ok("<unnamed portal 2>"));
        cursors.close_since(before, &memory);
        assert!(cursors.columns("<unnamed portal 2>").is_err());
        cursors.forget("c", &memory);
        assert!(cursors.key("<unnamed portal 1>", "t").is_err());
        assert_eq!(cursors.close("<unnamed portal 1>", &memory), Ok(()));
    }
}
