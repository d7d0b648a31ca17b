//! Rows in a file, one behind the other: each its length in four bytes, then its values.

use crate::scratch::room::{Scratch, ScratchFile};
use borsh::BorshDeserialize;
use std::cell::RefCell;
use std::rc::Rc;
use types::{SqlError, SqlState, Value};

/// Bytes that are written and read at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Rows of a block: where each block begins is known, so that rows can be read from the middle of a run.
pub(crate) const BLOCK_ROWS: usize = 128;

/// A file that several runs share.
pub(super) type SharedFile = Rc<RefCell<Box<dyn ScratchFile>>>;

/// A file, and its length.
#[derive(Clone)]
pub(super) struct RunFile {
    file: SharedFile,
    bytes: u64,
}

impl RunFile {
    /// An empty one.
    pub fn new(scratch: &dyn Scratch) -> Result<RunFile, SqlError> {
        Ok(RunFile { file: Rc::new(RefCell::new(scratch.file()?)), bytes: 0 })
    }
}

/// Rows that stand in a file.
#[derive(Clone)]
pub(crate) struct Run {
    file: SharedFile,
    start: u64,
    end: u64,
    /// Where each block begins.
    blocks: Rc<[u64]>,
}

impl Run {
    /// The rows, from the first on.
    pub fn rows(&self) -> RunRows {
        self.between(self.start, self.end)
    }

    /// The rows from the first one of a block on.
    pub fn rows_from_block(&self, number: usize) -> RunRows {
        self.between(self.begin_of(number), self.end)
    }

    /// The rows of a block.
    pub fn block(&self, number: usize) -> RunRows {
        self.between(self.begin_of(number), self.begin_of(number + 1))
    }

    fn begin_of(&self, block: usize) -> u64 {
        self.blocks.get(block).copied().unwrap_or(self.end)
    }

    fn between(&self, start: u64, end: u64) -> RunRows {
        RunRows { file: self.file.clone(), at: start, end, buffer: Vec::new(), taken: 0 }
    }
}

/// Writes rows behind what stands in a file.
pub(super) struct RunWriter {
    file: RunFile,
    start: u64,
    buffer: Vec<u8>,
    rows: usize,
    blocks: Vec<u64>,
}

impl RunWriter {
    /// Nothing yet.
    pub fn new(file: &RunFile) -> RunWriter {
        RunWriter {
            file: file.clone(),
            start: file.bytes,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            rows: 0,
            blocks: Vec::new(),
        }
    }

    /// One more row: the values of all parts.
    pub fn push(&mut self, parts: &[&[Value]]) -> Result<(), SqlError> {
        let begin = self.buffer.len();
        if self.rows.is_multiple_of(BLOCK_ROWS) {
            self.blocks.push(self.file.bytes + begin as u64);
        }
        self.rows += 1;
        self.buffer.extend([0; 4]);
        for value in parts.iter().copied().flatten() {
            borsh::to_writer(&mut self.buffer, value).map_err(|error| unreadable(&error.to_string()))?;
        }
        let length =
            u32::try_from(self.buffer.len() - begin - 4).map_err(|_| unreadable("a row of 4 GiB"))?;
        self.buffer[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// What has been written can be read.
    pub fn flush(&mut self) -> Result<(), SqlError> {
        self.file.file.borrow_mut().append(&self.buffer)?;
        self.file.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The rows, which must have been flushed.
    pub fn run(&self) -> Run {
        Run {
            file: self.file.file.clone(),
            start: self.start,
            end: self.file.bytes,
            blocks: self.blocks.as_slice().into(),
        }
    }

    /// Gives the rows, and the file as it is now.
    pub fn finish(mut self) -> Result<(Run, RunFile), SqlError> {
        self.flush()?;
        Ok((self.run(), self.file))
    }
}

/// Reads rows.
pub(crate) struct RunRows {
    file: SharedFile,
    /// What has been read into the buffer ends here.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// So much of the buffer has been taken.
    taken: usize,
}

impl RunRows {
    /// The next row.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>, SqlError> {
        if self.taken == self.buffer.len() && self.at == self.end {
            return Ok(None);
        }
        let mut length = [0; 4];
        length.copy_from_slice(self.take(4)?);
        let bytes = self.take(u32::from_le_bytes(length) as usize)?;
        let mut rest = bytes;
        let mut row = Vec::new();
        while !rest.is_empty() {
            row.push(Value::deserialize(&mut rest).map_err(|error| unreadable(&error.to_string()))?);
        }
        Ok(Some(row))
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], SqlError> {
        if self.buffer.len() - self.taken < bytes {
            self.fill(bytes)?;
        }
        let begin = self.taken;
        self.taken += bytes;
        Ok(&self.buffer[begin..self.taken])
    }

    /// Reads on, at least until there are so many bytes.
    fn fill(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let missing = bytes - self.buffer.len();
        let left = self.end - self.at;
        if missing as u64 > left {
            return Err(unreadable("it ends within a row"));
        }
        let more = missing.max(BUFFER_BYTES).min(usize::try_from(left).unwrap_or(usize::MAX));
        let begin = self.buffer.len();
        self.buffer.resize(begin + more, 0);
        self.file.borrow().read(self.at, &mut self.buffer[begin..])?;
        self.at += more as u64;
        Ok(())
    }
}

#[cold]
fn unreadable(why: &str) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, format!("a temporary file of the query cannot be read: {why}"))
        .hint("Look at the disk on which the node keeps temporary files, and ask again.")
}
