//! CHECKPOINT: every node is to write down its whole state behind the block that the statement is in. That is part of the
//! catalog, so that all nodes come to the same heights, also those that start again.

use types::{Catalog, SqlError, SqlState, limits};

/// The catalog of a ledger whose block at `height` asks for a checkpoint.
///
/// # Errors
/// `55000`: the last one is too near.
pub(super) fn ask_for_checkpoint(catalog: &mut Catalog, height: u64) -> Result<(), SqlError> {
    let (last, next) = (catalog.checkpoint, catalog.checkpoint + limits::CHECKPOINT_BLOCKS_MIN);
    if last > 0 && height != last && height < next {
        let message = format!(
            "the last CHECKPOINT was at height {last}, the next one can be at height {next} (CHECKPOINT_BLOCKS_MIN is {})",
            limits::CHECKPOINT_BLOCKS_MIN
        );
        return Err(SqlError::new(SqlState(*b"55000"), message).hint(
            "Wait for so many blocks. Nodes make checkpoints by themselves too, as the charter says.",
        ));
    }
    catalog.checkpoint = height;
    Ok(())
}
