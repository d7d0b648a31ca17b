//! Rows in the order in which they come, of which not all fit into memory.

use crate::scratch::room::{Scratch, is_full, row_bytes};
use crate::scratch::run::{Run, RunFile, RunRows, RunWriter};
use plan::expression::{Memory, rows_space};
use std::rc::Rc;
use std::sync::Arc;
use types::{SqlError, Value};

/// Rows of a relation while they come. As many as fit are held; as soon as one does not, all stand in a file.
pub(crate) struct RowList {
    rows: Vec<Vec<Value>>,
    count: usize,
    /// What the rows that are held take.
    bytes: u64,
    /// What was counted for them.
    held: u64,
    scratch: Option<Arc<dyn Scratch>>,
    written: Option<RunWriter>,
}

impl RowList {
    /// No rows yet. Without `scratch` all of them must fit into memory.
    pub fn new(scratch: Option<Arc<dyn Scratch>>) -> RowList {
        RowList { rows: Vec::new(), count: 0, bytes: 0, held: 0, scratch, written: None }
    }

    /// One more row, for which so many bytes are counted.
    ///
    /// # Errors
    /// As [`Memory::hold`]; what writing raises.
    #[inline]
    pub fn push(&mut self, memory: &Memory, space: u64, row: Vec<Value>) -> Result<(), SqlError> {
        self.count += 1;
        if let Some(writer) = &mut self.written {
            return writer.push(&[&row]);
        }
        let fits = memory.hold(space);
        if let Some(scratch) = &self.scratch {
            self.bytes += row_bytes(&row);
            self.held += space;
            if is_full(scratch, self.bytes, &fits) {
                self.rows.push(row);
                return self.write(memory);
            }
        }
        self.rows.push(row);
        fits
    }

    /// What is counted for its rows.
    pub fn held(&self) -> u64 {
        self.held
    }

    #[cold]
    fn write(&mut self, memory: &Memory) -> Result<(), SqlError> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        let mut writer = RunWriter::new(&RunFile::new(scratch.as_ref())?);
        std::mem::take(&mut self.rows).iter().try_for_each(|row| writer.push(&[row]))?;
        self.written = Some(writer);
        memory.release(std::mem::take(&mut self.held));
        Ok(())
    }

    /// No rows come any more.
    ///
    /// # Errors
    /// What writing raises.
    pub fn complete(self) -> Result<Rows, SqlError> {
        Ok(match self.written {
            None => Rows::Held(self.rows),
            Some(writer) => Rows::Written { run: writer.finish()?.0, count: self.count },
        })
    }
}

/// All rows of a relation.
pub(crate) enum Rows {
    /// In memory, and counted there.
    Held(Vec<Vec<Value>>),
    /// In a file.
    Written { run: Run, count: usize },
}

impl Rows {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Rows::Held(rows) => rows.len(),
            Rows::Written { count, .. } => *count,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits all in their order.
    ///
    /// # Errors
    /// What `visit` and reading raise.
    pub fn each(&self, mut visit: impl FnMut(&[Value]) -> Result<(), SqlError>) -> Result<(), SqlError> {
        match self {
            Rows::Held(rows) => rows.iter().try_for_each(|row| visit(row)),
            Rows::Written { run, .. } => {
                let mut rows = run.rows();
                while let Some(row) = rows.next()? {
                    visit(&row)?;
                }
                Ok(())
            }
        }
    }

    /// Gives all in their order.
    pub fn into_each(self) -> EachRow {
        match self {
            Rows::Held(rows) => EachRow::Held(rows.into_iter()),
            Rows::Written { run, .. } => EachRow::Written(run.rows()),
        }
    }
}

/// Rows that are read more than once.
#[derive(Clone)]
pub(crate) enum SharedRows {
    /// In memory.
    Held(Rc<Vec<Vec<Value>>>),
    /// In a file.
    Written { run: Run, count: usize },
}

impl From<Rows> for SharedRows {
    fn from(rows: Rows) -> SharedRows {
        match rows {
            Rows::Held(rows) => SharedRows::Held(Rc::new(rows)),
            Rows::Written { run, count } => SharedRows::Written { run, count },
        }
    }
}

impl From<Rc<Vec<Vec<Value>>>> for SharedRows {
    fn from(rows: Rc<Vec<Vec<Value>>>) -> SharedRows {
        SharedRows::Held(rows)
    }
}

/// Rows one by one.
pub(crate) enum EachRow {
    Held(std::vec::IntoIter<Vec<Value>>),
    Written(RunRows),
}

impl EachRow {
    /// The next rows, as many as fit into so many bytes, but one at least where there is one; and what they count for.
    ///
    /// # Errors
    /// What reading raises.
    pub fn piece(&mut self, bytes_max: u64) -> Result<(Vec<Vec<Value>>, u64), SqlError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(row) = self.next()?
        {
            bytes += row_bytes(&row);
            rows.push(row);
        }
        let space = rows_space(&rows);
        Ok((rows, space))
    }

    /// The next one.
    ///
    /// # Errors
    /// What reading raises.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Vec<Value>>, SqlError> {
        match self {
            EachRow::Held(rows) => Ok(rows.next()),
            EachRow::Written(rows) => rows.next(),
        }
    }
}
