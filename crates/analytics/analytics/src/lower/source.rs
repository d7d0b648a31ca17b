//! Where the columns of a table come from: from those that are kept, or from rows.

use crate::reason::OnRows;
use datafusion_common::{DataFusionError, Result};
use state::{ColumnBatch, ColumnPiece, ReadColumns};
use std::sync::Arc;
use types::Key;

/// Where the columns of a table come from.
#[derive(Clone)]
pub(super) enum Source {
    /// They are kept.
    Kept(Vec<ColumnBatch>),
    /// They are made of rows as they are read, which needs memory for some thousand rows only.
    Made { made: Arc<dyn ReadColumns>, about_rows: u64 },
}

impl Source {
    /// About how many rows there are.
    pub(super) fn rows(&self) -> u64 {
        match self {
            Source::Kept(batches) => batches.iter().map(|batch| batch.rows as u64).sum(),
            Source::Made { about_rows, .. } => *about_rows,
        }
    }

    /// What a sample is taken from: all that is kept, or the first rows where all would have to be read.
    pub(super) fn some(&self) -> Result<Vec<ColumnBatch>, OnRows> {
        match self {
            Source::Kept(batches) => Ok(batches.clone()),
            Source::Made { made, .. } => Pieces::of(made.clone()).take(1).map(|batch| Ok(batch?)).collect(),
        }
    }

    /// All of them.
    pub(super) fn batches(&self) -> Box<dyn Iterator<Item = Result<ColumnBatch>> + Send> {
        match self {
            Source::Kept(batches) => Box::new(batches.clone().into_iter().map(Ok)),
            Source::Made { made, .. } => Box::new(Pieces::of(made.clone())),
        }
    }
}

/// Reads rows as columns to their end, or to the first error.
struct Pieces {
    made: Arc<dyn ReadColumns>,
    behind: Option<Key>,
    has_ended: bool,
}

impl Pieces {
    fn of(made: Arc<dyn ReadColumns>) -> Pieces {
        Pieces { made, behind: None, has_ended: false }
    }
}

impl Iterator for Pieces {
    type Item = Result<ColumnBatch>;

    fn next(&mut self) -> Option<Result<ColumnBatch>> {
        if self.has_ended {
            return None;
        }
        match self.made.piece(self.behind.as_ref()) {
            Ok(Some(ColumnPiece { last, batch })) => {
                (self.has_ended, self.behind) = (last.is_none() || batch.is_none(), last);
                let does_not_fit =
                    || DataFusionError::Execution("a value does not fit in its column".to_string());
                Some(batch.ok_or_else(does_not_fit))
            }
            Ok(None) => {
                self.has_ended = true;
                None
            }
            Err(error) => {
                self.has_ended = true;
                Some(Err(DataFusionError::External(Box::new(error))))
            }
        }
    }
}
