//! The cursors of a transaction.
//!
//! A cursor's rows are computed when it is opened, on the state of that moment, and registered as read like those of any
//! query. So what the transaction writes later does not change them, and moving about in them reads nothing.

use plan::expression::{Memory, rows_space};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::{CursorPosition, Moved, Movement, OutputColumn, SqlError, SqlState, Value};

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
    position: CursorPosition,
    /// How many had been opened before.
    number: u64,
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
        let position = CursorPosition::in_front_of(content.rows.len(), content.scroll);
        self.open.insert(name.clone(), Cursor { content, position, number: self.opened });
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
        self.get(name)?.position.go(movement)
    }

    /// The columns of an open cursor's rows.
    pub fn described(&self, name: &str) -> Option<&Arc<[OutputColumn]>> {
        self.open.get(name).map(|cursor| &cursor.content.columns)
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Closes all but those that loops run over.
    pub fn close_all(&mut self, memory: &Memory) {
        let closed: Vec<String> = self
            .open
            .iter()
            .filter(|(_, cursor)| !cursor.content.pinned)
            .map(|(name, _)| name.clone())
            .collect();
        closed.iter().for_each(|name| self.forget(name, memory));
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
        match cursor.position.row().and_then(|index| cursor.content.rows.get(index)) {
            Some(row) => Ok(row[cursor.content.columns.len()..].to_vec()),
            None => invalid(format!("cursor \"{name}\" is not positioned on a row")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::expression::KeptMemory;

    fn memory() -> Memory {
        Memory::new(1_000, KeptMemory::default())
    }

    fn opened() -> Cursors {
        let rows = (1..=5).map(|number| vec![Value::Integer(number)]).collect();
        let column = OutputColumn { name: "n".to_string(), data_type: types::DataType::Integer };
        let content = CursorRows { columns: [column].into(), rows, table: None, scroll: true, pinned: false };
        let mut cursors = Cursors::default();
        assert_eq!(cursors.open(None, content, &memory()).as_deref(), Ok("<unnamed portal 1>"));
        cursors
    }

    #[test]
    fn names_are_taken_while_a_cursor_is_open() {
        let (mut cursors, memory) = (opened(), memory());
        let empty =
            || CursorRows { columns: [].into(), rows: Vec::new(), table: None, scroll: true, pinned: true };
        assert_eq!(cursors.open(Some("c"), empty(), &memory).as_deref(), Ok("c"));
        assert!(cursors.open(Some("c"), empty(), &memory).is_err());
        assert!(cursors.close("c", &memory).is_err());
        let before = cursors.opened();
        assert_eq!(cursors.open(None, empty(), &memory).as_deref(), Ok("<unnamed portal 2>"));
        cursors.close_since(before, &memory);
        assert!(cursors.columns("<unnamed portal 2>").is_err());
        cursors.close_all(&memory);
        assert!(cursors.described("c").is_some(), "a loop runs over it");
        assert!(cursors.described("<unnamed portal 1>").is_none());
        cursors.forget("c", &memory);
        assert!(cursors.is_empty());
    }

    #[test]
    fn a_cursor_stands_on_rows_of_its_table_alone() {
        let (mut cursors, memory) = (opened(), memory());
        assert!(cursors.key("<unnamed portal 1>", "t").is_err());
        assert_eq!(cursors.close("<unnamed portal 1>", &memory), Ok(()));
    }
}
