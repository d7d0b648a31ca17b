//! What a client sends up to Sync is one transaction, as in PostgreSQL: batches and pipelines of drivers.
//!
//! ```text
//!  Execute ─▶ does Sync come next? ─┬▶ yes: the statement is the whole transaction, known before it runs; it needs no block
//!                                   └▶ no: a block is open, without BEGIN; Sync commits it, an error rolls it back
//! ```
//!
//! Whoever sends Flush behind Execute wants the answer at once, so that the block is open then, too.

use super::session::{Failure, Session};
use super::statement::{Body, ParsedStatement};
use super::transaction::Opened;

impl Session {
    /// A statement of the extended protocol runs next: outside of a block it begins one, unless it is alone up to Sync.
    pub(super) async fn join_pipeline(&mut self, statement: &ParsedStatement) -> Result<(), Failure> {
        let joins = match &statement.body {
            // Locks of the session are no part of transactions.
            Body::Database(_) if statement.locks.only_for_session => false,
            Body::Database(_) | Body::Catalogue(_) | Body::Session(_) | Body::Cursor(_) | Body::Execute => {
                true
            }
            // These begin and end transactions, are several, or cannot be undone.
            Body::Empty
            | Body::Transaction(_)
            | Body::Copy(_)
            | Body::CopyOut(_)
            | Body::Prepare
            | Body::Password(_) => false,
        };
        if joins && self.block.is_none() && !self.connection.syncs_next().await? {
            self.open_block(Opened::ByItself);
        }
        Ok(())
    }

    /// Sync has come, or what stands for it: a block that nobody has begun ends.
    pub(super) async fn end_pipeline(&mut self) -> Result<(), Failure> {
        match &self.block {
            Some(block) if block.opened == Opened::ByItself => self.commit().await.map(drop),
            _ => Ok(()),
        }
    }
}
